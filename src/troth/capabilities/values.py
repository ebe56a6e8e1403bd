"""JSON values of a peer: their types by name, their depth, copies of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Collection

_JSON_TYPES: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    tuple: "array",
}


def is_object(value: object) -> TypeGuard[Mapping[object, object]]:
    """Whether ``value`` is a JSON object."""
    return isinstance(value, Mapping)


def json_type(value: object) -> str:
    """JSON's name of the type of ``value``; Python's own where JSON has none."""
    return "object" if is_object(value) else _JSON_TYPES.get(type(value), type(value).__name__)


def described(value: object) -> str:
    """The type of ``value`` for a sentence: ``null``, ``a boolean``, ``an array``."""
    word = json_type(value)
    if value is None:
        return word
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def nests(value: object, levels: int) -> bool:
    """Whether ``value`` nests deeper than ``levels``."""
    inner = _inner(value)
    return bool(inner) and (levels == 0 or any(nests(item, levels - 1) for item in inner))


def copied(value: object) -> object:
    """A copy that shares nothing changeable with ``value``; recursive, so mind the depth."""
    if is_object(value):
        return {name: copied(item) for name, item in value.items()}
    return [copied(item) for item in value] if _is_array(value) else value


def _inner(value: object) -> Collection[object]:
    if is_object(value):
        return value.values()
    return value if _is_array(value) else ()


def _is_array(value: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    return isinstance(value, (list, tuple))
