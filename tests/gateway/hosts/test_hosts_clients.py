"""Clients that others wrote, on the host side over real HTTP and stdio."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from scripted_front import CHANGED, ScriptedFront, progress_then, serving, until

from troth.gateway.model import Answer, Host, Sort, Stream

pytestmark = [pytest.mark.anyio, pytest.mark.interop]

HERE = Path(__file__).parent
IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}
MCP1 = HERE.parents[2] / ".envs" / "mcp1" / "bin" / "python"


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


async def calls_then_changes(frame: Any, host: Host, stream: Stream) -> Answer:
    """Progress under the caller's token; the lists change afterwards."""
    token = json.loads(bytes(frame.meta.get("progressToken", b"null")))
    line = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}}
    stream.send(json.dumps(line).encode(), Sort.PROGRESS)
    if host.session is not None:
        host.session.outbox.send(CHANGED, Sort.CHANGE)  # pyright: ignore
    return await progress_then(0)(frame, host, stream)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_sdk_client_speaks_over_http(mode: Any) -> None:
    front = ScriptedFront({"tools/call": calls_then_changes})
    async with serving(front) as served:
        changed = asyncio.Event()

        async def handler(message: object) -> None:
            if "list_changed" in repr(message):
                changed.set()

        async with Client(served.url, mode=mode, message_handler=handler) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["echo"]
            progress: list[float] = []

            async def on_progress(value: float, total: float | None, message: str | None) -> None:
                progress.append(value)

            result = await client.call_tool("echo", {}, progress_callback=on_progress)
            assert result.content[0].text == "hi"  # pyright: ignore
            assert progress == [1]
            if mode == "legacy":
                async with asyncio.timeout(30):
                    await changed.wait()
        assert len(front.closed) == len(front.sessions) == (mode == "legacy")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_sdk_client_speaks_over_stdio(mode: Any) -> None:
    parameters = StdioServerParameters(command=sys.executable, args=[str(HERE / "scripted_host_process.py")])
    async with Client(parameters, mode=mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["echo"]
        assert (await client.call_tool("echo", {})).content[0].text == "hi"  # pyright: ignore


async def test_the_sdk_client_speaks_over_the_old_transport() -> None:
    front = ScriptedFront({"tools/call": calls_then_changes})
    async with serving(front) as served:
        async with sse_client(f"{served.base}/sse") as streams, ClientSession(*streams) as session:
            await session.initialize()
            assert [tool.name for tool in (await session.list_tools()).tools] == ["echo"]
            assert (await session.call_tool("echo", {})).content[0].text == "hi"  # pyright: ignore
        await until(lambda: front.closed)


@pytest.mark.parametrize("path", ["/mcp", "/sse"])
async def test_the_client_of_the_first_sdk_speaks_over_http(path: str) -> None:
    if not MCP1.exists():
        word = f"{MCP1} is missing: run `make envs`"
        pytest.fail(word) if IN_CI else pytest.skip(word)
    front = ScriptedFront({"tools/call": calls_then_changes})
    async with serving(front) as served:
        process = await asyncio.create_subprocess_exec(
            str(MCP1), str(HERE / "client_of_mcp1.py"), served.base + path,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        async with asyncio.timeout(30):
            out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    assert json.loads(out) == {"revision": "2025-11-25", "tools": ["echo"], "text": "hi", "changed": True}
