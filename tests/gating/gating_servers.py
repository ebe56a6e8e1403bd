"""Servers whose primitives need something of a client, on each framework; ``python gating_servers.py NAME`` serves."""

from __future__ import annotations

import sys

import anyio
import mcp_types as types
from fastmcp import FastMCP
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server

import troth
from troth.gating import OTHER_KEY, with_need

SUMMARIZE = troth.Need(troth.SAMPLING)


def _fill(server):
    """The same primitives for both frameworks, with marks above and below the decorators."""

    @server.tool()
    def echo(text: str = "a") -> str:
        return text

    @troth.requires(troth.SAMPLING)
    @server.tool()
    def summarize() -> str:
        return "b"

    @server.tool(meta={OTHER_KEY: {"flags": "Roots"}})
    @troth.requires(troth.any_of(troth.ELICITATION_FORM, troth.SAMPLING_TOOLS))
    async def ask() -> str:
        return "c"

    @server.prompt()
    @troth.requires(troth.ELICITATION_URL)
    def login() -> str:
        return "d"

    @server.resource("test://roots")
    @troth.requires(troth.ROOTS)
    def roots() -> str:
        return "e"

    @troth.requires(troth.ROOTS)
    @server.resource("test://roots/{name}")
    def one(name: str) -> str:
        return name


sdk = MCPServer("sdk")
_fill(sdk)
fast = FastMCP("fast")
_fill(fast)
outer = FastMCP("outer")
outer.mount(fast, "in")


async def _tools(ctx, params):
    tools = [
        types.Tool(name="echo", input_schema={"type": "object"}),
        types.Tool(name="summarize", input_schema={"type": "object"}, meta=with_need(None, SUMMARIZE)),
    ]
    return types.ListToolsResult(tools=tools)


async def _call(ctx, params):
    return types.CallToolResult(content=[types.TextContent(type="text", text=params.name)])


low = Server("low", on_list_tools=_tools, on_call_tool=_call)


def made():
    return sdk


empty = MCPServer("empty")


class Other:
    """A server of a framework that has no plug-in."""

    async def run_stdio_async(self):
        await sdk.run_stdio_async()


other = Other()


async def _serve_low():
    async with stdio_server() as (incoming, outgoing):
        await low.run(incoming, outgoing, low.create_initialization_options())


if __name__ == "__main__":
    if sys.argv[1] == "low":
        anyio.run(_serve_low)
    else:
        {"sdk": sdk, "fast": fast}[sys.argv[1]].run()
