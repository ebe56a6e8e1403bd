"""The register held against the official schemas: what disagrees, as sentences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from troth.register import Register, Side

FOLDER = Path(__file__).parents[3] / "shared" / "schema"
ABSENT = pytest.mark.skipif(not FOLDER.is_dir(), reason="the official schemas are not beside this repository")
NAMES = {Side.CLIENT: "ClientCapabilities", Side.SERVER: "ServerCapabilities"}
ROLES = ("ClientRequest", "ServerRequest", "InputRequest", "ClientNotification", "ServerNotification")
DIRECTIONS = {
    "client->server request": "ClientRequest",
    "server->client request": "ServerRequest",
    "server->client input request (inside InputRequiredResult)": "InputRequest",
    "client->server notification": "ClientNotification",
    "server->client notification": "ServerNotification",
}
HANDSHAKE = {"initialize", "ping", "notifications/initialized", "notifications/cancelled", "notifications/progress"}
FREE = {
    "2024-11-05": HANDSHAKE | {"completion/complete"},
    "2025-03-26": HANDSHAKE,
    "2025-06-18": HANDSHAKE,
    "2025-11-25": HANDSHAKE,
    "2026-07-28": {
        "server/discover",
        "subscriptions/listen",
        "notifications/subscriptions/acknowledged",
        "notifications/cancelled",
        "notifications/progress",
    },
}
"""The methods of each revision that need no capability."""
BASE_CODES = {-32700, -32600, -32603}
"""Codes of JSON-RPC that have nothing to do with capabilities."""
GIVEN_CODES = {-32042, -32020, -32021, -32022}
"""Codes that a schema defines by a constant in the revisions that use them."""


def schemas(register: Register) -> dict[str, dict[str, Any]]:
    found = {
        revision: json.loads((FOLDER / revision / "schema.json").read_text("utf-8")) for revision in register.revisions
    }
    return {revision: schema.get("definitions") or schema["$defs"] for revision, schema in found.items()}


def disagreements(register: Register, official: dict[str, dict[str, Any]]) -> list[str]:
    """Every place where a schema and the register differ, in both directions."""
    found: list[str] = []
    for revision in register.revisions:
        definitions = official[revision]
        for side, name in NAMES.items():
            ours = {
                row.path: row.definitions[revision].kind.value
                for row in register.at(side, revision)
                if not row.extension
            }
            theirs = dict(fields(definitions, definitions[name]))
            found += _differ(f"{revision} {side}", ours, theirs)
        theirs_by_role = {role: set(methods(definitions, role)) for role in ROLES}
        ours_by_role = {
            role: {name for (name, at), use in register.methods.items() if at == revision and role in use.roles}
            for role in ROLES
        }
        found += _differ(f"{revision} methods", ours_by_role, theirs_by_role)
        found += _gates(register, revision, theirs_by_role)
        found += _codes(register, revision, definitions)
    return found


def fields(definitions: dict[str, Any], node: dict[str, Any], path: str = "") -> list[tuple[str, str]]:
    """Every capability field of a schema with the kind of value it wants."""
    found: list[tuple[str, str]] = []
    for name, member in _resolved(definitions, node).get("properties", {}).items():
        full = f"{path}.{name}" if path else name
        resolved = _resolved(definitions, member)
        opens = member.get("additionalProperties")
        kind = "boolean" if resolved["type"] == "boolean" else "map" if isinstance(opens, dict) else "object"
        found.append((full, kind))
        found += fields(definitions, member, full)
    return found


def methods(definitions: dict[str, Any], role: str) -> list[str]:
    """The methods of one union of a schema."""
    union = definitions.get(role, {})
    members = union.get("anyOf", [union] if "properties" in union or "$ref" in union else [])
    return [_resolved(definitions, member)["properties"]["method"]["const"] for member in members]


def _resolved(definitions: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        node = definitions[node["$ref"].rsplit("/", 1)[-1]]
    return node


def _differ(where: str, ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    return [
        f"{where} {key}: register {ours.get(key)}, schema {theirs.get(key)}"
        for key in sorted(ours.keys() | theirs.keys())
        if ours.get(key) != theirs.get(key)
    ]


def _gates(register: Register, revision: str, roles: dict[str, set[str]]) -> list[str]:
    found: list[str] = []
    gated: set[str] = set()
    for row in register.rows:
        definition = row.at(revision)
        if definition is None or row.extension:
            continue
        for gate in (*definition.gates, *definition.notifications):
            gated.add(gate.method)
            wrong = [direction for direction in gate.directions if gate.method not in roles[DIRECTIONS[direction]]]
            found += [f"{revision} {row.id}: {gate.method} is no {direction}" for direction in wrong]
    free = set().union(*roles.values()) - gated
    if free != FREE[revision]:
        found.append(f"{revision}: methods without a gate are {sorted(free)}, not {sorted(FREE[revision])}")
    return found


def _codes(register: Register, revision: str, definitions: dict[str, Any]) -> list[str]:
    theirs = set(_constants(definitions)) - BASE_CODES
    ours = {error.code for error in register.errors_at(revision) if isinstance(error.code, int)}
    missing = [f"{revision}: no error code {code} in the register" for code in sorted(theirs - ours)]
    return missing + [
        f"{revision}: no error code {code} in the schema" for code in sorted((ours & GIVEN_CODES) - theirs)
    ]


def _constants(node: Any) -> list[int]:
    if isinstance(node, list):
        return [code for item in node for code in _constants(item)]
    if not isinstance(node, dict):
        return []
    code = node.get("code")
    here = [code["const"]] if isinstance(code, dict) and isinstance(code.get("const"), int) else []
    return here + [code for item in node.values() for code in _constants(item)]
