"""The client of FastMCP 4 answers, in either mode."""

from __future__ import annotations

import json
import warnings

import anyio
from answers import ROOT, SAMPLED, content, text, words
from fastmcp import Client


async def form(_message: str, _kind: object, params, _context: object) -> dict[str, object]:
    return content(params.requested_schema)


async def sample(_messages: object, _params: object, _context: object) -> str:
    return SAMPLED


async def main() -> None:
    mode, url, calls = words()
    asked = "legacy" if mode == "legacy" else "2026-07-28"
    callbacks = {"elicitation_handler": form, "sampling_handler": sample, "roots": [ROOT]}
    async with Client(url, mode=asked, **callbacks) as client:
        found = {name: text(await client.call_tool(name, given, raise_on_error=False)) for name, given in calls.items()}
    print(json.dumps(found))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    anyio.run(main)
