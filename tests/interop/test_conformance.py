"""The official conformance suite: our everything servers by themselves, and through the gateway.

`conformance.py` has the cells and what is excepted; ``python tests/interop/conformance.py`` prints the table.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import conformance
import pytest
from ahead import need
from conformance import EXCEPT, KINDS, LEGACY, MODERN, SETS, Cell

DIRECT = [(kind, revision) for kind, one in KINDS.items() if one.over == "http" for revision in one.sets]
THROUGH = [(kind, revision) for kind in KINDS for revision in SETS]
CLIENTS = [(f"mock<-{host}", revision) for revision in SETS for host in SETS]
CHECKS = {LEGACY: 42, MODERN: 86}

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


@pytest.fixture(autouse=True)
def _suite() -> None:
    need(conformance.SUITE, conformance.node(), Path(conformance.MCP1))


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("conformance")


def by_name(cells: list[Cell]) -> dict[tuple[str, str], Cell]:
    return {(cell.kind, cell.revision): cell for cell in cells}


@cache
def direct(base: Path) -> dict[tuple[str, str], Cell]:
    return by_name(conformance.run_all(list(KINDS), False, base / "direct"))


@cache
def through(base: Path) -> dict[tuple[str, str], Cell]:
    return by_name(conformance.run_all(list(KINDS), True, base / "through"))


@cache
def clients(base: Path) -> dict[tuple[str, str], Cell]:
    return by_name(conformance.run_clients(base / "clients"))


@pytest.mark.parametrize(("kind", "revision"), DIRECT, ids=lambda value: value)
def test_an_everything_server_scores_full_marks_by_itself(base: Path, kind: str, revision: str) -> None:
    cell = direct(base)[kind, revision]
    assert [score for score in cell.required() if score.state != "PASS"] == []
    assert sum(score.ok for score in cell.required()) == CHECKS[revision]


@pytest.mark.parametrize(("kind", "revision"), THROUGH, ids=lambda value: value)
def test_what_passes_directly_passes_through_the_gateway(base: Path, kind: str, revision: str) -> None:
    counts = conformance.direct_counts(list(direct(base).values()))
    assert conformance.differences(through(base)[kind, revision], counts[revision]) == []


@pytest.mark.parametrize("way", ["direct", "through"])
def test_a_server_with_tasks_passes_by_itself_and_through_the_gateway(base: Path, way: str) -> None:
    scores = conformance.run_tasks(way == "through", base / way)
    assert len(scores) == 10
    failing = {name: score.bad for name, score in scores.items() if score.state != "PASS"}
    assert set(failing) == set(conformance.NOT_TASKS), failing


@pytest.mark.parametrize(("kind", "revision"), CLIENTS, ids=lambda value: value)
def test_the_upstream_side_passes_as_a_client(base: Path, kind: str, revision: str) -> None:
    assert conformance.differences(clients(base)[kind, revision], {}) == []


def test_nothing_is_excepted_that_passes_everywhere(base: Path) -> None:
    failing = {
        score.name
        for cell in [*through(base).values(), *clients(base).values()]
        for score in cell.required()
        if score.state != "PASS"
    }
    assert set(EXCEPT) <= failing
