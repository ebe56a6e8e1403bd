"""What the wire hands to the probes. Transports implement `Link`; `session.Session` builds on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from troth.audit.model import Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Named limits of the wire. Times in seconds, sizes in bytes.

    Attributes:
        start: Budget for the first answer of a fresh target. Apart from ``method``: popular servers need over 15 s.
        method: Budget for one method.
        settle: How long to listen for notifications after something that may cause them.
        stop: How long a process gets to end by itself before it is killed.
        line: Longest line or SSE event that is read; a longer one is a fault of the target.
        frames: Most frames kept of one connection; more is a flood, which ends the connection.
        total: Most bytes read from one connection; more is a flood too.
        values: Most JSON values read from one connection; more is a flood too. Two bytes (``[]``) become a hundred.
        stderr: Bytes of standard error kept (the last ones).
    """

    start: float = 60.0
    method: float = 10.0
    settle: float = 0.5
    stop: float = 3.0
    line: int = 16 * 1024 * 1024
    frames: int = 20_000
    total: int = 256 * 1024 * 1024
    values: int = 2_000_000
    stderr: int = 16 * 1024


class Failure(StrEnum):
    """Why a request has neither result nor error."""

    TIMEOUT = "timeout"
    CLOSED = "closed"
    """The process ended or the connection was cut."""
    HTTP = "http"
    """An HTTP answer without a JSON-RPC message in it."""
    MALFORMED = "malformed"
    """A message with the right id that is no JSON-RPC response (both or neither of result and error, ...)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back for one request.

    Attributes:
        method: The method asked.
        result: The ``result`` member, of any JSON type; meaningful only if ``ok``.
        code, message, data: Of the error, if there is one.
        failure: Why there is neither.
        detail: The failure in words.
        status: HTTP status, over HTTP.
        frames: The frames of this exchange: the request, what came on its stream, the response.
    """

    method: str
    result: Any = None
    code: int | None = None
    message: str = ""
    data: Any = None
    failure: Failure | None = None
    detail: str = ""
    status: int | None = None
    frames: tuple[Frame, ...] = ()

    @property
    def ok(self) -> bool:
        """A result came."""
        return self.failure is None and self.code is None

    @property
    def refused(self) -> bool:
        """A JSON-RPC error came."""
        return self.code is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """Something that arrived on a link.

    Attributes:
        value: The JSON value, or None where the transport saw something else (see ``problem``).
        problem: Text of what is wrong with it as a frame (junk on stdout, invalid UTF-8, a line too long), else empty.
        channel: As in ``Frame.channel``.
        status: HTTP status.
        request: The id of the request on whose stream it came, over HTTP.
        headers: Response headers in lower case, over HTTP, else empty.
        event_id: Of an SSE event, and at the end of a stream the last one seen, for ``Last-Event-ID``; else empty.
        retry: Milliseconds that the SSE stream last asked to wait before reconnecting, if it did.
        end: True where nothing more will come on this channel for that request, which is said exactly once unless the
            auditor itself ended it; ``problem`` says why, and is empty where the end is in order (the end of a body
            or stream that is complete, an accepted notification).
    """

    value: Any = None
    problem: str = ""
    channel: str
    status: int | None = None
    request: object = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    event_id: str = ""
    retry: int | None = None
    end: bool = False


class Link(Protocol):
    """One connection to a target: a process, or a place to POST to. Knows framing, not MCP.

    ``receive`` is set before ``send`` is called first; it is called in the link's own task for everything that
    arrives and must not block.
    """

    transport: str
    receive: Callable[[Incoming], None]

    async def send(self, message: Any, headers: Mapping[str, str]) -> None:
        """Sends one JSON value. Over HTTP the answer is read in the background; headers are ignored on stdio."""
        ...

    async def open_stream(self, headers: Mapping[str, str]) -> int:
        """Opens the legacy GET stream. Returns the HTTP status (200 = open); stdio returns 200 at once."""
        ...

    def cancel(self, request: object) -> None:
        """Closes the stream of a request (HTTP); no effect on stdio."""
        ...

    @property
    def stderr(self) -> str:
        """The last of the target's standard error, decoded leniently; empty over HTTP."""
        ...

    @property
    def dead(self) -> str:
        """Why nothing more can come (the exit status, a flood, a refused connection); empty while alive."""
        ...
