"""CAP-04, CAP-05, CAP-06: a sampling is asked only where declared, with tools and context each by its own flag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTEXT = "CAP-05"
TOOLS = "CAP-06"


def needs(method: str, params: Mapping[str, Any]) -> tuple[str, ...]:
    """Rows that a question needs. The server is held to the rule on tools, as the client is (gap G-05)."""
    if method != "sampling/createMessage":
        return ()
    rows = ["CAP-04"]
    if params.get("includeContext") not in (None, "none"):
        rows.append(CONTEXT)
    if "tools" in params or "toolChoice" in params:
        rows.append(TOOLS)
    return tuple(rows)
