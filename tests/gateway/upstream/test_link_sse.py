"""The link over HTTP+SSE of 2024-11-05."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest
from link_peer import Asked, Peer, result, serving
from link_recorder import Recorder, message, run

from troth.gateway.crew import Crew
from troth.gateway.limits import Limits
from troth.gateway.settings import Transport, UpstreamSettings
from troth.gateway.upstream.link import Problem
from troth.gateway.upstream.links import open_client, open_link
from troth.wire.errors import LinkError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from troth.gateway.upstream.link import Link


@asynccontextmanager
async def talking(
    answer: Callable[[Asked], Awaitable[None]], start_timeout: float = 30.0
) -> AsyncGenerator[tuple[Peer, Link, Recorder]]:
    async with serving(answer) as peer:
        settings = UpstreamSettings(
            name="peer",
            transport=Transport.HTTP,
            url=peer.url,
            headers={"Authorization": "Bearer secret"},
            start_timeout=start_timeout,
        )
        heard, crew, limits = Recorder(), Crew(), Limits(stop=1.0)
        client = open_client(settings, limits)
        assert client is not None
        try:
            link = await open_link(settings, heard, crew, limits, client=client, transport=Transport.SSE)
            try:
                yield peer, link, heard
            finally:
                await link.close()
        finally:
            await client.close()
            await anyio.lowlevel.checkpoint()
            left = len(crew)
            await crew.close()
        assert left == 0


class Server:
    """Sends its endpoint and then the response of every request on the one stream."""

    def __init__(self, endpoint: str = "/messages?session=1") -> None:
        self.endpoint = endpoint
        self.stream: Asked | None = None

    async def __call__(self, asked: Asked) -> None:
        if asked.method == "GET":
            self.stream = asked
            endpoint = self.endpoint.format(host=asked.headers["host"])
            await asked.events(b"event: endpoint\ndata: " + endpoint.encode() + b"\n\n")
            await asked.hang()
        elif asked.json.get("method") == "refuse":
            await asked.reply(500, b"no", "text/plain")
        else:
            await asked.reply(202, b"Accepted", "text/plain")
            assert self.stream is not None
            await self.stream.event(b"event: message\ndata: " + result(asked.json["id"]) + b"\n\n")


@pytest.mark.parametrize("endpoint", ["/messages?session=1", "http://{host}/messages?session=1"])
def test_responses_come_on_the_one_stream(endpoint: str) -> None:
    async def test() -> None:
        async with talking(Server(endpoint)) as (peer, link, heard):
            assert link.transport == "sse"
            link.listen()
            link.send(1, message(1))
            await heard.count(1)
            assert await link.deliver(message(2)) is None
            await heard.count(2)
            assert heard.frames == [(None, result(1)), (None, result(2))]
            assert [asked.path for asked in peer.asked] == ["/mcp", "/messages?session=1", "/messages?session=1"]
            assert all(asked.headers["authorization"] == "Bearer secret" for asked in peer.asked)
            assert heard.ends == []

    run(test)


def test_a_refused_request_has_an_end() -> None:
    async def test() -> None:
        async with talking(Server()) as (_, link, heard):
            link.send(1, message(1, method="refuse"))
            assert await heard.end_of(1) == Problem(words="HTTP 500: no", status=500)

    run(test)


@pytest.mark.parametrize(
    "endpoint",
    ["http://example.com/messages", "https://{host}/messages", "http://user@{host}/m", "//127.0.0.1:1/", "http://["],
)
def test_rule_22_an_endpoint_at_another_origin_is_refused_before_anything_is_sent_there(endpoint: str) -> None:
    async def test() -> None:
        with pytest.raises(LinkError, match="names no URL at this origin"):
            async with talking(Server(endpoint)):
                pass

    run(test)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize(("endpoint", "posted"), [("/messages", "/messages"), ("messages", "/mcp/messages")])
def test_rule_22_a_stream_that_has_moved_at_its_origin_is_followed(status: int, endpoint: str, posted: str) -> None:
    server = Server(endpoint)

    async def moved(asked: Asked) -> None:
        if asked.path == "/mcp":
            await asked.reply(status, Location="/mcp/")
        else:
            await server(asked)

    async def test() -> None:
        async with talking(moved) as (peer, link, heard):
            link.send(1, message(1))
            await heard.count(1)
            assert [asked.path for asked in peer.asked] == ["/mcp", "/mcp/", posted]

    run(test)


def test_rule_22_a_stream_that_has_moved_elsewhere_is_not_followed() -> None:
    async def test() -> None:
        async with serving(Asked.hang) as elsewhere:

            async def answer(asked: Asked) -> None:
                await asked.reply(302, Location=elsewhere.url)

            with pytest.raises(LinkError, match="which is not followed"):
                async with talking(answer):
                    pass
            assert elsewhere.connections == 0

    run(test)


def test_a_second_endpoint_changes_nothing() -> None:
    async def test() -> None:
        server = Server()
        async with talking(server) as (peer, link, heard):
            assert server.stream is not None
            await server.stream.event(b"event: endpoint\ndata: /elsewhere\n\n")
            await server.stream.event(b"data: {}\n\n")
            await heard.count(1)
            link.send(1, message(1))
            await heard.count(2)
            assert peer.asked[-1].path == "/messages?session=1"
            assert link.notes == ("1 events dropped that are no messages or too long",)

    run(test)


def test_the_end_of_the_stream_is_the_end_of_the_link() -> None:
    async def test() -> None:
        server = Server()
        async with talking(server) as (_, link, heard):
            assert server.stream is not None
            await server.stream.end()
            assert await heard.death() == "the event stream ended"
            assert link.why == "the event stream ended"
            link.send(1, message(1))
            assert await link.deliver(b"{}") == Problem(words="the event stream ended", sent=False, broken=True)
            assert heard.ends == []

    run(test)


def test_a_cut_of_the_stream_is_the_end_of_the_link() -> None:
    async def test() -> None:
        server = Server()
        async with talking(server) as (_, _, heard):
            assert server.stream is not None
            await server.stream.cut()
            assert await heard.death() == "the answer was cut or its framing is broken"

    run(test)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda asked: asked.reply(405), "HTTP 405"),
        (lambda asked: asked.reply(200, b"{}"), "no event stream but application/json"),
        (lambda asked: asked.cut(), "the connection was closed before an answer came"),
    ],
)
def test_what_is_no_such_server_is_an_error(answer: Callable[[Asked], Awaitable[None]], words: str) -> None:
    async def test() -> None:
        with pytest.raises(LinkError, match=words):
            async with talking(answer):
                pass

    run(test)


def test_an_endpoint_that_never_comes_is_not_waited_for_long() -> None:
    async def test() -> None:
        with pytest.raises(LinkError, match=r"no endpoint event came within 0\.5 seconds"):
            async with talking(Asked.hang, start_timeout=0.5):
                pass

    run(test)


def test_a_link_over_http_needs_a_client() -> None:
    async def test() -> None:
        settings = UpstreamSettings(name="peer", transport=Transport.HTTP, url="http://127.0.0.1/mcp")
        with pytest.raises(ValueError, match="needs a client"):
            await open_link(settings, Recorder(), Crew(), Limits())

    run(test)


def test_a_link_to_a_process_needs_none() -> None:
    async def test() -> None:
        settings = UpstreamSettings(name="peer", transport=Transport.STDIO, command=("cat",))
        assert open_client(settings, Limits()) is None
        heard = Recorder()
        link = await open_link(settings, heard, Crew(), Limits())
        link.send(1, message(1))
        await heard.count(1)
        assert link.pid
        await link.close()

    run(test)
