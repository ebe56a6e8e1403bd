"""Fills the status of a gateway from what runs."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from troth.bridge.asks import OPEN, open_maps
from troth.bridge.promise import TASKS
from troth.gateway.asked import printable
from troth.gateway.fetching import LISTS
from troth.gateway.hiding import hidden
from troth.gateway.status import HostStatus, Listed, Promise, Status, UpstreamStatus
from troth.gateway.upstream.supervise import Supervisor, costs, in_full
from troth.register import Side, register

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from troth.capabilities import Built, Capabilities
    from troth.gateway.asked import HostSession, Seen
    from troth.gateway.fleet import Fleet
    from troth.gateway.front import MiddleFront
    from troth.gateway.gateway import Gateway
    from troth.gateway.member import Member
    from troth.gateway.model import Host

SHARED = "hosts share this credential and so the sessions of servers; make one token per host to keep them apart"
RECONNECT = "{} appeared after this session began: reconnect to see it"
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def report(
    gateway: Gateway, front: MiddleFront, *, url: str, started: float, version: str, faults: Sequence[str]
) -> Status:
    """The status now.

    Args:
        gateway: What runs.
        front: Who knows the hosts.
        url: Address of the endpoint; empty for none.
        started: When the gateway was started, in seconds since 1970.
        version: Version of Troth.
        faults: What is wrong with a configuration that is not in force.
    """
    hosts = [
        *map(_session, front.sessions),
        *(_seen(seen, gateway.fleet(seen.host.principal)) for seen in front.seen()),
    ]
    return Status(
        troth=version,
        pid=os.getpid(),
        url=url,
        config=gateway.settings.path or "",
        uptime=time.time() - started,
        memory=resident(os.getpid()) or 0,
        upstreams=tuple(
            _upstream(member, fleet, principal) for principal, fleet in _owners(gateway) for member in fleet.members
        ),
        hosts=tuple(sorted(_noted(hosts), key=lambda host: host.idle)),
        faults=tuple(faults),
        notes=tuple(_problems(gateway)),
    )


def resident(pid: int) -> int | None:
    """Resident bytes of a process; None where the system does not tell."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * PAGE
    except (OSError, IndexError, ValueError):
        return None


def _owners(gateway: Gateway) -> Iterable[tuple[str, Fleet]]:
    yield from ((principal.name, fleet) for (principal, _), fleet in gateway.fleets.items())
    yield from ((f"{owner.principal}, session {owner.session}", fleet) for fleet, owner in gateway.own.items())


def _problems(gateway: Gateway) -> list[str]:
    """What the catalogues left out, each once; and why nobody can be asked by the command ``questions``."""
    broker = gateway.broker
    failed = [f"questions cannot be kept for people: {broker.problem}"] if broker is not None and broker.problem else []
    return failed + list(dict.fromkeys(problem for fleet in gateway.every_fleet() for problem in fleet.known.problems))


def _upstream(member: Member, fleet: Fleet, principal: str) -> UpstreamStatus:
    conversation = member.conversation
    upstream = cast("Supervisor", member.upstream)
    cost = costs(upstream)
    info: Mapping[str, object] = conversation.info if conversation is not None else {}
    return UpstreamStatus(
        name=member.name,
        principal=principal,
        prefix=member.prefix,
        transport=member.settings.transport,
        state=upstream.status,
        why=in_full(upstream.why, cost.last),
        retry=upstream.retry,
        era=conversation.era if conversation is not None else "",
        revision=conversation.revision if conversation is not None else "",
        server=" ".join(str(info[key]) for key in ("name", "version") if key in info),
        promised=_affirmed(conversation.capabilities) if conversation is not None else (),
        listed=_listed(member, fleet),
        sessions=int(conversation is not None),
        memory=cost.rss,
        calls=cost.relayed,
        failed=cost.failed,
        starts=cost.restarts + 1,
        notes=tuple(dict.fromkeys((*member.notes.values(), *_dropped(member), *cost.notes))),
    )


def _dropped(member: Member) -> list[str]:
    """Keys of open maps that the operator lets not pass, and what reached nobody."""
    notes: list[str] = []
    if member.conversation is not None:
        effective = member.conversation.capabilities.effective
        for name, allowed in (
            ("extensions", (TASKS, *member.settings.relay_extensions)),
            ("experimental", member.settings.relay_experimental),
        ):
            declared = effective.get(name)
            keys = [key for key in cast("dict[str, object]", declared or {}) if key not in allowed]
            if keys:
                notes.append(f"not relayed: {name} {', '.join(sorted(keys))} (see relay_{name})")
    for tool, needs in member.needs.items():
        wanted = ", ".join(map(printable, needs))
        notes.append(f"tool {printable(tool)!r} refused a host for want of: {wanted} (told, not enforced)")
    if member.dropped:
        notes.append(f"{member.dropped} messages belonged to no host and reached nobody")
    return notes


def _listed(member: Member, fleet: Fleet) -> Listed | None:
    if not member.lists:
        return None
    counts = {kind: len(member.lists.get(kind, ())) for kind in LISTS}
    shown = sum(entry.source == member.name for entry in fleet.known.entries("tools"))
    return Listed(
        tools=shown,
        hidden=counts["tools"] - shown,
        prompts=counts["prompts"],
        resources=counts["resources"],
        templates=counts["templates"],
        bytes=len(msgspec.json.encode(member.lists.get("tools", ()))),
    )


def _session(session: HostSession) -> HostStatus:
    host = session.host
    now = session.fleet.promised(session.connection)
    later = [
        row.path
        for row in register().at(Side.SERVER, host.revision)
        if now.has(row.path) and not session.built.has(row.path)
    ]
    return replace(
        _host(session, session.fleet),
        push=session.push,
        running=len(session.running),
        notes=(*(RECONNECT.format(path) for path in later), *_kept_back(host), *hidden(session.fleet, host)),
    )


def _seen(seen: Seen, fleet: Fleet) -> HostStatus:
    return replace(_host(seen, fleet), streams=seen.streams)


def _host(known: HostSession | Seen, fleet: Fleet) -> HostStatus:
    """What is told of a host of either era."""
    host = known.host
    return HostStatus(
        name=host.name,
        principal=host.principal.name,
        profile=host.profile.id if host.profile is not None else "",
        transport=host.transport,
        era=host.era,
        revision=host.revision,
        declared=_affirmed(host.capabilities),
        promised=_promises(known.built),
        calls=known.calls,
        idle=time.monotonic() - known.last,
        notes=(*_kept_back(host), *hidden(fleet, host)),
    )


def _kept_back(host: Host) -> list[str]:
    """Keys of a host's open maps that no upstream is told."""
    passed = open_maps(host.asks)
    notes: list[str] = []
    for name in OPEN:
        declared = cast("dict[str, object]", host.capabilities.effective.get(name, {}))
        if keys := sorted(declared.keys() - passed.get(name, {}).keys()):
            notes.append(f"not relayed: {name} {', '.join(map(printable, keys))} (see relay_{name})")
    return notes


def _noted(hosts: Sequence[HostStatus]) -> list[HostStatus]:
    """Says of hosts of several names behind one credential what that costs."""
    names: dict[str, set[str]] = {}
    for host in hosts:
        names.setdefault(host.principal, set()).add(host.name)
    return [replace(host, notes=(*host.notes, SHARED)) if len(names[host.principal]) > 1 else host for host in hosts]


def _affirmed(capabilities: Capabilities) -> tuple[str, ...]:
    side = capabilities.side
    return tuple(row.path for row in register().at(side, capabilities.revision) if capabilities.has(row.path))


def _promises(built: Built) -> tuple[Promise, ...]:
    return tuple(Promise(path=path, promised=built.has(path), why=why) for path, why in built.why.items())
