"""Calls that may be asked: whose a question is on a pipe, how long it takes, and what is left when a host goes."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest
from middle_gateway import MODERN, PATIENCE, Legacy, Limits, Modern, Served, messages, server, serving
from middle_site import OLD, Site, site, together, until

pytestmark = pytest.mark.anyio

FORM = {"elicitation": {"form": {}}, "roots": {}}
ASKER = ("--variant", "asker", "--revision", "2025-11-25")
QUICK = Limits(coalesce=0.01, back_off=0.05, stop=10.0)


def form(name: str) -> dict[str, Any]:
    return {"action": "accept", "content": {"name": name}}


async def legacy_form(peer: Legacy, name: str, pause: float = 0.0) -> dict[str, Any]:
    """Calls `ask_form`, answers its question with a name and returns the answer."""
    message = {"jsonrpc": "2.0", "id": next(peer.ids), "method": "tools/call", "params": {"name": "ask_form"}}
    async with asyncio.timeout(PATIENCE):
        async with peer.served.http.post(f"{peer.served.url}/mcp", json=message, headers=peer.base) as response:
            async for item in messages(response):
                if "method" not in item:
                    return item
                if "id" in item:
                    await asyncio.sleep(pause)
                    await peer.post({"jsonrpc": "2.0", "id": item["id"], "result": form(name)})
    raise AssertionError("no answer")


async def modern_form(peer: Modern, name: str, pause: float = 0.0) -> dict[str, Any]:
    told = await peer.call("ask_form")
    while told.answer.get("result", {}).get("resultType") == "input_required":
        first = told.result
        await asyncio.sleep(pause)
        given = {key: form(name) for key in first["inputRequests"]}
        told = await peer.ask("tools/call", again(first, given))
    return told.answer


def again(first: dict[str, Any], given: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    state = {"requestState": first["requestState"]}
    return {"name": "ask_form", "arguments": arguments, "inputResponses": given, **state}


def words(answer: dict[str, Any]) -> str:
    assert "result" in answer, answer
    return answer["result"]["content"][0]["text"]


async def parked(peer: Modern) -> dict[str, Any]:
    first = (await peer.call("ask_form")).result
    assert first["resultType"] == "input_required", first
    return first


def left(served: Served) -> int:
    return len(served.gateway.parking)


@pytest.mark.behaviour("GEN-B8")
async def test_rule_2_calls_that_may_be_asked_take_turns_on_a_pipe() -> None:
    async with (
        serving(server("one", *ASKER, max_sessions=1), limits=QUICK) as served,
        served.legacy(declares=FORM) as peer,
    ):
        names = [f"n{number}-" for number in range(12)]
        answers = await together(legacy_form(peer, name) for name in names)
        for name, answer in zip(names, answers, strict=True):
            assert [other for other in names if other in words(answer)] == [name]


async def test_rule_2_a_call_waits_for_its_turn_no_longer_than_the_limit() -> None:
    limits = replace(QUICK, turn=0.1)
    async with (
        serving(server("one", *ASKER, max_sessions=1), limits=limits) as served,
        served.modern(declares=FORM) as peer,
    ):
        first = await parked(peer)
        late = await peer.call("ask_form")
        assert "limit: turn)" in late.error["message"]
        assert "may have had effects" not in late.error["message"]
        told = await peer.ask("tools/call", again(first, {key: form("Ada") for key in first["inputRequests"]}))
        assert "Ada" in words(told.answer)
        assert (await parked(peer))["requestState"] != first["requestState"]


async def test_rule_2_no_more_calls_wait_for_a_pipe_than_the_limit() -> None:
    limits = replace(QUICK, turns=1)
    async with (
        serving(server("one", *ASKER, max_sessions=1), limits=limits) as served,
        served.modern(declares=FORM) as peer,
    ):
        first = await parked(peer)
        waits = asyncio.get_running_loop().create_task(modern_form(peer, "Bob"))
        talk: Any = next(m.conversation for f in served.gateway.every_fleet() for m in f.members if m.asks)
        await until(lambda: talk._turns.queue)
        assert "limit: turns)" in (await peer.call("ask_form")).error["message"]
        await peer.ask("tools/call", again(first, {key: form("Ada") for key in first["inputRequests"]}))
        assert "Bob" in words(await waits)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_time_of_a_call_does_not_run_while_its_host_thinks(era: str) -> None:
    one = server("one", *ASKER, max_sessions=1, call_timeout=3.0)
    async with serving(one, limits=QUICK) as served:
        if era == "legacy":
            async with served.legacy(declares=FORM) as old:
                assert "Ada" in words(await legacy_form(old, "Ada", pause=4.0))
        else:
            async with served.modern(declares=FORM) as new:
                assert "Ada" in words(await modern_form(new, "Ada", pause=4.0))


async def test_rule_7_a_host_that_never_comes_again_leaves_nothing() -> None:
    limits = replace(QUICK, parked_time=2.0)
    async with site(OLD, variant="asker") as one, serving(one.settings("one"), limits=limits) as served:
        await parked(served.modern(declares=FORM))
        assert left(served) == 1
        call = served.gateway.parking.all()[0].call
        await one.hears("notifications/cancelled")
        await until(lambda: left(served) == 0)
        assert all(timer.cancelled() for timer in call._timers.values())


@pytest.mark.behaviour("GEN-S8")
@pytest.mark.parametrize("upstream", [OLD, MODERN])
async def test_rule_4_a_state_that_is_not_of_this_request_says_why(upstream: str) -> None:
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(site(upstream, variant="asker"))
        configured = serving(one.settings("one"), limits=QUICK, tokens=("ann", "bob"))
        async with configured as served:
            ann, bob = served.modern(declares=FORM, token="ann"), served.modern(declares=FORM, token="bob")
            first = await parked(ann)
            given = {key: form("Ada") for key in first["inputRequests"]}
            foreign = await bob.ask("tools/call", again(first, given))
            other = await ann.ask("tools/call", again(first, given, more=1))
            bent = {**first, "requestState": first["requestState"][:-3] + "AAA"}
            tampered = await ann.ask("tools/call", again(bent, given))
            said = [told.error["message"] for told in (foreign, other, tampered)]
            assert [told.error["code"] for told in (foreign, other, tampered)] == [-32602] * 3
            assert len(set(said)) == 3, said
            assert not any("Ada" in json.dumps(message) for message in one.heard)
            assert "Ada" in words((await ann.ask("tools/call", again(first, given))).answer)
            assert left(served) == 0


async def test_rule_7_of_two_retries_one_wins() -> None:
    async with site(OLD, variant="asker") as one, serving(one.settings("one"), limits=QUICK) as served:
        peer = served.modern(declares=FORM)
        first = await parked(peer)
        retries = [again(first, {key: form(f"n{number}") for key in first["inputRequests"]}) for number in range(6)]
        told = await together(peer.ask("tools/call", retry) for retry in retries)
        assert sum("result" in each.answer for each in told) == 1
        assert all("already used" in each.error["message"] for each in told if "error" in each.answer)
        assert left(served) == 0


@pytest.mark.parametrize("name", ["parked", "principal_parked", "upstream_parked"])
async def test_rule_7_each_cap_of_parked_calls_is_named_and_the_upstream_hears_of_it(name: str) -> None:
    limits = replace(QUICK, **{name: 1})
    async with site(OLD, variant="asker") as one, serving(one.settings("one"), limits=limits) as served:
        peer = served.modern(declares=FORM)
        await parked(peer)
        assert f"limit: {name})" in (await peer.call("ask_form")).error["message"]
        await one.hears("notifications/cancelled")
        assert left(served) == 1


async def test_a_parked_call_hears_that_its_upstream_died() -> None:
    async with site(OLD, variant="asker") as one, serving(one.settings("one"), limits=QUICK) as served:
        peer = served.modern(declares=FORM)
        first = await parked(peer)
        await one.stop()
        call: Any = served.gateway.parking.all()[0].call
        await until(lambda: call._exchange.talk.kept is not None)
        retry = await peer.ask("tools/call", again(first, {key: form("Ada") for key in first["inputRequests"]}))
        assert retry.error["code"] == -32603
        assert "may have had effects" in retry.error["message"]
        assert left(served) == 0
        await one.start()


async def test_a_gateway_that_stops_leaves_no_parked_call() -> None:
    async with site(OLD, variant="asker") as one:
        async with serving(one.settings("one"), limits=QUICK) as served:
            await parked(served.modern(declares=FORM))
            call: Any = served.gateway.parking.all()[0].call
        assert left(served) == 0
        assert all(timer.cancelled() for timer in call._timers.values())


async def test_rule_7_a_retry_that_goes_away_cancels_its_call() -> None:
    one: Site
    async with site(OLD, variant="asker") as one, serving(one.settings("one"), limits=QUICK) as served:
        peer = served.modern(declares=FORM)
        first = await parked(peer)
        call: Any = served.gateway.parking.all()[0].call
        # The second answer of this upstream never comes.
        one.script.feed, feed = _deaf(one.script.feed), one.script.feed
        retry = again(first, {key: form("Ada") for key in first["inputRequests"]})
        task = asyncio.get_running_loop().create_task(peer.ask("tools/call", retry))
        await until(lambda: call._exchange.state == "open")
        task.cancel()
        await one.hears("notifications/cancelled")
        one.script.feed = feed  # type: ignore[method-assign]
        await until(lambda: left(served) == 0)
        assert call._exchange.done


def _deaf(feed: Any) -> Any:
    def heard(value: Any, context: Any) -> Any:
        return feed({**value, "id": "nobody"} if isinstance(value, dict) and "result" in value else value, context)

    return heard
