"""Troth in the middleware of the SDK's low-level server (``mcp`` 2), on which ``MCPServer`` and FastMCP 4 stand too.

The middleware sees every message before the SDK validates it, and every result after the SDK shaped it for the era. So
it refuses by the declaration first, and the SDK's own checks come after. What handlers send goes through ``Session``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import mcp_types as types
from mcp.shared.exceptions import MCPError

from troth.bridge.errors import resource_not_found
from troth.gating import ELICITATION_URL
from troth.plugins.announcing import Audience, Change
from troth.plugins.honest import CURRENT, LISTS, Current, coded, declared_by, read, spelled
from troth.plugins.mcp_parked import comes_again
from troth.plugins.mcp_session import STATE, Session, SessionState, as_dict, connection_of, not_met
from troth.plugins.tasking import CALL, supporting
from troth.plugins.telemetry import note_list
from troth.register import Era, register

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcp.server.connection import Connection
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.subscriptions import SubscriptionBus

    from troth.bridge.errors import ErrorValue
    from troth.plugins.announcing import Announcer
    from troth.plugins.honest import Honest
    from troth.plugins.mcp_parked import Parking
    from troth.plugins.mcp_tasks import Tasks
    from troth.plugins.naming import Given

    Context = ServerRequestContext[Any, Any]

ABOUT_TASKS: Final = frozenset({"subscriptions/listen", "tools/call", "tools/list"})
"""Methods that are answered otherwise where tools may run as tasks."""

LISTEN_FAMILIES: Final[Mapping[str, str]] = {
    "toolsListChanged": "tools.listChanged",
    "promptsListChanged": "prompts.listChanged",
    "resourcesListChanged": "resources.listChanged",
}
"""Field of the filter of ``subscriptions/listen`` -> what must be declared for it."""


@dataclass
class Middleware:
    """The middleware of one server.

    Attributes:
        honest: The judgement.
        announcer: Who is told of changes.
        bus: What modern listeners hang on.
        server: The low-level server.
        given: Names that were given to ``install``.
        parking: Has calls wait for hosts that are asked by results.
        tasks: Runs tools that take long; None where the author serves tasks.
    """

    honest: Honest
    announcer: Announcer
    bus: SubscriptionBus
    server: Any
    given: Given
    parking: Parking
    tasks: Tasks | None = None

    def tell(self, change: Change) -> None:
        """Tells all hosts of a change, from any thread."""
        if change.uri is None:
            self.honest.source.stale(change.family)
        self.announcer.tell(change)

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """One message. See ``mcp.server.context.ServerMiddleware``."""
        connection = connection_of(ctx.session)
        if ctx.request_id is None:
            return await self._notified(ctx, connection, call_next)
        if ctx.method == "initialize":
            return await self._initialize(ctx, connection, call_next)
        asker = self._asker(ctx, connection)
        if asker is None:
            return await call_next(ctx)
        return await self._request(ctx, asker, connection, call_next)

    async def _request(
        self, ctx: Context, asker: Current, connection: Connection, call_next: CallNext
    ) -> HandlerResult:
        method = ctx.method
        refusal = self.honest.refused(asker, method, self._own)
        if refusal is not None:
            raise _error(refusal)
        state: SessionState | None = connection.state.get(STATE)
        session = Session(ctx.session, asker, state, method, self.bus)
        # The context is made for this message, and FastMCP has bound it already: it is changed, not copied.
        ctx.session = session
        need, decision = await self.honest.judged(asker, method, ctx.params, ctx)
        if decision is not None:
            raise not_met(asker, method, decision)
        if method == "subscriptions/listen":
            ctx = await self._filtered(ctx, asker)
        elif method == "resources/subscribe" and not await self.honest.source.exists(_uri(ctx), ctx):
            raise _error(resource_not_found(_uri(ctx), asker.revision))
        answer = direct = partial(self._answered, ctx, call_next)
        if asker.era is Era.MODERN and comes_again(method, ctx.params):
            # Whatever has become of what is called since, it is not run again.
            return await self.parking.again(ctx, session)
        if need is not None and self.parking.may_ask(asker, method, need.requirement):
            direct = partial(self.parking.begin, ctx, answer)
        if self.tasks is not None and method in ABOUT_TASKS and self.honest.runs_tasks:
            return await self._with_tasks(self.tasks, ctx, session, answer, direct)
        result = await direct(session)
        if state is not None:
            state.noted(method, ctx.params)
        return result

    async def _with_tasks(
        self,
        tasks: Tasks,
        ctx: Context,
        session: Session,
        answer: Callable[[Session], Awaitable[dict[str, Any]]],
        direct: Callable[[Session], Awaitable[dict[str, Any]]],
    ) -> HandlerResult:
        """A request that may be answered with a task, or speaks of tasks; what becomes none is answered directly."""
        if ctx.method == "subscriptions/listen":
            return await tasks.listen(ctx, session, partial(answer, session))
        begun = await tasks.begin(ctx, session, answer) if ctx.method == "tools/call" else None
        if begun is not None:
            return begun
        result = await direct(session)
        if ctx.method != "tools/list":
            return result
        declared = session.asker.built.has(CALL)
        names = [name for tool in result["tools"] if await self.honest.source.takes_long(name := tool["name"], ctx)]
        return supporting(result, names if declared else None)

    async def _answered(self, ctx: Context, call_next: CallNext, session: Session) -> dict[str, Any]:
        """What the framework answers, as the asker may have it."""
        method = ctx.method
        version = self.honest.source.version
        token = CURRENT.set(session)
        try:
            result = await call_next(ctx)
        except MCPError as error:
            asker = session.asker
            if error.code == types.URL_ELICITATION_REQUIRED and not asker.can(ELICITATION_URL):
                raise session.refusal("elicitation/create", ELICITATION_URL) from error
            code = coded(method, error.code, error.data, asker.revision)
            if code != error.code:
                raise MCPError(code, error.message, error.data) from error
            raise
        finally:
            CURRENT.reset(token)
        return await self._shaped(method, as_dict(result), session, ctx, version)

    async def _shaped(
        self, method: str, result: dict[str, Any], session: Session, ctx: Context, version: int
    ) -> dict[str, Any]:
        """A result as the asker may have it."""
        asker = session.asker
        if method == "server/discover":
            result["capabilities"] = asker.built.capabilities
        elif method in LISTS:
            seen = await self.honest.seen(asker, method, result, ctx, version)
            result = seen.result
            if self.given.unchecked:
                await self.given.check(self.honest.source, ctx)
            if seen.gated:
                note_list(asker, method, seen.shown, seen.hidden)
        elif result.get("resultType") == "input_required":
            asked = cast("dict[str, dict[str, Any]]", result.get("inputRequests") or {})
            for request in asked.values():
                session.check(str(request.get("method")), request.get("params"))
        elif session.swallowed(result):
            raise cast("MCPError", session.refused)
        return spelled(method, result, asker.revision)

    def _offered(self, ctx: Context) -> frozenset[str]:
        """What core tasks offer to a host."""
        return frozenset() if self.tasks is None or not self.honest.runs_tasks else self.tasks.offered(ctx)

    def _own(self, method: str) -> bool:
        """Whether the server has a handler for a method."""
        return self.server.get_request_handler(method) is not None

    def _asker(self, ctx: Context, connection: Connection) -> Current | None:
        """Who asks; None before the handshake, when the SDK refuses by itself."""
        state: SessionState | None = connection.state.get(STATE)
        if state is not None:
            return state.asker
        if not connection.initialized.is_set():
            return None
        revision = ctx.protocol_version
        if register().era(revision) is Era.LEGACY:
            # Stateless HTTP: no session, so nothing is known of the host and nothing can be pushed to it.
            return Current(revision, None, self.honest.declaration(revision, push=False), self.tell)
        return Current(
            revision,
            declared_by(ctx.params, revision),
            self.honest.declaration(revision, push=self.announcer.running),
            self.tell,
        )

    async def _initialize(self, ctx: Context, connection: Connection, call_next: CallNext) -> HandlerResult:
        result = as_dict(await call_next(ctx))
        revision = str(result.get("protocolVersion"))
        push = connection.has_standalone_channel and self.announcer.running
        said = cast("dict[str, object]", result.get("capabilities") or {})
        built = self.honest.declaration(revision, push=push, said=said, offered=self._offered(ctx))
        client = read((ctx.params or {}).get("capabilities"), revision)
        before: SessionState | None = connection.state.get(STATE)
        state = SessionState(Current(revision, client, built, self.tell), ctx.session)
        connection.state[STATE] = state
        if before is not None:
            state.audience, state.leave = before.audience, before.leave
            await self._upgraded(before, state, ctx)
        else:
            self._join(state, connection, ctx)
        result["capabilities"] = built.capabilities
        return spelled("initialize", result, revision)

    async def _upgraded(self, before: SessionState, after: SessionState, ctx: Context) -> None:
        """Tells a host that declared itself anew of the lists that look different to it now."""
        for family in await self.honest.changed(before.asker, after.asker, ctx):
            if after.audience is not None and after.asker.built.has(f"{family}.listChanged"):
                after.audience.mark(Change(family))

    async def _notified(self, ctx: Context, connection: Connection, call_next: CallNext) -> HandlerResult:
        state: SessionState | None = connection.state.get(STATE)
        if state is None:
            return await call_next(ctx)
        ctx.session = session = Session(ctx.session, state.asker, state, ctx.method, self.bus)
        token = CURRENT.set(session)
        try:
            result = await call_next(ctx)
        finally:
            CURRENT.reset(token)
        if ctx.method == "notifications/initialized" and state.audience is not None:
            state.audience.ready.set()
        return result

    def _join(self, state: SessionState, connection: Connection, ctx: Context) -> None:
        """From here on changes are noted for the session; they are sent when the handshake is over."""
        if not connection.has_standalone_channel:
            return
        audience = Audience(state.tell)
        leave = self.announcer.join(ctx.lifespan_context, audience)
        if leave is not None:
            state.audience, state.leave = audience, leave
            connection.exit_stack.callback(leave)

    async def _filtered(self, ctx: Context, asker: Current) -> Context:
        """A listen without what is not declared, and without resources that the asker may not see."""
        params = dict(ctx.params or {})
        wanted = params.get("notifications")
        if not isinstance(wanted, dict):
            return ctx
        kept = {
            key: value
            for key, value in cast("dict[str, Any]", wanted).items()
            if key not in LISTEN_FAMILIES or asker.built.has(LISTEN_FAMILIES[key])
        }
        uris = kept.get("resourceSubscriptions")
        if isinstance(uris, list):
            kept["resourceSubscriptions"] = [
                uri
                for uri in cast("list[object]", uris)
                if not isinstance(uri, str)
                or (
                    asker.built.has("resources.subscribe")
                    and await self.honest.source.exists(uri, ctx)
                    and (await self.honest.judged(asker, "resources/read", {"uri": uri}, ctx))[1] is None
                )
            ]
        return replace(ctx, params={**params, "notifications": kept})


def _uri(ctx: Context) -> str:
    return str((ctx.params or {}).get("uri", ""))


def _error(value: ErrorValue) -> MCPError:
    return MCPError(value.code, value.message, value.data)
