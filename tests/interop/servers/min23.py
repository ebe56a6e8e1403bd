"""Servers on the high-level class of the Python SDK 2 (``MCPServer``): ``min23.py empty|tool|full [--http PORT]``."""

from __future__ import annotations

import argparse
import warnings

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import Completion, SamplingMessage, TextContent, Tool
from pydantic import BaseModel

URI = "probe://one"


class Name(BaseModel):
    name: str


def question() -> list[SamplingMessage]:
    return [SamplingMessage(role="user", content=TextContent(type="text", text="q"))]


def add(a: int, b: int) -> int:
    return a + b


def empty() -> MCPServer:
    return MCPServer("min23-empty")


def tool() -> MCPServer:
    server = MCPServer("min23-tool")
    server.add_tool(add)
    return server


def full() -> MCPServer:
    server = MCPServer("min23-full")
    server.add_tool(add)

    def grow() -> None:
        server.add_tool(lambda: 1, name=f"late{len(server._tool_manager.list_tools())}")

    @server.tool()
    async def add_tool(ctx: Context) -> str:
        grow()
        await ctx.session.send_tool_list_changed()
        await ctx.notify_tools_changed()
        return "added"

    @server.tool()
    async def add_tool_silent(ctx: Context) -> str:
        grow()
        return "added"

    @server.tool()
    async def touch(ctx: Context) -> str:
        await ctx.session.send_resource_updated(URI)
        await ctx.session.send_resource_list_changed()
        await ctx.session.send_prompt_list_changed()
        await ctx.notify_resource_updated(URI)
        await ctx.notify_resources_changed()
        await ctx.notify_prompts_changed()
        return "touched"

    @server.tool()
    async def log(ctx: Context) -> str:
        await ctx.info("hello from server")
        return "logged"

    @server.tool()
    async def sample(ctx: Context) -> str:
        answer = await ctx.session.create_message(question(), max_tokens=5, include_context="allServers")
        return str(answer.content)

    @server.tool()
    async def sample_tools(ctx: Context) -> str:
        tools = [Tool(name="t", input_schema={"type": "object"})]
        answer = await ctx.session.create_message(question(), max_tokens=5, tools=tools)
        return str(answer.content)

    @server.tool()
    async def elicit(ctx: Context) -> str:
        return str(await ctx.elicit("name?", Name))

    @server.tool()
    async def elicit_url(ctx: Context) -> str:
        return str(await ctx.elicit_url("go", "https://example.invalid/x", "e1"))

    @server.tool()
    async def roots(ctx: Context) -> str:
        return str(await ctx.session.list_roots())

    @server.prompt()
    def greet(who: str) -> str:
        return f"hello {who}"

    @server.resource(URI, name="one")
    def one() -> str:
        return "one"

    @server.resource("probe://t/{x}", name="tmpl")
    def template(x: str) -> str:
        return x

    @server.completion()
    async def complete(ref, argument, context):
        return Completion(values=["alpha", "beta"])

    return server


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("variant", choices=("empty", "tool", "full"))
    parser.add_argument("--http", type=int)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    server = {"empty": empty, "tool": tool, "full": full}[options.variant]()
    if options.http is None:
        anyio.run(server.run_stdio_async)
    else:
        server.run("streamable-http", host="127.0.0.1", port=options.http)


if __name__ == "__main__":
    main()
