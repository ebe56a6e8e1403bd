"""What is asked in the course of one call, and of whom. Sans-IO; shared by the rooms that handle questions.

A question that was taken is *open* until the upstream has its answer. It is with the host, with *others* (the broker,
configured roots), or waits in *entries* for the next round of a modern host.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final, cast

from msgspec import Raw

from troth.bridge import questions, replies
from troth.bridge.asks import NOTHING
from troth.bridge.exchange_model import (
    AnswerUpstream,
    AskHost,
    AskOthers,
    Command,
    Expected,
    HostQuestion,
    Leave,
    Round,
    State,
    Unask,
    UpstreamLost,
    WakeMe,
)
from troth.bridge.model import Bad
from troth.bridge.questions import ELIGIBLE, Question, QuestionKind
from troth.bridge.write import written
from troth.register import Era

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.bridge.asks import Asks
    from troth.bridge.exchange import Exchange
    from troth.bridge.exchange_model import UpstreamAnswered
    from troth.bridge.model import Id
    from troth.bridge.replies import Reply

GATHER: Final = "gather"
DEADLINE: Final = "deadline"
KEEP: Final = "keep"
SETTLE: Final = "settle"
QUESTION: Final = "question "
"""Names of timers: until a round is sent; until a round is answered; until a parked call is given up; until a call is
sent that was held back; and before the key of a question that has a deadline of its own."""

LATE: Final = "no answer in time"
OVER: Final = "the call is over"

_MADE: Final = 16
"""Bytes of an id that is made for a visit: beyond guessing, and never met twice."""


class Talk:
    """The questions of one exchange. Made with the first one.

    Attributes:
        asks: What the host can be asked.
        open: Questions without an answer, by key.
        others: Keys of those that others answer.
        entries: What a modern host is to be shown, by key, of those that are open.
        shown: Keys of the round that the host has now.
        answers: Answers of this round to a modern upstream, by key.
        state: The modern upstream's own state.
        round: Number of the last round.
        made: Keys made.
        gathering: Whether questions are being gathered.
        silent: Whether the host let a deadline pass.
        kept: How the call ended while its host was away.
        visits: Ids of visits to an address that the host knows, by key.
        complete: Ids of visits that are complete when the upstream says more.
        reissued: Whether the call was sent anew after a visit.
        held: Whether the call is not sent yet, since its host is to answer first what was asked before it.
    """

    __slots__ = (
        "answers",
        "asks",
        "complete",
        "entries",
        "gathering",
        "held",
        "kept",
        "made",
        "open",
        "others",
        "reissued",
        "round",
        "shown",
        "silent",
        "state",
        "visits",
    )

    def __init__(self, asks: Asks) -> None:
        self.asks = asks
        self.open: dict[str, Question] = {}
        self.others: set[str] = set()
        self.entries: dict[str, object] = {}
        self.shown: frozenset[str] = frozenset()
        self.answers: dict[str, object] = {}
        self.state: str | None = None
        self.round = 0
        self.made = 0
        self.gathering = False
        self.silent = False
        self.kept: UpstreamAnswered | UpstreamLost | None = None
        self.visits: dict[str, str] = {}
        self.complete: list[str] = []
        self.reissued = False
        self.held = False


def talk_of(exchange: Exchange) -> Talk:
    """The questions of the exchange; made if there were none."""
    if exchange.talk is None:
        call = exchange.call
        eligible = exchange.host_era is Era.LEGACY or call.frame.method in ELIGIBLE
        exchange.talk = Talk(call.asks if eligible else NOTHING)
    return exchange.talk


def next_round(talk: Talk) -> Round:
    """A round of all that is to be shown to a modern host."""
    talk.round += 1
    talk.shown = frozenset(talk.entries)
    return Round(
        entries=dict(talk.entries),
        number=talk.round,
        state=talk.state,
        answers={key: Raw(written(answer)) for key, answer in talk.answers.items()},
        expected={key: expected_of(talk.open[key]) for key in talk.entries},
    )


def expected_of(question: Question) -> Expected:
    """What is remembered of a question in a host's hands."""
    defaults = {name: field["default"] for name, field in question.fields.items() if "default" in field}
    return Expected(kind=question.kind, defaults=defaults)


def audience(exchange: Exchange, question: Question) -> dict[str, object] | Reply | None:
    """Params for the host; None for others; or what the upstream hears, since nobody answers."""
    call, talk = exchange.call, talk_of(exchange)
    unsayable: Reply | None = None
    if question.needs <= talk.asks:
        elicitation = _elicitation(exchange, question)
        params = questions.for_host(question, call.host_revision, call.upstream, elicitation)
        if not isinstance(params, Bad):
            if "elicitationId" in params:
                talk.visits[question.key] = elicitation
            return params
        unsayable = replies.unsayable(question, params)
    if question.needs <= call.elsewhere:
        return None
    return unsayable or replies.refusal(question, talk.asks | call.elsewhere)


def _elicitation(exchange: Exchange, question: Question) -> str:
    """Id of a visit to an address: the upstream's own, or one that is made."""
    if question.kind is not QuestionKind.URL:
        return ""
    if question.elicitation:
        return question.elicitation
    mark = f"{exchange.call.mark}\n{talk_of(exchange).round}\n{question.key}"
    return blake2b(mark.encode(), digest_size=_MADE).hexdigest()


def ask_host(exchange: Exchange, asked: Mapping[str, tuple[Question, dict[str, object]]]) -> tuple[Command, ...]:
    """Asks a legacy host, with a deadline for each question."""
    talk = talk_of(exchange)
    exchange.move(State.ASKING)
    talk.open |= {key: question for key, (question, _) in asked.items()}
    sent = tuple(
        HostQuestion(key=key, method=question.method, params=params or None, elicitation=talk.visits.get(key, ""))
        for key, (question, params) in asked.items()
    )
    return (AskHost(sent), *_deadlines(exchange, asked))


def ask_others(exchange: Exchange, asked: tuple[Question, ...]) -> tuple[Command, ...]:
    """Has questions answered without the host, with a deadline for each."""
    talk = talk_of(exchange)
    keys = [question.key for question in asked]
    talk.others.update(keys)
    talk.open |= {question.key: question for question in asked}
    return (AskOthers(asked), *_deadlines(exchange, keys))


def _deadlines(exchange: Exchange, keys: Mapping[str, object] | list[str]) -> tuple[Command, ...]:
    return tuple(WakeMe(QUESTION + key, exchange.call.deadline) for key in keys)


def take(exchange: Exchange, key: str) -> Question:
    """Takes an open question out: it is answered, or needs no answer. A legacy host without one is asked no more."""
    talk = talk_of(exchange)
    question = talk.open.pop(key)
    talk.others.discard(key)
    talk.entries.pop(key, None)
    if question.id is not None and exchange.state is State.ASKING and not talk.open:
        exchange.move(State.OPEN)
    return question


def close(exchange: Exchange, *, answer: bool) -> tuple[Command, ...]:
    """The call is over: answers or leaves what a legacy upstream still asks, and takes back what is still asked.

    Args:
        exchange: The exchange.
        answer: Whether the upstream is there to hear an answer.
    """
    talk = exchange.talk
    if talk is None or not talk.open:
        return ()
    pending = [question for question in talk.open.values() if answer and question.id is not None]
    left = [question for question in pending if exchange.call.leaves and question.kind is QuestionKind.ROOTS]
    taken = take_back(exchange, OVER)
    refused = [one for question in pending if question not in left for one in _over(question)]
    return (*refused, *taken, *(Leave(question) for question in left))


def _over(question: Question) -> tuple[Command, ...]:
    return reply_to(question, replies.expired(question, OVER))


def take_back(exchange: Exchange, reason: str) -> tuple[Command, ...]:
    """Forgets every open question, and takes back those that somebody has."""
    talk = talk_of(exchange)
    keys = tuple(talk.open if exchange.host_era is Era.LEGACY else (key for key in talk.open if key in talk.others))
    talk.open.clear()
    talk.others.clear()
    talk.entries.clear()
    return (Unask(keys, reason),) if keys else ()


def reply_to(question: Question, reply: Reply) -> tuple[Command, ...]:
    """The answer to a legacy upstream."""
    identity = cast("Id", question.id)
    return (AnswerUpstream(identity, reply.line(identity), question.kind),)
