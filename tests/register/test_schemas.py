"""The register says what the official schemas say, and no row can change unnoticed."""

from __future__ import annotations

from typing import Any

import pytest

from register.mutations import of_detail, of_structure, raw, with_row
from register.official import ABSENT, disagreements, schemas
from register.pin import FILE, pinned
from troth.register import Register, register

ROWS = [row.id for row in register().rows]


@pytest.fixture(scope="module")
def official() -> dict[str, dict[str, Any]]:
    return schemas(register())


@ABSENT
def test_register_and_schemas_agree_in_both_directions(official: dict[str, dict[str, Any]]) -> None:
    assert disagreements(register(), official) == []


FIVE = {
    "a field that 2026-07-28 took away": ("CAP-03", lambda row: row["revisions"].update({"2026-07-28": _flag()})),
    "a field that a revision lost": ("CAP-07", lambda row: row["revisions"].pop("2025-06-18")),
    "a misspelt path": ("CAP-13", lambda row: row.update(path="completion")),
    "an object where a flag belongs": ("CAP-17", lambda row: row["revisions"]["2025-11-25"].update(kind="object")),
    "a gate that 2026-07-28 removed": (
        "CAP-12",
        lambda row: row["revisions"]["2026-07-28"].update(gates={"logging/setLevel": ["client->server request"]}),
    ),
}


def _flag() -> dict[str, Any]:
    return {"kind": "boolean", "shape": "boolean", "meaning": "It is back."}


@ABSENT
@pytest.mark.parametrize("name", FIVE)
def test_the_schemas_catch(name: str, official: dict[str, dict[str, Any]]) -> None:
    row, change = FIVE[name]
    assert disagreements(with_row(raw(), row, change), official)


@ABSENT
@pytest.mark.parametrize("row", [row.id for row in register().rows if not row.extension])
def test_the_schemas_catch_every_structural_change_of(row: str, official: dict[str, dict[str, Any]]) -> None:
    data = raw()
    original = next(candidate for candidate in data["capabilities"] if candidate["id"] == row)
    missed = [
        name
        for name, change in of_structure(data, original)
        if not disagreements(with_row(data, row, change), official)
    ]
    assert missed == []


@ABSENT
def test_the_schemas_catch_a_method_too_many_and_one_too_few(official: dict[str, dict[str, Any]]) -> None:
    for revision, unions in raw()["methods"]["methods"].items():
        for role, names in unions.items():
            for changed in ([*names, "no/such"], names[1:]):
                if changed == names:
                    continue
                data = raw()
                data["methods"]["methods"][revision][role] = changed
                assert disagreements(Register(data), official), (revision, role, changed)


def test_the_facts_are_as_pinned() -> None:
    assert pinned(register()).splitlines() == FILE.read_text("utf-8").splitlines()


@pytest.mark.parametrize("row", ROWS)
def test_the_pinned_facts_catch_every_change_of(row: str) -> None:
    data = raw()
    original = next(candidate for candidate in data["capabilities"] if candidate["id"] == row)
    known = FILE.read_text("utf-8")
    changes = [*of_structure(data, original), *of_detail(original)]
    assert [name for name, change in changes if pinned(with_row(data, row, change)) == known] == []
