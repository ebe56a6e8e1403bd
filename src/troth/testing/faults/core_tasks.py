"""Faults of core tasks (2025-11-25)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.testing.content import READ_NOTE
from troth.testing.faults.hooks import ALL, edit_result, fault, hide, instead, lax, put, refuse, since
from troth.testing.model import Twist

if TYPE_CHECKING:
    from troth.testing.model import Call, Fault, JsonObject
    from troth.testing.script import Script

_TASKS = since("tasks")
_ELSEWHERE = tuple(revision for revision in ALL if revision not in _TASKS)


def _plain(_call: Call, result: JsonObject) -> None:
    for tool in result.get("tools", ()):
        tool.pop("execution", None)


def _unwrap(_call: Call, result: JsonObject) -> None:
    task = result.pop("task", None)
    if task:
        result.update(task)


def _at_once(_script: Script, call: Call) -> JsonObject | None:
    if call.method != "tools/call" or "task" not in call.params:
        return None
    return {"content": [{"type": "text", "text": "The work is done."}]}


def _forbidden_runs(_script: Script, call: Call) -> JsonObject | None:
    if call.method != "tools/call" or "task" not in call.params or call.params.get("name") == "slow":
        return None
    return {"content": [{"type": "text", "text": "It runs."}]}


def _absent(script: Script, call: Call) -> bool:
    return not any(task == call.params.get("taskId") for task in script.tasks)


def _execution(_call: Call, result: JsonObject) -> None:
    for tool in result.get("tools", ()):
        if tool["name"] in (READ_NOTE["name"], "slow"):
            tool["execution"] = {"taskSupport": "optional"}


FAULTS: tuple[Fault, ...] = (
    fault(
        "tasks-forbidden-tool-runs",
        "CAP-24",
        _TASKS,
        "Runs a tool at once that does not allow tasks and is called as one.",
        Twist(instead=_forbidden_runs),
        finding="tasks.forbidden-accepted",
    ),
    fault(
        "tasks-empty",
        "CAP-21",
        _TASKS,
        "Declares tasks: {} and nothing in it.",
        Twist(declare=put("tasks", value={})),
        also=("CAP-22", "CAP-23", "CAP-24", "CAP-24-requests", "CAP-24-requests-tools"),
        verdict="empty",
    ),
    fault(
        "tasks-not-an-object",
        "CAP-21",
        _TASKS,
        "Declares tasks: true.",
        Twist(declare=put("tasks", value=True)),
        also=("CAP-22", "CAP-23", "CAP-24", "CAP-24-requests", "CAP-24-requests-tools"),
        verdict="malformed",
    ),
    fault(
        "tasks-undeclared-but-served",
        "CAP-21",
        _TASKS,
        "Serves tasks and does not declare them.",
        Twist(declare=hide("tasks")),
        also=("CAP-22", "CAP-23", "CAP-24"),
        verdict="undeclared",
    ),
    fault(
        "tasks-get-refused",
        "CAP-21",
        _TASKS,
        "Declares tasks and refuses tasks/get and tasks/result with -32601.",
        Twist(instead=refuse("tasks/get", "tasks/result")),
        verdict="broken",
    ),
    fault(
        "tasks-get-absent-method-not-found",
        "CAP-21",
        _TASKS,
        "Answers tasks/get of an unknown task with -32601.",
        Twist(instead=lambda script, call: refuse("tasks/get")(script, call) if _absent(script, call) else None),
        verdict="wrong-code",
        provoke="slow",
    ),
    fault(
        "tasks-list-refused",
        "CAP-22",
        _TASKS,
        "Declares tasks.list and refuses tasks/list with -32601.",
        Twist(instead=refuse("tasks/list")),
        verdict="broken",
    ),
    fault(
        "tasks-list-wrong-shape",
        "CAP-22",
        _TASKS,
        "Answers tasks/list with an object that has no list.",
        Twist(instead=instead("tasks/list", answer={})),
        verdict="broken",
    ),
    fault(
        "tasks-list-not-an-object",
        "CAP-22",
        _TASKS,
        "Declares tasks.list: true.",
        Twist(declare=put("tasks", "list", value=True)),
        verdict="malformed",
    ),
    fault(
        "tasks-list-undeclared-but-served",
        "CAP-22",
        _TASKS,
        "Answers tasks/list and does not declare tasks.list.",
        Twist(declare=hide("tasks", "list")),
        verdict="undeclared",
    ),
    fault(
        "tasks-list-leaks",
        "CAP-22",
        _TASKS,
        "Shows the tasks of one session to another.",
        lax("task-owner"),
        finding="tasks.not-isolated",
        transport="http",
        provoke="slow",
    ),
    fault(
        "tasks-cancel-refused",
        "CAP-23",
        _TASKS,
        "Declares tasks.cancel and refuses tasks/cancel with -32601.",
        Twist(instead=refuse("tasks/cancel")),
        verdict="broken",
    ),
    fault(
        "tasks-cancel-finished-accepted",
        "CAP-23",
        _TASKS,
        "Cancels a task that is finished.",
        lax("task-terminal"),
        verdict="broken",
        provoke="slow",
    ),
    fault(
        "tasks-cancel-not-an-object",
        "CAP-23",
        _TASKS,
        "Declares tasks.cancel: true.",
        Twist(declare=put("tasks", "cancel", value=True)),
        verdict="malformed",
    ),
    fault(
        "tasks-unreachable",
        "CAP-24",
        _TASKS,
        "Declares tasks.requests.tools.call and has no tool that can run as a task.",
        Twist(after=edit_result(_plain, "tools/list")),
        verdict="broken",
    ),
    fault(
        "tasks-wrong-shape",
        "CAP-24",
        _TASKS,
        "Answers a call that asked for a task with the task's members, not with a task.",
        Twist(after=edit_result(_unwrap, "tools/call")),
        verdict="broken",
        provoke="slow",
    ),
    fault(
        "tasks-call-ignored",
        "CAP-24",
        _TASKS,
        "Runs a call that asked for a task at once and answers with its result.",
        Twist(instead=_at_once),
        verdict="broken",
        provoke="slow",
    ),
    fault(
        "tasks-requests-not-an-object",
        "CAP-24-requests",
        _TASKS,
        "Declares tasks.requests: true.",
        Twist(declare=put("tasks", "requests", value=True)),
        also=("CAP-24", "CAP-24-requests-tools"),
        verdict="malformed",
    ),
    fault(
        "tasks-requests-empty",
        "CAP-24-requests",
        _TASKS,
        "Declares tasks.requests: {} and nothing in it.",
        Twist(declare=put("tasks", "requests", value={})),
        also=("CAP-24", "CAP-24-requests-tools"),
        verdict="empty",
    ),
    fault(
        "tasks-requests-tools-empty",
        "CAP-24-requests-tools",
        _TASKS,
        "Declares tasks.requests.tools: {} and nothing in it.",
        Twist(declare=put("tasks", "requests", "tools", value={})),
        also=("CAP-24",),
        verdict="empty",
    ),
    fault(
        "tasks-requests-tools-not-an-object",
        "CAP-24-requests-tools",
        _TASKS,
        "Declares tasks.requests.tools: true.",
        Twist(declare=put("tasks", "requests", "tools", value=True)),
        also=("CAP-24",),
        verdict="malformed",
    ),
    fault(
        "tasks-declared-elsewhere",
        "CAP-21",
        _ELSEWHERE,
        "Declares core tasks in a revision that does not have them.",
        Twist(declare=put("tasks", value={"list": {}, "cancel": {}})),
        verdict="leaked",
    ),
    fault(
        "tasks-execution-elsewhere",
        "CAP-24",
        _ELSEWHERE,
        "Puts execution on its tools in a revision that does not have it.",
        Twist(after=edit_result(_execution, "tools/list")),
        verdict="leaked",
    ),
)
