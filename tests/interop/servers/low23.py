"""Servers on the low-level class of the Python SDK 2: ``low23.py VARIANT [--http PORT]``.

``empty`` has no handler; ``tool`` one tool; ``calltoolonly`` answers tools/call and nothing else; ``level`` takes log
levels; ``listen`` serves subscriptions/listen; ``sub`` takes resource subscriptions of the legacy era; ``wrongflags``
declares list changes that it never announces.
"""

from __future__ import annotations

import argparse
import warnings

import anyio
import uvicorn
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.types import (
    CallToolResult,
    EmptyResult,
    ListResourcesResult,
    ListToolsResult,
    ReadResourceResult,
    Resource,
    TextContent,
    TextResourceContents,
    Tool,
)

URI = "probe://one"


async def list_tools(ctx, params):
    return ListToolsResult(tools=[Tool(name="add", input_schema={"type": "object"})])


async def call_tool(ctx, params):
    return CallToolResult(content=[TextContent(type="text", text="3")])


async def list_resources(ctx, params):
    return ListResourcesResult(resources=[Resource(uri=URI, name="one")])


async def read_resource(ctx, params):
    return ReadResourceResult(contents=[TextResourceContents(uri=str(params.uri), text="one")])


async def nothing(ctx, params):
    return EmptyResult()


CALLS = {"on_call_tool": call_tool}
TOOLS = {"on_list_tools": list_tools, **CALLS}
RESOURCES = {"on_list_resources": list_resources, "on_read_resource": read_resource}
VARIANTS = {
    "empty": {},
    "tool": TOOLS,
    "calltoolonly": CALLS,
    "level": {**TOOLS, "on_set_logging_level": nothing},
    "listen": {**TOOLS, **RESOURCES, "on_subscriptions_listen": ListenHandler(InMemorySubscriptionBus())},
    "sub": {**TOOLS, **RESOURCES, "on_subscribe_resource": nothing, "on_unsubscribe_resource": nothing},
    "wrongflags": {**TOOLS, **RESOURCES},
}


async def serve(server: Server, options) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, options)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("variant", choices=tuple(VARIANTS))
    parser.add_argument("--http", type=int)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    server = Server(f"low23-{options.variant}", version="0", **VARIANTS[options.variant])
    flags = NotificationOptions(True, True, True) if options.variant == "wrongflags" else NotificationOptions()
    if options.http is None:
        anyio.run(serve, server, server.create_initialization_options(flags))
    else:
        uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=options.http, log_level="warning")


if __name__ == "__main__":
    main()
