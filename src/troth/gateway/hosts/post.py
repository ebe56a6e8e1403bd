"""The answer to one POST: the head waits until it is known what comes first.

A final message that comes first becomes JSON. Anything else first, or a long silence, opens an event stream, and the
final message ends it. One timer serves a request: it looks for slow bodies, starts the look-out for hosts that go away,
and breaks the silence. Tasks exist only for requests that take long or stream.

Source: Streamable HTTP, sending messages (the answer is JSON or an event stream); cancellation (a modern host cancels by
closing the connection, a legacy one does not).
"""

from __future__ import annotations

import asyncio
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, TypeVar

from troth.bridge import NOT_A_MESSAGE
from troth.gateway.hosts.asgi import ABORT, JSON, STREAM_HEAD, Refused, error_line, refuse, respond
from troth.gateway.hosts.events import Channel
from troth.gateway.hosts.head import accepted
from troth.gateway.model import Sort

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from troth.gateway.crew import Crew
    from troth.gateway.hosts.asgi import Header, Receive, Scope, Send
    from troth.gateway.hosts.head import Head
    from troth.gateway.hosts.sessions import Kept
    from troth.gateway.limits import Limits


_T = TypeVar("_T")

GONE: Final = 499
"""Stands for the status of a request whose host is gone; nothing is sent."""


class Phase(Enum):
    """Where a request is."""

    READING = auto()
    ANSWERING = auto()
    ENDED = auto()


class Post:
    """One POST from its body to its last byte; also the `Stream` of its request.

    Args:
        scope: Of ASGI.
        receive: Of ASGI.
        send: Of ASGI.
        limits: Bounds.
        crew: Owns the tasks of slow requests.
    """

    __slots__ = (
        "_aborted",
        "_crew",
        "_handle",
        "_limits",
        "_loop",
        "_pump",
        "_receive",
        "_scope",
        "_send",
        "_task",
        "_watched",
        "channel",
        "events",
        "final",
        "gone",
        "json",
        "kept",
        "phase",
        "slow",
    )

    def __init__(self, scope: Scope, receive: Receive, send: Send, limits: Limits, crew: Crew) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._limits = limits
        self._crew = crew
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[Any] | None = asyncio.current_task()
        self._pump: asyncio.Task[Any] | None = None
        self._watched = False
        self._aborted = False
        self.channel: Channel | None = None
        self.kept: Kept | None = None
        self.json = self.events = True
        self.gone = False
        self.slow = False
        self.phase = Phase.READING
        self.final: list[bytes] = []
        self._handle = self._loop.call_later(limits.watch, self._due)

    def accept(self, head: Head, *, answer: bool = True) -> Refused | None:
        """Whether the body may come, by what the head says of it, and of the answer.

        Args:
            head: The head.
            answer: Whether the answer to the message is the answer to this POST.
        """
        kind = head.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":
            return Refused(
                415, error_line(NOT_A_MESSAGE, "Content-Type: application/json belongs here"), close=head.long
            )
        if head.headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
            return Refused(415, error_line(NOT_A_MESSAGE, "Content-Encoding: send the body as it is"), close=head.long)
        length = head.headers.get(b"content-length", b"0")
        if len(length) > 12 or (length.isdigit() and int(length) > self._limits.body):
            return too_large(self._limits)
        self.json, self.events = accepted(head.headers.get(b"accept"))
        if answer and not self.json and not self.events:
            words = "Accept: application/json or text/event-stream belongs here, best both"
            return Refused(406, error_line(NOT_A_MESSAGE, words), close=head.long)
        return None

    async def refuse(self, refused: Refused) -> None:
        """Ends the response with a refusal."""
        self.phase = Phase.ENDED
        self._handle.cancel()
        if refused.status != GONE:
            await refuse(self._send, refused)

    def one_piece(self) -> None:
        """The answer is not opened as a stream before it is known, since its head depends on it (a new session)."""
        self.events = False

    def dismiss(self) -> None:
        """Ends a stream that would stay open, as if the host had gone."""
        if self.channel is not None:
            self.channel.end()
        self._cancel()

    async def body(self) -> bytes | int:
        """The body; or the status of the refusal: 413 too large, 408 too slow, 499 gone."""
        pieces: list[bytes] = []
        size = 0
        try:
            while True:
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    return GONE
                piece: bytes = message.get("body", b"")
                size += len(piece)
                if size > self._limits.body:
                    return 413
                if not message.get("more_body", False):
                    break
                pieces.append(piece)
        except asyncio.CancelledError:
            if not self._interrupted():
                raise
            return 408
        if self.slow:
            self.slow = False
            self._later(self._limits.watch)
        return b"".join((*pieces, piece)) if pieces else piece

    async def run(self, work: Coroutine[Any, Any, _T], *, cancels: bool) -> _T | None:
        """Runs what answers, while the host is there.

        Args:
            work: What answers.
            cancels: Whether a host that goes away cancels it (modern).

        Returns:
            What it returns; None if the host is gone.
        """
        self.phase = Phase.ANSWERING
        if not cancels:
            self._task = None
        try:
            return await work
        except asyncio.CancelledError:
            if not self._interrupted():
                raise
            return None
        finally:
            self._handle.cancel()

    def send(self, line: bytes, sort: Sort) -> None:
        """Queues a message that goes before the answer; see `troth.gateway.model.Stream`."""
        if self.phase is Phase.ENDED:
            return
        if not self.events or (self.gone and self.channel is None):
            # Only JSON is taken, or nothing any more: there is no place here for what is no answer.
            if self.kept is not None and sort in (Sort.CHANGE, Sort.OTHER):
                self.kept.outbox.send(line, sort)
            return
        self.open().put(line, sort)

    def open(self) -> Channel:
        """Opens the answer as an event stream, if it is not open already."""
        if self.channel is None:
            self._handle.cancel()
            kept = self.kept
            channel = self.channel = Channel(self._limits) if kept is None else kept.channel(self._limits)
            channel.take_over(self, self._abort)
            for change in kept.outbox.pending() if kept is not None else ():
                channel.put(change, Sort.CHANGE)
            for line in self.final:
                channel.put(line, Sort.OTHER)
            self._pump = self._crew.spawn(channel.carry(self, self._send), "host stream")
            self._watch()
        return self.channel

    def answered(self, line: bytes) -> None:
        """Takes one of several final messages (a batch)."""
        if self.channel is not None:
            self.channel.put_other(line)
        else:
            self.final.append(line)

    async def finish(self, line: bytes, status: int = 200, headers: tuple[Header, ...] = ()) -> None:
        """Ends the response.

        Args:
            line: The answer; empty if there is none to send.
            status: Status of an answer that is JSON.
            headers: Further headers of one that is.
        """
        self.phase = Phase.ENDED
        self._handle.cancel()
        if self.channel is not None and self._pump is not None:
            if line:
                self.channel.last(line)
            else:
                self.channel.end()
            if self.kept is not None:
                self.kept.channels.pop(self.channel.number, None)
            await asyncio.wait((self._pump,))
        elif self.gone:
            return
        elif not line:
            await respond(self._send, 202, b"", headers)
        elif self.json:
            await respond(self._send, status, line, (JSON, *headers))
        else:
            await self._event(line, headers)

    async def finish_batch(self) -> None:
        """Ends the response to a batch, whose answers were taken one by one."""
        if self.final and self.channel is None and not self.json:
            self.open()
        await self.finish(b"[%s]" % b",".join(self.final) if self.final and self.channel is None else b"")

    async def _event(self, line: bytes, headers: tuple[Header, ...]) -> None:
        """The answer as the one event of a stream, for hosts that take nothing else."""
        channel = self.channel = Channel(self._limits)
        channel.take_over(self, self._abort)
        channel.last(line)
        await self._send({**STREAM_HEAD, "headers": [*STREAM_HEAD["headers"], *headers]})
        await channel.carry(self, self._send, head=False)

    def _due(self) -> None:
        """The timer ran out."""
        if self.phase is Phase.READING:
            if self.slow:
                self._cancel()
            else:
                self.slow = True
                self._later(self._limits.request)
        elif not self._watched:
            self._watch()
            self._later(max(self._limits.commit - self._limits.watch, 0))
        elif self.events:
            self.open()

    def _later(self, seconds: float) -> None:
        self._handle.cancel()
        self._handle = self._loop.call_later(seconds, self._due)

    def _watch(self) -> None:
        if not self._watched:
            self._watched = True
            self._crew.spawn(self._watching(), "host look-out")

    async def _watching(self) -> None:
        """Waits until the connection is gone; the server says the same when the response is complete."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if self.channel is not None:
            self.channel.leave(self)
        if self.phase is Phase.ENDED:
            return
        self.gone = True
        self._cancel()

    def _cancel(self) -> None:
        if self._task is not None:
            self._aborted = True
            self._task.cancel()

    def _interrupted(self) -> bool:
        """Whether a cancellation was ours; then it is over."""
        if self._aborted and self._task is not None:
            self._aborted = False
            return self._task.uncancel() == 0
        return False

    def _abort(self) -> None:
        abort = self._scope.get("extensions", {}).get(ABORT)
        if abort is not None:
            abort()


def too_large(limits: Limits) -> Refused:
    """The refusal of a body that is too large."""
    line = error_line(NOT_A_MESSAGE, f"a body of more than {limits.body} bytes (limit: body)")
    return Refused(413, line, close=True)
