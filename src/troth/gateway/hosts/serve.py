"""The HTTP server: uvicorn's protocol on our own loop, with the bounds that it leaves to others.

uvicorn's `Server` is not used: it takes over signals, ticks ten times a second and ends when it wants. Its protocol
does not bound the head of a request, nor the time for it, nor readers that stand still; here it does.

Source: RFC 9112, 3 (bounds of request line and headers), 9.3 (persistent connections).
"""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Final, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from troth.bridge.fresh import error_line
from troth.gateway.hosts.asgi import ABORT, LIMIT_REACHED, TARGET, WHOLE

if TYPE_CHECKING:
    from troth.gateway.crew import Crew
    from troth.gateway.hosts.asgi import Scope
    from troth.gateway.hosts.http import HttpHosts
    from troth.gateway.limits import Limits

SWEEP: Final = 5.0
"""Seconds between two looks at all connections."""

GRACE: Final = 0.2
"""Seconds that streams which were told to end get for their last message when the server stops."""

LAST: Final = 0.5
"""Seconds that answers which are written already get to reach their hosts when the server stops."""

LONG: Final = 16 * 1024
"""Bytes from which on a body is handed over beside its head, since putting both together would copy it."""

_TAKEN = {errno.EADDRINUSE: "another program listens there", errno.EADDRNOTAVAIL: "this machine has no such address"}


class ListenError(Exception):
    """The server cannot listen where it should; says where and why."""


class _State(ServerState):
    """What the connections share. The date is made when it is needed, once a second."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.heads: dict[str, dict[_Connection, None]] = {}
        """Connections by address that have not sent the head of a request whole, the oldest first."""
        self.stopped = False
        """Whether connections that were on their way when the server stopped are no longer taken."""
        self._second = 0
        self._date: list[tuple[bytes, bytes]] = []
        super().__init__()

    def _get(self) -> list[tuple[bytes, bytes]]:
        now = int(time.time())
        if now != self._second:
            self._second = now
            self._date = [(b"date", formatdate(now, usegmt=True).encode())]
        return self._date

    def _set(self, value: list[tuple[bytes, bytes]]) -> None:
        """Takes nothing: uvicorn starts with an empty list."""

    default_headers = property(_get, _set)  # pyright: ignore[reportAssignmentType]
    """Headers of every response."""


class _Connection(HttpToolsProtocol):
    """One connection of a host."""

    # Since when the head of a request is awaited, and since when the next request, 0 while none is; bytes of the head;
    # bytes not taken, and since when.
    since = 0.0
    idle = 0.0
    seen = 0
    unread = 0
    unread_since = 0.0
    awaited: dict[_Connection, None] | None = None
    """Where it is kept while the head of a request is awaited and not there whole."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        if cast("_State", self.server_state).stopped:
            transport.abort()
            return
        self.access_log = False
        self.since = self.loop.time()
        self._await_head()
        if len(self.connections) > self._limits.connections:
            self._refuse(b"503 Service Unavailable", "too many connections (limit: connections)")

    def data_received(self, data: bytes) -> None:
        if self.since:
            self.seen += len(data)
        super().data_received(data)
        if self.since and self.awaited is None:
            self._await_head()
        if self.since and self.seen > self._limits.headers:
            self._refuse(b"431 Request Header Fields Too Large", "headers: too long (limit: headers)")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.since = self.loop.time()
        self.idle = 0.0

    def on_headers_complete(self) -> None:
        self.since = 0.0
        self.seen = 0
        if self.awaited is not None:
            self._forget_head()
        super().on_headers_complete()
        extensions: dict[str, Any] = {ABORT: self.transport.abort, WHOLE: self._whole}
        if not self.url.startswith(b"/"):
            extensions[TARGET] = _authority(self.url)
        self.scope["extensions"] = extensions

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._forget_head()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        """Counts a connection whose head is not there whole; the oldest of too many of one address is dropped."""
        heads = cast("_State", self.server_state).heads
        self.awaited = waiting = heads.setdefault(self.client[0] if self.client else "", {})
        waiting[self] = None
        if len(waiting) > self._limits.heads:
            oldest = next(iter(waiting))
            oldest._forget_head()
            oldest.transport.abort()

    def _forget_head(self) -> None:
        waiting, self.awaited = self.awaited, None
        if waiting is None:
            return
        waiting.pop(self, None)
        if not waiting:
            cast("_State", self.server_state).heads.pop(self.client[0] if self.client else "", None)

    def _whole(self, scope: Scope, status: int, line: bytes) -> bool:
        """Answers a request with JSON in one piece.

        uvicorn's own way takes two messages and searches every header for what is not allowed; here all are ours.

        Returns:
            False if nothing was done, since uvicorn must: the response has begun, the host is gone, reads slowly or has
            sent the next request already.
        """
        cycle = self.cycle
        if cycle.scope is not scope or cycle.response_started or cycle.disconnected or cycle.flow.write_paused:
            return False
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        head = [STATUS_LINE[status]]
        for name, value in cycle.default_headers:
            head += (name, b": ", value, b"\r\n")
        head.append(b"content-type: application/json\r\ncontent-length: %d\r\n" % len(line))
        head.append(b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n")
        if len(line) < LONG:
            cycle.transport.write(b"".join((*head, line)))
        else:
            cycle.transport.writelines((b"".join(head), line))
        cycle.message_event.set()
        if not cycle.keep_alive:
            cycle.transport.close()
        cycle.on_response()
        return True

    def on_response_complete(self) -> None:
        """As in uvicorn, but without a timer per response: `look` ends idle connections."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        else:
            self.idle = self.loop.time()

    def look(self, now: float) -> None:
        """Drops the connection if its host sends no head, or takes nothing of what is sent; closes it if it is idle."""
        limits = self._limits
        if self.since and now - self.since > limits.request:
            self.transport.abort()
        if self.idle and now - self.idle > limits.keep_alive:
            self.transport.close()
        unread = self.transport.get_write_buffer_size()
        if unread != self.unread or not unread:
            self.unread, self.unread_since = unread, now
        elif now - self.unread_since > limits.stalled:
            self.transport.abort()

    @property
    def _limits(self) -> Limits:
        return cast("_State", self.server_state).limits

    def _refuse(self, status: bytes, words: str) -> None:
        if self.transport.is_closing():
            return
        line = error_line(None, LIMIT_REACHED, words)
        self.transport.write(
            b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s"
            % (status, len(line), line)
        )
        self.transport.close()


def _authority(target: bytes) -> bytes:
    """Host and port of a request target in absolute form; empty for what is none of http.

    Source: RFC 9112, 3.2.2: a server accepts it, though only proxies are sent it.
    """
    scheme, _, rest = target.partition(b"://")
    if scheme.lower() not in (b"http", b"https"):
        return b""
    return rest.partition(b"/")[0].partition(b"?")[0]


class HttpServer:
    """A server that listens. `serve_http` makes it.

    Attributes:
        host: Address that it listens on.
        port: Port that it listens on.
    """

    def __init__(self, app: HttpHosts, limits: Limits, state: _State, server: asyncio.Server, crew: Crew) -> None:
        self._app = app
        self._limits = limits
        self._state = state
        self._server = server
        name = server.sockets[0].getsockname()
        self.host: str = name[0]
        self.port: int = name[1]
        self._sweeper = crew.spawn(self._sweep(), "host connections")

    @property
    def connections(self) -> int:
        """How many connections there are."""
        return len(self._state.connections)

    async def stop(self) -> None:
        """Stops: nothing new, streams end, requests in flight get `Limits.drain` seconds, then all is over."""
        self._server.close()
        self._state.stopped = True
        self._sweeper.cancel()
        self._app.stop()
        for connection in tuple(self._state.connections):
            connection.shutdown()
        # Listens end by themselves if the front was told to stop; those that do not are ended here.
        await self._ended(GRACE)
        self._app.dismiss()
        await self._ended(self._limits.drain)
        for task in tuple(self._state.tasks):
            task.cancel()
        await self._ended(LAST)
        # Sessions end last: with them end the calls of a batch, and what is owed to its host must be known before.
        self._app.close()
        for connection in tuple(self._state.connections):
            connection.shutdown()
        await self._flushed(LAST)
        for connection in tuple(self._state.connections):
            connection.transport.abort()

    async def _ended(self, seconds: float) -> None:
        tasks = tuple(self._state.tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    async def _flushed(self, seconds: float) -> None:
        """Waits until every connection is closed; nothing tells, so it looks."""
        for _ in range(int(seconds / 0.01)):
            if not self._state.connections:
                return
            await asyncio.sleep(0.01)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP)
            now = asyncio.get_running_loop().time()
            for connection in tuple(self._state.connections):
                cast("_Connection", connection).look(now)


async def serve_http(app: HttpHosts, host: str, port: int, limits: Limits, crew: Crew) -> HttpServer:
    """Listens, and serves until `HttpServer.stop`.

    Args:
        app: The application.
        host: Address or name to listen on.
        port: Port; 0 for any free one.
        limits: Bounds.
        crew: Owns the look after connections.

    Raises:
        ListenError: The port is taken, or the address is not ours.
    """
    # uvicorn reports faults of requests here; ours say more, in our own logs.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    config = uvicorn.Config(
        cast("Any", app),
        interface="asgi3",
        http=_Connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        timeout_keep_alive=int(limits.keep_alive),
    )
    config.load()
    state = _State(limits)
    loop = asyncio.get_running_loop()
    try:
        server = await loop.create_server(lambda: _Connection(config, state, {}, loop), host, port, backlog=2048)
    except OSError as error:
        why = _TAKEN.get(error.errno or 0, error.strerror or str(error))
        raise ListenError(f"cannot listen on {host} port {port}: {why}; choose another --host or --port") from error
    return HttpServer(app, limits, state, server, crew)
