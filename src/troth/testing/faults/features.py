"""Faults of logging, completions, core tasks and ``experimental``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.register import Era
from troth.testing.content import MOST_VALUES, READ_NOTE
from troth.testing.faults.hooks import (
    ALL,
    LEGACY,
    MODERN,
    edit_result,
    fault,
    hide,
    instead,
    lax,
    put,
    refuse,
    since,
)
from troth.testing.model import LEVELS, Twist

if TYPE_CHECKING:
    from troth.testing.model import Call, Fault, JsonObject
    from troth.testing.script import Script

_COMPLETIONS = since("completions")
_EARLY = tuple(revision for revision in ALL if revision not in _COMPLETIONS)
_TASKS = since("tasks")
_ASK_COMPLETION = "completion/complete"
_TASK_METHODS = ("tasks/get", "tasks/result", "tasks/list", "tasks/cancel")


def _bad_level(_script: Script, call: Call) -> JsonObject | None:
    wrong = call.method == "logging/setLevel" and call.params.get("level") not in LEVELS
    return {} if wrong and call.era is Era.LEGACY else None


_LOGGING: tuple[Fault, ...] = (
    fault(
        "logging-refused",
        "CAP-12",
        LEGACY,
        "Declares logging and refuses logging/setLevel with -32601.",
        Twist(instead=refuse("logging/setLevel")),
        verdict="broken",
    ),
    fault(
        "logging-undeclared-messages",
        "CAP-12",
        ALL,
        "Does not declare logging and sends log messages.",
        Twist(declare=hide("logging"), instead=refuse("logging/setLevel")),
        verdict="undeclared",
        provoke="read_note",
    ),
    fault(
        "logging-undeclared-but-served",
        "CAP-12",
        LEGACY,
        "Does not declare logging and answers logging/setLevel.",
        Twist(declare=hide("logging")),
        verdict="undeclared",
    ),
    fault(
        "logging-setlevel-wrong-code",
        "CAP-12",
        LEGACY,
        "Does not declare logging and refuses logging/setLevel with -32603.",
        Twist(declare=hide("logging"), instead=refuse("logging/setLevel", code=-32603)),
        verdict="wrong-code",
    ),
    fault(
        "logging-bad-level-accepted",
        "CAP-12",
        LEGACY,
        "Accepts a log level that does not exist.",
        Twist(instead=_bad_level),
        finding="logging.bad-level-accepted",
    ),
    fault(
        "logging-modern-without-loglevel",
        "CAP-12",
        MODERN,
        "Sends log messages for a request that named no log level.",
        lax("log-without-level"),
        verdict="ungated",
        provoke="read_note",
    ),
    fault(
        "logging-ignores-level",
        "CAP-12",
        ALL,
        "Sends log messages below the level that was asked for.",
        lax("log-level"),
        verdict="partial",
        provoke="read_note",
    ),
    fault(
        "logging-modern-setlevel-served",
        "CAP-12",
        MODERN,
        "Answers logging/setLevel in a revision that removed it.",
        Twist(instead=instead("logging/setLevel", answer={})),
        finding="method.removed-served",
    ),
    fault(
        "logging-not-an-object",
        "CAP-12",
        ALL,
        "Declares logging: true.",
        Twist(declare=put("logging", value=True)),
        verdict="malformed",
    ),
)


def _flood_values(_call: Call, result: JsonObject) -> None:
    result["completion"] = {"values": [f"value {n}" for n in range(MOST_VALUES + 1)]}


_COMPLETION: tuple[Fault, ...] = (
    fault(
        "completions-refused",
        "CAP-13",
        _COMPLETIONS,
        "Declares completions and refuses completion/complete with -32601.",
        Twist(instead=refuse(_ASK_COMPLETION)),
        verdict="broken",
    ),
    fault(
        "completions-empty-object",
        "CAP-13",
        _COMPLETIONS,
        "Answers completion/complete with an empty object.",
        Twist(instead=instead(_ASK_COMPLETION, answer={})),
        verdict="broken",
    ),
    fault(
        "completions-over-100",
        "CAP-13",
        _COMPLETIONS,
        "Answers completion/complete with more than 100 values.",
        Twist(after=edit_result(_flood_values, _ASK_COMPLETION)),
        verdict="broken",
    ),
    fault(
        "completions-undeclared-but-served",
        "CAP-13",
        _COMPLETIONS,
        "Does not declare completions and answers completion/complete.",
        Twist(declare=hide("completions")),
        verdict="undeclared",
    ),
    fault(
        "completions-wrong-code",
        "CAP-13",
        _COMPLETIONS,
        "Does not declare completions and refuses completion/complete with -32603.",
        Twist(declare=hide("completions"), instead=refuse(_ASK_COMPLETION, code=-32603)),
        verdict="wrong-code",
    ),
    fault(
        "completions-not-an-object",
        "CAP-13",
        _COMPLETIONS,
        "Declares completions: true.",
        Twist(declare=put("completions", value=True)),
        verdict="malformed",
    ),
    fault(
        "completions-declared-2024",
        "CAP-13",
        _EARLY,
        "Declares completions in a revision that has no such capability.",
        Twist(declare=put("completions", value={})),
        verdict="leaked",
    ),
)


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


def _absent(script: Script, call: Call) -> bool:
    return call.params.get("taskId") not in script.tasks


def _execution(call: Call, result: JsonObject) -> None:
    if call.revision in _TASKS:
        return
    for tool in result.get("tools", ()):
        if tool["name"] in (READ_NOTE["name"], "slow"):
            tool["execution"] = {"taskSupport": "optional"}


_CORE_TASKS: tuple[Fault, ...] = (
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
        tuple(revision for revision in ALL if revision not in _TASKS),
        "Declares core tasks in a revision that does not have them.",
        Twist(declare=put("tasks", value={"list": {}, "cancel": {}})),
        verdict="leaked",
    ),
    fault(
        "tasks-execution-elsewhere",
        "CAP-24",
        tuple(revision for revision in ALL if revision not in _TASKS),
        "Puts execution on its tools in a revision that does not have it.",
        Twist(after=edit_result(_execution, "tools/list")),
        verdict="leaked",
    ),
)

_EXPERIMENTAL: tuple[Fault, ...] = (
    fault(
        "experimental-not-object",
        "CAP-01-server",
        ALL,
        "Declares true under a key of experimental.",
        Twist(declare=put("experimental", "stateless", value=True)),
        verdict="malformed",
    ),
    fault(
        "experimental-not-a-map",
        "CAP-01-server",
        ALL,
        "Declares experimental: true.",
        Twist(declare=put("experimental", value=True)),
        verdict="malformed",
    ),
    fault(
        "experimental-differs",
        "CAP-01-server",
        MODERN,
        "Declares experimental to legacy clients and not to modern ones.",
        Twist(declare=hide("experimental")),
        finding="declaration.eras-differ",
    ),
)

FAULTS: tuple[Fault, ...] = (*_LOGGING, *_COMPLETION, *_CORE_TASKS, *_EXPERIMENTAL)
