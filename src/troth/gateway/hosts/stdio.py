"""One host on our own standard input and output, in either era or in both at once.

The era is decided by each message, as over HTTP: `_meta` with a revision makes a request modern, `initialize` opens the
one legacy session that a pipe can have. Requests run side by side. Everything that is written goes through one queue;
nobody waits for a slow host but the answers, which are made one per request. The end of the input ends the host: what
runs is given a moment to be answered, then all is cancelled.

Source: transports, stdio (one message per line, nothing else on the output); cancellation (by notification in both
eras); 2026-07-28, basic protocol (a request without `_meta` is none of this revision).
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Final

import anyio

from troth.bridge import (
    NOT_A_MESSAGE,
    Bad,
    Batch,
    Frame,
    FrameLimits,
    Id,
    Kind,
    one_line,
    peek,
    read_batch,
)
from troth.bridge.fresh import error_line, result_line
from troth.gateway.hosts.asgi import LIMIT_REACHED
from troth.gateway.hosts.era import INITIALIZE, LISTEN, PLAIN, WIRES, is_modern, no_answer
from troth.gateway.hosts.pipes import Lines, Output, open_pipes
from troth.gateway.hosts.waiting import Waiting
from troth.gateway.model import Principal, Sort

if TYPE_CHECKING:
    from troth.gateway.crew import Crew
    from troth.gateway.limits import Limits
    from troth.gateway.model import Front, Host, Session

STDIO: Final = Principal("stdio")
"""Whoever started the process."""

CHUNK: Final = 64 * 1024
"""Bytes that are handed to the output at once."""

GRACE: Final = 0.2
"""Seconds that listens get for their last message when the gateway stops."""

CANCELLED: Final = "notifications/cancelled"
INITIALIZED: Final = "notifications/initialized"


class _Stream:
    """The `Stream` of one request, or of the session: progress of one request is not thinned out for another."""

    __slots__ = ("_held", "_host")

    def __init__(self, host: StdioHost, *, held: bool = False) -> None:
        self._host = host
        self._held: list[tuple[bytes, Sort]] | None = [] if held else None

    def send(self, line: bytes, sort: Sort) -> None:
        """Queues one message; see `troth.gateway.model.Stream`."""
        if self._held is None:
            self._host.put(line, sort, self)
        elif sort in (Sort.CHANGE, Sort.OTHER) and (line, sort) not in self._held:
            # Nobody is promised logs of the time before the session is open.
            self._held.append((line, sort))

    def release(self) -> None:
        """The host is ready: what was held goes out."""
        held, self._held = self._held, None
        for line, sort in held or ():
            self._host.put(line, sort, self)


class StdioHost:
    """The host on a pair of pipes.

    Args:
        front: Answers.
        limits: Bounds.
        crew: Owns the tasks of requests.
    """

    def __init__(self, front: Front, limits: Limits, crew: Crew) -> None:
        self._front = front
        self._limits = limits
        self._crew = crew
        self._frames = FrameLimits(bytes=limits.body)
        self._waiting = Waiting(limits.queue)
        self._output: Output | None = None
        self._session: Session | None = None
        self._outbox: _Stream | None = None
        self._opening = False
        self._held: list[Frame] = []
        self._running: dict[Id, tuple[asyncio.Task[None], bool, bool]] = {}
        self._room: asyncio.Event = asyncio.Event()
        self._room.set()
        self._sent: asyncio.Event = asyncio.Event()
        self._sent.set()

    async def serve(self, lines: Lines, output: Output) -> None:
        """Serves until the input ends or the output breaks."""
        self._output = output
        output.ready = self._flush
        try:
            while (line := await lines.next()) is not None and not output.broken:
                if isinstance(line, Bad):
                    self.put(error_line(None, line.code, line.reason), Sort.OTHER)
                elif line.strip():
                    self._take(read_batch(line, self._frames, allowed=self._batches()))
            await self._drain(0)
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await self._drain(GRACE)
            raise
        finally:
            for task, _, _ in tuple(self._running.values()):
                task.cancel()
            if self._session is not None:
                self._front.close(self._session)
            with anyio.CancelScope(shield=True):
                with anyio.move_on_after(self._limits.drain):
                    await self._sent.wait()
                await output.close(self._limits.drain)

    def put(self, line: bytes, sort: Sort, key: object = None) -> None:
        """Queues one message. A host that does not read until even questions do not fit is cut off."""
        output = self._output
        if output is None or output.broken:
            return
        if not self._waiting.put(line, sort, key):
            output.cut()
            return
        self._flush()

    def _flush(self) -> None:
        output = self._output
        while output is not None and output.writable and self._waiting:
            output.write(b"".join([one_line(line) + b"\n" for line in self._waiting.take(CHUNK)]))
        over = output is None or output.broken
        _set(self._room, over or self._waiting.bytes <= self._limits.queue // 2)
        _set(self._sent, over or not self._waiting)

    def _batches(self) -> bool:
        return self._session is not None and WIRES.get(self._session.host.revision, PLAIN).batches

    # One message

    def _take(self, found: Frame | Batch | Bad) -> None:
        for item in found.items if isinstance(found, Batch) else (found,):
            if isinstance(item, Bad):
                self._refuse(item)
            elif self._waits(item):
                self._held.append(item)
            elif item.kind is Kind.REQUEST:
                self._request(item)
            else:
                self._notified(item)

    def _waits(self, frame: Frame) -> bool:
        """Whether a message belongs to the session that is being opened: hosts in pipelines do not wait for it."""
        if not self._opening or is_modern(frame) or frame.method in ("ping", INITIALIZE):
            return False
        return len(self._held) < self._limits.running

    def _refuse(self, bad: Bad) -> None:
        """Answers what is no message, unless it would have been a notification or an answer."""
        if self._session is not None and (meant := no_answer(bad)) is not None:
            self._front.notify(meant, self._session.host)
        if bad.kind in (Kind.REQUEST, None):
            self.put(self._front.refusal(bad, None).line, Sort.OTHER)

    def _notified(self, frame: Frame) -> None:
        if frame.method == INITIALIZED and self._outbox is not None:
            self._outbox.release()
        if frame.method == CANCELLED:
            wanted = peek(frame, "requestId")
            found = None if isinstance(wanted, Bad) else self._running.get(wanted.get("requestId", ""))
            if found is not None and found[1]:
                found[0].cancel()
                return
        if self._session is not None:
            self._front.notify(frame, self._session.host)

    def _request(self, frame: Frame) -> None:
        identity = frame.id
        assert identity is not None  # noqa: S101 - requests have one
        modern = is_modern(frame)
        refused = self._out_of_turn(frame, modern=modern)
        if refused:
            self.put(refused, Sort.OTHER)
            return
        if frame.method == INITIALIZE and not modern:
            self._opening = True
            work = self._initialize(frame)
        elif modern:
            host = self._front.modern(frame, STDIO, "stdio")
            if isinstance(host, Bad):
                self.put(self._front.refusal(host, None).line, Sort.OTHER)
                return
            work = self._answer(frame, host)
        elif self._session is None:
            self.put(result_line(identity, {}), Sort.OTHER)
            return
        else:
            if self._outbox is not None and frame.method != "ping":
                self._outbox.release()
            work = self._answer(frame, self._session.host)
        task = self._crew.spawn(work, "stdio request")
        self._running[identity] = task, modern, frame.method == LISTEN
        task.add_done_callback(lambda _: self._ended(identity))

    def _ended(self, identity: Id) -> None:
        self._running.pop(identity, None)

    def _out_of_turn(self, frame: Frame, *, modern: bool) -> bytes:
        """The error for a request that cannot be handled now; empty if it can."""
        if frame.id in self._running:
            return error_line(frame.id, NOT_A_MESSAGE, "id: a request with it is still running")
        if len(self._running) >= self._limits.running:
            return error_line(
                frame.id, LIMIT_REACHED, "too many requests in flight (limit: running)", {"limit": "running"}
            )
        if modern:
            return b""
        if frame.method == INITIALIZE:
            again = self._opening or self._session is not None
            return error_line(frame.id, NOT_A_MESSAGE, "initialize was sent already") if again else b""
        if self._session is None and frame.method != "ping":
            words = "no session: send initialize first, or a modern request with its _meta"
            return error_line(frame.id, NOT_A_MESSAGE, words)
        return b""

    async def _initialize(self, frame: Frame) -> None:
        try:
            outbox = _Stream(self, held=True)
            session, answer = await self._front.initialize(frame, STDIO, outbox, push=True, transport="stdio")
        finally:
            self._opening = False
        if session is not None:
            session.id = secrets.token_urlsafe(24)
            self._session, self._outbox = session, outbox
        self.put(answer.line, Sort.OTHER)
        held, self._held = self._held, []
        for waiting in held:
            if waiting.kind is Kind.REQUEST:
                self._request(waiting)
            else:
                self._notified(waiting)

    async def _answer(self, frame: Frame, host: Host) -> None:
        answer = await self._front.answer(frame, host, _Stream(self))
        # Answers are the bulk of what is written: they wait, so that a slow host costs memory within bounds.
        while not self._room.is_set():
            await self._room.wait()
        if answer.line:
            self._waiting.force(answer.line)
            self._flush()

    # The end

    async def _drain(self, grace: float) -> None:
        """Lets requests end, for a moment; those that would stay open get `grace` seconds for their last message."""
        tasks = tuple(self._running.values())
        if self._output is None or self._output.broken:
            return
        if grace and tasks:
            await asyncio.wait([task for task, _, _ in tasks], timeout=grace)
        for task, _, listens in tasks:
            if listens:
                task.cancel()
        left = [task for task, _, listens in tasks if not listens and not task.done()]
        if left:
            await asyncio.wait(left, timeout=self._limits.drain)


def _set(event: asyncio.Event, value: bool) -> None:
    if value:
        event.set()
    else:
        event.clear()


async def serve_stdio(front: Front, read_fd: int, write_fd: int, limits: Limits, crew: Crew) -> None:
    """Serves one host on two descriptors until the input ends, the output breaks or the caller is cancelled.

    All three end within `Limits.drain` and a moment; what runs until then is answered as far as it can be.

    Args:
        front: Answers.
        read_fd: Where the host's messages come from.
        write_fd: Where ours go; nothing else may write there.
        limits: Bounds.
        crew: Owns the tasks of requests.
    """
    lines, output = await open_pipes(read_fd, write_fd, limits)
    await StdioHost(front, limits, crew).serve(lines, output)
