"""How much of everything a principal has open, against its limits."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from troth.gateway.hosts.asgi import Refused, over

if TYPE_CHECKING:
    from collections.abc import Generator

    from troth.bridge import Id
    from troth.gateway.limits import Limits
    from troth.gateway.model import Principal


class Counts:
    """Counts of one endpoint.

    Attributes:
        running: Requests in flight by principal.
        streams: Open streams (GET, SSE, listen) by principal.
    """

    __slots__ = ("_limits", "running", "streams")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.running: Counter[str] = Counter()
        self.streams: Counter[str] = Counter()

    def full(self, principal: Principal, identity: Id | None) -> Refused | None:
        """Why the principal may not have one more request in flight."""
        if self.running[principal.name] < self._limits.running:
            return None
        return over("running", "too many requests in flight", 429, identity)

    def full_streams(self, principal: Principal, identity: Id | None = None) -> Refused | None:
        """Why the principal may not have one more stream."""
        if self.streams[principal.name] < self._limits.streams:
            return None
        return over("streams", "too many open streams", 429, identity)

    @contextmanager
    def streaming(self, principal: Principal) -> Generator[None]:
        """Counts a stream while it is open."""
        self.streams[principal.name] += 1
        try:
            yield
        finally:
            released(self.streams, principal)


def released(counts: Counter[str], principal: Principal) -> None:
    """One less; a principal with none is forgotten."""
    counts[principal.name] -= 1
    if not counts[principal.name]:
        del counts[principal.name]
