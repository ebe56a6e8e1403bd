"""Reads what a peer declared: any JSON comes in, a frozen value goes out, and nothing is raised.

Rules of the room:

1. Presence decides, never truth: ``{}`` declares, a missing member does not.
2. What is in force is what was declared and what the revision in force defines for that side.
3. A member of the wrong type counts as absent, and so does everything inside it.
4. Members that no revision defines are kept in ``unknown`` and have no effect: capabilities are an open set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from troth.capabilities.model import (
    Capabilities,
    ClientCapabilities,
    Declared,
    Presence,
    Problem,
    ProblemKind,
    ServerCapabilities,
)
from troth.capabilities.paths import elsewhere, fields, is_extension_key, is_open, shown, spell
from troth.capabilities.values import copied, described, is_object, json_type, nests
from troth.register.load import register
from troth.register.model import Kind, Side

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.capabilities.paths import Key
    from troth.register.model import Definition, Row

MAX_DEPTH = 64
"""Levels of nesting that a declared member may have; deeper ones count as malformed, so that no reader overflows."""

MAX_PROBLEMS = 100
"""Problems with members of the peer's own invention that are listed one by one; the rest are counted."""

IMPLIED = {"CAP-07": "CAP-08"}
"""Rows whose empty object implies another: ``elicitation: {}`` means form mode where modes exist. An object that is
not empty and names no mode supports none (gap G-06)."""

KEYED = "extensions"
"""The open map whose keys have a grammar (2026-07-28, ``_meta`` names with a mandatory prefix)."""

Spot = tuple[object, ...]
"""Where a member stands in a peer's object; a ``Key`` where every name is text."""

_C = TypeVar("_C", bound=Capabilities)


def read_server(raw: object, revision: str) -> ServerCapabilities:
    """Reads the ``capabilities`` of a server.

    Args:
        raw: The member as it came, any JSON.
        revision: The revision in force.

    Raises:
        ValueError: ``revision`` is none that the register knows. Nothing in ``raw`` raises.
    """
    return _Reader(Side.SERVER, revision).read(raw, ServerCapabilities)


def read_client(raw: object, revision: str) -> ClientCapabilities:
    """Reads the ``capabilities`` of a client; the arguments are those of ``read_server``.

    Raises:
        ValueError: ``revision`` is none that the register knows. Nothing in ``raw`` raises.
    """
    return _Reader(Side.CLIENT, revision).read(raw, ClientCapabilities)


class _Reader:
    """One walk over one raw object."""

    def __init__(self, side: Side, revision: str) -> None:
        self.side = side
        self.fields = fields(side, revision)
        self.revision = revision
        self.problems: list[Problem] = []
        self.unlisted = 0
        self.unknown: dict[str, object] = {}
        self.declared: dict[str, Declared] = {}
        self.in_force: set[Key] = set()

    def read(self, raw: object, made: type[_C]) -> _C:
        effective: dict[str, object] = {}
        if is_object(raw):
            effective = self.members(self.shallow(raw), (), closed=True)
        else:
            message = f"capabilities are {described(raw)} where an object belongs: nothing is declared"
            self.problem(ProblemKind.MALFORMED, (), None, message, raw)
        if self.unlisted:
            message = f"{self.unlisted} more members of the peer's own invention have problems; they are not listed"
            self.problems.append(_problem(ProblemKind.UNKNOWN, (), None, message, raw))
        return made(
            raw=raw,
            revision=self.revision,
            effective=effective,
            problems=tuple(self.problems),
            unknown=self.unknown,
            declared_rows=self.declared,
            in_force=frozenset(self.in_force),
        )

    def shallow(self, raw: Mapping[object, object]) -> dict[object, object]:
        """A copy of ``raw`` without members that nest too deep to be handled."""
        safe: dict[object, object] = {}
        for name, value in raw.items():
            if nests(value, MAX_DEPTH):
                row = self.fields.get(_key(name), (None,))[0]
                message = f"{shown(spell([name]))} nests deeper than {MAX_DEPTH} levels"
                self.malformed((name,), row, message, value)
            else:
                safe[name] = copied(value)
        return safe

    def members(self, raw: Mapping[object, object], key: Spot, *, closed: bool) -> dict[str, object]:
        """The members of an object that are in force; ``closed`` where strangers have no place in it."""
        kept: dict[str, object] = {}
        for name, value in raw.items():
            spot = (*key, name)
            known = self.fields.get(_key(*spot))
            if known is not None:
                self.field(kept, spot, *known, value)
            elif (row := elsewhere(self.side, _key(*spot))) is not None:
                self.leaked(spot, row, value)
            elif closed:
                self.unknown[spell(spot)] = value
                message = f"{shown(spell(spot))} is defined by no revision; it is kept and has no effect"
                self.problem(ProblemKind.UNKNOWN, spot, None, message, value)
            else:
                kept[str(name)] = value
        return kept

    def field(self, kept: dict[str, object], key: Spot, row: Row, definition: Definition, value: object) -> None:
        """Takes a member that the revision defines."""
        name = str(key[-1])
        if definition.kind is Kind.BOOLEAN:
            if not isinstance(value, bool):
                self.malformed(key, row, f"{row.path} is {described(value)} where a boolean belongs", value)
                return
            kept[name] = value
            self.declared[row.id] = Declared(Presence.PRESENT if value else Presence.ABSENT, value)
            if value:
                self.in_force.add(_key(*key))
            return
        if not is_object(value):
            self.malformed(key, row, f"{row.path} is {described(value)} where an object belongs", value)
            return
        self.declared[row.id] = Declared(Presence.PRESENT, value)
        if definition.kind is Kind.MAP:
            kept[name] = self.entries(value, key, row)
        else:
            inner = self.members(value, key, closed=not is_open(definition))
            if not self.modes(value, row):
                return
            kept[name] = inner
        self.in_force.add(_key(*key))

    def modes(self, raw: Mapping[object, object], row: Row) -> bool:
        """Settles what an empty object implies; False if the object names no mode and so promises nothing."""
        implied = IMPLIED.get(row.id)
        modes = [key for key in self.fields if key[:-1] == row.key] if implied else []
        if implied is None or not modes:
            return True
        if not raw:
            self.declared[implied] = Declared(Presence.PRESENT, {})
            self.in_force.add(register().by_id[implied].key)
        return any(key in self.in_force for key in modes)

    def entries(self, raw: Mapping[object, object], key: Spot, row: Row) -> dict[str, object]:
        """The entries of an open map whose values are objects, and whose keys fit where the map has a grammar.

        Inside a value any JSON stands as it came (gap G-02), and so do settings that hosts put into open members, such
        as ``elicitation.form`` (gap G-07).
        """
        kept: dict[str, object] = {}
        for name, value in raw.items():
            spot = (*key, name)
            own = self.fields.get(_key(*spot), (row,))[0]
            if row.path == KEYED and not (isinstance(name, str) and is_extension_key(name)):
                message = f"{shown(spell(spot))} is no extension key (PREFIX/NAME, such as com.example/feature)"
                self.malformed(spot, own, message, value)
            elif not is_object(value):
                message = f"{shown(spell(spot))} is {described(value)} where an object belongs"
                self.malformed(spot, own, message, value)
            else:
                kept[str(name)] = value
                self.in_force.add(_key(*spot))
                if own is not row:
                    self.declared[own.id] = Declared(Presence.PRESENT, value)
        return kept

    def leaked(self, key: Spot, row: Row, value: object) -> None:
        """Reports a member that the register knows and that has no place here.

        Among them ``extensions`` in ``initialize``: hosts send it there, and it has no effect (gap G-10).
        """
        path = shown(spell(key))
        if row.side is not self.side:
            message = f"{path} is a {row.side} capability; in the declaration of a {self.side} it has no effect"
        else:
            homes = ", ".join(row.definitions)
            message = f"{path} is not defined in {self.revision}, only in {homes}; it has no effect"
            self.declared[row.id] = Declared(Presence.NOT_IN_REVISION, value)
        self.problem(ProblemKind.NOT_IN_REVISION, key, row, message, value)

    def malformed(self, key: Spot, row: Row | None, message: str, value: object) -> None:
        if row is not None and row.key == key:
            self.declared[row.id] = Declared(Presence.MALFORMED, value)
        message = f"{message}; it counts as absent"
        self.problem(ProblemKind.MALFORMED, key, row, message, value)

    def problem(self, kind: ProblemKind, key: Spot, row: Row | None, message: str, value: object) -> None:
        invented = row is None or row.key != key
        if invented and len(self.problems) >= MAX_PROBLEMS:
            self.unlisted += 1
        else:
            self.problems.append(_problem(kind, key, row, message, value))


def _problem(kind: ProblemKind, key: Spot, row: Row | None, message: str, value: object) -> Problem:
    return Problem(
        kind=kind, path=shown(spell(key)), row_id=row.id if row else None, message=message, value_type=json_type(value)
    )


def _key(*spot: object) -> Key:
    """A place as a key of the register; names that are no text match nothing there."""
    return cast("Key", spot)
