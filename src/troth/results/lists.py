"""What the four list methods return."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from troth.results.functions import described
from troth.results.resources import CacheScope, cache_hints
from troth.results.shapes import REQUIRED, renamed, shaped
from troth.results.spelling import Object, finish, known_revision
from troth.results.table import KNOWN
from troth.results.values import is_listing, is_model, shown, text

if TYPE_CHECKING:
    from collections.abc import Callable

_OWN_FORM: Final[Mapping[str, str]] = {
    "Prompt": "to_mcp_prompt",
    "Resource": "to_mcp_resource",
    "ResourceTemplate": "to_mcp_template",
    "Tool": "to_mcp_tool",
}
"""The method by which a component of FastMCP hands out its model of the SDK."""

_SDK_TYPES: Final = ("mcp_types", "mcp.types")
"""Modules whose models are in the protocol's form; registered components of the SDK are models of another form."""

_ATTRIBUTES: Final[Mapping[str, tuple[str, ...]]] = {
    "_meta": ("meta",),
    "inputSchema": ("inputSchema", "input_schema", "parameters"),
}
"""Where a registered component keeps a member, if not under its name in the protocol or in Python's spelling."""


def list_tools_result(
    tools: Iterable[object],
    next_cursor: str | None = None,
    *,
    meta: Mapping[str, object] | None = None,
    ttl_ms: int = 0,
    cache_scope: CacheScope = "private",
    revision: str | None = None,
) -> Object:
    """Builds the result of ``tools/list``.

    A tool is a mapping, a model of the SDK, a component registered with ``mcp`` or ``fastmcp``, or a plain function
    (its name, docstring and parameters describe it). An input schema that is not given takes any object. An output
    schema whose root is no object is left out before 2026-07-28, where it may not be.

    Args:
        tools: The tools, in the order to be served.
        next_cursor: Where the next page starts; None on the last page.
        meta: ``_meta`` of the result.
        ttl_ms: Milliseconds for which a client may keep the answer (2026-07-28); 0 is stale at once.
        cache_scope: ``private`` or ``public``: who may be served a kept answer (2026-07-28).
        revision: The protocol revision in force; None gives the newest shape with every member kept.

    Returns:
        A new dict.

    Raises:
        TypeError: Something is no tool, or a member has a wrong type.
        ValueError: A member is missing or out of range, or a function cannot be described.
    """
    return _listed("ListToolsResult", "tools", _tool, tools, (next_cursor, meta, ttl_ms, cache_scope, revision))


def list_prompts_result(
    prompts: Iterable[object],
    next_cursor: str | None = None,
    *,
    meta: Mapping[str, object] | None = None,
    ttl_ms: int = 0,
    cache_scope: CacheScope = "private",
    revision: str | None = None,
) -> Object:
    """Builds the result of ``prompts/list``.

    Args:
        prompts: Mappings, models of the SDK, or components registered with ``mcp`` or ``fastmcp``.
        next_cursor: As for ``list_tools_result``, like all that follow.
        meta: See there.
        ttl_ms: See there.
        cache_scope: See there.
        revision: See there.

    Returns:
        A new dict.

    Raises:
        TypeError: Something is no prompt, or a member has a wrong type.
        ValueError: A member is missing or out of range.
    """
    item = partial(_component, "Prompt")
    return _listed("ListPromptsResult", "prompts", item, prompts, (next_cursor, meta, ttl_ms, cache_scope, revision))


def list_resources_result(
    resources: Iterable[object],
    next_cursor: str | None = None,
    *,
    meta: Mapping[str, object] | None = None,
    ttl_ms: int = 0,
    cache_scope: CacheScope = "private",
    revision: str | None = None,
) -> Object:
    """Builds the result of ``resources/list``.

    Args:
        resources: Mappings (``uri`` may be a path or URL object), models of the SDK, or components registered with
            ``mcp`` or ``fastmcp``.
        next_cursor: As for ``list_tools_result``, like all that follow.
        meta: See there.
        ttl_ms: See there.
        cache_scope: See there.
        revision: See there.

    Returns:
        A new dict.

    Raises:
        TypeError: Something is no resource, or a member has a wrong type.
        ValueError: A member is missing or out of range.
    """
    item = partial(_component, "Resource")
    options = (next_cursor, meta, ttl_ms, cache_scope, revision)
    return _listed("ListResourcesResult", "resources", item, resources, options)


def list_resource_templates_result(
    templates: Iterable[object],
    next_cursor: str | None = None,
    *,
    meta: Mapping[str, object] | None = None,
    ttl_ms: int = 0,
    cache_scope: CacheScope = "private",
    revision: str | None = None,
) -> Object:
    """Builds the result of ``resources/templates/list``.

    Args:
        templates: Mappings, models of the SDK, or components registered with ``mcp`` or ``fastmcp``.
        next_cursor: As for ``list_tools_result``, like all that follow.
        meta: See there.
        ttl_ms: See there.
        cache_scope: See there.
        revision: See there.

    Returns:
        A new dict.

    Raises:
        TypeError: Something is no template, or a member has a wrong type.
        ValueError: A member is missing or out of range.
    """
    item = partial(_component, "ResourceTemplate")
    options = (next_cursor, meta, ttl_ms, cache_scope, revision)
    return _listed("ListResourceTemplatesResult", "resourceTemplates", item, templates, options)


def _listed(
    definition: str,
    member: str,
    item: Callable[[object, str], Object],
    items: object,
    options: tuple[str | None, Mapping[str, object] | None, int, CacheScope, str | None],
) -> Object:
    next_cursor, meta, ttl_ms, cache_scope, revision = options
    known_revision(revision)
    where = definition[0].lower() + definition[1:]
    where = re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", where)
    if not is_listing(items):
        raise TypeError(f"{where} takes a list of {member}, not {type(items).__name__}")
    result: Object = {member: [item(value, f"{where}: {member}[{index}]") for index, value in enumerate(items)]}
    if next_cursor is not None:
        if not isinstance(cast("object", next_cursor), str):
            raise TypeError(f"{where}: next_cursor must be a string or None, not {type(next_cursor).__name__}")
        result["nextCursor"] = text(next_cursor, f"{where}: next_cursor")
    result.update(shaped({"_meta": meta}, definition, where))
    return finish({**result, **cache_hints(ttl_ms, cache_scope, where)}, definition, revision)


def _tool(value: object, where: str) -> Object:
    if inspect.isroutine(value):
        return described(cast("Callable[..., object]", value), where)
    raw = renamed(_raw("Tool", value, where), "Tool", where)
    tool = shaped({**raw, "inputSchema": raw.get("inputSchema", {})}, "Tool", where)
    schema = {"type": "object", **tool["inputSchema"]}
    if schema["type"] != "object":
        raise ValueError(f"{where}: the root of inputSchema must be of type 'object', not {shown(schema['type'])}")
    return {**tool, "inputSchema": schema}


def _component(definition: str, value: object, where: str) -> Object:
    return shaped(_raw(definition, value, where), definition, where)


def _raw(definition: str, value: object, where: str) -> Mapping[str, object]:
    """The members of anything that stands for a component."""
    if isinstance(value, Mapping):
        return cast("Mapping[str, object]", value)
    own_form = getattr(value, _OWN_FORM[definition], None)
    if callable(own_form):
        return _dumped(own_form())
    if is_model(value) and type(value).__module__.startswith(_SDK_TYPES):
        return _dumped(value)
    found = {name: _attribute(value, name) for name in sorted(KNOWN[definition])}
    missing = [name for name in REQUIRED[definition] if found.get(name) is None]
    if missing:
        what = "mapping, a model of the SDK or a registered component"
        raise TypeError(f"{where} must be a {what}; {type(value).__name__} has no {missing[0]!r}")
    return {name: member for name, member in found.items() if member is not None}


def _dumped(model: object) -> Mapping[str, object]:
    return cast("Any", model).model_dump(mode="json", by_alias=True)


def _attribute(value: object, name: str) -> object:
    snake = re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", name)
    candidates = _ATTRIBUTES.get(name, (name, snake))
    return next((found for item in candidates if (found := getattr(value, item, None)) is not None), None)
