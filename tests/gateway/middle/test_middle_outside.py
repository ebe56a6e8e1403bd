"""Questions of servers outside of calls: who is asked, who is waited for, and what becomes of one taken back."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from middle_gateway import CALM, PATIENCE, Legacy, Served, Told, serving
from middle_site import MODERN, OLD, Site, site, until

from troth.gateway import member, outside
from troth.gateway.limits import Limits
from troth.gateway.settings import Transport, UpstreamSettings

if TYPE_CHECKING:
    from pathlib import Path

    from troth.gateway.fleet import Fleet
    from troth.testing.script import Script

pytestmark = pytest.mark.anyio

ROOTS = {"roots": {}}
MINE = {"roots": [{"uri": "file:///mine"}]}


async def say(one: Site, method: str, **more: Any) -> None:
    """The server says something on the stream of its session."""
    await one.open()

    def act(script: Script) -> None:
        for session in script.sessions.values():
            script.send({"jsonrpc": "2.0", "method": method, **more}, session.push)

    one.do(act)


async def early(one: Site, served: Served) -> Fleet:
    """The server asks for roots outside of calls, which wait for a host: question 7."""
    (fleet,) = served.gateway.every_fleet()
    await say(one, "roots/list", id=7)
    await until(lambda: fleet.outside.early)
    return fleet


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
        fleet = await early(one, served)
        assert answer(one, 7) is None
        await peer.notify("notifications/initialized")
        inbox = await peer.listen()
        await reply(peer, await inbox.method("roots/list"))
        await one.until(lambda: answer(one, 7))
        assert (answer(one, 7) or {})["result"] == MINE
        await say(one, "roots/list", id=8)
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
        await say(one, "roots/list", id=7)
        found = await one.until(lambda: answer(one, 7))
        if roots is None:
            assert found["error"]["code"] == -32601
        else:
            assert found["result"] == {"roots": [{"uri": "file:///set"}]}
        await peer.close()


@pytest.mark.parametrize("roots", [None, ("file:///set",)])
async def test_rule_5_a_host_that_opens_no_stream_is_not_waited_for(roots: tuple[str, ...] | None) -> None:
    limits = Limits(early=0.05, stop=0.1)
    configured = site(OLD)
    async with configured as one, serving(one.settings("one", roots=roots), eager=False, limits=limits) as served:
        peer = await opened(served, one)
        await peer.notify("notifications/initialized")
        await say(one, "roots/list", id=7)
        found = await one.until(lambda: answer(one, 7))
        assert found.get("result") == (None if roots is None else {"roots": [{"uri": "file:///set"}]})
        # What it was to be asked is taken back before it opens one.
        inbox = await peer.listen()
        asked = await inbox.method("roots/list")
        assert (await inbox.method("notifications/cancelled"))["params"]["requestId"] == asked["id"]
        (fleet,) = served.gateway.every_fleet()
        assert fleet.outside.idle
        await peer.close()


async def test_a_question_that_is_taken_back_is_taken_back_from_the_host() -> None:
    async with site(OLD) as one, serving(one.settings("one"), eager=False) as served:
        peer = await opened(served, one)
        (fleet,) = served.gateway.every_fleet()
        # One that is taken back before anybody was asked is asked of nobody.
        await say(one, "roots/list", id=6)
        await until(lambda: fleet.outside.early)
        await say(one, "notifications/cancelled", params={"requestId": 6})
        await until(lambda: not fleet.outside.early)
        await peer.notify("notifications/initialized")
        inbox = await peer.listen()
        await say(one, "roots/list", id=7)
        asked = await inbox.method("roots/list")
        await say(one, "notifications/cancelled", params={"requestId": 7})
        told = await inbox.method("notifications/cancelled")
        assert told["params"]["requestId"] == asked["id"]
        assert inbox.methods().count("roots/list") == 1
        await reply(peer, asked)
        await say(one, "roots/list", id=8)
        await reply(peer, await inbox.until(lambda message: message.get("id") not in (None, asked["id"])))
        await one.until(lambda: answer(one, 8))
        assert answer(one, 6) is None
        assert answer(one, 7) is None
        await peer.close()


CHANGED = "notifications/roots/list_changed"


@pytest.mark.behaviour("CAP-02-S1", "CAP-03-S1")
async def test_a_host_says_that_its_roots_are_others_to_servers_that_were_told_it_would() -> None:
    says = {"roots": {"listChanged": True}}
    # Two changes are one where they come together.
    limits = replace(CALM, coalesce=2.0)
    async with (
        site(OLD) as one,
        serving(one.settings("one"), eager=False, limits=limits) as served,
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
            await one.open()
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


def again(first: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "log", "arguments": {}, "requestState": first["requestState"], **more}


@pytest.mark.behaviour("CAP-02-S1")
async def test_rule_5_the_next_call_of_a_modern_host_carries_roots_that_were_asked_for_outside_of_calls() -> None:
    async with site(OLD) as one, serving(one.settings("one"), eager=False) as served:
        peer = served.modern(declares={"roots": {"listChanged": True}})
        await peer.ask("tools/list")
        (fleet,) = served.gateway.every_fleet()
        assert (await one.hears("initialize"))["params"]["capabilities"] == ROOTS
        await say(one, "roots/list", id=7)
        await until(lambda: fleet.outside.early)
        first = (await peer.call("log")).result
        assert first["inputRequests"] == {"q1": {"method": "roots/list"}}
        # The call may depend on them: it is sent when they are there.
        assert (one.count("tools/call"), answer(one, 7)) == (0, None)
        assert "content" in (await peer.ask("tools/call", again(first, inputResponses={"q1": MINE}))).result
        assert (answer(one, 7) or {})["result"] == MINE
        # They are kept for this session of the server, and for no other.
        await say(one, "roots/list", id=8)
        found = await one.until(lambda: answer(one, 8))
        assert found["result"] == MINE
        assert fleet.outside.idle
        await one.stop()
        await one.start()
        await one.hears("initialize", 2)
        await served.ready()
        await one.until(lambda: one.script.sessions)
        await say(one, "roots/list", id=9)
        await until(lambda: fleet.outside.early)
        assert answer(one, 9) is None
        await peer.close()


async def test_rule_5_what_a_host_answers_to_other_questions_is_not_kept_for_its_roots() -> None:
    declares = {"roots": {}, "elicitation": {"form": {}}}
    async with site(OLD, variant="asker") as one, serving(one.settings("one"), eager=False) as served:
        peer = served.modern(declares=declares)
        await peer.ask("tools/list")
        first = (await peer.call("ask_form")).result
        given = {"action": "accept", "content": {"name": "Ada"}, **MINE}
        params = {"name": "ask_form", "arguments": {}, "requestState": first["requestState"]}
        told = await peer.ask("tools/call", {**params, "inputResponses": {"q1": given}})
        assert "Ada" in told.result["content"][0]["text"]
        await early(one, served)
        assert answer(one, 7) is None


async def test_rule_5_a_host_is_not_asked_what_a_lost_session_of_a_server_wanted_to_know() -> None:
    async with site(OLD) as one, serving(one.settings("one"), eager=False) as served:
        await served.modern(declares=ROOTS).ask("tools/list")
        fleet = await early(one, served)
        await one.stop()
        await one.start()
        await one.hears("initialize", 2)
        await served.ready()
        await one.until(lambda: one.script.sessions)
        await say(one, "roots/list", id=8)
        await until(lambda: fleet.outside.early == 2)
        async with served.legacy(declares=ROOTS) as peer:
            inbox = await peer.listen()
            await reply(peer, await inbox.method("roots/list"))
            assert (await one.until(lambda: answer(one, 8)))["result"] == MINE
            assert (inbox.methods().count("roots/list"), fleet.outside.idle) == (1, True)


async def test_rule_5_roots_that_are_taken_back_hold_no_call_back() -> None:
    async with site(OLD) as one, serving(one.settings("one"), eager=False) as served:
        peer = served.modern(declares=ROOTS)
        await peer.ask("tools/list")
        fleet = await early(one, served)
        first = (await peer.call("log")).result
        await say(one, "notifications/cancelled", params={"requestId": 7})
        await until(lambda: fleet.outside.idle)
        assert "content" in (await peer.ask("tools/call", again(first))).result
        assert answer(one, 7) is None


@pytest.mark.parametrize("roots", [None, ("file:///set",)])
async def test_rule_5_roots_wait_for_a_modern_host_no_longer_than_their_limit(roots: tuple[str, ...] | None) -> None:
    limits = Limits(roots=0.05, stop=0.1)
    async with site(OLD) as one, serving(one.settings("one", roots=roots), eager=False, limits=limits) as served:
        await served.modern(declares=ROOTS).ask("tools/list")
        await say(one, "roots/list", id=7)
        found = await one.until(lambda: answer(one, 7))
        if roots is None:
            assert found["error"]["code"] == -32601
        else:
            assert found["result"] == {"roots": [{"uri": "file:///set"}]}


async def test_rule_5_roots_that_no_modern_host_can_tell_are_not_waited_for() -> None:
    async with site(OLD) as one, serving(one.settings("one"), eager=False) as served:
        await served.modern().ask("tools/list")
        await say(one, "roots/list", id=7)
        assert (await one.until(lambda: answer(one, 7)))["error"]["code"] == -32601
        (fleet,) = served.gateway.every_fleet()
        assert fleet.outside.idle


async def test_rule_5_roots_wait_longer_for_a_call_than_for_a_host_that_is_about_to_be_ready() -> None:
    limits = Limits(early=0.0, stop=0.1)
    async with site(OLD) as one, serving(one.settings("one"), eager=False, limits=limits) as served:
        await served.modern(declares=ROOTS).ask("tools/list")
        await early(one, served)
        assert answer(one, 7) is None


async def test_a_server_that_asks_for_roots_without_end_is_refused_at_a_limit() -> None:
    async with site(OLD) as one, serving(one.settings("one"), eager=False) as served:
        await served.modern(declares=ROOTS).ask("tools/list")
        for number in range(outside.EARLY + 1):
            await say(one, "roots/list", id=number)
        refused = await one.until(lambda: next((item for item in one.heard if "error" in item), None))
        assert (refused["id"], refused["error"]["code"]) == (outside.EARLY, -32601)
        (fleet,) = served.gateway.every_fleet()
        assert fleet.outside.early == outside.EARLY


async def test_rule_5_what_a_modern_host_told_is_not_said_of_legacy_hosts() -> None:
    async with site(OLD) as one, serving(one.settings("one"), eager=False) as served:
        peer = served.modern(declares=ROOTS)
        await peer.ask("tools/list")
        fleet = await early(one, served)
        first = (await peer.call("log")).result
        await peer.ask("tools/call", again(first, inputResponses={"q1": MINE}))
        async with served.legacy(declares=ROOTS), served.legacy(declares=ROOTS):
            await until(lambda: sum(one.opened for one in fleet.audiences) == 2)
            await say(one, "roots/list", id=8)
            # Nothing tells which of the two it means.
            assert (await one.until(lambda: answer(one, 8)))["error"]["code"] == -32601


async def test_a_question_that_is_asked_twice_under_one_id_waits_once() -> None:
    async with site(OLD) as one, serving(one.settings("one"), eager=False) as served:
        await served.modern(declares=ROOTS).ask("tools/list")
        (fleet,) = served.gateway.every_fleet()
        await say(one, "roots/list", id=7)
        await say(one, "roots/list", id=7)
        assert (await one.until(lambda: answer(one, 7)))["error"]["code"] == -32601
        assert fleet.outside.early == 1


ASKS_AT_ONCE = """
import json, sys
def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
tool = {"name": "where", "inputSchema": {"type": "object"}}
known, waiting = [], []
def told(number):
    text = " ".join(known) or "nowhere"
    say(id=number, result={"content": [{"type": "text", "text": text}]})
for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        server = {"name": "eager", "version": "1"}
        say(id=number, result={"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": server})
    elif method == "notifications/initialized":
        say(id="mine", method="roots/list")
    elif method == "tools/list":
        say(id=number, result={"tools": [tool]})
    elif method == "tools/call":
        given = message["params"].get("arguments")
        if given:
            say(id=f"for {number}", method="roots/list")
        if given == {"late": True}:
            waiting.append(number)
        else:
            told(number)
    elif method is None:
        known[:] = [root["uri"] for root in message.get("result", {}).get("roots", [])]
        while waiting:
            told(waiting.pop())
    elif number is not None:
        say(id=number, error={"code": -32601, "message": f"Unknown method: {method}"})
"""


@pytest.fixture
def eager(tmp_path: Path) -> UpstreamSettings:
    """A server that asks for roots as soon as it is initialized, and before some answers."""
    script = tmp_path / "eager.py"
    script.write_text(ASKS_AT_ONCE, "utf-8")
    return UpstreamSettings(name="one", transport=Transport.STDIO, command=(sys.executable, str(script)))


def where(first: dict[str, Any], **arguments: bool) -> dict[str, Any]:
    """The call again, with answers to what was asked."""
    answers = dict.fromkeys(first["inputRequests"], MINE)
    return {"name": "where", "arguments": arguments, "requestState": first["requestState"], "inputResponses": answers}


def words(told: Told) -> str:
    return told.result["content"][0]["text"]


@pytest.mark.behaviour("CAP-02-S1")
async def test_rule_5_a_process_that_asks_as_soon_as_it_is_started_gets_its_roots_with_the_first_call(
    eager: UpstreamSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(member, "FIRST", PATIENCE)
    async with serving(eager, eager=False) as served:
        peer = served.modern(declares=ROOTS)
        await peer.ask("tools/list")
        first = (await peer.call("where", {"late": True})).result
        second = (await peer.ask("tools/call", where(first, late=True))).result
        # Its process is taken, and so another one is started, which asks by itself.
        other = (await peer.call("where")).result
        assert words(await peer.ask("tools/call", where(other))) == "file:///mine"
        assert words(await peer.ask("tools/call", where(second, late=True))) == "file:///mine"
        (fleet,) = served.gateway.every_fleet()
        assert len(fleet.members[0].more) == 1


async def test_rule_5_roots_asked_for_in_a_call_that_ends_before_they_are_there_are_told_all_the_same(
    eager: UpstreamSettings,
) -> None:
    async with serving(eager, eager=False) as served:
        peer = served.modern(declares=ROOTS)
        await peer.ask("tools/list")
        first = (await peer.call("where")).result
        assert words(await peer.ask("tools/call", where(first))) == "file:///mine"
        # Nobody was shown this question: what is kept of the session answers it.
        assert words(await peer.call("where", {"late": False})) == "file:///mine"
        (fleet,) = served.gateway.every_fleet()
        assert fleet.outside.idle
        assert words(await peer.call("where")) == "file:///mine"


async def test_rule_5_a_legacy_host_is_asked_again_for_roots_when_the_call_ends_on_which_it_was_asked(
    eager: UpstreamSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside, "TELLING", PATIENCE)
    async with serving(eager, eager=False) as served, served.legacy(declares=ROOTS) as peer:
        inbox = await peer.listen()
        asked = await inbox.method("roots/list")
        # A call waits for what its server asked before it.
        waiting = asyncio.get_running_loop().create_task(peer.call("where"))
        await until(lambda: any(session.running or session.calls for session in served.front.sessions))
        await reply(peer, asked)
        assert words(await waiting) == "file:///mine"
        told = await peer.call("where", {"late": False})
        asked, cancelled = told.before
        assert (asked["method"], cancelled["params"]["requestId"]) == ("roots/list", asked["id"])
        await reply(peer, await inbox.until(lambda message: message.get("method") == "roots/list", 1))
        (fleet,) = served.gateway.every_fleet()
        await until(lambda: fleet.outside.idle)


async def test_rule_5_a_server_has_a_moment_to_take_roots_in_before_the_call_that_waited_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outside, "SETTLING", 0.3)
    monkeypatch.setattr(outside, "TELLING", PATIENCE)
    async with (
        site(OLD) as one,
        serving(one.settings("one"), eager=False) as served,
        served.legacy(declares=ROOTS) as peer,
    ):
        inbox = await peer.listen()
        await peer.ask("tools/list")
        await one.until(lambda: one.script.sessions)
        await say(one, "roots/list", id=7)
        asked = await inbox.method("roots/list")
        loop = asyncio.get_running_loop()
        waiting = loop.create_task(peer.call("log"))
        await until(lambda: any(session.calls for session in served.front.sessions))
        before = loop.time()
        await reply(peer, asked)
        assert (await waiting).result["content"]
        assert loop.time() - before >= 0.3
        assert (answer(one, 7) or {})["result"] == MINE


async def test_rule_5_a_host_that_told_nothing_once_delays_no_call_again(
    eager: UpstreamSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(eager, eager=False) as served, served.legacy(declares=ROOTS) as peer:
        await peer.ask("tools/list")
        (fleet,) = served.gateway.every_fleet()
        await until(lambda: not fleet.outside.idle)
        # Its call begins while it is still waited for.
        monkeypatch.setattr(outside, "TELLING", 3.0)
        assert words(await peer.call("where", {"late": False})) == "nowhere"
        monkeypatch.setattr(outside, "TELLING", 10 * PATIENCE)
        # It was asked anew by that call, and at its end once more.
        assert words(await peer.call("where", {"late": False})) == "nowhere"
        assert words(await peer.call("where")) == "nowhere"


async def test_a_further_process_that_asks_nothing_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "first.py"
    first = "open(sys.argv[1], 'x').close()"
    asking = 'say(id="mine", method="roots/list")'
    once = f"try:\n            {first}\n            {asking}\n        except FileExistsError:\n            pass"
    assert asking in ASKS_AT_ONCE
    script.write_text(ASKS_AT_ONCE.replace(asking, once), "utf-8")
    command = (sys.executable, str(script), str(tmp_path / "asked"))
    settings = UpstreamSettings(name="one", transport=Transport.STDIO, command=command)
    async with serving(settings, eager=False) as served, served.legacy(declares=ROOTS) as peer:
        inbox = await peer.listen()
        await reply(peer, await inbox.method("roots/list"))
        held = asyncio.get_running_loop().create_task(peer.call("where", {"late": True}))
        await until(lambda: any(session.running for session in served.front.sessions))
        assert words(await peer.call("where")) == "nowhere"
        monkeypatch.setattr(member, "FIRST", 10 * PATIENCE)
        assert words(await peer.call("where")) == "nowhere"
        held.cancel()


async def test_rule_5_a_further_process_of_a_legacy_host_knows_its_roots_before_its_call(
    eager: UpstreamSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside, "TELLING", PATIENCE)
    monkeypatch.setattr(member, "FIRST", PATIENCE)
    async with serving(eager, eager=False) as served, served.legacy(declares=ROOTS) as peer:
        inbox = await peer.listen()
        await reply(peer, await inbox.method("roots/list"))
        held = asyncio.get_running_loop().create_task(peer.call("where", {"late": True}))
        await until(lambda: any(session.running for session in served.front.sessions))
        other = asyncio.get_running_loop().create_task(peer.call("where"))
        await reply(peer, await inbox.until(lambda message: message.get("method") == "roots/list", 1))
        assert words(await other) == "file:///mine"
        held.cancel()


async def test_a_host_that_never_tells_its_roots_delays_no_call_for_long(
    eager: UpstreamSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside, "TELLING", 0.05)
    async with serving(eager, eager=False) as served, served.legacy(declares=ROOTS) as peer:
        inbox = await peer.listen()
        await inbox.method("roots/list")
        assert words(await peer.call("where")) == "nowhere"
        (fleet,) = served.gateway.every_fleet()
        assert not fleet.outside.idle
