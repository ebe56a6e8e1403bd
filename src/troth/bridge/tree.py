"""Opens those levels of a result that the tables of `troth.results` know, and maps the URIs in them. Sans-IO.

What comes out is an object of JSON values and `Raw`: `troth.results.spelling.spelled` spells it, `write.written`
writes it. Nothing below the known levels is decoded, so numbers stay as they came.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from troth.bridge.names import host_uri
from troth.results.spelling import stand_in
from troth.results.table import CHILDREN, CONTENT

if TYPE_CHECKING:
    from collections.abc import Mapping

UNIONS: Mapping[str, frozenset[str]] = {
    "ContentBlock": frozenset(CONTENT.values()),
    "ResourceContents": frozenset({"BlobResourceContents", "TextResourceContents"}),
}
"""Definitions that are one of several."""

VIEW = "ui/resourceUri"
"""Member of ``_meta`` that older MCP Apps name their view by; newer ones have ``resourceUri`` in a member ``ui``."""

_TEXTS = frozenset({"description", "mimeType", "name", "title", "type", "uri", "uriTemplate"})
"""Members that are read here or in `troth.results`."""
_URIS = ("uri", "uriTemplate")
_SCHEMAS = frozenset({"inputSchema", "outputSchema"})
_OBJECT, _LIST = b"{["
_LITERALS = {b"true": True, b"false": False}

_read_list = msgspec.json.Decoder(list[Raw]).decode
_read_members = msgspec.json.Decoder(dict[str, Raw]).decode
_read_text = msgspec.json.Decoder(str).decode
_read_any = msgspec.json.Decoder().decode


MOST = 50_000
"""Items and members of one result that are opened: 10,000 content blocks. They take 0.1 s, and everybody waits."""


@dataclass(slots=True)
class Job:
    """What to do with a value beside spelling it.

    Attributes:
        prefix: Prefix of the upstream; empty leaves URIs as they are.
        inline: Whether links to resources become text.
        target: Revision that it is for.
        left: Items and members that may yet be opened. Below zero, something was left out.
    """

    prefix: str
    inline: bool
    target: str
    left: int = MOST


def tree(raw: Raw, definition: str, job: Job) -> Any:
    """A value with its known levels opened.

    What is no object or array, or of a kind that nobody knows, is as it was. What is beyond the bound of the job is
    left out.

    Args:
        raw: Valid JSON.
        definition: What it is, or what its items are, by the name in the schema.
        job: What to do with it.
    """
    start = memoryview(raw)[0]
    if start == _LIST:
        items = _read_list(raw)
        job.left -= len(items)
        return [] if job.left < 0 else [tree(item, definition, job) for item in items]
    if start != _OBJECT:
        return raw
    members = _read_members(raw)
    kind = _kind(members, definition)
    return raw if kind is None else branch(members, kind, job)


def branch(members: Mapping[str, Raw], kind: str, job: Job) -> dict[str, Any]:
    """An object with its known levels opened; see `tree`.

    Args:
        members: Its members.
        kind: What it is; no union.
        job: What to do with it.
    """
    job.left -= len(members)
    if job.left < 0:
        return {}
    new = {name: _member(name, raw, kind, job) for name, raw in members.items()}
    if job.prefix:
        for name in _URIS:
            if isinstance(uri := new.get(name), str):
                new[name] = host_uri(job.prefix, uri)
        if "_meta" in members:
            new["_meta"] = _views(members["_meta"], job.prefix)
    if job.inline and kind == "ResourceLink":
        return stand_in(new, kind, job.target)
    return new


def views(meta: Mapping[str, Raw], prefix: str) -> dict[str, object]:
    """Those members of a ``_meta`` that name a view of an MCP App, with its URI as hosts see it.

    Args:
        meta: Members of ``_meta``.
        prefix: Prefix of the upstream.

    Source: ext-apps, ``_meta.ui.resourceUri`` and the older ``_meta["ui/resourceUri"]``.
    """
    found: dict[str, object] = {}
    if (uri := text(meta.get(VIEW))) is not None:
        found[VIEW] = host_uri(prefix, uri)
    inner = members_of(meta.get("ui"))
    if (uri := text(inner.get("resourceUri"))) is not None:
        found["ui"] = {**inner, "resourceUri": host_uri(prefix, uri)}
    return found


def text(raw: Raw | None) -> str | None:
    """The text that a value is; None for anything else."""
    try:
        return None if raw is None else _read_text(raw)
    except msgspec.DecodeError:
        return None


def members_of(raw: Raw | None) -> Mapping[str, Raw]:
    """The members of an object; none for anything else."""
    try:
        return {} if raw is None else _read_members(raw)
    except msgspec.DecodeError:
        return {}


def items_of(raw: Raw) -> list[Raw]:
    """The items of an array."""
    return _read_list(raw)


def _kind(members: Mapping[str, Raw], definition: str) -> str | None:
    """What an object is; None for content of a kind that nobody knows."""
    if definition == "ContentBlock":
        return CONTENT.get(text(members.get("type")) or "")
    if definition == "ResourceContents":
        return "BlobResourceContents" if "blob" in members else "TextResourceContents"
    return definition


def _member(name: str, raw: Raw, kind: str, job: Job) -> Any:
    child = CHILDREN.get((kind, name))
    if child is not None:
        return tree(raw, child, job)
    if name in _TEXTS:
        return _leaf(raw)
    return _schema(raw) if name in _SCHEMAS else raw


def _leaf(raw: Raw) -> Any:
    """The value of a member that should be a text; null for what should not be there and no reader can hold."""
    try:
        return _read_any(raw)
    except msgspec.DecodeError:
        return None


def _schema(raw: Raw) -> Any:
    """A JSON Schema with as much of it opened as changes its shape between revisions."""
    found: dict[str, Any] = dict(members_of(raw))
    if not found:
        return {} if memoryview(raw)[0] in b"{" else raw
    if "type" in found:
        found["type"] = _leaf(found["type"])
    properties = members_of(found.get("properties"))
    if properties:
        found["properties"] = {name: _LITERALS.get(bytes(value), value) for name, value in properties.items()}
    return found


def _views(raw: Raw, prefix: str) -> object:
    meta = members_of(raw)
    found = views(meta, prefix)
    return {**meta, **found} if found else raw
