"""Shows the gateway at work: ``demo.py --old PYTHON``, where that Python has ``mcp-server-sqlite`` and the old SDK.

It starts the gateway in front of two real servers, of which one speaks the newest revision and the other only the old
ones, and of two small ones that ask the user; calls a tool of each as a host of either era, which answers what it is
asked; audits the gateway; and stops everything.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from mcp import Client
from mcp.types import ElicitResult

if TYPE_CHECKING:
    from collections.abc import Iterator

START, STOP, PAUSE = 30.0, 10.0, 0.2
"""Seconds: for a start, for an end, and between two looks."""
HOSTS = (("legacy", "legacy"), ("modern", "2026-07-28"))
"""Names of the hosts, and the mode of the SDK's client."""
ASKER = ("-m", "troth.testing", "server", "--transport", "stdio", "--variant", "asker", "--revision")
ASKERS = {"old": "2025-11-25", "new": "2026-07-28"}
"""Servers that ask: one by a request in the middle of a call, one by a result that is not complete."""
CALLS = (
    ("time_get_current_time", {"timezone": "Europe/Paris"}, r'"datetime": "([^"]+)"'),
    ("sqlite_read_query", {"query": "SELECT 6 * 7 AS answer"}, r"(\{.*\})"),
    ("old_ask_form", {}, r'"name": "([^"]+)"'),
    ("new_ask_form", {}, r'"name": "([^"]+)"'),
)
"""Tool, arguments, and what of the text of its result is shown."""
WANTED = {name for name, *_ in CALLS}


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def servers(old: str, folder: Path) -> dict[str, Any]:
    """The configuration, as hosts have it."""
    sqlite = [old, "-c", "from mcp_server_sqlite import main; main()", "--db-path", str(folder / "demo.db")]
    return {
        "mcpServers": {
            "time": {"command": sys.executable, "args": ["-m", "mcp_server_time"]},
            "sqlite": {"command": sqlite[0], "args": sqlite[1:]},
            **{name: {"command": sys.executable, "args": [*ASKER, revision]} for name, revision in ASKERS.items()},
        }
    }


@contextmanager
def gateway(config: Path) -> Iterator[str]:
    """The gateway in front of the servers of a configuration; its URL once it says that it is ready."""
    command = [sys.executable, "-m", "troth", "serve", str(config), "--port", str(free_port()), "--no-auth"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        # A gateway that says nothing is stopped, which ends the loop below.
        patience = threading.Timer(START, process.kill)
        patience.start()
        try:
            said = []
            for line in process.stderr or ():
                said.append(line)
                if ready := re.match(r"ready (\S+)", line):
                    break
            else:
                raise SystemExit("the gateway did not start: " + "".join(said))
            patience.cancel()
            yield ready[1]
        finally:
            patience.cancel()
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP)
            except subprocess.TimeoutExpired:
                process.kill()


async def answer(_context: object, _question: object) -> ElicitResult:
    """What the user says to every form."""
    return ElicitResult(action="accept", content={"name": "Ada"})


async def visit(url: str, mode: str) -> list[str]:
    """What a host of an era gets: its revision, how many tools it sees, and an answer of each server."""
    async with Client(url, mode=mode, elicitation_callback=answer) as host:
        # The gateway is ready before its servers are: the first start of a program takes its time.
        for _ in range(int(START / PAUSE)):
            tools = (await host.list_tools(cache_mode="refresh")).tools
            if {tool.name for tool in tools} >= WANTED:
                break
            await anyio.sleep(PAUSE)
        answers = []
        for tool, arguments, shown in CALLS:
            result = await host.call_tool(tool, arguments)
            text = result.content[0].text
            found = re.search(shown, text)
            answers.append(found[1] if found and not result.is_error else f"error: {text[:60]}")
        return [host.protocol_version, f"{len(tools)} tools", *answers]


def table(rows: list[list[str]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", required=True, help="a Python that has mcp-server-sqlite")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        config = folder / "mcp.json"
        config.write_text(json.dumps(servers(chosen.old, folder), indent=2), "utf-8")
        print("Two servers from PyPI behind one endpoint: mcp-server-time speaks every revision, and")
        print("mcp-server-sqlite only those before 2026-07-28. Two small ones ask the user, each in the way of its")
        print("own revision; both hosts answer.\n")
        print("$ troth serve mcp.json", flush=True)
        with gateway(config) as url:
            print(f"ready {url}\n")
            rows = [["host", "revision", "sees", *(name for name, *_ in CALLS)]]
            rows += [[f"{name} host", *anyio.run(visit, url, mode)] for name, mode in HOSTS]
            table(rows)
            print(f"\n$ troth audit {url}\n", flush=True)
            audit = [sys.executable, "-m", "troth", "audit", "--fail-on", "error", url]
            status = subprocess.run(audit, check=False).returncode
    failed = any("error: " in cell for row in rows for cell in row)
    return status or int(failed)


if __name__ == "__main__":
    sys.exit(main())
