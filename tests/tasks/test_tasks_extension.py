"""The face of the extension of 2026-07-28, held against its rules and the schema of the revision."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from results_official import NEEDS_SCHEMAS, check

from troth.bridge.errors import ErrorValue
from troth.tasks import Asked, Engine, Extension, MemoryStore, Outcome, Requester, Task, TaskLimits
from troth.tasks import extension as face

pytestmark = [pytest.mark.anyio, NEEDS_SCHEMAS]

REVISION = "2026-07-28"
ANN, BOB = Requester("ann"), Requester("bob")
RESULT = {"content": [{"type": "text", "text": "42"}]}
ASKED = Asked("elicitation/create", {"message": "?", "requestedSchema": {"type": "object", "properties": {}}})
PLAIN = {"taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"}
INLINED = {"input_required": {"inputRequests"}, "completed": {"result"}, "failed": {"error"}}
"""Members of a task by its state, as the extension's schema has them; `statusMessage` may be there too."""


@pytest.fixture
def engine() -> Engine:
    return Engine(MemoryStore(), TaskLimits(question=1000))


@pytest.fixture
def extension(engine: Engine) -> Extension:
    return Extension(engine)


def outcome(result: object, *, is_error: bool = False) -> Outcome:
    return Outcome(result=Raw(json.dumps(result).encode()), is_error=is_error)


async def made(engine: Engine, requester: Requester = ANN, **options: Any) -> Task:
    task = await engine.create(requester, "tools/call", **options)
    assert isinstance(task, Task)
    return task


async def call(extension: Extension, method: str, requester: Requester = ANN, **params: Any) -> Any:
    raws = {name: Raw(json.dumps(value).encode()) for name, value in params.items()}
    answer = await extension.methods[method](requester, raws)
    return answer if isinstance(answer, ErrorValue) else plain(answer)


def plain(value: object) -> Any:
    return json.loads(msgspec.json.encode(value))


def check_task(found: dict[str, Any], beside: frozenset[str] = frozenset()) -> None:
    assert found.keys() - {"statusMessage"} == PLAIN | INLINED.get(found["status"], set()) | beside
    assert isinstance(found["ttlMs"], int)
    assert isinstance(found["pollIntervalMs"], int)
    for key, question in found.get("inputRequests", {}).items():
        assert key
        check(question, "InputRequest", REVISION)
    if "result" in found:
        check(found["result"], "CallToolResult", REVISION)
    if "error" in found:
        check(found["error"], "Error", REVISION)


@pytest.mark.behaviour("CAP-26-S1", "CAP-26-S2")
@pytest.mark.parametrize(
    ("capabilities", "declared"),
    [
        ({"extensions": {"io.modelcontextprotocol/tasks": {}}}, True),
        ({"extensions": {"io.modelcontextprotocol/tasks": {"later": 1}}}, True),
        ({"extensions": {"io.modelcontextprotocol/tasks": None}}, False),
        ({"extensions": {"io.modelcontextprotocol/tasks": True}}, False),
        ({"extensions": {"other": {}}}, False),
        ({"extensions": []}, False),
        ({"tasks": {}}, False),
        ({}, False),
        (None, False),
        ([], False),
    ],
)
async def test_only_an_object_under_the_key_declares_the_extension(capabilities: object, declared: bool) -> None:
    assert face.is_declared(capabilities) is declared
    assert face.is_declared(Raw(json.dumps(capabilities).encode())) is declared


@pytest.mark.behaviour("CAP-26-S2")
async def test_the_refusal_of_others_names_the_extension() -> None:
    assert face.MISSING.code == -32021
    assert face.MISSING.data == {"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
    error = {"code": face.MISSING.code, "message": face.MISSING.message, "data": face.MISSING.data}
    check({"jsonrpc": "2.0", "id": 1, "error": error}, "MissingRequiredClientCapabilityError", REVISION)


@pytest.mark.behaviour("CAP-26-S2")
async def test_there_are_three_methods_and_no_list_or_result(extension: Extension) -> None:
    assert set(extension.methods) == set(face.METHODS) == {"tasks/get", "tasks/update", "tasks/cancel"}


@pytest.mark.behaviour("CAP-26-S1")
async def test_every_state_has_its_members(engine: Engine, extension: Extension) -> None:
    ends = [
        outcome(RESULT),
        outcome({**RESULT, "isError": True}, is_error=True),
        Outcome(error=ErrorValue(-32603, "no", {"why": 1})),
        Outcome(error=ErrorValue(-32603, "no")),
    ]
    statuses = []
    for end in ends:
        task = await made(engine, message="It runs.")
        handle = plain(face.created(task))
        assert handle["resultType"] == "task"
        check_task(handle, frozenset({"resultType"}))
        await engine.finish(task.id, end)
        found = await call(extension, "tasks/get", taskId=task.id)
        assert found["resultType"] == "complete"
        check_task(found, frozenset({"resultType"}))
        statuses.append(found["status"])
    assert statuses == ["completed", "completed", "failed", "failed"]
    waiting = await made(engine)
    await engine.ask(waiting.id, {"a": ASKED})
    found = await call(extension, "tasks/get", taskId=waiting.id)
    check_task(found, frozenset({"resultType"}))
    assert set(found["inputRequests"]) == {"a"}


@pytest.mark.behaviour("CAP-26-B2")
async def test_a_result_that_reports_an_error_is_completed_here(engine: Engine, extension: Extension) -> None:
    task = await made(engine)
    await engine.finish(task.id, outcome({**RESULT, "isError": True}, is_error=True))
    found = await call(extension, "tasks/get", taskId=task.id)
    assert (found["status"], found["result"]["isError"]) == ("completed", True)
    assert "_meta" not in found["result"]


async def test_a_result_that_cannot_be_spelled_fails_as_an_error_of_the_protocol(engine: Engine) -> None:
    extension = Extension(engine, lambda _task, _result: ErrorValue(-32603, "cannot be spelled"))
    task = await made(engine)
    await engine.finish(task.id, outcome(RESULT))
    found = await call(extension, "tasks/get", taskId=task.id)
    check_task(found, frozenset({"resultType"}))
    assert found["error"] == {"code": -32603, "message": "cannot be spelled"}


@pytest.mark.behaviour("CAP-26-S1")
async def test_updates_are_acknowledged_empty_and_parts_leave_the_rest_open(
    engine: Engine, extension: Extension
) -> None:
    task = await made(engine)
    await engine.ask(task.id, {"a": ASKED, "b": ASKED})
    yes = {"action": "accept", "content": {"confirm": True}}
    for responses in ({"a": yes}, {"a": {"action": "decline"}, "stranger": yes}, {}):
        found = await call(extension, "tasks/update", taskId=task.id, inputResponses=responses)
        assert found == {"resultType": "complete"}
        state = await call(extension, "tasks/get", taskId=task.id)
        assert (state["status"], set(state["inputRequests"])) == ("input_required", {"b"})
    await call(extension, "tasks/update", taskId=task.id, inputResponses={"b": yes})
    assert (await call(extension, "tasks/get", taskId=task.id))["status"] == "working"
    answers = await engine.fetch(task.id, frozenset({"a", "b"}))
    assert not isinstance(answers, ErrorValue)
    assert json.loads(bytes(answers["a"].result)) == yes
    await engine.finish(task.id, outcome(RESULT))
    late = await call(extension, "tasks/update", taskId=task.id, inputResponses={"a": yes})
    assert late == {"resultType": "complete"}


@pytest.mark.parametrize(
    "responses",
    [
        *(None, [], "x", 5, {"a": 5}, {"a": None}, {"a": {"x": "y" * 2000}}, {"a": {}}, {"a": {"action": "maybe"}}),
        *({"a": {"action": "accept"}}, {"a": {"action": "accept", "content": {"confirm": {}}}}),
    ],
)
async def test_responses_of_no_use_are_refused_and_the_question_stays(
    engine: Engine, extension: Extension, responses: object
) -> None:
    task = await made(engine)
    await engine.ask(task.id, {"a": ASKED})
    found = await call(extension, "tasks/update", taskId=task.id, inputResponses=responses)
    assert found.code == -32602
    assert "a" in (await call(extension, "tasks/get", taskId=task.id))["inputRequests"]


async def test_a_form_is_held_against_its_schema_by_whoever_can(engine: Engine) -> None:
    extension = Extension(engine, check=lambda schema, content: "" if b"true" in bytes(content) else "no: say yes")
    task = await made(engine)
    await engine.ask(task.id, {"a": ASKED})
    for confirm in (False, True):
        response = {"action": "accept", "content": {"confirm": confirm}}
        found = await call(extension, "tasks/update", taskId=task.id, inputResponses={"a": response})
        assert confirm or (found.code, "say yes" in found.message) == (-32602, True)
    assert (await call(extension, "tasks/get", taskId=task.id))["status"] == "working"


@pytest.mark.behaviour("CAP-23-S1")
async def test_cancel_is_acknowledged_empty_and_again_when_the_task_has_ended(
    engine: Engine, extension: Extension
) -> None:
    task = await made(engine)
    for _ in range(2):
        assert await call(extension, "tasks/cancel", taskId=task.id) == {"resultType": "complete"}
        assert (await call(extension, "tasks/get", taskId=task.id))["status"] == "cancelled"
    done = await made(engine)
    await engine.finish(done.id, outcome(RESULT))
    assert await call(extension, "tasks/cancel", taskId=done.id) == {"resultType": "complete"}
    assert (await call(extension, "tasks/get", taskId=done.id))["status"] == "completed"


@pytest.mark.behaviour("GEN-B10")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_an_unknown_foreign_or_malformed_id_is_refused_with_32602(
    engine: Engine, extension: Extension, method: str
) -> None:
    foreign = await made(engine, BOB)
    answers = [await call(extension, method, taskId=one, inputResponses={}) for one in ("unknown", foreign.id)]
    assert answers[0] == answers[1]
    answers += [await call(extension, method, taskId=5), await call(extension, method)]
    assert [answer.code for answer in answers] == [-32602] * 4


@pytest.mark.behaviour("CAP-26-S2", "GEN-B10")
async def test_a_listen_agrees_to_ones_own_tasks_only(engine: Engine, extension: Extension) -> None:
    mine, foreign = await made(engine), await made(engine, BOB)
    agreed = await extension.agreed(ANN, Raw(json.dumps([mine.id, foreign.id, "unknown", mine.id]).encode()))
    assert agreed == (mine,)
    assert await extension.agreed(ANN, []) == ()
    for odd in (Raw(b'"x"'), Raw(b"[1]"), Raw(b"{}"), None, ["x"] * 2000, Raw(b'["\\ud800"]')):
        refused = await extension.agreed(ANN, odd)
        assert isinstance(refused, ErrorValue)
        assert refused.code == -32602


@pytest.mark.behaviour("CAP-26-S2")
async def test_a_notification_says_what_get_would(engine: Engine, extension: Extension) -> None:
    heard: list[Any] = []
    engine.listen(lambda task: heard.append(extension.changed(task)))
    task = await made(engine)
    await engine.ask(task.id, {"a": ASKED})
    asked = await call(extension, "tasks/get", taskId=task.id)
    await engine.finish(task.id, outcome(RESULT))
    done = await call(extension, "tasks/get", taskId=task.id)
    for (method, params), expected in zip(heard, (asked, done), strict=True):
        assert method == "notifications/tasks"
        assert {**plain(params), "resultType": "complete"} == expected
