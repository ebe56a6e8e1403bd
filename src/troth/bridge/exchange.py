"""One relayed request between a host and an upstream as a state machine: events in, commands out. Sans-IO.

Rules of this room:

1. An exchange ends once, by one `Finish`. After it no event gives a command.
2. A request is sent once. Whatever is lost is an error, never a second run.
3. What an event does is in two tables: `TABLE` by state, and `PAIRS` for the pairs of eras in which the same event
   does something else. An event without a row in `TABLE` does nothing there.
4. A message beside the answer reaches the host only where the host asked for it: progress by a token, a log message
   by a level.

States: `NEW` until the request is sent, `OPEN` while the upstream works, `ASKING` while a legacy host has a question
to answer, `PARKED` while a modern host is to come again with answers, `DONE`. Nothing enters `ASKING` and `PARKED` as
long as no host can be asked; their rows say what ends them all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import msgspec

from troth.bridge import relay
from troth.bridge.errors import INTERNAL, not_supported, translated, unknown_method
from troth.bridge.exchange_model import (
    AnswerUpstream,
    Called,
    CancelUpstream,
    Command,
    Event,
    Finish,
    HostCalled,
    HostCancelled,
    HostGone,
    SendHost,
    SendUpstream,
    Told,
    UpstreamAnswered,
    UpstreamAsked,
    UpstreamLost,
    UpstreamNotified,
)
from troth.bridge.fresh import error_line, result_line
from troth.bridge.levels import peek, peek_meta
from troth.bridge.model import Bad, Frame, Kind
from troth.bridge.outgoing import Cause, Outgoing
from troth.register import Era, Side, register

if TYPE_CHECKING:
    from troth.bridge.model import Id

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Severities of log messages, least first (RFC 5424; `LoggingLevel` of every revision)."""

_EFFECTS = "the call may have had effects"

LOST: Mapping[Cause, str] = {
    Cause.DOWN: "upstream {name} is not reachable: {why}",
    Cause.BROKEN: "upstream session lost: {name}: {why}; " + _EFFECTS,
    Cause.TIMEOUT: "upstream {name} gave no answer in time: {why}; " + _EFFECTS,
    Cause.MALFORMED: "upstream {name} sent something that is no answer: {why}; " + _EFFECTS,
    Cause.REFUSED: "upstream {name} refused the call: {why}",
}
"""What a host is told of a loss, always as an internal error: no revision has a code for what is behind a server. Only
what was surely not processed goes without the warning."""

_RANKS: Mapping[str | None, int] = {level: rank for rank, level in enumerate(LEVELS)}
_ALL, _NONE = 0, len(LEVELS)
_UNASKED: Mapping[Era, int] = {Era.LEGACY: _ALL, Era.MODERN: _NONE}
"""Least severity for a host that named no level."""

_NO_NUMBER = b"null"
_read_number = msgspec.json.Decoder(int | float).decode


@cache
def _era(revision: str) -> Era:
    return register().era(revision)


class State(Enum):
    """Where an exchange is."""

    NEW = "new"
    OPEN = "open"
    ASKING = "asking"
    PARKED = "parked"
    DONE = "done"


class Exchange:
    """One relayed request: ``tools/call``, ``prompts/get``, ``resources/read`` or ``completion/complete``.

    Attributes:
        call: The request.
        id: The host's id of it.
        host_era: Era of the host.
        state: Where it is.
        token: The host's progress token; None if it asked for no progress.
        level: Least severity of log messages that the host wants now, see `Called`; a legacy host may change it while
            its request runs.
    """

    __slots__ = ("_pair", "_progress", "_rows", "call", "host_era", "id", "level", "state", "token")

    def __init__(self, call: Called) -> None:
        self.call = call
        self.level = call.level
        self.state = State.NEW
        self._rows = _ROWS[State.NEW]
        self.id = cast("Id", call.frame.id)
        self.host_era = _era(call.host_revision)
        self._pair = _PAIR[self.host_era, _era(call.upstream_revision)]
        found = peek_meta(call.frame, "progressToken")
        self.token = None if isinstance(found, Bad) else found.get("progressToken")
        self._progress: float | None = None

    @property
    def done(self) -> bool:
        """Whether it ended."""
        return self.state is State.DONE

    def handle(self, event: Event) -> tuple[Command, ...]:
        """Takes an event and says what is to be done, in this order."""
        sort = type(event)
        handler = self._rows.get(sort)
        return () if handler is None else self._pair.get(sort, handler)(self, event)

    def move(self, state: State) -> None:
        """Goes to another state."""
        self.state = state
        self._rows = _ROWS[state]

    def risen(self, progress: float) -> bool:
        """Whether progress increased, which is then kept (rule: values that do not increase are not passed on)."""
        if self._progress is not None and progress <= self._progress:
            return False
        self._progress = progress
        return True

    def finish(self, line: bytes | None, code: int | None = None) -> Finish:
        """Ends it."""
        self.move(State.DONE)
        return Finish(line, code)

    def fail(self, words: str) -> tuple[Command, ...]:
        """Ends it with an error of ours."""
        return (self.finish(error_line(self.id, INTERNAL, words), INTERNAL),)


def _called(exchange: Exchange, _event: HostCalled) -> tuple[Command, ...]:
    exchange.move(State.OPEN)
    call = exchange.call
    made = relay.outgoing(call.frame, call.upstream_revision, params=call.params)
    outgoing = Outgoing(
        frame=made.frame,
        params=made.params,
        drop=made.drop,
        drop_meta=made.drop_meta,
        progress=exchange.token is not None,
        level=exchange.level,
        name=call.name,
        headers=call.headers,
        timeout=call.timeout,
    )
    return (SendUpstream(outgoing),)


def _cancelled(exchange: Exchange, event: HostCancelled) -> tuple[Command, ...]:
    return _dropped(exchange, event.reason)


def _abandoned(exchange: Exchange, _event: HostGone) -> tuple[Command, ...]:
    """A modern host cancels by going (2026-07-28 basic/utilities/cancellation)."""
    return _dropped(exchange, "the host disconnected")


def _dropped(exchange: Exchange, reason: str) -> tuple[Command, ...]:
    sent = exchange.state is not State.NEW
    finish = exchange.finish(None)
    return (CancelUpstream(reason), finish) if sent else (finish,)


def _answered(exchange: Exchange, event: UpstreamAnswered) -> tuple[Command, ...]:
    call, frame = exchange.call, event.frame
    if frame.kind is Kind.ERROR:
        asked = peek(call.frame, "uri")
        uri = None if isinstance(asked, Bad) else asked.get("uri")
        error = translated(frame, call.frame.method, call.upstream_revision, call.host_revision, uri)
        return (exchange.finish(error_line(exchange.id, error.code, error.message, error.data), error.code),)
    line = relay.answer(
        frame,
        exchange.id,
        method=call.frame.method,
        source=call.upstream_revision,
        target=call.host_revision,
        prefix=call.prefix,
        inline=call.inline_links,
    )
    if isinstance(line, Bad):
        return exchange.fail(f"upstream {call.upstream} broke the protocol: {line.reason}; {_EFFECTS}")
    return (exchange.finish(line),)


def _refused(exchange: Exchange, event: UpstreamAsked) -> tuple[Command, ...]:
    """Answers a question that nobody can answer, at once. A ping is answered for what it is."""
    frame = event.frame
    id = cast("Id", frame.id)  # noqa: A001 - the name of the member; a request has one
    if frame.method == "ping":
        return (AnswerUpstream(id, result_line(id, {})),)
    rows = register().gating(frame.method, exchange.call.upstream_revision)
    missing = next((row.path for row in rows if row.side is Side.CLIENT), None)
    error = unknown_method(frame.method) if missing is None else not_supported(frame.method, missing)
    return (AnswerUpstream(id, error_line(id, error.code, error.message, error.data)),)


def _nothing(_exchange: Exchange, _event: Event) -> tuple[Command, ...]:
    return ()


def _notified(exchange: Exchange, event: UpstreamNotified) -> tuple[Command, ...]:
    make = NOTIFICATIONS.get(event.frame.method)
    return () if make is None else make(exchange, event.frame)


def _progress(exchange: Exchange, frame: Frame) -> tuple[Command, ...]:
    raw = (frame.parts or {}).get("progress", _NO_NUMBER)
    try:
        risen = exchange.risen(_read_number(raw))
    except msgspec.DecodeError:
        return ()
    return _told(exchange, frame, Told.PROGRESS) if risen else ()


def _log(exchange: Exchange, frame: Frame) -> tuple[Command, ...]:
    found = peek(frame, "level")
    rank = -1 if isinstance(found, Bad) else _RANKS.get(found.get("level"), -1)
    least = _UNASKED[exchange.host_era] if exchange.level is None else _RANKS.get(exchange.level, _NONE)
    return _told(exchange, frame, Told.LOG) if rank >= least else ()


def _told(exchange: Exchange, frame: Frame, sort: Told) -> tuple[Command, ...]:
    call = exchange.call
    line = relay.notification(frame, target=call.host_revision, prefix=call.prefix, token=exchange.token)
    return () if line is None else (SendHost(line, sort),)


def _lost(exchange: Exchange, event: UpstreamLost) -> tuple[Command, ...]:
    lost = event.lost
    return exchange.fail(LOST[lost.cause].format(name=exchange.call.upstream, why=lost.words))


Handler = Callable[[Exchange, Any], tuple[Command, ...]]
Rows = Mapping[type[Event], Handler]

TABLE: Mapping[tuple[State, type[Event]], Handler] = {
    (State.NEW, HostCalled): _called,
    (State.NEW, HostCancelled): _cancelled,
    (State.NEW, HostGone): _nothing,
    (State.NEW, UpstreamLost): _lost,
    (State.OPEN, HostCancelled): _cancelled,
    (State.OPEN, HostGone): _nothing,
    (State.OPEN, UpstreamAnswered): _answered,
    (State.OPEN, UpstreamAsked): _refused,
    (State.OPEN, UpstreamNotified): _notified,
    (State.OPEN, UpstreamLost): _lost,
    (State.ASKING, HostCancelled): _cancelled,
    (State.ASKING, HostGone): _nothing,
    (State.ASKING, UpstreamAnswered): _answered,
    (State.ASKING, UpstreamNotified): _notified,
    (State.ASKING, UpstreamLost): _lost,
    (State.PARKED, HostCancelled): _cancelled,
    (State.PARKED, UpstreamLost): _lost,
}
"""(state, event) -> what happens, for every pair of eras without a row of its own in `PAIRS`."""

PAIRS: Mapping[tuple[Era, Era, type[Event]], Handler] = {
    (Era.MODERN, Era.LEGACY, HostGone): _abandoned,
    (Era.MODERN, Era.MODERN, HostGone): _abandoned,
    (Era.LEGACY, Era.MODERN, UpstreamAsked): _nothing,
    (Era.MODERN, Era.MODERN, UpstreamAsked): _nothing,
}
"""(era of the host, of the upstream, event) -> what happens instead, in every state in which `TABLE` has the event."""

NOTIFICATIONS: Mapping[str, Callable[[Exchange, Frame], tuple[Command, ...]]] = {
    "notifications/message": _log,
    "notifications/progress": _progress,
}
"""Notifications that belong to a request -> how they reach the host. Others do not."""

_ROWS: Mapping[State, Rows] = {
    state: {event: handler for (at, event), handler in TABLE.items() if at is state} for state in State
}
_PAIR: Mapping[tuple[Era, Era], Rows] = {
    (host, upstream): {event: handler for (*eras, event), handler in PAIRS.items() if eras == [host, upstream]}
    for host in Era
    for upstream in Era
}
