"""Doing the work of a task: it ends with the task, and the task ends with it."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import anyio

from troth.bridge.errors import ErrorValue
from troth.tasks.engine import FAULT
from troth.tasks.model import Outcome, StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from troth.tasks.engine import Engine
    from troth.tasks.model import Asked, Task

_log = logging.getLogger(__name__)


class Job:
    """What the work of a task may do beside its work.

    Attributes:
        task: The task as it was when the work began.
    """

    def __init__(self, engine: Engine, task: Task) -> None:
        self._engine = engine
        self._left: set[str] = {*task.asked, *task.answers}
        self.task = task

    async def say(self, message: str) -> None:
        """Puts words for people on the task."""
        await self._engine.say(self.task.id, message)

    async def ask(self, questions: Mapping[str, Asked], message: str = "") -> Mapping[str, Outcome] | ErrorValue:
        """Asks the requester and waits for all answers; the task is ``input_required`` meanwhile.

        If this is cancelled, the questions are taken back. A question that an earlier run of the work left open is
        asked under the same key again, and an answer that has come to it since counts.

        Args:
            questions: The questions by a key of the caller's.
            message: Words for people; empty for none.

        Returns:
            The answers by the caller's keys (errors among them, where a host refuses); or why none will come.
        """
        names = await self._engine.ask(self.task.id, questions, message, self._left)
        if isinstance(names, ErrorValue):
            return names
        wanted = frozenset(names.values())
        self._left -= wanted
        try:
            found = await self._engine.fetch(self.task.id, wanted)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._engine.withdraw(self.task.id, wanted)
            raise
        return found if isinstance(found, ErrorValue) else {key: found[name] for key, name in names.items()}

    async def settle(self) -> None:
        """Takes back what an earlier run of the work left open and nobody asked again."""
        left = frozenset(self._left)
        self._left.clear()
        if left:
            await self._engine.withdraw(self.task.id, left)


async def work(engine: Engine, task: Task, do: Callable[[Job], Awaitable[Outcome]]) -> None:
    """Does the work of a task and ends it. Whoever owns the engine spawns this.

    If the task ends first (cancelled, out of time), the work is cancelled. If this is cancelled, because the process
    ends, the task stays unfinished, and the next run looks after it (`Engine.recover`). While the store fails, as on a
    full disk, the end is tried again until the time of the task is over.

    Args:
        engine: The engine.
        task: A task of this run.
        do: Does it; what it raises fails the task, and is logged but not told.
    """
    async with anyio.create_task_group() as group:

        async def watch() -> None:
            await _tried(engine, task, lambda: engine.gone(task.id))
            group.cancel_scope.cancel()

        group.start_soon(watch)
        try:
            outcome = await do(Job(engine, task))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:
            # A cancellation that nobody here asked for is a failure too: so is told who awaits what somebody cancelled.
            if _cancelled():
                raise
            _log.exception("the work of a task failed")
            outcome = Outcome(error=FAULT)
        await _tried(engine, task, lambda: engine.finish(task.id, outcome))
        group.cancel_scope.cancel()


def _cancelled() -> bool:
    """Whether this is cancelled itself: by a scope, or by whoever holds the task of asyncio that it runs in."""
    if anyio.current_effective_deadline() == float("-inf"):
        return True
    try:
        running = asyncio.current_task()
    except RuntimeError:
        return False
    return running is not None and running.cancelling() > 0


async def _tried(engine: Engine, task: Task, act: Callable[[], Awaitable[object]]) -> None:
    """Does something with the store of a task, again and again while that fails, for as long as the task may live."""
    said = False
    with anyio.move_on_after(task.ttl / 1000):
        while True:
            try:
                await act()
            except StoreError as error:
                if not said:
                    _log.error("a task cannot be looked after, and is tried again: %s", error)
                said = True
                await anyio.sleep(engine.limits.recheck)
            else:
                return
