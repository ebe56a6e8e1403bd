"""Frames of strangers, taken apart only as far as routing needs. Sans-IO; values instead of exceptions.

The rules of this room:

1. A `Frame` that exists is clean. It is valid JSON in valid UTF-8, bounded in bytes, depth and digits, and every
   member at a level that was taken apart stands there once. So nobody behind it can read another message than we did.
2. Levels that are taken apart: the envelope; `params` and its `_meta` when a request or notification is read; a
   `result` or `error` and its `_meta` when it is opened (`opened`). All below stays as the bytes that came.
3. A variant in case of a member that we interpret is refused beside a real one and alone: some readers (Go's
   `encoding/json`, .NET with its web defaults) take it for the member.
4. Whatever is written is one line (`scan.one_line`).

What is refused though it is JSON: a byte order mark, see `FrameLimits` for sizes, duplicates and variants in case at
levels that are taken apart, ids that are no text or integer. What is mended: escapes of unpaired surrogates become
U+FFFD. Numbers are never read: an integer of 4000 digits and `1e999` pass as they came.

Source: JSON-RPC 2.0; RFC 8259, 4 (members of one name), 8.1 (UTF-8, byte order mark), 9 (limits); basic protocol,
messages (ids are never null).
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec
from msgspec import Raw

from troth.bridge.levels import ENVELOPE, MEMBER, Fault, apart, check
from troth.bridge.model import (
    BAD_PARAMS,
    BESIDE,
    BODY,
    LIMITS,
    NOT_A_MESSAGE,
    NOT_JSON,
    Bad,
    Batch,
    Frame,
    FrameLimits,
    Id,
    Kind,
)
from troth.bridge.scan import deeper, longer, one_line, paired, shallow

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")
_ABSENT = Raw(b"")
_NULL = Raw(b"null")
_VERSION = Raw(b'"2.0"')
_MARK = b"\xef\xbb\xbf"
_WHITE = b" \t\r\n"


class _Envelope(msgspec.Struct):
    jsonrpc: Raw = _ABSENT
    id: Raw = _ABSENT
    method: Raw = _ABSENT
    params: Raw = _ABSENT
    result: Raw = _ABSENT
    error: Raw = _ABSENT


_read_envelope = msgspec.json.Decoder(_Envelope).decode
_read_any = msgspec.json.Decoder(Raw).decode
_read_text = msgspec.json.Decoder(str).decode
_read_id = msgspec.json.Decoder(Id).decode

_KINDS: dict[tuple[bool, ...], Kind] = {
    (True, True, False, False): Kind.REQUEST,
    (False, True, False, False): Kind.NOTIFICATION,
    (True, False, True, False): Kind.RESPONSE,
    (True, False, False, True): Kind.ERROR,
    (False, False, False, True): Kind.ERROR,
}
"""By which of `id`, `method`, `result` and `error` stand in the envelope. Other sets are no message."""

_ASKING = (Kind.REQUEST, Kind.NOTIFICATION)
_CLOSED: tuple[None, dict[str, Raw]] = (None, {})
"""What is taken apart of the body of a response: nothing."""
_NAMED = (Kind.REQUEST, Kind.RESPONSE)
"""Kinds that carry an id. Null is none: the protocol forbids it."""


class _Shape(NamedTuple):
    """What follows from which members of `_Envelope` are there."""

    kind: Kind | None
    """None where that is no message."""
    names: int
    """Bytes of their names, with quotes, colon and comma."""


_FIELDS = _Envelope.__struct_fields__
_SHAPES = {
    there: _Shape(
        _KINDS.get((there[1], there[2], there[4], there[5])),
        sum(len(name) + 4 for name, is_there in zip(_FIELDS, there, strict=True) if is_there),
    )
    for there in product((False, True), repeat=len(_FIELDS))
}
"""By which members are there, in their order in `_Envelope`."""


def read(data: bytes, limits: FrameLimits = LIMITS) -> Frame | Bad:
    """Reads one JSON-RPC message, as one line, one body or one event holds it.

    Args:
        data: The bytes as they came, white space around them allowed.
        limits: What the frame may measure.

    Returns:
        The frame, or what is wrong: -32700 for what is no JSON, -32600 for what is no message or too large, -32602
        for members that could be read in two ways and for `params` that are no object.
    """
    clean = _clean(data, limits, _read_envelope)
    if isinstance(clean, Bad):
        return clean
    envelope, line, excess = clean
    message = _message(envelope, line, limits)
    if excess and isinstance(message, Frame):
        return Bad(NOT_A_MESSAGE, excess, message.id, message.kind, line)
    return message


def read_batch(data: bytes, limits: FrameLimits = LIMITS, *, allowed: bool) -> Frame | Batch | Bad:
    """Reads a message or, in a revision that has them, an array of messages.

    Args:
        data: The bytes as they came.
        limits: What the whole may measure, and how many messages it may hold.
        allowed: Whether the revision in force has batches (2025-03-26 alone does).

    Returns:
        A frame for a single message; a batch, in which each message is good or bad for itself; -32600 for an array
        that is not allowed, empty or too long, holds `initialize`, or the same id twice.
    """
    if not allowed or not data.lstrip(_WHITE).startswith(b"["):
        return read(data, limits)
    clean = _clean(data, limits, _items(limits.batch))
    if isinstance(clean, Bad):
        return clean
    array, _, wrong = clean
    raws = [raw for raw in msgspec.structs.astuple(array) if raw]
    if not 0 < len(raws) <= limits.batch:
        wrong = wrong or f"a batch of {'more' if raws else 'no'} messages, where 1 to {limits.batch} belong"
    if wrong:
        return Bad(NOT_A_MESSAGE, wrong)
    items = tuple(read(bytes(raw), limits) for raw in raws)
    if any(isinstance(item, Frame) and item.method == "initialize" for item in items):
        return Bad(NOT_A_MESSAGE, "initialize inside a batch; send it alone")
    # Ids of requests are the sender's, ids of answers are ours: the same one on both sides is no clash.
    ids = [(item.kind is Kind.REQUEST, item.id) for item in items if item.id is not None]
    if len(set(ids)) < len(ids):
        return Bad(NOT_A_MESSAGE, "a batch with the same id twice")
    return Batch(items)


@cache
def _items(most: int) -> Callable[[bytes], msgspec.Struct]:
    """Reads the first items of an array, one more than `most`. All after them are checked, but not kept."""
    fields = [(f"item{number}", Raw, _ABSENT) for number in range(most + 1)]
    return msgspec.json.Decoder(msgspec.defstruct("Items", fields, array_like=True)).decode


def _clean(data: bytes, limits: FrameLimits, decode: Callable[[bytes], _T]) -> tuple[_T, bytes, str] | Bad:
    """What `decode` makes of the bytes, and the bytes: valid JSON on one line, and which limit of its inside breaks."""
    data = data.strip(_WHITE)
    if len(data) > limits.bytes:
        return Bad(NOT_A_MESSAGE, f"a message of more than {limits.bytes} bytes")
    try:
        if not (ascii_only := data.isascii()):
            data.decode()
        value = decode(data)
    except msgspec.DecodeError:
        mended = paired(data)
        return _refused(data) if mended == data else _clean(mended, limits, decode)
    except UnicodeDecodeError:
        return Bad(NOT_JSON, "no valid UTF-8")
    except RecursionError:
        # Too deep for whoever reads JSON: without its depths it is known whose it is, and the limit is broken still.
        rest = shallow(data, limits.depth)
        return Bad(NOT_A_MESSAGE, _too_deep(limits)) if rest == data else _clean(rest, limits, decode)
    line = one_line(data, ascii=ascii_only)
    return (value if line is data else decode(line)), line, broken(data, limits)


def broken(data: bytes, limits: FrameLimits) -> str:
    """Which limit of its inside valid JSON breaks, in words; empty if none."""
    if deeper(data, limits.depth):
        return _too_deep(limits)
    return f"a number of more than {limits.digits} digits" if longer(data, limits.digits) else ""


def _too_deep(limits: FrameLimits) -> str:
    return f"nested deeper than {limits.depth} levels"


def _refused(data: bytes) -> Bad:
    """What is wrong with bytes that are no value of the type that was looked for."""
    try:
        _read_any(data)
    except (msgspec.DecodeError, RecursionError):
        mark = "a byte order mark before the message" if data.startswith(_MARK) else "no valid JSON"
        return Bad(NOT_JSON, mark if data else "nothing, where a message belongs")
    if data.startswith(b"["):
        return Bad(NOT_A_MESSAGE, "an array, where one message belongs; send messages one by one")
    return Bad(NOT_A_MESSAGE, "a message is an object")


def _message(envelope: _Envelope, line: bytes, limits: FrameLimits) -> Frame | Bad:
    """The frame that an envelope holds; of a request or notification with the members of its `params`."""
    sizes = [*map(len, msgspec.structs.astuple(envelope))]
    kind, names = _SHAPES[tuple(map(bool, sizes))]
    identity = _identity(envelope.id, limits)
    known = None if isinstance(identity, Fault) else identity
    # All but what the members of JSON-RPC, and the brace that begins or ends the message, take.
    beside = _beside(line, len(line) - 1 - names - sum(sizes))
    if isinstance(beside, Fault):
        sure = beside.name is None or beside.name.casefold() != "id"
        code = NOT_A_MESSAGE if beside.name is None else BAD_PARAMS
        return Bad(code, beside.reason, known if sure else None, kind)
    if kind is None:
        return Bad(NOT_A_MESSAGE, "a message has a method, or an id with a result or an error", known)
    body: Raw = getattr(envelope, BODY[kind])
    method = _text(envelope.method, limits) if envelope.method else ""
    if problem := _problem(envelope, kind, identity, limits) or _unfit(kind, method, body, limits):
        return Bad(NOT_A_MESSAGE, problem, known, kind)
    taken = apart(kind, body, known) if kind in _ASKING else _CLOSED
    if isinstance(taken, Bad):
        return taken
    parts, meta = taken
    return Frame(
        kind=kind, id=known, method=method or "", body=body or None, parts=parts, meta=meta, beside=beside or {}
    )


def _problem(envelope: _Envelope, kind: Kind, identity: Id | Fault | None, limits: FrameLimits) -> str:
    """What of its id and version keeps an envelope from being a message, in words; empty if nothing does."""
    if isinstance(identity, Fault):
        return identity.reason
    if identity is None and kind in _NAMED:
        return "id: null, where a text or an integer belongs"
    if envelope.jsonrpc != _VERSION and _text(envelope.jsonrpc, limits) != "2.0":
        return 'jsonrpc: "2.0" belongs here'
    return ""


def _unfit(kind: Kind, method: str | None, body: Raw, limits: FrameLimits) -> str:
    """What of its method or body does, in words; empty if nothing does."""
    if kind in _ASKING:
        return "" if method is not None else f"method: {_short(limits)} belongs here"
    return "" if bytes(memoryview(body)[:1]) == b"{" else f"{BODY[kind]}: an object belongs here"


def _short(limits: FrameLimits) -> str:
    return f"a text of at most {limits.name} bytes"


def _identity(raw: Raw, limits: FrameLimits) -> Id | Fault | None:
    """The id that stands in the envelope; None for none and for null."""
    if not raw or raw == _NULL:
        return None
    try:
        if len(raw) <= limits.name:
            return _read_id(raw)
    except msgspec.DecodeError:
        pass
    return Fault("id", f"id: an integer or {_short(limits)} belongs here")


def _text(raw: Raw, limits: FrameLimits) -> str | None:
    """A short text of the envelope; None for anything else."""
    try:
        return _read_text(raw) if len(raw) <= limits.name else None
    except msgspec.DecodeError:
        return None


def _beside(line: bytes, rest: int) -> dict[str, Raw] | Fault:
    """The members that JSON-RPC does not define, and the proof that those which it defines stand there once.

    Args:
        line: The message.
        rest: Bytes of it beside the members that JSON-RPC defines.
    """
    if rest < MEMBER:
        return {}
    if rest > BESIDE:
        return Fault(None, f"more than {BESIDE} bytes beside the members of JSON-RPC")
    members = check(line, ENVELOPE)
    if isinstance(members, Fault):
        return members
    return {name: raw for name, raw in members.items() if name not in ENVELOPE.names}
