"""``troth.install`` on the SDK (``mcp`` 2): what is served where the SDK does not, and where the middleware stands."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, cast

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

from troth.plugins.announcing import Announcer, Change
from troth.plugins.honest import Honest
from troth.plugins.mcp_middleware import Middleware
from troth.plugins.mcp_parked import Parking
from troth.plugins.mcp_session import change_of, event
from troth.plugins.mcp_source import LowLevelSource, McpServerSource
from troth.plugins.mcp_tasks import Tasks
from troth.plugins.naming import Given
from troth.plugins.tasking import METHODS, Tasking

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from mcp.server.subscriptions import ServerEvent, SubscriptionBus

    from troth.plugins.honest import Source
    from troth.plugins.install import Options

    LowLevel = Server[Any]


def install(server: object, options: Options) -> Middleware:
    """Installs Troth in an ``MCPServer`` or a low-level ``Server``.

    Raises:
        TypeError: ``server`` is neither.
    """
    if isinstance(server, MCPServer):
        own = cast("MCPServer[Any]", server)
        low_level = cast("LowLevel", vars(own)["_lowlevel_server"])
        announcer, bus = prepare(low_level, cast("SubscriptionBus", vars(own)["_subscriptions"]))
        return insert(low_level, McpServerSource(own, options, announcer.tell), options, announcer, bus)
    if isinstance(server, Server):
        own_server = cast("LowLevel", server)
        listens = own_server.get_request_handler("subscriptions/listen") is not None
        announcer, bus = prepare(own_server)
        return insert(own_server, LowLevelSource(own_server, options, listens=listens), options, announcer, bus)
    raise TypeError(f"{type(server).__module__}.{type(server).__qualname__} is neither MCPServer nor Server of mcp 2")


def prepare(server: LowLevel, given: SubscriptionBus | None = None) -> tuple[Announcer, SubscriptionBus]:
    """Serves what a declaration can promise where the framework does not, and ties changes to the server's life.

    Raises:
        ValueError: Troth is in the server already.
    """
    if any(isinstance(one, Middleware) for one in server.middleware):
        raise ValueError(ALREADY)
    bus: SubscriptionBus = given or InMemorySubscriptionBus()

    async def publish(change: Change) -> None:
        await bus.publish(event(change))

    announcer = Announcer(publish)
    lifespan = server.lifespan

    @asynccontextmanager
    async def living(app: LowLevel) -> AsyncGenerator[Any]:
        async with lifespan(app) as state, announcer.lifespan(state) as heard:

            def published(said: ServerEvent) -> None:
                heard(change_of(said))

            unsubscribe = bus.subscribe(published)
            try:
                yield state
            finally:
                unsubscribe()

    server.lifespan = living
    for method, (params, handler) in SERVED.items():
        if server.get_request_handler(method) is None:
            server.add_request_handler(method, params, handler)
    if server.get_request_handler("subscriptions/listen") is None:
        server.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, ListenHandler(bus))
    return announcer, bus


async def _accept(_ctx: Any, _params: Any) -> types.EmptyResult:
    """The middleware takes note of levels and subscriptions; see ``SessionState.noted``."""
    return types.EmptyResult()


async def _no_templates(_ctx: Any, _params: Any) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=[])


SERVED: Final[Mapping[str, tuple[Any, Any]]] = {
    "logging/setLevel": (types.SetLevelRequestParams, _accept),
    "resources/subscribe": (types.SubscribeRequestParams, _accept),
    "resources/templates/list": (types.PaginatedRequestParams, _no_templates),
    "resources/unsubscribe": (types.UnsubscribeRequestParams, _accept),
}
"""Methods that are served where the framework does not."""


def insert(
    server: LowLevel, source: Source, options: Options, announcer: Announcer, bus: SubscriptionBus
) -> Middleware:
    """Puts the middleware behind those that come with the framework, and before those of the author."""
    tasks: Tasks | None = None
    if all(server.get_request_handler(method) is None for method in METHODS):
        tasks = Tasks(Tasking(options.tasks), announcer, source, server)
        tasks.serve()
    honest = Honest(source, options.needs.settings, options.base, tasks=tasks is not None)
    given = Given(options.needs, options.tasks.names)
    middleware = Middleware(honest, announcer, bus, server, given, Parking(announcer, server), tasks)
    ours = [place for place, one in enumerate(server.middleware) if type(one).__module__ in FIRST]
    server.middleware.insert(ours[-1] + 1 if ours else 0, middleware)
    return middleware


ALREADY: Final = "troth is installed in this server already; install it once"
FIRST: Final = ("fastmcp.server.low_level", "mcp.server._otel")
"""Modules of middleware that stands before ours, so that refusals are in its traces."""
