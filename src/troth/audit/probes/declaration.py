"""The declaration itself: members of the wrong type, of other revisions, of the other side, of nobody."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from troth.audit.model import Severity, Verdict
from troth.capabilities import ProblemKind
from troth.register import Side, register

if TYPE_CHECKING:
    from troth.audit.context import Context
    from troth.capabilities import Problem

VERDICTS = {
    ProblemKind.MALFORMED: Verdict.MALFORMED,
    ProblemKind.NOT_IN_REVISION: Verdict.LEAKED,
    ProblemKind.UNKNOWN: Verdict.LEAKED,
}
ASKED = frozenset({Verdict.KEPT, Verdict.UNGATED})
"""Verdicts on a row of the client that say: the server asked for it."""
MEMBER = re.compile(r"(?P<parent>[^\[]+?)(?:\.[^.\[]+|\[.*\])", re.DOTALL)
"""A path with a parent: its last member by a dot, or in brackets where its name is no plain word."""
FORBIDDEN = frozenset({"CAP-21"})
"""Rows whose leak breaks a MUST NOT: core tasks beside the extension. Source: SEP-2663."""


async def probe(ctx: Context) -> None:
    """Turns each problem of the declaration into a verdict on its row, or into a finding where it has none."""
    for problem in ctx.declared.problems:
        row_id = problem.row_id or _parent(problem)
        if row_id is not None:
            severity = Severity.ERROR if ctx.modern and row_id in FORBIDDEN else None
            ctx.judge(row_id, VERDICTS[problem.kind], problem.message, ctx.full.opening, severity=severity)
        else:
            _rowless(ctx, problem)


def deprecated(ctx: Context) -> None:
    """Says once which capabilities in use are on their way out; they work until they are removed."""
    for row in register().rows:
        definition = row.at(ctx.revision)
        if definition is None or definition.deprecated is None or not definition.outdated:
            continue
        judged = ctx.rows.get(row.id)
        used = ctx.declares(row.id) if row.side is Side.SERVER else judged is not None and judged.verdict in ASKED
        if used:
            by = definition.deprecated.proposal or definition.deprecated.since
            message = f"`{row.path}` is deprecated in {ctx.revision} ({by}); it still works."
            ctx.finding(
                "declaration.deprecated",
                message,
                *(judged.evidence if judged is not None else ()),
                rows=(row.id,),
                source=definition.source or "",
            )


def _parent(problem: Problem) -> str | None:
    """The row in whose object a stranger stands: strict hosts refuse the object for a member they do not know."""
    inside = MEMBER.fullmatch(problem.path)
    rows = register().path(inside["parent"], Side.SERVER) if inside else ()
    return rows[0].id if rows else None


def _rowless(ctx: Context, problem: Problem) -> None:
    """An unknown top-level member is legal, since capabilities are an open set; an unreadable object is not."""
    code = "declaration.unknown" if problem.kind is ProblemKind.UNKNOWN else "declaration.malformed"
    ctx.finding(code, problem.message, ctx.full.opening)
