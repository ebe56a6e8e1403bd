"""What differs for a client that declares nothing: lists, caches, tasks of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from troth.audit.context import mapping
from troth.audit.model import Verdict
from troth.audit.probes.list_changed import KINDS
from troth.audit.probes.lists import read
from troth.audit.probes.subscribe import ROW as SUBSCRIBE
from troth.audit.probes.subscribe import UPDATED
from troth.audit.probes.tasks_core import LIST

if TYPE_CHECKING:
    from troth.audit.context import Context
    from troth.audit.wire.session import Session


async def probe(ctx: Context) -> None:
    """Reads the lists as a client that declares nothing, and compares."""
    if ctx.none is None or ctx.none.dead:
        return
    await compare_lists(ctx, ctx.none)
    _unasked(ctx, ctx.none)
    updates = ctx.none.since(0, UPDATED)
    if updates:
        verdict = Verdict.UNGATED if ctx.declares(SUBSCRIBE) else Verdict.UNDECLARED
        ctx.judge(SUBSCRIBE, verdict, "Updates are sent to a client that subscribed to nothing.", *updates[:2])
    if ctx.made_tasks:
        await _foreign_tasks(ctx, ctx.none)


def _unasked(ctx: Context, none: Session) -> None:
    """On modern nothing is announced to a client whose only listen asks for nothing."""
    for kind in KINDS if ctx.modern else ():
        seen = none.since(0, kind.notification)
        if seen:
            message = f"`{kind.notification}` is sent to a client that did not ask for it."
            ctx.judge(kind.row, Verdict.UNGATED, message, *seen[:2])


async def compare_lists(ctx: Context, none: Session) -> None:
    """Lists may depend on what a client declares, if they say so to caches (gap G-13)."""
    for method, full in ctx.lists.items():
        latest = ctx.later.get(method, full)
        if not latest.served or none.dead:
            continue
        listing = await read(none, method)
        member = "uri" if method == "resources/list" else "uriTemplate" if "templates" in method else "name"
        if not listing.served or sorted(listing.names(member)) == sorted(latest.names(member)):
            continue
        if not ctx.modern or full.names(member) != latest.names(member):
            # A list that changed under the audit tells nothing of clients.
            continue
        # The same declaration on the other connection tells whether the declaration makes the difference. Both are
        # read once more, since others may change a list between two readings.
        same = await read(await ctx.alive(), method, capabilities=none.capabilities)
        mine, theirs = await read(await ctx.alive(), method), await read(none, method)
        if sorted(mine.names(member)) != sorted(latest.names(member)):
            continue
        if sorted(theirs.names(member)) != sorted(listing.names(member)):
            continue
        if same.served and sorted(same.names(member)) != sorted(listing.names(member)):
            ctx.finding(
                "cache.varies-by-connection",
                f"`{method}` differs between two connections with the same declaration.",
                listing.reply,
                same.reply,
            )
        elif "public" in (mapping(reply.result).get("cacheScope") for reply in (latest.reply, listing.reply)):
            ctx.finding(
                "cache.public-varies",
                f"`{method}` depends on the client's capabilities and says `cacheScope: public`.",
                latest.reply,
                listing.reply,
                hint="Answer such lists with `cacheScope: private`.",
            )


async def _foreign_tasks(ctx: Context, none: Session) -> None:
    reply = await none.call("tasks/list")
    listed = mapping(reply.result).get("tasks")
    entries = cast("list[object]", listed) if isinstance(listed, list) else []
    if any(mapping(task).get("taskId") in [*ctx.made_tasks] for task in entries):
        message = "`tasks/list` shows a session the tasks of another session."
        ctx.finding("tasks.not-isolated", message, reply, rows=(LIST,))
        ctx.judge(LIST, Verdict.BROKEN, message, reply)
