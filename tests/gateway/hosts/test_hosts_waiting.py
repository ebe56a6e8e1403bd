"""Rule 24: what a full queue loses, in which order, and what it never loses."""

from __future__ import annotations

import random

import pytest

from troth.gateway.hosts.waiting import OVERHEAD, Waiting
from troth.gateway.model import Sort

PROGRESS, LOG, CHANGE, OTHER = Sort.PROGRESS, Sort.LOG, Sort.CHANGE, Sort.OTHER


def room(lines: int, size: int = 4) -> int:
    """Bytes for that many lines."""
    return lines * (size + OVERHEAD)


def everything(waiting: Waiting) -> list[str]:
    taken: list[str] = []
    while waiting:
        taken += [line.decode() for line in waiting.take(1)]
    assert waiting.bytes == 0
    return taken


def test_rule_24_lines_leave_in_their_order() -> None:
    waiting = Waiting(room(10))
    for number, sort in enumerate((OTHER, PROGRESS, LOG, CHANGE)):
        assert waiting.put(b"m%d" % number, sort)
    assert everything(waiting) == ["m0", "m1", "m2", "m3"]


def test_rule_24_progress_is_lost_first_and_the_newest_of_each_request_stays() -> None:
    waiting = Waiting(room(6))
    for name, sort, key in (
        (b"log1", LOG, None),
        (b"a001", PROGRESS, "a"),
        (b"b001", PROGRESS, "b"),
        (b"a002", PROGRESS, "a"),
        (b"b002", PROGRESS, "b"),
        (b"ask1", OTHER, None),
    ):
        assert waiting.put(name, sort, key)
    assert waiting.put(b"ask2", OTHER)
    assert everything(waiting) == ["log1", "a002", "b002", "ask1", "ask2"]


def test_rule_24_the_progress_that_comes_takes_the_place_of_its_own() -> None:
    waiting = Waiting(room(3))
    for number in range(100):
        assert waiting.put(b"p%03d" % number, PROGRESS, "a")
        assert len(waiting) <= 3
    assert everything(waiting)[-1] == "p099"


def test_rule_24_logs_are_lost_next() -> None:
    waiting = Waiting(room(3))
    for name, sort in ((b"log1", LOG), (b"ask1", OTHER), (b"log2", LOG), (b"ask2", OTHER), (b"ask3", OTHER)):
        assert waiting.put(name, sort)
    assert everything(waiting) == ["ask1", "ask2", "ask3"]
    for name in (b"ask1", b"ask2", b"ask3"):
        assert waiting.put(name, OTHER)
    assert waiting.put(b"log3", LOG)
    assert waiting.put(b"prog", PROGRESS, 1)
    assert everything(waiting) == ["ask1", "ask2", "ask3"]


def test_rule_24_a_change_that_waits_already_is_enough() -> None:
    waiting = Waiting(room(2))
    for _ in range(10):
        assert waiting.put(b"chg1", CHANGE)
        assert waiting.put(b"chg2", CHANGE)
    assert not waiting.put(b"chg3", CHANGE)
    assert everything(waiting) == ["chg1", "chg2"]
    assert waiting.put(b"chg1", CHANGE)
    assert waiting.take_changes() == [b"chg1"]
    assert waiting.take_changes() == []


def test_rule_24_what_must_not_be_lost_and_does_not_fit_ends_the_stream() -> None:
    waiting = Waiting(room(2))
    assert waiting.put(b"ask1", OTHER)
    assert waiting.put(b"chg1", CHANGE)
    assert not waiting.put(b"ask2", OTHER)
    waiting.clear()
    assert everything(waiting) == ["chg1"]


def test_a_line_larger_than_the_queue_is_taken_when_nothing_waits() -> None:
    waiting = Waiting(100)
    assert waiting.put(b"x" * 1000, OTHER)
    assert not waiting.put(b"y", OTHER)
    waiting.force(b"z" * 1000)
    assert [line[:1] for line in map(str.encode, everything(waiting))] == [b"x", b"z"]


@pytest.mark.parametrize("seed", range(30))
def test_rule_24_a_queue_never_holds_more_than_its_bound(seed: int) -> None:
    dice = random.Random(seed)
    waiting = Waiting(room(8, 10))
    kept: list[bytes] = []
    for number in range(400):
        sort = dice.choice(list(Sort))
        line = b"%d" % dice.randrange(5) if sort is CHANGE else b"n%d" % number
        if waiting.put(line, sort, dice.randrange(3)) and sort is OTHER:
            kept.append(line)
        assert waiting.bytes <= waiting.most
        if dice.random() < 0.2:
            for taken in waiting.take(dice.randrange(1, 40)):
                if taken in kept:
                    assert taken == kept.pop(0)
    rest = [line for line in map(str.encode, everything(waiting)) if line in kept]
    assert rest == kept
