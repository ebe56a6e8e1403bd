"""A link to a URL of the transport of 2024-11-05, HTTP+SSE: one GET stream brings everything, POSTs carry what is sent.

The stream's first event, ``endpoint``, names where to POST to. It must lie at the origin of the stream's own URL, or a
server could send the auditor (and its headers) elsewhere. A POST is answered by a bare 2xx; the response to the request
in it comes on the stream, whose end is the end of the link.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from yarl import URL

from troth.audit.wire.http import Exchange, HttpLink, address_of, client_session
from troth.wire.words import excerpt

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    import aiohttp
    from anyio.abc import TaskGroup

    from troth.audit.wire.http import Asked
    from troth.audit.wire.types import Limits
    from troth.wire.sse import Event


@asynccontextmanager
async def open_link(url: str, *, headers: Mapping[str, str] | None = None, limits: Limits) -> AsyncGenerator[SseLink]:
    """Opens the stream and waits for its endpoint, for up to ``limits.start`` seconds; on leaving, cuts everything.

    A link without an endpoint is dead from the start: look at `SseLink.dead`.

    Args:
        url: Where the event stream is, ``http`` or ``https``.
        headers: Sent with every request (``Authorization`` ...).
        limits: Times and sizes.

    Raises:
        LinkError: The URL is none.
    """
    address = address_of(url)
    async with client_session(limits) as (client, tasks):
        link = SseLink(client, tasks, address, headers or {}, limits)
        await link.open()
        yield link


class SseLink(HttpLink):
    """The link to one HTTP+SSE server. Requests have no stream of their own, so `cancel` finds nothing to close."""

    def __init__(
        self, client: aiohttp.ClientSession, tasks: TaskGroup, url: URL, headers: Mapping[str, str], limits: Limits
    ) -> None:
        super().__init__(client, tasks, url, headers, limits)
        self._endpoint: URL | None = None
        self._settled = anyio.Event()

    async def open(self) -> None:
        """Opens the stream; returns when the endpoint is known or will never be."""
        self._begin(Exchange(channel="sse"), "GET", {}, None)
        with anyio.move_on_after(self.limits.start):
            await self._settled.wait()
        if self._endpoint is None:
            self._dead = self._dead or "no endpoint event came in time"

    async def open_stream(self, headers: Mapping[str, str]) -> int:  # noqa: ARG002 - it is open since the start
        """There is nothing more to open."""
        await anyio.lowlevel.checkpoint()
        return 200

    def cancel(self, request: object) -> None:
        """Does nothing: the answers of all requests share the one stream."""

    def _ask(self, method: str, headers: Mapping[str, str], body: bytes | None) -> Asked:
        url = self._endpoint if method == "POST" and self._endpoint is not None else self._url
        return self._client.request(
            method, url, data=body, headers=self._merged(method, headers), allow_redirects=False
        )

    async def _answer(self, exchange: Exchange, response: aiohttp.ClientResponse) -> str:
        if exchange.channel == "post" and response.ok:
            return ""
        return await super()._answer(exchange, response)

    def _event(self, exchange: Exchange, event: Event) -> None:
        if event.event == "endpoint" and exchange.channel == "sse" and self._endpoint is None:
            self._name_endpoint(event.data)
        else:
            super()._event(exchange, event)

    def _name_endpoint(self, data: bytes) -> None:
        try:
            endpoint = self._url.join(URL(data.decode()))
        except ValueError:
            endpoint = None
        if endpoint is not None and endpoint.scheme in ("http", "https") and endpoint.origin() == self._url.origin():
            self._endpoint = endpoint
        else:
            self._dead = f"the endpoint event names no URL at this origin: {excerpt(data)}"
        self._settled.set()

    def _ended(self, exchange: Exchange, problem: str) -> None:
        if exchange.channel == "sse":
            self._dead = self._dead or problem or "the event stream ended"
            self._settled.set()
            super()._ended(exchange, self._dead)
        elif problem or not exchange.asks:
            super()._ended(exchange, problem)
