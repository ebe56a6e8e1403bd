"""A server whose tools need something of their host, on stdio, HTTP or both: ``python sample_server.py [http|both]``.

Each tool works in both eras: the SDK's resolvers, and with Troth also the methods of its context, ask the host during a
legacy call, and by the result of a modern one. The one that takes long runs as a task for hosts that know tasks.
"""

from __future__ import annotations

import argparse
from typing import Annotated

import anyio
import uvicorn
from mcp.server.mcpserver import Context, Elicit, ListRoots, MCPServer, Resolve, Sample
from mcp_types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent, ToolAnnotations
from pydantic import BaseModel

import troth
from troth import ELICITATION_FORM, ELICITATION_URL, ROOTS, SAMPLING, TASKS, any_of, extension, requires

server = MCPServer("sample", version="1.0")
READS = ToolAnnotations(read_only_hint=True)


class Size(BaseModel):
    """What the form asks for."""

    size: str


def ask_model(text: str) -> Sample:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=f"Summarize: {text}"))
    return Sample([message], max_tokens=100)


def ask_size() -> Elicit[Size]:
    return Elicit("Which size?", Size)


def ask_roots() -> ListRoots:
    return ListRoots()


@server.tool(annotations=READS)
def echo(text: str) -> str:
    """The same text. Every host can use it."""
    return text


@server.tool(annotations=READS)
@requires(SAMPLING, message="summarize writes with the model of your host, and it lends none")
def summarize(text: str, answer: Annotated[CreateMessageResult, Resolve(ask_model)]) -> str:
    """A summary, written by the model of the host."""
    return getattr(answer.content, "text", "")


@requires(ELICITATION_FORM)
@server.tool(annotations=READS)
def order(size: Annotated[Size, Resolve(ask_size)]) -> str:
    """An order, of a size that the user fills in."""
    return f"ordered: {size.size}"


@requires(ELICITATION_URL)
@server.tool(annotations=READS)
async def sign_in(ctx: Context) -> str:
    """Sends the user to a page to sign in."""
    return (await ctx.elicit_url("Please sign in", "https://example.com/sign-in", "sign-in")).action


@requires(ROOTS)
@server.tool(annotations=READS)
def folders(found: Annotated[ListRootsResult, Resolve(ask_roots)]) -> list[str]:
    """The folders that the host has open."""
    return [str(root.uri) for root in found.roots]


@requires(any_of(TASKS, extension("io.modelcontextprotocol/tasks")))
@server.tool(annotations=READS)
def backlog() -> str:
    """What is to be done, for hosts that keep tasks."""
    return "nothing"


@troth.task
@server.tool(annotations=READS)
async def count(ctx: Context, to: int = 3) -> str:
    """Counts, slowly. A host that knows tasks need not wait for it."""
    for number in range(1, to + 1):
        await anyio.sleep(0.1)
        await ctx.report_progress(number, to, f"{number} of {to}")
    return "counted"


@server.tool()
def grow() -> str:
    """A new tool appears, and every host is told."""
    if "grown" not in {tool.name for tool in server._tool_manager.list_tools()}:
        server.add_tool(lambda: "grown", name="grown", description="It was not there before.")
    return "grown"


@requires(ROOTS)
@server.resource("sample://folders/{name}")
def folder(name: str) -> str:
    """A folder, for hosts that have some."""
    return name


@server.resource("sample://about")
def about() -> str:
    """What this is. Every host can read it."""
    return "a sample"


@server.prompt()
def greet() -> str:
    """A greeting. Every host can use it."""
    return "Hello."


@requires(SAMPLING | ELICITATION_FORM)
@server.prompt()
def interview() -> str:
    """An interview, for hosts that can show forms and lend their model."""
    return "Interview me."


troth.install(server)


async def serve(transport: str, port: int) -> None:
    async with anyio.create_task_group() as tasks:
        if transport in {"http", "both"}:
            config = uvicorn.Config(server.streamable_http_app(), port=port, log_level="warning")
            tasks.start_soon(uvicorn.Server(config).serve)
        if transport in {"stdio", "both"}:
            await server.run_stdio_async()
            tasks.cancel_scope.cancel()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("transport", nargs="?", choices=("stdio", "http", "both"), default="stdio")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    anyio.run(serve, options.transport, options.port)
