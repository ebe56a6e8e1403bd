"""HTTP+SSE of 2024-11-05: one long event stream per host, to which the answers of its POSTs go.

The session is the stream: it begins with an `endpoint` event that says where to send messages, and ends with the
connection. The address holds an id that cannot be guessed and serves the principal alone that opened the stream.

Source: 2024-11-05, transports, HTTP with SSE.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from troth.bridge import NOT_A_MESSAGE, Bad, Batch, Frame, FrameLimits, Kind, read_batch
from troth.bridge.fresh import error_line, result_line
from troth.gateway.hosts.asgi import NO_SESSION, STREAM_HEAD, Refused, over, refuse
from troth.gateway.hosts.counts import released
from troth.gateway.hosts.era import INITIALIZE, PLAIN, WIRES
from troth.gateway.hosts.events import Channel
from troth.gateway.hosts.post import Post
from troth.gateway.hosts.sessions import ID_BYTES

if TYPE_CHECKING:
    from collections.abc import Collection

    from troth.gateway.crew import Crew
    from troth.gateway.hosts.asgi import Visit
    from troth.gateway.hosts.counts import Counts
    from troth.gateway.limits import Limits
    from troth.gateway.model import Front, Principal, Session, Sort

PARAMETER: Final = "session_id"


class Line:
    """One host on one stream; the `Stream` of its session and of each of its requests.

    Attributes:
        principal: Whose it is.
        channel: The stream.
        session: What the front made; None before `initialize`.
        opening: An `initialize` runs.
    """

    __slots__ = ("channel", "opening", "principal", "session")

    def __init__(self, principal: Principal, channel: Channel) -> None:
        self.principal = principal
        self.channel = channel
        self.session: Session | None = None
        self.opening = False

    def send(self, line: bytes, sort: Sort) -> None:
        """Queues one message; see `troth.gateway.model.Stream`."""
        if not self.channel.ended:
            self.channel.put(line, sort)


class LegacySse:
    """The two addresses of the old transport.

    Args:
        front: Answers.
        counts: What is open.
        limits: Bounds.
        crew: Owns the tasks of requests.
    """

    def __init__(self, front: Front, counts: Counts, limits: Limits, crew: Crew) -> None:
        self._front = front
        self._counts = counts
        self._limits = limits
        self._crew = crew
        self._lines: dict[str, Line] = {}
        self._frames = FrameLimits(bytes=limits.body)

    async def stream(self, visit: Visit) -> None:
        """GET: opens the stream, and with it the session."""
        if refused := self._refused_stream(visit):
            await refuse(visit.send, refused)
            return
        channel = Channel(self._limits)
        line = Line(visit.principal, channel)
        identity = secrets.token_urlsafe(ID_BYTES)
        self._lines[identity] = line
        try:
            with self._counts.streaming(visit.principal):
                channel.take_over(line, visit.abort)
                visit.look_out(self._crew, lambda: channel.leave(line))
                await visit.send(STREAM_HEAD)
                address = f"{visit.scope.get('root_path', '')}/messages?{PARAMETER}={identity}"
                opening = b"event: endpoint\ndata: %s\n\n" % address.encode()
                await visit.send({"type": "http.response.body", "body": opening, "more_body": True})
                await channel.carry(line, visit.send, head=False)
        finally:
            del self._lines[identity]
            channel.end()
            if line.session is not None:
                self._front.close(line.session)

    async def message(self, visit: Visit) -> None:
        """POST: takes a message; what it leads to goes on the stream."""
        post = Post(visit, self._limits, self._crew)
        query = parse_qs(visit.scope["query_string"].decode("latin-1"))
        line = self._lines.get((query.get(PARAMETER) or [""])[0])
        refused = post.accept(answered=False)
        if refused is None and (line is None or line.principal.name != visit.principal.name):
            words = f"{PARAMETER}: no such session; open a stream first, and send to the address of its first event"
            refused = Refused(404, error_line(None, NO_SESSION, words), close=visit.head.long)
        if refused is not None or line is None:
            assert refused is not None  # noqa: S101 - one of the two is
            await post.refuse(refused)
            return
        body = await post.body()
        found = body if isinstance(body, Refused) else self._read(body, line)
        if isinstance(found, Refused):
            await post.refuse(found)
            return
        for item in found:
            self._take(item, line)
        await post.finish(b"")

    def end_all(self, names: Collection[str] | None = None) -> None:
        """Ends the streams of these principals, or all."""
        for line in self._lines.values():
            if names is None or line.principal.name in names:
                line.channel.end()

    def _refused_stream(self, visit: Visit) -> Refused | None:
        if not visit.head.accepts[1]:
            return Refused(406, error_line(None, NOT_A_MESSAGE, "Accept: text/event-stream belongs here"))
        if len(self._lines) >= self._limits.sessions:
            return over("sessions", "too many sessions", 503)
        return self._counts.full_streams(visit.principal)

    def _read(self, body: bytes, line: Line) -> tuple[Frame | Bad, ...] | Refused:
        wire = PLAIN if line.session is None else WIRES.get(line.session.host.revision, PLAIN)
        found = read_batch(body, self._frames, allowed=wire.batches)
        if isinstance(found, Batch):
            return found.items
        if isinstance(found, Bad) and found.id is None:
            return Refused(400, error_line(None, found.code, found.reason))
        return (found,)

    def _take(self, item: Frame | Bad, line: Line) -> None:
        """Starts what a message asks for."""
        if isinstance(item, Bad):
            if item.kind in (Kind.REQUEST, None):
                line.channel.put_other(self._front.refusal(item, None).line)
        elif item.kind is not Kind.REQUEST:
            if line.session is not None:
                self._front.notify(item, line.session.host)
        elif refused := self._refused(item, line):
            line.channel.put_other(refused)
        else:
            line.opening = line.opening or item.method == INITIALIZE
            self._counts.running[line.principal.name] += 1
            self._crew.spawn(self._request(item, line), "host sse request")

    def _refused(self, frame: Frame, line: Line) -> bytes:
        """The error for a request that is out of turn or too much; empty for none."""
        if too_many := self._counts.full(line.principal, frame.id):
            return too_many.line
        if frame.method == INITIALIZE:
            again = line.opening or line.session is not None
            return error_line(frame.id, NOT_A_MESSAGE, "initialize was sent already") if again else b""
        if line.session is None and frame.method != "ping":
            return error_line(frame.id, NOT_A_MESSAGE, "no session: send initialize first")
        return b""

    async def _request(self, frame: Frame, line: Line) -> None:
        try:
            text = await self._answer(frame, line)
            await line.channel.room()
            if text and not line.channel.ended:
                line.channel.put_other(text)
        finally:
            released(self._counts.running, line.principal)

    async def _answer(self, frame: Frame, line: Line) -> bytes:
        if frame.method == INITIALIZE:
            return await self._initialize(frame, line)
        if line.session is not None:
            return (await self._front.answer(frame, line.session.host, line)).line
        return b"" if frame.id is None else result_line(frame.id, {})

    async def _initialize(self, frame: Frame, line: Line) -> bytes:
        try:
            session, answer = await self._front.initialize(frame, line.principal, line, push=True, transport="sse")
        finally:
            line.opening = False
        if session is not None:
            session.id = secrets.token_urlsafe(ID_BYTES)
            line.session = session
            if line.channel.ended:
                self._front.close(session)
        return answer.line
