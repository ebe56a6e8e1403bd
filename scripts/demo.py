"""Shows the gateway at work: ``demo.py --old PYTHON``, where that Python has ``mcp-server-sqlite`` and the old SDK.

It starts the gateway in front of two real servers, of which one speaks the newest revision and the other only the old
ones, of the sample server with Troth in it, whose tools ask their host, and of a small one that asks in the old way;
calls their tools as a host of either era, which answers what it is asked; audits the gateway; and stops everything.
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
from mcp.types import (
    CreateMessageResult,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    ListRootsResult,
    Root,
    TextContent,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

START, STOP, PAUSE = 30.0, 10.0, 0.2
"""Seconds: for a start, for an end, and between two looks."""
HOSTS = (("legacy", "legacy"), ("modern", "2026-07-28"))
"""Names of the hosts, and the mode of the SDK's client."""
SAMPLE = Path(__file__).parents[1] / "examples" / "sample_server.py"
"""A server whose tools need a model, a form, a page, folders and tasks; the newest revision is spoken with it."""
ASKER = ("-m", "troth.testing", "server", "--transport", "stdio", "--variant", "asker", "--revision", "2025-11-25")
"""A server of an old revision, which asks by a request in the middle of a call."""
CALLS = (
    ("time_get_current_time", {"timezone": "Europe/Paris"}, r'"datetime": "([^"]+)"'),
    ("sqlite_read_query", {"query": "SELECT 6 * 7 AS answer"}, r"(\{.*\})"),
    ("old_ask_form", {}, r'"name": "([^"]+)"'),
    ("sample_summarize", {"text": "Buy milk."}, r"(.+)"),
    ("sample_order", {}, r"(.+)"),
    ("sample_sign_in", {}, r"(.+)"),
    ("sample_folders", {}, r"(.+)"),
    ("sample_count", {}, r"(.+)"),
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
            "sample": {"command": sys.executable, "args": [str(SAMPLE)]},
            "time": {"command": sys.executable, "args": ["-m", "mcp_server_time"]},
            "sqlite": {"command": sqlite[0], "args": sqlite[1:]},
            "old": {"command": sys.executable, "args": [*ASKER]},
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


async def write(_context: object, _question: object) -> CreateMessageResult:
    """What the model of the host writes."""
    return CreateMessageResult(role="assistant", content=TextContent(type="text", text="A summary"), model="demo")


async def answer(_context: object, question: ElicitRequestFormParams | ElicitRequestURLParams) -> ElicitResult:
    """What the user says to every form and every page."""
    if isinstance(question, ElicitRequestURLParams):
        return ElicitResult(action="accept")
    return ElicitResult(action="accept", content={name: FORM[name] for name in question.requested_schema["properties"]})


async def folders(_context: object) -> ListRootsResult:
    """The folders that the host has open."""
    return ListRootsResult(roots=[Root(uri="file:///notes")])


FORM = {"name": "Ada", "size": "large"}
"""Field of a form -> what the user writes there."""
ANSWERS = {"sampling_callback": write, "elicitation_callback": answer, "list_roots_callback": folders}
"""What the hosts declare by answering it."""


async def visit(url: str, mode: str) -> list[str]:
    """What a host of an era gets: its revision, how many tools it sees, and an answer of each server."""
    async with Client(url, mode=mode, **ANSWERS) as host:
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
        print("mcp-server-sqlite only those before 2026-07-28. Two more ask their host: sample, for a model, a form,")
        print("a page and folders, in the way of 2026-07-28; old, for a form, in the way of 2025-11-25. Both hosts")
        print("answer.\n")
        print("$ troth serve mcp.json", flush=True)
        with gateway(config) as url:
            print(f"ready {url}\n")
            columns = [["host", "revision", "sees", *(name for name, *_ in CALLS)]]
            columns += [[f"{name} host", *anyio.run(visit, url, mode)] for name, mode in HOSTS]
            table([list(row) for row in zip(*columns, strict=True)])
            print(f"\n$ troth audit {url}\n", flush=True)
            audit = [sys.executable, "-m", "troth", "audit", "--fail-on", "error", url]
            status = subprocess.run(audit, check=False).returncode
    failed = any("error: " in cell for column in columns for cell in column)
    return status or int(failed)


if __name__ == "__main__":
    sys.exit(main())
