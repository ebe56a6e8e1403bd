"""The methods of tasks, as hosts of either face call them."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, cast

from troth.bridge import NOT_A_MESSAGE, ErrorValue
from troth.bridge.errors import INTERNAL, METHOD_NOT_FOUND
from troth.bridge.promise import TASKS_KEY
from troth.gateway.model import Answer
from troth.gateway.tasks.room import declares, requester
from troth.register import Era
from troth.tasks import Extension, StoreError, extension

if TYPE_CHECKING:
    from msgspec import Raw

    from troth.bridge import Id
    from troth.gateway.asked import Asked
    from troth.tasks import Task

UNREADABLE: Final = "The tasks cannot be read; the gateway's log says why"

_log = logging.getLogger(__name__)


async def held(asked: Asked) -> Answer:
    """Answers ``tasks/get`` and the others that the face of the host has."""
    if asked.host.era is Era.MODERN and not declares(asked.host):
        return asked.refuse(extension.MISSING)
    handler = asked.gateway.tasks.face(asked.host.revision).methods.get(asked.frame.method)
    if handler is None:
        return asked.error(METHOD_NOT_FOUND, f"Method not found: {asked.frame.method}")
    work = handler(requester(asked.host), asked.frame.parts or {})
    try:
        found = await _withdrawable(asked, work)
    except StoreError as error:
        _log.error("%s: %s", asked.frame.method, error)
        return asked.error(INTERNAL, UNREADABLE)
    if found is None:
        return Answer(b"")
    return asked.refuse(found) if isinstance(found, ErrorValue) else asked.result(found)


async def watched(asked: Asked, wanted: Raw) -> tuple[Task, ...] | ErrorValue | None:
    """The tasks of which a listen hears; None where none were promised, an error where it may not ask.

    Args:
        asked: The listen.
        wanted: The member ``taskIds`` of its filter.
    """
    if not asked.built.has(TASKS_KEY):
        return None
    if not declares(asked.host):
        return extension.MISSING
    face = asked.gateway.tasks.face(asked.host.revision)
    if not isinstance(face, Extension):
        return None
    try:
        return await face.agreed(requester(asked.host), wanted)
    except StoreError as error:
        _log.error("subscriptions/listen: %s", error)
        return ErrorValue(INTERNAL, UNREADABLE)


async def _withdrawable(asked: Asked, work: Any) -> Any:
    """Waits for an answer that may take as long as the task does; None if its host withdraws the request."""
    if asked.session is None:
        return await work
    running, identity = asked.session.running, cast("Id", asked.frame.id)
    if identity in running:
        work.close()
        return ErrorValue(NOT_A_MESSAGE, "a request with this id is running; give each its own")
    waiting = asked.gateway.crew.spawn(work, asked.frame.method)
    running[identity] = _Waiting(waiting)
    try:
        await asyncio.wait({waiting})
        return None if waiting.cancelled() else waiting.result()
    finally:
        waiting.cancel()
        del running[identity]


class _Waiting:
    """A request for the result of a task."""

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self._task = task

    def withdraw(self, reason: str) -> None:  # noqa: ARG002 - the task goes on, and needs none
        """The host does not want the answer any more."""
        self._task.cancel()

    def level(self, level: str) -> None:
        """Nothing is logged about it."""
