"""Messages of our own, as lines."""

from __future__ import annotations

import json

import pytest
from bridge_json import is_one_line, strict
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from troth.bridge import Frame, Kind, ask, error_line, notification_line, read, request_line, result_line, rewrite

values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=8,
)
objects = st.dictionaries(st.text(), values, max_size=3)
ids = st.one_of(st.integers(), st.text(max_size=20))


def value(line: bytes):
    assert is_one_line(line)
    return json.loads(line)


@given(ids, objects)
def test_a_result_is_one_line_with_the_id_and_the_members_that_were_given(identity, result):
    assert value(result_line(identity, result)) == {"jsonrpc": "2.0", "id": identity, "result": result}


@given(st.one_of(st.none(), ids), st.integers(-(2**31), 2**31), st.text(), values)
def test_an_error_is_one_line_and_has_data_only_where_some_is_given(identity, code, message, data):
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})

    assert value(error_line(identity, code, message, data)) == {"jsonrpc": "2.0", "id": identity, "error": error}


@given(st.text(), st.one_of(st.none(), objects))
def test_a_notification_is_one_line_without_an_id(method, params):
    expected = {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})

    assert value(notification_line(method, params)) == expected


@given(ids, st.text(), st.one_of(st.none(), objects))
def test_a_request_is_one_line_with_an_id(identity, method, params):
    expected = {"jsonrpc": "2.0", "id": identity, "method": method} | ({} if params is None else {"params": params})

    assert value(request_line(identity, method, params)) == expected


def test_members_out_of_a_frame_stay_as_they_came():
    line = result_line(1, {"count": Raw(b"1e999"), "deep": [Raw(b"9007199254740993.10")]})

    assert strict(line)["result"] == {"count": ("1e999",), "deep": [("9007199254740993.10",)]}


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (result_line("a", {}), Kind.RESPONSE),
        (error_line(1, -32603, "x"), Kind.ERROR),
        (notification_line("notifications/x"), Kind.NOTIFICATION),
        (request_line(1, "ping"), Kind.REQUEST),
    ],
)
def test_whoever_reads_a_frame_reads_ours(line, kind):
    frame = read(line)

    assert isinstance(frame, Frame)
    assert frame.kind is kind


def test_a_question_of_ours_gets_its_id_when_it_is_written():
    asked = ask("tools/list", {"cursor": "c", "_meta": {"a": 1}})

    assert value(rewrite(asked, id=4, meta={"b": 2})) == {
        "jsonrpc": "2.0",
        "id": 4,
        "method": "tools/list",
        "params": {"cursor": "c", "_meta": {"a": 1, "b": 2}},
    }
    assert value(rewrite(ask("ping"), id=5)) == {"jsonrpc": "2.0", "id": 5, "method": "ping"}
