from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from troth.audit.baseline import Entry, apply_baseline, entries, read_baseline, to_text
from troth.audit.model import (
    AuditReport,
    Finding,
    Outcome,
    RevisionReport,
    RowResult,
    Severity,
    TargetReport,
    Verdict,
)
from troth.audit.options import UsageError

if TYPE_CHECKING:
    from pathlib import Path

BROKEN = RowResult(
    id="CAP-17", path="resources.subscribe", side="server", verdict=Verdict.BROKEN, severity=Severity.ERROR, message="m"
)
KEPT = RowResult(id="CAP-19", path="tools", side="server", verdict=Verdict.KEPT, severity=Severity.NONE, message="m")
JUNK = Finding(code="protocol.junk", severity=Severity.NOTE, message="now 12:00", rows=("CAP-20", "CAP-12"))


def report(
    rows: tuple[RowResult, ...] = (BROKEN, KEPT), findings: tuple[Finding, ...] = (JUNK,), **changes: Any
) -> AuditReport:
    part = RevisionReport(
        outcome=Outcome.CHECKED, negotiated="2025-11-25", era="legacy", declared={}, rows=rows, findings=findings
    )
    target = TargetReport(
        name="files", transport="stdio", address="files", server_info=None, outcome=Outcome.CHECKED,
        revisions={"2025-11-25": part}, started_at="2026-11-29T12:00:00Z", findings=(JUNK,),
    )  # fmt: skip
    target = msgspec.structs.replace(target, **changes)
    return AuditReport(troth="1", started_at="2026-11-29T12:00:00Z", command_line=(), targets=(target,))


ENTRIES = (
    Entry("files", "", "protocol.junk", "", ("CAP-12", "CAP-20")),
    Entry("files", "2025-11-25", "CAP-17", "broken"),
    Entry("files", "2025-11-25", "protocol.junk", "", ("CAP-12", "CAP-20")),
)


def test_a_baseline_holds_the_faults_sorted_and_without_volatile_text(tmp_path: Path) -> None:
    assert entries(report()) == ENTRIES
    text = to_text(report())
    assert json.loads(text) == {
        "troth": "baseline",
        "version": 1,
        "findings": [
            {"target": "files", "revision": "", "id": "protocol.junk", "rows": ["CAP-12", "CAP-20"]},
            {"target": "files", "revision": "2025-11-25", "id": "CAP-17", "verdict": "broken"},
            {"target": "files", "revision": "2025-11-25", "id": "protocol.junk", "rows": ["CAP-12", "CAP-20"]},
        ],
    }
    path = tmp_path / "baseline.json"
    path.write_text(text, "utf-8")
    assert read_baseline(str(path)) == frozenset(ENTRIES)


def test_an_empty_baseline_can_be_read_back(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(to_text(report(rows=(), findings=())), "utf-8")
    assert read_baseline(str(path)) == {ENTRIES[0]}
    path.write_text(to_text(msgspec.structs.replace(report(), targets=())), "utf-8")
    assert read_baseline(str(path)) == frozenset()


def test_exactly_what_is_in_the_baseline_is_suppressed_and_counted() -> None:
    applied = apply_baseline(report(), frozenset(ENTRIES[:2]))
    assert applied.suppressed == frozenset(ENTRIES[:2])
    assert (applied.report.suppressed, applied.report.stale) == (2, ())
    assert applied.report.targets == report().targets


@pytest.mark.parametrize(
    "entry",
    [
        Entry("files", "2025-11-25", "CAP-17", "partial"),
        Entry("files", "2025-11-25", "CAP-19", "broken"),
        Entry("files", "", "CAP-17", "broken"),
        Entry("gone", "2025-11-25", "CAP-17", "broken"),
        Entry("files", "2025-11-25", "protocol.junk", "", ("CAP-12",)),
    ],
)
def test_an_entry_that_nothing_matches_is_stale_and_named(entry: Entry) -> None:
    applied = apply_baseline(report(), frozenset({entry}))
    assert applied.suppressed == frozenset()
    assert applied.report.stale == (str(entry),)


def test_entries_of_what_was_not_asked_or_not_checked_are_left_alone() -> None:
    old = Entry("files", "2024-11-05", "CAP-17", "broken")
    assert apply_baseline(report(), frozenset({old})).report.stale == ()
    dead = report(outcome=Outcome.DID_NOT_START, revisions={}, findings=())
    assert apply_baseline(dead, frozenset(ENTRIES)).report.stale == ()
    part = msgspec.structs.replace(report().targets[0].revisions["2025-11-25"], outcome=Outcome.UNREACHABLE, rows=())
    assert apply_baseline(report(revisions={"2025-11-25": part}), frozenset({ENTRIES[1]})).report.stale == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n"troth": oops}', ":2: the baseline is not JSON"),
        ("[" * 100_000, ":1: the baseline is not usable JSON"),
        ("[]", ":1: not a baseline; write one with --write-baseline"),
        ('{"troth": "baseline", "version": 1, "findings": {}}', ":1: not a baseline"),
        (
            '{"troth": "baseline", "version": 2, "findings": []}',
            ":1: a baseline of version 2; this Troth reads version 1",
        ),
        (
            '{"troth": "baseline", "version": 1, "findings": [\n{"target": "a", "id": "b"},\n\n 5]}',
            ":4: finding 2 must",
        ),
        ('{"troth": "baseline", "version": 1, "findings": [\n\n{"target": "a"}]}', ":3: finding 1 must have"),
        ('{"troth": "baseline", "version": 1, "findings": [\n{"target": "a", "id": "b", "why": ""}]}', ":2: finding 1"),
        ('{"troth": "baseline", "version": 1, "findings": [{"target": "a", "id": "b", "rows": [1]}]}', ":1: finding 1"),
        ('{"troth": "baseline", "version": 1, "findings": [{"target": "a", "id": 1}]}', ":1: finding 1"),
    ],
)
def test_a_broken_baseline_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError) as caught:
        read_baseline(str(path))
    assert f"{path}{message}" in str(caught.value)


def test_a_baseline_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_baseline(str(tmp_path / "none"))
    (tmp_path / "latin").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="is not UTF-8"):
        read_baseline(str(tmp_path / "latin"))
