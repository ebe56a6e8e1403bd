"""Forms of strangers: fields for people, and answers held against them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from troth.gateway.forms import _KEYWORDS as KEYWORDS
from troth.gateway.forms import FIELDS, LARGEST, Field, check, fields, parse, problem

FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "description": "As in your passport", "minLength": 2},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "share": {"type": "number"},
        "agree": {"type": "boolean", "default": True},
        "mail": {"type": "string", "format": "email"},
        "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1, "maxItems": 2},
        "pets": {"type": "array", "items": {"anyOf": [{"const": "c", "title": "Cat"}, {"const": "d", "title": "Dog"}]}},
    },
    "required": ["name"],
}


def test_every_sort_of_field_is_read() -> None:
    found = {field.name: field for field in fields(FORM)}
    assert found["name"] == Field(
        name="name", title="Your name", description="As in your passport", type="string", required=True
    )
    assert (found["agree"].type, found["agree"].default) == ("boolean", True)
    assert found["colour"].options == (("r", "Red"), ("g", "Green"))
    assert found["size"].options == (("s", "Small"), ("l", "Large"))
    assert (found["tags"].type, found["tags"].options) == ("array", (("a", "a"), ("b", "b")))
    assert found["pets"].options == (("c", "Cat"), ("d", "Dog"))


@pytest.mark.parametrize(
    "content",
    [
        {"name": "Ann"},
        {"name": "Ann", "age": 7, "share": 1, "agree": False, "mail": "a@b.c"},
        {"name": "Ann", "share": 0.5, "colour": "r", "size": "l", "tags": ["a", "b"], "pets": ["c"]},
    ],
)
def test_an_answer_that_fits_is_taken(content: object) -> None:
    assert problem(FORM, content) == ""


@pytest.mark.parametrize("more", ["x", 1, 0.5, True, ["a", "b"]])
def test_a_member_that_no_field_asks_for_is_taken_unless_the_schema_forbids_it(more: object) -> None:
    content = {"name": "Ann", "more": more}
    assert problem(FORM, content) == ""
    assert problem({**FORM, "additionalProperties": True}, content) == ""
    assert "more" in problem({**FORM, "additionalProperties": False}, content)


def test_what_is_left_out_or_null_has_its_default() -> None:
    form = {"type": "object", "properties": {"name": {"type": "string", "default": "Ann"}}, "required": ["name"]}

    def checked(content: object) -> str:
        return check(Raw(msgspec.json.encode(form)), Raw(msgspec.json.encode(content)))

    assert checked({}) == checked({"name": None}) == checked({"name": "Bob", "more": None}) == ""
    assert "name" in checked({"name": 5})
    for content in ([], None, "x"):
        assert "an object" in checked(content)


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ({}, "'name' is a required property"),
        ({"name": "A"}, "name"),
        ({"name": 5}, "name"),
        ({"name": "Ann", "age": -1}, "age"),
        ({"name": "Ann", "age": 1.5}, "age"),
        ({"name": "Ann", "age": True}, "age"),
        ({"name": "Ann", "agree": "yes"}, "agree"),
        ({"name": "Ann", "mail": "nobody"}, "mail"),
        ({"name": "Ann", "colour": "Red"}, "colour"),
        ({"name": "Ann", "size": "m"}, "size"),
        ({"name": "Ann", "tags": []}, "tags"),
        ({"name": "Ann", "tags": ["x"]}, "tags.0"),
        ({"name": "Ann", "tags": ["a", "b", "a"]}, "tags"),
        ({"name": "Ann", "pets": ["Cat"]}, "pets.0"),
        ({"name": "Ann", "more": {"a": 1}}, "more"),
        ({"name": "Ann", "more": [1]}, "more.0"),
        ([], ""),
        (None, ""),
        ("x", ""),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_with_the_place(content: object, where: str) -> None:
    assert where in problem(FORM, content)
    assert problem(FORM, content)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("uri", ["https://a.b/c", "mailto:x@y.z"], ["no uri", "http:", ""]),
        ("date", ["2026-02-28"], ["2026-02-30", "20260228", "today"]),
        ("date-time", ["2026-02-28T10:00:00Z", "2026-02-28T10:00:00+01:00"], ["2026-02-28T10:00:00", "now"]),
        ("email", ["a@b.c"], ["a", "a@", "@b", "a b@c.d"]),
        ("unknown", ["anything"], []),
    ],
)
def test_formats_are_held(kind: str, good: list[str], bad: list[str]) -> None:
    schema = {"properties": {"x": {"type": "string", "format": kind}}}
    assert [problem(schema, {"x": value}) for value in good] == [""] * len(good)
    assert all(problem(schema, {"x": value}) for value in bad)


def test_schemas_are_validated_with_an_empty_registry_and_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object, **_named: object) -> None:
        raise AssertionError("something is fetched")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    remote = {"$ref": "http://127.0.0.1:9/schema.json"}
    for schema in (
        {"properties": {"x": remote}},
        {**remote, "properties": {"x": {"type": "string"}}},
        {"$schema": "http://127.0.0.1:9/meta.json", "properties": {"x": {"type": "string"}}},
        {"$dynamicRef": "http://127.0.0.1:9/#x", "properties": {"x": {"type": "array", "items": remote}}},
    ):
        assert isinstance(problem(schema, {"x": "y"}), str)


def test_schemas_of_strangers_are_bounded_in_depth_and_time() -> None:
    deep: Any = {"type": "string"}
    for _ in range(500):
        deep = {"allOf": [deep]}
    slow = {"type": "string", "pattern": "(a+)+$", "format": "regex"}
    loop = {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}
    start = time.process_time()
    assert problem({"properties": {"x": deep, "y": slow, "z": loop}}, {"x": "", "y": "a" * 5000 + "!", "z": ""}) == ""
    for mail in ("a" * 100_000, "@" * 100_000, "a@" * 50_000):
        assert problem({"properties": {"x": {"type": "string", "format": "email"}}}, {"x": mail})
    many = {"properties": {f"f{number}": {"type": "string", "enum": ["v"] * 5000} for number in range(2000)}}
    assert len(fields(many)) == FIELDS
    assert problem(many, {"f0": "v"}) == ""
    assert time.process_time() - start < 5
    assert "larger than" in check(Raw(b'"' + b"x" * LARGEST + b'"'), Raw(b"{}"))
    assert "no JSON" in check(Raw(b'"\\ud800"'), Raw(b"{}"))


def test_a_hook_for_hosts_answers_takes_raw_json() -> None:
    schema = Raw(json.dumps(FORM).encode())
    assert check(schema, Raw(b'{"name":"Ann"}')) == ""
    assert check(schema, Raw(b'{"name":1}')).startswith("name: ")


def test_words_of_strangers_are_cleaned() -> None:
    found = problem({"properties": {"\x1b[31m": {"type": "integer"}}}, {"\x1b[31m": "\x1b[2J" * 200})
    assert found.isprintable()
    assert len(found) < 500


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        (Field(name="x", title="x", type="boolean"), " Yes ", True),
        (Field(name="x", title="x", type="boolean"), "n", False),
        (Field(name="x", title="x", type="boolean"), "perhaps", "perhaps"),
        (Field(name="x", title="x", type="integer"), "7", 7),
        (Field(name="x", title="x", type="integer"), "7.0", 7),
        (Field(name="x", title="x", type="integer"), "7.5", 7.5),
        (Field(name="x", title="x", type="integer"), "seven", "seven"),
        (Field(name="x", title="x", type="number"), "1e2", 100.0),
        (Field(name="x", title="x"), " as it is ", " as it is "),
        (Field(name="x", title="x", options=(("s", "Small"),)), "Small", "s"),
        (Field(name="x", title="x", options=(("s", "Small"),)), "s", "s"),
        (Field(name="x", title="x", type="array", options=(("c", "Cat"),)), "Cat, d,", ["c", "d"]),
    ],
)
def test_what_a_person_types_becomes_a_value(field: Field, text: str, value: object) -> None:
    found = parse(field, text)
    assert (found, type(found)) == (value, type(value))


WORDS = [
    *KEYWORDS,
    "type",
    "properties",
    "required",
    "enumNames",
    "oneOf",
    "anyOf",
    "title",
    "items",
    "$ref",
    "pattern",
]
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "properties",
                    "required",
                    "enum",
                    "enumNames",
                    "oneOf",
                    "anyOf",
                    "const",
                    "title",
                    "items",
                    "format",
                    "minLength",
                    "maxLength",
                    "minimum",
                    "maximum",
                    "minItems",
                    "maxItems",
                    "default",
                    "$ref",
                    "pattern",
                    "x",
                ]
            ),
            inner | st.sampled_from(WORDS),
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=100, deadline=None)
@given(anything, anything)
def test_no_schema_and_no_answer_make_it_fail(schema: object, content: object) -> None:
    for value in ({"properties": {"x": schema, "y": schema}}, schema):
        assert isinstance(problem(value, {"x": content}), str)
        for field in fields(value):
            msgspec.json.encode(field)
            parse(field, "x")


def test_jsonschema_is_imported_at_the_first_answer_only() -> None:
    code = "import sys, troth.gateway.forms; sys.exit('jsonschema' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
