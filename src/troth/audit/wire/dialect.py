"""How a revision is spoken: the envelope of a request and the HTTP headers beside it. Tables, no I/O."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, cast

from troth.bridge.headers import NAMED, encoded
from troth.register import Era, register

if TYPE_CHECKING:
    from collections.abc import Mapping

META = "io.modelcontextprotocol/"
"""Prefix of the specification's own `_meta` keys."""
PROTOCOL_VERSION = META + "protocolVersion"
CLIENT_INFO = META + "clientInfo"
CLIENT_CAPABILITIES = META + "clientCapabilities"
LOG_LEVEL = META + "logLevel"
SUBSCRIPTION_ID = META + "subscriptionId"
TASKS_EXTENSION = META + "tasks"
"""Key of the extension; its revision is 2026-07-28 (gap G-17)."""
UI_EXTENSION = META + "ui"

NO_VERSION_HEADER = frozenset({"2024-11-05", "2025-03-26"})
"""Revisions that have no `MCP-Protocol-Version` header. Source: 2025-06-18/basic/transports."""

TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""What a header may be called. Source: RFC 9110, section 5.6.2."""

FULL_CLIENT: Mapping[Era, Mapping[str, Any]] = {
    Era.LEGACY: {
        "roots": {"listChanged": True},
        "sampling": {"context": {}, "tools": {}},
        "elicitation": {"form": {}, "url": {}},
        "tasks": {
            "list": {},
            "cancel": {},
            "requests": {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}},
        },
    },
    Era.MODERN: {
        "roots": {},
        "sampling": {"context": {}, "tools": {}},
        "elicitation": {"form": {}, "url": {}},
        "extensions": {TASKS_EXTENSION: {}, UI_EXTENSION: {"mimeTypes": ["text/html;profile=mcp-app"]}},
    },
}
"""Everything a client can declare. Narrowed to the revision before it is sent (`declarable`)."""


def declarable(revision: str) -> dict[str, Any]:
    """The fullest client declaration that ``revision`` defines; no member of any other revision is in it."""
    from troth.capabilities import read_client

    return dict(read_client(FULL_CLIENT[register().era(revision)], revision).effective)


def mirrored(schema: object, arguments: object, depth: int = 16) -> dict[str, str]:
    """Headers ``Mcp-Param-...`` of a tool call: arguments whose schema names a header of their own.

    Args:
        schema: The tool's ``inputSchema``, as listed.
        arguments: The arguments of the call.
        depth: How many objects deep to look.

    Source: 2026-07-28/basic/transports, custom headers from tool parameters.
    """
    headers: dict[str, str] = {}
    properties = _members(_members(schema).get("properties"))
    for name, value in _members(arguments).items():
        described = _members(properties.get(name))
        token = described.get("x-mcp-header")
        if isinstance(value, dict) and depth:
            headers |= mirrored(described, cast("object", value), depth - 1)
        elif isinstance(token, str) and TOKEN.fullmatch(token) and isinstance(value, (bool, int, str)):
            words = value if isinstance(value, str) else json.dumps(value)
            headers[f"Mcp-Param-{token}"] = encoded(words)
    return headers


def _members(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def legacy_headers(revision: str | None, session: str | None) -> dict[str, str]:
    """Headers of a legacy message: the negotiated revision where it has such a header, and the session's id."""
    headers: dict[str, str] = {}
    if revision is not None and revision not in NO_VERSION_HEADER:
        headers["MCP-Protocol-Version"] = revision
    if session is not None:
        headers["Mcp-Session-Id"] = session
    return headers


def modern_headers(
    revision: str, method: str, params: Mapping[str, Any], schemas: Mapping[str, object] | None = None
) -> dict[str, str]:
    """Headers of a modern request, made from its body, and for a tool call from the tool's schema (by name)."""
    headers = {"MCP-Protocol-Version": revision, "Mcp-Method": encoded(method)}
    name = params.get(NAMED.get(method, ""))
    if isinstance(name, str):
        headers["Mcp-Name"] = encoded(name)
        if method == "tools/call" and schemas is not None:
            headers |= mirrored(schemas.get(name), params.get("arguments"))
    return headers


def modern_meta(revision: str, capabilities: Mapping[str, Any], info: Mapping[str, str]) -> dict[str, Any]:
    """The `_meta` that every modern request carries."""
    return {PROTOCOL_VERSION: revision, CLIENT_INFO: dict(info), CLIENT_CAPABILITIES: dict(capabilities)}
