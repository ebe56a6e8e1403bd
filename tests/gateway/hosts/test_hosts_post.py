"""POST of both eras over a real server: eras, statuses, sessions, late commit."""

from __future__ import annotations

import asyncio
import json

import pytest
from scripted_front import (
    CHANGED,
    LEGACY,
    META,
    MODERN,
    VERSION,
    ScriptedFront,
    call,
    events,
    initialize,
    notification,
    progress_then,
    request,
    result,
    serving,
    until,
    waits,
)

from troth.gateway.limits import Limits
from troth.gateway.model import Sort

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
