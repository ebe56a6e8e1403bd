"""A link to a URL: Streamable HTTP, one POST per message, answered by JSON or by an event stream.

Rules of this file:

- Each POST or GET is one task of the link's group, with a scope of its own; `HttpLink.cancel` ends one, leaving the
  link ends all. Nothing is delivered for what was ended so.
- Each request opens a connection of its own: a kept one that the target closes meanwhile would look like its fault.
- Redirects, cookies, proxies from the environment and compression are off: what is judged is what the URL itself says.
- What the target does wrong is delivered (`Incoming.problem`) or told (`dead`), never raised.
"""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

import aiohttp
import anyio
import anyio.lowlevel
from multidict import CIMultiDict
from yarl import URL

from troth.audit.wire.decode import Decoded, message, values
from troth.audit.wire.scope import task_group
from troth.audit.wire.types import Incoming, Limits
from troth.wire.errors import LinkError
from troth.wire.sse import Event, EventStream
from troth.wire.words import excerpt, printable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from anyio.abc import TaskGroup

    Asked = AbstractAsyncContextManager[aiohttp.ClientResponse]

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"

_COMMON: Final = {"Accept-Encoding": "identity", "User-Agent": "troth"}
_HEADERS: Final = {
    "POST": {"Accept": f"{JSON}, {EVENTS}", "Content-Type": JSON} | _COMMON,
    "GET": {"Accept": EVENTS} | _COMMON,
    "DELETE": _COMMON,
}


@asynccontextmanager
async def open_link(url: str, *, headers: Mapping[str, str] | None = None, limits: Limits) -> AsyncGenerator[HttpLink]:
    """Gives a link to a URL. Nothing is sent yet; on leaving, all its requests are cut and its connections closed.

    Args:
        url: Where to POST to, ``http`` or ``https``.
        headers: Sent with every request (``Authorization`` ...).
        limits: Times and sizes.

    Raises:
        LinkError: The URL is none.
    """
    address = address_of(url)
    async with client_session(limits) as (client, tasks):
        yield HttpLink(client, tasks, address, headers or {}, limits)


@asynccontextmanager
async def client_session(limits: Limits) -> AsyncGenerator[tuple[aiohttp.ClientSession, TaskGroup]]:
    """A client that adds nothing of its own, and the task group whose tasks end with it."""
    async with (
        aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(force_close=True, limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, connect=limits.start),
            trust_env=False,
            auto_decompress=False,
        ) as client,
        task_group() as tasks,
    ):
        try:
            yield client, tasks
        finally:
            tasks.cancel_scope.cancel()


def address_of(url: str) -> URL:
    """Reads the URL of a target.

    Raises:
        LinkError: It is none, or not of HTTP.
    """
    advice = "write it like http://127.0.0.1:8000/mcp"
    try:
        address = URL(url)
    except ValueError as error:
        raise LinkError(f"this is no URL ({printable(str(error))})", where=excerpt(url), advice=advice) from error
    if address.scheme not in ("http", "https") or not address.host:
        raise LinkError("this is no URL of a server over HTTP", where=excerpt(url), advice=advice)
    return address


@dataclass(slots=True, kw_only=True, eq=False)
class Exchange:
    """One HTTP request and what is known of its answer.

    Attributes:
        channel: For everything that arrives for it.
        request: Id of the JSON-RPC request in it, or None.
        asks: Whether there is a JSON-RPC request in it.
        known: Set when the status is known, or never will be.
    """

    channel: str
    request: object = None
    asks: bool = False
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    known: anyio.Event = field(default_factory=anyio.Event)
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    event_id: str = ""
    retry: int | None = None


def _ignore(_: Incoming) -> None:
    """Takes what arrives while nobody listens."""


class HttpLink:
    """The link to one URL. See `troth.audit.wire.types.Link`; made by `open_link`."""

    transport = "http"
    stderr = ""

    def __init__(
        self, client: aiohttp.ClientSession, tasks: TaskGroup, url: URL, headers: Mapping[str, str], limits: Limits
    ) -> None:
        self.receive: Callable[[Incoming], None] = _ignore
        self.limits = limits
        self._client = client
        self._tasks = tasks
        self._url = url
        self._headers = headers
        self._open: list[Exchange] = []
        self._frames = 0
        self._bytes = 0
        self._values = 0
        self._dead = ""

    @property
    def dead(self) -> str:
        """Why nothing more can come (no connection, a flood); empty while alive."""
        return self._dead

    async def send(self, message: Any, headers: Mapping[str, str]) -> None:
        """POSTs one JSON value; the answer is read in the background. A dead link swallows it: look at `dead`.

        For a request this returns at once. For what gets no response (a notification, a response) it waits for the
        HTTP status, for up to ``limits.method`` seconds: what is sent next must not overtake it.
        """
        fields = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
        asks = "method" in fields and "id" in fields
        exchange = Exchange(channel="post", request=fields["id"] if asks else None, asks=asks)
        body = json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode()
        self._begin(exchange, "POST", headers, body)
        if asks:
            await anyio.lowlevel.checkpoint()
        else:
            await self._status(exchange)

    async def open_stream(self, headers: Mapping[str, str]) -> int:
        """Opens the event stream that belongs to no request (GET), whose events come on the channel ``get``.

        Returns:
            The HTTP status; 200 if the stream is open. 0 if there is none within ``limits.method`` seconds; the
            request then stays open, for some servers send the head with the first event.
        """
        exchange = Exchange(channel="get")
        self._begin(exchange, "GET", headers, None)
        return await self._status(exchange)

    def cancel(self, request: object) -> None:
        """Closes the stream of a request: in the modern era that cancels it, or ends a listen. Unknown ids do nothing.

        Ids are compared by type and value: 1 is neither ``"1"`` nor ``1.0`` nor ``True``.
        """
        wanted = json.dumps(request)
        for exchange in self._open:
            if exchange.asks and json.dumps(exchange.request) == wanted:
                exchange.scope.cancel()

    async def delete(self, headers: Mapping[str, str]) -> int:
        """Ends the session (DELETE).

        Returns:
            The HTTP status; 0 if there is none within ``limits.method`` seconds.
        """
        with anyio.move_on_after(self.limits.method):
            try:
                async with self._ask("DELETE", headers, None) as response:
                    return response.status
            except _FAILURES:
                return 0
        return 0

    def _begin(self, exchange: Exchange, method: str, headers: Mapping[str, str], body: bytes | None) -> None:
        if self._dead:
            exchange.known.set()
            return
        self._open.append(exchange)
        self._tasks.start_soon(self._run, exchange, method, headers, body)

    async def _status(self, exchange: Exchange) -> int:
        with anyio.move_on_after(self.limits.method):
            await exchange.known.wait()
        return exchange.status or 0

    def _ask(self, method: str, headers: Mapping[str, str], body: bytes | None) -> Asked:
        return self._client.request(
            method, self._url, data=body, headers=self._merged(method, headers), allow_redirects=False
        )

    def _merged(self, method: str, headers: Mapping[str, str]) -> CIMultiDict[str]:
        merged = CIMultiDict(_HEADERS[method])
        merged.update(self._headers)
        merged.update(headers)
        return merged

    async def _run(self, exchange: Exchange, method: str, headers: Mapping[str, str], body: bytes | None) -> None:
        """One HTTP request from its beginning to its end, which is delivered unless the auditor cut it."""
        problem = ""
        with exchange.scope:
            try:
                async with self._ask(method, headers, body) as response:
                    exchange.status = response.status
                    exchange.headers = _plain(response)
                    exchange.known.set()
                    problem = await self._answer(exchange, response)
            except _FAILURES as error:
                problem = _words(error, self._url)
                if isinstance(error, _NO_CONNECTION):
                    self._dead = self._dead or problem
        self._open.remove(exchange)
        exchange.known.set()
        if not exchange.scope.cancelled_caught:
            self._ended(exchange, problem)
        elif self._dead:
            self._ended(exchange, self._dead)

    def _ended(self, exchange: Exchange, problem: str) -> None:
        self._deliver(exchange, Decoded(None, problem), end=True)

    async def _answer(self, exchange: Exchange, response: aiohttp.ClientResponse) -> str:
        """Delivers the messages of an answer. Returns what is wrong with how it ends, or nothing."""
        if 300 <= response.status < 400:
            target = exchange.headers.get("location", "nowhere")
            return f"HTTP {response.status} to {excerpt(target)}; redirects are not followed"
        coding = exchange.headers.get("content-encoding") or "identity"
        if coding.lower() != "identity":
            return f"HTTP {response.status} with a body compressed ({excerpt(coding)}) although that was not accepted"
        if response.content_type == EVENTS:
            return await self._events(exchange, response)
        body = await self._body(response)
        if body is None:
            return f"HTTP {response.status} with a body of more than {self.limits.line} bytes"
        return self._document(exchange, response, body)

    def _document(self, exchange: Exchange, response: aiohttp.ClientResponse, body: bytes) -> str:
        """Delivers the message that a whole body is. Returns why it is none."""
        status, kind = response.status, response.headers.get("Content-Type", "")
        if not body.strip():
            accepted = response.ok and not exchange.asks and exchange.channel == "post"
            return "" if accepted else f"HTTP {status} without a body"
        decoded = message(body)
        told = f"HTTP {status} with {excerpt(kind) or 'no content type'}: "
        if not response.ok and not _is_message(decoded.value):
            return told + excerpt(body)
        if response.ok and response.content_type != JSON:
            return told + f"neither {JSON} nor {EVENTS}; it begins: {excerpt(body)}"
        if decoded.problem:
            return told + decoded.problem
        self._count(0, 1, values(body))
        self._deliver(exchange, decoded)
        return ""

    async def _body(self, response: aiohttp.ClientResponse) -> bytes | None:
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            self._count(len(chunk), 0)
            if len(body) > self.limits.line:
                return None
        return bytes(body)

    async def _events(self, exchange: Exchange, response: aiohttp.ClientResponse) -> str:
        stream = EventStream(self.limits.line)
        async for chunk in response.content.iter_any():
            self._count(len(chunk), 0)
            for event in stream.feed(chunk):
                self._event(exchange, event)
                self._count(0, 1, values(event.data))
                if self._dead:
                    return self._dead
        return f"the event stream ends within an event: {excerpt(stream.rest)}" if stream.rest else ""

    def _event(self, exchange: Exchange, event: Event) -> None:
        exchange.event_id = exchange.event_id if event.id is None else event.id
        exchange.retry = exchange.retry if event.retry is None else event.retry
        if event.oversize:
            self._deliver(exchange, Decoded(None, f"an SSE event of more than {self.limits.line} bytes, skipped"))
        elif event.event != "message":
            named, data = excerpt(event.event), excerpt(event.data)
            self._deliver(exchange, Decoded(None, f"an SSE event of type {named}, which carries no message: {data}"))
        elif event.data:
            self._deliver(exchange, message(event.data))

    def _deliver(self, exchange: Exchange, decoded: Decoded, *, end: bool = False) -> None:
        self.receive(
            Incoming(
                value=decoded.value,
                problem=decoded.problem,
                channel=exchange.channel,
                status=exchange.status,
                request=exchange.request,
                headers=exchange.headers,
                event_id=exchange.event_id,
                retry=exchange.retry,
                end=end,
            )
        )

    def _count(self, size: int, frames: int, held: int = 0) -> None:
        """Adds to what the connection brought; on a flood, cuts everything that is open."""
        self._bytes += size
        self._frames += frames
        self._values += held
        limits = self.limits
        counts = (
            (self._frames, limits.frames, "messages"),
            (self._bytes, limits.total, "bytes"),
            (self._values, limits.values, "JSON values"),
        )
        flood = next((f"{most} {kind}" for count, most, kind in counts if count > most), "")
        if self._dead or not flood:
            return
        self._dead = f"flood: more than {flood} came; cut"
        for exchange in self._open:
            exchange.scope.cancel()


_FAILURES: Final = (aiohttp.ClientError, OSError, ValueError)
_NO_CONNECTION: Final = (aiohttp.ClientConnectorError, aiohttp.ClientSSLError, aiohttp.ConnectionTimeoutError)


def _plain(response: aiohttp.ClientResponse) -> dict[str, str]:
    """The headers with lower-case names; repeated ones joined, what is not printable escaped."""
    plain: dict[str, str] = {}
    for name, value in response.headers.items():
        key, text = printable(name.lower()), printable(value)
        plain[key] = f"{plain[key]}, {text}" if key in plain else text
    return plain


def _is_message(value: Any) -> bool:
    """Whether a body that comes with an error status means to be JSON-RPC, not an error page in JSON."""
    return isinstance(value, dict) and "jsonrpc" in value


def _words(error: Exception, url: URL) -> str:
    """What went wrong with an HTTP request, in words, without the query of the URL, where tokens may be."""
    text = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    told = excerpt(text.replace(str(url), str(url.with_query(None))) or type(error).__name__)
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientSSLError):
        number = error.os_error.errno or 0
        why = os.strerror(number) if number > 0 else error.os_error.strerror or told
        return f"no connection to {excerpt(str(error.host))}:{error.port}: {excerpt(why)}"
    return next((words for kind, words in _WORDS if isinstance(error, kind)), "the connection failed: ") + told


_WORDS: Final = (
    (aiohttp.ConnectionTimeoutError, "no connection came about in time: "),
    (aiohttp.ClientConnectorCertificateError, "the certificate is not trusted: "),
    (aiohttp.ClientSSLError, "no TLS connection: "),
    (aiohttp.ServerDisconnectedError, "the connection was closed before an answer came: "),
    (aiohttp.ClientPayloadError, "the answer was cut or its framing is broken: "),
    (aiohttp.ClientResponseError, "the answer breaks the rules of HTTP: "),
)
