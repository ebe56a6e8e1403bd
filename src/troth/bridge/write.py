"""Frames on their way out: what we change is written from our values, all else is copied. Sans-IO."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw

from troth.bridge.levels import parts
from troth.bridge.model import BODY, Frame, Id, Kind
from troth.bridge.scan import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

_OPEN = b'{"jsonrpc":"2.0"'
_BODIES = {"params": b',"params":', "result": b',"result":', "error": b',"error":'}

SHORT: Final = 64
"""Characters of the longest name of a member or method that is kept ready: the same ones come in every frame."""

_encode = msgspec.json.Encoder().encode


def rewrite(
    frame: Frame,
    *,
    id: Id | None = None,  # noqa: A002 - the name of the member
    params: Mapping[str, object] | None = None,
    result: Mapping[str, object] | None = None,
    error: Mapping[str, object] | None = None,
    drop: Collection[str] = (),
    meta: Mapping[str, object] | None = None,
    drop_meta: Collection[str] = (),
) -> bytes:
    """The frame as one line without its end, with other members where some are given.

    Without a change the line equals the message as JSON (an error without an id says null). A body in which nothing
    changes is copied as one piece, however long it is.

    Args:
        frame: What `read` or, if its result or error changes, `opened` returned.
        id: The id to write instead of the frame's own.
        params: Members of `params` to put in or replace: JSON values of ours, or `Raw` from a frame.
        result: The same for `result`.
        error: The same for `error`.
        drop: Members of the body to leave out.
        meta: Members of `_meta` in the body to put in or replace.
        drop_meta: Members of `_meta` to leave out. A `_meta` that is empty then is left out too.

    Raises:
        ValueError: Members are given for another kind of frame, a notification is to have an id, or the body is not
            opened.
    """
    name = BODY[frame.kind]
    changes = _changes(frame, params, result, error) if params or result or error else None
    if frame.kind is Kind.NOTIFICATION:
        if id is not None:
            raise ValueError("a notification has no id")
        pieces: list[bytes | Raw] = [_OPEN]
    else:
        number = frame.id if id is None else id
        pieces = [_OPEN, b',"id":', b"%d" % number if type(number) is int else written(number)]
    if name == "params":
        pieces += (b',"method":', _word(frame.method) if len(frame.method) <= SHORT else written(frame.method))
    if changes or drop or meta or drop_meta:
        pieces += (_BODIES[name], *_body(frame, changes or {}, drop, meta or {}, drop_meta))
    elif frame.body is not None:
        pieces += (_BODIES[name], frame.body)
    for key, value in frame.beside.items():
        pieces += (b",", written(key), b":", value)
    pieces.append(b"}")
    # One copy of a body, which may be long.
    return b"".join(pieces)


def _changes(
    frame: Frame,
    params: Mapping[str, object] | None,
    result: Mapping[str, object] | None,
    error: Mapping[str, object] | None,
) -> Mapping[str, object] | None:
    """What is given for the body of this kind of frame."""
    given = {name: value for name, value in (("params", params), ("result", result), ("error", error)) if value}
    changes = given.pop(BODY[frame.kind], None)
    if given:
        raise ValueError(f"a {frame.kind.value} has no {', '.join(given)} to change")
    return changes


def written(value: object) -> bytes:
    """A value of ours, or `Raw` from a frame, as JSON on one line."""
    return one_line(_encode(value))


def _body(
    frame: Frame,
    changes: Mapping[str, object],
    drop: Collection[str],
    meta: Mapping[str, object],
    drop_meta: Collection[str],
) -> list[bytes | Raw]:
    members = _changed(parts(frame), changes, drop)
    if meta or drop_meta:
        inner = _changed(frame.meta, meta, drop_meta)
        members.pop("_meta", None)
        if inner:
            members["_meta"] = b"".join(_object(inner))
    return _object(members)


def _changed(old: Mapping[str, Raw], new: Mapping[str, object], drop: Collection[str]) -> dict[str, Raw | bytes]:
    kept: dict[str, Raw | bytes] = {name: raw for name, raw in old.items() if name not in drop}
    for name, value in new.items():
        # `Raw` is one line already: it is from a frame, or from `written`.
        kept[name] = value if isinstance(value, Raw) else written(value)
    return kept


def _object(members: Mapping[str, Raw | bytes]) -> list[bytes | Raw]:
    pieces: list[bytes | Raw] = []
    for name, value in members.items():
        pieces += (b"," if pieces else b"{", _key(name) if len(name) <= SHORT else _new_key(name), value)
    pieces.append(b"}" if pieces else b"{}")
    return pieces


def _new_key(name: str) -> bytes:
    return written(name) + b":"


_key = lru_cache(maxsize=256)(_new_key)
_word: Callable[[str], bytes] = lru_cache(maxsize=256)(written)
