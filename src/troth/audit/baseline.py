"""Findings that are known and accepted: written once, suppressed from then on, and named when they are gone.

The file is JSON: ``{"troth": "baseline", "version": 1, "findings": [{"target", "revision", "id", ...}]}``, one finding
a line, sorted, without texts or times that change from run to run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from troth.audit.model import AuditReport, Finding, Outcome, RowResult, Severity
from troth.audit.options import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = 1
"""Of the format; a file of another version is refused."""

_MEMBERS = frozenset({"target", "revision", "id", "verdict", "rows"})


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """What identifies a finding from run to run.

    Attributes:
        target: Name of the target.
        revision: Revision asked for; empty for a finding about the target as a whole.
        id: Row id or finding code.
        verdict: Verdict of a row; empty for a finding.
        rows: Rows that a finding touches.
    """

    target: str
    revision: str
    id: str
    verdict: str = ""
    rows: tuple[str, ...] = ()

    @classmethod
    def of(cls, target: str, revision: str, what: RowResult | Finding) -> Entry:
        """The entry for a row or finding of a report."""
        if isinstance(what, RowResult):
            return cls(target, revision, what.id, str(what.verdict))
        return cls(target, revision, what.code, "", tuple(sorted(what.rows)))

    def __str__(self) -> str:
        """In words, as it is named when it is stale."""
        parts = (self.target, self.revision, self.id, self.verdict, *self.rows)
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """A report with a baseline applied.

    Attributes:
        report: With ``suppressed`` and ``stale`` filled in.
        suppressed: The entries that matched.
    """

    report: AuditReport
    suppressed: frozenset[Entry]


def entries(report: AuditReport) -> tuple[Entry, ...]:
    """Every fault of a report, of any severity, sorted."""
    return tuple(sorted(set(_entries(report))))


def _entries(report: AuditReport) -> Iterator[Entry]:
    for target in report.targets:
        places = [("", (), target.findings)]
        places += [(revision, part.rows, part.findings) for revision, part in target.revisions.items()]
        for revision, rows, findings in places:
            for what in (*rows, *findings):
                if what.severity is not Severity.NONE:
                    yield Entry.of(target.name, revision, what)


def apply_baseline(report: AuditReport, baseline: frozenset[Entry]) -> Applied:
    """Tells which faults a baseline suppresses, and which of its entries are stale.

    An entry is stale when nothing matches it any more. Entries of a revision that was not asked for, or that could not
    be checked this time, are left alone; those of a target that is not part of the run are stale.
    """
    present = [*_entries(report)]
    matched = baseline.intersection(present)
    stale = sorted(entry for entry in baseline - matched if _judged(report, entry))
    return Applied(
        report=msgspec.structs.replace(
            report,
            suppressed=sum(entry in matched for entry in present),
            stale=tuple(str(entry) for entry in stale),
        ),
        suppressed=matched,
    )


def _judged(report: AuditReport, entry: Entry) -> bool:
    target = next((target for target in report.targets if target.name == entry.target), None)
    if target is None:
        return True
    if target.outcome is not Outcome.CHECKED:
        return False
    if not entry.revision:
        return True
    part = target.revisions.get(entry.revision)
    return part is not None and part.outcome in (Outcome.CHECKED, Outcome.NOT_SERVED)


def to_text(report: AuditReport) -> str:
    """The baseline file for a report."""
    lines = [
        json.dumps(
            {"target": entry.target, "revision": entry.revision, "id": entry.id}
            | ({"verdict": entry.verdict} if entry.verdict else {})
            | ({"rows": list(entry.rows)} if entry.rows else {})
        )
        for entry in entries(report)
    ]
    body = ",\n    ".join(lines)
    findings = f"[\n    {body}\n  ]" if lines else "[]"
    return f'{{\n  "troth": "baseline",\n  "version": {VERSION},\n  "findings": {findings}\n}}\n'


def read_baseline(path: str) -> frozenset[Entry]:
    """The entries of a baseline file.

    Raises:
        UsageError: The file cannot be read or is no baseline; names the line.
    """
    try:
        text = Path(path).read_text("utf-8")
    except OSError as error:
        raise UsageError(f"{path}: the baseline cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}:1: the baseline is not UTF-8 text.") from None
    try:
        value = cast("object", json.loads(text))
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}:{error.lineno}: the baseline is not JSON: {error.msg}.") from None
    except (RecursionError, ValueError) as error:
        raise UsageError(f"{path}:1: the baseline is not usable JSON: {error}.") from None
    top = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    if top.get("troth") != "baseline" or not isinstance(top.get("findings"), list):
        raise UsageError(f"{path}:1: not a baseline; write one with --write-baseline {path}.")
    if top.get("version") != VERSION:
        raise UsageError(f"{path}:1: a baseline of version {top.get('version')!r}; this Troth reads version {VERSION}.")
    found = cast("list[object]", top["findings"])
    return frozenset(_entry(path, text, index, item) for index, item in enumerate(found))


def _entry(path: str, text: str, index: int, value: object) -> Entry:
    members = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    strings = {key: members.get(key, "") for key in ("target", "revision", "id", "verdict")}
    rows: object = members.get("rows", [])
    fine = (
        set(members) <= _MEMBERS
        and all(isinstance(item, str) for item in strings.values())
        and bool(strings["target"] and strings["id"])
        and isinstance(rows, list)
        and all(isinstance(row, str) for row in cast("list[object]", rows))
    )
    if not fine:
        line = _line_of(text, index)
        raise UsageError(f'{path}:{line}: finding {index + 1} must have the texts "target", "revision" and "id".')
    return Entry(**strings, rows=tuple(sorted(cast("list[str]", rows))))


def _line_of(text: str, index: int) -> int:
    """The line on which the item of this index in ``findings`` begins."""
    decoder = json.JSONDecoder()
    position = text.index("[", text.index('"findings"')) + 1
    for count in range(index + 1):
        while text[position] in " \t\r\n,":
            position += 1
        if count < index:
            position = decoder.raw_decode(text, position)[1]
    return text.count("\n", 0, position) + 1
