"""The face of 2025-11-25: tasks of the core protocol, which a host asks for with ``params.task``.

Source: 2025-11-25/basic/utilities/tasks; its schema.
"""

from __future__ import annotations

import base64
import binascii
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
import msgspec
from msgspec import Raw

from troth.bridge.errors import METHOD_NOT_FOUND, ErrorValue, not_supported
from troth.tasks.face import RELATED, Answer, Params, Result, Spell, as_it_is, member, members, moment, outcome_members
from troth.tasks.model import Outcome, Status, Task

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from troth.tasks.engine import Engine
    from troth.tasks.face import Handler
    from troth.tasks.model import Requester

    Ask = Callable[[Task, str, Raw], Awaitable[Outcome]]
    """Sends a question of a task (its key, then an object with ``method`` and ``params``) to the host; the params
    carry the task's id already. Returns the host's answer or error. It must bound its own wait."""

STATUS: Final = "notifications/tasks/status"
METHODS: Final = ("tasks/get", "tasks/result", "tasks/list", "tasks/cancel")

_BAD: Final = -32602
_DURATION: Final = "a whole number of milliseconds, 0 or more,"
_CURSOR: Final = 200
"""Characters of the longest cursor that is read; ours are under 100."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a request asks for with ``params.task``.

    Attributes:
        ttl: Time to live in milliseconds; None leaves it to us.
    """

    ttl: int | None = None


def wish(params: Params, support: object) -> Wish | ErrorValue | None:
    """Whether a tool call is to become a task, where ``tasks.requests.tools.call`` is declared.

    Where it is not, do not ask: ``params.task`` is ignored there.

    Args:
        params: Params of the call.
        support: ``execution.taskSupport`` of the tool; whatever is not ``optional`` or ``required`` forbids tasks.

    Returns:
        The wish; None for a call that is answered at once; the refusal of a call that does not fit its tool.
    """
    asked = "task" in params
    refusal = _REFUSALS.get((asked, support if support in ("optional", "required") else "forbidden"))
    if refusal is not None or not asked:
        return refusal
    task = params["task"]
    parts = members(task) if isinstance(task, Raw) else cast("Mapping[str, object]", task)
    if not isinstance(parts, dict):
        return ErrorValue(_BAD, "task: an object belongs here")
    ttl = _milliseconds(parts.get("ttl"))
    return Wish(ttl) if ttl is None or ttl >= 0 else ErrorValue(_BAD, f"task.ttl: {_DURATION} belongs here")


def _milliseconds(value: object) -> int | None:
    """A duration as it is asked for, also where it is spelled with an exponent; -1 for what is none, None for null."""
    try:
        found = msgspec.json.decode(value, type=int | float | bool | None) if isinstance(value, Raw) else value
    except msgspec.DecodeError:
        return -1
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    return found if found is None or (isinstance(found, int) and not isinstance(found, bool)) else -1


_REFUSALS: Final[Mapping[tuple[bool, str], ErrorValue]] = {
    (True, "forbidden"): ErrorValue(METHOD_NOT_FOUND, "This tool cannot run as a task (execution.taskSupport)"),
    (False, "required"): ErrorValue(METHOD_NOT_FOUND, "This tool runs as a task only (execution.taskSupport)"),
}


def declared(requester: Requester) -> Result:
    """The ``tasks`` capability for a requester. One that cannot be told from others gets no list."""
    rest: dict[str, Any] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
    return rest if requester.shared else {"list": {}, **rest}


def related(task_id: str) -> dict[str, Any]:
    """The member of ``_meta`` that every message of a task carries.

    Exceptions are the results of ``tasks/get``, ``tasks/list``, ``tasks/cancel``, and notifications of its status.
    """
    return {RELATED: {"taskId": task_id}}


def with_related(values: Mapping[str, Any], task_id: str) -> dict[str, Any]:
    """Members of params or of a result, with the task's id in their ``_meta``; the rest of it stays."""
    meta = members(values.get("_meta")) or {}
    return {**values, "_meta": {**meta, **related(task_id)}}


def task_members(task: Task) -> dict[str, Any]:
    """A task in the words of this revision. A result that reports an error means ``failed`` here."""
    failed = task.status is Status.COMPLETED and task.is_error
    words = {"statusMessage": task.message} if task.message else {}
    return {
        "taskId": task.id,
        "status": str(Status.FAILED if failed else task.status),
        **words,
        "createdAt": moment(task.created),
        "lastUpdatedAt": moment(task.updated),
        "ttl": task.ttl,
        "pollInterval": task.poll,
    }


def created(task: Task) -> Result:
    """The answer to a request that became a task."""
    return {"task": task_members(task), "_meta": related(task.id)}


def status(task: Task) -> tuple[str, Result]:
    """The notification of a change, as method and params."""
    return STATUS, task_members(task)


class Core:
    """The methods of this face.

    Args:
        engine: The engine.
        spell: Spells a kept result for this revision.

    Attributes:
        methods: Method -> handler. ``tasks/result`` is answered when the task has ended.
    """

    def __init__(self, engine: Engine, spell: Spell = as_it_is) -> None:
        self._engine = engine
        self._spell = spell
        self._asking: set[tuple[str, str]] = set()
        self.methods: Mapping[str, Handler] = {
            "tasks/get": self._get,
            "tasks/result": self.result,
            "tasks/list": self._list,
            "tasks/cancel": self._cancel,
        }

    async def _get(self, requester: Requester, params: Params) -> Answer:
        task = await self._engine.get(requester, member(params, "taskId"))
        return task_members(task) if isinstance(task, Task) else task

    async def _list(self, requester: Requester, params: Params) -> Answer:
        if requester.shared:
            return not_supported("tasks/list", "tasks.list")
        cursor = member(params, "cursor")
        after = None if cursor is None else _after(cursor)
        if after is None and cursor is not None:
            return ErrorValue(_BAD, "cursor: this list gave out none like it")
        page = await self._engine.page(requester, after)
        more = {} if page.after is None else {"nextCursor": _cursor(page.after)}
        return {"tasks": [task_members(task) for task in page.tasks], **more}

    async def _cancel(self, requester: Requester, params: Params) -> Answer:
        task = await self._engine.cancel(requester, member(params, "taskId"))
        if task is None:
            return ErrorValue(_BAD, "The task has ended already; it cannot be cancelled any more")
        return task_members(task) if isinstance(task, Task) else task

    async def result(self, requester: Requester, params: Params, ask: Ask | None = None) -> Answer:
        """``tasks/result``: what the request itself would have been answered with, as soon as there is that.

        Args:
            requester: Who asks.
            params: With ``taskId``.
            ask: Sends the questions of the task meanwhile, on the stream of this request. Each is sent once as long as
                an answer may come; if this call is cancelled before, the next one sends it again.
        """
        task_id = member(params, "taskId")
        if ask is None:
            task = await self._engine.wait(requester, task_id)
            return self._ended(task) if isinstance(task, Task) else task
        task = await self._engine.next(requester, task_id, None)
        async with anyio.create_task_group() as group:
            while isinstance(task, Task) and not task.ended:
                for key, question in task.asked.items():
                    if (task.id, key) not in self._asking:
                        self._asking.add((task.id, key))
                        group.start_soon(self._ask, ask, requester, task, key, question)
                task = await self._engine.next(requester, task_id, task.version)
            group.cancel_scope.cancel()
        return self._ended(task) if isinstance(task, Task) else task

    def _ended(self, task: Task) -> Answer:
        if task.status is Status.CANCELLED or task.outcome is None:
            return ErrorValue(_BAD, "The task was cancelled; it has no result")
        found = outcome_members(task, task.outcome, self._spell)
        if isinstance(found, ErrorValue):
            return found
        # The word of another revision, which a result that came from there may have.
        found.pop("resultType", None)
        return with_related(found, task.id)

    async def _ask(self, ask: Ask, requester: Requester, task: Task, key: str, question: Raw) -> None:
        try:
            answer = await ask(task, key, _belonging(question, task.id))
            await self._engine.answer(requester, task.id, {key: answer})
        finally:
            self._asking.discard((task.id, key))


def _belonging(question: Raw, task_id: str) -> Raw:
    """A question whose params carry the id of its task."""
    parts = members(question) or {}
    return Raw(msgspec.json.encode({**parts, "params": with_related(members(parts.get("params")) or {}, task_id)}))


def _cursor(after: tuple[float, str]) -> str:
    return base64.urlsafe_b64encode(f"{after[0]!r} {after[1]}".encode()).decode().rstrip("=")


def _after(cursor: object) -> tuple[float, str] | None:
    """What `_cursor` wrote; None for anything else."""
    if not isinstance(cursor, str) or len(cursor) > _CURSOR:
        return None
    padded = cursor + "=" * (-len(cursor) % 4)
    try:
        created, _, name = base64.b64decode(padded.encode("ascii"), b"-_", validate=True).decode().partition(" ")
        after = (float(created), name)
    except (ValueError, binascii.Error):
        return None
    return after if math.isfinite(after[0]) and _cursor(after) == cursor else None
