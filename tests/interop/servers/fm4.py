"""Servers on fastmcp 4: ``fm4.py empty|full [--http PORT]``."""

from __future__ import annotations

import argparse
import warnings

from fastmcp import Context, FastMCP
from fastmcp.tools import Tool

URI = "probe://one"


def empty() -> FastMCP:
    return FastMCP("fm4-empty")


def full() -> FastMCP:
    server = FastMCP("fm4-full")

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def add_tool(ctx: Context) -> str:
        def late() -> int:
            return 1

        server.add_tool(Tool.from_function(late))
        return "added"

    @server.tool
    async def touch(ctx: Context) -> str:
        await ctx.session.send_tool_list_changed()
        await ctx.session.send_resource_list_changed()
        await ctx.session.send_prompt_list_changed()
        await ctx.session.send_resource_updated(URI)
        return "touched"

    @server.tool
    async def log(ctx: Context) -> str:
        await ctx.info("hello from server")
        return "logged"

    @server.tool
    async def elicit(ctx: Context) -> str:
        return str(await ctx.elicit("name?", str))

    @server.prompt
    def greet(who: str) -> str:
        return f"hello {who}"

    @server.resource(URI, name="one")
    def one() -> str:
        return "one"

    @server.resource("probe://t/{x}", name="tmpl")
    def template(x: str) -> str:
        return x

    return server


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("variant", choices=("empty", "full"))
    parser.add_argument("--http", type=int)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    server = {"empty": empty, "full": full}[options.variant]()
    if options.http is None:
        server.run(show_banner=False)
    else:
        server.run("http", host="127.0.0.1", port=options.http, show_banner=False, log_level="warning")


if __name__ == "__main__":
    main()
