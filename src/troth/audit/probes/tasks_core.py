"""CAP-21 to CAP-24: the core tasks of 2025-11-25, and `Tool.execution` elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from troth.audit.context import INVALID_PARAMS, mapping, told
from troth.audit.model import Severity, Verdict
from troth.audit.probes.families import broken, refused_rightly, undeclared
from troth.audit.probes.provoke import callable_tools
from troth.audit.shapes import problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.audit.context import Context
    from troth.audit.wire.types import Reply

ROW, LIST, CANCEL, CALL = "CAP-21", "CAP-22", "CAP-23", "CAP-24"
CONTAINERS = ("CAP-24-requests", "CAP-24-requests-tools")
STATUS = "notifications/tasks/status"
"""Nobody has to send it (gap G-09), so only its presence tells anything."""
ABSENT_TASK = "troth-absent-task"
TTL = 60_000
"""Milliseconds for which a task made by the audit may be kept."""
FINISHED = ("completed", "failed", "cancelled")
POLLS = 20
HINT = "Name the tool with --change-tool, or allow all with --active."


async def probe(ctx: Context) -> None:
    """Asks for tasks in every way that leaves none behind; makes one where a tool may be called."""
    if not ctx.defines(ROW):
        _elsewhere(ctx)
        return
    listed = await ctx.call("tasks/list")
    if not ctx.declares(ROW):
        _undeclared(ctx, listed)
        await _undeclared_call(ctx)
        return
    got = await ctx.call("tasks/get", {"taskId": ABSENT_TASK})
    raw = mapping(ctx.declared.row(ROW).value)
    if not raw:
        ctx.judge(ROW, Verdict.EMPTY, "Declared as an empty object: no kind of request may become a task.", got)
    elif refused_rightly(got) or got.failure is not None:
        ctx.refused_task = got
    elif got.ok:
        ctx.judge(ROW, Verdict.PARTIAL, "`tasks/get` answers for a task that does not exist.", got)
    _list(ctx, listed)
    await _cancel(ctx)
    await _tool_calls(ctx)
    if raw and got.refused and not refused_rightly(got):
        _get_served(ctx, got, listed)
    _containers(ctx)
    if ctx.refused_task is not None:
        _get_refused(ctx, ctx.refused_task)


def _containers(ctx: Context) -> None:
    """The objects round `tools.call` are worth what is in them."""
    inner = ctx.rows[CALL]
    for row in CONTAINERS:
        if row not in ctx.rows:
            ctx.judge(row, inner.verdict, f"Holds `tasks.requests.tools.call`. {inner.message}", *inner.evidence)


def _as_unknown(ctx: Context, reply: Reply) -> bool:
    """Whether a refusal is what any unknown method gets, in code and words, so that it shows no handler."""
    unknown = ctx.unknown
    if unknown is None or reply.code != unknown.code:
        return False
    return reply.message.replace(reply.method, "") == unknown.message.replace(unknown.method, "")


def _get_served(ctx: Context, got: Reply, listed: Reply) -> None:
    """An unknown task is refused in a way of its own, or other task methods show that they are served."""
    proven = not _as_unknown(ctx, got) or listed.ok or (ctx.polled is not None and ctx.polled.ok)
    if proven:
        ctx.judge(ROW, Verdict.KEPT, "Task methods are served; an unknown task is refused.", got, ctx.polled)
    else:
        message = f"`tasks/get` of an unknown task gets {told(got)}, as any unknown method does: it shows no handler."
        ctx.judge(ROW, Verdict.NOT_OBSERVABLE, message, got, ctx.unknown, hint=HINT)


def _get_refused(ctx: Context, got: Reply) -> None:
    """-32601 for an unknown task: no `tasks/get` at all, or the wrong code for an unknown task."""
    if ctx.polled is not None and ctx.polled.ok:
        message = "`tasks/get` works, and refuses an unknown task with -32601, which says that there is no such method."
        ctx.judge(ROW, Verdict.WRONG_CODE, message, got, ctx.polled)
    else:
        broken(ctx, ROW, "tasks/get", got)


def supports(tool: Mapping[str, Any]) -> object:
    """What a tool says of tasks: ``optional``, ``required``, ``forbidden``, or None."""
    return mapping(tool.get("execution")).get("taskSupport")


def _elsewhere(ctx: Context) -> None:
    bearing = [tool for tool in ctx.lists["tools/list"].items if "execution" in tool]
    if bearing:
        ctx.judge(
            CALL,
            Verdict.LEAKED,
            f"{len(bearing)} tools carry `execution`, which this revision does not define.",
            ctx.lists["tools/list"].reply,
            hint="Send `execution` at 2025-11-25 only.",
        )


def _undeclared(ctx: Context, listed: Reply) -> None:
    sent = ctx.notifications(STATUS)
    if sent:
        ctx.judge(ROW, Verdict.UNDECLARED, f"`{STATUS}` is sent, and tasks are not declared.", *sent[:2])
    else:
        undeclared(ctx, ROW, "tasks/list", listed)


async def _undeclared_call(ctx: Context) -> None:
    """Where tasks are not declared, a task that is asked for all the same must not be handed out."""
    ready = callable_tools(ctx)
    willing = [tool for tool in ctx.lists["tools/list"].items if supports(tool) in ("optional", "required")]
    name = next((tool["name"] for tool in willing if tool["name"] in ready), None)
    if name is not None:
        made = await ctx.call("tools/call", {"name": name, "arguments": dict(ready[name]), "task": {"ttl": TTL}})
        if made.ok and not problem("tasks/create", made.result):
            ctx.judge(CALL, Verdict.UNDECLARED, f"`{name}` hands out a task, and tasks are not declared.", made)
            return
    ctx.judge(CALL, Verdict.ABSENT, "Not declared.")


def _list(ctx: Context, listed: Reply) -> None:
    if not ctx.declares(LIST):
        if listed.ok:
            undeclared(ctx, LIST, "tasks/list", listed)
        else:
            ctx.judge(LIST, Verdict.ABSENT, "Not declared, and not served.", listed)
        return
    wrong = problem("tasks/list", listed.result) if listed.ok else ""
    if not listed.ok or wrong:
        broken(ctx, LIST, "tasks/list", listed, wrong)
    else:
        ctx.judge(LIST, Verdict.KEPT, "`tasks/list` answers with a list of tasks.", listed)


async def _cancel(ctx: Context) -> None:
    reply = await ctx.call("tasks/cancel", {"taskId": ABSENT_TASK})
    if not ctx.declares(CANCEL):
        if reply.ok:
            undeclared(ctx, CANCEL, "tasks/cancel", reply)
        else:
            ctx.judge(CANCEL, Verdict.ABSENT, "Not declared.", reply)
    elif refused_rightly(reply) or reply.failure is not None:
        broken(ctx, CANCEL, "tasks/cancel", reply)
    elif reply.ok:
        ctx.judge(CANCEL, Verdict.BROKEN, "`tasks/cancel` accepts a task that does not exist.", reply)
    elif _as_unknown(ctx, reply):
        message = f"`tasks/cancel` of an unknown task gets {told(reply)}, as any unknown method does."
        ctx.judge(CANCEL, Verdict.NOT_OBSERVABLE, message, reply, ctx.unknown, hint=HINT)
    elif reply.code == INVALID_PARAMS:
        ctx.judge(CANCEL, Verdict.KEPT, "`tasks/cancel` refuses an unknown task with -32602.", reply)
    else:
        ctx.judge(CANCEL, Verdict.WRONG_CODE, f"An unknown task is refused with {told(reply)}, not -32602.", reply)


async def _tool_calls(ctx: Context) -> None:
    listing = ctx.lists["tools/list"]
    willing = {tool["name"] for tool in listing.items if supports(tool) in ("optional", "required")}
    if not ctx.declares(CALL):
        for row in (CALL, *CONTAINERS):
            kind = Verdict.EMPTY if ctx.declares(row) else Verdict.ABSENT
            ctx.judge(row, kind, "Nothing in it." if kind is Verdict.EMPTY else "Not declared.")
        return
    if not willing:
        ctx.judge(
            CALL,
            Verdict.BROKEN,
            "Declared, and no tool allows it: `execution.taskSupport` is nowhere optional or required.",
            listing.reply,
            hint="Mark the tools that can run as tasks, or stop declaring it.",
        )
        return
    ready = callable_tools(ctx)
    await _forbidden(ctx, next(((tool, ready[tool]) for tool in ready if tool not in willing), None))
    name = next((tool for tool in ready if tool in willing), None)
    # A tool that runs as a task only is called by nobody else's leave than the user's.
    if name is None:
        few = ", ".join(sorted(willing)[:3])
        ctx.judge(CALL, Verdict.NOT_OBSERVABLE, f"Tools allow it ({few}); none may be called.", hint=HINT)
        return
    await _make(ctx, name, ready[name])


async def _forbidden(ctx: Context, tool: tuple[str, Mapping[str, Any]] | None) -> None:
    """A tool that does not allow tasks, called as one: -32601 is due (advice, not a rule)."""
    if tool is None:
        return
    name, arguments = tool
    made = await ctx.call("tools/call", {"name": name, "arguments": dict(arguments), "task": {"ttl": TTL}})
    if not made.ok:
        return
    task = not problem("tasks/create", made.result)
    message = f"`{name}` does not allow tasks, and {'becomes one' if task else 'runs at once'} when called as one."
    ctx.finding(
        "tasks.forbidden-accepted",
        message,
        made,
        rows=(CALL,),
        hint="Refuse it with -32601, or allow tasks in `execution.taskSupport`.",
        severity=Severity.WARNING if task else None,
    )


async def _make(ctx: Context, name: str, arguments: Mapping[str, Any]) -> None:
    made = await ctx.call("tools/call", {"name": name, "arguments": dict(arguments), "task": {"ttl": TTL}})
    wrong = problem("tasks/create", made.result) if made.ok else told(made)
    if wrong:
        ctx.judge(CALL, Verdict.BROKEN, f"`{name}` called as a task hands out none: {wrong}.", made)
        return
    task = mapping(mapping(made.result)["task"])["taskId"]
    ctx.made_tasks.add(task)
    status = ctx.polled = await _finished(ctx, task)
    result = await ctx.call("tasks/result", {"taskId": task})
    if not result.ok and not (status.ok and mapping(status.result).get("status") != "completed"):
        ctx.judge(CALL, Verdict.PARTIAL, f"A task is made, and its result cannot be had: {told(result)}.", made, result)
    else:
        ctx.judge(CALL, Verdict.KEPT, f"`{name}` ran as a task and its result was fetched.", made, status, result)
    if ctx.declares(CANCEL) and status.ok and mapping(status.result).get("status") in FINISHED:
        late = await ctx.call("tasks/cancel", {"taskId": task})
        if late.ok or late.code != INVALID_PARAMS:
            verdict = Verdict.BROKEN if late.ok else Verdict.WRONG_CODE
            ctx.judge(CANCEL, verdict, f"Cancelling a finished task gets {told(late)}, not -32602.", status, late)


async def _finished(ctx: Context, task: str) -> Reply:
    """Polls a task until it is finished, within the budget of one method."""
    reply = await ctx.call("tasks/get", {"taskId": task})
    with anyio.move_on_after(ctx.options.limits.method):
        for _ in range(POLLS):
            state = mapping(reply.result).get("status")
            if not reply.ok or state in FINISHED:
                break
            await anyio.sleep(ctx.options.limits.method / POLLS / 2)
            reply = await ctx.call("tasks/get", {"taskId": task})
    return reply
