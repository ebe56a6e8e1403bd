"""Long-running work in both spellings: core tasks of 2025-11-25, and the tasks extension of modern revisions.

There is no clock: a task works when it is made, and is done when its state is asked for the second time, or its result.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from troth.register import Era
from troth.testing.content import PAGE, TASKS_EXTENSION
from troth.testing.model import META, SUBSCRIPTION, Call, Refusal, Task

if TYPE_CHECKING:
    from troth.testing.model import Answer, JsonObject
    from troth.testing.script import Script

TTL = 300_000
"""How long a task is kept, in milliseconds, as told to the client."""
POLL = 50
"""How long the client should wait before it asks again, in milliseconds."""
WORKING, COMPLETED, CANCELLED = "working", "completed", "cancelled"


def outcome() -> JsonObject:
    """What the work comes to."""
    return {"content": [{"type": "text", "text": "The work is done."}]}


def extension(script: Script, call: Call) -> bool:
    """Whether the server offers the tasks extension in the revision of this call."""
    return TASKS_EXTENSION in script.offers(call.revision).get("extensions", {})


def _granted(call: Call) -> bool:
    extensions = call.capabilities.get("extensions")
    return isinstance(extensions, dict) and TASKS_EXTENSION in extensions


def ungranted(call: Call) -> Refusal | None:
    """The refusal of a request that touches the extension and did not declare it."""
    if _granted(call):
        return None
    needed: JsonObject = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
    return Refusal(-32021, f"This request needs {TASKS_EXTENSION}", needed)


def start(script: Script, call: Call, tool: JsonObject) -> Answer | None:
    """Makes a task of a tool call, or refuses to; None where the tool is to run at once."""
    able = tool.get("execution", {}).get("taskSupport") in ("optional", "required")
    if call.era is Era.MODERN:
        if not able or not extension(script, call) or not (_granted(call) or script.lax("tasks-opt-in", call.revision)):
            return None
        return {**_spell(_make(script, ""), call), "resultType": "task"}
    if "task" not in call.params or "tasks" not in script.offers(call.revision) or call.session is None:
        return None
    if not able:
        return Refusal(-32601, "This tool cannot run as a task")
    if not isinstance(call.params["task"], dict):
        return Refusal(-32602, "task must be an object")
    return {"task": _spell(_make(script, call.session.id), call)}


def _make(script: Script, owner: str) -> Task:
    task = Task(id=secrets.token_urlsafe(24), owner=owner, stamp=script.now())
    script.tasks[task.id] = task
    return task


def _spell(task: Task, call: Call) -> JsonObject:
    stamps: JsonObject = {"createdAt": task.stamp, "lastUpdatedAt": task.stamp}
    head: JsonObject = {"taskId": task.id, "status": task.status, **stamps}
    if call.era is Era.LEGACY:
        return {**head, "ttl": TTL, "pollInterval": POLL}
    done: JsonObject = {"result": {**outcome(), "resultType": "complete"}} if task.status == COMPLETED else {}
    return {**head, "ttlMs": TTL, "pollIntervalMs": POLL, **done}


def _find(script: Script, call: Call) -> Task | Refusal:
    if call.era is Era.MODERN:
        refusal = None if script.lax("tasks-opt-in", call.revision) else ungranted(call)
        if refusal:
            return refusal
    identity = call.params.get("taskId")
    task = script.tasks.get(identity) if isinstance(identity, str) else None
    owner = call.session.id if call.session else ""
    if task is None or (task.owner != owner and not script.lax("task-owner", call.revision)):
        return Refusal(-32602, "Unknown task")
    return task


def _change(script: Script, call: Call, task: Task, status: str) -> None:
    task.status = status
    for listen in script.listens:
        if task.id in listen.filter.get("taskIds", ()):
            params: JsonObject = {"_meta": {SUBSCRIPTION: listen.id}, **_spell(task, call)}
            script.notify("notifications/tasks", params, listen.stream)


def get(script: Script, call: Call) -> Answer:
    """The state of a task; the second question finds it done."""
    task = _find(script, call)
    if isinstance(task, Refusal):
        return task
    task.polls += 1
    if task.polls > 1 and task.status == WORKING:
        _change(script, call, task, COMPLETED)
    return _spell(task, call)


def payload(script: Script, call: Call) -> Answer:
    """The result of a task (core only); asking for it finishes the work."""
    task = _find(script, call)
    if isinstance(task, Refusal):
        return task
    if task.status == CANCELLED:
        return Refusal(-32602, "The task was cancelled")
    _change(script, call, task, COMPLETED)
    return {**outcome(), "_meta": {f"{META}related-task": {"taskId": task.id}}}


def listed(script: Script, call: Call) -> Answer:
    """A page of the tasks of this session (core only)."""
    from troth.testing.methods import page

    owner = call.session.id if call.session else ""
    mine = [task for task in script.tasks.values() if task.owner == owner or script.lax("task-owner", call.revision)]
    return page(call, "tasks", [_spell(task, call) for task in mine], PAGE)


def cancel(script: Script, call: Call) -> Answer:
    """Ends a task that still works; the extension acknowledges even where there is nothing left to end."""
    task = _find(script, call)
    if isinstance(task, Refusal):
        return task
    if task.status == WORKING or script.lax("task-terminal", call.revision):
        _change(script, call, task, CANCELLED)
    elif call.era is Era.LEGACY:
        return Refusal(-32602, f"The task is {task.status} already")
    return {} if call.era is Era.MODERN else _spell(task, call)


def update(script: Script, call: Call) -> Answer:
    """Input for a task (extension only); no task here waits for any."""
    task = _find(script, call)
    return task if isinstance(task, Refusal) else {}
