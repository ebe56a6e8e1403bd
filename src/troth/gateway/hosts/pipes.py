"""Two descriptors as lines in and bytes out, without blocking the loop.

Pipes and sockets are watched by the loop. Everything else (a terminal, a file) is read by a thread and written by one:
the loop cannot watch files, and a terminal that is set to not block is so for every program that shares it.
"""

from __future__ import annotations

import asyncio
import os
import queue
import stat
import threading
from collections import deque
from typing import TYPE_CHECKING, Final, cast

from troth.bridge import NOT_A_MESSAGE, Bad

if TYPE_CHECKING:
    from collections.abc import Callable

    from troth.gateway.limits import Limits

PIECE: Final = 64 * 1024
"""Bytes read at once by a thread."""

AHEAD: Final = 256
"""Lines that may wait to be handled before reading pauses. Handling a line never waits, so few are ever there."""


class Lines(asyncio.Protocol):
    """Lines of the input.

    Args:
        most: Most bytes of a line. A longer one is skipped, and handed out as `Bad`.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._pieces: list[bytes] = []
        self._size = 0
        self._lines: deque[bytes | Bad] = deque()
        self._ended = False
        self._wake: asyncio.Future[None] | None = None
        self._transport: asyncio.ReadTransport | None = None
        self._paused = False

    async def next(self) -> bytes | Bad | None:
        """The next line without its end; `Bad` for one that is too long; None at the end."""
        while not self._lines:
            if self._ended:
                return None
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        line = self._lines.popleft()
        if self._paused and not self._lines and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return line

    def stop(self) -> None:
        """Nothing more is read."""
        self._end()
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        """See asyncio. Also called by the thread's hand-over."""
        first, *rest = data.split(b"\n")
        self._append(first)
        for piece in rest:
            self._complete()
            self._append(piece)
        if len(self._lines) > AHEAD and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._stir()

    def eof_received(self) -> None:
        """See asyncio."""
        self._end()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """See asyncio."""
        self._end()

    def _append(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._most and piece:
            self._pieces.append(piece)
        elif self._size > self._most:
            self._pieces.clear()

    def _complete(self) -> None:
        if self._size > self._most:
            self._lines.append(Bad(NOT_A_MESSAGE, f"a line of more than {self._most} bytes (limit: body)"))
        else:
            self._lines.append(self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces))
        self._pieces.clear()
        self._size = 0

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            if self._size:
                self._complete()
            self._stir()

    def _stir(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


class Output(asyncio.BaseProtocol):
    """Bytes of the output.

    Attributes:
        writable: More may be written now.
        broken: Nobody reads any more.
        ready: Called when more may be written again, or when it broke.
    """

    def __init__(self) -> None:
        self.writable = True
        self.broken = False
        self.ready: Callable[[], None] = _nothing
        self.transport: asyncio.WriteTransport | None = None
        self.lines: Lines | None = None
        self._lost = asyncio.Event()

    def write(self, data: bytes) -> None:
        """Hands bytes on; only while `writable`."""
        if self.transport is not None and not self.broken:
            self.transport.write(data)

    def cut(self) -> None:
        """Gives the host up."""
        if self.transport is not None:
            self.transport.abort()
        self._break()

    async def close(self, seconds: float) -> None:
        """Closes the output after what was written is out, for at most that long."""
        if self.transport is not None and not self.broken:
            self.transport.close()
            try:
                await asyncio.wait_for(self._lost.wait(), seconds)
            except TimeoutError:
                self.transport.abort()
        if self.lines is not None:
            self.lines.stop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self.transport = cast("asyncio.WriteTransport", transport)

    def pause_writing(self) -> None:
        """See asyncio."""
        self.writable = False

    def resume_writing(self) -> None:
        """See asyncio."""
        self.writable = True
        self.ready()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """See asyncio."""
        self._lost.set()
        self._break()

    def _break(self) -> None:
        if not self.broken:
            self.broken = True
            self.writable = False
            self.ready()
            if self.lines is not None:
                self.lines.stop()


class _Thread(asyncio.WriteTransport):
    """Writes by a thread, for descriptors that the loop cannot watch."""

    def __init__(self, fd: int, output: Output) -> None:
        super().__init__()
        self._fd = fd
        self._output = output
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._bytes = 0
        self._closing = False
        threading.Thread(target=self._work, name="host output", daemon=True).start()

    def write(self, data: bytes | bytearray | memoryview) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self._bytes += len(data)
        self._queue.put(bytes(data))
        if self._bytes > PIECE:
            self._output.pause_writing()

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._queue.put(None)

    def abort(self) -> None:
        self.close()

    def _work(self) -> None:
        try:
            while (data := self._queue.get()) is not None:
                view = memoryview(data)
                while view:
                    view = view[os.write(self._fd, view) :]
                self._tell(self._written, len(data))
        except OSError:
            pass
        self._tell(self._output.connection_lost, None)

    def _written(self, size: int) -> None:
        self._bytes -= size
        if self._bytes <= PIECE and not self._output.writable and not self._output.broken:
            self._output.resume_writing()

    def _tell(self, what: Callable[..., None], value: object) -> None:
        try:
            self._loop.call_soon_threadsafe(what, value)
        except RuntimeError:
            # The loop is closed: nobody is left to tell.
            return


def _reading(fd: int, lines: Lines, loop: asyncio.AbstractEventLoop) -> None:
    """Reads by a thread. It waits until the loop took each piece, so it is never far ahead."""
    try:
        try:
            while data := os.read(fd, PIECE):
                taken = threading.Event()
                loop.call_soon_threadsafe(_hand_over, lines, data, taken)
                taken.wait()
        except OSError:
            # A terminal that hung up: the end of the input.
            pass
        loop.call_soon_threadsafe(lines.eof_received)
    except RuntimeError:
        # The loop is closed: nobody is left to tell.
        return


def _hand_over(lines: Lines, data: bytes, taken: threading.Event) -> None:
    lines.data_received(data)
    taken.set()


def _watchable(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


async def open_pipes(read_fd: int, write_fd: int, limits: Limits) -> tuple[Lines, Output]:
    """Opens both descriptors. They are closed with what is returned, unless threads serve them.

    Args:
        read_fd: Where lines come from.
        write_fd: Where bytes go.
        limits: Bounds.
    """
    loop = asyncio.get_running_loop()
    lines, output = Lines(limits.body), Output()
    output.lines = lines
    if _watchable(write_fd):
        await loop.connect_write_pipe(lambda: output, os.fdopen(write_fd, "wb", 0))
    else:
        output.connection_made(_Thread(write_fd, output))
    if _watchable(read_fd):
        await loop.connect_read_pipe(lambda: lines, os.fdopen(read_fd, "rb", 0))
    else:
        threading.Thread(target=_reading, args=(read_fd, lines, loop), name="host input", daemon=True).start()
    return lines, output


def _nothing() -> None:
    """Until somebody listens."""
