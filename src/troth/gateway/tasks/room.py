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

from troth.bridge import Bad, ErrorValue, fresh, read, relay, result_line
from troth.bridge.errors import INTERNAL
from troth.bridge.promise import CORE_TASKS, TASKS_KEY
from troth.gateway.asked import alone
from troth.gateway.model import Answer, Sort
from troth.gateway.tasks.awaiting import Awaiting, Made
from troth.gateway.tasks.desks import JobDesk, Turning, answered, asking_by_requests, declares_of
from troth.register import Era, register
from troth.tasks import Core, Engine, Extension, Outcome, Requester, StoreError, Task, core, extension, wish, work

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

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

_log = logging.getLogger(__name__)

_METHOD: Final = "tools/call"
"""The one request that becomes a task."""

_NULL: Final = Raw(b"null")

_read_line = msgspec.json.Decoder(dict[str, Raw]).decode
_read_flag = msgspec.json.Decoder(bool).decode


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
        support: How the tool takes tasks (`troth.bridge.listed.Entry.support`).
        run: Runs the call.
    """

    owner: Member
    conversation: Conversation
    support: str
    run: Run


class Kept(msgspec.Struct, frozen=True):
    """What is kept beside a task.

    Attributes:
        revision: Revision in which its result is spelled.
        upstream: Name of the upstream that works on it.
        asks: What the host that made it can be asked.
    """

    revision: str
    upstream: str
    asks: tuple[str, ...] = ()


_read_kept = msgspec.json.Decoder(Kept).decode


class _Error(msgspec.Struct):
    code: int = INTERNAL
    message: str = ""
    data: Raw = _NULL


_read_error = msgspec.json.Decoder(_Error).decode


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
    """

    def __init__(self, store: Store, crew: Crew, limits: Limits, run: str | None = None) -> None:
        self.engine = Engine(store, run=run)
        self.listening: dict[str, set[Audience]] = {}
        self._crew = crew
        self._limits = limits
        self._faces: dict[str, Core | Extension] = {}
        self._makers: WeakValueDictionary[str, HostSession] = WeakValueDictionary()
        self._timed = False
        self.engine.listen(self._changed)

    async def start(self, alive: Callable[[str], bool]) -> None:
        """Says of tasks of runs that are over that they are lost, and forgets those whose time is over, from now on.

        Args:
            alive: Whether a run still runs.
        """
        try:
            await self.engine.recover(alive)
        except StoreError as error:
            _log.warning("tasks of earlier runs are lost: %s", error)
        self._keep_time()

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
                return _spelled(task, result, revision)

            make = Extension if register().era(revision) is Era.MODERN else Core
            face = self._faces[revision] = make(self.engine, spell)
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
        return self._awaiting(place) if awaits else place.conversation

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

    def _awaiting(
        self, place: Place, told: Callable[[Made], None] | None = None, seconds: float | None = None
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
        )

    async def _begun(self, asked: Asked, place: Place, ttl: int | None = None) -> Answer:
        """A task at once, whose work begins then."""
        revision = asking_by_requests(asked.host).revision
        task = await self._create(asked, place, revision, ttl)
        if isinstance(task, ErrorValue):
            return asked.refuse(task)
        asker = asked._replace(stream=Passing(), host=asking_by_requests(asked.host), session=None)
        conversation = self._awaiting(place, self._said(task), task.ttl / 1000)

        async def do(job: Job) -> Outcome:
            def wrap(desk: Desk) -> JobDesk:
                return JobDesk(desk, self._crew, job, declares_of(place.owner, conversation))

            return _outcome(await place.run(asker, conversation, wrap))

        self._crew.spawn(work(self.engine, task, do), f"a task of {place.owner.name}")
        return _created(asked, task)

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
        desks: list[Turning] = []

        def wrap(desk: Desk) -> Turning:
            desks.append(Turning(desk, turned=stream.stream is None))
            return desks[-1]

        call = place.run(asked, self._awaiting(place, told), wrap)
        running = self._crew.spawn(call, f"a call of {place.owner.name}")
        try:
            await asyncio.wait({running, first}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                return running.result()
            stream.stream = None
            for desk in desks:
                desk.turned = True
            task = await self._create(asked, place, asked.host.revision)
        except BaseException:
            running.cancel()
            raise
        if isinstance(task, ErrorValue):
            running.cancel()
            return asked.refuse(task)
        say.append(self._said(task))

        async def do(job: Job) -> Outcome:
            answer, request = await running, asked
            while desks and (left := desks[-1].left) is not None:
                found = await answered(job, request, left)
                if isinstance(found, ErrorValue):
                    return Outcome(error=found)
                request = found
                answer = await place.run(request, self._awaiting(place, told), wrap, left)
            return _outcome(answer)

        self._crew.spawn(work(self.engine, task, do), f"a task of {place.owner.name}")
        return _created(asked, task)

    async def _create(self, asked: Asked, place: Place, revision: str, ttl: int | None = None) -> Task | ErrorValue:
        self._keep_time()
        kept = msgspec.json.encode(Kept(revision, place.owner.name, tuple(sorted(asked.host.asks)))).decode()
        task = await self.engine.create(requester(asked.host), _METHOD, ttl=ttl, keep=kept)
        if isinstance(task, Task) and asked.session is not None:
            self._makers[task.id] = asked.session
        return task

    def _said(self, task: Task) -> Callable[[Made], None]:
        """Puts the words of an upstream's task on ours."""
        last = ""

        def told(made: Made) -> None:
            nonlocal last
            if made.statusMessage != last:
                last = made.statusMessage
                self._crew.spawn(self.engine.say(task.id, last), "words of a task")

        return told

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


def requester(host: Host) -> Requester:
    """Whose the tasks of a host are. Those without a credential cannot be told apart: ids alone grant access."""
    return Requester(host.principal.name, shared=not alone(host.principal))


def askable(task: Task, host: Host) -> bool:
    """Whether a host can be asked all that a task may ask."""
    try:
        return host.asks.issuperset(_read_kept(task.keep).asks)
    except msgspec.MsgspecError:
        return False


def declares(host: Host) -> bool:
    """Whether a modern host declared the extension with this request."""
    return host.capabilities.has(TASKS_KEY)


def _extends(place: Place) -> bool:
    """Whether the upstream has the extension."""
    return place.conversation.capabilities.has(TASKS_KEY)


def _created(asked: Asked, task: Task) -> Answer:
    face = extension if asked.host.era is Era.MODERN else core
    return asked.result(face.created(task))


def _outcome(answer: Answer) -> Outcome:
    """What a call was answered with, as the outcome of its task."""
    if not answer.line:
        return Outcome(error=ErrorValue(INTERNAL, "The call was withdrawn"))
    parts = _read_line(answer.line)
    if "error" in parts:
        error = _read_error(parts["error"])
        # A copy, since the line that it stands in is gone then.
        data = None if error.data == _NULL else Raw(bytes(error.data))
        return Outcome(error=ErrorValue(error.code, error.message, data))
    try:
        failed = _read_flag(_read_line(parts["result"]).get("isError", b"false"))
    except msgspec.DecodeError:
        failed = False
    return Outcome(result=Raw(bytes(parts["result"])), is_error=failed)


def _spelled(task: Task, result: Raw, revision: str) -> Raw | ErrorValue:
    """A kept result for hosts of a revision."""
    try:
        source = _read_kept(task.keep).revision
    except msgspec.MsgspecError:
        return result
    frame = read(result_line(0, _read_line(result)))
    line = (
        frame if isinstance(frame, Bad) else relay.answer(frame, 0, method=task.method, source=source, target=revision)
    )
    if isinstance(line, Bad):
        return ErrorValue(INTERNAL, line.reason)
    return Raw(bytes(_read_line(line)["result"]))
