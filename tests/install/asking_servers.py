"""Servers whose handlers ask by requests, on each framework: ``asking_servers.py NAME stdio|http [PORT]``."""

from __future__ import annotations

import sys

import anyio
import mcp_types as types
import uvicorn
from fastmcp import Context as FastMCPContext
from fastmcp import FastMCP
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.stdio import stdio_server

import troth
from troth.plugins.mcp_host import low_level_of

NEED = troth.any_of(troth.SAMPLING, troth.ROOTS)
FORM = {"type": "object", "properties": {"size": {"type": "string"}}, "required": ["size"]}


class Noted:
    """What became of the handlers."""

    def __init__(self):
        self.runs = 0
        self.begun = anyio.Event()
        self.cancelled = anyio.Event()


async def sampled(ctx, text):
    question = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=text))
    answer = await ctx.session.create_message([question], max_tokens=9, related_request_id=ctx.request_id)
    return answer.content.text


async def once(ctx, noted):
    noted.runs += 1
    return await sampled(ctx, "one")


async def twice(ctx, noted):
    """Asks two things one after the other, then two at once."""
    noted.runs += 1
    found = [await sampled(ctx, "one"), str(len((await ctx.session.list_roots()).roots))]

    async def ask(text):
        found.append(await sampled(ctx, text))

    async with anyio.create_task_group() as group:
        group.start_soon(ask, "three")
        group.start_soon(ask, "four")
    return " ".join(found)


async def form(ctx, noted):
    answer = await ctx.session.elicit_form("Size?", FORM, related_request_id=ctx.request_id)
    return f"{answer.action} {(answer.content or {}).get('size')}"


async def page(ctx, noted):
    return (
        await ctx.session.elicit_url("Sign in", "https://example.com", "id", related_request_id=ctx.request_id)
    ).action


async def endless(ctx, noted):
    while True:
        await sampled(ctx, "again")


async def stays(ctx, noted):
    try:
        return await sampled(ctx, "one")
    finally:
        noted.cancelled.set()


async def sleeps(ctx, noted):
    noted.begun.set()
    try:
        await anyio.sleep_forever()
    finally:
        noted.cancelled.set()


async def fails(ctx, noted):
    await sampled(ctx, "one")
    raise ValueError("no luck")


BODIES = {body.__name__: body for body in (once, twice, form, page, endless, stays, sleeps, fails)}
NEEDS = {"form": troth.ELICITATION_FORM, "page": troth.ELICITATION_URL}


def _tool(kind, body, noted):
    """A tool with this body, whose context is of this kind."""

    async def tool(ctx, text: str = "") -> str:
        return await body(ctx, noted)

    tool.__annotations__["ctx"] = kind
    tool.__annotations__["text"] = tool.__annotations__["return"] = str
    return tool


def on_sdk(noted):
    server = MCPServer("sdk")
    for name, body in BODIES.items():
        server.add_tool(_tool(Context, body, noted), name=name)
    server.add_tool(_tool(Context, once, noted), name="unmarked")
    server.prompt(name="wording")(_tool(Context, once, noted))
    return server


def on_fastmcp(noted):
    server = FastMCP("fastmcp")
    for name, body in BODIES.items():
        server.tool(_tool(FastMCPContext, body, noted), name=name)
    server.tool(_tool(FastMCPContext, once, noted), name="unmarked")
    server.prompt(_tool(FastMCPContext, once, noted), name="wording")
    return server


def on_low_level(noted):
    async def list_tools(ctx, params):
        names = (*BODIES, "unmarked")
        return types.ListToolsResult(tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in names])

    async def call_tool(ctx, params):
        text = await BODIES.get(params.name, once)(ctx, noted)
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    async def list_prompts(ctx, params):
        return types.ListPromptsResult(prompts=[types.Prompt(name="wording")])

    async def get_prompt(ctx, params):
        content = types.TextContent(type="text", text=await once(ctx, noted))
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])

    return Server(
        "low",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


ASKING = {"sdk": on_sdk, "fastmcp": on_fastmcp, "low": on_low_level}


def made(name, noted):
    """One of the servers with Troth, all of whose handlers but one say that they ask."""
    needs = {one: NEEDS.get(one, NEED) for one in (*BODIES, "wording")}
    return troth.install(ASKING[name](noted), requirements=needs)


async def main(name, transport, port="0"):
    server = made(name, Noted())
    if transport == "stdio":
        low_level = low_level_of(server)
        async with stdio_server() as (read, write):
            await low_level.run(read, write, low_level.create_initialization_options())
        return
    app = (getattr(server, "http_app", None) or server.streamable_http_app)()
    await uvicorn.Server(uvicorn.Config(app, port=int(port), log_level="error")).serve()


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
