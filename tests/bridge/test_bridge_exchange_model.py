"""Any interleaving of what can happen ends every exchange once, and nothing reaches the wrong host or comes late."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from troth.bridge import Cause, Frame, Id, Lost, read
from troth.bridge.exchange import LEVELS, Exchange
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
    UpstreamAnswered,
    UpstreamAsked,
    UpstreamLost,
    UpstreamNotified,
)
from troth.register import Era, register

BY_ERA = {era: register().newest(era) for era in Era}


def frame(**members: Any) -> Frame:
    made = read(json.dumps({"jsonrpc": "2.0", **members}).encode())
    assert isinstance(made, Frame)
    return made


def call(identity: Id, host: Era, upstream: Era, token: Id | None = None, level: str | None = None) -> Called:
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    return Called(
        frame=frame(id=identity, method="tools/call", params={"name": "t", **meta}),
        host_revision=BY_ERA[host],
        upstream="files",
        upstream_revision=BY_ERA[upstream],
        level=level,
    )


identities = st.one_of(st.integers(-3, 3), st.sampled_from(["1", "2", "a"]))
events: st.SearchStrategy[Event] = st.one_of(
    st.just(HostCalled()),
    st.builds(HostCancelled, st.text(max_size=3)),
    st.just(HostGone()),
    st.sampled_from([{"content": []}, {"resultType": "input_required"}, {"resultType": 1}]).map(
        lambda value: UpstreamAnswered(frame(id=1, result=value))
    ),
    st.just(UpstreamAnswered(frame(id=1, error={"code": -32002, "message": "m"}))),
    st.sampled_from(["ping", "roots/list", "x"]).map(lambda method: UpstreamAsked(frame(id=2, method=method))),
    st.integers(-2, 5).map(
        lambda value: UpstreamNotified(
            frame(method="notifications/progress", params={"progressToken": 9, "progress": value})
        )
    ),
    st.sampled_from(LEVELS).map(
        lambda level: UpstreamNotified(frame(method="notifications/message", params={"level": level, "data": ""}))
    ),
    st.sampled_from(Cause).map(lambda cause: UpstreamLost(Lost(cause, "why"))),
)


@given(
    st.sampled_from(Era),
    st.sampled_from(Era),
    st.none() | identities,
    st.none() | st.sampled_from(LEVELS),
    st.lists(events, max_size=30),
)
def test_any_interleaving_ends_an_exchange_at_most_once_and_nothing_follows_the_end(
    host: Era, upstream: Era, token: Id | None, level: str | None, script: list[Event]
) -> None:
    exchange = Exchange(call("x", host, upstream, token, level))
    ended = False
    sent = 0
    for event in (*script, HostCancelled()):
        commands = exchange.handle(event)
        assert not (ended and commands)
        finishes = [command for command in commands if isinstance(command, Finish)]
        assert len(finishes) <= 1
        assert not finishes or commands[-1] is finishes[0]
        ended = ended or bool(finishes)
        assert exchange.done is ended
        sent += sum(isinstance(command, SendUpstream) for command in commands)
        assert token is not None or not any(b"progressToken" in c.line for c in commands if isinstance(c, SendHost))
    assert ended
    assert sent <= 1


@dataclass
class Running:
    """One exchange, and what its host saw."""

    exchange: Exchange
    mark: int
    gone: bool = False
    lines: list[Any] = field(default_factory=list)
    finishes: list[Finish] = field(default_factory=list)


class Fleet(RuleBasedStateMachine):
    """Many hosts of both eras on one conversation with an upstream, which tells each sink by the id it gave."""

    @initialize(era=st.sampled_from(Era))
    def open(self, era: Era) -> None:
        self.era = era
        self.every: list[Running] = []
        self.flying: dict[int, Running] = {}
        self.cancelled: set[int] = set()
        self.refused: list[Any] = []

    def give(self, running: Running, event: Event) -> None:
        for command in running.exchange.handle(event):
            self.carry_out(running, command)

    def carry_out(self, running: Running, command: Command) -> None:
        match command:
            case SendUpstream():
                assert running.mark not in self.flying
                self.flying[running.mark] = running
            case CancelUpstream():
                assert self.flying.pop(running.mark) is running
                self.cancelled.add(running.mark)
            case AnswerUpstream():
                self.refused.append(json.loads(command.line))
            case SendHost():
                assert not running.finishes
                assert not running.gone or running.exchange.host_era is Era.LEGACY
                running.lines.append(json.loads(command.line))
            case Finish():
                running.finishes.append(command)

    def pick(self, data: st.DataObject) -> Running:
        return self.flying[data.draw(st.sampled_from(sorted(self.flying)))]

    @rule(host=st.sampled_from(Era), identity=identities, token=st.none() | identities, data=st.data())
    def call(self, host: Era, identity: Id, token: Id | None, data: st.DataObject) -> None:
        level = data.draw(st.none() | st.sampled_from(LEVELS))
        running = Running(Exchange(call(identity, host, self.era, token, level)), len(self.every))
        self.every.append(running)
        self.give(running, HostCalled())

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        running = self.pick(data)
        del self.flying[running.mark]
        self.give(running, UpstreamAnswered(frame(id=1, result={"content": [], "_meta": {"x/mark": running.mark}})))
        assert json.loads(running.finishes[0].line or b"")["result"]["_meta"] == {"x/mark": running.mark}

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        running = self.pick(data)
        del self.flying[running.mark]
        self.give(running, UpstreamAnswered(frame(id=1, error={"code": 5, "message": str(running.mark)})))
        assert running.finishes[0].code == 5

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), cause=st.sampled_from(Cause))
    def lose(self, data: st.DataObject, cause: Cause) -> None:
        running = self.pick(data)
        del self.flying[running.mark]
        self.give(running, UpstreamLost(Lost(cause, "why")))

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), value=st.integers(0, 5))
    def progress(self, data: st.DataObject, value: int) -> None:
        params = {"progressToken": "ours", "progress": value}
        self.give(self.pick(data), UpstreamNotified(frame(method="notifications/progress", params=params)))

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), level=st.sampled_from(LEVELS))
    def log(self, data: st.DataObject, level: str) -> None:
        params = {"level": level, "data": ""}
        self.give(self.pick(data), UpstreamNotified(frame(method="notifications/message", params=params)))

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        before = len(self.refused)
        self.give(self.pick(data), UpstreamAsked(frame(id="q", method="sampling/createMessage")))
        assert len(self.refused) == before + (self.era is Era.LEGACY)

    @precondition(lambda self: self.every)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        self.give(data.draw(st.sampled_from(self.every)), HostCancelled("x"))

    @precondition(lambda self: self.every)
    @rule(data=st.data())
    def disconnect(self, data: st.DataObject) -> None:
        running = data.draw(st.sampled_from(self.every))
        running.gone = True
        self.give(running, HostGone())

    @rule()
    def break_down(self) -> None:
        flying, self.flying = self.flying, {}
        for running in flying.values():
            self.give(running, UpstreamLost(Lost(Cause.BROKEN, "it exited")))

    @invariant()
    def every_exchange_is_in_flight_or_ended_once(self) -> None:
        for running in getattr(self, "every", ()):
            assert len(running.finishes) == (running.mark not in self.flying)
            assert running.exchange.done is bool(running.finishes)

    @invariant()
    def every_host_saw_its_own_and_what_it_asked_for(self) -> None:
        for running in getattr(self, "every", ()):
            called = running.exchange
            for finish in running.finishes:
                assert (finish.line is None) is (running.mark in self.cancelled)
                if finish.line is not None:
                    answer = json.loads(finish.line)
                    assert (answer["id"], type(answer["id"])) == (called.id, type(called.id))
            shown = [line["params"] for line in running.lines if "progress" in line["params"]]
            assert all((line["progressToken"], called.token is None) == (called.token, False) for line in shown)
            values = [line["progress"] for line in shown]
            assert values == sorted(set(values))
            if called.host_era is Era.MODERN and called.level is None:
                assert len(shown) == len(running.lines)

    def teardown(self) -> None:
        if hasattr(self, "every"):
            self.break_down()
            assert all(len(running.finishes) == 1 for running in self.every)


Fleet.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestFleet = Fleet.TestCase
