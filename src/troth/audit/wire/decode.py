"""From bytes of a stranger to a JSON value or to words that are safe to show. Sans-IO."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from troth.wire.words import excerpt, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPTH = 128
"""Deepest nesting of arrays and objects that is taken: far above real messages, far below Python's recursion limit."""

VALUES = 1_000_000
"""Most values, at any depth, of one message. Counted by the signs between them, also inside texts."""


_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class Decoded(NamedTuple):
    """A JSON value, and why there is none (empty if there is)."""

    value: Any
    problem: str


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
