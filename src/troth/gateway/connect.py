"""What to write into the configuration of a known host so that it uses the gateway.

The forms are those that the hosts' own documentation shows: ``mcpServers`` (Claude Desktop, Cursor), ``servers`` (VS
Code), ``mcp.servers`` and ``mcp`` (opencode 2 and 1), ``mcp_servers`` in TOML (Codex), and Claude Code's own command.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a host reaches the gateway: by its address with a token, or by starting it.

    Attributes:
        name: What the host calls the gateway.
        url: Address of the endpoint; empty to start the gateway.
        token: Bearer token for it; empty for none.
        command: Program and arguments that serve over stdio.
    """

    name: str
    url: str = ""
    token: str = ""
    command: Sequence[str] = ()

    @property
    def headers(self) -> dict[str, str]:
        """Headers that carry the token."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownHost:
    """A host whose configuration is known.

    Attributes:
        id: What the operator calls it; also the name of its token.
        title: Its name.
        where: Where the snippet goes.
        write: Makes the snippet.
        http: Whether its configuration can name an address and a token.
        profile: Id of its profile in the register; empty if there is none.
    """

    id: str
    title: str
    where: str
    write: Callable[[Way], str]
    http: bool = True
    profile: str = ""


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _start(way: Way) -> dict[str, Any]:
    return {"command": way.command[0], "args": list(way.command[1:])}


def _address(way: Way) -> dict[str, Any]:
    return {"url": way.url, **({"headers": way.headers} if way.token else {})}


def _claude_code(way: Way) -> str:
    if not way.url:
        return shlex.join(["claude", "mcp", "add", way.name, "--", *way.command])
    headers = [word for name, value in way.headers.items() for word in ("--header", f"{name}: {value}")]
    return shlex.join(["claude", "mcp", "add", "--transport", "http", way.name, way.url, *headers])


def _mcp_servers(way: Way) -> str:
    return _json({"mcpServers": {way.name: _address(way) if way.url else _start(way)}})


def _vscode(way: Way) -> str:
    entry = {"type": "http", **_address(way)} if way.url else {"type": "stdio", **_start(way)}
    return _json({"servers": {way.name: entry}})


def _opencode_entry(way: Way) -> dict[str, Any]:
    if not way.url:
        return {"type": "local", "command": list(way.command)}
    # Without this it looks for an authorization server before it sends the header.
    return {"type": "remote", **_address(way), "oauth": False}


def _opencode(way: Way) -> str:
    return _json({"mcp": {"servers": {way.name: _opencode_entry(way)}}})


def _opencode_1(way: Way) -> str:
    return _json({"mcp": {way.name: {**_opencode_entry(way), "enabled": True}}})


def _codex(way: Way) -> str:
    import tomlkit

    table = tomlkit.table()
    if way.url:
        table.add("url", way.url)
        if way.token:
            headers = tomlkit.inline_table()
            for name, value in way.headers.items():
                headers.add(name, value)
            # Its `headers` are ignored, and a literal `bearer_token` is refused.
            table.add("http_headers", headers)
    else:
        table.add("command", way.command[0])
        table.add("args", list(way.command[1:]))
    servers = tomlkit.table(is_super_table=True)
    servers.add(way.name, table)
    document = tomlkit.document()
    document.add("mcp_servers", servers)
    return document.as_string().rstrip("\n")


HOSTS = (
    KnownHost(
        id="claude-code",
        title="Claude Code",
        where="Run this in the project's folder; add --scope user after `add` for all projects.",
        write=_claude_code,
    ),
    KnownHost(
        id="claude-desktop",
        title="Claude Desktop",
        where="Settings > Developer > Edit Config (claude_desktop_config.json), then start it anew.",
        write=_mcp_servers,
        http=False,
    ),
    KnownHost(
        id="vscode",
        title="VS Code",
        where=".vscode/mcp.json in the workspace, or the file that `MCP: Open User Configuration` opens.",
        write=_vscode,
    ),
    KnownHost(
        id="cursor",
        title="Cursor",
        where="~/.cursor/mcp.json, or .cursor/mcp.json in the project.",
        write=_mcp_servers,
    ),
    KnownHost(
        id="opencode",
        title="opencode 2",
        where="~/.config/opencode/opencode.jsonc, or opencode.jsonc in the project.",
        write=_opencode,
        profile="opencode-v2",
    ),
    KnownHost(
        id="opencode-v1",
        title="opencode 1",
        where="~/.config/opencode/opencode.json, or opencode.json in the project.",
        write=_opencode_1,
        profile="opencode-v1",
    ),
    KnownHost(
        id="codex",
        title="Codex",
        where="~/.codex/config.toml.",
        write=_codex,
    ),
)
"""The hosts, by the order in which they are listed."""
