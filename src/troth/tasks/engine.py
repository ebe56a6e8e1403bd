"""The engine of tasks: who may see which, how they move, who hears of it. Knows no wire and no framework.

Refusals are values (`ErrorValue`); only a store that fails raises.

Source: 2025-11-25/basic/utilities/tasks; the extension ``io.modelcontextprotocol/tasks``.
"""

from __future__ import annotations

import logging
import secrets
import time
from typing import TYPE_CHECKING, Final

import anyio
import msgspec

from troth.bridge.errors import INTERNAL, ErrorValue
from troth.tasks.model import (
    LIMIT_REACHED,
    MOVES,
    Outcome,
    Page,
    Requester,
    Status,
    StoreError,
    Task,
    TaskLimits,
    unknown,
)
from troth.tasks.signals import Signals

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from troth.tasks.model import Asked
    from troth.tasks.store import Store

_log = logging.getLogger(__name__)

_BYTES: Final = 32
"""Random bytes of an id: 256 bits, twice what is due."""
_LONGEST: Final = 256
"""Characters of the longest id that is looked up."""
_ATTEMPTS: Final = 100
"""Updates of one task that may be lost to others in a row."""
_BATCH: Final = 200
"""Tasks that are read at once when all are looked through."""

EXPIRED: Final = ErrorValue(INTERNAL, "The task's time to live ended before its work did")
LOST: Final = ErrorValue(INTERNAL, "The task was lost in a restart, and may have had effects")
FAULT: Final = ErrorValue(INTERNAL, "The work of this task failed inside the server")
BUSY: Final = ErrorValue(INTERNAL, "The task changes all the time; ask again")


def new_run() -> str:
    """A name for one run of a program, which no other run has."""
    return secrets.token_urlsafe(12)


class Engine:
    """Tasks of any number of requesters in one store.

    Args:
        store: Keeps the tasks.
        limits: Bounds.
        run: Name of this run; tasks that it works on carry it.
        clock: Tells the time in seconds since 1970.

    Attributes:
        limits: Bounds.
        run: Name of this run.
    """

    def __init__(
        self,
        store: Store,
        limits: TaskLimits | None = None,
        *,
        run: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.limits = limits or TaskLimits()
        self.run = run or new_run()
        self._store = store
        self._clock = clock
        self._signals = Signals()
        self._listeners: list[Callable[[Task], None]] = []

    # For requesters

    async def create(
        self, requester: Requester, method: str, *, ttl: int | None = None, message: str = "", keep: str = ""
    ) -> Task | ErrorValue:
        """Makes a task, which is durable before this returns.

        Args:
            requester: Whose it is.
            method: Method of the request that it stands for.
            ttl: Time to live that the requester wishes, in milliseconds; it is brought within limits.
            message: Words for people; empty for none.
            keep: What its owner needs to go on after a restart; empty if it cannot.

        Returns:
            The task, or the refusal for a limit that is reached.
        """
        limits = self.limits
        for name, most, count in (
            ("kept", limits.kept, await self._store.count()),
            ("requester_kept", limits.requester_kept, await self._store.count(requester.key)),
        ):
            if count >= most:
                words = f"{count} tasks are kept already; wait until the time of some is over (limit: tasks.{name})"
                return ErrorValue(LIMIT_REACHED, words, {"limit": f"tasks.{name}"})
        most = limits.ttl_shared if requester.shared else limits.ttl_most
        wanted = min(max(limits.ttl if ttl is None else ttl, limits.ttl_least), most)
        now = self._clock()
        task = Task(
            id=secrets.token_urlsafe(_BYTES),
            owner=requester.key,
            method=method,
            created=now,
            updated=now,
            ttl=wanted,
            expires=now + wanted / 1000,
            poll=limits.poll,
            message=self._words(message),
            run=self.run,
            keep=keep,
        )
        await self._store.create(task)
        return task

    async def get(self, requester: Requester, task_id: object) -> Task | ErrorValue:
        """A task of this requester, or the refusal of an id that opens none.

        Args:
            requester: Who asks.
            task_id: What it calls the id, of any type.
        """
        if not isinstance(task_id, str):
            return ErrorValue(-32602, "taskId: a text belongs here")
        task = await self._store.get(task_id) if 0 < len(task_id) <= _LONGEST else None
        return task if task is not None and self._visible(task, requester) else unknown()

    async def page(self, requester: Requester, after: tuple[float, str] | None = None) -> Page:
        """Tasks of this requester, without outcomes: exactly those that `get` opens."""
        return await self._store.page(requester.key, after, self.limits.page, self._clock())

    async def next(self, requester: Requester, task_id: object, version: int | None) -> Task | ErrorValue:
        """Waits until a task is of another version than this one, or has ended.

        Args:
            requester: Who asks.
            task_id: The task.
            version: The version that is known; None for none.
        """
        with self._signals.of(task_id) as signal:
            while True:
                changed = signal.event
                task = await self.get(requester, task_id)
                if not isinstance(task, Task) or task.ended or task.version != version:
                    return task
                with anyio.move_on_after(self.limits.recheck):
                    await changed.wait()

    async def wait(self, requester: Requester, task_id: object) -> Task | ErrorValue:
        """Waits until a task has ended; it is over by its time to live at the latest."""
        version: int | None = None
        while True:
            task = await self.next(requester, task_id, version)
            if not isinstance(task, Task) or task.ended:
                return task
            version = task.version

    async def cancel(self, requester: Requester, task_id: object, message: str = "") -> Task | ErrorValue | None:
        """Ends a task as its requester wishes. What its work does afterwards changes nothing.

        Returns:
            The cancelled task; None if it had ended before; a refusal if it opens none.
        """
        task = await self.get(requester, task_id)
        if not isinstance(task, Task):
            return task
        words = self._words(message or "The task was cancelled by request.")
        return await self._move(task.id, Status.CANCELLED, message=words, asked={}, answers={})

    async def answer(
        self,
        requester: Requester,
        task_id: object,
        answers: Mapping[str, Outcome],
    ) -> Task | ErrorValue:
        """Takes answers to questions of a task. Those that no question waits for are ignored; some may be missing.

        Returns:
            The task afterwards, or a refusal.
        """
        task = await self.get(requester, task_id)
        if not isinstance(task, Task):
            return task

        def step(task: Task) -> Task | ErrorValue:
            fitting = {key: answer for key, answer in answers.items() if key in task.asked}
            asked = {key: question for key, question in task.asked.items() if key not in fitting}
            if not fitting:
                return _NOTHING
            status = Status.INPUT_REQUIRED if asked else Status.WORKING
            return msgspec.structs.replace(
                task, status=status, message="", asked=asked, answers={**task.answers, **fitting}
            )

        changed = await self._change(task.id, step)
        return await self.get(requester, task_id) if changed is _NOTHING else changed

    # For whoever does the work

    async def say(self, task_id: str, message: str) -> bool:
        """Puts words for people on a task that runs; says whether it still does."""
        changed = await self._change(task_id, lambda task: self._moved(task, task.status, message=self._words(message)))
        return isinstance(changed, Task)

    async def keep(self, task_id: str, keep: str) -> bool:
        """Notes what the owner of a task needs to go on with it after a restart; says whether the task still runs."""

        def step(task: Task) -> Task | ErrorValue:
            return self._moved(task, task.status, keep=keep)

        return isinstance(await self._change(task_id, step, told=False), Task)

    async def forget(self, task_id: str) -> None:
        """Deletes a task that no requester knows of."""
        await self._store.delete(task_id)
        self._signals.fire(task_id)

    async def ask(
        self, task_id: str, questions: Mapping[str, Asked], message: str = "", left: Collection[str] = ()
    ) -> Mapping[str, str] | ErrorValue:
        """Asks the requester. The task waits for input until every question is answered.

        Args:
            task_id: The task.
            questions: The questions by a key of the caller's.
            message: Words for people; empty for none.
            left: Keys of questions that an earlier run asked and got no answer to, or whose answers it did not fetch.
                A question of such a key is that question again.

        Returns:
            The keys of the caller's -> the keys that stand in the task, which are used once in its life; or why the
            questions cannot be asked.
        """
        raws = {key: question.raw() for key, question in questions.items()}
        if any(len(bytes(raw)) > self.limits.question for raw in raws.values()):
            return self._over("question", "a question is too long")
        names: dict[str, str] = {}

        def step(task: Task) -> Task | ErrorValue:
            again = {key: key for key in raws if key in left and key in {*task.asked, *task.answers}}
            fresh = _unused([key for key in raws if key not in again], task.used)
            if len(task.asked) + len(fresh) > self.limits.asked:
                return self._over("asked", "too many questions wait")
            if len(task.used) + len(fresh) > self.limits.questions:
                return self._over("questions", "the task asked too often")
            names.clear()
            names.update({**again, **fresh})
            asked = {names[key]: raw for key, raw in raws.items() if names[key] not in task.answers}
            return self._moved(
                task,
                Status.INPUT_REQUIRED if asked else task.status,
                message=self._words(message),
                asked={**task.asked, **asked},
                used=(*task.used, *fresh.values()),
            )

        changed = await self._change(task_id, step)
        return dict(names) if isinstance(changed, Task) else changed

    async def withdraw(self, task_id: str, keys: frozenset[str]) -> bool:
        """Takes back questions that need no answer any more; says whether the task still runs."""

        def step(task: Task) -> Task | ErrorValue:
            asked = {key: question for key, question in task.asked.items() if key not in keys}
            return self._moved(task, Status.INPUT_REQUIRED if asked else Status.WORKING, asked=asked)

        return isinstance(await self._change(task_id, step), Task)

    async def fetch(self, task_id: str, keys: frozenset[str]) -> Mapping[str, Outcome] | ErrorValue:
        """Waits for the answers to some questions, and takes them.

        Returns:
            The answers by the keys that stand in the task; or why none will come: it ended.
        """
        found: dict[str, Outcome] = {}

        def step(task: Task) -> Task | ErrorValue:
            found.clear()
            found.update({key: task.answers[key] for key in keys if key in task.answers})
            rest = {key: answer for key, answer in task.answers.items() if key not in keys}
            return self._moved(task, task.status, answers=rest)

        with self._signals.of(task_id) as signal:
            while True:
                changed = signal.event
                task = await self._store.get(task_id)
                if task is None or task.ended:
                    return _OVER
                if keys <= task.answers.keys():
                    taken = await self._change(task_id, step)
                    return found if isinstance(taken, Task) else _OVER
                with anyio.move_on_after(self.limits.recheck):
                    await changed.wait()

    async def finish(self, task_id: str, outcome: Outcome) -> Task | None:
        """Ends a task with what its request would have been answered with.

        Returns:
            The task; None if it had ended before, and so stays as it is.
        """
        if len(bytes(outcome.result)) > self.limits.outcome:
            outcome = Outcome(error=ErrorValue(INTERNAL, "The result is too large to be kept (limit: tasks.outcome)"))
        failed = outcome.error is not None
        message = self._words(outcome.error.message) if outcome.error is not None else ""
        status = Status.FAILED if failed else Status.COMPLETED
        found = await self._move(
            task_id, status, message=message, asked={}, answers={}, outcome=outcome, is_error=outcome.is_error
        )
        return found if isinstance(found, Task) else None

    async def gone(self, task_id: str) -> None:
        """Waits until a task has ended, for whatever reason."""
        with self._signals.of(task_id) as signal:
            while True:
                changed = signal.event
                task = await self._store.get(task_id)
                if task is None or task.ended:
                    return
                with anyio.move_on_after(self.limits.recheck):
                    await changed.wait()

    def listen(self, listener: Callable[[Task], None]) -> Callable[[], None]:
        """Tells of every change of a task that this process makes.

        Args:
            listener: Gets the task after each change; must return at once, and look itself at whose it is.

        Returns:
            What ends it.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    # Time and restarts

    async def recover(
        self,
        alive: Callable[[str], bool] = lambda _run: False,
        resume: Callable[[Task], bool | None] = lambda _task: False,
    ) -> tuple[Task, ...]:
        """Looks after unfinished tasks whose run is over: their owner takes them on, or they fail with words.

        Args:
            alive: Whether a run still runs; this one does.
            resume: Whether the owner goes on with a task (from its `keep`); None leaves it to somebody else.

        Returns:
            The tasks to go on with; they are of this run now.
        """
        resumed: list[Task] = []
        after = ""
        while batch := await self._store.unfinished(after, _BATCH):
            after = batch[-1].id
            for task in batch:
                if task.run == self.run or alive(task.run):
                    continue
                goes_on = resume(task)
                if goes_on is None:
                    continue
                taken = await self._adopt(task) if goes_on else None
                if taken is not None:
                    resumed.append(taken)
                elif not goes_on:
                    await self._fail(task, LOST)
        return tuple(resumed)

    async def sweep(self) -> int:
        """Ends tasks whose time is over and forgets those that ended; returns how many it looked at."""
        now = self._clock()
        over = await self._store.due(now, _BATCH)
        for task in over:
            if task.ended:
                await self._store.delete(task.id)
                self._signals.fire(task.id)
            else:
                await self._fail(task, EXPIRED, expires=now + self.limits.grace)
        return len(over)

    async def keep_time(self) -> None:
        """Sweeps for ever; belongs into a task of whoever owns the engine. What a store cannot do is said once."""
        problem = ""
        while True:
            try:
                swept = await self.sweep()
                problem = ""
            except StoreError as error:
                if problem != str(error):
                    problem = str(error)
                    _log.error("tasks whose time is over cannot be swept away: %s", error)
                swept = 0
            except Exception:
                _log.exception("tasks whose time is over cannot be swept away")
                swept = 0
            await anyio.sleep(0 if swept == _BATCH else self.limits.sweep)

    # Within

    def _visible(self, task: Task, requester: Requester) -> bool:
        return task.owner == requester.key and (not task.ended or self._clock() < task.expires)

    def _words(self, message: str) -> str:
        most = self.limits.message
        return message if len(message) <= most else f"{message[: most - 3]}..."

    @staticmethod
    def _over(name: str, words: str) -> ErrorValue:
        return ErrorValue(LIMIT_REACHED, f"{words} (limit: tasks.{name})", {"limit": f"tasks.{name}"})

    @staticmethod
    def _moved(task: Task, status: Status, **changes: object) -> Task | ErrorValue:
        if status not in MOVES[task.status]:
            return _OVER
        return msgspec.structs.replace(task, status=status, **changes)

    async def _move(self, task_id: str, status: Status, **changes: object) -> Task | ErrorValue | None:
        """Moves a task; None where it may not go there."""
        changed = await self._change(task_id, lambda task: self._moved(task, status, **changes))
        return None if changed is _OVER else changed

    async def _fail(self, task: Task, error: ErrorValue, **changes: object) -> None:
        outcome = Outcome(error=error)
        await self._move(
            task.id, Status.FAILED, message=error.message, asked={}, answers={}, outcome=outcome, **changes
        )

    async def _adopt(self, task: Task) -> Task | None:
        """Takes a task over from another run, unless somebody else was faster."""

        def step(now: Task) -> Task | ErrorValue:
            return self._moved(now, now.status, run=self.run) if now.run == task.run else _OVER

        taken = await self._change(task.id, step)
        return taken if isinstance(taken, Task) else None

    async def _change(
        self, task_id: str, step: Callable[[Task], Task | ErrorValue], *, told: bool = True
    ) -> Task | ErrorValue:
        """Changes a task by compare-and-set, as often as others come in between."""
        for _ in range(_ATTEMPTS):
            task = await self._store.get(task_id)
            if task is None:
                return unknown()
            found = step(task)
            if not isinstance(found, Task):
                return found
            changed = msgspec.structs.replace(found, version=task.version + 1, updated=max(task.updated, self._clock()))
            if await self._store.update(changed):
                if told:
                    self._tell(changed)
                return changed
        return BUSY

    def _tell(self, task: Task) -> None:
        self._signals.fire(task.id)
        for listener in tuple(self._listeners):
            try:
                listener(task)
            except Exception:
                _log.exception("a listener to tasks failed")


_OVER: Final = ErrorValue(-32602, "The task has ended")
_NOTHING: Final = ErrorValue(0, "nothing changes")


def _unused(keys: Iterable[str], used: tuple[str, ...]) -> dict[str, str]:
    """A name per key that was never used in this task."""
    taken = set(used)
    names: dict[str, str] = {}
    for key in keys:
        name, number = key, 1
        while name in taken:
            number += 1
            name = f"{key}-{number}"
        taken.add(name)
        names[key] = name
    return names
