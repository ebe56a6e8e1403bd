"""CAP-14 `prompts`: `prompts/list` and `prompts/get` answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from troth.audit.context import Listing, told
from troth.audit.model import Verdict
from troth.audit.probes.families import broken, dropped, refused_rightly, undeclared
from troth.audit.probes.provoke import fetch
from troth.audit.shapes import problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.audit.context import Context
    from troth.audit.wire.types import Reply

ROW = "CAP-14"
PROMPTS = 5
"""So many prompts are fetched; the rest are taken to be alike."""


async def probe(ctx: Context) -> None:
    """Lists the prompts, and gets the first few."""
    listing = ctx.lists["prompts/list"]
    if not ctx.declares(ROW):
        undeclared(ctx, ROW, "prompts/list", listing.reply)
    elif not listing.served:
        broken(ctx, ROW, "prompts/list", listing.reply, listing.problem)
    elif listing.dropped:
        dropped(ctx, ROW, listing)
    elif not listing.items:
        ctx.judge(ROW, Verdict.EMPTY, "Declared, and the list is empty.", listing.reply)
    else:
        await _get(ctx, listing)


async def _get(ctx: Context, listing: Listing) -> None:
    delivered = refused = None
    for prompt in listing.items[:PROMPTS]:
        filled = arguments(prompt)
        called = await fetch(ctx, prompt["name"], "prompts/get", {"name": prompt["name"], "arguments": filled})
        got = called.reply
        wrong = problem("prompts/get", got.result) if got.ok and not _asks(got.result) else ""
        plain = not prompt.get("arguments") and not called.questioned
        if refused_rightly(got) or got.failure is not None or wrong or (got.refused and plain):
            ctx.judge(
                ROW,
                Verdict.PARTIAL,
                f"Prompts are listed, and `prompts/get` of {prompt['name']!r} does not work: {wrong or told(got)}.",
                listing.reply,
                got,
                hint="Serve `prompts/get` for every prompt that is listed.",
            )
            return
        delivered, refused = (delivered or got, refused) if got.ok else (delivered, got)
    _judge(ctx, listing, delivered, refused)


def _judge(ctx: Context, listing: Listing, delivered: Reply | None, refused: Reply | None) -> None:
    count = len(listing.items)
    if delivered is not None:
        ctx.judge(ROW, Verdict.KEPT, f"{count} prompts are listed, and can be had.", listing.reply, delivered)
    elif refused is not None:
        ctx.judge(
            ROW,
            Verdict.NOT_OBSERVABLE,
            f"{count} prompts are listed; none accepts made-up arguments: {told(refused)}.",
            listing.reply,
            refused,
            hint="List a prompt without arguments.",
        )


def _asks(result: object) -> bool:
    return isinstance(result, dict) and cast("dict[str, Any]", result).get("resultType") == "input_required"


def arguments(prompt: Mapping[str, Any]) -> dict[str, str]:
    """A value for every argument that a prompt requires."""
    found: dict[str, str] = {}
    declared = prompt.get("arguments")
    for argument in cast("list[Any]", declared) if isinstance(declared, list) else []:
        if isinstance(argument, dict):
            entry = cast("dict[str, Any]", argument)
            if entry.get("required") is True and isinstance(entry.get("name"), str):
                found[entry["name"]] = "probe"
    return found
