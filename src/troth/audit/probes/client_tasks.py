"""CAP-10: a question is made a task of the client only where the client declared tasks for its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

KINDS = {
    "sampling/createMessage": ("CAP-10", "CAP-10-requests", "CAP-10-requests-sampling", "CAP-10-sampling"),
    "elicitation/create": ("CAP-10", "CAP-10-requests", "CAP-10-requests-elicitation", "CAP-10-elicitation"),
}
MANAGED = {
    "tasks/list": ("CAP-10", "CAP-10-list"),
    "tasks/cancel": ("CAP-10", "CAP-10-cancel"),
    "tasks/get": ("CAP-10",),
    "tasks/result": ("CAP-10",),
}


def needs(method: str, params: Mapping[str, Any]) -> tuple[str, ...]:
    """Rows that a question needs."""
    if "task" in params:
        return KINDS.get(method, ())
    return MANAGED.get(method, ())
