"""Plain values out of whatever authors have."""

from __future__ import annotations

import dataclasses
import enum
import json
from decimal import Decimal
from types import MappingProxyType
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from troth.results.values import MAX_DEPTH, compact, plain


class Word(enum.StrEnum):
    A = "a"


class Number(enum.IntEnum):
    ONE = 1


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "another"


class Node(msgspec.Struct):
    inner: object = None


class Model(BaseModel):
    a: int


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Word.A, "a"),
        (Number.ONE, 1),
        (Text("x"), "x"),
        ({Word.A: True}, {"a": True}),
        (MappingProxyType({"a": (1, 2)}), {"a": [1, 2]}),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Decimal("1.5"), "1.5"),
        (b"x", "eA=="),
        ({"a", "c", "b"}, ["a", "b", "c"]),
        (Node(Node({"a": Model(a=1)})), {"inner": {"inner": {"a": {"a": 1}}}}),
        pytest.param(10**4000, 10**4000, id="large"),
        (-0.0, -0.0),
    ],
)
def test_values_become_plain(value, expected):
    result = plain(value, "v")

    assert result == expected
    assert type(result) is type(expected)
    assert json.loads(json.dumps(result)) == expected


@dataclasses.dataclass
class Bad:
    x: object


class Broken:
    def model_dump(self, **_: object) -> object:
        raise RuntimeError("no")


def itself():
    value: list[object] = []
    value.append(value)
    return value


def itself_as_struct():
    node = Node()
    node.inner = node
    return node


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (Bad(float("nan")), ValueError, r"v\.x is nan"),
        (Node(float("inf")), ValueError, r"v\.inner is inf"),
        (object(), TypeError, "v is of type object, which has no JSON form"),
        (Node(object()), TypeError, "v is of type object, which has no JSON form"),
        (Bad, TypeError, "v is of type type"),
        (Model, TypeError, "v is of type ModelMetaclass"),
        ({1: 2}, TypeError, "v has the key 1; keys of a JSON object must be strings"),
        ({"k" * 99 + "\ud800": 2}, ValueError, "v has a lone surrogate at index 99"),
        ({("k" * 99, 1): 2}, TypeError, r"kkk\.\.\.;"),
        ([0, "\udc80"], ValueError, r"v\[1\] has a lone surrogate at index 0"),
        pytest.param(10**5000, ValueError, "v is an integer of more than 14000 bits", id="huge"),
        (Broken(), ValueError, r"v cannot be dumped: Broken\.model_dump failed: no"),
        (itself(), ValueError, f"nested deeper than {MAX_DEPTH} levels"),
        (itself_as_struct(), ValueError, f"nested deeper than {MAX_DEPTH} levels"),
    ],
)
def test_what_has_no_json_form_is_refused_with_its_place(value, error, message):
    with pytest.raises(error, match=message):
        plain(value, "v")


def test_a_place_is_fit_to_print():
    with pytest.raises(ValueError, match=r"^v\['\\x1b\[31m'\]\.a\[0\] is nan"):
        plain({"\x1b[31m": {"a": [float("nan")]}}, "v")
    with pytest.raises(ValueError, match=r"^v(\['k{56}\.\.\.\]){3}.{14}\.\.\. is nan"):
        plain({"k" * 99: {"k" * 98: {"k" * 97: {"k" * 96: {"b c": float("nan")}}}}}, "v")
    with pytest.raises(TypeError, match="v has the key int; keys"):
        plain({10**5000: 1}, "v")


def test_compact_json_is_one_line_in_the_order_of_the_author():
    assert compact({"b": "ü\n", "a": [1.5, None]}) == '{"b":"ü\\n","a":[1.5,null]}'


plain_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), inner)
    ),
)


@given(value=plain_values)
def test_plain_values_survive_and_their_text_reads_back(value):
    assert plain(value, "v") == value
    assert json.loads(compact(plain(value, "v"))) == value
