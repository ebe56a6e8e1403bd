"""Subscriptions and changes: what reaches the observer without anybody asking again.

Counted here, per upstream; made at the upstream in the way of its era: an RPC per URI (legacy), or one
``subscriptions/listen`` whose filter holds the declared flags and the URIs (modern). A filter changes
make-before-break: the new stream is acknowledged before the old one is closed. Too many notifications are allowed, a
missing one is not: wherever one may have been missed, the observer hears one that was made up.

Source: 2025-11-25/server/resources, subscriptions; 2026-07-28/basic/utilities/subscriptions; rule 15.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, cast

from troth.bridge import Bad, Cause, Frame, Kind, Lost, Outgoing, ask, notification_line, opened, read
from troth.capabilities.facts import listen_kinds
from troth.gateway.model import UnavailableError
from troth.gateway.upstream.era import decoded, texts
from troth.gateway.upstream.pause import Pause
from troth.gateway.upstream.waiting import LISTEN
from troth.gateway.upstream.words import told
from troth.register import Era, register

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from troth.bridge import Id
    from troth.capabilities import ServerCapabilities
    from troth.gateway.crew import Crew
    from troth.gateway.limits import Limits
    from troth.gateway.upstream.conversation import Talk

_log = logging.getLogger(__name__)

SUBSCRIBE: Final = "CAP-17"
"""The row that promises updates of resources."""
URIS: Final = "resourceSubscriptions"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
UPDATED: Final = "notifications/resources/updated"
CHANGES: Final = {
    row: f"notifications/{register().by_id[row].path.partition('.')[0]}/list_changed"
    for row in ("CAP-15", "CAP-18", "CAP-20")
}
"""Rows of lists that change, with the notification that says so."""


def promises(capabilities: ServerCapabilities, row: str) -> bool:
    """Whether a server promised what a row of the register is about."""
    return capabilities.has(register().by_id[row].path)


def made_up(method: str, params: Mapping[str, object] | None = None) -> Frame:
    """A notification of ours, as if the upstream had sent it."""
    return cast("Frame", read(notification_line(method, params)))


class _Maker(Protocol):
    """Makes subscriptions in the way of one era, on one conversation."""

    async def ensure(self, uri: str) -> None:
        """Returns when the upstream watches it.

        Raises:
            UnavailableError: It does not.
        """
        ...

    def release(self, uri: str) -> None:
        """Nobody wants it any more."""
        ...

    async def close(self) -> None:
        """The conversation is over, or ends now."""
        ...


class Watch:
    """What one upstream is to watch, over all its conversations.

    Args:
        name: Name of the upstream, for the log.
        heard: Takes what the observer shall hear.
        crew: Owner of the background work.
        limits: Named limits.
    """

    def __init__(self, name: str, heard: Callable[[Frame], None], crew: Crew, limits: Limits) -> None:
        self.name = name
        self.heard = heard
        self.crew = crew
        self.limits = limits
        self.counts: dict[str, int] = {}
        self._maker: _Maker | None = None
        self._promised: bool | None = None
        self._http = False
        self._changes: tuple[str, ...] = ()

    async def subscribe(self, uri: str) -> None:
        """See `Upstream.subscribe`. While the upstream is away the wish is kept, and made true later."""
        if self._promised is False:
            raise UnavailableError(Lost(Cause.REFUSED, f"upstream {self.name} offers no subscriptions"))
        self.counts[uri] = self.counts.get(uri, 0) + 1
        if self._maker is None:
            return
        try:
            await self._maker.ensure(uri)
        except UnavailableError as error:
            if error.lost.cause in (Cause.DOWN, Cause.BROKEN):
                return
            self.unsubscribe(uri)
            raise
        except asyncio.CancelledError:
            self.unsubscribe(uri)
            raise

    def unsubscribe(self, uri: str) -> None:
        """See `Upstream.unsubscribe`: the last one out closes the door, in the background."""
        left = self.counts.get(uri, 0) - 1
        if left > 0:
            self.counts[uri] = left
        elif self.counts.pop(uri, None) is not None and self._maker is not None:
            self._maker.release(uri)

    def attach(self, talk: Talk, *, first: bool) -> None:
        """A conversation is open: makes everything anew on it.

        Args:
            talk: The conversation.
            first: Whether it is the first one; after any other, updates may have been missed.
        """
        self._promised = promises(talk.capabilities, SUBSCRIBE)
        self._changes = tuple(method for row, method in CHANGES.items() if promises(talk.capabilities, row))
        modern = talk.era is Era.MODERN
        self._maker = Listening(self, talk) if modern else Calling(self, talk)
        if not self._promised:
            if self.counts:
                _log.warning("upstream %s no longer promises resources.subscribe", self.name)
            return
        for uri in self.counts:
            self.crew.spawn(self._remake(self._maker, uri, first=first), f"subscribe at {self.name}")

    async def detach(self) -> None:
        """The conversation is over."""
        maker, self._maker = self._maker, None
        if maker is not None:
            await maker.close()

    def missed(self) -> None:
        """Something may have been missed: says that everything changed which could have."""
        for method in self._changes:
            self.heard(made_up(method))
        if self._promised:
            for uri in self.counts:
                self.heard(made_up(UPDATED, {"uri": uri}))

    async def _remake(self, maker: _Maker, uri: str, *, first: bool) -> None:
        try:
            await maker.ensure(uri)
        except UnavailableError as error:
            _log.warning("upstream %s: a subscription was not made again: %s", self.name, error.lost.words)
            return
        if not first:
            self.heard(made_up(UPDATED, {"uri": uri}))


class Calling:
    """Subscriptions by ``resources/subscribe`` and ``resources/unsubscribe``: of legacy revisions."""

    def __init__(self, watch: Watch, talk: Talk) -> None:
        self._watch = watch
        self._talk = talk
        self._made: set[str] = set()
        self._locks: dict[str, asyncio.Lock] = {}

    async def ensure(self, uri: str) -> None:
        """See `_Maker`."""
        async with self._locks.setdefault(uri, asyncio.Lock()):
            if uri in self._made:
                return
            await self._talk.ask(Outgoing(frame=ask("resources/subscribe", {"uri": uri})))
            self._made.add(uri)

    def release(self, uri: str) -> None:
        """See `_Maker`."""
        self._watch.crew.spawn(self._release(uri), f"unsubscribe at {self._watch.name}")

    async def close(self) -> None:
        """See `_Maker`: nothing of it outlives the conversation."""

    async def _release(self, uri: str) -> None:
        lock = self._locks.setdefault(uri, asyncio.Lock())
        async with lock:
            if uri not in self._watch.counts and uri in self._made:
                self._made.discard(uri)
                try:
                    await self._talk.ask(Outgoing(frame=ask("resources/unsubscribe", {"uri": uri})))
                except UnavailableError as error:
                    _log.info("upstream %s: resources/unsubscribe failed: %s", self._watch.name, error.lost.words)
        if uri not in self._watch.counts and not lock.locked():
            self._locks.pop(uri, None)


@dataclass(frozen=True, slots=True)
class Filter:
    """What a listen asks for."""

    flags: frozenset[str]
    uris: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.flags or self.uris)

    def params(self) -> dict[str, object]:
        """It as ``params.notifications``."""
        shown: dict[str, object] = dict.fromkeys(sorted(self.flags), True)
        return {**shown, URIS: sorted(self.uris)} if self.uris else shown


class Stream:
    """One ``subscriptions/listen``: the sink of its request."""

    def __init__(self, wanted: Filter, heard: Callable[[Frame], None], ended: Callable[[Stream], None]) -> None:
        self.wanted = wanted
        self.number: Id = 0
        self.alive = True
        self.opened: asyncio.Future[Filter] = asyncio.get_running_loop().create_future()
        self.refused = ""
        """What the upstream said instead of opening it; empty if it opened or broke off."""
        self._heard = heard
        self._ended = ended

    def notified(self, frame: Frame) -> None:
        """See `Sink`."""
        if frame.method != ACKNOWLEDGED:
            self._heard(frame)
        elif not self.opened.done():
            found = decoded((frame.parts or {}).get("notifications"))
            honoured = cast("dict[str, object]", found) if isinstance(found, dict) else {}
            flags = frozenset(name for name in self.wanted.flags if honoured.get(name) is True)
            self.opened.set_result(Filter(flags, self.wanted.uris & set(texts(honoured.get(URIS)))))

    def answered(self, frame: Frame) -> None:
        """See `Sink`: the end in good order, or a refusal."""
        if frame.kind is Kind.ERROR and not self.opened.done():
            error = opened(frame)
            self.refused = f"{LISTEN} got {error.reason if isinstance(error, Bad) else told(error)}"
        self._end()

    def lost(self, why: Lost) -> None:  # noqa: ARG002
        """See `Sink`."""
        self._end()

    def asked(self, frame: Frame) -> bool:  # noqa: ARG002
        """See `Sink`."""
        return False

    def _end(self) -> None:
        self.alive = False
        if not self.opened.done():
            self.opened.cancel()
        self._ended(self)


class Listening:
    """Subscriptions and changes by ``subscriptions/listen``: of modern revisions. One stream, changed as needed."""

    def __init__(self, watch: Watch, talk: Talk) -> None:
        self._watch = watch
        self._talk = talk
        kinds = {row: name for row, name in listen_kinds().items() if promises(talk.capabilities, row)}
        self._flags = frozenset(name for row, name in kinds.items() if row in CHANGES)
        self._uris = SUBSCRIBE in kinds
        self._current: Stream | None = None
        self._honoured: Filter = Filter(frozenset(), frozenset())
        self._refused = ""
        self._asked: dict[str, list[asyncio.Future[None]]] = {}
        self._wake = asyncio.Event()
        self._pause = Pause(watch.limits)
        self._gap = talk.link.transport == "http"
        self._task = watch.crew.spawn(self._run(), f"listen to {watch.name}")
        self._wake.set()

    async def ensure(self, uri: str) -> None:
        """See `_Maker`."""
        if self._covers(uri):
            return
        asked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asked.setdefault(uri, []).append(asked)
        self._wake.set()
        # An upstream that ends each stream at once keeps nobody waiting.
        most = 3 * self._watch.limits.method
        try:
            async with asyncio.timeout(most):
                await asked
        except TimeoutError:
            raise UnavailableError(Lost(Cause.TIMEOUT, f"{LISTEN} was not opened within {most:g} s")) from None

    def release(self, uri: str) -> None:  # noqa: ARG002
        """See `_Maker`."""
        self._wake.set()

    async def close(self) -> None:
        """See `_Maker`."""
        self._task.cancel()
        await asyncio.wait((self._task,))
        if self._current is not None:
            self._leave(self._current)
        self._answer_all(Lost(Cause.DOWN, "the upstream went away"))

    def _covers(self, uri: str) -> bool:
        return self._current is not None and self._current.alive and uri in self._honoured.uris

    def _wanted(self) -> Filter:
        return Filter(self._flags, frozenset(self._watch.counts) if self._uris else frozenset())

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            wanted, current = self._wanted(), self._current
            if current is not None and current.alive and current.wanted == wanted:
                self._settle(wanted)
            elif wanted:
                await self._change(wanted)
            elif current is not None:
                self._current = None
                self._leave(current)

    async def _change(self, wanted: Filter) -> None:
        """Opens a stream for another filter, then leaves the old one; waits a while where that fails."""
        stream = Stream(wanted, self._watch.heard, self._ended)
        request = Outgoing(frame=ask(LISTEN, {"notifications": wanted.params()}))
        stream.number = self._talk.start(request, stream)
        try:
            await asyncio.wait((stream.opened,), timeout=self._watch.limits.method)
        except asyncio.CancelledError:
            self._leave(stream)
            raise
        if not stream.alive:
            self._gap = self._gap or stream.opened.done()
            await self._failed(stream, wanted)
            return
        old, self._current = self._current, stream
        # A stream without an acknowledgement may be good for something; what was asked of it is not promised.
        self._honoured = stream.opened.result() if stream.opened.done() else Filter(frozenset(), frozenset())
        if self._honoured != wanted:
            _log.warning("upstream %s does not honour all that it declared: %s", self._watch.name, LISTEN)
        if old is not None:
            self._leave(old)
        self._settle(wanted)
        if self._gap:
            self._gap = False
            self._watch.missed()

    async def _failed(self, stream: Stream, wanted: Filter) -> None:
        if stream.refused:
            _log.warning("upstream %s: %s", self._watch.name, stream.refused)
            for uri in wanted.uris:
                self._answer(uri, Lost(Cause.REFUSED, stream.refused))
            return
        await asyncio.sleep(self._pause.next())
        self._wake.set()

    def _ended(self, stream: Stream) -> None:
        """The upstream ended a stream. The current one is opened again, and what it missed is made up for."""
        if stream is self._current:
            self._current = None
            self._gap = True
            if self._talk.alive:
                self._watch.crew.spawn(self._later(), f"listen again to {self._watch.name}")

    async def _later(self) -> None:
        await asyncio.sleep(self._pause.next())
        self._wake.set()

    def _leave(self, stream: Stream) -> None:
        if stream.alive:
            stream.alive = False
            self._talk.cancel(stream.number, "the filter changed")

    def _settle(self, wanted: Filter) -> None:
        """Tells everybody who waits for a URI of a filter whether it is watched."""
        for uri in wanted.uris:
            refusal = Lost(Cause.REFUSED, f"{self._watch.name} does not acknowledge this subscription")
            self._answer(uri, None if uri in self._honoured.uris else refusal)

    def _answer(self, uri: str, why: Lost | None) -> None:
        for asked in self._asked.pop(uri, ()):
            if asked.done():
                continue
            if why is None:
                asked.set_result(None)
            else:
                asked.set_exception(UnavailableError(why))

    def _answer_all(self, why: Lost) -> None:
        for uri in list(self._asked):
            self._answer(uri, why)
