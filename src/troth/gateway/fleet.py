"""The upstreams of one principal: their lists as one catalogue, what hosts are promised of it, and who is told.

A fleet never sees another principal's hosts, and no conversation of one fleet is in another one unless the operator
said ``share = "always"``. So isolation is by construction.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio

from troth.bridge import peek, relay
from troth.bridge.catalogue import Catalogue, Source
from troth.bridge.promise import Connection, UpstreamView, promise
from troth.gateway.member import FAMILIES, LISTS
from troth.gateway.model import Sort, UnavailableError
from troth.gateway.settings import Transport
from troth.register import Era

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from troth.bridge import Frame
    from troth.capabilities import Built
    from troth.gateway.audience import Audience
    from troth.gateway.limits import Limits
    from troth.gateway.member import Member
    from troth.gateway.model import Host

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Log levels, the most verbose first. Source: RFC 5424, as the specification cites it."""


RECENT: Final = 8
"""Lists that were served lately and are remembered, of each family and revision."""


class Served(NamedTuple):
    """What a class of modern hosts was last served of a family, and when (seconds of the loop's clock)."""

    digest: bytes
    at: float


class Fleet:
    """The upstreams of one principal.

    Args:
        members: The upstreams, in the order of the configuration.
        policies: Policy per family.
        profiles: Policies per host profile.
        limits: Bounds.
        startup_wait: Seconds that a first request waits for upstreams that were never seen.

    Attributes:
        catalogue: What hosts see.
        known: The same with the names of upstreams that are down.
        audiences: Who is told of changes.
    """

    def __init__(
        self,
        members: Sequence[Member],
        policies: Mapping[str, str],
        profiles: Mapping[str, Mapping[str, str]],
        limits: Limits,
        startup_wait: float,
    ) -> None:
        self.members = list(members)
        self.audiences: set[Audience] = set()
        self.policies = policies
        self.profiles = profiles
        self.startup_wait = startup_wait
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._watching: Counter[tuple[Member, str]] = Counter()
        self._served: dict[tuple[str, str], list[Served]] = {}
        self._promised: dict[tuple[str, bool, bool, str], Built] = {}
        self._telling: asyncio.TimerHandle | None = None
        self._levels: dict[object, str] = {}
        self._born = self._loop.time()
        for member in self.members:
            member.watchers.add(self)
        self.known = self.catalogue = Catalogue.build(())
        self._rebuild()

    # Members

    def replace(self, members: Sequence[Member]) -> None:
        """Takes another set of upstreams (reload). Those that left are no longer looked at."""
        for member in self.members:
            member.watchers.discard(self)
        self.members = list(members)
        for member in self.members:
            member.watchers.add(self)
        for audience in self.audiences:
            gone = [uri for uri, (owner, _) in audience.watched.items() if owner not in self.members]
            for uri in gone:
                self._watching.pop(audience.watched.pop(uri), None)
        for level in self._levels.values():
            self._verbose(level)
        self._changed()

    def member(self, name: str) -> Member | None:
        """The upstream of this name."""
        return next((member for member in self.members if member.name == name), None)

    async def settled(self) -> None:
        """Waits for upstreams that were never seen, but not longer than ``startup_wait`` seconds from the start on."""
        left = self._born + self.startup_wait - self._loop.time()
        if left > 0 and (young := self.waiting()):
            with anyio.move_on_after(left):
                for member in young:
                    await member.settled.wait()

    def waiting(self) -> list[Member]:
        """Upstreams whose lists are not known yet."""
        return [member for member in self.members if not member.settled.is_set()]

    # Watcher

    def listed(self, member: Member) -> None:  # noqa: ARG002 - all are compared
        """Something about an upstream changed: what hosts see is made anew."""
        self._changed()

    def updated(self, member: Member, frame: Frame) -> None:
        """Tells those who subscribed to a resource that it changed."""
        peeked = peek(frame, "uri")
        uri = peeked.get("uri") if isinstance(peeked, dict) else None
        if uri is None:
            return
        for audience in self.audiences:
            if audience.watching(member, uri):
                line = relay.notification(
                    frame, target=audience.host.revision, prefix=member.prefix, subscription=audience.tag
                )
                if line is not None:
                    audience.stream.send(line, Sort.CHANGE)

    # What hosts see

    def _changed(self) -> None:
        self._rebuild()
        if self._telling is None:
            self._telling = self._loop.call_later(self._limits.coalesce, self._tell)

    def _rebuild(self) -> None:
        self._promised.clear()
        self.known = Catalogue.build([_source(member) for member in self.members], self.known)
        there = [member for member in self.members if member.listed]
        all_there = len(there) == len(self.members)
        self.catalogue = self.known if all_there else Catalogue.build([_source(member) for member in there], self.known)

    def _tell(self) -> None:
        """Tells every audience of the families that differ from what it was served."""
        self._telling = None
        for audience in tuple(self.audiences):
            for family in FAMILIES:
                if family not in audience.families:
                    continue
                digest = self.digest(family, audience.host)
                if audience.served.get(family) != digest:
                    audience.served[family] = digest
                    audience.changed(family)

    def digest(self, family: str, host: Host) -> bytes:
        """A digest of the lists of a family as this host sees them."""
        return b"".join(
            self.catalogue.digest(kind, host.revision) for kind, how in LISTS.items() if how.family == family
        )

    def join(self, audience: Audience) -> None:
        """From now on the audience is told. What it knows is what its host was served, else what is there now."""
        for family in audience.families:
            audience.served.setdefault(family, self.digest(family, audience.host))
        self.audiences.add(audience)

    def serves(self, family: str, host: Host) -> None:
        """Notes that a host is handed the lists of a family as they are now."""
        digest = self.digest(family, host)
        if host.session is not None:
            for audience in self.audiences:
                if audience.host is host:
                    audience.served[family] = digest
            return
        now = self._loop.time()
        key = (family, host.revision)
        recent = [
            old for old in self._served.get(key, ()) if now - old.at < self._limits.lately and old.digest != digest
        ]
        self._served[key] = [*recent[-RECENT:], Served(digest, now)]

    def missed(self, family: str, host: Host) -> bool:
        """Whether a modern host may hold lists of this family that are older than what is there now."""
        digest = self.digest(family, host)
        now = self._loop.time()
        served = self._served.get((family, host.revision), ())
        return any(old.digest != digest and now - old.at < self._limits.lately for old in served)

    # Promises

    def promised(self, connection: Connection) -> Built:
        """What is declared on such a connection, with reasons."""
        profile = connection.profile.id if connection.profile is not None else ""
        key = (connection.revision, connection.push, connection.can_listen, profile)
        built = self._promised.get(key)
        if built is None:
            views = tuple(self._view(member) for member in self.members)
            built = self._promised[key] = promise(views, connection, self.policies, self.profiles)
        return built

    def _view(self, member: Member) -> UpstreamView:
        conversation = member.conversation
        return UpstreamView(
            name=member.name,
            capabilities=None if conversation is None else conversation.capabilities,
            remembered=member.remembered,
            completes=member.completes,
            extensions=member.settings.relay_extensions,
            experimental=member.settings.relay_experimental,
        )

    def instructions(self) -> str:
        """What the upstreams say of how to use them; of several under their names."""
        told = [(member.name, member.conversation.instructions) for member in self.members if member.conversation]
        told = [(name, text.strip()) for name, text in told if text.strip()]
        if len(self.members) == 1:
            return told[0][1] if told else ""
        return "\n\n".join(f"# {name}\n\n{text}" for name, text in told)

    # Subscriptions

    async def subscribe(self, audience: Audience, uri: str, member: Member, own: str) -> None:
        """Subscribes an audience to a resource; at the upstream once for all.

        Raises:
            UnavailableError: The upstream does not promise updates, or refused.
        """
        if uri in audience.watched:
            return
        key = (member, own)
        audience.watched[uri] = key
        self._watching[key] += 1
        try:
            if self._watching[key] == 1:
                await member.upstream.subscribe(own)
        except (UnavailableError, asyncio.CancelledError):
            self._release(audience, uri)
            raise

    async def unsubscribe(self, audience: Audience, *uris: str) -> None:
        """Ends subscriptions; at the upstream when nobody else has them. Never raises."""
        for uri in uris:
            key = self._release(audience, uri)
            if key is not None and not self._watching[key]:
                del self._watching[key]
                member, own = key
                await member.upstream.unsubscribe(own)

    async def leave(self, audience: Audience) -> None:
        """The audience is gone, and what it had subscribed to with it."""
        self.audiences.discard(audience)
        await self.unsubscribe(audience, *tuple(audience.watched))

    def _release(self, audience: Audience, uri: str) -> tuple[Member, str] | None:
        key = audience.watched.pop(uri, None)
        if key is not None and self._watching[key] > 0:
            self._watching[key] -= 1
        return key

    # Logs

    def level(self, who: object, level: str | None) -> None:
        """Notes the log level that somebody wants; upstreams get the most verbose one. None withdraws it."""
        if level is None:
            self._levels.pop(who, None)
            return
        self._levels[who] = level
        self._verbose(min(self._levels.values(), key=LEVELS.index))

    def _verbose(self, level: str) -> None:
        for member in self.members:
            member.upstream.level(level)

    # Ends

    def close(self) -> None:
        """Ends every audience; the members are stopped by who made them."""
        if self._telling is not None:
            self._telling.cancel()
        for member in self.members:
            member.watchers.discard(self)
        for audience in self.audiences:
            audience.ended.set()


def _source(member: Member) -> Source:
    settings = member.settings
    return Source(
        name=member.name,
        prefix=member.prefix,
        allow=settings.allow,
        deny=settings.deny,
        rename=settings.rename,
        describe=settings.describe,
        mirrors=settings.transport is not Transport.STDIO and member.era is Era.MODERN,
        hints=member.hints,
        tools=member.lists.get("tools"),
        prompts=member.lists.get("prompts"),
        resources=member.lists.get("resources"),
        templates=member.lists.get("templates"),
    )
