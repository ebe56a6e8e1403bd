"""Tells connected hosts of changes, in the background of a running server. Framework-free.

Each legacy session has one task that sends what is due, so that a host that does not read holds up nobody but itself;
and marks, not queues, so that many changes while it waits are one notification. The tasks belong to the lifespan of the
server: what is changed before it runs is in the lists when they are first read.
"""

from __future__ import annotations

import logging
import secrets
import threading
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.from_thread
import anyio.lowlevel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from anyio.abc import TaskGroup

logger = logging.getLogger(__name__)

TASKS = "tasks"
"""Family of what is told of tasks; the URI of such a change is the id of a task."""

MOST_UPDATES = 1000
"""URIs that wait to be sent to one host; more are given up, since it is not reading."""


@dataclass(frozen=True, slots=True)
class Change:
    """What changed: the list of a family, or one resource."""

    family: str
    uri: str | None = None


@dataclass(eq=False)
class Audience:
    """Somebody who is told of changes: a legacy session, or the bus of the modern listeners.

    Attributes:
        send: Sends one notification.
        ready: Set when the host may be sent something; what changes before that is kept.
    """

    send: Callable[[Change], Awaitable[None]]
    due: dict[Change, None] = field(default_factory=dict[Change, None])
    wake: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ready: anyio.Event = field(default_factory=anyio.Event)

    def mark(self, change: Change) -> None:
        """Notes that a change is to be told. On the thread of the event loop."""
        if len(self.due) < MOST_UPDATES:
            self.due[change] = None
            self.wake.set()

    async def run(self) -> None:
        """Sends what is due until the scope is cancelled."""
        with self.scope:
            await self.ready.wait()
            while True:
                await self.wake.wait()
                self.wake = anyio.Event()
                due, self.due = self.due, {}
                for change in due:
                    try:
                        await self.send(change)
                    except Exception:
                        logger.warning("a host could not be told of a change", exc_info=True)


@dataclass(eq=False)
class _Running:
    """One run of the server: its tasks, and who it told."""

    tasks: TaskGroup
    state: object
    thread: int
    task: int
    loop: object
    bus: Audience
    name: str = field(default_factory=secrets.token_hex)
    audiences: set[Audience] = field(default_factory=set[Audience])

    def heard(self, change: Change | None) -> None:
        for audience in tuple(self.audiences) if change is not None else ():
            audience.mark(cast("Change", change))


class Announcer:
    """Who is told of changes.

    Args:
        publish: Told of each change once per run, for the listeners of the modern era.
    """

    def __init__(self, publish: Callable[[Change], Awaitable[None]]) -> None:
        self._publish = publish
        self._running: list[_Running] = []

    @property
    def running(self) -> bool:
        """Whether there are tasks that can tell anybody."""
        return bool(self._running)

    @asynccontextmanager
    async def lifespan(self, state: object) -> AsyncGenerator[Callable[[Change | None], None]]:
        """The tasks of one run of a server.

        Args:
            state: What the server's own lifespan yields, by which a session finds its run.

        Yields:
            What to call with each change that comes over the bus: it tells the legacy sessions.
        """
        async with anyio.create_task_group() as tasks:
            running = _Running(
                tasks,
                state,
                threading.get_ident(),
                anyio.get_current_task().id,
                anyio.lowlevel.current_token(),
                Audience(self._publish),
            )
            running.bus.ready.set()
            tasks.start_soon(running.bus.run)
            self._running.append(running)
            try:
                yield running.heard
            finally:
                self._running.remove(running)
                tasks.cancel_scope.cancel()

    def join(self, state: object, audience: Audience) -> Callable[[], None] | None:
        """Adds an audience to the run that it belongs to; gives what removes it again. None if nothing runs."""
        running = self._here(state)
        if running is None:
            return None
        running.audiences.add(audience)
        running.tasks.start_soon(audience.run)

        def leave() -> None:
            running.audiences.discard(audience)
            audience.scope.cancel()

        return leave

    def run_of(self, state: object) -> str:
        """Name of the run that a session belongs to; empty if nothing runs."""
        running = self._here(state)
        return "" if running is None else running.name

    def spawn(self, state: object, work: Callable[[], Awaitable[None]]) -> bool:
        """Does something in the background, as long as the run of a session goes on. What it raises is logged.

        Returns:
            Whether there is a run.
        """
        running = self._here(state)
        if running is not None:
            running.tasks.start_soon(_guarded, work)
        return running is not None

    def _here(self, state: object) -> _Running | None:
        here = [running for running in self._running if running.thread == threading.get_ident()]
        same = [running for running in here if running.state is state] or here[-1:]
        # FastMCP gives all runs of a server one state.
        return _above(same) if len(same) > 1 else next(iter(same), None)

    def tell(self, change: Change) -> None:
        """Tells of a change, from any thread. Never waits for a host."""
        for running in tuple(self._running):
            if running.thread == threading.get_ident():
                running.bus.mark(change)
            else:
                _elsewhere(running, change)


def _above(runs: list[_Running]) -> _Running:
    """The run that the current task belongs to; the first where that cannot be told."""
    parents = {task.id: task.parent_id for task in anyio.get_running_tasks()}
    begun = {running.task: running for running in runs}
    task: int | None = anyio.get_current_task().id
    while task is not None and task not in begun:
        task = parents.pop(task, None)
    return runs[0] if task is None else begun[task]


async def _guarded(work: Callable[[], Awaitable[None]]) -> None:
    try:
        await work()
    except Exception:
        logger.exception("work in the background of a server failed")
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        # Handlers raise it too: who awaits a task that somebody cancelled is told so. The run does not end of it.
        if anyio.current_effective_deadline() == float("-inf"):
            raise
        logger.exception("work in the background of a server was cut off from within")


def _elsewhere(running: _Running, change: Change) -> None:
    call: Any = anyio.from_thread.run_sync
    try:
        call(running.bus.mark, change, token=running.loop)
    except (RuntimeError, anyio.RunFinishedError):
        logger.debug("a run of the server ended before it could be told of a change")
