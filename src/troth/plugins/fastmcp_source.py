"""What Troth knows of a FastMCP 4 server that it is installed in.

FastMCP keeps components in providers, renames and hides them by transforms, and mounts servers in servers. So a need is
found by asking FastMCP for the component behind a name, and is remembered until something is registered, removed,
mounted or transformed, all of which is watched. What a provider fetches from elsewhere changes unseen: no change of
such a family is promised, and its needs are asked for each time.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, cast

from fastmcp import Context, FastMCP
from fastmcp.prompts import Prompt
from fastmcp.resources import Resource, ResourceTemplate
from fastmcp.server.middleware import Middleware as FastMCPMiddleware
from fastmcp.tools import Tool
from mcp_types import ToolExecution

from troth.gating import Need, Primitive, both, from_meta, marked, with_need
from troth.plugins import install as installing
from troth.plugins.announcing import Change
from troth.plugins.fastmcp import components, fetches, holders, leaves
from troth.plugins.fastmcp import facts as facts_of
from troth.plugins.honest import FAMILIES, UNKNOWN, Unknown
from troth.plugins.mcp_install import insert, prepare
from troth.plugins.tasking import takes_long
from troth.plugins.watching import watch

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from mcp.server.lowlevel import Server

    from troth.capabilities.facts import Facts
    from troth.gating.decide import PrimitiveKind
    from troth.plugins.install import Options
    from troth.plugins.mcp_middleware import Middleware

CLASSES: Final[Mapping[PrimitiveKind, type]] = {
    "tools": Tool,
    "prompts": Prompt,
    "resources": Resource,
    "templates": ResourceTemplate,
}
"""Kind -> class of its components."""

MOST_REMEMBERED: Final = 10_000
"""Names whose needs are remembered; beyond that they are found anew."""


class FastMCPSource:
    """A ``FastMCP`` server.

    Args:
        server: The server.
        options: What was given to ``install``.
        changed: Told of a family when something of it changed.
    """

    def __init__(self, server: FastMCP[Any], options: Options, changed: Callable[[Change], None]) -> None:
        self._server = server
        self._options = options
        self._changed = changed
        self._needs: dict[PrimitiveKind, dict[str, Need | None]] = {}
        self._any: dict[PrimitiveKind, bool] = {}
        self._gone_through: set[PrimitiveKind] = set()
        self._long: dict[str, bool] = {}
        self._any_long: bool | None = None
        self._watched: dict[int, object] = {}
        self._stable = True
        self.version = 0
        self._watch()

    def facts(self, _said: Mapping[str, object] | None, _revision: str) -> Facts:
        """See ``Source``."""
        found = facts_of(self._server)
        announces = {
            family
            for family in ("tools", "prompts", "resources")
            if family in self._options.announces or not fetches(self._server, family)
        }
        listen = {f"{family}ListChanged" for family in announces} | {"resourceSubscriptions"}
        return replace(found, announces=announces, listen=listen)

    def stale(self, _family: str) -> None:
        """See ``Source``. What can be seen is watched; the rest is not remembered."""

    def gated(self, kind: PrimitiveKind) -> bool:
        """See ``Source``."""
        if kind not in self._any:
            held = [one for provider in leaves(self._server) for one in components(provider)]
            needs = [_stated(one) for one in held if isinstance(one, CLASSES[kind])]
            elsewhere = self._options.outside or fetches(self._server, FAMILIES[kind])
            self._any[kind] = elsewhere or any(needs)
        return self._any[kind]

    def names(self, kind: PrimitiveKind) -> Collection[str]:
        """See ``Source``."""
        return [name for name, need in self._needs.get(kind, {}).items() if need is not None]

    def entry(self, kind: PrimitiveKind, name: str, _item: Mapping[str, Any]) -> Need | Unknown | None:
        """See ``Source``."""
        return self._needs.get(kind, {}).get(name, UNKNOWN)

    async def need(self, kind: PrimitiveKind, name: str, _context: object) -> Need | None:
        """See ``Source``."""
        known = self._needs.setdefault(kind, {})
        if name in known:
            return known[name]
        component = await self._component(kind, name)
        if component is None:
            # Unknown, or hidden from this host by FastMCP itself, which refuses it.
            return None
        need = self._of("templates" if isinstance(component, ResourceTemplate) else kind, component)
        if self._stable and len(known) < MOST_REMEMBERED:
            known[name] = need
        return need

    @property
    def long_running(self) -> bool:
        """See ``Source``."""
        if self._any_long is None:
            tools = [one for provider in leaves(self._server) for one in components(provider) if isinstance(one, Tool)]
            long = [tool for tool in tools if _long(tool)]
            self._any_long = bool(long or self._options.tasks.names)
        return self._any_long

    async def takes_long(self, name: str, _context: object) -> bool:
        """See ``Source``."""
        if name in self._options.tasks.names:
            return True
        if not self.long_running:
            return False
        if name not in self._long:
            tool = await self._server.get_tool(name)
            found = tool is not None and _long(tool)
            if not self._stable or len(self._long) >= MOST_REMEMBERED:
                return found
            self._long[name] = found
        return self._long[name]

    async def exists(self, uri: str, _context: object) -> bool:
        """See ``Source``."""
        return await self._component("resources", uri) is not None

    async def everything(self, _context: object) -> Mapping[PrimitiveKind, Collection[str]]:
        """See ``Source``."""
        return {kind: [_called(kind, one) for one in await self._listed(kind)] for kind in CLASSES}

    async def listing(self, kind: PrimitiveKind, _context: object) -> None:
        """See ``Source``. FastMCP goes through all that there is for each name that it is asked for."""
        if kind in self._gone_through or not self._stable:
            return
        self._gone_through.add(kind)
        known = self._needs.setdefault(kind, {})
        for component in (await self._listed(kind))[:MOST_REMEMBERED]:
            known[_called(kind, component)] = self._of(kind, component)
            if isinstance(component, Tool):
                self._long[component.name] = _long(component)

    async def _listed(self, kind: PrimitiveKind) -> Sequence[Any]:
        server = self._server
        if kind == "tools":
            return await server.list_tools(run_middleware=False)
        if kind == "prompts":
            return await server.list_prompts(run_middleware=False)
        if kind == "resources":
            return await server.list_resources(run_middleware=False)
        return await server.list_resource_templates(run_middleware=False)

    async def _component(self, kind: PrimitiveKind, name: str) -> object | None:
        server = self._server
        if kind == "tools":
            return await server.get_tool(name)
        if kind == "prompts":
            return await server.get_prompt(name)
        if kind == "resources":
            return await server.get_resource(name) or await server.get_resource_template(name)
        return next((template for template in await self._listed(kind) if template.uri_template == name), None)

    def _of(self, kind: PrimitiveKind, component: Any) -> Need | None:
        return self._options.needs.of(Primitive(kind, _called(kind, component)), component, component.meta)

    def _watch(self) -> None:
        """Watches all that is there now; called again after each change, which may have brought more."""
        self._stable = not any(fetches(self._server, family) for family in FAMILIES.values())
        for holder in tuple(holders([self._server])):
            if id(holder) not in self._watched:
                self._watched[id(holder)] = holder
                for attribute in ("_components", "_transforms", "providers"):
                    watch(holder, attribute, self._told)

    def _told(self) -> None:
        self.version += 1
        self._needs.clear()
        self._any.clear()
        self._gone_through.clear()
        self._long.clear()
        self._any_long = None
        self._watch()
        for family in dict.fromkeys(FAMILIES.values()):
            self._changed(Change(family))


_NAMES: Final[Mapping[PrimitiveKind, str]] = {
    "tools": "name",
    "prompts": "name",
    "resources": "uri",
    "templates": "uri_template",
}


def _called(kind: PrimitiveKind, component: Any) -> str:
    """What hosts call a component."""
    return str(getattr(component, _NAMES[kind]))


def _stated(component: Any) -> Need | None:
    """What a component needs by itself.

    What its marks ask for is written into its ``meta``, which goes where its function does not: through mounts.
    """
    need = marked(component)
    if need is not None:
        component.meta = with_need(component.meta, need)
    return both(need, from_meta(component.meta))


def _long(tool: Tool) -> bool:
    """Whether a tool takes long. Its ``execution`` says so too, which goes through mounts as its function does not."""
    if takes_long(tool):
        tool.execution = ToolExecution(task_support="optional")
    return tool.execution is not None and tool.execution.task_support in {"optional", "required"}


def install(server: object, options: Options) -> Middleware:
    """Installs Troth in a FastMCP server.

    Raises:
        TypeError: ``server`` is none.
    """
    if not isinstance(server, FastMCP):
        raise TypeError(f"{type(server).__module__}.{type(server).__qualname__} is not FastMCP of fastmcp 4")
    own = cast("FastMCP[Any]", server)
    low_level = cast("Server[Any]", vars(own)["_mcp_server"])
    announcer, bus = prepare(low_level)
    return insert(low_level, FastMCPSource(own, options, announcer.tell), options, announcer, bus)


class Troth(FastMCPMiddleware):
    """``FastMCP(..., middleware=[Troth()])``: the same as ``troth.install(server)``.

    It stands in the list of middleware as a sign: when a server is made with it, or it is added to one, Troth is
    installed in that server, below its middleware. FastMCP tells middleware nothing of its server before the first
    message, which is too late to serve ``subscriptions/listen``; so this class has FastMCP's own methods tell it.

    Args:
        options: As for ``troth.install``.
    """

    def __init__(self, **options: Any) -> None:
        self._options = options

    def settle(self, server: FastMCP[Any]) -> None:
        """Installs Troth in a server, once."""
        if not installing.installed(server):
            installing.install(server, **self._options)


def _telling(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def told(self: FastMCP[Any], *args: Any, **kwargs: Any) -> Any:
        result = method(self, *args, **kwargs)
        for one in self.middleware:
            if isinstance(one, Troth):
                one.settle(self)
        return result

    return told


for _name in ("__init__", "add_middleware"):
    setattr(FastMCP, _name, _telling(getattr(FastMCP, _name)))


_eliciting: ContextVar[bool] = ContextVar("troth_eliciting", default=False)


def _asking(elicit: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(elicit)
    async def asks(self: Context, *args: Any, **kwargs: Any) -> Any:
        token = _eliciting.set(True)
        try:
            return await elicit(self, *args, **kwargs)
        finally:
            _eliciting.reset(token)

    return asks


def _without_channel(modern: Callable[..., bool]) -> Callable[..., bool]:
    @wraps(modern)
    def cannot(self: Context) -> bool:
        return modern(self) and not (_eliciting.get() and self.session.can_send_request)

    return cannot


if hasattr(Context, "_is_modern_protocol"):
    # FastMCP refuses to elicit by the revision, before the session that could is asked.
    for _name, _wrap in (("elicit", _asking), ("_is_modern_protocol", _without_channel)):
        setattr(Context, _name, _wrap(getattr(Context, _name)))
