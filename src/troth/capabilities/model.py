"""The values that reading a declaration gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from troth.capabilities.paths import resolve, shown
from troth.register.load import register
from troth.register.model import Side

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.capabilities.paths import Key


class ProblemKind(StrEnum):
    """What is wrong with a declared member."""

    MALFORMED = "malformed"
    """Of the wrong JSON type, or an extension key that breaks the grammar."""
    NOT_IN_REVISION = "not-in-revision"
    """Defined, but by another revision or for the other side."""
    UNKNOWN = "unknown"
    """Defined by no revision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with a declaration.

    Attributes:
        path: Dotted path of the member, fit to print; empty for the whole object.
        row_id: The row of the register that it is about; None where there is none.
        message: What is wrong, what follows, and what to do, fit to print.
        value_type: JSON type of the offending value (``null``, ``boolean``, ``number``, ``string``, ``array``,
            ``object``).
    """

    kind: ProblemKind
    path: str
    row_id: str | None
    message: str
    value_type: str


class Presence(StrEnum):
    """How a row stands in a declaration."""

    PRESENT = "present"
    ABSENT = "absent"
    """Not declared, or ``false`` where a boolean belongs, or inside a member that has no effect."""
    MALFORMED = "malformed"
    NOT_IN_REVISION = "not-in-revision"


@dataclass(frozen=True, slots=True)
class Declared:
    """What was declared for one row.

    Attributes:
        state: How it stands.
        value: The member as it came; None where there is none. A form mode that is only implied has ``{}``.
    """

    state: Presence
    value: object = None

    PRESENT: ClassVar[Presence] = Presence.PRESENT
    ABSENT: ClassVar[Presence] = Presence.ABSENT
    MALFORMED: ClassVar[Presence] = Presence.MALFORMED
    NOT_IN_REVISION: ClassVar[Presence] = Presence.NOT_IN_REVISION


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What one peer declared, seen by the revision in force. Made by ``read_server`` and ``read_client``.

    Attributes:
        raw: The object as it came.
        revision: The revision in force: negotiated for a session (legacy), of this very request (modern).
        effective: What is declared and in force, a copy. A flag that was declared ``false`` stays in it as ``false``.
        problems: What is wrong with the declaration, in its order.
        unknown: Members that no revision defines, by dotted path.
        declared_rows: What was declared, by row id; see ``row``.
        in_force: Keys of everything that ``has`` affirms.
    """

    side: ClassVar[Side]

    raw: object
    revision: str
    effective: dict[str, object]
    problems: tuple[Problem, ...]
    unknown: Mapping[str, object]
    declared_rows: Mapping[str, Declared] = field(repr=False)
    in_force: frozenset[Key] = field(repr=False)

    def has(self, path: str) -> bool:
        """Whether the capability is declared and in force.

        Args:
            path: Any path of the register on this side, e.g. ``roots.listChanged`` or
                ``extensions["io.modelcontextprotocol/tasks"]`` (also with a dot); and any key of an open map.

        Raises:
            ValueError: No revision defines such a path; the message names the nearest one.
        """
        return resolve(path, self.side) in self.in_force

    def row(self, row_id: str) -> Declared:
        """What was declared for a row of the register.

        Raises:
            ValueError: There is no such row on this side.
        """
        row = register().by_id.get(row_id)
        if row is None or row.side is not self.side:
            raise ValueError(f"no {self.side} row of the register is called {shown(row_id)!r}")
        return self.declared_rows.get(row_id, Declared(Presence.ABSENT))


class ServerCapabilities(Capabilities):
    """What a server declared, in ``initialize`` (legacy) or ``server/discover`` (modern)."""

    side: ClassVar[Side] = Side.SERVER


class ClientCapabilities(Capabilities):
    """What a client declared, in ``initialize`` (legacy) or in the ``_meta`` of one request (modern).

    A modern client declares on every request, and nothing holds from one request to the next: read each by itself.
    """

    side: ClassVar[Side] = Side.CLIENT
