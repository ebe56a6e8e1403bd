"""Answers of hosts to questions, spelled for upstreams of any revision; and those that nobody gave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bridge_results import anything
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from troth.bridge import Bad, Frame, read, written
from troth.bridge.asks import FORM, NOTHING, ROOTS, SAMPLING, URL, Asks
from troth.bridge.questions import PARAMS, Question, QuestionKind, read_entries, read_request
from troth.bridge.replies import (
    MOST_ROOTS,
    RESULTS,
    Reply,
    declined,
    expired,
    is_root,
    malformed,
    read_entry,
    read_frame,
    refusal,
    unsayable,
)
from troth.register import Era, register

REVISIONS = register().revisions
MODERN = register().newest(Era.MODERN)
OLD = register().newest(Era.LEGACY)
OLDEST = REVISIONS[0]
FORMS_ONLY = REVISIONS[2]
SCHEMAS = Path(__file__).parents[3] / "shared" / "schema"

FIELDS: dict[str, Any] = {
    "name": {"type": "string", "default": "Ann"},
    "age": {"type": "integer"},
    "tags": {"type": "array", "default": ["a"]},
    "odd": {"type": "string", "default": {"x": 1}},
}
QUESTIONS: dict[QuestionKind, tuple[str, Any]] = {
    QuestionKind.ROOTS: ("roots/list", {}),
    QuestionKind.SAMPLING: ("sampling/createMessage", {"messages": [], "maxTokens": 1}),
    QuestionKind.FORM: (
        "elicitation/create",
        {"message": "m", "requestedSchema": {"type": "object", "properties": FIELDS}},
    ),
    QuestionKind.URL: ("elicitation/create", {"message": "m", "mode": "url", "url": "https://a.example"}),
}
BLOCK = {"type": "text", "text": "hi"}
SAMPLED = {"role": "assistant", "content": BLOCK, "model": "m", "stopReason": "endTurn"}
GOOD: dict[QuestionKind, Any] = {
    QuestionKind.ROOTS: {"roots": [{"uri": "file:///a", "name": "a"}]},
    QuestionKind.SAMPLING: SAMPLED,
    QuestionKind.FORM: {"action": "accept", "content": {"name": "Bo", "tags": []}},
    QuestionKind.URL: {"action": "accept"},
}


def frame(**members: Any) -> Frame:
    made = read(json.dumps({"jsonrpc": "2.0", "id": 9, **members}).encode())
    assert isinstance(made, Frame)
    return made


def question(kind: QuestionKind, revision: str = OLD, **more: Any) -> Question:
    method, params = QUESTIONS[kind]
    made = read_request(frame(method=method, params={**params, **more}), revision, "q")
    assert isinstance(made, Question), made
    return made


def modern(kind: QuestionKind) -> Question:
    method, params = QUESTIONS[kind]
    made = read_entries(raw({"k": {"method": method, "params": params}}), MODERN)
    assert isinstance(made, tuple)
    return made[0]


def raw(value: Any) -> Raw:
    return Raw(json.dumps(value).encode())


def heard(reply: Reply | Bad) -> Any:
    assert isinstance(reply, Reply), reply
    message = json.loads(reply.line("id"))
    assert message["id"] == "id"
    return message.get("result", message.get("error"))


CELLS = [(kind, revision) for kind in QuestionKind for revision in REVISIONS if (kind, revision) in RESULTS]


@pytest.mark.parametrize(("kind", "revision"), CELLS)
def test_a_good_answer_reaches_an_upstream_of_every_revision(kind: QuestionKind, revision: str) -> None:
    given = {**GOOD[kind], "_meta": {"a": 1, "progressToken": 1}, "resultType": "complete", "com.example": 1}
    if kind is QuestionKind.FORM:
        given["content"] = {"name": "Bo"}
    expected = {**given, "_meta": {"a": 1}}
    del expected["resultType"]
    if "_meta" not in RESULTS[kind, revision]:
        del expected["_meta"]
    if kind is QuestionKind.FORM:
        expected["content"] = {"name": "Bo", "tags": ["a"]}
    asked = question(kind, revision)
    assert heard(read_entry(asked, raw(given))) == expected
    assert heard(read_frame(asked, frame(result=given), OLD)) == expected


@pytest.mark.behaviour("CAP-07-C2")
def test_defaults_fill_what_was_left_out_and_never_what_was_given() -> None:
    given = {"action": "accept", "content": {"name": None, "tags": ["b"], "more": 1.5}}
    answer = heard(read_entry(question(QuestionKind.FORM), raw(given)))
    assert answer["content"] == {"name": "Ann", "tags": ["b"], "more": 1.5}


@pytest.mark.behaviour("CAP-07-C1")
@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_no_carries_no_content(action: str) -> None:
    for kind in (QuestionKind.FORM, QuestionKind.URL):
        assert heard(read_entry(question(kind), raw({"action": action, "content": None}))) == {"action": action}
    accepted = raw({"action": "accept", "content": {"x": 1}})
    assert heard(read_entry(question(QuestionKind.URL), accepted)) == {"action": "accept"}


BAD: list[tuple[QuestionKind, Any, str]] = [
    (QuestionKind.ROOTS, 1, "an object"),
    (QuestionKind.ROOTS, {}, "roots: an array"),
    (QuestionKind.ROOTS, {"roots": {}}, "roots: an array"),
    (QuestionKind.ROOTS, {"roots": [{}] * (MOST_ROOTS + 1)}, "more than"),
    (QuestionKind.FORM, {}, "action"),
    (QuestionKind.FORM, {"action": "maybe"}, "action"),
    (QuestionKind.FORM, {"action": "accept"}, "content: an object"),
    (QuestionKind.FORM, {"action": "accept", "content": {"name": {}}}, "content: texts"),
    (QuestionKind.FORM, {"action": "accept", "content": {"name": [1]}}, "content: texts"),
    (QuestionKind.URL, {"action": 1}, "action"),
    (QuestionKind.SAMPLING, {**SAMPLED, "role": 1}, "role and model"),
    (QuestionKind.SAMPLING, {**SAMPLED, "model": None}, "role and model"),
    (QuestionKind.SAMPLING, {"role": "assistant", "model": "m"}, "content block"),
    (QuestionKind.SAMPLING, {**SAMPLED, "content": "x"}, "content block"),
    (QuestionKind.SAMPLING, {**SAMPLED, "content": [{"type": "tool_use"}]}, "where none was offered"),
]


@pytest.mark.parametrize(("kind", "given", "words"), BAD)
def test_an_answer_of_the_wrong_shape_says_what_is_wrong(kind: QuestionKind, given: Any, words: str) -> None:
    bad = read_entry(question(kind), raw(given))
    assert isinstance(bad, Bad)
    assert words in bad.reason
    assert bad.code == -32602
    told = heard(malformed(question(kind), bad))
    assert told["code"] == -32603
    assert words in told["message"]


@pytest.mark.behaviour("CAP-02-B1")
def test_roots_are_file_uris_and_others_are_left_out_with_a_reason() -> None:
    given = [
        {"uri": "file:///home/me%20b", "name": "Home", "_meta": {"x": 1}},
        {"uri": "https://a.example"},
        {"uri": "file:///a\nb"},
        {"name": "no uri"},
        7,
        {"uri": "file://server/share", "name": 5},
    ]
    reply = read_entry(question(QuestionKind.ROOTS, OLDEST), raw({"roots": given}))
    assert isinstance(reply, Reply)
    assert heard(reply)["roots"] == [{"uri": "file:///home/me%20b", "name": "Home"}, {"uri": "file://server/share"}]
    assert [note.partition("]")[0] for note in reply.notes] == [f"roots[{number}" for number in (1, 2, 3, 4, 5)]
    newer = heard(read_entry(question(QuestionKind.ROOTS), raw({"roots": given})))
    assert newer["roots"][0] == given[0]
    assert heard(read_entry(question(QuestionKind.ROOTS), raw({"roots": []})))["roots"] == []


@pytest.mark.parametrize("uri", ["file:///", "FILE:///a", "file:///C:/a", "file://host/a"])
def test_addresses_of_files_are_roots(uri: str) -> None:
    assert is_root(uri)
    assert not is_root(f" {uri}")


def test_an_answer_of_a_model_has_one_block_for_an_upstream_that_knows_one() -> None:
    def content(given: Any, revision: str) -> Any:
        return heard(read_entry(question(QuestionKind.SAMPLING, revision), raw({**SAMPLED, "content": given})))[
            "content"
        ]

    image = {"type": "image", "data": "", "mimeType": "image/png"}
    assert content([BLOCK, image, BLOCK], OLD) == [BLOCK, image, BLOCK]
    assert content([BLOCK, image, BLOCK], FORMS_ONLY) == {"type": "text", "text": "hi\nhi"}
    assert content([BLOCK], FORMS_ONLY) == BLOCK
    assert content([image, image], FORMS_ONLY) == image
    assert content({"type": "audio", "data": "", "mimeType": "a/b"}, OLDEST)["type"] == "text"
    assert content([], OLD) == []
    empty = read_entry(question(QuestionKind.SAMPLING, FORMS_ONLY), raw({**SAMPLED, "content": []}))
    assert isinstance(empty, Bad)


@pytest.mark.behaviour("CAP-06-S1")
def test_the_use_of_a_tool_passes_unmodified_where_tools_were_offered() -> None:
    use = [{"type": "tool_use", "id": "1", "name": "t", "input": {"n": 1.50}}]
    offered = question(QuestionKind.SAMPLING, tools=[{"name": "t", "inputSchema": {}}])
    given = {"role": "assistant", "content": use, "model": "m", "stopReason": 5}
    assert heard(read_entry(offered, raw(given))) == {"role": "assistant", "content": use, "model": "m"}


def test_a_choice_of_several_is_no_answer_to_an_upstream_that_knows_none() -> None:
    given = raw({"action": "accept", "content": {"tags": ["a"]}})
    assert isinstance(read_entry(question(QuestionKind.FORM, FORMS_ONLY), given), Bad)


def test_the_shell_holds_the_content_against_the_schema_and_sees_the_defaults() -> None:
    seen: list[Any] = []

    def check(schema: Raw, content: Raw) -> str:
        seen.append((json.loads(bytes(schema)), json.loads(bytes(content))))
        return "age: too old" if len(seen) > 1 else ""

    asked = question(QuestionKind.FORM)
    given = raw({"action": "accept", "content": {"age": 7}})
    full = {"age": 7, "name": "Ann", "tags": ["a"]}
    assert heard(read_entry(asked, given, check))["content"] == full
    assert seen == [(QUESTIONS[QuestionKind.FORM][1]["requestedSchema"], full)]
    bad = read_frame(asked, frame(result={"action": "accept", "content": {}}), OLD, check)
    assert isinstance(bad, Bad)
    assert bad.reason == "age: too old"


def test_an_error_of_a_legacy_host_is_relayed() -> None:
    asked = question(QuestionKind.SAMPLING)
    refused = frame(error={"code": -1, "message": "User rejected sampling request", "data": 1})
    assert heard(read_frame(asked, refused, OLD)) == {
        "code": -1,
        "message": "User rejected sampling request",
        "data": 1,
    }
    broken = heard(read_frame(asked, frame(error={"code": "x"}), OLD))
    assert broken == {"code": -32603, "message": "The host answered sampling/createMessage with what is no answer"}


@pytest.mark.behaviour("CAP-02-C4", "CAP-06-C1", "CAP-08-C1")
@pytest.mark.parametrize(
    ("kind", "answered", "more", "code", "capability"),
    [
        (QuestionKind.ROOTS, NOTHING, {}, -32601, "roots"),
        (QuestionKind.SAMPLING, frozenset({FORM}), {}, -32601, "sampling"),
        (QuestionKind.SAMPLING, frozenset({SAMPLING}), {"tools": []}, -32602, "sampling.tools"),
        (QuestionKind.SAMPLING, NOTHING, {"tools": []}, -32601, "sampling"),
        (QuestionKind.FORM, frozenset({ROOTS}), {}, -32601, "elicitation"),
        (QuestionKind.FORM, frozenset({URL}), {}, -32602, "elicitation.form"),
        (QuestionKind.URL, frozenset({FORM}), {}, -32602, "elicitation.url"),
        (QuestionKind.URL, NOTHING, {}, -32601, "elicitation"),
    ],
)
def test_what_nobody_answers_is_refused_at_once_and_says_which_capability_is_missing(
    kind: QuestionKind, answered: Asks, more: Any, code: int, capability: str
) -> None:
    error = heard(refusal(question(kind, **more), answered))
    assert error["code"] == code
    assert error["data"] == {"capability": capability}
    assert capability in error["message"]


@pytest.mark.behaviour("CAP-07-S2", "CAP-04-C2", "CAP-07-C1")
@pytest.mark.parametrize("kind", list(QuestionKind))
def test_nobody_answered_is_cancel_for_an_elicitation_and_an_error_for_all_else(kind: QuestionKind) -> None:
    late, no = heard(expired(question(kind))), heard(declined(question(kind)))
    if kind in (QuestionKind.FORM, QuestionKind.URL):
        assert (late, no) == ({"action": "cancel"}, {"action": "decline"})
    else:
        assert (late["code"], no["code"]) == (-32603, -1)


@pytest.mark.parametrize("kind", list(QuestionKind))
def test_what_the_hosts_revision_cannot_say_is_cancelled_where_there_are_no_errors(kind: QuestionKind) -> None:
    bad = Bad(-32602, "no such choice")
    assert heard(unsayable(question(kind), bad))["code"] == -32602
    told = heard(unsayable(modern(kind), bad))
    elicited = kind in (QuestionKind.FORM, QuestionKind.URL)
    assert (told == {"action": "cancel"}) if elicited else (told["code"] == -32602)


@given(st.sampled_from(CELLS), anything | st.sampled_from(list(GOOD.values())))
def test_any_answer_is_refused_or_has_the_members_of_the_upstreams_revision(
    cell: tuple[QuestionKind, str], given: Any
) -> None:
    kind, revision = cell
    reply = read_entry(question(kind, revision), raw(given))
    if isinstance(reply, Reply):
        assert reply.result is not None
        known = RESULTS[kind, revision]
        every = {name for cells in RESULTS.values() for name in cells}
        assert {name for name in json.loads(written(reply.result)) if name in every} <= known


@pytest.mark.skipif(not SCHEMAS.exists(), reason="the official schemas are not here")
@pytest.mark.parametrize("revision", REVISIONS)
def test_the_members_of_answers_are_those_of_the_official_schemas(revision: str) -> None:
    schema = json.loads((SCHEMAS / revision / "schema.json").read_text())
    kinds = schema.get("$defs") or schema["definitions"]
    names = {
        QuestionKind.ROOTS: "ListRootsResult",
        QuestionKind.SAMPLING: "CreateMessageResult",
        QuestionKind.FORM: "ElicitResult",
    }
    for kind, name in names.items():
        assert (name in kinds) is ((kind, revision) in RESULTS)
        if name in kinds:
            assert RESULTS[kind, revision] == set(kinds[name]["properties"])
    assert ((QuestionKind.URL, revision) in RESULTS) is ("url" in PARAMS.get(("elicitation/create", revision), ()))
