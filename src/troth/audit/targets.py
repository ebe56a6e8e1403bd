"""What an audit can be pointed at, and how the words of a command line become that."""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from troth.audit.masking import MASK, mask_command, mask_text, mask_url, mask_words, secrets_of
from troth.audit.options import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["HttpTarget", "Place", "StdioTarget", "Target", "UsageError", "parse_targets", "url_problem"]


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file: where the reports of CI systems pin a finding.

    Attributes:
        file: Path as the user gave it.
        line: From 1.
    """

    file: str
    line: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioTarget:
    """A server that is started as a process and spoken to over its standard streams.

    Attributes:
        name: What reports call it.
        command: Program and arguments.
        env: Variables that the process gets beside the few that are inherited (`wire.start.INHERITED`).
        cwd: Working directory; None for the auditor's.
        place: Where it is configured or defined, if a file does so.
    """

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: str | None = None
    place: Place | None = None

    @property
    def transport(self) -> str:
        """Always ``stdio``."""
        return "stdio"

    @property
    def address(self) -> str:
        """The command line with secrets masked."""
        return mask_command(self.command, self.secrets)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that no report may show."""
        return secrets_of(self.env, words=self.command)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTarget:
    """A server that listens at a URL (Streamable HTTP).

    Attributes:
        name: What reports call it.
        url: Absolute URL, http or https.
        headers: Sent with every request; never shown.
        place: Where it is configured or defined, if a file does so.
    """

    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    place: Place | None = None

    @property
    def transport(self) -> str:
        """Always ``http``."""
        return "http"

    @property
    def address(self) -> str:
        """The URL with secrets masked."""
        return mask_text(mask_url(self.url), self.secrets)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that no report may show."""
        return secrets_of(self.headers, named=True, words=(self.url,))


Target = StdioTarget | HttpTarget

_PYTHON_OBJECT = re.compile(r"(?P<file>.+\.py):(?P<object>[A-Za-z_][\w.]*)")
_HOST_PORT = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9][A-Za-z0-9.-]*):\d+(?:[/?].*)?")
_LAUNCHERS = re.compile(r"(?:python|pypy|uv|uvx|pipx|npx|bunx|bun|node|deno|npm|pnpm|docker|podman|env|sh|bash)[\d.]*")
_LAUNCHER_WORDS = frozenset({"run", "tool", "exec", "dlx", "x"})


def parse_targets(
    words: Sequence[str],
    command: Sequence[str] = (),
    *,
    config: str | None = None,
    servers: Sequence[str] = (),
    headers: Sequence[str] = (),
    env: Sequence[str] = (),
    name: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> tuple[Target, ...]:
    """The targets that a command line names, each with a name of its own.

    Args:
        words: URLs (``http://...``, ``:8000/mcp``, ``localhost:8000/mcp``) and ``file.py:object``.
        command: What stands after ``--``: program and arguments of a server to start.
        config: Path of a configuration file of a host (``mcpServers``, ``servers`` or ``mcp``).
        servers: Names of the servers in it to take; none = all that are not disabled.
        headers: ``Name: value`` for every target reached by HTTP.
        env: ``NAME=value`` for every target that is started.
        name: Name for the only target.
        environ: Where ``${VAR}`` in the configuration is looked up; the process environment by default.

    Raises:
        UsageError: Something is missing, unknown or unreadable.
    """
    from troth.audit.config import read_config

    lookup = os.environ if environ is None else environ
    found: list[Target] = [_parse_word(word) for word in words]
    if command:
        if not command[0]:
            raise UsageError("The command after -- is empty: name a program, as in: troth audit -- python -m my_server")
        shown = [word for word in mask_words(command) if MASK not in word]
        found.append(StdioTarget(name=_command_name(shown or ["server"]), command=tuple(command)))
    if config is not None:
        found.extend(read_config(config, servers, lookup))
    elif servers:
        raise UsageError("--server picks servers of a configuration file: give it with --config FILE.")
    if not found:
        raise UsageError(
            "No target. Give a URL (http://localhost:8000/mcp), a command (-- python -m my_server), "
            "a host's configuration (--config mcp.json) or a Python object (server.py:mcp)."
        )
    if name is not None:
        if len(found) > 1:
            raise UsageError(f"--name names one target, and there are {len(found)}.")
        found = [replace(found[0], name=name)]
    return _unique(_with_extras(found, _pairs(headers, "--header", ":"), _pairs(env, "--env", "=")))


def _with_extras(found: Sequence[Target], headers: Mapping[str, str], env: Mapping[str, str]) -> list[Target]:
    if headers and not any(isinstance(target, HttpTarget) for target in found):
        raise UsageError("--header is for targets reached by HTTP, and there is none. For a command use --env.")
    if env and not any(isinstance(target, StdioTarget) for target in found):
        raise UsageError("--env is for targets that are started, and there is none. For a URL use --header.")
    return [
        replace(target, headers={**target.headers, **headers})
        if isinstance(target, HttpTarget)
        else replace(target, env={**target.env, **env})
        for target in found
    ]


def _unique(targets: Sequence[Target]) -> tuple[Target, ...]:
    taken: set[str] = set()
    result: list[Target] = []
    for target in targets:
        name, number = target.name, 1
        while name in taken:
            number += 1
            name = f"{target.name}-{number}"
        taken.add(name)
        result.append(target if name == target.name else replace(target, name=name))
    return tuple(result)


def _pairs(given: Sequence[str], option: str, mark: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in given:
        name, found, value = text.partition(mark)
        # The value may be a secret, so a wrong one is not repeated.
        if not found or not name.strip() or any(char in text for char in "\r\n\0"):
            shape = "'Name: value'" if mark == ":" else "NAME=value"
            raise UsageError(f"{option} number {len(pairs) + 1} is not of the form {shape}.")
        pairs[name.strip()] = value.strip() if mark == ":" else value
    return pairs


def _parse_word(word: str) -> Target:
    if "://" in word:
        return _http(word)
    if word.startswith(":"):
        return _http(f"http://127.0.0.1{word}")
    python = _PYTHON_OBJECT.fullmatch(word)
    if python:
        return _python(python["file"], python["object"])
    if _HOST_PORT.fullmatch(word):
        return _http(f"http://{word}")
    raise UsageError(f"Not a target: {word!r}. {_mend(word)}")


def is_python_object(word: str) -> bool:
    """Whether a word of the command line names an object of a Python file (``server.py:mcp``)."""
    return "://" not in word and _PYTHON_OBJECT.fullmatch(word) is not None


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):  # a name that is too long, or holds a NUL
        return False


def _mend(word: str) -> str:
    if word.endswith(".json"):
        return f"To audit the servers of a host's configuration, write: --config {word}"
    if word.endswith(".py"):
        return f"Name the server object in the file, as in {word}:mcp, or start the file: -- python {word}"
    if shutil.which(word) or _is_file(word):
        return f"To start a command, put it after --: troth audit -- {word}"
    return "A target is a URL (http://..., :8000/mcp), file.py:object, -- COMMAND, or --config FILE."


def url_problem(url: str) -> str:
    """Why a URL cannot be the address of a target; empty if it can."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        return f"Not a URL: {mask_url(url)!r} ({error})."
    if parts.scheme not in ("http", "https"):
        return f"Not an http or https URL: {mask_url(url)!r}."
    if not parts.hostname or any(char.isspace() or not char.isprintable() for char in url):
        return f"Not a URL: {mask_url(url)!r} (no host, or a space in it)."
    return ""


def _http(url: str) -> HttpTarget:
    problem = url_problem(url)
    if problem:
        raise UsageError(problem)
    parts = urlsplit(url)
    return HttpTarget(name=f"{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}", url=url)


def _python(file: str, name: str) -> StdioTarget:
    if not _is_file(file):
        raise UsageError(f"No such file: {file!r} (in the target {file}:{name}).")
    command = (sys.executable, "-m", "troth.audit.runner", f"{file}:{name}")
    return StdioTarget(name=f"{Path(file).name}:{name}", command=command, place=Place(file))


def _command_name(command: Sequence[str]) -> str:
    """The word of a command line that tells servers apart: the module, package or script, not its launcher."""
    program = Path(command[0]).name or command[0]
    if not _LAUNCHERS.fullmatch(program):
        return program
    plain = [word for word in command[1:] if not word.startswith("-") and word not in _LAUNCHER_WORDS]
    if not plain or " " in plain[0]:
        return program
    word = plain[-1] if program in ("docker", "podman") else plain[0]
    return word.rstrip("/").rpartition("/")[2].partition("@")[0] or program
