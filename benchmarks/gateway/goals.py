"""The goals, as a table: what is looked at, what it may be, and whether it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.gateway.load import median
from benchmarks.gateway.measure import Figures, ratio
from benchmarks.gateway.sections import CROSS
from benchmarks.gateway.stage import BEST, DIRECT, FASTMCP, MUX, RELAY, TROTH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.gateway.long import Memory, Starts
    from benchmarks.gateway.sections import Section

MB, KB = 1_000_000, 1000
FLAT = 3.0
"""MB that a long run may add: what an allocator keeps, not what a call leaves."""


@dataclass(frozen=True, slots=True)
class Results:
    """All that one run measured."""

    modern: Section
    legacy: Section
    large: Section
    piped: Section
    ceiling: Section
    listed: Section
    memory: Mapping[str, Memory]
    starts: Mapping[str, Starts]

    @property
    def sections(self) -> tuple[Section, ...]:
        return (self.modern, self.legacy, self.large, self.piped, self.ceiling, self.listed)


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal.

    Attributes:
        words: What is looked at.
        limit: What it may be at most; at least, where `least` is set.
        value: The value in a run; NaN where it was not measured.
        unit: Unit of both.
        least: Whether the limit is the least.
    """

    words: str
    limit: float
    value: Callable[[Results], float]
    unit: str = "x"
    least: bool = False

    def met(self, results: Results) -> bool | None:
        value = self.value(results)
        if math.isnan(value):
            return None
        return value >= self.limit if self.least else value <= self.limit


def _of(section: Section, one: str, other: str, field: str, field_of_other: str = "") -> float:
    these: Sequence[float] = getattr(_figures(section, one), field)
    those: Sequence[float] = getattr(_figures(section, other), field_of_other or field)
    return ratio(these, those)


def _figures(section: Section, name: str) -> Figures:
    return section.figures.get(name) or Figures(name)


def _worst(*values: float) -> float:
    return math.nan if any(map(math.isnan, values)) else max(values)


def _per_call(goal: str, limit: float, field: str, *, least: bool = False) -> tuple[Goal, Goal]:
    return (
        Goal(f"{goal}, modern", limit, lambda r: _of(r.modern, TROTH, DIRECT, field), least=least),
        Goal(f"{goal}, legacy", limit, lambda r: _of(r.legacy, TROTH, DIRECT, field), least=least),
    )


def _cpu(words: str, limit: float, value: Callable[[Section, str], float], *, least: bool = False) -> list[Goal]:
    """The same goal for one caller and for many, in both eras."""
    return [
        Goal(f"{words}, {era}, {callers} caller{'s' * (callers > 1)}", limit, _bound(value, era, field), least=least)
        for era in ("modern", "legacy")
        for callers, field in ((1, "cpu_one"), (32, "cpu_many"))
    ]


def _bound(value: Callable[[Section, str], float], era: str, field: str) -> Callable[[Results], float]:
    return lambda results: value(getattr(results, era), field)


def _memory(results: Results, name: str, field: str, unit: int) -> float:
    found = results.memory.get(name)
    value = getattr(found, field) if found else 0
    return value / unit if value else math.nan


def _flat(results: Results) -> float:
    found = results.memory.get(TROTH)
    return (found.after - found.before) / MB if found and found.after else math.nan


def _start(results: Results, name: str) -> float:
    found = results.starts.get(name)
    return median(found.ready) if found and found.ready else math.nan


GOALS: tuple[Goal, ...] = (
    *_per_call("p50 at one caller / direct", 2.0, "p50"),
    *_per_call("p95 at one caller / direct", 2.5, "p95"),
    *_per_call("calls per second of 32 callers / direct", 0.9, "rate", least=True),
    *_cpu("CPU of a call / bare relay", 1.3, lambda s, field: _of(s, TROTH, RELAY, field)),
    *_cpu("CPU of a call / what the SDK upstream spends", 0.6, lambda s, field: _of(s, TROTH, DIRECT, field)),
    Goal(
        "CPU across eras / same era, modern upstream, worse of 1 and 32 callers",
        1.3,
        lambda r: _worst(_of(r.modern, CROSS, TROTH, "cpu_one"), _of(r.modern, CROSS, TROTH, "cpu_many")),
    ),
    Goal(
        "CPU across eras / same era, legacy upstream, worse of 1 and 32 callers",
        1.3,
        lambda r: _worst(_of(r.legacy, CROSS, TROTH, "cpu_one"), _of(r.legacy, CROSS, TROTH, "cpu_many")),
    ),
    Goal("stdio: p50 at one caller / 40-line mux", 1.3, lambda r: _of(r.piped, TROTH, MUX, "p50")),
    Goal("stdio: CPU of a call, upstream included / 40-line mux, 1 caller", 1.3,
         lambda r: _of(r.piped, TROTH, MUX, "cpu_one")),
    Goal("stdio: CPU of a call, upstream included / 40-line mux, 32 callers", 1.3,
         lambda r: _of(r.piped, TROTH, MUX, "cpu_many")),
    *_cpu("CPU of FastMCP's proxy at its best / Troth", 8.0, lambda s, field: _of(s, BEST, TROTH, field), least=True),
    *_cpu("CPU of FastMCP's proxy as it comes / Troth", 60.0, lambda s, field: _of(s, FASTMCP, TROTH, field),
          least=True),
    Goal("calls per second in one process, bare upstream", 2000,
         lambda r: median(_figures(r.ceiling, TROTH).rate), "/s", least=True),
    Goal("memory with two upstreams", 60, lambda r: _memory(r, TROTH, "first", MB), "MB"),
    Goal("memory of a legacy session", 50, lambda r: _memory(r, TROTH, "session", KB), "kB"),
    Goal("growth over the long run", FLAT, _flat, "MB"),
    Goal("cold start to ready", 0.7, lambda r: _start(r, TROTH), "s"),
    Goal("cold start to ready / FastMCP's", 0.25, lambda r: _start(r, TROTH) / _start(r, FASTMCP)),
    Goal("CPU of a list of 1,000 tools", 5.0, lambda r: median(_figures(r.listed, TROTH).cpu_one) * 1000, "ms"),
)  # fmt: skip
