"""What is hidden from a host and refused to it, because it did not declare what that needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.bridge.catalogue import Asker
from troth.gating import Primitive, decide

if TYPE_CHECKING:
    from troth.bridge.listed import Entry
    from troth.gateway.asked import Asked
    from troth.gateway.model import Answer, Host


def asker(host: Host) -> Asker:
    """What of a host decides which items it sees."""
    return Asker(host.revision, host.capabilities.in_force if host.gated else None)


def refusal(asked: Asked, entry: Entry, shown: str) -> Answer | None:
    """The answer to a host that uses what is hidden from it, in its revision's way; None if it may.

    Args:
        asked: The request.
        entry: What it names, as the catalogue knows it.
        shown: The name or URI as the host wrote it.
    """
    need = asked.fleet.known.need(entry)
    if need is None or not asked.host.gated:
        return None
    decision = decide(Primitive(entry.kind, shown), need, asked.host.capabilities)
    return None if decision.allowed else asked.error(decision.code, decision.message, decision.data)
