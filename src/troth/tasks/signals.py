"""Wakes whoever waits for a change of one task."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Generator


class Signal:
    """What one or more wait for.

    Attributes:
        event: Set at the next change; a fresh one takes its place then. Take it before you look at the task, and no
            change in between is missed.
        waiters: How many wait.
    """

    __slots__ = ("event", "waiters")

    def __init__(self) -> None:
        self.event = anyio.Event()
        self.waiters = 0


class Signals:
    """The signals of all tasks that somebody waits for."""

    def __init__(self) -> None:
        self._signals: dict[object, Signal] = {}

    def __len__(self) -> int:
        """How many tasks are waited for."""
        return len(self._signals)

    @contextmanager
    def of(self, task_id: object) -> Generator[Signal]:
        """The signal of a task, as long as the block runs. An id that is no text never changes."""
        key = task_id if isinstance(task_id, str) else ""
        signal = self._signals.setdefault(key, Signal())
        signal.waiters += 1
        try:
            yield signal
        finally:
            signal.waiters -= 1
            if not signal.waiters:
                del self._signals[key]

    def fire(self, task_id: str) -> None:
        """Wakes everybody who waits for this task."""
        signal = self._signals.get(task_id)
        if signal is not None:
            signal.event.set()
            signal.event = anyio.Event()
