"""Levels of a frame that are taken apart: members once each, no variant in case, and the values routing asks for.

Sans-IO; values instead of exceptions.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast, get_type_hints

import msgspec
from msgspec import Raw

from troth.bridge.model import BAD_PARAMS, BODY, MEMBERS, Bad, Frame, Id, Kind, Peeked, PeekedMeta

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Fault(NamedTuple):
    """Why the members of a level cannot be used."""

    name: str | None
    """The member at fault; None where it is the level."""
    reason: str


class Level:
    """A level that is taken apart: how it is named in a reason, and which of its members we interpret."""

    def __init__(self, where: str, names: Iterable[str]) -> None:
        self.where = where
        self.names = frozenset(names)
        self.folded = {name.casefold(): name for name in self.names}


ENVELOPE = Level("the message", ("jsonrpc", "id", "method", "params", "result", "error"))
PARAMS = Level(
    "params",
    (
        "_meta",
        "argument",
        "arguments",
        "capabilities",
        "clientInfo",
        "cursor",
        "inputResponses",
        "level",
        "name",
        "notifications",
        "progressToken",
        "protocolVersion",
        "ref",
        "requestId",
        "requestState",
        "task",
        "taskId",
        "uri",
    ),
)
RESULT = Level(
    "result",
    (
        "_meta",
        "capabilities",
        "inputRequests",
        "nextCursor",
        "protocolVersion",
        "requestState",
        "resultType",
        "serverInfo",
        "task",
        "taskId",
    ),
)
ERROR = Level("error", ("code", "data", "message"))
META = Level("_meta", PeekedMeta.__annotations__)

_ABSENT = Raw(b"")
_NULL = Raw(b"null")

_BODIES = {Kind.REQUEST: PARAMS, Kind.NOTIFICATION: PARAMS, Kind.RESPONSE: RESULT, Kind.ERROR: ERROR}

REPEATED: Final = 1024
"""Bytes of the longest ``_meta`` that is kept ready: peers send the same one with every message."""

_read_members = msgspec.json.Decoder(dict[str, Raw]).decode
_read_text = msgspec.json.Decoder(str).decode

_WORDS: dict[Any, str] = {str: "a text", int: "an integer", Id: "a text or an integer"}


def _readers(sorts: Mapping[str, Any]) -> dict[str, tuple[Any, str] | None]:
    return {
        name: (msgspec.json.Decoder(sort).decode, _WORDS[sort]) if sort in _WORDS else None
        for name, sort in sorts.items()
    }


_READERS = _readers(get_type_hints(Peeked))
_META_READERS = _readers(get_type_hints(PeekedMeta))

_KEY = re.compile(rb'[{,][ \t\r\n]*"([^"\\]*(?:\\.[^"\\]*)*)"[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
_SPACE = re.compile(rb"[ \t\r\n]*")

MEMBER = len(b',"":0')
"""Bytes of the shortest member that an object could hold beside those that are known of it."""


def check(raw: Raw | bytes, level: Level) -> dict[str, Raw] | Fault:
    """The members of an object as they stand, if each stands once and under its own name.

    What the known members take at least is set against the length of the object: where nothing is left for another
    one, none is there twice. Only objects with white space or escaped names are walked over.

    Args:
        raw: A valid JSON value without white space around it.
        level: What the object is.
    """
    try:
        found = _read_members(raw)
    except msgspec.ValidationError:
        return Fault(None, f"{level.where}: an object belongs here")
    if len(found) > MEMBERS:
        return Fault(None, f"{level.where} has more than {MEMBERS} members")
    least = sum(map(len, found)) + sum(map(len, found.values())) + 4 * len(found) + 1
    if len(raw) - least >= MEMBER and (double := _double(bytes(raw), found)) is not None:
        shown = repr(double) if double in level.names else "a member"
        return Fault(double, f"{level.where} has {shown} twice; give each member once")
    if not found.keys() <= level.names:
        for name in found:
            if name not in level.names and (real := level.folded.get(name.casefold())) is not None:
                return Fault(name, f"{level.where} has {real!r} in other letters; write it exactly so")
    return found


def _double(raw: bytes, members: Mapping[str, Raw]) -> str | None:
    """A member that stands twice: walks over the object, from known value to known value."""
    position = 0
    seen: set[str] = set()
    name = ""
    if not members:
        return None
    while key := _KEY.match(raw, position):
        name = _read_text(b'"' + key[1] + b'"')
        value = bytes(members[name])
        # The value that was kept is the last one of its name: an earlier one differs, or the name comes again.
        if name in seen or not raw.startswith(value, key.end()):
            return name
        seen.add(name)
        position = cast("re.Match[bytes]", _SPACE.match(raw, key.end() + len(value))).end()
    # An earlier value that only begins like the last one leaves the walk in its middle.
    return None if raw[position:] == b"}" else name


@lru_cache(maxsize=256)
def _repeated_meta(raw: bytes) -> Mapping[str, Raw] | Fault:
    return check(raw, META)


def opened(frame: Frame) -> Frame | Bad:
    """The frame with the members of its body at hand: a result or error is taken apart when this is called.

    A request or notification is returned as it is, since `read` has taken it apart.
    """
    if frame.parts is not None:
        return frame
    taken = apart(frame.kind, frame.body or _ABSENT, frame.id)
    if isinstance(taken, Bad):
        return taken
    return Frame(
        kind=frame.kind,
        id=frame.id,
        method=frame.method,
        body=frame.body,
        parts=taken[0],
        meta=taken[1],
        beside=frame.beside,
    )


def apart(kind: Kind, body: Raw, identity: Id | None) -> tuple[Mapping[str, Raw], Mapping[str, Raw]] | Bad:
    """The members of a body and of its ``_meta``.

    Args:
        kind: Of the frame.
        body: The body; empty if there is none.
        identity: Id of the frame, for the reason.
    """
    parts = check(body, _BODIES[kind]) if body and body != _NULL else {}
    if isinstance(parts, Fault):
        return Bad(BAD_PARAMS, parts.reason, identity, kind)
    raw = parts.get("_meta")
    if raw is None or (kind is Kind.RESPONSE and raw == _NULL):
        return parts, {}
    meta = check(raw, META) if len(raw) > REPEATED else _repeated_meta(bytes(raw))
    if isinstance(meta, Fault):
        return Bad(BAD_PARAMS, f"{BODY[kind]}: {meta.reason}", identity, kind)
    return parts, meta


def members(raw: Raw, where: str, names: Iterable[str] = ()) -> dict[str, Raw] | Bad:
    """Takes one more level apart, as the arguments of a call or a reference, before anything is read from it.

    Args:
        raw: A value out of a frame.
        where: What it is, for the reason.
        names: Members that will be interpreted; a variant of one in other letters is refused.

    Returns:
        The members, each of which stands there once, or -32602.
    """
    found = check(raw, Level(where, names))
    return Bad(BAD_PARAMS, found.reason) if isinstance(found, Fault) else found


def peek(frame: Frame, *names: str) -> Peeked | Bad:
    """Reads the named members of the body.

    Args:
        frame: A request, a notification, or what `opened` returns.
        names: Keys of `Peeked`.

    Returns:
        Those that are there, or -32602 for one of the wrong type.

    Raises:
        KeyError: A name is not of `Peeked`.
        ValueError: The frame is a result or error that is not opened.
    """
    found = _read(frame, parts(frame), names, _READERS)
    if isinstance(found, Bad):
        return found
    if "_meta" in found:
        found["_meta"] = frame.meta
    return cast("Peeked", found)


def peek_meta(frame: Frame, *names: str) -> PeekedMeta | Bad:
    """Reads the named members of `_meta` in the body; see `peek`.

    Args:
        frame: A request, a notification, or what `opened` returns.
        names: Keys of `PeekedMeta`.
    """
    parts(frame)
    return cast("PeekedMeta | Bad", _read(frame, frame.meta, names, _META_READERS))


def parts(frame: Frame) -> Mapping[str, Raw]:
    """The members of the body.

    Raises:
        ValueError: The frame is a result or error that is not opened.
    """
    if frame.parts is None:
        raise ValueError(f"the {BODY[frame.kind]} of this frame is closed: use what `opened(frame)` returns")
    return frame.parts


def _read(
    frame: Frame, members: Mapping[str, Raw], names: Iterable[str], readers: Mapping[str, tuple[Any, str] | None]
) -> dict[str, Any] | Bad:
    found: dict[str, Any] = {}
    for name in names:
        reader, raw = readers[name], members.get(name)
        if raw is None:
            continue
        if reader is None:
            found[name] = raw
            continue
        decode, words = reader
        try:
            found[name] = decode(raw)
        except msgspec.DecodeError:
            return Bad(BAD_PARAMS, f"{BODY[frame.kind]}: {name}: {words} belongs here", frame.id, frame.kind)
    return found
