"""CAP-16 `resources`: lists, templates and reading answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.audit.context import mapping, told
from troth.audit.model import Severity, Verdict
from troth.audit.probes.families import broken, refused_rightly, undeclared
from troth.audit.shapes import problem

if TYPE_CHECKING:
    from troth.audit.context import Context, Listing

ROW = "CAP-16"


async def probe(ctx: Context) -> None:
    """Lists resources and templates, and reads the first resource."""
    listing, templates = ctx.lists["resources/list"], ctx.lists["resources/templates/list"]
    if not ctx.declares(ROW):
        first = next((found for found in (listing, templates) if found.reply.ok), listing)
        undeclared(ctx, ROW, first.method, first.reply)
    elif not listing.served:
        broken(ctx, ROW, "resources/list", listing.reply, listing.problem)
    elif not templates.served:
        what = templates.problem or told(templates.reply)
        ctx.judge(
            ROW,
            Verdict.PARTIAL,
            f"Resources are listed, and `resources/templates/list` does not work: {what}.",
            listing.reply,
            templates.reply,
            hint="Answer it with an empty list: strict hosts drop the whole server otherwise.",
        )
    elif listing.items:
        await _read(ctx, listing)
    elif templates.items:
        ctx.judge(ROW, Verdict.KEPT, f"{len(templates.items)} resource templates are listed.", templates.reply)
    else:
        ctx.judge(
            ROW, Verdict.EMPTY, "Declared; no resource and no template is listed.", listing.reply, templates.reply
        )


async def _read(ctx: Context, listing: Listing) -> None:
    uri = listing.items[0]["uri"]
    got = await ctx.call("resources/read", {"uri": uri})
    asks = got.ok and "inputRequests" in mapping(got.result)
    wrong = problem("resources/read", got.result) if got.ok and not asks else ""
    if refused_rightly(got) or got.failure is not None or wrong:
        ctx.judge(
            ROW,
            Verdict.PARTIAL,
            f"Resources are listed, and `resources/read` of the first does not work: {wrong or told(got)}.",
            listing.reply,
            got,
            hint="Serve `resources/read` for every resource that is listed.",
        )
    elif got.refused:
        ctx.judge(
            ROW,
            Verdict.PARTIAL,
            f"Resources are listed, and the first cannot be read: {told(got)}.",
            listing.reply,
            got,
            severity=Severity.WARNING,
        )
    else:
        ctx.judge(
            ROW, Verdict.KEPT, f"{len(listing.items)} resources are listed; the first is read.", listing.reply, got
        )
