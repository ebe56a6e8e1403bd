"""The faults: each breaks one promise, names the register row it belongs to and what an audit must find."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from troth.testing.faults import asking, changes, core_tasks, extensions, families, features, protocol, transport

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from troth.testing.model import Fault, Twist

FAULTS: Mapping[str, Fault] = {
    fault.name: fault
    for module in (families, changes, features, core_tasks, extensions, asking, protocol, transport)
    for fault in module.FAULTS
}
"""Every fault by name."""


def twists(names: Iterable[str]) -> tuple[Twist, ...]:
    """The twists of faults, each written ``name`` or ``name=value``.

    Raises:
        ValueError: No such fault, or a value for one that takes none.
    """
    made: list[Twist] = []
    for written in names:
        name, separator, value = written.partition("=")
        fault = FAULTS.get(name)
        if fault is None:
            near = get_close_matches(name, FAULTS, 1)
            raise ValueError(f"unknown fault {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        if separator and fault.value is None:
            raise ValueError(f"fault {name!r} takes no value")
        made.append(replace(fault.make(value or fault.value or ""), revisions=fault.revisions))
    return tuple(made)
