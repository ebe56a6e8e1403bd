"""The link over Streamable HTTP, against servers that answer, stream, redirect, refuse, hang, cut and flood."""

from __future__ import annotations

import itertools
import json
import logging
import socket
import ssl
import subprocess
import sys
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest
from link_peer import EVENTS, Asked, Peer, result, serving
from link_recorder import Recorder, message, run

from troth.gateway.crew import Crew
from troth.gateway.limits import Limits
from troth.gateway.settings import Transport, UpstreamSettings
from troth.gateway.upstream import http
from troth.gateway.upstream.client import proxy_of
from troth.gateway.upstream.link import Problem
from troth.gateway.upstream.links import open_client, open_link
from troth.wire.errors import LinkError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
    from pathlib import Path

    from troth.gateway.upstream.link import Link


def own_certificate(folder: Path) -> ssl.SSLContext:
    """A server's TLS context with a certificate for 127.0.0.1 that it signed itself."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem = folder / "peer.pem"
    pem.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context


FAST = Limits(back_off=0.01, back_off_most=0.05, stop=30.0)


def settings_of(url: str, headers: Mapping[str, str] | None = None) -> UpstreamSettings:
    return UpstreamSettings(name="peer", transport=Transport.HTTP, url=url, headers=headers or {})


@asynccontextmanager
async def linked_to(
    url: str, limits: Limits = FAST, headers: Mapping[str, str] | None = None
) -> AsyncGenerator[tuple[Link, Recorder]]:
    settings, heard, crew = settings_of(url, headers), Recorder(), Crew()
    client = open_client(settings, limits)
    assert client is not None
    link = await open_link(settings, heard, crew, limits, client=client)
    try:
        yield link, heard
    finally:
        await link.close()
        await client.close()
        await anyio.lowlevel.checkpoint()
        left = len(crew)
        await crew.close()
    assert left == 0


@asynccontextmanager
async def talking(
    answer: Callable[[Asked], Awaitable[None]], limits: Limits = FAST, headers: Mapping[str, str] | None = None
) -> AsyncGenerator[tuple[Peer, Link, Recorder]]:
    async with serving(answer) as peer, linked_to(peer.url, limits, headers) as (link, heard):
        yield peer, link, heard


def test_a_response_as_json_is_one_frame_and_then_the_request_has_ended() -> None:
    async def test() -> None:
        async with talking(Asked.result, headers={"Authorization": "Bearer secret", "Host": "evil"}) as it:
            peer, link, heard = it
            link.send(5, message(5), {"Mcp-Method": "ping"})
            assert await heard.end_of(5) is None
            assert heard.frames == [(5, result(5))]
            asked = peer.asked[0]
            assert (asked.method, asked.path, asked.body) == ("POST", "/mcp", message(5))
            assert asked.headers == {
                "accept": "application/json, text/event-stream",
                "accept-encoding": "identity",
                "authorization": "Bearer secret",
                "content-length": str(len(message(5))),
                "content-type": "application/json",
                "host": f"127.0.0.1:{peer.port}",
                "mcp-method": "ping",
                "user-agent": "troth",
            }

    run(test)


def test_requests_one_after_the_other_share_one_connection() -> None:
    async def test() -> None:
        async with talking(Asked.result) as (peer, link, heard):
            for key in range(20):
                link.send(key, message(key))
                await heard.end_of(key)
            assert await link.deliver(message(99)) is None
            assert peer.connections == 1

    run(test)


def test_requests_at_once_do_not_wait_for_each_other() -> None:
    async def test() -> None:
        both = anyio.Event()
        seen: list[int] = []

        async def answer(asked: Asked) -> None:
            seen.append(asked.json["id"])
            if len(seen) == 2:
                both.set()
            await both.wait()
            await asked.result()

        async with talking(answer) as (_, link, heard):
            link.send(1, message(1))
            link.send(2, message(2))
            assert await heard.end_of(1) is None
            assert await heard.end_of(2) is None

    run(test)


def test_events_are_handed_on_while_the_stream_is_open_however_they_are_cut() -> None:
    async def test() -> None:
        go = anyio.Event()

        async def answer(asked: Asked) -> None:
            await asked.events(b": hello\n\n", b'data: {"method"', b':"n"}\r', b"\n\r\n")
            await go.wait()
            await asked.event(b"data: " + result(asked.json["id"]) + b"\n\n")
            await asked.end()

        async with talking(answer) as (peer, link, heard):
            link.send("a", message("a"))
            await heard.count(1)
            assert heard.frames == [("a", b'{"method":"n"}')]
            assert heard.ends == []
            go.set()
            assert await heard.end_of("a") is None
            link.send("b", message("b"))
            await heard.end_of("b")
            assert peer.connections == 1

    run(test)


def test_a_stream_that_stays_open_after_its_response_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "DRAIN", 0.05)

    async def answer(asked: Asked) -> None:
        await asked.events(b"data: " + result(asked.json["id"]) + b"\n\n")
        await asked.hang()

    async def test() -> None:
        async with talking(answer) as (peer, link, heard):
            link.send(1, message(1))
            assert await heard.end_of(1) is None
            with anyio.fail_after(30):
                while not peer.asked[0].left:  # noqa: ASYNC110 - told by another connection
                    await anyio.sleep(0.01)

    run(test)


def test_a_notification_is_accepted_and_nobody_hears_of_it() -> None:
    async def answer(asked: Asked) -> None:
        await asked.reply(202)

    async def test() -> None:
        async with talking(answer) as (peer, link, heard):
            assert await link.deliver(b'{"method":"notifications/initialized"}') is None
            link.send(None, b'{"method":"notifications/x"}')
            with anyio.fail_after(30):
                while len(peer.asked) < 2:  # noqa: ASYNC110 - told by another connection
                    await anyio.sleep(0.01)
            assert heard.ends == heard.frames == []

    run(test)


def test_a_notification_that_is_refused_is_told_to_who_waits_for_it() -> None:
    async def answer(asked: Asked) -> None:
        await asked.reply(400, b"no")

    async def test() -> None:
        async with talking(answer) as (_, link, _):
            problem = await link.deliver(b"{}")
            assert problem == Problem(words="HTTP 400: no", status=400, frame=b"no")

    run(test)


def test_the_session_is_told_before_the_frame() -> None:
    order: list[str] = []

    class Ordered(Recorder):
        def receive(self, data: bytes, key: object) -> bool:
            order.append("frame")
            return super().receive(data, key)  # type: ignore[arg-type]

        def session(self, key: object, value: str) -> None:
            order.append(value)

    async def answer(asked: Asked) -> None:
        await asked.result(Mcp_Session_Id="s-1")

    async def test() -> None:
        async with talking(answer) as (_, link, heard):
            link._receiver = ordered = Ordered()  # type: ignore[attr-defined]
            link.send(1, message(1))
            await ordered.end_of(1)
            assert order == ["s-1", "frame"]
            assert heard.frames == []

    run(test)


@pytest.mark.parametrize("value", ["two words", "\x7f", "ä", "x" * 9000])
def test_a_session_id_that_cannot_be_sent_back_is_a_problem(value: str) -> None:
    async def answer(asked: Asked) -> None:
        await asked.result(Mcp_Session_Id=value)

    async def test() -> None:
        async with talking(answer) as (_, link, heard):
            link.send(1, message(1))
            problem = await heard.end_of(1)
            assert problem is not None
            assert heard.sessions == heard.frames == []

    run(test)


ERROR = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}'


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 429, 500, 502, 503])
def test_rule_18_a_refusal_is_told_with_its_status_and_the_message_in_it(status: int) -> None:
    async def answer(asked: Asked) -> None:
        await asked.reply(status, ERROR, Retry_After="7", WWW_Authenticate='Bearer realm="x"')

    async def test() -> None:
        async with talking(answer) as (_, link, heard):
            link.send(1, message(1))
            assert await heard.end_of(1) == Problem(
                words=f"HTTP {status}: {ERROR.decode()}",
                status=status,
                frame=ERROR,
                retry_after=7.0,
                challenge='Bearer realm="x"',
            )
            assert heard.frames == []

    run(test)


def test_an_error_page_is_shown_without_controls_secrets_or_length() -> None:
    async def answer(asked: Asked) -> None:
        page = b"<h1>\x1b[2J\xff " + asked.headers["authorization"].encode() + b"</h1>" + b"x" * 5000
        await asked.reply(500, page, "text/html")

    async def test() -> None:
        async with talking(answer, headers={"Authorization": "Bearer secret-token"}) as (_, link, heard):
            link.send(1, message(1))
            problem = await heard.end_of(1)
            assert problem is not None
            assert problem.words.startswith("HTTP 500: <h1>\\x1b[2J\\xff [hidden]</h1>xxx")
            assert len(problem.words) < 300
            assert problem.frame == b""

    run(test)


def test_an_error_body_without_end_is_not_read_on() -> None:
    async def answer(asked: Asked) -> None:
        await asked.send(b"HTTP/1.1 500 X\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            await asked.send(b"x" * 65536)

    async def test() -> None:
        async with talking(answer) as (_, link, heard):
            link.send(1, message(1))
            assert await heard.end_of(1) == Problem(words="HTTP 500: more than 65536 bytes", status=500)

    run(test)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Type: application/json\r\n\r\n", "without a body"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/html\r\n\r\nhi",
            "HTTP 200 with text/html, neither",
        ),
        (b"HTTP/1.1 202 OK\r\nContent-Length: 0\r\n\r\n", "HTTP 202 with no content type"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}",
            "no response to the request",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nContent-Type: application/json\r\n\r\n{}", "cut"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n", "compressed (gzip)"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: x\n\n", "ended without a response"),
        (EVENTS + b"5\r\ndata:", "cut"),
        (b"junk\r\n\r\n", "breaks the rules of HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 10_000 + b"\r\n\r\n", "breaks the rules of HTTP"),
        (b"", "closed before an answer came"),
    ],
)
def test_every_other_answer_is_a_problem_in_words(reply: bytes, words: str) -> None:
    broken = "cut" in words or "rules" in words or "before" in words

    async def answer(asked: Asked) -> None:
        await asked.send(reply)
        await asked.cut()

    async def test() -> None:
        async with talking(answer) as (peer, link, heard):
            link.send(1, message(1))
            problem = await heard.end_of(1)
            assert problem is not None
            assert words in problem.words
            assert problem.status is None
            assert problem.sent
            assert problem.begun == (b"200 OK\r\nX" not in reply and reply[:8] == b"HTTP/1.1")
            assert problem.broken == broken
            assert len(peer.of("POST")) == 1

    run(test)


@pytest.mark.parametrize("events", [False, True])
def test_an_answer_over_the_limit_is_cut(events: bool) -> None:
    async def answer(asked: Asked) -> None:
        await asked.send(EVENTS if events else EVENTS.replace(b"text/event-stream", b"application/json"))
        while True:
            await asked.event(b"data: " + b"x" * 1000)

    async def test() -> None:
        async with talking(answer, Limits(line=10_000)) as (_, link, heard):
            link.send(1, message(1))
            problem = await heard.end_of(1)
            assert problem is not None
            assert "more than 10000 bytes" in problem.words

    run(test)


def test_a_body_that_stops_in_its_middle_is_given_up() -> None:
    async def answer(asked: Asked) -> None:
        await asked.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nContent-Type: application/json\r\n\r\n{")
        await asked.hang()

    async def test() -> None:
        async with talking(answer, Limits(method=0.1)) as (_, link, heard):
            link.send(1, message(1))
            assert await heard.end_of(1) == Problem(words="the answer stopped in its middle", begun=True, broken=True)

    run(test)


def test_who_waits_for_a_notification_waits_a_named_time() -> None:
    async def test() -> None:
        async with talking(Asked.hang, Limits(method=0.1)) as (_, link, _):
            assert await link.deliver(b"{}") == Problem(words="no HTTP answer within 0.1 seconds", broken=True)

    run(test)


def test_a_server_that_is_not_there_surely_got_nothing() -> None:
    async def test(port: int) -> None:
        async with linked_to(f"http://127.0.0.1:{port}/mcp?token=secret") as (link, heard):
            link.send(1, message(1))
            problem = await heard.end_of(1)
            assert problem == Problem(
                words=f"no connection to 127.0.0.1:{port}: Connection refused", sent=False, broken=True
            )

    # A port that is taken and not listened on is nobody else's.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        run(lambda: test(port))


def test_a_header_that_would_break_http_is_refused_and_not_sent() -> None:
    async def test() -> None:
        async with talking(Asked.result) as (peer, link, heard):
            link.send(1, message(1), {"Mcp-Name": "x\r\nEvil: 1"})
            problem = await heard.end_of(1)
            assert problem is not None
            assert not problem.sent
            assert "a header holds what HTTP does not allow" in problem.words
            assert peer.asked == []

    run(test)


def test_a_big_frame_is_sent_whole() -> None:
    async def test() -> None:
        async with talking(Asked.result) as (peer, link, heard):
            big = message(1, params={"text": "x" * 3_000_000})
            link.send(1, big)
            assert await heard.end_of(1) is None
            assert peer.asked[0].body == big

    run(test)


def test_aborting_closes_the_stream_and_nothing_more_is_told() -> None:
    async def answer(asked: Asked) -> None:
        await asked.events(b"data: {}\n\n", b"data: {}\n\n")
        await asked.hang()

    async def test() -> None:
        async with talking(answer) as (peer, link, heard):
            link.send(1, message(1))
            await heard.count(1)
            link.abort(1)
            link.abort(2)
            with anyio.fail_after(30):
                while not peer.asked[0].left:  # noqa: ASYNC110 - told by another connection
                    await anyio.sleep(0.01)
            assert heard.ends == []

    run(test)


def test_aborting_within_a_frame_stops_the_frames_behind_it() -> None:
    async def answer(asked: Asked) -> None:
        await asked.events(b"data: {}\n\ndata: {}\n\ndata: {}\n\n")
        await asked.hang()

    async def test() -> None:
        async with talking(answer) as (peer, link, _):

            class Aborting(Recorder):
                def receive(self, data: bytes, key: object) -> bool:
                    link.abort(1)
                    return super().receive(data, key)  # type: ignore[arg-type]

            link._receiver = heard = Aborting()  # type: ignore[attr-defined]
            link.send(1, message(1))
            await heard.count(1)
            with anyio.fail_after(30):
                while not peer.asked[0].left:  # noqa: ASYNC110 - told by another connection
                    await anyio.sleep(0.01)
            assert len(heard.frames) == 1

    run(test)


def test_rule_22_a_redirect_at_the_same_origin_is_followed_with_method_and_body_and_kept() -> None:
    async def answer(asked: Asked) -> None:
        if asked.path == "/mcp":
            await asked.reply(307, Location="/mcp/")
        else:
            await asked.result()

    async def test() -> None:
        async with talking(answer) as (peer, link, heard):
            link.send(1, message(1))
            assert await heard.end_of(1) is None
            link.send(2, message(2))
            assert await heard.end_of(2) is None
            assert [(asked.method, asked.path) for asked in peer.asked] == [
                ("POST", "/mcp"),
                ("POST", "/mcp/"),
                ("POST", "/mcp/"),
            ]
            assert peer.asked[1].body == message(1)

    run(test)


def test_a_redirect_is_forgotten_when_where_it_leads_takes_nothing() -> None:
    places = iter(["/busy", "", "/new", "", ""])
    paths: list[str] = []

    async def answer(asked: Asked) -> None:
        paths.append(asked.path)
        if asked.path == "/busy" or (asked.path == "/new" and paths.count("/new") == 2):
            await asked.reply(503)
        elif asked.path == "/mcp" and (place := next(places)):
            await asked.reply(307, Location=place)
        else:
            await asked.result()

    async def test() -> None:
        async with talking(answer) as (_, link, heard):
            found: list[int | None] = []
            for number in range(1, 6):
                link.send(number, message(number))
                problem = await heard.end_of(number)
                found.append(None if problem is None else problem.status)
            assert paths == ["/mcp", "/busy", "/mcp", "/mcp", "/new", "/new", "/mcp"]
            assert found == [503, None, None, 503, None]

    run(test)


@pytest.mark.parametrize(
    ("status", "target"),
    [
        (307, "http://127.0.0.1:{other}/mcp?token=1"),
        (308, "https://127.0.0.1:{port}/mcp"),
        (307, "http://user@127.0.0.1:{port}/mcp/"),
        (307, "//127.0.0.1:{other}/mcp"),
        (302, "/mcp/"),
        (303, "/mcp/"),
        (307, "/mcp"),
        (307, "http://[bad"),
        (300, ""),
    ],
)
def test_rule_22_no_other_redirect_is_followed(status: int, target: str) -> None:
    async def test() -> None:
        async with serving(Asked.result) as elsewhere:

            async def answer(asked: Asked) -> None:
                location = target.format(other=elsewhere.port, port=asked.headers["host"].partition(":")[2])
                await asked.reply(status, Location=location)

            async with talking(answer, headers={"Authorization": "Bearer secret"}) as (peer, link, heard):
                link.send(1, message(1))
                problem = await heard.end_of(1)
                assert problem is not None
                assert problem.status == status
                assert problem.words.endswith(", which is not followed")
                assert "token" not in problem.words
                assert len(peer.asked) == 1
                assert elsewhere.connections == 0

    run(test)


def test_redirects_without_end_are_given_up() -> None:
    async def answer(asked: Asked) -> None:
        await asked.reply(307, Location=asked.path + "x")

    async def test() -> None:
        async with talking(answer) as (peer, link, heard):
            link.send(1, message(1))
            problem = await heard.end_of(1)
            assert problem is not None
            assert problem.status == 307
            assert len(peer.asked) == http.REDIRECTS + 1

    run(test)


def broken_stream(asked: Asked) -> Awaitable[None]:
    async def answer() -> None:
        await asked.events(b'id: e1\nretry: 100\ndata: {"method":"n"}\n\n')
        await asked.cut()

    return answer()


def test_rule_13_a_cut_stream_is_resumed_where_it_was_and_the_post_is_not_repeated() -> None:
    async def answer(asked: Asked) -> None:
        if asked.method == "POST":
            await broken_stream(asked)
        else:
            await asked.events(b"id: e2\ndata: " + result(1) + b"\n\n")
            await asked.end()

    async def test() -> None:
        async with talking(answer) as (peer, link, heard):
            link.resume = True
            link.send(1, message(1), {"Mcp-Session-Id": "s"})
            assert await heard.end_of(1) is None
            assert heard.frames == [(1, b'{"method":"n"}'), (1, result(1))]
            assert [asked.method for asked in peer.asked] == ["POST", "GET"]
            assert peer.asked[1].headers["last-event-id"] == "e1"
            assert peer.asked[1].headers["mcp-session-id"] == "s"
            assert peer.asked[1].headers["accept"] == "text/event-stream"

    run(test)


def test_rule_13_nothing_is_resumed_where_the_revision_has_no_resumption() -> None:
    async def test() -> None:
        async with talking(broken_stream) as (peer, link, heard):
            link.send(1, message(1))
            problem = await heard.end_of(1)
            assert problem is not None
            assert "cut" in problem.words
            assert len(peer.asked) == 1

    run(test)


def test_rule_13_an_answered_stream_is_not_resumed() -> None:
    async def answer(asked: Asked) -> None:
        await asked.events(b"id: e1\ndata: " + result(1) + b"\n\n")
        await asked.cut()

    async def test() -> None:
        async with talking(answer) as (peer, link, heard):
            link.resume = True
            link.send(1, message(1))
            assert await heard.end_of(1) is None
            assert len(peer.asked) == 1

    run(test)


def test_rule_13_a_server_that_lets_the_client_poll_is_asked_again_after_the_pause_that_it_names() -> None:
    pauses: list[float] = []

    async def answer(asked: Asked) -> None:
        pauses.append(anyio.current_time())
        if len(pauses) < 4:
            await asked.events(b"id: p%d\nretry: 200\ndata:\n\n" % len(pauses))
        else:
            await asked.events(b"data: " + result(1) + b"\n\n")
        await asked.end()

    async def test() -> None:
        async with talking(answer) as (peer, link, heard):
            link.resume = True
            link.send(1, message(1))
            assert await heard.end_of(1) is None
            assert [asked.method for asked in peer.asked] == ["POST", "GET", "GET", "GET"]
            assert [asked.headers.get("last-event-id") for asked in peer.asked] == [None, "p1", "p2", "p3"]
            assert all(later - earlier >= 0.19 for earlier, later in itertools.pairwise(pauses))

    run(test)


@pytest.mark.parametrize(("status", "told"), [(404, 404), (401, 401), (405, None), (400, None)])
def test_rule_13_a_refused_resumption_is_given_up(status: int, told: int | None) -> None:
    async def answer(asked: Asked) -> None:
        if asked.method == "POST":
            await broken_stream(asked)
        else:
            await asked.reply(status)

    async def test() -> None:
        async with talking(answer) as (peer, link, heard):
            link.resume = True
            link.send(1, message(1))
            words = f"the answer broke off and cannot be resumed: HTTP {status}"
            assert await heard.end_of(1) == Problem(words=words, status=told, begun=True)
            assert len(peer.asked) == 2

    run(test)


@pytest.mark.parametrize("failure", ["cut", "503"])
def test_rule_13_attempts_to_resume_are_bounded(failure: str) -> None:
    async def answer(asked: Asked) -> None:
        if asked.method == "POST":
            await broken_stream(asked)
        elif failure == "cut":
            await asked.cut()
        else:
            await asked.reply(503)

    async def test() -> None:
        async with talking(answer) as (peer, link, heard):
            link.resume = True
            link.send(1, message(1))
            assert await heard.end_of(1) is not None
            assert len(peer.of("POST")) == 1
            # The client repeats a GET once by itself where a connection breaks.
            assert len(peer.of("GET")) in (http.RESUME_FAILURES, 2 * http.RESUME_FAILURES)

    run(test)


def test_rule_13_an_event_id_that_is_no_text_is_never_sent_back() -> None:
    async def answer(asked: Asked) -> None:
        await asked.events(b"id: a\x01b\ndata: {}\n\n")
        await asked.end()

    async def test() -> None:
        async with talking(answer) as (peer, link, heard):
            link.resume = True
            link.send(1, message(1))
            assert await heard.end_of(1) == Problem(words="the event stream ended without a response", begun=True)
            assert len(peer.asked) == 1

    run(test)


def test_the_stream_outside_requests_is_kept_open_and_resumed() -> None:
    async def answer(asked: Asked) -> None:
        if asked.headers.get("last-event-id") == "g2":
            await asked.events(b'data: {"n":3}\n\n')
            await asked.hang()
        elif "last-event-id" in asked.headers:
            await asked.events(b'retry: 100\nid: g2\ndata: {"n":2}\n\n')
            await asked.cut()
        else:
            await asked.events(b'retry: 100\nid: g1\ndata: {"n":1}\n\n')
            await asked.end()

    async def test() -> None:
        async with talking(answer) as (peer, link, heard):
            link.listen({"Mcp-Session-Id": "s"})
            link.listen()
            await heard.count(3)
            assert [(key, json.loads(data)["n"]) for key, data in heard.frames] == [(None, 1), (None, 2), (None, 3)]
            assert heard.opened == 3
            assert [asked.method for asked in peer.asked] == ["GET"] * 3
            assert all(asked.headers["mcp-session-id"] == "s" for asked in peer.asked)

    run(test)


@pytest.mark.parametrize("status", [400, 404, 405])
def test_a_server_without_a_stream_outside_requests_is_asked_once(status: int) -> None:
    async def answer(asked: Asked) -> None:
        await asked.reply(status)

    async def test() -> None:
        async with talking(answer) as (peer, link, heard):
            link.listen()
            assert await heard.end_of(None) == Problem(words=f"HTTP {status}", status=status)
            assert len(peer.asked) == 1
            assert heard.opened == 0

    run(test)


def test_a_server_that_resumes_nothing_is_asked_for_a_new_stream() -> None:
    async def answer(asked: Asked) -> None:
        if "last-event-id" in asked.headers:
            await asked.reply(400)
        else:
            await asked.events(b"retry: 100\nid: 1\ndata: {}\n\n")
            await asked.end()

    async def test() -> None:
        async with talking(answer) as (peer, link, heard):
            link.listen()
            await heard.count(2)
            assert ["last-event-id" in asked.headers for asked in peer.asked[:3]] == [False, True, False]

    run(test)


def test_a_stream_outside_requests_outlives_a_server_that_is_down_for_a_while() -> None:
    answers = ["cut", "503", "429", "open"]

    async def answer(asked: Asked) -> None:
        match answers.pop(0):
            case "cut":
                await asked.cut()
            case "open":
                await asked.events(b"data: {}\n\n")
                await asked.hang()
            case status:
                await asked.reply(int(status))

    async def test() -> None:
        async with talking(answer) as (peer, link, heard):
            link.listen()
            await heard.count(1)
            assert len(peer.asked) == 4
            assert heard.ends == []

    run(test)


def test_closing_ends_the_session_and_cuts_what_is_open() -> None:
    async def answer(asked: Asked) -> None:
        if asked.method == "DELETE":
            await asked.reply(200)
        else:
            await asked.hang()

    async def test() -> None:
        async with talking(answer) as (peer, link, heard):
            link.send(1, message(1))
            link.send(None, b"{}")
            link.listen()
            with anyio.fail_after(30):
                while len(peer.asked) < 3:  # noqa: ASYNC110 - told by another connection
                    await anyio.sleep(0.01)
            await link.close({"Mcp-Session-Id": "s"})
            assert peer.asked[-1].method == "DELETE"
            assert peer.asked[-1].headers["mcp-session-id"] == "s"
            link.send(2, message(2))
            problem = await link.deliver(b"{}")
            assert problem == Problem(words="closed", sent=False, broken=True)
            assert heard.frames == heard.ends == []

    run(test)


def test_closing_does_not_wait_long_for_the_end_of_the_session() -> None:
    async def test() -> None:
        async with talking(Asked.hang, Limits(stop=0.1)) as (_, link, _):
            with anyio.fail_after(30):
                await link.close({})
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            async with linked_to(f"http://127.0.0.1:{probe.getsockname()[1]}/mcp") as (link, _):
                await link.close({})

    run(test)


@pytest.mark.parametrize("url", ["", "ftp://x/", "http://", "http://[x", "http://user:pw@x:port/?token=1"])
def test_what_is_no_address_is_an_error_without_secrets(url: str) -> None:
    with pytest.raises(LinkError) as error:
        http.address_of(url)
    assert "token" not in str(error.value)
    assert "pw" not in str(error.value)


def test_the_proxy_of_the_environment_is_used_but_never_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    assert proxy_of("http://outside.example/mcp") == "http://proxy:3128"
    assert proxy_of("http://inside.example/mcp") is None
    assert proxy_of("http://127.0.0.1:8000/mcp") is None
    assert proxy_of("http://localhost/mcp") is None


def test_a_fault_of_the_user_ends_the_request_with_a_problem(caplog: pytest.LogCaptureFixture) -> None:
    class Faulty(Recorder):
        def receive(self, data: bytes, key: object) -> bool:
            raise ValueError("fault")

    async def test() -> None:
        async with talking(Asked.result) as (_, link, _):
            link._receiver = heard = Faulty()  # type: ignore[attr-defined]
            link.send(1, message(1))
            assert await heard.end_of(1) == Problem(words="a fault of Troth; see its log")

    with caplog.at_level(logging.ERROR):
        run(test)
    assert "ValueError: fault" in caplog.text


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    context = own_certificate(tmp_path)

    async def test() -> None:
        async with (
            serving(Asked.result, context) as peer,
            linked_to(peer.url.replace("http:", "https:")) as (link, heard),
        ):
            link.send(1, message(1))
            problem = await heard.end_of(1)
            assert problem == Problem(words="the certificate is not trusted", sent=False, broken=True)
            assert peer.asked == []

    run(test)


def test_it_speaks_with_a_server_of_a_legacy_revision_until_its_session_ends() -> None:
    command = (sys.executable, "-m", "troth.testing", "server", "--transport", "http")
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}

    async def test(url: str) -> None:
        async with linked_to(url) as (link, heard):
            link.send(1, message(1, method="initialize", params=params))
            assert await heard.end_of(1) is None
            headers = {"mcp-session-id": heard.sessions[0][1], "mcp-protocol-version": "2025-11-25"}
            assert await link.deliver(b'{"jsonrpc":"2.0","method":"notifications/initialized"}', headers) is None
            link.listen(headers)
            await heard.until(lambda it: it.opened)
            link.send(2, message(2, method="tools/list"), headers)
            assert await heard.end_of(2) is None
            assert heard.values[-1]["result"]["tools"]
            await link.close(headers)
        async with linked_to(url) as (link, heard):
            link.send(3, message(3), headers)
            problem = await heard.end_of(3)
            assert problem is not None
            assert problem.status == 404

    with subprocess.Popen(command, stderr=subprocess.PIPE) as server:
        assert server.stderr is not None
        url = server.stderr.readline().decode().strip().removeprefix("ready ")
        try:
            run(lambda: test(url))
        finally:
            server.kill()


def test_a_connection_is_not_used_again_after_what_answers_something_else() -> None:
    async def late(asked: Asked) -> None:
        """Answers each request of the first connection by what belongs to the one before."""
        if asked.stream is peers[0].asked[0].stream:
            await asked.reply(200, result(asked.json["id"] - 1))
        else:
            await asked.result()

    peers: list[Peer] = []

    async def test() -> None:
        async with talking(late) as (peer, link, heard):
            peers.append(peer)
            for number in (5, 6, 7):
                link.send(number, message(number))
                problem = await heard.end_of(number)
                assert (problem is None) is (number > 5)
            assert peer.connections == 2

    run(test)
