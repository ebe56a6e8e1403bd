"""Audits of many servers at once, for the tests that hold the audit against what is known of real servers."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import anyio

from troth.audit.engine import audit
from troth.audit.options import Options
from troth.audit.targets import StdioTarget
from troth.audit.wire.types import Limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from troth.audit.model import RevisionReport, TargetReport
    from troth.audit.targets import Target

# Players answer at once; what is not there after these is not coming.
QUICK = Limits(start=60, method=5, settle=0.2, stop=2)
PYTHON = (sys.executable, "-S", "-E")
"""An interpreter that starts quickly: for servers that need the standard library only."""


def player(name: str, *command: str) -> StdioTarget:
    """A server in one file that needs the standard library only."""
    return StdioTarget(name=name, command=(*PYTHON, *command))


def run(
    targets: Iterable[Target],
    revisions: Sequence[str],
    limits: Limits = QUICK,
    jobs: int = 6,
    change_tool: str | None = None,
    active: bool = False,
) -> dict[str, TargetReport]:
    """Audits targets, several at a time; the reports by name."""
    options = Options(revisions=tuple(revisions), limits=limits, jobs=jobs, change_tool=change_tool, active=active)
    reports = anyio.run(partial(audit, tuple(targets), options, lambda _event: None))
    return {report.name: report for report in reports}


def verdicts(report: RevisionReport) -> dict[str, str]:
    """The verdicts by row id."""
    return {row.id: row.verdict.value for row in report.rows}


def told(report: RevisionReport, rows: Iterable[str]) -> str:
    """What the audit says of some rows, with its evidence, to show when it is wrong."""
    lines = []
    for row in report.rows:
        if row.id in rows:
            lines.append(f"{row.id} {row.verdict.value}: {row.message} ({row.hint})")
            lines += [f"    {frame.direction.value} {str(frame.message)[:300]}" for frame in row.evidence[:8]]
    return "\n".join(lines)
