"""A result that breaks a limit of `FrameLimits` only inside some items of its list, read without these. Sans-IO.

One item must not cost the others: what nests too deep, or has a number too long, is left out by itself.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
from msgspec import Raw

from troth.bridge.frames import broken, read
from troth.bridge.levels import opened, parts
from troth.bridge.model import LIMITS, NOT_A_MESSAGE, Bad, Frame, FrameLimits, Kind
from troth.bridge.write import rewrite, written

ABOVE: Final = 3
"""Levels above an item: the message, its result, the list."""

_read_items = msgspec.json.Decoder(list[Raw]).decode


class Spared(NamedTuple):
    """A result without the items that broke a limit.

    Attributes:
        frame: The rest, opened.
        left: What was left out, each with the limit that it broke, in words.
    """

    frame: Frame
    left: tuple[tuple[Raw, str], ...]


def spared(line: bytes, member: str, limits: FrameLimits = LIMITS) -> Spared | Bad:
    """Reads a result whose list has items that break a limit.

    Args:
        line: `Bad.line`.
        member: Member of the result that holds the list.
        limits: What the frame may measure.

    Returns:
        The result without these items, or what else is wrong with it.
    """
    unlimited = msgspec.structs.replace(limits, depth=len(line), digits=len(line))
    whole = read(line, unlimited)
    whole = whole if isinstance(whole, Bad) else opened(whole)
    if isinstance(whole, Bad):
        return whole
    if whole.kind is not Kind.RESPONSE:
        return Bad(NOT_A_MESSAGE, "no result")
    try:
        items = _read_items(parts(whole).get(member, b""))
    except msgspec.DecodeError:
        return Bad(NOT_A_MESSAGE, f"{member} is no list")
    inner = msgspec.structs.replace(limits, depth=limits.depth - ABOVE)
    faults = [broken(bytes(item), inner) for item in items]
    kept = [item for item, fault in zip(items, faults, strict=True) if not fault]
    rest = read(rewrite(whole, result={member: kept}), limits)
    if isinstance(rest, Bad):
        return rest
    frame = msgspec.structs.replace(rest, parts={**parts(whole), member: Raw(written(kept))}, meta=whole.meta)
    return Spared(frame, tuple((item, fault) for item, fault in zip(items, faults, strict=True) if fault))
