"""POST: one message of a host, or an array of them, from its bytes to its answer.

The era is decided by each message. What is said to a modern host depends on its one request; a legacy message belongs
to a session, or opens one.

Source: Streamable HTTP of 2025-03-26 to 2026-07-28; JSON-RPC batches of 2025-03-26; the gap G-20 (neither `_meta` nor
session: legacy).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from troth.bridge import NOT_A_MESSAGE, Bad, Batch, Frame, FrameLimits, Kind, read, read_batch
from troth.bridge.errors import HEADER_MISMATCH, UNSUPPORTED_VERSION, http_status
from troth.bridge.fresh import error_line, result_line
from troth.gateway.hosts.asgi import Owed, Refused
from troth.gateway.hosts.counts import released
from troth.gateway.hosts.era import INITIALIZE, LISTEN, MODERN, VERSION_KEY, is_modern, no_answer
from troth.gateway.hosts.post import Post
from troth.gateway.hosts.sessions import Kept, Outbox, wrong_version
from troth.register import Era

if TYPE_CHECKING:
    from collections.abc import Collection

    from troth.bridge import Id
    from troth.gateway.crew import Crew
    from troth.gateway.hosts.asgi import Visit
    from troth.gateway.hosts.counts import Counts
    from troth.gateway.hosts.sessions import Sessions
    from troth.gateway.limits import Limits
    from troth.gateway.model import Answer, Front, Host

NO_SESSION = "no session: send initialize first, and then the Mcp-Session-Id header that its answer carries"
NOT_ASKED = "an answer belongs here only in a legacy session, to a request that was sent there"
NO_STREAM = "Accept: text/event-stream belongs here, since this is answered by a stream"


class Messages:
    """Answers POSTs to the endpoint.

    Args:
        front: Answers.
        sessions: The legacy sessions.
        counts: Requests in flight.
        limits: Bounds.
        crew: Owns the tasks of batches.
    """

    def __init__(self, front: Front, sessions: Sessions, counts: Counts, limits: Limits, crew: Crew) -> None:
        self._front = front
        self._sessions = sessions
        self._counts = counts
        self._limits = limits
        self._crew = crew
        self._frames = FrameLimits(bytes=limits.body)
        self._listening: set[Post] = set()

    def dismiss(self, names: Collection[str] | None = None) -> None:
        """Ends the streams of modern hosts that would stay open: of these principals, or of all."""
        for post in tuple(self._listening):
            if names is None or post.visit.principal.name in names:
                post.dismiss()

    async def post(self, visit: Visit) -> None:
        """Answers one POST."""
        post = Post(visit, self._limits, self._crew)
        if refused := post.accept():
            await post.refuse(refused)
            return
        body = await post.body()
        if isinstance(body, Refused):
            await post.refuse(body)
            return
        head = visit.head
        kept = None if head.session is None else self._sessions.find(head.session, visit.principal)
        if isinstance(kept, Kept) and kept.wire.batches:
            frame = read_batch(body, self._frames, allowed=True)
            if isinstance(frame, Batch):
                await self._batch(frame, kept, post)
                return
        else:
            frame = read(body, self._frames)
        if isinstance(frame, Bad):
            if isinstance(kept, Kept) and wrong_version(head, kept) is None:
                self._spoiled(frame, kept)
            await self._bad(frame, post)
            return
        if frame.kind is Kind.REQUEST:
            visit.request = frame.id
        if is_modern(frame, head.version, session=head.session is not None):
            await self._modern(frame, post)
        else:
            await self._legacy(frame, kept, post)

    def _spoiled(self, bad: Bad, kept: Kept) -> None:
        """Ends a question that a legacy host answers with what is no answer."""
        if (meant := no_answer(bad)) is not None:
            self._front.notify(meant, kept.session.host)

    async def _bad(self, bad: Bad, post: Post) -> None:
        """Answers what is no message: as an error with 200 only where it surely answers a legacy request."""
        head = post.visit.head
        answers = bad.id is not None and bad.kind in (Kind.REQUEST, None)
        # A notification gets no response, so its error carries no id; neither does that of an answer to us.
        line = self._front.refusal(bad, None).line if answers else error_line(None, bad.code, bad.reason)
        era = Era.LEGACY if answers and head.session is not None and head.version not in MODERN else None
        await post.finish(line, http_status(bad.code, era))

    # Modern

    async def _modern(self, frame: Frame, post: Post) -> None:
        host = self._front.modern(frame, post.visit.principal, "http")
        if frame.kind is not Kind.REQUEST:
            # Whatever is in a notification, it is never answered.
            if not isinstance(host, Bad):
                self._front.notify(frame, host)
            await post.finish(b"")
        elif isinstance(host, Bad):
            bad = _mismatch(host, frame, post.visit.head.version) or host
            answer = self._front.refusal(bad, None)
            await post.finish(answer.line, http_status(bad.code, Era.MODERN, about_meta=True))
        elif (fault := self._front.header_fault(frame, host, post.visit.head.words)) is not None:
            answer = self._front.refusal(fault, host.revision)
            await post.finish(answer.line, http_status(fault.code, Era.MODERN))
        elif frame.method == LISTEN:
            await self._listen(frame, host, post)
        elif (refused := self._counts.full(host.principal, frame.id)) is not None:
            await post.refuse(refused)
        else:
            await self._request(frame, host, post)

    async def _listen(self, frame: Frame, host: Host, post: Post) -> None:
        """Answers with a stream that stays open as long as its host."""
        refused = self._counts.full_streams(host.principal, frame.id)
        if refused is None and not post.events:
            refused = Refused(406, error_line(frame.id, NOT_A_MESSAGE, NO_STREAM))
        if refused is not None:
            await post.refuse(refused)
            return
        self._listening.add(post)
        try:
            with self._counts.streaming(host.principal):
                answer = await post.run(self._front.answer(frame, host, post), cancels=True)
        finally:
            self._listening.discard(post)
        await _finish(answer, host, post)

    # Legacy

    async def _legacy(self, frame: Frame, kept: Kept | Refused | None, post: Post) -> None:
        asks = frame.kind is Kind.REQUEST
        if asks and frame.method == INITIALIZE:
            await self._initialize(frame, post)
            return
        if kept is None:
            await self._homeless(frame, post)
            return
        refused = kept if isinstance(kept, Refused) else wrong_version(post.visit.head, kept)
        if refused is None and asks:
            refused = self._counts.full(post.visit.principal, frame.id)
        if refused is not None or isinstance(kept, Refused):
            assert refused is not None  # noqa: S101 - one of the two is
            await post.refuse(refused)
            return
        post.kept = kept
        if asks:
            kept.running += 1
            try:
                await self._request(frame, kept.session.host, post)
            finally:
                kept.running -= 1
        else:
            self._front.notify(frame, kept.session.host)
            await post.finish(b"")

    async def _homeless(self, frame: Frame, post: Post) -> None:
        """A legacy message without a session."""
        if frame.kind is Kind.REQUEST and frame.method == "ping" and frame.id is not None:
            await post.finish(result_line(frame.id, {}))
        else:
            identity = frame.id if frame.kind is Kind.REQUEST else None
            words = NO_SESSION if frame.method else NOT_ASKED
            await post.finish(error_line(identity, NOT_A_MESSAGE, words), 400)

    async def _initialize(self, frame: Frame, post: Post) -> None:
        principal = post.visit.principal
        if (refused := self._sessions.room(principal, frame.id)) is not None:
            await post.refuse(refused)
            return
        post.one_piece()
        outbox = Outbox(self._limits)
        opening = self._front.initialize(frame, principal, outbox, push=True, transport="http")
        opened = await post.run(opening, cancels=False)
        assert opened is not None  # noqa: S101 - it is not cancelled
        session, answer = opened
        if session is None:
            await post.finish(answer.line, http_status(answer.code or 0, Era.LEGACY))
            return
        kept = self._sessions.add(session, principal, outbox)
        if post.gone:
            # Nobody heard its id.
            self._sessions.end(kept)
        await post.finish(answer.line, 200, ((b"mcp-session-id", kept.id.encode()),))

    async def _request(self, frame: Frame, host: Host, post: Post) -> None:
        running, name = self._counts.running, host.principal.name
        running[name] += 1
        try:
            answer = await post.run(self._front.answer(frame, host, post), cancels=post.kept is None)
        finally:
            running[name] -= 1
        await _finish(answer, host, post)

    # Batches

    async def _batch(self, batch: Batch, kept: Kept, post: Post) -> None:
        """Answers the requests of an array side by side, in one response."""
        host, principal = kept.session.host, post.visit.principal
        post.kept = kept
        owed = post.visit.owed = Owed(post.final, [])
        tasks: list[asyncio.Task[None]] = []
        for item in batch.items:
            if isinstance(item, Bad):
                self._spoiled(item, kept)
                if item.kind in (Kind.REQUEST, None):
                    post.answered(self._front.refusal(item, host.revision).line)
            elif item.kind is not Kind.REQUEST:
                self._front.notify(item, host)
            elif (refused := self._counts.full(principal, item.id)) is not None:
                post.answered(refused.line)
            else:
                self._counts.running[principal.name] += 1
                owed.requests.append(cast("Id", item.id))
                tasks.append(self._crew.spawn(self._item(item, host, post, owed), "host batch"))
        kept.running += 1
        try:
            await post.run(_all(tasks), cancels=False)
        finally:
            kept.running -= 1
        await post.finish_batch()

    async def _item(self, frame: Frame, host: Host, post: Post, owed: Owed) -> None:
        try:
            answer = await self._front.answer(frame, host, post)
            owed.requests.remove(cast("Id", frame.id))
            if answer.line:
                post.answered(answer.line)
        finally:
            released(self._counts.running, host.principal)


def _mismatch(bad: Bad, frame: Frame, version: bytes | None) -> Bad | None:
    """The error for a revision that is not served, where header and body do not even name the same one.

    Source: 2026-07-28/basic/transports, protocol version header: a mismatch comes before what either of them says.
    """
    if bad.code != UNSUPPORTED_VERSION or version is None:
        return None
    if bytes(frame.meta.get(VERSION_KEY, b"")) == b'"' + version + b'"':
        return None
    words = "the header MCP-Protocol-Version says something else than _meta"
    return Bad(HEADER_MISMATCH, words, frame.id, frame.kind)


async def _finish(answer: Answer | None, host: Host, post: Post) -> None:
    if answer is None:
        await post.finish(b"")
    else:
        await post.finish(answer.line, 200 if answer.code is None else http_status(answer.code, host.era))


async def _all(tasks: list[asyncio.Task[None]]) -> None:
    if tasks:
        await asyncio.wait(tasks)
