"""Who is let in: Host, Origin, credentials, sizes, over a real server."""

from __future__ import annotations

import asyncio
import json

import pytest
from scripted_front import META, call, request, serving, until

from troth.gateway.config import new_token
from troth.gateway.crew import Crew
from troth.gateway.hosts import ANONYMOUS, Access, HttpHosts, ListenError, serve_http
from troth.gateway.limits import Limits
from troth.gateway.settings import TokenSettings

pytestmark = pytest.mark.anyio

ANN = TokenSettings(name="ann", token="sesame", profile="opencode")


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


async def raw(port: int, data: bytes, *, eof: bool = False) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    if eof:
        writer.write_eof()
    async with asyncio.timeout(30):
        answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize(
    ("value", "bound", "allowed", "expected"),
    [
        (b"127.0.0.1:8300", "127.0.0.1", (), True),
        (b"localhost", "127.0.0.1", (), True),
        (b"LOCALHOST:1", "127.0.0.1", (), True),
        (b"[::1]:8300", "127.0.0.1", (), True),
        (b"evil.example:8300", "127.0.0.1", (), False),
        (b"127.0.0.1.evil.example", "127.0.0.1", (), False),
        (b"127.0.0.1:80@evil.example", "127.0.0.1", (), False),
        (b"[::1].evil.example", "127.0.0.1", (), False),
        (b"[::1]:8300.evil.example", "127.0.0.1", (), False),
        (b"localhost:", "127.0.0.1", (), True),
        (b"gate.example", "127.0.0.1", ("gate.example",), True),
        (b"gate.example:8300", "127.0.0.1", ("gate.example:8300",), True),
        (b"gate.example:1", "127.0.0.1", ("gate.example:8300",), False),
        (b"10.0.0.5:8300", "127.0.0.1", (), False),
        (b"10.0.0.5:8300", "10.0.0.5", (), True),
        (b"10.0.0.5:8300", "0.0.0.0", (), True),
        (b"fd00::1", "::", (), True),
        (b"evil.example", "0.0.0.0", (), False),
        (b"evil.example", "127.0.0.1", ("*",), True),
        (b"", "127.0.0.1", (), False),
        (None, "127.0.0.1", (), False),
    ],
)
def test_a_host_header_names_us_or_is_refused(
    value: bytes | None, bound: str, allowed: tuple[str, ...], expected: bool
) -> None:
    access = Access(bound=bound, allowed_hosts=allowed)
    assert access.host(value) is expected
    assert access.host(value) is expected


@pytest.mark.parametrize(
    ("value", "allowed", "expected"),
    [
        (None, (), True),
        (b"http://localhost:6274", (), True),
        (b"https://127.0.0.1", (), True),
        (b"http://[::1]:5", (), True),
        (b"http://[::1", (), False),
        (b"null", (), False),
        (b"http://evil.example", (), False),
        (b"http://localhost.evil.example", (), False),
        (b"https://app.example", ("https://app.example/",), True),
        (b"http://app.example", ("https://app.example",), False),
        (b"x://y", ("*",), True),
    ],
)
def test_an_origin_is_loopback_or_configured(value: bytes | None, allowed: tuple[str, ...], expected: bool) -> None:
    assert Access(allowed_origins=allowed).origin(value) is expected


def test_judgements_that_are_remembered_are_bounded() -> None:
    access = Access()
    for number in range(1000):
        access.host(b"host-%d" % number)
    assert len(access._known_hosts) <= 64


def test_a_token_is_a_principal() -> None:
    access = Access([ANN])
    principal = access.principal(b"Bearer sesame")
    assert principal is not None
    assert (principal.name, principal.profile) == ("ann", "opencode")
    assert access.principal(b"bearer  sesame") == principal
    for wrong in (None, b"", b"Bearer", b"Bearer sesam", b"Basic sesame", b"Bearer sesame2", b"sesame"):
        assert access.principal(wrong) is None
    access.replace([])
    assert access.principal(b"Bearer sesame") is None


def test_without_credentials_everybody_is_the_anonymous_principal() -> None:
    assert Access(no_auth=True).principal(None) == ANONYMOUS
    assert Access(no_auth=True).principal(b"Bearer whatever") == ANONYMOUS
    both = Access([ANN], no_auth=True)
    assert both.principal(None) == ANONYMOUS
    assert both.principal(b"Bearer wrong") is None


def test_tokens_are_long_and_never_shown() -> None:
    assert len({new_token() for _ in range(20)}) == 20
    assert len(new_token()) >= 32
    access = Access([ANN], operator="open")
    assert b"sesame" not in repr(vars(access)).encode()
    assert access.operator(b"Bearer open")
    assert not access.operator(b"Bearer sesame")
    assert not access.operator(None)
    assert not Access().operator(b"Bearer open")


async def test_a_missing_or_wrong_token_is_challenged() -> None:
    async with serving(access=Access([ANN])) as served:
        async with served.post(call(1, META)) as response:
            assert response.status == 401
            assert response.headers["www-authenticate"] == 'Bearer realm="troth"'
        async with served.post(call(1, META), authorization="Bearer no") as response:
            assert response.status == 401
            assert "invalid_token" in response.headers["www-authenticate"]
        async with served.post(call(1, META), authorization="Bearer sesame") as response:
            assert response.status == 200
        for path in ("/sse", "/mcp"):
            async with served.client.get(served.base + path) as response:
                assert response.status == 401


async def test_rebinding_and_strange_pages_are_refused_before_all_else() -> None:
    async with serving(access=Access([ANN])) as served:
        async with served.post(call(1, META), host="evil.example", authorization="Bearer sesame") as response:
            assert response.status == 421
        async with served.post(call(1, META), origin="http://evil.example", authorization="Bearer sesame") as response:
            assert response.status == 403
            assert "access-control-allow-origin" not in response.headers
        for path in ("/health", "/status", "/sse", "/nothing"):
            async with served.client.get(served.base + path, headers={"host": "evil.example"}) as response:
                assert response.status == 421
        async with served.client.options(served.url, headers={"origin": "http://evil.example"}) as response:
            assert response.status == 403


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (b"http://localhost/health", 200),
        (b"HTTP://127.0.0.1:8300/health", 200),
        (b"http://evil.example/health", 421),
        (b"http://localhost@evil.example/health", 421),
        (b"http://evil.example@localhost/health", 421),
        (b"ftp://localhost/health", 421),
    ],
)
async def test_a_target_in_absolute_form_is_taken_only_for_a_name_of_ours(target: bytes, status: int) -> None:
    async with serving() as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
        writer.write(b"GET %s HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n" % target)
        async with asyncio.timeout(30):
            assert (await reader.read()).startswith(b"HTTP/1.1 %d " % status)
        writer.close()


async def test_pages_of_allowed_origins_may_use_the_gateway() -> None:
    origin = "http://localhost:6274"
    async with serving(access=Access([ANN])) as served:
        headers = {
            "origin": origin,
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization, mcp-session-id, mcp-param-x, b@d",
        }
        async with served.client.options(served.url, headers=headers) as response:
            assert response.status == 204
            assert response.headers["access-control-allow-origin"] == origin
            assert response.headers["access-control-allow-headers"] == "authorization, mcp-session-id, mcp-param-x"
        identity = await served.initialize(origin=origin, authorization="Bearer sesame")
        async with served.post(
            call(1), mcp_session_id=identity, origin=origin, authorization="Bearer sesame"
        ) as response:
            assert response.status == 200
            assert "mcp-session-id" in response.headers["access-control-expose-headers"]
        async with served.client.options(served.url) as response:
            assert response.status == 405


async def test_status_is_the_operators() -> None:
    async with serving(access=Access([ANN], operator="open"), status=lambda: {"upstreams": []}) as served:
        url = f"{served.base}/status"
        for headers in ({}, {"authorization": "Bearer sesame"}):
            async with served.client.get(url, headers=headers) as response:
                assert response.status == 401
        async with served.client.get(url, headers={"authorization": "Bearer open"}) as response:
            assert await response.json() == {"upstreams": []}
        async with served.client.get(f"{served.base}/health") as response:
            assert await response.json() == {"status": "ok"}
        async with served.client.get(f"{served.base}/nothing") as response:
            assert response.status == 404
        async with served.client.put(served.url) as response:
            assert response.status == 405
            assert response.headers["allow"] == "POST, GET, DELETE, OPTIONS"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "text/plain"}, 415),
        ({"content-type": ""}, 415),
        ({"content-type": "application/json; charset=utf-8"}, 200),
        ({"content-encoding": "gzip"}, 415),
        ({"accept": "text/html"}, 406),
        ({"accept": "*/*"}, 200),
        ({"accept": "application/*;q=0.5"}, 200),
        ({"accept": ""}, 200),
        ({"x-large": "x" * 9000}, 431),
    ],
)
async def test_heads_are_read_as_liberally_as_hosts_need(headers: dict[str, str], status: int) -> None:
    async with serving() as served, served.post(request("tools/list", 1, META), **headers) as response:
        assert response.status == status


async def test_a_header_that_is_read_may_stand_there_once() -> None:
    async with serving() as served:
        head = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\n"
        body = json.dumps(request("tools/list", 1, META)).encode()
        length = b"content-length: %d\r\n" % len(body)
        double = b"mcp-session-id: a\r\nmcp-session-id: b\r\n"
        answer = await raw(served.server.port, head + length + double + b"\r\n" + body)
        assert answer.startswith(b"HTTP/1.1 400")
        accepts = b"accept: application/json\r\naccept: text/event-stream\r\n"
        answer = await raw(served.server.port, head + length + accepts + b"\r\n" + body)
        assert answer.startswith(b"HTTP/1.1 200")
        many = b"".join(b"x-%d: 1\r\n" % number for number in range(200))
        answer = await raw(served.server.port, head + length + many + b"\r\n" + body)
        assert answer.startswith(b"HTTP/1.1 431")


async def test_an_endless_head_is_cut_off() -> None:
    async with serving(limits=Limits(headers=4096)) as served:
        answer = await raw(served.server.port, b"GET /mcp HTTP/1.1\r\nx: " + b"y" * 10_000)
        assert answer.startswith(b"HTTP/1.1 431")
        assert b"limit: headers" in answer


async def test_a_slow_body_is_cut_off() -> None:
    async with serving(limits=Limits(watch=0.01, request=0.5)) as served:
        head = (
            b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"
        )
        answer = await raw(served.server.port, head)
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"limit: request" in answer


async def test_a_slow_head_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("troth.gateway.hosts.serve.SWEEP", 0.01)
    async with serving(limits=Limits(request=0.02)) as served:
        for start in (b"", b"GET /mcp HTTP/1.1\r\nhost: "):
            try:
                assert await raw(served.server.port, start) == b""
            except ConnectionResetError:
                continue


async def test_connections_are_limited_by_name() -> None:
    async with serving(limits=Limits(connections=1)) as served:
        _, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
        await until(lambda: served.server.connections == 1)
        answer = await raw(served.server.port, b"")
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"limit: connections" in answer
        writer.close()


async def test_a_body_that_never_comes_leaves_nothing_behind() -> None:
    async with serving() as served:
        _, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
        writer.write(
            b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"
        )
        await until(lambda: served.server.connections == 1)
        writer.close()
        await until(lambda: served.server.connections == 0)
        await until(lambda: not served.server._state.tasks)


async def test_a_taken_port_is_said() -> None:
    async with serving() as served:
        crew = Crew()
        app = HttpHosts(served.front, Access(), Limits(), crew)
        with pytest.raises(ListenError, match=f"port {served.server.port}: another program listens there"):
            await serve_http(app, "127.0.0.1", served.server.port, Limits(), crew)
        await crew.close()


async def test_only_http_is_served() -> None:
    async with serving() as served:
        with pytest.raises(ValueError, match="websocket"):
            await served.app({"type": "websocket"}, None, None)  # pyright: ignore
