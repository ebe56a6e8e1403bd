"""Legacy sessions of HTTP hosts: kept by id, bound to a principal, with the streams they own.

Source: Streamable HTTP, session management; rules for ids (at least 128 random bits, visible ASCII).
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from typing import TYPE_CHECKING, Final

from troth.bridge import NOT_A_MESSAGE
from troth.bridge.fresh import error_line
from troth.gateway.hosts.asgi import NO_SESSION, Refused, over
from troth.gateway.hosts.era import PLAIN, WIRES
from troth.gateway.hosts.events import Channel, History
from troth.gateway.model import Sort

if TYPE_CHECKING:
    from collections.abc import Collection

    from troth.bridge import Id
    from troth.gateway.crew import Crew
    from troth.gateway.hosts.head import Head
    from troth.gateway.limits import Limits
    from troth.gateway.model import Front, Principal, Session

ID_BYTES: Final = 24
"""Random bytes of a session id: 192 bits."""

SWEEP: Final = 15.0
"""Seconds between two looks at idle sessions."""

EVICTABLE: Final = 60.0
"""Seconds of silence after which a session without streams makes room for a new one. Hosts that end without DELETE
leave theirs behind; one that still lives gets 404 and opens a new one."""


class Outbox:
    """What goes to a host outside its requests: on the GET stream, or kept until there is one.

    Before a stream was ever opened only changes and questions are kept: nobody is promised logs of the past.
    """

    __slots__ = ("channel", "opened")

    def __init__(self, limits: Limits) -> None:
        self.channel = Channel(limits)
        self.opened = False

    def send(self, line: bytes, sort: Sort) -> None:
        """Queues one message; see `troth.gateway.model.Stream`."""
        if not self.channel.ended and (self.opened or sort in (Sort.CHANGE, Sort.OTHER)):
            self.channel.put(line, sort)

    def pending(self) -> list[bytes]:
        """Takes the changes that wait for a stream, to send them on another one."""
        return [] if self.channel.carried else self.channel.waiting.take_changes()


class Kept:
    """A session with all that hangs on it.

    Attributes:
        id: Its id.
        session: What the front made.
        principal: Whose it is.
        outbox: Its stream outside requests.
        wire: What HTTP has in its revision.
        channels: Streams of requests that run, by number.
        history: What was sent, for hosts that resume; None where the revision cannot.
        running: Requests in flight.
        last: Time of the last request.
    """

    __slots__ = ("_number", "channels", "history", "id", "last", "outbox", "principal", "running", "session", "wire")

    def __init__(self, session: Session, principal: Principal, outbox: Outbox, limits: Limits, now: float) -> None:
        self.id = session.id = secrets.token_urlsafe(ID_BYTES)
        self.session = session
        self.principal = principal
        self.outbox = outbox
        self.wire = WIRES.get(session.host.revision, PLAIN)
        self.channels: dict[int, Channel] = {}
        self.history = History(limits.replay, limits.replay_time) if self.wire.resumes else None
        outbox.channel.history = self.history
        outbox.channel.primes = self.wire.primes
        self.running = 0
        self.last = now
        self._number = 0

    @property
    def busy(self) -> bool:
        """Whether something of it runs or is open."""
        return self.running > 0 or self.outbox.channel.carried

    def stream(self, number: int) -> Channel | None:
        """The stream of this number, if it is still open."""
        return self.outbox.channel if number == self.outbox.channel.number else self.channels.get(number)

    def channel(self, limits: Limits) -> Channel:
        """A new stream for one request."""
        self._number += 1
        channel = Channel(limits, self.history, self._number, primes=self.wire.primes)
        if self.history is not None:
            self.channels[self._number] = channel
        return channel


def wrong_version(head: Head, kept: Kept) -> Refused | None:
    """Why a request is refused whose header names another revision than its session's; absent is fine, as of old."""
    revision = kept.session.host.revision
    if not kept.wire.names_revision or head.version is None or head.version == revision.encode():
        return None
    words = f"MCP-Protocol-Version: this session speaks {revision}; send that"
    return Refused(400, error_line(None, NOT_A_MESSAGE, words))


class Sessions:
    """All sessions of one endpoint.

    Args:
        front: Hears when one ends.
        limits: Bounds.
        crew: Owns the look after idle ones.
    """

    def __init__(self, front: Front, limits: Limits, crew: Crew) -> None:
        self._crew = crew
        self._sweeping = False
        self._front = front
        self._limits = limits
        self._kept: dict[str, Kept] = {}
        self._counts: Counter[str] = Counter()
        self._loop = asyncio.get_running_loop()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, identity: bytes, principal: Principal) -> Kept | Refused:
        """The session of this id, if it is the principal's; 404 for a dead or foreign one alike."""
        kept = self._kept.get(identity.decode("latin-1"))
        if kept is None or kept.principal.name != principal.name:
            words = "no such session: it ended or was never yours; send initialize to open a new one"
            return Refused(404, error_line(None, NO_SESSION, words))
        kept.last = self._loop.time()
        return kept

    def room(self, principal: Principal, request: Id | None) -> Refused | None:
        """Makes room for one more session, or says which limit forbids it."""
        limits = self._limits
        if self._counts[principal.name] >= limits.principal_sessions and not self._evict(principal):
            return over("principal_sessions", "too many sessions of this principal", 429, request)
        if len(self._kept) >= limits.sessions and not self._evict(None):
            return over("sessions", "too many sessions", 503, request)
        return None

    def add(self, session: Session, principal: Principal, outbox: Outbox) -> Kept:
        """Keeps a session and gives it its id."""
        kept = Kept(session, principal, outbox, self._limits, self._loop.time())
        self._kept[kept.id] = kept
        self._counts[principal.name] += 1
        if not self._sweeping:
            self._sweeping = True
            self._crew.spawn(self._sweep(), "host sessions")
        return kept

    def end(self, kept: Kept) -> None:
        """Ends a session, its streams and its requests."""
        if self._kept.pop(kept.id, None) is None:
            return
        self._counts[kept.principal.name] -= 1
        if not self._counts[kept.principal.name]:
            del self._counts[kept.principal.name]
        self._front.close(kept.session)
        for channel in (kept.outbox.channel, *kept.channels.values()):
            channel.end()

    def end_streams(self) -> None:
        """Ends the streams outside requests."""
        for kept in self._kept.values():
            kept.outbox.channel.end()

    def end_all(self, names: Collection[str] | None = None) -> None:
        """Ends the sessions of these principals, or all."""
        for kept in tuple(self._kept.values()):
            if names is None or kept.principal.name in names:
                self.end(kept)

    def sweep(self) -> None:
        """Ends what is idle for too long, and forgets what nobody will resume."""
        now = self._loop.time()
        for kept in tuple(self._kept.values()):
            if kept.busy:
                kept.last = now
            elif now - kept.last > self._limits.session_idle:
                self.end(kept)
                continue
            if kept.history is not None:
                kept.history.forget(now)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP)
            self.sweep()

    def _evict(self, principal: Principal | None) -> bool:
        """Ends the session that was silent for the longest, if one was for long enough."""
        latest = self._loop.time() - EVICTABLE
        idle = [
            kept
            for kept in self._kept.values()
            if not kept.busy and kept.last < latest and (principal is None or kept.principal.name == principal.name)
        ]
        if not idle:
            return False
        self.end(min(idle, key=lambda kept: kept.last))
        return True
