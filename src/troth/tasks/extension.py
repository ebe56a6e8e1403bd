"""The face of the extension ``io.modelcontextprotocol/tasks`` of 2026-07-28: tasks that the server hands out.

Source: the extension's specification and schema, 2026-07-28.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from troth.bridge import Bad, replies
from troth.bridge.errors import MISSING_CAPABILITY, ErrorValue
from troth.bridge.questions import read_entries
from troth.register import Era, register
from troth.tasks.face import (
    EXTENSION,
    Answer,
    Params,
    Result,
    Spell,
    as_it_is,
    member,
    members,
    moment,
    outcome_members,
)
from troth.tasks.model import Outcome, Status, Task

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.bridge.replies import Check
    from troth.tasks.engine import Engine
    from troth.tasks.face import Handler
    from troth.tasks.model import Requester

CHANGED: Final = "notifications/tasks"
METHODS: Final = ("tasks/get", "tasks/update", "tasks/cancel")
FILTER: Final = "taskIds"
"""Member of a listen's filter, and of its acknowledgement."""
LISTENED: Final = 1024
"""Tasks that one listen may name."""

MISSING: Final = ErrorValue(
    MISSING_CAPABILITY,
    "Missing required client capability: the tasks extension",
    {"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
)
"""The refusal of a task method, of ``taskIds``, and of a request that can be served as a task only, where the request
does not declare the extension."""

_DONE: Final[Mapping[str, Any]] = {"resultType": "complete"}
_BAD: Final = -32602


def is_declared(capabilities: object) -> bool:
    """Whether the client capabilities of a request (a JSON value or `Raw`) declare the extension: it is an object."""
    extensions = (members(capabilities) or {}).get("extensions")
    key = (members(extensions) or {}).get(EXTENSION) if extensions is not None else None
    return key is not None and members(key) is not None


def task_members(task: Task) -> dict[str, Any]:
    """A task in the words of the extension, without what is inlined. Completed stays completed, also with an error."""
    words = {"statusMessage": task.message} if task.message else {}
    return {
        "taskId": task.id,
        "status": str(task.status),
        **words,
        "createdAt": moment(task.created),
        "lastUpdatedAt": moment(task.updated),
        "ttlMs": task.ttl,
        "pollIntervalMs": task.poll,
    }


def created(task: Task) -> Result:
    """The answer to a request that became a task; only for requests that declare the extension."""
    return {"resultType": "task", **task_members(task)}


class Extension:
    """The methods of this face.

    Args:
        engine: The engine.
        spell: Spells a kept result for this revision.
        check: Holds the content of a form against its schema; None for nobody.

    Attributes:
        methods: Method -> handler. For requests that declare the extension; refuse others with `MISSING`.
    """

    def __init__(self, engine: Engine, spell: Spell = as_it_is, check: Check | None = None) -> None:
        self._engine = engine
        self._spell = spell
        self._check = check
        self.methods: Mapping[str, Handler] = {
            "tasks/get": self._get,
            "tasks/update": self._update,
            "tasks/cancel": self._cancel,
        }

    async def _get(self, requester: Requester, params: Params) -> Answer:
        task = await self._engine.get(requester, member(params, "taskId"))
        return {**_DONE, **self.detailed(task)} if isinstance(task, Task) else task

    async def _update(self, requester: Requester, params: Params) -> Answer:
        task = await self._engine.get(requester, member(params, "taskId"))
        if not isinstance(task, Task):
            return task
        responses = members(params.get("inputResponses"))
        if responses is None:
            return ErrorValue(_BAD, "inputResponses: an object belongs here")
        answers = {key: Outcome(result=raw) for key, raw in responses.items() if key in task.asked}
        if any(len(bytes(response)) > self._engine.limits.question for response in responses.values()):
            return ErrorValue(_BAD, "inputResponses: a response is too long (limit: tasks.question)")
        for key, answer in answers.items():
            if wrong := _misfit(task.asked[key], answer.result, self._check):
                return ErrorValue(_BAD, f"inputResponses: {wrong}")
        changed = await self._engine.answer(requester, task.id, answers)
        return _DONE if isinstance(changed, Task) else changed

    async def _cancel(self, requester: Requester, params: Params) -> Answer:
        task = await self._engine.cancel(requester, member(params, "taskId"))
        return task if isinstance(task, ErrorValue) else _DONE

    def detailed(self, task: Task) -> dict[str, Any]:
        """A task with what its state inlines: its questions, its result, or its error."""
        plain = task_members(task)
        if task.status is Status.INPUT_REQUIRED:
            return {**plain, "inputRequests": task.asked}
        if task.outcome is None:
            return plain
        found = outcome_members(task, task.outcome, self._spell)
        if isinstance(found, ErrorValue):
            # A result that cannot be spelled is an error of the protocol.
            return {**plain, "status": str(Status.FAILED), "error": _error(found)}
        return {**plain, "result": {**found, **_DONE}}

    async def agreed(self, requester: Requester, task_ids: object) -> tuple[Task, ...] | ErrorValue:
        """The tasks of a listen's filter whose changes the requester may hear of, as they are now.

        Tell it the state of each right after the acknowledgement: what changed before it listened is not missed then.

        Args:
            requester: Who listens, in a request that declares the extension.
            task_ids: The member ``taskIds``.
        """
        try:
            names = msgspec.convert(msgspec.json.decode(task_ids) if isinstance(task_ids, Raw) else task_ids, list[str])
        except msgspec.MsgspecError:
            return ErrorValue(_BAD, f"notifications.{FILTER}: a list of texts belongs here")
        if len(names) > LISTENED:
            return ErrorValue(_BAD, f"notifications.{FILTER}: at most {LISTENED} tasks")
        found = [await self._engine.get(requester, name) for name in dict.fromkeys(names)]
        return tuple(task for task in found if isinstance(task, Task))

    def changed(self, task: Task) -> tuple[str, Result]:
        """The notification of a change, as method and params. A listen adds its ``_meta``."""
        return CHANGED, self.detailed(task)


def _error(error: ErrorValue) -> dict[str, Any]:
    data = {} if error.data is None else {"data": error.data}
    return {"code": error.code, "message": error.message, **data}


def _misfit(question: Raw, response: Raw, check: Check | None) -> str:
    """What keeps a response from being an answer to a question; empty if nothing does. The question stays open then."""
    found = read_entries(Raw(msgspec.json.encode({"asked": question})), _revision())
    reply = replies.read_entry(found[0], response, check) if isinstance(found, tuple) else None
    return reply.reason if isinstance(reply, Bad) else ""


@cache
def _revision() -> str:
    """The revision that the extension belongs to."""
    return register().eras[Era.MODERN][-1]
