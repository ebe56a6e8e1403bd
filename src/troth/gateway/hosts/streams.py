"""GET and DELETE of legacy sessions: the stream outside requests, resumption of any stream, the end.

A second GET takes the stream over from the first: a host that lost its network comes back long before the old
connection is known to be dead, and a refusal would leave it without.

Source: Streamable HTTP of 2025-03-26 to 2025-11-25, listening, resumability, session management.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.bridge import NOT_A_MESSAGE
from troth.bridge.fresh import error_line
from troth.gateway.hosts.asgi import Refused, refuse, respond
from troth.gateway.hosts.era import MODERN
from troth.gateway.hosts.events import Channel, position
from troth.gateway.hosts.sessions import Kept, wrong_version

if TYPE_CHECKING:
    from troth.gateway.crew import Crew
    from troth.gateway.hosts.asgi import Visit
    from troth.gateway.hosts.counts import Counts
    from troth.gateway.hosts.events import History
    from troth.gateway.hosts.sessions import Sessions
    from troth.gateway.limits import Limits


class Streams:
    """Carries streams over GET.

    Args:
        sessions: Owns them.
        counts: How many are open.
        limits: Bounds.
        crew: Owns the look-out for hosts that go away.
    """

    def __init__(self, sessions: Sessions, counts: Counts, limits: Limits, crew: Crew) -> None:
        self._sessions = sessions
        self._counts = counts
        self._limits = limits
        self._crew = crew

    async def get(self, visit: Visit) -> None:
        """Opens the session's stream, or takes up the one of the last event that the host saw."""
        kept = self._session(visit)
        refused = kept if isinstance(kept, Refused) else self._counts.full_streams(visit.principal)
        if refused is None and not visit.head.accepts[1]:
            refused = Refused(406, error_line(None, NOT_A_MESSAGE, "Accept: text/event-stream belongs here"))
        if refused is not None or isinstance(kept, Refused):
            assert refused is not None  # noqa: S101 - one of the two is
            await refuse(visit.send, refused)
            return
        last = visit.head.last_event
        at = position(last) if last is not None and kept.history is not None else None
        if at is None:
            await self._carry(visit, kept, kept.outbox.channel, None)
        elif (channel := kept.stream(at[0])) is not None:
            await self._carry(visit, kept, channel, at[1])
        elif kept.history is not None and kept.history.after(*at):
            await self._replay(visit, kept.history, at)
        else:
            # Nothing is left to come back for; event streams of the web say so with 204.
            await respond(visit.send, 204, headers=())

    async def delete(self, visit: Visit) -> None:
        """Ends the session."""
        kept = self._session(visit)
        if isinstance(kept, Refused):
            await refuse(visit.send, kept)
        else:
            self._sessions.end(kept)
            await respond(visit.send, 204, headers=())

    async def _carry(self, visit: Visit, kept: Kept, channel: Channel, after: int | None) -> None:
        if channel is kept.outbox.channel:
            kept.outbox.opened = kept.session.reached = True
        channel.take_over(visit, visit.abort)
        visit.look_out(self._crew, lambda: channel.leave(visit))
        with self._counts.streaming(visit.principal):
            await channel.carry(visit, visit.send, after=after)

    async def _replay(self, visit: Visit, history: History, at: tuple[int, int]) -> None:
        """The rest of a stream that has ended."""
        channel = Channel(self._limits, history, at[0])
        channel.take_over(visit, visit.abort)
        channel.end()
        await channel.carry(visit, visit.send, after=at[1])

    def _session(self, visit: Visit) -> Kept | Refused:
        head = visit.head
        if head.session is not None:
            kept = self._sessions.find(head.session, visit.principal)
            return kept if isinstance(kept, Refused) else wrong_version(head, kept) or kept
        line = error_line(None, NOT_A_MESSAGE, "Mcp-Session-Id is missing: this method is for sessions")
        # Modern revisions have neither sessions nor these methods.
        return Refused(405, line, ((b"allow", b"POST"),)) if head.version in MODERN else Refused(400, line)
