"""Reads whole lists, page by page, and the four lists that every other probe leans on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import anyio

from troth.audit.context import Listing, mapping, told
from troth.audit.shapes import foreign_members, missing_members, problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.audit.context import Context
    from troth.audit.wire.session import Session
    from troth.audit.wire.types import Reply

PAGES = 40
"""Most pages read of one list."""
PATIENCE = 3
"""So many times the budget of a method is spent on one list; later pages of a slow one are not asked for."""

KEYS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
"""The lists, and the member that holds their entries."""


async def read(session: Session, method: str, **how: Any) -> Listing:
    """All pages of a list on one session."""
    replies: list[Reply] = []
    items: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    cursor: str | None = None
    until = anyio.current_time() + PATIENCE * session.limits.method
    while True:
        reply = await session.call(method, {"cursor": cursor} if cursor is not None else None, **how)
        replies.append(reply)
        wrong = problem(method, reply.result) if reply.ok else ""
        if not reply.ok or wrong:
            # A later page that fails leaves what came before it, and says so.
            first = len(replies) == 1
            dropped = "" if first else f"page {len(replies)} of `{method}`: {wrong or told(reply)}"
            problem_ = wrong if first else ""
            return Listing(method=method, replies=tuple(replies), items=tuple(items), problem=problem_, dropped=dropped)
        body = mapping(reply.result)
        entries = cast("list[object]", body[KEYS[method]])
        items.extend(mapping(entry) for entry in entries)
        if method == "tools/list":
            session.schemas |= {item["name"]: item["inputSchema"] for item in items}
        following = body.get("nextCursor")
        if not isinstance(following, str) or len(replies) >= PAGES or anyio.current_time() > until:
            return Listing(method=method, replies=tuple(replies), items=tuple(items))
        if following in seen:
            return Listing(method=method, replies=tuple(replies), items=tuple(items), repeats=True)
        seen.add(following)
        cursor = following


async def learn(ctx: Context) -> None:
    """Reads the four lists, declared or not: what is served is seen by asking."""
    for method in KEYS:
        session = await ctx.alive()
        if ctx.none is not None:
            ctx.none.schemas = session.schemas
        listing = await read(session, method)
        ctx.lists[method] = listing
        if listing.repeats:
            ctx.finding("lists.cursor-repeats", f"`{method}` hands out a cursor again.", *listing.replies[-2:])
        lacking = missing_members(method, ctx.era, listing.reply.result) if listing.served else ()
        if lacking:
            ctx.finding(
                "result.members",
                f"The result of `{method}` lacks {', '.join(lacking)}.",
                listing.reply,
                hint="A modern host may refuse such a result.",
            )
        strange = foreign_members(ctx.era, listing.reply.result) if listing.served else ()
        if strange:
            ctx.finding(
                "result.leaked-member",
                f"Results carry {', '.join(strange)}, which this revision does not define.",
                listing.reply,
            )


async def again(ctx: Context) -> None:
    """Reads the served lists once more, to compare them with what they were."""
    for method, first in ctx.lists.items():
        if first.served:
            ctx.later[method] = await read(await ctx.alive(), method)
