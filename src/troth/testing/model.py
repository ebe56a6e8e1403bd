"""The values that cross the testing room: what goes in and out of a scripted server, and what a fault is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from troth.register import Era
    from troth.testing.script import Script

META = "io.modelcontextprotocol/"
VERSION, CLIENT, CLIENT_INFO, LEVEL, SUBSCRIPTION = (
    META + name for name in ("protocolVersion", "clientCapabilities", "clientInfo", "logLevel", "subscriptionId")
)
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Log levels, the least first."""

Json = Any
"""Any JSON value."""
JsonObject = dict[str, Any]
"""A JSON object."""
Id = str | int
"""A JSON-RPC request id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Where an incoming message came from.

    Attributes:
        session: The legacy session it belongs to; None outside of any. A shell may name one that does not exist yet:
            an ``initialize`` that succeeds opens it.
        stream: Where answers to this message go. A shell chooses the names; the core only repeats them.
    """

    session: str | None = None
    stream: str = ""


@dataclass(frozen=True, slots=True)
class Send:
    """A JSON value to send.

    Attributes:
        stream: ``Context.stream`` of the request that it belongs to, or ``Session.push`` for what the server sends by
            itself in a legacy session. A transport with one channel ignores it.
    """

    message: Json
    stream: str


@dataclass(frozen=True, slots=True)
class Junk:
    """Text that is no JSON-RPC message, to be written as it is."""

    text: str
    stream: str


@dataclass(frozen=True, slots=True)
class Exit:
    """The process ends now, without another word."""

    code: int


Out = Send | Junk | Exit
"""One thing that a scripted server does."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A JSON-RPC error in the making."""

    code: int
    message: str
    data: Json = None


class Silent(Enum):
    """An answer that does not come, or not now."""

    SILENT = auto()


SILENT = Silent.SILENT

Answer = JsonObject | Refusal | Silent
"""What a method makes of a request: the result in the newest spelling, an error, or nothing yet."""


@dataclass(slots=True, kw_only=True)
class Session:
    """A legacy session.

    Attributes:
        push: Stream of what the server sends by itself.
        capabilities: What the client declared in ``initialize``.
        initialized: Whether ``notifications/initialized`` came.
        level: Least log level that is sent.
        subscriptions: URIs that the client watches.
        pending: Questions to the client that wait for an answer, by request id.
    """

    id: str
    revision: str
    capabilities: JsonObject
    push: str
    initialized: bool = False
    level: str = "info"
    subscriptions: set[str] = field(default_factory=set[str])
    pending: dict[Id, Question] = field(default_factory=dict[Id, "Question"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request, placed: which revision is in force for it, what its client declared, where its answer goes.

    Attributes:
        id: The request id; None for a notification.
        meta: ``params._meta``, an empty object if there is none.
        capabilities: Client capabilities in force.
        session: The legacy session, None on modern.
    """

    method: str
    params: JsonObject
    id: Id | None
    revision: str
    era: Era
    meta: JsonObject
    capabilities: JsonObject
    session: Session | None
    stream: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request of the server to a legacy client, asked in the middle of a call."""

    call: Call
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """An open ``subscriptions/listen``.

    Attributes:
        filter: What was acknowledged.
    """

    id: Id
    stream: str
    filter: JsonObject


@dataclass(slots=True, kw_only=True)
class Task:
    """Long-running work, in either spelling.

    Attributes:
        owner: Id of the legacy session; empty on modern.
        polls: How often its state was asked for; work is done at the second time.
        stamp: When it was made and last changed, ISO 8601.
    """

    id: str
    owner: str
    stamp: str
    status: str = "working"
    polls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Twist:
    """How a fault bends an honest server.

    Attributes:
        declare: Edits the declared capability object in place, for a revision.
        instead: Answers a request in place of the honest method; None where it is not concerned.
        after: Rewrites everything that goes out because of one incoming message. The call is None where the message
            was no request that could be placed.
        lax: Names of the honest server's own checks that are skipped.
        shell: Names of the shell's own checks that are skipped, in every revision.
        revisions: Revisions in which it bends anything; everywhere if there are none.
    """

    declare: Callable[[Script, JsonObject, str], None] | None = None
    instead: Callable[[Script, Call], Answer | None] | None = None
    after: Callable[[Script, Call | None, list[Out]], list[Out]] | None = None
    lax: frozenset[str] = frozenset()
    shell: frozenset[str] = frozenset()
    revisions: tuple[str, ...] = ()

    def bends(self, revision: str | None) -> bool:
        """Whether it has effect in a revision; on what belongs to none (None) it always has."""
        return revision is None or not self.revisions or revision in self.revisions


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One promise that a scripted server can be told to break.

    Attributes:
        name: How ``--break`` calls it; a fault with a ``value`` is written ``name=value``.
        row: Register row whose promise is broken; empty for faults of the protocol as a whole.
        also: Other rows that suffer with it.
        revisions: Revisions in which it shows.
        verdict: Verdict that an audit must reach for the row; empty where there is a ``finding`` instead.
        finding: What an audit must report beside the rows, as a short code; empty where there is none.
        description: What the server does, in a sentence.
        transport: ``any``, ``stdio`` or ``http``.
        provoke: Tool that must be called for it to show; empty where asking is enough.
        value: Default of its value; None if it takes none.
        make: Builds the twist from the value.
    """

    name: str
    row: str
    revisions: tuple[str, ...]
    description: str
    make: Callable[[str], Twist] = field(repr=False, compare=False)
    also: tuple[str, ...] = ()
    verdict: str = ""
    finding: str = ""
    transport: str = "any"
    provoke: str = ""
    value: str | None = None
