"""A call that waits for its modern host to come again with answers. Sans-IO.

While it is parked nothing reaches the host: progress and logs have no request to belong to. One retry wins, and only if
every answer in it can be used; what it leaves unanswered is asked again. A result that comes while the host is away is
kept for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.bridge import replies
from troth.bridge.exchange_answers import expire, question_due, released, settle, withdrawn
from troth.bridge.exchange_asking import gather_soon
from troth.bridge.exchange_model import (
    Command,
    Due,
    HostRetried,
    Refuse,
    State,
    UpstreamAnswered,
    UpstreamLost,
    UpstreamNotified,
    WakeMe,
)
from troth.bridge.exchange_rounds import responses
from troth.bridge.exchange_talk import DEADLINE, KEEP, ask_others, close, talk_of
from troth.bridge.fresh import error_line
from troth.bridge.model import BAD_PARAMS, Bad

if TYPE_CHECKING:
    from troth.bridge.exchange import Exchange
    from troth.bridge.replies import Reply

USED = "params: requestState: already used: another request answered these questions"


def retried(exchange: Exchange, event: HostRetried) -> tuple[Command, ...]:
    """The host came again: the first good retry of the round takes the call over, under its own id and token."""
    talk, call = talk_of(exchange), exchange.call
    if event.round != talk.round:
        return used(exchange, event)
    given = responses(event.frame)
    if isinstance(given, Bad):
        return _refuse(event, given.reason)
    answers: dict[str, Reply] = {}
    for key in talk.open.keys() & talk.shown & given.keys():
        reply = replies.read_entry(talk.open[key], given[key], call.check)
        if isinstance(reply, Bad):
            return _refuse(event, f"params: inputResponses: {key}: {reply.reason}")
        answers[key] = reply
    exchange.adopt(event.frame, event.level)
    exchange.move(State.OPEN)
    talk.asks, talk.silent, talk.shown = event.asks, False, frozenset()
    commands: list[Command] = [WakeMe(DEADLINE, None), WakeMe(KEEP, None)]
    if talk.kept is not None:
        return (*commands, *exchange.handle(talk.kept))
    for key in sorted(answers):
        commands += settle(exchange, key, answers[key])
    for key in [key for key in talk.entries if not talk.open[key].needs <= event.asks]:
        commands += _elsewhere(exchange, key)
    if talk.entries:
        commands += gather_soon(talk)
    return (*commands, *released(exchange))


def _elsewhere(exchange: Exchange, key: str) -> tuple[Command, ...]:
    """A question that the host came again without being able to answer."""
    talk, call = talk_of(exchange), exchange.call
    question = talk.open[key]
    if question.needs <= call.elsewhere:
        del talk.entries[key]
        return ask_others(exchange, (question,))
    return settle(exchange, key, replies.refusal(question, talk.asks | call.elsewhere))


def used(_exchange: Exchange, event: HostRetried) -> tuple[Command, ...]:
    """A retry that comes too late, or for another round."""
    return _refuse(event, USED)


def answered(exchange: Exchange, event: UpstreamAnswered) -> tuple[Command, ...]:
    """The call ended while its host is away: the result is kept, and what was asked needs no answer any more."""
    return _keep(exchange, event, answer=True)


def lost(exchange: Exchange, event: UpstreamLost) -> tuple[Command, ...]:
    """The upstream is gone: the next retry hears so."""
    return _keep(exchange, event, answer=False)


def notified(exchange: Exchange, event: UpstreamNotified) -> tuple[Command, ...]:
    """Of what an upstream tells now, only that it takes a question back is heard."""
    return withdrawn(exchange, event.frame) if event.frame.method == "notifications/cancelled" else ()


def due(exchange: Exchange, event: Due) -> tuple[Command, ...]:
    """A timer ran out while the call is parked."""
    talk = talk_of(exchange)
    if event.name == KEEP:
        return exchange.drop("the host did not come again")
    if event.name == DEADLINE:
        talk.silent = True
        return expire(exchange, tuple(talk.entries))
    return question_due(exchange, event.name)


def _keep(exchange: Exchange, event: UpstreamAnswered | UpstreamLost, *, answer: bool) -> tuple[Command, ...]:
    talk = talk_of(exchange)
    if talk.kept is not None:
        return ()
    talk.kept = event
    exchange.flying = False
    return (*close(exchange, answer=answer), WakeMe(DEADLINE, None))


def _refuse(event: HostRetried, words: str) -> tuple[Command, ...]:
    return (Refuse(error_line(event.frame.id, BAD_PARAMS, words), BAD_PARAMS),)
