"""An ordinary FastMCP server: three tools over some notes."""

from fastmcp import Context, FastMCP
from mcp_types import SamplingMessage, TextContent

server = FastMCP("notes")
notes = {"first": "Buy milk."}


@server.tool
def search(text: str = "") -> list[str]:
    """Names of the notes that contain a text."""
    return [name for name, note in notes.items() if text in note]


@server.tool
async def summarize(ctx: Context) -> str:
    """All notes in one sentence, written by the model of the host."""
    question = SamplingMessage(role="user", content=TextContent(type="text", text="\n".join(notes.values())))
    answer = await ctx.session.create_message([question], max_tokens=100, related_request_id=ctx.request_id)
    return getattr(answer.content, "text", "")


@server.tool
def archive() -> str:
    """Puts the notes away; a new tool brings them back."""

    @server.tool
    def restore() -> str:
        """Brings the notes back."""
        return "restored"

    return "archived"


if __name__ == "__main__":
    server.run()
