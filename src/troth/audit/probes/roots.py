"""CAP-02, CAP-03: `roots/list` is asked only of a client that declared `roots`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def needs(method: str, _params: Mapping[str, Any]) -> tuple[str, ...]:
    """Rows that a question needs. `roots.listChanged` is the client's to keep: a server cannot break it."""
    return ("CAP-02",) if method == "roots/list" else ()
