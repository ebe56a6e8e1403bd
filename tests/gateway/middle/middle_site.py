"""A scripted server over HTTP inside the test: of one era, to be changed, bent, stopped and started by the test."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from aiohttp import web
from middle_gateway import META, MODERN, PATIENCE

from held_ports import held_port
from troth.gateway.settings import Transport, UpstreamSettings
from troth.testing.http import Shell
from troth.testing.model import Send, Twist
from troth.testing.script import Script

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
    from pathlib import Path

    from middle_gateway import Legacy, Modern, Served

    from troth.testing.model import Answer, Call, Out

OLD = "2025-11-25"


class Site:
    """The server.

    Attributes:
        heard: Messages that came, in order.
        answers: Method -> what is answered in its place; a value that is None leaves it to the script.
        results: Method -> the result that goes out in the place of the script's, spelled for no revision.
    """

    def __init__(self, revision: str, *twists: Twist, variant: str = "full") -> None:
        self.revision = revision
        self.variant = variant
        self.heard: list[dict[str, Any]] = []
        self.answers: dict[str, Callable[[Script, Call], Answer | None]] = {}
        self.port = 0
        self.results: dict[str, Any] = {}
        self._twists = (*twists, Twist(instead=self._instead, after=self._after))
        self._news = asyncio.Event()

    def _instead(self, script: Script, call: Call) -> Answer | None:
        found = self.answers.get(call.method)
        return found(script, call) if found else None

    def _after(self, _script: Script, call: Call | None, outs: list[Out]) -> list[Out]:
        for out in outs:
            if call is not None and call.method in self.results and isinstance(out, Send) and "result" in out.message:
                out.message["result"] = self.results[call.method]
        return outs

    async def start(self) -> None:
        """Begins anew, without sessions and with the lists of its variant."""
        self.script = Script(
            variant=self.variant, revisions=(self.revision,), transport="http", twists=self._twists, instance="site"
        )
        feed = self.script.feed

        def recording(value: Any, context: Any) -> Any:
            self.heard.extend(value if isinstance(value, list) else [value])
            self._news.set()
            return feed(value, context)

        self.script.feed = recording  # type: ignore[method-assign]
        self.shell = Shell(self.script)
        self._runner = web.AppRunner(
            self.shell.application(), access_log=None, handler_cancellation=True, shutdown_timeout=0.1
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()

    async def stop(self) -> None:
        self.shell.stop()
        await self._runner.cleanup()

    def settings(self, name: str, **more: Any) -> UpstreamSettings:
        url = f"http://127.0.0.1:{self.port}/mcp"
        return UpstreamSettings(name=name, transport=Transport.HTTP, url=url, **more)

    def do(self, act: Callable[[Script], Any]) -> Any:
        """Does something to the script; what it says because of that goes out."""
        self.script._out = []
        result = act(self.script)
        self.shell.deliver(self.script._out)
        return result

    def add(self, *families: str, announce: bool = True) -> list[str]:
        """Adds an item to each list, and says so."""

        def act(script: Script) -> list[str]:
            names = [script.catalogue.add(family) for family in families]
            for family in families:
                if announce:
                    script.announce(family)
            return names

        return self.do(act)

    def touch(self, uri: str) -> None:
        """A resource changed."""
        self.do(lambda script: script.updated(uri))

    def count(self, method: str) -> int:
        return sum(message.get("method") == method for message in self.heard)

    def of(self, method: str) -> list[dict[str, Any]]:
        return [message for message in self.heard if message.get("method") == method]

    @staticmethod
    def hears_in(message: dict[str, Any]) -> dict[str, Any]:
        """What a modern request declares."""
        return message["params"]["_meta"][f"{META}clientCapabilities"]

    async def until(self, holds: Callable[[], Any]) -> Any:
        """Waits until something holds that a message to the server may bring about."""
        async with asyncio.timeout(PATIENCE):
            while not (found := holds()):
                self._news.clear()
                await self._news.wait()
            return found

    async def hears(self, method: str, times: int = 1) -> dict[str, Any]:
        await self.until(lambda: self.count(method) >= times)
        return self.of(method)[times - 1]

    async def open(self) -> None:
        """Waits until the stream of each session is open: what is said on it before is lost."""
        await until(lambda: self.script.sessions and all(map(self._pushes, self.script.sessions.values())))

    def _pushes(self, session: Any) -> bool:
        return session.push in self.shell.streams

    def watched(self) -> list[str]:
        """The URIs that somebody watches, in either era, once for each subscription."""
        sessions = [uri for session in self.script.sessions.values() for uri in session.subscriptions]
        return sorted(
            sessions + [uri for one in self.script.listens for uri in one.filter.get("resourceSubscriptions", ())]
        )


@asynccontextmanager
async def site(revision: str, *twists: Twist, variant: str = "full") -> AsyncGenerator[Site]:
    """Runs a scripted server of one revision."""
    one = Site(revision, *twists, variant=variant)
    with held_port() as one.port:
        await one.start()
        try:
            yield one
        finally:
            await one.stop()


async def until(holds: Callable[[], Any]) -> Any:
    """Waits for what announces itself to nobody."""
    async with asyncio.timeout(PATIENCE):
        while not (found := holds()):  # noqa: ASYNC110 - nobody sets an event
            await asyncio.sleep(0.005)
        return found


async def together(works: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Runs all at once; what they returned, in order."""
    waiting = list(works)
    found: list[Any] = [None] * len(waiting)

    async def one(number: int, work: Coroutine[Any, Any, Any]) -> None:
        found[number] = await work

    async with anyio.create_task_group() as tasks:
        for number, work in enumerate(waiting):
            tasks.start_soon(one, number, work)
    return found


def host(served: Served, revision: str, **given: Any) -> Legacy | Modern:
    """A host that speaks a revision."""
    return served.modern(**given) if revision == MODERN else served.legacy(revision, **given)


TAG = f"{META}subscriptionId"
EACH = (OLD, MODERN)


async def on_pipes(one: Site, folder: Path) -> asyncio.subprocess.Process:
    """A gateway on pipes in front of a server, with a configuration and a state of its own."""
    config = folder / "mcp.json"
    url = f"http://127.0.0.1:{one.port}/mcp"
    config.write_text(json.dumps({"mcpServers": {"one": {"type": "http", "url": url}}}))
    environ = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_STATE_HOME": str(folder)}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "troth", "serve", "--stdio", str(config)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=environ,
    )
