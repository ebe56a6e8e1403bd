"""One conversation with a server over a link: our ids, who waits for what, and whom a message belongs to.

Rules of this file:

1. A response belongs to the request whose id it has, by type and value. What answers nobody is counted and dropped.
2. Every request ends once: `Sink.answered` or `Sink.lost`, and neither after `cancel`.
3. A message that surely belongs to a request goes to its sink, any other to the owner of the conversation. Sure are:
   a progress token, a stream of the request's own (HTTP), a connection on which nothing else runs.
4. A modern server asks nothing by requests, so none of them is answered.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, Final, cast

import msgspec

from troth.bridge import (
    Bad,
    Batch,
    Cause,
    Frame,
    FrameLimits,
    Id,
    IdMint,
    Kind,
    Lost,
    Outgoing,
    error_line,
    notification_line,
    opened,
    peek,
    peek_meta,
    read,
    read_batch,
    result_line,
)
from troth.bridge.asks import NOTHING
from troth.bridge.questions import refused
from troth.capabilities import read_server
from troth.gateway.model import UnavailableError
from troth.gateway.upstream.envelope import SUBSCRIPTION, Envelope
from troth.gateway.upstream.era import strange
from troth.gateway.upstream.inflight import Inflight
from troth.gateway.upstream.turns import Turns
from troth.gateway.upstream.waiting import UNSURE, Facts, Refused, Waiter, Waiting
from troth.gateway.upstream.words import told
from troth.register import Era

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from troth.bridge.asks import Asks
    from troth.gateway.limits import Limits
    from troth.gateway.model import Sink
    from troth.gateway.upstream.link import Link, Problem
    from troth.gateway.upstream.waiting import Counts, Owner

_log = logging.getLogger(__name__)

BATCHES: Final = frozenset({"2025-03-26"})
"""Revisions in which a server may send arrays of messages. Source: 2025-03-26/basic, batching."""
RESUMES: Final = frozenset({"2025-03-26", "2025-06-18", "2025-11-25"})
"""Revisions whose streams can be resumed. Source: 2025-03-26/basic/transports, resumability and redelivery."""
OPENING: Final = frozenset({"initialize", "server/discover"})
"""Requests that are never cancelled by a message: the specification forbids it, or no era is known yet."""
SESSION: Final = "Mcp-Session-Id"
SESSION_LOST: Final = "upstream session lost"


class Talk:
    """A `Conversation`, and the receiver of its link.

    Args:
        envelope: The revision to begin with; see `settle`.
        owner: Who hears what belongs to no request.
        limits: Named limits.
        counts: Where costs are counted.
        asks: What a legacy upstream is told at the handshake that it may ask.
    """

    def __init__(self, envelope: Envelope, owner: Owner, limits: Limits, counts: Counts, asks: Asks = NOTHING) -> None:
        self.link: Link
        self.asks = asks
        self.envelope = envelope
        self.era = envelope.era
        self.revision = envelope.revision
        self.capabilities = read_server({}, envelope.revision)
        self.instructions = ""
        self.info: Mapping[str, object] = {}
        self.talked = False
        """Whether anything came at all."""
        self._owner = owner
        self._limits = limits
        self._counts = counts
        self._frames = FrameLimits(bytes=limits.line)
        self._loop = asyncio.get_running_loop()
        self._mint = IdMint(os.urandom(32))
        self._waiting = Inflight()
        self._turns = Turns(limits, self._failed)
        self._session = ""
        self._common: dict[str, str] = {}
        self._over: Lost | None = None
        self._expired = False
        self._held: dict[Id, Waiting] = {}
        self._moved: dict[Id, tuple[Talk, Id]] = {}
        self._handlers: dict[str, Callable[[Frame, Id | None], None]] = {
            "notifications/progress": self._progress,
            "notifications/message": self._log,
            "notifications/cancelled": self._cancelled,
            "notifications/elicitation/complete": self._visited,
        }
        self.speak(envelope)

    @property
    def alive(self) -> bool:
        """Whether requests can be sent."""
        return self._over is None and not self._expired

    @property
    def why(self) -> str:
        """Why no request can be sent any more; empty while one can."""
        return "" if self._over is None else self._over.words

    # What the owner does.

    def speak(self, envelope: Envelope) -> None:
        """Writes another revision from now on."""
        self.envelope = envelope
        self.era, self.revision = envelope.era, envelope.revision
        self._common = dict(envelope.common)
        if self._session and self.era is Era.LEGACY:
            self._common[SESSION] = self._session

    def settle(self, envelope: Envelope, facts: Facts) -> None:
        """The era is known and the handshake done: keeps what the server said of itself."""
        self.speak(envelope)
        self.capabilities = read_server(facts.capabilities, envelope.revision)
        self.instructions, self.info = facts.instructions, facts.info
        self.link.resume = envelope.revision in RESUMES

    def tell(self, method: str, params: Mapping[str, object] | None = None) -> None:
        """Sends a notification."""
        self._send(notification_line(method, params))

    async def assure(self, method: str) -> Problem | None:
        """Sends a notification that nothing may overtake; returns why it did not arrive."""
        line = notification_line(method)
        self._counts.sent += len(line)
        return await self.link.deliver(line, self._common)

    def listen(self) -> None:
        """Opens the stream of messages outside requests, where the transport has one (legacy)."""
        self.link.listen(self._common)

    async def close(self, why: str) -> None:
        """Ends the conversation and its link."""
        ends = dict(self._common) if self._session and not self._expired else None
        self.finish(why)
        await self.link.close(ends)

    def finish(self, why: str) -> None:
        """Nothing more is sent or received: whatever is in flight or held is lost."""
        if self._over is None:
            self._over = Lost(Cause.DOWN, why)
        for number in list(self._waiting):
            self._lose(number, Lost(Cause.BROKEN, why))
        unsent = [*self._held.values(), *self._turns.clear()]
        self._held = {}
        for waiting in unsent:
            waiting.stop()
            waiting.sink.lost(Lost(Cause.DOWN, why))

    def hand_over(self, to: Talk) -> None:
        """Starts what was refused without being processed on another conversation, once."""
        held, self._held = self._held, {}
        for number, waiting in held.items():
            self._moved[number] = (to, to.start(waiting.request, waiting.sink, second=True))
        if self._over is None:
            self._over = Lost(Cause.DOWN, SESSION_LOST)

    # The conversation, as others use it.

    def start(self, request: Outgoing, sink: Sink, *, second: bool = False) -> Id:
        """See `Conversation`.

        Args:
            request: The request.
            sink: Who hears what becomes of it.
            second: It was refused by a session that was lost; it is not sent a third time.
        """
        number = self._mint.next()
        waiting = Waiting(sink, request, number, second=second)
        if self._expired and self._over is None:
            self._held[number] = waiting
            return number
        if self._over is None and self._taken_turn(waiting):
            self._turns.join(waiting)
            return number
        self._waiting[number] = waiting
        if self._over is not None:
            self._loop.call_soon(self._lose, number, self._over)
            return number
        self._begin(waiting)
        return number

    def _begin(self, waiting: Waiting) -> None:
        """Sends a request that waits for its answer."""
        request, number = waiting.request, waiting.number
        if request.timeout is not None:
            waiting.seen = self._loop.time()
            waiting.timer = self._loop.call_later(request.timeout, self._late, waiting)
        line = self.envelope.line(request, number)
        self._counts.calls += 1
        self._counts.relayed += _relayed(waiting)
        self._counts.sent += len(line)
        headers = self.envelope.headers(request) if self.era is Era.MODERN else self._common
        self.link.send(number, line, headers)

    @property
    def _streams(self) -> bool:
        """Whether requests have streams of their own."""
        return self.link.transport == "http"

    @property
    def busy(self) -> bool:
        """Whether a call has the pipe about which questions may come."""
        return bool(self._turns.queue or self._waiting.asking())

    def _taken_turn(self, waiting: Waiting) -> bool:
        """Whether a call must wait for another one that may be asked."""
        alone = bool(waiting.request.asks) and self.era is Era.LEGACY and not self._streams
        return alone and self.busy

    def _next_turn(self) -> None:
        """Sends the call that waited longest."""
        if self._over is None and self._turns.queue and not self._waiting.asking():
            waiting = self._turns.next()
            self._waiting[waiting.number] = waiting
            self._begin(waiting)

    def cancel(self, request: Id, reason: str) -> None:
        """See `Conversation`."""
        if moved := self._moved.pop(request, None):
            moved[0].cancel(moved[1], reason)
        elif request in self._held:
            del self._held[request]
        elif not self._turns.leave(request) and (waiting := self._pop(request)) is not None:
            self._withdraw(waiting, reason)

    def answer(self, line: bytes, question: Id | None = None) -> None:
        """See `Conversation`."""
        asker = self._waiting.answered(question)
        if asker is not None:
            asker.seen = self._loop.time()
        if self._over is None:
            self._send(line)

    async def ask(self, request: Outgoing) -> Frame:
        """See `Conversation`."""
        waiter = Waiter(lambda frame: self._owner.heard(self, frame))
        if request.timeout is None:
            request = msgspec.structs.replace(request, timeout=self._limits.method)
        number = self.start(request, waiter)
        try:
            outcome = await waiter.outcome
        finally:
            if not waiter.outcome.done() or waiter.outcome.cancelled():
                self.cancel(number, "no longer needed")
        if isinstance(outcome, Lost):
            raise UnavailableError(outcome)
        frame = opened(outcome)
        if isinstance(frame, Bad):
            raise UnavailableError(Lost(Cause.MALFORMED, f"{request.frame.method}: {frame.reason}"))
        if frame.kind is Kind.ERROR:
            raise UnavailableError(Lost(Cause.REFUSED, f"{request.frame.method} got {told(frame)}"), frame)
        return frame

    # The receiver, as the link uses it.

    def receive(self, data: bytes, key: Id | None) -> bool:
        """See `Receiver`."""
        self.talked = True
        self._counts.received += len(data)
        try:
            if self.revision not in BATCHES:
                return self._take(read(data, self._frames), key)
            batch = read_batch(data, self._frames, allowed=True)
            taken = [self._take(one, key) for one in (batch.items if isinstance(batch, Batch) else (batch,))]
        except Exception:  # a fault of ours in one exchange must not cost the others their connection
            _log.exception("a message of an upstream was not handled by a fault of Troth")
            return False
        return True in taken

    def ended(self, key: Id | None, problem: Problem | None) -> None:
        """See `Receiver`."""
        if problem is not None and strange(problem, self.era, to_request=key is not None):
            self._owner.suspect(self)
        waiting = None if key is None else self._waiting.get(key)
        if waiting is None or key is None:
            return
        if problem is None:
            words = waiting.problem or "the answer ended without a response"
            self._lose(key, Lost(Cause.MALFORMED, words))
        elif self._forgotten(waiting, problem):
            if problem.begun:
                self._expire()
                self._lose(key, Lost(Cause.BROKEN, SESSION_LOST))
            else:
                self._hold(waiting)
        elif (frame := _carried(problem, key)) is not None:
            self._answered(key, frame)
        elif not problem.sent:
            self._lose(key, Lost(Cause.DOWN, problem.words))
            self._end(problem.words)
        elif problem.status is None and (waiting.problem or not problem.broken):
            self._lose(key, Lost(Cause.MALFORMED, waiting.problem or problem.words))
        elif problem.status is None:
            self._lose(key, Lost(Cause.BROKEN, problem.words))
            self._owner.suspect(self)
        else:
            words = f"{problem.words} ({problem.challenge})" if problem.challenge else problem.words
            self._lose(key, Refused(Cause.REFUSED, words, problem.status, problem.retry_after or 0.0))

    def session(self, key: Id, value: str) -> None:
        """See `Receiver`."""
        waiting = self._waiting.get(key)
        if waiting is not None and waiting.request.frame.method == "initialize":
            self._session = value
            self._common[SESSION] = value

    def listening(self) -> None:
        """See `Receiver`."""
        self._owner.gap(self)

    def dead(self, why: str) -> None:
        """See `Receiver`."""
        self._end(why)

    # What came.

    def _take(self, frame: Frame | Bad, key: Id | None) -> bool:
        if isinstance(frame, Bad):
            return self._bad(frame, key)
        if frame.kind is Kind.RESPONSE or frame.kind is Kind.ERROR:
            return self._response(frame, key)
        if frame.kind is Kind.NOTIFICATION:
            self._notification(frame, key)
        else:
            self._request(frame, key)
        return False

    def _response(self, frame: Frame, key: Id | None) -> bool:
        number = frame.id
        if number is None and key is not None:
            # An error for a message that its sender could not read, on the stream of that message.
            number, frame = key, msgspec.structs.replace(frame, id=key)
        if number is None or number not in self._waiting:
            self._counts.strays += 1
            if key is not None and key in self._waiting:
                self._waiting[key].problem = "the answer names another request"
            return False
        self._answered(number, frame)
        if key is not None and key != number:
            self.link.abort(number)
        return number == key

    def _answered(self, number: Id, frame: Frame) -> None:
        waiting = self._pop(number)
        if waiting is not None:
            waiting.sink.answered(frame)

    def _bad(self, bad: Bad, key: Id | None) -> bool:
        self._counts.junk += 1
        if bad.id is not None and bad.kind is not Kind.REQUEST and bad.id in self._waiting:
            self._lose(bad.id, Lost(Cause.MALFORMED, f"the answer is malformed: {bad.reason}", line=bad.line))
            return bad.id == key
        if key is not None and key in self._waiting:
            self._waiting[key].problem = f"the answer is malformed: {bad.reason}"
        if bad.kind is Kind.REQUEST and bad.id is not None and self.era is Era.LEGACY:
            self._send(error_line(bad.id, bad.code, bad.reason))
        return False

    def _notification(self, frame: Frame, key: Id | None) -> None:
        handler = self._handlers.get(frame.method)
        if SUBSCRIPTION in frame.meta and self.era is Era.MODERN:
            self._subscribed(frame)
        elif handler is not None:
            handler(frame, key)
        elif key is not None and (waiting := self._waiting.get(key)) is not None and waiting.listens:
            waiting.sink.notified(frame)
        else:
            self._owner.heard(self, frame)

    def _subscribed(self, frame: Frame) -> None:
        """A notification of a listen: what names one that is over is stale."""
        tag = peek_meta(frame, SUBSCRIPTION)
        waiting = None if isinstance(tag, Bad) else self._waiting.get(cast("Id", tag.get(SUBSCRIPTION)))
        if waiting is None or not waiting.listens:
            self._counts.strays += 1
        else:
            waiting.seen = self._loop.time()
            waiting.sink.notified(frame)

    def _progress(self, frame: Frame, _key: Id | None) -> None:
        found = peek(frame, "progressToken")
        token = None if isinstance(found, Bad) else found.get("progressToken")
        waiting = None if token is None else self._waiting.get(token)
        if waiting is None or not waiting.request.progress:
            self._counts.strays += 1
            return
        waiting.seen = self._loop.time()
        waiting.sink.notified(frame)

    def _log(self, frame: Frame, key: Id | None) -> None:
        waiting = self._waiting.surely(key, streams=self._streams)
        if waiting is None:
            self._owner.heard(self, frame)
        else:
            waiting.sink.notified(frame)

    def _cancelled(self, frame: Frame, _key: Id | None) -> None:
        """The upstream ends a listen of ours (modern), or withdraws a question (legacy)."""
        found = peek(frame, "requestId")
        number = None if isinstance(found, Bad) else found.get("requestId")
        if number is None:
            self._counts.junk += 1
        elif self.era is Era.MODERN:
            if number in self._waiting and self._waiting[number].listens:
                self._lose(number, Lost(Cause.BROKEN, "the upstream ended the subscription"))
        elif (asker := self._waiting.answered(number)) is not None:
            asker.sink.notified(frame)
        else:
            self._owner.heard(self, frame)

    def _visited(self, frame: Frame, _key: Id | None) -> None:
        """A visit is complete: each call that may have asked for it hears so, and knows whether it is its own."""
        for waiting in self._waiting.asking():
            waiting.sink.notified(frame)
        self._owner.heard(self, frame)

    def _request(self, frame: Frame, key: Id | None) -> None:
        if self.era is Era.MODERN or frame.id is None:
            self._counts.strays += 1
            return
        if frame.method == "ping":
            self._send(result_line(frame.id, {}))
            return
        waiting = self._waiting.asker(key, streams=self._streams)
        if waiting is not None:
            # Noted first: a sink may answer at once.
            self._waiting.questions[frame.id] = waiting.number
            if waiting.sink.asked(frame):
                return
            self._waiting.questions.pop(frame.id, None)
        if self._owner.asked(self, frame):
            return
        error = refused(frame.method, self.revision)
        self._send(error_line(frame.id, error.code, error.message, error.data))

    # How requests end.

    def _pop(self, number: Id) -> Waiting | None:
        waiting = self._waiting.end(number)
        if waiting is not None and self._turns.queue:
            self._loop.call_soon(self._next_turn)
        return waiting

    def _lose(self, number: Id, why: Lost) -> None:
        waiting = self._pop(number)
        if waiting is not None:
            self._failed(waiting, why)

    def _late(self, waiting: Waiting) -> None:
        """The time of a request may be up: unless something was heard of it meanwhile."""
        limit = cast("float", waiting.request.timeout)
        if waiting.number in self._waiting.questions.values():
            # Somebody thinks about a question: that is no silence of the upstream.
            waiting.seen = self._loop.time()
        rest = waiting.seen + limit - self._loop.time()
        if rest > 0:
            waiting.timer = self._loop.call_later(rest, self._late, waiting)
        elif self._pop(waiting.number) is not None:
            self._withdraw(waiting, "timed out")
            words = f"{waiting.request.frame.method} timed out after {limit:g} s"
            self._failed(waiting, Lost(Cause.TIMEOUT, words))

    def _failed(self, waiting: Waiting, why: Lost) -> None:
        self._counts.errors += 1
        self._counts.failed += _relayed(waiting)
        waiting.sink.lost(why)

    def _withdraw(self, waiting: Waiting, reason: str) -> None:
        """Tells the upstream that an answer is no longer waited for, in the way of its era."""
        if self._over is not None:
            return
        http = self._streams
        if waiting.request.frame.method not in OPENING and not (http and self.era is Era.MODERN):
            self.tell("notifications/cancelled", {"requestId": waiting.number, "reason": reason})
        if http:
            self.link.abort(waiting.number)

    def _forgotten(self, waiting: Waiting, problem: Problem) -> bool:
        """Whether an HTTP error says that the session is gone; the request was refused unread then.

        Source: 2025-03-26/basic/transports, session management (404). Some servers say 400 and name the session.
        """
        if not self._session or waiting.request.frame.method in OPENING:
            return False
        return problem.status == 404 or (problem.status == 400 and b"session" in problem.frame.lower())

    def _hold(self, waiting: Waiting) -> None:
        if waiting.second:
            self._lose(waiting.number, Lost(Cause.REFUSED, SESSION_LOST))
            return
        self._pop(waiting.number)
        self._held[waiting.number] = waiting
        self._expire()

    def _expire(self) -> None:
        if self._expired or self._over is not None:
            return
        self._expired = True
        self._owner.expired(self)

    def _end(self, why: str) -> None:
        if self._over is None:
            self.finish(why)
            self._owner.over(self, why)

    def _send(self, line: bytes) -> None:
        self._counts.sent += len(line)
        self.link.send(None, line, self._common)


def _relayed(waiting: Waiting) -> bool:
    """Whether a request is a host's: what we want to know ourselves is waited for by a `Waiter`."""
    return not waiting.listens and not isinstance(waiting.sink, Waiter)


def _carried(problem: Problem, key: Id) -> Frame | None:
    """The answer to a request in the body of an HTTP error, if there is one."""
    if not problem.frame:
        return None
    frame = read(problem.frame)
    if isinstance(frame, Bad) or frame.kind not in (Kind.ERROR, Kind.RESPONSE):
        return None
    if frame.id == key:
        return frame
    status = problem.status or 0
    if frame.kind is Kind.RESPONSE or status in UNSURE or status >= 500:
        return None
    # Servers that refuse a request before they read its id make one up, or say null.
    return msgspec.structs.replace(frame, id=key)
