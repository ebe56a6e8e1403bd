"""The JSON Schema of both forms of the configuration, made from the table of keys.

A schema knows no variables of an environment and no other server: what `load` refuses beyond it are unset variables,
two servers with one prefix or name, equal tokens, headers that Troth sets itself.
"""

from __future__ import annotations

from typing import Any

from troth.config.servers import TYPES, URL_KEYS
from troth.gateway.config import keys
from troth.gateway.config.keys import Key, Kind
from troth.register import register

FORMS = {"troth.schema.json": True, "mcp.schema.json": False}
"""File in the package -> whether it is the schema of ``troth.toml``, else of a host's JSON file."""

_WORD = {"type": ["string", "number"]}
"""Hosts take numbers for texts in commands and variables."""
_NAME = {"pattern": r"^(?=.*\S)[^\u0000-\u001f\u007f]*$", "maxLength": keys.LONGEST_NAME}
_HEADER = {"pattern": r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"}
_STRINGS = {"type": "object", "additionalProperties": {"type": ["string", "number", "null"]}}
_SHAPES: dict[str, dict[str, Any]] = {
    "command": {"type": "string", "minLength": 1},
    "args": {"type": "array", "items": _WORD},
    "env": _STRINGS,
    "headers": {**_STRINGS, "propertyNames": _HEADER},
    "url": {"type": "string", "pattern": r"^(https?://[^\s/]|.*(\$\{|\{env:))"},
}
"""Shapes of keys that hosts know too, where they differ from what the kind says."""


def schema(*, toml: bool) -> dict[str, Any]:
    """The schema of one form."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Configuration of troth serve ({'troth.toml' if toml else 'mcp.json'})",
        **(_toml() if toml else _json()),
        "$defs": {
            "start": _start(toml=toml),
            "sections": _table({name: _section(name) for name in keys.SECTIONS}),
            "own": _table(_shapes(keys.OWN)),
        },
    }


def _toml() -> dict[str, Any]:
    server = {
        "properties": {**_shapes(keys.START), **_shapes(keys.OWN)},
        "additionalProperties": False,
        "$ref": "#/$defs/start",
    }
    sections = {name: _section(name) for name in keys.SECTIONS}
    return _table({"$schema": {"type": "string"}, "servers": _servers(server), **sections})


def _json() -> dict[str, Any]:
    own = {key.name: False for key in keys.OWN}
    start = _shapes(keys.START)
    aliases = {name: start[key] for name, key in keys.ALIASES.items()}
    start["command"] = {"anyOf": [start["command"], {"type": "array", "items": _WORD, "minItems": 1}]}
    server = {
        "properties": {**start, **aliases, **own, "troth": {"$ref": "#/$defs/own"}},
        "$ref": "#/$defs/start",
    }
    nested = {"type": "object", "required": ["servers"], "properties": {"servers": _servers(server)}}
    places = {"mcpServers": _servers(server), "servers": _servers(server), "mcp": {"anyOf": [nested, _servers(server)]}}
    return {
        "type": "object",
        "properties": {**places, "troth": {"$ref": "#/$defs/sections"}},
        "anyOf": [{"required": [name]} for name in places],
    }


def _servers(server: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "propertyNames": _NAME, "additionalProperties": server}


def _start(*, toml: bool) -> dict[str, Any]:
    """A server needs a command or an address, and its ``type`` says which."""
    addresses = [{"required": [name]} for name in (("url",) if toml else URL_KEYS)]
    needs = {"command": {"required": ["command"]}, "url": {"anyOf": addresses}}
    kinds = {wanted: [name for name, needed in TYPES.items() if needed == wanted] for wanted in needs}
    rules = [
        {"if": {"required": ["type"], "properties": {"type": {"enum": names}}}, "then": needs[wanted]}
        for wanted, names in kinds.items()
    ]
    off = {"required": ["disabled"], "properties": {"disabled": {"const": True}}}
    idle = [off, {"required": ["enabled"], "properties": {"enabled": {"const": False}}}]
    both = {"not": {"allOf": [needs["command"], needs["url"]]}}
    return {
        "type": "object",
        "anyOf": [needs["command"], needs["url"], *idle],
        "allOf": [*rules, {"anyOf": [both, *idle]}],
    }


def _section(name: str) -> dict[str, Any]:
    policies = _table(_shapes(keys.POLICIES))
    if name == "policies":
        return policies
    if name == "profiles":
        return _table(dict.fromkeys(register().hosts, policies))
    if name == "tokens":
        token = {**_table(_shapes(keys.TOKENS)), "required": ["token"]}
        return {"type": "object", "propertyNames": {"pattern": f"^{keys.TOKEN_NAME}$"}, "additionalProperties": token}
    return _table(_shapes(keys.GATEWAY))


def _table(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _shapes(known: tuple[Key, ...]) -> dict[str, Any]:
    return {key.name: {"description": key.meaning, **_shape(key)} for key in known}


def _shape(key: Key) -> dict[str, Any]:
    if key.name in _SHAPES and key in keys.START:
        return _SHAPES[key.name]
    if key.name == "token":
        return {"type": "string", "pattern": rf"^({keys.TOKEN}|.*\$\{{.*)$", "minLength": 4}
    if key.name == "profile":
        return {"enum": [*register().hosts]}
    form = {"pattern": f"^({key.form})$"} if key.form else {}
    bounds = {"minimum": key.least, "maximum": key.most}
    shapes: dict[Kind, dict[str, Any]] = {
        Kind.TEXT: {"type": "string", **form},
        Kind.CHOICE: {"enum": [str(choice) for choice in key.choices]},
        Kind.SECONDS: {"type": "number", **bounds},
        Kind.COUNT: {"type": "integer", **bounds},
        Kind.PATTERNS: {"type": "array", "items": {"type": "string", "pattern": r"\S", **form}},
        Kind.TEXTS: {"type": "array", "items": {"type": "string"}},
        Kind.MAP: {"type": "object", "additionalProperties": {"type": "string", **form}},
        Kind.FLAG: {"type": "boolean"},
        Kind.NEEDS: {"type": "object", "additionalProperties": {"type": ["string", "array"]}},
    }
    return shapes[key.kind]
