"""Parked calls: one retry wins, nothing stays for ever, every cap has its name."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from troth.bridge.errors import ErrorValue
from troth.gateway.limits import Limits
from troth.gateway.parking import LOST, ROUNDS, USED, Parked, Parking, State

if TYPE_CHECKING:
    from collections.abc import Callable


class Clock:
    """A clock and its timers, moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.timers: list[Timer] = []

    def __call__(self) -> float:
        return self.now

    def later(self, seconds: float, call: Callable[[], None]) -> Timer:
        timer = Timer(self, self.now + seconds, call)
        self.timers.append(timer)
        return timer

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [timer for timer in self.timers if timer.when <= end]:
            timer = min(due, key=lambda timer: timer.when)
            self.timers.remove(timer)
            self.now = max(self.now, timer.when)
            timer.call()
        self.now = end


class Timer:
    def __init__(self, clock: Clock, when: float, call: Callable[[], None]) -> None:
        self.clock, self.when, self.call = clock, when, call

    def cancel(self) -> None:
        self.clock.timers.remove(self)


class Lot:
    """A parking under a clock, and what died in it."""

    def __init__(self, **limits: int) -> None:
        self.clock = Clock()
        self.died: list[Parked[str]] = []
        self.parking = Parking[str](
            "run", Limits(**limits), clock=self.clock, later=self.clock.later, died=self.died.append
        )

    def put(self, call: str = "call", principal: str = "ann", upstream: str = "files", wait: float = 60) -> Parked[str]:
        parked = self.parking.put(call, principal=principal, upstream=upstream, expires=self.clock.now + wait)
        assert isinstance(parked, Parked), parked
        return parked

    def claim(self, parked: Parked[str], number: int = 1) -> Parked[str] | ErrorValue:
        return self.parking.claim(parked.id, number)


def limit(found: object) -> object:
    assert isinstance(found, ErrorValue)
    assert found.code == -32000
    assert isinstance(found.data, dict)
    assert f"(limit: {found.data['limit']})" in found.message
    return found.data["limit"]


def test_one_retry_wins_and_the_others_hear_that_it_is_used() -> None:
    lot = Lot()
    parked = lot.put()
    assert lot.claim(parked) is parked
    assert parked.state is State.ANSWERING
    assert [lot.claim(parked) for _ in range(3)] == [USED] * 3
    assert USED.code == -32602
    assert "already used" in USED.message


def test_each_round_is_won_once_and_an_old_one_is_used() -> None:
    lot = Lot()
    parked = lot.put()
    assert lot.claim(parked, 2) is USED
    assert lot.claim(parked, 1) is parked
    assert lot.parking.again(parked, lot.clock.now + 60) is None
    assert lot.claim(parked, 1) is USED
    assert lot.claim(parked, 2) is parked
    lot.parking.end(parked)
    assert lot.claim(parked, 2) is USED
    assert lot.claim(parked, 3) is USED


def test_a_call_asks_in_eight_rounds_at_most_and_is_ended_then() -> None:
    lot = Lot()
    parked = lot.put()
    for number in range(1, 8):
        assert lot.claim(parked, number) is parked
        assert lot.parking.again(parked, lot.clock.now + 60) is None
    assert lot.claim(parked, 8) is parked
    assert lot.parking.again(parked, lot.clock.now + 60) is ROUNDS
    assert len(lot.parking) == 0


def test_a_result_that_came_while_parked_goes_to_the_next_retry_once() -> None:
    lot = Lot()
    parked = lot.put()
    assert lot.parking.keep(parked, b"result", 6)
    assert lot.parking.counts().bytes == 6
    found = lot.claim(parked)
    assert isinstance(found, Parked)
    assert found.kept == b"result"
    assert lot.claim(parked) is USED
    assert lot.parking.counts().bytes == 0
    assert len(lot.parking) == 0


def test_a_kept_result_lies_until_the_deadline_and_no_longer() -> None:
    lot = Lot()
    parked = lot.put()
    lot.parking.keep(parked, b"result", 6)
    lot.clock.advance(59.9)
    assert len(lot.parking) == 1
    lot.clock.advance(0.2)
    assert lot.died == [parked]
    assert lot.parking.counts().bytes == 0


def test_results_that_wait_are_bounded_in_bytes() -> None:
    lot = Lot(parked_bytes=10)
    first, second = lot.put(), lot.put()
    assert lot.parking.keep(first, b"x" * 8, 8)
    assert not lot.parking.keep(second, b"x" * 8, 8)
    assert second.state is State.PARKED
    lot.parking.end(first)
    assert lot.parking.keep(second, b"x" * 8, 8)


def test_what_a_call_is_not_in_the_state_for_is_a_fault_of_ours() -> None:
    lot = Lot()
    parked = lot.put()
    with pytest.raises(ValueError, match="parked is not parked again"):
        lot.parking.again(parked, 0)
    lot.claim(parked)
    with pytest.raises(ValueError, match="answering"):
        lot.parking.keep(parked, b"", 0)
    lot.parking.end(parked)
    lot.parking.end(parked)
    assert parked.state is State.DEAD


def test_a_host_that_never_comes_again_is_cleaned_up_at_the_deadline() -> None:
    lot = Lot()
    early, late = lot.put(wait=10), lot.put(wait=20)
    lot.clock.advance(10)
    assert lot.died == [early]
    assert lot.claim(early) is USED
    lot.clock.advance(10)
    assert lot.died == [early, late]
    assert lot.parking.counts().died == 2
    assert lot.clock.timers == []


def test_a_call_that_answers_does_not_die_and_its_next_round_has_a_deadline_of_its_own() -> None:
    lot = Lot()
    parked = lot.put(wait=10)
    lot.claim(parked)
    lot.clock.advance(15)
    assert lot.died == []
    lot.parking.again(parked, lot.clock.now + 10)
    lot.clock.advance(9)
    assert lot.died == []
    lot.clock.advance(1)
    assert lot.died == [parked]


def test_there_is_one_timer_for_all_calls() -> None:
    lot = Lot()
    for number in range(100):
        lot.put(wait=60 - number % 50)
        assert len(lot.clock.timers) == 1
    lot.clock.advance(30)
    assert len(lot.clock.timers) == 1
    lot.parking.end_all()
    lot.clock.advance(100)
    assert lot.clock.timers == []
    assert {call.state for call in lot.died} == {State.DEAD}


def test_deadlines_of_ended_calls_do_not_pile_up() -> None:
    lot = Lot()
    for _ in range(2000):
        lot.parking.end(lot.put())
    assert len(lot.parking._ends) < 200


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"parked": 2}, "parked"),
        ({"principal_parked": 2}, "principal_parked"),
        ({"upstream_parked": 2}, "upstream_parked"),
    ],
)
def test_every_cap_has_its_name_and_its_error(limits: dict[str, int], expected: str) -> None:
    lot = Lot(**limits)
    lot.put()
    second = lot.put()
    lot.claim(second)
    refused = lot.parking.put("x", principal="ann", upstream="files", expires=0)
    assert limit(refused) == expected
    lot.parking.end(second)
    lot.put()


def test_one_principal_or_upstream_that_is_full_leaves_room_for_others() -> None:
    lot = Lot(principal_parked=1, upstream_parked=2)
    lot.put(principal="ann")
    lot.put(principal="bob")
    assert limit(lot.parking.put("x", principal="eve", upstream="files", expires=0)) == "upstream_parked"
    lot.put(principal="eve", upstream="mail")
    assert limit(lot.parking.put("x", principal="eve", upstream="other", expires=0)) == "principal_parked"


def test_a_retry_for_a_call_of_another_run_hears_that_it_was_lost() -> None:
    lot = Lot()
    assert lot.parking.claim("earlier-1", 1) is LOST
    assert (LOST.code, "may have had effects" in LOST.message) == (-32603, True)
    assert lot.parking.claim("run-99", 1) is USED


def test_calls_are_found_by_principal_and_upstream_and_counted() -> None:
    lot = Lot()
    one, two, three = lot.put(principal="ann"), lot.put(principal="bob"), lot.put(principal="bob", upstream="mail")
    lot.claim(one)
    lot.parking.keep(two, b"r", 1)
    assert lot.parking.of(principal="bob") == [two, three]
    assert lot.parking.of(upstream="files") == [one, two]
    counts = lot.parking.counts()
    assert (counts.parked, counts.answering, counts.finished) == (1, 1, 1)
    assert counts.principals == {"ann": 1, "bob": 2}
    assert counts.upstreams == {"files": 2, "mail": 1}
    assert lot.parking.end_all() == [one, two, three]
    assert lot.parking.counts().principals == {}


def test_it_works_on_the_timer_of_a_real_loop() -> None:
    async def run() -> list[Parked[str]]:
        died: list[Parked[str]] = []
        over = asyncio.Event()

        def dies(parked: Parked[str]) -> None:
            died.append(parked)
            over.set()

        parking = Parking[str]("run", Limits(), clock=time.time, later=asyncio.get_running_loop().call_later, died=dies)
        parking.put("x", principal="ann", upstream="files", expires=time.time() + 0.01)
        await asyncio.wait_for(over.wait(), 5)
        return died

    assert len(asyncio.run(run())) == 1


def test_a_parked_call_costs_under_a_kilobyte() -> None:
    lot = Lot()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(1000):
        lot.put(principal=f"p{number % 50}")
    each = (tracemalloc.get_traced_memory()[0] - before) / 1000
    tracemalloc.stop()
    assert each < 1000, each


class Model(RuleBasedStateMachine):
    """Calls are parked, claimed, finished, given up and forgotten in any order; a plain dictionary says what is due."""

    def __init__(self) -> None:
        super().__init__()
        self.lot = Lot(parked=6, principal_parked=4, upstream_parked=5, parked_bytes=20, rounds=3)
        self.known: dict[str, dict[str, Any]] = {}
        self.all: list[Parked[str]] = []
        self.won: set[tuple[str, int]] = set()
        self.seen = 0

    def alive(self) -> list[Parked[str]]:
        return [parked for parked in self.all if parked.id in self.known]

    @rule(principal=st.sampled_from("ab"), upstream=st.sampled_from("xy"), wait=st.integers(1, 50))
    def put(self, principal: str, upstream: str, wait: int) -> None:
        found = self.lot.parking.put("call", principal=principal, upstream=upstream, expires=self.lot.clock.now + wait)
        of = list(self.known.values())
        full = (
            len(of) >= 6
            or sum(one["principal"] == principal for one in of) >= 4
            or sum(one["upstream"] == upstream for one in of) >= 5
        )
        assert isinstance(found, ErrorValue) is full
        if isinstance(found, Parked):
            self.all.append(found)
            self.known[found.id] = {
                "principal": principal,
                "upstream": upstream,
                "state": State.PARKED,
                "round": 1,
                "expires": self.lot.clock.now + wait,
                "size": 0,
            }

    @precondition(lambda self: self.all)
    @rule(data=st.data(), number=st.integers(1, 4))
    def claim(self, data: st.DataObject, number: int) -> None:
        parked = data.draw(st.sampled_from(self.all))
        found = self.lot.parking.claim(parked.id, number)
        known = self.known.get(parked.id)
        due = known is not None and known["round"] == number and known["state"] is not State.ANSWERING
        assert (found is parked) is due
        if due:
            assert (parked.id, number) not in self.won, "two retries won one round"
            self.won.add((parked.id, number))
            assert known is not None
            if known["state"] is State.FINISHED:
                assert found.kept == parked.id
                del self.known[parked.id]
            else:
                known["state"] = State.ANSWERING
        else:
            assert found is USED

    @precondition(lambda self: any(one["state"] is State.ANSWERING for one in self.known.values()))
    @rule(data=st.data(), wait=st.integers(1, 50))
    def again(self, data: st.DataObject, wait: int) -> None:
        parked = data.draw(st.sampled_from([one for one in self.alive() if one.state is State.ANSWERING]))
        known = self.known[parked.id]
        found = self.lot.parking.again(parked, self.lot.clock.now + wait)
        if known["round"] == 3:
            assert found is ROUNDS
            del self.known[parked.id]
        else:
            assert found is None
            known.update(state=State.PARKED, round=known["round"] + 1, expires=self.lot.clock.now + wait)

    @precondition(lambda self: any(one["state"] is State.PARKED for one in self.known.values()))
    @rule(data=st.data(), size=st.integers(0, 12))
    def keep(self, data: st.DataObject, size: int) -> None:
        parked = data.draw(st.sampled_from([one for one in self.alive() if one.state is State.PARKED]))
        fits = sum(one["size"] for one in self.known.values()) + size <= 20
        assert self.lot.parking.keep(parked, parked.id, size) is fits
        if fits:
            self.known[parked.id].update(state=State.FINISHED, size=size)

    @precondition(lambda self: self.all)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        parked = data.draw(st.sampled_from(self.all))
        self.lot.parking.end(parked)
        self.known.pop(parked.id, None)

    @rule(seconds=st.integers(0, 60))
    def time_passes(self, seconds: int) -> None:
        self.lot.clock.advance(seconds)
        now = self.lot.clock.now
        over = {
            name for name, one in self.known.items() if one["state"] is not State.ANSWERING and one["expires"] <= now
        }
        assert {parked.id for parked in self.lot.died[self.seen :]} == over
        assert len(self.lot.died) == self.seen + len(over)
        self.seen = len(self.lot.died)
        for name in over:
            del self.known[name]

    @invariant()
    def counts_agree(self) -> None:
        counts = self.lot.parking.counts()
        states = [one["state"] for one in self.known.values()]
        assert (counts.parked, counts.answering, counts.finished) == tuple(
            states.count(state) for state in (State.PARKED, State.ANSWERING, State.FINISHED)
        )
        assert counts.bytes == sum(one["size"] for one in self.known.values())
        assert sum(counts.principals.values()) == sum(counts.upstreams.values()) == len(self.known)
        waiting = [one for one in self.known.values() if one["state"] is not State.ANSWERING]
        assert len(self.lot.clock.timers) <= 1
        assert not waiting or self.lot.clock.timers

    def teardown(self) -> None:
        for parked in self.alive():
            if parked.state is State.ANSWERING:
                self.lot.parking.end(parked)
        self.lot.clock.advance(1000)
        assert len(self.lot.parking) == 0
        assert self.lot.clock.timers == []


Model.TestCase.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
TestModel = Model.TestCase
