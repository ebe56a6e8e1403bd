import contextlib
import gzip
import json
import re

import anyio
import pytest

from troth.audit.wire import http
from troth.audit.wire.types import Incoming, Limits
from troth.wire.errors import LinkError

pytestmark = pytest.mark.anyio

QUICK = Limits(start=30, method=30, stop=0.3)
ASK = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
TELL = {"jsonrpc": "2.0", "method": "notifications/initialized"}
PONG = {"jsonrpc": "2.0", "id": 7, "result": {}}
PONG_TEXT = json.dumps(PONG).encode()


def link_to(peer, limits=QUICK, **headers):
    return http.open_link(peer.url, headers=headers, limits=limits)


def secure_link_to(peer, limits=QUICK):
    return http.open_link(peer.url.replace("http", "https"), headers={}, limits=limits)


def answer(status, body=b"", **headers):
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    fields.setdefault("content-length", str(len(body)))
    lines = [f"HTTP/1.1 {status} Some Words", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def events(body=b"", **headers):
    """The head of an event stream that ends when the connection closes, and its beginning."""
    fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + fields + b"\r\n" + body


def brief(item):
    """What matters of an incoming thing: all but the headers."""
    return Incoming(
        value=item.value, problem=item.problem, channel=item.channel, status=item.status, request=item.request,
        event_id=item.event_id, retry=item.retry, end=item.end,
    )  # fmt: skip


async def exchange(inbox, peer, message=ASK, limits=QUICK):
    """Sends one message and returns all that came for it."""
    async with link_to(peer, limits) as link:
        box = inbox(link)
        await link.send(message, {})
        await box.end()
    return [brief(item) for item in box.items]


def got(value, **more):
    return Incoming(channel="post", **({"value": value, "status": 200, "request": 7} | more))


def end(problem="", **more):
    return Incoming(channel="post", **({"problem": problem, "status": 200, "request": 7, "end": True} | more))


async def test_a_json_answer_is_one_message_and_an_end_in_order(inbox, serving):
    async with serving(answer(200, PONG_TEXT, Content_Type="Application/JSON; charset=utf-8")) as peer:
        assert await exchange(inbox, peer) == [got(PONG), end()]


async def test_what_is_sent_is_one_plain_post(inbox, serving, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9/")
    async with serving(answer(200, PONG_TEXT, Content_Type="application/json", Set_Cookie="a=b")) as peer:
        peer.url = peer.url.replace("127.0.0.1", "localhost")
        async with link_to(peer, authorization="Bearer x", accept="overridden") as link:
            box = inbox(link)
            await link.send(ASK, {"Mcp-Method": "ping", "Accept": "application/json, text/event-stream"})
            await box.end()
            await link.send({"id": 2**100, "method": "ä\x00"}, {"content-type": "text/odd"})
            await box.count(4)
        first, second = peer.requests
    assert (first.method, first.path, json.loads(first.body)) == ("POST", "/mcp", ASK)
    length = {"content-length": str(len(first.body))}
    assert {name: value for name, value in first.headers.items() if name not in ("host", "connection")} == length | {
        "accept": "application/json, text/event-stream",
        "accept-encoding": "identity",
        "authorization": "Bearer x",
        "content-type": "application/json",
        "mcp-method": "ping",
        "user-agent": "troth",
    }
    assert json.loads(second.body) == {"id": 2**100, "method": "ä\x00"}
    assert (second.headers["content-type"], second.headers.get("cookie")) == ("text/odd", None)


async def test_response_headers_come_in_lower_case_and_safe_to_show(inbox, serving):
    raw = answer(200, PONG_TEXT, Content_Type="application/json", Mcp_Session_Id="Abc", X="\x1b[1m")
    async with serving(raw.replace(b"X:", b"Vary: a\r\nVARY: b\r\nX:")) as peer, link_to(peer) as link:
        box = inbox(link)
        await link.send(ASK, {})
        await box.end()
    if box.items[0].value is None:
        pytest.fail(box.items[0].problem)
    assert box.items[0].headers == {
        "content-type": "application/json",
        "mcp-session-id": "Abc",
        "vary": "a, b",
        "x": "\\x1b[1m",
        "content-length": str(len(PONG_TEXT)),
    }


@pytest.mark.parametrize("line_end", ["\n", "\r", "\r\n"])
async def test_events_come_one_by_one_with_the_last_id_and_the_end(inbox, serving, line_end):
    log = {"jsonrpc": "2.0", "method": "notifications/message"}
    text = f": hello\n\nid: 1\nretry: 300\ndata:\n\ndata: {json.dumps(log)}\n\n"
    text += f"id: 2\nevent: message\ndata: {json.dumps(PONG)}\n\n"
    body = text.replace("\n", line_end).encode()

    async def bytewise(peer, stream, request):
        await stream.send(events())
        for byte in body:
            await stream.send(bytes([byte]))

    for way in (events(body), bytewise):
        async with serving(way) as peer:
            assert await exchange(inbox, peer) == [
                got(log, event_id="1", retry=300),
                got(PONG, event_id="2", retry=300),
                end(event_id="2", retry=300),
            ]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"data: Nonsense\n\n", "no JSON (JSON is malformed: invalid character (byte 0)): Nonsense"),
        (b'data: "\xff"\n\n', 'no JSON (Invalid UTF-8 encoded string): "\\xff"'),
        (b"event: ping\ndata: 12:00\n\n", "an SSE event of type ping, which carries no message: 12:00"),
        (b"data: " + b"x" * 2000 + b"\n\n", "an SSE event of more than 1000 bytes, skipped"),
    ],
)
async def test_an_event_without_a_message_is_told_and_the_next_one_read(inbox, serving, body, problem):
    async with serving(events(body + b"data: " + PONG_TEXT + b"\n\n")) as peer:
        came = await exchange(inbox, peer, limits=Limits(line=1000))
    assert came == [got(None, problem=problem), got(PONG), end()]


async def test_a_stream_that_ends_within_an_event_says_so(inbox, serving):
    async with serving(events(b"data: " + PONG_TEXT + b"\n")) as peer:
        assert await exchange(inbox, peer) == [
            end(f"the event stream ends within an event: data: {PONG_TEXT.decode()}")
        ]


@pytest.mark.parametrize(
    ("raw", "status", "problem"),
    [
        (answer(202), 202, "HTTP 202 without a body"),
        (answer(204), 204, "HTTP 204 without a body"),
        (answer(200), 200, "HTTP 200 without a body"),
        (answer(200, b" \n", content_type="application/json"), 200, "HTTP 200 without a body"),
        (answer(404, b"Not Found", content_type="text/plain"), 404, "HTTP 404 with text/plain: Not Found"),
        (answer(500, b"\x1b[2J" + b"x" * 500), 500, "HTTP 500 with no content type: \\x1b[2J" + "x" * 193 + "..."),
        (answer(401, b'{"error": "invalid_token"}', content_type="application/json"), 401,
         'HTTP 401 with application/json: {"error": "invalid_token"}'),
        (answer(200, b"<html>", content_type="text/html"), 200,
         "HTTP 200 with text/html: neither application/json nor text/event-stream; it begins: <html>"),
        (answer(200, PONG_TEXT, content_type="text/plain"), 200,
         f"HTTP 200 with text/plain: neither application/json nor text/event-stream; it begins: {PONG_TEXT.decode()}"),
        (answer(200, b"{", content_type="application/json"), 200,
         "HTTP 200 with application/json: no JSON (Input data was truncated): {"),
        (answer(307, b"", location="/else\x1bwhere"), 307, "HTTP 307 to /else\\x1bwhere; redirects are not followed"),
        (answer(302), 302, "HTTP 302 to nowhere; redirects are not followed"),
        (answer(200, b"x" * 5000, content_type="application/json"), 200,
         "HTTP 200 with a body of more than 1000 bytes"),
        (answer(200, gzip.compress(bytes(10**7)), content_type="application/json", content_encoding="gzip"), 200,
         "HTTP 200 with a body compressed (gzip) although that was not accepted"),
    ],
)  # fmt: skip
async def test_an_answer_without_a_message_ends_the_request_with_words(inbox, serving, raw, status, problem):
    async with serving(raw) as peer:
        came = await exchange(inbox, peer, limits=Limits(line=1000))
    assert came == [end(problem, status=status)]


@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
async def test_a_json_rpc_error_in_an_http_error_is_a_message(inbox, serving, kind):
    error = {"jsonrpc": "2.0", "id": 7, "error": {"code": -32601, "message": "no"}}
    async with serving(answer(404, json.dumps(error).encode(), content_type=kind)) as peer:
        assert await exchange(inbox, peer) == [got(error, status=404), end(status=404)]


@pytest.mark.parametrize("status", [200, 202, 204])
async def test_an_accepted_notification_is_in_order_and_waited_for(inbox, serving, status):
    async with serving(answer(status)) as peer, link_to(peer) as link:
        box = inbox(link)
        await link.send(TELL, {})
        assert len(peer.requests) == 1
        await box.end()
    assert [brief(item) for item in box.items] == [end(status=status, request=None)]


async def test_a_refused_notification_is_told(inbox, serving):
    async with serving(answer(400, b"no session")) as peer:
        assert await exchange(inbox, peer, TELL) == [
            end("HTTP 400 with no content type: no session", status=400, request=None)
        ]


async def test_a_notification_without_an_answer_does_not_hold_up_the_rest(inbox, serving):
    async def silent(peer, stream, request):
        await peer.endless(stream, b"")

    async with serving(silent) as peer:
        async with link_to(peer, Limits(method=0.2)) as link:
            box = inbox(link)
            with anyio.fail_after(30):
                await link.send(TELL, {})
            assert (box.items, link.dead) == ([], "")
        await peer.wait_for_cut()


RULES = "the answer breaks the rules of HTTP: "
CUT = "the answer was cut or its framing is broken: "


@pytest.mark.parametrize(
    ("raw", "pattern"),
    [
        (b"", "the connection was closed before an answer came: "),
        (b"HTTP/1.1 200 OK\r\nConten", f"(the connection was closed|{RULES})"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", RULES),
        (answer(200, b"{", content_type="application/json", content_length="100"), CUT),
        (events(b"5\r\ndata:", **{"Transfer-Encoding": "chunked"}), CUT),
        (events(b"zz\r\ndata:", **{"Transfer-Encoding": "chunked"}), RULES),
        (answer(200, PONG_TEXT, content_type="application/json", x="x" * 100_000), RULES),
        (answer(200, PONG_TEXT, content_type="application/json", content_length="many"), RULES),
    ],
)  # fmt: skip
async def test_broken_framing_ends_the_request_with_words(inbox, serving, raw, pattern):
    async with serving(raw) as peer:
        (last,) = await exchange(inbox, peer)
    assert last.end
    assert re.match(pattern, last.problem)
    assert len(last.problem) < 300
    assert last.problem.isprintable()


async def test_what_came_before_a_cut_was_delivered(inbox, serving):
    event = b"data: " + PONG_TEXT + b"\n\n"
    body = b"%x\r\n%s\r\n5\r\nda" % (len(event), event)
    async with serving(events(body, **{"Transfer-Encoding": "chunked"})) as peer:
        message, last = await exchange(inbox, peer)
    assert message == got(PONG)
    assert last.end
    assert last.problem.startswith(CUT)


async def test_a_refused_connection_is_dead(inbox, unused_port):
    async with http.open_link(f"http://127.0.0.1:{unused_port}/mcp", headers={}, limits=QUICK) as link:
        box = inbox(link)
        await link.send(ASK, {})
        await box.end()
        told = f"no connection to 127.0.0.1:{unused_port}: Connection refused"
        assert link.dead == told
        await link.send(ASK, {})
        assert (await link.open_stream({}), await link.delete({})) == (0, 0)
    assert box.items == [end(told, status=None)]


@pytest.mark.parametrize(
    ("greeting", "start", "told"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", 30, "no TLS connection: "),
        (b"", 0.5, "no connection came about in time: "),
    ],
)
async def test_a_server_without_tls_behind_https_is_dead_with_words(inbox, serving, greeting, start, told):
    async with serving(b"", greeting=greeting) as peer, secure_link_to(peer, Limits(start=start)) as link:
        box = inbox(link)
        await link.send(ASK, {})
        await box.end()
        assert link.dead.startswith(told)
    assert [brief(item) for item in box.items] == [end(link.dead, status=None)]


async def test_a_certificate_that_nobody_vouches_for_is_dead_with_words(inbox, serving, own_certificate):
    async with serving(b"", tls=own_certificate) as peer, secure_link_to(peer) as link:
        box = inbox(link)
        await link.send(ASK, {})
        await box.end()
        assert link.dead.startswith("the certificate is not trusted: ")


async def test_a_name_that_does_not_resolve_is_dead(inbox):
    async with http.open_link("http://nobody.invalid/mcp", headers={}, limits=QUICK) as link:
        box = inbox(link)
        await link.send(ASK, {})
        await box.end()
        assert link.dead.startswith("no connection to nobody.invalid:80: ")


async def test_words_about_a_failure_keep_the_query_of_the_url_to_themselves(inbox, serving):
    async with serving(b"") as peer:
        url = peer.url.replace("http", "https") + "?token=secret"
        async with http.open_link(url, headers={}, limits=Limits(start=0.2)) as link:
            box = inbox(link)
            await link.send(ASK, {})
            await box.end()
    assert box.problems == [link.dead]
    assert peer.url.removeprefix("http") in link.dead
    assert "secret" not in link.dead


async def test_a_header_that_cannot_be_sent_is_told(inbox, serving):
    async with serving(answer(202)) as peer, link_to(peer) as link:
        box = inbox(link)
        await link.send(ASK, {"X": "a\r\nb: c"})
        await box.end()
    assert box.problems[0].startswith("the connection failed: ")
    assert peer.requests == []


async def test_cancelling_closes_the_stream_of_that_request_only(inbox, serving):
    cut = []

    async def slow(peer, stream, request):
        await stream.send(events(b"data: {}\n\n"))
        with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            await stream.receive()
        cut.append(repr(json.loads(request.body)["id"]))
        peer.cut.set()

    async with serving(slow) as peer, link_to(peer) as link:
        box = inbox(link)
        for request in (7, "7", True, None):
            await link.send(ASK | {"id": request}, {})
        await box.count(4)
        for other in (7.0, 1, "8", [7]):
            link.cancel(other)
        link.cancel("7")
        await peer.wait_for_cut()
        assert cut == ["'7'"]
        peer.cut = anyio.Event()
        link.cancel(7)
        await peer.wait_for_cut()
        assert cut == ["'7'", "7"]
    assert not any(item.end for item in box.items)


async def test_leaving_the_link_cuts_all_and_delivers_nothing(inbox, serving):
    async def slow_body(peer, stream, request):
        await peer.endless(stream, answer(200, b"{", content_type="application/json", content_length="10"))

    async with serving(slow_body) as peer:
        async with link_to(peer) as link:
            box = inbox(link)
            await link.send(ASK, {})
            with anyio.fail_after(30):
                while not peer.requests:  # noqa: ASYNC110 - the peer keeps a plain list
                    await anyio.sleep(0.01)
        await peer.wait_for_cut()
    assert box.items == []


async def test_an_error_of_the_user_comes_out_as_it_is(serving):
    async with serving(answer(202)) as peer:
        with pytest.raises(KeyError, match="mine"):  # noqa: PT012
            async with link_to(peer) as link:
                await link.send(ASK, {})
                raise KeyError("mine")


async def test_the_stream_without_a_request_is_opened_and_read(inbox, serving):
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    async with serving(events(b"id: 4\ndata: " + json.dumps(changed).encode() + b"\n\n")) as peer:
        async with link_to(peer) as link:
            box = inbox(link)
            assert await link.open_stream({"Last-Event-ID": "3"}) == 200
            await box.end()
        (request,) = peer.requests
    assert (request.method, request.headers["accept"], request.headers["last-event-id"]) == (
        "GET",
        "text/event-stream",
        "3",
    )
    assert [brief(item) for item in box.items] == [
        Incoming(channel="get", value=changed, status=200, event_id="4"),
        Incoming(channel="get", status=200, event_id="4", end=True),
    ]


async def test_a_refused_stream_tells_its_status(inbox, serving):
    async with serving(answer(405)) as peer, link_to(peer) as link:
        box = inbox(link)
        assert await link.open_stream({}) == 405
        await box.end()
    assert [brief(item) for item in box.items] == [
        Incoming(channel="get", problem="HTTP 405 without a body", status=405, end=True)
    ]


async def test_a_stream_whose_head_is_late_stays_open(inbox, serving):
    late = anyio.Event()

    async def answer_late(peer, stream, request):
        await late.wait()
        await stream.send(events(b"data: {}\n\n"))

    async with serving(answer_late) as peer, link_to(peer, Limits(method=0.1)) as link:
        box = inbox(link)
        assert await link.open_stream({}) == 0
        late.set()
        await box.end()
    assert box.values == [{}]


async def test_a_session_is_ended_by_delete(serving):
    async with serving(answer(405, b"no")) as peer, link_to(peer) as link:
        assert await link.delete({"Mcp-Session-Id": "s"}) == 405
    (request,) = peer.requests
    assert (request.method, request.headers["mcp-session-id"]) == ("DELETE", "s")


async def test_a_delete_without_an_answer_is_given_up(serving):
    async def silent(peer, stream, request):
        await peer.endless(stream, b"")

    async with serving(silent) as peer, link_to(peer, Limits(method=0.1)) as link:
        with anyio.fail_after(30):
            assert await link.delete({}) == 0
        await peer.wait_for_cut()


@pytest.mark.parametrize(
    ("again", "limits", "told"),
    [
        (b"data: {}\n\n", Limits(frames=20), "flood: more than 20 messages came; cut"),
        (b"data: [[],[],[]]\n\n", Limits(values=100), "flood: more than 100 JSON values came; cut"),
        (b": comment\n\n" * 100, Limits(total=100_000), "flood: more than 100000 bytes came; cut"),
    ],
)
async def test_a_flood_cuts_everything(inbox, serving, again, limits, told):
    async def flood(peer, stream, request):
        if b"quiet" in request.body:
            await stream.receive()
        else:
            await peer.endless(stream, events(), again)

    async with serving(flood) as peer, link_to(peer, limits) as link:
        box = inbox(link)
        await link.send(ASK | {"id": "quiet"}, {})
        await link.send(ASK, {})
        await box.until(lambda box: sum(item.end for item in box.items) == 2)
        assert link.dead == told
        await peer.wait_for_cut()
    ends = {item.request: item.problem for item in box.items if item.end}
    assert ends == {7: told, "quiet": told}
    assert len(box.values) <= 21


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://host/", "this is no URL of a server over HTTP"),
        ("http:///mcp", "this is no URL of a server over HTTP"),
        ("localhost:8000", "this is no URL of a server over HTTP"),
        ("http://host:port/", "this is no URL ("),
        ("http://[::1", "this is no URL ("),
    ],
)
async def test_what_is_no_url_says_so(url, message):
    with pytest.raises(LinkError) as caught:
        async with http.open_link(url, headers={}, limits=QUICK):
            pytest.fail("it opened")
    assert caught.value.message.startswith(message)
    assert caught.value.where == url
    assert caught.value.advice == "write it like http://127.0.0.1:8000/mcp"
