"""The gateway as a whole: settings in force, a fleet for every principal, and what changes when the settings do."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import anyio

from troth.gateway.fleet import Fleet
from troth.gateway.member import Member
from troth.gateway.reload import SHOWN
from troth.gateway.settings import Share, UpstreamSettings
from troth.gateway.upstream import open_upstream

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

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
    """

    principal: str
    session: int = 0


ONE_HOST = "stdio"
"""The principal that is a single host: whoever started the gateway on its pipes."""

EVERYBODY = Owner("")
"""The owner of members that every principal uses."""


class Gateway:
    """Upstreams by principal.

    Args:
        settings: What the operator asked for.
        state: What was remembered of earlier runs, and is to be.
        crew: Owner of every task.
        limits: Bounds.

    Attributes:
        fleets: Fleet by principal.
        own: Fleets of single sessions, where some upstream is not shared (``share = "never"``).
    """

    def __init__(self, settings: GatewaySettings, state: State, crew: Crew, limits: Limits) -> None:
        self.settings = settings
        self.crew = crew
        self.limits = limits
        self.fleets: dict[Principal, Fleet] = {}
        self.own: dict[Fleet, Owner] = {}
        self._state = state
        self._prefixes = self._named(settings)
        self._members: dict[tuple[Owner, str], Member] = {}
        self._eras: dict[str, str] = {}
        self._sessions = 0

    def fleet(self, principal: Principal) -> Fleet:
        """The upstreams of a principal. They start when it is first asked for."""
        fleet = self.fleets.get(principal)
        if fleet is None:
            fleet = self.fleets[principal] = self._fleet(Owner(principal.name))
        return fleet

    def session_fleet(self, principal: Principal) -> Fleet | str:
        """The upstreams of a session: those of its principal, and its own of each that is not shared.

        Returns:
            The fleet, to be given back with `release`; or which limit keeps it from being, in words.
        """
        alone = [upstream for upstream in self.settings.upstreams if upstream.share is Share.NEVER]
        if not alone:
            return self.fleet(principal)
        for upstream in alone:
            open_now = sum(name == upstream.name and owner.principal == principal.name for owner, name in self._members)
            if open_now >= upstream.max_sessions:
                return f"upstream {upstream.name}: {upstream.max_sessions} sessions are open (limit: max_sessions)"
        self._sessions += 1
        owner = Owner(principal.name, self._sessions)
        fleet = self._fleet(owner)
        self.own[fleet] = owner
        return fleet

    def release(self, fleet: Fleet) -> None:
        """Ends what a session had for itself."""
        owner = self.own.pop(fleet, None)
        if owner is not None:
            fleet.close()
            self._stop(lambda key: key[0] == owner)

    def every_fleet(self) -> Iterator[Fleet]:
        """All fleets."""
        yield from self.fleets.values()
        yield from self.own

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
        match settings.share:
            case Share.ALWAYS:
                owner = EVERYBODY
            case Share.AUTO:
                owner = owner._replace(session=0)
            case Share.NEVER:
                pass
        key = (owner, settings.name)
        member = self._members.get(key)
        if member is not None and _spoken(member.settings) == _spoken(settings):
            member.settings, member.prefix = settings, self._prefixes[settings.name]
            return member
        if member is not None:
            self.crew.spawn(member.stop(), f"stop {settings.name}")
        member = self._members[key] = self._open(settings)
        return member

    def _open(self, settings: UpstreamSettings) -> Member:
        name = settings.name
        member = Member(settings, self._prefixes[name], self.crew, self.limits)
        seen = self._state.seen(name)
        if seen is not None and seen.declared is not None:
            member.remembered = _paths(seen.declared)
        member.remembers = self._remember
        member.upstream = open_upstream(settings, member, self.crew, self.limits, self._eras)
        return member

    def _stop(self, gone: Callable[[tuple[Owner, str]], bool]) -> None:
        for key in [key for key in self._members if gone(key)]:
            member = self._members.pop(key)
            self.crew.spawn(member.stop(), f"stop {member.name}")

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
        if problem := self._state.save():
            _log.warning("what was learnt of upstreams cannot be kept: %s", problem)

    def reload(self, settings: GatewaySettings) -> None:
        """Takes other settings. Upstreams whose part is the same are not touched; hosts are told what changed."""
        self.settings = settings
        self._prefixes = self._named(settings)
        for fleet, owner in [
            *((fleet, Owner(principal.name)) for principal, fleet in self.fleets.items()),
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
        for principal in [principal for principal in self.fleets if principal.name not in names]:
            self.fleets.pop(principal).close()
            self._stop(lambda key, name=principal.name: key[0].principal == name)

    async def stop(self) -> None:
        """Ends everything that hosts wait for, and every upstream."""
        for fleet in self.every_fleet():
            fleet.close()
        async with anyio.create_task_group() as tasks:
            for member in self._members.values():
                tasks.start_soon(member.stop)
        self._state.save()


def _paths(declared: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Families and their flags as paths of the register."""
    return frozenset(declared) | {f"{family}.{flag}" for family, flags in declared.items() for flag in flags}


def _families(paths: frozenset[str]) -> dict[str, frozenset[str]]:
    """The reverse of `_paths`."""
    families = {path for path in paths if "." not in path}
    return {
        family: frozenset(path.partition(".")[2] for path in paths if path.startswith(f"{family}."))
        for family in sorted(families)
    }


def _spoken(settings: UpstreamSettings) -> UpstreamSettings:
    """What of the settings concerns the conversation, not what hosts see of it."""
    plain = UpstreamSettings(name="", transport=settings.transport)
    return replace(settings, **{name: getattr(plain, name) for name in SHOWN})
