"""Facts from server objects of the official SDK (``mcp`` 2): ``MCPServer`` and the low-level ``Server``.

What the objects show: handlers, registered tools, prompts, resources and templates, extensions, and whether
``subscriptions/listen`` is served. What they do not show is what the author's code sends by itself on a legacy session;
the SDK sends nothing there on its own, so ``Facts.announces`` stays empty unless the author says otherwise::

    build(dataclasses.replace(facts(server), announces={"tools"}), revision="2025-11-25")

The SDK dispatches no core tasks (2025-11-25), so there are none in the facts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer

from troth.capabilities.facts import Facts, listen_kinds
from troth.gating import Listed, primitive

if TYPE_CHECKING:
    from collections.abc import Collection, Coroutine

    from troth.gating import Needs
    from troth.gating.decide import PrimitiveKind

    LowLevel = Server[Any]


def facts(server: object) -> Facts:
    """The facts of an ``MCPServer`` or a low-level ``Server``.

    A family of an ``MCPServer`` counts as served only when something is registered in it: the SDK answers its lists in
    any case, and a declaration over empty lists promises nothing. The transports of the SDK can all be pushed to but
    for stateless HTTP: there, pass ``push=False`` to ``build``.

    Raises:
        TypeError: ``server`` is neither.
    """
    if isinstance(server, MCPServer):
        return _of_mcp_server(cast("MCPServer[Any]", server))
    if isinstance(server, Server):
        return of_low_level(cast("LowLevel", server))
    raise TypeError(f"{type(server).__module__}.{type(server).__qualname__} is neither MCPServer nor Server of mcp 2")


def of_low_level(server: LowLevel, *, tools: bool = True, prompts: bool = True, resources: bool = True) -> Facts:
    """The facts of a low-level server; a family that is False has handlers but nothing to serve.

    A low-level server keeps its lists inside its handlers, so handlers are all that can be seen. Resources count with
    ``resources/list`` and ``resources/read``: one without ``resources/templates/list`` still serves what it lists.
    """
    tools = tools and _serves(server, "tools/list", "tools/call")
    prompts = prompts and _serves(server, "prompts/list", "prompts/get")
    resources = resources and _serves(server, "resources/list", "resources/read")
    listens = _serves(server, "subscriptions/listen")
    return Facts(
        tools=tools,
        prompts=prompts,
        resources=resources,
        completions=_serves(server, "completion/complete"),
        log_messages=tools or prompts or resources,
        log_level=_serves(server, "logging/setLevel"),
        subscribe=_serves(server, "resources/subscribe", "resources/unsubscribe"),
        push=True,
        listen=frozenset(listen_kinds().values() if listens else ()),
        extensions=dict(server.extensions),
    )


def _of_mcp_server(server: MCPServer[Any]) -> Facts:
    return of_low_level(
        cast("LowLevel", vars(server)["_lowlevel_server"]),
        tools=_lists(server.list_tools()),
        prompts=_lists(server.list_prompts()),
        resources=_lists(server.list_resources()) or _lists(server.list_resource_templates()),
    )


async def listed(server: object, needs: Needs) -> list[Listed] | None:
    """The primitives of a server with what they need; None for a low-level ``Server``, whose handlers hold them.

    Raises:
        TypeError: ``server`` is neither.
    """
    if isinstance(server, Server):
        return None
    if not isinstance(server, MCPServer):
        raise TypeError(
            f"{type(server).__module__}.{type(server).__qualname__} is neither MCPServer nor Server of mcp 2"
        )
    return [
        Listed(named, needs.of(named, item, getattr(item, "meta", None)))
        for kind, items in registered(cast("MCPServer[Any]", server)).items()
        for item in items
        for named in (primitive(item, kind),)
    ]


def registered(server: MCPServer[Any]) -> dict[PrimitiveKind, list[Any]]:
    """What is registered with an ``MCPServer``, each with its function, by kind."""
    inside = vars(server)
    resources = inside["_resource_manager"]
    return {
        "tools": inside["_tool_manager"].list_tools(),
        "prompts": inside["_prompt_manager"].list_prompts(),
        "resources": resources.list_resources(),
        "templates": resources.list_templates(),
    }


def _serves(server: LowLevel, *methods: str) -> bool:
    return all(server.get_request_handler(method) is not None for method in methods)


def _lists(coroutine: Coroutine[Any, Any, Collection[object]]) -> bool:
    """Whether a list has entries; True for one that a subclass fetches from elsewhere, which cannot be seen here.

    The SDK's own lists are coroutines that never wait, so a single step ends them and no event loop is needed.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        return bool(end.value)
    coroutine.close()
    return True
