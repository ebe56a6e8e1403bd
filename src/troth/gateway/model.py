"""Types that cross the rooms of the gateway.

Two halves meet in the middle (`troth.gateway.front`). The host side (`troth.gateway.hosts`) turns bytes of hosts into
frames and calls a `Front`; the upstream side (`troth.gateway.upstream`) carries `Outgoing` to a server and tells a
`Sink` what became of it. Neither knows the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Protocol

import msgspec

from troth.bridge.asks import NOTHING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.bridge import Bad, Frame, Id, Lost, Outgoing
    from troth.bridge.asks import Asks
    from troth.capabilities import ClientCapabilities, ServerCapabilities
    from troth.register import Era, HostProfile


# Host side


class Principal(msgspec.Struct, frozen=True):
    """The unit of isolation: who is behind a host. Never the bytes of a token, ``clientInfo`` or a connection.

    Attributes:
        name: ``anonymous`` (loopback without credentials), ``stdio``, or the name of a token.
        profile: Profile of the register that the operator gave to this credential; empty for none.
    """

    name: str
    profile: str = ""


class Sort(Enum):
    """What a message on a host's stream is: decides what a full queue may lose, and in which order."""

    PROGRESS = 1
    LOG = 2
    CHANGE = 3
    """List changes and updates of resources: one of the same bytes that waits already is enough."""
    OTHER = 4
    """Never lost: the stream ends first."""


class Stream(Protocol):
    """Where messages to a host go beside the answer: of one request, or of a whole session."""

    def send(self, line: bytes, sort: Sort) -> None:
        """Queues one message, never waits. What does not fit is coalesced or ends the stream.

        Args:
            line: One JSON-RPC message on one line, without the line's end.
            sort: What it is.
        """
        ...


@dataclass(slots=True, eq=False, kw_only=True)
class Host:
    """A host as one request sees it: of a session (legacy) or of this request alone (modern).

    Attributes:
        principal: Who is behind it.
        revision: Protocol revision in force.
        era: Its era.
        capabilities: What it declared.
        name: Its own name and version, fit to print.
        profile: The known host that it is treated as; None for none.
        transport: ``http``, ``sse`` or ``stdio``.
        session: Its session (legacy); None for modern requests.
        level: Log level of this request (modern); None if it asked for none.
        asks: What it can be asked.
        gated: Whether what needs capabilities that it did not declare is hidden from it. False only for a legacy host
            that sent no capabilities object, where the operator lets those pass.
    """

    principal: Principal
    revision: str
    era: Era
    capabilities: ClientCapabilities
    name: str
    transport: str
    profile: HostProfile | None = None
    session: Session | None = None
    level: str | None = None
    asks: Asks = NOTHING
    gated: bool = True


class Session(Protocol):
    """A legacy session. Made by `Front.initialize`; the transport keeps it, and closes it."""

    id: str
    """Given by the transport when `Front.initialize` has returned; until then empty."""
    host: Host
    push: bool
    """Whether the connection has a channel for messages outside requests; decided before the handshake."""
    reached: bool
    """Whether the host has that channel open, or had: over HTTP it opens a stream when it likes, or never. Set by the
    transport."""


class Answer(msgspec.Struct, frozen=True):
    """What a request ends with.

    Attributes:
        line: The response or error on one line; empty if there is none to send (cancelled by the host).
        code: Code of the error; None for a result. The transport derives an HTTP status from it.
    """

    line: bytes
    code: int | None = None


class Front(Protocol):
    """The middle of the gateway as the host side sees it. Knows no sockets."""

    async def initialize(
        self, frame: Frame, principal: Principal, outbox: Stream, *, push: bool, transport: str
    ) -> tuple[Session | None, Answer]:
        """Answers an ``initialize`` request, and opens a session unless the answer is an error.

        Args:
            frame: The request.
            principal: Who is behind it.
            outbox: Where messages outside requests go. It may be written to from now on until `close`; the transport
                holds back what cannot be delivered yet.
            push: Whether the outbox reaches the host at all (an offered GET stream counts).
            transport: ``http``, ``sse`` or ``stdio``.
        """
        ...

    def modern(self, frame: Frame, principal: Principal, transport: str) -> Host | Bad:
        """The host of one modern request, by its ``_meta``; or what is wrong with that (-32602, -32022).

        For -32022 the `Bad` carries no data: ask `refusal` for the line.
        """
        ...

    def refusal(self, bad: Bad, revision: str | None) -> Answer:
        """The error message for a frame that cannot be handled, with its data."""
        ...

    def header_fault(self, frame: Frame, host: Host, headers: Mapping[str, str]) -> Bad | None:
        """What in the headers of a modern request (names in lower case) disagrees with its body (-32020)."""
        ...

    async def answer(self, frame: Frame, host: Host, stream: Stream) -> Answer:
        """Handles one request. Never raises but for cancellation.

        Cancelling the caller means that the host is gone or withdrew this request: it reaches the upstream.

        Args:
            frame: A request.
            host: Who asks.
            stream: Where messages about this request go before its answer (progress, logs, a listen's changes).
        """
        ...

    def notify(self, frame: Frame, host: Host) -> None:
        """Takes a notification from a host, or its answer to a question (a response or error, unopened).

        ``notifications/cancelled`` ends the running request of that id; on stdio the transport itself cancels a modern
        one, since that notification names no host.
        """
        ...

    def close(self, session: Session) -> None:
        """The session ended (DELETE, end of the pipe, idle): its requests are cancelled, its subscriptions released."""
        ...


# Upstream side


class Sink(Protocol):
    """Hears what becomes of one request to an upstream. Called from the event loop; never blocks, never raises.

    Exactly one of `answered` and `lost` is called, once, and nothing after it; nothing at all after `cancel`.
    """

    def answered(self, frame: Frame) -> None:
        """The response or error came (unopened; its id is ours)."""
        ...

    def notified(self, frame: Frame) -> None:
        """A notification that surely belongs to this request.

        Progress by its token (which is still ours), a log message by its stream or because nothing else runs.
        """
        ...

    def asked(self, frame: Frame) -> bool:
        """A request of a legacy upstream that surely belongs to this one. False: the conversation refuses it."""
        ...

    def lost(self, why: Lost) -> None:
        """No answer will come."""
        ...


class UnavailableError(Exception):
    """A request of ours to an upstream got no result: `lost`, or the error that came."""

    def __init__(self, lost: Lost, error: Frame | None = None) -> None:
        super().__init__(lost.words)
        self.lost = lost
        self.error = error


class Conversation(Protocol):
    """An initialized session with a legacy upstream, or the way to speak to a modern one."""

    era: Era
    revision: str
    capabilities: ServerCapabilities
    instructions: str
    info: Mapping[str, object]
    """``serverInfo`` as it came; empty if none."""

    @property
    def busy(self) -> bool:
        """Whether a call runs about which questions may come, on a connection that does not tell calls apart."""
        ...

    def start(self, request: Outgoing, sink: Sink) -> Id:
        """Sends a request; returns our id of it. Never waits and never raises: see `Sink.lost`."""
        ...

    def cancel(self, request: Id, reason: str) -> None:
        """Gives a request up: tells the upstream in the way of its era, and its sink hears nothing more."""
        ...

    def answer(self, line: bytes, question: Id | None = None) -> None:
        """Sends the response or error to a request that a sink took (`Sink.asked`); never waits.

        Args:
            line: The message on one line, under the upstream's own id.
            question: That id; the time of the request that it belongs to runs again from now on.
        """
        ...

    def tell(self, method: str, params: Mapping[str, object] | None = None) -> None:
        """Sends a notification; never waits."""
        ...

    async def ask(self, request: Outgoing) -> Frame:
        """Sends a request of ours and waits for the result, opened.

        Raises:
            UnavailableError: An error came (`error` is set), or nothing.
        """
        ...


class Status(StrEnum):
    """How an upstream is."""

    STARTING = "starting"
    READY = "ready"
    DOWN = "down"
    """Not reachable; the next attempt is waited for."""
    STOPPED = "stopped"


class Upstream(Protocol):
    """One server for one principal: keeps a conversation open, starts it again with back-off when it ends."""

    name: str
    status: Status
    why: str
    """Why it is not ready, in words; empty if it is. Any host may be told: what the process said is no part of it."""

    @property
    def conversation(self) -> Conversation | None:
        """The open one; None unless ready."""
        ...

    async def ready(self, seconds: float) -> Conversation:
        """Waits until it is ready.

        Raises:
            UnavailableError: It is not within that time, or its attempt failed and the next one is further away.
        """
        ...

    async def subscribe(self, uri: str) -> None:
        """Sees to it that updates of a resource reach `Observer.heard`, now and after every restart.

        Raises:
            UnavailableError: The upstream does not promise it, or refused.
        """
        ...

    async def unsubscribe(self, uri: str) -> None:
        """The reverse; never raises."""
        ...

    def level(self, level: str | None) -> None:
        """Sets the log level of the session, now and after every restart (legacy upstreams with ``logging``).

        None: later sessions get none. No message takes a level back from the one there is.
        """
        ...

    async def levelled(self) -> None:
        """Waits until the upstream has answered the last `level`, or cannot."""
        ...

    async def stop(self) -> None:
        """Ends it and everything it started."""
        ...


class Observer(Protocol):
    """Hears of an upstream what belongs to no request. Called from the event loop; never blocks, never raises."""

    def up(self, upstream: Upstream) -> None:
        """A conversation is open: first time, or again after a loss (then lists may have changed)."""
        ...

    def down(self, upstream: Upstream) -> None:
        """The conversation ended; `why` says why."""
        ...

    def asked(self, upstream: Upstream, frame: Frame) -> bool:
        """A request of a legacy upstream that belongs to no request. False: it is refused.

        Whoever takes it answers by `Conversation.answer`.
        """
        ...

    def heard(self, upstream: Upstream, frame: Frame) -> None:
        """A notification outside requests: list changes, updates of subscribed resources, logs of an idle session."""
        ...
