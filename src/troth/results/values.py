"""Turns what Python authors have at hand into plain JSON values, or says why it cannot."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final, TypeGuard, cast

import msgspec

MAX_DEPTH: Final = 128
"""Levels of nesting. Peers bound theirs, and Python's own stack ends at about 1000 calls."""

MAX_INTEGER_BITS: Final = 14_000
"""Bits of an integer, about 4200 digits: Python refuses to write more than 4300 as text."""


class _FaultError(Exception):
    """What is wrong, and the path to it, innermost step first; so that no path is built while nothing is wrong."""

    def __init__(self, kind: type[TypeError | ValueError], reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.steps: list[str] = []


def plain(value: object, where: str) -> Any:
    """A deep copy made of dict, list, str, int, float, bool and None only.

    Takes mappings, lists, tuples, dataclasses, enums, pydantic models (any object with ``model_dump``; by alias, in
    JSON mode) and whatever msgspec knows: its structs, dates, UUIDs, decimals, bytes (as base64), sets.

    Args:
        value: Anything.
        where: What the value is, for messages.

    Raises:
        TypeError: A type without a JSON form, or a key that is no string.
        ValueError: NaN or infinity, a lone surrogate, an integer of more than ``MAX_INTEGER_BITS``, or nesting deeper
            than ``MAX_DEPTH`` (a value that contains itself, for instance).
    """
    try:
        return _plain(value, 0)
    except _FaultError as fault:
        path = "".join(reversed(fault.steps))
        place = path if len(path) <= 200 else f"{path[:200]}..."
        raise fault.kind(f"{where}{place} {fault.reason}") from None


def compact(value: object) -> str:
    """JSON text of a plain value or ``msgspec.Raw``: one line, no spaces, members in their order.

    Letters of a plain value stand as they are, all of ``Raw`` as it came.
    """
    if isinstance(value, msgspec.Raw):
        return msgspec.json.format(bytes(value), indent=-1).decode()
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def text(value: str, where: str) -> str:
    """A string that a UTF-8 frame can carry.

    Raises:
        ValueError: It has a lone surrogate, as file names that are not UTF-8 do in Python.
    """
    return cast("str", plain(value, where))


def is_mapping(value: object) -> TypeGuard[Mapping[object, object]]:
    """Whether this is a mapping of any kind."""
    return isinstance(value, Mapping)


def is_array(value: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    """Whether this is a list or a tuple."""
    return isinstance(value, list | tuple)


def is_listing(value: object) -> TypeGuard[Iterable[object]]:
    """Whether this is an iterable of items, and no string or mapping."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def is_model(value: object) -> bool:
    """Whether this is an instance of a pydantic model, or of something that dumps like one."""
    return not isinstance(value, type) and callable(getattr(value, "model_dump", None))


def _plain(value: object, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise _FaultError(ValueError, f"is nested deeper than {MAX_DEPTH} levels; does it contain itself?")
    if isinstance(value, Enum):
        return _plain(value.value, depth + 1)
    if value is None or isinstance(value, bool | str | int | float):
        return _scalar(value)
    if is_mapping(value):
        return _members(value, depth)
    if is_array(value):
        return _items(value, depth)
    return _plain(_opened(value), depth + 1)


def _members(value: Mapping[object, object], depth: int) -> dict[str, Any]:
    new: dict[str, Any] = {}
    for key, member in value.items():
        if not isinstance(key, str):
            raise _FaultError(TypeError, f"has the key {shown(key)}; keys of a JSON object must be strings")
        name = cast("str", _plain(key, depth))
        try:
            new[name] = _plain(member, depth + 1)
        except _FaultError as fault:
            fault.steps.append(step(name))
            raise
    return new


def _items(value: list[object] | tuple[object, ...], depth: int) -> list[Any]:
    new: list[Any] = []
    for item in value:
        try:
            new.append(_plain(item, depth + 1))
        except _FaultError as fault:
            fault.steps.append(f"[{len(new)}]")
            raise
    return new


def _scalar(value: str | float | None) -> str | float | None:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        if value.bit_length() > MAX_INTEGER_BITS:
            raise _FaultError(ValueError, f"is an integer of more than {MAX_INTEGER_BITS} bits; send it as a string")
        return int(value)
    if not math.isfinite(value):
        raise _FaultError(ValueError, f"is {value}, which JSON cannot express; use None or a string")
    return float(value)


def _text(value: str) -> str:
    exact = str.__str__(value)
    try:
        exact.encode()
    except UnicodeEncodeError as error:
        raise _FaultError(
            ValueError,
            f"has a lone surrogate at index {error.start}, which UTF-8 cannot carry; decode with errors='replace'",
        ) from None
    return exact


def _opened(value: object) -> object:
    """One step towards JSON for a value that is not plain."""
    if is_model(value):
        return _dumped(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    try:
        # The members of a set have no order of their own; everything else keeps the author's.
        order = "deterministic" if isinstance(value, set | frozenset) else None
        return msgspec.to_builtins(value, str_keys=True, order=order, enc_hook=_hook)
    except RecursionError:
        raise _FaultError(ValueError, f"is nested deeper than {MAX_DEPTH} levels; does it contain itself?") from None


def _hook(value: object) -> object:
    if is_model(value):
        return _dumped(value)
    raise _FaultError(TypeError, f"is of type {type(value).__name__}, which has no JSON form")


def _dumped(value: object) -> object:
    try:
        return cast("Any", value).model_dump(mode="json", by_alias=True)
    except Exception as error:
        raise _FaultError(ValueError, f"cannot be dumped: {type(value).__name__}.model_dump failed: {error}") from error


def step(name: str) -> str:
    """A member's name as a step of a path for a message."""
    return f".{name}" if name.isidentifier() and len(name) <= 60 else f"[{shown(name)}]"


def shown(value: object) -> str:
    """A value for a message, of bounded length and without control characters."""
    try:
        word = repr(value)
    except ValueError:
        word = type(value).__name__
    word = word if word.isprintable() else ascii(word)
    return word if len(word) <= 60 else f"{word[:57]}..."
