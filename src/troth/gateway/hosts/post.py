"""The answer to one POST: the head waits until it is known what comes first.

A final message that comes first becomes JSON. Anything else first, or a long silence, opens an event stream, and the
final message ends it. One timer serves a request: it looks for slow bodies, starts the look-out for hosts that go away,
and breaks the silence. Tasks exist only for requests that take long or stream.

Source: Streamable HTTP, sending messages (the answer is JSON or an event stream); cancellation (a modern host cancels
by closing the connection, a legacy one does not).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, TypeVar

from troth.bridge import NOT_A_MESSAGE, NOT_JSON
from troth.bridge.fresh import error_line
from troth.gateway.hosts.asgi import STREAM_HEAD, Refused, refuse, respond
from troth.gateway.hosts.events import Channel
from troth.gateway.model import Sort

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from typing import Any

    from troth.gateway.crew import Crew
    from troth.gateway.hosts.asgi import Header, Visit
    from troth.gateway.hosts.sessions import Kept
    from troth.gateway.limits import Limits


_T = TypeVar("_T")

GONE: Final = 499
"""Stands for the status of a request whose host is gone; nothing is sent."""


_JSON: Final = b"application/json"


UNREAD: Final = frozenset({406, 413, 415})
"""Statuses of refusals that come before the body was read."""


class Phase(Enum):
    """Where a request is."""

    READING = auto()
    ANSWERING = auto()
    ENDED = auto()


class Post:
    """One POST from its body to its last byte; also the `Stream` of its request.

    Args:
        visit: The request.
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
        "visit",
    )

    def __init__(self, visit: Visit, limits: Limits, crew: Crew) -> None:
        self.visit = visit
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

    def accept(self, *, answered: bool = True) -> Refused | None:
        """Why the body may not come, by what the head says of it and of the answer.

        Args:
            answered: Whether the answer to the message is the answer to this POST.
        """
        head = self.visit.head
        status, words = _unfit(head.headers, self._limits)
        self.json, self.events = head.accepts
        if not status and answered and not self.json and not self.events:
            status, words = 406, "Accept: application/json or text/event-stream belongs here, best both"
        return Refused(status, error_line(None, NOT_A_MESSAGE, words), close=head.long) if status else None

    async def refuse(self, refused: Refused) -> None:
        """Ends the response with a refusal."""
        self.phase = Phase.ENDED
        self._handle.cancel()
        if refused.status in UNREAD and refused.close and b"expect" not in self.visit.head.headers:
            await self._skip()
        if refused.status != GONE:
            await refuse(self.visit.send, refused)

    async def _skip(self) -> None:
        """Reads on, within bounds: most hosts read no answer before they sent all, and a reset would cost them it."""
        rest = self._limits.skipped
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.skipping):
                while rest > 0:
                    message = await self.visit.receive()
                    if message["type"] == "http.disconnect" or not message.get("more_body", False):
                        return
                    rest -= len(message.get("body", b""))

    def one_piece(self) -> None:
        """The answer is not opened as a stream before it is known, since its head depends on it (a new session)."""
        self.events = False

    def dismiss(self) -> None:
        """Ends a stream that would stay open, as if the host had gone."""
        if self.channel is not None:
            self.channel.end()
        self._cancel()

    async def body(self) -> bytes | Refused:
        """The body, unless it is too large, too slow or never ends."""
        pieces: list[bytes] = []
        size = 0
        try:
            while True:
                message = await self.visit.receive()
                if message["type"] == "http.disconnect":
                    return Refused(GONE, b"")
                piece: bytes = message.get("body", b"")
                size += len(piece)
                if size > self._limits.body:
                    return Refused(413, error_line(None, NOT_A_MESSAGE, _too_large(self._limits)), close=True)
                pieces.append(piece)
                if not message.get("more_body", False):
                    break
        except asyncio.CancelledError:
            if not self._interrupted():
                raise
            words = f"the body did not come within {self._limits.request:g} s (limit: request)"
            return Refused(408, error_line(None, NOT_JSON, words), close=True)
        if self.slow:
            self.slow = False
            self._later(self._limits.watch)
        return piece if len(pieces) == 1 else b"".join(pieces)

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
            channel.take_over(self, self.visit.abort)
            for change in kept.outbox.pending() if kept is not None else ():
                channel.put(change, Sort.CHANGE)
            for line in self.final:
                channel.put(line, Sort.OTHER)
            self._pump = self._crew.spawn(channel.carry(self, self.visit.send), "host stream")
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
            await respond(self.visit.send, 202, b"", headers)
        elif self.json:
            await self.visit.answer(status, line, headers)
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
        channel.take_over(self, self.visit.abort)
        channel.last(line)
        await self.visit.send({**STREAM_HEAD, "headers": [*STREAM_HEAD["headers"], *headers]})
        await channel.carry(self, self.visit.send, head=False)

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
            self.visit.look_out(self._crew, self._left)

    def _left(self) -> None:
        """The connection is gone, or the response complete."""
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


def _unfit(headers: Mapping[bytes, bytes], limits: Limits) -> tuple[int, str]:
    """Status and words for a body that is not taken; 0 for one that is."""
    kind = headers.get(b"content-type", b"")
    if kind != _JSON and kind.partition(b";")[0].strip().lower() != _JSON:
        return 415, "Content-Type: application/json belongs here"
    if b"content-encoding" in headers and headers[b"content-encoding"].strip().lower() != b"identity":
        return 415, "Content-Encoding: send the body as it is"
    length = headers.get(b"content-length", b"0")
    if len(length) > 12 or (length.isdigit() and int(length) > limits.body):
        return 413, _too_large(limits)
    return 0, ""


def _too_large(limits: Limits) -> str:
    return f"a body of more than {limits.body} bytes (limit: body)"
