"""The one error of the wire: a server that cannot be reached for a reason on our side of the line."""

from __future__ import annotations


class LinkError(Exception):
    """A link cannot be opened at all: no process came to be, or the address is none.

    What a living peer does wrong is never raised: links tell it.

    Attributes:
        message: What is wrong, in words.
        where: The command, folder or URL that it is about.
        advice: What to do.
    """

    def __init__(self, message: str, *, where: str, advice: str) -> None:
        super().__init__(message, where, advice)
        self.message = message
        self.where = where
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.where}: {self.message}; {self.advice}"
