"""A byte stream cut into lines. Sans-IO."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from troth.wire.words import EXCERPT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Line(NamedTuple):
    """One line without its end. `whole` is False for the beginning of a line that was too long."""

    data: bytes
    whole: bool = True


class Lines:
    r"""Cuts a byte stream into lines at ``\n``.

    A line longer than `limit` is handed out once, as its beginning, as soon as that is known; the rest of it is
    dropped as it comes.

    Args:
        limit: Longest line that is kept, in bytes.
        dropped: Hears the last bytes of a line that was too long, up to `EXCERPT`, when it ends.
    """

    def __init__(self, limit: int, dropped: Callable[[bytes], None] | None = None) -> None:
        self._limit = limit
        self._dropped = dropped
        self._held = bytearray()
        self._skipping = False

    def feed(self, chunk: bytes) -> Iterator[Line]:
        """Takes the next bytes and yields the lines that they complete."""
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            yield from self._piece(piece, ends=True)
        yield from self._piece(rest, ends=False)

    @property
    def rest(self) -> bytes:
        """What came after the last line end, unless that is too long already."""
        return b"" if self._skipping else bytes(self._held)

    def _piece(self, piece: bytes, *, ends: bool) -> Iterator[Line]:
        if ends and not self._held and not self._skipping and len(piece) <= self._limit:
            yield Line(piece)
            return
        if not self._skipping:
            self._held += piece
            if len(self._held) > self._limit:
                yield Line(bytes(self._held[: EXCERPT + 1]), whole=False)
                self._skipping = True
                del self._held[:-EXCERPT]
            elif ends:
                yield Line(bytes(self._held))
        else:
            self._held += piece[-EXCERPT:]
            del self._held[:-EXCERPT]
        if ends and self._skipping and self._dropped is not None:
            self._dropped(bytes(self._held))
        if ends:
            self._skipping = False
            self._held.clear()
