"""CAP-26: the extension `io.modelcontextprotocol/tasks` of the modern era."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from troth.audit.context import INVALID_PARAMS, mapping, told
from troth.audit.model import Verdict
from troth.audit.probes.families import broken, refused_rightly, undeclared
from troth.audit.probes.provoke import callable_tools
from troth.audit.probes.tasks_core import ABSENT_TASK, HINT
from troth.audit.wire.dialect import TASKS_EXTENSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.audit.context import Context
    from troth.audit.wire.types import Reply

ROW = "CAP-26-server"
NOTIFICATION = "notifications/tasks"
MISSING = -32021
REMOVED = ("tasks/list", "tasks/result")
WITHOUT: Mapping[str, Any] = {}


async def probe(ctx: Context) -> None:
    """Asks for a task that does not exist, with and without the client's key, and looks at what calls handed out."""
    if not ctx.defines(ROW):
        return
    got = await ctx.call("tasks/get", {"taskId": ABSENT_TASK})
    handed = [called.reply for called in ctx.calls if _is_task(called.reply)]
    if not ctx.declares(ROW):
        sent = ctx.notifications(NOTIFICATION)
        if sent:
            ctx.judge(ROW, Verdict.UNDECLARED, f"`{NOTIFICATION}` is sent, and the key is not declared.", *sent[:2])
        elif handed:
            ctx.judge(ROW, Verdict.UNDECLARED, "A call is answered with a task, and the key is not declared.", *handed)
        else:
            undeclared(ctx, ROW, "tasks/get", got, served=got.ok or _knows(ctx, got))
        return
    for method in REMOVED:
        reply = await ctx.call(method, {"taskId": ABSENT_TASK} if method != "tasks/list" else None)
        if not refused_rightly(reply):
            ctx.finding(
                "method.removed-served",
                f"`{method}` gets {told(reply)}; the extension does not have it (-32601).",
                reply,
                rows=(ROW,),
            )
    if refused_rightly(got) or got.failure is not None:
        broken(ctx, ROW, "tasks/get", got)
        return
    await _without_key(ctx)
    if got.code == INVALID_PARAMS:
        if handed:
            message = "Task methods are served, and a call was answered with a task."
            ctx.judge(ROW, Verdict.KEPT, message, got, *handed[:1])
        else:
            message = "Task methods are served; no call that was made became a task."
            ctx.judge(ROW, Verdict.NOT_OBSERVABLE, message, got, hint=HINT)
    else:
        ctx.judge(ROW, Verdict.PARTIAL, f"`tasks/get` of an unknown task gets {told(got)}, not -32602.", got)


def _is_task(reply: Reply) -> bool:
    return mapping(reply.result).get("resultType") == "task"


def _knows(ctx: Context, reply: Reply) -> bool:
    """Whether a refusal shows a handler: -32602 from a server that refuses unknown methods otherwise."""
    unknown = ctx.unknown.code if ctx.unknown is not None else None
    return reply.code == INVALID_PARAMS and unknown != INVALID_PARAMS


async def _without_key(ctx: Context) -> None:
    """A request that does not declare the key gets no task, and no task method."""
    got = await ctx.call("tasks/get", {"taskId": ABSENT_TASK}, capabilities=WITHOUT)
    wanted = mapping(mapping(got.data).get("requiredCapabilities")).get("extensions")
    if got.code != MISSING:
        ctx.judge(
            ROW,
            Verdict.WRONG_CODE,
            f"`tasks/get` from a client without the key gets {told(got)}, not -32021.",
            got,
        )
    elif TASKS_EXTENSION not in mapping(wanted):
        ctx.finding(
            "modern.required-capabilities",
            "Error -32021 does not name the tasks extension in `data.requiredCapabilities`.",
            got,
            rows=(ROW,),
        )
    ready = callable_tools(ctx)
    for called in [called for called in ctx.calls if _is_task(called.reply)][:2]:
        plain = await ctx.call(
            "tools/call",
            {"name": called.name, "arguments": dict(ready.get(called.name, {}))},
            capabilities=WITHOUT,
        )
        if _is_task(plain):
            ctx.judge(ROW, Verdict.UNGATED, f"`{called.name}` hands a task to a client without the key.", plain)
