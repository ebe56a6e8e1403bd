"""What Troth knows of the SDK's servers (``mcp`` 2) that it is installed in: ``MCPServer`` and the low-level ``Server``.

An ``MCPServer`` keeps what is registered in dicts, which are watched, so needs are read once per change. A low-level
server keeps its lists inside its handlers; there, needs stand in ``_meta`` of what it lists, and in the requirements
that were given to ``install``.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

import mcp_types as types
from mcp.server.mcpserver import MCPServer
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

from troth.capabilities.facts import Facts
from troth.gating import Need, Needs, Primitive, with_need
from troth.plugins.announcing import Announcer, Change
from troth.plugins.honest import Honest
from troth.plugins.mcp_middleware import Middleware
from troth.plugins.mcp_sdk import facts as facts_of
from troth.plugins.mcp_session import change_of, event
from troth.plugins.watching import watch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping

    from mcp.server.lowlevel import Server

    from troth.gating.decide import PrimitiveKind
    from troth.plugins.install import Options

    LowLevel = Server[Any]

KEPT: Final[Mapping[PrimitiveKind, tuple[str, str, str]]] = {
    "tools": ("_tool_manager", "_tools", "tools"),
    "prompts": ("_prompt_manager", "_prompts", "prompts"),
    "resources": ("_resource_manager", "_resources", "resources"),
    "templates": ("_resource_manager", "_templates", "resources"),
}
"""Kind -> where an ``MCPServer`` keeps it, and its family."""


class McpServerSource:
    """An ``MCPServer``.

    Args:
        server: The server.
        needs: What its primitives need.
        changed: Told of a family when something of it is registered or removed.
    """

    def __init__(self, server: MCPServer[Any], needs: Needs, changed: Any) -> None:
        self._server = server
        self._needs = needs
        self._found: dict[PrimitiveKind, dict[str, Need]] = {}
        self.version = 0
        self._announced: set[str] = {family for _, _, family in KEPT.values()}
        for kind, (manager, attribute, family) in KEPT.items():
            if not watch(vars(server).get(manager), attribute, lambda k=kind, f=family: self._told(k, f, changed)):
                self._announced.discard(family)

    def facts(self, said: Mapping[str, object] | None, revision: str) -> Facts:
        """See ``Source``. What the SDK would say of an ``MCPServer`` is no more than its handlers."""
        experimental = cast("dict[str, Mapping[str, object]]", (said or {}).get("experimental") or {})
        found = facts_of(self._server)
        return replace(found, announces=frozenset(self._announced), experimental={**found.experimental, **experimental})

    def gated(self, kind: PrimitiveKind) -> bool:
        """See ``Source``."""
        return bool(self._of(kind))

    def names(self, kind: PrimitiveKind) -> Collection[str]:
        """See ``Source``."""
        return self._of(kind)

    async def need(self, kind: PrimitiveKind, name: str, context: object) -> Need | None:
        """See ``Source``."""
        needs = self._of(kind)
        if kind != "resources" or name in self._kept("resources"):
            return needs.get(name)
        templates = self._of("templates")
        if not templates:
            return None
        for template in self._kept("templates").values():
            if _matches(template, name):
                return templates.get(template.uri_template)
        return None

    def _told(self, kind: PrimitiveKind, family: str, changed: Any) -> None:
        self._found.pop(kind, None)
        self.version += 1
        changed(Change(family))

    def _kept(self, kind: PrimitiveKind) -> dict[str, Any]:
        manager, attribute, _ = KEPT[kind]
        return getattr(vars(self._server)[manager], attribute)

    def _of(self, kind: PrimitiveKind) -> dict[str, Need]:
        """What the primitives of a kind need, read once after each change."""
        found = self._found.get(kind)
        if found is None:
            found = {}
            for name, item in self._kept(kind).items():
                need = self._needs.of(Primitive(kind, name), item, item.meta)
                if need is not None:
                    found[name] = need
                    if self._needs.settings.meta:
                        item.meta = with_need(item.meta, need)
            self._found[kind] = found
        return found


def _matches(template: Any, uri: str) -> bool:
    try:
        return template.matches(uri) is not None
    except Exception:
        # The SDK refuses such a URI by itself, with its own words.
        return False


def install(server: object, options: Options) -> Middleware:
    """Installs Troth in an ``MCPServer`` or a low-level ``Server``.

    Raises:
        TypeError: ``server`` is neither.
    """
    if isinstance(server, MCPServer):
        own = cast("MCPServer[Any]", server)
        low_level = cast("LowLevel", vars(own)["_lowlevel_server"])
        announcer, bus = prepare(low_level, cast("Any", vars(own)["_subscriptions"]))
        source = McpServerSource(own, options.needs, announcer.tell)
        return insert(low_level, Honest(source, options.needs.settings, options.base), announcer, bus)
    raise TypeError(f"{type(server).__qualname__}")


def prepare(server: LowLevel, bus: Any = None) -> tuple[Announcer, Any]:
    """Serves what a declaration can promise where the framework does not, and ties changes to the server's life."""
    bus = bus or InMemorySubscriptionBus()

    async def publish(change: Change) -> None:
        await bus.publish(event(change))

    announcer = Announcer(publish)
    lifespan = server.lifespan

    @asynccontextmanager
    async def living(app: LowLevel) -> AsyncIterator[Any]:
        async with lifespan(app) as state, announcer.lifespan(state) as heard:
            unsubscribe = bus.subscribe(lambda published: heard(change_of(published)))
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


SERVED: Final[Mapping[str, tuple[Any, Any]]] = {
    "logging/setLevel": (types.SetLevelRequestParams, _accept),
    "resources/subscribe": (types.SubscribeRequestParams, _accept),
    "resources/unsubscribe": (types.UnsubscribeRequestParams, _accept),
}
"""Methods that are served where the framework does not."""


def insert(server: LowLevel, honest: Honest, announcer: Announcer, bus: Any) -> Middleware:
    """Puts the middleware behind those that come with the framework, and before those of the author."""
    middleware = Middleware(honest, announcer, bus, server)
    ours = [place for place, one in enumerate(server.middleware) if type(one).__module__ in FIRST]
    server.middleware.insert(ours[-1] + 1 if ours else 0, middleware)
    return middleware


FIRST: Final = ("fastmcp.server.low_level", "mcp.server._otel")
"""Modules of middleware that stands before ours, so that refusals are in its traces."""
