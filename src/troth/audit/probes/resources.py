"""CAP-16 `resources`: lists, templates and reading answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.audit.context import INVALID_PARAMS, mapping, told
from troth.audit.model import Severity, Verdict
from troth.audit.probes.families import broken, dropped, refused_rightly, undeclared
from troth.audit.probes.provoke import fetch
from troth.audit.shapes import problem

if TYPE_CHECKING:
    from troth.audit.context import Context, Listing

ROW = "CAP-16"
ABSENT_URI = "troth-absent://resource"
"""A URI that no server has."""
NOT_FOUND = -32002
"""The legacy code for a resource that does not exist. Source: 2025-11-25/server/resources."""


async def probe(ctx: Context) -> None:
    """Lists resources and templates, and reads the first resource."""
    listing, templates = ctx.lists["resources/list"], ctx.lists["resources/templates/list"]
    if not ctx.declares(ROW):
        first = next((found for found in (listing, templates) if found.reply.ok), listing)
        undeclared(ctx, ROW, first.method, first.reply)
    elif not listing.served:
        broken(ctx, ROW, "resources/list", listing.reply, listing.problem)
    elif listing.dropped or templates.dropped:
        dropped(ctx, ROW, listing if listing.dropped else templates)
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


async def _unknown(ctx: Context) -> None:
    """A resource that does not exist has its own code in each era."""
    got = await ctx.call("resources/read", {"uri": ABSENT_URI})
    due = INVALID_PARAMS if ctx.modern else NOT_FOUND
    if got.refused and not refused_rightly(got) and got.code != due:
        ctx.finding(
            "resources.not-found-code",
            f"An unknown resource is refused with {told(got)}; {due} is due.",
            got,
            rows=(ROW,),
        )


async def _read(ctx: Context, listing: Listing) -> None:
    await _unknown(ctx)
    uri = listing.items[0]["uri"]
    called = await fetch(ctx, uri, "resources/read", {"uri": uri})
    got = called.reply
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
    elif got.refused and called.questioned:
        message = f"{len(listing.items)} resources are listed; the first asks its client, and is not read without."
        ctx.judge(ROW, Verdict.KEPT, message, listing.reply, got)
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
