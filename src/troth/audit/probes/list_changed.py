"""CAP-15, CAP-18, CAP-20: a changed list of prompts, resources or tools is announced, if and only if declared.

Provoked where the user names a way; otherwise the lists themselves tell: one that changed without a word is a promise
broken, one that did not change proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from troth.audit.context import mapping, told
from troth.audit.model import Verdict
from troth.audit.probes.lists import read
from troth.audit.wire.dialect import SUBSCRIPTION_ID

if TYPE_CHECKING:
    from troth.audit.context import Context
    from troth.audit.model import Frame
    from troth.audit.wire.session import Listen
    from troth.audit.wire.types import Reply

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
UNSAID = "The list changed ({}), and nothing announced it."
NAMED = 5
"""So many names that came or went are told."""
HINT = "Name a tool that changes the list with --change-tool, or a command with --touch."


@dataclass(frozen=True, slots=True)
class _Kind:
    row: str
    notification: str
    filter: str
    lists: tuple[tuple[str, str], ...]


KINDS = (
    _Kind("CAP-20", "notifications/tools/list_changed", "toolsListChanged", (("tools/list", "name"),)),
    _Kind("CAP-15", "notifications/prompts/list_changed", "promptsListChanged", (("prompts/list", "name"),)),
    _Kind(
        "CAP-18",
        "notifications/resources/list_changed",
        "resourcesListChanged",
        (("resources/list", "uri"), ("resources/templates/list", "uriTemplate")),
    ),
)


async def start(ctx: Context) -> None:
    """Reads the lists once more where changes are heard on a listen stream only: what changed before is no fault."""
    if ctx.listen is None or ctx.listen.acknowledged is None:
        return
    for kind in KINDS:
        for method, _ in kind.lists if ctx.declares(kind.row) else ():
            if ctx.lists[method].served:
                ctx.watched[method] = await read(await ctx.alive(), method)


async def probe(ctx: Context) -> None:
    """Judges the three flags by what was seen in the whole conversation."""
    late = [kind for kind in KINDS if changed(ctx, kind) and not ctx.notifications(kind.notification)]
    if late:
        # The list may be ahead of its announcement.
        session = await ctx.alive()
        await session.settle()
        promised = [kind.notification for kind in late if ctx.declares(kind.row)]
        await session.wait_for(lambda: all(map(ctx.notifications, promised)), ctx.options.limits.settle * 10)
    if ctx.listen is not None:
        _acknowledged_first(ctx, ctx.listen)
    for kind in KINDS:
        seen = ctx.notifications(kind.notification)
        if ctx.modern:
            _modern(ctx, kind, seen)
        else:
            _legacy(ctx, kind, seen)


def _acknowledged_first(ctx: Context, listen: Listen) -> None:
    """The first message of a listen stream is its acknowledgement."""
    tagged = [frame for session in ctx.sessions for frame in session.since(0) if tag(frame) == listen.id]
    if tagged and mapping(tagged[0].message).get("method") != ACKNOWLEDGED:
        ctx.finding("listen.no-acknowledgement", "A notification comes ahead of the acknowledgement.", *tagged[:2])


def tag(frame: Frame) -> object:
    """The subscription id that a notification carries, as all of a listen stream must (gap G-15); None without one."""
    return mapping(mapping(mapping(frame.message).get("params")).get("_meta")).get(SUBSCRIPTION_ID)


@dataclass(frozen=True, slots=True)
class Change:
    """Two readings of a list that differ in names.

    Attributes:
        words: What came and what went.
        replies: The two readings.
    """

    words: str
    replies: tuple[Reply, ...]


def changed(ctx: Context, kind: _Kind) -> Change | None:
    """How a list differs from what it was at first, if one does."""
    for method, member in kind.lists:
        first, later = ctx.watched.get(method, ctx.lists.get(method)), ctx.later.get(method)
        if first is None or later is None or not (first.served and later.served):
            continue
        before, after = first.names(member), later.names(member)
        if sorted(before) != sorted(after):
            came = [f"+ {name[:60]}" for name in after if name not in before]
            went = [f"- {name[:60]}" for name in before if name not in after]
            words = ", ".join((came + went)[:NAMED]) or "an entry comes more or less often"
            return Change(words, (first.reply, later.reply))
    return None


def _legacy(ctx: Context, kind: _Kind, seen: tuple[Frame, ...]) -> None:
    session = ctx.full
    pair = changed(ctx, kind)
    if not ctx.declares(kind.row):
        if seen:
            ctx.judge(
                kind.row,
                Verdict.UNDECLARED,
                f"`{kind.notification}` is sent, and `listChanged` is not declared.",
                *seen[:2],
                hint="Declare `listChanged: true`: hosts that go by the declaration never look again.",
            )
        else:
            ctx.judge(kind.row, Verdict.ABSENT, "Not declared (false counts as absent), and none is sent.")
    elif seen:
        ctx.judge(kind.row, Verdict.KEPT, f"`{kind.notification}` arrived.", *seen[:2])
    elif pair is not None:
        ctx.judge(kind.row, Verdict.BROKEN, UNSAID.format(pair.words), *pair.replies)
    elif session.link.transport == "http" and session.stream_status != 200 and session.session_id is None:
        ctx.judge(
            kind.row,
            Verdict.BROKEN,
            f"Cannot be delivered: the GET stream is refused (HTTP {session.stream_status}) and there is no session.",
            session.opening,
            hint="Offer a session with a GET stream, or declare `listChanged: false` on this transport.",
        )
    else:
        ctx.judge(kind.row, Verdict.NOT_OBSERVABLE, "Declared; the list did not change while watched.", hint=HINT)


def _modern(ctx: Context, kind: _Kind, seen: tuple[Frame, ...]) -> None:
    listen = ctx.listen
    asked = listen is not None and listen.acknowledged is not None and listen.acknowledged.get(kind.filter) is True
    tagged = tuple(frame for frame in seen if listen is not None and tag(frame) == listen.id)
    loose = tuple(frame for frame in seen if tag(frame) is None)
    if loose and not asked:
        ctx.judge(
            kind.row,
            Verdict.UNGATED,
            f"`{kind.notification}` is sent outside any listen stream that asked for it.",
            *loose[:2],
            hint="Send it only on `subscriptions/listen` streams whose filter asked.",
        )
        return
    if loose:
        ctx.finding(
            "listen.untagged",
            f"`{kind.notification}` comes without the id of its subscription.",
            *loose[:2],
            rows=(kind.row,),
        )
    if not ctx.declares(kind.row):
        if asked or tagged:
            ctx.judge(
                kind.row,
                Verdict.UNDECLARED,
                "A listen stream is acknowledged for it, and `listChanged` is not declared.",
                *(listen.frames if listen else ()),
                *tagged[:1],
            )
        else:
            ctx.judge(kind.row, Verdict.ABSENT, "Not declared (false counts as absent), and not acknowledged.")
        return
    _declared_modern(ctx, kind, seen, asked=asked)


def _declared_modern(ctx: Context, kind: _Kind, seen: tuple[Frame, ...], *, asked: bool) -> None:
    listen = ctx.listen
    frames = tuple(listen.frames) if listen is not None else ()
    pair = changed(ctx, kind)
    if listen is None or listen.acknowledged is None:
        reply = listen.reply if listen is not None else None
        what = told(reply) if reply is not None else "no connection was left to ask on"
        ctx.judge(
            kind.row,
            Verdict.BROKEN,
            f"Declared, and `subscriptions/listen` does not work: {what}.",
            *frames,
            hint="Serve `subscriptions/listen`: it is the only channel for changes in this revision.",
        )
    elif not asked:
        ctx.judge(
            kind.row,
            Verdict.BROKEN,
            f"Declared, and the acknowledgement of the listen stream leaves `{kind.filter}` out.",
            *frames,
        )
    elif seen:
        ctx.judge(kind.row, Verdict.KEPT, f"`{kind.notification}` arrived on the listen stream.", *frames, *seen[:2])
    elif pair is not None:
        ctx.judge(kind.row, Verdict.BROKEN, UNSAID.format(pair.words), *frames, *pair.replies)
    else:
        ctx.judge(
            kind.row,
            Verdict.NOT_OBSERVABLE,
            "Declared and acknowledged; the list did not change while watched.",
            *frames,
            hint=HINT,
        )
