"""What ``tools/call`` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack, cast

from troth.results.content import (
    KINDS,
    ContentParts,
    JsonObject,
    any_block,
    as_pair,
    block_of,
    is_block,
    is_object,
    near,
    one_meta,
)
from troth.results.shapes import shaped
from troth.results.spelling import Object, finish, known_revision, object_only
from troth.results.table import OPEN_SHAPES
from troth.results.values import compact, is_array, is_mapping, plain, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_WHERE = "call_tool_result"
_STRUCTURED = ("data", "_data")
_NAMES = (*KINDS, *_STRUCTURED, "error")


class CallParts(ContentParts, total=False):
    """The shorthands of a tool result."""

    data: object
    """Structured content, mirrored as a JSON text block."""
    _data: object
    """Structured content without the mirror."""
    error: bool | str | BaseException | None
    """True marks the result as an error; a string or an exception adds its text too; None and False do nothing."""


def call_tool_result(
    *parts: object, meta: JsonObject | None = None, revision: str | None = None, **shorthands: Unpack[CallParts]
) -> Object:
    """Builds the result of ``tools/call``.

    Keywords: ``call_tool_result(text="a", data={"rows": 3}, error="x")``. Pairs, blocks and data, in any number:
    ``call_tool_result(("text", "a"), ("image", ("image/png", data)), {"rows": 3})``. The content keeps the order of
    the call, positions before keywords.

    A mapping whose ``type`` names a content block is that block; any other mapping, dataclass, struct or pydantic
    model is structured content, as with ``data``. Use ``data`` for a payload of unknown shape. A string is text.

    Args:
        parts: Pairs ``(shorthand, value)``, blocks, strings, structured payloads.
        meta: ``_meta`` of the result; ``_meta=`` means the same.
        revision: The protocol revision in force; None gives the newest shape with every member kept.
        shorthands: See ``CallParts`` and ``ContentParts``.

    Returns:
        A new dict.

    Raises:
        TypeError: A value of a wrong type.
        ValueError: An unknown shorthand or revision, a second structured payload, structured content that is no
            object before 2026-07-28, or a value without a JSON form.
    """
    known_revision(revision)
    given = dict(cast("Mapping[str, object]", shorthands))
    found_meta = one_meta(meta, given, _WHERE)
    content: list[Object] = []
    result: Object = {"content": content}
    for kind, value in (*_named(parts), *given.items()):
        if kind in _STRUCTURED:
            payload = _payload(value, result, revision)
            result["structuredContent"] = payload
            if kind == "data":
                content.append({"type": "text", "text": compact(payload)})
        elif kind == "error":
            _mark(result, value)
        elif kind in KINDS:
            content.append(block_of(kind, value, _WHERE))
        else:
            raise ValueError(f"{_WHERE} has no shorthand {shown(kind)}{near(kind, _NAMES)}")
    if found_meta is not None:
        result = {**shaped({"_meta": found_meta}, "CallToolResult", _WHERE), **result}
    return finish(result, "CallToolResult", revision)


def _named(parts: tuple[object, ...]) -> Iterator[tuple[str, object]]:
    """Every positional part under its shorthand."""
    for part in parts:
        pair = as_pair(part)
        if pair is not None:
            yield pair
        elif isinstance(part, str) or is_block(part):
            yield "block", any_block(part, _WHERE)
        elif is_object(part):
            yield "data", part
        else:
            hint = "unpack it with *" if is_array(part) else "name it, e.g. data=..."
            raise TypeError(
                f"{_WHERE} takes pairs, content blocks, strings and structured data, not {type(part).__name__}; {hint}"
            )


def _payload(value: object, result: Object, revision: str | None) -> object:
    """The one structured payload, of a shape that the revision can carry."""
    if "structuredContent" in result:
        raise ValueError(f"{_WHERE} takes one structured payload, and this is the second; merge them into one")
    payload: object = plain(value, f"{_WHERE}: data")
    if object_only(revision) and not is_mapping(payload):
        raise ValueError(
            f"{_WHERE}: structured content must be an object at protocol revision {revision}, not "
            f"{type(value).__name__}; any JSON value is allowed at {', '.join(sorted(OPEN_SHAPES))}"
        )
    return payload


def _mark(result: Object, value: object) -> None:
    """Notes an error, which later parts cannot take back."""
    if value is None or value is False:
        return
    if isinstance(value, BaseException):
        value = str(value) or type(value).__name__
    if isinstance(value, str):
        result["content"].append(block_of("text", value, f"{_WHERE}: error"))
    elif value is not True:
        raise TypeError(
            f"{_WHERE}: error must be true, false, None, a text or an exception, not {type(value).__name__}"
        )
    result["isError"] = True
