"""The client of the Python SDK 1 answers: legacy alone, run with ``.envs/mcp1/bin/python``."""

from __future__ import annotations

import json

import anyio
import mcp.types as types
from answers import ROOT, SAMPLED, content, text, words
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def form(_: object, params: types.ElicitRequestParams) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content=content(params.requestedSchema))


async def sample(_: object, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    said = types.TextContent(type="text", text=SAMPLED)
    return types.CreateMessageResult(role="assistant", content=said, model="m", stopReason="endTurn")


async def roots(_: object) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri=ROOT, name="answers")])


async def main() -> None:
    _, url, calls = words()
    callbacks = {"elicitation_callback": form, "sampling_callback": sample, "list_roots_callback": roots}
    async with (
        streamablehttp_client(url) as (read, write, _),
        ClientSession(read, write, **callbacks) as client,
    ):
        await client.initialize()
        found = {name: text(await client.call_tool(name, given)) for name, given in calls.items()}
    print(json.dumps(found))


if __name__ == "__main__":
    anyio.run(main)
