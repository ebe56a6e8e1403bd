"""The official schemas, where they are at hand: validation, and a strict sweep for members that are not defined."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from troth.register import register

REVISIONS = register().revisions
FOLDER = Path(__file__).parents[3] / "shared" / "schema"
NEEDS_SCHEMAS = pytest.mark.skipif(not FOLDER.is_dir(), reason="the official schemas are not at hand")

# Inside these, other rules hold: JSON Schemas and free objects.
OPAQUE = {"inputSchema", "outputSchema", "structuredContent", "_meta", "capabilities"}


@cache
def schema(revision: str) -> dict[str, Any]:
    return json.loads((FOLDER / revision / "schema.json").read_text())


def definitions(revision: str) -> dict[str, Any]:
    whole = schema(revision)
    return whole.get("$defs") or whole["definitions"]


@cache
def _validator(revision: str, definition: str) -> Any:
    whole = schema(revision)
    key = "$defs" if "$defs" in whole else "definitions"
    kind = jsonschema.Draft202012Validator if key == "$defs" else jsonschema.Draft7Validator
    return kind({"$ref": f"#/{key}/{definition}", key: whole[key]})


def check(value: Any, definition: str, revision: str) -> None:
    """Fails unless the value is valid and every member of it is defined."""
    errors = [f"{error.json_path}: {error.message}" for error in _validator(revision, definition).iter_errors(value)]
    assert errors == [], errors
    extra = list(undefined(value, {"$ref": f"#/x/{definition}"}, revision))
    assert extra == [], extra


def resolve(node: dict[str, Any], revision: str) -> dict[str, Any]:
    while "$ref" in node:
        node = definitions(revision)[node["$ref"].rpartition("/")[2]]
    return node


def undefined(value: Any, node: dict[str, Any], revision: str, path: str = "$") -> Any:
    """Paths of members that the schema does not define."""
    node = resolve(node, revision)
    if "anyOf" in node:
        fitting = [option for option in node["anyOf"] if _fits(value, option, revision)]
        assert fitting, f"{path} fits no option"
        sweeps = [list(undefined(value, option, revision, path)) for option in fitting]
        yield from min(sweeps, key=len)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from undefined(item, node.get("items", {}), revision, f"{path}[{index}]")
    elif isinstance(value, dict) and "properties" in node:
        for name, member in value.items():
            if name not in node["properties"]:
                yield f"{path}.{name}"
            elif name not in OPAQUE:
                yield from undefined(member, node["properties"][name], revision, f"{path}.{name}")


def _fits(value: Any, option: dict[str, Any], revision: str) -> bool:
    whole = schema(revision)
    key = "$defs" if "$defs" in whole else "definitions"
    return jsonschema.Draft202012Validator({**option, key: whole[key]}).is_valid(value)
