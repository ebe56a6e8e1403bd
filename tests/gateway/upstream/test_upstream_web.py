"""What is sent over HTTP, header by header, and what is made of every answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web
from upstream_peers import EACH, LEGACY, MODERN, PATIENCE, Heard, call, http, until, upstream
from upstream_web import Asked, legacy, modern, website

from troth.bridge import Cause, Outgoing, ask
from troth.gateway.limits import Limits
from troth.gateway.model import UnavailableError
from troth.gateway.settings import EraChoice
from troth.register import register

pytestmark = pytest.mark.anyio


async def outcome(talk: Any, **how: Any) -> Any:
    sink = Heard()
    talk.start(call("any", **how), sink)
    return await sink.end()


@pytest.mark.behaviour("GEN-C1")
@pytest.mark.parametrize(
    ("revision", "named"),
    [("2024-11-05", None), ("2025-03-26", None), ("2025-06-18", "2025-06-18"), ("2025-11-25", "2025-11-25")],
)
async def test_the_version_header_is_what_initialize_returned(revision: str, named: str | None) -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        return await legacy(asked, revision) or asked.answer(result={})

    async with website(handle) as site:
        patient = Limits(back_off=0.05, back_off_most=0.5, stop=PATIENCE)
        async with upstream(http(site.url, era=EraChoice.LEGACY), patient) as (one, _ears):
            talk = await one.ready(PATIENCE)
            assert await outcome(talk) == {}
            await until(lambda: bool(site.verbs("GET")))
        (opening,) = site.of("initialize")
        assert opening.body["params"]["protocolVersion"] == LEGACY
        assert opening.body["params"]["clientInfo"]["name"] == "troth"
        assert "mcp-protocol-version" not in opening.headers
        assert "mcp-session-id" not in opening.headers
        later = [*site.of("notifications/initialized"), *site.of("tools/call"), *site.verbs("GET")]
        later += site.verbs("DELETE")
        assert [one.headers.get("mcp-protocol-version") for one in later] == [named] * 4
        assert [one.headers.get("mcp-session-id") for one in later] == ["one"] * 4
        assert not any(name.startswith("mcp-method") for one in later for name in one.headers)


@pytest.mark.behaviour("GEN-C2")
async def test_a_modern_request_says_in_headers_what_its_body_says() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        return await modern(asked) or asked.answer(result={})

    async with website(handle) as site:
        async with upstream(http(site.url)) as (one, _ears):
            talk = await one.ready(PATIENCE)
            await outcome(talk, headers={"Mcp-Param-Region": "eu"})
            sink = Heard()
            talk.start(Outgoing(frame=ask("prompts/get", {"name": "naïve"}), name="naïve"), sink)
            await sink.end()
        assert not site.verbs("GET")
        assert not site.verbs("DELETE")
        discover, called, prompt = site.asked
        assert all(one.headers["mcp-protocol-version"] == MODERN for one in site.asked)
        assert [one.headers["mcp-method"] for one in site.asked] == ["server/discover", "tools/call", "prompts/get"]
        assert "mcp-name" not in discover.headers
        assert (called.headers["mcp-name"], called.headers["mcp-param-region"]) == ("any", "eu")
        assert prompt.headers["mcp-name"] == "=?base64?bmHDr3Zl?="
        assert not any("mcp-session-id" in one.headers for one in site.asked)
        meta = called.body["params"]["_meta"]
        assert meta["io.modelcontextprotocol/protocolVersion"] == MODERN
        assert meta["io.modelcontextprotocol/clientCapabilities"] == {}


def told(cause: Cause, part: str = "") -> Any:
    return lambda end: (end.cause, part in end.words) == (cause, True)


ENDS = {
    "a result": (lambda asked: asked.answer(result={"a": 1}), lambda end: end == {"a": 1}),
    "an error": (lambda asked: asked.error(-32602), lambda end: end["code"] == -32602),
    "an error with its status": (lambda asked: asked.error(-32602, 400), lambda end: end["code"] == -32602),
    "an error under no id": (lambda asked: asked.error(-32600, 400, id=None), lambda end: end["code"] == -32600),
    "an error under a made-up id": (lambda asked: asked.error(-32600, 400, id="x"), lambda end: end["code"] == -32600),
    "a failure that answers": (lambda asked: asked.error(-32603, 500), lambda end: end["code"] == -32603),
    "a failure of who knows whom": (lambda asked: asked.error(-32603, 500, id=None), told(Cause.REFUSED, "500")),
    "no right": (lambda _asked: web.Response(status=401), told(Cause.REFUSED, "401")),
    "no right, in JSON": (lambda asked: asked.error(-32001, 403, id=None), told(Cause.REFUSED, "403")),
    "too often": (lambda _asked: web.Response(status=429), told(Cause.REFUSED, "429")),
    "another id": (lambda asked: asked.answer(id="other", result={}), told(Cause.MALFORMED)),
    "the id as text": (lambda asked: asked.answer(id=str(asked.body["id"]), result={}), told(Cause.MALFORMED)),
    "no answer": (lambda _asked: web.Response(status=202), told(Cause.MALFORMED)),
    "a page": (lambda _asked: web.Response(text="<h1>hi</h1>", content_type="text/html"), told(Cause.MALFORMED)),
    "half a result": (
        lambda _asked: web.Response(text='{"jsonrpc', content_type="application/json"),
        told(Cause.MALFORMED),
    ),
}


@pytest.mark.parametrize("revision", EACH)
@pytest.mark.parametrize("name", ENDS)
async def test_every_http_answer_ends_its_request_once(revision: str, name: str) -> None:
    reply, holds = ENDS[name]

    async def handle(asked: Asked) -> web.StreamResponse:
        honest = legacy if revision == LEGACY else modern
        return await honest(asked) or reply(asked)

    async with website(handle) as site, upstream(http(site.url)) as (one, ears):
        talk = await one.ready(PATIENCE)
        assert talk.revision == revision
        end = await outcome(talk)
        assert holds(end), end
        assert ears.count("down") == 0


async def events(asked: Asked, *messages: Any) -> web.StreamResponse:
    import json

    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(asked.request)
    for message in messages:
        await response.write(f"data: {json.dumps({'jsonrpc': '2.0', **message})}\n\n".encode())
    return response


@pytest.mark.parametrize("revision", EACH)
async def test_rule_10_over_http_the_stream_says_whose_a_message_is(revision: str) -> None:
    note = {"method": "notifications/message", "params": {"level": "info", "data": 1}}

    async def handle(asked: Asked) -> web.StreamResponse:
        honest = legacy if revision == LEGACY else modern
        answer = {"id": (asked.body or {}).get("id"), "result": {}}
        return await honest(asked) or await events(asked, note, answer)

    async with website(handle) as site, upstream(http(site.url)) as (one, ears):
        talk = await one.ready(PATIENCE)
        sinks = [Heard() for _ in range(4)]
        for sink in sinks:
            talk.start(call("any"), sink)
        for sink in sinks:
            assert await sink.end() == {}
        assert [len(sink.notes) for sink in sinks] == [1] * 4
        assert ears.count("heard", "notifications/message") == 0


@pytest.mark.behaviour("GEN-B6")
async def test_rule_2_over_http_the_stream_says_whose_a_question_is() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        question = {"id": 7, "method": "roots/list"}
        answer = {"id": (asked.body or {}).get("id"), "result": {}}
        return await legacy(asked) or await events(asked, question, answer)

    async with website(handle) as site, upstream(http(site.url)) as (one, _ears):
        talk = await one.ready(PATIENCE)
        refuser, taker = Heard(), Heard(takes=True)
        for sink in (refuser, taker):
            talk.start(call("any"), sink)
            await sink.end()
        assert len(refuser.questions) == len(taker.questions) == 1
        await until(lambda: any("error" in one.body for one in site.verbs("POST")))
        (refused,) = [one for one in site.verbs("POST") if "error" in one.body]
        assert (refused.body["id"], refused.body["error"]["code"]) == (7, -32601)
        assert refused.headers["mcp-session-id"] == "one"


@pytest.mark.parametrize("status", [404, 400])
async def test_rule_19_levels_and_subscriptions_are_replayed_on_a_new_session(status: int) -> None:
    declared = {"tools": {}, "resources": {"subscribe": True}, "logging": {}}
    sessions: list[str] = []

    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method == "initialize":
            sessions.append(f"s{len(sessions)}")
            return asked.initialized(LEGACY, sessions[-1], declared)
        stale = asked.headers.get("mcp-session-id") != (sessions[-1] if sessions else None)
        if sessions and "id" in (asked.body or {}) and stale:
            return asked.error(-32000, status, id=None, message="") if status == 404 else lost(asked)
        return await legacy(asked) or asked.answer(result={"a": 1})

    def lost(asked: Asked) -> web.Response:
        error = {"code": -32000, "message": "Bad Request: No valid session ID provided"}
        return asked.answer(400, id=None, error=error)

    async with website(handle) as site, upstream(http(site.url)) as (one, ears):
        talk = await one.ready(PATIENCE)
        await one.subscribe("a://b")
        one.level("debug")
        await until(lambda: bool(site.of("logging/setLevel")))
        sessions.append("forgotten")
        assert await outcome(talk) == {"a": 1}
        await ears.until("up", times=2)
        await ears.until("heard", "notifications/resources/updated")
        await until(lambda: len(site.of("logging/setLevel")) == 2)
        assert len(site.of("resources/subscribe")) == 2
        assert len(site.of("tools/call")) == 2
        assert ears.count("down") == 0


async def test_rule_19_what_a_lost_session_refused_is_sent_once_more_and_not_twice() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        return await legacy(asked) or web.Response(status=404)

    async with website(handle) as site, upstream(http(site.url)) as (one, _ears):
        talk = await one.ready(PATIENCE)
        lost = await outcome(talk)
        assert (lost.cause, lost.words) == (Cause.REFUSED, "upstream session lost")
        assert len(site.of("tools/call")) == 2


async def test_rule_19_calls_in_flight_are_lost_with_their_session() -> None:
    opened: list[str] = []

    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method == "initialize":
            opened.append(f"s{len(opened)}")
            return asked.initialized(LEGACY, opened[-1])
        honest = await legacy(asked)
        if honest is not None:
            return honest
        if asked.body["params"]["name"] == "slow":
            return await asyncio.sleep(PATIENCE, web.Response())
        return web.Response(status=404) if len(opened) == 1 else asked.answer(result={})

    async with website(handle) as site, upstream(http(site.url)) as (one, _ears):
        talk = await one.ready(PATIENCE)
        slow = Heard()
        talk.start(call("slow"), slow)
        await until(lambda: bool(site.of("tools/call")))
        assert await outcome(talk) == {}
        lost = await slow.end()
        assert (lost.cause, lost.words) == (Cause.BROKEN, "upstream session lost")


async def test_rule_19_an_answer_that_had_begun_is_never_asked_for_again() -> None:
    calls: list[str] = []

    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.verb == "GET":
            return web.Response(status=404 if "last-event-id" in asked.headers else 405)
        honest = await legacy(asked)
        if honest is not None:
            return honest
        calls.append(asked.method)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(asked.request)
        await response.write(b"id: 1\nretry: 10\ndata:\n\n")
        assert asked.request.transport is not None
        asked.request.transport.abort()
        return response

    async with website(handle) as site, upstream(http(site.url)) as (one, ears):
        talk = await one.ready(PATIENCE)
        lost = await outcome(talk)
        assert (lost.cause, lost.words) == (Cause.BROKEN, "upstream session lost")
        await ears.until("up", times=2)
        assert calls == ["tools/call"]


async def test_a_server_that_calls_a_missing_stream_404_has_lost_no_session() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.verb == "GET":
            return web.Response(status=404)
        return await legacy(asked) or asked.answer(result={})

    async with website(handle) as site, upstream(http(site.url)) as (one, ears):
        talk = await one.ready(PATIENCE)
        await until(lambda: bool(site.of("ping")))
        assert await outcome(talk) == {}
        assert (len(site.of("initialize")), ears.count("up")) == (1, 1)


@pytest.mark.behaviour("GEN-C3")
async def test_rule_18_http_and_sse_comes_last() -> None:
    outbox: asyncio.Queue[str] = asyncio.Queue()

    async def handle(asked: Asked) -> web.StreamResponse:
        import json

        if asked.verb == "GET":
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(asked.request)
            await response.write(b"event: endpoint\ndata: /messages?id=1\n\n")
            while True:
                await response.write(f"event: message\ndata: {await outbox.get()}\n\n".encode())
        if asked.request.path == "/mcp":
            return web.Response(status=405)
        honest: Any = asked.initialized("2024-11-05") if asked.method == "initialize" else asked.answer(result={"b": 2})
        if "id" in asked.body:
            outbox.put_nowait(json.loads(honest.text) and honest.text)
        return web.Response(status=202)

    memory: dict[str, str] = {}
    async with website(handle) as site:
        for _ in range(2):
            async with upstream(http(site.url), memory=memory) as (one, _ears):
                talk = await one.ready(PATIENCE)
                assert (talk.revision, talk.link.transport) == ("2024-11-05", "sse")
                assert await outcome(talk) == {"b": 2}
        assert [value.split()[:2] for value in memory.values()] == [["legacy", "sse"]]
        assert len(site.of("server/discover")) == 1, "what was found is remembered"


ERAS = {
    "a supported list of -32022 with our revision": (
        lambda asked: asked.error(-32022, 400, data={"supported": ["2027-01-01", MODERN]}),
        None,
    ),
    "-32022 with old revisions only": (
        lambda asked: asked.error(-32022, 400, data={"supported": ["2025-11-25"]}),
        LEGACY,
    ),
    "-32020": (lambda asked: asked.error(-32020, 400), None),
    "-32021": (lambda asked: asked.error(-32021, 400), None),
    "-32601": (lambda asked: asked.error(-32601), LEGACY),
    "-32600 as 400": (lambda asked: asked.error(-32600, 400, id=None), LEGACY),
    "400": (lambda _asked: web.Response(status=400), LEGACY),
    "404": (lambda _asked: web.Response(status=404), LEGACY),
    "406": (lambda _asked: web.Response(status=406), LEGACY),
    "an empty result": (lambda asked: asked.answer(result={}), LEGACY),
    "no answer": (lambda _asked: web.Response(status=202), LEGACY),
    "403": (lambda _asked: web.Response(status=403), None),
    "502": (lambda _asked: web.Response(status=502), None),
}


@pytest.mark.behaviour("GEN-C3")
@pytest.mark.parametrize("name", ERAS)
async def test_rule_18_over_http_only_modern_answers_are_modern(name: str) -> None:
    reply, revision = ERAS[name]

    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method == "server/discover":
            return reply(asked)
        return await legacy(asked) or asked.answer(result={})

    memory: dict[str, str] = {}
    async with website(handle) as site, upstream(http(site.url), memory=memory) as (one, ears):
        if revision is None:
            assert await ears.until("down")
            assert (site.of("initialize"), memory) == ([], {})
        else:
            assert (await one.ready(PATIENCE)).revision == revision


@pytest.mark.behaviour("GEN-C3")
async def test_rule_18_a_discover_answer_wins_over_a_failed_handshake() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method == "server/discover":
            return asked.discovered(supportedVersions=None)
        return asked.error(-32601, 404) if asked.method == "initialize" else asked.answer(result={"a": 1})

    async with website(handle) as site, upstream(http(site.url)) as (one, _ears):
        talk = await one.ready(PATIENCE)
        assert (talk.revision, await outcome(talk)) == (MODERN, {"a": 1})
        assert "io.modelcontextprotocol/protocolVersion" in site.of("tools/call")[0].body["params"]["_meta"]


async def test_what_a_restarted_modern_server_declares_is_looked_at_again() -> None:
    declared: list[Any] = [{"tools": {}}]

    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method == "server/discover":
            return asked.discovered(declared[-1])
        assert asked.request.transport is not None
        asked.request.transport.abort()
        return web.Response()

    async with website(handle) as site, upstream(http(site.url)) as (one, ears):
        talk = await one.ready(PATIENCE)
        declared.append({"tools": {}, "prompts": {}})
        assert (await outcome(talk)).cause is Cause.BROKEN
        await ears.until("up", times=2)
        assert talk.capabilities.has("prompts")


def test_every_legacy_revision_has_its_place_in_the_tables() -> None:
    from troth.gateway.upstream.conversation import BATCHES, RESUMES
    from troth.gateway.upstream.envelope import VERSION_HEADER
    from troth.register import Era

    assert set(register().eras[Era.LEGACY]) >= BATCHES | RESUMES | VERSION_HEADER


async def test_a_refusal_that_names_a_time_is_not_asked_again_before() -> None:
    async def handle(_asked: Asked) -> web.StreamResponse:
        return web.Response(status=429, headers={"Retry-After": "600"})

    limits = Limits(back_off=0.05, back_off_most=30.0, stop=0.5)
    async with website(handle) as site, upstream(http(site.url), limits) as (one, ears):
        assert "429" in await ears.until("down")
        with pytest.raises(UnavailableError, match=r"one is down: .*429"):
            await one.ready(3.0)
        assert len(site.asked) == 1


async def test_a_session_that_cannot_be_opened_anew_takes_the_upstream_down() -> None:
    gone: list[bool] = []

    async def handle(asked: Asked) -> web.StreamResponse:
        if gone and asked.verb == "POST":
            return web.Response(status=503 if asked.method in ("initialize", "server/discover") else 404)
        return await legacy(asked) or asked.answer(result={})

    async with website(handle) as site, upstream(http(site.url)) as (one, ears):
        talk = await one.ready(PATIENCE)
        gone.append(True)
        lost = await outcome(talk)
        assert (lost.cause, "503" in lost.words) == (Cause.DOWN, True)
        assert "503" in await ears.until("down")
        gone.clear()
        await ears.until("up", times=2)
        assert await outcome(await one.ready(PATIENCE)) == {}


async def test_a_request_that_is_cancelled_while_its_session_is_opened_anew_is_never_sent() -> None:
    opened: list[asyncio.Event] = []

    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method == "initialize":
            opened.append(asyncio.Event())
            if len(opened) == 2:
                await opened[0].wait()
            return asked.initialized(LEGACY, f"s{len(opened)}")
        if asked.headers.get("mcp-session-id") == "s1" and asked.method == "tools/call":
            return web.Response(status=404)
        return await legacy(asked) or asked.answer(result={"n": asked.body["params"]["name"]})

    async with website(handle) as site, upstream(http(site.url)) as (one, ears):
        talk = await one.ready(PATIENCE)
        gone, kept, late = Heard(), Heard(), Heard()
        number = talk.start(call("gone"), gone)
        talk.start(call("kept"), kept)
        # Both were refused and wait for the new session.
        await until(lambda: len(opened) == len(talk._held) == 2)
        talk.cancel(number, "no longer wanted")
        talk.start(call("late"), late)
        opened[0].set()
        assert (await kept.end(), await late.end()) == ({"n": "kept"}, {"n": "late"})
        await ears.until("up", times=2)
        names = [one.body["params"]["name"] for one in site.of("tools/call")]
        assert sorted(names) == ["gone", "kept", "kept", "late"]
        assert (gone.frames, gone.losses) == ([], [])


@pytest.mark.parametrize("address", ["ftp://127.0.0.1/mcp", "http://"])
async def test_an_address_that_is_none_is_told(address: str) -> None:
    async with upstream(http(address)) as (_one, ears):
        assert await ears.until("down")


async def test_a_fault_of_an_exchange_costs_nobody_else() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        return await modern(asked) or asked.answer(result={})

    class Broken(Heard):
        def answered(self, frame: Any) -> None:
            raise ZeroDivisionError

    async with website(handle) as site, upstream(http(site.url)) as (one, ears):
        talk = await one.ready(PATIENCE)
        talk.start(call("any"), Broken())
        assert await outcome(talk) == {}
        assert ears.count("down") == 0


@pytest.mark.behaviour("CAP-17-C1")
async def test_a_wish_is_not_made_at_a_server_that_promises_it_no_more() -> None:
    full = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
    declared: list[Any] = [full]

    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method == "server/discover":
            return asked.discovered(declared[-1])
        if asked.method == "subscriptions/listen":
            tag = {"io.modelcontextprotocol/subscriptionId": asked.body["id"]}
            params = {"_meta": tag, "notifications": asked.body["params"]["notifications"]}
            response = await events(asked, {"method": "notifications/subscriptions/acknowledged", "params": params})
            return await asyncio.sleep(PATIENCE, response)
        assert asked.request.transport is not None
        asked.request.transport.abort()
        return web.Response()

    async with website(handle) as site, upstream(http(site.url)) as (one, ears):
        talk = await one.ready(PATIENCE)
        await one.subscribe("a://1")
        filters = [one.body["params"]["notifications"] for one in site.of("subscriptions/listen")]
        assert filters[-1] == {"toolsListChanged": True, "resourceSubscriptions": ["a://1"]}
        declared.append({"tools": {"listChanged": True}, "resources": {}})
        assert (await outcome(talk)).cause is Cause.BROKEN
        await ears.until("up", times=2)
        await until(lambda: len(site.of("subscriptions/listen")) == len(filters) + 1)
        assert site.of("subscriptions/listen")[-1].body["params"]["notifications"] == {"toolsListChanged": True}
        with pytest.raises(UnavailableError, match="offers no subscriptions"):
            await one.subscribe("a://2")


@pytest.mark.parametrize(("code", "checks"), [(-32021, 0), (-32600, 1)])
async def test_what_only_a_modern_server_says_gives_no_reason_to_look_whether_it_is_one(code: int, checks: int) -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method == "tools/call":
            return asked.error(code, 400)
        return await modern(asked) or asked.answer(result={})

    async with website(handle) as site, upstream(http(site.url)) as (one, _ears):
        talk = await one.ready(PATIENCE)
        before = len(site.of("server/discover"))
        for _ in range(2):
            sink = Heard()
            talk.start(call("x"), sink)
            assert (await sink.end())["code"] == code
            await until(lambda: len(site.of("server/discover")) >= before + checks)
        await talk.ask(Outgoing(frame=ask("prompts/list", {})))
        assert (len(site.of("server/discover")) > before) == bool(checks)
