"""Spells messages down: what is built in the newest shape loses the members that the revision in force lacks.

The tables are written from the schemas of the five revisions, apart from the ones that the product uses: a peer must
not share the faults of what it tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from troth.register import register

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.testing.model import Json, JsonObject

_ICONS = ("2025-11-25", None)
_NAMED = ("2025-06-18", None)
_MODERN = ("2026-07-28", None)
_TASKS = ("2025-11-25", "2025-11-25")

_RESULT = {"resultType": _MODERN, "ttlMs": _MODERN, "cacheScope": _MODERN}

SPANS: Mapping[str, Mapping[str, tuple[str, str | None]]] = {
    "Implementation": {"title": _NAMED, "icons": _ICONS, "websiteUrl": _ICONS, "description": _ICONS},
    "Tool": {
        "title": _NAMED,
        "_meta": _NAMED,
        "outputSchema": _NAMED,
        "icons": _ICONS,
        "annotations": ("2025-03-26", None),
        "execution": _TASKS,
    },
    "Prompt": {"title": _NAMED, "_meta": _NAMED, "icons": _ICONS},
    "PromptArgument": {"title": _NAMED},
    "Resource": {"title": _NAMED, "_meta": _NAMED, "icons": _ICONS},
    "ResourceTemplate": {"title": _NAMED, "_meta": _NAMED, "icons": _ICONS},
    "Result": _RESULT,
    "CallToolResult": {**_RESULT, "structuredContent": _NAMED},
    "ElicitParams": {"mode": _ICONS, "elicitationId": _TASKS},
    "ProgressParams": {"message": ("2025-03-26", None)},
}
"""Kind -> member -> first and last revision that has it (None: still there). Members not named are in all."""

PARTS: Mapping[str, Mapping[str, str]] = {
    "ListToolsResult": {"tools": "Tool"},
    "ListPromptsResult": {"prompts": "Prompt"},
    "ListResourcesResult": {"resources": "Resource"},
    "ListResourceTemplatesResult": {"resourceTemplates": "ResourceTemplate"},
    "InitializeResult": {"serverInfo": "Implementation"},
    "Prompt": {"arguments": "PromptArgument"},
}
"""Kind -> member -> kind of the value, or of the items of the list."""

RESULTS: Mapping[str, str] = {
    "initialize": "InitializeResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "tasks/result": "CallToolResult",
    "prompts/list": "ListPromptsResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
}
"""Method -> kind of its result; every other one is a plain ``Result``."""

BATCHES = frozenset({"2025-03-26"})
"""Revisions whose messages may come as a JSON array."""


def within(span: tuple[str, str | None], revision: str) -> bool:
    """Whether ``revision`` lies in a span of revisions, both ends included."""
    order = register().revisions.index
    first, last = span
    return order(first) <= order(revision) and (last is None or order(revision) <= order(last))


def spell(kind: str, value: JsonObject, revision: str) -> JsonObject:
    """A copy of ``value`` with only those members that ``revision`` has for this kind."""
    spans = SPANS.get(kind, _RESULT if kind.endswith("Result") else {})
    parts = PARTS.get(kind, {})
    kept = {name: item for name, item in value.items() if name not in spans or within(spans[name], revision)}
    return {name: _part(parts[name], item, revision) if name in parts else item for name, item in kept.items()}


def result(method: str, value: JsonObject, revision: str) -> JsonObject:
    """A result of ``method``, built in the newest shape, as ``revision`` spells it."""
    return spell(RESULTS.get(method, "Result"), {"resultType": "complete", **value}, revision)


def _part(kind: str, value: Json, revision: str) -> Any:
    if isinstance(value, list):
        return [_part(kind, item, revision) for item in cast("list[Json]", value)]
    return spell(kind, cast("JsonObject", value), revision)
