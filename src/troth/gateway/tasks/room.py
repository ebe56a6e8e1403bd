"""The tasks of hosts: made of calls, worked on in the background, told of to those whose they are.

A task is of a principal. Its work is a call as any other, but for a stream that goes nowhere; where the upstream makes
a task of that call itself, its state shows in ours.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast
from weakref import WeakValueDictionary

import msgspec
from msgspec import Raw

from troth.bridge import ErrorValue, fresh
from troth.bridge.errors import INTERNAL
from troth.bridge.promise import CORE_TASKS, TASKS_KEY
from troth.gateway import forms
from troth.gateway.model import Answer, Sort, Status
from troth.gateway.tasks.awaiting import Awaiting, Made
from troth.gateway.tasks.desks import JobDesk, Turnings, answered, asking_by_requests, declares_of
from troth.gateway.tasks.kept import NOBODY, Kept, askable, kept_of, outlasts, requester
from troth.gateway.tasks.outcomes import outcome_of, spelled
from troth.gateway.upstream.pause import Pause
from troth.register import Era, register
from troth.tasks import Core, Engine, Extension, Outcome, StoreError, Task, core, extension, wish, work

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from troth.bridge.exchange_model import Round
    from troth.gateway.asked import Asked, HostSession
    from troth.gateway.audience import Audience
    from troth.gateway.calls import Desk
    from troth.gateway.crew import Crew
    from troth.gateway.limits import Limits
    from troth.gateway.member import Member
    from troth.gateway.model import Conversation, Host, Stream
    from troth.gateway.tasks.desks import Wrap
    from troth.tasks import Job, Store

    Do = Callable[[Job], Awaitable[Outcome]]
    """The work of a task."""

_log = logging.getLogger(__name__)

_METHOD: Final = "tools/call"
"""The one request that becomes a task."""


class Run(Protocol):
    """Runs the call of a host's request over a conversation, to its end or to questions.

    A round is one that was asked and that the request answers.
    """

    def __call__(
        self, asked: Asked, conversation: Conversation, wrap: Wrap, resume: Round | None = None
    ) -> Coroutine[Any, Any, Answer]:
        """The answer."""
        ...


class Place(NamedTuple):
    """Where a call goes.

    Attributes:
        owner: The upstream.
        conversation: Its conversation.
        tool: The name that the host called.
        support: How the tool takes tasks (`troth.bridge.listed.Entry.support`).
        run: Runs the call.
    """

    owner: Member
    conversation: Conversation
    tool: str
    support: str
    run: Run


class Passing:
    """The stream of a call, until the call is a task: then nobody hears what comes beside its result."""

    def __init__(self, stream: Stream | None = None) -> None:
        self.stream = stream

    def send(self, line: bytes, sort: Sort) -> None:
        """See `troth.gateway.model.Stream`."""
        if self.stream is not None:
            self.stream.send(line, sort)


class Tasks:
    """Tasks of all hosts of a gateway.

    Args:
        store: Keeps them.
        crew: Owner of their work.
        limits: Bounds.
        run: Name of this run; None for one of its own.

    Attributes:
        engine: Holds the tasks.
        listening: Id of a task -> the listens that want to hear of it.
        stopping: Whether work stops because the gateway does.
    """

    def __init__(self, store: Store, crew: Crew, limits: Limits, run: str | None = None) -> None:
        self.engine = Engine(store, run=run)
        self.listening: dict[str, set[Audience]] = {}
        self._crew = crew
        self._limits = limits
        self._faces: dict[str, Core | Extension] = {}
        self._makers: WeakValueDictionary[str, HostSession] = WeakValueDictionary()
        self._timed = False
        self._works: set[asyncio.Task[None]] = set()
        self.stopping = False
        self.engine.listen(self._changed)

    async def start(
        self, alive: Callable[[str], bool], resume: Callable[[Task], bool | None] = lambda _: False
    ) -> tuple[Task, ...]:
        """Says of tasks of runs that are over that they are lost, and forgets those whose time is over, from now on.

        Args:
            alive: Whether a run still runs.
            resume: Whether this run goes on with a task; None if another one may.

        Returns:
            The tasks to go on with.
        """
        taken: tuple[Task, ...] = ()
        try:
            taken = await self.engine.recover(alive, resume)
        except StoreError as error:
            _log.warning("tasks of earlier runs are lost: %s", error)
        self._keep_time()
        return taken

    async def stop(self) -> None:
        """Stops all work on tasks. What upstreams go on with by themselves is for the next run."""
        self.stopping = True
        for working in self._works:
            working.cancel()
        if self._works:
            await asyncio.wait(self._works)

    def _keep_time(self) -> None:
        """Looks after the time of tasks as soon as there may be one: a gateway without any rests."""
        if not self._timed:
            self._timed = True
            self._crew.spawn(self.engine.keep_time(), "time of tasks")

    def face(self, revision: str) -> Core | Extension:
        """The methods of tasks, as hosts of a revision know them."""
        face = self._faces.get(revision)
        if face is None:

            def spell(task: Task, result: Raw) -> Raw | ErrorValue:
                return spelled(task, result, revision)

            modern = register().era(revision) is Era.MODERN
            face = Extension(self.engine, spell, forms.check) if modern else Core(self.engine, spell)
            self._faces[revision] = face
        return face

    # Calls

    async def taken(self, asked: Asked, place: Place) -> Answer | Conversation:
        """What becomes of a call that may be a task.

        Returns:
            The answer: a task, or a refusal; or the conversation for a call whose result the host gets itself.
        """
        if asked.frame.method != _METHOD:
            return place.conversation
        try:
            answer = await self._answered(asked, place)
        except StoreError as error:
            _log.error("a task cannot be kept: %s", error)
            return asked.error(INTERNAL, "The task cannot be kept; the gateway's log says why")
        if answer is not None:
            return answer
        awaits = _extends(place) or place.support == "required"
        return self._awaited(asked, place) if awaits else place.conversation

    async def _answered(self, asked: Asked, place: Place) -> Answer | None:
        """The answer to a host that knows tasks, if it gets one or must not."""
        if asked.built.has(CORE_TASKS):
            wanted = wish(asked.frame.parts or {}, "optional" if place.support else "")
            if isinstance(wanted, ErrorValue):
                return asked.refuse(wanted)
            return None if wanted is None else await self._begun(asked, place, wanted.ttl)
        if asked.built.has(TASKS_KEY) and declares(asked.host):
            if place.support == "required":
                return await self._begun(asked, place)
            if _extends(place):
                return await self._perhaps(asked, place)
        return None

    def _awaited(self, asked: Asked, place: Place) -> Awaiting:
        """The conversation of a call whose host has no task. Where one survives us, the next run cancels it."""
        if not _extends(place):
            return self.awaiting(place)
        over = asyncio.Event()
        known = False

        def told(made: Made) -> None:
            nonlocal known
            if not known:
                known = True
                self._crew.spawn(self._remembered(asked, place, made, over), "remember a task")

        return self.awaiting(place, told, over=over.set)

    async def _remembered(self, asked: Asked, place: Place, made: Made, over: asyncio.Event) -> None:
        kept = kept_of(asked, place, asked.host.revision, made.taskId, asked.host.principal.name).text()
        seconds = self._limits.awaited
        self._keep_time()
        try:
            task = await self.engine.create(NOBODY, _METHOD, ttl=int(seconds * 1000), keep=kept)
            if isinstance(task, Task):
                async with asyncio.timeout(seconds):
                    await over.wait()
                await self.engine.forget(task.id)
        except StoreError as error:
            _log.error("a task of %s cannot be remembered: %s", place.owner.name, error)
        except TimeoutError:
            return

    def awaiting(
        self,
        place: Place,
        told: Callable[[Made], None] | None = None,
        seconds: float | None = None,
        *,
        over: Callable[[], None] = lambda: None,
        stays: Callable[[], bool] = lambda: False,
        found: str = "",
    ) -> Awaiting:
        """The conversation in which tasks of the upstream are awaited, for the usual time if none is given."""
        owner, limits = place.owner, self._limits
        patience = limits.awaited if seconds is None else seconds
        return Awaiting(
            place.conversation,
            lambda: owner.conversation,
            self._crew,
            method=limits.method,
            patience=patience,
            told=told,
            over=over,
            stays=stays,
            found=found,
            keeps=lambda: outlasts(owner.settings) and owner.upstream.status is not Status.STOPPED,
            pause=Pause(limits),
        )

    async def _begun(self, asked: Asked, place: Place, ttl: int | None = None) -> Answer:
        """A task at once, whose work begins then."""
        kept = kept_of(asked, place, asking_by_requests(asked.host).revision)
        task = await self._create(asked, kept, ttl)
        if isinstance(task, ErrorValue):
            return asked.refuse(task)
        known: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        told = self.said(task, lambda made: self._know(task, kept, made, known)) if _extends(place) else self.said(task)
        working = self.spawn(task, place.owner.name, self.by_requests(asked, place, told))
        if _extends(place):
            try:
                await asyncio.wait({working, known}, timeout=self._limits.task_id, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                self._crew.spawn(self.engine.cancel(requester(asked.host), task.id), "cancel a task of nobody")
                raise
        return _created(asked, task)

    async def _know(self, task: Task, kept: Kept, made: Made, known: asyncio.Future[None]) -> None:
        """Keeps the upstream's id of its task with ours."""
        try:
            await self.engine.keep(task.id, msgspec.structs.replace(kept, task=made.taskId).text())
        except StoreError as error:
            _log.error("a task would not survive a restart: %s", error)
        if not known.done():
            known.set_result(None)

    def by_requests(self, asked: Asked, place: Place, told: Callable[[Made], None], found: str = "") -> Do:
        """The work of a call that is a task from the start: its questions are those of the task.

        Args:
            asked: The host's request.
            place: Where the call goes.
            told: Hears of the upstream's task.
            found: Id of a task of the upstream to go on with, in the place of a call; empty for none.
        """
        asker = asked._replace(stream=Passing(), host=asking_by_requests(asked.host), session=None)

        async def do(job: Job) -> Outcome:
            conversation = self.awaiting(place, told, job.task.ttl / 1000, stays=self._stays, found=found)

            def wrap(desk: Desk) -> JobDesk:
                return JobDesk(desk, self._crew, job, declares_of(place.owner, conversation))

            return outcome_of(await place.run(asker, conversation, wrap))

        return do

    def in_rounds(self, asked: Asked, place: Place, told: Callable[[Made], None], found: str) -> Do:
        """The work of a task of the extension that a modern upstream goes on with: it asks in rounds.

        Args:
            asked: The host's request.
            place: Where its call went.
            told: Hears of the upstream's task.
            found: The upstream's id of it.
        """
        desks = Turnings(turned=True)

        async def do(job: Job) -> Outcome:
            first = place.run(asked, self.awaiting(place, told, stays=self._stays, found=found), desks.wrap)
            return await self._rounds(job, asked, place, desks, told=told, answer=await first)

        return do

    async def _perhaps(self, asked: Asked, place: Place) -> Answer:
        """The answer if the upstream gives one; a task if it makes one."""
        stream = Passing(asked.stream)
        first: asyncio.Future[Made] = asyncio.get_running_loop().create_future()
        say: list[Callable[[Made], None]] = []

        def told(made: Made) -> None:
            if not first.done():
                first.set_result(made)
            for one in say:
                one(made)

        asked = asked._replace(stream=stream)
        desks = Turnings()
        # Until the host has an id, nobody could go on with it.
        handed: list[Task] = []
        call = place.run(asked, self.awaiting(place, told, stays=lambda: bool(handed) and self.stopping), desks.wrap)
        running = self._crew.spawn(call, f"a call of {place.owner.name}")
        try:
            await asyncio.wait({running, first}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                return running.result()
            stream.stream = None
            desks.turn()
            task = await self._create(asked, kept_of(asked, place, asked.host.revision, first.result().taskId))
        except BaseException:
            running.cancel()
            raise
        if isinstance(task, ErrorValue):
            running.cancel()
            return asked.refuse(task)
        handed.append(task)
        say.append(self.said(task))

        async def do(job: Job) -> Outcome:
            return await self._rounds(job, asked, place, desks, told=told, answer=await running)

        self.spawn(task, place.owner.name, do)
        return _created(asked, task)

    async def _rounds(
        self,
        job: Job,
        asked: Asked,
        place: Place,
        desks: Turnings,
        *,
        told: Callable[[Made], None],
        answer: Answer,
    ) -> Outcome:
        """Asks what rounds are left, until the call has its answer."""
        request = asked
        while (left := desks.left) is not None:
            found = await answered(job, request, left)
            if isinstance(found, ErrorValue):
                return Outcome(error=found)
            request = found
            answer = await place.run(request, self.awaiting(place, told, stays=self._stays), desks.wrap, left)
        return outcome_of(answer)

    def _stays(self) -> bool:
        return self.stopping

    def spawn(self, task: Task, upstream: str, do: Do) -> asyncio.Task[None]:
        """Has the work of a task of an upstream done."""
        working = self._crew.spawn(work(self.engine, task, do), f"a task of {upstream}")
        self._works.add(working)
        working.add_done_callback(self._works.discard)
        return working

    async def _create(self, asked: Asked, kept: Kept, ttl: int | None = None) -> Task | ErrorValue:
        self._keep_time()
        task = await self.engine.create(requester(asked.host), _METHOD, ttl=ttl, keep=kept.text())
        if isinstance(task, Task) and asked.session is not None:
            self._makers[task.id] = asked.session
        return task

    def said(
        self, task: Task, first: Callable[[Made], Coroutine[Any, Any, None]] | None = None
    ) -> Callable[[Made], None]:
        """Puts the words of an upstream's task on ours.

        Args:
            task: Ours.
            first: What else is done when the first is heard of the other; None for nothing.
        """
        last = ""
        heard = first is None

        def told(made: Made) -> None:
            nonlocal last, heard
            if not heard and first is not None:
                heard = True
                self._crew.spawn(first(made), "a task of an upstream is there")
            if made.statusMessage != last:
                last = made.statusMessage
                self._crew.spawn(self._say(task, last), "words of a task")

        return told

    async def _say(self, task: Task, words: str) -> None:
        try:
            await self.engine.say(task.id, words)
        except StoreError as error:
            _log.warning("words of a task cannot be kept: %s", error)

    # Changes

    def _changed(self, task: Task) -> None:
        """Tells the session that made the task, and the listens that named it. Both are of its principal."""
        session = self._makers.get(task.id)
        if session is not None:
            method, params = core.status(task)
            audience = session.audience
            if session.push and audience.opened and not audience.ended.is_set():
                audience.stream.send(fresh.notification_line(method, params), Sort.OTHER)
        for audience in tuple(self.listening.get(task.id, ())):
            self.tell(audience, task)
        if task.ended:
            self._makers.pop(task.id, None)

    async def begin(self, audience: Audience, name: str) -> None:
        """From now on a listen hears of a task, and first of what it is: nothing in between is missed."""
        self.listening.setdefault(name, set()).add(audience)
        try:
            task = await self.engine.get(requester(audience.host), name)
        except StoreError as error:
            _log.error("a task cannot be read: %s", error)
            return
        if isinstance(task, Task):
            self.tell(audience, task)

    def tell(self, audience: Audience, task: Task) -> None:
        """Tells a listen of a task as it is."""
        face = cast("Extension", self.face(audience.host.revision))
        method, params = face.changed(task)
        if "inputRequests" in params and not askable(task, audience.host):
            params = {**params, "inputRequests": cast("dict[str, object]", {})}
        audience.stream.send(fresh.notification_line(method, {"_meta": audience.meta, **params}), Sort.OTHER)

    def leave(self, audience: Audience) -> None:
        """A listen ended."""
        for name in [name for name, audiences in self.listening.items() if audience in audiences]:
            self.listening[name].discard(audience)
            if not self.listening[name]:
                del self.listening[name]


def declares(host: Host) -> bool:
    """Whether a modern host declared the extension with this request."""
    return host.capabilities.has(TASKS_KEY)


def _extends(place: Place) -> bool:
    """Whether the upstream has the extension."""
    return place.conversation.capabilities.has(TASKS_KEY)


def _created(asked: Asked, task: Task) -> Answer:
    face = extension if asked.host.era is Era.MODERN else core
    return asked.result(face.created(task))
