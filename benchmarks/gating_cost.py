"""What Troth in a server costs: CPU per call and per list of 200 tools.

    python -m benchmarks.gating_cost [--rounds N]

Three servers of each framework run in one process, each with an in-memory host of its own: as its author wrote it; with
Troth installed and nothing gated; with Troth installed and every fourth tool gated. In each round each is asked once,
so that what else the machine does hits all of them alike; the cost is the CPU time of the thread, and what is added is
the median over the rounds of the ratio within a round. No transport is in it, which makes the shares larger than they
are for real. Exits 1 if gating adds more than 5 % to a call or 10 % to a list beside the same server with Troth and
nothing gated; what Troth as a whole adds is shown beside it. The host that *may* declares what the gated tools need, so
they are shown to it with their requirements; from the other they are hidden.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import AsyncExitStack
from statistics import median

import anyio

import troth
from benchmarks.gating_servers import MAKERS, needs_of
from troth.plugins.mcp_host import connect
from troth.register import Era, register

MOST = {"tools/call": 0.05, "tools/list": 0.10}
PARAMS = {"tools/call": {"name": "tool_0", "arguments": {"a": 1}}, "tools/list": {}}
HOSTS = {"may": {"sampling": {}}, "may not": {}}
WARM = 5


async def measured(framework: str, revision: str, declared: dict, rounds: int) -> dict[str, list[list[float]]]:
    """Method -> for each round, microseconds of the three servers."""
    found: dict[str, list[list[float]]] = {}
    async with AsyncExitStack() as stack:
        hosts = []
        for kind in ("plain", "installed", "gated"):
            server = MAKERS[framework](kind)
            if kind != "plain":
                troth.install(server, requirements=needs_of(framework, kind))
            hosts.append(await stack.enter_async_context(connect(server, capabilities=declared, revision=revision)))
        for method in MOST:
            found[method] = []
            for _ in range(rounds + WARM):
                row = []
                for host in hosts:
                    began = time.thread_time_ns()
                    await host.request(method, PARAMS[method])
                    row.append((time.thread_time_ns() - began) / 1000)
                found[method].append(row)
    return {method: rows[WARM:] for method, rows in found.items()}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=100)
    rounds = parser.parse_args().rounds
    print("| framework | era | host | request | plain, µs | with Troth | and gating | Troth adds | gating adds |")
    print("|---|---|---|---|---:|---:|---:|---:|---:|")
    broken = 0
    for framework in MAKERS:
        for era in Era:
            for host, declared in HOSTS.items():
                made = anyio.run(measured, framework, register().newest(era), declared, rounds)
                for method, costs in made.items():
                    plain, installed, gated = (median(column) for column in zip(*costs, strict=True))
                    whole = median(cost[2] / cost[0] for cost in costs) - 1
                    adds = median(cost[2] / cost[1] for cost in costs) - 1
                    broken += adds > MOST[method]
                    figures = f"{plain:.0f} | {installed:.0f} | {gated:.0f} | {whole:+.1%} | {adds:+.1%}"
                    print(f"| {framework} | {era} | {host} | `{method}` | {figures} |", flush=True)
    if broken:
        print(f"{broken} over budget", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
