"""The endpoint towards HTTP hosts: a bare ASGI application for both eras at once.

The head of a request is judged before a byte of its body is read. The era is decided by each message. What is said to
modern hosts depends on the one request alone; legacy hosts have sessions (`sessions`), streams (`events`) and, where
their revision has them, batches.

Source: Streamable HTTP of 2025-03-26 to 2026-07-28; the gap G-20 (neither `_meta` nor session: legacy).
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from troth.bridge import NOT_A_MESSAGE, NOT_JSON, Bad, Batch, Frame, FrameLimits, Kind, read, read_batch, written
from troth.gateway.hosts.asgi import ABORT, Refused, error_line, over, refuse, respond
from troth.gateway.hosts.events import Channel, position
from troth.gateway.hosts.head import Head, head_of, preflight, with_origin
from troth.gateway.hosts.legacy_sse import LegacySse
from troth.gateway.hosts.post import Post, too_large
from troth.gateway.hosts.sessions import Kept, Outbox, Sessions
from troth.gateway.hosts.status import http_status
from troth.register import Era, register

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from troth.bridge import Id
    from troth.gateway.crew import Crew
    from troth.gateway.hosts.access import Access
    from troth.gateway.hosts.asgi import Receive, Scope, Send
    from troth.gateway.limits import Limits
    from troth.gateway.model import Answer, Front, Host, Principal

_log = logging.getLogger(__name__)

MCP: Final = "/mcp"
SSE: Final = "/sse"
MESSAGES: Final = "/messages"
STATUS: Final = "/status"
HEALTH: Final = "/health"

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
"""Member of `_meta` that makes a request modern."""

INITIALIZE: Final = "initialize"
LISTEN: Final = "subscriptions/listen"

SWEEP: Final = 15.0
"""Seconds between two looks at idle sessions."""

_METHODS: Final = {
    MCP: ("POST", "GET", "DELETE"),
    SSE: ("GET",),
    MESSAGES: ("POST",),
    STATUS: ("GET",),
    HEALTH: ("GET", "HEAD"),
}
_MODERN: Final = frozenset(revision.encode() for revision in register().eras[Era.MODERN])
_LEGACY_QUOTED: Final = frozenset(b'"%s"' % revision.encode() for revision in register().eras[Era.LEGACY])
_INTERNAL: Final = -32603


class HttpHosts:
    """The application: one per gateway.

    Args:
        front: Answers.
        access: Judges heads.
        limits: Bounds.
        crew: Owns tasks.
        status: Makes what `/status` tells, as a JSON value.
    """

    def __init__(
        self, front: Front, access: Access, limits: Limits, crew: Crew, status: Callable[[], object] | None = None
    ) -> None:
        self.front = front
        self.access = access
        self.limits = limits
        self.crew = crew
        self.sessions = Sessions(front, limits)
        self.running: Counter[str] = Counter()
        self.streams: Counter[str] = Counter()
        self._status = status
        self._frames = FrameLimits(bytes=limits.body)
        self._sse = LegacySse(self)
        self._sweeper: asyncio.Task[object] | None = None
        self._stopping = False
        self._listening: set[Post] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request; see ASGI."""
        if scope["type"] != "http":
            raise ValueError(f"only http is served here, not {scope['type']}")
        head = head_of(scope, self.limits)
        if isinstance(head, Refused):
            return await refuse(send, head)
        path: str = scope["path"]
        refused = self._admitted(path, head)
        if refused is not None:
            return await refuse(send, refused)
        if head.origin is not None:
            send = with_origin(send, head.origin)
            if head.method == "OPTIONS":
                return await preflight(send, head)
        if head.method not in _METHODS[path]:
            allow = ", ".join((*_METHODS[path], "OPTIONS")).encode()
            line = error_line(NOT_A_MESSAGE, f"{head.method} is not for this address")
            return await refuse(send, Refused(405, line, ((b"allow", allow),)))
        if path == HEALTH:
            return await respond(send, 200, b'{"status":"ok"}')
        if path == STATUS:
            return await self._tell(head, send)
        principal = self.access.principal(head.authorization)
        if principal is None:
            return await refuse(send, _unauthorized(head))
        try:
            await self._served(path, head, principal, scope, receive, send)
        except Exception:
            # A fault of ours must cost this request alone, and nothing of it may reach a stranger.
            _log.exception("a request of a host failed")
            await refuse(send, Refused(500, error_line(_INTERNAL, "internal error"), close=True))

    async def _served(
        self, path: str, head: Head, principal: Principal, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if head.method == "POST":
            post = Post(scope, receive, send, self.limits, self.crew)
            if path == MESSAGES:
                await self._sse.message(head, principal, scope["query_string"], post)
            else:
                await self._post(head, principal, post)
        elif path == SSE:
            await self._sse.stream(head, principal, scope, receive, send)
        elif head.method == "GET":
            await self._get(head, principal, scope, receive, send)
        else:
            await self._delete(head, principal, send)

    def _admitted(self, path: str, head: Head) -> Refused | None:
        """Whether a request with this head is for us."""
        if not self.access.host(head.host):
            words = "Host: this name is not ours; add it to allowed_hosts if it is"
            return Refused(421, error_line(NOT_A_MESSAGE, words), close=True)
        if not self.access.origin(head.origin):
            words = "Origin: pages of this origin may not use the gateway; add it to allowed_origins if they may"
            return Refused(403, error_line(NOT_A_MESSAGE, words), close=True)
        if path not in _METHODS:
            return Refused(404, error_line(NOT_A_MESSAGE, f"nothing is here; the endpoint is {MCP}"))
        if self._stopping:
            return Refused(503, error_line(_INTERNAL, "the gateway stops"), close=True)
        return None

    async def _tell(self, head: Head, send: Send) -> None:
        if self._status is None or not self.access.operator(head.authorization):
            return await refuse(send, _unauthorized(head))
        await respond(send, 200, msgspec.json.encode(self._status()))

    # One message

    async def _post(self, head: Head, principal: Principal, post: Post) -> None:
        refused = post.accept(head)
        if refused is not None:
            return await post.refuse(refused)
        body = await post.body()
        if isinstance(body, int):
            return await post.refuse(self.body_refused(body))
        kept = self.sessions.find(head.session, principal, None) if head.session is not None else None
        batches = isinstance(kept, Kept) and kept.wire.batches
        frame = read_batch(body, self._frames, allowed=True) if batches else read(body, self._frames)
        if isinstance(frame, Batch):
            await self._batch(frame, head, kept, principal, post)
        elif isinstance(frame, Bad):
            await self._bad(frame, head, post)
        elif _is_modern(frame, head):
            await self._modern(frame, head, principal, post)
        else:
            await self._legacy(frame, head, kept, principal, post)

    async def _bad(self, bad: Bad, head: Head, post: Post) -> None:
        """Answers what is no message: as an error where it is sure which legacy request it answers."""
        answer = self.front.refusal(bad, None)
        era = Era.MODERN if head.version in _MODERN else Era.LEGACY if head.session is not None else None
        answerable = bad.id is not None and bad.kind in (Kind.REQUEST, None)
        line = answer.line if answerable or bad.kind is None else error_line(bad.code, bad.reason)
        status = http_status(bad.code, era if answerable else None, about_meta=True)
        await post.finish(line, status)

    async def _modern(self, frame: Frame, head: Head, principal: Principal, post: Post) -> None:
        host = self.front.modern(frame, principal, "http")
        if frame.kind is not Kind.REQUEST:
            # A notification is never answered, whatever is in it.
            if not isinstance(host, Bad):
                self.front.notify(frame, host)
            return await post.finish(b"")
        if isinstance(host, Bad):
            answer = self.front.refusal(host, None)
            return await post.finish(answer.line, http_status(host.code, Era.MODERN, about_meta=True))
        fault = self.front.header_fault(frame, host, head.words)
        if fault is not None:
            answer = self.front.refusal(fault, host.revision)
            return await post.finish(answer.line, http_status(fault.code, Era.MODERN))
        await self._request(frame, host, post, None)

    async def _legacy(
        self, frame: Frame, head: Head, kept: Kept | Refused | None, principal: Principal, post: Post
    ) -> None:
        if frame.method == INITIALIZE and frame.kind is Kind.REQUEST:
            return await self._initialize(frame, principal, post)
        if kept is None:
            return await self._homeless(frame, post)
        refused = kept if isinstance(kept, Refused) else _wrong_version(head, kept)
        if refused is not None:
            return await post.refuse(refused)
        assert isinstance(kept, Kept)
        post.kept = kept
        if frame.kind is Kind.REQUEST:
            return await self._request(frame, kept.session.host, post, kept)
        self.front.notify(frame, kept.session.host)
        await post.finish(b"")

    async def _homeless(self, frame: Frame, post: Post) -> None:
        """A legacy message without a session."""
        if frame.kind is Kind.REQUEST and frame.method == "ping":
            return await post.finish(written({"jsonrpc": "2.0", "id": frame.id, "result": {}}))
        words = "no session: send initialize first, and then the Mcp-Session-Id header that its answer carries"
        identity = frame.id if frame.kind is Kind.REQUEST else None
        await post.finish(error_line(NOT_A_MESSAGE, words, identity), 400)

    async def _initialize(self, frame: Frame, principal: Principal, post: Post) -> None:
        refused = self.sessions.room(principal, frame.id)
        if refused is not None:
            return await post.refuse(refused)
        post.one_piece()
        outbox = Outbox(self.limits)
        opening = self.front.initialize(frame, principal, outbox, push=True, transport="http")
        opened = await post.run(opening, cancels=False)
        assert opened is not None
        session, answer = opened
        if session is None:
            return await post.finish(answer.line, http_status(answer.code or 0, Era.LEGACY))
        kept = self.sessions.add(session, principal, outbox)
        if post.gone:
            self.sessions.end(kept)
        if self._sweeper is None:
            self._sweeper = self.crew.spawn(self._sweep(), "host sessions")
        await post.finish(answer.line, 200, ((b"mcp-session-id", kept.id.encode()),))

    async def _request(self, frame: Frame, host: Host, post: Post, kept: Kept | None) -> None:
        """Answers one request, within the limits of its principal."""
        name = host.principal.name
        listens = frame.method == LISTEN
        counts = self.streams if listens else self.running
        refused = self.too_many(counts, name, frame.id)
        if refused is None and listens and not post.events:
            words = "Accept: text/event-stream belongs here, since this is answered by a stream"
            refused = Refused(406, error_line(NOT_A_MESSAGE, words, frame.id))
        if refused is not None:
            return await post.refuse(refused)
        counts[name] += 1
        if kept is not None:
            kept.running += 1
        elif listens:
            self._listening.add(post)
        try:
            answer = await post.run(self.front.answer(frame, host, post), cancels=kept is None)
        finally:
            self.released(counts, name)
            if kept is not None:
                kept.running -= 1
            elif listens:
                self._listening.discard(post)
        if answer is None:
            return await post.finish(b"")
        await post.finish(answer.line, 200 if answer.code is None else http_status(answer.code, host.era))

    def too_many(self, counts: Counter[str], name: str, identity: Id | None) -> Refused | None:
        """Whether one more would break a limit: `counts` is `running` or `streams`."""
        if counts is self.streams:
            if counts[name] >= self.limits.streams:
                return over("streams", "too many open streams", 429, identity)
        elif counts[name] >= self.limits.running:
            return over("running", "too many requests in flight", 429, identity)
        return None

    def released(self, counts: Counter[str], name: str) -> None:
        """One less of a principal."""
        counts[name] -= 1
        if not counts[name]:
            del counts[name]

    def body_refused(self, status: int) -> Refused:
        """The refusal of a body that could not be read."""
        if status == 413:
            return too_large(self.limits)
        words = f"the body did not come within {self.limits.request:g} s (limit: request)"
        return Refused(status, error_line(NOT_JSON, words), close=True)

    @contextmanager
    def streaming(self, principal: Principal) -> Generator[None]:
        """Counts an open stream of a principal."""
        self.streams[principal.name] += 1
        try:
            yield
        finally:
            self.released(self.streams, principal.name)

    def look_out(self, receive: Receive, gone: Callable[[], None]) -> None:
        """Calls `gone` when the connection is; it ends by itself with the response."""
        self.crew.spawn(_until_gone(receive, gone), "host look-out")

    # Batches

    async def _batch(
        self, batch: Batch, head: Head, kept: Kept | Refused | None, principal: Principal, post: Post
    ) -> None:
        """Answers the requests of an array side by side, in one response."""
        assert isinstance(kept, Kept)
        post.kept = kept
        host = kept.session.host
        requests: list[Frame] = []
        for item in batch.items:
            if isinstance(item, Bad):
                if item.kind in (Kind.REQUEST, None):
                    post.answered(self.front.refusal(item, host.revision).line)
            elif item.kind is Kind.REQUEST:
                requests.append(item)
            else:
                self.front.notify(item, host)
        left = [item for item in requests if not self._counted_out(item, principal, post)]
        kept.running += len(left)
        tasks = [self.crew.spawn(self._item(item, host, post, kept), "host batch") for item in left]
        await post.run(_all(tasks), cancels=False)
        await post.finish_batch()

    def _counted_out(self, frame: Frame, principal: Principal, post: Post) -> bool:
        refused = self.too_many(self.running, principal.name, frame.id)
        if refused is not None:
            post.answered(refused.line)
            return True
        self.running[principal.name] += 1
        return False

    async def _item(self, frame: Frame, host: Host, post: Post, kept: Kept) -> None:
        try:
            answer: Answer = await self.front.answer(frame, host, post)
            if answer.line:
                post.answered(answer.line)
        finally:
            self.released(self.running, host.principal.name)
            kept.running -= 1

    # Streams and ends of sessions

    async def _get(self, head: Head, principal: Principal, scope: Scope, receive: Receive, send: Send) -> None:
        kept = self._session_of(head, principal)
        if isinstance(kept, Refused):
            return await refuse(send, kept)
        if not head.takes_events:
            line = error_line(NOT_A_MESSAGE, "Accept: text/event-stream belongs here")
            return await refuse(send, Refused(406, line))
        refused = self.too_many(self.streams, principal.name, None)
        if refused is not None:
            return await refuse(send, refused)
        channel, after = kept.outbox.channel, None
        at = position(head.last_event) if head.last_event is not None and kept.history is not None else None
        if at is not None and kept.history is not None:
            after = at[1]
            found = channel if at[0] == channel.number else kept.channels.get(at[0])
            if found is None:
                return await self._replay(kept, at, send)
            channel = found
        kept.outbox.opened = True
        carrier = object()
        channel.take_over(carrier, scope.get("extensions", {}).get(ABORT))
        self.look_out(receive, lambda: channel.leave(carrier))
        with self.streaming(principal):
            await channel.carry(carrier, send, after=after)

    async def _replay(self, kept: Kept, at: tuple[int, int], send: Send) -> None:
        """The rest of a stream that has ended; 204 tells a host that nothing is left to come back for."""
        assert kept.history is not None
        if not kept.history.after(*at):
            return await respond(send, 204, headers=())
        channel = Channel(self.limits, kept.history, at[0])
        carrier = object()
        channel.take_over(carrier, None)
        channel.end()
        await channel.carry(carrier, send, after=at[1])

    async def _delete(self, head: Head, principal: Principal, send: Send) -> None:
        kept = self._session_of(head, principal)
        if isinstance(kept, Refused):
            return await refuse(send, kept)
        self.sessions.end(kept)
        await respond(send, 204, headers=())

    def _session_of(self, head: Head, principal: Principal) -> Kept | Refused:
        if head.session is None:
            status = 405 if head.version in _MODERN else 400
            line = error_line(NOT_A_MESSAGE, "Mcp-Session-Id is missing: a session belongs to this method")
            return Refused(status, line, ((b"allow", b"POST, OPTIONS"),) if status == 405 else ())
        kept = self.sessions.find(head.session, principal, None)
        if isinstance(kept, Refused):
            return kept
        return _wrong_version(head, kept) or kept

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP)
            self.sessions.sweep()

    def stop(self) -> None:
        """Takes nothing new and ends all streams, so that hosts let go; requests in flight go on."""
        self._stopping = True
        for post in tuple(self._listening):
            post.dismiss()
        self._sse.end_all()
        self.sessions.end_streams()

    def close(self) -> None:
        """Ends every session."""
        self._sse.end_all()
        self.sessions.end_all()


def application(
    front: Front, access: Access, limits: Limits, crew: Crew, status: Callable[[], object] | None = None
) -> HttpHosts:
    """The ASGI application that serves HTTP hosts. Must be called inside the running loop.

    Args:
        front: Answers.
        access: Judges heads.
        limits: Bounds.
        crew: Owns tasks that outlive a request.
        status: Makes what `/status` tells the operator, as a JSON value.
    """
    return HttpHosts(front, access, limits, crew, status)


def _is_modern(frame: Frame, head: Head) -> bool:
    """Rule 18: the era is the message's own."""
    revision = frame.meta.get(VERSION_KEY)
    if revision is not None:
        return head.session is None or bytes(revision) not in _LEGACY_QUOTED
    return head.session is None and head.version in _MODERN and frame.method != INITIALIZE


def _wrong_version(head: Head, kept: Kept) -> Refused | None:
    """Whether the header names another revision than the session's. It may be absent, as with old hosts."""
    revision = kept.session.host.revision
    if not kept.wire.names_revision or head.version is None or head.version == revision.encode():
        return None
    words = f"MCP-Protocol-Version: this session speaks {revision}; send that"
    return Refused(400, error_line(NOT_A_MESSAGE, words))


def _unauthorized(head: Head) -> Refused:
    challenge = b'Bearer realm="troth"' + (b', error="invalid_token"' if head.authorization is not None else b"")
    words = "Authorization: a bearer token that the gateway knows belongs here"
    return Refused(401, error_line(NOT_A_MESSAGE, words), ((b"www-authenticate", challenge),), close=head.long)


async def _all(tasks: list[asyncio.Task[object]]) -> None:
    if tasks:
        await asyncio.wait(tasks)


async def _until_gone(receive: Receive, gone: Callable[[], None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    gone()
