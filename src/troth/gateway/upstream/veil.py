"""Keeps what an operator entrusted to a server out of what that server is quoted with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from troth.wire.words import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable

LEAST: Final = 6
"""Shortest value that is hidden: below it are ports, flags and log levels, which occur everywhere."""

WINDOW: Final = 64 * 1024
"""Most of a text that is searched, far more than is ever shown: so no secret is cut in two where the excerpt ends."""

HIDDEN: Final = "[hidden]"


class Veil:
    """Quotes foreign text with every known secret in it hidden.

    Args:
        secrets: Values of the environment and of headers that the configuration gives. Of a value in several words
            (``Bearer ...``) each word that is long enough counts too.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        words = {word for secret in secrets for word in (secret, *secret.split()) if len(word) >= LEAST}
        self._secrets = sorted(words, key=len, reverse=True)

    def quote(self, text: bytes | str, limit: int = 200) -> str:
        """The beginning of a text: escaped, without secrets, of at most about ``limit`` characters."""
        shown = text[:WINDOW]
        told = shown.decode("utf-8", "backslashreplace") if isinstance(shown, bytes) else shown
        for secret in self._secrets:
            told = told.replace(secret, HIDDEN)
        return excerpt(told, limit)
