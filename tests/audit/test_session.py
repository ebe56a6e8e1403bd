"""The session: envelopes, headers, correlation, and what it makes of strange messages."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from links import LEGACY, MODERN, FakeLink, echo, session, silent

from troth.audit.model import Direction
from troth.audit.wire.connect import answer_all, answer_none, open_session
from troth.audit.wire.dialect import CLIENT_CAPABILITIES, LOG_LEVEL, PROTOCOL_VERSION, declarable
from troth.audit.wire.types import Failure, Incoming, Limits
from troth.bridge.headers import encoded
from troth.capabilities import read_client
from troth.register import register

pytestmark = pytest.mark.anyio


def handshake(version: str) -> Any:
    def react(link: FakeLink, message: dict[str, Any]) -> None:
        if message.get("method") == "initialize":
            headers = {"mcp-session-id": "s1"} if link.transport == "http" else {}
            link.answer(message, {"protocolVersion": version, "capabilities": {}}, headers=headers)
        else:
            echo(link, message)

    return react


@pytest.mark.behaviour("GEN-B4")
async def test_a_modern_request_carries_version_and_capabilities_of_its_own() -> None:
    link = FakeLink(echo)
    chat = session(link, MODERN, capabilities={"roots": {}})
    await chat.call("tools/list")
    await chat.call("tools/list", capabilities={"sampling": {}})
    first, second = (message["params"]["_meta"] for message in link.sent)
    assert first[PROTOCOL_VERSION] == second[PROTOCOL_VERSION] == MODERN
    assert first[CLIENT_CAPABILITIES] == {"roots": {}}
    assert second[CLIENT_CAPABILITIES] == {"sampling": {}}


async def test_a_member_of_meta_can_be_added_and_left_out() -> None:
    link = FakeLink(echo)
    chat = session(link, MODERN)
    await chat.call("tools/list", meta={LOG_LEVEL: "debug", CLIENT_CAPABILITIES: None})
    meta = link.sent[0]["params"]["_meta"]
    assert meta[LOG_LEVEL] == "debug"
    assert CLIENT_CAPABILITIES not in meta


@pytest.mark.parametrize("revision", LEGACY)
async def test_a_legacy_request_carries_no_envelope(revision: str) -> None:
    link = FakeLink(echo)
    await session(link, revision).call("tools/list")
    assert link.sent == [{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}]


@pytest.mark.behaviour("GEN-C1")
@pytest.mark.parametrize(
    ("asked", "negotiated", "header"),
    [
        ("2025-11-25", "2025-11-25", "2025-11-25"),
        ("2025-11-25", "2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-03-26", None),
        ("2024-11-05", "2024-11-05", None),
    ],
)
async def test_the_version_header_is_what_initialize_returned(asked: str, negotiated: str, header: str | None) -> None:
    link = FakeLink(handshake(negotiated), transport="http")
    chat = session(link, asked)
    await open_session(chat)
    await chat.call("tools/list")
    assert "MCP-Protocol-Version" not in link.headers[0]
    assert link.headers[-1].get("MCP-Protocol-Version") == header
    assert link.headers[-1].get("Mcp-Session-Id") == "s1"


@pytest.mark.behaviour("GEN-C2")
@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/list", {}, None),
        ("tools/call", {"name": "add"}, "add"),
        ("resources/read", {"uri": "file:///ä"}, "=?base64?ZmlsZTovLy/DpA==?="),
        ("tasks/get", {"taskId": "t1"}, "t1"),
        ("tasks/cancel", {"taskId": "t1"}, "t1"),
    ],
)
async def test_modern_headers_are_made_from_the_body(method: str, params: dict[str, Any], name: str | None) -> None:
    link = FakeLink(echo, transport="http")
    await session(link, MODERN).call(method, params)
    headers = link.headers[0]
    assert headers["MCP-Protocol-Version"] == MODERN
    assert headers["Mcp-Method"] == method
    assert headers.get("Mcp-Name") == name
    assert "Mcp-Session-Id" not in headers


async def test_arguments_that_the_schema_mirrors_travel_in_headers_too() -> None:
    link = FakeLink(echo, transport="http")
    chat = session(link, MODERN)
    named = {name: {"x-mcp-header": name.title()} for name in ("region", "count", "dry", "empty", "ratio", "absent")}
    inner = {"type": "object", "properties": {"zone": {"x-mcp-header": "Zone"}}}
    chat.schemas["add"] = {"properties": {**named, "deep": inner, "bad": {"x-mcp-header": "no token"}, "plain": {}}}
    arguments = {"region": "süd", "count": 7, "dry": True, "empty": "", "ratio": 0.5, "deep": {"zone": "a"}}
    await chat.call("tools/call", {"name": "add", "arguments": {**arguments, "bad": "x", "plain": "y"}})
    assert {key: value for key, value in link.headers[0].items() if key.startswith("Mcp-Param-")} == {
        "Mcp-Param-Region": "=?base64?c8O8ZA==?=",
        "Mcp-Param-Count": "7",
        "Mcp-Param-Dry": "true",
        "Mcp-Param-Empty": "",
        "Mcp-Param-Zone": "a",
    }


@pytest.mark.parametrize("value", [" padded", "two\r\nlines", "=?base64?eA==?=", "ünï", ""])
def test_a_header_value_that_would_be_damaged_is_wrapped(value: str) -> None:
    import base64

    wrapped = encoded(value)
    if value == "":
        assert wrapped == ""
        return
    assert wrapped.startswith("=?base64?")
    assert base64.b64decode(wrapped[9:-2]).decode() == value


@pytest.mark.behaviour("GEN-B3")
@pytest.mark.parametrize("revision", register().revisions)
def test_what_the_audit_declares_is_defined_by_the_revision(revision: str) -> None:
    assert read_client(declarable(revision), revision).problems == ()
    assert declarable(revision) or revision == LEGACY[0]


async def test_answers_may_come_in_any_order() -> None:
    waiting: list[dict[str, Any]] = []

    def react(link: FakeLink, message: dict[str, Any]) -> None:
        waiting.append(message)
        if len(waiting) == 3:
            for request in reversed(waiting):
                link.answer(request, {"was": request["method"]})

    chat = session(FakeLink(react), LEGACY[-1])
    found: dict[str, Any] = {}

    async def ask(method: str) -> None:
        found[method] = (await chat.call(method)).result

    async with anyio.create_task_group() as tasks:
        for method in ("a", "b", "c"):
            tasks.start_soon(ask, method)
    assert found == {method: {"was": method} for method in ("a", "b", "c")}


async def test_silence_ends_after_the_budget_and_is_cancelled() -> None:
    link = FakeLink(silent)
    chat = session(link, LEGACY[-1], limits=Limits(method=0.05))
    reply = await chat.call("tools/list")
    assert reply.failure is Failure.TIMEOUT
    assert link.sent[-1] == {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": 1},
    }


async def test_after_several_silences_less_is_waited() -> None:
    chat = session(FakeLink(silent), LEGACY[-1], limits=Limits(method=0.05))
    details = [(await chat.call("tools/list")).detail for _ in range(4)]
    assert details == ["no answer within 0.05 s"] * 2 + ["no answer within 0.01 s"] * 2


@pytest.mark.parametrize("ident", ["1", 1.0, True, 7])
async def test_an_answer_under_another_id_is_no_answer(ident: object) -> None:
    link = FakeLink(lambda link, message: link.say({"jsonrpc": "2.0", "id": ident, "result": {}}))
    chat = session(link, LEGACY[-1])
    reply = await chat.call("tools/list")
    assert reply.failure is Failure.MALFORMED
    assert "never sent" in reply.detail
    assert len(chat.strays) == 1


async def test_a_refusal_over_http_answers_its_request_whatever_its_id() -> None:
    def refuse(link: FakeLink, message: dict[str, Any]) -> None:
        error = {"jsonrpc": "2.0", "id": "server-error", "error": {"code": -32600, "message": "no session"}}
        link.say(error, status=400, request=message["id"])

    chat = session(FakeLink(refuse, transport="http"), LEGACY[-1])
    reply = await chat.call("tools/list")
    assert (reply.code, reply.status, chat.strays) == (-32600, 400, [])
    assert [code for code, _, _ in chat.problems] == ["protocol.null-id"]


async def test_a_second_answer_is_a_stray() -> None:
    def twice(link: FakeLink, message: dict[str, Any]) -> None:
        link.answer(message)
        link.answer(message)

    chat = session(FakeLink(twice), LEGACY[-1])
    assert (await chat.call("a")).ok
    assert (await chat.call("b")).ok
    assert len(chat.strays) == 2


@pytest.mark.parametrize(
    ("response", "detail"),
    [
        ({"result": {}, "error": {"code": 1, "message": ""}}, "both result and error in one response"),
        ({"error": "no"}, "error is no object"),
        ({"error": {"message": "no"}}, "error.code is no integer"),
        ({"error": {"code": True}}, "error.code is no integer"),
    ],
)
async def test_a_response_that_is_none_is_malformed(response: dict[str, Any], detail: str) -> None:
    link = FakeLink(lambda link, message: link.say({"jsonrpc": "2.0", "id": message["id"], **response}))
    reply = await session(link, LEGACY[-1]).call("a")
    assert (reply.failure, reply.detail) == (Failure.MALFORMED, detail)


async def test_an_error_without_an_id_answers_the_only_request() -> None:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no"}}
    chat = session(FakeLink(lambda link, _: link.say(error)), LEGACY[-1])
    assert (await chat.call("a")).code == -32600
    assert [code for code, _, _ in chat.problems] == ["protocol.null-id"]


async def test_an_http_refusal_may_come_without_an_id() -> None:
    error = {"jsonrpc": "2.0", "error": {"code": -32600, "message": "no"}}
    link = FakeLink(lambda link, message: link.say(error, request=message["id"], status=400), transport="http")
    chat = session(link, LEGACY[-1])
    assert (await chat.call("a")).code == -32600
    assert chat.problems == []


@pytest.mark.parametrize("junk", [[], [1], "text", 5, {}, {"jsonrpc": "2.0", "id": 5}, {"method": 5}])
async def test_a_value_that_is_no_message_is_a_problem(junk: object) -> None:
    def react(link: FakeLink, message: dict[str, Any]) -> None:
        link.say(junk)
        link.answer(message)

    chat = session(FakeLink(react), LEGACY[-1])
    assert (await chat.call("a")).ok
    assert {code for code, _, _ in chat.problems} == {"protocol.junk"}


async def test_the_items_of_an_array_count_all_the_same() -> None:
    def react(link: FakeLink, message: dict[str, Any]) -> None:
        link.say([{"jsonrpc": "2.0", "id": message["id"], "result": {"in": "array"}}])

    chat = session(FakeLink(react), LEGACY[-1])
    assert (await chat.call("a")).result == {"in": "array"}
    assert chat.problems[0][1] == "a JSON array in place of a message"


async def test_a_dead_link_fails_what_waits_and_what_follows() -> None:
    def die(link: FakeLink, _: dict[str, Any]) -> None:
        link.dead = "exited with status 3"
        link.receive(Incoming(channel="stdio", problem=link.dead, end=True))

    chat = session(FakeLink(die), LEGACY[-1])
    assert (await chat.call("a")).failure is Failure.CLOSED
    reply = await chat.call("b")
    assert (reply.failure, reply.detail) == (Failure.CLOSED, "exited with status 3")


async def test_an_http_body_without_a_message_fails_its_request() -> None:
    def react(link: FakeLink, message: dict[str, Any]) -> None:
        how: dict[str, Any] = {"problem": "HTTP 404 with text/plain: Not Found", "status": 404, "end": True}
        link.receive(Incoming(channel="post", request=message["id"], **how))

    reply = await session(FakeLink(react, transport="http"), MODERN).call("a")
    assert (reply.failure, reply.status) == (Failure.HTTP, 404)


async def test_a_flood_ends_what_waits() -> None:
    def flood(link: FakeLink, _: dict[str, Any]) -> None:
        for _ in range(20):
            link.say({"jsonrpc": "2.0", "method": "notifications/message"})

    chat = session(FakeLink(flood), LEGACY[-1], limits=Limits(frames=10))
    assert (await chat.call("a")).failure is Failure.CLOSED
    assert chat.problems[0][0] == "protocol.flood"


async def served(link: FakeLink, revision: str, request: dict[str, Any], **how: Any) -> list[dict[str, Any]]:
    """What the session answers to a request of its peer."""
    chat = session(link, revision, **how)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(chat.serve)
        await anyio.wait_all_tasks_blocked()
        link.say(request)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    return link.sent


ROOTS = {"jsonrpc": "2.0", "id": "r1", "method": "roots/list"}


@pytest.mark.behaviour("GEN-B6", "CAP-02-C4")
async def test_a_legacy_request_is_always_answered() -> None:
    all_ = await served(FakeLink(silent), LEGACY[-1], ROOTS, answer=answer_all)
    none = await served(FakeLink(silent), LEGACY[-1], ROOTS, answer=answer_none)
    assert all_ == [{"jsonrpc": "2.0", "id": "r1", "result": {"roots": []}}]
    assert none == [
        {"jsonrpc": "2.0", "id": "r1", "error": {"code": -32601, "message": "Method not found: roots/list"}}
    ]


@pytest.mark.behaviour("GEN-B6")
async def test_a_modern_client_answers_no_request() -> None:
    assert await served(FakeLink(silent), MODERN, ROOTS, answer=answer_all) == []


@pytest.mark.behaviour("GEN-B5")
@pytest.mark.parametrize("revision", [LEGACY[-1], MODERN])
async def test_a_notification_is_never_answered(revision: str) -> None:
    unknown = {"jsonrpc": "2.0", "method": "notifications/unheard-of", "params": {}}
    assert await served(FakeLink(silent), revision, unknown, answer=answer_all) == []


ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
TAG = "io.modelcontextprotocol/subscriptionId"


async def test_a_listen_is_open_once_it_is_acknowledged() -> None:
    def react(link: FakeLink, message: dict[str, Any]) -> None:
        if "id" not in message:
            return
        params = {"_meta": {TAG: message["id"]}, "notifications": {"toolsListChanged": True}}
        link.say({"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": params})

    link = FakeLink(react)
    chat = session(link, MODERN)
    listen = await chat.listen({"toolsListChanged": True})
    assert listen.acknowledged == {"toolsListChanged": True}
    assert listen.reply is None
    await chat.close_listen(listen)
    assert link.sent[-1]["method"] == "notifications/cancelled"
    assert link.cancelled == [listen.id]


async def test_an_untagged_acknowledgement_is_understood_where_only_one_waits() -> None:
    react = lambda link, _: link.say({"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": {"notifications": {}}})  # noqa: E731
    listen = await session(FakeLink(react), MODERN).listen({})
    assert listen.acknowledged == {}


async def test_a_refused_listen_says_so() -> None:
    def refuse(link: FakeLink, message: dict[str, Any]) -> None:
        link.say({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}})

    listen = await session(FakeLink(refuse), MODERN).listen({})
    assert listen.reply is not None
    assert listen.reply.code == -32601
    assert [frame.direction for frame in listen.frames] == [Direction.SENT, Direction.RECEIVED]


async def test_a_listen_that_is_never_acknowledged_ends_after_the_budget() -> None:
    listen = await session(FakeLink(silent), MODERN, limits=Limits(method=0.05)).listen({})
    assert listen.acknowledged is None
    assert listen.reply is not None
    assert listen.reply.failure is Failure.TIMEOUT


async def test_settling_waits_for_what_still_comes() -> None:
    link = FakeLink(silent)
    chat = session(link, LEGACY[-1], limits=Limits(settle=0.05))

    async def later() -> None:
        for _ in range(3):
            await anyio.sleep(0.02)
            link.say({"jsonrpc": "2.0", "method": "notifications/message"})

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(later)
        await chat.settle()
    assert len(chat.since(0, "notifications/message")) == 3


async def test_giving_up_ends_a_wait() -> None:
    chat = session(FakeLink(silent), MODERN)
    replies: list[Any] = []

    async def ask() -> None:
        replies.append(await chat.call("server/discover", timeout=30))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        chat.give_up("server/discover")
    assert replies[0].failure is Failure.TIMEOUT
