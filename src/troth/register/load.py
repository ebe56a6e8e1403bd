"""Reads the register's data files and answers queries about them."""

from __future__ import annotations

import json
from functools import cache, cached_property
from pkgutil import get_data
from typing import TYPE_CHECKING, Any, cast

from troth.register.model import (
    Certainty,
    Channel,
    Definition,
    Deprecation,
    Era,
    ErrorCode,
    Gap,
    Gate,
    HostAnswer,
    HostProfile,
    HostUse,
    Kind,
    MethodUse,
    Norm,
    Quirk,
    Related,
    Row,
    Side,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

FILES = ("capabilities", "errors", "gaps", "hosts", "methods", "norms")
"""The data files, each ``data/<name>.json``."""


class Register:
    """The register as values, with the queries that the rest of Troth needs.

    Args:
        data: The parsed data files by name (see ``FILES``). ``register()`` passes the package's own.

    Raises:
        KeyError, ValueError: The data is not a register (a missing member, an unknown kind).
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        methods = data["methods"]
        self.eras: Mapping[Era, tuple[str, ...]] = {Era(k): tuple(v) for k, v in methods["eras"].items()}
        self.revisions: tuple[str, ...] = (*self.eras[Era.LEGACY], *self.eras[Era.MODERN])
        """Oldest first."""
        self.rows: tuple[Row, ...] = tuple(_row(raw) for raw in data["capabilities"])
        self._data = data

    @cached_property
    def by_id(self) -> Mapping[str, Row]:
        """Rows by their unique id."""
        return {row.id: row for row in self.rows}

    @cached_property
    def norms(self) -> Mapping[str, Norm]:
        """Normative sentences by id (``N-...@revision``)."""
        return {raw["id"]: Norm(**_tuples(raw)) for raw in self._data["norms"]}

    @cached_property
    def errors(self) -> tuple[ErrorCode, ...]:
        """Error codes that capability negotiation uses."""
        return tuple(ErrorCode(**_tuples(raw)) for raw in self._data["errors"])

    @cached_property
    def gaps(self) -> Mapping[str, Gap]:
        """Open places of the specification by id, with our choices."""
        return {raw["id"]: Gap(**_tuples(raw)) for raw in self._data["gaps"]}

    @cached_property
    def related(self) -> tuple[Related, ...]:
        """Switches outside the capability objects."""
        return tuple(Related(**raw) for raw in self._data["methods"]["related"])

    @cached_property
    def hosts(self) -> Mapping[str, HostProfile]:
        """Host profiles by id."""
        return {raw["id"]: _host(raw) for raw in self._data["hosts"]}

    @cached_property
    def methods(self) -> Mapping[tuple[str, str], MethodUse]:
        """Every method of every revision, keyed (method, revision); a missing key means: not in this revision."""
        roles: dict[tuple[str, str], list[str]] = {}
        for revision, unions in self._data["methods"]["methods"].items():
            for role, names in unions.items():
                for name in names:
                    roles.setdefault((name, revision), []).append(role)
        gated: dict[tuple[str, str], list[str]] = {}
        for row in self.rows:
            for revision, definition in row.definitions.items():
                for gate in (*definition.gates, *definition.notifications):
                    gated.setdefault((gate.method, revision), []).append(row.id)
        keys = dict.fromkeys((*roles, *gated))
        return {
            key: MethodUse(
                method=key[0], revision=key[1], roles=tuple(roles.get(key, ())), rows=tuple(gated.get(key, ()))
            )
            for key in keys
        }

    def era(self, revision: str) -> Era:
        """The era of ``revision``.

        Raises:
            KeyError: No such revision.
        """
        for era, revisions in self.eras.items():
            if revision in revisions:
                return era
        raise KeyError(revision)

    def newest(self, era: Era) -> str:
        """The newest revision of ``era``."""
        return self.eras[era][-1]

    def at(self, side: Side, revision: str) -> tuple[Row, ...]:
        """The rows that ``revision`` defines for ``side``, in the register's order."""
        return tuple(row for row in self.rows if row.side is side and revision in row.definitions)

    def path(self, path: str, side: Side | None = None) -> tuple[Row, ...]:
        """The rows with this dotted path, on one side or both."""
        return tuple(row for row in self.rows if row.path == path and side in (None, row.side))

    def family(self, family: str) -> tuple[Row, ...]:
        """All rows of a capability number, e.g. ``CAP-10``."""
        return tuple(row for row in self.rows if row.family == family)

    def method(self, method: str, revision: str) -> MethodUse | None:
        """A method in a revision; None where the revision has no such method."""
        return self.methods.get((method, revision))

    def gating(self, method: str, revision: str) -> tuple[Row, ...]:
        """The rows that gate ``method`` (a request or a notification) at ``revision``."""
        use = self.method(method, revision)
        return tuple(self.by_id[row] for row in use.rows) if use else ()

    def norms_of(self, row: Row, revision: str) -> tuple[Norm, ...]:
        """The normative sentences of ``revision`` that name ``row``."""
        return tuple(norm for norm in (self.norms[norm] for norm in row.norms) if norm.revision == revision)

    def norms_at(self, revision: str) -> tuple[Norm, ...]:
        """All normative sentences of ``revision``."""
        return tuple(norm for norm in self.norms.values() if norm.revision == revision)

    def errors_at(self, revision: str) -> tuple[ErrorCode, ...]:
        """The error codes that ``revision`` uses."""
        return tuple(error for error in self.errors if revision in error.revisions)

    def error(self, code: int | str) -> ErrorCode | None:
        """An error code, given as a number or as its text."""
        return next((error for error in self.errors if str(error.code) == str(code)), None)


@cache
def register() -> Register:
    """The package's own register, read once per process."""
    return Register({name: json.loads(get_data("troth.register", f"data/{name}.json") or b"") for name in FILES})


def _tuples(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(cast("list[Any]", value)) if isinstance(value, list) else value for key, value in raw.items()}


def _gates(raw: Mapping[str, list[str]]) -> tuple[Gate, ...]:
    return tuple(Gate(method=method, directions=tuple(directions)) for method, directions in raw.items())


def _definition(raw: Mapping[str, Any]) -> Definition:
    return Definition(
        kind=Kind(raw["kind"]),
        shape=raw["shape"],
        meaning=raw["meaning"],
        gates=_gates(raw.get("gates", {})),
        params=tuple(raw.get("params", ())),
        notifications=_gates(raw.get("notifications", {})),
        channel=Channel(raw["channel"]) if "channel" in raw else None,
        delivery=raw.get("delivery", ""),
        deprecated=Deprecation(**raw["deprecated"]) if "deprecated" in raw else None,
        source=raw.get("source"),
    )


def _row(raw: Mapping[str, Any]) -> Row:
    return Row(
        id=raw["id"],
        family=raw.get("family"),
        side=Side(raw["side"]),
        path=raw["path"],
        title=raw["title"],
        when_absent=raw["when_absent"],
        breaks=raw["breaks"],
        definitions={revision: _definition(definition) for revision, definition in raw["revisions"].items()},
        extension=raw.get("extension"),
        norms=tuple(raw.get("norms", ())),
        gaps=tuple(raw.get("gaps", ())),
        sources=tuple(raw.get("sources", ())),
    )


def _host(raw: Mapping[str, Any]) -> HostProfile:
    return HostProfile(
        id=raw["id"],
        product=raw["product"],
        test=raw.get("test", False),
        declares={Era(era): capabilities for era, capabilities in raw["declares"].items()},
        client_info=raw["clientInfo"],
        sdk=raw.get("sdk", ""),
        offers=raw["offers"],
        note=raw.get("note", ""),
        answers=tuple(HostAnswer(**_certain(answer)) for answer in raw["answers"]),
        calls=_uses(raw["calls"]),
        never_calls=tuple(raw["never_calls"]),
        honours=_uses(raw["honours"]),
        ignores=_uses(raw["ignores"]),
        transports=tuple(raw["transports"]),
        transports_note=raw.get("transports_note", ""),
        timeouts=raw["timeouts"],
        quirks=tuple(Quirk(**_tuples(_certain(quirk))) for quirk in raw["quirks"]),
        hints=raw["hints"],
    )


def _uses(raw: list[dict[str, Any]]) -> tuple[HostUse, ...]:
    return tuple(HostUse(**_certain(use)) for use in raw)


def _certain(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {**raw, "certainty": Certainty(raw["certainty"])}
