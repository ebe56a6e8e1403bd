"""The published schemas: made from the keys, and of one mind with the reader."""

from __future__ import annotations

import json
import re
import runpy
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import config_samples as samples
import pytest
from jsonschema import Draft202012Validator

ROOT = Path(__file__).parents[3]


def validator(name: str) -> Draft202012Validator:
    value = json.loads((resources.files("troth.gateway.config") / name).read_text("utf-8"))
    Draft202012Validator.check_schema(value)
    return Draft202012Validator(value)


MCP, TROTH = validator("mcp.schema.json"), validator("troth.schema.json")


def plain(text: str) -> Any:
    """JSON of a sample, whose comments stand on lines of their own."""
    text = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
    return json.loads(re.sub(r",(?=\s*[}\]])", "", text))


def test_the_schemas_in_the_package_are_made_from_the_keys() -> None:
    made = runpy.run_path(str(ROOT / "scripts/generate_schema.py"))["configurations"]()
    assert {path.name: path.read_text("utf-8") for path in made} == {path.name: text for path, text in made.items()}


@pytest.mark.parametrize("name", samples.GOOD_JSON)
def test_the_schema_takes_every_good_json(name: str) -> None:
    assert [error.message for error in MCP.iter_errors(plain(samples.GOOD_JSON[name]))] == []


@pytest.mark.parametrize("name", samples.GOOD_TOML)
def test_the_schema_takes_every_good_toml(name: str) -> None:
    assert [error.message for error in TROTH.iter_errors(tomllib.loads(samples.GOOD_TOML[name]))] == []


@pytest.mark.parametrize("sample", [item for item in samples.FAULTY_JSON if item.schema], ids=lambda item: item.name)
def test_the_schema_refuses_every_faulty_json(sample: samples.Faulty) -> None:
    assert not MCP.is_valid(plain(sample.text))


@pytest.mark.parametrize("sample", [item for item in samples.FAULTY_TOML if item.schema], ids=lambda item: item.name)
def test_the_schema_refuses_every_faulty_toml(sample: samples.Faulty) -> None:
    assert not TROTH.is_valid(tomllib.loads(sample.text))
