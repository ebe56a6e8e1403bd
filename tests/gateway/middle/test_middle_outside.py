"""Questions of servers outside of calls: who is asked, who is waited for, and what becomes of one taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from middle_gateway import Legacy, Served, serving
from middle_site import MODERN, OLD, Site, site, until

from troth.gateway.limits import Limits

if TYPE_CHECKING:
    from troth.testing.script import Script

pytestmark = pytest.mark.anyio

ROOTS = {"roots": {}}
MINE = {"roots": [{"uri": "file:///mine"}]}


def say(one: Site, method: str, **more: Any) -> None:
    """The server says something on the stream of its session."""

    def act(script: Script) -> None:
        for session in script.sessions.values():
            script.send({"jsonrpc": "2.0", "method": method, **more}, session.push)

    one.do(act)


def answer(one: Site, number: int) -> dict[str, Any] | None:
    return next((found for found in one.heard if found.get("id") == number and "method" not in found), None)


async def opened(served: Served, one: Site, **given: Any) -> Legacy:
    """A host that did not yet say that it is ready, in front of a server that is."""
    peer = served.legacy(declares=ROOTS, **given)
    params = {"protocolVersion": OLD, "capabilities": ROOTS, "clientInfo": peer.info}
    told = await peer.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
    peer.base |= {"mcp-session-id": told.headers["mcp-session-id"], "mcp-protocol-version": OLD}
    await one.hears("notifications/initialized")
    await served.ready()
    return peer


async def reply(peer: Legacy, asked: dict[str, Any]) -> None:
    await peer.post({"jsonrpc": "2.0", "id": asked["id"], "result": MINE})


async def test_rule_5_roots_that_are_asked_for_before_the_host_is_ready_wait_for_it() -> None:
    async with site(OLD) as one, serving(one.settings("one", roots=("file:///set",)), eager=False) as served:
        peer = await opened(served, one)
        say(one, "roots/list", id=7)
        (fleet,) = served.gateway.every_fleet()
        await until(lambda: fleet.outside.early)
        assert answer(one, 7) is None
        await peer.notify("notifications/initialized")
        inbox = await peer.listen()
        await reply(peer, await inbox.method("roots/list"))
        await one.until(lambda: answer(one, 7))
        assert (answer(one, 7) or {})["result"] == MINE
        say(one, "roots/list", id=8)
        await reply(peer, await inbox.until(lambda message: message.get("method") == "roots/list", 1))
        await one.until(lambda: answer(one, 8))
        assert fleet.outside.idle
        await peer.close()


@pytest.mark.behaviour("CAP-02-C2")
@pytest.mark.parametrize("roots", [None, ("file:///set",)])
async def test_rule_5_roots_that_no_host_comes_for_are_those_that_are_configured_or_refused(
    roots: tuple[str, ...] | None,
) -> None:
    limits = Limits(early=0.05, stop=0.1)
    async with (
        site(OLD) as one,
        serving(one.settings("one", roots=roots), eager=False, limits=limits) as served,
    ):
        peer = await opened(served, one)
        say(one, "roots/list", id=7)
        found = await one.until(lambda: answer(one, 7))
        if roots is None:
            assert found["error"]["code"] == -32601
        else:
            assert found["result"] == {"roots": [{"uri": "file:///set"}]}
        await peer.close()


async def test_a_question_that_is_taken_back_is_taken_back_from_the_host() -> None:
    async with site(OLD) as one, serving(one.settings("one"), eager=False) as served:
        peer = await opened(served, one)
        (fleet,) = served.gateway.every_fleet()
        # One that is taken back before anybody was asked is asked of nobody.
        say(one, "roots/list", id=6)
        await until(lambda: fleet.outside.early)
        say(one, "notifications/cancelled", params={"requestId": 6})
        await until(lambda: not fleet.outside.early)
        await peer.notify("notifications/initialized")
        inbox = await peer.listen()
        say(one, "roots/list", id=7)
        asked = await inbox.method("roots/list")
        say(one, "notifications/cancelled", params={"requestId": 7})
        told = await inbox.method("notifications/cancelled")
        assert told["params"]["requestId"] == asked["id"]
        assert inbox.methods().count("roots/list") == 1
        await reply(peer, asked)
        say(one, "roots/list", id=8)
        await reply(peer, await inbox.until(lambda message: message.get("id") not in (None, asked["id"])))
        await one.until(lambda: answer(one, 8))
        assert answer(one, 6) is None
        assert answer(one, 7) is None
        await peer.close()


CHANGED = "notifications/roots/list_changed"


@pytest.mark.behaviour("CAP-02-S1", "CAP-03-S1")
async def test_a_host_says_that_its_roots_are_others_to_servers_that_were_told_it_would() -> None:
    says = {"roots": {"listChanged": True}}
    async with (
        site(OLD) as one,
        serving(one.settings("one"), eager=False) as served,
        served.legacy(declares=ROOTS) as quiet,
        served.legacy(declares=says) as peer,
    ):
        inbox = await peer.listen()
        for each in (quiet, peer):
            await each.ask("tools/call", {"name": "log"})
        told = [message["params"]["capabilities"] for message in one.of("initialize")]
        assert sorted(map(str, told)) == sorted(map(str, [ROOTS, says]))
        modern = served.modern(declares=says)
        message = {"jsonrpc": "2.0", "method": CHANGED}
        ignored = await modern.post(message, {"mcp-protocol-version": MODERN, "mcp-method": CHANGED})
        assert ignored.answer == {}
        await quiet.notify(CHANGED)
        await peer.notify(CHANGED)
        await peer.notify(CHANGED)
        await one.hears(CHANGED)
        # What was told before is not told again: the host is asked each time.
        for number in (7, 8):
            before = len(inbox.all)
            one.do(lambda script, number=number: ask(script, says, number))
            asked = await inbox.method("roots/list", before)
            await reply(peer, asked)
            found = await one.until(lambda number=number: answer(one, number))
            assert found["result"] == MINE
        assert one.count(CHANGED) == 1


def ask(script: Script, declared: dict[str, Any], number: int) -> None:
    """Asks the session with this declaration for roots."""
    for session in script.sessions.values():
        if session.capabilities == declared:
            script.send({"jsonrpc": "2.0", "method": "roots/list", "id": number}, session.push)
