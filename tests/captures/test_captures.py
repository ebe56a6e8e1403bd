"""The audit of every captured server says what the rules demand of what was captured."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from audits import player, run, told, verdicts
from expectations import ABSENT, expected

from troth.audit.model import Outcome

if TYPE_CHECKING:
    from troth.audit.model import TargetReport

HERE = Path(__file__).parent
CAPTURES = HERE.parents[2] / "shared" / "captures" / "servers"
NAMES = sorted(path.name for path in CAPTURES.glob("*.json"))

pytestmark = [
    pytest.mark.skipif(not NAMES, reason="the captures are not beside this repository"),
    pytest.mark.timeout(600),
]

DIFFERENCES: dict[tuple[str, str], tuple[str, str]] = {}
"""(start of the capture's name, row) -> (verdict that is right all the same, why)."""


def revision_of(name: str) -> str:
    return name.removesuffix(".json").rsplit(".", 2)[1]


@cache
def capture(name: str) -> dict:
    return json.loads((CAPTURES / name).read_text("utf-8"))


def command(name: str) -> list[str]:
    """A replay that also knows the capture without client capabilities, where there is one."""
    bare = name.replace(".full.json", ".none.json")
    names = dict.fromkeys((name, bare)) if (CAPTURES / bare).is_file() else (name,)
    return [str(HERE / "replay.py"), *(str(CAPTURES / one) for one in names)]


@cache
def reports(revision: str) -> dict[str, TargetReport]:
    """Every capture of a revision, audited in that revision."""
    names = [name for name in NAMES if revision_of(name) == revision]
    return run([player(name, *command(name)) for name in names], [revision])


@pytest.mark.parametrize("name", NAMES)
def test_the_audit_of_a_captured_server_agrees_with_the_rules(name: str) -> None:
    revision = revision_of(name)
    right = expected(capture(name))
    report = reports(revision)[name].revisions[revision]
    if right is None:
        assert report.outcome is Outcome.NOT_SERVED
        return
    assert (report.outcome, report.negotiated) == (Outcome.CHECKED, capture(name)["negotiated"]), report.reason
    got = verdicts(report)
    for (start, row), (verdict, _) in DIFFERENCES.items():
        if name.startswith(start) and row in right:
            right[row] = right[row] | {verdict}
    wrong = {row: got.get(row, ABSENT) for row, choice in right.items() if got.get(row, ABSENT) not in choice}
    assert wrong == {}, "\n".join(
        [*(f"{row}: right is {'/'.join(sorted(right[row]))}" for row in wrong), told(report, wrong)]
    )


def test_every_allowed_difference_is_one_of_a_capture_that_exists() -> None:
    starts = {start for start, _ in DIFFERENCES}
    assert {start for start in starts if not any(name.startswith(start) for name in NAMES)} == set()
