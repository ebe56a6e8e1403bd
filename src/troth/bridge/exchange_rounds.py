"""Rounds of questions of a modern upstream, and visits to an address. Sans-IO.

A modern upstream asks by a result that is not complete, and waits for nothing: the next request carries the answers. A
legacy one may refuse a call until the person has been at an address (-32042): that call is sent anew once.

Source: 2026-07-28/basic/utilities/mrtr; 2025-11-25/client/elicitation, URL mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from msgspec import Raw

from troth.bridge import errors, questions, replies
from troth.bridge.asks import URL
from troth.bridge.errors import INTERNAL, ErrorValue
from troth.bridge.exchange_answers import carried, proceed
from troth.bridge.exchange_model import (
    MOST_STATE,
    ROUNDS,
    Command,
    Expected,
    Round,
    State,
)
from troth.bridge.exchange_talk import ask_host, ask_others, audience, expected_of, talk_of
from troth.bridge.fresh import result_line
from troth.bridge.levels import members, opened, peek
from troth.bridge.model import Bad
from troth.bridge.questions import ELIGIBLE, Question
from troth.register import Era

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.bridge.exchange import Exchange
    from troth.bridge.model import Frame, Id

_NO_ENTRIES: Final = Raw(b"{}")


def incomplete(exchange: Exchange, frame: Frame) -> tuple[Command, ...] | None:
    """What follows from a result that is ``input_required``; None for one that is not, or asks what it must not."""
    found = opened(frame)
    peeked = found if isinstance(found, Bad) else peek(found, "resultType", "requestState", "inputRequests")
    if isinstance(peeked, Bad) or peeked.get("resultType") != "input_required":
        return None
    call = exchange.call
    entries = questions.read_entries(peeked.get("inputRequests", _NO_ENTRIES), call.upstream_revision)
    if isinstance(entries, Bad):
        return exchange.broke(entries.reason)
    state = peeked.get("requestState")
    if call.frame.method not in ELIGIBLE or not (entries or state is not None):
        return None
    if state is not None and len(state) > MOST_STATE:
        return exchange.broke(f"its requestState has more than {MOST_STATE} characters")
    talk = talk_of(exchange)
    if talk.round >= ROUNDS:
        return exchange.broke(f"it asked in more than {ROUNDS} rounds")
    talk.state, talk.answers = state, {}
    return _ask_all(exchange, entries)


def _ask_all(exchange: Exchange, entries: tuple[Question, ...]) -> tuple[Command, ...]:
    talk = talk_of(exchange)
    hosts: dict[str, tuple[Question, dict[str, object]]] = {}
    others: list[Question] = []
    for question in entries:
        found = audience(exchange, question)
        if isinstance(found, dict):
            hosts[question.key] = (question, found)
        elif found is None:
            others.append(question)
        elif found.error is not None:
            return exchange.broke(f"it asked what was not declared to it: {found.error.message}")
        else:
            talk.answers[question.key] = found.result
    commands: tuple[Command, ...] = ()
    if hosts and exchange.host_era is Era.LEGACY:
        commands += ask_host(exchange, hosts)
    elif hosts:
        talk.open |= {key: question for key, (question, _) in hosts.items()}
        talk.entries = {key: questions.entry(question, params) for key, (question, params) in hosts.items()}
    if others:
        exchange.move(State.ASKING)
        commands += ask_others(exchange, tuple(others))
    return commands or proceed(exchange)


def resumed(exchange: Exchange, resume: Round) -> tuple[Command, ...]:
    """A modern host answers a round of a modern upstream, or comes again after a visit: the request is sent on.

    Keys that were not asked are ignored; what is missing the upstream asks for again.
    """
    talk, call = talk_of(exchange), exchange.call
    talk.round = resume.number
    given = responses(call.frame)
    if isinstance(given, Bad):
        return (exchange.error(ErrorValue(given.code, given.reason)),)
    answers: dict[str, object] = {}
    for key, expected in resume.expected.items():
        if key in given:
            reply = replies.read_entry(remembered(key, expected, call.upstream_revision), given[key])
            if isinstance(reply, Bad):
                return (exchange.error(ErrorValue(reply.code, f"inputResponses: {reply.reason}")),)
            answers[key] = reply.result
    if resume.reissue:
        talk.reissued = True
        if not all(_accepted(answers.get(key)) for key in resume.expected):
            return exchange.fail(f"upstream {call.upstream} needs a visit to an address, which was not accepted")
        return exchange.send({})
    talk.state, talk.answers = resume.state, {**resume.answers, **answers}
    return exchange.send(carried(talk))


def volunteered(exchange: Exchange) -> tuple[Command, ...]:
    """Sends the request on, with answers that a modern host gives before it is asked.

    They pass between modern peers, where keys mean the same on both sides, and the upstream ignores those that it does
    not know. What the operator answers is not left to the host.
    """
    call = exchange.call
    modern = exchange.host_era is exchange.upstream_era is Era.MODERN
    if not modern or not call.asks or call.elsewhere or call.frame.method not in ELIGIBLE:
        return exchange.send({})
    given = responses(call.frame)
    if isinstance(given, Bad):
        return (exchange.error(ErrorValue(given.code, given.reason)),)
    return exchange.send({"inputResponses": given} if given else {})


def input_required(identity: Id, asked: Round, state: str) -> bytes:
    """The answer to a modern host that is to come again with answers, on one line.

    Args:
        identity: Id of its request.
        asked: The round.
        state: Our ``requestState``: everything that the retry must bring back, sealed.
    """
    result: dict[str, object] = {"resultType": "input_required", "requestState": state}
    return result_line(identity, result | {"inputRequests": asked.entries} if asked.entries else result)


def responses(frame: Frame) -> Mapping[str, Raw] | Bad:
    """The answers in the request of a modern host, by key."""
    raw = (frame.parts or {}).get("inputResponses")
    return {} if raw is None else members(raw, "params: inputResponses")


def _accepted(answer: object) -> bool:
    return cast("Mapping[str, object]", answer or {}).get("action") == "accept"


def remembered(key: str, expected: Expected, revision: str) -> Question:
    """As much of a question as reading its answer needs."""
    fields = {name: {"default": raw} for name, raw in expected.defaults.items()}
    return questions.remembered(key, expected.kind, revision, fields)


def visits(exchange: Exchange, frame: Frame, error: ErrorValue) -> tuple[Command, ...]:
    """What follows from an error -32042: a round for a modern host, the error for one that knows it, words for others.

    Args:
        exchange: The exchange.
        frame: The error, as it came.
        error: The same as the host's revision has it.
    """
    call, talk = exchange.call, talk_of(exchange)
    plain = ErrorValue(INTERNAL, error.message)
    found = questions.read_addresses(errors.data_of(frame).get("elicitations", _NO_ENTRIES), call.upstream_revision)
    if isinstance(found, Bad) or URL not in talk.asks or talk.reissued or talk.round >= ROUNDS:
        return (exchange.error(plain),)
    told: dict[str, dict[str, object]] = {}
    for question in found:
        params = audience(exchange, question)
        if not isinstance(params, dict):
            return (exchange.error(plain),)
        told[question.key] = params
    if exchange.host_era is Era.LEGACY:
        data = {**errors.data_of(frame), "elicitations": list(told.values())}
        return (exchange.error(ErrorValue(error.code, error.message, data)),)
    entries = {question.key: questions.entry(question, told[question.key]) for question in found}
    expected = {question.key: expected_of(question) for question in found}
    asked = Round(entries=entries, number=talk.round + 1, expected=expected, reissue=True)
    return (exchange.finish(None, round=asked),)
