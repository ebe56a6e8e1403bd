"""Answers to questions of a call, and what follows when all are there. Sans-IO."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.bridge import replies
from troth.bridge.exchange_model import (
    SETTLING,
    Command,
    HostAnswered,
    Note,
    OthersAnswered,
    SendHost,
    State,
    Told,
    Unask,
    WakeMe,
)
from troth.bridge.exchange_talk import (
    LATE,
    OVER,
    QUESTION,
    SETTLE,
    Talk,
    next_round,
    reply_to,
    take,
    take_back,
    talk_of,
)
from troth.bridge.fresh import notification_line
from troth.bridge.levels import peek
from troth.bridge.model import Bad
from troth.bridge.tree import text
from troth.register import Era

if TYPE_CHECKING:
    from troth.bridge.exchange import Exchange
    from troth.bridge.model import Frame
    from troth.bridge.replies import Reply


def host_answered(exchange: Exchange, event: HostAnswered) -> tuple[Command, ...]:
    """A legacy host answered. What it answered before, or to nothing, is ignored."""
    talk, call = talk_of(exchange), exchange.call
    question = talk.open.get(event.key)
    if question is None or event.key in talk.others or exchange.host_era is Era.MODERN:
        return ()
    reply = replies.read_frame(question, event.frame, call.host_revision, call.check)
    if isinstance(reply, Bad):
        reply = replies.malformed(question, reply)
    visit = talk.visits.get(event.key)
    if visit and question.id is None and (reply.result or {}).get("action") == "accept":
        talk.complete.append(visit)
    return (WakeMe(QUESTION + event.key, None), *settle(exchange, event.key, reply))


def others_answered(exchange: Exchange, event: OthersAnswered) -> tuple[Command, ...]:
    """Others answered."""
    if event.key not in talk_of(exchange).others:
        return ()
    return (WakeMe(QUESTION + event.key, None), *settle(exchange, event.key, event.reply), *released(exchange))


def settle(exchange: Exchange, key: str, reply: Reply) -> tuple[Command, ...]:
    """Gives the upstream the answer to an open question, or keeps it until all of the round are there."""
    talk = talk_of(exchange)
    question = take(exchange, key)
    notes = (Note(key, reply.notes),) if reply.notes else ()
    if question.id is not None:
        return (*notes, *reply_to(question, reply))
    if reply.error is not None:
        return (*notes, *take_back(exchange, OVER), exchange.error(reply.error))
    talk.answers[key] = reply.result
    return notes if talk.open.keys() - talk.entries.keys() else (*notes, *proceed(exchange))


def released(exchange: Exchange) -> tuple[Command, ...]:
    """Has a call sent that was held back, soon after nothing is asked any more that came before it."""
    talk = talk_of(exchange)
    ready = talk.held and not talk.open and exchange.state is State.OPEN
    return (WakeMe(SETTLE, SETTLING),) if ready else ()


def expire(exchange: Exchange, keys: tuple[str, ...]) -> tuple[Command, ...]:
    """Nobody answered these open questions in time."""
    talk = talk_of(exchange)
    commands: list[Command] = []
    for key in keys:
        commands += settle(exchange, key, replies.expired(talk.open[key]))
    return (*commands, *released(exchange))


def proceed(exchange: Exchange) -> tuple[Command, ...]:
    """All that need not go to a modern host is answered: the rest does, or the upstream gets the answers."""
    talk = talk_of(exchange)
    if talk.entries:
        return (exchange.finish(None, round=next_round(talk)),)
    talk.round += 1
    exchange.move(State.OPEN)
    return exchange.send(carried(talk))


def carried(talk: Talk) -> dict[str, object]:
    """Members of params that carry answers and the upstream's own state."""
    found: dict[str, object] = {}
    if talk.answers:
        found["inputResponses"] = talk.answers
    if talk.state is not None:
        found["requestState"] = talk.state
    return found


def question_due(exchange: Exchange, name: str) -> tuple[Command, ...]:
    """The deadline of one question passed."""
    key = name.removeprefix(QUESTION)
    talk = talk_of(exchange)
    if key == name or key not in talk.open or key in talk.entries:
        return ()
    return (Unask((key,), LATE), *expire(exchange, (key,)))


def withdrawn(exchange: Exchange, frame: Frame) -> tuple[Command, ...]:
    """A legacy upstream takes a question back: it gets no answer, and whoever has the question hears so."""
    talk = exchange.talk
    found = peek(frame, "requestId")
    if talk is None or isinstance(found, Bad):
        return ()
    wanted = found.get("requestId")
    key = next((key for key, question in talk.open.items() if question.id == wanted), None)
    if key is None:
        return ()
    with_somebody = exchange.host_era is Era.LEGACY or key in talk.others
    take(exchange, key)
    told = (WakeMe(QUESTION + key, None), Unask((key,), "the upstream took it back")) if with_somebody else ()
    return (*told, *released(exchange))


def completed(exchange: Exchange) -> tuple[Command, ...]:
    """Tells a legacy host of the visits that a modern upstream went on from."""
    talk = talk_of(exchange)
    done, talk.complete = talk.complete, []
    return tuple(_completion(visit) for visit in done)


def complete_notified(exchange: Exchange, frame: Frame) -> tuple[Command, ...]:
    """An upstream says that a visit is complete: only the host that was asked hears it, and only of its own."""
    visit = text((frame.parts or {}).get("elicitationId"))
    talk = exchange.talk
    return (_completion(visit),) if visit and talk is not None and visit in talk.visits.values() else ()


def _completion(visit: str) -> SendHost:
    return SendHost(notification_line("notifications/elicitation/complete", {"elicitationId": visit}), Told.COMPLETE)
