"""The gateway as a whole: settings in force, a fleet for every principal, and what changes when the settings do."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio

from troth.gateway.fleet import Fleet
from troth.gateway.member import Member
from troth.gateway.settings import Share
from troth.gateway.upstream import open_upstream

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.gateway.crew import Crew
    from troth.gateway.limits import Limits
    from troth.gateway.model import Principal
    from troth.gateway.settings import GatewaySettings, UpstreamSettings
    from troth.gateway.state import State

_log = logging.getLogger(__name__)

SHARED = ""
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
    """

    def __init__(self, settings: GatewaySettings, state: State, crew: Crew, limits: Limits) -> None:
        self.settings = settings
        self.crew = crew
        self.limits = limits
        self.fleets: dict[Principal, Fleet] = {}
        self._state = state
        self._prefixes: Mapping[str, str] = state.prefixes(settings)
        self._members: dict[tuple[str, str], Member] = {}
        self._eras: dict[str, str] = {}

    def fleet(self, principal: Principal) -> Fleet:
        """The upstreams of a principal. They start when it is first asked for."""
        fleet = self.fleets.get(principal)
        if fleet is None:
            fleet = self.fleets[principal] = Fleet(
                self._of(principal),
                self.settings.policies,
                self.settings.profiles,
                self.limits,
                self.settings.startup_wait,
            )
        return fleet

    def _of(self, principal: Principal) -> list[Member]:
        return [self._member(settings, principal) for settings in self.settings.upstreams]

    def _member(self, settings: UpstreamSettings, principal: Principal) -> Member:
        owner = SHARED if settings.share is Share.ALWAYS else principal.name
        key = (owner, settings.name)
        member = self._members.get(key)
        if member is None or member.settings != settings:
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
        if problem := self._state.save():
            _log.warning("what was learnt of %s cannot be kept: %s", member.name, problem)

    def reload(self, settings: GatewaySettings) -> None:
        """Takes other settings. Upstreams whose part is the same are not touched; hosts are told what changed."""
        self.settings = settings
        self._prefixes = self._state.prefixes(settings)
        kept = {upstream.name for upstream in settings.upstreams}
        for principal, fleet in self.fleets.items():
            fleet.policies = settings.policies
            fleet.profiles = settings.profiles
            fleet.replace(self._of(principal))
        for key, member in tuple(self._members.items()):
            if member.name not in kept or not member.watchers:
                del self._members[key]
                self.crew.spawn(member.stop(), f"stop {member.name}")
        _log.info("configuration reloaded: %d upstreams", len(kept))

    def members(self) -> list[Member]:
        """Every upstream of every principal."""
        return list(self._members.values())

    async def stop(self) -> None:
        """Ends everything that hosts wait for, and every upstream."""
        for fleet in self.fleets.values():
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
