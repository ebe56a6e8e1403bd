"""Calls of servers on pipes: one channel for all calls, so that what belongs to whom must be found out."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from middle_gateway import CALM, MODERN, Legacy, serving
from middle_site import host, until

from troth.gateway.model import Status
from troth.gateway.report import report
from troth.gateway.settings import Share, Transport, UpstreamSettings

if TYPE_CHECKING:
    from middle_gateway import Modern

pytestmark = pytest.mark.anyio

PROCESS = Path(__file__).with_name("middle_process.py")
DONE = '{"jsonrpc":"2.0","id":$id,"result":{"resultType":"complete","content":[]}}'
LOG = "notifications/message"


def process(upstream: str, log: Path) -> UpstreamSettings:
    era = "modern" if upstream == MODERN else "legacy"
    command = (sys.executable, str(PROCESS), era, str(log))
    return UpstreamSettings(name="one", transport=Transport.STDIO, command=command)


def heard(log: Path, method: str) -> list[dict[str, Any]]:
    # Not the line that is just being written.
    lines = log.read_text().split("\n")[:-1] if log.exists() else []
    return [message for message in map(json.loads, lines) if message.get("method") == method]


def do(peer: Legacy | Modern, *say: str, tool: str = "do", **meta: Any) -> asyncio.Task[Any]:
    arguments = {"say": list(say)}
    work = peer.call(tool, arguments, _meta=meta) if isinstance(peer, Legacy) else peer.call(tool, arguments, **meta)
    return asyncio.get_running_loop().create_task(work)


def note(method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).replace('"$token"', "$token")


@pytest.mark.behaviour("GEN-S10")
async def test_a_cancelled_call_is_cancelled_by_a_message_with_the_id_that_it_has_there(
    upstream: str, revision: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with serving(process(upstream, log)) as served, host(served, revision) as peer:
        await served.ready()
        asked = do(peer)
        await until(lambda: heard(log, "tools/call"))
        if isinstance(peer, Legacy):
            await peer.notify("notifications/cancelled", {"requestId": 1})
            assert (await asked).answer == {}
        else:
            asked.cancel()
        (cancelled,) = await until(lambda: heard(log, "notifications/cancelled"))
        (call,) = heard(log, "tools/call")
        assert cancelled["params"]["requestId"] == call["id"]
        # What the server says of it afterwards is for nobody.
        late = json.dumps(
            {"jsonrpc": "2.0", "id": call["id"], "result": {"content": [{"type": "text", "text": "late"}]}}
        )
        told = await do(peer, late, DONE)
        assert told.result["content"] == []
        assert told.before == []


@pytest.mark.behaviour("CAP-12-S5", "GEN-B10")
async def test_a_log_line_belongs_to_a_call_only_while_nothing_else_runs(
    upstream: str, revision: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    level = {"io.modelcontextprotocol/logLevel": "debug"} if revision == MODERN else {}
    line = note(LOG, level="error", data="x")
    async with (
        serving(process(upstream, log)) as served,
        host(served, revision) as first,
        host(served, revision) as second,
    ):
        await served.ready()
        told = await do(first, line, DONE, **level)
        assert [message["method"] for message in told.before] == [LOG]
        waiting = do(second, **level)
        await until(lambda: len(heard(log, "tools/call")) == 2)
        both = await do(first, line, DONE, **level)
        assert both.before == []
        number = json.dumps(heard(log, "tools/call")[1]["id"])
        ended = do(first, DONE.replace("$id", number), DONE, tool="answer", **level)
        assert (await waiting).before == []
        assert (await ended).before == []
        notes = [note for fleet in served.gateway.every_fleet() for note in (fleet.members[0].dropped,)]
        assert notes == [1]


async def test_answers_and_progress_that_cross_reach_who_asked(upstream: str, revision: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with (
        serving(process(upstream, log)) as served,
        host(served, revision) as first,
        host(served, revision) as second,
    ):
        await served.ready()
        # Both hosts use the same ids and the same token.
        asked = [do(peer, progressToken="same") for peer in (first, second)]
        await until(lambda: len(heard(log, "tools/call")) == 2)
        calls = heard(log, "tools/call")
        tokens = [call["params"]["_meta"]["progressToken"] for call in calls]
        assert len({call["id"] for call in calls}) == len(set(tokens)) == 2
        say: list[str] = []
        for place in (1, 0):
            text = {"content": [{"type": "text", "text": str(place)}], "resultType": "complete"}
            say += [
                json.dumps(
                    {
                        "jsonrpc": "2.0",
                        "method": "notifications/progress",
                        "params": {"progressToken": tokens[place], "progress": place + 1},
                    }
                ),
                json.dumps({"jsonrpc": "2.0", "id": calls[place]["id"], "result": text}),
            ]
        await do(first, *say, DONE, tool="answer")
        ended = [await one for one in asked]
        texts = [one.result["content"][0]["text"] for one in ended]
        assert sorted(texts) == ["0", "1"]
        for text, one in zip(texts, ended, strict=True):
            (step,) = one.before
            assert step["params"] == {"progressToken": "same", "progress": int(text) + 1}


async def test_a_process_that_ends_in_the_middle_of_a_call_ends_that_call_at_once(
    upstream: str, revision: str, tmp_path: Path
) -> None:
    import os
    import signal

    log = tmp_path / "log"
    async with serving(process(upstream, log)) as served, host(served, revision) as peer:
        await served.ready()
        asked = do(peer)
        await until(lambda: heard(log, "tools/call"))
        member = next(served.gateway.every_fleet()).members[0]
        os.kill(member.upstream.conversation.link.pid, signal.SIGKILL)
        told = await asked
        assert told.error["code"] == -32603
        assert "the call may have had effects" in told.error["message"]
        await served.ready()
        # It was not sent a second time.
        assert len(heard(log, "tools/call")) == 1
        assert (await do(peer, DONE)).result["content"] == []


async def test_what_a_process_says_last_is_for_the_operator_and_for_no_host_that_shares_it(
    upstream: str, revision: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = tmp_path / "log"
    shared = replace(process(upstream, log), share=Share.ALWAYS)
    async with (
        # It does not start again in the time of the test.
        serving(shared, tokens=("ann", "bob"), limits=replace(CALM, back_off=600.0, back_off_most=600.0)) as served,
        host(served, revision, token="ann") as ann,
        host(served, revision, token="bob") as bob,
    ):
        await served.ready()
        cut = do(bob)
        await until(lambda: heard(log, "tools/call"))
        words = "cannot read secret://of-ann"
        tolds = [await do(ann, words, tool="fall"), await cut]
        members = [fleet.members[0] for fleet in served.gateway.every_fleet()]
        await until(lambda: all(member.upstream.status is Status.DOWN for member in members))
        tolds += [await do(bob), await do(ann)]
        for told in tolds:
            assert "exited with status 1" in told.error["message"]
            assert "of-ann" not in json.dumps(told.answer)
        assert "not reachable: exited with status 1" in tolds[2].error["message"]
        shown = report(served.gateway, served.front, url="", started=0.0, version="0", faults=()).upstreams
        assert {one.why for one in shown} == {f"exited with status 1; its last words: {words}"}
    assert f"upstream one is down: exited with status 1; its last words: {words}" in caplog.text
