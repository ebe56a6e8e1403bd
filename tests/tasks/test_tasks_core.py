"""The face of 2025-11-25, held against its official schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import pytest
from msgspec import Raw
from results_official import NEEDS_SCHEMAS, check

from troth.bridge.errors import ErrorValue
from troth.tasks import Asked, Core, Engine, MemoryStore, Outcome, Requester, SqliteStore, Task, TaskLimits, Wish, wish
from troth.tasks import core as face

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.anyio, NEEDS_SCHEMAS]

REVISION = "2025-11-25"
ANN, BOB, ALL = Requester("ann"), Requester("bob"), Requester("anonymous", shared=True)
RESULT = {"content": [{"type": "text", "text": "42"}]}
RELATED = "io.modelcontextprotocol/related-task"


@pytest.fixture
def engine() -> Engine:
    return Engine(MemoryStore(), TaskLimits(recheck=30, page=2))


@pytest.fixture
def core(engine: Engine) -> Core:
    return Core(engine)


def outcome(result: object, *, is_error: bool = False) -> Outcome:
    return Outcome(result=Raw(json.dumps(result).encode()), is_error=is_error)


async def made(engine: Engine, requester: Requester = ANN, **options: Any) -> Task:
    task = await engine.create(requester, "tools/call", **options)
    assert isinstance(task, Task)
    return task


async def call(core: Core, method: str, requester: Requester = ANN, **params: Any) -> Any:
    """The result as a reader sees it, or the error."""
    raws = {name: Raw(json.dumps(value).encode()) for name, value in params.items()}
    answer = await core.methods[method](requester, raws)
    return answer if isinstance(answer, ErrorValue) else plain(answer)


def plain(value: object) -> Any:
    return json.loads(msgspec.json.encode(value))


@pytest.mark.behaviour("CAP-21-S1", "CAP-24-S1")
@pytest.mark.parametrize(
    ("support", "task", "expected"),
    [
        ("optional", {"ttl": 5000}, Wish(5000)),
        ("optional", {}, Wish(None)),
        ("optional", {"ttl": None}, Wish(None)),
        ("required", {"ttl": 0}, Wish(0)),
        ("optional", ..., None),
        ("forbidden", ..., None),
        (None, ..., None),
        ("required", ..., -32601),
        ("forbidden", {"ttl": 1}, -32601),
        (None, {}, -32601),
        ("somehow", {}, -32601),
        (7, {}, -32601),
        ("optional", 5, -32602),
        ("optional", None, -32602),
        ("optional", [], -32602),
        ("optional", {"ttl": "5"}, -32602),
        ("optional", {"ttl": True}, -32602),
        ("optional", {"ttl": 1.5}, -32602),
        ("optional", {"ttl": -1}, -32602),
    ],
)
async def test_a_call_becomes_a_task_only_where_its_tool_allows_it(support: object, task: Any, expected: Any) -> None:
    params = {"name": "slow"} if task is ... else {"name": "slow", "task": Raw(json.dumps(task).encode())}
    found = wish(params, support)
    assert (found.code if isinstance(found, ErrorValue) else found) == expected


async def test_a_wish_that_python_cannot_hold_is_refused() -> None:
    found = wish({"task": Raw(b'{"ttl":"\\ud800"}')}, "optional")
    assert isinstance(found, ErrorValue)
    assert found.code == -32602


@pytest.mark.parametrize("ttl", ["1e400", "-1e400", "1.5", "1e-3", "-1", "true", '"5"', "[]", "{}"])
@pytest.mark.parametrize("beside", ["", ', "more": 1e400'])
async def test_a_time_that_is_none_is_refused_by_its_name(ttl: str, beside: str) -> None:
    found = wish({"task": Raw(f'{{"ttl": {ttl}{beside}}}'.encode())}, "optional")
    assert isinstance(found, ErrorValue)
    assert (found.code, found.message.partition(":")[0]) == (-32602, "task.ttl")


@pytest.mark.parametrize(("ttl", "expected"), [("5e3", 5000), ("5.0", 5), ("9" * 30, int("9" * 30)), ("-0.0", 0)])
async def test_a_time_may_be_spelled_as_any_whole_number(ttl: str, expected: int) -> None:
    assert wish({"task": Raw(f'{{"ttl": {ttl}, "more": 1e400}}'.encode())}, "optional") == Wish(expected)


@pytest.mark.parametrize("ttl", [float("inf"), float("nan"), 1.5, True, "5", -1])
async def test_a_time_that_was_read_already_is_looked_at_too(ttl: object) -> None:
    found = wish({"task": {"ttl": ttl}}, "optional")
    assert isinstance(found, ErrorValue)
    assert "task.ttl" in found.message
    assert wish({"task": {"ttl": 5.0}}, "optional") == Wish(5)
    assert isinstance(wish({"task": None}, "optional"), ErrorValue)


@pytest.mark.behaviour("CAP-22-S1")
async def test_a_list_is_declared_only_to_who_can_be_told_from_others() -> None:
    assert face.declared(ANN) == {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    assert face.declared(ALL) == {"cancel": {}, "requests": {"tools": {"call": {}}}}


async def test_every_state_fits_the_schema(engine: Engine, core: Core) -> None:
    ends = [
        outcome(RESULT),
        outcome({**RESULT, "isError": True}, is_error=True),
        Outcome(error=ErrorValue(-32603, "no")),
    ]
    statuses = []
    for end in ends:
        task = await made(engine, message="It runs.")
        check(plain(face.created(task)), "CreateTaskResult", REVISION)
        check(await call(core, "tasks/get", taskId=task.id), "GetTaskResult", REVISION)
        await engine.finish(task.id, end)
        found = await call(core, "tasks/get", taskId=task.id)
        check(found, "GetTaskResult", REVISION)
        statuses.append(found["status"])
    assert statuses == ["completed", "failed", "failed"]
    waiting = await made(engine)
    await engine.ask(waiting.id, {"a": Asked("roots/list")})
    found = await call(core, "tasks/get", taskId=waiting.id)
    check(found, "GetTaskResult", REVISION)
    assert found["status"] == "input_required"
    assert found["createdAt"].endswith("Z")


@pytest.mark.behaviour("CAP-26-B2")
async def test_a_result_that_reports_an_error_is_failed_here_and_its_result_is_given(
    engine: Engine, core: Core
) -> None:
    task = await made(engine)
    await engine.finish(task.id, outcome({**RESULT, "isError": True, "resultType": "complete"}, is_error=True))
    assert (await call(core, "tasks/get", taskId=task.id))["status"] == "failed"
    found = await call(core, "tasks/result", taskId=task.id)
    check(found, "CallToolResult", REVISION)
    assert found["isError"] is True


@pytest.mark.behaviour("CAP-24-S3")
async def test_what_belongs_to_a_task_says_so_but_not_what_names_it_already(engine: Engine, core: Core) -> None:
    task = await made(engine)
    related = {RELATED: {"taskId": task.id}}
    assert plain(face.created(task))["_meta"] == related
    assert face.with_related({"a": 1, "_meta": {"x": 1}}, task.id) == {"a": 1, "_meta": {"x": Raw(b"1"), **related}}
    assert "_meta" not in await call(core, "tasks/get", taskId=task.id)
    assert "_meta" not in await call(core, "tasks/list")
    assert RELATED not in json.dumps(await call(core, "tasks/list"))
    assert RELATED not in json.dumps(plain(face.status(task)[1]))
    other = await made(engine)
    assert "_meta" not in await call(core, "tasks/cancel", taskId=other.id)
    await engine.finish(task.id, outcome({**RESULT, "_meta": {"mine": 1}}))
    assert (await call(core, "tasks/result", taskId=task.id))["_meta"] == {"mine": 1, **related}


async def test_a_status_notification_fits_the_schema(engine: Engine) -> None:
    method, params = face.status(await made(engine))
    check(plain({"jsonrpc": "2.0", "method": method, "params": params}), "TaskStatusNotification", REVISION)


@pytest.mark.behaviour("CAP-24-S3")
async def test_the_result_is_held_back_until_the_task_has_ended(engine: Engine, core: Core) -> None:
    task = await made(engine)
    found: list[Any] = []

    async def ask() -> None:
        found.append(await call(core, "tasks/result", taskId=task.id))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            assert found == []
            await engine.finish(task.id, outcome(RESULT))
    check(found[0], "CallToolResult", REVISION)
    assert found[0]["content"] == RESULT["content"]


async def test_the_result_of_a_failed_task_is_its_own_error(engine: Engine, core: Core) -> None:
    task = await made(engine)
    error = ErrorValue(-32050, "no such city", {"city": "Ys"})
    await engine.finish(task.id, Outcome(error=error))
    assert await call(core, "tasks/result", taskId=task.id) == error


async def test_a_cancelled_task_has_no_result_and_who_waits_hears_so(engine: Engine, core: Core) -> None:
    task = await made(engine)
    found: list[Any] = []

    async def ask() -> None:
        found.append(await call(core, "tasks/result", taskId=task.id))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            await call(core, "tasks/cancel", taskId=task.id)
    assert found[0].code == -32602


@pytest.mark.behaviour("CAP-23-S1")
async def test_cancel_moves_before_it_answers_and_refuses_what_has_ended(engine: Engine, core: Core) -> None:
    task = await made(engine)
    cancelled = await call(core, "tasks/cancel", taskId=task.id)
    check(cancelled, "CancelTaskResult", REVISION)
    assert cancelled["status"] == "cancelled"
    ended = await made(engine)
    await engine.finish(ended.id, outcome(RESULT))
    for one in (task, ended):
        refused = await call(core, "tasks/cancel", taskId=one.id)
        assert refused.code == -32602


@pytest.mark.behaviour("CAP-22-S1", "GEN-B10")
async def test_a_list_is_paged_and_shows_a_requester_its_own_only(engine: Engine, core: Core) -> None:
    mine = [(await made(engine)).id for _ in range(5)]
    await made(engine, BOB)
    found: list[str] = []
    params: dict[str, Any] = {}
    for _ in range(5):
        page = await call(core, "tasks/list", **params)
        check(page, "ListTasksResult", REVISION)
        assert len(page["tasks"]) <= 2
        found += [task["taskId"] for task in page["tasks"]]
        if "nextCursor" not in page:
            break
        params = {"cursor": page["nextCursor"]}
    assert sorted(found) == sorted(mine)
    first = (await call(core, "tasks/list"))["nextCursor"]
    theirs = await call(core, "tasks/list", BOB, cursor=first)
    assert not {task["taskId"] for task in theirs["tasks"]} & set(mine)


@pytest.mark.parametrize("cursor", ["", "x", "AAAA", "!", 7, [], "é", "x" * 5000, "MS4wIGE=", "bmFuIGE"])
async def test_a_cursor_that_was_not_given_out_is_refused(core: Core, cursor: object) -> None:
    found = await call(core, "tasks/list", cursor=cursor)
    assert isinstance(found, ErrorValue)
    assert found.code == -32602


@pytest.mark.behaviour("CAP-22-S1")
async def test_who_shares_a_credential_gets_no_list_but_its_tasks_by_id(engine: Engine, core: Core) -> None:
    task = await made(engine, ALL)
    refused = await call(core, "tasks/list", ALL)
    assert (refused.code, refused.data) == (-32601, {"capability": "tasks.list"})
    assert (await call(core, "tasks/get", ALL, taskId=task.id))["taskId"] == task.id


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
async def test_an_unknown_foreign_or_malformed_id_is_refused_with_32602(
    engine: Engine, core: Core, method: str
) -> None:
    foreign = await made(engine, BOB)
    answers = [await call(core, method, taskId=one) for one in ("unknown", foreign.id)]
    assert answers[0] == answers[1]
    answers += [await call(core, method, taskId=5), await call(core, method)]
    assert [answer.code for answer in answers] == [-32602] * 4


async def test_questions_go_out_on_the_stream_of_the_result_each_once_and_with_the_id_of_the_task(
    engine: Engine, core: Core
) -> None:
    task = await made(engine)
    sent: list[Any] = []
    found: list[Any] = []

    async def ask(of: Task, key: str, question: Raw) -> Outcome:
        sent.append((of.id, key, json.loads(bytes(question))))
        await anyio.wait_all_tasks_blocked()
        return outcome({"action": "accept", "content": {"key": key}})

    async def wait() -> None:
        found.append(plain(await core.result(ANN, {"taskId": task.id}, ask)))

    asked = {
        "a": Asked("elicitation/create", {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}),
        "b": Asked("roots/list", {"_meta": {"x": 1}}),
    }
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            group.start_soon(wait)
            names = await engine.ask(task.id, asked)
            assert names == {"a": "a", "b": "b"}
            answers = await engine.fetch(task.id, frozenset({"a", "b"}))
            assert not isinstance(answers, ErrorValue)
            assert json.loads(bytes(answers["b"].result))["content"] == {"key": "b"}
            await engine.finish(task.id, outcome(RESULT))
    assert [result["content"] for result in found] == [RESULT["content"]] * 2
    assert sorted(key for _, key, _ in sent) == ["a", "b"]
    by_key = {key: question for _, key, question in sent}
    related = {RELATED: {"taskId": task.id}}
    assert by_key["b"] == {"method": "roots/list", "params": {"_meta": {"x": 1, **related}}}
    check({"jsonrpc": "2.0", "id": 1, **by_key["a"]}, "ElicitRequest", REVISION)
    assert by_key["a"]["params"]["_meta"] == related


async def test_a_question_is_sent_again_when_who_asked_has_gone_before_the_answer(engine: Engine, core: Core) -> None:
    task = await made(engine)
    await engine.ask(task.id, {"a": Asked("roots/list")})

    async def never(of: Task, key: str, question: Raw) -> Outcome:
        await anyio.sleep_forever()
        raise AssertionError

    async def refuses(of: Task, key: str, question: Raw) -> Outcome:
        return Outcome(error=ErrorValue(-1, "the person said no"))

    async with anyio.create_task_group() as group:
        group.start_soon(core.result, ANN, {"taskId": task.id}, never)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(core.result, ANN, {"taskId": task.id}, refuses)
            answers = await engine.fetch(task.id, frozenset({"a"}))
            assert not isinstance(answers, ErrorValue)
            assert answers["a"].error == ErrorValue(-1, "the person said no")
            await engine.finish(task.id, outcome(RESULT))


async def test_a_result_is_spelled_for_the_revision_or_says_why_not(engine: Engine) -> None:
    def spell(task: Task, result: Raw) -> Raw | ErrorValue:
        return Raw(b'{"content":[]}') if task.method == "tools/call" else ErrorValue(-32603, "cannot be spelled")

    core = Core(engine, spell)
    good = await made(engine)
    bad = await engine.create(ANN, "prompts/get")
    odd = await made(engine)
    assert isinstance(bad, Task)
    for task in (good, bad):
        await engine.finish(task.id, outcome(RESULT))
    await engine.finish(odd.id, outcome([]))
    assert (await call(core, "tasks/result", taskId=good.id))["content"] == []
    assert (await call(core, "tasks/result", taskId=bad.id)).message == "cannot be spelled"
    assert (await call(Core(engine), "tasks/result", taskId=odd.id)).code == -32603


@pytest.mark.behaviour("CAP-22-S1")
async def test_after_a_restart_an_old_id_still_answers(tmp_path: Path) -> None:
    first = SqliteStore(tmp_path / "tasks.sqlite")
    task = await made(Engine(first), ALL)
    await Engine(first).finish(task.id, outcome(RESULT))
    await first.close()
    second = SqliteStore(tmp_path / "tasks.sqlite")
    core = Core(Engine(second))
    assert (await call(core, "tasks/result", ALL, taskId=task.id))["content"] == RESULT["content"]
    await second.close()
