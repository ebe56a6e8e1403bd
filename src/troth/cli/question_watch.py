"""Looks at the questions again and again beside whatever the person types, so that somebody counts as watching."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType


class Watcher:
    """Yields each question once, as it comes; ends when the gateway does.

    Args:
        look: Fetches the questions that wait; ends its thread by `SystemExit` if there is no gateway any more.
        pause: Seconds between two looks.
    """

    def __init__(self, look: Callable[[], list[dict[str, Any]]], pause: float) -> None:
        self._look = look
        self._pause = pause
        self._new: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._waiting: set[str] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watcher:
        """Begins to look."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Ends the looking."""
        self._over.set()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The questions; one that was settled before its turn is left out."""
        while (question := self._new.get()) is not None:
            if question["id"] in self._waiting:
                yield question

    def _run(self) -> None:
        known: set[str] = set()
        try:
            while not self._over.is_set():
                found = self._look()
                self._waiting = {question["id"] for question in found}
                for question in found:
                    if question["id"] not in known:
                        self._new.put(question)
                known |= self._waiting
                self._over.wait(self._pause)
        except SystemExit:
            # What was wrong has been said.
            pass
        finally:
            self._new.put(None)
