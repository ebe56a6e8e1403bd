"""An ordinary server on the SDK's low-level ``Server`` (``mcp`` 2), written without Troth."""

from __future__ import annotations

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

READS = types.ToolAnnotations(read_only_hint=True)
OBJECT = {"type": "object"}
TOOLS = [
    types.Tool(name="search", description="Names of all notes.", input_schema=OBJECT, annotations=READS),
    types.Tool(name="summarize", description="All notes in a sentence.", input_schema=OBJECT, annotations=READS),
    types.Tool(name="choose", description="A note of the user's choice.", input_schema=OBJECT, annotations=READS),
    types.Tool(name="publish", description="Publishes the notes: a new tool appears.", input_schema=OBJECT),
]
NOTE = "Buy milk."


def _text(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def _search(ctx) -> types.CallToolResult:
    return _text("first")


async def _summarize(ctx) -> types.CallToolResult:
    await ctx.session.send_log_message("info", "asking the model")
    question = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=NOTE))
    answer = await ctx.session.create_message([question], max_tokens=100, related_request_id=ctx.request_id)
    return _text(getattr(answer.content, "text", ""))


async def _choose(ctx) -> types.CallToolResult:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    answer = await ctx.session.elicit_form("Which note?", schema, related_request_id=ctx.request_id)
    return _text(str(answer.content))


async def _publish(ctx) -> types.CallToolResult:
    if len(TOOLS) == len(CALLS):
        TOOLS.append(types.Tool(name="unpublish", description="Takes the notes back.", input_schema=OBJECT))
        await ctx.session.send_tool_list_changed()
    return _text("published")


CALLS = {"search": _search, "summarize": _summarize, "choose": _choose, "publish": _publish}


async def list_tools(ctx, params) -> types.ListToolsResult:
    return types.ListToolsResult(tools=TOOLS)


async def call_tool(ctx, params) -> types.CallToolResult:
    call = CALLS.get(params.name)
    return await call(ctx) if call else types.CallToolResult(content=[], is_error=True)


async def list_resources(ctx, params) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=[types.Resource(name="first", uri="notes://first")])


async def read_resource(ctx, params) -> types.ReadResourceResult:
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text=NOTE)])


async def list_prompts(ctx, params) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=[types.Prompt(name="review")])


async def get_prompt(ctx, params) -> types.GetPromptResult:
    content = types.TextContent(type="text", text=f"Please review: {NOTE}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


server = Server(
    "notes",
    version="1.0",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_read_resource=read_resource,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
)


async def main() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
