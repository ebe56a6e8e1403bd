"""Upstreams for these tests: real servers over real transports, and what is heard of them."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from held_ports import held_port
from troth.bridge import Frame, Lost, Outgoing, ask
from troth.gateway.crew import Crew
from troth.gateway.limits import Limits
from troth.gateway.settings import Transport, UpstreamSettings
from troth.gateway.upstream import open_upstream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from troth.gateway.upstream import Supervisor

PATIENCE = 30.0
"""Seconds that anything here may take."""
PUPPET = Path(__file__).with_name("upstream_puppet.py")
QUICK = Limits(back_off=0.05, back_off_most=0.5, stop=0.5)
LEGACY = "2025-11-25"
MODERN = "2026-07-28"
EACH = (LEGACY, MODERN)


def body(frame: Frame) -> Any:
    return msgspec.json.decode(frame.body) if frame.body is not None else None


@dataclass
class Ears:
    """An observer that keeps everything, and lets a test wait for it."""

    events: list[tuple[str, str, Any]] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def _tell(self, *event: Any) -> None:
        self.events.append(event)
        self.news.set()

    def up(self, upstream: Any) -> None:
        self._tell("up", upstream.name, upstream.conversation.revision)

    def down(self, upstream: Any) -> None:
        self._tell("down", upstream.name, upstream.why)

    def asked(self, upstream: Any, frame: Frame) -> bool:
        return False

    def heard(self, upstream: Any, frame: Frame) -> None:
        self._tell("heard", frame.method, body(frame))

    def count(self, kind: str, what: str | None = None) -> int:
        return sum(event[0] == kind and what in (None, event[1]) for event in self.events)

    async def until(self, kind: str, what: str | None = None, times: int = 1) -> Any:
        async with asyncio.timeout(PATIENCE):
            while self.count(kind, what) < times:
                self.news.clear()
                await self.news.wait()
        found = [event for event in self.events if event[0] == kind and what in (None, event[1])]
        return found[times - 1][2]


@dataclass
class Heard:
    """A sink that keeps everything."""

    takes: bool = False
    frames: list[Frame] = field(default_factory=list)
    notes: list[Frame] = field(default_factory=list)
    questions: list[Frame] = field(default_factory=list)
    losses: list[Lost] = field(default_factory=list)
    done: asyncio.Event = field(default_factory=asyncio.Event)
    noted: asyncio.Event = field(default_factory=asyncio.Event)

    def answered(self, frame: Frame) -> None:
        self.frames.append(frame)
        self.done.set()

    def notified(self, frame: Frame) -> None:
        self.notes.append(frame)
        self.noted.set()

    def asked(self, frame: Frame) -> bool:
        self.questions.append(frame)
        self.noted.set()
        return self.takes

    def lost(self, why: Lost) -> None:
        self.losses.append(why)
        self.done.set()

    async def end(self) -> Any:
        """The result or error as JSON, or the loss."""
        async with asyncio.timeout(PATIENCE):
            await self.done.wait()
        assert len(self.frames) + len(self.losses) == 1
        return body(self.frames[0]) if self.frames else self.losses[0]


def call(tool: str, arguments: dict[str, Any] | None = None, **how: Any) -> Outgoing:
    frame = ask("tools/call", {"name": tool, "arguments": arguments or {}})
    return Outgoing(frame=frame, name=tool, **how)


def scripted(*words: str, revisions: tuple[str, ...] = EACH, breaks: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The command of a scripted server."""
    served = [word for revision in revisions for word in ("--revision", revision)]
    broken = [word for fault in breaks for word in ("--break", fault)]
    return (sys.executable, "-m", "troth.testing", "server", *served, *broken, *words)


def stdio(*command: str, **how: Any) -> UpstreamSettings:
    return UpstreamSettings(name="one", transport=Transport.STDIO, command=command, **how)


def http(url: str, **how: Any) -> UpstreamSettings:
    return UpstreamSettings(name="one", transport=Transport.HTTP, url=url, **how)


class Served:
    """A scripted server over HTTP that can be killed and started again on the same port."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self.command = (*command, "--transport", "http")
        self.port = 0
        self.process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def start(self) -> None:
        self.process = subprocess.Popen(
            (*self.command, "--port", str(self.port)), stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
        )
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert line == f"ready {self.url}\n"

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(PATIENCE)
            assert self.process.stderr is not None
            self.process.stderr.close()
            self.process = None

    def restart(self) -> None:
        self.kill()
        self.start()


@contextmanager
def serving(*words: str, **how: Any) -> Iterator[Served]:
    server = Served(scripted(*words, **how))
    with held_port() as server.port:
        server.start()
        try:
            yield server
        finally:
            server.kill()


@asynccontextmanager
async def upstream(
    settings: UpstreamSettings, limits: Limits = QUICK, memory: dict[str, str] | None = None
) -> AsyncIterator[tuple[Supervisor, Ears]]:
    """An upstream that is kept up until the end of the block; nothing of it is left behind."""
    crew, ears = Crew(), Ears()
    one = open_upstream(settings, ears, crew, limits, {} if memory is None else memory)
    try:
        yield one, ears
    finally:
        await one.stop()
        left = len(crew)
        await crew.close()
        assert left == 0


async def until(holds: Callable[[], bool]) -> None:
    """Waits for what announces itself to nobody."""
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - nobody sets an event
            await asyncio.sleep(0.01)


def script(tmp_path: Any, text: str, name: str = "server.py") -> tuple[str, ...]:
    """The command of a server written in a test."""
    path = tmp_path / name
    path.write_text(text)
    return (sys.executable, str(path))


def puppet(log: Path, era: str, declared: str = "", listen: str = "honour") -> tuple[str, ...]:
    """The command of a server whose answers to calls are dictated."""
    return (sys.executable, str(PUPPET), str(log), era, declared, listen)


def say(*lines: str, **how: Any) -> Outgoing:
    """A call that dictates its answer to a puppet."""
    return call("any", {"say": list(lines)}, **how)


def heard_lines(log: Path) -> list[Any]:
    """What a server was told; not the line that it is just writing down."""
    return [json.loads(line) for line in log.read_text().split("\n")[:-1]] if log.exists() else []


def methods(log: Path) -> list[str]:
    return [message.get("method", "") for message in heard_lines(log)]
