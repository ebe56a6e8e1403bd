"""What ``resources/read`` returns."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from troth.results.media import Data, guess, read
from troth.results.shapes import renamed, shaped
from troth.results.spelling import Object, finish, known_revision
from troth.results.values import is_array, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

CacheScope = Literal["private", "public"]
"""Who may be served a cached copy: the same authorization context only, or anyone."""


def resource_contents(
    *,
    uri: object = None,
    text: str | PurePath | None = None,
    blob: Data | None = None,
    mime_type: str | None = None,
    annotations: Mapping[str, object] | None = None,
    meta: Mapping[str, object] | None = None,
    _meta: Mapping[str, object] | None = None,
    revision: str | None = None,
) -> Object:
    """Builds the contents of one resource.

    Args:
        uri: Its address: a string, a URL object, or a path (``file://``).
        text: Text, or the path of a UTF-8 file. Either this or ``blob``.
        blob: Bytes, the path of a file, or a string that is base64 already.
        mime_type: Told from the address or the first bytes if it is not given; left out where that tells nothing.
        annotations: For ``content_block(resource=...)``, which puts them on the block. No revision has a place for
            them in contents, so naming one leaves them out, and so does ``read_resource_result``.
        meta: The contents' ``_meta``; ``_meta=`` means the same.
        revision: The protocol revision in force; None keeps every member.

    Returns:
        A new dict.

    Raises:
        TypeError: A value of a wrong type.
        ValueError: No ``uri``, no body, two bodies, or a body that cannot be carried.
    """
    known_revision(revision)
    raw = _given(uri=uri, text=text, blob=blob, mimeType=mime_type, annotations=annotations, meta=meta, _meta=_meta)
    new, notes = contents(raw, "resource_contents")
    return {**finish(new, "ResourceContents", revision), **(notes if revision is None else {})}


def read_resource_result(
    *items: object,
    uri: object = None,
    text: str | PurePath | None = None,
    blob: Data | None = None,
    mime_type: str | None = None,
    meta: Mapping[str, object] | None = None,
    _meta: Mapping[str, object] | None = None,
    ttl_ms: int = 0,
    cache_scope: CacheScope = "private",
    revision: str | None = None,
) -> Object:
    """Builds the result of ``resources/read``.

    Keywords describe one resource, as for ``resource_contents``: ``read_resource_result(uri=path, text="a")``. Several
    are given as contents, ``read_resource_result(first, second)`` or as one list, each a mapping or a model of the
    SDK. The two ways do not mix.

    Args:
        items: Contents.
        uri: As for ``resource_contents``.
        text: As for ``resource_contents``.
        blob: As for ``resource_contents``.
        mime_type: As for ``resource_contents``.
        meta: ``_meta`` of the contents, or of the result where contents are given; ``_meta=`` means the same.
        ttl_ms: Milliseconds for which a client may keep the answer (2026-07-28).
        cache_scope: ``private`` or ``public`` (2026-07-28).
        revision: The protocol revision in force; None gives the newest shape with every member kept.

    Returns:
        A new dict.

    Raises:
        TypeError: A value of a wrong type, or both ways mixed.
        ValueError: As for ``resource_contents``; a cache hint out of range.
    """
    known_revision(revision)
    keywords = _given(uri=uri, text=text, blob=blob, mimeType=mime_type)
    metas = _given(meta=meta, _meta=_meta)
    if items and keywords:
        raise TypeError(
            f"read_resource_result takes contents or the keywords of one, not both: {', '.join(keywords)} given too"
        )
    where = "read_resource_result"
    if items:
        several = items[0] if len(items) == 1 and is_array(items[0]) else items
        bodies = [contents(item, f"{where}: contents[{index}]")[0] for index, item in enumerate(several)]
        result = {**shaped(metas, "ReadResourceResult", where), "contents": bodies}
    else:
        result = {"contents": [contents({**keywords, **metas}, where)[0]]}
    return finish({**result, **cache_hints(ttl_ms, cache_scope, where)}, "ReadResourceResult", revision)


def contents(value: object, where: str) -> tuple[Object, Object]:
    """Checked contents of a resource, with the MIME type told where it is not given; and its annotations, apart.

    Raises:
        TypeError: No object, or a value of a wrong type.
        ValueError: No ``uri``, no body, two bodies, or a body that cannot be carried.
    """
    raw = renamed(value, "BlobResourceContents", where)
    annotations = raw.pop("annotations", None)
    notes: Object = {}
    if annotations is not None:
        notes["annotations"] = shaped(annotations, "Annotations", f"{where}.annotations")
    bodies = [name for name in ("text", "blob") if raw.get(name) is not None]
    if "uri" not in raw:
        raise ValueError(f"{where} needs 'uri', which is missing")
    if len(bodies) != 1:
        raise ValueError(f"{where} needs a body, either 'text' or 'blob', and has {' and '.join(bodies) or 'neither'}")
    source = raw[bodies[0]]
    if isinstance(source, PurePath) and bodies == ["text"]:
        raw["text"] = _file_text(source, f"{where}.text")
    definition = "TextResourceContents" if bodies == ["text"] else "BlobResourceContents"
    new = shaped(raw, definition, where)
    found = guess(new["uri"], new.get("blob", ""))
    return (new if "mimeType" in new or found is None else {**new, "mimeType": found}), notes


def cache_hints(ttl_ms: object, cache_scope: object, where: str) -> Object:
    """The two members that tell clients how long, and for whom, a result may be kept.

    Raises:
        TypeError: ``ttl_ms`` is no integer.
        ValueError: It is negative, or ``cache_scope`` is neither ``private`` nor ``public``.
    """
    if not isinstance(ttl_ms, int) or isinstance(ttl_ms, bool):
        raise TypeError(f"{where}: ttl_ms must be an integer of milliseconds, not {type(ttl_ms).__name__}")
    if ttl_ms < 0:
        raise ValueError(f"{where}: ttl_ms must be 0 or more milliseconds, not {ttl_ms}")
    if cache_scope not in ("private", "public"):
        raise ValueError(f"{where}: cache_scope must be 'private' or 'public', not {shown(cache_scope)}")
    return {"ttlMs": ttl_ms, "cacheScope": cache_scope}


def _file_text(path: PurePath, where: str) -> str:
    try:
        return read(path, where).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{where}: the file {str(path)!r} is not UTF-8 text ({error.reason}); use blob=") from None


def _given(**values: object) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}
