"""Servers on the Python SDK 1: ``min130.py empty|full|sub|tasks [--http PORT]``, run with ``.envs/mcp1/bin/python``.

``sub`` and ``tasks`` are low-level: ``sub`` registers a subscribe handler (which this SDK never declares), ``tasks``
switches its experimental tasks on.
"""

from __future__ import annotations

import argparse
import asyncio

import mcp.types as types
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.stdio import stdio_server
from pydantic import AnyUrl, BaseModel

URI = "probe://one"


class Name(BaseModel):
    name: str


def question() -> list[types.SamplingMessage]:
    return [types.SamplingMessage(role="user", content=types.TextContent(type="text", text="q"))]


def empty(port: int) -> FastMCP:
    return FastMCP("min130-empty", port=port)


def full(port: int) -> FastMCP:
    server = FastMCP("min130-full", port=port)

    def grow() -> None:
        server.add_tool(lambda: 1, name=f"late{len(server._tool_manager.list_tools())}")

    @server.tool()
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool()
    async def add_tool(ctx: Context) -> str:
        grow()
        await ctx.session.send_tool_list_changed()
        return "added"

    @server.tool()
    async def add_tool_silent() -> str:
        grow()
        return "added"

    @server.tool()
    async def touch(ctx: Context) -> str:
        await ctx.session.send_resource_updated(AnyUrl(URI))
        await ctx.session.send_resource_list_changed()
        await ctx.session.send_prompt_list_changed()
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
        return types.Completion(values=["alpha", "beta"])

    return server


def low(variant: str) -> Server:
    server = Server(f"low130-{variant}", version="0")

    @server.list_resources()
    async def list_resources() -> list[types.Resource]:
        return [types.Resource(uri=AnyUrl(URI), name="one")]

    @server.read_resource()
    async def read_resource(uri: AnyUrl) -> list[ReadResourceContents]:
        return [ReadResourceContents(content="one", mime_type="text/plain")]

    @server.subscribe_resource()
    async def subscribe(uri: AnyUrl) -> None:
        return None

    @server.unsubscribe_resource()
    async def unsubscribe(uri: AnyUrl) -> None:
        return None

    if variant == "tasks":
        server.experimental.enable_tasks()
    return server


async def serve(server: Server) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options(NotificationOptions()))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("variant", choices=("empty", "full", "sub", "tasks"))
    parser.add_argument("--http", type=int)
    options = parser.parse_args()
    if options.variant in ("sub", "tasks"):
        asyncio.run(serve(low(options.variant)))
    else:
        server = {"empty": empty, "full": full}[options.variant](options.http or 0)
        server.settings.log_level = "WARNING"
        server.run("stdio" if options.http is None else "streamable-http")


if __name__ == "__main__":
    main()
