"""A gateway in this process, over real HTTP, in front of real servers; and hosts of both eras that speak raw JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import aiohttp

from troth.gateway.crew import Crew
from troth.gateway.front import MiddleFront
from troth.gateway.gateway import Gateway
from troth.gateway.hosts import ANONYMOUS, Access, HttpHosts, serve_http
from troth.gateway.limits import Limits
from troth.gateway.settings import GatewaySettings, TokenSettings, Transport, UpstreamSettings
from troth.gateway.state import State

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable

PATIENCE = 30.0
"""Seconds that anything may take; only a fault takes that long."""
CALM = Limits(coalesce=0.01, back_off=0.05, stop=10.0, early=PATIENCE, grace=PATIENCE, watching=600.0)
"""Quick where a test waits for the gateway, and patient where the gateway waits for a host or an upstream."""

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"


def server(name: str, *options: str, **settings: Any) -> UpstreamSettings:
    """A scripted server over stdio; `options` as for `python -m troth.testing server`."""
    command = (sys.executable, "-m", "troth.testing", "server", *options)
    return UpstreamSettings(name=name, transport=Transport.STDIO, command=command, **settings)


@dataclass
class Served:
    """A gateway that runs."""

    gateway: Gateway
    front: MiddleFront
    url: str
    http: aiohttp.ClientSession

    def legacy(self, revision: str = "2025-11-25", **given: Any) -> Legacy:
        return Legacy(self, revision, **given)

    def modern(self, **given: Any) -> Modern:
        return Modern(self, **given)

    async def ready(self, *names: str) -> None:
        """Waits until upstreams are up and their lists known."""
        for fleet in self.gateway.every_fleet():
            for member in fleet.members:
                if not names or member.name in names:
                    async with asyncio.timeout(PATIENCE):
                        await member.upstream.ready(PATIENCE)
                        await member.settled.wait()
                        await member.fetched()
            async with asyncio.timeout(PATIENCE):
                while fleet._telling is not None:  # noqa: ASYNC110 - nobody sets an event
                    await asyncio.sleep(0.002)


@asynccontextmanager
async def serving(
    *upstreams: UpstreamSettings,
    limits: Limits | None = None,
    tokens: Iterable[str | TokenSettings] = (),
    state: State | None = None,
    eager: bool = True,
    **settings: Any,
) -> AsyncGenerator[Served]:
    """Runs a gateway without credentials, or with tokens that are their own names."""
    limits = limits or CALM
    made = tuple(TokenSettings(name=token, token=token) if isinstance(token, str) else token for token in tokens)
    configured = GatewaySettings(upstreams=upstreams, tokens=made, **{"startup_wait": PATIENCE, **settings})
    crew = Crew()
    gateway = Gateway(configured, state or State(path=None), crew, limits)
    front = MiddleFront(gateway)
    if not made and eager:
        gateway.fleet(ANONYMOUS)
    app = HttpHosts(front, Access(made, no_auth=not made), limits, crew)
    listening = await serve_http(app, "127.0.0.1", 0, limits, crew)
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as http:
            yield Served(gateway, front, f"http://127.0.0.1:{listening.port}", http)
    finally:
        front.stop()
        await listening.stop()
        await gateway.stop()
        await crew.close()


@dataclass
class Told:
    """What came for one request."""

    answer: dict[str, Any]
    before: list[dict[str, Any]]
    status: int
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def result(self) -> dict[str, Any]:
        assert "result" in self.answer, self.answer
        return self.answer["result"]

    @property
    def error(self) -> dict[str, Any]:
        assert "error" in self.answer, self.answer
        return self.answer["error"]


class _Host:
    """What hosts of both eras share."""

    def __init__(self, served: Served, token: str = "") -> None:
        self.served = served
        self.ids = count(1)
        self.base = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        if token:
            self.base["authorization"] = f"Bearer {token}"
        self.streams: list[asyncio.Task[None]] = []

    async def post(self, message: dict[str, Any], headers: dict[str, str] | None = None) -> Told:
        url = f"{self.served.url}/mcp"
        async with asyncio.timeout(PATIENCE):
            async with self.served.http.post(url, json=message, headers={**self.base, **(headers or {})}) as response:
                found = [item async for item in messages(response)]
        answers = [item for item in found if "method" not in item]
        rest = [item for item in found if "method" in item]
        return Told(answers[-1] if answers else {}, rest, response.status, dict(response.headers))

    async def close(self) -> None:
        for stream in self.streams:
            stream.cancel()
            with suppress(asyncio.CancelledError):
                await stream

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self.streams.append(asyncio.get_running_loop().create_task(work))

    async def _pump(self, response: aiohttp.ClientResponse, inbox: Inbox) -> None:
        try:
            async for message in messages(response):
                inbox.put(message)
        finally:
            response.close()
        inbox.ended = True
        inbox.put({"ended": True})


async def messages(response: aiohttp.ClientResponse) -> AsyncGenerator[dict[str, Any]]:
    """The JSON messages of a response, of either content type."""
    if response.content_type == "application/json":
        body = json.loads(await response.read() or b"{}")
        for item in body if isinstance(body, list) else [body]:
            yield item
        return
    async for line in response.content:
        if line.startswith(b"data:") and (data := line[5:].strip()):
            yield json.loads(data)


class Inbox:
    """What came on a long stream."""

    def __init__(self) -> None:
        self.all: list[dict[str, Any]] = []
        self.ended = False
        self._new = asyncio.Event()

    def put(self, message: dict[str, Any]) -> None:
        self.all.append(message)
        self._new.set()

    async def until(self, wanted: Callable[[dict[str, Any]], bool], after: int = 0) -> dict[str, Any]:
        """Waits for a message."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for message in self.all[after:]:
                    if wanted(message):
                        return message
                self._new.clear()
                await self._new.wait()

    async def method(self, name: str, after: int = 0) -> dict[str, Any]:
        return await self.until(lambda message: message.get("method") == name, after)

    def methods(self) -> list[str]:
        return [message["method"] for message in self.all if "method" in message]


class Legacy(_Host):
    """A host with a session."""

    def __init__(
        self,
        served: Served,
        revision: str,
        *,
        token: str = "",
        declares: dict[str, Any] | None = None,
        info: dict[str, str] | None = None,
    ) -> None:
        super().__init__(served, token)
        self.revision = revision
        self.declares = declares or {}
        self.info = info or {"name": "test-host", "version": "1"}
        self.inbox = Inbox()

    async def __aenter__(self) -> Legacy:
        params = {"protocolVersion": self.revision, "capabilities": self.declares, "clientInfo": self.info}
        told = await self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        self.opening = told.result
        self.revision = self.opening["protocolVersion"]
        self.base["mcp-session-id"] = told.headers["mcp-session-id"]
        if self.revision >= "2025-06-18":
            self.base["mcp-protocol-version"] = self.revision
        await self.notify("notifications/initialized")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def ask(self, method: str, params: dict[str, Any] | None = None, **extra: Any) -> Told:
        message = {"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": {**(params or {}), **extra}}
        return await self.post(message)

    async def notify(self, method: str, params: dict[str, Any] | None = None) -> Told:
        return await self.post({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})

    async def call(self, name: str, arguments: dict[str, Any] | None = None, **extra: Any) -> Told:
        return await self.ask("tools/call", {"name": name, "arguments": arguments or {}, **extra})

    async def listen(self) -> Inbox:
        """Opens the GET stream."""
        response = await self.served.http.get(f"{self.served.url}/mcp", headers=self.base)
        assert response.status == 200, await response.text()
        self._start(self._pump(response, self.inbox))
        return self.inbox

    async def delete(self) -> int:
        async with self.served.http.delete(f"{self.served.url}/mcp", headers=self.base) as response:
            return response.status


class Modern(_Host):
    """A host without sessions."""

    def __init__(
        self, served: Served, *, token: str = "", declares: dict[str, Any] | None = None, name: str = "test-host"
    ) -> None:
        super().__init__(served, token)
        self.declares = declares or {}
        self.info = {"name": name, "version": "1"}

    async def __aenter__(self) -> Modern:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def message(self, method: str, params: dict[str, Any] | None, meta: dict[str, Any]) -> dict[str, Any]:
        full = {
            f"{META}protocolVersion": MODERN,
            f"{META}clientCapabilities": self.declares,
            f"{META}clientInfo": self.info,
            **meta,
        }
        return {"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": {**(params or {}), "_meta": full}}

    def headers(self, method: str, params: dict[str, Any] | None) -> dict[str, str]:
        named = (params or {}).get("name", (params or {}).get("uri"))
        gated = method in ("tools/call", "prompts/get", "resources/read")
        return {"mcp-protocol-version": MODERN, "mcp-method": method, **({"mcp-name": named} if gated else {})}

    async def ask(self, method: str, params: dict[str, Any] | None = None, **meta: Any) -> Told:
        return await self.post(self.message(method, params, meta), self.headers(method, params))

    async def call(self, name: str, arguments: dict[str, Any] | None = None, **meta: Any) -> Told:
        return await self.ask("tools/call", {"name": name, "arguments": arguments or {}}, **meta)

    async def listen(self, **filters: Any) -> Inbox:
        """Opens ``subscriptions/listen`` and waits for its acknowledgement."""
        message = self.message("subscriptions/listen", {"notifications": filters}, {})
        headers = {**self.base, **self.headers("subscriptions/listen", None)}
        response = await self.served.http.post(f"{self.served.url}/mcp", json=message, headers=headers)
        assert response.status == 200, await response.text()
        inbox = Inbox()
        self._start(self._pump(response, inbox))
        await inbox.method("notifications/subscriptions/acknowledged")
        return inbox
