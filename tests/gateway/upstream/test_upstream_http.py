"""Upstreams over HTTP."""

from __future__ import annotations

import json

import anyio
import pytest
from link_peer import Asked
from link_peer import serving as serving_bytes
from upstream_peers import EACH, LEGACY, MODERN, PATIENCE, Heard, body, call, http, serving, upstream

from troth.bridge import Cause, Outgoing, ask
from troth.gateway.model import Status, UnavailableError
from troth.gateway.upstream import costs

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("revision", EACH)
async def test_a_server_over_http_is_spoken_to_in_its_own_era(revision: str) -> None:
    with serving(revisions=(revision,)) as server:
        async with upstream(http(server.url)) as (one, ears):
            talk = await one.ready(PATIENCE)
            assert (talk.revision, one.status, one.why) == (revision, Status.READY, "")
            assert talk.info["name"] == "troth-testing"
            sink = Heard()
            talk.start(call("read_note"), sink)
            assert (await sink.end())["content"][0]["text"] == "This is one."
            assert body(await talk.ask(Outgoing(frame=ask("tools/list", {}))))["tools"]
            assert await ears.until("up") == revision


@pytest.mark.behaviour("GEN-C3")
async def test_a_server_of_both_eras_is_spoken_to_in_the_modern_one() -> None:
    with serving(revisions=(LEGACY, MODERN)) as server:
        async with upstream(http(server.url)) as (one, _ears):
            assert (await one.ready(PATIENCE)).revision == MODERN


@pytest.mark.parametrize("revision", EACH)
async def test_changes_of_lists_reach_the_observer(revision: str) -> None:
    with serving(revisions=(revision,)) as server:
        async with upstream(http(server.url)) as (one, ears):
            talk = await one.ready(PATIENCE)
            await ears.until("heard", "notifications/tools/list_changed")
            before = ears.count("heard", "notifications/tools/list_changed")
            sink = Heard()
            talk.start(call("add_tool"), sink)
            await sink.end()
            await ears.until("heard", "notifications/tools/list_changed", times=before + 1)


@pytest.mark.parametrize("revision", EACH)
@pytest.mark.behaviour("CAP-17-S2")
async def test_rule_15_subscriptions_are_made_and_made_again_after_a_restart(revision: str) -> None:
    with serving(revisions=(revision,)) as server:
        async with upstream(http(server.url)) as (one, ears):
            talk = await one.ready(PATIENCE)
            await one.subscribe("note://notes/one")
            updated = "notifications/resources/updated"
            before = ears.count("heard", updated)
            await touch(talk)
            found = await ears.until("heard", updated, times=before + 1)
            assert found["uri"] == "note://notes/one"
            server.restart()
            await ears.until("heard", updated, times=before + 2)
            await touch(await one.ready(PATIENCE))
            await ears.until("heard", updated, times=before + 3)


async def touch(talk: object) -> None:
    sink = Heard()
    talk.start(call("touch", {"uri": "note://notes/one"}), sink)  # type: ignore[attr-defined]
    assert "content" in await sink.end()


async def test_rule_19_a_lost_session_is_opened_anew_and_the_refused_call_is_sent_once_more() -> None:
    with serving(revisions=(LEGACY,), breaks=("hang=prompts/list",)) as server:
        async with upstream(http(server.url)) as (one, ears):
            talk = await one.ready(PATIENCE)
            server.restart()
            sink = Heard()
            talk.start(call("read_note"), sink)
            assert "content" in await sink.end()
            await ears.until("up", times=2)
            assert ears.count("down") == 0
            assert costs(one).restarts == 1


@pytest.mark.parametrize("revision", EACH)
async def test_a_refused_connection_marks_the_upstream_down_until_it_is_back(revision: str) -> None:
    with serving(revisions=(revision,), breaks=("hang=prompts/list",)) as server:
        async with upstream(http(server.url)) as (one, ears):
            talk = await one.ready(PATIENCE)
            waits = Heard()
            talk.start(Outgoing(frame=ask("prompts/list", {})), waits)
            await talk.ask(Outgoing(frame=ask("tools/list", {})))
            server.kill()
            assert (await waits.end()).cause is Cause.BROKEN
            await ears.until("down")
            with pytest.raises(UnavailableError):
                await one.ready(0)
            late = Heard()
            talk.start(call("read_note"), late)
            assert (await late.end()).cause is Cause.DOWN
            server.start()
            await ears.until("up", times=2)
            assert await (await one.ready(PATIENCE)).ask(Outgoing(frame=ask("tools/list", {})))


@pytest.mark.parametrize(("fault", "words"), [("unauthorized", "401"), ("failing", "503")])
@pytest.mark.behaviour("GEN-C3")
async def test_rule_18_a_refusal_proves_nothing_of_the_era(fault: str, words: str) -> None:
    memory: dict[str, str] = {}
    with serving(breaks=(fault,)) as server:
        async with upstream(http(server.url, headers={"Authorization": "Bearer s3cret"}), memory=memory) as (one, ears):
            why = await ears.until("down")
            assert words in why
            assert "s3cret" not in why
            assert (memory, one.status) == ({}, Status.DOWN)


async def test_nothing_listens_there() -> None:
    async with upstream(http("http://127.0.0.1:1/mcp")) as (one, ears):
        assert "refused" in (await ears.until("down")).lower()
        assert one.conversation is None


@pytest.mark.parametrize("revision", EACH)
async def test_a_cancelled_call_over_http_hears_nothing_more(revision: str) -> None:
    with serving(revisions=(revision,), breaks=("hang=prompts/list",)) as server:
        async with upstream(http(server.url)) as (one, _ears):
            talk = await one.ready(PATIENCE)
            sink = Heard()
            talk.cancel(talk.start(Outgoing(frame=ask("prompts/list", {})), sink), "no longer wanted")
            assert await talk.ask(Outgoing(frame=ask("tools/list", {})))
            assert (sink.frames, sink.losses) == ([], [])
            lost = Heard()
            talk.start(Outgoing(frame=ask("prompts/list", {}), timeout=0.1), lost)
            assert (await lost.end()).cause is Cause.TIMEOUT


async def test_a_server_without_sessions_that_says_404_to_a_stream_has_lost_nothing() -> None:
    refused = anyio.Event()

    async def answer(asked: Asked) -> None:
        method = asked.json.get("method") if asked.body else None
        if asked.method != "POST":
            await asked.reply(404)
            refused.set()
        elif method == "initialize":
            info = {"name": "plain", "version": "1"}
            result = {"protocolVersion": LEGACY, "capabilities": {"tools": {}}, "serverInfo": info}
            await asked.reply(200, json.dumps({"jsonrpc": "2.0", "id": asked.json["id"], "result": result}).encode())
        elif "id" in asked.json and method != "server/discover":
            await asked.result()
        else:
            await asked.reply(400 if method == "server/discover" else 202)

    async with serving_bytes(answer) as peer, upstream(http(peer.url)) as (one, _ears):
        talk = await one.ready(PATIENCE)
        with anyio.fail_after(PATIENCE):
            await refused.wait()
        for _ in range(3):
            assert body(await talk.ask(Outgoing(frame=ask("tools/list", {})))) == {}
        assert one.status is Status.READY
        assert one.conversation is talk
        assert len([asked for asked in peer.of("POST") if asked.json.get("method") == "initialize"]) == 1
