"""Servers with 200 tools for ``gating_cost``; arguments: the framework, and ``plain``, ``installed`` or ``gated``."""

from __future__ import annotations

import sys
from typing import Any

import anyio

import troth

TOOLS = 200
GATED = 4


def functions(kind: str) -> list[Any]:
    made = []
    for number in range(TOOLS):

        def tool(a: int = 1, b: str = "", *, c: bool = False) -> int:
            """Gives back what it got."""
            return a

        tool.__name__ = f"tool_{number}"
        gated = kind == "gated" and number % GATED == 1
        made.append(troth.requires(troth.SAMPLING)(tool) if gated else tool)
    return made


def on_sdk(kind: str) -> Any:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("bench", log_level="ERROR")
    for function in functions(kind):
        server.add_tool(function)
    return server, server.run_stdio_async


def on_fastmcp(kind: str) -> Any:
    from fastmcp import FastMCP

    server = FastMCP("bench")
    for function in functions(kind):
        server.tool(function)
    return server, lambda: server.run_async("stdio", show_banner=False)


def on_lowlevel(kind: str) -> Any:
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
    tools = [
        types.Tool(
            name=f"tool_{number}",
            description="Gives back what it got.",
            input_schema=schema,
        )
        for number in range(TOOLS)
    ]

    async def list_tools(ctx: Any, params: Any) -> Any:
        return types.ListToolsResult(tools=tools)

    async def call_tool(ctx: Any, params: Any) -> Any:
        return types.CallToolResult(content=[types.TextContent(type="text", text="1")])

    server = Server("bench", on_list_tools=list_tools, on_call_tool=call_tool)

    async def run() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    return server, run


MAKERS = {"sdk": on_sdk, "lowlevel": on_lowlevel, "fastmcp": on_fastmcp}

if __name__ == "__main__":
    framework, kind = sys.argv[1:]
    made, run = MAKERS[framework](kind)
    if kind != "plain":
        # A low-level server has no functions to mark, so its needs are given here.
        named = framework == "lowlevel" and kind == "gated"
        needs = {f"tool_{number}": troth.SAMPLING for number in range(1, TOOLS, GATED)} if named else None
        troth.install(made, requirements=needs)
    anyio.run(run)
