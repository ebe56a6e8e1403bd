"""A link over HTTP+SSE of 2024-11-05: one GET stream brings everything, POSTs carry what is sent.

The stream's first event, ``endpoint``, names where to POST to. It must lie at the origin of the stream's own address,
or a server could send our frames and credentials elsewhere (rule 22 of the gateway). A POST is answered by a bare
success; the response comes on the stream, whose end is the end of the link.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import anyio

from troth.gateway.upstream.client import FaultError
from troth.gateway.upstream.http import EVENTS, HttpLink, Stream, kind_of
from troth.gateway.upstream.link import NO_HEADERS, Problem
from troth.wire.errors import LinkError
from troth.wire.words import excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.bridge import Id
    from troth.gateway.crew import Crew
    from troth.gateway.limits import Limits
    from troth.gateway.settings import UpstreamSettings
    from troth.gateway.upstream.client import HttpClient, Response
    from troth.gateway.upstream.link import Receiver
    from troth.wire.sse import Event


async def open_sse(
    settings: UpstreamSettings, receiver: Receiver, crew: Crew, limits: Limits, client: HttpClient
) -> SseLink:
    """Opens the stream and waits for its endpoint, for up to ``settings.start_timeout`` seconds.

    Raises:
        LinkError: The address is none, or there is no such stream.
    """
    link = SseLink(settings, receiver, crew, limits, client)
    try:
        with anyio.move_on_after(settings.start_timeout):
            await link.open()
    except BaseException:
        await link.close()
        raise
    if not link.ready:
        await link.close()
        raise LinkError(
            link.why or f"no endpoint event came within {settings.start_timeout:g} seconds",
            where=settings.name,
            advice="check the address, and whether the server speaks HTTP+SSE",
        )
    return link


class SseLink(HttpLink):
    """The link to one HTTP+SSE server; made by `open_sse`. Requests have no stream of their own."""

    transport = "sse"

    def __init__(
        self, settings: UpstreamSettings, receiver: Receiver, crew: Crew, limits: Limits, client: HttpClient
    ) -> None:
        super().__init__(settings, receiver, crew, limits, client)
        self.ready = False
        """Whether the endpoint is known."""
        self._settled = asyncio.Event()

    async def open(self) -> None:
        """Opens the stream; returns when the endpoint is known or never will be (`why`)."""
        self._listening = self._crew.spawn(self._run(), "sse stream")
        await self._settled.wait()

    def listen(self, headers: Mapping[str, str] = NO_HEADERS) -> None:
        """Does nothing: the one stream is open."""

    async def _run(self) -> None:
        try:
            response, self._url = await self._follow("GET", self._headers["GET"])
            try:
                why = await self._read(response)
            finally:
                response.close()
        except FaultError as fault:
            why = fault.words
        self.why = self.why or why
        for task in self._running.values():
            task.cancel()
        self._running.clear()
        if self.ready and not self._closing:
            self._receiver.dead(self.why)
        self._settled.set()

    async def _read(self, response: Response) -> str:
        if response.status != 200 or kind_of(response) != EVENTS:
            refusal = await self._refusal(response)
            return refusal.words if response.status != 200 else f"no event stream but {excerpt(kind_of(response))}"
        problem = await self._events(None, response, Stream())
        return problem.words if problem else "the event stream ended"

    async def _events(self, key: Id | None, response: Response, stream: Stream) -> Problem | None:
        problem = await super()._events(key, response, stream)
        return Problem(words=self.why) if self.why else problem

    def _event(self, key: Id | None, event: Event, stream: Stream) -> bool:
        if event.event == "endpoint" and not self.ready and not self.why:
            self._name_endpoint(event.data)
            return bool(self.why)
        return super()._event(key, event, stream)

    def _name_endpoint(self, data: bytes) -> None:
        if (endpoint := self._own(data.decode("utf-8", "replace"), self._url)) is not None:
            self._url = endpoint
            self.ready = True
        else:
            self.why = f"the endpoint event names no URL at this origin: {excerpt(data.partition(b'?')[0])}"
        self._settled.set()

    async def _request(self, key: Id, line: bytes, headers: Mapping[str, str]) -> None:
        problem = await self._attempt(self._exchange(key, line, headers))
        if self._running.pop(key, None) is not None and problem is not None:
            self._receiver.ended(key, problem)

    async def _answer(self, key: Id | None, response: Response, headers: Mapping[str, str]) -> Problem | None:  # noqa: ARG002
        # The response comes on the stream, whatever stands in this answer.
        return await super()._answer(None, response, headers)
