"""The seam between links and an HTTP client, and aiohttp behind it.

Small, so that another client fits: one call that returns when the head of the answer is there, and a body that comes in
chunks as they arrive. Redirects, cookies, compression and retries are not its business.
"""

from __future__ import annotations

import io
import os
import socket
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.request import getproxies_environment, proxy_bypass

import aiohttp
from yarl import URL

from troth.wire.words import excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.gateway.limits import Limits

KEPT: Final = 4.0
"""Seconds that an unused connection is kept: below the five after which common servers close theirs, since a request
that meets the close is lost."""

LARGE: Final = 1024 * 1024
"""Bytes from which on aiohttp wants to write a body piece by piece."""

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
        """Lets the connection go: back to the pool if the body came to its end, else it is cut. Always called."""
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
    """`HttpClient` on aiohttp. One session, one TLS context."""

    def __init__(self, url: str, limits: Limits) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=limits.running, keepalive_timeout=KEPT, socket_factory=_alive, enable_cleanup_closed=False
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=limits.method),
            trust_env=False,
            auto_decompress=False,
            max_line_size=limits.header,
            max_field_size=limits.header,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
            proxy=proxy_of(url),
        )

    async def request(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        """See `HttpClient.request`."""
        data = io.BytesIO(body) if body is not None and len(body) > LARGE else body
        try:
            response = await self._session.request(method, _url(url), data=data, headers=headers, allow_redirects=False)
        except _FAILURES as error:
            raise _fault(error) from None
        return _AiohttpResponse(response)

    async def close(self) -> None:
        """See `HttpClient.close`."""
        await self._session.close()


class _AiohttpResponse:
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self._response = response
        self._content = response.content

    def header(self, name: str) -> str:
        return self._response.headers.get(name, "")

    async def chunk(self) -> bytes:
        try:
            return await self._content.readany()
        except _FAILURES as error:
            raise _fault(error) from None

    @property
    def ended(self) -> bool:
        return self._content.at_eof()

    def close(self) -> None:
        if self._content.is_eof():
            self._response.release()
        else:
            self._response.close()


def proxy_of(url: str) -> str | None:
    """The proxy that the environment names for an address; None for none, and always for this machine itself."""
    address = URL(url)
    host = address.host or ""
    if host == "localhost" or host.startswith("127.") or host == "::1" or proxy_bypass(host):
        return None
    return getproxies_environment().get(address.scheme)


def _alive(address: Any) -> socket.socket:
    made = socket.socket(*address[:3])
    for option, value in ALIVE:
        made.setsockopt(socket.SOL_SOCKET, option, value)
    for name, value in ALIVE_TCP:
        if (number := getattr(socket, name, None)) is not None:
            made.setsockopt(socket.IPPROTO_TCP, number, value)
    return made


@lru_cache(maxsize=256)
def _url(url: str) -> URL:
    return URL(url)


_FAILURES: Final = (aiohttp.ClientError, OSError, ValueError, RuntimeError)
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
