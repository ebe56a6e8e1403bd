"""The seam between links and an HTTP client, and aiohttp behind it.

Small, so that another client fits: one call that returns when the head of the answer is there, and a body that comes in
chunks as they arrive. Redirects, cookies, compression and retries are not its business.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.request import getproxies_environment, proxy_bypass

import aiohttp
from aiohttp.http import HttpProcessingError
from yarl import URL

from troth.wire.words import excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp.connector import Connection
    from aiohttp.http import RawResponseMessage

    from troth.gateway.limits import Limits

KEPT: Final = 4.0
"""Seconds that an unused connection is kept: below the five after which common servers close theirs, since a request
that meets the close is lost."""

LONG: Final = 16 * 1024
"""Bytes from which on a body is handed over beside its head, since putting both together would copy it."""

ROUTES: Final = 64
"""Addresses of one upstream that are kept ready. It has one, and over HTTP+SSE a second for each session."""

SWITCHED: Final = 101
"""The one status of the hundreds that is an answer."""

ALIVE: Final = ((socket.SO_KEEPALIVE, 1),)
"""A silent stream may be in order for hours, so only the system can tell that the peer is gone."""

ALIVE_TCP: Final = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 20), ("TCP_KEEPCNT", 4))
"""Seconds of silence before the peer is tried, between two trials, and how many."""


class FaultError(Exception):
    """No answer came, or it broke off.

    Attributes:
        words: What went wrong, fit to print, without the URL's query and without header values.
        sent: False if the request surely did not reach the server.
    """

    def __init__(self, words: str, *, sent: bool) -> None:
        super().__init__(words)
        self.words = words
        self.sent = sent


class Response(Protocol):
    """An answer whose head is there."""

    status: int

    def header(self, name: str) -> str:
        """The value of a header, whatever the case of its name; empty if there is none. Foreign text."""
        ...

    async def chunk(self) -> bytes:
        """The next bytes of the body as soon as there are any; empty at its end.

        Raises:
            FaultError: The body broke off.
        """
        ...

    @property
    def ended(self) -> bool:
        """Whether nothing more of the body will come, so that `chunk` need not be called to see its end."""
        ...

    def close(self) -> None:
        """Lets the connection go: back to the pool if the body came to its end, else it is cut.

        This or `cut` is always called.
        """
        ...

    def cut(self) -> None:
        """Cuts the connection, whatever came: nothing on it is to be trusted any more."""
        ...


class HttpClient(Protocol):
    """A pool of connections to one upstream, shared by its links."""

    async def request(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        """Sends a request and waits for the head of the answer, without a limit of its own but for connecting.

        Args:
            method: ``POST``, ``GET`` or ``DELETE``.
            url: Whole, ``http`` or ``https``.
            headers: All headers; nothing but ``Host``, ``Connection`` and the body's length is added. A value that
                would break the framing of HTTP is refused.
            body: The body; None for none.

        Raises:
            FaultError: No answer came.
        """
        ...

    async def close(self) -> None:
        """Cuts all connections."""
        ...


def open_client(url: str, limits: Limits) -> HttpClient:
    """The client for one upstream. Must be made inside the event loop, and closed.

    Args:
        url: The upstream's address: decides on the proxy that the environment names (``HTTPS_PROXY``, ``NO_PROXY``).
        limits: Sizes of heads; how long connecting may take; how many connections there may be.
    """
    return AiohttpClient(url, limits)


class AiohttpClient:
    """`HttpClient` on aiohttp's pool of connections and its parser of answers.

    Its session, and its objects for a request and an answer, are left out: what they do beyond what is needed here
    takes longer than all else of a request together. See ``docs/performance.md``. What is used instead is the same in
    aiohttp 3.13 and 3.14, and not promised beyond: the project's files allow no later one.
    """

    def __init__(self, url: str, limits: Limits) -> None:
        self._loop = asyncio.get_running_loop()
        self._connector = aiohttp.TCPConnector(
            limit=limits.running, keepalive_timeout=KEPT, socket_factory=_alive, enable_cleanup_closed=False
        )
        self._timeout = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=limits.method)
        self._longest = limits.header
        self._proxy = proxy_of(url)
        self._routes: dict[tuple[str, str], aiohttp.ClientRequest] = {}

    async def request(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        """See `HttpClient.request`."""
        if self._connector.closed:
            raise FaultError("the client is closed", sent=False)
        try:
            try:
                return await self._request(method, url, headers, body)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
                # A server may close an unused connection just as it is used again: what may be repeated is.
                if method == "POST" or isinstance(error, _UNSENT):
                    raise
            return await self._request(method, url, headers, body)
        except _FAILURES as error:
            raise _fault(error) from None

    async def _request(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Response:
        route = self._routes.get((method, url)) or self._route(method, url)
        connection = await self._connected(route)
        try:
            protocol, transport = connection.protocol, connection.transport
            if protocol is None or transport is None:
                raise aiohttp.ServerDisconnectedError
            protocol.set_response_params(
                read_until_eof=True, auto_decompress=False, max_line_size=self._longest, max_field_size=self._longest
            )
            head = _head(route, headers, body)
            if body is None or len(body) < LONG:
                transport.write(head + (body or b""))
            else:
                transport.writelines((head, body))
            while True:
                message, content = await protocol.read()
                if not 100 <= message.code < 200 or message.code == SWITCHED:
                    return _AiohttpResponse(connection, message, content)
        except BaseException:
            _cut(connection)
            raise

    async def _connected(self, route: aiohttp.ClientRequest) -> Connection:
        """A connection on which nothing came since the last answer: that would be taken for the next one."""
        while True:
            try:
                connection = await self._connector.connect(route, [], self._timeout)
            except TimeoutError:
                raise aiohttp.ConnectionTimeoutError from None
            if connection.protocol is None or not connection.protocol.should_close:
                return connection
            connection.close()

    def _route(self, method: str, url: str) -> aiohttp.ClientRequest:
        """What the pool wants to know of a request, with the headers that the address asks for; made once."""
        if len(self._routes) >= ROUTES:
            self._routes.clear()
        made = self._routes[method, url] = aiohttp.ClientRequest(
            method, URL(url), loop=self._loop, proxy=_proxy_url(self._proxy), skip_auto_headers=_AUTO
        )
        return made

    async def close(self) -> None:
        """See `HttpClient.close`."""
        await self._connector.close()


def _head(route: aiohttp.ClientRequest, headers: Mapping[str, str], body: bytes | None) -> bytes:
    """The head of a request.

    Raises:
        ValueError: A header would break it.
    """
    # Only now the route holds what a proxy wants.
    whole = route.headers.copy()
    whole.update(headers)
    if body is not None:
        whole["Content-Length"] = str(len(body))
    url = route.url
    target = str(url.with_user(None)) if route.proxy is not None and not route.is_ssl() else url.raw_path_qs
    lines = [f"{route.method} {target} HTTP/1.1", *[f"{name}: {value}" for name, value in whole.items()]]
    text = "\n".join(lines)
    if text.count("\n") >= len(lines) or "\r" in text or "\0" in text:
        raise ValueError("a header with a line break")
    return text.replace("\n", "\r\n").encode() + b"\r\n\r\n"


def _cut(connection: Connection) -> None:
    """Closes a connection at once: what was not sent yet is not waited for."""
    transport = connection.transport
    if transport is not None and transport.get_write_buffer_size():
        transport.abort()
    connection.close()


class _AiohttpResponse:
    def __init__(self, connection: Connection, message: RawResponseMessage, content: aiohttp.StreamReader) -> None:
        self.status = message.code
        self._headers = message.headers
        self._connection = connection
        self._content = content
        if not content.is_eof():
            self._await_end()

    def header(self, name: str) -> str:
        return self._headers.get(name, "")

    async def chunk(self) -> bytes:
        try:
            return await self._content.readany()
        except _FAILURES as error:
            raise _fault(error) from None

    @property
    def ended(self) -> bool:
        return self._content.at_eof()

    def close(self) -> None:
        transport = self._connection.transport
        # A server may answer before it took the whole request.
        if self._content.is_eof() and transport is not None and not transport.get_write_buffer_size():
            self._connection.release()
        else:
            self.cut()

    def cut(self) -> None:
        _cut(self._connection)

    def _await_end(self) -> None:
        """Has the body end with its connection: aiohttp leaves open what it could not read on."""
        protocol = self._connection.protocol
        closed = None if protocol is None else protocol.closed
        if closed is None:
            self._ended()
        else:
            closed.add_done_callback(self._ended)

    def _ended(self, closed: asyncio.Future[None] | None = None) -> None:
        if closed is not None and not closed.cancelled():
            closed.exception()
        if not self._content.is_eof() and self._content.exception() is None:
            self._content.set_exception(aiohttp.ClientPayloadError())


def proxy_of(url: str) -> str | None:
    """The proxy that the environment names for an address; None for none, and always for this machine itself."""
    address = URL(url)
    host = address.host or ""
    if host == "localhost" or host.startswith("127.") or host == "::1" or proxy_bypass(host):
        return None
    return getproxies_environment().get(address.scheme)


def _proxy_url(proxy: str | None) -> URL | None:
    """The address of a proxy; like other programs, one without a scheme is taken for one of HTTP.

    Raises:
        FaultError: There is none in what the environment says.
    """
    if proxy is None:
        return None
    with suppress(ValueError):
        url = URL(proxy if "://" in proxy else f"http://{proxy}")
        if url.host and url.scheme in ("http", "https"):
            return url
    raise FaultError("HTTP_PROXY or HTTPS_PROXY of the environment names no http:// or https:// address", sent=False)


def _alive(address: Any) -> socket.socket:
    made = socket.socket(*address[:3])
    for option, value in ALIVE:
        made.setsockopt(socket.SOL_SOCKET, option, value)
    for name, value in ALIVE_TCP:
        if (number := getattr(socket, name, None)) is not None:
            made.setsockopt(socket.IPPROTO_TCP, number, value)
    return made


_AUTO: Final = ("Accept", "Accept-Encoding", "User-Agent")
"""Headers that aiohttp would add."""

_FAILURES: Final = (aiohttp.ClientError, HttpProcessingError, OSError, ValueError, RuntimeError)
"""What aiohttp raises: `ValueError` for headers that cannot be sent, `RuntimeError` once it is closed."""

_UNSENT: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL, ValueError)

_TLS: Final = (aiohttp.ClientConnectorCertificateError, aiohttp.ClientSSLError)

_WORDS: Final = (
    (aiohttp.ConnectionTimeoutError, "no connection came about in time"),
    (aiohttp.ClientConnectorCertificateError, "the certificate is not trusted"),
    (aiohttp.ClientSSLError, "no TLS connection came about"),
    (aiohttp.ClientProxyConnectionError, "no connection to the proxy came about"),
    (aiohttp.ClientHttpProxyError, "the proxy refused"),
    (aiohttp.ServerDisconnectedError, "the connection was closed before an answer came"),
    (aiohttp.ClientPayloadError, "the answer was cut or its framing is broken"),
    (aiohttp.ClientResponseError, "the answer breaks the rules of HTTP"),
    (HttpProcessingError, "the answer breaks the rules of HTTP"),
    (aiohttp.ClientOSError, "the connection broke"),
    (OSError, "the connection broke"),
    (ValueError, "the request cannot be written: a header holds what HTTP does not allow"),
    (RuntimeError, "the client is closed"),
)


def _fault(error: Exception) -> FaultError:
    """The error in words of ours: those of the library may quote URLs and headers."""
    words = next((words for kind, words in _WORDS if isinstance(error, kind)), "the request failed")
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, _TLS):
        words = f"no connection to {excerpt(str(error.host))}:{error.port}"
    number = getattr(error, "errno", None)
    # What TLS reports as a number is none of the system's.
    if isinstance(number, int) and number > 0 and not isinstance(error, _TLS):
        words += f": {os.strerror(number)}"
    return FaultError(words, sent=not isinstance(error, _UNSENT))
