"""Servers with 200 tools for ``gating_cost``, one maker for each framework."""

from __future__ import annotations

from typing import Any

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


def needs_of(framework: str, kind: str) -> dict[str, troth.Requirement] | None:
    """A low-level server has no functions to mark, so its needs are given to ``install``."""
    named = framework == "lowlevel" and kind == "gated"
    return {f"tool_{number}": troth.SAMPLING for number in range(1, TOOLS, GATED)} if named else None


def on_sdk(kind: str) -> Any:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("bench", log_level="ERROR")
    for function in functions(kind):
        server.add_tool(function)
    return server


def on_fastmcp(kind: str) -> Any:
    from fastmcp import FastMCP

    server = FastMCP("bench")
    for function in functions(kind):
        server.tool(function)
    return server


def on_lowlevel(_kind: str) -> Any:
    import mcp_types as types
    from mcp.server.lowlevel import Server

    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
    text = "Gives back what it got."
    tools = [types.Tool(name=f"tool_{number}", description=text, input_schema=schema) for number in range(TOOLS)]

    async def list_tools(ctx: Any, params: Any) -> Any:
        return types.ListToolsResult(tools=tools)

    async def call_tool(ctx: Any, params: Any) -> Any:
        return types.CallToolResult(content=[types.TextContent(type="text", text="1")])

    return Server("bench", on_list_tools=list_tools, on_call_tool=call_tool)


MAKERS = {"sdk": on_sdk, "lowlevel": on_lowlevel, "fastmcp": on_fastmcp}
