"""One upstream and what it lists. Lists are fetched whole, when it comes up, says that they changed, or is due.

A member belongs to the fleet of one principal, or to several where the operator said ``share = "always"``; those that
look at it are its watchers.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, Protocol, cast
from weakref import WeakSet

import anyio
import msgspec
from msgspec import Raw

from troth.bridge import Bad, opened
from troth.bridge.asks import BROKER, HOST, NOTHING, ROWS, client_capabilities, of_several
from troth.bridge.exchange import LEVELS
from troth.bridge.promise import CORE_TASKS, TASKS_KEY, paths, with_tasks
from troth.gateway.fetching import FAMILIES, LISTS, completes, fetch
from troth.gateway.model import Status, UnavailableError
from troth.gateway.settings import Share, Transport
from troth.register import Era

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from troth.bridge import Frame
    from troth.bridge.asks import Asks
    from troth.bridge.listed import Kind as ListKind
    from troth.gateway.crew import Crew
    from troth.gateway.fetching import Item, Left
    from troth.gateway.limits import Limits
    from troth.gateway.lines import Line
    from troth.gateway.model import Conversation, Upstream
    from troth.gateway.settings import UpstreamSettings

ROOTS_LIST: Final = "roots/list"
CANCELLED: Final = "notifications/cancelled"
LOG: Final = "notifications/message"
VISITED: Final = "notifications/elicitation/complete"

CHANGES: Final[Mapping[str, str]] = {f"notifications/{family}/list_changed": family for family in FAMILIES}
"""Notification -> the family whose lists changed."""

SPREAD: Final = 0.1
"""Part of a pause by which polls are spread, so that many upstreams are not asked at once."""
SLOWER: Final = 1.5
"""By how much a poll that found nothing new makes the next pause longer."""
SLOWEST: Final = 10.0
"""The longest pause between polls, as a multiple of the shortest."""
QUIET: Final = 2.0
"""Seconds without a fetch after which an upstream that says its lists changed is believed at once."""
PACE: Final = 5.0
"""The longest pause before lists are fetched again for one that says so all the time."""

FIRST: Final = 1.0
"""Seconds that the first call of a process waits for a question that such processes ask first."""
LEVELLING: Final = 1.0
"""Seconds that an upstream gets to take a log level before calls go on."""
NEEDS: Final = 256
"""Tools whose needs are remembered."""
SHOWN: Final = 8
"""Needs of one tool that are remembered."""


class _Lacking(msgspec.Struct):
    """``data`` of an error -32021. Source: 2026-07-28, schema, MissingRequiredClientCapabilityError."""

    requiredCapabilities: dict[str, dict[str, Raw]] = {}  # noqa: N815 - the name of the protocol


_read_needs = msgspec.json.Decoder(_Lacking).decode


class Watcher(Protocol):
    """Who looks at a member: a fleet."""

    def listed(self, member: Member) -> None:
        """Its lists, its status or what it promises may have changed."""
        ...

    def updated(self, member: Member, frame: Frame) -> None:
        """A resource of it changed."""
        ...

    def moved(self, member: Member) -> None:
        """It uses another connection: what is watched at it is watched there."""
        ...

    def asked(self, member: Member, conversation: Conversation, frame: Frame) -> bool:
        """It asks for roots outside of requests. False if nobody is surely meant."""
        ...

    def visited(self, member: Member, frame: Frame) -> bool:
        """It says that a visit to an address is complete. False if no call that ended had asked for it."""
        ...

    def withdrawn(self, conversation: Conversation | None, frame: Frame) -> None:
        """It takes such a question back."""
        ...

    def logged(self, member: Member, frame: Frame) -> bool:
        """It logs outside of requests. False if that belongs to no host surely."""
        ...


class Member:
    """One upstream with its lists. Implements `troth.gateway.model.Observer`.

    Args:
        settings: The upstream's part of the configuration.
        prefix: Text before its names and URIs; empty for none.
        crew: Owner of the tasks that fetch.
        limits: Bounds of lists, pages and waits.
        told: What this upstream may ask on behalf of those who use the member, and entries of their open maps.

    Attributes:
        asks: What of it are questions.
        shared: Whether there are other principals, which have the same credential at the upstream.
        answers: What of these the operator answers where the host cannot.
        line: The connection that it uses.
        more: Further processes, for calls about which questions may come.
        opens: Opens one.
        lists: Kind -> its items; a kind that was never fetched is missing.
        hints: Kind -> how long the list may be kept (milliseconds), and by whom (modern).
        notes: Kind -> what is wrong with its list, in words.
        left: Kind -> items of its list that cannot be read.
        settled: Set once the lists are known, or the first attempt has failed.
        remembered: Paths that it declared when it was last seen; None if it never was.
        completes: Whether it answers ``completion/complete`` though its revision has no capability for that; None where
            the capability decides.
        dropped: Notifications that belong to no request and to nobody (logs), counted.
        tasks: The face in which its calls may become tasks, as it was when the lists were fetched; empty for none.
        needs: Its own name of a tool -> capabilities for want of which it refused a call. Told, never enforced.
    """

    def __init__(
        self, settings: UpstreamSettings, prefix: str, crew: Crew, limits: Limits, told: Asks = NOTHING
    ) -> None:
        self.settings = settings
        self.name = settings.name
        self.prefix = prefix
        self.told = told
        self.asks = told & ROWS
        self.shared = False
        self.answers: Asks = NOTHING
        self.line: Line = cast("Line", None)
        self.lists: dict[str, tuple[Item, ...]] = {}
        self.hints: dict[str, tuple[int, str]] = {}
        self.notes: dict[str, str] = {}
        self.left: dict[str, tuple[Left, ...]] = {}
        self.settled = anyio.Event()
        self.watchers: set[Watcher] = set()
        self.remembered: frozenset[str] | None = None
        self.completes: bool | None = None
        self.dropped = 0
        self.tasks: Literal["", "core", "extension"] = ""
        self.needs: dict[str, tuple[str, ...]] = {}
        self.more: list[Upstream] = []
        self.opens: Callable[[], Upstream] = lambda: self.upstream
        self.remembers: Callable[[Member], None] = lambda _: None
        self._crew = crew
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._askers: WeakSet[Conversation] = WeakSet()
        self._asked = anyio.Event()
        self._levels: dict[object, str] = {}
        self._level = ""
        self._dirty: set[str] = set()
        self._fetching = False
        self._urgent = False
        self._ended = -QUIET - PACE
        self._pace = 0.0
        self._soon: asyncio.TimerHandle | None = None
        self._pause = 0.0
        self._poll: asyncio.TimerHandle | None = None
        self._grace: asyncio.TimerHandle | None = None
        self._gone = False
        self._done = anyio.Event()

    @property
    def upstream(self) -> Upstream:
        """The connection's keeper."""
        return self.line.upstream

    def borrow(self, other: Member) -> None:
        """Has the lists of another member of the same upstream until its own are fetched.

        A start takes seconds, and hosts that can be asked other things would miss names meanwhile that the upstream
        is known to have.
        """
        self.lists, self.left = dict(other.lists), dict(other.left)
        self.hints, self.tasks = dict(other.hints), other.tasks

    def declares(self, revision: str, more: Asks = NOTHING) -> dict[str, object] | None:
        """Client capabilities of a request to a modern upstream, with what holds for that one; None for none."""
        told = (of_several(self.told) if self._of_several else self.told) | more
        return client_capabilities(told, revision) if told else None

    @property
    def sends_people(self) -> bool:
        """Whether it may send people who watch its questions to an address.

        They watch or do not, which only a modern upstream can be told, with each request.
        """
        settings = self.settings
        mine = settings.share is not Share.ALWAYS and not self._of_several
        return mine and BROKER in settings.ask and self.era is Era.MODERN

    @property
    def of_hosts(self) -> Asks:
        """What hosts are asked: nothing where the operator does not let them, or where nobody knows which is meant."""
        settings = self.settings
        if HOST not in settings.ask or settings.share is Share.ALWAYS:
            return NOTHING
        return of_several(self.asks) if self._of_several else self.asks

    @property
    def _of_several(self) -> bool:
        """Whether the upstream takes several principals for one: a modern one has no session of each, but a process."""
        return self.shared and self.era is Era.MODERN and self.settings.transport is not Transport.STDIO

    @property
    def conversation(self) -> Conversation | None:
        """The open conversation; None unless ready."""
        return self.upstream.conversation

    def has(self, conversation: Conversation) -> bool:
        """Whether a conversation is of one of its processes."""
        return any(upstream.conversation is conversation for upstream in (self.upstream, *self.more))

    @property
    def listed(self) -> bool:
        """Whether hosts see its names: not while it is down for longer than a restart takes."""
        return not self._gone

    async def lease(self) -> Conversation | None:
        """The conversation for one call about which questions may come.

        A pipe does not say to which call a question belongs, so one such call at a time has it. Further ones open
        processes up to ``max_sessions``; beyond that they take turns.
        """
        base = self.conversation
        pipe = self.settings.transport is Transport.STDIO and base is not None and base.era is Era.LEGACY
        if not self.asks or not pipe:
            return base
        conversation = await self._free() or base
        # What others of its kind asked first may decide what a call is answered.
        if conversation is not None and self._askers and conversation not in self._askers:
            with anyio.move_on_after(FIRST):
                while conversation not in self._askers:
                    await self._asked.wait()
            self._askers.add(conversation)
        return conversation

    async def _free(self) -> Conversation | None:
        """A process without a call about which questions may come, of those that may be opened."""
        for upstream in (self.upstream, *self.more):
            conversation = upstream.conversation
            if conversation is not None and not conversation.busy:
                return conversation
        if len(self.more) + 1 < self.settings.max_sessions:
            self.more.append(self.opens())
            with suppress(UnavailableError):
                return await self.more[-1].ready(self.settings.start_timeout)
        return None

    async def stop(self) -> None:
        """Ends the upstream."""
        for timer in (self._poll, self._grace, self._soon):
            self._cancel(timer)
        self.watchers.clear()
        await self.line.leave(self)
        for upstream in self.more:
            await upstream.stop()

    # Observer

    def up(self, upstream: Upstream) -> None:  # noqa: ARG002 - ours
        """Everything may be new."""
        self._cancel(self._grace)
        self._grace = None
        self.refetch(*LISTS)

    def down(self, upstream: Upstream) -> None:
        """Its names stay for the time of a restart, which the first of several failures begins."""
        self._cancel(self._poll)
        if not self.lists or upstream.status is Status.STOPPED:
            self._vanish()
        elif not self._gone and self._grace is None:
            self._grace = self._loop.call_later(self._limits.grace, self._vanish)

    def heard(self, upstream: Upstream, frame: Frame) -> None:
        """Takes what the upstream says outside of requests."""
        family = CHANGES.get(frame.method)
        if family is not None:
            self._dirty.update(kind for kind, how in LISTS.items() if how.family == family)
            self._later()
        elif frame.method == "notifications/resources/updated":
            for watcher in tuple(self.watchers):
                watcher.updated(self, frame)
        elif frame.method == CANCELLED:
            for watcher in tuple(self.watchers):
                watcher.withdrawn(upstream.conversation, frame)
        elif frame.method == VISITED:
            self.dropped += not any(watcher.visited(self, frame) for watcher in tuple(self.watchers))
        elif frame.method != LOG or not any(watcher.logged(self, frame) for watcher in tuple(self.watchers)):
            self.dropped += 1

    def asked(self, upstream: Upstream, frame: Frame) -> bool:
        """A question outside of calls: roots are told by the one host there is, or by the operator (rule 5)."""
        conversation = upstream.conversation
        if conversation is None or frame.method != ROOTS_LIST:
            return False
        self._askers.add(conversation)
        self._asked.set()
        self._asked = anyio.Event()
        return any(watcher.asked(self, conversation, frame) for watcher in tuple(self.watchers))

    # What hosts want of it

    def roots_changed(self) -> None:
        """Tells each process of a legacy upstream that the roots of its host are others."""
        for upstream in (self.upstream, *self.more):
            conversation = upstream.conversation
            if conversation is not None and conversation.era is Era.LEGACY:
                conversation.tell("notifications/roots/list_changed")

    def level(self, who: object, level: str | None) -> None:
        """Notes the log level that somebody wants; the upstream gets the most verbose one. None withdraws it.

        Nothing is sent when nobody is left: no message takes a level back.
        """
        if level is None:
            self._levels.pop(who, None)
        else:
            self._levels[who] = level
        most = min(self._levels.values(), key=LEVELS.index, default=self._level)
        if most != self._level:
            self._level = most
            self.line.level(self, most)

    def moved(self) -> None:
        """It uses another connection from now on."""
        for watcher in tuple(self.watchers):
            watcher.moved(self)

    async def levelled(self) -> None:
        """Waits for a moment until the upstream has taken the level."""
        with anyio.move_on_after(LEVELLING):
            await self.upstream.levelled()

    def learn(self, tool: str, refusal: Frame) -> None:
        """Keeps for want of which capabilities the upstream refused a call of a tool (-32021)."""
        error = opened(refusal)
        data = b"" if isinstance(error, Bad) else (error.parts or {}).get("data", b"")
        try:
            wanted = _read_needs(data).requiredCapabilities
        except (msgspec.DecodeError, RecursionError):
            return
        if wanted and len(self.needs) < NEEDS:
            paths_ = [path for name, inner in wanted.items() for path in ([f"{name}.{key}" for key in inner] or [name])]
            self.needs[tool] = tuple(paths_[:SHOWN])

    # Lists

    def refetch(self, *kinds: str) -> None:
        """Fetches lists anew and at once; several calls before the first ends are one."""
        self._dirty.update(kinds)
        self._urgent = True
        self._cancel(self._soon)
        self._soon = None
        if not self._fetching:
            self._fetching = True
            self._done = anyio.Event()
            self._crew.spawn(self._fetch(), f"lists of {self.name}")

    def _later(self) -> None:
        """Fetches what is dirty after a moment, which grows while an upstream announces changes all the time."""
        if self._fetching or self._soon is not None:
            return
        quiet = self._loop.time() - self._ended > QUIET + self._pace
        self._pace = self._limits.coalesce if quiet else min(max(2 * self._pace, self._limits.coalesce), PACE)
        self._soon = self._loop.call_later(self._pace, self.refetch)

    async def fetched(self) -> None:
        """Waits until a fetch that runs has ended; bounded by its own limits."""
        if self._fetching:
            await self._done.wait()

    async def _fetch(self) -> None:
        try:
            while self._urgent and (conversation := self.conversation) is not None:
                self._urgent = False
                await self._round(conversation)
        finally:
            self._fetching = False
            self._ended = self._loop.time()
            self._done.set()
        if self._dirty and self.conversation is not None:
            self._later()

    async def _round(self, conversation: Conversation) -> None:
        """Fetches what is dirty, and tells the watchers. Of a conversation that ends meanwhile nothing counts."""
        before = dict(self.lists)
        kinds: list[ListKind] = [kind for kind in LISTS if kind in self._dirty]
        self._dirty.clear()
        try:
            for kind in kinds:
                self.hints.pop(kind, None)
                await self._list(conversation, kind)
            self.completes = await completes(conversation, self.lists, self._limits, self.completes)
        except UnavailableError:
            pass
        if self.conversation is not conversation:
            # `up` comes, or came already, and asks for everything.
            return
        self._gone = False
        self.settled.set()
        self.remembered = paths(conversation.capabilities)
        self.tasks = _tasks(conversation)
        self.remembers(self)
        self._schedule(same=before == self.lists)
        for watcher in tuple(self.watchers):
            watcher.listed(self)

    async def _list(self, conversation: Conversation, kind: ListKind) -> None:
        how = LISTS[kind]
        if not conversation.capabilities.has(how.family):
            self.lists[kind] = ()
            self.left.pop(kind, None)
            self.notes.pop(kind, None)
            return
        declares = self.declares(conversation.revision)
        if conversation.capabilities.has(TASKS_KEY):
            declares = with_tasks(declares)
        try:
            found = await fetch(conversation, kind, declares, self._limits)
        except UnavailableError as error:
            if self.conversation is not conversation:
                raise
            self.notes[kind] = f"{how.method}: {error}"
            self.lists.setdefault(kind, ())
            return
        self.lists[kind], self.left[kind] = found.items, found.left
        if found.hint is not None:
            self.hints[kind] = found.hint
        if found.note:
            self.notes[kind] = f"{how.method}: {found.note}"
        else:
            self.notes.pop(kind, None)

    def _schedule(self, *, same: bool) -> None:
        """Plans the next look at lists that could not be read, or whose changes the upstream does not announce."""
        self._cancel(self._poll)
        silent = [*LISTS] if self.notes else self._silent()
        ttls = [self.hints[kind][0] / 1000 for kind in silent if self.hints.get(kind, (0, ""))[0]]
        wish = self._limits.poll_least if self.notes else self.settings.poll or min(ttls, default=None)
        if not silent or wish is None:
            return
        least = max(wish, self._limits.poll_least)
        self._pause = min(self._pause * SLOWER, least * SLOWEST) if same and self._pause else least
        pause = self._pause * (1 + SPREAD * random.random())  # noqa: S311 - spreads load, hides nothing
        self._poll = self._loop.call_later(pause, lambda: self.refetch(*silent))

    def _silent(self) -> list[str]:
        """Kinds of lists that are declared and whose changes are not announced."""
        conversation = self.conversation
        if conversation is None:
            return []
        has = conversation.capabilities.has
        return [kind for kind, how in LISTS.items() if has(how.family) and not has(f"{how.family}.listChanged")]

    def _vanish(self) -> None:
        self._grace = None
        if self._gone and self.settled.is_set():
            return
        self._gone = True
        self.settled.set()
        for watcher in tuple(self.watchers):
            watcher.listed(self)

    def _cancel(self, handle: asyncio.TimerHandle | None) -> None:
        if handle is not None:
            handle.cancel()

    @property
    def era(self) -> Era | None:
        """Era of the open conversation."""
        return self.conversation.era if self.conversation is not None else None


def _tasks(conversation: Conversation) -> Literal["", "core", "extension"]:
    """The face in which an upstream offers tasks."""
    has = conversation.capabilities.has
    return "extension" if has(TASKS_KEY) else "core" if has(CORE_TASKS) else ""
