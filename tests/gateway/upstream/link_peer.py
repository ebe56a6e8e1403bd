"""An HTTP server of bytes for the tests of links, so that it can break any rule of HTTP. It keeps what it was asked."""

from __future__ import annotations

import json
import ssl
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.tls import TLSStream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


@dataclass
class Asked:
    """One HTTP request and ways to answer it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    stream: anyio.abc.SocketStream
    left: bool = False

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    async def send(self, data: bytes) -> None:
        await self.stream.send(data)

    async def reply(self, status: int, body: bytes = b"", kind: str = "application/json", **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}"]
        lines += [f"Content-Type: {kind}"] if body else []
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.send("\r\n".join([*lines, "", ""]).encode() + body)

    async def result(self, **headers: str) -> None:
        await self.reply(200, result(self.json["id"]), **headers)

    async def events(self, *events: bytes) -> None:
        await self.send(EVENTS)
        for event in events:
            await self.event(event)

    async def event(self, event: bytes) -> None:
        await self.send(b"%x\r\n%s\r\n" % (len(event), event))

    async def end(self) -> None:
        await self.send(END)

    async def hang(self) -> None:
        """Waits until the client leaves."""
        try:
            while await self.stream.receive():
                pass
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            self.left = True

    async def cut(self) -> None:
        await self.stream.aclose()


def result(key: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": key, "result": {}}).encode()


@dataclass
class Peer:
    """The server: where it is and what it was asked."""

    port: int
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def of(self, method: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.method == method]


@asynccontextmanager
async def serving(
    answer: Callable[[Asked], Awaitable[None]], tls: ssl.SSLContext | None = None
) -> AsyncGenerator[Peer]:
    """Serves every request of every connection by the one function."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    peer = Peer(listener.extra(anyio.abc.SocketAttribute.local_port))

    async def handle(stream: anyio.abc.SocketStream) -> None:
        peer.connections += 1
        if tls is not None:
            with suppress(ssl.SSLError, anyio.EndOfStream, anyio.BrokenResourceError):
                await TLSStream.wrap(stream, server_side=True, ssl_context=tls)
            await stream.aclose()
            return
        buffered = BufferedByteReceiveStream(stream)
        async with stream:
            try:
                while True:
                    head = (await buffered.receive_until(b"\r\n\r\n", 65536)).decode()
                    first, *lines = head.split("\r\n")
                    headers = {
                        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
                    }
                    body = await buffered.receive_exactly(int(headers.get("content-length", 0)))
                    method, path, _ = first.split()
                    peer.asked.append(Asked(method, path, headers, body, stream))
                    await answer(peer.asked[-1])
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, anyio.IncompleteRead):
                pass

    try:
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, handle)
            yield peer
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        # What the body raised comes out as it was.
        raise group.exceptions[0] from None
