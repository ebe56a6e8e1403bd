"""Every case gets the verdict that it must get: public fault reports, and further faults of the same kinds."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from audits import player, run, told, verdicts
from more import CASES

from troth.audit.model import Outcome

if TYPE_CHECKING:
    from troth.audit.model import RevisionReport, TargetReport

HERE = Path(__file__).parent
SHARED = HERE.parents[2] / "shared" / "cases"
MODERN = "2026-07-28"
PUBLIC: list[dict[str, Any]] = (
    [case for case in json.loads((SHARED / "cases.json").read_text("utf-8")) if case["side"] == "server"]
    if SHARED.is_dir()
    else []
)
FINDINGS_OF_TEXTS = {
    "modern, discover result malformed": "era.discover-malformed",
    "finding: differs between eras": "declaration.eras-differ",
}
"""What the public cases say in words, and the finding that says it."""

pytestmark = pytest.mark.timeout(600)


def two_faced(case: dict[str, Any]) -> bool:
    return "modern_declare" in case["behave"]


def revisions_of(case: dict[str, Any]) -> tuple[str, ...]:
    """The revision of the case; where the era is the question, it is decided by asking for the modern one too."""
    asks = two_faced(case) or "era" in case["expect"]
    return tuple(dict.fromkeys((case["rev"], MODERN) if asks else (case["rev"],)))


def command(case: dict[str, Any]) -> tuple[str, ...]:
    """The public cases are played by their own player, except what it does not know."""
    if "side" in case and not two_faced(case):
        return (str(SHARED / "play.py"), "server", case["id"])
    return (str(HERE / "player.py"), json.dumps(case))


@cache
def reports(public: bool) -> dict[str, TargetReport]:
    """The reports of all cases, by id: those of one revision are audited together."""
    found: dict[str, TargetReport] = {}
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for case in PUBLIC if public else CASES:
        groups.setdefault(revisions_of(case), []).append(case)
    for revisions, cases in groups.items():
        found |= run([player(case["id"], *command(case)) for case in cases], revisions)
    return found


def codes(report: TargetReport, revision: RevisionReport) -> set[str]:
    return {finding.code for finding in (*report.findings, *revision.findings)}


def row_id(row: str, case: dict[str, Any]) -> str:
    """The public cases name a capability that both sides have by its number: they speak of the server."""
    return "CAP-01-server" if row == "CAP-01" else row


def failures(case: dict[str, Any], report: TargetReport) -> list[str]:
    """Where a report is not what the case expects."""
    if "outcome" in case["expect"]:
        said = (report.outcome.value in case["expect"]["outcome"].split("|"), case["expect"].get("reason", ""))
        return [] if said[0] and said[1] in report.reason else [f"{report.outcome.value}: {report.reason}"]
    revision = report.revisions[case["rev"]]
    if report.outcome is not Outcome.CHECKED:
        return [f"{report.outcome.value}: {report.reason}"]
    got, found, wrong = verdicts(revision), codes(report, revision), []
    for key, right in case["expect"].items():
        if key == "era":
            era = right.replace(",", " ").split()[0]
            modern = report.revisions[MODERN].outcome
            wrong += [] if revision.era == era else [f"era {revision.era}, not {right}"]
            wrong += [] if (modern is Outcome.CHECKED) == (era == "modern") else [f"the modern revision is {modern}"]
        elif key == "negotiated":
            wrong += [] if revision.negotiated == right else [f"negotiated {revision.negotiated}, not {right}"]
        elif key == "findings":
            wrong += [f"no finding {one} in {found}" for one in right if not found & set(one.split("|"))]
        elif key == "clean":
            bad = {finding.code for finding in (*report.findings, *revision.findings) if finding.severity != "note"}
            rows = {row.id: row.verdict.value for row in revision.rows if row.severity in ("warning", "error")}
            wrong += [f"held against it: {bad} {rows}"] if bad or rows else []
        elif right not in FINDINGS_OF_TEXTS:
            row = row_id(key, case)
            verdict = got.get(row, "absent")
            wrong += [] if verdict in right.split("|") else [f"{row} {verdict}, not {right}\n{told(revision, [row])}"]
        code = FINDINGS_OF_TEXTS.get(right) if isinstance(right, str) else None
        wrong += [f"no finding {code} in {found}"] if code and code not in found else []
    return wrong


@pytest.mark.skipif(not PUBLIC, reason="the public cases are not beside this repository")
@pytest.mark.parametrize("case", PUBLIC, ids=lambda case: case["id"])
def test_a_public_fault_report_gets_its_verdict(case: dict[str, Any]) -> None:
    wrong = failures(case, reports(True)[case["id"]])
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_fault_of_the_same_kinds_gets_its_verdict(case: dict[str, Any]) -> None:
    wrong = failures(case, reports(False)[case["id"]])
    assert not wrong, "\n".join(wrong)
