"""The load: hosts on raw keep-alive sockets that check every answer. Costs little, and is counted nowhere."""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

MODERN, LEGACY = "2026-07-28", "2025-11-25"
ERAS = {"modern": MODERN, "legacy": LEGACY}
META = (
    b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":'
    b'{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}'
)


class WrongError(Exception):
    """An answer that is not the one that was asked for."""


class _Message(msgspec.Struct):
    id: int | str | None = None
    method: str = ""
    result: Raw = Raw(b"")
    error: Raw = Raw(b"")


class _Content(msgspec.Struct):
    text: str = ""


class _Echo(msgspec.Struct):
    content: list[_Content] = []
    isError: bool = False  # noqa: N815


class _Tool(msgspec.Struct):
    name: str


class _Tools(msgspec.Struct):
    tools: list[_Tool] = []


_message = msgspec.json.Decoder(_Message).decode
_echo = msgspec.json.Decoder(_Echo).decode
_tools = msgspec.json.Decoder(_Tools).decode


@dataclass(slots=True)
class Reply:
    """One HTTP response: its status, its head, and the body without its transfer coding."""

    status: int
    head: bytes
    body: bytes

    def header(self, name: bytes) -> str | None:
        for line in self.head.split(b"\r\n")[1:]:
            key, _, value = line.partition(b":")
            if key.strip().lower() == name:
                return value.strip().decode()
        return None

    def message(self) -> _Message:
        """The last message of the body: of JSON, or of the events of a stream."""
        body = self.body
        if b"text/event-stream" in self.head.lower():
            body = _last_data(body)
        try:
            return _message(body)
        except msgspec.DecodeError as error:
            raise WrongError(f"HTTP {self.status}: {body[:300]!r}") from error


def _last_data(body: bytes) -> bytes:
    for block in reversed(body.replace(b"\r\n", b"\n").split(b"\n\n")):
        lines = [line[5:].strip() for line in block.split(b"\n") if line.startswith(b"data:")]
        if any(lines):
            return b"\n".join(lines)
    raise WrongError(f"a stream without an answer: {body[:300]!r}")


class Connection(asyncio.Protocol):
    """One keep-alive connection, one request at a time."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._waiter: asyncio.Future[Reply] | None = None
        self._head: bytes | None = None
        self._status = 0
        self._length: int | None = None
        self._headed: asyncio.Future[int] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # pyright: ignore[reportAttributeAccessIssue]

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self._waiter and not self._waiter.done():
            self._waiter.set_exception(WrongError(f"the connection closed before the answer ({exc})"))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._head is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            self._head = bytes(self._buffer[:end])
            del self._buffer[: end + 4]
            self._status = int(self._head[9:12])
            self._length = _length(self._head.lower())
            if self._headed:
                self._headed.set_result(self._status)
        body = self._whole()
        if body is not None and self._waiter and not self._waiter.done():
            self._waiter.set_result(Reply(self._status, self._head, body))
            self._head = None

    def _whole(self) -> bytes | None:
        """The body, if all of it is here."""
        if self._length is not None:
            if len(self._buffer) < self._length:
                return None
            body = bytes(self._buffer[: self._length])
            del self._buffer[: self._length]
            return body
        if not self._buffer.endswith(b"0\r\n\r\n"):
            return None
        parts: list[bytes] = []
        at = 0
        while True:
            end = self._buffer.find(b"\r\n", at)
            if end < 0:
                return None
            size = int(self._buffer[at:end].split(b";")[0], 16)
            if not size:
                self._buffer.clear()
                return b"".join(parts)
            if len(self._buffer) < end + 4 + size:
                return None
            parts.append(bytes(self._buffer[end + 2 : end + 2 + size]))
            at = end + 4 + size

    async def send(self, request: bytes) -> Reply:
        assert self.transport is not None, "closed"
        self._waiter = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self._waiter

    async def hear(self, request: bytes) -> None:
        """Sends a request whose answer is a stream; returns when its head is here."""
        assert self.transport is not None, "closed"
        self._headed = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        status = await self._headed
        if status != 200:
            raise WrongError(f"a stream: HTTP {status}")

    def close(self) -> None:
        if self.transport:
            self.transport.close()


def _length(head: bytes) -> int | None:
    at = head.find(b"\r\ncontent-length:")
    if at >= 0:
        return int(head[at + 17 :].split(b"\r\n", 1)[0])
    return None if b"chunked" in head else 0


class Caller:
    """One host: connects, opens a session if its era has them, and calls tools."""

    def __init__(self, url: str, era: str, tool: str = "echo") -> None:
        rest = url.removeprefix("http://")
        self.address, _, path = rest.partition("/")
        self.path = "/" + path
        self.era = era
        self.tool = tool
        self.session: str | None = None
        self._number = 0
        self._connection: Connection | None = None

    async def open(self) -> Caller:
        await self.wake()
        if self.era == "legacy":
            await self._initialize()
        return self

    async def wake(self) -> None:
        """Connects, unless the connection is open: servers close idle ones."""
        if self._connection is None or self._connection.transport is None:
            name, _, port = self.address.partition(":")
            loop = asyncio.get_running_loop()
            _, self._connection = await loop.create_connection(lambda: Connection(self.address), name, int(port))

    async def _initialize(self) -> None:
        body = (
            b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
            b'"clientInfo":{"name":"bench","version":"1"}}}'
        )
        reply = await self._post(body, "initialize", "")
        message = reply.message()
        if not message.result:
            raise WrongError(f"initialize: HTTP {reply.status} {reply.body[:300]!r}")
        self.session = reply.header(b"mcp-session-id")
        reply = await self._post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}', "", "")
        if reply.status not in (200, 202):
            raise WrongError(f"initialized: HTTP {reply.status}")

    def _request(self, verb: str, body: bytes, method: str, name: str) -> bytes:
        head = [
            f"{verb} {self.path} HTTP/1.1",
            f"host: {self.address}",
            "content-type: application/json",
            "accept: application/json, text/event-stream",
            f"content-length: {len(body)}",
        ]
        if self.era == "modern":
            head += [f"mcp-protocol-version: {MODERN}", f"mcp-method: {method}"]
            head += [f"mcp-name: {name}"] if name else []
        elif method != "initialize":
            head += [f"mcp-protocol-version: {LEGACY}"]
            head += [f"mcp-session-id: {self.session}"] if self.session else []
        return "\r\n".join([*head, "", ""]).encode() + body

    async def _post(self, body: bytes, method: str, name: str) -> Reply:
        await self.wake()
        assert self._connection is not None
        return await self._connection.send(self._request("POST", body, method, name))

    async def _ask(self, method: str, params: bytes, name: str = "") -> _Message:
        self._number += 1
        number = self._number
        meta = META if self.era == "modern" else b""
        inside = b",".join(part for part in (meta, params) if part)
        body = b'{"jsonrpc":"2.0","id":%d,"method":"%s","params":{%s}}' % (number, method.encode(), inside)
        reply = await self._post(body, method, name)
        message = reply.message()
        if message.id != number or not message.result:
            raise WrongError(f"HTTP {reply.status} to id {number}: {reply.body[:300]!r}")
        return message

    async def call(self, pad: int = 0) -> int:
        """Calls the tool with a text of its own, of at least `pad` characters; returns the bytes of the result."""
        text = f"call-{id(self):x}-{self._number}" + "x" * pad
        params = b'"name":"%s","arguments":{"text":"%s"}' % (self.tool.encode(), text.encode())
        message = await self._ask("tools/call", params, self.tool)
        echo = _echo(message.result)
        if echo.isError or len(echo.content) != 1 or echo.content[0].text != text:
            raise WrongError(f"another answer: {bytes(message.result)[:300]!r}")
        return len(message.result)

    async def large(self, size: int) -> int:
        """Calls `large`, which answers with a text of `size` characters."""
        tool = self.tool.removesuffix("echo") + "large"
        params = b'"name":"%s","arguments":{"size":%d}' % (tool.encode(), size)
        message = await self._ask("tools/call", params, tool)
        echo = _echo(message.result)
        if echo.isError or len(echo.content[0].text) != size:
            raise WrongError(f"another answer: {bytes(message.result)[:300]!r}")
        return len(message.result)

    async def names(self) -> list[str]:
        """The names of the tools on the first page."""
        return [tool.name for tool in _tools((await self._ask("tools/list", b"")).result).tools]

    async def another(self) -> Caller:
        """Another session on the connection of this one. Only one of them may speak at a time."""
        other = Caller(f"http://{self.address}{self.path}", self.era, self.tool)
        other._connection = self._connection
        return await other.open()

    async def listen(self) -> None:
        """Opens the session's event stream on a connection of its own, and waits for its head."""
        self._connection = None
        await self.wake()
        assert self._connection is not None
        await self._connection.hear(self._request("GET", b"", "", ""))

    async def end(self) -> None:
        """Ends the session, if there is one, and closes the connection."""
        assert self._connection is not None
        if self.session:
            await self._connection.send(self._request("DELETE", b"", "", ""))
        self.close()

    def close(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None


@dataclass(frozen=True, slots=True)
class Run:
    """What a round of calls took: seconds of each, and of all."""

    times: list[float]
    wall: float

    @property
    def rate(self) -> float:
        return len(self.times) / self.wall


def quantile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


async def load(actions: Sequence[Callable[[], Awaitable[object]]], seconds: float, most: int = 1_000_000) -> Run:
    """Repeats the actions, one task for each, until the time is over or all together have run `most` times."""
    times: list[float] = []
    begin = time.perf_counter()
    until = begin + seconds

    async def repeat(action: Callable[[], Awaitable[object]]) -> None:
        while len(times) < most:
            start = time.perf_counter()
            if start >= until:
                return
            await action()
            times.append(time.perf_counter() - start)

    async with asyncio.TaskGroup() as group:
        for action in actions:
            group.create_task(repeat(action))
    return Run(times, time.perf_counter() - begin)


def median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else float("nan")
