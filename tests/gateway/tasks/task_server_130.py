"""A server of the Python SDK 1 whose tools are tasks; run over stdio with ``.envs/mcp1/bin/python``."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp.types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server

server: Server[Any] = Server("tasks-130", version="1")
server.experimental.enable_tasks()
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@server.list_tools()
async def tools() -> list[types.Tool]:
    return [
        types.Tool(
            name=name,
            inputSchema={"type": "object"},
            execution=types.ToolExecution(taskSupport="required"),
        )
        for name in ("work", "fail", "ask", "wait")
    ]


@server.call_tool()
async def call(name: str, arguments: dict[str, Any]) -> Any:
    context = server.request_context.experimental
    context.validate_task_mode("required")

    async def work(task: Any) -> types.CallToolResult:
        await task.update_status("begun")
        if name == "fail":
            raise ValueError("the disk is full")
        if name == "wait":
            await asyncio.sleep(600)
        text = "done"
        if name == "ask":
            answer = await task.elicit(message="Who?", requestedSchema=SCHEMA)
            text = f"{answer.action} {answer.content}"
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    return await context.run_task(work)


async def main() -> None:
    options = server.create_initialization_options(NotificationOptions())
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, options)


asyncio.run(main())
