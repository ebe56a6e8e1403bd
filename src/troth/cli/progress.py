"""Progress of an audit on standard error, for people who wait at a terminal; gone when it is done."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from troth.audit.options import Event


class Progress:
    """A line per target with what is done now. Does nothing where standard error is no terminal.

    Args:
        count: How many targets there are.
        wanted: False for silence.
    """

    def __init__(self, count: int, *, wanted: bool) -> None:
        self._tasks: dict[str, TaskID] = {}
        self._bars: Bars | None = _bars() if wanted and count and sys.stderr.isatty() else None

    def __enter__(self) -> Progress:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bars is not None:
            self._bars.stop()

    def event(self, event: Event) -> None:
        """Shows one step of the audit."""
        if self._bars is None:
            return
        from troth.audit.report.clean import line

        text = " ".join(line(part, 60) for part in (event.target, event.revision or "", event.text) if part)
        if event.target not in self._tasks:
            self._tasks[event.target] = self._bars.add_task(text, total=event.steps)
        self._bars.update(
            self._tasks[event.target], description=text, total=event.steps, completed=max(event.step - 1, 0)
        )


def _bars() -> Bars:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(20), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    return Progress(
        *columns, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False
    )
