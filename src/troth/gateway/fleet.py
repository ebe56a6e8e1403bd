"""The upstreams of one principal: their lists as one catalogue, what hosts are promised of it, and who is told.

A fleet never sees another principal's hosts, and no conversation of one fleet is in another one unless the operator
said ``share = "always"``. So isolation is by construction.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import anyio

from troth.bridge import Cause, Lost, fresh, peek, relay
from troth.bridge.catalogue import Asker, Catalogue, Source
from troth.bridge.exchange import LEVELS
from troth.bridge.promise import Connection, UpstreamView, promise
from troth.gateway.asked import connection_of
from troth.gateway.audience import Watched
from troth.gateway.fetching import FAMILIES, LISTS
from troth.gateway.hiding import asker
from troth.gateway.model import Sort, Status, UnavailableError
from troth.gateway.outside import Outsiders
from troth.gateway.settings import Transport
from troth.register import Era

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from troth.bridge import Frame
    from troth.capabilities import Built
    from troth.gateway.asked import HostSession
    from troth.gateway.audience import Audience
    from troth.gateway.crew import Crew
    from troth.gateway.limits import Limits
    from troth.gateway.member import Member
    from troth.gateway.model import Conversation, Host

_log = logging.getLogger(__name__)

SUBSCRIBES: Final = "resources.subscribe"

HOSTS: Final = 256
"""Modern hosts for which it is kept what they are promised."""

RECENT: Final = 8
"""Lists that were served lately and are remembered, of each family and class of hosts."""

CLASSES: Final = 256
"""Families and classes of modern hosts that are remembered. Classes differ by revision and declared capabilities, and
one principal has few; one that makes up capabilities loses the memory of its own hosts only."""


@dataclass(slots=True)
class Served:
    """What a class of modern hosts was served of a family.

    Attributes:
        digest: Of the lists.
        moved: Since when the lists are others (seconds of the loop's clock); None while they are the same.
    """

    digest: bytes
    moved: float | None = None


class Fleet:
    """The upstreams of one principal.

    Args:
        members: The upstreams, in the order of the configuration.
        policies: Policy per family.
        profiles: Policies per host profile.
        limits: Bounds.
        startup_wait: Seconds that a first request waits for upstreams that were never seen.
        crew: Owner of its tasks.
        alone: Whether an upstream works for one host only, so that all it says is for that host.

    Attributes:
        catalogue: What hosts see.
        known: The same with the names of upstreams that are down.
        audiences: Who is told of changes.
        outside: What upstreams ask outside of calls.
    """

    def __init__(
        self,
        members: Sequence[Member],
        *,
        policies: Mapping[str, str],
        profiles: Mapping[str, Mapping[str, str]],
        limits: Limits,
        startup_wait: float,
        crew: Crew,
        alone: Callable[[Member], bool],
    ) -> None:
        self.members = list(members)
        self._by_name = {member.name: member for member in members}
        self.audiences: set[Audience] = set()
        self.policies = policies
        self.profiles = profiles
        self.startup_wait = startup_wait
        self._limits = limits
        self._crew = crew
        self._alone = alone
        self._loop = asyncio.get_running_loop()
        self._served: dict[tuple[str, Asker], list[Served]] = {}
        self._promised: dict[tuple[str, bool, bool, bool, str], Built] = {}
        self._hosts: dict[Host, Built] = {}
        self.outside = Outsiders(self, limits)
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
        before, self.members = self.members, list(members)
        self._by_name = {member.name: member for member in members}
        for member in before:
            if member not in self.members:
                member.watchers.discard(self)
        for member in self.members:
            if member not in before:
                member.watchers.add(self)
                for who, level in self._levels.items():
                    member.level(who, level)
        for audience in self.audiences:
            for uri, watched in audience.watched.items():
                fresh_one = None if watched.owner in self.members else self.member(watched.owner.name)
                if fresh_one is not None:
                    watched.owner = fresh_one
                    self._crew.spawn(self._watch_again(audience, uri, watched, fresh_one), "subscribe again")
        self._changed()

    def member(self, name: str) -> Member | None:
        """The upstream of this name."""
        return self._by_name.get(name)

    async def settled(self, *, strangers: bool = False) -> None:
        """Waits for upstreams that have not started, but not longer than ``startup_wait`` seconds from the start on.

        Args:
            strangers: Only for those that were never seen, since what the others declare is remembered.
        """
        young = [member for member in self.waiting() if not (strangers and member.remembered is not None)]
        left = self._born + self.startup_wait - self._loop.time()
        if young and left > 0:
            with anyio.move_on_after(left):
                for member in young:
                    await member.settled.wait()

    def waiting(self) -> list[Member]:
        """Upstreams whose lists are not known yet."""
        return [member for member in self.members if not member.settled.is_set()]

    def absent(self) -> list[Member]:
        """Upstreams that are not there and whose lists were never fetched, so that what they own is not known."""
        return [member for member in self.members if member.conversation is None and not member.lists]

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
        for audience in tuple(self.audiences):
            if audience.watching(member, uri):
                line = relay.notification(
                    frame, target=audience.host.revision, prefix=member.prefix, subscription=audience.tag
                )
                if line is not None:
                    audience.updated(line)

    def moved(self, member: Member) -> None:
        """See `troth.gateway.member.Watcher`."""
        for audience in self.audiences:
            for uri, watched in audience.watched.items():
                if watched.owner is member:
                    self._crew.spawn(self._watch_again(audience, uri, watched, member), "subscribe elsewhere")

    def asked(self, member: Member, conversation: Conversation, frame: Frame) -> bool:
        """See `troth.gateway.member.Watcher`."""
        return self.outside.asked(member, conversation, frame)

    def visited(self, member: Member, frame: Frame) -> bool:
        """See `troth.gateway.member.Watcher`."""
        return self.outside.visited(member, frame)

    def withdrawn(self, conversation: Conversation | None, frame: Frame) -> None:
        """See `troth.gateway.member.Watcher`."""
        self.outside.withdrawn(conversation, frame)

    def logged(self, member: Member, frame: Frame) -> bool:
        """Passes a log message to the one legacy host that an upstream works for, if there is just one."""
        if not self._alone(member):
            return False
        peeked = peek(frame, "level")
        level = peeked.get("level") if isinstance(peeked, dict) else None
        told = False
        for audience in tuple(self.audiences):
            session = cast("HostSession | None", audience.host.session)
            if session is None or not audience.opened or level not in LEVELS or not session.built.has("logging"):
                continue
            told = True
            if LEVELS.index(level) >= LEVELS.index(session.level or LEVELS[0]):
                line = relay.notification(frame, target=audience.host.revision, prefix=member.prefix)
                if line is not None:
                    audience.stream.send(line, Sort.LOG)
        return told

    # What hosts see

    def _changed(self) -> None:
        self._rebuild()
        if self._telling is None:
            self._telling = self._loop.call_later(self._limits.coalesce, self._tell)

    def _rebuild(self) -> None:
        """Makes the catalogues anew, and notes since when what was served is old."""
        self._promised.clear()
        self._hosts.clear()
        self.known = Catalogue.build([_source(member) for member in self.members], self.known)
        there = [member for member in self.members if member.listed]
        all_there = len(there) == len(self.members)
        self.catalogue = self.known if all_there else Catalogue.build([_source(member) for member in there], self.known)
        now = self._loop.time()
        for (family, who), served in self._served.items():
            digest = self._digest(family, who)
            for old in served:
                old.moved = None if old.digest == digest else old.moved or now

    def _tell(self) -> None:
        """Tells every audience of the families that differ from what it was served."""
        self._telling = None
        for audience in tuple(self.audiences):
            if audience.opened:
                self._announce(audience)

    def _announce(self, audience: Audience) -> None:
        for family in FAMILIES:
            if family in audience.families:
                digest = self._digest(family, asker(audience.host))
                if audience.served.get(family) != digest:
                    audience.served[family] = digest
                    audience.changed(family)

    def _digest(self, family: str, who: Asker) -> bytes:
        """A digest of the lists of a family as such hosts see them."""
        return b"".join(
            self.catalogue.digest(kind, who.revision, self.catalogue.hidden(kind, who))
            for kind, how in LISTS.items()
            if how.family == family
        )

    def join(self, audience: Audience) -> None:
        """Takes an audience, which is told nothing before `open`."""
        self.audiences.add(audience)

    def open(self, audience: Audience) -> None:
        """From now on an audience is told, first of what it may have missed.

        A legacy host knows what it was served; where that was nothing it knows nothing old. A listen cannot tell what
        its host holds: whatever its class was served counts.
        """
        if audience.opened or audience not in self.audiences:
            return
        audience.open()
        self.outside.host_came(audience)
        for family in audience.families:
            who = asker(audience.host)
            digest = self._digest(family, who)
            if audience.tag is not None and self._missed(family, who):
                audience.served[family] = b""
            audience.served.setdefault(family, digest)
        self._announce(audience)

    def serves(self, family: str, host: Host) -> None:
        """Notes that a host is handed the lists of a family as they are now."""
        who = asker(host)
        digest = self._digest(family, who)
        session = cast("HostSession | None", host.session)
        if session is not None:
            session.audience.served[family] = digest
            return
        key = (family, who)
        others = [old for old in self._served.pop(key, ()) if old.digest != digest]
        if len(self._served) >= CLASSES:
            del self._served[next(iter(self._served))]
        self._served[key] = [*others[1 - RECENT :], Served(digest)]

    def _missed(self, family: str, who: Asker) -> bool:
        """Whether modern hosts may hold lists of a family that lately became older than what is there now."""
        oldest = self._loop.time() - self._limits.lately
        return any(old.moved is not None and old.moved > oldest for old in self._served.get((family, who), ()))

    # Promises

    def promised(self, connection: Connection) -> Built:
        """What is declared on such a connection, with reasons."""
        profile = connection.profile.id if connection.profile is not None else ""
        key = (connection.revision, connection.push, connection.can_listen, connection.alone, profile)
        built = self._promised.get(key)
        if built is None:
            views = tuple(self._view(member) for member in self.members)
            built = self._promised[key] = promise(views, connection, self.policies, self.profiles)
        return built

    def promised_to(self, host: Host) -> Built:
        """What is declared to a modern host."""
        built = self._hosts.get(host)
        if built is None:
            if len(self._hosts) >= HOSTS:
                self._hosts.clear()
            built = self._hosts[host] = self.promised(connection_of(host))
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
        most = self._limits.instructions
        told = [(name, text.strip()[:most]) for name, text in told if text.strip()]
        if len(self.members) == 1:
            return told[0][1] if told else ""
        return "\n\n".join(f"# {name}\n\n{text}" for name, text in told)

    # Subscriptions

    async def subscribe(self, audience: Audience, uri: str, member: Member, own: str) -> None:
        """Subscribes an audience to a resource. The upstream counts, and is told once.

        Raises:
            UnavailableError: The upstream does not promise updates, is not known to, or refused.
        """
        while (known := audience.watched.get(uri)) is not None:
            await known.settled.wait()
            if known.made:
                return
        if member.conversation is None and SUBSCRIBES not in (member.remembered or ()):
            words = f"{member.name} is not known to promise {SUBSCRIBES}, and is {member.upstream.status} now"
            raise UnavailableError(Lost(Cause.DOWN, words))
        watched = audience.watched[uri] = Watched(member, own)
        try:
            await watched.at.subscribe(own)
            watched.made = True
        finally:
            if not watched.made and audience.watched.get(uri) is watched:
                del audience.watched[uri]
            watched.settled.set()
        if watched.dropped:
            await watched.at.unsubscribe(own)

    async def unsubscribe(self, audience: Audience, *uris: str) -> None:
        """Ends subscriptions; at the upstream when nobody else has them. Never raises."""
        for uri in uris:
            watched = audience.watched.pop(uri, None)
            if watched is None:
                continue
            watched.dropped = True
            if watched.made:
                await watched.at.unsubscribe(watched.own)

    async def leave(self, audience: Audience) -> None:
        """The audience is gone, and what it had subscribed to with it."""
        self.audiences.discard(audience)
        await self.unsubscribe(audience, *tuple(audience.watched))

    async def _watch_again(self, audience: Audience, uri: str, watched: Watched, owner: Member) -> None:
        """Subscribes where another upstream or connection took the place of the one that a resource was watched at."""
        await watched.settled.wait()
        if not watched.made or watched.dropped or watched.owner is not owner:
            return
        before, watched.at = watched.at, owner.upstream
        watched.made, watched.settled = False, anyio.Event()
        await before.unsubscribe(watched.own)
        try:
            await watched.at.subscribe(watched.own)
            watched.made = True
        except UnavailableError as error:
            _log.warning("upstream %s: a subscription was not made again: %s", owner.name, error)
            return
        finally:
            watched.settled.set()
        if watched.dropped:
            await watched.at.unsubscribe(watched.own)
            return
        await owner.settled.wait()
        if watched.owner is owner and not watched.dropped and owner.upstream.status is Status.READY:
            params = {"uri": uri} if audience.tag is None else {"_meta": audience.meta, "uri": uri}
            audience.updated(fresh.notification_line("notifications/resources/updated", params))

    # Logs

    def level(self, who: object, level: str | None) -> None:
        """Notes the log level that a session wants; upstreams get the most verbose one. None withdraws it."""
        if level is None:
            self._levels.pop(who, None)
        else:
            self._levels[who] = level
        for member in self.members:
            member.level(who, level)

    async def levelled(self) -> None:
        """Waits for a moment until the upstreams have taken the level."""
        for member in self.members:
            await member.levelled()

    # Ends

    def close(self) -> None:
        """Ends every audience; the members are stopped by who made them."""
        if self._telling is not None:
            self._telling.cancel()
        self.outside.close()
        for member in self.members:
            member.watchers.discard(self)
            for who in self._levels:
                member.level(who, None)
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
        requires=settings.requires,
        answered=member.answers,
        mirrors=settings.transport is not Transport.STDIO and member.era is Era.MODERN,
        tasks=member.tasks,
        hints=dict(member.hints),
        tools=member.lists.get("tools"),
        prompts=member.lists.get("prompts"),
        resources=member.lists.get("resources"),
        templates=member.lists.get("templates"),
        left=dict(member.left),
    )
