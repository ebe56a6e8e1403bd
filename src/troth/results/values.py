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
    return _plain(value, where, 0)


def compact(value: object) -> str:
    """JSON text of a plain value: one line, no spaces, letters as they are, members in their order."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def text(value: str, where: str) -> str:
    """A string that a UTF-8 frame can carry.

    Raises:
        ValueError: It has a lone surrogate, as file names that are not UTF-8 do in Python.
    """
    exact = str.__str__(value)
    try:
        exact.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{where} has a lone surrogate at index {error.start}, which UTF-8 cannot carry; "
            "decode with errors='replace'"
        ) from None
    return exact


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


def _plain(value: object, where: str, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ValueError(f"{where[:80]}... is nested deeper than {MAX_DEPTH} levels; does it contain itself?")
    if isinstance(value, Enum):
        return _plain(value.value, where, depth + 1)
    if value is None or isinstance(value, bool | str | int | float):
        return _scalar(value, where)
    if is_mapping(value):
        return _members(value, where, depth)
    if is_array(value):
        return [_plain(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value)]
    return _plain(_opened(value, where), where, depth + 1)


def _members(value: Mapping[object, object], where: str, depth: int) -> dict[str, Any]:
    new: dict[str, Any] = {}
    for key, member in value.items():
        if not isinstance(key, str):
            raise TypeError(f"{where} has the key {_shown(key)}; keys of a JSON object must be strings")
        name = cast("str", _plain(key, f"a key of {where}", depth))
        new[name] = _plain(member, f"{where}.{name}", depth + 1)
    return new


def _scalar(value: str | float | None, where: str) -> str | float | None:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text(value, where)
    if isinstance(value, int):
        if value.bit_length() > MAX_INTEGER_BITS:
            raise ValueError(f"{where} is an integer of more than {MAX_INTEGER_BITS} bits; send it as a string")
        return int(value)
    if not math.isfinite(value):
        raise ValueError(f"{where} is {value}, which JSON cannot express; use None or a string")
    return float(value)


def _opened(value: object, where: str) -> object:
    """One step towards JSON for a value that is not plain."""
    if is_model(value):
        return _dumped(value, where)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    try:
        # The members of a set have no order of their own; everything else keeps the author's.
        order = "deterministic" if isinstance(value, set | frozenset) else None
        return msgspec.to_builtins(value, str_keys=True, order=order, enc_hook=lambda inner: _hook(inner, where))
    except RecursionError:
        raise ValueError(f"{where} is nested deeper than {MAX_DEPTH} levels; does it contain itself?") from None


def _hook(value: object, where: str) -> object:
    if is_model(value):
        return _dumped(value, where)
    raise TypeError(f"{where} is of type {type(value).__name__}, which has no JSON form")


def _dumped(value: object, where: str) -> object:
    try:
        return cast("Any", value).model_dump(mode="json", by_alias=True)
    except Exception as error:
        raise ValueError(f"{where}: {type(value).__name__}.model_dump failed: {error}") from error


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
