"""What every format shares: the view to show, its faults in order, merged over revisions, and how to see one again."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, cast

from troth.audit.baseline import Entry
from troth.audit.model import AuditReport, Direction, Finding, Outcome, RowResult, Severity, Verdict
from troth.audit.report.clean import line
from troth.audit.verdicts import FINDINGS, SEVERITY_RANK, VERDICTS
from troth.register import register

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from troth.audit.model import Frame, RevisionReport, TargetReport
    from troth.audit.targets import Place

EXCERPT = 160
"""Characters of one frame in a short excerpt of evidence."""

EXCERPT_FRAMES = 4
"""Frames in a short excerpt."""

ALL_REVISIONS = ""
"""Stands for the revision in findings that belong to a target as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A row's verdict or a finding, in one shape.

    Attributes:
        target: Name of the target.
        revision: Revision asked for; empty for what belongs to the target as a whole.
        id: Row id or finding code.
        path: Dotted path of the row; for a finding the rows it touches.
        side: ``server`` or ``client``; empty for findings.
        verdict: Verdict of a row; None for findings.
        suppressed: Whether the baseline names it.
    """

    target: str
    revision: str
    id: str
    path: str
    side: str
    verdict: Verdict | None
    severity: Severity
    message: str
    hint: str
    source: str
    rows: tuple[str, ...]
    evidence: tuple[Frame, ...]
    suppressed: bool

    @property
    def entry(self) -> Entry:
        """What a baseline would store of it."""
        return Entry(self.target, self.revision, self.id, self.verdict or "", tuple(sorted(self.rows)))

    @property
    def explainable(self) -> tuple[str, ...]:
        """Ids that `troth explain` knows."""
        return (self.id,) if self.verdict is not None else self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """Items that say the same in several revisions, or of several targets.

    Attributes:
        item: The first of them; its evidence stands for all.
        where: For each target, in order, the revisions asked for; none for a target as a whole.
    """

    item: Item
    where: Mapping[str, tuple[str, ...]]

    def words(self, view: View) -> str:
        """Where it was found, in words."""
        asked = revisions_of(view.report)
        if not view.several:
            return span(self.where[self.item.target], asked)
        return "; ".join(f"{target} {span(revisions, asked)}" for target, revisions in self.where.items())


@dataclass(frozen=True, kw_only=True)
class View:
    """A clean report and how it is to be shown.

    Attributes:
        report: Cleaned (see ``report.clean``).
        width: Columns of the terminal.
        colour: Whether escape codes for colours may be used.
        verbose: Whether whole frames are shown.
        quiet: Whether only findings and the summary are shown.
        anchor: Where CI systems pin every finding; None for each target's own place.
        places: Places of the targets by name.
        suppressed: What the baseline names.
        fail_on: Least severity that counts as failure; None for never.
    """

    report: AuditReport
    width: int = 100
    colour: bool = False
    verbose: bool = False
    quiet: bool = False
    anchor: Place | None = None
    places: Mapping[str, Place] = field(default_factory=dict[str, "Place"])
    suppressed: frozenset[Entry] = frozenset()
    fail_on: Severity | None = Severity.ERROR

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """Every row and finding of the report, in its order."""
        return tuple(item for target in self.report.targets for item in self.items_of(target))

    def items_of(self, target: TargetReport) -> Iterator[Item]:
        """Every row and finding of one target."""
        for finding in target.findings:
            yield self._finding(target.name, ALL_REVISIONS, finding)
        for revision, part in target.revisions.items():
            for row in part.rows:
                yield self._row(target.name, revision, row)
            for finding in part.findings:
                yield self._finding(target.name, revision, finding)

    def _row(self, target: str, revision: str, row: RowResult) -> Item:
        return Item(
            target=target,
            revision=revision,
            id=row.id,
            path=row.path,
            side=row.side,
            verdict=row.verdict,
            severity=row.severity,
            message=row.message,
            hint=row.hint,
            source=row.source,
            rows=(),
            evidence=row.evidence,
            suppressed=Entry.of(target, revision, row) in self.suppressed,
        )

    def _finding(self, target: str, revision: str, finding: Finding) -> Item:
        return Item(
            target=target,
            revision=revision,
            id=finding.code,
            path=", ".join(finding.rows),
            side="",
            verdict=None,
            severity=finding.severity,
            message=finding.message,
            hint=finding.hint,
            source=finding.source,
            rows=finding.rows,
            evidence=finding.evidence,
            suppressed=Entry.of(target, revision, finding) in self.suppressed,
        )

    @cached_property
    def faults(self) -> tuple[Item, ...]:
        """What matters at all and is not suppressed, the most severe first."""
        found = [item for item in self.items if item.severity is not Severity.NONE and not item.suppressed]
        return tuple(sorted(found, key=lambda item: -SEVERITY_RANK[item.severity]))

    @cached_property
    def unobserved(self) -> tuple[Item, ...]:
        """Rows that nothing on the wire decided."""
        return tuple(item for item in self.items if item.verdict is Verdict.NOT_OBSERVABLE)

    @cached_property
    def verdicts(self) -> Mapping[Verdict, int]:
        """How often each verdict was reached, the least serious first; verdicts that were not reached are left out."""
        counts = Counter(item.verdict for item in self.items)
        return {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]}

    @cached_property
    def severities(self) -> Mapping[Severity, int]:
        """How many faults of each severity there are, errors first, without those that the baseline suppresses."""
        counts = Counter(item.severity for item in self.faults)
        return {severity: counts[severity] for severity in reversed(Severity) if severity is not Severity.NONE}

    @cached_property
    def counts(self) -> Mapping[Severity, str]:
        """The same in words; with how many kinds there are, where one occurs in several revisions or targets."""
        kinds = Counter(fault.item.severity for fault in merge(self.faults))
        return {
            severity: plural(count, severity.value)
            + (f" ({plural(kinds[severity], 'kind')})" if kinds[severity] < count else "")
            for severity, count in self.severities.items()
            if count
        }

    def fails(self, item: Item) -> bool:
        """Whether an item counts as a failure: what ``fail_on`` says, and errors whatever it says."""
        least = min(SEVERITY_RANK[self.fail_on or Severity.ERROR], SEVERITY_RANK[Severity.ERROR])
        return not item.suppressed and SEVERITY_RANK[item.severity] >= least

    @property
    def several(self) -> bool:
        """Whether more than one target is compared."""
        return len(self.report.targets) > 1

    def again(self, item: Item) -> str:
        """A command line that shows the item again."""
        target = next(target for target in self.report.targets if target.name == item.target)
        words = ["troth", "audit"]
        if item.revision:
            words += ["--revision", item.revision]
        return " ".join([*words, _target_words(self.report.command_line, target, several=self.several)])


_DROPPED = frozenset(
    {"--revision", "--format", "--output", "-o", "--baseline", "--write-baseline", "--fail-on", "--name"}
)
"""Options with a value that have no part in seeing a finding again."""


def _target_words(command_line: Sequence[str], target: TargetReport, *, several: bool) -> str:
    words = [*command_line]
    start = words.index("audit") + 1 if "audit" in words else len(words)
    end = words.index("--") if "--" in words else len(words)
    options: list[str] = []
    index = start
    while index < end:
        word = words[index]
        name, equals, _ = word.partition("=")
        index += 2 if name in _DROPPED and not equals else 1
        if name not in _DROPPED and word not in ("--verbose", "-v", "--quiet", "-q"):
            options.append(word)
    config = "--config" in options
    if start < len(words) and not several:
        return shlex.join([*options, *words[end:]])
    if config:
        position = options.index("--config")
        return shlex.join([*options[position : position + 2], "--server", target.name])
    return shlex.quote(target.address) if target.transport == "http" else f"-- {target.address}"


def merge(items: Sequence[Item]) -> tuple[Merged, ...]:
    """Items grouped where only target, revision and evidence differ, in order of first appearance."""
    groups: dict[tuple[object, ...], list[Item]] = {}
    for item in items:
        key = (item.id, item.path, item.side, item.verdict, item.severity, item.message, item.hint)
        groups.setdefault(key, []).append(item)
    return tuple(Merged(item=group[0], where=_where(group)) for group in groups.values())


def _where(group: Sequence[Item]) -> dict[str, tuple[str, ...]]:
    where: dict[str, dict[str, None]] = {}
    for item in group:
        where.setdefault(item.target, {}).update({item.revision: None} if item.revision else {})
    return {target: tuple(revisions) for target, revisions in where.items()}


def span(revisions: Sequence[str], asked: Sequence[str]) -> str:
    """Revisions in words: runs of neighbours (among those asked) as ``first to last``.

    Args:
        revisions: What to name, in order.
        asked: All revisions of the audit, in order.
    """
    if not revisions:
        return "as a whole"
    if len(revisions) == len(asked) > 2:
        return "every revision"
    runs: list[list[str]] = []
    order = {revision: index for index, revision in enumerate(asked)}
    for revision in revisions:
        if runs and order.get(revision) == order.get(runs[-1][-1], -2) + 1:
            runs[-1].append(revision)
        else:
            runs.append([revision])
    texts = (run if len(run) < 3 else [f"{run[0]} to {run[-1]}"] for run in runs)
    return ", ".join(text for run in texts for text in run)


def excerpt(frames: Sequence[Frame], *, whole: bool) -> tuple[tuple[str, str], ...]:
    """Frames as pairs of label and one line of text.

    Args:
        frames: The evidence.
        whole: All frames in full length; else the first and last few, cut.
    """
    shown = list(frames)
    left_out = 0 if whole else max(len(shown) - EXCERPT_FRAMES, 0)
    half = EXCERPT_FRAMES // 2
    lines = [_frame(frame, whole=whole) for frame in (shown if not left_out else (*shown[:half], *shown[-half:]))]
    if left_out:
        lines.insert(half, ("", f"... {left_out} more frames (--verbose shows them)"))
    return tuple(lines)


def _frame(frame: Frame, *, whole: bool) -> tuple[str, str]:
    note = frame.direction is Direction.NOTE and isinstance(frame.message, str)
    text = line(frame.message) if note else to_json(frame.message)
    if not whole and len(text) > EXCERPT:
        text = f"{text[:EXCERPT]}... ({len(text.encode()) - len(text[:EXCERPT].encode())} bytes more)"
    status = f" {frame.status}" if frame.status is not None else ""
    return f"{frame.direction.value}{status}", text


def to_json(value: object) -> str:
    """A clean JSON value on one line."""
    return json.dumps(value, ensure_ascii=False)


def revisions_of(report: AuditReport) -> tuple[str, ...]:
    """The revisions asked of any target, oldest first."""
    asked = {revision for target in report.targets for revision in target.revisions}
    known = [revision for revision in register().revisions if revision in asked]
    return (*known, *sorted(asked.difference(known)))


def title(identifier: str) -> str:
    """One line about a row id or a finding code; the id itself where nothing is known about it."""
    row = register().by_id.get(identifier)
    if row is not None:
        return line(row.title or row.path)
    return FINDINGS[identifier].text if identifier in FINDINGS else identifier


def server_line(target: TargetReport) -> str:
    """Name and version of the server as it told them."""
    told: object = target.server_info
    info = cast("dict[str, object]", told) if isinstance(told, dict) else {}
    parts = (info.get("name"), info.get("version"))
    return line(" ".join(str(part) for part in parts if isinstance(part, str | int | float)), 200) or "unnamed"


def outcome_words(part: RevisionReport | TargetReport) -> str:
    """What became of a revision or target that was not checked, with the reason."""
    words = {
        Outcome.CHECKED: "checked",
        Outcome.NOT_SERVED: "not served",
        Outcome.DID_NOT_START: "did not start",
        Outcome.UNREACHABLE: "unreachable",
    }[part.outcome]
    return f"{words}: {part.reason}" if part.reason else words


def plural(count: int, word: str, many: str = "") -> str:
    """``1 error``, ``2 errors``."""
    return f"{count} {word}" if count == 1 else f"{count} {many or f'{word}s'}"


def condense(paths: Iterable[str]) -> list[str]:
    """Capability paths without repetition; what lies below another of them is only counted there."""
    unique = list(dict.fromkeys(paths))
    below: dict[str, int] = {}
    for path in sorted(unique):
        parent = next((top for top in below if path.startswith((f"{top}.", f"{top}["))), path)
        below[parent] = below.get(parent, -1) + 1
    return [f"{path} (and {below[path]} in it)" if below[path] else path for path in unique if path in below]
