"""What tools, prompts, resources and completions have in common: a declared family answers, another one refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.audit.context import METHOD_NOT_FOUND, told
from troth.audit.model import Verdict

if TYPE_CHECKING:
    from troth.audit.context import Context, Listing
    from troth.audit.wire.types import Reply


def refused_rightly(reply: Reply) -> bool:
    """Whether a request was refused with the code that says: there is no such method here (gap G-14)."""
    return reply.code == METHOD_NOT_FOUND


def undeclared(ctx: Context, row_id: str, method: str, reply: Reply, *, served: bool | None = None) -> None:
    """Judges a method of a family that is not declared: served, refused, or refused with the wrong code.

    Args:
        ctx: Where the verdict goes.
        row_id: The row.
        method: The method asked.
        reply: What came.
        served: Whether ``reply`` shows that the method is served, where a result alone does not decide it.
    """
    if served if served is not None else reply.ok:
        ctx.judge(
            row_id,
            Verdict.UNDECLARED,
            f"`{method}` is answered, and the capability is not declared.",
            reply,
            hint="Declare it, or refuse the method with -32601: hosts only use what is declared.",
        )
    elif refused_rightly(reply):
        ctx.judge(row_id, Verdict.ABSENT, f"Not declared; `{method}` is refused with -32601.", reply)
    else:
        ctx.judge(
            row_id,
            Verdict.WRONG_CODE,
            f"Not declared; `{method}` is refused with {told(reply)} in place of -32601.",
            reply,
            hint="Answer a method that is not offered with -32601, so that hosts can tell it from a bad call.",
        )


def dropped(ctx: Context, row_id: str, listing: Listing) -> None:
    """Judges a declared family whose list breaks off after its first page."""
    ctx.judge(
        row_id,
        Verdict.PARTIAL,
        f"The list breaks off: {listing.dropped}.",
        *listing.replies[-2:],
        hint="Accept every cursor that was handed out.",
    )


def broken(ctx: Context, row_id: str, method: str, reply: Reply, problem: str = "") -> None:
    """Judges a declared family whose main method does not deliver."""
    what = f"its answer delivers nothing: {problem}" if problem else f"it gets {told(reply)}"
    ctx.judge(
        row_id,
        Verdict.BROKEN,
        f"Declared, and `{method}` does not work: {what}.",
        reply,
        hint="Serve the method, or stop declaring the capability.",
    )
