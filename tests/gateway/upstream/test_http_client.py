"""The HTTP client of links: what it writes itself, which connections it keeps, and what it says of failures."""

from __future__ import annotations

import asyncio
import base64
from contextlib import suppress
from typing import TYPE_CHECKING

import aiohttp
import anyio
import pytest
from link_peer import Asked, Peer, serving
from link_recorder import run
from yarl import URL

from troth.gateway.limits import Limits
from troth.gateway.upstream.client import AiohttpClient, FaultError, _head  # pyright: ignore[reportPrivateUsage]

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.gateway.upstream.client import Response

LIMITS = Limits()
PATIENCE = 30.0


def basic(pair: str) -> str:
    return "Basic " + base64.b64encode(pair.encode()).decode()


async def ok(asked: Asked) -> None:
    await asked.reply(200, b"{}")


async def body_of(response: Response) -> bytes:
    parts: list[bytes] = []
    try:
        while chunk := await response.chunk():
            parts.append(chunk)
    finally:
        response.close()
    return b"".join(parts)


async def fault_of(
    client: AiohttpClient, method: str, url: str, headers: Mapping[str, str] | None = None
) -> FaultError:
    with pytest.raises(FaultError) as caught, anyio.fail_after(PATIENCE):
        await client.request(method, url, headers or {}, b"{}")
    return caught.value


def test_who_stands_in_an_address_is_named_by_a_header_and_not_in_the_path() -> None:
    async def test() -> None:
        async with serving(ok) as peer:
            url = peer.url.replace("http://", "http://me:pass%20word@") + "?a=1"
            client = AiohttpClient(url, LIMITS)
            await body_of(await client.request("POST", url, {"accept": "x"}, b"{}"))
            await body_of(await client.request("DELETE", url, {"AUTHORIZATION": "Bearer mine"}))
            await client.close()
        post, delete = peer.asked
        assert (post.method, post.path, post.body) == ("POST", "/mcp?a=1", b"{}")
        host = f"127.0.0.1:{peer.port}"
        assert post.headers == {
            "host": host,
            "authorization": basic("me:pass word"),
            "accept": "x",
            "content-length": "2",
        }
        assert delete.headers == {"host": host, "authorization": "Bearer mine", "content-length": "0"}

    run(test)


def test_a_proxy_is_sent_the_whole_address_and_its_own_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with serving(ok) as proxy:
            monkeypatch.setenv("http_proxy", f"http://me:secret@127.0.0.1:{proxy.port}")
            url = "http://you:other@outside.example/mcp"
            client = AiohttpClient(url, LIMITS)
            for _ in range(2):
                assert await body_of(await client.request("POST", url, {}, b"{}")) == b"{}"
            await client.close()
        assert proxy.connections == 1
        for asked in proxy.asked:
            assert asked.path == "http://outside.example/mcp"
            assert asked.headers == {
                "host": "outside.example",
                "authorization": basic("you:other"),
                "proxy-authorization": basic("me:secret"),
                "content-length": "2",
            }

    run(test)


def test_a_proxy_is_asked_for_a_tunnel_to_what_speaks_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with serving(lambda asked: asked.reply(403)) as proxy:
            monkeypatch.setenv("https_proxy", f"http://me:secret@127.0.0.1:{proxy.port}")
            client = AiohttpClient("https://outside.example/mcp", LIMITS)
            fault = await fault_of(client, "POST", "https://outside.example/mcp", {"authorization": "Bearer inside"})
            await client.close()
        assert fault.words == "the proxy refused"
        (asked,) = proxy.asked
        assert (asked.method, asked.path) == ("CONNECT", "outside.example:443")
        assert asked.headers["proxy-authorization"] == basic("me:secret")
        assert "authorization" not in asked.headers

    run(test)


def test_what_comes_before_an_answer_is_passed_over() -> None:
    async def hints(asked: Asked) -> None:
        await asked.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
        await asked.reply(200, b'"answer"')

    async def test() -> None:
        async with serving(hints) as peer:
            client = AiohttpClient(peer.url, LIMITS)
            for _ in range(2):
                response = await client.request("POST", peer.url, {}, b"{}")
                assert (response.status, response.header("CONTENT-type")) == (200, "application/json")
                assert await body_of(response) == b'"answer"'
            await client.close()
        assert peer.connections == 1

    run(test)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_only_what_may_be_repeated_is_sent_again_when_a_kept_connection_turns_out_closed(method: str) -> None:
    methods: list[str] = []

    async def once(asked: Asked) -> None:
        methods.append(asked.method)
        await (asked.cut() if len(methods) == 2 else ok(asked))

    async def test() -> None:
        async with serving(once) as peer:
            client = AiohttpClient(peer.url, LIMITS)
            await body_of(await client.request("POST", peer.url, {}, b"{}"))
            if method == "GET":
                await body_of(await client.request("GET", peer.url, {}))
                assert methods == ["POST", "GET", "GET"]
            else:
                fault = await fault_of(client, "POST", peer.url)
                assert (fault.words, fault.sent) == ("the connection was closed before an answer came", True)
                assert methods == ["POST", "POST"]
            await client.close()

    run(test)


def test_a_connection_whose_server_answers_before_it_took_the_whole_request_is_cut_there() -> None:
    size, left = 16_000_000, anyio.Event()
    took, counted = anyio.create_memory_object_stream[int](2)

    async def early(stream: anyio.abc.SocketStream) -> None:
        bytes_ = len(await stream.receive(1))
        await stream.send(b"HTTP/1.1 413 X\r\nContent-Length: 0\r\n\r\n")
        await left.wait()
        async with stream:
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while True:
                    bytes_ += len(await stream.receive())
        await took.send(bytes_)

    async def test() -> None:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        url = f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}/mcp"
        client = AiohttpClient(url, LIMITS)
        async with listener, anyio.create_task_group() as tasks, anyio.create_task_group() as answering:
            tasks.start_soon(listener.serve, early, answering)
            for _ in range(2):
                response = await client.request("POST", url, {}, b" " * size)
                assert response.status == 413
                response.close()
            left.set()
            assert max([await counted.receive() for _ in range(2)]) < size
            tasks.cancel_scope.cancel()
        took.close()
        counted.close()
        await client.close()

    run(test)


@pytest.mark.parametrize("value", ["a\r\nHost: evil", "a\nb", "a\rb", "a\0b", "\ud800"])
def test_nothing_of_a_request_whose_head_would_break_is_sent(value: str) -> None:
    async def test() -> None:
        async with serving(ok) as peer:
            client = AiohttpClient(peer.url, LIMITS)
            for headers in ({"x-own": value}, {value: "x-own"}):
                assert (await fault_of(client, "POST", peer.url, headers)).sent is False
            await client.close()
        assert peer.asked == []

    run(test)


def test_a_client_that_is_closed_sends_nothing() -> None:
    async def test() -> None:
        async with serving(ok) as peer:
            client = AiohttpClient(peer.url, LIMITS)
            await client.close()
            fault = await fault_of(client, "POST", peer.url)
            assert (fault.words, fault.sent, peer.connections) == ("the client is closed", False, 0)

    run(test)


def test_inside_a_tunnel_the_path_is_asked_for_without_the_address() -> None:
    async def test() -> None:
        loop = asyncio.get_running_loop()
        outside, proxy = URL("https://me:pw@outside.example/mcp?a=1"), URL("http://proxy:3128")
        route = aiohttp.ClientRequest("GET", outside, loop=loop, proxy=proxy)
        assert _head(route, {}, None).startswith(b"GET /mcp?a=1 HTTP/1.1\r\nHost: outside.example\r\n")

    run(test)


@pytest.mark.parametrize(
    "surplus", [b"HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\n{"]
)
def test_an_answer_that_nobody_asked_for_is_not_taken_for_the_next_one(surplus: bytes) -> None:
    async def twice(asked: Asked) -> None:
        await ok(asked)
        if len(peers[0].asked) == 1:
            await left.wait()
            await asked.send(surplus)

    peers: list[Peer] = []
    left = anyio.Event()

    async def test() -> None:
        async with serving(twice) as peer:
            peers.append(peer)
            client = AiohttpClient(peer.url, LIMITS)
            first = await client.request("POST", peer.url, {}, b"{}")
            protocol = first._connection.protocol  # pyright: ignore[reportAttributeAccessIssue]
            await body_of(first)
            left.set()
            with anyio.fail_after(PATIENCE):
                while not protocol.should_close:  # noqa: ASYNC110 - nothing is told of it
                    await anyio.sleep(0.005)
            for _ in range(3):
                response = await client.request("POST", peer.url, {}, b"{}")
                assert (response.status, await body_of(response)) == (200, b"{}")
            await client.close()
        assert (len(peer.asked), peer.connections) == (4, 2)

    run(test)


@pytest.mark.parametrize("broken", [b"zz\r\n", b"-5\r\n", b"3\r\nabcdef\r\n"])
def test_a_body_whose_framing_breaks_ends_there(broken: bytes) -> None:
    async def breaks(asked: Asked) -> None:
        await asked.events(b"data: 1\n\n")
        await heard.wait()
        await asked.send(broken)
        await asked.hang()

    heard = anyio.Event()

    async def test() -> None:
        async with serving(breaks) as peer:
            client = AiohttpClient(peer.url, LIMITS)
            response = await client.request("POST", peer.url, {}, b"{}")
            assert await response.chunk() == b"data: 1\n\n"
            heard.set()
            with pytest.raises(FaultError, match="framing is broken"):
                await body_of(response)
            await client.close()

    run(test)


def test_a_status_that_is_none_is_an_answer() -> None:
    async def test() -> None:
        async with serving(lambda asked: asked.send(b"HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n")) as peer:
            client = AiohttpClient(peer.url, LIMITS)
            with anyio.fail_after(PATIENCE):
                response = await client.request("POST", peer.url, {}, b"{}")
            assert response.status == 99
            response.close()
            await client.close()

    run(test)


@pytest.mark.parametrize(
    ("proxy", "words"),
    [
        ("127.0.0.1:1", "no connection to 127.0.0.1:1: "),
        ("http://[bad", "HTTP_PROXY or HTTPS_PROXY of the environment names no http:// or https:// address"),
        ("socks5://127.0.0.1:1", "HTTP_PROXY or HTTPS_PROXY of the environment names no http:// or https:// address"),
    ],
)
def test_a_proxy_without_a_scheme_is_one_and_what_is_no_address_is_told(
    monkeypatch: pytest.MonkeyPatch, proxy: str, words: str
) -> None:
    async def test() -> None:
        monkeypatch.setenv("http_proxy", proxy)
        client = AiohttpClient("http://outside.example/mcp", LIMITS)
        fault = await fault_of(client, "POST", "http://outside.example/mcp")
        assert fault.words.startswith(words)
        assert fault.sent is False
        await client.close()

    run(test)
