"""Whole reports against files. After a wanted change: ``TROTH_WRITE_GOLDENS=1 pytest tests/audit/report``."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
import sample

from troth.audit.baseline import apply_baseline, entries
from troth.audit.report import FORMATS, render
from troth.audit.targets import Place

GOLDENS = Path(__file__).parent / "goldens"
SUFFIXES = {
    "text": "txt",
    "json": "json",
    "jsonl": "jsonl",
    "markdown": "md",
    "html": "html",
    "sarif": "sarif",
    "junit": "xml",
}


def compare(name: str, text: str) -> None:
    path = GOLDENS / name
    if os.environ.get("TROTH_WRITE_GOLDENS"):
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


@pytest.mark.behaviour("AUD-A14")
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("report", ["one", "several", "kept"])
def test_every_format_is_as_agreed(report: str, form: str) -> None:
    compare(f"{report}.{SUFFIXES[form]}", render(getattr(sample, report)(), form))


@pytest.mark.parametrize("width", [60, 80, 140])
def test_the_table_fits_every_width(width: int) -> None:
    text = render(sample.one(), "text", width=width)
    compare(f"width-{width}.txt", text)
    assert max(len(line) for line in text.splitlines()) <= width


def test_colours_are_used_only_where_they_are_wanted() -> None:
    plain = render(sample.one(), "text")
    coloured = render(sample.one(), "text", colour=True)
    assert "\x1b" not in plain
    assert "\x1b[1;31m✗ BROKEN" in coloured


def test_verbose_shows_all_evidence_whole() -> None:
    report = sample.one()
    assert "more frames (--verbose shows them)" in render(report, "text")
    assert "more frames" not in render(report, "text", verbose=True)


def test_quiet_leaves_findings_and_summary() -> None:
    text = render(sample.one(), "text", quiet=True)
    compare("quiet.txt", text)
    assert "Capabilities" not in text


@pytest.mark.parametrize("form", FORMATS)
def test_what_a_baseline_suppresses_is_marked_and_counted(form: str) -> None:
    report = sample.one()
    known = frozenset(entry for entry in entries(report) if entry.id == "CAP-17")
    applied = apply_baseline(report, known)
    places = {"files": Place("conf/mcp servers.json", 12)}
    text = render(applied.report, form, suppressed=applied.suppressed, places=places)
    compare(f"baseline.{SUFFIXES[form]}", text)


def test_long_paths_are_folded_and_nothing_is_wider_than_the_terminal() -> None:
    long = sample.row("XE-ema-client", sample.Verdict.UNGATED)
    part = sample.revision_report("2026-07-28", rows=(*sample.rows("2026-07-28"), long))
    target = sample.target(revisions={**sample.target().revisions, "2026-07-28": part})
    report = msgspec.structs.replace(sample.one(), targets=(target, sample.target("other")))
    for width in range(60, 200, 7):
        assert max(len(line) for line in render(report, "text", width=width).splitlines()) <= width


def test_five_revisions_stand_side_by_side_in_a_hundred_columns() -> None:
    revisions = {revision: sample.revision_report(revision) for revision in (*sample.LEGACY, *sample.MODERN)}
    report = msgspec.structs.replace(sample.one(), targets=(sample.target(revisions=revisions),))
    assert " 2024-11-05    2025-03-26    2025-06-18    2025-11-25    2026-07-28\n" in render(report, "text")
