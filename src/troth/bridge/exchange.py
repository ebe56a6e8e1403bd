"""One relayed request between a host and an upstream as a state machine: events in, commands out. Sans-IO.

Rules of this room:

1. An exchange ends once, by one `Finish`. After it no event gives a command.
2. A request is sent once, and again only where a modern upstream asked for that: with its answers and its own state, or
   after a visit to an address. Whatever is lost is an error, never a second run.
3. What an event does is in two tables: `TABLE` by state, and `PAIRS` for the pairs of eras in which the same event
   does something else. An event without a row in `TABLE` does nothing there.
4. A message beside the answer reaches the host only where the host asked for it: progress by a token, a log message
   by a level.

States: `NEW` until the request is sent, `OPEN` while the upstream works, `ASKING` while a legacy host has a question to
answer, or others have one of a modern upstream, `PARKED` while a modern host is to come again with answers, `DONE`.
What questions do is in ``exchange_asking`` (a legacy upstream asks), ``exchange_rounds`` (a modern one),
``exchange_answers`` and ``exchange_parked``. Where nobody can be asked they are refused at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import msgspec

from troth.bridge import exchange_answers as answers
from troth.bridge import exchange_asking as asking
from troth.bridge import exchange_parked as parked
from troth.bridge import exchange_rounds as rounds
from troth.bridge import exchange_talk as talking
from troth.bridge import relay
from troth.bridge.errors import INTERNAL, URL_REQUIRED, ErrorValue, code, translated
from troth.bridge.exchange_model import (
    Called,
    CancelUpstream,
    Command,
    Due,
    Event,
    Finish,
    HostAnswered,
    HostCalled,
    HostCancelled,
    HostGone,
    HostRetried,
    OthersAnswered,
    Round,
    SendHost,
    SendUpstream,
    State,
    Told,
    UpstreamAnswered,
    UpstreamAsked,
    UpstreamLost,
    UpstreamNotified,
)
from troth.bridge.fresh import error_line
from troth.bridge.levels import peek, peek_meta
from troth.bridge.model import Bad, Frame, Kind
from troth.bridge.outgoing import Cause, Outgoing
from troth.register import Era, register

if TYPE_CHECKING:
    from troth.bridge.exchange_talk import Talk
    from troth.bridge.model import Id

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Severities of log messages, least first (RFC 5424; `LoggingLevel` of every revision)."""

_EFFECTS = "the call may have had effects"

LOST: Mapping[Cause, str] = {
    Cause.DOWN: "upstream {name} is not reachable: {why}",
    Cause.BROKEN: "upstream session lost: {name}: {why}; " + _EFFECTS,
    Cause.TIMEOUT: "upstream {name} gave no answer in time: {why}; " + _EFFECTS,
    Cause.MALFORMED: "upstream {name} sent something that is no answer: {why}; " + _EFFECTS,
    Cause.TASK: "the task of upstream {name} is lost: {why}; it may have had effects",
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


class Exchange:
    """One relayed request: ``tools/call``, ``prompts/get``, ``resources/read`` or ``completion/complete``.

    Attributes:
        call: The request.
        id: The host's id of it.
        host_era: Era of the host.
        upstream_era: Era of the upstream.
        state: Where it is.
        token: The host's progress token; None if it asked for no progress.
        level: Least severity of log messages that the host wants now, see `Called`; a legacy host may change it while
            its request runs.
        flying: Whether a request is with the upstream.
        talk: Questions of the upstream; None before the first.
    """

    __slots__ = (
        "_pair",
        "_progress",
        "_rows",
        "call",
        "flying",
        "host_era",
        "id",
        "level",
        "state",
        "talk",
        "token",
        "upstream_era",
    )

    def __init__(self, call: Called) -> None:
        self.call = call
        self.level = call.level
        self.state = State.NEW
        self._rows = _ROWS[State.NEW]
        self.id = cast("Id", call.frame.id)
        self.host_era = _era(call.host_revision)
        self.upstream_era = _era(call.upstream_revision)
        self._pair = _PAIR[self.host_era, self.upstream_era]
        found = peek_meta(call.frame, "progressToken")
        self.token = None if isinstance(found, Bad) else found.get("progressToken")
        self._progress: float | None = None
        self.flying = False
        self.talk: Talk | None = None

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

    def adopt(self, frame: Frame, level: str | None) -> None:
        """Goes on under another request of the host: its id, its progress token or none, its level."""
        self.id = cast("Id", frame.id)
        found = peek_meta(frame, "progressToken")
        self.token = None if isinstance(found, Bad) else found.get("progressToken")
        self.level = level
        self._progress = None

    def send(self, carried: Mapping[str, object]) -> tuple[Command, ...]:
        """Sends the request.

        Args:
            carried: Members of ``params`` that carry answers.
        """
        self.flying = True
        call = self.call
        made = relay.outgoing(call.frame, call.upstream_revision, params={**call.params, **carried})
        outgoing = Outgoing(
            frame=made.frame,
            params=made.params,
            drop=made.drop,
            drop_meta=made.drop_meta,
            progress=self.token is not None,
            level=self.level,
            name=call.name,
            headers=call.headers,
            timeout=call.timeout,
        )
        return (SendUpstream(outgoing),)

    def drop(self, reason: str) -> tuple[Command, ...]:
        """Ends it without an answer; the upstream hears why."""
        flying = self.flying
        closed = talking.close(self, answer=flying or (self.talk is not None and self.talk.held))
        finish = self.finish(None)
        return (*closed, CancelUpstream(reason), finish) if flying else (*closed, finish)

    def finish(self, line: bytes | None, code: int | None = None, round: Round | None = None) -> Finish:  # noqa: A002
        """Ends it."""
        self.move(State.DONE)
        return Finish(line, code, round)

    def error(self, error: ErrorValue) -> Finish:
        """Ends it with an error."""
        return self.finish(error_line(self.id, error.code, error.message, error.data), error.code)

    def fail(self, words: str) -> tuple[Command, ...]:
        """Ends it with an error of ours."""
        return (self.error(ErrorValue(INTERNAL, words)),)

    def broke(self, words: str) -> tuple[Command, ...]:
        """Ends it because the upstream broke the protocol."""
        return self.fail(f"upstream {self.call.upstream} broke the protocol: {words}; {_EFFECTS}")


def _called(exchange: Exchange, _event: HostCalled) -> tuple[Command, ...]:
    exchange.move(State.OPEN)
    resume = exchange.call.resume
    if exchange.call.waiting:
        return asking.first(exchange)
    return rounds.volunteered(exchange) if resume is None else rounds.resumed(exchange, resume)


def _cancelled(exchange: Exchange, event: HostCancelled) -> tuple[Command, ...]:
    return exchange.drop(event.reason)


def _abandoned(exchange: Exchange, _event: HostGone) -> tuple[Command, ...]:
    """A modern host cancels by going (2026-07-28 basic/utilities/cancellation)."""
    return exchange.drop("the host disconnected")


def _answered(exchange: Exchange, event: UpstreamAnswered) -> tuple[Command, ...]:
    exchange.flying = False
    if exchange.talk is None:
        return _ended(exchange, event.frame)
    before = (*answers.completed(exchange), *talking.close(exchange, answer=True))
    return (*before, *_ended(exchange, event.frame))


def _ended(exchange: Exchange, frame: Frame) -> tuple[Command, ...]:
    call = exchange.call
    if frame.kind is Kind.ERROR:
        asked = peek(call.frame, "uri")
        uri = None if isinstance(asked, Bad) else asked.get("uri")
        error = translated(frame, call.frame.method, call.upstream_revision, call.host_revision, uri)
        if code(frame) == URL_REQUIRED:
            return rounds.visits(exchange, frame, error)
        return (exchange.error(error),)
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
        return _unfinished(exchange, frame) or exchange.broke(line.reason)
    return (exchange.finish(line),)


def _unfinished(exchange: Exchange, frame: Frame) -> tuple[Command, ...] | None:
    """What follows from a result that does not end the call; None where nothing may."""
    return rounds.incomplete(exchange, frame) if exchange.upstream_era is Era.MODERN else None


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
    exchange.flying = False
    closed = talking.close(exchange, answer=False)
    return (*closed, *exchange.fail(LOST[lost.cause].format(name=exchange.call.upstream, why=lost.words)))


Handler = Callable[[Exchange, Any], tuple[Command, ...]]
Rows = Mapping[type[Event], Handler]

TABLE: Mapping[tuple[State, type[Event]], Handler] = {
    (State.NEW, HostCalled): _called,
    (State.NEW, HostCancelled): _cancelled,
    (State.NEW, HostGone): _nothing,
    (State.NEW, UpstreamLost): _lost,
    (State.OPEN, HostCancelled): _cancelled,
    (State.OPEN, HostGone): _nothing,
    (State.OPEN, HostRetried): parked.used,
    (State.OPEN, OthersAnswered): answers.others_answered,
    (State.OPEN, UpstreamAnswered): _answered,
    (State.OPEN, UpstreamAsked): asking.asked,
    (State.OPEN, UpstreamNotified): _notified,
    (State.OPEN, UpstreamLost): _lost,
    (State.OPEN, Due): asking.due,
    (State.ASKING, HostAnswered): answers.host_answered,
    (State.ASKING, HostCancelled): _cancelled,
    (State.ASKING, HostGone): _nothing,
    (State.ASKING, HostRetried): parked.used,
    (State.ASKING, OthersAnswered): answers.others_answered,
    (State.ASKING, UpstreamAnswered): _answered,
    (State.ASKING, UpstreamAsked): asking.asked,
    (State.ASKING, UpstreamNotified): _notified,
    (State.ASKING, UpstreamLost): _lost,
    (State.ASKING, Due): asking.due,
    (State.PARKED, HostCancelled): _cancelled,
    (State.PARKED, HostRetried): parked.retried,
    (State.PARKED, OthersAnswered): answers.others_answered,
    (State.PARKED, UpstreamAnswered): parked.answered,
    (State.PARKED, UpstreamAsked): asking.asked,
    (State.PARKED, UpstreamNotified): parked.notified,
    (State.PARKED, UpstreamLost): parked.lost,
    (State.PARKED, Due): parked.due,
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
    "notifications/cancelled": answers.withdrawn,
    "notifications/elicitation/complete": answers.complete_notified,
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
