"""A `Front` whose answers are scripted by method, for tests of the host side, and helpers that serve it."""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import aiohttp

from troth.bridge import Bad, Frame, peek, peek_meta
from troth.capabilities import read_client
from troth.gateway.crew import Crew
from troth.gateway.hosts import Access, HttpHosts, HttpServer, serve_http
from troth.gateway.limits import Limits
from troth.gateway.model import Answer, Host, Principal, Sort, Stream
from troth.register import Era, register

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
VERSION = "io.modelcontextprotocol/protocolVersion"
META = {
    VERSION: MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
}
BOTH = "application/json, text/event-stream"
TOOL = {"name": "echo", "inputSchema": {"type": "object"}}


def line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode()


def result(frame: Frame, value: Mapping[str, Any]) -> Answer:
    return Answer(line({"jsonrpc": "2.0", "id": frame.id, "result": value}))


def error(frame: Frame, code: int, message: str = "no") -> Answer:
    return Answer(line({"jsonrpc": "2.0", "id": frame.id, "error": {"code": code, "message": message}}), code)


def notification(method: str, **params: Any) -> bytes:
    return line({"jsonrpc": "2.0", "method": method, "params": params})


CHANGED = notification("notifications/tools/list_changed")


@dataclass(eq=False)
class ScriptedSession:
    host: Host
    outbox: Stream
    push: bool
    id: str = ""
    reached: bool = False


Script = "Callable[[Frame, Host, Stream], Awaitable[Answer]]"


@dataclass(eq=False)
class ScriptedFront:
    """Answers by `scripts`; keeps what happened."""

    scripts: dict[str, Any] = field(default_factory=dict)
    sessions: list[ScriptedSession] = field(default_factory=list)
    closed: list[ScriptedSession] = field(default_factory=list)
    notified: list[Frame] = field(default_factory=list)
    cancelled: list[Any] = field(default_factory=list)
    finished: list[Any] = field(default_factory=list)
    refused: Bad | None = None

    async def initialize(self, frame: Frame, principal: Principal, outbox: Stream, *, push: bool, transport: str):
        asked = peek(frame, "protocolVersion")
        assert not isinstance(asked, Bad)
        revision = asked.get("protocolVersion", "")
        if revision not in register().eras[Era.LEGACY]:
            revision = LEGACY
        host = Host(
            principal=principal, revision=revision, era=Era.LEGACY, capabilities=read_client({}, revision),
            name="raw", transport=transport,
        )  # fmt: skip
        session = ScriptedSession(host, outbox, push)
        host.session = session
        self.sessions.append(session)
        declared = {"tools": {"listChanged": True}}
        info = {"name": "scripted", "version": "1"}
        return session, result(frame, {"protocolVersion": revision, "capabilities": declared, "serverInfo": info})

    def modern(self, frame: Frame, principal: Principal, transport: str) -> Host | Bad:
        found = peek_meta(frame, VERSION)
        if isinstance(found, Bad) or VERSION not in found:
            return Bad(-32602, f"_meta: {VERSION} is missing", frame.id)
        revision = found[VERSION]  # pyright: ignore
        if revision not in register().eras[Era.MODERN]:
            return Bad(-32022, "this revision is not spoken here", frame.id)
        return Host(
            principal=principal, revision=revision, era=Era.MODERN, capabilities=read_client({}, revision),
            name="raw", transport=transport,
        )  # fmt: skip

    def refusal(self, bad: Bad, revision: str | None) -> Answer:
        return Answer(
            line({"jsonrpc": "2.0", "id": bad.id, "error": {"code": bad.code, "message": bad.reason}}), bad.code
        )

    def header_fault(self, frame: Frame, host: Host, headers: Mapping[str, str]) -> Bad | None:
        if headers.get("mcp-method", frame.method) != frame.method:
            return Bad(-32020, "Mcp-Method says something else", frame.id)
        return self.refused

    async def answer(self, frame: Frame, host: Host, stream: Stream) -> Answer:
        script = self.scripts.get(frame.method, STANDARD.get(frame.method))
        if script is None:
            return error(frame, -32601, f"Unknown method: {frame.method}")
        try:
            answer = await script(frame, host, stream)
        except asyncio.CancelledError:
            self.cancelled.append(frame.id)
            raise
        self.finished.append(frame.id)
        return answer

    def notify(self, frame: Frame, host: Host) -> None:
        self.notified.append(frame)

    def close(self, session: Any) -> None:
        self.closed.append(session)


async def _list(frame: Frame, host: Host, stream: Stream) -> Answer:
    return result(frame, {"tools": [TOOL], **MODERN_RESULT.get(host.era, {})})


async def _call(frame: Frame, host: Host, stream: Stream) -> Answer:
    return result(frame, {"content": [{"type": "text", "text": "hi"}], **COMPLETE.get(host.era, {})})


async def _ping(frame: Frame, host: Host, stream: Stream) -> Answer:
    return result(frame, {})


async def _discover(frame: Frame, host: Host, stream: Stream) -> Answer:
    value = {"supportedVersions": [MODERN], "capabilities": {"tools": {"listChanged": True}}}
    return result(
        frame, {**value, **MODERN_RESULT[Era.MODERN], "_meta": {SERVER: {"name": "scripted", "version": "1"}}}
    )


SERVER = "io.modelcontextprotocol/serverInfo"
COMPLETE = {Era.MODERN: {"resultType": "complete"}}
MODERN_RESULT = {Era.MODERN: {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}}
STANDARD: dict[str, Any] = {"tools/list": _list, "tools/call": _call, "ping": _ping, "server/discover": _discover}


def progress_then(count: int = 1, gate: asyncio.Event | None = None):
    """A script that sends progress, waits for the gate, and answers."""

    async def script(frame: Frame, host: Host, stream: Stream) -> Answer:
        for number in range(count):
            stream.send(notification("notifications/progress", progressToken=1, progress=number), Sort.PROGRESS)
        if gate is not None:
            await gate.wait()
        return await _call(frame, host, stream)

    return script


def waits(gate: asyncio.Event):
    """A script that says nothing until the gate opens."""

    async def script(frame: Frame, host: Host, stream: Stream) -> Answer:
        await gate.wait()
        return await _call(frame, host, stream)

    return script


@dataclass(eq=False)
class Served:
    """The endpoint under test, and a client for it."""

    front: ScriptedFront
    app: HttpHosts
    server: HttpServer
    client: aiohttp.ClientSession
    crew: Crew

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    @property
    def url(self) -> str:
        return f"{self.base}/mcp"

    def post(self, message: Any, **headers: str):
        headers = {
            "accept": BOTH,
            "content-type": "application/json",
            **{k.replace("_", "-"): v for k, v in headers.items()},
        }
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        return self.client.post(self.url, data=io.BytesIO(data), headers=headers)

    async def initialize(self, revision: str = LEGACY, **headers: str) -> str:
        async with self.post(initialize(revision), **headers) as response:
            assert response.status == 200, await response.text()
            identity = response.headers["mcp-session-id"]
        async with self.post(
            {"jsonrpc": "2.0", "method": "notifications/initialized"}, mcp_session_id=identity, **headers
        ) as response:
            assert response.status == 202
        return identity


def initialize(revision: str = LEGACY, identity: Any = 0) -> dict[str, Any]:
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    return {"jsonrpc": "2.0", "id": identity, "method": "initialize", "params": params}


def request(method: str, identity: Any = 1, meta: Mapping[str, Any] | None = None, **params: Any) -> dict[str, Any]:
    if meta is not None:
        params["_meta"] = meta
    return {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}


def call(identity: Any = 1, meta: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return request("tools/call", identity, meta, name="echo", arguments={})


@asynccontextmanager
async def serving(
    front: ScriptedFront | None = None,
    *,
    access: Access | None = None,
    limits: Limits | None = None,
    status: Any = None,
    broker: Any = None,
) -> AsyncIterator[Served]:
    crew = Crew()
    front = front or ScriptedFront()
    limits = limits or Limits()
    app = HttpHosts(front, access or Access(no_auth=True), limits, crew, status, broker=broker)
    server = await serve_http(app, "127.0.0.1", 0, limits, crew)
    timeout = aiohttp.ClientTimeout(total=60)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as client:
            yield Served(front, app, server, client, crew)
            await client.close()
    finally:
        await server.stop()
        await crew.close()


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, str, str]]:
    """Id, event and data of each event as it comes; comments as ('', ':', '')."""
    identity = name = ""
    data: list[str] = []
    while text := (await response.content.readline()).decode():
        text = text.rstrip("\n")
        if not text:
            if data or identity or name:
                yield identity, name, "\n".join(data)
            identity, name, data = "", "", []
        elif text.startswith(":"):
            yield "", ":", ""
        else:
            key, _, value = text.partition(":")
            value = value.removeprefix(" ")
            if key == "data":
                data.append(value)
            elif key == "id":
                identity = value
            elif key == "event":
                name = value


async def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Waits until something is so, bounded."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what it waits for tells nobody
            await asyncio.sleep(0.002)
