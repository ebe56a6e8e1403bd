"""What is said of an upstream, and to it: bounded, printable, without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.bridge import Bad, peek
from troth.register import register
from troth.wire.words import excerpt

if TYPE_CHECKING:
    from troth.bridge import Frame


def told(error: Frame) -> str:
    """An error of an upstream in words: its code and its message.

    Args:
        error: An opened error.
    """
    found = peek(error, "code", "message")
    if isinstance(found, Bad):
        return "a malformed error"
    return f"{found.get('code', 'no code')}: {excerpt(found.get('message', ''))}"


def unknown_method(method: str, revision: str) -> tuple[str, dict[str, str] | None]:
    """Message and data of the refusal (-32601) of a server's request that nobody here answers.

    A method of the revision names the capability that was not declared; any other is unknown.
    """
    use = register().method(method, revision)
    if use is None or "ServerRequest" not in use.roles:
        return f"Unknown method: {excerpt(method)}", None
    families = [register().by_id[row].path.partition(".")[0] for row in use.rows]
    if not families:
        return f"Method not found: {method}", None
    return f"Method not found: {method} ({families[0]} not supported)", {"capability": families[0]}
