"""The report for people at a terminal: facts, the table, findings with their proof, and what was not seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from io import StringIO
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from troth.audit.model import Outcome, Severity, Verdict
from troth.audit.report.common import (
    condense,
    excerpt,
    merge,
    outcome_words,
    plural,
    revisions_of,
    server_line,
    span,
    title,
)
from troth.audit.report.grid import MARKS, Column, Grid

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from troth.audit.model import HostView, TargetReport
    from troth.audit.report.common import Item, Merged, View

STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "cyan", Severity.NONE: "green"}
_QUIET = {Verdict.ABSENT: "dim", Verdict.NOT_OBSERVABLE: "dim"}
_NARROWEST = 40
_SIDES = {"server": "promised by the server", "client": "asked of the client"}
_NARROW_PATH = 28
_LONGEST_ID = 14
_CELL = 14
"""Columns of the terminal that one column of verdicts takes: the longest word, its mark, and the space between."""


def render(view: View) -> str:
    """The report as text of at most ``view.width`` columns where words allow it."""
    out = StringIO()
    console = Console(
        file=out,
        width=max(view.width, _NARROWEST),
        force_terminal=view.colour,
        color_system="standard" if view.colour else None,
        no_color=not view.colour,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )
    screen = _Screen(console, view)
    if not view.quiet:
        screen.head()
        screen.table()
    screen.findings()
    if not view.quiet:
        screen.unobserved()
        screen.hosts()
    screen.summary()
    return "".join(f"{text.rstrip()}\n" for text in out.getvalue().splitlines())


@dataclass(frozen=True, slots=True)
class _Layout:
    """How the table is laid out: characters for id (0 for none) and path, and how many columns stand side by side."""

    id: int
    path: int
    fit: int


def _layout(width: int, grid: Grid) -> _Layout:
    """The roomiest layout in which all columns stand side by side; else as many as fit beside a narrow first column."""
    number, path = min(grid.id_width, _LONGEST_ID), max(grid.path_width, *map(len, _SIDES.values()))
    narrow = min(path, _NARROW_PATH)
    for layout in (
        _Layout(grid.id_width, path, 0),
        _Layout(number, path, 0),
        _Layout(0, path, 0),
        _Layout(number, narrow, 0),
        _Layout(0, narrow, 0),
    ):
        if _fit(width, layout) >= len(grid.columns):
            return replace(layout, fit=len(grid.columns))
    return _Layout(0, narrow, max(_fit(width, _Layout(0, narrow, 0)), 1))


def _fit(width: int, layout: _Layout) -> int:
    return (width - layout.path - 2 - (layout.id + 2 if layout.id else 0)) // _CELL


class _Screen:
    """Writes the parts of the report one after the other."""

    def __init__(self, console: Console, view: View) -> None:
        self.console, self.view = console, view
        self.asked = revisions_of(view.report)

    def say(self, text: str | Text = "", indent: int = 0) -> None:
        body = Text(text) if isinstance(text, str) else text
        self.console.print(Padding(body, (0, 0, 0, indent)) if indent else body)

    def heading(self, text: str) -> None:
        self.say()
        self.say(Text(text, style="bold"))

    def pair(self, label: str, text: str, *, indent: int = 2, style: str = "") -> None:
        """A label and text that wraps beside it."""
        self.pairs(((label, text, style),), indent=indent)

    def pairs(self, rows: Iterable[tuple[str, str, str]], *, indent: int = 2) -> None:
        """Labels, and texts with their styles, which wrap beside them in one column."""
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True, min_width=10)
        table.add_column(overflow="fold")
        for label, text, style in rows:
            table.add_row(Text(label, style="dim"), Text(text, style=style))
        self.console.print(Padding(table, (0, 0, 0, indent)))

    def head(self) -> None:
        report = self.view.report
        self.say(Text(f"troth {report.troth}", style="bold") + Text(f"  {report.started_at}", style="not bold dim"))
        for target in report.targets:
            self.target(target)

    def target(self, target: TargetReport) -> None:
        self.heading(target.name)
        self.pair("address", target.address)
        if target.outcome is Outcome.CHECKED:
            self.pair("server", f"{server_line(target)}, over {target.transport}")
        else:
            self.pair("result", outcome_words(target), style="bold red")
            return
        eras = dict.fromkeys(part.era for part in target.revisions.values() if part.era)
        self.pair("era", ", ".join(eras) or "none")
        same = [asked for asked, part in target.revisions.items() if part.negotiated == asked]
        self.pair("speaks", ", ".join(same) or "none of the revisions asked")
        for asked, part in target.revisions.items():
            if part.outcome is not Outcome.CHECKED:
                self.pair(asked, outcome_words(part), style="yellow")
            elif part.negotiated != asked:
                self.pair(asked, f"answered with {part.negotiated or 'no revision'}", style="yellow")

    def table(self) -> None:
        grid = Grid(self.view)
        if not grid.columns:
            return
        self.heading("Capabilities")
        layout = _layout(self.console.width, grid)
        for start in range(0, len(grid.columns), layout.fit):
            if start:
                self.say()
            self.console.print(self._block(grid, grid.columns[start : start + layout.fit], layout))
        for text in grid.folded:
            self.say(text, 1)
        for text in grid.legend:
            self.say(Text(text, style="dim"), 1)

    def _block(self, grid: Grid, columns: Sequence[Column], layout: _Layout) -> Table:
        table = Table(box=SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=True, show_edge=False)
        numbered = layout.id > 0
        if numbered:
            table.add_column("id", width=layout.id, overflow="fold", style="dim")
        table.add_column("capability", width=layout.path, overflow="fold")
        for column in columns:
            table.add_column(Text(column.heading), min_width=_CELL - 2, max_width=_CELL - 2, overflow="fold")
        for side in grid.sides:
            if grid.several_sides:
                lead = ("",) if numbered else ()
                table.add_row(*lead, Text(_SIDES[side], style="italic"))
            for line in grid.lines(side):
                cells = [self._cell(line.cells.get(column.key)) for column in columns]
                table.add_row(*((line.id,) if numbered else ()), Text(line.path), *cells)
        return table

    def _cell(self, item: Item | None) -> Text:
        if item is None or item.verdict is None:
            return Text("·", style="dim")
        mark, word = MARKS[item.verdict]
        style = "dim" if item.suppressed else _QUIET.get(item.verdict, STYLES[item.severity])
        return Text(f"{'*' if item.suppressed else mark} {word}".strip(), style=style)

    def findings(self) -> None:
        faults = merge(self.view.faults)
        if not faults:
            return
        self.heading("Findings")
        for fault in faults:
            self.finding(fault)

    def finding(self, fault: Merged) -> None:
        item = fault.item
        self.say()
        head = Text(f"{item.severity.value:<9}", style=STYLES[item.severity])
        if item.verdict is not None:
            head.append(f"{MARKS[item.verdict][1]}  ")
        head.append(f"{item.id}", style="bold not dim")
        head.append(f"  {item.path}" if item.path else "")
        head.append(f"  {fault.words(self.view)}", style="dim")
        self.say(head)
        self.say(item.message, 2)
        rows = [(label, text, "") for label, text in (("mend", item.hint), ("source", item.source)) if text]
        rows += [(label, text, "dim") for label, text in excerpt(item.evidence, whole=self.view.verbose)]
        self.pairs([*rows, ("again", self.view.again(item), "")])

    def unobserved(self) -> None:
        if not self.view.unobserved:
            return
        hints: dict[str, list[Item]] = {}
        for item in self.view.unobserved:
            hints.setdefault(item.hint or item.message, []).append(item)
        self.heading("Not seen: neither kept nor broken, because nothing showed it")
        for hint, items in hints.items():
            names = condense(item.path for item in items)
            revisions = [revision for revision in self.asked if any(item.revision == revision for item in items)]
            self.say(hint, 2)
            self.say(Text(f"{', '.join(names)}; {span(revisions, self.asked)}", style="dim"), 4)

    def hosts(self) -> None:
        for target in self.view.report.targets:
            views: dict[str, list[str]] = {}
            seen: dict[str, HostView] = {}
            for revision, part in target.revisions.items():
                if part.host_view is not None:
                    key = repr(part.host_view)
                    seen[key] = part.host_view
                    views.setdefault(key, []).append(revision)
            for key, revisions in views.items():
                self.host(target.name, seen[key], revisions)

    def host(self, target: str, view: HostView, revisions: Iterable[str]) -> None:
        self.heading(f"As {view.profile} sees {target}, {span(list(revisions), self.asked)}")
        if not view.speaks:
            self.say("It does not speak this revision.", 2)
        rows = [*view.effective.items()]
        for kind, names in (("tools", view.tools), ("prompts", view.prompts), ("resources", view.resources)):
            rows.append((f"sees {kind}", f"{len(names)}: {', '.join(names)}" if names else "none"))
        rows += [("note", note) for note in view.notes]
        self.pairs((label, text, "") for label, text in rows)

    def summary(self) -> None:
        view, report = self.view, self.view.report
        self.heading("Summary")
        if view.verdicts:
            self.pair(
                "verdicts",
                ", ".join(f"{count} {MARKS[verdict][1] or verdict.value}" for verdict, count in view.verdicts.items()),
            )
        unchecked = [target for target in report.targets if target.outcome is not Outcome.CHECKED]
        if unchecked:
            self.pair("unchecked", f"{plural(len(unchecked), 'target')} could not be checked", style="bold red")
        if view.counts or len(unchecked) < len(report.targets):
            self.pair("findings", ", ".join(view.counts.values()) or "none")
        if report.suppressed:
            names = dict.fromkeys(f"{item.id} {item.verdict or ''}".strip() for item in view.items if item.suppressed)
            self.pair("baseline", f"{plural(report.suppressed, 'finding')} suppressed: {', '.join(names)}".rstrip(": "))
        for entry in report.stale:
            self.pair("stale", f"{entry}: in the baseline and no longer found; remove it", style="bold red")
        codes = list(dict.fromkeys(code for item in view.faults for code in item.explainable))
        if codes:
            self.pair("more", f"troth explain {codes[0]}: {title(codes[0])}")
            if len(codes) > 1:
                self.pair("", f"also: {', '.join(codes[1:])}")
