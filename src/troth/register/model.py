"""The values the register hands out: frozen, compared by content, free of any library but the standard one."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class Side(StrEnum):
    """Who makes the promise."""

    CLIENT = "client"
    SERVER = "server"


class Era(StrEnum):
    """How a revision carries capabilities: once in a handshake, or on every request."""

    LEGACY = "legacy"
    MODERN = "modern"


class Kind(StrEnum):
    """The JSON type that a declared member must have."""

    OBJECT = "object"
    BOOLEAN = "boolean"
    MAP = "map"
    """An object whose keys are open and whose values must be objects (``experimental``, ``extensions``)."""


class Channel(StrEnum):
    """How what was promised reaches the peer."""

    REQUEST = "request"
    """An ordinary request of the client, answered by the server."""
    SERVER_REQUEST = "server-request"
    """A request of the server on the open session (legacy)."""
    INPUT_REQUEST = "input-request"
    """An entry of ``InputRequiredResult.inputRequests``, answered by a retry (modern)."""
    CLIENT_NOTIFICATION = "client-notification"
    """A notification that the client sends by itself."""
    SESSION = "session"
    """A notification that the server sends by itself on any stream of the session (legacy)."""
    SUBSCRIBED = "subscribed"
    """A notification on the session, after a subscription by request (legacy)."""
    LISTEN = "listen"
    """A notification on a ``subscriptions/listen`` stream whose filter asked for it (modern)."""
    REQUEST_STREAM = "request-stream"
    """A notification on the stream of the request that opted in (modern)."""
    TASK_RESULT = "task-result"
    """A task handed out in place of a result."""
    DECLARATION = "declaration"
    """Nothing travels but the declaration itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deprecation:
    """A promise that a revision still defines and advises against.

    Attributes:
        since: Revision that deprecated it.
        proposal: The proposal that did (``SEP-...``), where the specification names one.
        removal: When it may disappear, in words.
        soft: True where only values that the field gates are deprecated, not the field.
    """

    since: str
    proposal: str | None = None
    removal: str | None = None
    soft: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A method that may be used only under the promise.

    Attributes:
        method: Method name on the wire.
        directions: ``client->server request``, ``server->client notification`` and so on.
    """

    method: str
    directions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What one revision says of one capability field.

    Attributes:
        kind: The JSON type that the member must have.
        shape: The type as the schema writes it, for people.
        meaning: What the declaring peer promises.
        gates: Requests that need the promise.
        params: Parameters of otherwise free methods that need the promise.
        notifications: Notifications that are sent only under the promise.
        channel: How the promised thing travels; None for a mere container.
        delivery: The same in words.
        deprecated: Set where the revision advises against it.
        source: File and line in the specification.
    """

    kind: Kind
    shape: str
    meaning: str
    gates: tuple[Gate, ...] = ()
    params: tuple[str, ...] = ()
    notifications: tuple[Gate, ...] = ()
    channel: Channel | None = None
    delivery: str = ""
    deprecated: Deprecation | None = None
    source: str | None = None

    @property
    def outdated(self) -> bool:
        """Whether the revision advises against the field itself, not only against values that it gates."""
        return self.deprecated is not None and not self.deprecated.soft


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One capability field over all revisions.

    Attributes:
        id: Unique id, e.g. ``CAP-17`` or ``CAP-10-list``.
        family: The capability it belongs to, e.g. ``CAP-10``; None for extensions without a number.
        side: Who declares it.
        path: Dotted path in the capability object; extension keys in brackets.
        title: One line.
        when_absent: What the other side does without the declaration.
        breaks: What goes wrong for people when it is declared and not kept.
        definitions: By revision; a missing revision does not define the field.
        extension: Status text where the field is the key of an extension, else None.
        norms: Ids of the normative sentences about it.
        gaps: Ids of the places where the specification is silent about it.
        sources: Every place in the specification that speaks of it.
    """

    id: str
    family: str | None
    side: Side
    path: str
    title: str
    when_absent: str
    breaks: str
    definitions: Mapping[str, Definition]
    extension: str | None = None
    norms: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    def at(self, revision: str) -> Definition | None:
        """What ``revision`` says of this field; None where it does not define it."""
        return self.definitions.get(revision)

    @property
    def key(self) -> tuple[str, ...]:
        """The path as member names, the extension key as one of them."""
        head, bracket, rest = self.path.partition("[")
        return (*head.split("."), rest[1:-2]) if bracket else tuple(head.split("."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Norm:
    """A normative sentence of one revision, in our words.

    Attributes:
        id: ``N-NAME@revision``.
        revision: The revision that says so.
        level: ``MUST``, ``MUST NOT``, ``SHOULD``, ``SHOULD NOT``, ``MAY``; ``rule`` where the specification states a
            fact without one of these words.
        who: ``client``, ``server`` or ``both``; ``receiver`` for the side that gets a request, whichever it is;
            ``sdk`` for those who write libraries.
        text: The sentence.
        source: File and line in the specification.
        rows: Families (``CAP-..``) that it binds; ``*`` for all, ``*client`` and ``*server`` for those of one side.
    """

    id: str
    revision: str
    level: str
    who: str
    text: str
    source: str
    rows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCode:
    """A JSON-RPC error code, or a range of them.

    Attributes:
        code: The code, or for a range its text (``-32000..-32019``).
        name: The name that the specification gives it.
        revisions: The revisions that use it.
        use: What it says, in our words.
        http: The HTTP status that goes with it, in words; empty where none is prescribed.
    """

    code: int | str
    name: str
    revisions: tuple[str, ...]
    use: str
    http: str = ""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A place where the specification is silent or contradicts itself, with our choice.

    Attributes:
        id: ``G-01`` and so on.
        question: What is left open.
        choice: What Troth does.
        reason: Why.
        applied: Where in the code the choice is applied, as dotted names; empty if it only guides readers.
    """

    id: str
    question: str
    choice: str
    reason: str
    applied: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """A switch outside the capability object that belongs to a capability.

    Attributes:
        id: ``REL-...``.
        where: The place on the wire.
        revision: The revision that has it.
        fields: Field of that place (``*`` for all) -> row ids.
        source: File and line in the specification.
    """

    id: str
    where: str
    revision: str
    fields: Mapping[str, str]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodUse:
    """A method in one revision.

    Attributes:
        method: Name on the wire.
        revision: The revision.
        roles: Unions of the schema that contain it, e.g. ``ClientRequest``.
        rows: Ids of the rows that gate it; empty where no capability does.
    """

    method: str
    revision: str
    roles: tuple[str, ...]
    rows: tuple[str, ...] = ()


class Certainty(StrEnum):
    """How a fact about a host is known."""

    SEEN = "seen"
    """Read in the host's own source."""
    REPORTED = "reported"
    """Stated by people who compared hosts."""
    INFERRED = "inferred"
    """Follows from other facts."""
    DEFINED = "defined"
    """Laid down by us: the profile describes no product."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUse:
    """A method that a host calls, or a notification that it honours or ignores.

    Attributes:
        method: Method name on the wire; a final ``*`` stands for any rest.
        needs: Path of the server capability that the host looks at first; None if it does not look.
        note: What there is to know about it; may be empty.
        certainty: How this is known.
    """

    method: str
    needs: str | None = None
    note: str = ""
    certainty: Certainty = Certainty.REPORTED


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAnswer:
    """What a host answers when it is asked.

    Attributes:
        method: The request, or ``*`` for every one that is not named.
        answer: The answer in words.
        certainty: How this is known.
    """

    method: str
    answer: str
    certainty: Certainty = Certainty.REPORTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirk:
    """A habit of a host that servers and gateways may have to act on.

    Attributes:
        id: Stable short name, e.g. ``first-page-only``.
        text: The habit in a sentence.
        certainty: How this is known.
        rows: Families (``CAP-..``) that it matters to.
    """

    id: str
    text: str
    certainty: Certainty = Certainty.REPORTED
    rows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostProfile:
    """What a host declares, calls and honours.

    Attributes:
        id: Short name for ``--as``.
        product: Product and version that was looked at.
        test: True for a made-up host that tests use.
        declares: Client capabilities by era; None where the host does not speak the era.
        client_info: ``clientInfo`` as the host sends it.
        sdk: The library that it is built on; empty if unknown or none.
        offers: The revisions that it offers, in words.
        note: What there is to know about the declaration; may be empty.
        answers: What it answers to requests of a server.
        calls: Methods that it calls; one counts only at revisions that have the method.
        never_calls: Methods that it is known not to call; a final ``*`` stands for any rest.
        honours: Notifications that it acts on.
        ignores: Notifications that it receives and drops.
        transports: ``stdio``, ``streamable-http``, ``http+sse``.
        transports_note: What there is to know about them; may be empty.
        timeouts: Seconds by the thing that is waited for.
        quirks: Habits by stable id.
        hints: What a gateway in front of it should do.
    """

    id: str
    product: str
    declares: Mapping[Era, Mapping[str, Any] | None]
    test: bool = False
    client_info: Mapping[str, str] = field(default_factory=dict[str, str])
    sdk: str = ""
    offers: str = ""
    note: str = ""
    answers: tuple[HostAnswer, ...] = ()
    calls: tuple[HostUse, ...] = ()
    never_calls: tuple[str, ...] = ()
    honours: tuple[HostUse, ...] = ()
    ignores: tuple[HostUse, ...] = ()
    transports: tuple[str, ...] = ()
    transports_note: str = ""
    timeouts: Mapping[str, float] = field(default_factory=dict[str, float])
    quirks: tuple[Quirk, ...] = ()
    hints: Mapping[str, str | bool] = field(default_factory=dict[str, "str | bool"])

    def answering(self, method: str) -> HostAnswer | None:
        """What the host answers to the request ``method``; None if nothing is known, or if it is a notification."""
        if method.startswith("notifications/"):
            return None
        return next((answer for answer in self.answers if _covers(answer.method, method)), None)

    def calling(self, method: str) -> HostUse | None:
        """How the host calls ``method``; None if it is not known to call it."""
        return _first(self.calls, method)

    def honouring(self, method: str) -> HostUse | None:
        """How the host acts on the notification ``method``; None if it is not known to."""
        return _first(self.honours, method)

    def ignoring(self, method: str) -> HostUse | None:
        """How the host drops the notification ``method``; None if it is not known to."""
        return _first(self.ignores, method)

    def never(self, method: str) -> bool:
        """Whether the host is known not to call ``method``."""
        return any(_covers(pattern, method) for pattern in self.never_calls)

    def has(self, quirk: str) -> bool:
        """Whether the host has the habit with this id."""
        return any(known.id == quirk for known in self.quirks)


def _first(uses: tuple[HostUse, ...], method: str) -> HostUse | None:
    return next((use for use in uses if _covers(use.method, method)), None)


def _covers(pattern: str, method: str) -> bool:
    return method.startswith(pattern[:-1]) if pattern.endswith("*") else method == pattern
