"""HTTP clients and servers for the gateway's two legs, measured as a bare relay in front of a bare upstream.

    python -m benchmarks.gateway.clients [--rounds N] [NAME ...]

Names are those of `CLIENTS`, with ``+granian`` behind them for that server instead of uvicorn. What is not installed is
left out: try others with ``uv run --with pyreqwest --with httpunk --with granian ...``.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httptools
import uvloop

from benchmarks.gateway.load import median
from benchmarks.gateway.measure import Figures, Scale, Subject, measure, ratio
from benchmarks.gateway.processes import free_port
from benchmarks.gateway.stage import PACKAGE, Running, Stage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    Reply = tuple[int, bytes, Mapping[str, str]]
    Send = Callable[[str, bytes, dict[str, str]], Awaitable[Reply]]


def _aiohttp(url: str) -> Send:
    import aiohttp

    client = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
    )

    async def send(verb: str, body: bytes, headers: dict[str, str]) -> Reply:
        async with client.request(verb, url, data=body, headers=headers, allow_redirects=False) as reply:
            return reply.status, await reply.read(), reply.headers

    return send


def _pyreqwest(url: str) -> Send:
    from pyreqwest.client import ClientBuilder  # pyright: ignore[reportMissingImports]

    client: Any = ClientBuilder().no_proxy().http1_only().build()

    async def send(verb: str, body: bytes, headers: dict[str, str]) -> Reply:
        reply = await client.request(verb, url).headers(headers).body_bytes(body).build().send()
        return reply.status, bytes(await reply.bytes()), reply.headers

    return send


def _httpx2(url: str) -> Send:
    import httpx2

    client = httpx2.AsyncClient(trust_env=False)

    async def send(verb: str, body: bytes, headers: dict[str, str]) -> Reply:
        reply = await client.request(verb, url, content=body, headers=headers)
        return reply.status_code, reply.content, reply.headers

    return send


def _httpunk(url: str) -> Send:
    from httpunk.asyncio import H1ClientProtocol  # pyright: ignore[reportMissingImports]

    parts = urlsplit(url)
    free: list[Any] = []

    async def send(verb: str, body: bytes, headers: dict[str, str]) -> Reply:
        if free:
            connection = free.pop()
        else:
            loop = asyncio.get_running_loop()
            _, protocol = await loop.create_connection(H1ClientProtocol, parts.hostname, parts.port)
            connection = await protocol.ready()
        given = {"host": parts.netloc, "content-length": str(len(body)), **headers}
        reply = await connection.request(verb, parts.path, headers=given, body=body)
        data = bytes(await reply.read())
        free.append(connection)
        return reply.status, data, {}

    return send


class _Wire(asyncio.Protocol):
    """One connection of `_own`."""

    transport: asyncio.Transport
    waiter: asyncio.Future[Reply]

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self._reset()

    def _reset(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.parts: list[bytes] = []
        self.headers: dict[str, str] = {}

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        if name[:4].lower() == b"mcp-":
            self.headers[name.decode().lower()] = value.decode()

    def on_body(self, body: bytes) -> None:
        self.parts.append(body)

    def on_message_complete(self) -> None:
        reply = (self.parser.get_status_code(), b"".join(self.parts), self.headers)
        self._reset()
        self.waiter.set_result(reply)


def _own(url: str) -> Send:
    """What a pool made by hand would cost; it lacks everything that a real one needs."""
    parts = urlsplit(url)
    free: list[_Wire] = []

    async def send(verb: str, body: bytes, headers: dict[str, str]) -> Reply:
        loop = asyncio.get_running_loop()
        wire = free.pop() if free else (await loop.create_connection(_Wire, parts.hostname, parts.port))[1]
        wire.waiter = loop.create_future()
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        head = f"{verb} {parts.path} HTTP/1.1\r\nhost: {parts.netloc}\r\n{lines}content-length: {len(body)}\r\n\r\n"
        wire.transport.write(head.encode() + body)
        reply = await wire.waiter
        free.append(wire)
        return reply

    return send


CLIENTS: dict[str, Callable[[str], Send]] = {
    "aiohttp": _aiohttp,
    "pyreqwest": _pyreqwest,
    "httpunk": _httpunk,
    "httpx2": _httpx2,
    "own": _own,
}


async def compare(names: list[str], rounds: int) -> None:
    """Prints what a relay costs with each client."""
    with Stage() as stage:
        upstream = stage.module("bare", "bare", "upstream")
        found = {"direct": upstream} | {name: _relay(stage, name, upstream.url) for name in names}
        figures = {name: Figures(name) for name in found}
        await measure(
            [Subject(figures[name], "modern", running, None) for name, running in found.items()], Scale(rounds=rounds)
        )
    base = figures[names[0]]
    print(f"{'':18}{'p50 ms':>9}{'p95 ms':>9}{'CPU ms, 1':>11}{'x':>6}{'CPU, 32':>9}{'x':>6}{'calls/s':>9}{'MB':>6}")
    for one in figures.values():
        if one.fault:
            continue
        print(
            f"{one.name:18}{median(one.p50) * 1e3:9.3f}{median(one.p95) * 1e3:9.3f}"
            f"{median(one.cpu_one) * 1e3:11.3f}{ratio(one.cpu_one, base.cpu_one):6.2f}"
            f"{median(one.cpu_many) * 1e3:9.3f}{ratio(one.cpu_many, base.cpu_many):6.2f}"
            f"{median(one.rate):9.0f}{one.memory / 1e6:6.0f}"
        )


def _relay(stage: Stage, name: str, url: str) -> Running:
    client, _, server = name.partition("+")
    if server != "granian":
        return stage.module(name, "bare", "relay", "--to", url, "--client", client)
    port = free_port()
    command = [sys.executable, "-m", f"{PACKAGE}.granian_relay", str(port), url, client]
    return stage.start(name, command, port)


def _installed(name: str) -> bool:
    parts = name.split("+")
    return all(part == "own" or importlib.util.find_spec(part) is not None for part in parts)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=[*CLIENTS, "aiohttp+granian"])
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    uvloop.run(compare([name for name in options.names if _installed(name)], options.rounds))


if __name__ == "__main__":
    main()
