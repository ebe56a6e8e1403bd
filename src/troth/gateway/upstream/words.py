"""What is said of an upstream, and to it: bounded, printable, without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.bridge import Bad, errors, peek
from troth.register import register
from troth.wire.words import excerpt

if TYPE_CHECKING:
    from troth.bridge import ErrorValue, Frame


def told(error: Frame) -> str:
    """An error of an upstream in words: its code and its message.

    Args:
        error: An opened error.
    """
    found = peek(error, "code", "message")
    if isinstance(found, Bad):
        return "a malformed error"
    return f"{found.get('code', 'no code')}: {excerpt(found.get('message', ''))}"


def nobody_answers(method: str, revision: str) -> ErrorValue:
    """The refusal of a server's request that nobody here answers.

    A method of the revision names the capability that was not declared; any other is unknown.
    """
    use = register().method(method, revision)
    rows = use.rows if use is not None and "ServerRequest" in use.roles else ()
    if not rows:
        return errors.unknown_method(method)
    return errors.not_supported(method, register().by_id[rows[0]].path.partition(".")[0])
