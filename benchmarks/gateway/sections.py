"""What is measured, section by section. Each returns its figures; a contender that cannot run has none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.gateway.load import Caller
from benchmarks.gateway.measure import MANY, Figures, Scale, Subject, measure
from benchmarks.gateway.stage import BEST, DIRECT, FASTMCP, MUX, RELAY, TROTH, Running, Stage, http, stdio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

GATEWAYS = (TROTH, FASTMCP, BEST)
LARGE = 1_000_000
TOOLS, SERVERS = 50, 20
CROSS = f"{TROTH}, other era"


@dataclass(frozen=True, slots=True)
class Section:
    """One measurement of several contenders.

    Attributes:
        title: What is measured.
        base: Name of the contender that the others are compared with.
        figures: By name.
        child: Whether the upstream is a child of the contenders, and its CPU time part of theirs.
        foreign: How many cores other programs took meanwhile.
    """

    title: str
    base: str
    figures: Mapping[str, Figures]
    child: bool = False
    foreign: float = 0.0


def _front(stage: Stage, upstream: Running, servers: Mapping[str, Mapping[str, object]]) -> dict[str, Running | None]:
    """The upstream alone, and everything that is put in front of it."""
    found: dict[str, Running | None] = {
        DIRECT: upstream,
        RELAY: stage.module(RELAY, "bare", "relay", "--to", upstream.url),
    }
    return found | {name: _tried(stage, name, servers) for name in GATEWAYS}


def _tried(stage: Stage, name: str, servers: Mapping[str, Mapping[str, object]]) -> Running | None:
    try:
        return stage.gateway(name, servers)
    except RuntimeError as error:
        print(error)
        return None


async def _section(
    title: str,
    runners: Mapping[str, tuple[Running | None, str]],
    scale: Scale,
    *,
    upstream: Running | None = None,
    base: str = DIRECT,
    action: Callable[[Caller], Awaitable[object]] = Caller.call,
    many: int = MANY,
    most: int = 1_000_000,
) -> Section:
    """Measures runners, each with the era of its hosts."""
    figures = {name: Figures(name, fault="" if running else "not run") for name, (running, _) in runners.items()}
    behind = upstream.process if upstream else None
    subjects = [
        Subject(figures[name], era, running, None if running is upstream else behind, action)
        for name, (running, era) in runners.items()
        if running
    ]
    foreign = await measure(subjects, scale, many=many, most=most)
    for name, (running, _) in runners.items():
        figures[name].start = running.start if running else 0.0
    return Section(title, base, figures, child=upstream is None, foreign=foreign)


async def relayed(stage: Stage, scale: Scale) -> list[Section]:
    """Calls over HTTP in both eras, within and across, and results of 1 MB."""
    sections: list[Section] = []
    for era, other in (("modern", "legacy"), ("legacy", "modern")):
        upstream = stage.module(f"sdk-{era}", "sdk_upstream", *(["--legacy"] if era == "legacy" else []))
        front = _front(stage, upstream, http(upstream.url))
        runners = {name: (running, era) for name, running in front.items()}
        runners |= {CROSS: (front[TROTH], other)}
        title = f"HTTP, {era} hosts, {era} upstream (SDK)"
        sections.append(await _section(title, runners, scale, upstream=upstream))
        if era == "modern":
            runners.pop(CROSS)
            title = "HTTP, results of 1 MB (SDK)"
            large = await _section(
                title, runners, scale, upstream=upstream, action=lambda caller: caller.large(LARGE), many=0, most=20
            )
        for running in front.values():
            if running:
                stage.end(running)
    return [*sections, large]


async def piped(stage: Stage, scale: Scale) -> Section:
    """Calls to an upstream on stdio."""
    servers = stdio()
    command = [str(servers["up"]["command"]), "-m", "benchmarks.gateway.sdk_upstream"]
    front = {MUX: stage.module(MUX, "mux", "--", *command)} | {name: _tried(stage, name, servers) for name in GATEWAYS}
    runners = {name: (running, "modern") for name, running in front.items()}
    section = await _section("stdio upstream (SDK; its CPU time is included)", runners, scale, base=MUX)
    for running in front.values():
        if running:
            stage.end(running)
    return section


async def ceiling(stage: Stage, scale: Scale) -> Section:
    """Calls to an upstream that costs almost nothing."""
    upstream = stage.module("bare", "bare", "upstream")
    relay = stage.module(RELAY, "bare", "relay", "--to", upstream.url)
    front = {DIRECT: upstream, RELAY: relay, TROTH: _tried(stage, TROTH, http(upstream.url))}
    runners = {name: (running, "modern") for name, running in front.items()}
    section = await _section("HTTP, bare ASGI upstream", runners, scale, upstream=upstream)
    for running in front.values():
        if running:
            stage.end(running)
    return section


async def listed(stage: Stage, scale: Scale) -> Section:
    """Lists of 1,000 tools of 20 upstreams."""
    upstream = stage.module("bare-20", "bare", "upstream", "--tools", str(TOOLS))
    servers = {f"s{number}": http(f"{upstream.url}/{number}")["up"] for number in range(SERVERS)}
    front = {name: _tried(stage, name, servers) for name in GATEWAYS}
    runners = {name: (running, "modern") for name, running in front.items()}

    async def whole(caller: Caller) -> None:
        count = len(await caller.names())
        if count != TOOLS * SERVERS:
            raise ValueError(f"{count} tools of {TOOLS * SERVERS}")

    title = f"list of {TOOLS * SERVERS:,} tools of {SERVERS} upstreams"
    section = await _section(title, runners, scale, upstream=upstream, base=TROTH, action=whole, many=0, most=20)
    for running in (*front.values(), upstream):
        if running:
            stage.end(running)
    return section
