"""Rows of a SQLite file that hold JSON. One that cannot be read costs itself only: the others are read beside it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_log = logging.getLogger(__name__)

T = TypeVar("T")

UNREADABLE: Final = (msgspec.MsgspecError, ValueError, TypeError, RecursionError)
"""What a row raises that does not hold what was written."""


class Rows(Generic[T]):
    """Reads the rows of one table. What is damaged is left out, said once in the log, and stays in the file.

    Args:
        path: The file, for the log.
        what: What a row holds, for the log.
        decode: Reads what a row holds; may raise what is in `UNREADABLE`.
    """

    def __init__(self, path: Path, what: str, decode: Callable[[bytes], T]) -> None:
        self._path = path
        self._what = what
        self._decode = decode
        self._damaged: set[int] = set()

    def read(self, row: int, data: bytes) -> T | None:
        """What a row holds; None if it cannot be read.

        The log names its number and never an id of what it held: who has that may have the thing.
        """
        try:
            return self._decode(data)
        except UNREADABLE as error:
            if row not in self._damaged:
                self._damaged.add(row)
                _log.error("%s: the %s in row %d is damaged and left out: %s", self._path, self._what, row, error)
            return None

    def first(self, most: int, select: Callable[[int], Sequence[tuple[int, bytes]]]) -> list[T]:
        """The first of the rows that can be read.

        Args:
            most: How many.
            select: Gets how many rows are wanted; returns the number of each and what it holds, always in one order.
        """
        while True:
            limit = most + len(self._damaged)
            rows = select(limit)
            found = [one for row in rows if (one := self.read(*row)) is not None]
            # Rows that are found to be damaged now are looked past in the next round.
            if len(found) >= most or len(rows) < limit:
                return found[:most]
