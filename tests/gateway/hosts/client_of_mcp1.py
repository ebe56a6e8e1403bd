"""A session of the `mcp` 1.30 client, run in its own environment: `python client_of_mcp1.py URL`; prints what came.

Works with that library only, so it shares nothing with the other modules here.
"""

from __future__ import annotations

import asyncio
import json
import sys

from mcp import ClientSession  # pyright: ignore
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamablehttp_client  # pyright: ignore


async def main(url: str) -> None:
    changed = asyncio.Event()
    seen: dict[str, object] = {}

    async def handler(message: object) -> None:
        if "tools/list_changed" in repr(message) or "ToolListChanged" in repr(message):
            changed.set()

    opened = sse_client(url) if url.endswith("/sse") else streamablehttp_client(url)
    async with opened as streams, ClientSession(streams[0], streams[1], message_handler=handler) as session:
        seen["revision"] = (await session.initialize()).protocolVersion
        seen["tools"] = [tool.name for tool in (await session.list_tools()).tools]
        progress: list[float] = []

        async def on_progress(value: float, total: float | None, message: str | None) -> None:
            progress.append(value)

        answer = await session.call_tool("echo", {}, progress_callback=on_progress)
        seen["text"] = answer.content[0].text
        await asyncio.wait_for(changed.wait(), 30)
        seen["changed"] = True
    print(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
