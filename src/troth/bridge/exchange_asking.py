"""Questions of an upstream in the middle of a call: whom they go to, and what the upstream hears. Sans-IO.

Rules of this room, beside those of `troth.bridge.exchange`:

1. A question that was taken is answered once: by the host, by others, at its deadline, or when the call ends. Nothing
   answers an upstream that is lost.
2. What nobody can answer is refused at once, never waited for.
3. Nothing stays asked: when a question needs no answer any more, whoever was asked hears so.
4. A legacy upstream's request stays open while its question does. A modern upstream waits for nothing: its next request
   carries the answers and its own state.

Handlers for a call that is parked are in `troth.bridge.exchange_parked`, those for a modern upstream in
`troth.bridge.exchange_rounds`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import msgspec

from troth.bridge import questions, replies
from troth.bridge.errors import ErrorValue
from troth.bridge.exchange_answers import expire, question_due, released
from troth.bridge.exchange_model import (
    GATHERING,
    ROUNDS,
    AnswerUpstream,
    Command,
    Due,
    Park,
    State,
    UpstreamAsked,
    WakeMe,
)
from troth.bridge.exchange_talk import (
    DEADLINE,
    GATHER,
    KEEP,
    SETTLE,
    Talk,
    ask_host,
    ask_others,
    audience,
    next_round,
    reply_to,
    talk_of,
)
from troth.bridge.fresh import error_line, result_line
from troth.bridge.questions import MOST, Question
from troth.bridge.replies import Reply
from troth.register import Era

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from troth.bridge.exchange import Exchange
    from troth.bridge.model import Id


def asked(exchange: Exchange, event: UpstreamAsked) -> tuple[Command, ...]:
    """Takes a request of a legacy upstream, or refuses it. A ping is answered for what it is."""
    frame, call = event.frame, exchange.call
    identity = cast("Id", frame.id)
    if frame.method == "ping":
        return (AnswerUpstream(identity, result_line(identity, {})),)
    if not (call.asks or call.elsewhere):
        return _refused(identity, questions.refused(frame.method, call.upstream_revision))
    talk = talk_of(exchange)
    talk.made += 1
    question = questions.read_request(frame, call.upstream_revision, f"q{talk.made}")
    if isinstance(question, ErrorValue):
        return _refused(identity, question)
    return _taken(exchange, question)


def first(exchange: Exchange) -> tuple[Command, ...]:
    """Asks what the upstream asked outside of calls. The call is sent when that is answered: it may depend on it."""
    talk = talk_of(exchange)
    talk.held = True
    commands: list[Command] = []
    for question in exchange.call.waiting:
        talk.made += 1
        commands += _taken(exchange, msgspec.structs.replace(question, key=f"q{talk.made}"))
    return (*commands, *released(exchange))


def _taken(exchange: Exchange, question: Question) -> tuple[Command, ...]:
    """Gives a question to whoever answers it."""
    if len(talk_of(exchange).open) >= MOST:
        return reply_to(question, replies.expired(question, "too many questions at once"))
    found = audience(exchange, question)
    if isinstance(found, Reply):
        return reply_to(question, found)
    if found is None:
        return ask_others(exchange, (question,))
    return _ASK[exchange.host_era](exchange, question, found)


def _ask_host(exchange: Exchange, question: Question, params: dict[str, object]) -> tuple[Command, ...]:
    """Sends it to a legacy host at once."""
    return ask_host(exchange, {question.key: (question, params)})


def _ask_later(exchange: Exchange, question: Question, params: dict[str, object]) -> tuple[Command, ...]:
    """Puts it in the next round of a modern host."""
    talk = talk_of(exchange)
    if talk.round >= ROUNDS:
        return reply_to(question, replies.expired(question, f"a call has at most {ROUNDS} rounds of questions"))
    if talk.silent or talk.kept is not None:
        return reply_to(question, replies.expired(question))
    talk.open[question.key] = question
    talk.entries[question.key] = questions.entry(question, params)
    return () if exchange.state is State.PARKED else gather_soon(talk)


_ASK: Final[Mapping[Era, Callable[[Exchange, Question, dict[str, object]], tuple[Command, ...]]]] = {
    Era.LEGACY: _ask_host,
    Era.MODERN: _ask_later,
}


def gather_soon(talk: Talk) -> tuple[Command, ...]:
    """Waits a moment for further questions of the same round."""
    if talk.gathering:
        return ()
    talk.gathering = True
    return (WakeMe(GATHER, GATHERING),)


def gathered(exchange: Exchange) -> tuple[Command, ...]:
    """Parks the call with every question that the host is to answer."""
    talk = talk_of(exchange)
    talk.gathering = False
    if talk.round >= ROUNDS:
        return expire(exchange, tuple(talk.entries))
    if not talk.entries:
        return ()
    exchange.move(State.PARKED)
    return (Park(next_round(talk)), WakeMe(DEADLINE, exchange.call.deadline), WakeMe(KEEP, exchange.call.keep))


def due(exchange: Exchange, event: Due) -> tuple[Command, ...]:
    """A timer ran out while the call is not parked."""
    if event.name == GATHER and exchange.state is State.OPEN:
        return gathered(exchange)
    if event.name == SETTLE and talk_of(exchange).held:
        talk_of(exchange).held = False
        return exchange.send({})
    return question_due(exchange, event.name)


def _refused(identity: Id, error: ErrorValue) -> tuple[Command, ...]:
    return (AnswerUpstream(identity, error_line(identity, error.code, error.message, error.data)),)
