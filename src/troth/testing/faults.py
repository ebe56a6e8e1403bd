"""The faults: each breaks one promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from troth.testing.model import Fault, Twist

FAULTS: Mapping[str, Fault] = {}
"""Every fault by name."""


def twists(names: Iterable[str]) -> tuple[Twist, ...]:
    """The twists of faults, each written ``name`` or ``name=value``."""
    made: list[Twist] = []
    for written in names:
        name, _, value = written.partition("=")
        fault = FAULTS.get(name)
        if fault is None:
            raise ValueError(f"unknown fault {name!r}")
        made.append(fault.make(value or fault.value or ""))
    return tuple(made)
