"""CAP-12 `logging`.

Legacy: `logging/setLevel` and messages on the session. Modern: messages only on the stream of a request that set
`logLevel`, judged by the same call three times: without a level, with `debug`, with `emergency`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from troth.audit.context import mapping, told
from troth.audit.model import Severity, Verdict
from troth.audit.probes.families import broken, undeclared
from troth.audit.probes.provoke import call_tool, callable_tools, left_out
from troth.audit.probes.tools import ABSENT_TOOL
from troth.audit.shapes import problem
from troth.audit.wire.dialect import LOG_LEVEL

if TYPE_CHECKING:
    from troth.audit.context import Context
    from troth.audit.model import Frame
    from troth.audit.wire.types import Reply

ROW = "CAP-12"
MESSAGE = "notifications/message"
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""From the least to the most serious. Source: LoggingLevel of every schema."""
HINT = "Name a tool that logs with --change-tool."
CALLS = 4
"""So many calls are repeated to see whether levels are respected."""


async def start(ctx: Context) -> None:
    """Asks for every message (legacy), before anything is called."""
    bad = await ctx.call("logging/setLevel", {"level": "troth-no-such-level"})
    ctx.logging = await ctx.call("logging/setLevel", {"level": "debug"})
    if ctx.logging.ok and not ctx.modern and bad.ok:
        ctx.finding(
            "logging.bad-level-accepted",
            "`logging/setLevel` accepts a level that does not exist; it should be refused with -32602.",
            bad,
            rows=(ROW,),
        )


async def probe(ctx: Context) -> None:
    """Judges levels and messages."""
    if ctx.modern:
        await _modern(ctx)
    else:
        await _legacy(ctx)


async def _legacy(ctx: Context) -> None:
    reply, messages = cast("Reply", ctx.logging), ctx.notifications(MESSAGE)
    if not ctx.declares(ROW):
        if messages:
            ctx.judge(
                ROW,
                Verdict.UNDECLARED,
                "Log messages are sent, and `logging` is not declared.",
                *messages[:2],
                hint="Declare `logging`: a server that sends messages must.",
                severity=Severity.ERROR,
            )
        else:
            undeclared(ctx, ROW, "logging/setLevel", reply)
        return
    wrong = problem("logging/setLevel", reply.result) if reply.ok else ""
    if (not reply.ok or wrong) and messages:
        what = wrong or told(reply)
        ctx.judge(ROW, Verdict.PARTIAL, f"Messages are sent, and `logging/setLevel` does not work: {what}.", reply)
    elif not reply.ok or wrong:
        broken(ctx, ROW, "logging/setLevel", reply, wrong)
    elif not messages:
        hint = HINT + left_out(ctx)
        message = "Levels are accepted; nothing was logged while watched."
        ctx.judge(ROW, Verdict.NOT_OBSERVABLE, message, reply, hint=hint)
    else:
        await _level_respected(ctx, reply, messages)


async def _level_respected(ctx: Context, reply: Reply, messages: tuple[Frame, ...]) -> None:
    """Sets the highest level and does again what logged before."""
    session = await ctx.alive()
    await session.settle()
    await session.call("logging/setLevel", {"level": LEVELS[-1]})
    mark = session.mark()
    for name, arguments in _calls(ctx):
        await call_tool(session, name, arguments)
    await session.settle()
    low = tuple(frame for frame in session.since(mark, MESSAGE) if _level(frame) != LEVELS[-1])
    await session.call("logging/setLevel", {"level": LEVELS[0]})
    if low:
        ctx.judge(ROW, Verdict.PARTIAL, f"Messages below the level {LEVELS[-1]!r} that was set are sent.", *low[:2])
    else:
        ctx.judge(ROW, Verdict.KEPT, "Levels are accepted and messages arrive.", reply, *messages[:2])


async def _modern(ctx: Context) -> None:
    if cast("Reply", ctx.logging).ok:
        ctx.finding(
            "method.removed-served",
            "`logging/setLevel` is answered; this revision sets the level per request.",
            ctx.logging,
            rows=(ROW,),
        )
    session = await ctx.alive()
    await session.settle()
    unasked = ctx.notifications(MESSAGE)
    heard: dict[str, tuple[Frame, ...]] = {}
    for level in (LEVELS[0], LEVELS[-1]):
        mark = session.mark()
        for name, arguments in _calls(ctx):
            await call_tool(session, name, arguments, meta={LOG_LEVEL: level})
        await session.settle()
        heard[level] = session.since(mark, MESSAGE)
    low = tuple(frame for frame in heard[LEVELS[-1]] if _level(frame) != LEVELS[-1])
    everything = heard[LEVELS[0]]
    if unasked:
        ctx.judge(
            ROW,
            Verdict.UNGATED,
            "Log messages are sent for requests that set no `logLevel`.",
            *unasked[:2],
            hint="Send messages only for requests whose `_meta` sets a level.",
        )
    elif everything and not ctx.declares(ROW):
        ctx.judge(
            ROW,
            Verdict.UNDECLARED,
            "Log messages are sent, and `logging` is not declared.",
            *everything[:2],
            hint="Declare `logging`: a server that sends messages must.",
            severity=Severity.ERROR,
        )
    elif not ctx.declares(ROW):
        ctx.judge(ROW, Verdict.ABSENT, "Not declared, and nothing is logged.")
    elif low:
        ctx.judge(ROW, Verdict.PARTIAL, f"Messages below the level {LEVELS[-1]!r} of the request are sent.", *low[:2])
    elif everything:
        ctx.judge(ROW, Verdict.KEPT, "Messages arrive where a level is set, and only there.", *everything[:2])
    else:
        hint = HINT + left_out(ctx)
        ctx.judge(ROW, Verdict.NOT_OBSERVABLE, "Declared; no call that was made logged anything.", hint=hint)


def _calls(ctx: Context) -> list[tuple[str, dict[str, object]]]:
    """What is called to see log messages: the tool that does not exist, and a few that may be called."""
    ready = [(name, dict(arguments)) for name, arguments in callable_tools(ctx).items()]
    return [(ABSENT_TOOL, {}), *ready[:CALLS]]


def _level(frame: Frame) -> object:
    return mapping(mapping(frame.message).get("params")).get("level")
