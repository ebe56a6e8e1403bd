"""The same server, with a tool that takes long."""

import anyio
from fastmcp import Context

import troth
from gated_notes import notes, server


@troth.task
@server.tool
async def proofread(ctx: Context) -> str:
    """Reads all notes with care."""
    names = list(notes.notes)
    for number, name in enumerate(names, 1):
        await ctx.report_progress(number, len(names), f"reading {name}")
        await anyio.sleep(0.1)
    return "no mistakes"


if __name__ == "__main__":
    server.run()
