"""CAP-17 `resources.subscribe`: updates of a single resource.

Legacy: by `resources/subscribe`. Modern: the flag is kept and redefined as `resourceSubscriptions` of a listen
stream, and the request is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from troth.audit.context import mapping, told
from troth.audit.model import Severity, Verdict
from troth.audit.probes.families import broken, refused_rightly, undeclared
from troth.audit.probes.list_changed import KINDS, tag
from troth.audit.probes.resources import ABSENT_URI

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.audit.context import Context
    from troth.audit.model import Frame
    from troth.audit.wire.types import Reply

ROW = "CAP-17"
UPDATED = "notifications/resources/updated"
OTHERS = 4
"""Further resources that are tried where the first takes no subscription."""
HINT = "Name a tool that changes the first resource with --change-tool, or a command with --touch."


class Tried(NamedTuple):
    """What became of one subscription.

    Attributes:
        taken: Whether it stands.
        others: Whether another resource may be answered otherwise.
        proof: What was exchanged.
    """

    taken: bool
    others: bool
    proof: tuple[Reply | Frame, ...]


async def start(ctx: Context) -> None:
    """Subscribes to a resource before anything is provoked. What counts is whether updates come (gap G-16).

    That is the first resource, unless it is refused and another one is not: a server that stands for several offers
    what some of them offer, and not for the resources of the others.
    """
    listed = ctx.lists["resources/list"].names("uri")
    declared = ctx.declares(ROW)
    uris = (_candidates(listed) if declared else listed[:1]) or (ABSENT_URI,)
    subscribe = _listened if ctx.modern else _subscribed
    refused: list[Tried] = []
    for uri in uris:
        tried = await subscribe(ctx, uri)
        if tried.taken:
            ctx.subscribed = uri
        if tried.taken or not tried.others:
            break
        refused.append(tried)
    if ctx.subscribed is None:
        ctx.subscribed = uris[0]
        if ctx.modern and len(refused) > 1:
            await _listened(ctx, uris[0])
    elif refused:
        names = ", ".join(repr(uri) for uri in uris[: len(refused)])
        evidence = [one for tried in refused for one in tried.proof]
        ctx.finding("resources.not-watchable", f"Declared, and refused for {names}.", *evidence, rows=(ROW,))
    if ctx.modern:
        ctx.subscription = await ctx.call("resources/subscribe", {"uri": ctx.subscribed})
    ctx.before = await ctx.call("resources/read", {"uri": ctx.subscribed}) if listed and declared else None


def _candidates(listed: tuple[str, ...]) -> tuple[str, ...]:
    """The first resource, and a few others: those first that begin otherwise, as those of another server do."""
    firsts = {"/".join(uri.split("/")[:3]): uri for uri in reversed(listed)}
    others = [uri for uri in listed if uri in firsts.values()]
    return tuple(dict.fromkeys((*others, *listed)))[: 1 + OTHERS]


async def _subscribed(ctx: Context, uri: str) -> Tried:
    """Subscribes in the way of the legacy revisions. The first reply is kept unless a later one is better."""
    reply = await ctx.call("resources/subscribe", {"uri": uri})
    if ctx.subscription is None or reply.ok:
        ctx.subscription = reply
    return Tried(reply.ok, reply.refused and not refused_rightly(reply), (reply,))


async def _listened(ctx: Context, uri: str) -> Tried:
    """Opens a listen for a resource, in the place of one whose acknowledgement left another one out."""
    session = await ctx.alive()
    if ctx.listen is not None:
        await session.close_listen(ctx.listen)
    filters: dict[str, object] = {kind.filter: True for kind in KINDS}
    filters["resourceSubscriptions"] = list(dict.fromkeys((uri, ABSENT_URI)))
    ctx.listen = await session.listen(filters)
    acknowledged = ctx.listen.acknowledged
    taken = acknowledged is not None and uri in _honoured(acknowledged)
    return Tried(taken, acknowledged is not None, tuple(ctx.listen.frames))


def _honoured(acknowledged: Mapping[str, object]) -> list[str]:
    """The resources that an acknowledgement names."""
    named = acknowledged.get("resourceSubscriptions")
    return [uri for uri in cast("list[object]", named) if isinstance(uri, str)] if isinstance(named, list) else []


async def probe(ctx: Context) -> None:
    """Judges what became of the subscription."""
    subscription = cast("Reply", ctx.subscription)
    updates = ctx.notifications(UPDATED)
    mine = tuple(frame for frame in updates if _about(frame, cast("str", ctx.subscribed)))
    if ctx.modern:
        await _modern(ctx, subscription, updates, mine)
    else:
        await _legacy(ctx, subscription, updates, mine)


def _about(frame: Frame, uri: str) -> bool:
    """Whether an update is about the subscribed resource, or a part of it."""
    named = mapping(mapping(frame.message).get("params")).get("uri")
    return isinstance(named, str) and (named == uri or named.startswith(uri.rstrip("/") + "/"))


async def _legacy(ctx: Context, reply: Reply, updates: tuple[Frame, ...], mine: tuple[Frame, ...]) -> None:
    if not ctx.declares(ROW):
        _undeclared(ctx, reply, updates)
        return
    if not reply.ok:
        listed = ctx.subscribed != ABSENT_URI
        if listed or refused_rightly(reply) or reply.failure is not None:
            broken(ctx, ROW, "resources/subscribe", reply)
        else:
            hint = "List a resource that can be subscribed to."
            ctx.judge(ROW, Verdict.NOT_OBSERVABLE, f"No resource is listed: {told(reply)}.", reply, hint=hint)
        return
    away = await ctx.call("resources/unsubscribe", {"uri": ctx.subscribed})
    if not away.ok:
        ctx.judge(
            ROW,
            Verdict.PARTIAL,
            f"`resources/subscribe` works, and `resources/unsubscribe` does not: {told(away)}.",
            reply,
            away,
        )
    await _updates(ctx, updates, mine, reply)


async def _updates(ctx: Context, updates: tuple[Frame, ...], mine: tuple[Frame, ...], *proof: Reply | Frame) -> None:
    if mine:
        ctx.judge(ROW, Verdict.KEPT, "The subscribed resource was updated, and it was said.", *proof, *mine[:2])
    elif updates:
        ctx.judge(
            ROW,
            Verdict.BROKEN,
            f"Updates come, and none names the subscribed resource {ctx.subscribed!r}.",
            *proof,
            *updates[:2],
            hint="Name the resource as it is listed.",
        )
    elif (after := await _reread(ctx)) is not None:
        ctx.judge(
            ROW, Verdict.BROKEN, "The subscribed resource changed, and nothing said so.", *proof, ctx.before, after
        )
    else:
        ctx.judge(
            ROW,
            Verdict.NOT_OBSERVABLE,
            "The subscription is accepted; nothing changed while watched.",
            *proof,
            hint=HINT,
        )


async def _reread(ctx: Context) -> Reply | None:
    """The resource's new content, if something was provoked and it differs."""
    options = ctx.options
    provoked = options.active or options.change_tool is not None or options.touch is not None
    if not provoked or ctx.before is None or not ctx.before.ok:
        return None
    after = await ctx.call("resources/read", {"uri": ctx.subscribed})
    same = mapping(after.result).get("contents") == mapping(ctx.before.result).get("contents")
    return None if same or not after.ok else after


def _undeclared(ctx: Context, reply: Reply, updates: tuple[Frame, ...]) -> None:
    if updates:
        ctx.judge(ROW, Verdict.UNDECLARED, "Updates are sent, and `subscribe` is not declared.", *updates[:2])
        return
    if refused_rightly(reply) and ctx.declared.row(ROW).value is False:
        ctx.judge(ROW, Verdict.KEPT, "Declared false, and `resources/subscribe` is refused with -32601.", reply)
        return
    undeclared(ctx, ROW, "resources/subscribe", reply)


async def _modern(ctx: Context, reply: Reply, updates: tuple[Frame, ...], mine: tuple[Frame, ...]) -> None:
    if reply.ok:
        ctx.finding(
            "method.removed-served",
            "`resources/subscribe` is answered; this revision has `subscriptions/listen` in its place.",
            reply,
            rows=(ROW,),
        )
    listen = ctx.listen
    uris = _honoured(listen.acknowledged) if listen and listen.acknowledged else []
    frames = tuple(listen.frames) if listen is not None else ()
    loose = tuple(frame for frame in updates if tag(frame) is None)
    if loose and not uris:
        ctx.judge(ROW, Verdict.UNGATED, f"`{UPDATED}` is sent outside any listen stream.", *loose[:2])
    elif loose:
        ctx.finding(
            "listen.untagged", f"`{UPDATED}` comes without the id of its subscription.", *loose[:2], rows=(ROW,)
        )
    if ABSENT_URI in uris:
        ctx.finding(
            "listen.acknowledged-absent",
            "The acknowledgement names a resource that does not exist.",
            *frames,
            rows=(ROW,),
        )
    if not ctx.declares(ROW):
        if uris:
            ctx.judge(ROW, Verdict.UNDECLARED, "Updates are acknowledged, and `subscribe` is not declared.", *frames)
        elif ctx.declared.row(ROW).value is False:
            ctx.judge(ROW, Verdict.KEPT, "Declared false, and updates are not acknowledged.", *frames)
        else:
            ctx.judge(ROW, Verdict.ABSENT, "Not declared, and not acknowledged.", *frames)
    elif listen is None or listen.acknowledged is None:
        what = told(listen.reply) if listen is not None and listen.reply is not None else "no connection was left"
        ctx.judge(ROW, Verdict.BROKEN, f"Declared, and `subscriptions/listen` does not work: {what}.", *frames)
    elif ctx.subscribed not in uris:
        _left_out(ctx, frames)
    else:
        await _updates(ctx, updates, mine, *frames)


def _left_out(ctx: Context, frames: tuple[Frame, ...]) -> None:
    if ctx.subscribed == ABSENT_URI:
        hint = "List a resource that can be subscribed to."
        ctx.judge(ROW, Verdict.NOT_OBSERVABLE, "Declared; no resource is listed to subscribe to.", *frames, hint=hint)
        return
    ctx.judge(
        ROW,
        Verdict.BROKEN,
        f"Declared, and the acknowledgement leaves out the listed resource {ctx.subscribed!r}.",
        *frames,
        severity=Severity.ERROR,
    )
