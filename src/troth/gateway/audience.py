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

HELD: Final = 4096
"""Updates that wait for an audience to open. More come only of a host that never does."""


class Watched:
    """A resource that an audience watches.

    Attributes:
        owner: Its upstream.
        own: Its URI there.
        at: The connection on which it is watched.
        made: Whether the subscription stands; until then whoever asks for the same waits for `settled`.
        dropped: Whether it was given up before it stood.
        settled: Set when it stands or failed.
    """

    __slots__ = ("at", "dropped", "made", "own", "owner", "settled")

    def __init__(self, owner: Member, own: str) -> None:
        self.owner = owner
        self.own = own
        self.at = owner.upstream
        self.made = False
        self.dropped = False
        self.settled = anyio.Event()


class Audience:
    """One channel on which a host hears of changes.

    It is silent until it is opened: a legacy host hears nothing before it sent ``notifications/initialized``, a modern
    one nothing before its listen is acknowledged. What may not be missed waits.

    Args:
        host: The host.
        stream: The channel.
        families: Families whose list changes it wants.
        tag: Id of the listen; None for a legacy session.

    Attributes:
        served: Family -> digest of what it was last served or told of.
        watched: URI as the host writes it -> what it watches.
        opened: Whether it may be told.
        ended: Set when the gateway ends it.
    """

    def __init__(self, host: Host, stream: Stream, families: Collection[str], tag: Id | None = None) -> None:
        self.host = host
        self.stream = stream
        self.families = frozenset(families)
        self.tag = tag
        self.served: dict[str, bytes] = {}
        self.watched: dict[str, Watched] = {}
        self.opened = False
        self.ended = anyio.Event()
        self._held: dict[bytes, None] = {}

    @property
    def meta(self) -> Mapping[str, Any]:
        """``_meta`` of its notifications."""
        return {} if self.tag is None else {SUBSCRIPTION: self.tag}

    def open(self) -> None:
        """From now on the host may be told; what waited goes out."""
        self.opened = True
        held, self._held = self._held, {}
        for line in held:
            self.stream.send(line, Sort.CHANGE)

    def changed(self, family: str) -> None:
        """Tells the host that the lists of a family changed."""
        params = {"_meta": self.meta} if self.tag is not None else None
        self.stream.send(fresh.notification_line(f"notifications/{family}/list_changed", params), Sort.CHANGE)

    def updated(self, line: bytes) -> None:
        """Tells the host that a resource changed."""
        if self.opened:
            self.stream.send(line, Sort.CHANGE)
        elif len(self._held) < HELD:
            self._held[line] = None

    def watching(self, member: Member, uri: str) -> bool:
        """Whether a subscription of it covers a resource: the same URI, or one that begins like it up to a slash."""
        return any(
            watched.owner is member
            and (uri == watched.own or uri.startswith(watched.own if watched.own.endswith("/") else watched.own + "/"))
            for watched in self.watched.values()
        )
