"""The client of the Python SDK 2, in either mode."""

from __future__ import annotations

import warnings

import anyio
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp.types import PromptReference
from seen import SECONDS, WATCHED, Seen, words


async def main() -> None:
    mode, url, command = words()
    seen = Seen()
    heard: dict[str, anyio.Event] = {}

    def event(name: str) -> anyio.Event:
        return heard.setdefault(name, anyio.Event())

    async def log(params) -> None:
        seen.logs.append(params.data)

    async def message(one) -> None:
        method = getattr(one, "method", "")
        if method == "notifications/tools/list_changed":
            event("tools").set()
        # What a listen brings comes here too, at its own time.
        elif method == "notifications/resources/updated" and mode == "legacy":
            seen.updated.append(str(one.params.uri))
            event("updated").set()

    async def progress(done: float, total: float | None, text: str | None) -> None:
        seen.progress.append(done)

    server = url or StdioServerParameters(command=command[0], args=command[1:])
    asked = "legacy" if mode == "legacy" else "2026-07-28"
    async with Client(server, mode=asked, logging_callback=log, log_level="debug", message_handler=message) as client:
        if mode == "modern":
            await client.session.discover()
        else:
            await client.set_logging_level("debug")
        seen.revision = client.protocol_version
        seen.tools = sorted(tool.name for tool in (await client.list_tools()).tools)
        seen.prompts = sorted(prompt.name for prompt in (await client.list_prompts()).prompts)
        seen.resources = sorted(str(one.uri) for one in (await client.list_resources()).resources)
        seen.templates = [one.uri_template for one in (await client.list_resource_templates()).resource_templates]
        seen.structured = (await client.call_tool("test_structured_content", {"a": 2, "b": 3})).structured_content
        seen.contents = [one.type for one in (await client.call_tool("test_multiple_content_types", {})).content]
        seen.error = bool((await client.call_tool("test_error_handling", {})).is_error)
        got = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
        seen.prompt = got.messages[0].content.text
        seen.read = (await client.read_resource("test://static-text")).contents[0].text
        seen.template = (await client.read_resource("test://template/7/data")).contents[0].text
        try:
            await client.read_resource("test://absent")
        except MCPError as error:
            seen.missing = error.code
        reference = PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
        completed = await client.complete(reference, {"name": "arg1", "value": "pa"})
        seen.completion = completed.completion.values
        await client.call_tool("test_tool_with_progress", {}, progress_callback=progress)
        await client.call_tool("test_tool_with_logging", {})
        with anyio.fail_after(SECONDS):
            if mode == "modern":
                await listened(client, seen)
            else:
                await client.subscribe_resource(WATCHED)
                await client.call_tool("test_trigger_tool_change", {})
                await event("tools").wait()
                seen.changed.append("tools")
                await client.call_tool("test_trigger_resource_update", {"uri": WATCHED})
                await event("updated").wait()
                await client.unsubscribe_resource(WATCHED)
        names = [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]
        seen.later = "test_dynamic_tool" in names
        await client.call_tool("test_trigger_tool_change", {})
    seen.show()


async def listened(client: Client, seen: Seen) -> None:
    """What a listen of the modern era brings."""
    async with client.listen(tools_list_changed=True, resource_subscriptions=[WATCHED]) as subscription:
        events = aiter(subscription)
        await client.call_tool("test_trigger_tool_change", {})
        seen.changed.append({"ToolsListChanged": "tools"}.get(type(await anext(events)).__name__, "other"))
        await client.call_tool("test_trigger_resource_update", {"uri": WATCHED})
        seen.updated.append((await anext(events)).uri)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    anyio.run(main)
