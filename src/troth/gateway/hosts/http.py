"""The endpoint towards HTTP hosts: a bare ASGI application for both eras at once.

The head of a request is judged before a byte of its body is read: whose name and page it is for, who sends it, and
whether it has a place here. What follows is in `messages` (POST), `streams` (GET, DELETE) and `legacy_sse`.

Source: Streamable HTTP of 2025-03-26 to 2026-07-28, security warning included.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

import msgspec

from troth.bridge import NOT_A_MESSAGE
from troth.bridge.errors import INTERNAL
from troth.bridge.fresh import error_line
from troth.gateway.hosts.asgi import TARGET, WHOLE, Refused, Visit, refuse, respond
from troth.gateway.hosts.counts import Counts
from troth.gateway.hosts.head import Head, head_of, preflight, with_origin
from troth.gateway.hosts.legacy_sse import LegacySse
from troth.gateway.hosts.messages import Messages
from troth.gateway.hosts.questions import PATH as QUESTIONS
from troth.gateway.hosts.questions import serve_questions
from troth.gateway.hosts.sessions import Sessions
from troth.gateway.hosts.streams import Streams

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from troth.gateway.broker import Broker
    from troth.gateway.crew import Crew
    from troth.gateway.hosts.access import Access
    from troth.gateway.hosts.asgi import Receive, Scope, Send
    from troth.gateway.limits import Limits
    from troth.gateway.model import Front

_log = logging.getLogger(__name__)

MCP: Final = "/mcp"
SSE: Final = "/sse"
MESSAGES: Final = "/messages"
STATUS: Final = "/status"
HEALTH: Final = "/health"
NOBODY: Final = 'nobody is asked here, since no upstream may; let one with: ask = ["broker"]'
"""What the operator hears who looks for questions where there is no broker."""

_METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    MCP: ("POST", "GET", "DELETE"),
    SSE: ("GET",),
    MESSAGES: ("POST",),
    STATUS: ("GET",),
    QUESTIONS: ("GET", "POST"),
    HEALTH: ("GET", "HEAD"),
}


class HttpHosts:
    """The application: one per gateway.

    Args:
        front: Answers.
        access: Judges heads.
        limits: Bounds.
        crew: Owns tasks.
        status: Makes what `/status` tells, as a JSON value.
        broker: Holds the questions of `/questions`; None where there are none.

    Attributes:
        sessions: The legacy sessions.
        counts: Requests in flight and open streams, by principal.
    """

    def __init__(
        self,
        front: Front,
        access: Access,
        limits: Limits,
        crew: Crew,
        status: Callable[[], object] | None = None,
        *,
        broker: Broker | None = None,
    ) -> None:
        self._access = access
        self._limits = limits
        self._status = status
        self.broker = broker
        self._stopping = False
        self.counts = Counts(limits)
        self.sessions = Sessions(front, limits, crew)
        self._messages = Messages(front, self.sessions, self.counts, limits, crew)
        self._streams = Streams(self.sessions, self.counts, limits, crew)
        self._sse = LegacySse(front, self.counts, limits, crew)
        self._handlers: Mapping[tuple[str, str], Callable[[Visit], Awaitable[None]]] = {
            ("POST", MCP): self._messages.post,
            ("GET", MCP): self._streams.get,
            ("DELETE", MCP): self._streams.delete,
            ("GET", SSE): self._sse.stream,
            ("POST", MESSAGES): self._sse.message,
        }
        access.revoked = self._revoked

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request; see ASGI.

        Raises:
            ValueError: It is no HTTP request.
        """
        if scope["type"] != "http":
            raise ValueError(f"only http is served here, not {scope['type']}")
        path: str = scope["path"]
        head = head_of(scope, self._limits)
        extensions = scope.get("extensions", {})
        refused = head if isinstance(head, Refused) else self._admitted(path, head, extensions.get(TARGET))
        if isinstance(head, Refused) or refused is not None:
            assert refused is not None  # noqa: S101 - one of the two is
            await refuse(send, refused)
            return
        whole = extensions.get(WHOLE)
        if head.origin is not None:
            send, whole = with_origin(send, head.origin), None
        if (handler := self._handlers.get((head.method, path))) is None:
            await self._beside(path, head, scope, receive, send)
        elif (principal := self._access.principal(head.authorization)) is None:
            await refuse(send, _unauthorized(head))
        else:
            await _guarded(handler, Visit(head, principal, scope, receive, send, whole))

    def _admitted(self, path: str, head: Head, target: bytes | None) -> Refused | None:
        """Why a request with this head, and this authority in its target, is not for us."""
        if not self._access.host(head.host) or (target is not None and not self._access.host(target)):
            words = "Host: this name is not ours; add it to allowed_hosts if it is"
            return Refused(421, error_line(None, NOT_A_MESSAGE, words), close=True)
        if not self._access.origin(head.origin):
            words = "Origin: pages of this origin may not use the gateway; add it to allowed_origins if they may"
            return Refused(403, error_line(None, NOT_A_MESSAGE, words), close=True)
        if path not in _METHODS:
            words = f"nothing is here; the endpoint is {MCP}"
            return Refused(404, error_line(None, NOT_A_MESSAGE, words), close=head.long)
        if self._stopping:
            return Refused(503, error_line(None, INTERNAL, "the gateway stops"), close=True)
        return None

    async def _beside(self, path: str, head: Head, scope: Scope, receive: Receive, send: Send) -> None:
        """What has no principal."""
        if head.method == "OPTIONS" and head.origin is not None:
            await preflight(send, head)
        elif head.method not in _METHODS[path]:
            allow = ", ".join((*_METHODS[path], "OPTIONS")).encode()
            line = error_line(None, NOT_A_MESSAGE, "this method is not for this address")
            await refuse(send, Refused(405, line, ((b"allow", allow),), head.long))
        elif path == HEALTH:
            await respond(send, 200, b'{"status":"ok"}')
        elif not self._access.operator(head.authorization):
            await refuse(send, _unauthorized(head))
        elif path == QUESTIONS:
            await self._questions(head, scope, receive, send)
        elif self._status is None:
            await refuse(send, _unauthorized(head))
        else:
            await respond(send, 200, msgspec.json.encode(self._status()))

    async def _questions(self, head: Head, scope: Scope, receive: Receive, send: Send) -> None:
        if self.broker is None:
            line = error_line(None, NOT_A_MESSAGE, NOBODY)
            await refuse(send, Refused(404, line, close=head.long))
            return
        await serve_questions(self.broker, scope, receive, send)

    def stop(self) -> None:
        """Takes nothing new and ends the streams outside requests, so that hosts let go; requests in flight go on."""
        self._stopping = True
        self._sse.end_all()
        self.sessions.end_streams()

    def dismiss(self) -> None:
        """Ends the requests that would stay open for ever."""
        self._messages.dismiss()

    def _revoked(self, names: Collection[str]) -> None:
        """Ends what principals opened whose credentials are gone: a stream is never asked for one again."""
        self._messages.dismiss(names)
        self._sse.end_all(names)
        self.sessions.end_all(names)

    def close(self) -> None:
        """Ends every session."""
        self._sse.end_all()
        self.sessions.end_all()


async def _guarded(handler: Callable[[Visit], Awaitable[None]], visit: Visit) -> None:
    """A fault of ours costs this request alone, and nothing of it reaches a stranger."""
    try:
        await handler(visit)
        return
    except asyncio.CancelledError:
        # Only the server does that, when what is left to wait for is over; the task ends here.
        words = "the gateway stops; what was asked may have had effects"
        refused = visit.refused(503, words)
    except Exception:
        _log.exception("a request of a host failed")
        refused = visit.refused(500, "internal error")
    try:
        await refuse(visit.send, refused)
    except RuntimeError:
        # The response had begun: all that is left is to end it.
        visit.abort()


def _unauthorized(head: Head) -> Refused:
    challenge = b'Bearer realm="troth"' + (b', error="invalid_token"' if head.authorization is not None else b"")
    words = "Authorization: a bearer token that the gateway knows belongs here"
    line = error_line(None, NOT_A_MESSAGE, words)
    return Refused(401, line, ((b"www-authenticate", challenge),), close=head.long)
