"""Keeps one upstream up: connects, watches over the conversation, and starts it again with back-off when it ends.

States: starting -> ready -> (starting | down) -> starting ...; stopped from everywhere. One task owns the loop; a
conversation tells it what happened by setting a mark, and never acts itself.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from troth.bridge import BAD_PARAMS, NOT_A_MESSAGE, Cause, Lost, Outgoing, ask, errors
from troth.bridge.asks import NOTHING
from troth.gateway.crew import Crew
from troth.gateway.model import Status, UnavailableError
from troth.gateway.upstream.conversation import SESSION_LOST, Talk
from troth.gateway.upstream.dial import DownError, Way, again, dial
from troth.gateway.upstream.envelope import Envelope
from troth.gateway.upstream.era import MODERN_CODES, Said, judge
from troth.gateway.upstream.links import open_client, open_link
from troth.gateway.upstream.pause import Pause
from troth.gateway.upstream.waiting import Counts
from troth.gateway.upstream.watch import Watch
from troth.register import Era

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.bridge import Frame
    from troth.bridge.asks import Asks
    from troth.gateway.limits import Limits
    from troth.gateway.model import Observer
    from troth.gateway.settings import Transport, UpstreamSettings
    from troth.gateway.upstream.client import HttpClient

_log = logging.getLogger(__name__)

CHECK: Final = 5.0
"""Seconds that an upstream gets to answer whether it is still there, after an answer of it broke off."""
CHECKS: Final = {Era.LEGACY: "ping", Era.MODERN: "server/discover"}
LOGGING: Final = "logging"
RACERS: Final = 2
"""Processes that one attempt starts for the two eras, and whose last words are looked at when it fails."""


NO_PING: Final = MODERN_CODES | {BAD_PARAMS, NOT_A_MESSAGE}
"""Codes with which a server of another era refuses a legacy ``ping``, in which there is nothing else to refuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What an upstream costs.

    Attributes:
        calls: Requests that were sent to it.
        errors: Of those, the ones that ended without an answer.
        restarts: Conversations that were opened after the first one.
        relayed: Requests of hosts among them.
        failed: Of these, the ones that ended without an answer.
        received: Bytes that came from it.
        sent: Bytes that went to it.
        junk: Frames that are no messages.
        strays: Messages that belong to nothing.
        since: Unix time at which the open conversation began; None unless ready.
        pid: Process of the open conversation; None for none.
        rss: Resident memory of that process and its descendants, in bytes; None where it cannot be read.
        notes: Last words of the process, what the link dropped: fit to print.
        last: Of an upstream that fell, the last of these; empty for none.
    """

    calls: int
    errors: int
    relayed: int
    failed: int
    restarts: int
    received: int
    sent: int
    junk: int
    strays: int
    since: float | None
    pid: int | None
    rss: int | None
    notes: tuple[str, ...]
    last: str


class Supervisor:
    """An `Upstream`. Made by `open_upstream`.

    Attributes:
        settings: What the operator asked for.
        asks: What it is told that it may ask, if it is a legacy one.
        counts: What it cost so far.
        restarts: Conversations that were opened after the first one.
        since: Unix time at which the open conversation began; None unless ready.
        last: What its process said last before it fell; empty for nothing, and once it is there again. For the operator
            only, and no part of `why`: it may be of one host, and others share the process.
    """

    def __init__(
        self,
        settings: UpstreamSettings,
        observer: Observer,
        limits: Limits,
        memory: MutableMapping[str, str],
        asks: Asks = NOTHING,
    ) -> None:
        self.name = settings.name
        self.status = Status.STARTING
        self.why = "it starts"
        self.conversation: Talk | None = None
        self.settings = settings
        self.asks = asks
        self.counts = Counts()
        self.restarts = 0
        self.since: float | None = None
        self.last = ""
        self._opened: deque[Talk] = deque(maxlen=RACERS)
        self._observer = observer
        self._limits = limits
        self._crew = Crew()
        self._client: HttpClient | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._way = Way(settings=settings, open=self._open, drop=self._drop, memory=memory)
        self._watch = Watch(settings.name, self._told, self._crew, limits)
        self._changed = asyncio.Event()
        self._mark = asyncio.Event()
        self._ended = ""
        self._lost_session = False
        self._checking = False
        self._ever = False
        self._told_of = ""
        self._retry_at = 0.0
        self._level: str | None = None
        self._level_sent: tuple[Talk, str] | None = None
        self._setting_level: asyncio.Task[None] | None = None
        self._runner: asyncio.Task[None] | None = None

    def begin(self, crew: Crew) -> None:
        """Starts the loop, owned by a crew of the caller's."""
        self._runner = crew.spawn(self._run(), f"upstream {self.name}")

    @property
    def retry(self) -> float | None:
        """Seconds until the next attempt; None if none is due."""
        if self.status is not Status.DOWN:
            return None
        return max(0.0, self._retry_at - asyncio.get_running_loop().time())

    # As an upstream.

    async def ready(self, seconds: float) -> Talk:
        """See `Upstream`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while self.conversation is None:
            rest = deadline - loop.time()
            further = self.status is Status.DOWN and self._retry_at > deadline
            if rest <= 0 or further or self.status is Status.STOPPED:
                raise UnavailableError(Lost(Cause.DOWN, f"{self.name} is {self.status}: {self.why}"))
            changed = self._changed
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), rest)
        return self.conversation

    async def subscribe(self, uri: str) -> None:
        """See `Upstream`."""
        await self._watch.subscribe(uri)

    async def unsubscribe(self, uri: str) -> None:
        """See `Upstream`."""
        self._watch.unsubscribe(uri)

    def level(self, level: str | None) -> None:
        """See `Upstream`."""
        self._level = level
        self._set_level()

    async def levelled(self) -> None:
        """See `Upstream`."""
        if self._setting_level is not None:
            await asyncio.wait((self._setting_level,))

    async def stop(self) -> None:
        """See `Upstream`."""
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.cancel()
            await asyncio.wait((runner,))

    # As the owner of conversations.

    def heard(self, talk: Talk, frame: Frame) -> None:
        """See `Owner`."""
        if talk is self.conversation:
            self._observer.heard(self, frame)

    def asked(self, talk: Talk, frame: Frame) -> bool:
        """See `Owner`."""
        return talk is self.conversation and self._observer.asked(self, frame)

    def over(self, talk: Talk, why: str) -> None:
        """See `Owner`."""
        if talk is self.conversation:
            self._ended = why
            self._mark.set()

    def expired(self, talk: Talk) -> None:
        """See `Owner`."""
        if talk is self.conversation:
            self._lost_session = True
            self._mark.set()

    def suspect(self, talk: Talk) -> None:
        """See `Owner`."""
        if talk is self.conversation and not self._checking:
            self._checking = True
            self._crew.spawn(self._check(talk), f"check {self.name}")

    def gap(self, talk: Talk) -> None:
        """See `Owner`."""
        if talk is self.conversation:
            self._watch.missed()

    # The loop.

    async def _run(self) -> None:
        pause = Pause(self._limits)
        try:
            while True:
                self._shown(Status.STARTING, "it starts")
                self._opened.clear()
                try:
                    talk = await dial(self._way)
                    why, least = await self._serve(talk), 0.0
                except DownError as error:
                    why, least = error.words, error.after
                except Exception:  # whatever it is, it must not end the attempts
                    task = asyncio.current_task()
                    if task is not None and task.cancelling():
                        raise
                    _log.exception("upstream %s: a fault of Troth", self.name)
                    why, least = "a fault of Troth; see its log", 0.0
                await self._rest(why, max(pause.next(), min(least, self._limits.back_off_most)))
        finally:
            with anyio.CancelScope(shield=True):
                await self._close()

    async def _serve(self, talk: Talk) -> str:
        """Stays until the conversation is over for good; returns why. A lost session is replaced at once."""
        while True:
            self._up(talk)
            await self._mark.wait()
            await self._watch.detach()
            if self._ended or not self._lost_session:
                break
            # Requests wait in the old talk for the new one.
            self._shown(Status.STARTING, "its session was lost")
            try:
                fresh = await again(self._way, talk)
            except DownError as error:
                self._ended = error.words
                break
            talk.hand_over(fresh)
            talk.finish(SESSION_LOST)
            self._drop(talk, SESSION_LOST)
            talk = fresh
        why = self._ended
        self.conversation = None
        talk.finish(why)
        self._drop(talk, why)
        return why

    def _up(self, talk: Talk) -> None:
        first, self._ever = not self._ever, True
        self._mark.clear()
        self._ended, self._lost_session = "", False
        self.conversation = talk
        self.since = time.time()
        self.restarts += not first
        self._shown(Status.READY, "")
        self.last = ""
        if self._told_of:
            self._told_of = ""
            _log.warning("upstream %s is back", self.name)
        if not talk.alive:
            # It ended between its handshake and now.
            self._ended = talk.why or "the connection ended"
            self._mark.set()
            return
        self._set_level()
        self._watch.attach(talk, first=first)
        self._observer.up(self)

    async def _rest(self, why: str, seconds: float) -> None:
        self._retry_at = asyncio.get_running_loop().time() + seconds
        self._shown(Status.DOWN, why)
        links = [talk.link for talk in reversed(self._opened)]
        self.last = next((link.notes[-1] for link in links if link.pid is not None and link.notes), "")
        told = in_full(why, self.last)
        if told != self._told_of:  # it is tried over and over, and one line is enough
            self._told_of = told
            _log.warning("upstream %s is down: %s", self.name, told)
        self._observer.down(self)
        await asyncio.sleep(seconds)

    def _shown(self, status: Status, why: str) -> None:
        if status is not Status.READY:
            self.conversation, self.since = None, None
        # While it starts again, why it fell is more telling than that it starts.
        if status is not Status.STARTING or self.status is not Status.DOWN:
            self.why = why
        self.status = status
        self._changed.set()
        self._changed = asyncio.Event()

    async def _check(self, talk: Talk) -> None:
        """Looks whether the upstream is there, and still what it was. A refused connection ends the talk by itself."""
        request = Outgoing(frame=ask(CHECKS[talk.era], {}), timeout=CHECK)
        try:
            frame = await talk.ask(request)
        except UnavailableError as error:
            if _another(talk.era, error):
                # The next connection finds out what it speaks now.
                self.over(talk, f"it does not speak {talk.revision} any more")
            return
        finally:
            self._checking = False
        verdict = judge(frame, talk.revision)
        if talk.era is Era.LEGACY or verdict.said is not Said.MODERN or talk is not self.conversation:
            return
        if verdict.facts.capabilities != talk.capabilities.raw:
            talk.settle(Envelope(verdict.revision), verdict.facts)
            await self._watch.detach()
            if talk is self.conversation:
                self._watch.attach(talk, first=False)
                self._observer.up(self)

    def _told(self, frame: Frame) -> None:
        self._observer.heard(self, frame)

    def _set_level(self) -> None:
        if self._level is not None and self._setting_level is None:
            self._setting_level = self._crew.spawn(self._send_level(), f"log level of {self.name}")

    async def _send_level(self) -> None:
        """Tells a legacy upstream the level, one at a time, the last one wins."""
        try:
            while True:
                talk, level = self.conversation, self._level
                wanted = None if talk is None or level is None else (talk, level)
                if wanted is None or wanted == self._level_sent or talk is None:
                    return
                self._level_sent = wanted
                if talk.era is Era.MODERN or not talk.capabilities.has(LOGGING):
                    return
                with suppress(UnavailableError):
                    await talk.ask(Outgoing(frame=ask("logging/setLevel", {"level": level})))
        finally:
            self._setting_level = None

    async def _open(self, transport: Transport, envelope: Envelope) -> Talk:
        talk = Talk(envelope, self, self._limits, self.counts, self.asks)
        if self._client is None:
            self._client = open_client(self.settings, self._limits)
        talk.link = await open_link(
            self.settings, talk, self._crew, self._limits, client=self._client, transport=transport
        )
        self._opened.append(talk)
        return talk

    def _drop(self, talk: Talk, why: str = "another connection took its place") -> None:
        """Closes a conversation in the background. Nothing cancels that: a process must be gone at the end."""
        closing = self._crew.spawn(talk.close(why), f"close {self.name}")
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _close(self) -> None:
        talk, self.conversation = self.conversation, None
        self._shown(Status.STOPPED, "it was stopped")
        self.last = ""
        await self._watch.detach()
        if talk is not None:
            self._drop(talk, "the gateway ended its connection")
        if self._closing:
            await asyncio.wait(self._closing)
        await self._crew.close()
        if self._client is not None:
            await self._client.close()


def _another(era: Era, refusal: UnavailableError) -> bool:
    """Whether what refuses a check is not the server that it was. A legacy one need not know ``ping``."""
    if refusal.lost.cause is not Cause.REFUSED:
        return False
    if era is Era.MODERN:
        return judge(refusal.error or refusal.lost, "").said is Said.LEGACY
    return refusal.error is not None and errors.code(refusal.error) in NO_PING


def open_upstream(
    settings: UpstreamSettings,
    observer: Observer,
    crew: Crew,
    limits: Limits,
    memory: MutableMapping[str, str],
    *,
    asks: Asks = NOTHING,
) -> Supervisor:
    """Starts to keep an upstream up. Must be called inside the loop.

    Args:
        settings: The upstream.
        observer: Hears of it.
        crew: Owner of its loop; stop the upstream before it.
        limits: Named limits.
        asks: What a legacy upstream is told at the handshake that it may ask.
        memory: What was found out about upstreams before, and is kept for the next start: texts by text.
    """
    upstream = Supervisor(settings, observer, limits, memory, asks)
    upstream.begin(crew)
    return upstream


def costs(upstream: Supervisor) -> Costs:
    """What an upstream costs now."""
    counts, talk = upstream.counts, upstream.conversation
    pid: int | None = None if talk is None else talk.link.pid
    return Costs(
        calls=counts.calls,
        errors=counts.errors,
        relayed=counts.relayed,
        failed=counts.failed,
        restarts=upstream.restarts,
        received=counts.received,
        sent=counts.sent,
        junk=counts.junk,
        strays=counts.strays,
        since=upstream.since,
        pid=pid,
        rss=None if pid is None else _rss(pid),
        notes=() if talk is None else talk.link.notes,
        last=upstream.last,
    )


def in_full(why: str, last: str) -> str:
    """Why an upstream fell, for the operator: with what its process said last, which no host is told."""
    return f"{why}; its last words: {last}" if last else why


def _rss(pid: int) -> int | None:
    """Resident memory of a process and of its descendants, in bytes; None where there is no ``/proc``."""
    total, open_pids, seen = 0, [pid], set[int]()
    try:
        while open_pids:
            one = open_pids.pop()
            if one in seen:
                continue
            seen.add(one)
            folder = Path(f"/proc/{one}")
            total += int((folder / "statm").read_text().split()[1])
            open_pids += map(int, (folder / "task" / str(one) / "children").read_text().split())
    except (OSError, ValueError, IndexError):
        return total * 4096 or None
    return total * 4096
