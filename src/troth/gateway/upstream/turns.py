"""Turns on a pipe: a question on it names no call, so one call that may be asked has the pipe."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from troth.bridge import Cause, Lost

if TYPE_CHECKING:
    from collections.abc import Callable

    from troth.bridge import Id
    from troth.gateway.limits import Limits
    from troth.gateway.upstream.waiting import Waiting


class Turns:
    """Calls that wait for the pipe.

    Args:
        limits: How many may wait, and for how long.
        failed: Hears of a call that got no turn.

    Attributes:
        queue: The calls by their ids, in the order in which they came.
    """

    def __init__(self, limits: Limits, failed: Callable[[Waiting, Lost], None]) -> None:
        self._limits = limits
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self.queue: dict[Id, Waiting] = {}

    def join(self, waiting: Waiting) -> None:
        """Lets a call wait for its turn, but not for ever."""
        limits = self._limits
        self.queue[waiting.number] = waiting
        if len(self.queue) > limits.turns:
            self._loop.call_soon(self._none, waiting, f"{limits.turns} calls wait for it already (limit: turns)")
        else:
            why = f"none came in {limits.turn:g} s (limit: turn)"
            waiting.timer = self._loop.call_later(limits.turn, self._none, waiting, why)

    def leave(self, number: Id) -> bool:
        """A call no longer waits. False if it does not wait here."""
        waiting = self.queue.pop(number, None)
        if waiting is not None:
            waiting.stop()
        return waiting is not None

    def next(self) -> Waiting:
        """Takes the call out that waited longest."""
        waiting = self.queue.pop(next(iter(self.queue)))
        waiting.stop()
        return waiting

    def clear(self) -> list[Waiting]:
        """Takes all calls out, in their order."""
        calls = [*self.queue.values()]
        self.queue.clear()
        return calls

    def _none(self, waiting: Waiting, why: str) -> None:
        if self.queue.pop(waiting.number, None) is not None:
            self._failed(waiting, Lost(Cause.DOWN, "calls that may be asked take turns on its pipe: " + why))
