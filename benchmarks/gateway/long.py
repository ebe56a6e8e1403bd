"""Memory of a gateway: with two upstreams, of a session, and over a long run; and its cold starts."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.gateway.load import Caller, load
from benchmarks.gateway.measure import MANY, find
from benchmarks.gateway.stage import FASTMCP, TROTH, http

if TYPE_CHECKING:
    from benchmarks.gateway.measure import Scale
    from benchmarks.gateway.stage import Running, Stage

OPEN = 1000
"""Sessions that are open at once when one is weighed."""
WARM = 5000


@dataclass(slots=True)
class Memory:
    """Bytes.

    Attributes:
        first: Of the process after its first calls, in front of two upstreams.
        session: Of one legacy session.
        stream: Of one legacy session with its open event stream and connection.
        before: Before the long run, warm.
        after: After it.
        fault: Why there are no figures.
    """

    first: int = 0
    session: float = 0.0
    stream: float = 0.0
    before: int = 0
    after: int = 0
    fault: str = ""


@dataclass(slots=True)
class Starts:
    """Seconds from the start of the process to its open port, and to the first call that was answered."""

    ready: list[float] = field(default_factory=list)
    answered: list[float] = field(default_factory=list)
    fault: str = ""


async def memory(stage: Stage, scale: Scale, name: str = TROTH, *, long: bool = True) -> Memory:
    """Weighs a gateway in front of two bare upstreams."""
    upstream = stage.module("bare-2", "bare", "upstream")
    servers = {each: http(f"{upstream.url}/{each}")["up"] for each in ("one", "two")}
    found = Memory()
    gateway = None
    try:
        gateway = stage.gateway(name, servers)
        if gateway is None:
            found.fault = "not run"
        else:
            await _weigh(gateway, found, scale, long=long)
    except Exception as error:
        found.fault = f"{type(error).__name__}: {error}"[:300]
    for running in (gateway, upstream):
        if running:
            stage.end(running)
    return found


async def _weigh(gateway: Running, found: Memory, scale: Scale, *, long: bool) -> None:
    weigh = gateway.process.memory
    tool = await find(gateway.url, "modern")
    caller = await Caller(gateway.url, "modern", tool).open()
    for _ in range(20):
        await caller.call()
    found.first = weigh()
    if not long:
        return
    await _churn(gateway, tool, MANY)
    before = weigh()
    sessions = await _sessions(gateway, tool, OPEN)
    found.session = (weigh() - before) / OPEN
    for session in sessions:
        await session.listen()
    found.stream = (weigh() - before) / OPEN
    for session in sessions:
        session.close()
    await _end(sessions)
    await _calls(gateway, tool, WARM)
    found.before = weigh()
    await _calls(gateway, tool, scale.calls)
    await _churn(gateway, tool, scale.sessions)
    found.after = weigh()
    caller.close()


async def _sessions(gateway: Running, tool: str, count: int) -> list[Caller]:
    """Sessions that are opened one after the other on one connection."""
    first = await Caller(gateway.url, "legacy", tool).open()
    rest = [await first.another() for _ in range(count - 1)]
    return [first, *rest]


async def _end(sessions: list[Caller]) -> None:
    for session in sessions:
        await session.wake()
        await session.end()


async def _churn(gateway: Running, tool: str, count: int) -> None:
    """Sessions that are opened, used for one call and ended, by several hosts at once."""

    async def visit() -> None:
        caller = await Caller(gateway.url, "legacy", tool).open()
        await caller.call()
        await caller.end()

    await load([visit] * min(MANY, count), 600.0, count)


async def _calls(gateway: Running, tool: str, count: int) -> None:
    for era in ("modern", "legacy"):
        callers = [await Caller(gateway.url, era, tool).open() for _ in range(MANY // 2)]
        await load([caller.call for caller in callers], 600.0, count // 2)
        for caller in callers:
            await caller.end()


async def starts(stage: Stage, scale: Scale) -> dict[str, Starts]:
    """Cold starts in turn, in front of one bare upstream."""
    upstream = stage.module("bare-start", "bare", "upstream")
    found = {name: Starts() for name in (TROTH, FASTMCP)}
    for _ in range(scale.starts):
        for name, result in found.items():
            if not result.fault:
                await _start(stage, name, upstream.url, result)
    stage.end(upstream)
    return found


async def _start(stage: Stage, name: str, url: str, result: Starts) -> None:
    begun = time.perf_counter()
    try:
        gateway = stage.gateway(name, http(url))
    except RuntimeError as error:
        result.fault = str(error)
        return
    if gateway is None:
        result.fault = "not run"
        return
    result.ready.append(gateway.start)
    try:
        caller = await Caller(gateway.url, "modern", "echo").open()
        await caller.call()
        result.answered.append(time.perf_counter() - begun)
        caller.close()
    except Exception as error:
        result.fault = f"{type(error).__name__}: {error}"[:300]
    stage.end(gateway)
