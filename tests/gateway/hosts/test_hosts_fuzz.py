"""Whatever a host sends, it gets one well-formed response, and nothing of it stays behind."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_front import META, MODERN, ScriptedFront, call, initialize, progress_then, request

from troth.gateway.crew import Crew
from troth.gateway.hosts import Access, HttpHosts
from troth.gateway.hosts.events import position
from troth.gateway.hosts.head import Head
from troth.gateway.limits import Limits

SESSION = "the session's"
KNOWN = [
    call(1, META), call(1), request("ping", 2), initialize(), initialize("2025-03-26", "x"), [call(1), call("1")],
    request("subscriptions/listen", 3, META), {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
    {"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": ""}},
]  # fmt: skip
leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from([*META, "2.0", MODERN])
anything = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
)
envelopes = st.dictionaries(
    st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "ID", "_meta"]), anything, max_size=6
)
bodies = st.one_of(
    st.sampled_from(KNOWN).map(lambda value: json.dumps(value).encode()),
    anything.map(lambda value: json.dumps(value).encode()),
    envelopes.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=60),
)
values = st.sampled_from(
    ["", "*/*", "application/json", "text/event-stream", "text/plain", MODERN, "2025-11-25", "2025-03-26", "0-0", "1-9",
     "localhost", "evil", "http://localhost:1", "null", SESSION, "identity", "5", "99999999999999999999", "-1"]
)  # fmt: skip
names = st.sampled_from(
    ["host", "origin", "accept", "content-type", "content-length", "content-encoding", "mcp-session-id",
     "mcp-protocol-version", "mcp-method", "last-event-id", "authorization", "transfer-encoding", "x"]
)  # fmt: skip
paths = st.sampled_from(["/mcp", "/mcp", "/mcp", "/sse", "/messages", "/status", "/health", "/", "//mcp", "/mcp/"])
methods = st.sampled_from(["POST", "POST", "GET", "DELETE", "OPTIONS", "PUT", "HEAD", "X"])


async def ask(app: Any, method: str, path: str, headers: list[tuple[str, str]], body: bytes) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []
    half = len(body) // 2
    pieces = [(body[:half], True), (body[half:], False)]
    gone = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if pieces:
            piece, more = pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": more}
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            gone.set()
        # A stream that stays open is left after its first bytes.
        elif message["type"] == "http.response.body":
            asyncio.get_running_loop().call_soon(gone.set)

    scope = {
        "type": "http", "method": method, "path": path, "query_string": b"session_id=x",
        "headers": [(name.encode(), value.encode()) for name, value in headers],
    }  # fmt: skip
    async with asyncio.timeout(30):
        await app(scope, receive, send)
    return sent


async def abuse(method: str, path: str, headers: list[tuple[str, str]], body: bytes) -> None:
    crew = Crew()
    front = ScriptedFront({"subscriptions/listen": progress_then(1, asyncio.Event()), "ping": progress_then(2)})
    limits = Limits(body=2000, watch=0.001, commit=0.001, heartbeat=0.001)
    app = HttpHosts(front, Access(no_auth=True), limits, crew)
    good = [("host", "localhost"), ("content-type", "application/json")]
    opened = await ask(app, "POST", "/mcp", good, json.dumps(initialize("2025-03-26")).encode())
    identity = dict(opened[0]["headers"])[b"mcp-session-id"].decode()
    given = [(name, identity if value == SESSION else value) for name, value in headers]
    sent = await ask(app, method, path, [*good, *given] if len(given) % 2 else given, body)
    check(sent)
    app.stop()
    app.dismiss()
    app.close()
    assert len(front.closed) == len(front.sessions)
    assert not +app.counts.running
    assert not +app.counts.streams
    await crew.close()


def check(sent: list[dict[str, Any]]) -> None:
    assert [message["type"] for message in sent][:1] == ["http.response.start"]
    assert sent[-1]["type"] == "http.response.body"
    assert not sent[-1].get("more_body")
    status, headers = sent[0]["status"], dict(sent[0]["headers"])
    assert status in {200, 202, 204, 400, 401, 403, 404, 405, 406, 413, 415, 421, 431}
    for name, value in headers.items():
        assert name == name.lower()
        assert not {10, 13} & set(value)
    body = b"".join(message["body"] for message in sent[1:])
    if headers.get(b"content-type") == b"application/json":
        assert b"\n" not in body
        assert json.loads(body)
    elif headers.get(b"content-type") == b"text/event-stream":
        for line in body.split(b"\n"):
            assert not line or line.startswith((b":", b"id: ", b"event: ", b"data: "))
    else:
        assert body == b""


@settings(max_examples=300, deadline=None)
@given(methods, paths, st.lists(st.tuples(names, values), max_size=5), bodies)
def test_every_request_gets_one_well_formed_response(
    method: str, path: str, headers: list[tuple[str, str]], body: bytes
) -> None:
    anyio.run(abuse, method, path, headers, body, backend_options={"use_uvloop": True})


@given(st.binary(max_size=50))
def test_an_event_id_is_ours_or_nothing(event: bytes) -> None:
    found = position(event)
    assert found is None or all(number >= 0 for number in found)
    assert position(b"3-17") == (3, 17)


@given(st.binary(max_size=40))
def test_any_accept_header_can_be_read(value: bytes) -> None:
    json_ok, events = Head("POST", {b"accept": value}).accepts
    assert isinstance(json_ok, bool)
    assert isinstance(events, bool)


@given(st.binary(max_size=40))
def test_any_host_origin_and_credential_can_be_judged(value: bytes) -> None:
    access = Access()
    access.host(value)
    access.origin(value)
    assert access.principal(value) is None
    assert not access.operator(value)
