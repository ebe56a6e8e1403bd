"""The methods of tasks, as hosts of either face call them."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from msgspec import Raw

from troth.bridge import NOT_A_MESSAGE, ErrorValue, Kind, errors, fresh
from troth.bridge.errors import INTERNAL, METHOD_NOT_FOUND
from troth.bridge.promise import TASKS_KEY
from troth.gateway.model import Answer, Sort
from troth.gateway.tasks.kept import askable, requester
from troth.gateway.tasks.room import declares
from troth.register import Era
from troth.tasks import Core, Extension, Outcome, StoreError, Task, extension
from troth.tasks.face import member

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from troth.bridge import Frame, Id
    from troth.gateway.asked import Asked

UNREADABLE: Final = "The tasks cannot be read; the gateway's log says why"

_log = logging.getLogger(__name__)


async def held(asked: Asked) -> Answer:
    """Answers ``tasks/get`` and the others that the face of the host has."""
    if asked.host.era is Era.MODERN and not declares(asked.host):
        return asked.refuse(extension.MISSING)
    face = asked.gateway.tasks.face(asked.host.revision)
    handler = face.methods.get(asked.frame.method)
    if handler is None:
        return asked.error(METHOD_NOT_FOUND, f"Method not found: {asked.frame.method}")
    params = asked.frame.parts or {}
    try:
        if isinstance(face, Core) and handler == face.result:
            found = await _withdrawable(asked, _result(asked, face, params))
        else:
            found = await handler(requester(asked.host), params)
    except StoreError as error:
        _log.error("%s: %s", asked.frame.method, error)
        return asked.error(INTERNAL, UNREADABLE)
    if found is None:
        return Answer(b"")
    if isinstance(found, ErrorValue):
        return asked.refuse(found)
    if "inputRequests" in found and not await _askable(asked, found["taskId"]):
        found = {**found, "inputRequests": cast("dict[str, Any]", {})}
    return asked.result(found)


async def _askable(asked: Asked, name: str) -> bool:
    """Whether this host can be asked what a task asks. Another one of its principal made the task if not."""
    task = await asked.gateway.tasks.engine.get(requester(asked.host), name)
    return isinstance(task, Task) and askable(task, asked.host)


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


async def _result(asked: Asked, face: Core, params: Mapping[str, Raw]) -> Any:
    """``tasks/result``: questions of the task go to the host on its stream meanwhile, if it can be asked them."""
    task = await asked.gateway.tasks.engine.get(requester(asked.host), member(params, "taskId"))
    asks = asked.session is not None and isinstance(task, Task) and askable(task, asked.host)
    return await face.result(requester(asked.host), params, _asker(asked) if asks else None)


def _asker(asked: Asked) -> Callable[[Task, str, Raw], Awaitable[Outcome]]:
    """Sends questions to the legacy host of a request, on the stream of that."""
    session = asked.session
    if session is None:
        raise AssertionError("only sessions are asked by requests")

    async def ask(_task: Task, key: str, question: Raw) -> Outcome:
        parts = msgspec.json.decode(question, type=dict[str, Raw])
        waiting = _Answered()
        number = session.put(waiting, key)
        method = msgspec.json.decode(parts["method"], type=str)
        sent = msgspec.json.decode(parts["params"], type=dict[str, Raw])
        asked.stream.send(fresh.request_line(number, method, sent), Sort.OTHER)
        try:
            return _told(await waiting.frame)
        except asyncio.CancelledError:
            params = {"requestId": number, "reason": "no longer needed"}
            asked.stream.send(fresh.notification_line("notifications/cancelled", params), Sort.OTHER)
            raise
        finally:
            session.questions.pop(number, None)

    return ask


class _Answered:
    """Who waits for the answer of a host."""

    def __init__(self) -> None:
        self.frame: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()

    def host_answered(self, key: str, frame: Frame) -> None:  # noqa: ARG002 - there is one
        """The host answered."""
        if not self.frame.done():
            self.frame.set_result(frame)


def _told(frame: Frame) -> Outcome:
    """An answer as the outcome of its question."""
    if frame.kind is Kind.ERROR:
        data = errors.data_of(frame)
        return Outcome(
            error=ErrorValue(errors.code(frame) or INTERNAL, "The host answered with an error", data or None)
        )
    return Outcome(result=Raw(bytes(frame.body or b"{}")))


class _Waiting:
    """A request for the result of a task."""

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self._task = task

    def withdraw(self, reason: str) -> None:  # noqa: ARG002 - the task goes on, and needs none
        """The host does not want the answer any more."""
        self._task.cancel()

    def level(self, level: str) -> None:
        """Nothing is logged about it."""
