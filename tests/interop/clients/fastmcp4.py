"""The client of FastMCP 4, in either mode."""

from __future__ import annotations

import warnings

import anyio
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from mcp.shared.exceptions import MCPError
from mcp.types import PromptReference
from seen import SECONDS, WATCHED, Seen, words


async def main() -> None:
    mode, url, command = words()
    seen = Seen()
    tools, updated = anyio.Event(), anyio.Event()

    async def log(message) -> None:
        data = message.data
        seen.logs.append(data.get("msg", data) if isinstance(data, dict) else data)

    async def message(one) -> None:
        method = getattr(one, "method", "")
        if method == "notifications/tools/list_changed":
            tools.set()
        elif method == "notifications/resources/updated":
            seen.updated.append(str(one.params.uri))
            updated.set()

    async def progress(done: float, total: float | None, text: str | None) -> None:
        seen.progress.append(done)

    server = url or StdioTransport(command=command[0], args=command[1:])
    asked = "legacy" if mode == "legacy" else "2026-07-28"
    client = Client(server, mode=asked, log_handler=log, message_handler=message, progress_handler=progress)
    async with client:
        seen.revision = client.protocol_version or ""
        if mode == "legacy":
            await client.set_logging_level("debug")
        seen.tools = sorted(tool.name for tool in await client.list_tools())
        seen.prompts = sorted(prompt.name for prompt in await client.list_prompts())
        seen.resources = sorted(str(one.uri) for one in await client.list_resources())
        seen.templates = [one.uri_template for one in await client.list_resource_templates()]
        seen.structured = (await client.call_tool("test_structured_content", {"a": 2, "b": 3})).structured_content
        seen.contents = [one.type for one in (await client.call_tool("test_multiple_content_types", {})).content]
        seen.error = (await client.call_tool("test_error_handling", {}, raise_on_error=False)).is_error
        got = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
        seen.prompt = got.messages[0].content.text
        seen.read = (await client.read_resource("test://static-text"))[0].text
        seen.template = (await client.read_resource("test://template/7/data"))[0].text
        try:
            await client.read_resource("test://absent")
        except MCPError as error:
            seen.missing = error.code
        reference = PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
        seen.completion = (await client.complete(reference, {"name": "arg1", "value": "pa"})).values
        await client.call_tool("test_tool_with_progress", {})
        if mode == "legacy":
            await client.call_tool("test_tool_with_logging", {})
            with anyio.fail_after(SECONDS):
                await client.session.subscribe_resource(WATCHED)
                await client.call_tool("test_trigger_tool_change", {})
                await tools.wait()
                seen.changed.append("tools")
                await client.call_tool("test_trigger_resource_update", {"uri": WATCHED})
                await updated.wait()
            seen.later = "test_dynamic_tool" in [tool.name for tool in await client.list_tools()]
            await client.call_tool("test_trigger_tool_change", {})
    seen.show()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    anyio.run(main)
