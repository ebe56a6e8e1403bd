"""From bytes of a stranger to a JSON value or to words that are safe to show. Sans-IO."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPTH = 128
"""Deepest nesting of arrays and objects that is taken: far above real messages, far below Python's recursion limit."""

VALUES = 1_000_000
"""Most values, at any depth, of one message. Counted by the signs between them, also inside texts."""

EXCERPT = 200
"""Characters of foreign text that are kept in a problem."""


_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class Decoded(NamedTuple):
    """A JSON value, and why there is none (empty if there is)."""

    value: Any
    problem: str


class Line(NamedTuple):
    """One line without its end. `whole` is False for the beginning of a line that was too long."""

    data: bytes
    whole: bool = True


def printable(text: str) -> str:
    """Text in which every character that is not printable (controls, line ends, direction marks) is escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def excerpt(data: bytes | str, limit: int = EXCERPT) -> str:
    """The beginning of foreign text, escaped, of at most `limit` characters and a mark that there was more."""
    start = data[: limit + 1]
    text = start.decode("utf-8", "backslashreplace") if isinstance(start, bytes) else start
    shown = printable(text)
    return shown if len(data) <= limit and len(shown) <= limit else f"{shown[:limit]}..."


def message(data: bytes) -> Decoded:
    """Reads one JSON value, as one line or one event holds it.

    Integers of any size survive (up to 4300 digits). Refused are: invalid UTF-8, a byte order mark, NaN and
    infinities, numbers that no float holds, nesting deeper than `DEPTH`, more than `VALUES` values. Unpaired
    surrogates, which only an escape can spell, become U+FFFD.

    Returns:
        The value, of whatever type: that an array or a bare text is no message is for the reader of messages to say.
        None with a problem if there is no value, and for a bare null.
    """
    if not data or data.isspace():
        return Decoded(None, "a blank line, where a message belongs")
    if values(data) > VALUES:
        return Decoded(None, f"JSON of more than {VALUES} values: {excerpt(data)}")
    try:
        value: Any = _decode(data)
    except RecursionError:
        return Decoded(None, f"JSON nested too deep (more than {DEPTH} levels): {excerpt(data)}")
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        return Decoded(None, f"no JSON ({printable(str(error))}): {excerpt(data)}")
    if too_deep(data, value):
        return Decoded(None, f"JSON nested too deep (more than {DEPTH} levels): {excerpt(data)}")
    return Decoded(value, "a bare null, where a message belongs" if value is None else "")


def values(data: bytes) -> int:
    """At least as many as there are JSON values in the text."""
    return 1 + data.count(b",") + data.count(b"[") + data.count(b"{")


def _decode(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        # What it says of an unpaired surrogate depends on where the text ends, so its words cannot tell.
        if not _SURROGATE.search(data):
            raise
    return scrubbed(json.loads(data.decode(), parse_constant=_refuse, parse_float=_finite))


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse("a number that no float holds")


def scrubbed(value: Any) -> Any:
    """The value with every unpaired surrogate in its texts replaced by U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [scrubbed(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {scrubbed(key): scrubbed(item) for key, item in cast("dict[Any, Any]", value).items()}
    return value


def too_deep(data: bytes, value: Any) -> bool:
    """Whether a decoded value is nested deeper than `DEPTH`. Looks at the value only if its text could be so deep."""
    if data.count(b"[") + data.count(b"{") <= DEPTH:
        return False
    level: list[Any] = [value]
    for _ in range(DEPTH):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return False
    return any(isinstance(item, (dict, list)) for item in level)


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        return iter(cast("dict[str, Any]", value).values())
    return iter(cast("list[Any]", value) if isinstance(value, list) else ())


class Lines:
    r"""Cuts a byte stream into lines at ``\n``.

    A line longer than `limit` is handed out once, as its beginning, as soon as that is known; the rest of it is
    dropped as it comes.

    Args:
        limit: Longest line that is kept, in bytes.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
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
        """What came after the last line end."""
        return bytes(self._held)

    def _piece(self, piece: bytes, *, ends: bool) -> Iterator[Line]:
        if not self._skipping:
            self._held += piece
            if len(self._held) > self._limit:
                yield Line(bytes(self._held[: EXCERPT + 1]), whole=False)
                self._skipping = True
                self._held.clear()
            elif ends:
                yield Line(bytes(self._held))
        if ends:
            self._skipping = False
            self._held.clear()
