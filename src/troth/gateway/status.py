"""What a gateway tells its operator (`troth status`): values, and their JSON. Holds no secret.

Served at `PATH` to who shows the operator's token of the run file; everything that peers said of themselves is text to
be cleaned before it is printed.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

PATH = "/status"
"""Where a gateway serves it."""
VERSION = 1
"""Version of the shape; a member may be added without a new one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """What the lists of an upstream hold.

    Attributes:
        tools: Tools that hosts see.
        hidden: Tools that filters hide.
        prompts: Prompts.
        resources: Resources.
        templates: Templates of resources.
        bytes: Size of the tool list as JSON: what every conversation of a model pays for.
    """

    tools: int = 0
    hidden: int = 0
    prompts: int = 0
    resources: int = 0
    templates: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamStatus:
    """One upstream of one principal.

    Attributes:
        name: Name in the configuration.
        principal: Whose it is; empty where everybody shares it.
        prefix: What stands before its names.
        transport: ``stdio``, ``http`` or ``sse``.
        state: A value of `troth.gateway.model.Status`.
        why: Why it is not ready; empty if it is.
        retry: Seconds until the next attempt; None if none is due.
        era: Era that is spoken with it; empty if none is yet.
        revision: Revision that is spoken with it; empty likewise.
        server: Its own name and version; empty if unknown.
        promised: Paths of what it declares (``tools.listChanged``).
        listed: What its lists hold; None if they were never fetched.
        sessions: Sessions (processes) that are open now.
        memory: Resident bytes of its processes; None where not known (a server at an address).
        starts: How often it was started.
        calls: Requests relayed to it.
        failed: Those of them that got no result.
        running: Those that run now.
        notes: What else the operator should know: a list that was cut, an extension that was dropped.
    """

    name: str
    principal: str = ""
    prefix: str = ""
    transport: str
    state: str
    why: str = ""
    retry: float | None = None
    era: str = ""
    revision: str = ""
    server: str = ""
    promised: tuple[str, ...] = ()
    listed: Listed | None = None
    sessions: int = 0
    memory: int | None = None
    starts: int = 0
    calls: int = 0
    failed: int = 0
    running: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """One capability as it stands towards a host.

    Attributes:
        path: Its path (``resources.subscribe``).
        promised: Whether it was declared to the host.
        why: Why, or why not.
    """

    path: str
    promised: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStatus:
    """A host: a legacy session, or what modern requests of one credential have in common.

    Attributes:
        name: Its own name and version.
        principal: Name of its credential.
        profile: Id of the known host that it is treated as; empty for none.
        transport: ``http``, ``sse`` or ``stdio``.
        era: Era that it speaks.
        revision: Revision that it speaks.
        declared: Paths of what it declares (``roots.listChanged``).
        promised: What is declared to it and what is not, with the reason.
        push: Whether messages outside requests reach it now.
        streams: Streams that are open.
        calls: Requests that it made.
        running: Those that run now.
        idle: Seconds since its last request.
        notes: What else the operator should know: "reconnect to see", what is hidden from it, a credential that
            several hosts share.
    """

    name: str
    principal: str
    profile: str = ""
    transport: str
    era: str
    revision: str
    declared: tuple[str, ...] = ()
    promised: tuple[Promise, ...] = ()
    push: bool = False
    streams: int = 0
    calls: int = 0
    running: int = 0
    idle: float = 0.0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A gateway as it is now.

    Attributes:
        shape: `VERSION`.
        troth: Version of Troth.
        pid: Its process.
        url: Address of its endpoint; empty for none.
        config: Its configuration file; empty for none.
        uptime: Seconds since it was started.
        memory: Resident bytes of its own process.
        upstreams: The upstreams, in the configuration's order.
        hosts: The hosts, the latest first.
        faults: What is wrong with a configuration that was changed and is therefore not in force.
        notes: What else the operator should know about the whole.
    """

    shape: int = VERSION
    troth: str = ""
    pid: int = 0
    url: str = ""
    config: str = ""
    uptime: float = 0.0
    memory: int = 0
    upstreams: tuple[UpstreamStatus, ...] = ()
    hosts: tuple[HostStatus, ...] = ()
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def to_json(status: Status) -> bytes:
    """The status as one JSON object."""
    return msgspec.json.encode(status)


def from_json(data: bytes) -> Status | str:
    """The status in an answer; or why there is none in it. Members that are not known here are ignored."""
    try:
        return msgspec.json.decode(data, type=Status)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        return f"not a status: {error}"
