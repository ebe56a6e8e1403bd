"""Calls what may be called, so that servers show what they send and ask.

Free of effects by the server's own word (`readOnlyHint`) or by the user's (a named tool, `--active`); never else.
"""

from __future__ import annotations

from difflib import get_close_matches
from subprocess import DEVNULL
from typing import TYPE_CHECKING, Any

import anyio

from troth.audit.context import Called, mapping, told
from troth.audit.wire.connect import ANSWERS
from troth.audit.wire.types import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from troth.audit.context import Context
    from troth.audit.wire.session import Session

READ_ONLY_TOOLS = 10
"""So many read-only tools are called; the rest are taken to be alike."""
ACTIVE_TOOLS = 50
NAMED = 3
"""So many tools that were not called are named."""
ROUNDS = 8
"""Most rounds of input that one call may ask for. Source: rule of the specification's own clients."""


def callable_tools(ctx: Context) -> dict[str, Mapping[str, Any]]:
    """Tools that may be called, with arguments: the named one first, then those that need none and may run."""
    found: dict[str, Mapping[str, Any]] = {}
    named = ctx.options.change_tool
    if named is not None and named not in ctx.slow and named in ctx.lists["tools/list"].names("name"):
        found[named] = ctx.options.change_arguments or {}
    cap = ACTIVE_TOOLS if ctx.options.active else READ_ONLY_TOOLS
    for tool in _ready(ctx):
        if len(found) < cap:
            found.setdefault(tool, {})
    return found


def left_out(ctx: Context) -> str:
    """Which tools may be called and were not, since nobody knows their arguments; empty if there are none."""
    named = ctx.options.change_tool
    names = [tool["name"][:60] for tool in _allowed(ctx) if _required(tool) and tool["name"] != named]
    if not names:
        return ""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f" Not called, since they need arguments (--change-tool 'NAME={{...}}'): {', '.join(names[:NAMED])}{more}."


def _allowed(ctx: Context) -> Iterator[Mapping[str, Any]]:
    listing = ctx.lists.get("tools/list")
    for tool in listing.items if listing is not None else ():
        if ctx.options.active or mapping(tool.get("annotations")).get("readOnlyHint") is True:
            yield tool


def _required(tool: Mapping[str, Any]) -> bool:
    return bool(mapping(tool.get("inputSchema")).get("required"))


def _ready(ctx: Context) -> Iterator[str]:
    for tool in _allowed(ctx):
        if not _required(tool) and not _task_only(tool) and tool["name"] not in ctx.slow:
            yield tool["name"]


def _task_only(tool: Mapping[str, Any]) -> bool:
    return mapping(tool.get("execution")).get("taskSupport") == "required"


async def call_tool(
    session: Session,
    name: str,
    arguments: Mapping[str, Any],
    *,
    capabilities: Mapping[str, Any] | None = None,
    meta: Mapping[str, Any] | None = None,
) -> Called:
    """Calls a tool and answers what it asks for (see `exchange`)."""
    params = {"name": name, "arguments": dict(arguments)}
    return await exchange(session, name, "tools/call", params, capabilities=capabilities, meta=meta)


async def exchange(
    session: Session,
    name: str,
    method: str,
    params: Mapping[str, Any],
    *,
    capabilities: Mapping[str, Any] | None = None,
    meta: Mapping[str, Any] | None = None,
) -> Called:
    """Makes a request that may ask for input before it is done, and gives that input, at most `ROUNDS` times."""
    before = len(session.asks)
    reply = await session.call(method, params, capabilities=capabilities, meta=meta)
    called = Called(name=name, method=method, params=params, reply=reply)
    for _ in range(ROUNDS):
        result = mapping(called.reply.result)
        requests = mapping(result.get("inputRequests"))
        if result.get("resultType") != "input_required":
            break
        responses: dict[str, Any] = {}
        for key, value in requests.items():
            request = mapping(value)
            kind = request.get("method")
            if isinstance(kind, str):
                called.asks.append((kind, mapping(request.get("params")), called.reply.frames[-1]))
                responses[key] = ANSWERS.get(kind, {})
        again = {**params, "inputResponses": responses}
        if isinstance(result.get("requestState"), str):
            again["requestState"] = result["requestState"]
        called.reply = await session.call(method, again, capabilities=capabilities, meta=meta)
    called.questioned = bool(called.asks) or len(session.asks) > before
    return called


async def fetch(ctx: Context, name: str, method: str, params: Mapping[str, Any]) -> Called:
    """Fetches a prompt or a resource, and keeps what was asked on the way for the judgement of questions."""
    called = await exchange(await ctx.alive(), name, method, params)
    ctx.fetched.append(called)
    return called


def _named(ctx: Context) -> None:
    """Says so if the tool that was named to change something could not do it."""
    name = ctx.options.change_tool
    if name is None or name in ctx.slow:
        return
    call = next((call for call in ctx.calls if call.name == name), None)
    if call is None:
        close = get_close_matches(name, ctx.lists["tools/list"].names("name"), 1)
        hint = f"Did you mean {close[0]!r}?" if close else ""
        ctx.finding("change-tool.failed", f"No tool {name!r} is listed, so --change-tool called nothing.", hint=hint)
    elif not call.reply.ok or mapping(call.reply.result).get("isError") is True:
        what = told(call.reply) if not call.reply.ok else "a result that says `isError`"
        hint = f"Give it the arguments that it needs: --change-tool '{name}={{...}}'."
        ctx.finding("change-tool.failed", f"`{name}`, named with --change-tool, gets {what}.", call.reply, hint=hint)


async def _touch(ctx: Context, command: tuple[str, ...]) -> None:
    """Runs the user's command for at most the budget of a method; one that fails provokes nothing, and that is said."""
    problem = f"does not end within {ctx.options.limits.method:g} s"
    try:
        with anyio.move_on_after(ctx.options.limits.method):
            done = await anyio.run_process([*command], check=False, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
            if done.returncode == 0:
                return
            problem = f"ends with status {done.returncode}"
    except (OSError, ValueError) as error:
        problem = f"cannot be run: {error}"
    ctx.finding("touch.failed", f"The --touch command {problem}.", hint="Run it in a shell to see why.")


async def probe(ctx: Context) -> None:
    """Calls tools with full capabilities, runs the touch command, and listens for what follows."""
    for name, arguments in callable_tools(ctx).items():
        called = await call_tool(await ctx.alive(), name, arguments)
        ctx.calls.append(called)
        if called.reply.failure is Failure.TIMEOUT:
            ctx.slow.add(name)
            message = f"`{name}` does not answer within {ctx.options.limits.method:g} s; it is not called again."
            ctx.finding("tools.slow", message, called.reply, hint="Give it more time with --timeout.")
    _named(ctx)
    if ctx.options.touch is not None:
        await _touch(ctx, ctx.options.touch)
    await (await ctx.alive()).settle()
