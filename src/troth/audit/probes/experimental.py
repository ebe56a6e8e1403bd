"""CAP-01 `experimental`: the shape is all that can be judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.audit.context import mapping
from troth.audit.model import Verdict

if TYPE_CHECKING:
    from troth.audit.context import Context

ROW = "CAP-01-server"


async def probe(ctx: Context) -> None:
    """Judges the map by its shape; malformed entries are judged with the declaration."""
    if not ctx.declares(ROW):
        ctx.judge(ROW, Verdict.ABSENT, "Not declared.")
        return
    keys = sorted(mapping(ctx.declared.effective.get("experimental")))
    if keys:
        ctx.judge(ROW, Verdict.NOT_OBSERVABLE, f"Well-formed; what {', '.join(keys[:5])} promises is not defined.")
    else:
        ctx.judge(
            ROW, Verdict.EMPTY, "Declared, with nothing in it.", hint="Leave it out: an empty map promises nothing."
        )
