"""The report as Markdown for a comment on a change: nothing in it links, mentions, embeds or breaks out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from troth.audit.model import Outcome
from troth.audit.report.common import condense, excerpt, merge, outcome_words, plural, server_line
from troth.audit.report.grid import MARKS, Grid

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from troth.audit.report.common import Item, Merged, View

_ESCAPES = {char: f"\\{char}" for char in "\\`*_[]|~$"} | {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "'": "&#39;",
}
_SPECIAL = re.compile(r"[\\`*_\[\]|~$&<>\"']")
_LEADING = re.compile(r"^(?P<digits>\d*)(?P<mark>[-+=#.)])")
_TRIGGER = re.compile(r"(?<=[@#])(?=\w)|(?<=\b[Gg][Hh])(?=-\d)|(?<=:)(?=//)|(?<=\b[Ww]{3})(?=\.)")
_BREAK = "&#8203;"
"""An invisible gap that keeps ``@name``, ``#1`` and addresses from becoming links."""


def escape(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    pieces = (_SPECIAL.sub(lambda match: _ESCAPES[match[0]], piece) for piece in _TRIGGER.split(text))
    return _LEADING.sub(r"\g<digits>\\\g<mark>", _BREAK.join(pieces))


def code(text: str, *, cell: bool = False) -> str:
    """Text as inline code, whatever it holds.

    Args:
        text: One line.
        cell: Whether it stands in a table, where a pipe would end the cell.
    """
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") or not text.strip() else ""
    shown = f"{fence}{pad}{text}{pad}{fence}"
    return shown.replace("|", "\\|") if cell else shown


def render(view: View) -> str:
    """The report as GitHub-flavoured Markdown."""
    report = view.report
    lines = [f"## Troth audit: {', '.join(view.counts.values()) or 'no findings'}", ""]
    for target in report.targets:
        facts = f"{server_line(target)}, over {target.transport}"
        if target.outcome is not Outcome.CHECKED:
            facts = outcome_words(target)
        lines.append(f"- **{escape(target.name)}**: {escape(facts)}, {code(target.address)}")
        for asked, part in target.revisions.items():
            if part.outcome is not Outcome.CHECKED:
                lines.append(f"  - {escape(asked)}: {escape(outcome_words(part))}")
            elif part.negotiated != asked:
                lines.append(f"  - {escape(asked)}: answered with {escape(part.negotiated or 'no revision')}")
    lines += [*_table(view), *_findings(view), *_unobserved(view), *_baseline(view)]
    lines += ["", f"<sub>troth {escape(report.troth)}, {escape(report.started_at)}</sub>"]
    return "\n".join(lines) + "\n"


def _table(view: View) -> list[str]:
    grid = Grid(view)
    if not grid.columns:
        return []
    headings = ["capability", *(escape(column.heading) for column in grid.columns)]
    lines = ["", _cells(headings), _cells(["---"] * len(headings))]
    for side in grid.sides:
        for line in grid.lines(side):
            name = f"{code(line.path, cell=True)} {escape(line.id)}" + (" (client)" if side == "client" else "")
            lines.append(_cells([name, *(_cell(line.cells.get(column.key)) for column in grid.columns)]))
    lines += [f"\n{escape(text)}" for text in (*grid.folded, *grid.legend)]
    return lines


def _cells(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(item: Item | None) -> str:
    if item is None or item.verdict is None:
        return "·"
    mark, word = MARKS[item.verdict]
    text = escape(f"{mark} {word}".strip())
    return f"{text}\\*" if item.suppressed else text


def _findings(view: View) -> list[str]:
    faults = merge(view.faults)
    lines = ["", "### Findings"] if faults else []
    for fault in faults:
        lines += _finding(view, fault)
    return lines


def _finding(view: View, fault: Merged) -> list[str]:
    item = fault.item
    verdict = f" {MARKS[item.verdict][1]}" if item.verdict is not None else ""
    lines = [
        "",
        f"**{item.severity.value}{verdict}** {escape(item.id)} {code(item.path) if item.path else ''}"
        f" {escape(fault.words(view))}\\",
        escape(item.message),
    ]
    lines += [f"- {label}: {escape(text)}" for label, text in (("mend", item.hint), ("source", item.source)) if text]
    lines.append(f"- again: {code(view.again(item))}")
    proof = excerpt(item.evidence, whole=view.verbose)
    return [*lines, *_fenced([f"{label:<9} {text}" for label, text in proof])] if proof else lines


def _fenced(lines: Sequence[str]) -> list[str]:
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(longest + 1, 3)
    return ["", f"{fence}text", *lines, fence]


def _unobserved(view: View) -> list[str]:
    hints: dict[str, list[Item]] = {}
    for item in view.unobserved:
        hints.setdefault(item.hint or item.message, []).append(item)
    lines = ["", "### Not seen", ""] if hints else []
    for hint, items in hints.items():
        names = escape(", ".join(condense(item.path for item in items)))
        lines.append(f"- {escape(hint)} ({names})")
    return lines


def _baseline(view: View) -> list[str]:
    report = view.report
    lines = ["", f"{plural(report.suppressed, 'finding')} suppressed by the baseline."] if report.suppressed else []
    return [*lines, *(f"\n**stale** in the baseline: {escape(entry)}" for entry in report.stale)]
