"""The base for stdio upstreams: hosts on HTTP, one child on pipes, another id for each request, and nothing else.

python -m benchmarks.gateway.mux --http PORT -- COMMAND
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from msgspec import Raw

from benchmarks.gateway.bare import _answer, _body, _encode, _lifespan, _request, _response, serve

LINE = 1 << 24


class Mux:
    """Starts its child with the first request."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._waiting: dict[bytes, asyncio.Future[bytes]] = {}
        self._number = 0
        self._child: asyncio.subprocess.Process | None = None
        self._up = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if self._reader is None:
            self._reader = asyncio.get_running_loop().create_task(self._read())
        await self._up.wait()
        request = _request(await _body(receive))
        assert self._child
        assert self._child.stdin
        if not request.id:
            self._child.stdin.write(_encode(request) + b"\n")
            await _answer(send, 202, b"")
            return
        self._number += 1
        theirs, request.id = request.id, Raw(b"%d" % self._number)
        waiter = self._waiting[bytes(request.id)] = asyncio.get_running_loop().create_future()
        self._child.stdin.write(_encode(request) + b"\n")
        response = _response(await waiter)
        response.id = theirs
        await _answer(send, 200, _encode(response))

    async def _read(self) -> None:
        pipe = asyncio.subprocess.PIPE
        self._child = await asyncio.create_subprocess_exec(*self._command, stdin=pipe, stdout=pipe, limit=LINE)
        self._up.set()
        assert self._child.stdout
        async for line in self._child.stdout:
            if waiter := self._waiting.pop(bytes(_response(line).id), None):
                waiter.set_result(line)


if __name__ == "__main__":
    serve(Mux(sys.argv[sys.argv.index("--") + 1 :]), int(sys.argv[sys.argv.index("--http") + 1]))
