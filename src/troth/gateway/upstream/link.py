"""The seam between conversations and transports: a link carries frames to one server and knows framing, not MCP.

Rules of this seam:

- A link tells everything by calling its `Receiver`, from the event loop and never from inside a call of its own
  methods. Nothing is raised at whoever sends.
- Sending never waits. What a server does not take in a named time ends the link (stdio) or the request (HTTP).
- A frame is one JSON value as bytes, neither decoded nor judged. Towards a server it is one line.
- Words about problems are fit to print: escaped, bounded, and without header values, environment or queries of URLs.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.bridge import Id

NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a request over HTTP ended in another way than with its response.

    Attributes:
        words: What went wrong, fit to print.
        status: HTTP status, unless it is a success; None where none came, or the answer broke off. 404 on the way to
            resume an answer is told too: the session is gone.
        begun: True if an answer with a success status had begun, so the request was taken. A `status` is then that of
            the attempt to resume the answer.
        broken: True where the connection broke off, or never came about, or fell silent; False where an answer came and
            is no response.
        sent: False if the request surely never reached the server, so that it may be sent anew.
        frame: The body of an answer with an error status, if it may be a JSON-RPC message; for the user to `read`.
        retry_after: Seconds that the server asks to wait (429, 503); None if it does not say.
        challenge: What a 401 or 403 says in ``WWW-Authenticate``, fit to print.
    """

    words: str
    status: int | None = None
    begun: bool = False
    broken: bool = False
    sent: bool = True
    frame: bytes = b""
    retry_after: float | None = None
    challenge: str = ""


class Receiver(Protocol):
    """The user of a link, as the link sees it. Its methods never block and never raise."""

    def receive(self, data: bytes, key: Id | None) -> bool:
        """Takes one frame.

        Args:
            data: One JSON value if the server is honest; anything if it is not. At most ``limits.line`` bytes.
            key: The request on whose own stream it came (HTTP); None for the stream of the session, and on stdio.

        Returns:
            True if this was the response to `key`: its stream is then not resumed, and cut if the server keeps it
            open. Any other frame: False.
        """
        ...

    def ended(self, key: Id | None, problem: Problem | None) -> None:
        """Nothing more will come for a request.

        Over Streamable HTTP called once for every key that was sent, last, unless it was aborted or the link is closed.
        Over HTTP+SSE only for a request that was refused, since responses come on the one stream; on stdio never.

        Args:
            key: The request. None for the stream that `Link.listen` opened: it is over and not opened again.
            problem: Why there is no response; None if `receive` took one. On the stream of `listen` status 405 means
                that the server offers none, and 404 that the session is gone.
        """
        ...

    def session(self, key: Id, value: str) -> None:
        """The answer to `key` names a session (``Mcp-Session-Id``); comes before its frames, and with every answer.

        Args:
            key: The request.
            value: Visible ASCII of at most ``limits.header`` bytes. Any other value ends the request with a problem.
        """
        ...

    def listening(self) -> None:
        """The stream of `Link.listen` is open, for the first time or again: meanwhile something may have been missed.

        A stream that was resumed where it broke off counts too, as nobody promises that the server kept everything.
        """
        ...

    def dead(self, why: str) -> None:
        """The link ended by itself and nothing more will come for anybody: the process exited, the SSE stream ended.

        Called at most once, not after `Link.close`. A link over Streamable HTTP never dies.
        """
        ...


class Link(Protocol):
    """One connection to a server: a process, or a place to POST to. Made by `troth.gateway.upstream.links.open_link`.

    Attributes:
        transport: ``stdio``, ``http`` or ``sse``.
        resume: Whether a broken stream of a request is resumed with ``Last-Event-ID`` (Streamable HTTP of the legacy
            revisions). Set by the user when it knows the revision; False until then. Source: rule of
            2025-03-26/basic/transports, "Resumability and Redelivery".
        pid: Number of the process; None over HTTP.
        why: Why the link is dead, for hosts too: nothing that the process wrote of others. Empty while it lives.
    """

    transport: str
    resume: bool
    why: str

    @property
    def pid(self) -> int | None:  # noqa: D102 - above
        ...

    def send(self, key: Id | None, line: bytes, headers: Mapping[str, str] = NO_HEADERS) -> None:
        """Sends one frame; never waits. On a dead or closed link it does nothing.

        Args:
            key: Id of the request in it, not in use already; None for a notification or a response, whose fate nobody
                hears (see `deliver`).
            line: The frame. Line breaks in it become spaces.
            headers: Beside those of the configuration: session, revision, ``Mcp-...``. Not copied. Nothing on stdio.
        """
        ...

    async def deliver(self, line: bytes, headers: Mapping[str, str] = NO_HEADERS) -> Problem | None:
        """Sends a notification or a response and waits until the server took it, for up to ``limits.method`` seconds.

        What must not be overtaken goes this way (``notifications/initialized``). On stdio it waits for nothing.

        Returns:
            Why the server did not take it; None if it did.
        """
        ...

    def abort(self, key: Id) -> None:
        """Closes the stream of a request: `ended` is not called, nothing more is received for it.

        In the modern era that cancels the request or ends a listen. Unknown keys and stdio: does nothing.
        """
        ...

    def listen(self, headers: Mapping[str, str] = NO_HEADERS) -> None:
        """Opens the legacy stream of messages outside requests (GET), and keeps it open with back-off.

        Its frames have the key None. Where there is nothing to open (stdio, SSE) it does nothing.
        """
        ...

    async def close(self, headers: Mapping[str, str] | None = None) -> None:
        """Ends everything: streams, the process and whatever it started. Bounded; nothing is received afterwards.

        Args:
            headers: Those of the session that ends with it, by DELETE; None for none.
        """
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What to show an operator, fit to print: the last lines of standard error, what was counted and dropped."""
        ...
