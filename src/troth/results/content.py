"""Content blocks: what tool results and prompts are made of."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, TypedDict, Unpack, cast

from troth.results.media import Data, address, encoded, guess
from troth.results.resources import contents
from troth.results.shapes import members, renamed, shaped
from troth.results.spelling import Object, finish, known_revision
from troth.results.table import CONTENT
from troth.results.values import is_mapping, is_model, plain, shown

if TYPE_CHECKING:
    from collections.abc import Callable

JsonObject: TypeAlias = Mapping[str, object]
"""An object with names of the protocol (``mimeType``) or of Python (``mime_type``)."""


class ContentParts(TypedDict, total=False):
    """The shorthands of a content block. Each also takes a mapping with the members of its block."""

    text: str | JsonObject
    """Text."""
    image: tuple[str | None, Data] | Data | JsonObject
    """``(MIME type, data)`` or the data alone."""
    audio: tuple[str | None, Data] | Data | JsonObject
    """``(MIME type, data)`` or the data alone."""
    resource: JsonObject
    """Contents: ``uri`` and ``text`` or ``blob``, and ``mime_type``, ``annotations``."""
    link: object
    """``uri`` and ``name``, or the URI, URL or path alone."""
    block: object
    """A whole block as it is, also of a type that no revision defines."""


def content_block(
    part: object = None,
    /,
    *,
    annotations: JsonObject | None = None,
    meta: JsonObject | None = None,
    revision: str | None = None,
    **shorthand: Unpack[ContentParts],
) -> Object:
    """Builds one content block.

    ``content_block(text="a")``, ``content_block(("image", ("image/png", data)))`` and ``content_block(block)`` are the
    three ways to call it: a keyword, a pair, or a block (a mapping with ``type``, or a model of the SDK).

    Args:
        part: A pair, a block, or a string for a text block.
        annotations: ``audience``, ``priority`` (0 to 1), ``lastModified`` (ISO 8601 or a datetime).
        meta: The block's ``_meta``; ``_meta=`` means the same.
        revision: The protocol revision in force; None keeps every member.
        shorthand: ``text``, ``image``, ``audio``, ``resource``, ``link`` or ``block``; see ``ContentParts``.

    Returns:
        A new dict.

    Raises:
        TypeError: Not exactly one part, or a value of a wrong type.
        ValueError: A value that no block can carry, or an unknown shorthand or revision.
    """
    known_revision(revision)
    given = dict(cast("Mapping[str, object]", shorthand))
    meta = one_meta(meta, given, "content_block")
    parts = [*([] if part is None else [part]), *given.items()]
    if len(parts) != 1:
        raise TypeError(f"content_block takes one part, not {len(parts)}; write content_block(text='...')")
    block = any_block(parts[0], "content_block")
    return finish({**block, **_extras(annotations, meta, block)}, "ContentBlock", revision)


def block_of(kind: str, value: object, where: str) -> Object:
    """The block of a shorthand.

    Raises:
        TypeError: A value of a wrong type.
        ValueError: An unknown shorthand, or a value that the block cannot carry.
    """
    if kind not in KINDS:
        raise ValueError(f"{where} has no shorthand {shown(kind)}{near(kind, tuple(KINDS))}")
    return KINDS[kind](value, f"{where}: {kind}")


def any_block(part: object, where: str) -> Object:
    """The block of a pair, a string, a mapping with ``type`` or a model of one.

    Raises:
        TypeError: It is none of these.
        ValueError: The block is not complete.
    """
    pair = as_pair(part)
    if pair is not None:
        return block_of(*pair, where)
    if isinstance(part, str):
        return _text(part, where)
    return _whole(part, where)


def as_pair(part: object) -> tuple[str, object] | None:
    """The shorthand and value of a pair; None for anything else."""
    items = cast("tuple[object, ...]", part) if isinstance(part, tuple) else ()
    return (items[0], items[1]) if len(items) == 2 and isinstance(items[0], str) else None


def is_block(part: object) -> bool:
    """Whether a mapping or model says by its ``type`` that it is a content block that some revision defines."""
    kind = part.get("type") if is_mapping(part) else getattr(part, "type", None) if is_model(part) else None
    return isinstance(kind, str) and kind in CONTENT


def near(name: str, names: tuple[str, ...]) -> str:
    """The end of a message about a wrong name."""
    found = get_close_matches(name, names, 1)
    return f"; did you mean {found[0]!r}?" if found else f"; there are: {', '.join(names)}"


def one_meta(meta: JsonObject | None, given: dict[str, object], where: str) -> JsonObject | None:
    """The one ``_meta`` of a call, whichever way it is spelled; taken out of ``given``.

    Raises:
        TypeError: Both spellings are used, or it is no mapping.
    """
    other = given.pop("_meta", None)
    if meta is not None and other is not None:
        raise TypeError(f"{where} takes meta= or _meta=, not both")
    found = other if meta is None else meta
    return None if found is None else members(found, f"{where}: _meta")


def _extras(annotations: JsonObject | None, meta: JsonObject | None, block: Object) -> Object:
    extras: Object = {}
    if annotations is not None:
        extras["annotations"] = shaped(annotations, "Annotations", "content_block: annotations")
    if meta is not None:
        extras["_meta"] = plain(meta, "content_block: _meta")
    for name in extras:
        if name in block:
            raise ValueError(f"content_block has {name} twice: in the block and as a keyword")
    return extras


def _text(value: object, where: str) -> Object:
    if isinstance(value, str):
        value = {"text": value}
    elif not is_object(value):
        raise TypeError(f"{where} must be a string or a mapping with 'text', not {type(value).__name__}")
    return {"type": "text", **_untyped(shaped(value, "TextContent", where))}


def _media(kind: str, definition: str, value: object, where: str) -> Object:
    """An image or audio block; the MIME type is told from the path or the first bytes where none is given."""
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        if len(items) != 2:
            raise TypeError(f"{where} must be (MIME type, data), not {len(items)} values")
        raw: dict[str, object] = {"mimeType": items[0], "data": items[1]}
    elif isinstance(value, bytes | bytearray | memoryview | str) or not is_object(value):
        raw = {"data": value}
    else:
        raw = renamed(value, definition, where)
    source = raw.get("data")
    if source is not None:
        raw["data"] = data = encoded(source, f"{where}.data")
        if raw.get("mimeType") is None:
            found = guess(source if not isinstance(source, str) else None, data)
            if found is None or not found.startswith(f"{kind}/"):
                what = f"tells the MIME type {found}" if found else "does not tell a MIME type"
                raise ValueError(f"{where}: the data {what}; write {kind}=('{kind}/...', data)")
            raw["mimeType"] = found
    return {"type": kind, **_untyped(shaped(raw, definition, where))}


def _resource(value: object, where: str) -> Object:
    """Contents alone, with the block's annotations among them, or a block with ``resource`` inside."""
    raw = members(value, where)
    if "resource" not in raw:
        raw = {"resource": raw}
        inner, notes = contents(raw["resource"], where)
    else:
        inner, notes = contents(raw["resource"], f"{where}.resource")
    return {"type": "resource", **_untyped(shaped({**notes, **raw, "resource": inner}, "EmbeddedResource", where))}


def _link(value: object, where: str) -> Object:
    if not is_object(value) or hasattr(value, "scheme"):
        value = {"uri": value}
    raw = renamed(value, "ResourceLink", where)
    if "uri" not in raw:
        raise ValueError(f"{where} needs 'uri', which is missing")
    uri = address(raw["uri"], f"{where}.uri")
    named = {"name": uri.rstrip("/").rpartition("/")[2] or uri, **raw, "uri": uri}
    block = {"type": "resource_link", **_untyped(shaped(named, "ResourceLink", where))}
    found = guess(uri)
    return block if "mimeType" in block or found is None else {**block, "mimeType": found}


def _whole(value: object, where: str) -> Object:
    raw = members(value, where)
    kind = raw.get("type")
    if not isinstance(kind, str):
        raise ValueError(f"{where} must be a content block with a 'type', a pair such as ('text', '...'), or a string")
    short = {"resource_link": "link"}.get(kind, kind)
    return KINDS[short](raw, f"{where}: {short}") if kind in CONTENT else plain(raw, where)


def _untyped(block: Object) -> Object:
    return {name: member for name, member in block.items() if name != "type"}


def is_object(value: object) -> bool:
    """Whether the value has members, as a mapping, model, dataclass or struct."""
    return (
        isinstance(value, Mapping)
        or is_model(value)
        or hasattr(value, "__dataclass_fields__")
        or hasattr(value, "__struct_fields__")
    )


KINDS: Final[Mapping[str, Callable[[object, str], Object]]] = {
    "text": _text,
    "image": partial(_media, "image", "ImageContent"),
    "audio": partial(_media, "audio", "AudioContent"),
    "resource": _resource,
    "link": _link,
    "block": _whole,
}
"""The shorthands, and what makes the block of each."""
