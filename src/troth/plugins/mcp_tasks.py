"""Tools that take long on the SDK (``mcp`` 2): calls that become tasks, the methods of tasks, and who hears of them.

A task works on when its request has been answered. So its handler gets a session of its own, whose channel leads to
the task: what it asks is kept with the task until the host answers it, in either era, and its progress is what the task
says of itself.
"""

from __future__ import annotations

import logging
import secrets
from contextlib import AsyncExitStack
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakKeyDictionary, WeakValueDictionary

import anyio
import mcp_types as types
import msgspec
from mcp.shared.exceptions import MCPError
from mcp.shared.transport_context import TransportContext
from msgspec import Raw
from pydantic import ValidationError

from troth.bridge.errors import BAD_PARAMS, ErrorValue
from troth.plugins.announcing import TASKS, Audience, Change
from troth.plugins.honest import current
from troth.plugins.mcp_session import Session, SessionState, connection_of, principal_of
from troth.plugins.tasking import CALL, KEY, METHODS, offered
from troth.register import Era
from troth.tasks import Asked, Outcome, Task, wish, work
from troth.tasks import core as core_face
from troth.tasks import extension as extension_face
from troth.tasks.face import EXTENSION, members

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcp.server.context import ServerRequestContext
    from mcp.shared.dispatcher import CallOptions

    from troth.plugins.announcing import Announcer
    from troth.plugins.honest import Source
    from troth.plugins.tasking import Tasking
    from troth.tasks import Job, Requester

    Context = ServerRequestContext[Any, Any]
    Answer = Callable[[Session], Awaitable[dict[str, Any]]]

logger = logging.getLogger(__name__)

ROUNDS: Final = 64
"""Most times that a tool of one task answers with questions."""
HEADER_MISMATCH: Final = -32020
SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
OFFERED: Final = f'extensions["{EXTENSION}"]'
"""Path of what is declared where a call may become a task of the extension."""
OURS: Final = frozenset({"notifications/message", "notifications/progress"})
"""Notifications that belong to the task whose tool sends them."""


@dataclass
class Channel:
    """What the tool of a task has in place of the channel of a request. See ``mcp.shared.dispatcher.DispatchContext``.

    Attributes:
        job: The work.
        outbound: The standalone channel of the host; None where the era has none.
        token: Token for progress that the request gave.
        request_id: Id of the request, which is answered already.
    """

    job: Job
    outbound: Any
    token: str | int | None
    request_id: types.RequestId | None
    transport: TransportContext = field(default_factory=lambda: TransportContext(kind="task", can_send_request=True))
    can_send_request: bool = True
    message_metadata: Any = None
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Asks the host through the task, whose time to live bounds the wait.

        Raises:
            MCPError: The host refused it, the task ended, or the time in ``opts`` is over.
        """
        late = ErrorValue(types.REQUEST_TIMEOUT, f"{method} was not answered in time")
        found: Mapping[str, Outcome] | ErrorValue = late
        with anyio.move_on_after((opts or {}).get("timeout")):
            found = await self.job.ask({method: Asked(method, dict(params or {}))})
        if isinstance(found, ErrorValue):
            raise error_of(found)
        return result_of(found[method])

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Tells the host, where the era lets a task do that; what it says of its progress, the task says too."""
        given = dict(params or {})
        words = given.get("message") if method == "notifications/progress" else None
        if isinstance(words, str):
            await self.job.say(words)
        if self.outbound is None:
            logger.debug("%s was not sent: nothing but the state of a task is told in this revision", method)
            return
        if method in OURS:
            given = core_face.with_related(given, self.job.task.id)
            given = cast("dict[str, Any]", plain(given))
        await self.outbound.notify(method, given, opts)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tells the host how far the work is."""
        said = {"progress": progress, "total": total, "message": message}
        params = {key: value for key, value in said.items() if value is not None}
        if self.token is not None:
            await self.notify("notifications/progress", {"progressToken": self.token, **params})
        elif message:
            await self.job.say(message)


class Tasks:
    """The tasks of one server.

    Args:
        tasking: Keeps them.
        announcer: In whose runs the work is done.
        source: What the plug-in knows of the server.
        server: The low-level server.
    """

    def __init__(self, tasking: Tasking, announcer: Announcer, source: Source, server: Any) -> None:
        self._server = server
        self._tasking = tasking
        self._announcer = announcer
        self._source = source
        self._sessions: WeakValueDictionary[str, SessionState] = WeakValueDictionary()
        self._begun: set[str] = set()
        self._pipes: WeakKeyDictionary[object, str] = WeakKeyDictionary()
        tasking.engine.listen(self._changed)

    def serve(self) -> None:
        """Serves the methods of both faces; what a host may use of them its declaration says."""
        for method in METHODS:
            self._server.add_request_handler(method, types.RequestParams, self._handle)

    def offered(self, ctx: Context) -> frozenset[str]:
        """What core tasks offer to whom a request is from."""
        return offered(self.requester(ctx))

    def requester(self, ctx: Context) -> Requester:
        """Whose tasks a request is about: those whom it is authorized for, those of its pipe, or those of anybody."""
        principal = principal_of(ctx)
        connection = connection_of(ctx.session)
        if ctx.request is not None or not connection.has_standalone_channel:
            return self._tasking.requester(principal, None)
        return self._tasking.requester(principal, self._pipes.setdefault(connection.outbound, secrets.token_hex()))

    async def begin(self, ctx: Context, session: Session, answer: Answer) -> dict[str, Any] | None:
        """Makes a task of a call that is to become one.

        Args:
            ctx: The call.
            session: Its session.
            answer: Has the call answered, with the session that is given to it.

        Returns:
            The answer, that there is a task; None if the call is to be answered at once.

        Raises:
            MCPError: The call asks for a task, and its tool runs as none.
        """
        asker, state = session.asker, session.state
        core = asker.built.has(CALL)
        if not core and not (asker.built.has(OFFERED) and asker.can(KEY)):
            return None
        params = dict(ctx.params or {})
        long = await self._source.takes_long(str(params.get("name", "")), ctx)
        wished = wish(params, "optional" if long else None) if core else None
        if isinstance(wished, ErrorValue):
            raise error_of(wished)
        if wished is None and (core or not long):
            return None
        await self._ready(ctx)
        requester = self.requester(ctx)
        ttl = None if wished is None else wished.ttl
        task = await self._tasking.engine.create(requester, ctx.method, ttl=ttl)
        if not isinstance(task, Task):
            raise error_of(task)
        if core and state is not None:
            self._sessions[task.id] = state
            state.status = partial(self._status, requester, state)
        params.pop("task", None)
        ctx.params = params
        outbound = connection_of(session).outbound if core else None
        do = partial(self._do, ctx, session, outbound, answer)
        if not self._announcer.spawn(ctx.lifespan_context, partial(work, self._tasking.engine, task, do)):
            await self._tasking.engine.cancel(requester, task.id)
            raise MCPError(types.INTERNAL_ERROR, "The server is about to stop; it begins no task any more")
        if core:
            return dict(core_face.created(task))
        stamp = {types.SERVER_INFO_META_KEY: self._server.server_info_stamp}
        return {**extension_face.created(task), "_meta": stamp}

    async def listen(self, ctx: Context, session: Session, answer: Callable[[], Awaitable[Any]]) -> Any:
        """Answers a listen; the tasks that it names are told of on its stream."""
        asker = session.asker
        wanted = cast("dict[str, Any]", (ctx.params or {}).get("notifications") or {}).get(extension_face.FILTER)
        if wanted is None or not asker.built.has(OFFERED):
            return await answer()
        if not asker.can(KEY):
            raise error_of(extension_face.MISSING)
        await self._ready(ctx)
        requester = self.requester(ctx)
        agreed = await self._tasking.extension.agreed(requester, wanted)
        if isinstance(agreed, ErrorValue):
            raise error_of(agreed)
        names = [task.id for task in agreed]
        audience = Audience(partial(self._news, requester, session, ctx.request_id))
        # The state of each is told after the acknowledgement, so that no change before it is missed.
        for name in names:
            audience.mark(Change(TASKS, name))
        session.agreed = {extension_face.FILTER: names}
        session.acknowledged = audience.ready.set

        def changed(task: Task) -> None:
            if task.id in names:
                audience.mark(Change(TASKS, task.id))

        stop = self._tasking.engine.listen(changed)
        result: Any = None
        failure: Exception | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(audience.run)
            try:
                result = await answer()
            except Exception as error:
                # Out of the group it goes as it is.
                failure = error
            finally:
                stop()
                group.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return result

    async def _news(self, requester: Requester, session: Session, stream: object, change: Change) -> None:
        task = await self._tasking.engine.get(requester, change.uri)
        if isinstance(task, Task):
            method, params = self._tasking.extension.changed(task)
            marked = {**params, "_meta": {SUBSCRIPTION: stream}}
            await vars(session)["_request_outbound"].notify(method, plain(marked))

    async def _handle(self, ctx: Context, _params: types.RequestParams) -> dict[str, Any]:
        """A request about tasks, which the declaration admits."""
        asker = current()
        params = ctx.params or {}
        modern = asker.era is Era.MODERN
        if modern and not asker.can(KEY):
            raise error_of(extension_face.MISSING)
        named = getattr(ctx.request, "headers", {}).get("mcp-name") if modern else None
        if named is not None and named != params.get("taskId"):
            raise MCPError(HEADER_MISMATCH, "Mcp-Name: the header and params.taskId differ")
        await self._ready(ctx)
        requester = self.requester(ctx)
        if ctx.method == "tasks/result":
            answer = await self._tasking.core.result(requester, params, partial(self._ask, ctx.session))
        else:
            face = self._tasking.extension if modern else self._tasking.core
            answer = await face.methods[ctx.method](requester, params)
        if isinstance(answer, ErrorValue):
            raise error_of(answer)
        return cast("dict[str, Any]", plain(answer))

    async def _ask(self, session: Any, task: Task, _key: str, question: Raw) -> Outcome:
        """Sends a question of a core task on the stream of ``tasks/result``."""
        asked = cast("dict[str, Any]", msgspec.json.decode(question))
        outbound = cast("Any", vars(session)["_request_outbound"])
        try:
            bound: CallOptions = {"timeout": task.ttl / 1000}
            result = await outbound.send_raw_request(asked["method"], asked["params"], bound)
        except MCPError as error:
            return Outcome(error=ErrorValue(error.code, error.message, error.data))
        return Outcome(result=Raw(msgspec.json.encode(result)))

    async def _do(self, ctx: Context, before: Session, outbound: Any, answer: Answer, job: Job) -> Outcome:
        """The work of a task: the call, again after each round of questions."""
        token = (ctx.meta or {}).get("progress_token")
        channel = Channel(job, outbound, token, ctx.request_id)
        async with AsyncExitStack() as stack:
            connection = copy(connection_of(before))
            connection.outbound, connection.exit_stack = channel, stack
            for _ in range(ROUNDS):
                session = before.moved(channel, connection)
                ctx.session = session
                try:
                    result = await answer(session)
                    if result.get("resultType") != "input_required":
                        return Outcome(result=Raw(msgspec.json.encode(result)), is_error=result.get("isError") is True)
                    ctx.params = {**(ctx.params or {}), **await self._asked(job, result)}
                except MCPError as error:
                    return Outcome(error=ErrorValue(error.code, error.message, error.data))
                except ValidationError:
                    return Outcome(error=ErrorValue(BAD_PARAMS, "Invalid request parameters"))
        return Outcome(error=ErrorValue(types.INTERNAL_ERROR, f"The tool asked in more than {ROUNDS} rounds"))

    async def _asked(self, job: Job, result: Mapping[str, Any]) -> dict[str, Any]:
        """What the next round of a call has beside its arguments."""
        questions = cast("dict[str, dict[str, Any]]", result.get("inputRequests") or {})
        asked = {key: Asked(str(one["method"]), one.get("params") or {}) for key, one in questions.items()}
        if not asked:
            await anyio.sleep(job.task.poll / 1000)
        found = await job.ask(asked)
        if isinstance(found, ErrorValue):
            raise error_of(found)
        following: dict[str, Any] = {"inputResponses": {key: result_of(answer) for key, answer in found.items()}}
        return following | ({"requestState": result["requestState"]} if "requestState" in result else {})

    async def _ready(self, ctx: Context) -> None:
        """Looks after time, and after what an earlier process left, once in each run of the server."""
        run = self._announcer.run_of(ctx.lifespan_context)
        if run in self._begun:
            return
        self._begun.add(run)
        if self._tasking.durable:
            await self._tasking.engine.recover()
        self._announcer.spawn(ctx.lifespan_context, self._tasking.engine.keep_time)

    def _changed(self, task: Task) -> None:
        state = self._sessions.get(task.id)
        if state is not None and state.audience is not None:
            state.audience.mark(Change(TASKS, task.id))

    async def _status(self, requester: Requester, state: SessionState, task_id: str) -> None:
        task = await self._tasking.engine.get(requester, task_id)
        if isinstance(task, Task):
            method, params = core_face.status(task)
            await connection_of(state.session).outbound.notify(method, params)


def plain(value: object) -> object:
    """A value of JSON without `Raw` in it, for the SDK to write."""
    return msgspec.json.decode(msgspec.json.encode(value))


def result_of(outcome: Outcome) -> dict[str, Any]:
    """The answer to a question.

    Raises:
        MCPError: The host refused it.
    """
    if outcome.error is not None:
        raise error_of(outcome.error)
    return cast("dict[str, Any]", plain(members(outcome.result) or {}))


def error_of(value: ErrorValue) -> MCPError:
    """A refusal as the SDK raises it."""
    return MCPError(value.code, value.message, value.data)
