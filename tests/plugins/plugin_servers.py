"""Servers on real frameworks, for the facts of the plug-ins; ``python plugin_servers.py NAME`` serves one on stdio."""

from __future__ import annotations

import sys
import warnings

import anyio
import mcp_types as types
from fastmcp import FastMCP
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

URI = "file:///a.txt"


def sdk(**options) -> MCPServer:
    """Everything that an ``MCPServer`` can have without reaching below it."""
    server = MCPServer("sdk", **options)

    @server.tool()
    def add(a: int = 1) -> int:
        return a

    @server.resource(URI)
    def text() -> str:
        return "a"

    @server.prompt()
    def greet(who: str = "you") -> str:
        return who

    @server.completion()
    async def complete(ref, argument, context):
        return types.Completion(values=["me"])

    return server


async def _tools(ctx, params):
    return types.ListToolsResult(tools=[types.Tool(name="add", input_schema={"type": "object"})])


async def _call(ctx, params):
    return types.CallToolResult(content=[])


async def _resources(ctx, params):
    return types.ListResourcesResult(resources=[types.Resource(name="a", uri=URI)])


async def _templates(ctx, params):
    return types.ListResourceTemplatesResult(resource_templates=[])


async def _read(ctx, params):
    return types.ReadResourceResult(contents=[])


async def _empty(ctx, params):
    return types.EmptyResult()


async def _subscribe(ctx, params):
    await ctx.session.send_resource_updated(params.uri)
    return types.EmptyResult()


def low(**handlers) -> Server:
    """A low-level server with the given ``on_*`` handlers only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Server("low", version="1", **handlers)


def low_full() -> Server:
    """A low-level server with subscriptions of both eras and log levels."""
    return low(
        on_list_tools=_tools,
        on_call_tool=_call,
        on_list_resources=_resources,
        on_list_resource_templates=_templates,
        on_read_resource=_read,
        on_subscribe_resource=_subscribe,
        on_unsubscribe_resource=_empty,
        on_set_logging_level=_empty,
        on_subscriptions_listen=ListenHandler(InMemorySubscriptionBus()),
    )


def fast() -> FastMCP:
    """A ``FastMCP`` with one thing of each family and completion."""
    server = FastMCP("fast")

    @server.tool
    def add(a: int = 1) -> int:
        return a

    @server.resource(URI)
    def text() -> str:
        return "a"

    @server.prompt
    def greet(who: str = "you") -> str:
        return who

    @server.completion
    async def complete(ref, argument, context=None):
        return ["me"]

    return server


async def _serve(server: Server) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


SERVERS = {"sdk": sdk, "low": low_full, "fast": fast}

if __name__ == "__main__":
    served = SERVERS[sys.argv[1]]()
    if isinstance(served, Server):
        anyio.run(_serve, served)
    elif isinstance(served, FastMCP):
        served.run(show_banner=False)
    else:
        served.run()
