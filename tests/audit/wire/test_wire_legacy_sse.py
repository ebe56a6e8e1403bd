import json

import anyio
import pytest

from troth.audit.wire import legacy_sse
from troth.audit.wire.types import Incoming, Limits
from troth.wire.errors import LinkError

pytestmark = pytest.mark.anyio

ASK = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
PONG = {"jsonrpc": "2.0", "id": 7, "result": {}}
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 8\r\n\r\nAccepted"
REFUSED = b"HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n\r\nno session"


QUICK = Limits(start=30)


def link_to(peer, limits=QUICK):
    return legacy_sse.open_link(peer.url + "?token=secret", headers={"authorization": "Bearer x"}, limits=limits)


def endpoint(place):
    return STREAM + b"event: endpoint\ndata: " + place + b"\n\n"


async def brief(box):
    return [
        Incoming(channel=item.channel, value=item.value, problem=item.problem, status=item.status,
                 request=item.request, end=item.end)
        for item in box.items
    ]  # fmt: skip


@pytest.mark.parametrize("place", ["/messages?s=1", "messages?s=1", "{origin}/messages?s=1"])
async def test_requests_go_to_the_endpoint_and_answers_come_on_the_stream(inbox, serving, place):
    posted = anyio.Event()

    async def answer(peer, stream, request):
        if request.method == "GET":
            await stream.send(endpoint(place.format(origin=peer.url.removesuffix("/mcp")).encode()))
            await posted.wait()
            await stream.send(b"data: " + json.dumps(PONG).encode() + b"\n\n")
        else:
            await stream.send(ACCEPTED)
            posted.set()

    async with serving(answer) as peer, link_to(peer) as link:
        box = inbox(link)
        assert (link.dead, await link.open_stream({})) == ("", 200)
        link.cancel(7)
        await link.send(ASK, {})
        await box.end()
        assert link.dead == "the event stream ended"
    opened, sent = peer.requests
    assert (opened.method, opened.path, opened.headers["accept"]) == ("GET", "/mcp?token=secret", "text/event-stream")
    assert (sent.method, sent.path, json.loads(sent.body)) == ("POST", "/messages?s=1", ASK)
    assert (opened.headers["authorization"], sent.headers["authorization"]) == ("Bearer x", "Bearer x")
    assert await brief(box) == [
        Incoming(channel="sse", value=PONG, status=200),
        Incoming(channel="sse", problem="the event stream ended", status=200, end=True),
    ]


async def test_a_post_tells_its_end_only_where_nothing_comes_on_the_stream(inbox, serving):
    async def answer(peer, stream, request):
        if request.method == "GET":
            await peer.endless(stream, endpoint(b"/messages"))
        else:
            await stream.send(REFUSED if b"ping" in request.body else ACCEPTED)

    async with serving(answer) as peer:
        async with link_to(peer) as link:
            box = inbox(link)
            await link.send({"jsonrpc": "2.0", "method": "notifications/initialized"}, {})
            await box.count(1)
            await link.send(ASK, {})
            await box.count(2)
        await peer.wait_for_cut()
    refused = "HTTP 404 with no content type: no session"
    assert await brief(box) == [
        Incoming(channel="post", status=202, end=True),
        Incoming(channel="post", status=404, problem=refused, request=7, end=True),
    ]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (endpoint(b"http://127.0.0.1:1/x"), "the endpoint event names no URL at this origin: http://127.0.0.1:1/x"),
        (endpoint(b"//elsewhere/x"), "the endpoint event names no URL at this origin: //elsewhere/x"),
        (endpoint(b"file:///x"), "the endpoint event names no URL at this origin: file:///x"),
        (endpoint(b"http://[::1"), "the endpoint event names no URL at this origin: http://[::1"),
        (endpoint(b"\xff"), "the endpoint event names no URL at this origin: \\xff"),
        (STREAM, "the event stream ended"),
        (b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n", "HTTP 405 without a body"),
    ],
)
async def test_a_stream_without_a_usable_endpoint_is_dead_from_the_start(serving, answer, told):
    async with serving(answer) as peer, link_to(peer) as link:
        assert link.dead == told
        await link.send(ASK, {})
    assert len(peer.requests) == 1


async def test_an_endpoint_that_never_comes_is_not_waited_for_long(inbox, serving):
    async def silent(peer, stream, request):
        await peer.endless(stream, STREAM + b": wait\n\n")

    async with serving(silent) as peer:
        with anyio.fail_after(30):
            async with link_to(peer, Limits(start=0.2)) as link:
                assert link.dead == "no endpoint event came in time"
        await peer.wait_for_cut()


async def test_a_second_endpoint_is_no_message(inbox, serving):
    listening = anyio.Event()

    async def twice(peer, stream, request):
        await stream.send(endpoint(b"/messages"))
        await listening.wait()
        await peer.endless(stream, b"event: endpoint\ndata: /other\n\n")

    async with serving(twice) as peer, link_to(peer) as link:
        box = inbox(link)
        listening.set()
        await box.count(1)
    assert box.problems == ["an SSE event of type endpoint, which carries no message: /other"]


async def test_what_is_no_url_says_so():
    with pytest.raises(LinkError):
        async with legacy_sse.open_link("sse", limits=Limits()):
            pytest.fail("it opened")
