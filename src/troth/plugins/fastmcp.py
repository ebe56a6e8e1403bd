"""Facts from server objects of FastMCP 4.

A family is served where something is registered in it: on the server, on a mounted one, or in a provider that fetches
its components from elsewhere (a proxy, an OpenAPI document), whose contents cannot be seen without asking it.

FastMCP declares ``listChanged: true`` on every legacy session and announces no change of its lists by itself, serves
no ``subscriptions/listen``, and declares ``io.modelcontextprotocol/ui`` also where there is no user interface; the
facts here are those that hold.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from fastmcp import FastMCP
from fastmcp.prompts import Prompt
from fastmcp.resources import Resource, ResourceTemplate
from fastmcp.server.providers import FastMCPProvider, LocalProvider, Provider
from fastmcp.server.providers.aggregate import AggregateProvider
from fastmcp.tools import Tool

from troth.plugins.mcp_sdk import of_low_level

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fastmcp.server.extensions import ServerExtension
    from mcp.server.lowlevel import Server

    from troth.capabilities.facts import Facts

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
