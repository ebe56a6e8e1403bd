"""Names of capability fields: dotted paths, member keys, and what the register says stands where."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING

from troth.register.load import register
from troth.register.model import Kind, Row, Side

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from troth.register.model import Definition

Key = tuple[str, ...]
"""Member names from the capability object down to a field."""

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9]*\Z")
_BRACKET = re.compile(r"""\[(["'])(.*)\1\]\Z""", re.DOTALL)
_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_EXTENSION = re.compile(rf"{_LABEL}(?:\.{_LABEL})*/[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\Z")

SHOWN = 120
"""Characters of a peer's member name that messages and paths show; names can be as long as a frame."""


def is_extension_key(name: str) -> bool:
    """Whether ``name`` is ``prefix/name``, as the keys of ``extensions`` must be.

    Source: 2026-07-28 basic/versioning, which takes the grammar of ``_meta`` names and makes the prefix mandatory.
    The prefix is dot-separated labels that start with a letter and end with a letter or digit; the name starts and
    ends with a letter or digit.
    """
    return _EXTENSION.match(name) is not None


def shown(name: object) -> str:
    """``name`` fit for a message: control characters escaped, cut after ``SHOWN`` characters."""
    text = str(name)[: SHOWN + 1]
    text = f"{text[:SHOWN]}…" if len(text) > SHOWN else text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def spell(key: Iterable[object]) -> str:
    """The dotted path of a member key; a name that is no plain word stands in brackets, as the register writes it."""
    path = ""
    for name in key:
        if isinstance(name, str) and _PLAIN.match(name):
            path += f".{name}" if path else name
        else:
            path += f'["{name}"]'
    return path


@cache
def fields(side: Side, revision: str) -> Mapping[Key, tuple[Row, Definition]]:
    """What ``revision`` defines for ``side``, by member key.

    Raises:
        ValueError: No such revision; the message lists the known ones.
    """
    require_revision(revision)
    return {row.key: (row, row.definitions[revision]) for row in register().at(side, revision)}


@cache
def rows(side: Side) -> Mapping[Key, Row]:
    """Every field that any revision defines for ``side``, by member key."""
    return {row.key: row for row in register().rows if row.side is side}


@cache
def maps(side: Side) -> Mapping[str, Row]:
    """The open members of ``side`` (``experimental``, ``extensions``) by name."""
    return {row.path: row for row in rows(side).values() if any(d.kind is Kind.MAP for d in row.definitions.values())}


def other(side: Side) -> Side:
    """The side that ``side`` speaks with."""
    return Side.SERVER if side is Side.CLIENT else Side.CLIENT


def elsewhere(side: Side, key: Key) -> Row | None:
    """The row with this key that belongs to another revision, or else to the other side."""
    return rows(side).get(key) or rows(other(side)).get(key)


def require_revision(revision: str) -> str:
    """``revision`` itself if the register knows it.

    Raises:
        ValueError: It does not; the message lists those that it knows.
    """
    if revision not in register().revisions:
        raise ValueError(f"unknown protocol revision {shown(revision)!r}; known: {', '.join(register().revisions)}")
    return revision


def is_open(definition: Definition) -> bool:
    """Whether members that no row names may stand in the object: its shape is a bare ``object``."""
    return not definition.shape.startswith("{")


def resolve(path: str, side: Side) -> Key:
    """The member key that ``path`` names, for any field of the register on ``side`` and any key of an open map.

    Args:
        path: Dotted, e.g. ``roots.listChanged``. The key of an extension stands in brackets
            (``extensions["io.modelcontextprotocol/tasks"]``) or after a dot.
        side: Whose capabilities are asked.

    Raises:
        ValueError: No revision defines such a field on that side; the message names the nearest one.
    """
    key = find(path, side)
    if key is None:
        raise ValueError(f"no {side} capability is called {shown(path)!r}{_hint(path, side)}")
    return key


def find(path: str, side: Side) -> Key | None:
    """The member key as ``resolve`` gives it; None where no revision defines such a field."""
    bracket = path.find("[")
    key = tuple(path.split("."))
    if bracket >= 0 and (inside := _BRACKET.match(path, bracket)):
        key = (path[:bracket], inside[2])
    elif key[0] in maps(side) and len(key) > 1:
        key = (key[0], path.partition(".")[2])
    return key if key in rows(side) or (len(key) == 2 and key[0] in maps(side)) else None


def nearest(name: str, names: Iterable[str]) -> str:
    """The end of an error message about a wrong ``name``: the nearest of ``names``, else all of them."""
    known = sorted(names)
    near = get_close_matches(name[: 2 * SHOWN], known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else f"; there are: {', '.join(known)}"


def _hint(path: str, side: Side) -> str:
    if any(row.path == path for row in rows(other(side)).values()):
        return f"; it is a {other(side)} capability"
    return nearest(path, {row.path for row in rows(side).values()})
