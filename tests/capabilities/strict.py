"""Strict validation of capability objects against the official schemas: types, and no member without a definition.

A plain validation is not enough: the schemas close no object, so a member that a revision does not define passes.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

SCHEMAS = Path(__file__).parents[2] / "../shared/schema"

needs_schemas = pytest.mark.skipif(not SCHEMAS.exists(), reason="the official schemas are not in ../shared/schema")


@cache
def _schema(revision: str) -> dict[str, Any]:
    return json.loads((SCHEMAS / revision / "schema.json").read_text("utf-8"))


def problems(capabilities: object, side: str, revision: str) -> list[str]:
    """What the schema of ``revision`` has against ``capabilities`` of ``side``."""
    schema = _schema(revision)
    place = "$defs" if "$defs" in schema else "definitions"
    name = f"{side.title()}Capabilities"
    root = {**schema, "$ref": f"#/{place}/{name}"}
    validator = jsonschema.validators.validator_for(schema)(root)
    found = [error.message for error in validator.iter_errors(capabilities)]
    return [*found, *_undefined(capabilities, schema[place][name], schema, "")]


def _undefined(value: Any, schema: dict[str, Any], root: dict[str, Any], path: str) -> list[str]:
    if not isinstance(value, dict) or "$ref" in schema or schema.get("additionalProperties"):
        return []
    found = []
    for name, inner in value.items():
        if name in schema["properties"]:
            found += _undefined(inner, schema["properties"][name], root, f"{path}.{name}")
        else:
            found.append(f"{path}.{name} is not defined")
    return found
