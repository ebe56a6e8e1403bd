"""Servers with Troth, the same on each framework, and what a client is asked for by their tools."""

from __future__ import annotations

import mcp_types as types
from fastmcp import Context as FastMCPContext
from fastmcp import FastMCP
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context, MCPServer

import troth
from troth import ELICITATION_FORM, ROOTS, SAMPLING, requires

QUESTION = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="?"))


def on_sdk(*, install: bool = True, **options) -> MCPServer:
    """An ``MCPServer``."""
    server = MCPServer("sdk")

    @server.tool()
    def add(a: int = 1) -> int:
        return a

    @requires(SAMPLING)
    @server.tool()
    def summarize() -> str:
        return "short"

    @server.tool()
    @requires(SAMPLING | ELICITATION_FORM, message="both, please")
    async def survey() -> str:
        return "asked"

    @server.tool()
    async def sneak(ctx: Context) -> str:
        answer = await ctx.session.create_message([QUESTION], max_tokens=1, related_request_id=ctx.request_id)
        return answer.content.text

    @server.tool()
    def seen() -> dict[str, object]:
        host = troth.current()
        return {"can": host.can(SAMPLING), "revision": host.revision, "era": str(host.era)}

    @server.tool()
    def grow() -> str:
        server.add_tool(lambda: "fresh", name="fresh")
        return "grown"

    @server.tool()
    async def log(ctx: Context, level: str = "info") -> str:
        await ctx.session.send_log_message(level, "said", related_request_id=ctx.request_id)
        return "logged"

    @server.tool()
    def touch(uri: str = "x://open") -> str:
        troth.notify_resource_updated(uri)
        return "touched"

    @server.resource("x://open")
    def open_() -> str:
        return "open"

    @requires(ROOTS)
    @server.resource("x://closed")
    def closed() -> str:
        return "closed"

    @requires(ROOTS)
    @server.resource("x://of/{name}")
    def template(name: str) -> str:
        return name

    @server.prompt()
    def greet(who: str = "you") -> str:
        return who

    @requires(SAMPLING)
    @server.prompt()
    def hidden(who: str = "you") -> str:
        return who

    @server.completion()
    async def complete(ref, argument, context):
        return types.Completion(values=["me"])

    return troth.install(server, **options) if install else server


def on_fastmcp(*, install: bool = True, **options) -> FastMCP:
    """A FastMCP server; its summary comes from a mounted one."""
    server = FastMCP("fastmcp")
    inner = FastMCP("inner")

    @server.tool
    def add(a: int = 1) -> int:
        return a

    @requires(SAMPLING)
    @server.tool
    def summarize() -> str:
        return "short"

    @inner.tool
    @requires(SAMPLING)
    def deep() -> str:
        return "deep"

    @server.tool
    @requires(SAMPLING | ELICITATION_FORM, message="both, please")
    async def survey() -> str:
        return "asked"

    @server.tool
    async def sneak(ctx: FastMCPContext) -> str:
        answer = await ctx.session.create_message([QUESTION], max_tokens=1, related_request_id=ctx.request_id)
        return answer.content.text

    @server.tool
    def seen() -> dict[str, object]:
        host = troth.current()
        return {"can": host.can(SAMPLING), "revision": host.revision, "era": str(host.era)}

    @server.tool
    def grow() -> str:
        @server.tool
        def fresh() -> str:
            return "fresh"

        return "grown"

    @server.tool
    async def log(ctx: FastMCPContext, level: str = "info") -> str:
        await ctx.log("said", level)
        return "logged"

    @server.tool
    def touch(uri: str = "x://open") -> str:
        troth.notify_resource_updated(uri)
        return "touched"

    @server.resource("x://open")
    def open_() -> str:
        return "open"

    @requires(ROOTS)
    @server.resource("x://closed")
    def closed() -> str:
        return "closed"

    @requires(ROOTS)
    @server.resource("x://of/{name}")
    def template(name: str) -> str:
        return name

    @server.prompt
    def greet(who: str = "you") -> str:
        return who

    @requires(SAMPLING)
    @server.prompt
    def hidden(who: str = "you") -> str:
        return who

    @server.completion
    async def complete(ref, argument, context):
        return ["me"]

    server.mount(inner, namespace="in")
    return troth.install(server, **options) if install else server


def on_low_level(*, install: bool = True, **options) -> Server:
    """A low-level server; what its entries need stands in their ``_meta``, or is given to ``install``."""
    needs = {"io.troth/requires": {"capabilities": ["sampling"]}}
    roots = {"io.troth/requires": {"capabilities": ["roots"]}}
    both = {"io.troth/requires": {"capabilities": ["sampling", "elicitation.form"], "message": "both, please"}}
    plain = {"input_schema": {"type": "object"}}
    tools = [
        types.Tool(name="add", **plain),
        types.Tool(name="summarize", **plain, _meta=needs),
        types.Tool(name="survey", **plain, _meta=both),
        *(types.Tool(name=name, **plain) for name in ("sneak", "seen", "grow", "log", "touch")),
    ]

    async def list_tools(ctx, params):
        return types.ListToolsResult(tools=tools)

    async def call_tool(ctx, params):
        text, data = "done", None
        if params.name not in {tool.name for tool in tools}:
            return types.CallToolResult(content=[], is_error=True)
        given = params.arguments or {}
        if params.name == "sneak":
            answer = await ctx.session.create_message([QUESTION], max_tokens=1, related_request_id=ctx.request_id)
            text = answer.content.text
        elif params.name == "seen":
            host = troth.current()
            data = {"can": host.can(SAMPLING), "revision": host.revision, "era": str(host.era)}
        elif params.name == "grow":
            tools.append(types.Tool(name="fresh", **plain))
            troth.notify_tools_changed()
        elif params.name == "log":
            await ctx.session.send_log_message(given.get("level", "info"), "said", related_request_id=ctx.request_id)
        elif params.name == "touch":
            troth.notify_resource_updated(given.get("uri", "x://open"))
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=data)

    async def list_resources(ctx, params):
        closed = types.Resource(name="closed", uri="x://closed", _meta=roots)
        return types.ListResourcesResult(resources=[types.Resource(name="open", uri="x://open"), closed])

    async def list_templates(ctx, params):
        template = types.ResourceTemplate(name="of", uri_template="x://of/{name}", _meta=roots)
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read(ctx, params):
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text="read")])

    async def list_prompts(ctx, params):
        hidden = types.Prompt(name="hidden", _meta=needs)
        return types.ListPromptsResult(prompts=[types.Prompt(name="greet"), hidden])

    async def get_prompt(ctx, params):
        content = types.TextContent(type="text", text="hello")
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])

    async def complete(ctx, params):
        return types.CompleteResult(completion=types.Completion(values=["me"]))

    server = Server(
        "low",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
    )
    return troth.install(server, announces={"tools"}, **options) if install else server


MAKERS = {"sdk": on_sdk, "fastmcp": on_fastmcp, "low": on_low_level}
