"""Questions of upstreams, spelled for hosts of any revision."""

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
from troth.bridge import fields as bridge_fields
from troth.bridge.asks import FORM, ROOTS, SAMPLING, SAMPLING_TOOLS, URL
from troth.bridge.errors import ErrorValue
from troth.bridge.questions import (
    LONGEST,
    LONGEST_ID,
    MOST,
    PARAMS,
    Question,
    QuestionKind,
    entry,
    for_host,
    is_address,
    read_addresses,
    read_entries,
    read_request,
)
from troth.register import Era, register

REVISIONS = register().revisions
MODERN = register().newest(Era.MODERN)
OLD = register().newest(Era.LEGACY)
OLDEST = REVISIONS[0]
FORMS_ONLY = REVISIONS[2]
SCHEMAS = Path(__file__).parents[3] / "shared" / "schema"

TEXT = {"role": "user", "content": {"type": "text", "text": "hi"}}
SAMPLED: dict[str, Any] = {"messages": [TEXT], "maxTokens": 5}
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
FORM_PARAMS: dict[str, Any] = {"message": "Who?", "requestedSchema": SCHEMA}
URL_PARAMS: dict[str, Any] = {
    "mode": "url",
    "message": "Go",
    "url": "https://a.example/x?y=%20#z",
    "elicitationId": "e1",
}
TOOL_USE = {"type": "tool_use", "id": "1", "name": "t", "input": {"a": 1}}
TOOL_RESULT = {
    "type": "tool_result",
    "toolUseId": "1",
    "content": [{"type": "resource_link", "uri": "a:b", "name": "n"}],
}


def frame(method: str, params: Any = None, identity: Any = 3) -> Frame:
    message = {"jsonrpc": "2.0", "id": identity, "method": method, **({} if params is None else {"params": params})}
    made = read(json.dumps(message).encode())
    assert isinstance(made, Frame)
    return made


def asked(method: str, params: Any = None, revision: str = OLD) -> Question:
    question = read_request(frame(method, params), revision, "q1")
    assert isinstance(question, Question), question
    return question


def fault(method: str, params: Any = None, revision: str = OLD) -> ErrorValue:
    error = read_request(frame(method, params), revision, "q1")
    assert isinstance(error, ErrorValue)
    return error


def shown(question: Question, revision: str, elicitation: str = "") -> Any:
    params = for_host(question, revision, "files", elicitation)
    assert not isinstance(params, Bad), params
    return json.loads(written(params))


def raw(value: Any) -> Raw:
    return Raw(json.dumps(value).encode())


@pytest.mark.parametrize(
    ("method", "params", "kind", "needs"),
    [
        ("roots/list", None, QuestionKind.ROOTS, {ROOTS}),
        ("roots/list", {"_meta": {"a": 1}}, QuestionKind.ROOTS, {ROOTS}),
        ("sampling/createMessage", SAMPLED, QuestionKind.SAMPLING, {SAMPLING}),
        ("sampling/createMessage", {**SAMPLED, "tools": []}, QuestionKind.SAMPLING, {SAMPLING, SAMPLING_TOOLS}),
        ("sampling/createMessage", {**SAMPLED, "toolChoice": {}}, QuestionKind.SAMPLING, {SAMPLING, SAMPLING_TOOLS}),
        ("elicitation/create", FORM_PARAMS, QuestionKind.FORM, {FORM}),
        ("elicitation/create", {**FORM_PARAMS, "mode": "form"}, QuestionKind.FORM, {FORM}),
        ("elicitation/create", URL_PARAMS, QuestionKind.URL, {URL}),
    ],
)
@pytest.mark.parametrize("revision", [OLD, MODERN])
def test_a_question_says_what_it_is_and_whom_it_needs(
    method: str, params: Any, kind: QuestionKind, needs: set[str], revision: str
) -> None:
    question = asked(method, params, revision)
    assert (question.kind, question.needs, question.id, question.key) == (kind, needs, 3, "q1")
    entries = read_entries(raw({"k": {"method": method, **({} if params is None else {"params": params})}}), revision)
    assert isinstance(entries, tuple)
    assert [(one.kind, one.needs, one.id, one.key) for one in entries] == [(kind, needs, None, "k")]


@pytest.mark.behaviour("CAP-06-S1")
@pytest.mark.parametrize("block", [TOOL_USE, TOOL_RESULT])
@pytest.mark.parametrize("many", [True, False])
def test_messages_about_tools_need_a_host_that_knows_them(block: Any, many: bool) -> None:
    message = {"role": "user", "content": [block] if many else block}
    assert SAMPLING_TOOLS in asked("sampling/createMessage", {**SAMPLED, "messages": [TEXT, message]}).needs


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_is_no_question_of_the_revision_is_refused_in_words(revision: str) -> None:
    assert fault("x", revision=revision).message == "Unknown method: x"
    if ("elicitation/create", revision) not in PARAMS:
        assert fault("elicitation/create", FORM_PARAMS, revision).message == "Unknown method: elicitation/create"


BAD_QUESTIONS: list[tuple[str, Any, str]] = [
    ("sampling/createMessage", {"messages": []}, "maxTokens: a number"),
    ("sampling/createMessage", {"messages": [], "maxTokens": "1"}, "maxTokens: a number"),
    ("sampling/createMessage", {"maxTokens": 1}, "messages: an array"),
    ("sampling/createMessage", {"maxTokens": 1, "messages": [1]}, "messages: an array"),
    ("sampling/createMessage", {"maxTokens": 1, "messages": [{"role": "user"}]}, "messages: a message"),
    ("sampling/createMessage", {"maxTokens": 1, "messages": [{**TEXT, "role": 1}]}, "messages: a message"),
    ("sampling/createMessage", {"maxTokens": 1, "messages": [{**TEXT, "content": ["x"]}]}, "messages: a message"),
    ("sampling/createMessage", {"maxTokens": 1, "messages": [{**TEXT, "content": "x"}]}, "messages: a message"),
    ("sampling/createMessage", {**SAMPLED, "tools": 1}, "tools: an array"),
    ("sampling/createMessage", {"maxTokens": 1, "MAXTOKENS": 2, "messages": []}, "other letters"),
    ("elicitation/create", None, "message: a text"),
    ("elicitation/create", {"message": 1}, "message: a text"),
    ("elicitation/create", {"message": ""}, "requestedSchema: an object"),
    ("elicitation/create", {"message": "", "requestedSchema": {"type": "object"}}, "properties: an object"),
    ("elicitation/create", {"message": "", "requestedSchema": {"properties": {"a": 1}}}, "a field: an object"),
    ("elicitation/create", {"message": "", "mode": "voice"}, "mode: form or url"),
    ("elicitation/create", {"message": "", "mode": None}, "mode: form or url"),
    ("elicitation/create", {"message": "", "mode": "url"}, "url: an http(s) address"),
    ("elicitation/create", {"message": "", "mode": "url", "url": "file:///etc"}, "url: an http(s) address"),
]


@pytest.mark.parametrize(("method", "params", "words"), BAD_QUESTIONS)
def test_a_malformed_question_is_refused_with_what_is_wrong(method: str, params: Any, words: str) -> None:
    error = fault(method, params)
    assert error.code == -32602
    assert words in error.message
    bad = read_entries(raw({"k": {"method": method, **({} if params is None else {"params": params})}}), MODERN)
    assert isinstance(bad, Bad)
    assert words in bad.reason


def test_too_many_messages_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("troth.bridge.sampling.MOST", 3)
    assert asked("sampling/createMessage", SAMPLED)
    assert "more than 3 parts" in fault("sampling/createMessage", {**SAMPLED, "messages": [TEXT, TEXT]}).message


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (1, "an object"),
        ({"k": 1}, "an object"),
        ({"k": {"method": "x"}}, "Unknown method"),
        ({"k": {"method": 1}}, "Unknown method"),
        ({str(number): {"method": "roots/list"} for number in range(MOST + 1)}, "more than"),
    ],
)
def test_entries_that_are_no_questions_are_refused(entries: Any, words: str) -> None:
    bad = read_entries(raw(entries), MODERN)
    assert isinstance(bad, Bad)
    assert words in bad.reason


@pytest.mark.behaviour("CAP-05-S1", "CAP-05-C1", "CAP-10-C1", "CAP-10-S1")
@pytest.mark.parametrize("source", REVISIONS)
@pytest.mark.parametrize("target", REVISIONS)
def test_rule_26_no_host_is_asked_for_context_or_a_task_and_hints_pass_untouched(source: str, target: str) -> None:
    hints = {"hints": [{"name": "claude"}], "costPriority": 0.10}
    params = {
        **SAMPLED,
        "includeContext": "allServers",
        "task": {"ttl": 1},
        "modelPreferences": hints,
        "metadata": {"x": 10**30},
        "temperature": 0.5,
        "stopSequences": ["."],
        "systemPrompt": "s",
        "com.example": 1,
        "_meta": {"progressToken": 1, "io.modelcontextprotocol/related-task": {"taskId": "1"}},
    }
    told = shown(asked("sampling/createMessage", params, source), target)
    kept = {name: value for name, value in params.items() if name not in {"includeContext", "task", "_meta"}}
    assert told == kept


@pytest.mark.behaviour("CAP-06-S1")
@pytest.mark.parametrize(("source", "target"), [(OLD, MODERN), (MODERN, OLD), (OLD, OLD), (MODERN, MODERN)])
def test_tools_and_their_use_pass_to_a_host_that_knows_them(source: str, target: str) -> None:
    tool = {"name": "t", "inputSchema": {"type": "object"}}
    messages = [{"role": "assistant", "content": [TOOL_USE]}, {"role": "user", "content": TOOL_RESULT}]
    params = {**SAMPLED, "messages": messages, "tools": [tool], "toolChoice": {"mode": "auto"}}
    assert shown(asked("sampling/createMessage", params, source), target) == params


@pytest.mark.behaviour("CAP-06-S1")
def test_tools_of_a_revision_that_has_none_are_no_tools() -> None:
    question = asked("sampling/createMessage", {**SAMPLED, "tools": [{"name": "t"}]}, FORMS_ONLY)
    assert question.needs == {SAMPLING}
    assert "tools" not in shown(question, OLD)


def test_a_message_of_several_blocks_becomes_several_for_a_host_that_knows_one() -> None:
    blocks = [{"type": "text", "text": "a", "_meta": {"x": 1}}, {"type": "audio", "data": "", "mimeType": "audio/wav"}]
    messages = [{"role": "user", "content": blocks, "_meta": {"y": 1}}, {"role": "assistant", "content": []}]
    question = asked("sampling/createMessage", {**SAMPLED, "messages": messages})
    told = shown(question, OLDEST)["messages"]
    assert [message["role"] for message in told] == ["user", "user"]
    assert told[0] == {"role": "user", "content": {"type": "text", "text": "a"}}
    assert told[1]["content"]["type"] == "text"
    assert shown(question, MODERN)["messages"] == messages


@pytest.mark.behaviour("CAP-07-S4")
@pytest.mark.parametrize("target", [FORMS_ONLY, OLD, MODERN])
def test_the_message_names_who_asks_and_cannot_hide_it(target: str) -> None:
    told = shown(asked("elicitation/create", {**FORM_PARAMS, "message": "\r\x1b[2K\u202eWho\nare you?\t"}), target)
    assert told["message"] == "files asks: [2KWho\nare you?\t"


@pytest.mark.behaviour("CAP-07-S3", "CAP-09-S3")
def test_members_of_an_elicitation_follow_the_hosts_revision() -> None:
    form = asked("elicitation/create", {**FORM_PARAMS, "mode": "form", "_meta": {"a": 1, "progressToken": 1}})
    message = "files asks: Who?"
    assert shown(form, FORMS_ONLY) == {"message": message, "requestedSchema": SCHEMA}
    assert shown(form, OLD) == {"mode": "form", "message": message, "requestedSchema": SCHEMA, "_meta": {"a": 1}}
    assert shown(form, MODERN) == {"mode": "form", "message": message, "requestedSchema": SCHEMA}
    visit = asked("elicitation/create", URL_PARAMS)
    assert shown(visit, OLD) == {**URL_PARAMS, "message": "files asks: Go"}
    assert shown(visit, MODERN) == {"mode": "url", "message": "files asks: Go", "url": URL_PARAMS["url"]}
    plain = asked("elicitation/create", {name: URL_PARAMS[name] for name in ("mode", "message", "url")}, MODERN)
    assert shown(plain, OLD, "made")["elicitationId"] == "made"
    for odd in ("a\n", "x" * (LONGEST_ID + 1), 5, ""):
        assert asked("elicitation/create", {**URL_PARAMS, "elicitationId": odd}).elicitation == ""
    assert isinstance(for_host(form, OLDEST, "files"), Bad)
    assert isinstance(for_host(visit, FORMS_ONLY, "files"), Bad)


FIELDS: list[tuple[Any, Any]] = [
    ({"type": "string", "default": "x", "format": "email"}, {"type": "string", "format": "email"}),
    ({"type": "boolean", "default": True}, {"type": "boolean", "default": True}),
    ({"type": "integer", "default": 1, "maximum": 10**30}, {"type": "integer", "maximum": 10**30}),
    (
        {"type": "string", "oneOf": [{"const": "a", "title": "A"}], "default": "a"},
        {"type": "string", "enum": ["a"], "enumNames": ["A"]},
    ),
    ({"type": "string", "oneOf": [{"const": "a"}]}, {"type": "string", "oneOf": [{"const": "a"}]}),
    (
        {"type": "string", "enum": ["a"], "enumNames": ["A"], "com.example": 1},
        {"type": "string", "enum": ["a"], "enumNames": ["A"], "com.example": 1},
    ),
    ({"type": "array", "items": {"type": "string", "enum": ["a"]}}, None),
]


@pytest.mark.behaviour("CAP-07-S3")
@pytest.mark.parametrize(("field", "known"), FIELDS)
@pytest.mark.parametrize("required", [["other"], "f", None])
def test_a_form_is_limited_to_what_the_hosts_revision_knows(field: Any, known: Any, required: Any) -> None:
    schema = {"$schema": "x", "type": "object", "properties": {"f": field}, "required": required}
    question = asked("elicitation/create", {"message": "", "requestedSchema": schema})
    assert shown(question, MODERN)["requestedSchema"] == schema
    expected = {"type": "object", "properties": {} if known is None else {"f": known}, "required": required}
    assert shown(question, FORMS_ONLY)["requestedSchema"] == expected


@pytest.mark.behaviour("CAP-07-S3")
def test_a_form_that_the_hosts_revision_cannot_ask_for_says_why() -> None:
    schema = {"type": "object", "properties": {"f": {"type": "array"}}, "required": ["f"]}
    bad = for_host(asked("elicitation/create", {"message": "", "requestedSchema": schema}), FORMS_ONLY, "files")
    assert isinstance(bad, Bad)
    assert "several options" in bad.reason


@pytest.mark.parametrize(
    ("address", "good"),
    [
        ("https://a.example/", True),
        ("HTTP://a", True),
        ("https://ä.example/ü", True),
        ("https:///a", False),
        ("https://", False),
        ("javascript:alert(1)", False),
        (" https://a", False),
        ("https://a b", False),
        ("https://a\n", False),
        ("https://a/\u202e", False),
        ("https://" + "a" * LONGEST, False),
        ("data:text/html,x", False),
    ],
)
def test_rule_20_a_person_is_sent_to_http_addresses_only(address: str, good: bool) -> None:
    assert is_address(address) is good


def test_an_entry_without_members_has_no_params() -> None:
    question = asked("roots/list")
    assert entry(question, {}) == {"method": "roots/list"}
    assert entry(question, {"_meta": {}}) == {"method": "roots/list", "params": {"_meta": {}}}


@pytest.mark.behaviour("CAP-09-B1")
def test_rule_20_the_visits_of_an_error_become_questions() -> None:
    found = read_addresses(raw([URL_PARAMS, {**URL_PARAMS, "elicitationId": "e2"}]), OLD)
    assert isinstance(found, tuple)
    assert [(one.key, one.elicitation, one.kind) for one in found] == [("url1", "e1", "url"), ("url2", "e2", "url")]
    for wrong in (1, [], [1], [FORM_PARAMS], [{**URL_PARAMS, "url": "x"}], [URL_PARAMS] * (MOST + 1)):
        assert isinstance(read_addresses(raw(wrong), OLD), Bad)


@given(
    st.sampled_from(sorted({method for method, _ in PARAMS})),
    st.dictionaries(
        st.sampled_from(["message", "mode", "url", "requestedSchema", "messages", "maxTokens", "tools", "_meta", "x"]),
        anything,
    )
    | anything,
    st.sampled_from(REVISIONS),
    st.sampled_from(REVISIONS),
)
def test_any_params_are_refused_or_can_be_said(method: str, params: Any, source: str, target: str) -> None:
    bad = read_entries(raw({"k": {"method": method, "params": params}}), source)
    if not isinstance(bad, Bad):
        told = for_host(bad[0], target, "files")
        assert isinstance(told, Bad) or json.loads(written(told)) is not None


@pytest.mark.skipif(not SCHEMAS.exists(), reason="the official schemas are not here")
@pytest.mark.parametrize("revision", REVISIONS)
def test_the_members_of_questions_are_those_of_the_official_schemas(revision: str) -> None:
    schema = json.loads((SCHEMAS / revision / "schema.json").read_text())
    kinds = schema.get("$defs") or schema["definitions"]

    def members(value: Any) -> set[str]:
        while "$ref" in value:
            value = kinds[value["$ref"].rpartition("/")[2]]
        parts = [members(part) for part in value.get("anyOf", ())]
        return set(value.get("properties", ())).union(*parts)

    for method, name in (
        ("roots/list", "ListRootsRequest"),
        ("sampling/createMessage", "CreateMessageRequest"),
        ("elicitation/create", "ElicitRequest"),
    ):
        if name in kinds:
            # The params of 2025-11-25 roots are those of every request.
            assert PARAMS[method, revision] == members(kinds[name]["properties"]["params"])
        else:
            assert (method, revision) not in PARAMS
    assert (revision in bridge_fields.FORMS) is ("ElicitRequest" in kinds)
