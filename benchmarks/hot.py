"""What Troth's own code costs per relayed call, without sockets: all in one process, by CPU time.

    python -m benchmarks.hot [--rounds N] [CASE ...]
    python -m benchmarks.hot --profile CASE

A host's bytes go into uvicorn's protocol on a transport that only keeps what is written, and what would go to the
upstream goes to a client that answers from memory in the next turn of the loop. Beside it, the bare relay of the other
benchmarks on the same two. What is left out is the same for both: sockets and aiohttp. Prints microseconds per call,
each the least of rounds that are interleaved, so that a busy machine matters little.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import logging
import pstats
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import uvloop

from benchmarks.gateway.bare import Relay
from benchmarks.gateway.load import LEGACY, META, MODERN, median
from troth.gateway.crew import Crew
from troth.gateway.front import MiddleFront
from troth.gateway.gateway import Gateway
from troth.gateway.hosts import Access, HttpHosts
from troth.gateway.hosts.serve import serve_http
from troth.gateway.limits import Limits
from troth.gateway.serve import COLLECT
from troth.gateway.settings import GatewaySettings, Transport, UpstreamSettings
from troth.gateway.state import State
from troth.gateway.upstream import client

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TOOLS = b'{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]%s}'
CAPABILITIES = b'"capabilities":{"tools":{}}'
INFO = b'{"name":"up","version":"1"}'
CACHE = b',"resultType":"complete","ttlMs":3600000,"cacheScope":"public"'


class Answer:
    """A `troth.gateway.upstream.client.Response` from memory, in chunks as sockets bring them."""

    CHUNK = 256 * 1024

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self._chunks = [body[at : at + self.CHUNK] for at in range(0, len(body), self.CHUNK)]

    def header(self, name: str) -> str:
        return "application/json" if name == "content-type" else ""

    async def chunk(self) -> bytes:
        return self._chunks.pop(0) if self._chunks else b""

    @property
    def ended(self) -> bool:
        return not self._chunks

    def close(self) -> None:
        pass


class Memory:
    """A `troth.gateway.upstream.client.HttpClient` that is the upstream itself."""

    def __init__(self, era: str, size: int) -> None:
        typed = CACHE if era == "modern" else b""
        text = b"x" * size
        result = b'{"content":[{"type":"text","text":"%s"}],"isError":false%s}' % (
            text,
            b',"resultType":"complete"' if era == "modern" else b"",
        )
        offer = b'{"supportedVersions":["%s"],%s%s,"_meta":{"io.modelcontextprotocol/serverInfo":%s}}'
        first = b'{"protocolVersion":"%s",%s,"serverInfo":%s}' % (LEGACY.encode(), CAPABILITIES, INFO)
        self._results = {
            b"tools/call": result,
            b"tools/list": TOOLS % typed,
            b"initialize": first,
            b"ping": b"{}",
        }
        if era == "modern":
            self._results[b"server/discover"] = offer % (MODERN.encode(), CAPABILITIES, typed, INFO)
        self._loop = asyncio.get_running_loop()

    def answer(self, body: bytes) -> tuple[int, bytes]:
        identity = body.partition(b'"id":')[2].partition(b",")[0]
        method = body.partition(b'"method":"')[2].partition(b'"')[0]
        if not identity or method.startswith(b"notifications/"):
            return 202, b""
        result = self._results.get(method)
        if result is None:
            return 200, b'{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}' % identity
        return 200, b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (identity, result)

    async def turn(self) -> None:
        future = self._loop.create_future()
        self._loop.call_soon(future.set_result, None)
        await future

    async def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
    ) -> Answer:
        await self.turn()
        return Answer(405, b"") if method == "GET" else Answer(*self.answer(body or b""))

    async def send(self, _verb: str, body: bytes, _headers: dict[str, str]) -> tuple[int, bytes, Mapping[str, str]]:
        """The same, as the bare relay wants it."""
        await self.turn()
        answer = Answer(*self.answer(body))
        chunks = []
        while chunk := await answer.chunk():
            chunks.append(chunk)
        return answer.status, b"".join(chunks), {}

    async def close(self) -> None:
        pass


class Wire(asyncio.Transport):
    """The host's end of a connection: keeps what is written, and tells when a response is whole."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        super().__init__({"sockname": ("127.0.0.1", 1), "peername": ("127.0.0.1", 2)})
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes] = []
        self._left = -1
        self._whole: asyncio.Future[bytes] = self._loop.create_future()
        self.request = b""
        protocol.connection_made(self)

    def write(self, data: Any) -> None:
        if self._left < 0:
            self._parts.append(data)
            head, found, rest = b"".join(self._parts).partition(b"\r\n\r\n")
            if not found:
                return
            length = head.partition(b"content-length: ")[2].partition(b"\r")[0]
            self._left = int(length or 0) - len(rest)
        else:
            self._parts.append(data)
            self._left -= len(data)
        if self._left == 0:
            parts, self._parts, self._left = self._parts, [], -1
            self._whole.set_result(parts[0] if len(parts) == 1 else b"".join(parts))

    def writelines(self, list_of_data: Any) -> None:
        for data in list_of_data:
            self.write(data)

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        self._protocol.connection_lost(None)

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    async def ask(self, data: bytes) -> bytes:
        self._whole = self._loop.create_future()
        self._protocol.data_received(data)
        return await self._whole


def request(era: str, method: str, params: bytes, session: str = "", identity: int = 77) -> bytes:
    inside = b",".join(part for part in (META if era == "modern" else b"", params) if part)
    body = b'{"jsonrpc":"2.0","id":%d,"method":"%s","params":{%s}}' % (identity, method.encode(), inside)
    head = ["POST /mcp HTTP/1.1", "host: 127.0.0.1:8300", "content-type: application/json"]
    head += ["accept: application/json, text/event-stream", f"content-length: {len(body)}"]
    if era == "modern":
        head += [f"mcp-protocol-version: {MODERN}", f"mcp-method: {method}"]
        head += ["mcp-name: echo"] if method == "tools/call" else []
    elif session:
        head += [f"mcp-protocol-version: {LEGACY}", f"mcp-session-id: {session}"]
    return "\r\n".join([*head, "", ""]).encode() + body


ECHO = b'"name":"echo","arguments":{"text":"call-7f3a5c0e-1234"}'
OPENING = b'"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}'


@dataclass
class Case:
    """One measurement.

    Attributes:
        host: Era of the host.
        upstream: Era of the upstream.
        callers: Hosts at once.
        size: Bytes of the result.
        bare: The bare relay instead of Troth.
    """

    host: str = "modern"
    upstream: str = "modern"
    callers: int = 32
    size: int = 24
    bare: bool = False


CASES = {
    "relay": Case(bare=True),
    "relay-1": Case(bare=True, callers=1),
    "modern": Case(),
    "modern-1": Case(callers=1),
    "legacy": Case("legacy", "legacy"),
    "modern-legacy": Case("modern", "legacy"),
    "legacy-modern": Case("legacy", "modern"),
    "relay-1MB": Case(callers=1, size=1_000_000, bare=True),
    "modern-1MB": Case(callers=1, size=1_000_000),
    "legacy-1MB": Case("legacy", "legacy", callers=1, size=1_000_000),
    "modern-legacy-1MB": Case("modern", "legacy", callers=1, size=1_000_000),
}


class Subject:
    """A case that is open, with its hosts connected."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.crew = Crew()
        self.gateway: Gateway | None = None
        self.wires: list[Wire] = []

    async def open(self) -> Subject:
        case, limits = self.case, Limits()
        memory = Memory(case.upstream, case.size)
        cast("Any", client).open_client = lambda *_: memory
        if case.bare:
            app: Any = Relay("", "")
            app._send = memory.send
        else:
            up = UpstreamSettings(name="up", transport=Transport.HTTP, url="http://127.0.0.1:1/mcp")
            self.gateway = Gateway(GatewaySettings(upstreams=(up,)), State.load(None), self.crew, limits)
            app = HttpHosts(MiddleFront(self.gateway), Access(no_auth=True), limits, self.crew)
        factory: list[Callable[[], asyncio.Protocol]] = []
        loop = asyncio.get_running_loop()
        made = loop.create_server

        async def create(protocol: Any, *_: Any, **options: Any) -> Any:
            factory.append(protocol)
            return await made(protocol, "127.0.0.1", 0)

        cast("Any", asyncio.get_running_loop)
        server = await _server(app, limits, self.crew, create)
        self.server = server
        session = ""
        for _ in range(case.callers):
            wire = Wire(factory[0]())
            self.wires.append(wire)
        if case.host == "legacy":
            opened = await self.wires[0].ask(request("legacy", "initialize", OPENING))
            session = opened.partition(b"mcp-session-id: ")[2].partition(b"\r")[0].decode()
        for number, wire in enumerate(self.wires):
            wire.request = request(case.host, "tools/call", ECHO, session, number + 1)
        await self.check()
        return self

    async def check(self) -> None:
        """Every host gets the answer to its own request, all at once."""
        loop = asyncio.get_running_loop()
        asked = [loop.create_task(wire.ask(wire.request)) for wire in self.wires]
        for number, task in enumerate(asked):
            answer = await task
            assert b'"result":{' in answer, answer[:500]
            assert b'"id":%d,' % (number + 1) in answer, answer[:500]

    async def calls(self, times: int) -> float:
        """Microseconds of CPU per call."""
        began = time.process_time()
        if len(self.wires) == 1:
            for _ in range(times):
                await self.wires[0].ask(self.wires[0].request)
        else:
            for _ in range(times // len(self.wires)):
                wires = [wire.ask(wire.request) for wire in self.wires]
                await _each(wires)
        return (time.process_time() - began) / times * 1e6


async def _each(works: list[Any]) -> None:
    """All at once: what would be tasks of hosts costs nothing here but their sending."""
    waits = [work.send(None) for work in works]
    for work, wait in zip(works, waits, strict=True):
        wait._asyncio_future_blocking = False
        if not wait.done():
            await wait
        work.close()


async def _server(app: Any, limits: Limits, crew: Crew, create: Any) -> Any:
    from unittest import mock

    loop = asyncio.get_running_loop()

    class Loop:
        def __getattr__(self, name: str) -> Any:
            return create if name == "create_server" else getattr(loop, name)

    with mock.patch("troth.gateway.hosts.serve.asyncio.get_running_loop", Loop):
        return await serve_http(app, "127.0.0.1", 0, limits, crew)


async def run(names: list[str], rounds: int, times: int, profiled: str) -> dict[str, float]:
    subjects = {name: await Subject(CASES[name]).open() for name in names}
    best = dict.fromkeys(subjects, float("inf"))
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT)
    if profiled:
        profile = cProfile.Profile()
        for subject in subjects.values():
            profile.enable()
            await subject.calls(times)
            profile.disable()
        stats = pstats.Stats(profile)
        stats.sort_stats(profiled).print_stats(70)
    ratios: dict[str, list[float]] = {name: [] for name in subjects}
    base = next(iter(subjects))
    for _ in range(rounds):
        spent = {}
        for name, subject in subjects.items():
            few = times if subject.case.size < 10_000 else max(1, times // 40)
            spent[name] = await subject.calls(few)
            best[name] = min(best[name], spent[name])
            ratios[name].append(spent[name] / spent[base])
    for name, value in best.items():
        print(f"{name:20}{value:9.1f} us {median(ratios[name]):9.2f} x")
    return best


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*", default=[])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--times", type=int, default=640)
    parser.add_argument("--profile", default="")
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    names = options.cases or list(CASES)
    uvloop.run(run(names, options.rounds, options.times, options.profile))


if __name__ == "__main__":
    main()
