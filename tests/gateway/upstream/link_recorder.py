"""What the tests of links share: a user of a link that keeps all it is told, and ways to wait for it."""

from __future__ import annotations

import json
import sys
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import anyio

from troth.gateway.settings import Transport, UpstreamSettings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from troth.bridge import Id
    from troth.gateway.upstream.link import Problem


def run(test: Callable[[], Awaitable[None]], seconds: float = 60) -> None:
    """Runs a test on uvloop, as the gateway runs, within a bound."""

    async def bounded() -> None:
        with anyio.fail_after(seconds):
            await test()

    anyio.run(bounded, backend_options={"use_uvloop": True})


class Recorder:
    """Keeps what a link tells."""

    def __init__(self) -> None:
        self.frames: list[tuple[Id | None, bytes]] = []
        self.ends: list[tuple[Id | None, Problem | None]] = []
        self.sessions: list[tuple[Id, str]] = []
        self.opened = 0
        self.deaths: list[str] = []
        self._changed = anyio.Event()

    def receive(self, data: bytes, key: Id | None) -> bool:
        self.frames.append((key, data))
        self._tell()
        try:
            message = json.loads(data)
        except ValueError:
            return False
        return isinstance(message, dict) and "method" not in message and message.get("id") == key

    def ended(self, key: Id | None, problem: Problem | None) -> None:
        self.ends.append((key, problem))
        self._tell()

    def session(self, key: Id, value: str) -> None:
        self.sessions.append((key, value))
        self._tell()

    def listening(self) -> None:
        self.opened += 1
        self._tell()

    def dead(self, why: str) -> None:
        self.deaths.append(why)
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    @property
    def values(self) -> list[Any]:
        return [json.loads(data) for _, data in self.frames]

    async def until(self, wanted: Callable[[Recorder], object], seconds: float = 30) -> None:
        with anyio.fail_after(seconds):
            while not wanted(self):
                await self._changed.wait()

    async def count(self, number: int) -> None:
        await self.until(lambda it: len(it.frames) >= number)

    async def end_of(self, key: Id | None) -> Problem | None:
        await self.until(lambda it: key in dict(it.ends))
        return dict(self.ends)[key]

    async def death(self) -> str:
        await self.until(lambda it: it.deaths)
        return self.deaths[0]


def process(code: str, *args: str, env: Mapping[str, str] | None = None) -> UpstreamSettings:
    """An upstream whose process runs this Python."""
    return UpstreamSettings(
        name="peer",
        transport=Transport.STDIO,
        command=(sys.executable, "-u", "-c", dedent(code), *args),
        env=env or {},
    )


def message(key: Id, **members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": key, "method": "ping", **members}).encode()
