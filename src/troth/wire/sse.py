r"""Server-sent events from bytes, sans-IO.

Rules of this file (WHATWG HTML, "Server-sent events", 9.2.5 and 9.2.6):

- A line ends at ``\n``, ``\r`` or ``\r\n``, wherever the chunks are cut; one byte order mark at the start is dropped.
- An event ends at a blank line. What has no blank line after it never was an event: `EventStream.rest`.
- Data stays bytes here, so that invalid UTF-8 is seen by whoever decodes the message in it.
- An event larger than the limit is handed out once, as `oversize`, when that is known; the rest of it is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_BOM: Final = b"\xef\xbb\xbf"
_RETRY_DIGITS: Final = 9
"""Most digits of a ``retry`` value that is taken: eleven days in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event.

    Attributes:
        data: The data lines, joined by line feeds; empty if there were none.
        event: Type of the event.
        id: The ``id`` given with this event; None if none was.
        retry: The ``retry`` given with this event, in milliseconds; None if none was.
        oversize: True for an event over the limit, of which nothing but this is known.
    """

    data: bytes = b""
    event: str = "message"
    id: str | None = None
    retry: int | None = None
    oversize: bool = False


class EventStream:
    """Reads one stream. Feed it chunks; it yields events.

    Args:
        limit: Largest event, in bytes of its lines, that is kept.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._line = bytearray()
        self._fields: list[tuple[bytes, bytes]] = []
        self._size = 0
        self._head: bytes | None = b""
        self._after_return = False
        self._skipping = False
        self._skipped_line = False

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Takes the next bytes and yields the events that they complete."""
        if self._head is not None:
            chunk = self._begin(self._head + chunk)
        if self._after_return and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_return = False
        if b"\r" in chunk:
            self._after_return = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            if self._line or self._skipping or self._size + len(line) > self._limit:
                yield from self._take(line)
                yield from self._end_line()
            elif (event := self._read(line)) is not None:
                yield event
        if rest:
            yield from self._take(rest)

    @property
    def rest(self) -> bytes:
        """What came after the last event, without the comments: not empty if the stream ends in the middle of one."""
        if self._skipping:
            return b""
        lines = [name + b": " + value for name, value in self._fields]
        if self._line and not self._line.startswith(b":"):
            lines.append(bytes(self._line))
        return b"\n".join(lines)

    def _begin(self, start: bytes) -> bytes:
        """Holds the first bytes back until it is clear whether they are a byte order mark."""
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._head = start
            return b""
        self._head = None
        return start.removeprefix(_BOM)

    def _take(self, piece: bytes) -> Iterator[Event]:
        if self._skipping:
            self._skipped_line = self._skipped_line or bool(piece)
            return
        self._line += piece
        if self._size + len(self._line) > self._limit:
            yield Event(oversize=True)
            self._forget()
            self._skipping = self._skipped_line = True

    def _end_line(self) -> Iterator[Event]:
        if self._skipping:
            self._skipping, self._skipped_line = self._skipped_line, False
            return
        line, self._line = self._line, bytearray()
        if (event := self._read(line)) is not None:
            yield event

    def _read(self, line: bytes | bytearray) -> Event | None:
        """Takes one whole line; returns the event that it ends. A long value is copied once."""
        if line:
            if (colon := line.find(b":")) != 0:
                self._size += len(line)
                end = len(line) if colon < 0 else colon
                start = end + (2 if line[end + 1 : end + 2] == b" " else 1)
                value = line[start:] if isinstance(line, bytes) else bytes(memoryview(line)[start:])
                self._fields.append((bytes(line[:end]), value))
            return None
        event = _event(self._fields) if self._fields else None
        self._forget()
        return event

    def _forget(self) -> None:
        self._line.clear()
        self._fields = []
        self._size = 0


def _event(fields: list[tuple[bytes, bytes]]) -> Event:
    data: list[bytes] = []
    event, identity, retry = "message", None, None
    for name, value in fields:
        if name == b"data":
            data.append(value)
        elif name == b"event":
            event = value.decode("utf-8", "replace") or "message"
        elif name == b"id" and b"\0" not in value:
            identity = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) <= _RETRY_DIGITS:
            retry = int(value)
    return Event(data=b"\n".join(data), event=event, id=identity, retry=retry)
