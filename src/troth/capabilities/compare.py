"""Compares two declarations, also across revisions: what is lost, gained, changed, and what means something else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from troth.capabilities.build import Built
from troth.capabilities.paths import fields, maps, rows, spell
from troth.capabilities.values import is_object

if TYPE_CHECKING:
    from troth.capabilities.model import Capabilities
    from troth.capabilities.paths import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One path that differs.

    Attributes:
        path: Dotted path.
        row_id: Its row in the register; None for a key of an open map that has none.
        sentence: What differs, for people.
    """

    path: str
    row_id: str | None
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What differs between two declarations, each part in the register's order.

    Attributes:
        lost: In force in the first only.
        gained: In force in the second only.
        changed: In force in both, with another value.
        redefined: In force in both, but the revisions mean or deliver it differently.
    """

    lost: tuple[Difference, ...]
    gained: tuple[Difference, ...]
    changed: tuple[Difference, ...]
    redefined: tuple[Difference, ...]

    def __bool__(self) -> bool:
        return bool(self.lost or self.gained or self.changed or self.redefined)


def compare(a: Capabilities | Built, b: Capabilities | Built) -> Comparison:
    """What a peer that had ``a`` has with ``b``.

    Raises:
        ValueError: One is a server's and the other a client's.
    """
    first = a.declared if isinstance(a, Built) else a
    second = b.declared if isinstance(b, Built) else b
    if first.side is not second.side:
        raise ValueError(f"capabilities of a {first.side} cannot be compared with those of a {second.side}")
    order = list(dict.fromkeys((*rows(first.side), *sorted(first.in_force | second.in_force))))
    both = [key for key in order if key in first.in_force and key in second.in_force]
    return Comparison(
        lost=tuple(_missing(key, second) for key in order if key in first.in_force - second.in_force),
        gained=tuple(_missing(key, first) for key in order if key in second.in_force - first.in_force),
        changed=tuple(found for key in both if (found := _changed(key, first, second))),
        redefined=tuple(found for key in both if (found := _redefined(key, first, second))),
    )


def _difference(key: Key, side_of: Capabilities, sentence: str) -> Difference:
    row = rows(side_of.side).get(key)
    path = spell(key)
    return Difference(path=path, row_id=row.id if row else None, sentence=f"{path}: {sentence}")


def _missing(key: Key, without: Capabilities) -> Difference:
    row = rows(without.side).get(key)
    if (key if row else key[:1]) in fields(without.side, without.revision):
        return _difference(key, without, f"not declared under {without.revision}")
    return _difference(key, without, f"{without.revision} does not define it")


def _changed(key: Key, first: Capabilities, second: Capabilities) -> Difference | None:
    before, after = _own(key, first), _own(key, second)
    if before == after:
        return None
    return _difference(key, first, "declared with other settings")


def _own(key: Key, declared: Capabilities) -> object:
    """The value at ``key`` without the members that are compared by themselves."""
    value: object = declared.effective
    for name in key:
        # An implied form mode is in force without standing in the object.
        value = value.get(name, {}) if is_object(value) else {}
    if not is_object(value):
        return value
    if len(key) == 1 and key[0] in maps(declared.side):
        return {}
    return {name: inner for name, inner in value.items() if (*key, name) not in rows(declared.side)}


def _redefined(key: Key, first: Capabilities, second: Capabilities) -> Difference | None:
    old = fields(first.side, first.revision).get(key)
    new = fields(second.side, second.revision).get(key)
    if old is None or new is None:
        return None
    before, after = old[1], new[1]
    parts: list[str] = []
    if before.channel is not after.channel:
        parts.append(f"travels as {before.channel} in {first.revision}, as {after.channel} in {second.revision}")
    if before.meaning != after.meaning:
        parts.append(f"in {second.revision} it means: {after.meaning}")
    return _difference(key, first, "; ".join(parts)) if parts else None
