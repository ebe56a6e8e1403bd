"""No host receives what belongs to another one, whatever it declares, however upstreams are reached and shared."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from middle_gateway import MODERN, PATIENCE, Legacy, Modern, messages, server, serving
from middle_site import OLD, site, together

from troth.gateway.settings import Share

if TYPE_CHECKING:
    from middle_gateway import Served

pytestmark = pytest.mark.anyio

ALL = {"roots": {}, "sampling": {}, "elicitation": {"form": {}}}
UPSTREAMS = ("pipe-old", "pipe-new", "web-old", "web-new")
KINDS = ("roots", "sampling", "form")
HOSTS = 24


def reply(method: str, mark: str) -> dict[str, Any]:
    """An answer that nobody else gives."""
    return {
        "roots/list": {"roots": [{"uri": f"file:///{mark}"}]},
        "sampling/createMessage": {"role": "assistant", "content": {"type": "text", "text": mark}, "model": "m"},
        "elicitation/create": {"action": "accept", "content": {"name": mark}},
    }[method]


class One:
    """A host with a mark, and all that it heard."""

    def __init__(self, peer: Legacy | Modern, mark: str, asked: bool, chance: random.Random) -> None:
        self.peer, self.mark, self.asked, self.chance = peer, mark, asked, chance
        self.heard: list[str] = []
        self.given = 0

    async def run(self, tools: list[str]) -> None:
        for name in tools:
            await (self._old(name) if isinstance(self.peer, Legacy) else self._new(name))

    def _note(self, value: Any) -> None:
        self.heard.append(json.dumps(value))
        assert self.asked or "inputRequests" not in self.heard[-1], value

    async def _old(self, name: str) -> None:
        peer = self.peer
        number, token = next(peer.ids), f"{self.mark}-{name}"
        params = {"name": name, "arguments": {}, "_meta": {"progressToken": token}}
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        async with asyncio.timeout(3 * PATIENCE):
            async with peer.served.http.post(f"{peer.served.url}/mcp", json=message, headers=peer.base) as response:
                async for item in messages(response):
                    self._note(item)
                    if "method" not in item:
                        assert item["id"] == number
                        return
                    if item["method"] == "notifications/progress":
                        assert item["params"]["progressToken"] == token
                    if "id" in item:
                        assert self.asked, item
                        self.given += 1
                        await asyncio.sleep(self.chance.random() / 50)
                        answer = {"result": reply(item["method"], self.mark)}
                        if self.chance.random() < 0.2:
                            answer = {"error": {"code": -1, "message": f"no {self.mark}"}}
                        await peer.post({"jsonrpc": "2.0", "id": item["id"], **answer})
        raise AssertionError("no answer")

    async def _new(self, name: str) -> None:
        peer, params = self.peer, {"name": name, "arguments": {}}
        told = await peer.ask("tools/call", params, progressToken=f"{self.mark}-{name}")
        for _ in range(3):
            for item in (*told.before, told.answer):
                self._note(item)
            result = told.answer.get("result", {})
            if result.get("resultType") != "input_required":
                return
            assert self.asked
            self.given += 1
            await asyncio.sleep(self.chance.random() / 50)
            given = {key: reply(entry["method"], self.mark) for key, entry in result["inputRequests"].items()}
            more = {"inputResponses": given, "requestState": result["requestState"]}
            told = await peer.ask("tools/call", {**params, **more})


async def crowd(served: Served, stack: AsyncExitStack, seed: int) -> list[One]:
    """Hosts of four kinds, of two principals, that call everything at once."""
    chance = random.Random(seed)
    ones: list[One] = []
    for number in range(HOSTS):
        asked, token = number % 2 == 0, ("ann", "bob")[number // 4 % 2]
        given: dict[str, Any] = {"declares": ALL if asked else {}, "token": token}
        peer = await stack.enter_async_context(
            served.legacy(**given) if number % 4 < 2 else served.modern(**given, name=f"host-{number}")
        )
        ones.append(One(peer, f"mark{number:02}x", asked, chance))
    listed = (await ones[0].peer.ask("tools/list")).result["tools"]
    tools = [tool["name"] for tool in listed if tool["name"].endswith(tuple(f"ask_{kind}" for kind in KINDS))]
    assert len(tools) == len(UPSTREAMS) * len(KINDS), tools
    await together(one.run(chance.sample(tools, len(tools))) for one in ones)
    return ones


def leaks(ones: list[One]) -> list[str]:
    """Who heard what of whom."""
    return [
        f"{one.mark} heard {other.mark}"
        for one in ones
        for other in ones
        if other is not one and any(other.mark in text for text in one.heard)
    ]


@pytest.mark.behaviour("GEN-B10")
@pytest.mark.parametrize("broken", [False, True], ids=["sound", "broken"])
async def test_no_host_receives_what_is_another_hosts(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second case breaks the pool: any session's call takes an answer that is for another one."""
    async with AsyncExitStack() as stack:
        old, new = [await stack.enter_async_context(site(era, variant="asker")) for era in (OLD, MODERN)]
        ups = (
            server("pipe-old", "--variant", "asker", "--revision", OLD),
            server("pipe-new", "--variant", "asker", "--revision", MODERN),
            old.settings("web-old"),
            new.settings("web-new"),
        )
        if broken:
            from troth.gateway.asked import HostSession
            from troth.gateway.desk import CallDesk

            put, takers = HostSession.put, list[Any]()

            def mixed(self: Any, asker: Any, key: str) -> str:
                takers.append((asker, key))
                return put(self, *takers[-min(len(takers), 2)])

            monkeypatch.setattr(HostSession, "put", mixed)
            monkeypatch.setattr(CallDesk, "unask", lambda *_: None)
        served = await stack.enter_async_context(
            serving(*(replace(up, ask_timeout=0.3 if broken else 50.0) for up in ups), tokens=("ann", "bob"))
        )
        ones = await crowd(served, stack, 7)
        if broken:
            assert leaks(ones)
            return
        assert leaks(ones) == []
        assert all(one.given == len(UPSTREAMS) * len(KINDS) for one in ones if one.asked)
        assert all(any(one.mark in text for text in one.heard) for one in ones if one.asked)
        assert len(served.gateway.parking) == 0


@pytest.mark.behaviour("GEN-B10")
async def test_rule_2_a_pool_of_principals_hears_the_operators_roots_and_no_hosts() -> None:
    async with site(OLD, variant="asker") as one:
        shared = one.settings("one", share=Share.ALWAYS, roots=("file:///pool",))
        async with serving(shared, tokens=("ann",)) as served:
            async with served.legacy(declares=ALL, token="ann") as old:
                told = await old.call("ask_roots")
                assert [item for item in told.before if "id" in item] == []
                assert "file:///pool" in json.dumps(told.result)
            told = await served.modern(declares=ALL, token="ann").call("ask_roots")
            assert told.result["resultType"] == "complete"
            assert "file:///pool" in json.dumps(told.result)


async def test_a_host_is_not_asked_where_the_operator_does_not_let_it() -> None:
    one = server("one", "--variant", "asker", "--revision", OLD, ask=("broker",), roots=("file:///set",))
    async with serving(one) as served, served.legacy(declares=ALL) as old:
        told = await old.call("ask_roots")
        assert [item for item in told.before if "id" in item] == []
        assert "file:///set" in json.dumps(told.result)
