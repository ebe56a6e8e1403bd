"""CAP-07, CAP-08, CAP-09: an elicitation is asked only where declared, each mode by its own flag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

MODES = {"form": "CAP-08", "url": "CAP-09"}


def needs(method: str, params: Mapping[str, Any]) -> tuple[str, ...]:
    """Rows that a question needs. A question without a mode is a form."""
    if method != "elicitation/create":
        return ()
    mode = params.get("mode", "form")
    return ("CAP-07", MODES[mode]) if isinstance(mode, str) and mode in MODES else ("CAP-07",)
