"""Facts from server objects of FastMCP 4.

A family is served where something is registered in it: on the server, on a mounted one, or in a provider that fetches
its components from elsewhere (a proxy, an OpenAPI document), whose contents cannot be seen without asking it.

FastMCP declares ``listChanged: true`` on every legacy session and announces no change of its lists by itself, serves
no ``subscriptions/listen``, and declares ``io.modelcontextprotocol/ui`` also where there is no user interface; the
facts here are those that hold.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from fastmcp import FastMCP
from fastmcp.prompts import Prompt
from fastmcp.resources import Resource, ResourceTemplate
from fastmcp.server.providers import FastMCPProvider, LocalProvider, Provider
from fastmcp.server.providers.aggregate import AggregateProvider
from fastmcp.tools import Tool

from troth.gating import Listed, both, needs_of, primitive
from troth.plugins.mcp_sdk import of_low_level

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fastmcp.server.extensions import ServerExtension
    from mcp.server.lowlevel import Server

    from troth.capabilities.facts import Facts
    from troth.gating import Need, Needs
    from troth.gating.decide import PrimitiveKind

UI = "io.modelcontextprotocol/ui"

_FAMILIES: Mapping[str, tuple[tuple[type, ...], tuple[str, ...]]] = {
    "tools": ((Tool,), ("_list_tools",)),
    "prompts": ((Prompt,), ("_list_prompts",)),
    "resources": ((Resource, ResourceTemplate), ("_list_resources", "_list_resource_templates")),
}
"""Family -> its component classes, and the methods by which a provider supplies them."""


def facts(server: object) -> Facts:
    """The facts of a ``FastMCP`` server.

    Raises:
        TypeError: ``server`` is no ``FastMCP``.
    """
    if not isinstance(server, FastMCP):
        raise TypeError(f"{type(server).__module__}.{type(server).__qualname__} is not FastMCP of fastmcp 4")
    own = cast("FastMCP[Any]", server)
    providers = leaves(own)
    found = [component for provider in providers for component in components(provider)]
    low_level = of_low_level(
        cast("Server[Any]", vars(own)["_mcp_server"]),
        **{family: _supplied(family, providers, found) for family in _FAMILIES},
    )
    extensions = cast("Mapping[str, ServerExtension]", vars(own)["_extensions"]).values()
    settings: dict[str, Mapping[str, object]] = {extension.identifier: extension.settings() for extension in extensions}
    if any(_is_ui(component) for component in found):
        settings.setdefault(UI, {})
    return replace(low_level, extensions=settings, experimental=dict(own.experimental_capabilities))


def leaves(server: FastMCP[Any]) -> list[Provider]:
    """The providers that hold components or fetch them, also of mounted servers."""
    return list(_providers([server]))


def holders(nested: Iterable[object]) -> Iterator[object]:
    """Everything between a server and its components: servers, providers, wrappers."""
    for holder in nested:
        yield holder
        yield from holders(_inside(holder) or ())


def components(provider: Provider) -> Iterable[object]:
    """What a provider holds itself; nothing for one that fetches from elsewhere."""
    if not isinstance(provider, LocalProvider):
        return ()
    return cast("Mapping[str, object]", vars(provider)["_components"]).values()


def fetches(server: FastMCP[Any], family: str) -> bool:
    """Whether something of a family comes from elsewhere, so that its changes cannot be seen."""
    return _supplied(family, leaves(server), ())


def _providers(nested: Iterable[object]) -> Iterator[Provider]:
    """The providers that hold components or fetch them, with mounts and wrappers taken apart."""
    for provider in nested:
        inner = _inside(provider)
        if inner is None:
            yield cast("Provider", provider)
        else:
            yield from _providers(inner)


def _inside(provider: object) -> Iterable[object] | None:
    if isinstance(provider, FastMCPProvider):
        return [provider.server]
    if isinstance(provider, AggregateProvider):
        return provider.providers
    return [vars(provider)["_inner"]] if "_inner" in vars(provider) else None


def _supplied(family: str, providers: Iterable[Provider], found: Iterable[object]) -> bool:
    classes, methods = _FAMILIES[family]
    if any(isinstance(component, classes) for component in found):
        return True
    return any(
        not isinstance(provider, LocalProvider)
        and any(getattr(type(provider), method) is not getattr(Provider, method) for method in methods)
        for provider in providers
    )


def _is_ui(component: object) -> bool:
    """Whether the component is part of a user interface: a ``ui://`` resource, or a tool bound to one."""
    uri = getattr(component, "uri", None) or getattr(component, "uri_template", "")
    meta = cast("Mapping[str, object]", getattr(component, "meta", None) or {})
    return str(uri).startswith("ui://") or "ui" in meta


async def listed(server: object, needs: Needs) -> list[Listed]:
    """The primitives of a ``FastMCP`` server with what they need, those of mounted servers too.

    What a provider fetches from elsewhere says in its ``_meta`` what it needs.

    Raises:
        TypeError: ``server`` is no ``FastMCP``.
    """
    if not isinstance(server, FastMCP):
        raise TypeError(f"{type(server).__module__}.{type(server).__qualname__} is not FastMCP of fastmcp 4")
    own = cast("FastMCP[Any]", server)
    found: list[Listed] = []
    for kind, method in _LISTS.items():
        known: dict[int, Sequence[Any]] = {}
        for item in await _items(own, method):
            named = primitive(item, kind)
            found.append(Listed(named, both(needs.of(named, item, item.meta), await _mounted(item, method, known))))
    return found


_LISTS: Final[Mapping[PrimitiveKind, str]] = {
    "tools": "list_tools",
    "prompts": "list_prompts",
    "resources": "list_resources",
    "templates": "list_resource_templates",
}
_ORIGINALS: Final = ("_original_name", "_original_uri", "_original_uri_template")
"""Where what a mount shows keeps its name on the server that was mounted."""


async def _items(server: FastMCP[Any], method: str) -> Sequence[Any]:
    return await getattr(server, method)(run_middleware=False)


async def _mounted(item: Any, method: str, known: dict[int, Sequence[Any]]) -> Need | None:
    """What the component behind one that a mount shows needs. Lists of mounted servers are kept in ``known``."""
    private: Mapping[str, Any] = getattr(item, "__pydantic_private__", None) or {}
    child = private.get("_server")
    if not isinstance(child, FastMCP):
        return None
    name = next(str(private[key]) for key in _ORIGINALS if key in private)
    mounted = cast("FastMCP[Any]", child)
    if id(mounted) not in known:
        known[id(mounted)] = await _items(mounted, method)
    need: Need | None = None
    for one in known[id(mounted)]:
        if primitive(one).name == name:
            stated = needs_of(mounted).of(primitive(one), one, one.meta)
            need = both(need, both(stated, await _mounted(one, method, known)))
    return need
