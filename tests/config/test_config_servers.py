"""Server lists of hosts: entries and all their faults at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from troth.config import Fault, ServerFile, read_servers

if TYPE_CHECKING:
    from pathlib import Path


def read(folder: Path, value: object, **environ: str) -> ServerFile:
    path = folder / "mcp.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=2), "utf-8")
    found = read_servers(str(path), environ)
    assert isinstance(found, ServerFile), found
    return found


def test_every_fault_of_every_server_is_told(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        {
            "mcpServers": {
                "a": {"command": "${NO}", "args": ["${NEITHER}", {}], "env": {"X": [], "Y": "1"}, "cwd": 5},
                "b": {"type": "smoke"},
                "c": {"command": "run"},
                "d": 1,
                "e": {"url": {}},
            }
        },
    )

    faults = {entry.name: [fault.words for fault in entry.faults] for entry in found.entries}

    assert faults == {
        "a": [
            "mcpServers.a.command: ${NO}: the variable NO is not set; set it, or write ${NO:-default}.",
            "mcpServers.a.args: ${NEITHER}: the variable NEITHER is not set; set it, or write ${NEITHER:-default}.",
            "mcpServers.a.args: must be a string.",
            "mcpServers.a.env.X: must be a string.",
        ],
        "b": [
            "mcpServers.b.type: unknown: 'smoke'; known: stdio, local, http, remote, sse, streamable-http, "
            "streamableHttp, streamable_http."
        ],
        "c": [],
        "d": ["mcpServers.d: must be an object."],
        "e": ["mcpServers.e.url: must be a string."],
    }
    assert [fault.line for fault in found.entries[0].faults] == [4, 5, 5, 10]


def test_newer_and_older_opencode_are_told_apart(tmp_path: Path) -> None:
    server = {"type": "local", "command": ["run", "it"]}
    older, newer = read(tmp_path, {"mcp": {"a": server}}), read(tmp_path, {"mcp": {"servers": {"a": server}}})
    assert (older.key, newer.key) == ("mcp", "mcp.servers")
    assert older.entries[0].command == newer.entries[0].command == ("run", "it")


def test_no_value_of_a_server_is_in_its_repr(tmp_path: Path) -> None:
    secret = "hunter2hunter2"
    found = read(
        tmp_path,
        {
            "mcpServers": {
                "a": {"command": "x", "env": {"K": secret}},
                "b": {"url": f"https://{secret}@a.example/", "headers": {"A": "${K}"}},
            }
        },
        K=secret,
    )
    assert secret not in repr(found)


def test_a_member_that_is_no_list_of_servers_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{\n"mcpServers": 3}', "utf-8")
    assert read_servers(str(path), {}) == Fault(str(path), "mcpServers", "must be an object of servers by name", "", 2)


def test_a_name_that_would_write_elsewhere_in_a_terminal_is_shown_escaped() -> None:
    told = str(Fault("mcp.json", "mcpServers.\x1b[2J\n\u202e", "must be an object"))
    assert told == "mcp.json: mcpServers.\\x1b[2J\\n\\u202e: must be an object."
