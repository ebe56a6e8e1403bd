"""The client of the Python SDK 1: legacy alone, run with ``.envs/mcp1/bin/python``."""

from __future__ import annotations

from contextlib import AsyncExitStack

import anyio
import mcp.types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from mcp.shared.exceptions import McpError
from pydantic import AnyUrl
from seen import SECONDS, WATCHED, Seen, words


async def main() -> None:
    _, url, command = words()
    seen = Seen()
    tools, updated = anyio.Event(), anyio.Event()

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        seen.logs.append(params.data)

    async def message(one) -> None:
        match getattr(one, "root", None):
            case types.ToolListChangedNotification():
                tools.set()
            case types.ResourceUpdatedNotification() as update:
                seen.updated.append(str(update.params.uri))
                updated.set()

    async def progress(done: float, total: float | None, text: str | None) -> None:
        seen.progress.append(done)

    async with AsyncExitStack() as stack:
        transport = (
            streamablehttp_client(url)
            if url
            else stdio_client(StdioServerParameters(command=command[0], args=command[1:]))
        )
        read, write, *_ = await stack.enter_async_context(transport)
        client = await stack.enter_async_context(
            ClientSession(read, write, logging_callback=log, message_handler=message)
        )
        seen.revision = str((await client.initialize()).protocolVersion)
        await client.set_logging_level("debug")
        seen.tools = sorted(tool.name for tool in (await client.list_tools()).tools)
        seen.prompts = sorted(prompt.name for prompt in (await client.list_prompts()).prompts)
        seen.resources = sorted(str(one.uri) for one in (await client.list_resources()).resources)
        seen.templates = [one.uriTemplate for one in (await client.list_resource_templates()).resourceTemplates]
        seen.structured = (await client.call_tool("test_structured_content", {"a": 2, "b": 3})).structuredContent
        seen.contents = [one.type for one in (await client.call_tool("test_multiple_content_types", {})).content]
        seen.error = (await client.call_tool("test_error_handling", {})).isError
        got = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
        seen.prompt = got.messages[0].content.text
        seen.read = (await client.read_resource(AnyUrl("test://static-text"))).contents[0].text
        seen.template = (await client.read_resource(AnyUrl("test://template/7/data"))).contents[0].text
        try:
            await client.read_resource(AnyUrl("test://absent"))
        except McpError as error:
            seen.missing = error.error.code
        reference = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
        completed = await client.complete(reference, {"name": "arg1", "value": "pa"})
        seen.completion = completed.completion.values
        await client.call_tool("test_tool_with_progress", {}, progress_callback=progress)
        await client.call_tool("test_tool_with_logging", {})
        with anyio.fail_after(SECONDS):
            await client.subscribe_resource(AnyUrl(WATCHED))
            await client.call_tool("test_trigger_tool_change", {})
            await tools.wait()
            seen.changed.append("tools")
            await client.call_tool("test_trigger_resource_update", {"uri": WATCHED})
            await updated.wait()
            await client.unsubscribe_resource(AnyUrl(WATCHED))
        seen.later = "test_dynamic_tool" in [tool.name for tool in (await client.list_tools()).tools]
        await client.call_tool("test_trigger_tool_change", {})
    seen.show()


if __name__ == "__main__":
    anyio.run(main)
