"""Rounds of calls through several contenders in turn, so that a busy machine slows all alike."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.gateway.load import Caller, load, median, quantile
from benchmarks.gateway.processes import busy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from benchmarks.gateway.processes import Started
    from benchmarks.gateway.stage import Running

MANY = 32
PATIENCE = 90.0
"""Seconds that one round of one contender may take, where nothing hangs."""
WARM = 20
"""Calls of each caller before anything is measured."""
LEAST = 3
"""Rounds that count at least."""
SLOW = 2
"""The same for a contender that needs more than `SLOWNESS` seconds a call."""
SLOWNESS = 0.03


@dataclass(frozen=True, slots=True)
class Scale:
    """How long a run takes.

    Attributes:
        rounds: Rounds of each measurement; half of them count.
        seconds: Length of one round of one contender.
        calls: Calls of the long run whose memory must stay flat.
        sessions: Sessions opened and closed in it.
        starts: Cold starts of each contender.
    """

    rounds: int = 12
    seconds: float = 0.5
    calls: int = 100_000
    sessions: int = 2000
    starts: int = 5


@dataclass(slots=True)
class Figures:
    """What was measured of one contender: a value for each round. Seconds; CPU is seconds of one call."""

    name: str
    p50: list[float] = field(default_factory=list)
    p95: list[float] = field(default_factory=list)
    cpu_one: list[float] = field(default_factory=list)
    upstream_one: list[float] = field(default_factory=list)
    rate: list[float] = field(default_factory=list)
    cpu_many: list[float] = field(default_factory=list)
    upstream_many: list[float] = field(default_factory=list)
    memory: int = 0
    start: float = 0.0
    fault: str = ""
    """Why it has no figures, or not all of them."""

    def keep(self, rounds: Sequence[int]) -> None:
        """Forgets all other rounds."""
        for name in ("p50", "p95", "cpu_one", "upstream_one", "rate", "cpu_many", "upstream_many"):
            values: list[float] = getattr(self, name)
            values[:] = [values[index] for index in rounds if index < len(values)]


def ratio(these: Sequence[float], those: Sequence[float]) -> float:
    """The median of the ratios of single rounds: rounds that ran beside each other are compared with each other."""
    return median([one / other for one, other in zip(these, those, strict=False) if other])


@dataclass(slots=True)
class Subject:
    """A contender in one measurement.

    Attributes:
        figures: Where its values go.
        era: Era of the hosts.
        running: The contender.
        upstream: The process behind it that is counted apart; None if it is its own child.
        action: What a host does in one call.
        callers: The hosts.
    """

    figures: Figures
    era: str
    running: Running
    upstream: Started | None
    action: Callable[[Caller], Awaitable[object]] = Caller.call
    callers: list[Caller] = field(default_factory=list)

    def actions(self, count: int) -> list[Callable[[], Awaitable[object]]]:
        return [_bound(self.action, caller) for caller in self.callers[:count]]


def _bound(action: Callable[[Caller], Awaitable[object]], caller: Caller) -> Callable[[], Awaitable[object]]:
    return lambda: action(caller)


async def find(url: str, era: str, name: str = "echo") -> str:
    """The name by which a contender shows a tool."""
    caller = await Caller(url, era).open()
    names = await caller.names()
    caller.close()
    found = [each for each in names if each == name or each.endswith((f"_{name}", f"-{name}", f".{name}"))]
    found.sort(key=len)
    if not found:
        raise ValueError(f"no tool of the name {name}: {names[:5]}")
    return found[0]


async def measure(subjects: Sequence[Subject], scale: Scale, *, many: int = MANY, most: int = 1_000_000) -> float:
    """Opens the hosts, warms up, and measures in rounds. Who answers wrong or not at all is out, with the reason.

    Of the rounds that half counts in which other programs took least of the machine, whatever was measured in them.

    Returns:
        How many cores other programs took in those.
    """
    for subject in subjects:
        await _guarded(subject, _prepare(subject, many))
    foreign: list[float] = []
    for _ in range(scale.rounds):
        before = busy(), _ours(subjects), time.perf_counter()
        for subject in subjects:
            if not subject.figures.fault:
                await _guarded(subject, _round(subject, scale, many, most))
        after = busy(), _ours(subjects), time.perf_counter()
        all_, ours, wall = (end - begin for begin, end in zip(before, after, strict=True))
        foreign.append(max(0.0, all_ - ours) / wall)
    quiet = sorted(sorted(range(len(foreign)), key=foreign.__getitem__)[: max(LEAST, (len(foreign) + 1) // 2)])
    for subject in subjects:
        subject.figures.keep(quiet)
        subject.figures.memory = subject.running.process.memory()
        for caller in subject.callers:
            caller.close()
    return statistics.fmean(foreign[index] for index in quiet)


def _ours(subjects: Sequence[Subject]) -> float:
    processes = {id(each): each for one in subjects for each in (one.running.process, one.upstream) if each}
    return time.process_time() + sum(process.cpu() for process in processes.values())


async def _guarded(subject: Subject, work: Awaitable[None]) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            await work
    except* Exception as group:
        first: BaseException = group
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        subject.figures.fault = f"{type(first).__name__}: {first}"[:300]
        print(f"{subject.figures.name}: {subject.figures.fault}", file=sys.stderr)


async def _prepare(subject: Subject, many: int) -> None:
    tool = await find(subject.running.url, subject.era)
    subject.callers = [await Caller(subject.running.url, subject.era, tool).open() for _ in range(max(many, 1))]
    first = await load(subject.actions(1), 60.0, SLOW)
    warm = SLOW if median(first.times) > SLOWNESS else WARM
    await load(subject.actions(many), 10.0, warm * max(many, 1))


async def _round(subject: Subject, scale: Scale, many: int, most: int) -> None:
    figures = subject.figures
    for caller in subject.callers:
        await caller.wake()
    for count, cpu, upstream in (
        (1, figures.cpu_one, figures.upstream_one),
        (many, figures.cpu_many, figures.upstream_many),
    ):
        if not count:
            continue
        before = _spent(subject)
        run = await load(subject.actions(count), scale.seconds, most)
        own, behind = (after - start for after, start in zip(_spent(subject), before, strict=True))
        cpu.append(own / len(run.times))
        upstream.append(behind / len(run.times))
        if count == 1:
            figures.p50.append(quantile(run.times, 0.5))
            figures.p95.append(quantile(run.times, 0.95))
        else:
            figures.rate.append(run.rate)


def _spent(subject: Subject) -> tuple[float, float]:
    return subject.running.process.cpu(), subject.upstream.cpu() if subject.upstream else 0.0
