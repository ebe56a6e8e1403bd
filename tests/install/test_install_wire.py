"""Servers with Troth over real pipes and sockets, with the clients of the SDK (2 and 1) and of FastMCP."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from fastmcp import Client as FastMCPClient
from install_hosts import SECONDS, client, served
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

HERE = Path(__file__).parent
SCRIPT = HERE / "install_process.py"
OLD = HERE.parents[1] / ".envs" / "mcp1" / "bin" / "python"
CODES = {"legacy": -32600, "auto": -32021}
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


@asynccontextmanager
async def over(transport, name, mode, *declared, **options):
    if transport == "stdio":
        args = ["-W", "ignore", str(SCRIPT), name, "stdio"]
        target = stdio_client(StdioServerParameters(command=sys.executable, args=args))
        async with client(target, mode, *declared, **options) as host:
            yield host
    else:
        with served(name) as url:
            async with client(url, mode, *declared, **options) as host:
                yield host


async def refused(awaitable):
    with pytest.raises(MCPError) as caught:
        await awaitable
    return caught.value


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("name", ["sdk", "fastmcp", "low"])
async def test_a_host_sees_and_may_use_what_it_declared(transport, name, mode):
    with anyio.fail_after(3 * SECONDS):
        async with over(transport, name, mode, "sampling") as host:
            assert host.server_capabilities.tools.list_changed is True
            names = {tool.name for tool in (await host.list_tools()).tools}
            assert "summarize" in names
            assert "survey" not in names
            assert (await refused(host.call_tool("survey"))).code == CODES[mode]
            assert (await host.call_tool("summarize")).is_error is False


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("name", ["sdk", "fastmcp", "low"])
async def test_a_new_tool_reaches_a_listener(transport, name):
    with anyio.fail_after(3 * SECONDS):
        async with over(transport, name, "auto") as host, host.listen(tools_list_changed=True) as listened:
            await host.call_tool("grow")
            assert type(await anext(aiter(listened))).__name__ == "ToolsListChanged"


@pytest.mark.parametrize("name", ["sdk", "fastmcp", "low"])
async def test_a_new_tool_reaches_a_legacy_session_over_its_get_stream(name):
    heard = []
    with served(name) as url, anyio.fail_after(2 * SECONDS):
        async with client(url, "legacy", heard=heard) as host:
            while not heard:
                # What is announced before the GET stream is open is lost, so it is announced again.
                await host.call_tool("grow")
            assert heard[0].method == "notifications/tools/list_changed"


async def test_hosts_with_different_capabilities_interleave_over_http(mode):
    with served("sdk") as url:
        async with client(url, mode) as poor, client(url, mode, "sampling") as rich:
            for _ in range(3):
                assert (await refused(poor.call_tool("summarize"))).code == CODES[mode]
                assert (await rich.call_tool("summarize")).is_error is False


@pytest.mark.parametrize("name", ["sdk", "low"])
async def test_without_a_session_nothing_is_promised_that_cannot_be_pushed(name):
    with served(name, "stateless") as url:
        async with client(url, "legacy", "sampling") as host:
            declared = host.server_capabilities.model_dump(by_alias=True, exclude_none=True)
            assert declared["tools"] == {}
            assert declared["resources"] == {}
            assert "summarize" not in {tool.name for tool in (await host.list_tools()).tools}


async def test_the_client_of_fastmcp_is_served():
    async def sampled(messages, params, context):
        return "sampled"

    with served("fastmcp") as url:
        async with FastMCPClient(url) as host:
            assert "summarize" not in {tool.name for tool in await host.list_tools()}
            assert (await host.call_tool("add", {"a": 2})).data == 2


OLD_CLIENT = """
import asyncio, sys
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
async def sampled(context, params):
    return types.CreateMessageResult(role="assistant", model="m", content=types.TextContent(type="text", text="old"))
async def main():
    for callback in (None, sampled):
        async with stdio_client(StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])) as (read, write):
            async with ClientSession(read, write, sampling_callback=callback) as session:
                await session.initialize()
                names = {tool.name for tool in (await session.list_tools()).tools}
                try:
                    result = (await session.call_tool("sneak")).content[0].text
                except Exception as error:
                    result = error.error.code
                print("summarize" in names, result)
asyncio.run(main())
"""


@pytest.mark.skipif(not OLD.exists(), reason="the environment of the old SDK is not made: make envs")
@pytest.mark.parametrize("name", ["sdk", "fastmcp", "low"])
async def test_the_client_of_the_old_sdk_is_served(name):
    command = [str(OLD), "-c", OLD_CLIENT, sys.executable, "-W", "ignore", str(SCRIPT), name, "stdio"]
    with anyio.fail_after(3 * SECONDS):
        done = await anyio.run_process(command, check=False)
    assert done.stdout.decode().splitlines() == ["False -32600", "True old"], done.stderr.decode()
