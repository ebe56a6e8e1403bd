"""Upstreams that are processes."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest
from upstream_peers import (
    EACH,
    LEGACY,
    MODERN,
    PATIENCE,
    Heard,
    body,
    call,
    methods,
    script,
    scripted,
    stdio,
    until,
    upstream,
)

from troth.bridge import Cause, Outgoing, ask
from troth.gateway.model import Status, UnavailableError
from troth.gateway.settings import EraChoice
from troth.gateway.upstream import costs, dial
from troth.gateway.upstream.supervise import in_full

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("revision", EACH)
async def test_a_process_is_spoken_to_in_its_own_era(revision: str) -> None:
    async with upstream(stdio(*scripted(revisions=(revision,)))) as (one, ears):
        talk = await one.ready(PATIENCE)
        assert (talk.revision, one.status, one.why) == (revision, Status.READY, "")
        assert talk.capabilities.has("tools.listChanged")
        assert talk.info["name"] == "troth-testing"
        assert talk.instructions == "A server for tests."
        sink = Heard()
        talk.start(call("read_note"), sink)
        assert (await sink.end())["content"][0]["text"] == "This is one."
        listed = await talk.ask(Outgoing(frame=ask("tools/list", {})))
        assert body(listed)["tools"]
        assert await ears.until("up") == revision


@pytest.mark.behaviour("GEN-C3")
async def test_a_process_of_both_eras_is_spoken_to_in_the_modern_one() -> None:
    async with upstream(stdio(*scripted(revisions=(LEGACY, MODERN)))) as (one, _ears):
        assert (await one.ready(PATIENCE)).revision == MODERN


TEE = """
import subprocess, sys
child = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE)
for line in sys.stdin.buffer:
    with open(sys.argv[1], "ab") as log:
        log.write(line)
    child.stdin.write(line)
    child.stdin.flush()
child.stdin.close()
sys.exit(child.wait())
"""
"""Keeps what a server is told."""
PIDS = """
import os, sys
with open(sys.argv[1], "a") as log:
    log.write(f"{os.getpid()}\\n")
os.execv(sys.argv[2], sys.argv[2:])
"""

OLD = """
import json, sys, time
revision, unknown = {revision!r}, {unknown!r}
for line in sys.stdin:
    message = json.loads(line)
    method, request = message.get("method"), message.get("id")
    def say(**what):
        print(json.dumps({{"jsonrpc": "2.0", "id": request, **what}}), flush=True)
    if method == "initialize":
        say(result={{"protocolVersion": revision, "capabilities": {{"tools": {{}}}}, "serverInfo": {{"name": "old"}}}})
    elif method == "ping":
        say(result={{}})
    elif request is None:
        pass
    elif unknown == "exit":
        sys.exit(3)
    elif unknown == "silence":
        pass
    else:
        say(error={{"code": int(unknown), "message": "no"}})
"""


@pytest.mark.behaviour("GEN-C3")
@pytest.mark.parametrize("unknown", ["-32601", "-32600", "-32602", "-32000", "exit"])
async def test_rule_18_whatever_is_no_modern_answer_is_an_old_server(tmp_path: Path, unknown: str) -> None:
    memory: dict[str, str] = {}
    command = script(tmp_path, OLD.format(revision=LEGACY, unknown=unknown))
    async with upstream(stdio(*command), memory=memory) as (one, _ears):
        assert (await one.ready(PATIENCE)).revision == LEGACY
        assert [found.split()[:2] for found in memory.values()] == [["legacy", "stdio"]]


async def test_rule_18_a_silent_process_gets_a_fresh_one_for_the_handshake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dial, "PROBE_SILENT", 0.2)
    command = script(tmp_path, OLD.format(revision=LEGACY, unknown="silence"))
    async with upstream(stdio(*command)) as (one, _ears):
        assert (await one.ready(PATIENCE)).revision == LEGACY


SLOW = """
import subprocess, sys, time
opening = sys.stdin.buffer.readline()
time.sleep(float(sys.argv[1 if b"server/discover" in opening else 2]))
child = subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE)
child.stdin.write(opening)
child.stdin.flush()
for line in sys.stdin.buffer:
    child.stdin.write(line)
    child.stdin.flush()
child.stdin.close()
sys.exit(child.wait())
"""
"""Starts a server after some seconds: some where it is asked for its era first, others where hands are shaken first."""


@pytest.mark.behaviour("GEN-C3")
async def test_rule_18_a_slow_starter_is_not_taken_for_an_old_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dial, "PROBE_SILENT", 0.2)
    # The one that is started beside it is slower, as it begins later.
    slow = (sys.executable, "-c", SLOW, "2", "600")
    async with upstream(stdio(*slow, *scripted())) as (one, _ears):
        assert (await one.ready(PATIENCE)).revision == MODERN


@pytest.mark.behaviour("GEN-C3")
async def test_rule_18_what_was_found_is_remembered_and_probed_anew_when_it_fails(tmp_path: Path) -> None:
    memory: dict[str, str] = {}
    log = tmp_path / "log"
    tee = (sys.executable, "-c", TEE, str(log))
    settings = stdio(*tee, *scripted(revisions=(LEGACY,)))
    for wanted in (["server/discover", "initialize"], ["initialize"]):
        log.unlink(missing_ok=True)
        async with upstream(settings, memory=memory) as (one, _ears):
            await one.ready(PATIENCE)
        assert methods(log)[: len(wanted)] == wanted
    key = next(iter(memory))
    settings = stdio(*tee, *scripted(revisions=(MODERN,)))
    async with upstream(settings, memory=memory) as (one, _ears):
        await one.ready(PATIENCE)
    assert {value.split()[0] for value in memory.values()} == {"legacy", "modern"}, "another command is another server"
    modern = next(name for name in memory if name != key)
    memory[modern] = memory[key]
    async with upstream(settings, memory=memory) as (one, _ears):
        assert (await one.ready(PATIENCE)).revision == MODERN
    assert memory[modern].startswith("modern")


@pytest.mark.parametrize(("era", "revision"), [(EraChoice.LEGACY, LEGACY), (EraChoice.MODERN, MODERN)])
@pytest.mark.behaviour("GEN-C3")
async def test_the_operator_can_choose_the_era(era: EraChoice, revision: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with upstream(stdio(sys.executable, "-c", TEE, str(log), *scripted(), era=era)) as (one, _ears):
        assert (await one.ready(PATIENCE)).revision == revision
    assert methods(log)[0] == {LEGACY: "initialize", MODERN: "server/discover"}[revision]


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18"])
async def test_a_counter_offer_of_any_known_revision_is_taken(tmp_path: Path, revision: str) -> None:
    command = script(tmp_path, OLD.format(revision=revision, unknown="-32601"))
    async with upstream(stdio(*command)) as (one, _ears):
        assert (await one.ready(PATIENCE)).revision == revision


@pytest.mark.parametrize("revision", ["1900-01-01", "2026-07-28", "\x1b[31m"])
async def test_a_counter_offer_of_another_revision_is_named(tmp_path: Path, revision: str) -> None:
    command = script(tmp_path, OLD.format(revision=revision, unknown="-32601"))
    async with upstream(stdio(*command)) as (_one, ears):
        why = await ears.until("down")
        assert "which is none of 2024-11-05" in why
        assert why.isprintable()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("/no/such/program",), "there is no such program"),
        (
            (sys.executable, "-c", "import sys; sys.exit('the database is locked')"),
            "exited with status 1; its last words: the database is locked",
        ),
    ],
)
async def test_a_process_that_does_not_start_says_why(
    command: tuple[str, ...], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with upstream(stdio(*command)) as (one, ears):
        await ears.until("down")
        assert in_full(one.why, one.last).endswith(words)
        assert words in caplog.text
        with pytest.raises(UnavailableError, match="one is "):
            await one.ready(0.001)


async def test_why_a_process_fell_is_said_also_while_it_starts_again(tmp_path: Path) -> None:
    code = """
import os, sys
if not os.path.exists(sys.argv[1]):
    open(sys.argv[1], "w").close()
    sys.exit("the database is locked")
sys.stdin.read()
"""
    settings = stdio(sys.executable, "-c", code, str(tmp_path / "turn"), era=EraChoice.LEGACY)
    async with upstream(settings) as (one, ears):
        await ears.until("down")
        await until(lambda: one.status is Status.STARTING)
        assert (one.why, one.last) == ("exited with status 1", "the database is locked")


@pytest.mark.parametrize("revision", EACH)
async def test_a_killed_process_comes_back_and_its_calls_are_lost(revision: str, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    command = (sys.executable, "-c", PIDS, str(pids), *scripted(revisions=(revision,), breaks=("hang=prompts/list",)))
    async with upstream(stdio(*command)) as (one, ears):
        talk = await one.ready(PATIENCE)
        sink = Heard()
        talk.start(Outgoing(frame=ask("prompts/list", {})), sink)
        await talk.ask(Outgoing(frame=ask("tools/list", {})))
        os.kill(int(pids.read_text().split()[-1]), signal.SIGKILL)
        lost = await sink.end()
        assert lost.cause is Cause.BROKEN
        assert "SIGKILL" in lost.words
        await ears.until("up", times=2)
        fresh = await one.ready(PATIENCE)
        assert fresh is not talk
        assert await fresh.ask(Outgoing(frame=ask("tools/list", {})))
        late = Heard()
        talk.start(call("read_note"), late)
        assert (await late.end()).cause is Cause.DOWN
        assert costs(one).restarts == 1


ODD = (
    "flood",
    "long-line",
    "deep-json",
    "junk-on-stdout",
    "bytes-on-stdout",
    "not-json-rpc",
    "duplicate-answer",
    "out-of-order",
    "hostile-text",
    "unknown-notification-answered",
    "list-changed-before-initialized",
    "ignores-the-end",
    "leaves-a-child",
    "unknown-method-accepted",
    "cache-members-missing",
)


@pytest.mark.parametrize("revision", EACH)
@pytest.mark.parametrize("fault", ODD)
async def test_what_an_odd_process_does_costs_nobody_an_answer(revision: str, fault: str) -> None:
    async with upstream(stdio(*scripted(revisions=(revision,), breaks=(fault,)))) as (one, ears):
        talk = await one.ready(PATIENCE)
        assert talk.revision == revision
        assert body(await talk.ask(Outgoing(frame=ask("tools/list", {}))))["tools"]
        sink = Heard()
        talk.start(call("read_note"), sink)
        assert "content" in await sink.end()
        assert ears.count("down") == 0


@pytest.mark.behaviour("GEN-C3")
async def test_rule_18_a_late_discover_answer_wins_over_a_failed_handshake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dial, "PROBE_SILENT", 0.1)
    slow = (sys.executable, "-c", SLOW, "3", "0")
    async with upstream(stdio(*slow, *scripted(revisions=(MODERN,)))) as (one, ears):
        assert (await one.ready(PATIENCE)).revision == MODERN
        assert ears.count("down") == 0


async def test_rule_18_both_failures_are_told(tmp_path: Path) -> None:
    server = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    error = {"code": -32601, "message": "no " + message["method"]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
"""
    async with upstream(stdio(*script(tmp_path, server))) as (_one, ears):
        assert await ears.until("down") == (
            "initialize got -32601: no initialize; before that, server/discover got -32601: no server/discover"
        )


async def test_an_upstream_that_never_answers_is_given_up_in_time() -> None:
    silent = stdio(sys.executable, "-c", "import sys; sys.stdin.read()", start_timeout=0.5)
    async with upstream(silent) as (one, ears):
        assert "no answer in 0.5 s" in await ears.until("down")
        with pytest.raises(UnavailableError, match="no answer"):
            await one.ready(0.0)


async def test_a_modern_choice_is_not_undone_by_an_old_server(tmp_path: Path) -> None:
    command = script(tmp_path, OLD.format(revision=LEGACY, unknown="-32601"))
    async with upstream(stdio(*command, era=EraChoice.MODERN)) as (_one, ears):
        assert await ears.until("down") == "server/discover got -32601: no"
    command = script(tmp_path, OLD.format(revision=LEGACY, unknown="silence"))
    async with upstream(stdio(*command, era=EraChoice.MODERN, start_timeout=0.5)) as (_one, ears):
        assert "server/discover timed out after 0.5 s" in await ears.until("down")


async def test_what_an_upstream_costs_is_counted() -> None:
    async with upstream(stdio(*scripted(revisions=(MODERN,)))) as (one, _ears):
        assert costs(one).since is None
        talk = await one.ready(PATIENCE)
        await talk.ask(Outgoing(frame=ask("tools/list", {})))
        spent = costs(one)
        assert spent.calls >= 2
        assert min(spent.sent, spent.received) > 100
        assert (spent.errors, spent.restarts, spent.junk, spent.strays) == (0, 0, 0, 0)
        assert spent.pid is not None
        assert spent.rss is not None
        assert spent.rss > 1_000_000
    assert (costs(one).pid, one.status, one.why) == (None, Status.STOPPED, "it was stopped")


@pytest.mark.parametrize("later", ["exit", "silence"])
async def test_rule_18_a_slow_old_server_is_used_where_no_second_one_can_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: str
) -> None:
    monkeypatch.setattr(dial, "PROBE_SILENT", 0.1)
    # Which of the two it is tells what it is asked first.
    turn = """
import itertools, os, sys, time
opening = sys.stdin.readline()
if "initialize" in opening:
    open({second!r}, "w").close()
    {later}
while not os.path.exists({second!r}):
    time.sleep(0.01)
time.sleep(1)
sys.stdin = itertools.chain([opening], sys.stdin)
"""
    otherwise = {"exit": "sys.exit('another one runs')", "silence": "sys.stdin.read()"}[later]
    text = turn.format(second=str(tmp_path / "second"), later=otherwise) + OLD.format(revision=LEGACY, unknown="-32601")
    limit = {"exit": PATIENCE, "silence": 5.0}[later]
    async with upstream(stdio(*script(tmp_path, text), start_timeout=limit)) as (one, ears):
        if later == "exit":
            assert (await one.ready(PATIENCE)).revision == LEGACY
            assert ears.count("down") == 0
        else:
            assert await ears.until("down")
