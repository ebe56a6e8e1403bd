"""Questions of upstreams reach the host of the call and nobody else, in all four pairs of eras."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from middle_gateway import MODERN, PATIENCE, Legacy, messages, server, serving

if TYPE_CHECKING:
    from troth.gateway.settings import UpstreamSettings

pytestmark = pytest.mark.anyio

EVERYTHING = {"roots": {}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}}
OLD = ("--variant", "asker", "--revision", "2025-11-25")
NEW = ("--variant", "asker", "--revision", MODERN)
ANSWERS: dict[str, dict[str, Any]] = {
    "roots/list": {"roots": [{"uri": "file:///home", "name": "home"}]},
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": "four"},
        "model": "m",
        "stopReason": "endTurn",
    },
    "elicitation/create": {"action": "accept", "content": {"name": "Ada"}},
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def answering(peer: Legacy, name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Calls a tool as a legacy host that answers what it is asked on the stream of the call."""
    message = {"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {"name": name, "arguments": {}}}
    seen: list[dict[str, Any]] = []
    async with asyncio.timeout(PATIENCE):
        async with peer.served.http.post(f"{peer.served.url}/mcp", json=message, headers=peer.base) as response:
            async for item in messages(response):
                if "method" not in item:
                    return item, seen
                seen.append(item)
                if "id" in item:
                    answer = {"jsonrpc": "2.0", "id": item["id"], "result": ANSWERS[item["method"]]}
                    assert (await peer.post(answer)).status == 202
    raise AssertionError("no answer")


@pytest.mark.parametrize("upstream", [OLD, NEW], ids=["old", "new"])
@pytest.mark.parametrize("kind", ["roots", "sampling", "form"])
async def test_a_legacy_host_is_asked_on_the_stream_of_its_call(upstream: tuple[str, ...], kind: str) -> None:
    async with serving(server("one", *upstream)) as served, served.legacy(declares=EVERYTHING) as peer:
        answer, seen = await answering(peer, f"ask_{kind}")
        assert "result" in answer, answer
        assert [item["method"] for item in seen if "id" in item], seen


@pytest.mark.parametrize("upstream", [OLD, NEW], ids=["old", "new"])
@pytest.mark.parametrize("kind", ["roots", "sampling", "form"])
async def test_a_modern_host_is_asked_by_input_required(upstream: tuple[str, ...], kind: str) -> None:
    async with serving(server("one", *upstream)) as served, served.modern(declares=EVERYTHING) as peer:
        first = (await peer.call(f"ask_{kind}")).result
        assert first["resultType"] == "input_required", first
        responses = {key: ANSWERS[entry["method"]] for key, entry in first["inputRequests"].items()}
        retry = {
            "name": f"ask_{kind}",
            "arguments": {},
            "inputResponses": responses,
            "requestState": first["requestState"],
        }
        second = await peer.ask("tools/call", retry)
        assert second.result["resultType"] == "complete", second.answer
        third = await peer.ask("tools/call", retry)
        assert upstream == NEW or third.error["code"] == -32602


@pytest.mark.parametrize("upstream", [OLD, NEW], ids=["old", "new"])
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_a_host_may_fill_in_more_than_the_form_asks_for(
    upstream: tuple[str, ...], revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"action": "accept", "content": {"name": "Ada", "more": ["a", "b"]}}
    monkeypatch.setitem(ANSWERS, "elicitation/create", said)
    async with serving(server("one", *upstream)) as served:
        if revision == MODERN:
            async with served.modern(declares=EVERYTHING) as peer:
                first = (await peer.call("ask_form")).result
                again = {"name": "ask_form", "arguments": {}, "requestState": first["requestState"]}
                responses = dict.fromkeys(first["inputRequests"], said)
                told = (await peer.ask("tools/call", {**again, "inputResponses": responses})).answer
        else:
            async with served.legacy(declares=EVERYTHING) as peer:
                told, _ = await answering(peer, "ask_form")
        text = told["result"]["content"][0]["text"]
        assert json.loads(text[text.index("{") :])["content"] == said["content"]


async def test_what_is_no_answer_ends_its_question_in_a_batch_too() -> None:
    upstream = server("one", *OLD, ask_timeout=10 * PATIENCE)
    async with serving(upstream) as served, served.legacy("2025-03-26", declares={"sampling": {}}) as peer:
        url, params = f"{served.url}/mcp", {"name": "ask_sampling", "arguments": {}}
        call = {"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": params}
        async with asyncio.timeout(PATIENCE), served.http.post(url, json=call, headers=peer.base) as response:
            coming = messages(response)
            question = await anext(coming)
            spoiled = [{"jsonrpc": "2.0", "id": question["id"], "result": 5}]
            async with served.http.post(url, json=spoiled, headers=peer.base) as told:
                assert told.status == 202
            assert "-32603" in (await anext(coming))["result"]["content"][0]["text"]


SPOILED: list[dict[str, Any]] = [
    *({"result": 5}, {"result": None}, {"error": "x"}, {"error": {}}, {}, {"result": {}, "error": {}}),
    {"jsonrpc": "1.0", "result": ANSWERS["elicitation/create"]},
]
"""What is no answer, though it names the question."""


@pytest.mark.parametrize("upstream", [OLD, NEW], ids=["old", "new"])
@pytest.mark.parametrize("spoiled", SPOILED)
async def test_what_is_no_answer_ends_its_question_at_once(upstream: tuple[str, ...], spoiled: dict[str, Any]) -> None:
    # Nothing here may end by the time that a question has.
    async with serving(server("one", *upstream, ask_timeout=10 * PATIENCE)) as served:
        async with served.legacy(declares=EVERYTHING) as peer:
            url, params = f"{served.url}/mcp", {"name": "ask_form", "arguments": {}}
            call = {"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": params}
            async with asyncio.timeout(PATIENCE), served.http.post(url, json=call, headers=peer.base) as response:
                coming = messages(response)
                question = await anext(coming)
                told = await peer.post({"jsonrpc": "2.0", "id": question["id"], **spoiled})
                assert told.status in (200, 202, 400)
                end = await anext(coming)
        if upstream == NEW:
            assert end["error"]["code"] == -32603
            assert "no answer" in end["error"]["message"]
        else:
            assert "-32603" in end["result"]["content"][0]["text"]


@pytest.mark.parametrize("upstream", [OLD, NEW], ids=["old", "new"])
async def test_a_host_that_declares_nothing_is_asked_nothing(upstream: tuple[str, ...]) -> None:
    async with serving(server("one", *upstream)) as served, served.legacy() as old, served.modern() as new:
        for peer in (old, new):
            told = await peer.call("ask_form")
            assert told.before == []
            assert "error" in told.answer or told.result.get("isError"), told.answer


async def test_rule_2_a_host_that_went_away_keeps_nobody_from_asking_on_a_pipe() -> None:
    limit = 3
    async with serving(server("one", *OLD, max_sessions=limit)) as served, served.modern(declares=EVERYTHING) as peer:
        for _ in range(limit):
            assert (await peer.call("ask_form")).result["resultType"] == "input_required"
        fleet = next(fleet for fleet in served.gateway.every_fleet() if fleet.members[0].asks)
        assert len(fleet.members[0].more) == limit - 1


@pytest.mark.behaviour("GEN-S9")
async def test_the_answer_to_a_call_becomes_a_stream_when_its_question_comes() -> None:
    async with serving(server("one", *OLD)) as served, served.legacy(declares=EVERYTHING) as peer:
        unknown = await peer.call("no_such_tool")
        assert unknown.headers["Content-Type"] == "application/json"
        url, call = f"{served.url}/mcp", {"jsonrpc": "2.0", "id": 77, "method": "tools/call"}
        message = {**call, "params": {"name": "ask_form", "arguments": {}}}
        async with asyncio.timeout(PATIENCE), served.http.post(url, json=message, headers=peer.base) as response:
            assert response.content_type == "text/event-stream"
            coming = messages(response)
            question = await anext(coming)
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": ANSWERS["elicitation/create"]}
            async with served.legacy(declares=EVERYTHING) as stranger:
                await stranger.post({**answer, "result": {"action": "accept", "content": {"name": "Eve"}}})
            assert (await peer.post(answer)).status == 202
            told = json.dumps(await anext(coming))
            assert "Ada" in told
            assert "Eve" not in told
        alone = {name: value for name, value in peer.base.items() if name != "mcp-session-id"}
        async with served.http.post(url, json=message, headers=alone) as response:
            assert response.status == 400
            assert "no session" in await response.text()


@pytest.mark.behaviour("GEN-S2")
async def test_a_modern_host_is_told_what_it_lacks_unless_somebody_else_answers() -> None:
    def named(**more: Any) -> UpstreamSettings:
        return server("one", *NEW, **more)

    async with serving(named()) as served, served.modern(declares={"sampling": {}}) as peer:
        for kind, lacking in [("roots", {"roots": {}}), ("form", {"elicitation": {}})]:
            told = await peer.call(f"ask_{kind}")
            assert told.status == 400
            assert told.error["code"] == -32021
            required = told.error["data"]["requiredCapabilities"]
            assert list(required) == list(lacking)
        assert (await peer.call("ask_sampling")).result["resultType"] == "input_required"
    async with serving(named(roots=("file:///set",))) as served, served.modern(declares={"sampling": {}}) as peer:
        assert "file:///set" in json.dumps((await peer.call("ask_roots")).result)


@pytest.mark.behaviour("CAP-07-B1")
@pytest.mark.parametrize("upstream", [OLD, NEW], ids=["old", "new"])
async def test_the_time_of_a_call_stands_still_while_its_host_thinks(upstream: tuple[str, ...]) -> None:
    limit = 3.0
    settings = server("one", *upstream, call_timeout=limit)
    async with serving(settings) as served, served.legacy(declares=EVERYTHING) as peer, served.modern() as new:
        new.declares = EVERYTHING
        message = {"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {"name": "ask_form", "arguments": {}}}
        async with asyncio.timeout(PATIENCE):
            async with served.http.post(f"{served.url}/mcp", json=message, headers=peer.base) as response:
                coming = messages(response)
                question = await anext(coming)
                asked = (await new.call("ask_form")).result
                await asyncio.sleep(limit + 1.0)
                await peer.post({"jsonrpc": "2.0", "id": question["id"], "result": ANSWERS["elicitation/create"]})
                assert "Ada" in json.dumps(await anext(coming))
        responses = dict.fromkeys(asked["inputRequests"], ANSWERS["elicitation/create"])
        again = {"name": "ask_form", "arguments": {}, "inputResponses": responses}
        told = await new.ask("tools/call", {**again, "requestState": asked["requestState"]})
        assert "Ada" in json.dumps(told.result)
