"""Starting and stopping the server; connections that stand still."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import suppress

import aiohttp
import pytest
from scripted_front import (
    META,
    MODERN,
    ScriptedFront,
    call,
    notification,
    progress_then,
    request,
    serving,
    until,
    waits,
)

from troth.gateway.crew import Crew
from troth.gateway.hosts import Access, HttpHosts, serve_http
from troth.gateway.limits import Limits
from troth.gateway.model import Sort

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


async def test_stopping_ends_streams_at_once_and_lets_requests_end() -> None:
    gate = asyncio.Event()
    scripts = {"tools/call": waits(gate), "subscriptions/listen": progress_then(1, asyncio.Event())}
    front = ScriptedFront(scripts)
    async with serving(front, limits=Limits(drain=30)) as served:
        identity = await served.initialize()
        headers = {"mcp-session-id": identity, "accept": "text/event-stream"}
        async with asyncio.TaskGroup() as group:
            stream = group.create_task(_read(served.client.get(served.url, headers=headers)))
            old = group.create_task(_read(served.client.get(f"{served.base}/sse")))
            listen = group.create_task(_read(served.post(request("subscriptions/listen", 9, META))))
            running = group.create_task(_read(served.post(call(1, META))))
            await until(lambda: served.app.counts.streams["anonymous"] == 3)
            await until(lambda: served.app.counts.running["anonymous"] == 1)
            stopping = group.create_task(served.server.stop())
            for task in (stream, old, listen):
                async with asyncio.timeout(30):
                    await task
            assert not running.done()
            with pytest.raises(aiohttp.ClientError):
                await _read(served.client.get(f"{served.base}/health"))
            gate.set()
            async with asyncio.timeout(30):
                await stopping
                assert (await running)[0] == 200
        assert front.cancelled == [9]
        assert front.closed == front.sessions
        assert served.server.connections == 0


@pytest.mark.parametrize("steps", range(4))
async def test_a_connection_that_is_on_its_way_when_the_server_stops_is_closed(steps: int) -> None:
    async with serving() as served:
        with socket.socket() as host:
            host.connect(("127.0.0.1", served.server.port))
            host.setblocking(False)
            for _ in range(steps):
                await asyncio.sleep(0)
            await served.server.stop()
            async with asyncio.timeout(30):
                with suppress(ConnectionResetError):
                    assert await asyncio.get_running_loop().sock_recv(host, 1) == b""


async def test_what_does_not_end_in_time_is_cancelled() -> None:
    front = ScriptedFront({"tools/call": waits(asyncio.Event())})
    async with serving(front, limits=Limits(drain=0.05)) as served:
        identity = await served.initialize()
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(_read(served.post(call(number, meta), **headers)))
                for number, meta, headers in ((1, META, {}), (2, None, {"mcp_session_id": identity}))
            ]
            await until(lambda: served.app.counts.running["anonymous"] == 2)
            async with asyncio.timeout(30):
                await served.server.stop()
        for number, task in enumerate(asked, 1):
            status, body = task.result()
            assert status == 503
            told = json.loads(body)
            assert told["id"] == number
            assert "the gateway stops" in told["error"]["message"]
        assert sorted(front.cancelled) == [1, 2]
        assert not served.server._state.tasks


async def test_a_batch_that_does_not_end_in_time_is_told_so_of_each_request_without_an_answer() -> None:
    front = ScriptedFront({"tools/call": waits(asyncio.Event())})
    async with serving(front, limits=Limits(drain=0.05)) as served:
        identity = await served.initialize("2025-03-26")
        batch = [call(1), request("ping", "1"), {"jsonrpc": "2.0", "method": "notifications/x"}, call("b")]
        asked = asyncio.get_running_loop().create_task(_read(served.post(batch, mcp_session_id=identity)))
        await until(lambda: front.finished == ["1"] and served.app.counts.running["anonymous"] == 2)
        await served.server.stop()
        async with asyncio.timeout(30):
            status, body = await asked
    assert status == 503
    told = {answer["id"]: answer for answer in json.loads(body)}
    assert told["1"]["result"] == {}
    assert [number for number, answer in told.items() if "the gateway stops" in str(answer.get("error"))] == [1, "b"]
    assert len(told) == 3


async def test_a_host_that_takes_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("troth.gateway.hosts.serve.SWEEP", 0.02)
    async with serving(limits=Limits(stalled=0.05)) as served:
        identity = await served.initialize()
        reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port, limit=1024)
        head = b"GET /mcp HTTP/1.1\r\nhost: localhost\r\nmcp-session-id: %s\r\n\r\n" % identity.encode()
        writer.write(head)
        await reader.readuntil(b"\r\n\r\n")
        outbox = served.front.sessions[0].outbox
        for _ in range(70):
            outbox.send(notification("notifications/other", text="x" * 100_000), Sort.OTHER)
            await asyncio.sleep(0.001)
        await until(lambda: not +served.app.counts.streams)
        writer.close()


async def test_slow_heads_of_one_address_make_room_for_its_next_ones() -> None:
    async with serving(limits=Limits(heads=3, connections=6)) as served:
        slow: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        for number in range(12):
            slow.append(await asyncio.open_connection("127.0.0.1", served.server.port))
            # Some say nothing at all, some begin the second request on a connection and stop.
            done = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n" if number % 3 == 2 else b""
            slow[-1][1].write(done + b"GET /mcp HTTP/1.1\r\nhost: l" * (number % 3 > 0))
            async with asyncio.timeout(30):
                if done:
                    await slow[-1][0].readuntil(b'"ok"}')
                async with served.client.get(f"{served.base}/health") as response:
                    assert response.status == 200
            await until(lambda: sum(map(len, served.server._state.heads.values())) <= 3)
        async with asyncio.timeout(30):
            for reader, _ in slow[:8]:
                with suppress(ConnectionResetError):
                    assert await reader.read() == b""
        for _, writer in slow:
            writer.close()
        await served.client.close()
        await until(lambda: not served.server._state.heads)


async def test_the_head_of_a_request_is_waited_for_within_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("troth.gateway.hosts.serve.SWEEP", 0.02)
    async with serving(limits=Limits(request=0.05)) as served:
        for begun in (b"", b"GET /mcp HTTP/1.1\r\nho"):
            reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
            writer.write(begun)
            async with asyncio.timeout(30):
                with suppress(ConnectionResetError):
                    assert await reader.read() == b""
            writer.close()
        await until(lambda: not served.server._state.heads)


async def test_an_idle_connection_is_closed_and_a_busy_one_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("troth.gateway.hosts.serve.SWEEP", 0.02)
    gate = asyncio.Event()
    async with serving(ScriptedFront({"tools/call": waits(gate)}), limits=Limits(keep_alive=0.05)) as served:
        idle_reader, idle = await asyncio.open_connection("127.0.0.1", served.server.port)
        idle.write(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        busy_reader, busy = await asyncio.open_connection("127.0.0.1", served.server.port)
        busy.write(_post(call(1, META)))
        async with asyncio.timeout(30):
            assert (await idle_reader.read()).endswith(b'{"status":"ok"}')
            gate.set()
            assert (await busy_reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK\r\n")
        idle.close()
        busy.close()


async def test_requests_sent_ahead_are_answered_in_their_order() -> None:
    gate = asyncio.Event()
    async with serving(ScriptedFront({"tools/call": waits(gate)})) as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
        writer.write(_post(call(1, META)) + _post(call(2, META)) + _post(call(3, META)))
        await until(lambda: served.app.counts.running["anonymous"] == 1)
        gate.set()
        async with asyncio.timeout(30):
            for number in (1, 2, 3):
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length: ")[2].partition(b"\r")[0])
                assert b'"id": %d,' % number in await reader.readexactly(length)
        writer.close()


async def test_an_answer_in_one_piece_has_the_headers_of_any_other_and_closes_where_it_was_asked_to() -> None:
    async with serving(ScriptedFront()) as served:
        answers: list[tuple[bytes, bytes]] = []
        for extra in (b"connection: close\r\n", b"connection: close\r\norigin: http://localhost\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
            writer.write(_post(call(1, META), extra))
            async with asyncio.timeout(30):
                head, _, body = (await reader.read()).partition(b"\r\n\r\n")
            answers.append((head, body))
            writer.close()
        (quick, quick_body), (slow, slow_body) = answers
        ours = {line for line in slow.split(b"\r\n") if not line.startswith((b"access-control", b"vary"))}
        assert set(quick.split(b"\r\n")) == ours
        assert quick_body == slow_body


async def test_responses_carry_a_date_and_nothing_about_the_server() -> None:
    async with serving() as served, served.client.get(f"{served.base}/health") as response:
        assert "server" not in response.headers
        assert response.headers["date"].endswith("GMT")


async def test_a_free_port_is_found() -> None:
    crew = Crew()
    servers = []
    for _ in range(2):
        app = HttpHosts(ScriptedFront(), Access(), Limits(), crew)
        servers.append(await serve_http(app, "127.0.0.1", 0, Limits(), crew))
    assert servers[0].port != servers[1].port
    assert servers[0].host == "127.0.0.1"
    for server in servers:
        await server.stop()
    await crew.close()


async def _read(awaited) -> tuple[int, bytes]:
    async with awaited as response:
        return response.status, await response.read()


def _post(message: dict[str, object], extra: bytes = b"") -> bytes:
    """One modern request as bytes."""
    body = json.dumps(message).encode()
    head = (
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nmcp-protocol-version: %s\r\n"
        b"mcp-method: tools/call\r\nmcp-name: echo\r\ncontent-length: %d\r\n%s\r\n"
    )
    return head % (MODERN.encode(), len(body), extra) + body
