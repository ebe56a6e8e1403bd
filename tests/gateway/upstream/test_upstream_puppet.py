"""What a conversation makes of everything that a server may say. Over stdio."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from upstream_peers import (
    EACH,
    LEGACY,
    MODERN,
    PATIENCE,
    Ears,
    Heard,
    body,
    heard_lines,
    methods,
    puppet,
    say,
    stdio,
    until,
    upstream,
)

from troth.bridge import Cause, Outgoing, ask, read
from troth.gateway.settings import EraChoice
from troth.gateway.upstream import costs
from troth.register import register

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from troth.gateway.upstream import Supervisor

pytestmark = pytest.mark.anyio

DONE = '{"jsonrpc":"2.0","id":$id,"result":{"resultType":"complete","content":[]}}'
LOG = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'
PROGRESS = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$token,"progress":1}}'
CHANGED = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'


@asynccontextmanager
async def puppet_at(
    tmp_path: Path, revision: str, declared: str = '{"tools":{},"logging":{}}'
) -> AsyncIterator[tuple[Supervisor, Ears, Any, Path]]:
    log = tmp_path / "log"
    era = str(register().era(revision))
    command = puppet(log, "modern" if era == "modern" else revision, declared)
    async with upstream(stdio(*command, era=EraChoice(era))) as (one, ears):
        yield one, ears, await one.ready(PATIENCE), log


async def outcome(talk: Any, *lines: str, **how: Any) -> Any:
    sink = Heard()
    talk.start(say(*lines, **how), sink)
    return await sink.end()


@pytest.mark.parametrize("revision", EACH)
@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc":"2.0","id":"$id","result":{}}',
        '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"?"}}',
        '{"jsonrpc":"2.0","error":{"code":-32600,"message":"?"}}',
        '{"jsonrpc":"2.0","id":"nobody","result":{}}',
        "no json",
        "[1, {}]",
        '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}',
    ],
)
@pytest.mark.behaviour("GEN-B9")
async def test_what_answers_nobody_is_dropped_and_the_answer_still_comes(
    tmp_path: Path, revision: str, line: str
) -> None:
    async with puppet_at(tmp_path, revision) as (_one, ears, talk, _log):
        assert "content" in await outcome(talk, line, DONE)
        assert (await outcome(talk, line, timeout=0.2)).cause is Cause.TIMEOUT
        assert ears.count("heard") == 0


@pytest.mark.parametrize("revision", EACH)
async def test_a_second_answer_is_counted_and_dropped(tmp_path: Path, revision: str) -> None:
    async with puppet_at(tmp_path, revision) as (one, _ears, talk, _log):
        assert "content" in await outcome(talk, DONE, DONE)
        await until(lambda: costs(one).strays == 1)


@pytest.mark.parametrize("revision", EACH)
@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc":"2.0","id":$id,"result":[]}',
        '{"jsonrpc":"2.0","id":$id,"result":{},"error":{"code":1,"message":""}}',
        '{"jsonrpc":"2.0","id":$id,"error":"no"}',
        '{"id":$id,"result":{}}',
    ],
)
async def test_a_malformed_answer_ends_its_request(tmp_path: Path, revision: str, line: str) -> None:
    async with puppet_at(tmp_path, revision) as (one, _ears, talk, _log):
        assert (await outcome(talk, line)).cause is Cause.MALFORMED
        assert "content" in await outcome(talk, DONE)
        assert costs(one).errors == 1


@pytest.mark.parametrize("revision", EACH)
async def test_a_process_that_dies_in_a_call_takes_the_call_with_it_and_comes_back(
    tmp_path: Path, revision: str
) -> None:
    async with puppet_at(tmp_path, revision) as (one, ears, talk, _log):
        lost = await outcome(talk, '{"jsonrpc": "2.0", "id"', "EXIT")
        assert (lost.cause, "exited with status 3" in lost.words) == (Cause.BROKEN, True)
        await ears.until("up", times=2)
        assert "content" in await outcome(await one.ready(PATIENCE), DONE)


async def test_an_outage_and_its_end_are_logged_once_each(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with puppet_at(tmp_path, MODERN) as (one, ears, talk, _log):
        await outcome(talk, "EXIT")
        await ears.until("up", times=2)
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [line.partition(" exited")[0] for line in said if f"upstream {one.name} is" in line] == [
        f"upstream {one.name} is down:",
        f"upstream {one.name} is back",
    ]


@pytest.mark.parametrize("revision", EACH)
async def test_rule_16_progress_goes_to_the_request_of_its_token(tmp_path: Path, revision: str) -> None:
    async with puppet_at(tmp_path, revision) as (_one, ears, talk, _log):
        silent, told = Heard(), Heard()
        first = talk.start(say(timeout=PATIENCE), silent)
        second = talk.start(say(PROGRESS, DONE, progress=True, timeout=PATIENCE), told)
        assert "content" in await told.end()
        assert [body(note)["progressToken"] for note in told.notes] == [second]
        assert (silent.notes, ears.count("heard")) == ([], 0)
        assert first != second


@pytest.mark.parametrize("revision", EACH)
async def test_no_token_is_sent_where_nobody_asked_for_progress(tmp_path: Path, revision: str) -> None:
    host = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"any","_meta":{"progressToken":7,"k":1}}}'
    async with puppet_at(tmp_path, revision) as (_one, _ears, talk, log):
        talk.start(Outgoing(frame=read(host.encode())), Heard())
        await talk.ask(Outgoing(frame=ask("tools/list", {})))
        meta = next(line for line in heard_lines(log) if line["method"] == "tools/call")["params"]["_meta"]
        assert ("progressToken" in meta, meta["k"]) == (False, 1)


@pytest.mark.parametrize("revision", EACH)
@pytest.mark.behaviour("GEN-B9")
async def test_ids_are_ours_and_the_hosts_own_facts_stay_here(tmp_path: Path, revision: str) -> None:
    meta = {
        "progressToken": 1,
        "io.modelcontextprotocol/protocolVersion": "1900-01-01",
        "io.modelcontextprotocol/clientInfo": {"name": "secret-host", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"sampling": {}},
        "io.modelcontextprotocol/logLevel": "debug",
        "com.example/kept": 1,
    }
    async with puppet_at(tmp_path, revision) as (_one, _ears, talk, log):
        frame = read(ask_line("tools/call", {"name": "any", "_meta": meta}))
        number = talk.start(Outgoing(frame=frame), Heard())
        await talk.ask(Outgoing(frame=ask("tools/list", {})))
        sent = next(line for line in heard_lines(log) if line["method"] == "tools/call")
        assert (sent["id"], type(number)) == (number, int)
        wanted: dict[str, Any] = {"com.example/kept": 1}
        if revision == MODERN:
            wanted |= {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            assert sent["params"]["_meta"].pop("io.modelcontextprotocol/clientInfo")["name"] == "troth"
        assert sent["params"]["_meta"] == wanted


def ask_line(method: str, params: dict[str, Any]) -> bytes:
    import json

    return json.dumps({"jsonrpc": "2.0", "id": "host", "method": method, "params": params}).encode()


@pytest.mark.behaviour("CAP-12-C2")
async def test_a_level_is_asked_for_in_modern_requests_whose_host_did(tmp_path: Path) -> None:
    async with puppet_at(tmp_path, MODERN) as (one, _ears, talk, log):
        one.level("debug")
        await outcome(talk, DONE, level="info")
        await outcome(talk, DONE)
        sent = [line["params"]["_meta"] for line in heard_lines(log) if line["method"] == "tools/call"]
        key = "io.modelcontextprotocol/logLevel"
        assert [meta.get(key) for meta in sent] == ["info", None]
        assert "logging/setLevel" not in methods(log)


@pytest.mark.parametrize("revision", EACH)
async def test_rule_10_a_log_reaches_a_request_only_where_nothing_else_runs(tmp_path: Path, revision: str) -> None:
    async with puppet_at(tmp_path, revision) as (_one, ears, talk, _log):
        alone = Heard()
        talk.start(say(LOG, DONE), alone)
        await alone.end()
        assert (len(alone.notes), ears.count("heard")) == (1, 0)
        waits, other = Heard(), Heard()
        talk.start(say(), waits)
        talk.start(say(LOG, DONE), other)
        await other.end()
        assert (waits.notes, other.notes, ears.count("heard", "notifications/message")) == ([], [], 1)


@pytest.mark.parametrize("revision", EACH)
async def test_what_belongs_to_no_request_is_told_to_the_observer(tmp_path: Path, revision: str) -> None:
    async with puppet_at(tmp_path, revision) as (_one, ears, talk, _log):
        unknown = '{"jsonrpc":"2.0","method":"notifications/com.example/x","params":{"a":1}}'
        await outcome(talk, CHANGED, unknown, DONE)
        assert [event[1:] for event in ears.events if event[0] == "heard"] == [
            ("notifications/tools/list_changed", None),
            ("notifications/com.example/x", {"a": 1}),
        ]


@pytest.mark.behaviour("GEN-B6")
async def test_questions_of_a_legacy_server_are_answered_one_way_or_the_other(tmp_path: Path) -> None:
    def ping(number: int, method: str) -> str:
        return f'{{"jsonrpc":"2.0","id":{number},"method":"{method}","params":{{}}}}'

    async with puppet_at(tmp_path, LEGACY) as (_one, _ears, talk, log):
        taker, refuser = Heard(takes=True), Heard()
        lines = [ping(1, "ping"), ping(2, "roots/list"), ping(3, "x/y")]
        talk.start(say(*lines, DONE), refuser)
        await refuser.end()
        assert [frame.method for frame in refuser.questions] == ["roots/list", "x/y"]
        talk.start(say(ping(4, "roots/list"), ping(5, "ping")), taker)
        await until(lambda: any(line.get("id") == 5 for line in heard_lines(log)))
        talk.answer(b'{"jsonrpc":"2.0","id":4,"result":{"roots":[]}}')
        await talk.ask(Outgoing(frame=ask("tools/list", {})))
        answers = {line["id"]: line for line in heard_lines(log) if "method" not in line}
        assert answers[1]["result"] == answers[5]["result"] == {}
        assert answers[2]["error"] == {
            "code": -32601,
            "message": "Method not found: roots/list (roots not supported)",
            "data": {"capability": "roots"},
        }
        assert answers[3]["error"] == {"code": -32601, "message": "Unknown method: x/y"}
        assert answers[4]["result"] == {"roots": []}


@pytest.mark.behaviour("GEN-B6")
async def test_rule_2_an_ambiguous_question_is_offered_to_nobody(tmp_path: Path) -> None:
    question = '{"jsonrpc":"2.0","id":1,"method":"roots/list"}'
    async with puppet_at(tmp_path, LEGACY) as (_one, _ears, talk, log):
        waits, other = Heard(takes=True), Heard(takes=True)
        talk.start(say(), waits)
        talk.start(say(question, DONE), other)
        await other.end()
        await talk.ask(Outgoing(frame=ask("tools/list", {})))
        assert waits.questions == other.questions == []
        assert next(line for line in heard_lines(log) if line.get("id") == 1)["error"]["code"] == -32601


@pytest.mark.behaviour("GEN-B6")
async def test_a_modern_server_gets_no_answer_to_requests(tmp_path: Path) -> None:
    async with puppet_at(tmp_path, MODERN) as (one, _ears, talk, log):
        sink = Heard(takes=True)
        talk.start(say('{"jsonrpc":"2.0","id":1,"method":"ping"}', '{"jsonrpc":"2.0","id":2,"method":"x"}', DONE), sink)
        await sink.end()
        await talk.ask(Outgoing(frame=ask("tools/list", {})))
        assert all("method" in line for line in heard_lines(log))
        assert (sink.questions, costs(one).strays) == ([], 2)


@pytest.mark.parametrize("revision", EACH)
async def test_a_cancelled_request_is_withdrawn_under_our_id_and_hears_nothing_more(
    tmp_path: Path, revision: str
) -> None:
    async with puppet_at(tmp_path, revision) as (_one, _ears, talk, log):
        sink = Heard()
        number = talk.start(say(), sink)
        talk.cancel(number, "the user left")
        talk.cancel(number, "again")
        await talk.ask(Outgoing(frame=ask("tools/list", {})))
        told = [line for line in heard_lines(log) if line["method"] == "notifications/cancelled"]
        assert [line["params"] for line in told] == [{"requestId": number, "reason": "the user left"}]
        assert (sink.frames, sink.losses) == ([], [])


@pytest.mark.parametrize("revision", EACH)
async def test_a_request_without_a_sign_of_life_is_given_up_and_withdrawn(tmp_path: Path, revision: str) -> None:
    async with puppet_at(tmp_path, revision) as (_one, _ears, talk, log):
        lost = await outcome(talk, timeout=0.1)
        assert (lost.cause, lost.words) == (Cause.TIMEOUT, "tools/call timed out after 0.1 s")
        await talk.ask(Outgoing(frame=ask("tools/list", {})))
        assert "notifications/cancelled" in methods(log)


async def test_a_question_that_its_server_withdraws_is_told_to_who_took_it(tmp_path: Path) -> None:
    lines = (
        '{"jsonrpc":"2.0","id":9,"method":"roots/list"}',
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}',
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}',
        '{"jsonrpc":"2.0","method":"notifications/cancelled"}',
        DONE,
    )
    async with puppet_at(tmp_path, LEGACY) as (_one, _ears, talk, _log):
        sink = Heard(takes=True)
        talk.start(say(*lines), sink)
        await sink.end()
        assert [note.method for note in sink.notes] == ["notifications/cancelled"]


async def test_a_batch_is_taken_apart_where_the_revision_has_them(tmp_path: Path) -> None:
    batch = '[{"jsonrpc":"2.0","method":"notifications/tools/list_changed"},' + DONE + "]"
    async with puppet_at(tmp_path, "2025-03-26") as (_one, ears, talk, _log):
        assert "content" in await outcome(talk, batch)
        assert ears.count("heard") == 1
    async with puppet_at(tmp_path, "2025-06-18") as (_one, _ears, talk, _log):
        assert (await outcome(talk, batch, timeout=0.2)).cause is Cause.TIMEOUT


@pytest.mark.behaviour("CAP-12-C1")
async def test_the_last_level_is_set_and_set_again_after_a_restart(tmp_path: Path) -> None:
    async with puppet_at(tmp_path, LEGACY) as (one, ears, talk, log):
        one.level("info")
        one.level("debug")

        def levels() -> list[str]:
            return [line["params"]["level"] for line in heard_lines(log) if line["method"] == "logging/setLevel"]

        await until(lambda: levels()[-1:] == ["debug"])
        before = len(levels())
        await outcome(talk, "EXIT")
        await ears.until("up", times=2)
        await until(lambda: len(levels()) == before + 1)
        assert levels()[-1] == "debug"


@pytest.mark.behaviour("CAP-12-C1")
async def test_no_level_is_set_where_logging_is_not_declared(tmp_path: Path) -> None:
    async with puppet_at(tmp_path, LEGACY, '{"tools":{}}') as (one, _ears, talk, log):
        one.level("debug")
        await talk.ask(Outgoing(frame=ask("tools/list", {})))
        await talk.ask(Outgoing(frame=ask("tools/list", {})))
        assert "logging/setLevel" not in methods(log)


class Ahead:
    """The clock of a loop, put forward as a test says."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.by = 0.0

    def time(self) -> float:
        return self.loop.time() + self.by

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loop, name)


async def test_progress_is_a_sign_of_life(tmp_path: Path) -> None:
    async with puppet_at(tmp_path, LEGACY) as (_one, _ears, talk, _log):
        talk._loop = clock = Ahead()
        sink = Heard()
        number = talk.start(say(progress=True, timeout=600), sink)
        clock.by = 500
        assert "content" in await outcome(talk, PROGRESS.replace("$token", str(number)), DONE)
        assert len(sink.notes) == 1
        for clock.by, losses in ((900, 0), (1200, 1)):
            talk._late(talk._waiting[number])
            assert len(sink.losses) == losses
        assert sink.losses[0].cause is Cause.TIMEOUT
