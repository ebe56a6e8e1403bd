"""Calls that ask their host by requests in the revision that has none to hosts (2026-07-28), on the SDK (``mcp`` 2).

There a question is part of a result: ``input_required``, and the host calls again with the answers. A handler that asks
in the course of its work (``create_message``, ``elicit``, ``list_roots``) cannot answer so and go on. So its work is
done beside the request: what it asks answers the request, the work waits, and the call that comes again with the
answers gets what the work comes to. It never runs twice; a call that comes again to another process, or too late, is
told that it was lost.

Source: 2026-07-28 basic/patterns/mrtr.
"""

from __future__ import annotations

import json
import secrets
from contextlib import AsyncExitStack
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from hashlib import blake2b
from itertools import count
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
import anyio.lowlevel
import mcp_types as types
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.transport_context import TransportContext

from troth.bridge.questions import PARAMS
from troth.capabilities.values import is_object
from troth.plugins.mcp_session import connection_of, principal_of
from troth.register import Era

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from mcp.server.context import ServerRequestContext
    from mcp.shared.dispatcher import CallOptions

    from troth.gating import Requirement
    from troth.plugins.announcing import Announcer
    from troth.plugins.honest import Current
    from troth.plugins.mcp_session import Session

    Context = ServerRequestContext[Any, Any]
    Answer = Callable[[Session], Awaitable[dict[str, Any]]]
    Owner = tuple[tuple[str | None, ...] | None, object]
    """The principal, None for anybody, and the run of the server."""

METHODS: Final = frozenset({"prompts/get", "resources/read", "tools/call"})
"""Requests whose results may be questions."""
ASKABLE: Final = frozenset({"elicitation", "roots", "sampling"})
"""Capabilities of hosts that answer questions."""
APART: Final = frozenset({"_meta", "inputResponses", "requestState"})
"""Params that differ when a call comes again."""

PREFIX: Final = "troth."
"""What our request states begin with; those of the framework do not."""
PATIENCE: Final = 600.0
"""Seconds that a call waits for its host to come again: people think, and some never come."""
MOST: Final = 1000
"""Calls of a server that may wait so at once; each holds its handler."""
MINE: Final = 250
"""Those of one principal, where hosts are authorized: it leaves room for others."""
ROUNDS: Final = 64
"""Most times that one call answers with questions."""

TRANSPORT: Final = TransportContext(kind="call", can_send_request=True)
ANOTHER: Final = "requestState: it belongs to another call, whose method or params are others"
ENDED: Final = "The call has ended; its host can be asked nothing any more"
LOST: Final = "The call that asked is not here any more; it was lost, and may have had effects"


@lru_cache(maxsize=1024)
def askable(requirement: Requirement) -> bool:
    """Whether what needs this may ask its host something."""
    return any(path.partition(".")[0] in ASKABLE for clause in requirement.clauses for path in clause)


def comes_again(method: str, params: Mapping[str, Any] | None) -> bool:
    """Whether a request says that it is a call of ours which comes again."""
    state = (params or {}).get("requestState")
    return method in METHODS and isinstance(state, str) and state.startswith(PREFIX)


@dataclass(eq=False)
class Question:
    """What a handler waits for; the answer is None until there is one, and for good where the call ends before."""

    asked: Mapping[str, Any]
    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: dict[str, Any] | None = None


@dataclass(eq=False)
class Parked:
    """One call, from its request to its result; also what its handler has in place of the channel of a request.

    Attributes:
        owner: Whose call it is.
        revision: The revision in force.
        method: The method of the call.
        params: What is called, with which arguments.
        session: The session of the handler.
        channel: The channel of the request that waits now; None while none does.
        token: The token for progress of that request.
        pending: Questions that are not answered.
        news: Set when there is a question or an end.
        taken: Set when a request waits again, or has taken the end.
        state: What the host brings when it calls again; empty while a request waits.
    """

    owner: Owner
    revision: str
    method: str
    params: Mapping[str, Any]
    channel: Any
    token: str | int | None
    session: Session | None = None
    result: dict[str, Any] | None = None
    failure: Exception | None = None
    pending: dict[str, Question] = field(default_factory=dict[str, Question])
    news: anyio.Event = field(default_factory=anyio.Event)
    taken: anyio.Event | None = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    numbers: Iterator[int] = field(default_factory=count)
    rounds: int = 0
    state: str = ""
    transport: TransportContext = TRANSPORT
    can_send_request: bool = True
    message_metadata: Any = None
    request_id: types.RequestId | None = None

    @cached_property
    def cancel_requested(self) -> anyio.Event:
        """Never set: a call that is withdrawn is cancelled."""
        return anyio.Event()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Asks the host: see ``mcp.shared.dispatcher.DispatchContext``.

        Raises:
            NoBackChannelError: The revision has no such question.
            MCPError: The time in ``opts`` is over, or the call has ended, from which the task that asks was let go.
        """
        if (method, self.revision) not in PARAMS:
            raise NoBackChannelError(method)
        if self.ended:
            raise MCPError(types.CONNECTION_CLOSED, ENDED)
        key = f"{method.partition('/')[0]}-{next(self.numbers)}"
        question = Question({"method": method, **_spelled(method, params, self.revision)})
        self.pending[key] = question
        self.news.set()
        try:
            with anyio.move_on_after((opts or {}).get("timeout")):
                await question.answered.wait()
                if question.answer is None:
                    raise MCPError(types.CONNECTION_CLOSED, ENDED)
                return question.answer
        finally:
            self.pending.pop(key, None)
        raise MCPError(types.REQUEST_TIMEOUT, f"{method} was not answered in time")

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Tells the host something on the request that waits, if one does."""
        if self.channel is None:
            return
        given = dict(params or {})
        if method == "notifications/progress":
            if self.token is None:
                return
            given["progressToken"] = self.token
        await self.channel.notify(method, given, opts)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tells the host how far the work is."""
        said = {"progress": progress, "total": total, "message": message}
        await self.notify("notifications/progress", {key: value for key, value in said.items() if value is not None})

    def answers(self, given: Mapping[str, object]) -> None:
        """Takes the answers of the host; what was not asked is ignored, and what is missing is asked again."""
        for key in tuple(self.pending):
            answer = given.get(key)
            if is_object(answer):
                question = self.pending.pop(key)
                question.answer = dict(cast("dict[str, Any]", answer))
                question.answered.set()
        if self.pending:
            self.news.set()

    @property
    def ended(self) -> bool:
        """Whether the work is done."""
        return self.result is not None or self.failure is not None


class Parking:
    """The calls of one server that may ask.

    Args:
        announcer: In whose runs the work is done.
        server: The low-level server.
    """

    def __init__(self, announcer: Announcer, server: Any) -> None:
        self._announcer = announcer
        self._server = server
        self._calls: dict[str, Parked] = {}

    def may_ask(self, asker: Current, method: str, requirement: Requirement) -> bool:
        """Whether a call is to be done so: by what it needs it may ask, and the revision has no other way."""
        return asker.era is Era.MODERN and method in METHODS and self._announcer.running and askable(requirement)

    async def begin(self, ctx: Context, answer: Answer, session: Session) -> dict[str, Any]:
        """Answers a call with its result, or with what it asks.

        Args:
            ctx: The call.
            answer: Has the call answered, with the session that is given to it.
            session: The session of the call.

        Raises:
            Exception: Whatever the call raises.
        """
        channel = vars(session)["_request_outbound"]
        call = Parked(self._owner(ctx), session.asker.revision, ctx.method, ctx.params or {}, channel, _token(ctx))
        call.request_id = ctx.request_id
        if not self._announcer.spawn(ctx.lifespan_context, partial(self._work, call, ctx, session, answer)):
            return await answer(session)
        return await self._next(call)

    async def again(self, ctx: Context, session: Session) -> dict[str, Any]:
        """Answers a call that comes again with answers: see ``comes_again``.

        Raises:
            MCPError: It is not here any more, or comes with other arguments; or whatever the call raises.
        """
        params = ctx.params or {}
        state = str(params.get("requestState"))
        call = self._calls.get(state)
        if call is None or call.owner != self._owner(ctx):
            raise MCPError(types.INTERNAL_ERROR, LOST)
        if call.method != ctx.method or digest(call.params) != digest(params):
            raise MCPError(types.INVALID_PARAMS, ANOTHER)
        given: object = params.get("inputResponses", {})
        if not is_object(given):
            raise MCPError(types.INVALID_PARAMS, "inputResponses: an object belongs here, with an answer by each key")
        del self._calls[state]
        call.state, call.scope.deadline = "", float("inf")
        call.channel, call.token = vars(session)["_request_outbound"], _token(ctx)
        if call.session is not None:
            call.session.renew(session)
        if call.taken is not None:
            call.taken.set()
        call.answers(cast("Mapping[str, object]", given))
        return await self._next(call)

    def _owner(self, ctx: Context) -> Owner:
        return principal_of(ctx), self._announcer.run_of(ctx.lifespan_context)

    async def _next(self, call: Parked) -> dict[str, Any]:
        """The result of a call, or what it asks before; it ends with the request that waits for it."""
        try:
            while not (call.pending or call.ended):
                await call.news.wait()
                if not call.ended:
                    call.news = anyio.Event()
                    # Several questions of one moment are one round.
                    await anyio.lowlevel.checkpoint()
        except BaseException:
            call.scope.cancel()
            raise
        if not call.ended:
            return self._park(call)
        if call.failure is not None:
            raise call.failure
        return call.result or {}

    def _park(self, call: Parked) -> dict[str, Any]:
        """What a call asks, as its result; it waits from here on."""
        call.rounds += 1
        if why := self._full(call):
            call.scope.cancel()
            raise MCPError(types.INTERNAL_ERROR, f"The call was given up: {why}, which is the most")
        call.state = f"{PREFIX}{secrets.token_urlsafe(32)}"
        self._calls[call.state] = call
        call.channel = call.token = None
        call.taken = anyio.Event()
        call.scope.deadline = anyio.current_time() + PATIENCE
        return {
            "resultType": "input_required",
            "inputRequests": {key: dict(question.asked) for key, question in call.pending.items()},
            "requestState": call.state,
            "_meta": {types.SERVER_INFO_META_KEY: self._server.server_info_stamp},
        }

    def _full(self, call: Parked) -> str:
        """Which bound keeps a call from asking; empty for none."""
        if call.rounds > ROUNDS:
            return f"it asked {ROUNDS} times"
        if len(self._calls) >= MOST:
            return f"{MOST} calls wait for their hosts"
        principal = call.owner[0]
        if principal is not None and sum(other.owner[0] == principal for other in self._calls.values()) >= MINE:
            return f"{MINE} calls of one principal wait"
        return ""

    async def _work(self, call: Parked, ctx: Context, before: Session, answer: Answer) -> None:
        """A call from its begin until its end was taken."""
        try:
            async with AsyncExitStack() as stack:
                connection = copy(connection_of(before))
                connection.outbound, connection.exit_stack = call, stack
                call.session = ctx.session = before.moved(call, connection)
                with call.scope:
                    try:
                        call.result = await answer(call.session)
                    except Exception as error:
                        call.failure = error
                    call.news.set()
                    if call.state and call.taken is not None:
                        await call.taken.wait()
        finally:
            if not call.ended:
                call.failure = MCPError(types.INTERNAL_ERROR, LOST)
            call.news.set()
            for question in call.pending.values():
                question.answered.set()
            self._calls.pop(call.state, None)


def _spelled(method: str, params: Mapping[str, Any] | None, revision: str) -> dict[str, Any]:
    """The params of a question without those that the revision does not have; nothing where there are none."""
    kept = PARAMS.get((method, revision), frozenset())
    found = {name: value for name, value in (params or {}).items() if name in kept}
    return {"params": found} if found else {}


def digest(params: Mapping[str, Any] | None) -> bytes:
    """What is called, with which arguments.

    Raises:
        MCPError: They nest too deep to be written down.
    """
    stable = {key: value for key, value in (params or {}).items() if key not in APART}
    try:
        written = json.dumps(stable, sort_keys=True)
    except RecursionError:
        raise MCPError(types.INVALID_PARAMS, "params: they nest too deep") from None
    return blake2b(written.encode(), digest_size=16).digest()


def _token(ctx: Context) -> str | int | None:
    return (ctx.meta or {}).get("progress_token")
