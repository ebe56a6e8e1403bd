"""The client of the Python SDK 2 answers, in either mode."""

from __future__ import annotations

import json
import sys
import warnings

import anyio
import mcp_types as types
from answers import ROOT, SAMPLED, SECONDS, UNTIL, content, text, words
from mcp import Client, StdioServerParameters

SERVE = ("-m", "troth", "serve", "--stdio")


async def form(_: object, params: types.ElicitRequestParams) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content=content(params.requested_schema))


async def sample(_: object, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    said = types.TextContent(type="text", text=SAMPLED)
    return types.CreateMessageResult(role="assistant", content=said, model="m", stop_reason="endTurn")


async def roots(_: object) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri=ROOT, name="answers")])


async def main() -> None:
    mode, url, calls = words()
    asked = "legacy" if mode == "legacy" else "2026-07-28"
    callbacks = {"elicitation_callback": form, "sampling_callback": sample, "list_roots_callback": roots}
    target = url if url.startswith("http") else StdioServerParameters(command=sys.executable, args=[*SERVE, url])
    async with Client(target, mode=asked, **callbacks) as client:
        found = {name: text(await client.call_tool(name, given)) for name, given in calls.items()}
        last = list(calls)[-1]
        with anyio.move_on_after(SECONDS):
            while UNTIL not in found[last]:
                found[last] = text(await client.call_tool(last, calls[last]))
    print(json.dumps(found))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    anyio.run(main)
