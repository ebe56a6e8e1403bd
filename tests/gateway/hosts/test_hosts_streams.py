"""GET streams of legacy sessions, resumption, the old SSE transport: over a real server."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from scripted_front import (
    CHANGED,
    LEGACY,
    META,
    MODERN,
    ScriptedFront,
    Served,
    call,
    events,
    initialize,
    notification,
    progress_then,
    request,
    result,
    serving,
    until,
)

from troth.gateway.hosts import Access
from troth.gateway.limits import Limits
from troth.gateway.model import Sort
from troth.gateway.settings import TokenSettings

pytestmark = pytest.mark.anyio

RESOURCES = notification("notifications/resources/list_changed")


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


@asynccontextmanager
async def stream(served: Served, identity: str, **headers: str):
    given = {"accept": "text/event-stream", "mcp-session-id": identity}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    async with served.client.get(served.url, headers=given) as response:
        assert response.status == 200, await response.text()
        assert response.content_type == "text/event-stream"
        try:
            yield events(response)
        finally:
            response.close()


async def message(stream) -> dict:
    """The next message; comments and empty events are skipped."""
    async with asyncio.timeout(30):
        async for _, _, data in stream:
            if data:
                return json.loads(data)
    raise AssertionError("the stream ended")


@pytest.mark.behaviour("CAP-15-S3")
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_legacy_session_gets_a_stream_for_what_belongs_to_no_request(revision: str) -> None:
    async with serving() as served:
        identity = await served.initialize(revision)
        assert served.front.sessions[0].push
        async with stream(served, identity) as got:
            served.front.sessions[0].outbox.send(CHANGED, Sort.CHANGE)
            assert (await message(got))["method"] == "notifications/tools/list_changed"


async def test_rule_8_changes_before_the_stream_opens_are_one_flag_per_list() -> None:
    async with serving() as served:
        identity = await served.initialize()
        outbox = served.front.sessions[0].outbox
        for _ in range(5):
            outbox.send(CHANGED, Sort.CHANGE)
            outbox.send(RESOURCES, Sort.CHANGE)
            outbox.send(notification("notifications/message", data="old"), Sort.LOG)
        async with stream(served, identity) as got:
            outbox.send(notification("notifications/message", data="new"), Sort.LOG)
            methods = [await message(got) for _ in range(3)]
        assert [item["method"].rpartition("/")[0] for item in methods] == [
            "notifications/tools", "notifications/resources", "notifications",
        ]  # fmt: skip
        assert methods[2]["params"] == {"data": "new"}


async def test_rule_8_changes_ride_the_next_stream_and_are_not_sent_twice() -> None:
    front = ScriptedFront({"tools/call": progress_then(1)})
    async with serving(front) as served:
        identity = await served.initialize()
        outbox = front.sessions[0].outbox
        outbox.send(CHANGED, Sort.CHANGE)
        async with served.post(call(1), mcp_session_id=identity) as response:
            got = [json.loads(data).get("method") async for _, _, data in events(response) if data]
        assert got == ["notifications/tools/list_changed", "notifications/progress", None]
        async with stream(served, identity) as got:
            outbox.send(RESOURCES, Sort.CHANGE)
            assert (await message(got))["method"] == "notifications/resources/list_changed"


async def test_rule_13_a_stream_begins_with_an_id_from_2025_11_25_on() -> None:
    async with serving() as served:
        for revision, primes in (("2025-11-25", True), ("2025-06-18", False)):
            identity = await served.initialize(revision)
            async with stream(served, identity) as got:
                served.front.sessions[-1].outbox.send(CHANGED, Sort.CHANGE)
                event, _, data = await anext(got)
            assert bool(event)
            assert (data == "") is primes


async def test_rule_13_nothing_of_it_on_modern() -> None:
    front = ScriptedFront({"tools/call": progress_then(2)})
    async with serving(front) as served:
        async with served.post(call(1, META)) as response:
            assert [event async for event, _, _ in events(response)] == ["", "", ""]
        for method in ("GET", "DELETE"):
            headers = {"mcp-protocol-version": MODERN, "last-event-id": "1-1"}
            async with served.client.request(method, served.url, headers=headers) as response:
                assert response.status == 405


async def test_rule_13_a_dropped_stream_is_taken_up_after_the_last_event() -> None:
    async with serving() as served:
        identity = await served.initialize()
        outbox = served.front.sessions[0].outbox
        lines = [notification("notifications/resources/updated", uri=f"x:{number}") for number in range(4)]
        async with stream(served, identity) as got:
            for line in lines[:3]:
                outbox.send(line, Sort.CHANGE)
            seen = [await anext(got) for _ in range(4)]
        await until(lambda: not +served.app.counts.streams)
        outbox.send(lines[3], Sort.CHANGE)
        async with stream(served, identity, last_event_id=seen[1][0]) as got:
            again = [await message(got) for _ in range(3)]
        assert [item["params"]["uri"] for item in again] == ["x:1", "x:2", "x:3"]


async def test_rule_13_an_answer_waits_for_a_legacy_host_that_lost_its_connection() -> None:
    gate = asyncio.Event()
    front = ScriptedFront({"tools/call": progress_then(2, gate)})
    async with serving(front) as served:
        identity = await served.initialize()
        async with served.post(call(5), mcp_session_id=identity) as response:
            assert response.content_type == "text/event-stream"
            got = events(response)
            first = [await anext(got) for _ in range(2)]
            response.close()
        # Taken up while it runs: the rest of what was sent, and then the answer.
        async with stream(served, identity, last_event_id=first[1][0]) as got:
            assert (await message(got))["params"]["progress"] == 1
            gate.set()
            assert (await message(got))["id"] == 5
        assert front.cancelled == []
        # Taken up after it ended.
        async with stream(served, identity, last_event_id=first[1][0]) as got:
            assert (await message(got))["params"]["progress"] == 1
            event, _, data = await anext(got)
            assert json.loads(data)["id"] == 5
        # Nothing is left: 204, which ends the attempts of event streams.
        headers = {"mcp-session-id": identity, "last-event-id": event}
        async with served.client.get(served.url, headers=headers) as response:
            assert response.status == 204


async def test_rule_13_a_stream_that_is_taken_up_replays_its_own_events_only() -> None:
    gate = asyncio.Event()
    front = ScriptedFront({"tools/call": progress_then(1, gate)})
    async with serving(front) as served:
        identity = await served.initialize("2025-06-18")
        async with stream(served, identity) as own:
            posted = []
            for number in (1, 2):
                async with served.post(call(number), mcp_session_id=identity) as response:
                    posted.append((await anext(events(response)))[0])
                    response.close()
                front.sessions[0].outbox.send(notification("notifications/message", data=number), Sort.LOG)
                await message(own)
            gate.set()
            await until(lambda: sorted(front.finished) == [1, 2])
        assert len(set(posted)) == 2
        for number, event in zip((1, 2), posted, strict=True):
            async with stream(served, identity, last_event_id=event) as got:
                assert [json.loads(data).get("id") async for _, _, data in got if data] == [number]


async def test_what_was_opened_with_a_credential_ends_with_it() -> None:
    tokens = [TokenSettings(name=name, token=f"token-{name}") for name in ("ann", "bob")]
    access = Access(tokens)
    front = ScriptedFront({"subscriptions/listen": progress_then(1, asyncio.Event())})
    async with serving(front, access=access) as served:
        ids = [await served.initialize(authorization=f"Bearer token-{name}") for name in ("ann", "bob")]
        headers = {"authorization": "Bearer token-ann"}
        async with (
            stream(served, ids[0], **headers) as ended,
            stream(served, ids[1], authorization="Bearer token-bob") as kept,
            old(served, **headers) as (_, old_ended),
            served.post(request("subscriptions/listen", 7, META), **headers) as listen,
        ):
            access.replace([TokenSettings(name="ann", token="another"), tokens[1]])
            for source in (ended, old_ended, events(listen)):
                async with asyncio.timeout(30):
                    assert [data async for _, _, data in source if "tools" in data] == []
            assert front.cancelled == [7]
            assert front.closed == front.sessions[:1]
            front.sessions[1].outbox.send(CHANGED, Sort.CHANGE)
            assert (await message(kept))["method"] == "notifications/tools/list_changed"
        again = {"authorization": "Bearer another"}
        async with served.post(call(1), mcp_session_id=ids[0], **again) as response:
            assert response.status == 404


async def test_rule_13_each_message_is_on_one_stream_only() -> None:
    gate = asyncio.Event()
    front = ScriptedFront({"tools/call": progress_then(2, gate)})
    async with serving(front) as served:
        identity = await served.initialize()
        async with stream(served, identity) as got:
            async with served.post(call(1), mcp_session_id=identity) as response:
                front.sessions[0].outbox.send(CHANGED, Sort.CHANGE)
                gate.set()
                posted = [json.loads(data) async for _, _, data in events(response) if data]
            assert "notifications/tools/list_changed" not in [item.get("method") for item in posted]
            assert (await message(got))["method"] == "notifications/tools/list_changed"
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await message(got)


async def test_a_second_stream_takes_over_from_the_first() -> None:
    async with serving() as served:
        identity = await served.initialize()
        async with stream(served, identity) as first, stream(served, identity) as second:
            served.front.sessions[0].outbox.send(CHANGED, Sort.CHANGE)
            assert (await message(second))["method"] == "notifications/tools/list_changed"
            assert [data async for _, _, data in first if data] == []


async def test_a_silent_stream_is_kept_awake_by_comments() -> None:
    async with serving(limits=Limits(heartbeat=0.01)) as served:
        identity = await served.initialize("2025-06-18")
        async with stream(served, identity) as got:
            assert [name async for _, name, _ in _first(got, 3)] == [":", ":", ":"]


async def _first(source, count: int):
    for _ in range(count):
        yield await anext(source)


async def test_ending_a_session_ends_its_streams() -> None:
    async with serving() as served:
        identity = await served.initialize()
        async with stream(served, identity) as got:
            async with served.client.delete(served.url, headers={"mcp-session-id": identity}) as response:
                assert response.status == 204
            assert [data async for _, _, data in got if data] == []
        assert served.front.closed == served.front.sessions


async def test_rule_1_a_session_is_its_principals_alone() -> None:
    tokens = [TokenSettings(name=name, token=f"token-{name}") for name in ("ann", "bob")]
    async with serving(access=Access(tokens)) as served:
        ann = {"authorization": "Bearer token-ann"}
        bob = {"authorization": "Bearer token-bob"}
        identity = await served.initialize(**ann)
        assert served.front.sessions[0].host.principal.name == "ann"
        async with served.post(call(1), mcp_session_id=identity, **bob) as response:
            assert response.status == 404
        for method in ("GET", "DELETE"):
            headers = {"mcp-session-id": identity, **bob}
            async with served.client.request(method, served.url, headers=headers) as response:
                assert response.status == 404
        # Two connections and two names of one principal are one.
        async with served.post(call(1), mcp_session_id=identity, **ann) as response:
            assert response.status == 200
        async with served.client.get(f"{served.base}/sse", headers=ann) as response:
            _, _, address = await anext(events(response))
            async with served.client.post(served.base + address, json=initialize(), headers=bob) as foreign:
                assert foreign.status == 404
            async with served.client.post(served.base + address, json=initialize(), headers=ann) as own:
                assert own.status == 202
            response.close()


async def test_session_ids_cannot_be_guessed() -> None:
    async with serving() as served:
        ids = {await served.initialize() for _ in range(50)}
    assert len(ids) == 50
    assert all(len(identity) >= 22 and identity.isascii() and identity.isprintable() for identity in ids)


async def test_rule_24_a_host_that_does_not_read_loses_its_stream_and_nobody_waits() -> None:
    line = notification("notifications/other", text="x" * 100_000)
    async with serving(limits=Limits(queue=1_000_000)) as served:
        identity = await served.initialize()
        outbox = served.front.sessions[0].outbox
        reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port, limit=1024)
        writer.write(
            b"GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\nmcp-session-id: %s\r\n\r\n"
            % identity.encode()
        )
        await reader.readuntil(b"\r\n\r\n")
        channel = served.app.sessions._kept[identity].outbox.channel
        for _ in range(400):
            outbox.send(line, Sort.OTHER)
            assert channel.waiting.bytes <= 1_100_000
            await asyncio.sleep(0)
            if not channel.carried:
                break
        assert not channel.carried
        await until(lambda: not +served.app.counts.streams)
        # Other hosts, and this one's next stream, are not disturbed.
        async with served.post(call(1), mcp_session_id=identity) as response:
            assert response.status == 200
        outbox.send(CHANGED, Sort.CHANGE)
        async with stream(served, identity) as got:
            assert (await message(got))["method"] == "notifications/tools/list_changed"
        writer.close()


async def test_streams_are_limited_by_name() -> None:
    front = ScriptedFront({"subscriptions/listen": progress_then(1, asyncio.Event())})
    async with serving(front, limits=Limits(streams=1)) as served:
        identity = await served.initialize()
        async with stream(served, identity):
            async with served.post(request("subscriptions/listen", 4, META)) as response:
                assert response.status == 429
                assert (await response.json())["error"]["data"] == {"limit": "streams"}
            async with served.client.get(f"{served.base}/sse") as response:
                assert response.status == 429
            async with served.client.get(served.url, headers={"mcp-session-id": identity}) as response:
                assert response.status == 429
        await until(lambda: not +served.app.counts.streams)
        async with served.post(request("subscriptions/listen", 4, META)) as response:
            assert response.content_type == "text/event-stream"
            response.close()
        await until(lambda: not +served.app.counts.streams)
        assert front.cancelled == [4]


# HTTP+SSE of 2024-11-05


@asynccontextmanager
async def old(served: Served, **headers: str):
    async with served.client.get(f"{served.base}/sse", headers=headers) as response:
        assert response.status == 200
        got = events(response)
        _, name, address = await anext(got)
        assert name == "endpoint"

        async def post(content: object, status: int = 202) -> None:
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            sent = {"content-type": "application/json", **headers}
            async with served.client.post(served.base + address, data=data, headers=sent) as answer:
                assert answer.status == status, await answer.text()

        try:
            yield post, got
        finally:
            response.close()


async def test_the_old_transport_answers_on_its_stream() -> None:
    front = ScriptedFront({"tools/call": progress_then(1)})
    async with serving(front) as served:
        async with old(served) as (post, got):
            await post(call(1))
            assert (await message(got))["error"]["code"] == -32600
            await post(request("ping", 2))
            assert (await message(got))["result"] == {}
            await post(initialize("2024-11-05", 3))
            assert (await message(got))["result"]["protocolVersion"] == "2024-11-05"
            await post({"jsonrpc": "2.0", "method": "notifications/initialized"})
            await post(initialize("2024-11-05", 4))
            assert (await message(got))["error"]["code"] == -32600
            await post(call(5))
            assert (await message(got))["method"] == "notifications/progress"
            assert (await message(got))["id"] == 5
            front.sessions[0].outbox.send(CHANGED, Sort.CHANGE)
            assert (await message(got))["method"] == "notifications/tools/list_changed"
            await post(b"{", 400)
            await post(b'{"jsonrpc":"2.0","id":6,"method":"x","params":[]}')
            assert (await message(got))["error"]["code"] == -32602
            assert front.notified[0].method == "notifications/initialized"
            assert front.sessions[0].host.transport == "sse"
        await until(lambda: front.closed == front.sessions)
        async with served.client.post(f"{served.base}/messages?session_id=x", json=call(1)) as response:
            assert response.status == 404


async def test_the_old_transport_explodes_batches_of_2025_03_26() -> None:
    async with serving(limits=Limits(running=1)) as served, old(served) as (post, got):
        await post([call(1)], 400)
        await post(initialize("2025-03-26"))
        await message(got)
        await post([call(1), call(2)])
        answers = [await message(got), await message(got)]
        assert {item["id"]: "result" in item for item in answers} == {1: True, 2: False}


async def test_rule_24_answers_wait_for_a_slow_host_of_the_old_transport() -> None:
    async def script(frame, host, stream):
        return result(frame, {"text": "x" * 200_000})

    async with serving(ScriptedFront({"tools/call": script}), limits=Limits(queue=1_000_000)) as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port, limit=64 * 1024 * 1024)
        writer.write(b"GET /sse HTTP/1.1\r\nhost: localhost\r\n\r\n")
        address = (await reader.readuntil(b"\n\n")).split(b"data: ")[1].strip().decode()
        writer.transport.pause_reading()
        for number in range(101):
            message = call(number) if number else initialize("2024-11-05")
            async with served.client.post(served.base + address, json=message) as response:
                assert response.status == 202
        line = next(iter(served.app._sse._lines.values()))
        await until(lambda: line.channel.waiting.bytes > 500_000)
        assert line.channel.waiting.bytes < 1_000_000
        writer.transport.resume_reading()
        for _ in range(101):
            async with asyncio.timeout(30):
                while not (await reader.readline()).startswith(b"data: {"):
                    pass
        writer.close()
        await until(lambda: not +served.app.counts.running)


async def test_the_revision_header_is_checked_on_streams_too() -> None:
    async with serving() as served:
        identity = await served.initialize()
        headers = {"mcp-session-id": identity, "mcp-protocol-version": "2025-06-18"}
        async with served.client.get(served.url, headers=headers) as response:
            assert response.status == 400
        async with served.client.get(served.url) as response:
            assert response.status == 400
        headers = {"mcp-session-id": identity, "accept": "application/json", "mcp-protocol-version": LEGACY}
        async with served.client.get(served.url, headers=headers) as response:
            assert response.status == 406
        async with served.client.get(f"{served.base}/sse", headers={"accept": "application/json"}) as response:
            assert response.status == 406
