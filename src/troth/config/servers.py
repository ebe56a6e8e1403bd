"""Server lists as hosts keep them: Claude Desktop and its kin, VS Code, opencode. Entries and faults as values.

Three spellings are known, told apart by the member that holds the servers: ``mcpServers``, ``servers`` (also inside
``mcp``, as in VS Code's settings and newer opencode) and opencode's ``mcp``.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from troth.config.faults import Fault, shown
from troth.config.jsonc import Document, read_json, read_text
from troth.config.variables import Unset, expand

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

URL_KEYS = ("url", "serverUrl", "httpUrl")
"""Members that hold an address, by host."""
TYPES = {
    "stdio": "command",
    "local": "command",
    "http": "url",
    "remote": "url",
    "sse": "url",
    "streamable-http": "url",
    "streamableHttp": "url",
    "streamable_http": "url",
}
"""Values of ``type`` (or ``transport``) and the member that each needs."""

LISTS = ("mcpServers", "servers", "mcp")
"""Members of a file that hold servers, by host."""
_LOWER = {name.lower(): name for name in LISTS}
_NEAR = 0.8
"""How like a name of `LISTS` another one must be to pass for it misspelt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One server of a file.

    Attributes:
        name: Its name there.
        where: Dotted path of the entry.
        path: The same as names of members.
        line: Line on which it begins; None where it is not known.
        disabled: Whether the file says that it is not to be used.
        kind: Value of ``type``; empty if it has none.
        command: Program and arguments; empty for a server at an address.
        env: Variables for its process.
        cwd: Folder to start it in, absolute.
        url: Address; empty for a server that is started.
        url_key: The member that holds the address.
        headers: Headers for every request.
        members: The entry as it stands in the file.
        faults: What is wrong with it; the other fields hold only what is right.
    """

    name: str
    where: str
    path: tuple[str, ...]
    line: int | None = None
    disabled: bool = False
    kind: str = ""
    command: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str | None = None
    url: str = field(default="", repr=False)
    url_key: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    members: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFile:
    """A file with servers in it.

    Attributes:
        key: Dotted path of the member that holds them.
        entries: The servers, in the file's order.
        document: The file.
    """

    key: str
    entries: tuple[Entry, ...]
    document: Document = field(repr=False)


def read_servers(path: str, environ: Mapping[str, str]) -> ServerFile | Fault:
    """Reads a configuration of a host.

    Args:
        path: The file.
        environ: Where variables are looked up.

    Returns:
        The servers, each with its faults; or why there are none.
    """
    text = read_text(path)
    if isinstance(text, Fault):
        return text
    listed = read_list(path, text)
    if isinstance(listed, Fault):
        return listed
    document, key, servers = listed
    parts = tuple(key.split("."))
    entries = (read_entry(path, (*parts, name), value, environ, document.line) for name, value in servers.items())
    return ServerFile(key=key, entries=tuple(entries), document=document)


def read_list(path: str, text: str) -> tuple[Document, str, Mapping[str, Any]] | Fault:
    """The document of a list of servers, the dotted place of the list in it, and the servers by name.

    Args:
        path: The file, for messages.
        text: Its text.
    """
    document = read_json(path, text)
    if isinstance(document, Fault):
        return document
    found = find_servers(path, document)
    return found if isinstance(found, Fault) else (document, *found)


def find_servers(path: str, document: Document) -> tuple[str, Mapping[str, Any]] | Fault:
    """The member that holds the servers, and what is in it."""
    top = mapping(document.value) or {}
    inner = mapping(top.get("mcp")) or {}
    places = (
        ("mcpServers", top.get("mcpServers")),
        ("servers", top.get("servers")),
        ("mcp.servers", inner.get("servers")),
        ("mcp", top.get("mcp")),
    )
    for key, candidate in places:
        servers = mapping(candidate)
        if servers is not None:
            return key, servers
        if candidate is not None:
            line = document.line(tuple(key.split(".")))
            return Fault(path, key, "must be an object of servers by name", "", line)
    if meant := misspelt(top):
        name, key = meant
        return Fault(path, name, "is no list of servers", f"did you mean {key!r}?", document.line((name,)))
    known = '"mcpServers" (Claude Desktop), "servers" (VS Code) or "mcp" (opencode)'
    return Fault(path, "", f"no servers in it. Expected {known}")


def misspelt(top: Mapping[str, Any]) -> tuple[str, str] | None:
    """A member that nearly has the name of a list of servers and holds objects, and the name that was meant."""
    for name, value in top.items():
        members = mapping(value)
        near = difflib.get_close_matches(name.lower(), _LOWER, 1, _NEAR)
        if name not in LISTS and near and members and all(mapping(item) is not None for item in members.values()):
            return name, _LOWER[near[0]]
    return None


def mapping(value: object) -> dict[str, Any] | None:
    """The value if it is an object, else None."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def read_entry(
    file: str,
    path: tuple[str, ...],
    value: object,
    environ: Mapping[str, str],
    line: Callable[[tuple[str, ...]], int | None],
) -> Entry:
    """One server, with everything that is wrong with it.

    Args:
        file: The file.
        path: Names of members that lead to the entry; the last one is the server's name.
        value: What stands there.
        environ: Where variables are looked up.
        line: The line of a path, for faults.
    """
    return _Reader(file, path, value, environ, line).entry()


class _Reader:
    def __init__(
        self,
        file: str,
        path: tuple[str, ...],
        value: object,
        environ: Mapping[str, str],
        line: Callable[[tuple[str, ...]], int | None],
    ) -> None:
        self.file, self.path, self.environ, self.line = file, path, environ, line
        self.faults: list[Fault] = []
        members = mapping(value)
        if members is None:
            self.fault("", "must be an object")
        self.broken = members is None
        self.members = members or {}

    def fault(self, member: str, problem: str, mend: str = "") -> None:
        parts = (*self.path, *(member.split(".", 1) if member else ()))
        line = next((found for end in range(len(parts), 0, -1) if (found := self.line(parts[:end]))), None)
        self.faults.append(Fault(self.file, ".".join(parts), problem, mend, line))

    def entry(self) -> Entry:
        values: dict[str, Any] = {} if self.broken else self.values()
        return Entry(
            name=self.path[-1],
            where=".".join(self.path),
            path=self.path,
            line=self.line(self.path),
            disabled=self.members.get("disabled") is True or self.members.get("enabled") is False,
            members=self.members,
            faults=tuple(self.faults),
            **values,
        )

    def values(self) -> dict[str, Any]:
        url_key = next((key for key in URL_KEYS if key in self.members), None)
        kind = self.members.get("type", self.members.get("transport"))
        if kind is not None and not (isinstance(kind, str) and kind in TYPES):
            self.fault("type", f"unknown: {shown(kind)}", f"known: {', '.join(TYPES)}")
            return {}
        has_command = "command" in self.members
        wanted = TYPES[kind] if kind is not None else ("command" if has_command else "url")
        if (wanted == "command" and not has_command) or (wanted == "url" and url_key is None):
            self.fault("", f"has no {wanted!r}" + ("" if kind else " and no 'command'"))
            return {}
        if has_command and url_key is not None:
            self.fault(url_key, "stands beside 'command'", "keep one of the two: a program to start, or an address")
        if wanted == "url" and url_key is not None:
            url, headers = self.string(url_key, self.members[url_key]), self.strings("headers")
            return {"kind": kind or "", "url": url or "", "url_key": url_key, "headers": headers}
        command, env = self.command(), self.strings("env", "environment")
        return {"kind": kind or "", "command": command, "env": env, "cwd": self.cwd()}

    def command(self) -> tuple[str, ...]:
        command = cast("object", self.members["command"])
        words: list[object] = cast("list[object]", command) if isinstance(command, list) else [command]
        words = [*words, *self.items("args", self.members.get("args", []))]
        found = [self.string("command" if index == 0 else "args", word) for index, word in enumerate(words)]
        if not found or found[0] == "":
            self.fault("command", "is empty", "name the program to start")
        result = tuple(word for word in found if word is not None)
        return result if len(result) == len(found) else ()

    def cwd(self) -> str | None:
        given = self.members.get("cwd")
        cwd = None if given is None else self.string("cwd", given)
        if cwd is None:
            return None
        try:
            return str((Path(self.file).parent / Path(cwd).expanduser()).resolve())
        except (ValueError, RuntimeError, OSError) as error:
            # A NUL, a lone surrogate, a home folder of nobody, a loop of links.
            self.fault("cwd", f"is no folder: {error}")
            return None

    def items(self, member: str, value: object) -> list[object]:
        if isinstance(value, list):
            return cast("list[object]", value)
        self.fault(member, "must be a list of strings")
        return []

    def strings(self, *members: str) -> dict[str, str]:
        result: dict[str, str] = {}
        for member in members:
            value = self.members.get(member)
            if value is None:
                continue
            entries = mapping(value)
            if entries is None:
                self.fault(member, "must be an object of strings")
                continue
            for name, item in entries.items():
                text = None if item is None else self.string(f"{member}.{name}", item)
                if text is not None:
                    result[name] = text
        return result

    def string(self, member: str, value: object) -> str | None:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self.fault(member, "must be a string")
            return None
        text = expand(str(value), self.file, self.environ)
        if isinstance(text, Unset):
            self.fault(member, text.problem, text.mend)
            return None
        return text
