"""Event streams towards hosts: a channel outlives the connections that carry it, where the revision can resume.

A channel has a number in its session. The id of an event is the number of its channel and its own number in it, so
each id is of one stream. What was sent is kept for a while; a host that comes back with the last id it saw gets the
rest, and then what happens next. Modern streams have no ids and end with their connection.

Source: Streamable HTTP of 2025-03-26 to 2025-11-25, resumability and redelivery; HTML, server-sent events.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from troth.bridge import one_line
from troth.gateway.hosts.asgi import STREAM_HEAD
from troth.gateway.hosts.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable

    from troth.gateway.hosts.asgi import Send
    from troth.gateway.limits import Limits
    from troth.gateway.model import Sort

CHUNK: Final = 64 * 1024
"""Bytes that are handed to the server at once, so that what it buffers stays small."""

COMMENT: Final = b": \n\n"
"""Keeps proxies and time-outs awake; readers skip it."""


class History:
    """What was sent on the streams of one session, for hosts that resume.

    Args:
        most: Most bytes.
        seconds: How long an event is kept.
    """

    __slots__ = ("_bytes", "_events", "_most", "_seconds")

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self._events: deque[tuple[float, int, int, bytes]] = deque()
        self._bytes = 0

    def add(self, now: float, channel: int, number: int, line: bytes) -> None:
        """Keeps an event, and forgets what is too old or too much."""
        self._events.append((now, channel, number, line))
        self._bytes += len(line)
        self.forget(now)

    def forget(self, now: float) -> None:
        """Drops what is too old or too much."""
        while self._events and (self._bytes > self._most or self._events[0][0] < now - self._seconds):
            self._bytes -= len(self._events.popleft()[3])

    def after(self, channel: int, number: int) -> list[tuple[int, bytes]]:
        """Number and line of each event of a channel that came after the numbered one."""
        return [(at, line) for _, of, at, line in self._events if of == channel and at > number]


class Channel:
    """One stream of messages to a host.

    Args:
        limits: Bounds.
        history: Where sent events are kept; None where nothing can be resumed.
        number: Its number in the session.
        primes: Whether a connection begins with an id and no data (2025-11-25).
    """

    __slots__ = (
        "_abort",
        "_carrier",
        "_drained",
        "_events",
        "_loop",
        "_wake",
        "ended",
        "history",
        "limits",
        "number",
        "primes",
        "waiting",
    )

    def __init__(
        self, limits: Limits, history: History | None = None, number: int = 0, *, primes: bool = False
    ) -> None:
        self.limits = limits
        self.history = history
        self.number = number
        self.primes = primes
        self.waiting = Waiting(limits.queue)
        self.ended = False
        self._loop = asyncio.get_running_loop()
        self._carrier: object | None = None
        self._abort: Callable[[], None] | None = None
        self._wake: asyncio.Future[bool] | None = None
        self._drained: asyncio.Future[bool] | None = None
        self._events = 0

    @property
    def carried(self) -> bool:
        """Whether a connection carries it now."""
        return self._carrier is not None

    def put(self, line: bytes, sort: Sort) -> None:
        """Queues a message; what must not be lost and does not fit ends the connection."""
        self.waiting.most = self.limits.queue if self._carrier else self.limits.replay
        if not self.waiting.put(line, sort, self):
            self.waiting.clear()
            if self._abort is not None:
                self._abort()
            self.leave(self._carrier)
        self.stir()

    def put_other(self, line: bytes) -> None:
        """Queues what there is one of per request, whatever its size: an answer."""
        self.waiting.force(line)
        self.stir()

    async def room(self) -> None:
        """Waits until a slow host has taken at least half of what may wait for it; whoever answers calls this first."""
        while self._carrier is not None and self.waiting.bytes > self.limits.queue // 2:
            if self._drained is None or self._drained.done():
                self._drained = self._loop.create_future()
            await asyncio.shield(self._drained)

    def last(self, line: bytes) -> None:
        """Queues the answer, whatever its size, and ends the stream after it."""
        self.waiting.force(line)
        self.end()

    def end(self) -> None:
        """Nothing more comes. What waits is sent, or kept for whoever resumes."""
        self.ended = True
        if self._carrier is None:
            self._retire()
        self.stir()

    def leave(self, carrier: object | None) -> None:
        """The connection is gone, or another one takes over."""
        if carrier is not None and self._carrier is carrier:
            self._carrier = None
            self._abort = None
            if self.ended:
                self._retire()
            self.stir()

    def take_over(self, carrier: object, abort: Callable[[], None] | None) -> None:
        """The connection `carrier` carries the channel from now on; the one before ends."""
        self._carrier = carrier
        self._abort = abort
        self.stir()

    async def carry(self, carrier: object, send: Send, *, after: int | None = None, head: bool = True) -> None:
        """Sends what waits and what comes, until the channel ends or the connection is gone.

        Args:
            carrier: What `take_over` was called with.
            send: Of ASGI.
            after: Number of the last event that the host saw; None for a host that does not resume.
            head: Send the head of the response first.
        """
        if head:
            await send(STREAM_HEAD)
        first = self._opening(after)
        if first:
            await send({"type": "http.response.body", "body": first, "more_body": True})
        while self._carrier is carrier:
            if self.waiting:
                await send({"type": "http.response.body", "body": self._written(), "more_body": True})
            elif self.ended:
                break
            elif not await self._stirred(self.limits.heartbeat):
                await send({"type": "http.response.body", "body": COMMENT, "more_body": True})
        self.leave(carrier)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _opening(self, after: int | None) -> bytes:
        if self.history is None:
            return b""
        if after is not None:
            return b"".join(_event(line, f"{self.number}-{at}") for at, line in self.history.after(self.number, after))
        return b"id: %d-%d\ndata: \n\n" % (self.number, self._events) if self.primes else b""

    def _written(self) -> bytes:
        lines = self.waiting.take(CHUNK)
        self._released()
        if self.history is None:
            return b"".join(map(_event, lines))
        return b"".join(_event(line, self._recorded(line)) for line in lines)

    def _recorded(self, line: bytes) -> str:
        self._events += 1
        if self.history is not None:
            self.history.add(self._loop.time(), self.number, self._events, line)
        return f"{self.number}-{self._events}"

    def _retire(self) -> None:
        """Puts what nobody takes any more where a host that resumes finds it."""
        while lines := self.waiting.take(CHUNK):
            for line in lines:
                self._recorded(line)

    def stir(self) -> None:
        """Wakes the connection that waits for news."""
        if self._carrier is None:
            self._released()
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(True)

    def _released(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(True)

    async def _stirred(self, seconds: float) -> bool:
        """Waits for news; False after that many seconds without."""
        wake = self._wake = self._loop.create_future()
        timer = self._loop.call_later(seconds, _silence, wake)
        try:
            return await wake
        finally:
            timer.cancel()
            # Another connection may have taken over, and wait already.
            if self._wake is wake:
                self._wake = None


def position(event: bytes) -> tuple[int, int] | None:
    """Channel and event of a `Last-Event-ID` header of ours; None for anything else."""
    channel, _, number = event.partition(b"-")
    if not (channel.isdigit() and number.isdigit() and len(event) < 40):
        return None
    return int(channel), int(number)


def _silence(wake: asyncio.Future[bool]) -> None:
    if not wake.done():
        wake.set_result(False)


def _event(line: bytes, identity: str = "") -> bytes:
    line = one_line(line)
    if identity:
        return b"id: %s\nevent: message\ndata: %s\n\n" % (identity.encode(), line)
    return b"event: message\ndata: %s\n\n" % line
