"""Words of a stranger, made safe to show. Sans-IO."""

from __future__ import annotations

EXCERPT = 200
"""Characters of foreign text that are kept in a problem."""


def printable(text: str) -> str:
    """Text in which every character that is not printable (controls, line ends, direction marks) is escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def excerpt(data: bytes | str, limit: int = EXCERPT) -> str:
    """The beginning of foreign text, escaped, of at most `limit` characters and a mark that there was more."""
    start = data[: limit + 1]
    text = start.decode("utf-8", "backslashreplace") if isinstance(start, bytes) else start
    shown = printable(text)
    return shown if len(data) <= limit and len(shown) <= limit else f"{shown[:limit]}..."
