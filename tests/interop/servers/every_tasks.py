"""The server that the suite's scenarios about tasks want: ``every_tasks.py --http PORT``, or on stdio without.

Ordinary tools of the Python SDK 2, made long by `troth.task`; one asks before its task begins, and does so by hand.
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import replace
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context  # noqa: TC002 - the framework reads it
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

import troth
from troth.gating import extension, requires

server = MCPServer("every-tasks")


class Sure(BaseModel):
    """Whether somebody is sure."""

    confirm: bool = True


class Name(BaseModel):
    """A name."""

    name: str = ""


@server.tool()
def greet(name: str) -> str:
    """Greets, at once."""
    return f"Hello, {name}!"


@troth.task
@server.tool()
async def slow_compute(seconds: float, label: str = "") -> str:
    """Waits."""
    await anyio.sleep(seconds)
    return f"computed {label}"


@requires(extension("io.modelcontextprotocol/tasks"))
@troth.task
@server.tool()
async def failing_job() -> str:
    """Fails in its own words, before hosts that know tasks."""
    await anyio.sleep(1)
    raise ToolError("it failed")


@troth.task
@server.tool()
async def protocol_error_job() -> str:
    """Fails as a request."""
    raise MCPError(types.INTERNAL_ERROR, "it panicked")


@troth.task
@server.tool()
async def confirm_delete(filename: str, ctx: Context) -> str:
    """Asks whether it may."""
    answer = await ctx.elicit(f"Delete {filename}?", Sure)
    return f"{answer.action} {filename}"


@troth.task
@server.tool()
async def multi_input(ctx: Context) -> str:
    """Asks two things at once."""
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(ctx.elicit(f"Name {number}?", Name)) for number in (1, 2)]
    return ", ".join(one.result().action for one in asked)


@troth.task
@server.tool()
async def test_tool_with_task(name: str) -> str:
    """Greets whoever `ask_first` was told of."""
    return f"Hello, {name}!"


async def ask_first(ctx: Any, call_next: Any) -> Any:
    """Asks for a name before there is a task, as a server does that goes on only with what it needs."""
    params = ctx.params or {}
    if ctx.method != "tools/call" or params.get("name") != "test_tool_with_task":
        return await call_next(ctx)
    answers = params.get("inputResponses")
    if answers is None:
        question = {"mode": "form", "message": "Your name?", "requestedSchema": Name.model_json_schema()}
        asked = {"user_name": {"method": "elicitation/create", "params": question}}
        return {"resultType": "input_required", "inputRequests": asked}
    left = {key: value for key, value in params.items() if key not in ("inputResponses", "requestState")}
    return await call_next(replace(ctx, params={**left, "arguments": answers["user_name"]["content"]}))


troth.install(server)
server._lowlevel_server.middleware.insert(0, ask_first)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=int)
    port = parser.parse_args().http
    if port is None:
        server.run("stdio")
    else:
        uvicorn.run(server.streamable_http_app(), port=port, log_level="warning")


if __name__ == "__main__":
    main()
