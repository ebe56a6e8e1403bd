"""Headers that repeat the body of a modern request: compiled, made, checked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from troth.bridge import Bad, Frame, read
from troth.bridge.headers import (
    NAMED,
    Mirror,
    Plan,
    decoded,
    disagreement,
    encoded,
    mirrored,
    plan,
    without_annotations,
)
from troth.register import Era, register

NEW = register().newest(Era.MODERN)
REGION = {"type": "string", "x-mcp-header": "Region"}
SCHEMA = {
    "type": "object",
    "properties": {
        "region": REGION,
        "limit": {"type": "integer", "x-mcp-header": "Limit"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
        "options": {"type": "object", "properties": {"tenant": {"type": "string", "x-mcp-header": "X.Tenant"}}},
        "query": {"type": "string"},
    },
}


def made(schema: object) -> Plan:
    found = plan(schema)
    assert isinstance(found, Plan)
    return found


def call(arguments: object, name: str = "sql") -> Frame:
    params = {"name": name, "arguments": arguments}
    frame = read(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode())
    assert isinstance(frame, Frame)
    return frame


def headers_of(frame: Frame, found: Plan | None = None) -> dict[str, str]:
    parts = frame.parts or {}
    made = {"MCP-Protocol-Version": NEW, "Mcp-Method": frame.method}
    name = parts.get(NAMED.get(frame.method, ""))
    if name is not None:
        made["Mcp-Name"] = encoded(json.loads(bytes(name)))
    if found is not None:
        made |= mirrored(found, parts.get("arguments"))
    return {name.lower(): value for name, value in made.items()}


# The plan


def test_rule_12_a_plan_names_each_header_and_the_way_to_its_argument():
    assert set(made(SCHEMA).mirrors) == {
        Mirror("Mcp-Param-Region", ("region",)),
        Mirror("Mcp-Param-Limit", ("limit",)),
        Mirror("Mcp-Param-Dry-Run", ("dry",)),
        Mirror("Mcp-Param-X.Tenant", ("options", "tenant")),
    }


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object", "properties": {"a": {"type": "string", "description": "x-mcp-header"}}},
        {"properties": {"x-mcp-header": {"type": "number"}}},
        {"properties": {"a": {"const": {"x-mcp-header": "A"}, "default": {"x-mcp-header": 1}, "enum": [REGION]}}},
        {"examples": [REGION], "x-vendor": {"x-mcp-header": "A"}},
        {"properties": 7, "oneOf": {"a": "x-mcp-header"}, "items": "\u0001"},
        True,
        None,
        "x-mcp-header",
        ["x-mcp-header"],
    ],
)
def test_a_tool_without_annotations_has_no_plan(schema):
    assert plan(schema) is None
    assert json.loads(bytes(without_annotations(schema))) == schema


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"x-mcp-header": "A", "type": "string"}, "only properties"),
        *[
            ({"properties": {"a": {"type": "string", "x-mcp-header": name}}}, "no name")
            for name in ("", "a b", "a\r\nb", "é", "a:b", 7, None, ["A"])
        ],
        *[
            ({"properties": {"a": {**sort, "x-mcp-header": "A"}}}, "string, an integer or a boolean")
            for sort in ({"type": "number"}, {"type": "object"}, {"type": ["string", "null"]}, {}, {"type": "null"})
        ],
        ({"properties": {"a": REGION, "b": {"type": "string", "x-mcp-header": "rEGION"}}}, "same header"),
        *[
            ({"properties": {"a": {keyword: value}}}, "only properties")
            for keyword, value in {
                "items": REGION,
                "not": REGION,
                "if": REGION,
                "additionalProperties": REGION,
                "oneOf": [{"type": "null"}, REGION],
                "items ": None,
                "prefixItems": [REGION],
                "$defs": {"x": REGION},
                "patternProperties": {".": REGION},
            }.items()
            if value is not None
        ],
        ({"properties": {"a": {"items": [REGION]}}}, "only properties"),
        ({"$defs": {"x": {"properties": {"a": REGION}}}}, "only properties"),
        ({"allOf": [{"properties": {"a": REGION}}]}, "only properties"),
    ],
)
def test_rule_12_an_invalid_annotation_is_refused_with_its_reason_and_can_be_taken_out(schema, words):
    found = plan(schema)

    assert isinstance(found, Bad)
    assert words in found.reason
    assert plan(without_annotations(schema)) is None


def test_an_annotation_is_found_however_it_is_spelled():
    raw = Raw(b'{"properties":{"a":{"type":"str\\u0069ng","x\\u002dmcp-header":"A","maximum":1e999}}}')

    assert made(raw).mirrors == (Mirror("Mcp-Param-A", ("a",)),)
    assert bytes(without_annotations(raw)) == b'{"properties":{"a":{"type":"str\\u0069ng","maximum":1e999}}}'


def test_taking_annotations_out_leaves_all_else():
    schema = {
        "properties": {"x-mcp-header": {"type": "string"}, "a": {"items": [{"x-mcp-header": "A", "b": 1}, True]}},
        "anyOf": [{"x-mcp-header": "B"}],
        "not": {"x-mcp-header": "C", "c": 1},
        "const": {"x-mcp-header": "D"},
        "items": "x-mcp-header",
    }

    assert json.loads(bytes(without_annotations(schema))) == {
        "properties": {"x-mcp-header": {"type": "string"}, "a": {"items": [{"b": 1}, True]}},
        "anyOf": [{}],
        "not": {"c": 1},
        "const": {"x-mcp-header": "D"},
        "items": "x-mcp-header",
    }


# What goes out


def test_arguments_are_repeated_as_the_specification_spells_them():
    arguments = {"region": "us-west1", "limit": 42, "dry": True, "options": {"tenant": "Ünion"}, "query": "secret"}

    assert mirrored(made(SCHEMA), Raw(json.dumps(arguments).encode())) == {
        "Mcp-Param-Region": "us-west1",
        "Mcp-Param-Limit": "42",
        "Mcp-Param-Dry-Run": "true",
        "Mcp-Param-X.Tenant": "=?base64?w5xuaW9u?=",
    }


@pytest.mark.parametrize(
    ("number", "words"),
    [
        ("42", "42"),
        ("-7", "-7"),
        ("-0", "0"),
        ("42.0", "42"),
        ("4.2e1", "42"),
        ("1.5", "1.5"),
        ("9007199254740993", "9007199254740993"),
        ("1e999", "1" + "0" * 999),
        ("false", "false"),
        ("null", None),
        ("[1]", None),
        ('{"a":1}', None),
        ("1e9999999", None),
        ("0." + "1" * 80, None),
    ],
)
def test_values_that_are_no_text_have_one_spelling_or_none(number, words):
    found = mirrored(made(SCHEMA), Raw(f'{{"limit":{number}}}'.encode()))

    assert found == ({} if words is None else {"Mcp-Param-Limit": words})


@pytest.mark.parametrize("arguments", [None, b"{}", b"7", b"[]", b'{"options":7}', b'{"region":null}', b'"x"'])
def test_arguments_that_are_not_there_have_no_header(arguments):
    assert mirrored(made(SCHEMA), None if arguments is None else Raw(arguments)) == {}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("", ""),
        ("=?base64?", "=?base64?"),
    ],
)
def test_values_are_encoded_as_in_the_specification(value, words):
    assert encoded(value) == words
    assert decoded(words) == value


@given(st.text())
def test_every_text_comes_back_from_a_header(value):
    words = encoded(value)

    assert words.isascii()
    assert words.isprintable()
    assert words == words.strip()
    assert decoded(words) == value


@pytest.mark.parametrize("value", ["é", "a\nb", "a\x00", "=?base64?x?=", "=?base64?/w==?=", "=?base64?é?=", "\x7f"])
def test_a_malformed_value_stands_for_nothing(value):
    assert decoded(value) is None


# What comes in

texts = st.text(st.characters(exclude_categories=["Cs", "Nd"]))
scalars = st.one_of(texts, st.integers(-(2**53), 2**53), st.booleans(), st.none())
arguments = st.fixed_dictionaries(
    {},
    optional={
        "region": scalars,
        "limit": scalars,
        "dry": scalars,
        "options": st.one_of(scalars, st.fixed_dictionaries({}, optional={"tenant": scalars})),
    },
)


@given(arguments, st.text(min_size=1))
def test_the_headers_that_are_made_of_a_body_agree_with_it(values, name):
    frame, found = call(values, name), made(SCHEMA)

    assert disagreement(frame, NEW, headers_of(frame, found), found) == ""


@given(arguments, arguments)
def test_the_headers_of_another_body_do_not(one, other):
    found = made(SCHEMA)
    mine, theirs = headers_of(call(one), found), headers_of(call(other), found)

    assert (disagreement(call(one), NEW, theirs, found) == "") == (mine == theirs)


@pytest.mark.parametrize("name", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Param-Region"])
@pytest.mark.parametrize(
    ("change", "words"),
    [(None, "missing"), ("other", "differ"), ("a\nb", "malformed"), ("", "differ"), ("é", "malformed")],
)
def test_rule_12_a_header_that_is_missing_malformed_or_different_is_named_without_its_value(name, change, words):
    frame, found = call({"region": "secret"}), made(SCHEMA)
    headers: dict[str, Any] = headers_of(frame, found)
    del headers[name.lower()]
    if change is not None:
        headers[name.lower()] = change

    reason = disagreement(frame, NEW, headers, found)

    assert name in reason
    assert words in reason
    assert "secret" not in reason
    assert "other" not in reason


@pytest.mark.parametrize("header", ["42", "42.0", "4.2e1", "=?base64?NDI=?="])
def test_numbers_are_compared_as_numbers(header):
    frame, found = call({"limit": 42}), made(SCHEMA)

    assert disagreement(frame, NEW, headers_of(frame) | {"mcp-param-limit": header}, found) == ""


@pytest.mark.parametrize("header", ["43", "42.5", "", "x", "4.2e9999", "0x2a", " 42 ", "4" * 100, "true"])
def test_other_numbers_are_others(header):
    frame, found = call({"limit": 42}), made(SCHEMA)

    assert "differ" in disagreement(frame, NEW, headers_of(frame) | {"mcp-param-limit": header}, found)


def test_texts_are_compared_as_texts():
    frame, found = call({"region": "42", "dry": False}), made(SCHEMA)
    headers = headers_of(frame, found)

    assert "Region" in disagreement(frame, NEW, headers | {"mcp-param-region": "42.0"}, found)
    assert "Dry-Run" in disagreement(frame, NEW, headers | {"mcp-param-dry-run": "False"}, found)


@pytest.mark.parametrize("values", [{}, {"region": None}, {"region": ["x"]}, 7, None])
def test_a_header_whose_argument_is_not_there_disagrees(values):
    frame, found = call(values), made(SCHEMA)
    headers = headers_of(frame)

    assert disagreement(frame, NEW, headers, found) == ""
    assert "Region" in disagreement(frame, NEW, headers | {"mcp-param-region": "x"}, found)
    assert disagreement(frame, NEW, headers | {"mcp-param-region": "x"}) == ""


def test_arguments_that_could_be_read_in_two_ways_agree_with_no_header():
    line = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"region":"x","region":"y"}}}'
    )
    frame = read(line)
    assert isinstance(frame, Frame)
    found = made(SCHEMA)

    assert "twice" in disagreement(frame, NEW, headers_of(frame) | {"mcp-param-region": "y"}, found)
    assert mirrored(found, (frame.parts or {})["arguments"]) == {}


def test_a_request_without_params_needs_only_its_method():
    frame = read(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
    bare = read(b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}')
    assert isinstance(frame, Frame)
    assert isinstance(bare, Frame)
    headers = {"mcp-protocol-version": NEW, "mcp-method": "tools/list", "mcp-name": "x"}

    assert disagreement(frame, NEW, headers) == ""
    assert "Mcp-Name" in disagreement(bare, NEW, {"mcp-protocol-version": NEW, "mcp-method": "tools/call"})
    assert disagreement(bare, NEW, headers | {"mcp-method": "tools/call"}) != ""
    assert disagreement(bare, NEW, headers | {"mcp-method": "tools/call", "mcp-name": ""}, made(SCHEMA)) == ""
