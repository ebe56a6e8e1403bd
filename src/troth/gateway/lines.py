"""One connection to an upstream, and the members that share it.

A modern upstream is told with every request what it may ask, so members of one owner that differ in that share its
connection and differ in what they list. A legacy one is told once, at the handshake: each set of asks has a connection
of its own. Which it is shows when it is up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from troth.bridge.exchange import LEVELS
from troth.gateway.member import CANCELLED
from troth.register import Era

if TYPE_CHECKING:
    from collections.abc import Callable

    from troth.bridge import Frame
    from troth.bridge.asks import Asks
    from troth.gateway.member import Member
    from troth.gateway.model import Upstream


class Line:
    """One connection. Implements `troth.gateway.model.Observer` for its members.

    Args:
        asks: What a legacy upstream is told at the handshake.
        split: Opens another line for a member that cannot stay on this one.

    Attributes:
        upstream: The connection; set right after the line is made.
        members: Who uses it.
    """

    def __init__(self, asks: Asks, split: Callable[[Member], None]) -> None:
        self.asks = asks
        self.upstream: Upstream = cast("Upstream", None)
        self.members: list[Member] = []
        self._split = split
        self._levels: dict[Member, str] = {}

    @property
    def open_to(self) -> bool:
        """Whether members with other asks may try: unless it is known to be a legacy one."""
        conversation = self.upstream.conversation
        return conversation is None or conversation.era is Era.MODERN

    def join(self, member: Member) -> None:
        """Takes a member in."""
        self.members.append(member)
        member.line = self
        if self.upstream.conversation is not None:
            member.up(self.upstream)

    async def leave(self, member: Member) -> None:
        """A member ends; the last one ends the connection."""
        self.members.remove(member)
        self._levels.pop(member, None)
        if not self.members:
            await self.upstream.stop()

    def level(self, member: Member, level: str | None) -> None:
        """Notes the log level that a member wants; None for none. The upstream gets the most verbose one."""
        if level is None:
            self._levels.pop(member, None)
        else:
            self._levels[member] = level
        self.upstream.level(min(self._levels.values(), key=LEVELS.index, default=None))

    def _part(self, member: Member) -> None:
        """A member goes to a line of its own, and what it wished for on this one goes along."""
        level = self._levels.get(member)
        self.members.remove(member)
        self.level(member, None)
        self._split(member)
        if level is not None:
            member.line.level(member, level)
        member.moved()

    # Observer

    def up(self, upstream: Upstream) -> None:
        """Members that a legacy upstream was not told of go to a line of their own."""
        conversation = upstream.conversation
        for member in tuple(self.members):
            if conversation is not None and conversation.era is Era.LEGACY and member.told != self.asks:
                self._part(member)
            else:
                member.up(upstream)

    def down(self, upstream: Upstream) -> None:
        """See `Observer`."""
        for member in tuple(self.members):
            member.down(upstream)

    def heard(self, upstream: Upstream, frame: Frame) -> None:
        """See `Observer`."""
        for member in tuple(self.members):
            member.heard(upstream, frame)

    def asked(self, upstream: Upstream, frame: Frame) -> bool:
        """See `Observer`. Only legacy upstreams ask, and those have one member."""
        return len(self.members) == 1 and self.members[0].asked(upstream, frame)


class Spare:
    """The observer of a further process: its lists are those of the first.

    Args:
        member: Whose further process it is.
    """

    def __init__(self, member: Member) -> None:
        self._member = member

    def up(self, upstream: Upstream) -> None:
        """See `Observer`."""

    def down(self, upstream: Upstream) -> None:
        """See `Observer`."""

    def heard(self, upstream: Upstream, frame: Frame) -> None:
        """See `Observer`."""
        if frame.method == CANCELLED:
            self._member.heard(upstream, frame)

    def asked(self, upstream: Upstream, frame: Frame) -> bool:
        """See `Observer`."""
        return self._member.asked(upstream, frame)
