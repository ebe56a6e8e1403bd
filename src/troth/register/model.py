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
        level: ``MUST``, ``MUST NOT``, ``SHOULD`` and so on.
        who: ``client``, ``server`` or ``both``.
        source: File and line in the specification.
        rows: Families (``CAP-..``) that it binds.
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
        where: The place on the wire.
        fields: Field of that place (``*`` for all) -> row ids.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class HostProfile:
    """What a real host declares, calls and honours.

    Attributes:
        id: Short name for ``--as``.
        product: Product and version that was looked at.
        declares: Client capabilities by era; None where the host does not speak the era.
        client_info: ``clientInfo`` as the host sends it.
        facts: Everything else known about it, as published in the profile data.
    """

    id: str
    product: str
    declares: Mapping[Era, Mapping[str, Any] | None]
    client_info: Mapping[str, str] = field(default_factory=dict[str, str])
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
