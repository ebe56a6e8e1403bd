"""Who is told of changes: a legacy session, or one ``subscriptions/listen`` of a modern host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anyio

from troth.bridge import fresh
from troth.gateway.model import Sort

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from troth.bridge import Id
    from troth.gateway.member import Member
    from troth.gateway.model import Host, Stream

SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
"""Key in ``_meta`` that tags what a listen delivers. Source: 2026-07-28, schema, NotificationMetaObject."""


class Audience:
    """One channel on which a host hears of changes.

    Args:
        host: The host.
        stream: The channel.
        families: Families whose list changes it wants.
        tag: Id of the listen; None for a legacy session.

    Attributes:
        served: Family -> digest of what it was last served or told of.
        watched: URI as the host writes it -> the owner, and the URI there.
        ended: Set when the gateway ends it.
    """

    def __init__(self, host: Host, stream: Stream, families: Collection[str], tag: Id | None = None) -> None:
        self.host = host
        self.stream = stream
        self.families = frozenset(families)
        self.tag = tag
        self.served: dict[str, bytes] = {}
        self.watched: dict[str, tuple[Member, str]] = {}
        self.ended = anyio.Event()

    @property
    def meta(self) -> Mapping[str, Any]:
        """``_meta`` of its notifications."""
        return {} if self.tag is None else {SUBSCRIPTION: self.tag}

    def changed(self, family: str) -> None:
        """Tells the host that the lists of a family changed."""
        params = {"_meta": self.meta} if self.tag is not None else None
        self.stream.send(fresh.notification_line(f"notifications/{family}/list_changed", params), Sort.CHANGE)

    def watching(self, member: Member, uri: str) -> bool:
        """Whether a subscription of it covers a resource: the same URI, or one that begins like it up to a slash."""
        return any(
            owner is member and (uri == own or uri.startswith(own if own.endswith("/") else own + "/"))
            for owner, own in self.watched.values()
        )
