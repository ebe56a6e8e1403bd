"""A host of the Python SDK 1 that runs a tool as a task: ``task_client_130.py URL TOOL``; tells it as JSON."""

from __future__ import annotations

import asyncio
import json
import sys

import mcp.types as types
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client


async def main(url: str, tool: str) -> None:
    async with streamable_http_client(url) as (reading, writing, _), ClientSession(reading, writing) as session:
        opened = await session.initialize()
        listed = {one.name: one for one in (await session.list_tools()).tools}
        made = await session.experimental.call_tool_as_task(tool, {})
        name = made.task.taskId
        states = [state.status async for state in session.experimental.poll_task(name)]
        result = await session.experimental.get_task_result(name, types.CallToolResult)
        told = {
            "tasks": opened.capabilities.tasks is not None,
            "support": listed[tool].execution.taskSupport if listed[tool].execution else None,
            "states": states,
            "texts": [block.text for block in result.content if isinstance(block, types.TextContent)],
        }
        print(json.dumps(told))


asyncio.run(main(*sys.argv[1:3]))
