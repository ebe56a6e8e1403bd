"""What a given host would see and use of a target (`--as`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from troth.audit.context import Context
    from troth.audit.model import HostView


async def view(ctx: Context, profile: str) -> HostView | None:
    """The view of the host ``profile``."""
    del ctx, profile
    return None
