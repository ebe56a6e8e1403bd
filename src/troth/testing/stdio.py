"""The stdio shell: lines in, lines out."""

from __future__ import annotations

import json
import os
import select
from typing import TYPE_CHECKING

from troth.testing.model import Context, Exit, Junk, Out, Send

if TYPE_CHECKING:
    from troth.testing.script import Script

CONTEXT = Context(session="stdio", stream="stdio")
"""One process is one channel and at most one legacy session."""
CHUNK = 1 << 16
"""Bytes read at once."""
IDLE = 0.02
"""Seconds without input after which answers that were held back are let go."""


def serve(script: Script, source: int = 0, sink: int = 1) -> int:
    """Serves until the input ends or nobody reads the output.

    Args:
        script: The server.
        source: File descriptor that lines come from.
        sink: File descriptor that lines go to.

    Returns:
        The exit status.
    """
    rest = b""
    while True:
        ready = bool(select.select([source], [], [], IDLE if script.held else None)[0])
        if not ready:
            outs: list[Out] = script.release()
        elif chunk := os.read(source, CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            outs = [out for line in lines if line.strip() for out in take(script, line)]
        else:
            write(script.release(), sink)
            return 0
        status = write(outs, sink)
        if status is not None:
            return status


def take(script: Script, line: bytes) -> list[Out]:
    """What a server does about one line."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        error = {"code": -32700, "message": "Parse error"}
        return [Send({"jsonrpc": "2.0", "error": error}, CONTEXT.stream)]
    return script.feed(value, CONTEXT)


def write(outs: list[Out], sink: int) -> int | None:
    """Writes what goes out; returns the exit status if the server ends with it, None if it goes on."""
    for out in outs:
        if isinstance(out, Exit):
            return out.code
        text = out.text if isinstance(out, Junk) else json.dumps(out.message)
        rest = text.encode(errors="surrogateescape") + b"\n"
        while rest:
            try:
                rest = rest[os.write(sink, rest) :]
            except BrokenPipeError:
                return 0
    return None
