"""Servers with Troth whose tools take long, the same on each framework."""

from __future__ import annotations

import anyio
import mcp_types as types
from fastmcp import Context as FastMCPContext
from fastmcp import FastMCP
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError

import troth

QUESTION = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="?"))
NAMES = ("add", "wait", "ask", "fail", "quick")
ENDED: list[str] = []
"""Names of tools that were cancelled."""


async def add(ctx, a):
    await ctx.session.report_progress(1, 2, "half of it")
    return str(a + 1)


async def wait():
    try:
        await anyio.sleep_forever()
    finally:
        ENDED.append("wait")


async def ask(ctx):
    answer = await ctx.session.create_message([QUESTION], max_tokens=1, related_request_id=ctx.request_id)
    return answer.content.text


def on_sdk(**options) -> MCPServer:
    """An ``MCPServer``: marks below and above the decorator, and a name that is given."""
    server = MCPServer("sdk")

    @server.tool(name="add")
    @troth.task
    async def add_(ctx: Context, a: int = 1) -> str:
        return await add(ctx, a)

    @troth.task
    @server.tool(name="wait")
    async def wait_() -> str:
        return await wait()

    @troth.task
    @server.tool(name="ask")
    async def ask_(ctx: Context) -> str:
        return await ask(ctx)

    @server.tool()
    async def fail() -> str:
        raise ValueError("no luck")

    @server.tool()
    def quick() -> str:
        return "quick"

    return troth.install(server, tasks={"fail"}, **options)


def on_fastmcp(**options) -> FastMCP:
    """A FastMCP server; what asks is mounted."""
    server = FastMCP("fastmcp")
    inner = FastMCP("inner")

    @server.tool(name="add")
    @troth.task
    async def add_(ctx: FastMCPContext, a: int = 1) -> str:
        return await add(ctx, a)

    @troth.task
    @server.tool(name="wait")
    async def wait_() -> str:
        return await wait()

    @troth.task
    @inner.tool(name="ask")
    async def ask_(ctx: FastMCPContext) -> str:
        return await ask(ctx)

    @server.tool
    async def fail() -> str:
        raise ValueError("no luck")

    @server.tool
    def quick() -> str:
        return "quick"

    server.mount(inner)
    return troth.install(server, tasks={"fail"}, **options)


def on_low_level(**options) -> Server:
    """A low-level server, whose tools are named."""
    number = {"type": "object", "properties": {"a": {"type": "integer"}}}

    async def list_tools(ctx, params):
        return types.ListToolsResult(tools=[types.Tool(name=name, input_schema=number) for name in NAMES])

    async def call_tool(ctx, params):
        given = params.arguments or {}
        if params.name not in NAMES:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        if params.name == "fail":
            return types.CallToolResult(content=[types.TextContent(type="text", text="no luck")], is_error=True)
        if params.name == "add":
            text = await add(ctx, given.get("a", 1))
        elif params.name == "wait":
            text = await wait()
        else:
            text = await ask(ctx) if params.name == "ask" else "quick"
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    server = Server("low", on_list_tools=list_tools, on_call_tool=call_tool)
    return troth.install(server, tasks={"add", "wait", "ask", "fail"}, **options)


TASK_MAKERS = {"task_sdk": on_sdk, "task_fastmcp": on_fastmcp, "task_low": on_low_level}
