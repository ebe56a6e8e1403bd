"""The table of verdicts: rows are capabilities, columns the revisions of each target."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from troth.audit.model import Outcome, Verdict
from troth.audit.report.clean import cut
from troth.audit.report.common import revisions_of
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
    def _absent(self) -> tuple[Line, ...]:
        return tuple(
            line
            for line in self.all_lines.values()
            if all(item.verdict is Verdict.ABSENT for item in line.cells.values())
        )

    def lines(self, side: str) -> tuple[Line, ...]:
        """The capabilities of one side that are not absent everywhere."""
        hidden = {id(line) for line in self._absent}
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
    def folded(self) -> tuple[str, ...]:
        """One line about what is absent everywhere, if anything is."""
        if not self._absent:
            return ()
        count = len(self._absent)
        word = "capability" if count == 1 else "capabilities"
        where = "in every revision" if len(self.asked) > 1 else "".join(f"in {revision}" for revision in self.asked)
        return (f"{count} {word} absent {where}: {', '.join(self._absent_paths())}",)

    def _absent_paths(self) -> list[str]:
        """Paths absent everywhere; what lies below another of them is only counted there."""
        paths = list(dict.fromkeys(line.path for line in self._absent))
        below: dict[str, int] = {}
        for path in sorted(paths):
            parent = next((top for top in below if path.startswith((f"{top}.", f"{top}["))), path)
            below[parent] = below.get(parent, 0) + 1
        return [f"{path} (and {below[path] - 1} in it)" if below[path] > 1 else path for path in paths if path in below]

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
