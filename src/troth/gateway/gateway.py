"""The gateway as a whole: settings in force, a fleet for every principal, and what changes when the settings do."""

from __future__ import annotations

import asyncio
import logging
from secrets import token_hex
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio

from troth.bridge.asks import (
    BROKER,
    FORM,
    NOTHING,
    OPEN,
    ROOTS,
    ROWS,
    SAMPLING,
    URL,
    asks_of,
    entries_of,
    narrowed,
)
from troth.gateway.fleet import Fleet
from troth.gateway.lines import Line, Spare
from troth.gateway.member import Member
from troth.gateway.parking import Parking
from troth.gateway.seal import Keys, Seal
from troth.gateway.settings import Share, UpstreamSettings, spoken
from troth.gateway.tasks import Tasks
from troth.gateway.upstream import open_upstream
from troth.tasks import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from troth.bridge.asks import Asks
    from troth.capabilities import ClientCapabilities
    from troth.gateway.broker import Broker
    from troth.gateway.calls import Call
    from troth.gateway.crew import Crew
    from troth.gateway.limits import Limits
    from troth.gateway.model import Principal
    from troth.gateway.settings import GatewaySettings
    from troth.gateway.state import State

_log = logging.getLogger(__name__)


class Owner(NamedTuple):
    """Who uses a member.

    Attributes:
        principal: Name of the principal; empty for everybody.
        session: Number of the session that has it for itself; 0 for none.
        asks: What the hosts behind it can be asked.
    """

    principal: str
    session: int = 0
    asks: Asks = NOTHING


ONE_HOST = "stdio"
"""The principal that is a single host: whoever started the gateway on its pipes."""

BROKERED: Final = frozenset({FORM, SAMPLING})
"""What the broker takes at any time."""

VISITS: Final = frozenset({URL})
"""What it takes while somebody watches."""

EVERYBODY = Owner("")
"""The owner of members that every principal uses."""


class Gateway:
    """Upstreams by principal.

    Args:
        settings: What the operator asked for.
        state: What was remembered of earlier runs, and is to be.
        crew: Owner of every task.
        limits: Bounds.
        keys: What seals the state that modern hosts carry; None for keys of this run alone.

    Attributes:
        seal: Seals that state.
        broker: Takes questions for people or a command; None where it is off.
        tasks: Holds the tasks of hosts; in memory, until somebody gives it a store.
        several: Whether more than one principal may come; by the configuration until somebody knows better.
        parking: Calls that wait for their modern host to come again.
        fleets: Fleet by principal and what its hosts can be asked.
        own: Fleets of single sessions, where some upstream is not shared (``share = "never"``).
    """

    def __init__(
        self, settings: GatewaySettings, state: State, crew: Crew, limits: Limits, keys: Keys | None = None
    ) -> None:
        self.settings = settings
        self.crew = crew
        self.limits = limits
        self.fleets: dict[tuple[Principal, Asks], Fleet] = {}
        self.own: dict[Fleet, Owner] = {}
        self._state = state
        self._prefixes = self._named(settings)
        self._members: dict[tuple[Owner, str], Member] = {}
        self._lines: dict[tuple[Owner, str], list[Line]] = {}
        self._eras: dict[str, str] = {}
        self._sessions = 0
        self.broker: Broker | None = None
        self.several: Callable[[], bool] = lambda: len(self.settings.tokens) > 1
        self.seal = Seal(keys or Keys.made())
        self.tasks = Tasks(MemoryStore(), crew, limits)
        self.parking: Parking[Call] = Parking(token_hex(8), limits)
        self._ending: set[asyncio.Task[None]] = set()

    def asks_of(self, principal: Principal, capabilities: ClientCapabilities) -> Asks:
        """What a host can be asked, and what of its open maps the operator lets pass: by that, hosts share upstreams.

        Hosts choose the settings of their keys, and each choice has upstreams of its own: beyond ``Limits.classes`` of
        them nothing more of the maps passes.
        """
        asks = asks_of(capabilities)
        keys = {member: {key for one in self.settings.upstreams for key in _relayed(one)[member]} for member in OPEN}
        entries = entries_of(capabilities, keys) if any(keys.values()) else NOTHING
        if not entries or (principal, asks | entries) in self.fleets:
            return asks | entries
        known = sum(name == principal and not other <= ROWS for name, other in self.fleets)
        return asks | entries if known < self.limits.classes else asks

    def fleet(self, principal: Principal, asks: Asks = NOTHING) -> Fleet:
        """The upstreams of a principal, for hosts that can be asked this. They start when it is first asked for."""
        fleet = self.fleets.get((principal, asks))
        if fleet is None:
            fleet = self.fleets[principal, asks] = self._fleet(Owner(principal.name, 0, asks))
        return fleet

    def session_fleet(self, principal: Principal, asks: Asks = NOTHING) -> Fleet | str:
        """The upstreams of a session: those of its principal, and its own of each that is not shared.

        Returns:
            The fleet, to be given back with `release`; or which limit keeps it from being, in words.
        """
        alone = [upstream for upstream in self.settings.upstreams if upstream.share is Share.NEVER]
        if not alone:
            return self.fleet(principal, asks)
        for upstream in alone:
            open_now = sum(name == upstream.name and owner.principal == principal.name for owner, name in self._members)
            if open_now >= upstream.max_sessions:
                return f"upstream {upstream.name}: {upstream.max_sessions} sessions are open (limit: max_sessions)"
        self._sessions += 1
        owner = Owner(principal.name, self._sessions, asks)
        fleet = self._fleet(owner)
        self.own[fleet] = owner
        return fleet

    def release(self, fleet: Fleet) -> None:
        """Ends what a session had for itself."""
        owner = self.own.pop(fleet, None)
        if owner is not None:
            fleet.close()
            self._stop(lambda key: key[0][:2] == owner[:2])

    def every_fleet(self) -> Iterator[Fleet]:
        """All fleets."""
        yield from self.fleets.values()
        yield from self.own

    def fleets_of(self, principal: Principal) -> Iterator[Fleet]:
        """The fleets that hosts of a principal share, one for each set of what hosts can be asked."""
        return (fleet for (owner, _), fleet in self.fleets.items() if owner == principal)

    def _fleet(self, owner: Owner) -> Fleet:
        settings = self.settings

        def alone(member: Member) -> bool:
            return owner.principal == ONE_HOST or (owner.session > 0 and member.settings.share is Share.NEVER)

        return Fleet(
            self._of(owner),
            policies=settings.policies,
            profiles=settings.profiles,
            limits=self.limits,
            startup_wait=settings.startup_wait,
            crew=self.crew,
            alone=alone,
        )

    def _of(self, owner: Owner) -> list[Member]:
        return [self._member(settings, owner) for settings in self.settings.upstreams]

    def _member(self, settings: UpstreamSettings, owner: Owner) -> Member:
        """The member that an owner uses, opened if there is none yet, or if it must be spoken to in another way."""
        pooled = settings.share is Share.ALWAYS
        answers = self.answers(settings)
        asks = narrowed(owner.asks, ask=settings.ask, answers=answers, pooled=pooled, relayed=_relayed(settings))
        if pooled:
            owner = EVERYBODY
        elif settings.share is Share.AUTO:
            owner = owner._replace(session=0)
        key = (owner._replace(asks=asks), settings.name)
        member = self._members.get(key)
        if member is not None and spoken(member.settings) == spoken(settings):
            member.settings, member.prefix = settings, self._prefixes[settings.name]
        else:
            if member is not None:
                self._end(member)
            member = self._members[key] = self._open(settings, *key)
        member.shared = self.several()
        member.answers = answers & asks
        return member

    def _open(self, settings: UpstreamSettings, owner: Owner, name: str) -> Member:
        member = Member(settings, self._prefixes[name], self.crew, self.limits, owner.asks)
        seen = self._state.seen(name)
        if seen is not None and seen.declared is not None:
            member.remembered = _paths(seen.declared)
        member.remembers = self._remember
        member.opens = lambda: open_upstream(
            member.settings, Spare(member), self.crew, self.limits, self._eras, asks=member.told
        )
        group = (owner._replace(asks=NOTHING), name)
        known = next((other for key, other in self._members.items() if _twins(key, other, group, settings)), None)
        if known is not None:
            member.borrow(known)
        lines = self._lines[group] = [line for line in self._lines.get(group, ()) if line.members]
        shared = next((line for line in lines if line.open_to and _same(line, settings)), None)
        if shared is None:
            self._connect(group, member)
        else:
            shared.join(member)
        return member

    def answers(self, settings: UpstreamSettings) -> Asks:
        """What is answered to an upstream without a host: configured roots, and what the broker takes."""
        roots = NOTHING if settings.roots is None else frozenset({ROOTS})
        return roots | (BROKERED if self.broker is not None and BROKER in settings.ask else NOTHING)

    def visits(self, member: Member) -> Asks:
        """What an upstream may ask besides while somebody watches its questions: a visit to an address."""
        watched = self.broker is not None and self.broker.watched
        return VISITS if watched and member.sends_people else NOTHING

    def _connect(self, group: tuple[Owner, str], member: Member) -> None:
        """Opens a line for a member."""
        line = Line(member.told, lambda other: self._connect(group, other))
        line.upstream = open_upstream(member.settings, line, self.crew, self.limits, self._eras, asks=member.told)
        line.join(member)
        self._lines[group].append(line)

    def _stop(self, gone: Callable[[tuple[Owner, str]], bool]) -> None:
        for key in [key for key in self._members if gone(key)]:
            self._end(self._members.pop(key))

    def _end(self, member: Member) -> None:
        """Stops a member in the background; `stop` waits for it, since a process must be gone at the end."""
        ending = self.crew.spawn(member.stop(), f"stop {member.name}")
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    def _remember(self, member: Member) -> None:
        conversation = member.conversation
        if conversation is None:
            return
        self._state.remember(
            member.name,
            era=conversation.era,
            revision=conversation.revision,
            declared=_families(member.remembered or frozenset()),
        )
        self._save()

    def _named(self, settings: GatewaySettings) -> Mapping[str, str]:
        """The prefix of every upstream, kept before anybody sees it."""
        prefixes = self._state.prefixes(settings)
        self._save()
        return prefixes

    def _save(self) -> None:
        before = self._state.problem
        problem = self._state.save()
        if problem and problem != before:
            _log.warning("what is learnt of upstreams is forgotten at the end, since it cannot be kept: %s", problem)

    def reload(self, settings: GatewaySettings) -> None:
        """Takes other settings. Upstreams whose part is the same are not touched; hosts are told what changed."""
        self.settings = settings
        self._prefixes = self._named(settings)
        for fleet, owner in [
            *((fleet, Owner(principal.name, 0, asks)) for (principal, asks), fleet in self.fleets.items()),
            *self.own.items(),
        ]:
            fleet.policies = settings.policies
            fleet.profiles = settings.profiles
            fleet.replace(self._of(owner))
        used = {id(member) for fleet in self.every_fleet() for member in fleet.members}
        self._stop(lambda key: id(self._members[key]) not in used)
        _log.info("configuration reloaded: %d upstreams", len(settings.upstreams))

    def retain(self, names: Collection[str]) -> None:
        """Ends the upstreams of principals that are no longer known.

        Args:
            names: The principals that are.
        """
        for key in [key for key in self.fleets if key[0].name not in names]:
            self.fleets.pop(key).close()
            self._stop(lambda owned, name=key[0].name: owned[0].principal == name)

    async def stop(self) -> None:
        """Ends everything that hosts wait for, and every upstream."""
        await self.tasks.stop()
        for parked in self.parking.all():
            parked.call.withdraw("the gateway stops")
        for fleet in self.every_fleet():
            fleet.close()
        async with anyio.create_task_group() as tasks:
            for member in self._members.values():
                tasks.start_soon(member.stop)
        if self._ending:
            await asyncio.wait(self._ending)
        self._save()


def _paths(declared: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Families and their flags as paths of the register."""
    return frozenset(declared) | {f"{family}.{flag}" for family, flags in declared.items() for flag in flags}


def _families(paths: frozenset[str]) -> dict[str, frozenset[str]]:
    """The reverse of `_paths`."""
    found: dict[str, set[str]] = {}
    for path in sorted(paths):
        # The dots of a key in an open map are its own.
        family, _, flag = (path, "", "") if "[" in path else path.partition(".")
        found.setdefault(family, set()).update({flag} if flag else ())
    return {family: frozenset(flags) for family, flags in found.items()}


def _twins(key: tuple[Owner, str], other: Member, group: tuple[Owner, str], settings: UpstreamSettings) -> bool:
    """Whether a member is of the same upstream and owner as a new one, for hosts that can be asked other things."""
    owner, name = key
    same = (owner._replace(asks=NOTHING), name) == group and spoken(other.settings) == spoken(settings)
    return same and other.listed and bool(other.lists)


def _same(line: Line, settings: UpstreamSettings) -> bool:
    """Whether a line leads to where these settings lead."""
    return spoken(line.members[0].settings) == spoken(settings)


def _relayed(settings: UpstreamSettings) -> Mapping[str, tuple[str, ...]]:
    """Keys of open maps that pass between hosts and an upstream."""
    return {"extensions": settings.relay_extensions, "experimental": settings.relay_experimental}
