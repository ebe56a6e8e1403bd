"""Ways to falsify a row of the register, for tests that must notice each of them."""

from __future__ import annotations

import json
from copy import deepcopy
from pkgutil import get_data
from typing import TYPE_CHECKING, Any

from troth.register.load import FILES, Register

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RawRow = dict[str, Any]


def raw() -> dict[str, Any]:
    """The package's own data, unread."""
    return {name: json.loads(get_data("troth.register", f"data/{name}.json") or b"") for name in FILES}


def with_row(data: dict[str, Any], row: str, change: Callable[[RawRow], None]) -> Register:
    """The register after ``change`` was made to the row with id ``row``."""
    changed = deepcopy(data["capabilities"])
    change(next(candidate for candidate in changed if candidate["id"] == row))
    return Register({**data, "capabilities": changed})


def of_structure(data: dict[str, Any], row: RawRow) -> Iterator[tuple[str, Callable[[RawRow], None]]]:
    """Changes that put a row at odds with the schemas."""
    yield "path", _set("path", row["path"] + "x")
    yield "side", _set("side", "server" if row["side"] == "client" else "client")
    for revision in data["methods"]["methods"]:
        definition = row["revisions"].get(revision)
        if definition is None:
            first = next(iter(row["revisions"].values()))
            yield f"define at {revision}", _define(revision, {**first, "gates": {}, "notifications": {}})
            continue
        yield f"drop {revision}", _drop(revision)
        yield (
            f"kind at {revision}",
            _definition(revision, "kind", "object" if definition["kind"] != "object" else "map"),
        )
        yield f"gate at {revision}", _definition(revision, "gates", {"no/such": ["client->server request"]})


def of_detail(row: RawRow) -> Iterator[tuple[str, Callable[[RawRow], None]]]:
    """Changes to everything else that a row says in facts."""
    for revision, definition in row["revisions"].items():
        for member in ("gates", "notifications", "params"):
            for index, name in enumerate(definition.get(member, ())):
                rest = [other for other in definition[member] if other != name]
                kept = rest if member == "params" else {other: definition[member][other] for other in rest}
                yield f"{member} {index} at {revision}", _definition(revision, member, kept)
        yield f"channel at {revision}", _definition(revision, "channel", _other_channel(definition))
        yield f"shape at {revision}", _definition(revision, "shape", "null")
        yield f"source at {revision}", _definition(revision, "source", "nowhere:1")
        told = {} if "deprecated" in definition else {"since": revision}
        yield f"deprecated at {revision}", _deprecate(revision, told)
    yield "norms", _set("norms", [*row.get("norms", ()), "N-NONE@2026-07-28"])
    yield "gaps", _set("gaps", [*row.get("gaps", ()), "G-99"])
    yield "family", _set("family", "CAP-99")


def _other_channel(definition: dict[str, Any]) -> str:
    return "request" if definition.get("channel") != "request" else "listen"


def _set(member: str, value: object) -> Callable[[RawRow], None]:
    return lambda row: row.__setitem__(member, value)


def _define(revision: str, definition: dict[str, Any]) -> Callable[[RawRow], None]:
    return lambda row: row["revisions"].__setitem__(revision, definition)


def _drop(revision: str) -> Callable[[RawRow], None]:
    return lambda row: row["revisions"].__delitem__(revision)


def _definition(revision: str, member: str, value: object) -> Callable[[RawRow], None]:
    return lambda row: row["revisions"][revision].__setitem__(member, value)


def _deprecate(revision: str, told: dict[str, Any]) -> Callable[[RawRow], None]:
    def change(row: RawRow) -> None:
        row["revisions"][revision].pop("deprecated", None)
        if told:
            row["revisions"][revision]["deprecated"] = told

    return change
