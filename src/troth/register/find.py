"""Finds what a person asks about: an id, a path, a method, an error code, a gap, a revision, a host."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.register.load import Register

ERROR_RANGE = re.compile(r"(-\d+)\.\.(-\d+)")
"""How a range of codes is written in the register; the larger end stands first."""


class Topic(StrEnum):
    """The kinds of thing that can be explained."""

    CAPABILITY = "capability"
    METHOD = "method"
    ERROR = "error"
    GAP = "gap"
    REVISION = "revision"
    HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a query means.

    Attributes:
        topic: The kind of thing.
        keys: Ids of rows (a path may have one on each side), else one name as the register writes it.
    """

    topic: Topic
    keys: tuple[str, ...]


def names(register: Register) -> dict[str, Found]:
    """Everything that can be asked for, by the name as the register writes it."""
    found = {name: Found(topic=topic, keys=(name,)) for topic, name in _single(register)}
    groups: dict[str, list[str]] = {}
    for row in register.rows:
        groups.setdefault(row.path, []).append(row.id)
        if row.extension:
            groups.setdefault(row.key[-1], []).append(row.id)
        if row.family and row.family not in register.by_id:
            groups.setdefault(row.family, []).append(row.id)
        found[row.id] = Found(topic=Topic.CAPABILITY, keys=(row.id,))
    return found | {name: Found(topic=Topic.CAPABILITY, keys=tuple(ids)) for name, ids in groups.items()}


def find(register: Register, query: str) -> Found | None:
    """What ``query`` means, letter case aside; None if nothing has this name.

    A code inside a range of the register means the range.
    """
    wanted = query.strip().lower()
    for name, found in names(register).items():
        if name.lower() == wanted:
            return found
    code = next((str(error.code) for error in register.errors if _inside(wanted, str(error.code))), None)
    return Found(topic=Topic.ERROR, keys=(code,)) if code else None


def suggest(register: Register, query: str) -> tuple[str, ...]:
    """Up to three names that look like ``query``, the nearest first."""
    from difflib import get_close_matches  # only a miss pays for it

    known = {name.lower(): name for name in names(register)}
    wanted = query.strip().lower()
    near = get_close_matches(wanted, known, n=3, cutoff=0.6)
    inside = [name for name in known if len(wanted) > 3 and wanted in name]
    return tuple(known[name] for name in dict.fromkeys([*near, *inside]))[:3]


def _single(register: Register) -> Iterator[tuple[Topic, str]]:
    yield from ((Topic.METHOD, method) for method, _ in register.methods)
    yield from ((Topic.ERROR, str(error.code)) for error in register.errors)
    yield from ((Topic.GAP, gap) for gap in register.gaps)
    yield from ((Topic.REVISION, revision) for revision in register.revisions)
    yield from ((Topic.HOST, host) for host in register.hosts)


def _inside(wanted: str, code: str) -> bool:
    ends = ERROR_RANGE.fullmatch(code)
    if ends is None or not re.fullmatch(r"-\d{1,9}", wanted):
        return False
    return int(ends[2]) <= int(wanted) <= int(ends[1])
