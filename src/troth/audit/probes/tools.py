"""CAP-19 `tools`: `tools/list` and `tools/call` answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.audit.context import INVALID_PARAMS, mapping, told
from troth.audit.model import Verdict
from troth.audit.probes.families import broken, dropped, refused_rightly, undeclared
from troth.audit.shapes import problem

if TYPE_CHECKING:
    from troth.audit.context import Context
    from troth.audit.wire.types import Reply

ROW = "CAP-19"
ABSENT_TOOL = "troth_absent_tool"
"""A name that no server has. Calling it is free of effects and still tells whether calls are looked up."""


async def probe(ctx: Context) -> None:
    """Lists the tools, and calls one that does not exist."""
    listing = ctx.lists["tools/list"]
    call = await ctx.call("tools/call", {"name": ABSENT_TOOL, "arguments": {}})
    if call.ok and not problem("tools/call", call.result) and mapping(call.result).get("isError") is not True:
        ctx.finding("tools.unknown-accepted", "A call of a tool that is not listed gets a result.", call, rows=(ROW,))
    if not ctx.declares(ROW):
        if listing.reply.ok:
            undeclared(ctx, ROW, "tools/list", listing.reply)
        elif _looked_up(ctx, call):
            undeclared(ctx, ROW, "tools/call", call, served=True)
        else:
            undeclared(ctx, ROW, "tools/list", listing.reply)
        return
    if not listing.served:
        broken(ctx, ROW, "tools/list", listing.reply, listing.problem)
    elif call.failure is not None:
        ctx.judge(
            ROW,
            Verdict.PARTIAL,
            f"Tools are listed, and `tools/call` with an unknown name gets no answer: {told(call)}.",
            call,
            hint="Answer an unknown tool with -32602.",
        )
    elif refused_rightly(call):
        _call_refused(ctx, call)
    elif listing.dropped:
        dropped(ctx, ROW, listing)
    elif not listing.items:
        ctx.judge(ROW, Verdict.EMPTY, "Declared, and the list is empty.", listing.reply)
    else:
        ctx.judge(
            ROW, Verdict.KEPT, f"{len(listing.items)} tools are listed; calls are looked up.", listing.reply, call
        )


def _looked_up(ctx: Context, call: Reply) -> bool:
    """Whether the answer shows a handler for `tools/call`: it differs from the answer to any unknown method."""
    if call.ok:
        return not problem("tools/call", call.result) or mapping(call.result).get("isError") is True
    if call.code is None or refused_rightly(call):
        return False
    return call.code == INVALID_PARAMS and ctx.unknown is not None and ctx.unknown.code != call.code


def _call_refused(ctx: Context, call: Reply) -> None:
    worked = next((made.reply for made in ctx.calls if made.reply.ok), None)
    if worked is not None:
        ctx.judge(
            ROW,
            Verdict.WRONG_CODE,
            "Tools work, and an unknown tool is refused with -32601, which says that there is no `tools/call`.",
            call,
            worked,
            hint="Refuse an unknown tool with -32602.",
        )
        return
    ctx.judge(
        ROW,
        Verdict.PARTIAL,
        "Tools are listed, and `tools/call` is refused with -32601.",
        call,
        hint="Serve `tools/call`; an unknown tool is -32602.",
    )
