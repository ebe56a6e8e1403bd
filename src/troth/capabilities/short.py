"""Capability objects as a person writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.capabilities.paths import nearest, other, rows, shown
from troth.capabilities.values import copied, is_object
from troth.register.model import Side

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def capabilities(**members: object) -> dict[str, object]:
    """A capability object from short forms.

    ``capabilities(tools=True, resources={"subscribe": True})`` gives
    ``{"tools": {}, "resources": {"subscribe": True}}``.

    Args:
        members: By the name that some revision defines, on either side. ``True`` becomes ``{}``, a mapping is copied
            as it is, anything else (``False``, ``None``) leaves the member out.

    Raises:
        TypeError: A name that no revision defines; the message names the nearest one.
    """
    return expand(members, (*tops(Side.SERVER), *tops(Side.CLIENT)))


def tops(side: Side) -> tuple[str, ...]:
    """The names that may stand at the top of a capability object of ``side``, in any revision."""
    return tuple(row.path for row in rows(side).values() if len(row.key) == 1)


def expand(members: Mapping[str, object], names: Iterable[str]) -> dict[str, object]:
    """Short forms written out; see ``capabilities``.

    Raises:
        TypeError: A name that is not among ``names``.
    """
    known = frozenset(names)
    full: dict[str, object] = {}
    for name, value in members.items():
        if name not in known:
            raise TypeError(f"no capability is called {shown(name)!r}{_owner(name, known)}")
        if value is True:
            full[name] = {}
        elif is_object(value):
            full[name] = copied(value)
    return full


def _owner(name: str, known: frozenset[str]) -> str:
    for side in Side:
        if name in tops(side):
            return f" on the {other(side)} side: it is a {side} capability"
    return nearest(name, known)
