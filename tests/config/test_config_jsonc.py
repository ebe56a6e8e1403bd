"""JSON with comments: what it says, and where each member stands."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.config import Document, Fault, read_json, read_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


def read(text: str) -> Document:
    document = read_json("a.json", text)
    assert isinstance(document, Document)
    return document


def walk(value: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    found = {path: value}
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        found |= walk(item, (*path, str(key)))
    return found


@given(VALUES, st.sampled_from([None, 2]))
def test_the_span_of_every_member_holds_its_value(value: Any, indent: int | None) -> None:
    document = read(json.dumps(value, indent=indent))

    members = walk(value)

    assert document.value == value
    assert document.spans.keys() == members.keys()
    for path, span in document.spans.items():
        assert json.loads(document.text[span.start : span.end]) == members[path]
    assert document.twice == ()


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    assert isinstance(read_json("a.json", text), Document | Fault)


def test_comments_and_trailing_commas_move_nothing() -> None:
    text = '{ // "a": {\n  "b": [1, /* , */ "//",], "c": {},\n}'
    document = read(text)

    assert document.value == {"b": [1, "//"], "c": {}}
    assert (document.line(("b",)), document.line(("b", "1")), document.line(("d",))) == (2, 2, None)
    span = document.spans[("b",)]
    assert (text[span.key : span.key + 3], text[span.start : span.end]) == ('"b"', '[1, /* , */ "//",]')


def test_members_that_stand_twice_are_told_with_both_places() -> None:
    document = read('{"a": {"x": 1},\n "\\u0061": {"x": 1, "y": 2,\n "y": 3}}')

    places = [(path, document.line_at(first), document.line_at(again)) for path, first, again in document.twice]

    assert places == [(("a",), 1, 2), (("a", "y"), 2, 3)]


def test_deep_nesting_is_refused() -> None:
    fault = read_json("a.json", '{"a":' * 200_000)
    assert isinstance(fault, Fault)
    assert "not usable JSON" in str(fault)


def test_a_file_of_no_possible_name_is_refused() -> None:
    fault = read_text("a\0b")
    assert isinstance(fault, Fault)
    assert "no file has such a name" in str(fault)


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Fault("a.json", "", "is empty"), "a.json: is empty."),
        (Fault("a.json", "x.y", "is empty", "fill it", 3), "a.json:3: x.y: is empty; fill it."),
        (Fault("a.json", "x", "is empty", "", 3, 4), "a.json:3:4: x: is empty."),
    ],
)
def test_a_fault_says_where_what_and_how_to_mend_it(fault: Fault, text: str) -> None:
    assert str(fault) == text
