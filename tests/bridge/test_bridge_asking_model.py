"""Hosts answer, refuse, let deadlines pass, vanish and return in any order: every question is answered exactly once,
every call ends, and nothing is left behind."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from bridge_asking import (
    ACCEPTED,
    FOLDERS,
    FORM,
    ROOTS,
    SAMPLED,
    SAMPLING,
    TOOLS,
    URL,
    asks,
    called,
    failed,
    frame,
    question_of,
    replied,
    requires,
    result,
    retry,
)
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from troth.bridge import Cause, Id, Lost
from troth.bridge import asks as rows
from troth.bridge.exchange import Exchange, State
from troth.bridge.exchange_model import (
    ROUNDS,
    AnswerUpstream,
    AskHost,
    AskOthers,
    CancelUpstream,
    Command,
    Due,
    Event,
    Finish,
    HostCalled,
    HostCancelled,
    HostGone,
    Leave,
    Note,
    OthersAnswered,
    Park,
    Refuse,
    Round,
    SendHost,
    SendUpstream,
    Unask,
    UpstreamAnswered,
    UpstreamLost,
    UpstreamNotified,
    WakeMe,
)
from troth.bridge.questions import QuestionKind
from troth.bridge.replies import Reply
from troth.register import Era

questions = st.sampled_from([FORM, URL, SAMPLING, TOOLS, ROOTS])
values = st.sampled_from([ACCEPTED, SAMPLED, FOLDERS, {"action": "decline"}, {"action": "maybe"}, 5, {}])
some = st.sampled_from([frozenset[str](), frozenset({rows.FORM, rows.URL}), frozenset({rows.ROOTS}), rows.ROWS])
mostly = st.sampled_from([rows.ROWS] * 4 + [frozenset({rows.FORM, rows.SAMPLING}), frozenset[str]()])
offsets = st.sampled_from([0, 0, 0, 0, -1, 1])
good = st.sampled_from(["all", "all", "some", "none", "wild"])
RIGHT = {
    QuestionKind.FORM: ACCEPTED,
    QuestionKind.URL: {"action": "decline"},
    QuestionKind.SAMPLING: SAMPLED,
    QuestionKind.ROOTS: FOLDERS,
}
rarely = st.integers(0, 3).map(lambda number: number == 0)


@dataclass(repr=False, eq=False)
class Running:
    """One call: its exchange, and what everybody around it holds."""

    exchange: Exchange
    host: Era
    upstream: Era
    awaited: Id | None
    """Id of the host's request that waits for an answer."""
    flying: bool = False
    asked: dict[Id, int] = field(default_factory=dict[Id, int])
    """Answers to each request of a legacy upstream."""
    lost: bool = False
    taken_back: set[Id] = field(default_factory=set[Id])
    at_host: set[str] = field(default_factory=set[str])
    at_others: set[str] = field(default_factory=set[str])
    timers: set[str] = field(default_factory=set[str])
    round: Round | None = None
    rounds: int = 0
    answered: list[Id] = field(default_factory=list[Id])
    finishes: list[Finish] = field(default_factory=list[Finish])


class Asking(RuleBasedStateMachine):
    """Calls of every pair of eras, with everything that can happen to them."""

    @initialize(host=st.sampled_from(Era), upstream=st.sampled_from(Era), asked=mostly, elsewhere=some)
    def begin(self, host: Era, upstream: Era, asked: frozenset[str], elsewhere: frozenset[str]) -> None:
        self.calls: list[Running] = []
        self.count = 0
        self.eras = host, upstream
        self.call(asked, elsewhere, [], leaves=False)

    def number(self) -> int:
        self.count += 1
        return self.count

    def give(self, running: Running, event: Event) -> tuple[Command, ...]:
        commands = running.exchange.handle(event)
        for place, command in enumerate(commands):
            assert not running.finishes, "nothing follows the end"
            self.carry_out(running, command, last=place == len(commands) - 1)
        return commands

    def carry_out(self, running: Running, command: Command, *, last: bool) -> None:
        match command:
            case SendUpstream():
                assert not running.flying, "one request at a time"
                running.flying = True
            case CancelUpstream():
                assert running.flying
                running.flying = False
            case AnswerUpstream():
                assert not running.lost, "nobody is there to hear it"
                running.asked[command.id] += 1
                message = json.loads(command.line)
                assert message["id"] == command.id
                assert ("result" in message) is not ("error" in message)
            case Leave():
                assert not running.lost, "nobody is there to hear it"
                assert running.exchange.call.leaves
                assert command.question.kind is QuestionKind.ROOTS
                assert command.question.id is not None
                running.asked[command.question.id] += 1
            case AskHost():
                assert running.host is Era.LEGACY
                for question in command.questions:
                    assert question.key not in running.at_host
                    running.at_host.add(question.key)
            case AskOthers():
                for question in command.questions:
                    assert question.key not in running.at_others
                    running.at_others.add(question.key)
            case Unask():
                for key in command.keys:
                    assert (key in running.at_host) is not (key in running.at_others)
                    running.at_host.discard(key)
                    running.at_others.discard(key)
            case Park():
                self.answer_host(running)
                running.round = command.round
                running.rounds += 1
                assert command.round.number == running.rounds <= ROUNDS
                assert command.round.entries
                assert all(command.round.expected[key].kind in RIGHT for key in command.round.entries)
            case Refuse():
                assert command.code == -32602
            case WakeMe():
                if command.seconds is None:
                    running.timers.discard(command.name)
                else:
                    running.timers.add(command.name)
            case SendHost():
                assert running.awaited is not None, "no request for it to belong to"
            case Note():
                assert command.notes
            case Finish():
                assert last
                running.finishes.append(command)
                running.timers.clear()
                if command.line is not None or command.round is not None:
                    if command.line is not None:
                        assert json.loads(command.line)["id"] == running.awaited
                    self.answer_host(running)

    def answer_host(self, running: Running) -> None:
        assert running.awaited is not None
        running.answered.append(running.awaited)
        running.awaited = None

    def pick(self, data: st.DataObject, **wanted: Any) -> Running | None:
        found = [one for one in self.calls if not one.finishes and all(getattr(one, k) == v for k, v in wanted.items())]
        return data.draw(st.sampled_from(found)) if found else None

    @rule(asked=mostly, elsewhere=some, before=st.lists(questions, max_size=2), leaves=st.booleans())
    def call(
        self, asked: frozenset[str], elsewhere: frozenset[str], before: list[tuple[str, Any]], leaves: bool
    ) -> None:
        host, upstream = self.eras
        identity = self.number()
        held = before if self.eras == (Era.MODERN, Era.LEGACY) else []
        waiting = {self.number(): question for question in held}
        first = tuple(question_of(question, number) for number, question in waiting.items())
        changes: dict[str, Any] = {"asks": asked, "elsewhere": elsewhere, "waiting": first, "leaves": leaves}
        exchange = Exchange(called(host, upstream, id=identity, **changes))
        running = Running(exchange, host, upstream, identity, asked=dict.fromkeys(waiting, 0))
        self.calls.append(running)
        self.give(running, HostCalled())

    @precondition(lambda self: self.eras[1] is Era.LEGACY)
    @rule(data=st.data(), question=questions)
    def legacy_upstream_asks(self, data: st.DataObject, question: tuple[str, Any]) -> None:
        running = self.pick(data, upstream=Era.LEGACY, flying=True)
        if running is not None:
            identity = self.number()
            running.asked[identity] = 0
            self.give(running, asks(question, identity))

    @precondition(lambda self: self.eras[1] is Era.LEGACY)
    @rule(data=st.data())
    def legacy_upstream_takes_back(self, data: st.DataObject) -> None:
        running = self.pick(data, upstream=Era.LEGACY)
        open_ones = [] if running is None else [one for one, answers in running.asked.items() if not answers]
        if running is not None and open_ones:
            identity = data.draw(st.sampled_from(open_ones))
            running.taken_back.add(identity)
            params = {"requestId": identity}
            self.give(running, UpstreamNotified(frame(method="notifications/cancelled", params=params)))

    @precondition(lambda self: self.eras[1] is Era.MODERN)
    @rule(data=st.data(), entries=st.dictionaries(st.sampled_from("abc"), questions, max_size=3))
    def modern_upstream_asks(self, data: st.DataObject, entries: dict[str, tuple[str, Any]]) -> None:
        running = self.pick(data, upstream=Era.MODERN, flying=True)
        if running is not None:
            running.flying = False
            running.rounds += 1
            self.give(running, requires(entries))

    @rule(data=st.data(), error=st.booleans(), happens=rarely)
    def upstream_answers(self, data: st.DataObject, error: bool, happens: bool) -> None:
        running = None if not happens else self.pick(data, flying=True)
        if running is not None:
            running.flying = False
            refused = UpstreamAnswered(frame(id=1, error={"code": -32000, "message": "m"}))
            self.give(running, refused if error else result())

    @rule(data=st.data(), happens=rarely)
    def upstream_is_lost(self, data: st.DataObject, happens: bool) -> None:
        running = None if not happens else self.pick(data, flying=True)
        if running is not None:
            running.flying, running.lost = False, True
            self.give(running, UpstreamLost(Lost(Cause.BROKEN, "why")))

    @precondition(lambda self: self.eras[0] is Era.LEGACY)
    @rule(data=st.data(), value=values, error=st.booleans())
    def legacy_host_answers(self, data: st.DataObject, value: Any, error: bool) -> None:
        running = self.pick(data, host=Era.LEGACY)
        if running is not None:
            key = data.draw(st.sampled_from([*sorted(running.at_host), "q1", "a", "stranger"]))
            running.at_host.discard(key)
            self.give(running, replied(key, value) if isinstance(value, dict) and not error else failed(key))

    @rule(data=st.data(), value=values)
    def others_answer(self, data: st.DataObject, value: Any) -> None:
        running = self.pick(data)
        if running is not None:
            key = data.draw(st.sampled_from([*sorted(running.at_others), "stranger"]))
            running.at_others.discard(key)
            reply = Reply(result=value) if isinstance(value, dict) else Reply(error=rows.errors.unknown_method("x"))
            self.give(running, OthersAnswered(key, reply))

    @precondition(lambda self: self.eras == (Era.MODERN, Era.LEGACY))
    @rule(data=st.data(), round_of=st.lists(questions, min_size=1, max_size=3))
    def a_round_is_sent(self, data: st.DataObject, round_of: list[tuple[str, Any]]) -> None:
        running = self.pick(data, flying=True)
        for question in [] if running is None else round_of:
            assert running is not None
            identity = self.number()
            running.asked[identity] = 0
            self.give(running, asks(question, identity))
        if running is not None and "gather" in running.timers:
            running.timers.discard("gather")
            self.give(running, Due("gather"))

    @precondition(lambda self: self.eras == (Era.MODERN, Era.LEGACY))
    @rule(data=st.data(), wild=st.dictionaries(st.sampled_from(["q1", "q2", "x"]), values), off=offsets, good=good)
    def modern_host_returns(self, data: st.DataObject, wild: dict[str, Any], off: int, good: str) -> None:
        running = self.pick(data, host=Era.MODERN)
        if running is None or running.round is None:
            return
        talk, identity, before = running.exchange.talk, self.number(), running.awaited
        assert talk is not None
        fitting = {key: RIGHT[talk.open[key].kind] for key in running.round.entries if key in talk.open}
        given = {"all": fitting, "some": dict([*fitting.items()][:1]), "none": {}, "wild": wild}[good]
        parked = running.exchange.state is State.PARKED
        event = retry(running.round.number + off, given, identity=identity, asks=data.draw(mostly))
        # The request is the host's current one as soon as the exchange takes it.
        if parked and not off:
            running.awaited = identity
        commands = self.give(running, event)
        if any(isinstance(command, Refuse) for command in commands):
            assert len(commands) == 1
            assert off or not parked or good == "wild"
            running.awaited = before
        else:
            assert parked
            assert not off
            assert running.exchange.id == identity
            if good == "all":
                assert not fitting.keys() & talk.open.keys()

    @rule(data=st.data())
    def a_timer_runs_out(self, data: st.DataObject) -> None:
        running = self.pick(data)
        if running is not None and running.timers:
            name = data.draw(st.sampled_from(sorted(running.timers)))
            running.timers.discard(name)
            self.give(running, Due(name))

    @rule(data=st.data(), name=st.sampled_from(["gather", "question q1", "question a", "question x", "x"]))
    def a_forgotten_timer_runs_out(self, data: st.DataObject, name: str) -> None:
        running = self.pick(data)
        if running is not None:
            running.timers.discard(name)
            self.give(running, Due(name))

    @rule(data=st.data(), happens=rarely)
    def host_withdraws(self, data: st.DataObject, happens: bool) -> None:
        running = None if not happens else self.pick(data)
        if running is not None:
            self.give(running, HostCancelled("x"))

    @rule(data=st.data(), happens=rarely)
    def host_vanishes(self, data: st.DataObject, happens: bool) -> None:
        running = None if not happens else self.pick(data)
        if running is not None and running.awaited is not None:
            self.give(running, HostGone())

    @precondition(lambda self: self.calls)
    @rule(data=st.data(), event=st.sampled_from([HostCalled(), HostGone(), Due("keep"), result(), replied("q1", {})]))
    def the_end_is_the_end(self, data: st.DataObject, event: Event) -> None:
        ended = [one for one in self.calls if one.finishes]
        if ended:
            assert data.draw(st.sampled_from(ended)).exchange.handle(event) == ()

    @invariant()
    def every_question_is_open_or_was_answered_once(self) -> None:
        for running in getattr(self, "calls", ()):
            talk = running.exchange.talk
            ids = set() if talk is None else {one.id for one in talk.open.values() if one.id is not None}
            for identity, answers in running.asked.items():
                if identity in running.taken_back:
                    assert (answers, identity in ids) == (0, False)
                elif running.lost and not answers:
                    assert identity not in ids
                else:
                    assert answers == (identity not in ids)

    @invariant()
    def whoever_has_a_question_has_an_open_one(self) -> None:
        for running in getattr(self, "calls", ()):
            talk = running.exchange.talk
            keys = set[str]() if talk is None else set(talk.open)
            assert running.at_host | running.at_others <= keys
            if running.exchange.done and talk is not None and not (running.finishes and running.finishes[0].round):
                assert not keys

    @invariant()
    def every_call_is_alive_with_something_to_wait_for_or_ended_once(self) -> None:
        for running in getattr(self, "calls", ()):
            exchange = running.exchange
            assert exchange.done is (len(running.finishes) == 1)
            assert len(set(running.answered)) == len(running.answered)
            if exchange.done:
                assert not running.flying
                continue
            assert running.flying is exchange.flying
            waits = running.timers | running.at_host | running.at_others
            assert running.flying or waits, "nothing would ever end it"
            assert (running.awaited is None) is (exchange.state is State.PARKED)
            if exchange.state is State.PARKED:
                assert "keep" in running.timers
                talk = exchange.talk
                assert running.flying or (talk is not None and (talk.kept is not None or talk.held))
                shown = [] if exchange.talk is None else [*exchange.talk.entries]
                assert "deadline" in running.timers or not shown, "nobody would ever answer for a silent host"

    def teardown(self) -> None:
        for running in getattr(self, "calls", ()):
            for _ in range(200):
                if running.finishes:
                    break
                if running.timers:
                    name = min(running.timers)
                    running.timers.discard(name)
                    self.give(running, Due(name))
                elif running.flying:
                    running.flying = False
                    self.give(running, result())
            assert len(running.finishes) == 1
            assert running.timers | running.at_host | running.at_others == set()


Asking.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestAsking = Asking.TestCase
