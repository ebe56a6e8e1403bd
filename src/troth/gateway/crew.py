"""The owner of tasks whose beginning and end no block of code can enclose.

A relayed call begins in one callback and ends in another, so no task group can be written around it, and opening one
per call costs more than the call. Every task has an owner all the same: the crew, whose own end is the end of all.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

import anyio

if TYPE_CHECKING:
    from collections.abc import Coroutine

_log = logging.getLogger(__name__)

CLOSING: Final = 10.0
"""Seconds that cancelled tasks get to clean up; what takes longer is left behind, and said."""


class Crew:
    """Spawns tasks on the running loop, and ends them together.

    Must be made inside the loop. What a task raises is logged and stays with that task.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    def __len__(self) -> int:
        """How many tasks there are."""
        return len(self._tasks)

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Starts a task; its first step runs after the caller's next wait.

        Args:
            work: The coroutine. Once the crew is closed it is cancelled before its first step.
            name: For logs; without secrets.

        Returns:
            The task, for whoever wants to cancel it.
        """
        task = self._loop.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        if self._closed:
            task.cancel()
        return task

    async def close(self) -> None:
        """Cancels every task and waits until all have ended, for up to `CLOSING` seconds, also if cancelled itself."""
        self._closed = True
        own = asyncio.current_task()
        with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSING):
            while tasks := self._tasks - {own}:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
        for task in self._tasks - {own}:
            _log.error("task %r does not end after it was cancelled", task.get_name())

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("task %r failed", task.get_name(), exc_info=error)
