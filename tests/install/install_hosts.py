"""Clients of the SDK on servers with Troth: every framework, both eras, in memory and over HTTP."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import mcp_types as types
import pytest
from mcp.client import Client

from held_ports import held_port

HERE = Path(__file__).parent
SECONDS = 30
sys.path[:0] = [str(HERE)]

from installed_servers import MAKERS


@pytest.fixture
def anyio_backend():
    return "asyncio"


def low_level(server):
    """What the SDK's in-memory client takes: FastMCP is known to it by its low-level server only."""
    return getattr(server, "_mcp_server", server)


async def _sampled(context, params):
    return types.CreateMessageResult(
        role="assistant", model="m", content=types.TextContent(type="text", text="sampled")
    )


async def _accepted(context, params):
    return types.ElicitResult(action="accept", content={"size": "big"})


async def _roots(context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///srv/notes")])


ANSWERS = {
    "sampling": {"sampling_callback": _sampled},
    "form": {"elicitation_callback": _accepted},
    "roots": {"list_roots_callback": _roots},
}


@contextmanager
def served(name, transport="http", script="install_process.py"):
    """The URL of a server in a process of its own."""
    words, nothing = [sys.executable, "-W", "ignore", str(HERE / script), name, transport], subprocess.DEVNULL
    with (
        held_port() as port,
        subprocess.Popen([*words, str(port)], stdout=nothing, stderr=nothing) as process,
    ):
        try:
            until = time.monotonic() + 2 * SECONDS
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    assert process.poll() is None
                    assert time.monotonic() < until
                    time.sleep(0.05)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


@asynccontextmanager
async def client(server, mode, *declared, heard=None, **options):
    """A client that declares, and answers, the named things."""
    for one in declared:
        options |= ANSWERS[one]

    async def hear(message):
        if heard is not None and hasattr(message, "method"):
            heard.append(message)

    async with Client(low_level(server), mode=mode, message_handler=hear, **options) as connected:
        yield connected


@pytest.fixture(params=("legacy", "auto"))
def mode(request):
    """How the client connects: with a handshake, or in the modern era."""
    return request.param


@pytest.fixture(params=sorted(MAKERS))
def make(request):
    """What makes a server on one of the frameworks."""
    return MAKERS[request.param]
