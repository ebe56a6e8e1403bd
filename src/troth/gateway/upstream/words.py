"""What is said of an upstream, and to it: bounded, printable, without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.bridge import Bad, peek
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
