"""Spells a result for one protocol revision: a copy with the members that the revision defines, never an edit.

Three rules. A member that the target revision defines stays. A member that only other revisions define goes. A member
that no revision defines stays, since every object of the protocol is open; so do content blocks of unknown type.

Where a revision lacks a whole content type, a text block stands in for it and says what it was.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import Raw

from troth.register import Side, register
from troth.results.table import CHILDREN, CONTENT, DEFAULTS, KNOWN, MEMBERS, OPEN_SHAPES
from troth.results.values import compact, is_mapping, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Object = dict[str, Any]
"""A JSON object."""

_UNIONS: Final[Mapping[str, Callable[[Object], str | None]]] = {
    "ContentBlock": lambda block: CONTENT.get(block["type"]) if isinstance(block.get("type"), str) else None,
    "ResourceContents": lambda contents: "BlobResourceContents" if "blob" in contents else "TextResourceContents",
}
"""Definitions that are one of several: how an object tells which. None: a kind that nobody defines."""

DEFINITIONS: Final[frozenset[str]] = frozenset({*KNOWN, *_UNIONS, "ServerCapabilities"})
"""The names that ``spell`` takes."""


def spell(result: Mapping[str, object], definition: str, revision: str) -> Object:
    """Copies a result as ``revision`` spells it.

    Members that only other revisions define are dropped at every level, members that no revision defines are kept,
    members that the revision requires are added (``resultType``, ``ttlMs``, ``cacheScope``) unless they are there.
    A resource link or an audio block becomes a text block where the revision has no such content. Structured content
    that the revision cannot carry is dropped; if nothing else is in the result, its JSON text takes its place.

    Args:
        result: Any JSON object; it is not changed, and nothing of it is shared with the copy. Values that are not
            what the schema says pass as they are: this is no validator.
        definition: Its name in the schema, e.g. ``CallToolResult``, ``Tool`` or ``ContentBlock``.
        revision: The protocol revision in force.

    Returns:
        A new dict of plain JSON values.

    Raises:
        ValueError: No such revision or definition, the definition does not exist in the revision, or a value has no
            JSON form.
        TypeError: The result is no mapping, or a value has a type that has no JSON form.
    """
    known_revision(revision)
    if definition not in DEFINITIONS:
        raise ValueError(f"no definition {definition!r}{_near(definition, DEFINITIONS)}")
    if definition in KNOWN and (definition, revision) not in MEMBERS:
        having = ", ".join(name for name in register().revisions if (definition, name) in MEMBERS)
        raise ValueError(f"protocol revision {revision} has no {definition}; these have: {having}")
    copy = plain(result, definition)
    if not isinstance(copy, dict):
        raise TypeError(f"{definition} must be a mapping, not {type(result).__name__}")
    return cast("Object", spelled(cast("Object", copy), definition, revision))


def finish(result: Object, definition: str, revision: str | None) -> Object:
    """Ends a builder: spelled for ``revision``, or for None the newest shape with every member kept.

    Args:
        result: A fresh object of the builder, in the newest shape.
        definition: Its name in the schema.
        revision: The revision in force; None only adds what the newest revision requires.

    Raises:
        ValueError: As for ``spell``.
    """
    if revision is not None:
        return spell(result, definition, revision)
    return {**result, **_missing(result, definition, register().revisions[-1])}


def known_revision(revision: str | None) -> None:
    """Checks the name of a revision; None is fine.

    Raises:
        ValueError: The register has no such revision.
    """
    revisions = register().revisions
    if revision is not None and revision not in revisions:
        raise ValueError(f"no protocol revision {revision!r}{_near(str(revision), revisions)}")


def object_only(revision: str | None) -> bool:
    """Whether structured content and output schemas must be objects in this revision."""
    return revision is not None and revision not in OPEN_SHAPES


def _near(name: str, names: frozenset[str] | tuple[str, ...]) -> str:
    near = get_close_matches(name, sorted(names), 1)
    return f"; did you mean {near[0]!r}?" if near else f"; known are: {', '.join(sorted(names))}"


def _missing(result: Object, definition: str, revision: str) -> Object:
    defaults = DEFAULTS.get((definition, revision), {})
    return {name: value for name, value in defaults.items() if name not in result}


def _members(definition: str, revision: str) -> tuple[frozenset[str], frozenset[str]]:
    """Members of the revision, and of all revisions. Capabilities have their table in the register."""
    if definition != "ServerCapabilities":
        return MEMBERS.get((definition, revision), frozenset()), KNOWN[definition]
    rows = [row for row in register().rows if row.side is Side.SERVER]
    return frozenset(row.key[0] for row in rows if row.at(revision)), frozenset(row.key[0] for row in rows)


def spelled(value: Any, definition: str, revision: str) -> Any:
    """What ``spell`` does once its arguments are checked, for values that are JSON already.

    Args:
        value: An object, an array of objects, or anything else, which is returned as it is. It is not changed, but
            the copy shares its leaves. Values whose members do not matter here may be ``msgspec.Raw``.
        definition: One of ``DEFINITIONS``.
        revision: A revision of the register.
    """
    if isinstance(value, list):
        return [spelled(item, definition, revision) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    old = cast("Object", value)
    if definition in _UNIONS:
        kind = _UNIONS[definition](old)
        return old if kind is None else spelled(old, kind, revision)
    if definition in _STAND_INS and (definition, revision) not in MEMBERS:
        return spelled(stand_in(old, definition, revision), "TextContent", revision)
    defined, known = _members(definition, revision)
    new: Object = {}
    for name, member in old.items():
        if name in defined or name not in known:
            child = CHILDREN.get((definition, name))
            new[name] = member if child is None else spelled(member, child, revision)
    if definition in _REPAIRS:
        _REPAIRS[definition](new, old, revision)
    return {**new, **_missing(new, definition, revision)}


def stand_in(block: Object, definition: str, revision: str) -> Object:
    """The text block that says what a content block is, with its annotations and ``_meta``.

    Args:
        block: A resource link or an audio block.
        definition: ``ResourceLink`` or ``AudioContent``.
        revision: The protocol revision in force.
    """
    return _STAND_INS[definition](block, revision)


def _link_text(link: Object, revision: str) -> Object:
    """A link as text: its name, its address, and what is said of it."""
    name, uri = link.get("title") or link.get("name"), link.get("uri")
    about = f"\n{link['description']}" if link.get("description") else ""
    return _text(f"{name}: {uri}{about}", link, revision)


def _audio_text(audio: Object, revision: str) -> Object:
    mime = audio.get("mimeType")
    return _text(f"[audio omitted: {mime}; protocol revision {revision} has no audio content]", audio, revision)


def _text(text: str, block: Object, _revision: str) -> Object:
    return {"type": "text", "text": text, **{key: block[key] for key in ("annotations", "_meta") if key in block}}


def _repair_call(new: Object, old: Object, revision: str) -> None:
    """Structured content is an object until the shape is open; an empty result would say nothing in its place."""
    if "structuredContent" not in old:
        return
    if object_only(revision) and not _is_object(old["structuredContent"]):
        new.pop("structuredContent", None)
    if "structuredContent" not in new and not new.get("content"):
        new["content"] = [{"type": "text", "text": compact(cast("object", old["structuredContent"]))}]


def _is_object(value: object) -> bool:
    return is_mapping(value) or (isinstance(value, Raw) and bytes(memoryview(value)[:1]) == b"{")


def _repair_tool(new: Object, _old: Object, revision: str) -> None:
    """Until the shape is open, an output schema describes an object and the schema of a property is an object."""
    if not object_only(revision):
        return
    output = new.get("outputSchema")
    if isinstance(output, dict) and cast("Object", output).get("type") != "object":
        del new["outputSchema"]
    for name in ("inputSchema", "outputSchema"):
        schema = cast("Object", new[name] if isinstance(new.get(name), dict) else {})
        if isinstance(schema.get("properties"), dict):
            properties = cast("Object", schema["properties"])
            new[name] = {**schema, "properties": {key: _object_schema(item) for key, item in properties.items()}}


def _object_schema(schema: Any) -> Any:
    """A boolean schema as the object that means the same."""
    return ({} if schema else {"not": {}}) if isinstance(schema, bool) else schema


_STAND_INS: Final[Mapping[str, Callable[[Object, str], Object]]] = {
    "AudioContent": _audio_text,
    "ResourceLink": _link_text,
}
"""Content types that some revision lacks: the text block that takes their place there."""

_REPAIRS: Final[Mapping[str, Callable[[Object, Object, str], None]]] = {
    "CallToolResult": _repair_call,
    "Tool": _repair_tool,
}
"""What changes its shape between revisions, not only its members."""
