"""What waits for one slow host: bounded in bytes, and what is lost first when it is full.

Whoever sends never waits for a host. When a queue is full, progress is thinned out to the newest of each request,
then logs go, then changes of which the same waits already are left out. What still does not fit ends the stream.
"""

from __future__ import annotations

from collections import deque

from troth.gateway.model import Sort

OVERHEAD = 128
"""Bytes that an entry costs beside its line; without it a flood of short lines would cost many times the bound."""

_Entry = tuple[bytes, Sort, object]


class Waiting:
    """A queue of lines.

    Args:
        most: Most bytes, `OVERHEAD` of each line included. A line that finds the queue empty is taken whatever its
            size: results are larger than what may pile up.
    """

    __slots__ = ("_bytes", "_changes", "_lines", "_logs", "_progress", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self._lines: deque[_Entry] = deque()
        self._bytes = 0
        self._changes: set[bytes] = set()
        self._logs = 0
        self._progress: dict[object, int] = {}

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def bytes(self) -> int:
        """Bytes that wait."""
        return self._bytes

    def put(self, line: bytes, sort: Sort, key: object = None) -> bool:
        """Queues a line, or leaves out what may be left out.

        Args:
            line: The message.
            sort: What it is.
            key: The request that it belongs to; progress of one is not thinned out for another.

        Returns:
            False if it does not fit though it must not be lost.
        """
        if sort is Sort.CHANGE and line in self._changes:
            return True
        if self._lines and not self._fits(line):
            self._thin(line, key if sort is Sort.PROGRESS else self)
            if not self._fits(line) and self._lines:
                return sort in (Sort.PROGRESS, Sort.LOG)
        self._append(line, sort, key)
        return True

    def force(self, line: bytes) -> None:
        """Queues a line whatever its size: an answer, of which there is one per request."""
        self._append(line, Sort.OTHER, None)

    def take(self, most: int) -> list[bytes]:
        """The next lines, of about `most` bytes together; at least one if any waits."""
        taken: list[bytes] = []
        size = 0
        while self._lines and size < most:
            line = self._pop()
            taken.append(line)
            size += len(line)
        return taken

    def take_changes(self) -> list[bytes]:
        """All changes, in their order; the rest stays."""
        changes = [line for line, sort, _ in self._lines if sort is Sort.CHANGE]
        if changes:
            self._keep([entry for entry in self._lines if entry[1] is not Sort.CHANGE])
        return changes

    def clear(self) -> None:
        """Drops all but changes: whoever misses one would keep a stale list."""
        self._keep([entry for entry in self._lines if entry[1] is Sort.CHANGE])

    def _fits(self, line: bytes) -> bool:
        return self._bytes + len(line) + OVERHEAD <= self.most

    def _append(self, line: bytes, sort: Sort, key: object) -> None:
        self._lines.append((line, sort, key))
        self._bytes += len(line) + OVERHEAD
        if sort is Sort.CHANGE:
            self._changes.add(line)
        elif sort is Sort.LOG:
            self._logs += 1
        elif sort is Sort.PROGRESS:
            self._progress[key] = self._progress.get(key, 0) + 1

    def _pop(self) -> bytes:
        line, sort, key = self._lines.popleft()
        self._bytes -= len(line) + OVERHEAD
        if sort is Sort.CHANGE:
            self._changes.discard(line)
        elif sort is Sort.LOG:
            self._logs -= 1
        elif sort is Sort.PROGRESS:
            left = self._progress.pop(key) - 1
            if left:
                self._progress[key] = left
        return line

    def _thin(self, line: bytes, coming: object) -> None:
        """Makes room: leaves the newest progress of each request, none where the next one is coming; then no log.

        Walks the queue only if something is to be gained, so a flood pays for what it put in.
        """
        if any(count > 1 or key is coming for key, count in self._progress.items()):
            newest: set[object] = {coming}
            kept: list[_Entry] = []
            for entry in reversed(self._lines):
                if entry[1] is Sort.PROGRESS:
                    if entry[2] in newest:
                        continue
                    newest.add(entry[2])
                kept.append(entry)
            kept.reverse()
            self._keep(kept)
        if self._logs and not self._fits(line):
            self._keep([entry for entry in self._lines if entry[1] is not Sort.LOG])

    def _keep(self, entries: list[_Entry]) -> None:
        self._lines.clear()
        self._bytes = 0
        self._changes.clear()
        self._logs = 0
        self._progress.clear()
        for entry in entries:
            self._append(*entry)
