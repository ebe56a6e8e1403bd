"""POST of both eras over a real server: eras, statuses, sessions, late commit."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest
from scripted_front import (
    LEGACY,
    META,
    MODERN,
    VERSION,
    ScriptedFront,
    call,
    events,
    initialize,
    progress_then,
    request,
    result,
    serving,
    until,
    waits,
)

from troth.gateway.limits import Limits

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


async def test_a_modern_call_is_answered_as_json() -> None:
    async with serving() as served, served.post(call(7, META)) as response:
        assert response.status == 200
        assert response.content_type == "application/json"
        answer = await response.json()
    assert answer["id"] == 7
    assert answer["result"]["content"][0]["text"] == "hi"


@pytest.mark.behaviour("GEN-S7")
async def test_a_modern_request_never_meets_a_session_id() -> None:
    async with serving() as served:
        identity = await served.initialize()
        for headers in ({}, {"mcp_session_id": "nobody"}, {"mcp_session_id": identity}):
            async with served.post(request("server/discover", 1, META), **headers) as response:
                assert response.status == 200
                assert "mcp-session-id" not in response.headers


async def test_a_legacy_session_calls_with_its_id() -> None:
    async with serving() as served:
        identity = await served.initialize()
        async with served.post(call(3), mcp_session_id=identity, mcp_protocol_version=LEGACY) as response:
            assert response.status == 200
            assert (await response.json())["id"] == 3


async def test_progress_before_the_answer_opens_a_stream_that_the_answer_ends() -> None:
    front = ScriptedFront({"tools/call": progress_then(2)})
    async with serving(front) as served, served.post(call(1, META)) as response:
        assert response.content_type == "text/event-stream"
        got = [json.loads(data) async for _, _, data in events(response)]
    assert [message.get("method", "answer") for message in got] == ["notifications/progress"] * 2 + ["answer"]


@pytest.mark.behaviour("GEN-S1")
async def test_rule_18_the_era_is_each_requests_own() -> None:
    async with serving() as served:
        identity = await served.initialize()
        # Within a session the same connection carries both.
        async with served.post(call(1, META), mcp_session_id=identity) as response:
            assert (await response.json())["result"]["resultType"] == "complete"
        async with served.post(call(2), mcp_session_id=identity) as response:
            assert "resultType" not in (await response.json())["result"]
        # A legacy revision in `_meta` is a remark within a session.
        async with served.post(call(3, {VERSION: LEGACY}), mcp_session_id=identity) as response:
            assert "resultType" not in (await response.json())["result"]
        # Without `_meta` the header makes it modern, and malformed.
        async with served.post(call(4), mcp_protocol_version=MODERN) as response:
            assert response.status == 400
            assert (await response.json())["error"]["code"] == -32602
        # Neither `_meta` nor a session: legacy.
        async with served.post(call(5)) as response:
            assert response.status == 400
            error = (await response.json())["error"]
            assert error["code"] == -32600
            assert "initialize" in error["message"]
        async with served.post(request("ping", 6)) as response:
            assert await response.json() == {"jsonrpc": "2.0", "id": 6, "result": {}}
        async with served.post(initialize("2024-11-05")) as response:
            assert (await response.json())["result"]["protocolVersion"] == "2024-11-05"


async def test_an_unknown_revision_in_meta_is_refused_as_modern() -> None:
    async with serving() as served, served.post(call(1, {**META, VERSION: "2031-01-01"})) as response:
        assert response.status == 400
        assert (await response.json())["error"]["code"] == -32022


async def test_headers_that_disagree_with_a_modern_body_are_refused() -> None:
    async with serving() as served, served.post(call(1, META), mcp_method="tools/list") as response:
        assert response.status == 400
        assert (await response.json())["error"]["code"] == -32020


@pytest.mark.parametrize(("meta", "status"), [(META, 404), (None, 200)])
async def test_rule_14_a_status_follows_from_code_and_era(meta: dict[str, object] | None, status: int) -> None:
    async with serving() as served:
        headers = {} if meta else {"mcp_session_id": await served.initialize()}
        async with served.post(request("no/such", 1, meta), **headers) as response:
            assert response.status == status
            assert (await response.json())["error"]["code"] == -32601


async def test_rule_14_a_dead_session_alone_is_404() -> None:
    async with serving() as served:
        identity = await served.initialize()
        async with served.client.delete(served.url, headers={"mcp-session-id": identity}) as response:
            assert response.status == 204
        assert len(served.front.closed) == 1
        async with served.post(call(1), mcp_session_id=identity) as response:
            assert response.status == 404
            assert "initialize" in (await response.json())["error"]["message"]
        async with served.client.delete(served.url, headers={"mcp-session-id": identity}) as response:
            assert response.status == 404
        async with served.client.get(served.url, headers={"mcp-session-id": identity}) as response:
            assert response.status == 404


async def test_rule_14_silence_opens_a_stream_with_comments() -> None:
    gate = asyncio.Event()
    front = ScriptedFront({"tools/call": waits(gate)})
    limits = Limits(watch=0.01, commit=0.02, heartbeat=0.02)
    async with serving(front, limits=limits) as served, served.post(call(1, META)) as response:
        assert response.content_type == "text/event-stream"
        got = []
        async for _, name, data in events(response):
            got.append(name)
            if got == [":", ":"]:
                gate.set()
            if name != ":":
                assert json.loads(data)["id"] == 1
    assert got[:2] == [":", ":"]
    assert got[-1] == "message"


async def test_rule_14_a_host_that_takes_only_json_gets_json() -> None:
    gate = asyncio.Event()
    front = ScriptedFront({"tools/call": progress_then(3, gate)})
    limits = Limits(watch=0.001, commit=0.001)
    async with serving(front, limits=limits) as served:
        asyncio.get_running_loop().call_later(0.05, gate.set)
        async with served.post(call(1, META), accept="application/json") as response:
            assert response.content_type == "application/json"
            assert (await response.json())["id"] == 1
        async with served.post(request("subscriptions/listen", 2, META), accept="application/json") as response:
            assert response.status == 406


async def test_a_host_that_takes_only_events_gets_events() -> None:
    async with serving() as served:
        async with served.post(initialize(), accept="text/event-stream") as response:
            assert response.content_type == "text/event-stream"
            assert response.headers["mcp-session-id"]
            assert [json.loads(data)["id"] async for _, _, data in events(response)] == [0]
        async with served.post(call(1, META), accept="text/event-stream") as response:
            assert [json.loads(data)["id"] async for _, _, data in events(response)] == [1]


@pytest.mark.behaviour("GEN-S10")
async def test_a_modern_disconnect_cancels_and_a_legacy_one_does_not() -> None:
    gate = asyncio.Event()
    front = ScriptedFront({"tools/call": waits(gate)})
    async with serving(front, limits=Limits(watch=0.01)) as served:
        identity = await served.initialize()
        for number, meta, headers in ((1, META, {}), (2, None, {"mcp_session_id": identity})):
            asked = asyncio.get_running_loop().create_task(_status(served.post(call(number, meta), **headers)))
            await until(lambda: served.app.counts.running["anonymous"] == 1)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            await until(lambda: front.cancelled == [1])
        assert served.app.counts.running["anonymous"] == 1
        gate.set()
        await until(lambda: front.finished == [2])
        assert front.cancelled == [1]


async def test_a_modern_disconnect_in_a_stream_cancels() -> None:
    gate = asyncio.Event()
    front = ScriptedFront({"tools/call": progress_then(1, gate)})
    async with serving(front) as served:
        async with served.post(call(1, META)) as response:
            await anext(events(response))
            response.close()
        await until(lambda: front.cancelled == [1])
        await until(lambda: not +served.app.counts.running)


@pytest.mark.behaviour("GEN-B5")
async def test_a_notification_is_never_answered() -> None:
    async with serving() as served:
        identity = await served.initialize()
        for message, headers in (
            ({"jsonrpc": "2.0", "method": "no/such"}, {"mcp_session_id": identity}),
            ({"jsonrpc": "2.0", "method": "no/such"}, {"mcp_protocol_version": MODERN}),
            ({"jsonrpc": "2.0", "method": "no/such", "params": {"_meta": META}}, {}),
            ({"jsonrpc": "2.0", "id": 1, "result": {}}, {"mcp_session_id": identity}),
            ({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": ""}}, {"mcp_session_id": identity}),
        ):
            async with served.post(message, **headers) as response:
                assert response.status == 202
                assert await response.read() == b""
        assert [frame.method for frame in served.front.notified] == [
            "notifications/initialized", "no/such", "no/such", "", "",
        ]  # fmt: skip


async def test_an_answer_without_a_session_has_nowhere_to_go() -> None:
    async with serving() as served:
        for headers in ({}, {"mcp_protocol_version": MODERN}):
            async with served.post({"jsonrpc": "2.0", "id": 1, "result": {}}, **headers) as response:
                assert response.status == 400
                assert (await response.json())["id"] is None


async def test_a_cancelled_legacy_request_ends_without_an_answer() -> None:
    async def script(frame, host, stream):
        from troth.gateway.model import Answer

        return Answer(b"")

    async with serving(ScriptedFront({"tools/call": script})) as served:
        identity = await served.initialize()
        async with served.post(call(1), mcp_session_id=identity) as response:
            assert response.status == 202


@pytest.mark.parametrize(
    ("revision", "header", "status"),
    [
        ("2025-11-25", "2025-11-25", 200),
        ("2025-11-25", None, 200),
        ("2025-11-25", "2025-06-18", 400),
        ("2025-11-25", MODERN, 400),
        ("2025-06-18", "1999-01-01", 400),
        ("2025-03-26", "2025-06-18", 200),
        ("2024-11-05", "1999-01-01", 200),
    ],
)
async def test_the_revision_header_of_a_session_must_agree(revision: str, header: str | None, status: int) -> None:
    async with serving() as served:
        identity = await served.initialize(revision)
        headers = {"mcp_protocol_version": header} if header else {}
        async with served.post(call(1), mcp_session_id=identity, **headers) as response:
            assert response.status == status


@pytest.mark.parametrize(
    ("body", "code", "identity"),
    [
        (b"{", -32700, None),
        (b"", -32700, None),
        (b"\xff{}", -32700, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
        (b'{"jsonrpc":"2.0","id":1}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602, 1),
        (b'{"jsonrpc":"2.0","method":"ping","params":[]}', -32602, None),
    ],
)
async def test_what_is_no_message_is_refused(body: bytes, code: int, identity: int | None) -> None:
    async with serving() as served, served.post(body) as response:
        assert response.status == 400
        answer = await response.json()
    assert answer["error"]["code"] == code
    assert answer["id"] == identity


async def test_a_malformed_request_of_a_session_gets_its_error_with_200() -> None:
    async with serving() as served:
        identity = await served.initialize()
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}'
        async with served.post(body, mcp_session_id=identity) as response:
            assert response.status == 200
            assert (await response.json())["error"]["code"] == -32602


# Batches


async def test_rule_25_a_batch_is_answered_in_one_response() -> None:
    async with serving() as served:
        identity = await served.initialize("2025-03-26")
        batch = [call(1), {"jsonrpc": "2.0", "method": "notifications/x"}, request("ping", "1"), {"id": 9}]
        async with served.post(batch, mcp_session_id=identity) as response:
            assert response.content_type == "application/json"
            got = await response.json()
        assert {(type(item["id"]), item["id"]): "result" in item for item in got} == {
            (int, 1): True, (str, "1"): True, (int, 9): False,
        }  # fmt: skip
        async with served.post([{"jsonrpc": "2.0", "method": "x"}], mcp_session_id=identity) as response:
            assert response.status == 202
        async with served.post(batch[:1], mcp_session_id=identity, accept="text/event-stream") as response:
            assert [json.loads(data)["id"] async for _, _, data in events(response)] == [1]


async def test_rule_25_a_batch_with_progress_streams_each_answer() -> None:
    front = ScriptedFront({"tools/call": progress_then(1)})
    async with serving(front) as served:
        identity = await served.initialize("2025-03-26")
        async with served.post([call(1), call(2)], mcp_session_id=identity) as response:
            assert response.content_type == "text/event-stream"
            got = [json.loads(data).get("id") async for _, _, data in events(response)]
    assert sorted(filter(None, got)) == [1, 2]
    assert got.count(None) == 2


async def test_rule_25_items_count_singly_against_the_limit() -> None:
    async with serving(limits=Limits(running=2)) as served:
        identity = await served.initialize("2025-03-26")
        async with served.post([call(1), call(2), call(3)], mcp_session_id=identity) as response:
            got = await response.json()
        assert sum("result" in item for item in got) == 2
        assert [item["error"]["data"] for item in got if "error" in item] == [{"limit": "running"}]
        await until(lambda: not +served.app.counts.running)


@pytest.mark.parametrize(
    ("revision", "batch"),
    [
        ("2025-06-18", [call(1)]),
        ("2024-11-05", [call(1)]),
        ("2025-03-26", [call(1), call(1)]),
        ("2025-03-26", [initialize()]),
        ("2025-03-26", []),
    ],
)
async def test_rule_25_what_is_no_batch_is_refused(revision: str, batch: list[object]) -> None:
    async with serving() as served:
        identity = await served.initialize(revision)
        async with served.post(batch, mcp_session_id=identity) as response:
            assert response.status == 400
            assert (await response.json())["error"]["code"] == -32600


# Limits


async def test_too_many_requests_in_flight_are_refused_by_name() -> None:
    gate = asyncio.Event()
    front = ScriptedFront({"tools/call": waits(gate)})
    async with serving(front, limits=Limits(running=1)) as served:
        identity = await served.initialize()
        async with asyncio.TaskGroup() as group:
            first = group.create_task(_status(served.post(call(1, META))))
            await until(lambda: served.app.counts.running["anonymous"] == 1)
            for meta, headers in ((META, {}), (None, {"mcp_session_id": identity})):
                async with served.post(call(2, meta), **headers) as response:
                    assert response.status == 429
                    answer = await response.json()
                    assert answer["id"] == 2
                    assert answer["error"]["data"] == {"limit": "running"}
            gate.set()
        assert first.result() == 200


async def test_sessions_are_limited_by_name() -> None:
    async with serving(limits=Limits(principal_sessions=1)) as served:
        await served.initialize()
        async with served.post(initialize()) as response:
            assert response.status == 429
            assert (await response.json())["error"]["data"] == {"limit": "principal_sessions"}
    async with serving(limits=Limits(sessions=1)) as served:
        await served.initialize()
        async with served.post(initialize()) as response:
            assert response.status == 503
            assert (await response.json())["error"]["data"] == {"limit": "sessions"}


async def test_silent_sessions_make_room_and_idle_ones_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("troth.gateway.hosts.sessions.EVICTABLE", -1.0)
    async with serving(limits=Limits(principal_sessions=1, session_idle=-1.0)) as served:
        old = await served.initialize()
        new = await served.initialize()
        async with served.post(call(1), mcp_session_id=old) as response:
            assert response.status == 404
        async with served.post(call(1), mcp_session_id=new) as response:
            assert response.status == 200
        served.app.sessions.sweep()
        async with served.post(call(1), mcp_session_id=new) as response:
            assert response.status == 404
        assert len(served.front.closed) == 2


async def test_a_fault_of_ours_costs_one_request_and_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def script(frame, host, stream):
        raise RuntimeError("secret")

    async with serving(ScriptedFront({"tools/call": script})) as served:
        async with served.post(call(1, META)) as response:
            assert response.status == 500
            assert "secret" not in await response.text()
        async with served.post(request("tools/list", 2, META)) as response:
            assert response.status == 200
        assert not +served.app.counts.running


async def test_a_large_body_arrives_whole_and_a_larger_one_is_refused() -> None:
    seen = []

    async def script(frame, host, stream):
        seen.append(len(frame.body))
        return result(frame, {})

    async with serving(ScriptedFront({"tools/call": script})) as served:
        big = request("tools/call", 1, META, name="x", arguments={"text": "x" * 3_000_000})
        async with served.post(big) as response:
            assert response.status == 200
        assert seen[0] > 3_000_000
    async with serving(limits=Limits(body=1000)) as served:
        async with served.post(big) as response:
            assert response.status == 413

        async def chunks():
            for _ in range(100):
                yield b" " * 100

        async with served.client.post(
            served.url, data=chunks(), headers={"content-type": "application/json"}
        ) as response:
            assert response.status == 413
            assert "limit: body" in (await response.json())["error"]["message"]


_HEAD = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n%s\r\n\r\n"


@pytest.mark.parametrize("long", [True, False], ids=["content-length", "chunked"])
async def test_a_host_that_sends_all_before_it_reads_gets_to_read_that_its_body_is_too_large(long: bool) -> None:
    size = 8 * 1024 * 1024

    def send(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as host:
            length = b"content-length: %d" % size if long else b"transfer-encoding: chunked"
            host.sendall(
                b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n%s\r\n\r\n" % length
            )
            host.sendall(b" " * size if long else b"%x\r\n%s\r\n0\r\n\r\n" % (size, b" " * size))
            return host.recv(65536)

    async with serving(limits=Limits(body=1000, skipping=60.0)) as served:
        assert (await asyncio.to_thread(send, served.server.port)).startswith(b"HTTP/1.1 413 ")


async def test_a_body_that_is_refused_is_read_on_within_bounds_only() -> None:
    limits = Limits(body=1000, skipped=5000, skipping=0.05)
    async with serving(limits=limits) as served:
        head = _HEAD % b"content-length: 9999999"
        for extra, sent in ((b"", b""), (b"", b" " * 8000), (b"expect: 100-continue\r\n", b"")):
            reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
            writer.write(head[:-2] + extra + b"\r\n" + sent)
            async with asyncio.timeout(30):
                assert (await reader.read(100)).startswith(b"HTTP/1.1 413 ")
            writer.close()


async def _status(awaited) -> int:
    async with awaited as response:
        return response.status
