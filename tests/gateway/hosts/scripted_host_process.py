"""Serves the scripted front on standard input and output: `python scripted_host_process.py`."""

from __future__ import annotations

import asyncio

from scripted_front import ScriptedFront, progress_then

from troth.gateway.crew import Crew
from troth.gateway.hosts import serve_stdio
from troth.gateway.limits import Limits


async def main() -> None:
    crew = Crew()
    await serve_stdio(ScriptedFront({"tools/call": progress_then(2)}), 0, 1, Limits(drain=0.2), crew)
    await crew.close()


if __name__ == "__main__":
    asyncio.run(main())
