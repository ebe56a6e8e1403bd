"""HTTP+SSE of 2024-11-05: one long event stream per host, to which the answers of its POSTs go.

The session is the stream: it begins with an `endpoint` event that says where to send messages, and ends with the
connection. The address holds an id that cannot be guessed and serves the principal alone that opened the stream.

Source: 2024-11-05, transports, HTTP with SSE.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from troth.bridge import NOT_A_MESSAGE, Bad, Batch, Frame, FrameLimits, Kind, read_batch, written
from troth.gateway.hosts.asgi import ABORT, NO_SESSION, STREAM_HEAD, Refused, error_line, over, refuse
from troth.gateway.hosts.events import Channel
from troth.gateway.hosts.sessions import ID_BYTES, PLAIN, WIRES, Outbox

if TYPE_CHECKING:
    from troth.bridge import Id
    from troth.gateway.hosts.asgi import Receive, Scope, Send
    from troth.gateway.hosts.head import Head
    from troth.gateway.hosts.http import HttpHosts
    from troth.gateway.hosts.post import Post
    from troth.gateway.model import Principal, Session, Sort

PARAMETER = "session_id"


class Line:
    """One host on one stream; the `Stream` of each of its requests.

    Attributes:
        principal: Whose it is.
        channel: The stream.
        session: What the front made; None before `initialize`.
        opening: An `initialize` runs.
    """

    __slots__ = ("channel", "opening", "principal", "session")

    def __init__(self, principal: Principal, outbox: Outbox) -> None:
        self.principal = principal
        self.channel: Channel = outbox.channel
        self.session: Session | None = None
        self.opening = False

    def send(self, line: bytes, sort: Sort) -> None:
        """Queues one message; see `troth.gateway.model.Stream`."""
        if not self.channel.ended:
            self.channel.put(line, sort)


class LegacySse:
    """The two addresses of the old transport.

    Args:
        hosts: The application that they are part of.
    """

    def __init__(self, hosts: HttpHosts) -> None:
        self._hosts = hosts
        self._lines: dict[str, Line] = {}
        self._frames = FrameLimits(bytes=hosts.limits.body)

    async def stream(self, head: Head, principal: Principal, scope: Scope, receive: Receive, send: Send) -> None:
        """GET: opens the stream, and with it the session."""
        hosts = self._hosts
        if not head.takes_events:
            return await refuse(send, Refused(406, error_line(NOT_A_MESSAGE, "Accept: text/event-stream belongs here")))
        if refused := self._full(principal):
            return await refuse(send, refused)
        outbox = Outbox(hosts.limits)
        outbox.opened = True
        line = Line(principal, outbox)
        identity = secrets.token_urlsafe(ID_BYTES)
        self._lines[identity] = line
        with hosts.streaming(principal):
            try:
                line.channel.take_over(line, scope.get("extensions", {}).get(ABORT))
                hosts.look_out(receive, lambda: line.channel.leave(line))
                await send(STREAM_HEAD)
                address = f"{scope.get('root_path', '')}/messages?{PARAMETER}={identity}"
                opening = b"event: endpoint\ndata: %s\n\n" % address.encode()
                await send({"type": "http.response.body", "body": opening, "more_body": True})
                await line.channel.carry(line, send, head=False)
            finally:
                del self._lines[identity]
                line.channel.ended = True
                if line.session is not None:
                    hosts.front.close(line.session)

    async def message(self, head: Head, principal: Principal, query: bytes, post: Post) -> None:
        """POST: takes a message; what it leads to goes on the stream."""
        refused = post.accept(head, answer=False)
        if refused is not None:
            return await post.refuse(refused)
        line = self._lines.get((parse_qs(query.decode("latin-1")).get(PARAMETER) or [""])[0])
        if line is None or line.principal.name != principal.name:
            words = f"{PARAMETER}: no such session; open a stream first, and send to the address of its first event"
            return await post.refuse(Refused(404, error_line(NO_SESSION, words)))
        body = await post.body()
        if isinstance(body, int):
            return await post.refuse(self._hosts.body_refused(body))
        wire = PLAIN if line.session is None else WIRES.get(line.session.host.revision, PLAIN)
        found = read_batch(body, self._frames, allowed=wire.batches)
        items = found.items if isinstance(found, Batch) else (found,)
        if len(items) == 1 and isinstance(found, Bad) and found.id is None:
            return await post.refuse(Refused(400, error_line(found.code, found.reason)))
        for item in items:
            self._take(item, line)
        await post.finish(b"")

    def end_all(self) -> None:
        """Ends every stream."""
        for line in self._lines.values():
            line.channel.end()

    def _full(self, principal: Principal) -> Refused | None:
        hosts = self._hosts
        if len(self._lines) >= hosts.limits.sessions:
            return over("sessions", "too many sessions", 503)
        return hosts.too_many(hosts.streams, principal.name, None)

    def _take(self, item: Frame | Bad, line: Line) -> None:
        """Starts what a message asks for."""
        if isinstance(item, Bad):
            if item.kind in (Kind.REQUEST, None):
                line.channel.put_other(self._hosts.front.refusal(item, None).line)
            return
        if item.kind is not Kind.REQUEST:
            if line.session is not None:
                self._hosts.front.notify(item, line.session.host)
            return
        refused = self._refused(item, line)
        if refused:
            line.channel.put_other(refused)
            return
        line.opening = line.opening or item.method == "initialize"
        self._hosts.running[line.principal.name] += 1
        self._hosts.crew.spawn(self._answer(item, line), "host sse request")

    def _refused(self, frame: Frame, line: Line) -> bytes:
        """The error for a request that is out of turn or too much; empty for none."""
        too_many = self._hosts.too_many(self._hosts.running, line.principal.name, frame.id)
        if too_many is not None:
            return too_many.line
        if frame.method == "initialize":
            again = line.opening or line.session is not None
            return error_line(NOT_A_MESSAGE, "initialize was sent already", frame.id) if again else b""
        if line.session is None and frame.method != "ping":
            return error_line(NOT_A_MESSAGE, "no session: send initialize first", frame.id)
        return b""

    async def _answer(self, frame: Frame, line: Line) -> None:
        front = self._hosts.front
        try:
            if frame.method == "initialize":
                session, answer = await front.initialize(frame, line.principal, line, push=True, transport="sse")
                line.opening = False
                if session is not None:
                    session.id = secrets.token_urlsafe(ID_BYTES)
                    line.session = session
                    if line.channel.ended:
                        front.close(session)
                text = answer.line
            elif line.session is None:
                text = _pong(frame.id)
            else:
                text = (await front.answer(frame, line.session.host, line)).line
            await line.channel.room()
            if text and not line.channel.ended:
                line.channel.put_other(text)
        finally:
            self._hosts.released(self._hosts.running, line.principal.name)


def _pong(identity: Id | None) -> bytes:
    return written({"jsonrpc": "2.0", "id": identity, "result": {}})
