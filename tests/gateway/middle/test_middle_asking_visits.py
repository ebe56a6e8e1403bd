"""A host hears that a visit to an address is complete while its call runs."""

from __future__ import annotations

import asyncio

import pytest
from middle_gateway import MODERN, PATIENCE, messages, serving
from middle_site import OLD, site

pytestmark = pytest.mark.anyio

URL = {"elicitation": {"url": {}}}


async def test_the_host_of_a_call_hears_that_its_visit_is_complete() -> None:
    async with (
        site(OLD, variant="asker") as one,
        serving(one.settings("one")) as served,
        served.legacy(declares=URL) as peer,
        asyncio.timeout(PATIENCE),
    ):
        message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "ask_url"}}
        async with peer.served.http.post(f"{served.url}/mcp", json=message, headers=peer.base) as response:
            async for item in messages(response):
                if item.get("method") == "elicitation/create":
                    visit = {"elicitationId": item["params"]["elicitationId"]}
                    pending = [p for one_ in one.script.sessions.values() for p in one_.pending.values()]
                    for params in ({"elicitationId": "of nobody"}, visit):
                        told = ("notifications/elicitation/complete", params, pending[0].call.stream)
                        one.do(lambda script, told=told: script.notify(*told))
                    break
            async for item in messages(response):
                assert item["method"] == "notifications/elicitation/complete"
                assert item["params"] == visit
                break


async def test_the_host_hears_that_its_visit_is_complete_when_its_call_has_long_ended() -> None:
    async with (
        site(OLD, variant="asker") as one,
        serving(one.settings("one")) as served,
        served.legacy(declares=URL) as peer,
        served.legacy(declares=URL) as other,
        asyncio.timeout(PATIENCE),
    ):
        inbox, others = await peer.listen(), await other.listen()
        message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "ask_url"}}
        async with peer.served.http.post(f"{served.url}/mcp", json=message, headers=peer.base) as response:
            async for item in messages(response):
                if item.get("method") == "elicitation/create":
                    visit = {"elicitationId": item["params"]["elicitationId"]}
                    await peer.post({"jsonrpc": "2.0", "id": item["id"], "result": {"action": "accept"}})
                else:
                    assert "accept" in str(item["result"])
        await one.open()
        for params in ({"elicitationId": "of nobody"}, visit, visit):
            for session in one.script.sessions.values():
                one.do(lambda script, told=(params, session.push): script.notify(COMPLETE, *told))
        assert (await inbox.method(COMPLETE))["params"] == visit
        await peer.call("ask_url_of_nobody")
        assert inbox.methods().count(COMPLETE) == 1
        assert others.methods() == []


COMPLETE = "notifications/elicitation/complete"


@pytest.mark.behaviour("CAP-09-C1")
@pytest.mark.parametrize(("tokens", "visits"), [(("anna",), True), (("anna", "bert"), False)])
async def test_rule_4_a_server_that_takes_everybody_for_one_person_is_told_of_no_visits(
    tokens: tuple[str, ...], visits: bool
) -> None:
    async with (
        site(MODERN, variant="asker") as one,
        serving(one.settings("one"), tokens=tokens) as served,
        served.modern(token="anna", declares={"elicitation": {"form": {}, "url": {}}}) as peer,
    ):
        told = await peer.call("ask_url")
        assert ("result" in told.answer) is visits
        said = [*map(one.hears_in, one.of("tools/list")), *map(one.hears_in, one.of("tools/call"))]
        assert {"url" in declared["elicitation"] for declared in said} == {visits}
        assert all("form" in declared["elicitation"] for declared in said)


@pytest.mark.behaviour("CAP-09-C1")
async def test_rule_4_a_server_with_a_session_of_each_person_is_told_of_visits() -> None:
    async with (
        site(OLD, variant="asker") as one,
        serving(one.settings("one"), tokens=("anna", "bert")) as served,
        served.legacy(token="anna", declares=URL),
    ):
        assert (await one.hears("initialize"))["params"]["capabilities"] == URL
