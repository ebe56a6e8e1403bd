import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.audit.wire.decode import DEPTH, VALUES, Decoded, message

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON_VALUES))
def test_every_json_object_survives(value):
    text = json.dumps(value).encode()
    assert message(text) == Decoded(value, "")
    assert json.dumps(message(text).value) == json.dumps(value)


@given(st.binary())
def test_no_bytes_raise(data):
    value, problem = message(data)
    assert (value is None) == bool(problem)
    assert problem.isprintable()
    assert len(problem) < 400


def nested(levels, brackets):
    return brackets[0] * levels + brackets[1] * levels


@pytest.mark.parametrize("brackets", [(b"[", b"]"), (b'{"a":[', b"]}")])
def test_nesting_has_a_limit(brackets):
    per = brackets[0].count(b"[") + brackets[0].count(b"{")
    assert message(nested(DEPTH // per, brackets)).problem == ""
    for levels in (DEPTH // per + 1, 100_000):
        decoded = message(nested(levels, brackets))
        assert decoded.value is None
        assert decoded.problem.startswith(f"JSON nested too deep (more than {DEPTH} levels): ")


def test_the_number_of_values_has_a_limit():
    assert message(b"[" + b"0," * (VALUES - 2) + b"0]").problem == ""
    assert message(b"[" + b"0," * VALUES + b"0]").problem.startswith(f"JSON of more than {VALUES} values: [0,0,")


def test_many_brackets_side_by_side_are_not_deep():
    value = [[] for _ in range(1000)]
    assert message(json.dumps(value).encode()) == Decoded(value, "")
    assert message(json.dumps("[" * 1000).encode()) == Decoded("[" * 1000, "")


REFUSED = [
    "1e400",
    "-Infinity",
    "9" * 5000,
    "\ufeff{}",
    "{'a': 1}",
    '"\\ud8',
    '["\\ud800", 1e400]',
    '["\\ud800", NaN]',
    '\ufeff"\\ud800"',
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_json_does_not_allow_is_refused(text):
    decoded = message(text.encode())
    assert decoded.value is None
    assert decoded.problem.startswith("no JSON (")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"\\ud800"', "\ufffd"),
        ('"\\ud83d\\u0041"', "\ufffdA"),
        ('"\\uDC00\\ud83d\\uDE00"', "\ufffd\U0001f600"),
        ('{"\\ud800": ["\\ud800", 1, 0.5, null]}', {"\ufffd": ["\ufffd", 1, 0.5, None]}),
    ],
)
def test_a_surrogate_without_its_pair_is_replaced_wherever_it_stands(text, value):
    assert message(text.encode()) == Decoded(value, "")


def test_big_numbers_stay_exact():
    assert message(b"[%d, -0.0]" % 10**4000).value == [10**4000, 0.0]
    assert math.copysign(1, message(b"-0.0").value) == -1
