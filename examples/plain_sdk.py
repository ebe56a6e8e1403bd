"""An ordinary server on the SDK (``mcp`` 2), written without Troth."""

from __future__ import annotations

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import SamplingMessage, TextContent, ToolAnnotations

server = MCPServer("notes")
READS = ToolAnnotations(read_only_hint=True)
notes = {"first": "Buy milk."}


@server.tool(annotations=READS)
def search(text: str = "") -> list[str]:
    """Names of the notes that contain a text."""
    return [name for name, note in notes.items() if text in note]


@server.tool(annotations=READS)
async def summarize(ctx: Context) -> str:
    """All notes in one sentence, written by the model of the host."""
    await ctx.session.send_log_message("info", "asking the model")
    question = SamplingMessage(role="user", content=TextContent(type="text", text="\n".join(notes.values())))
    answer = await ctx.session.create_message([question], max_tokens=100, related_request_id=ctx.request_id)
    return getattr(answer.content, "text", "")


@server.tool(annotations=READS)
async def choose(ctx: Context) -> str:
    """A note that the user chooses in a form."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    answer = await ctx.session.elicit_form("Which note?", schema, related_request_id=ctx.request_id)
    return notes.get(str((answer.content or {}).get("name")), "")


@server.tool()
def publish() -> str:
    """Publishes the notes: a new tool appears that takes them back."""
    server.add_tool(lambda: "taken back", name="unpublish", description="Takes the notes back.")
    return "published"


@server.resource("notes://first")
def first() -> str:
    """The first note."""
    return notes["first"]


@server.resource("notes://by-name/{name}")
def by_name(name: str) -> str:
    """A note by its name."""
    return notes[name]


@server.prompt()
def review(name: str = "first") -> str:
    """Asks for a review of a note."""
    return f"Please review: {notes[name]}"


if __name__ == "__main__":
    server.run()
