"""The table of verdicts: rows are capabilities, columns the revisions of each target."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from troth.audit.model import Outcome, Verdict
from troth.audit.report.clean import cut
from troth.audit.report.common import condense, plural, revisions_of
from troth.register import register

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.audit.report.common import Item, View

MARKS: dict[Verdict, tuple[str, str]] = {
    Verdict.KEPT: ("✓", "kept"),
    Verdict.EMPTY: ("○", "empty"),
    Verdict.PARTIAL: ("◐", "partial"),
    Verdict.BROKEN: ("✗", "BROKEN"),
    Verdict.UNDECLARED: ("!", "undeclared"),
    Verdict.LEAKED: ("!", "leaked"),
    Verdict.MALFORMED: ("✗", "malformed"),
    Verdict.WRONG_CODE: ("!", "wrong-code"),
    Verdict.UNGATED: ("✗", "ungated"),
    Verdict.ABSENT: ("-", ""),
    Verdict.NOT_OBSERVABLE: ("?", "not seen"),
}
"""The mark and the word of each verdict in a cell."""

_FOLDS = {
    Verdict.ABSENT: ("", "absent", "in every revision"),
    Verdict.NOT_OBSERVABLE: ("client ", "not seen asked for", "in any revision"),
}
"""How a line of text names the capabilities that have no row: which, what of them, where."""

_SHORT_NAME = 24


@dataclass(frozen=True, slots=True)
class Column:
    """One revision of one target.

    Attributes:
        key: Target name and revision.
        heading: What stands above it.
    """

    key: tuple[str, str]
    heading: str


@dataclass(frozen=True, slots=True)
class Line:
    """One capability over all columns; a column without an item does not define it."""

    id: str
    path: str
    cells: Mapping[tuple[str, str], Item]


class Grid:
    """Arranges a view's rows. Columns of one revision stand side by side, so that targets can be compared.

    Args:
        view: What to show.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self.asked = revisions_of(view.report)
        checked = {
            (target.name, revision)
            for target in view.report.targets
            for revision, part in target.revisions.items()
            if part.outcome is Outcome.CHECKED
        }
        names = [target.name for target in view.report.targets]
        keys = [(name, revision) for revision in self.asked for name in names if (name, revision) in checked]
        self.columns = tuple(Column(key, self._heading(key)) for key in keys)

    def _heading(self, key: tuple[str, str]) -> str:
        name, revision = key
        return f"{revision} {cut(name, _SHORT_NAME)}" if self.view.several else revision

    @cached_property
    def all_lines(self) -> Mapping[tuple[str, str], Line]:
        """Every capability that any column has a verdict on, by side and id, in the register's order."""
        cells: dict[tuple[str, str], dict[tuple[str, str], Item]] = {}
        paths: dict[tuple[str, str], str] = {}
        for item in self.view.items:
            if item.verdict is not None:
                key = (item.side, item.id)
                cells.setdefault(key, {})[item.target, item.revision] = item
                paths[key] = item.path
        order = {row.id: index for index, row in enumerate(register().rows)}
        keys = sorted(cells, key=lambda key: (key[0] != "server", order.get(key[1], len(order)), key[1]))
        return {key: Line(key[1], paths[key], cells[key]) for key in keys}

    @cached_property
    def _folds(self) -> Mapping[Verdict, tuple[Line, ...]]:
        """What a line of text tells better than rows: absent everywhere; never seen asking anything of its client."""
        folds: dict[Verdict, list[Line]] = {}
        for (side, _), line in self.all_lines.items():
            verdicts = {item.verdict for item in line.cells.values()}
            if verdicts == {Verdict.ABSENT}:
                folds.setdefault(Verdict.ABSENT, []).append(line)
            elif side == "client" and verdicts <= {Verdict.ABSENT, Verdict.NOT_OBSERVABLE}:
                folds.setdefault(Verdict.NOT_OBSERVABLE, []).append(line)
        return {verdict: tuple(lines) for verdict, lines in folds.items()}

    def lines(self, side: str) -> tuple[Line, ...]:
        """The capabilities of one side that are not folded into a line of text."""
        hidden = {id(line) for lines in self._folds.values() for line in lines}
        return tuple(line for key, line in self.all_lines.items() if key[0] == side and id(line) not in hidden)

    @cached_property
    def sides(self) -> tuple[str, ...]:
        """The sides that have lines, the server's first."""
        return tuple(side for side in dict.fromkeys(key[0] for key in self.all_lines) if self.lines(side))

    @property
    def several_sides(self) -> bool:
        """Whether the sides must be told apart."""
        return len(self.sides) > 1

    @cached_property
    def path_width(self) -> int:
        """Characters of the longest path that is shown."""
        return max((len(line.path) for side in self.sides for line in self.lines(side)), default=10)

    @cached_property
    def id_width(self) -> int:
        """Characters of the longest id that is shown."""
        return max((len(line.id) for side in self.sides for line in self.lines(side)), default=6)

    @cached_property
    def folded(self) -> tuple[str, ...]:
        """A line of text for each kind of capability that has no row."""
        one = "".join(f"in {revision}" for revision in self.asked) if len(self.asked) == 1 else ""
        texts: list[str] = []
        for kind, lines in self._folds.items():
            who, what, where = _FOLDS[kind]
            count = plural(len(lines), f"{who}capability", f"{who}capabilities")
            texts.append(f"{count} {what} {one or where}: {', '.join(condense(line.path for line in lines))}")
        return tuple(texts)

    @cached_property
    def legend(self) -> tuple[str, ...]:
        """What the marks mean that are not words, as far as they occur."""
        shown = [line for side in self.sides for line in self.lines(side)]
        verdicts = {item.verdict for line in shown for item in line.cells.values()}
        known = any(item.suppressed for line in shown for item in line.cells.values())
        gaps = any(column.key not in line.cells for line in shown for column in self.columns)
        texts = (
            ("- absent: neither declared nor served", Verdict.ABSENT in verdicts),
            ("· not defined in that revision", gaps),
            ("? not seen: nothing on the wire could decide it", Verdict.NOT_OBSERVABLE in verdicts),
            ("* known: the baseline suppresses it", known),
        )
        return tuple(text for text, wanted in texts if wanted)
