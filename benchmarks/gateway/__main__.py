"""The benchmark of the gateway: `make bench`, or ``python -m benchmarks.gateway``.

    python -m benchmarks.gateway [--quick] [--rounds N] [--calls N] [--sessions N] [--out FILE] [--only SECTION ...]

Prints tables of ratios with the goals, and writes them to FILE; a whole run that is not quick, to
``benchmarks/RESULTS.md``.
"""

from __future__ import annotations

import argparse
import dataclasses
import signal
import sys
import time
from pathlib import Path

import uvloop

from benchmarks.gateway import long, sections
from benchmarks.gateway.goals import Results
from benchmarks.gateway.measure import Scale
from benchmarks.gateway.report import page, terminal
from benchmarks.gateway.stage import FASTMCP, TROTH, Stage

OUT = Path(__file__).parents[1] / "RESULTS.md"
QUICK = Scale(rounds=3, seconds=0.4, calls=10_000, sessions=200, starts=2)
SECTIONS = ("relayed", "piped", "ceiling", "listed", "memory", "starts")


def _say(what: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {what}", file=sys.stderr, flush=True)


async def run(scale: Scale, only: list[str]) -> Results:
    """Runs the sections one after the other."""
    none = sections.Section("not run", "", {})
    found: dict[str, sections.Section] = {}
    memory: dict[str, long.Memory] = {}
    starts: dict[str, long.Starts] = {}
    for name in only:
        _say(name)
        with Stage() as stage:
            if name == "relayed":
                found["modern"], found["legacy"], found["large"] = await sections.relayed(stage, scale)
            elif name == "memory":
                memory[TROTH] = await long.memory(stage, scale)
                memory[FASTMCP] = await long.memory(stage, scale, FASTMCP, long=False)
            elif name == "starts":
                starts = await long.starts(stage, scale)
            else:
                found[name] = await getattr(sections, name)(stage, scale)
    _say("done")
    names = ("modern", "legacy", "large", "piped", "ceiling", "listed")
    return Results(**{name: found.get(name, none) for name in names}, memory=memory, starts=starts)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    for field in dataclasses.fields(Scale):
        parser.add_argument(f"--{field.name}", type=type(field.default))
    options = parser.parse_args()
    given = {field.name: getattr(options, field.name) for field in dataclasses.fields(Scale)}
    scale = dataclasses.replace(
        QUICK if options.quick else Scale(), **{name: value for name, value in given.items() if value is not None}
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # So that nothing is left running.
    begun = time.perf_counter()
    results = uvloop.run(run(scale, options.only))
    text = page(results, scale, time.perf_counter() - begun)
    print(terminal(text))
    whole = set(options.only) == set(SECTIONS) and not options.quick
    if out := options.out or (OUT if whole else None):
        out.write_text(text)


if __name__ == "__main__":
    main()
