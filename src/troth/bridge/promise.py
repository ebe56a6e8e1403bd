"""What the gateway declares to a host: from what its upstreams promised and what the connection can push. Sans-IO.

Rules of this room:

1. A family (tools, prompts, resources) is declared by a policy. ``auto`` declares it where an upstream declares it now,
   declared it when it was last seen, or was never seen at all: a legacy host cannot be told later.
2. Nothing is declared that the connection cannot deliver: ``listChanged`` and ``subscribe`` need a channel to push on
   (legacy) or a stream to listen on (modern).
3. Keys of ``extensions`` and ``experimental`` pass by the operator's list alone.
4. Tasks are declared where an upstream has them in either face. The gateway holds the tasks of its hosts itself.
5. One function for every transport and revision; every member has its reason.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, cast

from troth.capabilities import Built, Facts, build
from troth.capabilities.facts import FAMILIES, listen_kinds
from troth.register import Side, register

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from troth.capabilities import ServerCapabilities
    from troth.register import HostProfile

HIDDEN = ("hide_resources", "recommended")
"""The hint of a host profile by which ``resources`` are not declared to the host unless the operator says so."""

ONE_PAGE = "page_size"
"""The hint of a host profile that it reads the first page of a list only."""

TASKS = "io.modelcontextprotocol/tasks"
"""The extension. The gateway holds tasks itself, so it does not pass like others."""
TASKS_KEY = f'extensions["{TASKS}"]'
CORE_TASKS = "tasks.requests.tools.call"
"""Paths that an upstream declares whose calls may become tasks. One of them is enough for both of ours."""

_CALL = "client->server request"
_UPDATES = listen_kinds()["CAP-17"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamView:
    """An upstream as far as declarations go.

    Attributes:
        name: Its name in the configuration.
        capabilities: What it declares now; None while it is not ready.
        remembered: Paths (``tools``, ``resources.subscribe``, ``logging`` ...) that it declared when it was last seen
            (see `paths`); None if it never was.
        completes: Whether it answers ``completion/complete``, found by a try, where its revision has no capability for
            that; None where the capability decides, or before the try.
        extensions: Keys of ``extensions`` that the operator lets pass.
        experimental: Keys of ``experimental`` that the operator lets pass.
    """

    name: str
    capabilities: ServerCapabilities | None = None
    remembered: frozenset[str] | None = None
    completes: bool | None = None
    extensions: tuple[str, ...] = ()
    experimental: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """What a host's connection can carry.

    Attributes:
        revision: Revision in force.
        push: Messages outside requests reach the host (legacy): stdio, or an HTTP session with a GET stream on offer.
        can_listen: ``subscriptions/listen`` can be answered with a stream (modern).
        changes: The lists can change at all while the gateway runs.
        profile: The known host that it is treated as; None for none.
        alone: Whether its credential is its own. Hosts that cannot be told apart get no list of tasks.
    """

    revision: str
    push: bool = False
    can_listen: bool = False
    changes: bool = True
    profile: HostProfile | None = None
    alone: bool = True


@dataclass(frozen=True, slots=True)
class _Reason:
    """Whether something is served, and by whom or why not, in words."""

    served: bool
    words: str


def paths(capabilities: ServerCapabilities) -> frozenset[str]:
    """What to remember of an upstream's declaration: every path of the register that it affirms."""
    return frozenset(
        row.path for row in register().at(Side.SERVER, capabilities.revision) if capabilities.has(row.path)
    )


def with_tasks(declared: Mapping[str, object] | None) -> dict[str, object]:
    """Client capabilities with the extension of tasks, for a modern upstream that has it.

    The gateway takes tasks for whoever calls, so it hears of every tool that needs them.

    Args:
        declared: What is declared without; None for nothing.
    """
    rest = declared or {}
    extensions = cast("Mapping[str, object]", rest.get("extensions", {}))
    return {**rest, "extensions": {**extensions, TASKS: {}}}


def promise(
    upstreams: tuple[UpstreamView, ...],
    connection: Connection,
    policies: Mapping[str, str],
    profiles: Mapping[str, Mapping[str, str]] | None = None,
) -> Built:
    """What to declare on a connection.

    Args:
        upstreams: All that are configured for this principal, in the file's order.
        connection: What the host's connection can carry.
        policies: Family -> ``auto``, ``always`` or ``never``; a missing family is ``auto``.
        profiles: The same by id of a host profile. They win over the profile's own hints, and those over `policies`.

    Raises:
        ValueError: The revision is unknown.
    """
    reasons = {
        family: _family(family, upstreams, *_policy(family, connection.profile, policies, profiles or {}))
        for family in sorted(FAMILIES)
    }
    reasons |= {"logging": _known(upstreams, "logging"), "completions": _completions(upstreams)}
    reasons["resources.subscribe"] = _known(upstreams, "resources.subscribe")
    reasons |= {path: _known(upstreams, path) for path in (CORE_TASKS, TASKS_KEY)}
    served = frozenset(path for path, reason in reasons.items() if reason.served)
    tasks = not served.isdisjoint((CORE_TASKS, TASKS_KEY))
    extensions = _relayed(upstreams, "extensions", lambda view: view.extensions)
    announced = served & FAMILIES if connection.changes else frozenset[str]()
    updates = frozenset({_UPDATES}) if "resources.subscribe" in served else frozenset[str]()
    listen = frozenset(f"{family}ListChanged" for family in announced) | updates
    facts = Facts(
        tools="tools" in served,
        prompts="prompts" in served,
        resources="resources" in served,
        completions="completions" in served,
        log_messages="logging" in served,
        log_level="logging" in served,
        announces=announced,
        subscribe="resources.subscribe" in served,
        push=connection.push,
        listen=listen if connection.can_listen else frozenset[str](),
        tasks=_tasks(connection) if tasks else frozenset[str](),
        extensions={**extensions, TASKS: {}} if tasks else extensions,
        experimental=_relayed(upstreams, "experimental", lambda view: view.experimental),
    )
    built = build(facts, revision=connection.revision)
    why = {path: f"{text} ({reasons[path].words})" if path in reasons else text for path, text in built.why.items()}
    return replace(built, why=why)


def _tasks(connection: Connection) -> frozenset[str]:
    """What is offered of core tasks (2025-11-25)."""
    offered = frozenset({"requests.tools.call", "cancel"})
    return offered | {"list"} if connection.alone else offered


def also_served(built: Built, method: str) -> bool | str:
    """Whether a host may send a request under a declaration, by the register.

    A method that no capability gates is served: ``completion/complete`` of 2024-11-05 is one.

    Args:
        built: What was declared to the host.
        method: Method of the request.

    Returns:
        True, or the path of the capability that is missing, or False if the revision does not have the method.
    """
    paths = _served().get((method, built.revision))
    return False if paths is None else next((path for path in paths if not built.has(path)), True)


@cache
def _served() -> Mapping[tuple[str, str], tuple[str, ...]]:
    """The requests of clients by method and revision, each with the paths of the capabilities that gate it."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for (method, revision), use in register().methods.items():
        rows = [row for row in register().gating(method, revision) if row.side is Side.SERVER]
        gates = [gate for row in rows for gate in row.definitions[revision].gates if gate.method == method]
        if "ClientRequest" in use.roles or any(_CALL in gate.directions for gate in gates):
            found[method, revision] = tuple(row.path for row in rows)
    return found


def page_size(profile: HostProfile | None, size: int | None) -> int | None:
    """Most items of a page for a host: None (all) for one that is known to read the first page only."""
    return None if profile is not None and ONE_PAGE in profile.hints else size


def _policy(
    family: str,
    profile: HostProfile | None,
    policies: Mapping[str, str],
    profiles: Mapping[str, Mapping[str, str]],
) -> tuple[str, str]:
    """The policy of a family for a host, and where it comes from."""
    if profile is not None:
        own = profiles.get(profile.id, {})
        if family in own:
            return own[family], f"policy of the profile {profile.id}"
        name, value = HIDDEN
        if family == "resources" and profile.hints.get(name) == value:
            return "never", f"the known host {profile.id} pays for it; a policy of the profile overrides this"
    return policies.get(family, "auto"), "policy"


def _family(family: str, upstreams: tuple[UpstreamView, ...], policy: str, origin: str) -> _Reason:
    if policy != "auto":
        return _Reason(policy == "always", f"{policy}: {origin}")
    known = _known(upstreams, family)
    unseen = [view.name for view in upstreams if view.capabilities is None and view.remembered is None]
    if known.served or not unseen:
        return known
    return _Reason(True, f"never seen yet, and may declare it: {', '.join(unseen)}")


def _known(upstreams: tuple[UpstreamView, ...], path: str) -> _Reason:
    """Which upstreams declare a path: now, or else when they were last seen."""
    now = [view.name for view in upstreams if view.capabilities is not None and view.capabilities.has(path)]
    if now:
        return _Reason(True, f"declared by: {', '.join(now)}")
    seen = [view.name for view in upstreams if view.capabilities is None and path in (view.remembered or ())]
    if seen:
        return _Reason(True, f"declared when last seen by: {', '.join(seen)}")
    return _Reason(False, "no upstream is known to declare it" if upstreams else "there is no upstream")


def _completions(upstreams: tuple[UpstreamView, ...]) -> _Reason:
    tried = [view.name for view in upstreams if view.completes]
    known = _known(upstreams, "completions")
    return (
        _Reason(True, f"answered without a declaration by: {', '.join(tried)}") if tried and not known.served else known
    )


def _relayed(
    upstreams: tuple[UpstreamView, ...], member: str, allowed: Callable[[UpstreamView], tuple[str, ...]]
) -> dict[str, dict[str, object]]:
    """Entries of an open map that pass. Where several upstreams declare a key, the settings that all agree on."""
    made: dict[str, dict[str, object]] = {}
    for view in upstreams:
        declared = view.capabilities.effective if view.capabilities is not None else {}
        for key, value in cast("dict[str, dict[str, object]]", declared.get(member, {})).items():
            if key in allowed(view):
                before = made.get(key, value)
                made[key] = {name: item for name, item in value.items() if name in before and before[name] == item}
    return made
