"""Where tasks are kept: the protocol, and a store in memory.

Every store passes the cases of ``tests/tasks/store_cases.py``.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import TYPE_CHECKING, Protocol

import msgspec

from troth.tasks.model import Page, StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from troth.tasks.model import Task


class Store(Protocol):
    """Keeps tasks. Nothing in it knows what a legal move is; the engine does.

    Every method may raise `StoreError`. A cancelled call has either happened or not. A task that cannot be read is left
    out of lists.
    """

    async def create(self, task: Task) -> None:
        """Keeps a new task. Once this returns, the task is there for everybody and survives the process.

        Raises:
            StoreError: There is one with this id.
        """
        ...

    async def get(self, task_id: str) -> Task | None:
        """The task with its outcome; None if there is none."""
        ...

    async def update(self, task: Task) -> bool:
        """Replaces a task if what is kept is the version before this one.

        Returns:
            Whether it was; nothing changes if not. Exactly one of several updates of one version is.
        """
        ...

    async def page(self, owner: str, after: tuple[float, str] | None, size: int, now: float) -> Page:
        """Tasks of one owner, without those that ended and whose time is over, by creation and id.

        Args:
            owner: Key of the requester.
            after: Creation and id of the last task before the page; None for the first page. It need not be there.
            size: Most tasks of the page.
            now: The time.
        """
        ...

    async def delete(self, task_id: str) -> bool:
        """Forgets a task; says whether there was one."""
        ...

    async def due(self, now: float, most: int) -> Sequence[Task]:
        """Tasks whose time is over, without their outcomes; the oldest first."""
        ...

    async def unfinished(self, after: str, most: int) -> Sequence[Task]:
        """Tasks that have not ended, by id, from the first one after this. Empty only if there are none."""
        ...

    async def count(self, owner: str | None = None) -> int:
        """How many tasks there are: of one owner, or of all."""
        ...

    async def close(self) -> None:
        """Lets go of what it holds. May be called twice; nothing else may follow."""
        ...


def bare(task: Task) -> Task:
    """The task without its outcome."""
    return msgspec.structs.replace(task, outcome=None)


class MemoryStore:
    """Keeps tasks as long as the process lives."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}
        self._by_owner: dict[str, list[tuple[float, str]]] = {}

    async def create(self, task: Task) -> None:
        """See `Store.create`."""
        if task.id in self._tasks:
            raise StoreError(f"there is a task {task.id} already")
        self._tasks[task.id] = task
        insort(self._by_owner.setdefault(task.owner, []), (task.created, task.id))

    async def get(self, task_id: str) -> Task | None:
        """See `Store.get`."""
        return self._tasks.get(task_id)

    async def update(self, task: Task) -> bool:
        """See `Store.update`."""
        known = self._tasks.get(task.id)
        if known is None or known.version != task.version - 1:
            return False
        self._tasks[task.id] = task
        return True

    async def page(self, owner: str, after: tuple[float, str] | None, size: int, now: float) -> Page:
        """See `Store.page`."""
        keys = self._by_owner.get(owner, [])
        start = 0 if after is None else bisect_right(keys, after)
        tasks: list[Task] = []
        for _, name in keys[start:]:
            task = self._tasks[name]
            if not task.ended or task.expires > now:
                tasks.append(bare(task))
            if len(tasks) > size:
                return page_of(tasks, size)
        return page_of(tasks, size)

    async def delete(self, task_id: str) -> bool:
        """See `Store.delete`."""
        task = self._tasks.pop(task_id, None)
        if task is None:
            return False
        keys = self._by_owner[task.owner]
        keys.remove((task.created, task.id))
        if not keys:
            del self._by_owner[task.owner]
        return True

    async def due(self, now: float, most: int) -> Sequence[Task]:
        """See `Store.due`."""
        over = sorted((task.expires, task.id) for task in self._tasks.values() if task.expires <= now)
        return [bare(self._tasks[name]) for _, name in over[:most]]

    async def unfinished(self, after: str, most: int) -> Sequence[Task]:
        """See `Store.unfinished`."""
        names = sorted(task.id for task in self._tasks.values() if not task.ended and task.id > after)
        return [self._tasks[name] for name in names[:most]]

    async def count(self, owner: str | None = None) -> int:
        """See `Store.count`."""
        return len(self._tasks) if owner is None else len(self._by_owner.get(owner, ()))

    async def close(self) -> None:
        """See `Store.close`."""


def page_of(tasks: Sequence[Task], size: int) -> Page:
    """A page out of up to one task more than it may hold."""
    shown = tuple(tasks[:size])
    more = len(tasks) > size
    return Page(shown, (shown[-1].created, shown[-1].id) if more and shown else None)
