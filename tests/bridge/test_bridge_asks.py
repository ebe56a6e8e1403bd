"""What hosts can be asked, and what upstreams are told of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.bridge import Frame, read
from troth.bridge.asks import (
    BROKER,
    FORM,
    HOST,
    NOTHING,
    ROOTS,
    ROOTS_CHANGED,
    ROWS,
    SAMPLING,
    SAMPLING_TOOLS,
    URL,
    Asks,
    asks_of,
    client_capabilities,
    missing,
    narrowed,
    of_several,
    required,
)
from troth.capabilities import read_client
from troth.register import Era, register

REVISIONS = register().revisions
MODERN = register().newest(Era.MODERN)
OLD = register().newest(Era.LEGACY)
OLDEST = REVISIONS[0]
FORMS_ONLY = REVISIONS[2]

asks_sets = st.frozensets(st.sampled_from(sorted(ROWS)))

ASKS: list[tuple[Any, str, set[str]]] = [
    ({}, OLD, set()),
    (None, OLD, set()),
    ({"elicitation": {}}, OLD, {FORM}),
    ({"elicitation": {}}, MODERN, {FORM}),
    ({"elicitation": {}}, FORMS_ONLY, {FORM}),
    ({"elicitation": {"url": {}}}, FORMS_ONLY, {FORM}),
    ({"elicitation": {}}, OLDEST, set()),
    ({"elicitation": {"form": {"applyDefaults": True}}}, OLD, {FORM}),
    ({"elicitation": {"url": {}}}, OLD, {URL}),
    ({"elicitation": {"form": {}, "url": {}}}, MODERN, {FORM, URL}),
    ({"elicitation": {"voice": {}}}, OLD, set()),
    ({"elicitation": True}, OLD, set()),
    ({"roots": {}}, OLDEST, {ROOTS}),
    ({"roots": {"listChanged": True}}, OLD, {ROOTS, ROOTS_CHANGED}),
    ({"roots": {"listChanged": False}}, OLD, {ROOTS}),
    ({"roots": {"listChanged": True}}, MODERN, {ROOTS}),
    ({"sampling": {}}, OLDEST, {SAMPLING}),
    ({"sampling": {"tools": {}, "context": {}}}, OLD, {SAMPLING, SAMPLING_TOOLS}),
    ({"sampling": {"tools": {}}}, FORMS_ONLY, {SAMPLING}),
    ({"sampling": None, "tasks": {}, "extensions": {"a/b": {}}}, MODERN, set()),
]


@pytest.mark.behaviour("CAP-08-S1", "CAP-08-B1", "CAP-04-S1", "CAP-06-S1")
@pytest.mark.parametrize(("declared", "revision", "asks"), ASKS)
def test_a_host_can_be_asked_what_it_declared_and_its_revision_defines(
    declared: Any, revision: str, asks: set[str]
) -> None:
    assert asks_of(read_client(declared, revision)) == asks


@pytest.mark.behaviour("CAP-02-C1", "CAP-04-C1", "CAP-07-C1")
def test_hosts_that_declare_nothing_declare_nothing_upstream() -> None:
    for revision in REVISIONS:
        assert client_capabilities(narrowed(NOTHING, ask=(HOST, BROKER)), revision) == {}


@pytest.mark.behaviour("CAP-02-C3", "CAP-03-C1", "CAP-08-C1", "CAP-04-C4")
def test_every_row_is_declared_in_the_way_of_the_revision() -> None:
    assert client_capabilities(ROWS, MODERN) == {
        "elicitation": {"form": {}, "url": {}},
        "roots": {},
        "sampling": {"tools": {}},
    }
    assert client_capabilities(ROWS, OLD) == {
        "elicitation": {"form": {}, "url": {}},
        "roots": {"listChanged": True},
        "sampling": {"tools": {}},
    }
    assert client_capabilities(ROWS, FORMS_ONLY) == {
        "elicitation": {},
        "roots": {"listChanged": True},
        "sampling": {},
    }
    assert client_capabilities(ROWS, OLDEST) == {"roots": {"listChanged": True}, "sampling": {}}
    assert client_capabilities(frozenset({URL}), FORMS_ONLY) == {}


@pytest.mark.behaviour("CAP-05-C1", "CAP-10-C1")
@given(asks_sets, st.sampled_from(REVISIONS))
def test_rule_26_what_an_upstream_is_told_reads_back_as_what_may_be_asked_and_never_names_a_context(
    asks: Asks, revision: str
) -> None:
    told = client_capabilities(asks, revision)
    assert asks_of(read_client(told, revision)) <= asks
    assert "context" not in told.get("sampling", {})  # type: ignore[operator]
    assert "tasks" not in told
    told["roots"] = told["sampling"] = 1
    assert client_capabilities(asks, revision) != told


@pytest.mark.behaviour("CAP-09-C1")
def test_rule_4_a_visit_to_an_address_is_declared_only_where_one_principal_is_behind_it() -> None:
    assert narrowed(frozenset({FORM, URL})) == {FORM, URL}
    assert of_several(frozenset({FORM, URL})) == {FORM}


@pytest.mark.behaviour("CAP-04-C3")
def test_no_host_is_asked_by_an_upstream_whose_session_serves_everybody() -> None:
    assert narrowed(ROWS, pooled=True) == NOTHING
    assert narrowed(ROWS, answers=frozenset({ROOTS, URL}), pooled=True) == {ROOTS}


def test_the_operator_says_whom_an_upstream_may_ask() -> None:
    assert narrowed(ROWS, ask=()) == NOTHING
    assert narrowed(frozenset({FORM}), ask=(BROKER,), answers=frozenset({SAMPLING})) == {SAMPLING}
    assert narrowed(frozenset({FORM}), ask=(HOST, BROKER), answers=frozenset({SAMPLING})) == {FORM, SAMPLING}


@pytest.mark.behaviour("CAP-03-C2")
def test_changes_of_roots_are_declared_only_by_whoever_has_the_roots() -> None:
    configured = frozenset({ROOTS, ROOTS_CHANGED})
    assert narrowed(frozenset({ROOTS}), answers=configured) == {ROOTS}
    assert narrowed(configured) == configured
    assert narrowed(NOTHING, answers=configured) == configured


def test_what_is_missing_is_named_by_its_path() -> None:
    assert missing(frozenset({SAMPLING, SAMPLING_TOOLS}), frozenset({SAMPLING})) == ("sampling.tools",)
    assert missing(frozenset({SAMPLING_TOOLS, SAMPLING}), NOTHING) == ("sampling", "sampling.tools")


@pytest.mark.parametrize(
    ("data", "paths"),
    [
        ({"requiredCapabilities": {"sampling": {"tools": {}}}}, ("sampling", "sampling.tools")),
        ({"requiredCapabilities": {"elicitation": {}}}, ("elicitation", "elicitation.form")),
        ({"requiredCapabilities": {"extensions": {"a/b": {}}}}, ("extensions", 'extensions["a/b"]')),
        ({"requiredCapabilities": [1]}, ()),
        ({"requiredCapabilities": {"x\ny": {}}}, ()),
        ({}, ()),
        (7, ()),
        (None, ()),
    ],
)
def test_what_an_upstream_says_is_missing_is_learnt_by_path(data: Any, paths: tuple[str, ...]) -> None:
    error = {"code": -32021, "message": "m", **({} if data is None else {"data": data})}
    frame = read(json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode())
    assert isinstance(frame, Frame)
    assert required(frame, MODERN) == paths


@pytest.mark.parametrize(
    "error", [b'{"code":"x"}', b'{"code":-32021,"message":"m","data":{"requiredCapabilities":1e999}}']
)
def test_what_cannot_be_read_teaches_nothing(error: bytes) -> None:
    frame = read(b'{"jsonrpc":"2.0","id":1,"error":%s}' % error)
    assert isinstance(frame, Frame)
    assert required(frame, MODERN) == ()
