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
    from expectations import Rows

    from troth.audit.model import RevisionReport, TargetReport

HERE = Path(__file__).parent
CAPTURES = HERE.parents[2] / "shared" / "captures" / "servers"
NAMES = sorted(path.name for path in CAPTURES.glob("*.json"))

pytestmark = [
    pytest.mark.skipif(not NAMES, reason="the captures are not beside this repository"),
    pytest.mark.timeout(600),
]

DIFFERENCES: dict[tuple[str, str], tuple[str, str]] = {
    ("fm4tasks.stdio.2026-07-28.none", "CAP-26-server"): (
        "partial",
        "the server refused a client that had not declared the extension; replayed to one that has, it looks strict",
    ),
}
"""(start of the capture's name, row) -> (verdict that is right all the same, why)."""


def revision_of(name: str) -> str:
    return name.removesuffix(".json").rsplit(".", 2)[1]


@cache
def capture(name: str) -> dict:
    return json.loads((CAPTURES / name).read_text("utf-8"))


def command(name: str) -> list[str]:
    """A replay that also knows the capture without client capabilities, where there is one."""
    names = dict.fromkeys((name, bare(name))) if bare(name) in NAMES else (name,)
    return [str(HERE / "replay.py"), *(str(CAPTURES / one) for one in names)]


def bare(name: str) -> str:
    """The capture of the same server for a client without capabilities."""
    return name.replace(".full.json", ".none.json")


PAIRED = [name for name in NAMES if bare(name) != name and bare(name) in NAMES]


@cache
def called(revision: str) -> dict[str, TargetReport]:
    """The captures with and without client capabilities, audited by one who calls every tool."""
    names = [name for name in PAIRED if revision_of(name) == revision]
    return run([player(name, *command(name)) for name in names], [revision], active=True)


@cache
def reports(revision: str) -> dict[str, TargetReport]:
    """Every capture of a revision, audited in that revision."""
    names = [name for name in NAMES if revision_of(name) == revision]
    return run([player(name, *command(name)) for name in names], [revision])


def agree(name: str, report: RevisionReport, right: Rows | None) -> None:
    """Fails, with the evidence, where a report is not what is right."""
    if right is None:
        assert report.outcome is Outcome.NOT_SERVED
        return
    assert (report.outcome, report.negotiated) == (Outcome.CHECKED, capture(name)["negotiated"]), report.reason
    got = verdicts(report)
    for (start, row), (verdict, _) in DIFFERENCES.items():
        if name.startswith(start) and row in right:
            right[row] = right[row] | {verdict}
    wrong = {row: got.get(row, ABSENT) for row, choice in right.items() if got.get(row, ABSENT) not in choice}
    words = [f"{row} {verdict}, not {'/'.join(sorted(right[row]))}" for row, verdict in wrong.items()]
    assert not wrong, "\n".join([*words, told(report, wrong)])


@pytest.mark.parametrize("name", NAMES)
def test_the_audit_of_a_captured_server_agrees_with_the_rules(name: str) -> None:
    revision = revision_of(name)
    agree(name, reports(revision)[name].revisions[revision], expected(capture(name)))


@pytest.mark.parametrize("name", PAIRED)
def test_the_audit_that_calls_every_tool_agrees_with_the_rules(name: str) -> None:
    revision = revision_of(name)
    right = expected(capture(name), called=True, bare=capture(bare(name)))
    agree(name, called(revision)[name].revisions[revision], right)


def test_every_allowed_difference_is_one_of_a_capture_that_exists() -> None:
    starts = {start for start, _row in DIFFERENCES}
    assert {start for start in starts if not any(name.startswith(start) for name in NAMES)} == set()
