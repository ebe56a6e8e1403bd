"""Errors of upstreams on their way to hosts of other revisions, and what the gateway refuses by itself."""

from __future__ import annotations

import json

import pytest
from bridge_json import strict
from hypothesis import given
from hypothesis import strategies as st

from troth.bridge import ErrorValue, Frame, error_line, read
from troth.bridge.errors import (
    HEADER_MISMATCH,
    INTERNAL,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    RESOURCE_NOT_FOUND,
    UNSUPPORTED_VERSION,
    URL_REQUIRED,
    code,
    http_status,
    not_supported,
    resource_not_found,
    translated,
    unknown_method,
    unknown_name,
)
from troth.register import Era, register

REVISIONS = register().revisions
LEGACY = [name for name in REVISIONS if register().era(name) is Era.LEGACY]
MODERN = [name for name in REVISIONS if register().era(name) is Era.MODERN]
PAIRS = [(source, target) for source in REVISIONS for target in REVISIONS]
OLD, NEW = LEGACY[-1], MODERN[-1]


def error(body: object) -> Frame:
    frame = read(json.dumps({"jsonrpc": "2.0", "id": 1, "error": body}).encode())
    assert isinstance(frame, Frame)
    return frame


def told(value: ErrorValue):
    """Code and data as they are on the wire."""
    body = strict(error_line(1, value.code, value.message, value.data))["error"]
    return int(body["code"].spelled), body.get("data")


@pytest.mark.behaviour("GEN-B11")
@pytest.mark.parametrize(("source", "target"), PAIRS)
@pytest.mark.parametrize("code", [-32600, -32601, -32603, -32700, -32000, -32001, -32042, -1, 0, 7, -31999])
def test_a_code_that_the_target_defines_or_nobody_does_passes_with_everything(source, target, code):
    if code == URL_REQUIRED and target != "2025-11-25":
        return
    frame = error({"code": code, "message": "words", "data": {"big": 2**80}})

    assert told(translated(frame, "tools/call", source, target)) == (code, {"big": (str(2**80),)})


@pytest.mark.parametrize("code", [error.code for error in register().errors if isinstance(error.code, int)])
@pytest.mark.parametrize(("source", "target"), PAIRS)
@pytest.mark.parametrize("method", ["tools/call", "resources/read", "resources/subscribe"])
@pytest.mark.behaviour("GEN-B11")
def test_no_host_gets_a_code_that_only_other_revisions_define(code, source, target, method):
    data = {"uri": "a", "requiredCapabilities": {}, "supported": [], "requested": "x", "elicitations": []}
    found = translated(error({"code": code, "message": "words", "data": data}), method, source, target).code

    here = {known.code for known in register().errors_at(target)}
    # In the newest revision -32002 is of the range left to implementations: it says more of a resource only. And -1 is
    # an example on the legacy pages, of no revision.
    free = {-1} | ({RESOURCE_NOT_FOUND} if method == "tools/call" else set())
    assert found not in {known.code for known in register().errors} - here - free


@pytest.mark.behaviour("CAP-16-S2")
@pytest.mark.parametrize("source", REVISIONS)
@pytest.mark.parametrize("code", [RESOURCE_NOT_FOUND, -32602])
@pytest.mark.parametrize("method", ["resources/read", "resources/subscribe", "resources/unsubscribe"])
def test_a_resource_that_is_not_found_is_said_in_the_way_of_the_host(source, code, method):
    frame = error({"code": code, "message": "no", "data": {"uri": "file:///a", "more": 1}})

    for target in REVISIONS:
        value = translated(frame, method, source, target, "fs+file:///a")
        expected = RESOURCE_NOT_FOUND if target in LEGACY else -32602
        assert told(value) == (expected, {"uri": "fs+file:///a", "more": ("1",)})


@pytest.mark.behaviour("CAP-16-S2")
def test_a_resource_that_is_not_found_gets_the_uri_where_the_upstream_left_it_out():
    bare = error({"code": RESOURCE_NOT_FOUND, "message": "no"})
    brief = error({"code": -32602, "message": "no"})

    assert told(translated(bare, "resources/read", OLD, NEW, "a:b")) == (-32602, {"uri": "a:b"})
    assert told(translated(bare, "resources/read", OLD, OLD, "a:b")) == (RESOURCE_NOT_FOUND, {"uri": "a:b"})
    assert told(translated(brief, "resources/read", NEW, OLD, "a:b")) == (RESOURCE_NOT_FOUND, {"uri": "a:b"})
    assert told(translated(brief, "resources/read", NEW, OLD)) == (RESOURCE_NOT_FOUND, None)


def test_wrong_parameters_that_are_no_missing_resource_stay_what_they_are():
    plain = error({"code": -32602, "message": "no"})
    other = error({"code": -32602, "message": "no", "data": {"reason": "x"}})
    text = error({"code": -32602, "message": "no", "data": "uri"})

    assert told(translated(plain, "resources/read", OLD, OLD, "a:b")) == (-32602, None)
    assert told(translated(other, "resources/read", NEW, OLD, "a:b")) == (-32602, {"reason": "x"})
    assert told(translated(text, "resources/read", NEW, OLD, "a:b")) == (-32602, "uri")
    assert told(translated(plain, "tools/call", NEW, OLD)) == (-32602, None)


@pytest.mark.parametrize("target", LEGACY)
def test_a_missing_capability_is_told_to_legacy_hosts_with_the_same_data(target):
    data = {"requiredCapabilities": {"sampling": {}}}
    frame = error({"code": MISSING_CAPABILITY, "message": "needs sampling", "data": data})

    assert told(translated(frame, "tools/call", NEW, target)) == (-32600, data)
    assert told(translated(frame, "tools/call", NEW, NEW)) == (MISSING_CAPABILITY, data)


@pytest.mark.parametrize("target", REVISIONS)
def test_a_required_visit_keeps_its_data_where_the_code_is_unknown(target):
    data = {"elicitations": [{"url": "https://example.com"}]}
    frame = error({"code": URL_REQUIRED, "message": "visit", "data": data})
    code = URL_REQUIRED if target == "2025-11-25" else INTERNAL

    assert told(translated(frame, "tools/call", "2025-11-25", target)) == (code, data)


@pytest.mark.parametrize(("source", "target"), PAIRS)
@pytest.mark.parametrize("code", [HEADER_MISMATCH, UNSUPPORTED_VERSION])
def test_a_fault_between_the_upstream_and_us_is_not_told_as_the_hosts(source, target, code):
    value = translated(error({"code": code, "message": "x", "data": {"supported": []}}), "tools/call", source, target)

    assert told(value) == (INTERNAL, None)
    assert "upstream" in value.message.lower()


def test_codes_of_drafts_are_known_by_their_data():
    needs = {"requiredCapabilities": {"roots": {}}}
    versions = {"supported": ["x"], "requested": "y"}

    assert told(translated(error({"code": -32003, "message": "x", "data": needs}), "tools/call", NEW, NEW)) == (
        MISSING_CAPABILITY,
        needs,
    )
    assert told(translated(error({"code": -32003, "message": "x"}), "tools/call", NEW, NEW)) == (-32003, None)
    assert told(translated(error({"code": -32004, "message": "x", "data": versions}), "a", NEW, NEW)) == (
        INTERNAL,
        None,
    )
    assert told(translated(error({"code": -32004, "message": "x"}), "a", NEW, OLD)) == (-32004, None)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"code": "x", "message": "y"},
        {"code": 1.5, "message": "y"},
        {"code": True, "message": "y"},
        {"code": 1},
        {"code": 1, "message": None},
        {"code": 2**31, "message": "y"},
        {"code": -(2**70), "message": "y"},
        {"code": 1, "Code": 2, "message": "y"},
    ],
)
def test_a_malformed_error_becomes_an_internal_one_that_says_so(body):
    value = translated(error(body), "tools/call\x1b", OLD, NEW)

    assert value.code == INTERNAL
    assert "tools/call?" in value.message
    assert "malformed" in value.message


def test_data_that_is_null_is_no_data():
    assert translated(error({"code": 1, "message": "x", "data": None}), "a", OLD, NEW) == ErrorValue(1, "x")


@given(st.integers(-(2**31), 2**31 - 1), st.text(), st.sampled_from(PAIRS), st.sampled_from(["tools/call", "x"]))
def test_the_words_of_an_upstream_pass_where_its_code_does(code, message, pair, method):
    value = translated(error({"code": code, "message": message}), method, *pair)

    assert value.message == message or value.code == INTERNAL != code


@pytest.mark.parametrize(
    ("code", "status"),
    [(-32700, 400), (-32600, 400), (-32601, 404), (-32602, 200), (-32603, 200), (-32002, 200), (-1, 200)]
    + [(code, 400) for code in (HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION)],
)
def test_rule_14_the_status_of_an_error_is_in_a_table_and_always_200_on_legacy(code, status):
    assert http_status(code, Era.MODERN) == status
    assert http_status(code, Era.LEGACY) == 200
    assert http_status(code, None) == 400


def test_rule_14_params_are_a_bad_request_only_where_meta_is_wrong():
    assert http_status(-32602, Era.MODERN, about_meta=True) == 400
    assert http_status(-32603, Era.MODERN, about_meta=True) == 200
    assert http_status(-32602, Era.LEGACY, about_meta=True) == 200


def test_rule_27_refusals_by_text():
    assert not_supported("tools/list", "tools") == ErrorValue(
        METHOD_NOT_FOUND, "Method not found: tools/list (tools not supported)", {"capability": "tools"}
    )
    assert unknown_method("x") == ErrorValue(METHOD_NOT_FOUND, "Unknown method: x")


def test_a_strange_method_is_shown_short_and_without_controls():
    message = unknown_method("\x1b[2J" + "x" * 500).message

    assert message == f"Unknown method: ?[2J{'x' * 196}..."


@pytest.mark.behaviour("CAP-16-S2")
@pytest.mark.parametrize("target", REVISIONS)
def test_our_own_refusal_of_a_resource_has_the_code_of_the_revision(target):
    code = RESOURCE_NOT_FOUND if target in LEGACY else -32602

    assert resource_not_found("a:b", target) == ErrorValue(code, "Resource not found", {"uri": "a:b"})


@pytest.mark.behaviour("CAP-19-S1")
def test_a_name_that_nobody_has_is_a_wrong_parameter():
    assert unknown_name("tool", "a\n") == ErrorValue(-32602, "Unknown tool: a?")


def test_the_code_of_an_error_can_be_asked_for_before_it_is_translated():
    assert code(error({"code": HEADER_MISMATCH, "message": "x"})) == HEADER_MISMATCH
    assert code(error({"code": "x", "message": "x"})) is None
