"""Reads the server lists that hosts keep: Claude Desktop and its kin, VS Code, opencode.

Three spellings are known, told apart by the member that holds the servers: ``mcpServers``, ``servers`` (also inside
``mcp`` of VS Code's settings) and opencode's ``mcp``. Comments and trailing commas are tolerated as editors do.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from troth.audit.options import UsageError
from troth.audit.targets import HttpTarget, Place, StdioTarget, Target, url_problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LARGEST = 16 * 1024 * 1024
"""Bytes of the largest file that is taken for a configuration."""

_TEXT = r'"(?:\\.|[^"\\\n])*"?'
_COMMENT = re.compile(_TEXT + r"|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_COMMA = re.compile(_TEXT + r"|,(?=\s*[}\]])", re.DOTALL)
_VARIABLE = re.compile(r"\$\{(?P<dollar>[^{}]*)\}|\{env:(?P<brace>[^{}]*)\}")
_URL_KEYS = ("url", "serverUrl", "httpUrl")
_TYPES = {
    "stdio": "command",
    "local": "command",
    "http": "url",
    "remote": "url",
    "sse": "url",
    "streamable-http": "url",
    "streamableHttp": "url",
    "streamable_http": "url",
}


def read_config(path: str, names: Sequence[str], environ: Mapping[str, str]) -> tuple[Target, ...]:
    """The servers of a configuration file as targets, in the file's order.

    Args:
        path: The file.
        names: Servers to take, also disabled ones; empty for all that are not disabled.
        environ: Where ``${VAR}``, ``${VAR:-default}``, ``${env:VAR}`` and ``{env:VAR}`` are looked up.

    Raises:
        UsageError: The file cannot be read, is no such configuration, lacks a named server or a variable.
    """
    text = _read(path)
    key, servers = _servers(path, _parse(path, text))
    for name in names:
        if name not in servers:
            raise UsageError(f"{path}: no server {name!r}. {_near(name, servers)}")
    chosen = [name for name in servers if (name in names if names else not _disabled(servers[name]))]
    if not chosen:
        what = "are disabled; name one with --server" if servers else "are missing: the list is empty"
        raise UsageError(f"{path}: {key}: all servers {what}.")
    return tuple(_Entry(path, f"{key}.{name}", name, servers[name], environ).target(text) for name in chosen)


def _read(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise UsageError(f"{path}: is larger than {LARGEST} bytes; no configuration is.")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: is not UTF-8 text.") from None


def _parse(path: str, text: str) -> object:
    try:
        return cast("object", json.loads(_strip(text)))
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}.") from None
    except (RecursionError, ValueError) as error:
        raise UsageError(f"{path}: not usable JSON: {error}.") from None


def _strip(text: str) -> str:
    """Comments and trailing commas become blanks, so that lines and columns stay where they are."""
    for tokens in (_COMMENT, _COMMA):
        text = tokens.sub(lambda match: match[0] if match[0][0] == '"' else _blank(match[0]), text)
    return text


def _blank(text: str) -> str:
    return "\n".join(" " * len(line) for line in text.split("\n"))


def _mapping(value: object) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _servers(path: str, value: object) -> tuple[str, dict[str, Any]]:
    top = _mapping(value) or {}
    mcp = _mapping(top.get("mcp")) or {}
    places = (
        ("mcpServers", top.get("mcpServers")),
        ("servers", top.get("servers")),
        ("mcp.servers", mcp.get("servers")),
        ("mcp", top.get("mcp")),
    )
    for key, candidate in places:
        servers = _mapping(candidate)
        if servers is not None:
            return key, servers
        if candidate is not None:
            raise UsageError(f"{path}: {key}: must be an object of servers by name.")
    raise UsageError(
        f'{path}: no servers in it. Expected "mcpServers" (Claude Desktop), "servers" (VS Code) or "mcp" (opencode).'
    )


def _near(name: str, known: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(name, [*known], 1)
    return f"Did you mean {close[0]!r}?" if close else f"It has: {', '.join(known) or 'none'}."


def _disabled(entry: object) -> bool:
    members = _mapping(entry) or {}
    return members.get("disabled") is True or members.get("enabled") is False


class _Entry:
    """One server of the file, with the place that errors name."""

    def __init__(self, path: str, where: str, name: str, value: object, environ: Mapping[str, str]) -> None:
        self.path, self.where, self.name, self.environ = path, where, name, environ
        members = _mapping(value)
        if members is None:
            raise self.error("", "must be an object")
        self.members = members

    def error(self, member: str, problem: str) -> UsageError:
        dotted = f"{self.where}.{member}" if member else self.where
        return UsageError(f"{self.path}: {dotted}: {problem}.")

    def target(self, text: str) -> Target:
        url_key = next((key for key in _URL_KEYS if key in self.members), None)
        kind = self.members.get("type", self.members.get("transport"))
        if kind is not None and not (isinstance(kind, str) and kind in _TYPES):
            raise self.error("type", f"unknown: {kind!r}; known: {', '.join(_TYPES)}")
        has_command = "command" in self.members
        wanted = _TYPES[kind] if kind is not None else ("command" if has_command else "url")
        if (wanted == "command" and not has_command) or (wanted == "url" and url_key is None):
            raise self.error("", f"has no {wanted!r}" + ("" if kind else " and no 'command'"))
        place = Place(self.path, _line(text, self.where.removesuffix(f".{self.name}"), self.name))
        if wanted == "url" and url_key is not None:
            return self._http(url_key, place)
        return StdioTarget(
            name=self.name,
            command=self._command(),
            env=self._strings("env", "environment"),
            cwd=self._cwd(),
            place=place,
        )

    def _http(self, key: str, place: Place) -> HttpTarget:
        url = self._string(key, self.members[key])
        problem = url_problem(url)
        if problem:
            raise self.error(key, problem.rstrip("."))
        return HttpTarget(name=self.name, url=url, headers=self._strings("headers"), place=place)

    def _command(self) -> tuple[str, ...]:
        command = self.members["command"]
        words: list[object] = self._list("command", cast("object", command)) if isinstance(command, list) else [command]
        words = [*words, *self._list("args", self.members.get("args", []))]
        result = tuple(self._string("command" if index == 0 else "args", word) for index, word in enumerate(words))
        if not result or not result[0]:
            raise self.error("command", "is empty: name the program to start")
        return result

    def _cwd(self) -> str | None:
        cwd = self.members.get("cwd")
        if cwd is None:
            return None
        try:
            return str((Path(self.path).parent / Path(self._string("cwd", cwd)).expanduser()).resolve())
        except (ValueError, RuntimeError, OSError) as error:
            # A NUL, a lone surrogate, a home folder of nobody, a loop of links.
            raise self.error("cwd", f"is no folder: {error}") from None

    def _list(self, member: str, value: object) -> list[object]:
        if not isinstance(value, list):
            raise self.error(member, "must be a list of strings")
        return cast("list[object]", value)

    def _strings(self, *members: str) -> dict[str, str]:
        result: dict[str, str] = {}
        for member in members:
            value = self.members.get(member)
            if value is None:
                continue
            entries = _mapping(value)
            if entries is None:
                raise self.error(member, "must be an object of strings")
            result |= {
                name: self._string(f"{member}.{name}", item) for name, item in entries.items() if item is not None
            }
        return result

    def _string(self, member: str, value: object) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self.error(member, "must be a string")
        return _VARIABLE.sub(lambda match: self._variable(member, match), str(value))

    def _variable(self, member: str, match: re.Match[str]) -> str:
        inner = match["brace"] if match["dollar"] is None else match["dollar"]
        name, marked, default = inner.removeprefix("env:").partition(":-")
        folder = Path(self.path).resolve().parent
        known = {
            "workspaceFolder": str(folder.parent if folder.name == ".vscode" else folder),
            "userHome": os.path.expanduser("~"),  # noqa: PTH111 - Path.home() raises where there is none
        }
        if inner in known:
            return known[inner]
        if inner.startswith("input:"):
            raise self.error(member, f"{match[0]} is a question that only the editor asks: write ${{env:NAME}} instead")
        value = self.environ.get(name)
        # As in a shell, `:-` also replaces an empty value.
        if marked and not value:
            return default
        if value is None:
            raise self.error(
                member, f"{match[0]}: the variable {name} is not set; set it, or write ${{{name}:-default}}"
            )
        return value


def _line(text: str, key: str, name: str) -> int:
    """The line on which the server's entry begins; 1 if its name is spelled with escapes there."""
    start = 0
    for word in (*key.split("."), name):
        match = re.compile(re.escape(json.dumps(word, ensure_ascii=False)) + r"\s*:").search(text, start)
        if match is None:
            return 1
        start = match.start()
    return text.count("\n", 0, start) + 1
