"""What a run measured, as a page of Markdown and for the terminal."""

from __future__ import annotations

import datetime
import importlib.metadata
import math
import platform
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.gateway.goals import GOALS, KB, MB
from benchmarks.gateway.load import median
from benchmarks.gateway.measure import Figures, ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.gateway.goals import Results
    from benchmarks.gateway.measure import Scale
    from benchmarks.gateway.sections import Section

LIBRARIES = ("troth", "mcp", "fastmcp", "aiohttp", "uvicorn", "httptools", "uvloop", "msgspec", "anyio")
COLUMNS = ("", "p50 ms", "x", "p95 ms", "x", "32 callers: calls/s", "x", "CPU ms, 1 caller", "x", "32 callers", "x",
           "upstream's CPU ms", "MB")  # fmt: skip
MET = {True: "met", False: "**missed**", None: "not run"}


def page(results: Results, scale: Scale, took: float) -> str:
    """The whole report."""
    return "\n".join(
        [*_head(scale, took), *_goals(results), *_sections(results), *_memory(results, scale), *_starts(results)]
    )


def _head(scale: Scale, took: float) -> Iterator[str]:
    today = datetime.datetime.now(datetime.UTC).date()
    versions = ", ".join(f"{name} {_version(name)}" for name in LIBRARIES)
    yield "# Results of the gateway's benchmark"
    yield ""
    yield f"Written by `make bench` on {today}; how to read it is in [performance](../docs/performance.md)."
    yield ""
    yield f"- Machine: {_processor()}, {_cores()} cores, {platform.system()} {platform.release()}"
    yield f"- Python {platform.python_version()}; {versions}"
    yield f"- {scale.rounds} rounds of {scale.seconds:g} s, interleaved, of which the quieter half counts; in all"
    yield f"  {took / 60:.1f} minutes"
    yield "- The load runs on the same cores, and is not counted. Every answer was checked."
    yield ""


def _goals(results: Results) -> Iterator[str]:
    yield "## Goals"
    yield ""
    yield "| what | goal | measured | |"
    yield "|---|---|---|---|"
    for goal in GOALS:
        sign = "at least" if goal.least else "at most"
        value = goal.value(results)
        shown = "-" if math.isnan(value) else f"{_number(value)} {goal.unit}"
        yield f"| {goal.words} | {sign} {goal.limit:g} {goal.unit} | {shown} | {MET[goal.met(results)]} |"
    yield ""


def _sections(results: Results) -> Iterator[str]:
    yield "## Calls"
    yield ""
    yield "x is the median of the ratios of single rounds to the first row. CPU is user and system time of the process"
    yield "tree of a contender for one call, without an upstream on HTTP; that has a column of its own."
    for section in results.sections:
        if section.figures:
            yield from _section(section)
    yield ""


def _section(section: Section) -> Iterator[str]:
    base = section.figures.get(section.base) or Figures(section.base)
    yield ""
    yield f"### {section.title[0].upper()}{section.title[1:]}"
    yield ""
    yield f"Other programs took {section.foreign:.1f} cores meanwhile."
    yield ""
    many = any(figures.rate for figures in section.figures.values())
    keep = [index for index, name in enumerate(COLUMNS) if _shown(index, name, section, many=many)]
    yield "| " + " | ".join(COLUMNS[index] for index in keep) + " |"
    yield "|" + "---|" * len(keep)
    for figures in section.figures.values():
        cells = _cells(figures, base)
        yield "| " + " | ".join(cells[index] for index in keep) + " |"


def _shown(index: int, name: str, section: Section, *, many: bool) -> bool:
    if name == "upstream's CPU ms":
        return not section.child
    return many or index not in (5, 6, 9, 10)


def _cells(figures: Figures, base: Figures) -> list[str]:
    if not figures.p50:
        return [figures.name, figures.fault or "not run", *[""] * (len(COLUMNS) - 2)]
    cells = [figures.name + (f" (then failed: {figures.fault})" if figures.fault else "")]
    for values, those, factor in (
        (figures.p50, base.p50, 1000),
        (figures.p95, base.p95, 1000),
        (figures.rate, base.rate, 1),
        (figures.cpu_one, base.cpu_one, 1000),
        (figures.cpu_many, base.cpu_many, 1000),
    ):
        cells += [_number(median(values) * factor), _number(ratio(values, those))]
    behind = median(figures.upstream_one)
    return [*cells, _number(behind * 1000) if behind else "", f"{figures.memory / MB:.0f}"]


def _memory(results: Results, scale: Scale) -> Iterator[str]:
    yield "## Memory"
    yield ""
    yield f"Before and after: {scale.calls:,} calls and {scale.sessions:,} sessions opened, used and closed."
    yield ""
    yield "| | two upstreams, MB | a legacy session, kB | with stream and connection, kB | before, MB | after, MB |"
    yield "|---|---|---|---|---|---|"
    for name, found in results.memory.items():
        values = [found.first / MB, found.session / KB, found.stream / KB, found.before / MB, found.after / MB]
        shown = [f"{value:.1f}" if value else "-" for value in values]
        yield f"| {' | '.join([name + (f' ({found.fault})' if found.fault else ''), *shown])} |"
    yield ""


def _starts(results: Results) -> Iterator[str]:
    yield "## Cold start"
    yield ""
    yield "| | to an open port, s | to the first answered call, s |"
    yield "|---|---|---|"
    for name, found in results.starts.items():
        values = [f"{median(each):.2f}" if each else "-" for each in (found.ready, found.answered)]
        yield f"| {name}{f' ({found.fault})' if found.fault else ''} | {' | '.join(values)} |"
    yield ""


def terminal(text: str) -> str:
    """The page with its tables in columns."""
    lines: list[str] = []
    table: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            table.append([cell.strip().replace("**", "") for cell in line.strip().strip("|").split("|")])
            continue
        lines += _columns(table)
        table = []
        lines.append(line.replace("**", ""))
    return "\n".join(lines)


def _columns(table: Sequence[Sequence[str]]) -> list[str]:
    rows = [row for row in table if not all(set(cell) <= {"-"} and cell for cell in row)]
    if not rows:
        return []
    widths = [max(len(row[index]) for row in rows if index < len(row)) for index in range(max(map(len, rows)))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip() for row in rows]
    return [lines[0], "-" * len(lines[0]), *lines[1:]]


def _number(value: float) -> str:
    if math.isnan(value):
        return "-"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "-"


def _processor() -> str:
    with Path("/proc/cpuinfo").open() as lines:
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _cores() -> int:
    with Path("/proc/cpuinfo").open() as lines:
        return sum(line.startswith("processor") for line in lines)
