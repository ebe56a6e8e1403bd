"""Decisions: who may use what, in which words and with which code, at every revision."""

from __future__ import annotations

import json as text
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from mcp_types import ClientCapabilities as Model
from test_gating_requirement import UI, requirements

from troth.capabilities import read_client
from troth.gating import (
    ELICITATION,
    ELICITATION_FORM,
    ELICITATION_URL,
    META_KEY,
    NEVER,
    ROOTS,
    ROOTS_LIST_CHANGED,
    SAMPLING,
    SAMPLING_CONTEXT,
    SAMPLING_TOOLS,
    TASKS,
    TASKS_CANCEL,
    TASKS_ELICITATION,
    TASKS_LIST,
    TASKS_SAMPLING,
    CapabilityNotMet,
    Need,
    Primitive,
    any_of,
    decide,
    experimental,
    extension,
    missing,
    visible,
)
from troth.register import Era, Side, register

LEGACY, MODERN = register().eras[Era.LEGACY], register().eras[Era.MODERN]
OLDEST, NEWEST = LEGACY[-1], MODERN[-1]
BOTH = (OLDEST, NEWEST)
SCHEMA = Path(__file__).parents[3] / "shared" / "schema" / NEWEST / "schema.json"
ECHO = {"name": "echo"}
SUMMARIZE = Primitive("tools", "summarize")


def tool(name, requirement, message=""):
    return {"name": name, "_meta": {META_KEY: Need(requirement, message).json()}}


def names(view):
    return [item["name"] for item in view.shown]


# Visible and hidden


@pytest.mark.parametrize("revision", BOTH)
def test_a_tool_whose_needs_are_met_is_visible(revision):
    view = visible([tool("a", SAMPLING), ECHO], {"sampling": {}}, revision=revision)
    assert (names(view), view.hidden, view.why) == (["a", "echo"], (), {})


@pytest.mark.parametrize("revision", BOTH)
def test_a_tool_whose_needs_are_not_met_is_hidden_with_the_reason(revision):
    view = visible([tool("a", SAMPLING), ECHO], {}, revision=revision)
    assert names(view) == ["echo"]
    assert view.why == {"a": "needs sampling"}
    assert view.hidden[0].item == tool("a", SAMPLING)
    assert view.hidden[0].decision.missing == ("sampling",)


@pytest.mark.parametrize("revision", BOTH)
def test_a_tool_without_needs_is_visible_to_everybody(revision):
    assert names(visible([ECHO], {}, revision=revision)) == ["echo"]


@pytest.mark.parametrize("revision", BOTH)
def test_combined_needs_must_all_be_met(revision):
    made = tool("a", SAMPLING | ELICITATION)
    assert names(visible([made], {"sampling": {}, "elicitation": {}, "roots": {}}, revision=revision)) == ["a"]
    assert visible([made], {"sampling": {}}, revision=revision).why == {"a": "needs elicitation"}
    assert visible([made], {"elicitation": {}}, revision=revision).why == {"a": "needs sampling"}
    assert visible([made], {}, revision=revision).why == {"a": "needs sampling, elicitation"}


@pytest.mark.parametrize("revision", BOTH)
def test_of_alternatives_one_is_enough(revision):
    made = tool("a", any_of(ROOTS, ELICITATION_FORM))
    assert names(visible([made], {"roots": {}}, revision=revision)) == ["a"]
    assert names(visible([made], {"elicitation": {}}, revision=revision)) == ["a"]
    assert visible([made], {"sampling": {}}, revision=revision).why == {"a": "needs roots or elicitation.form"}


def test_everything_may_be_hidden():
    view = visible([tool("a", ROOTS), tool("b", SAMPLING)], {})
    assert (view.shown, [item["name"] for item, _ in view.hidden]) == ((), ["a", "b"])


def test_order_stays():
    items = [tool("c", ROOTS), ECHO, tool("b", SAMPLING), tool("a", ROOTS)]
    view = visible(items, {"roots": {}})
    assert names(view) == ["c", "echo", "a"]


@pytest.mark.parametrize("revision", BOTH)
def test_clients_that_take_turns_never_see_each_other_s_view(revision):
    items = [tool("s", SAMPLING), tool("r", ROOTS), tool("e", ELICITATION_FORM), ECHO]
    clients = {
        "s": read_client({"sampling": {}}, revision),
        "r": read_client({"roots": {}}, revision),
        "e": read_client({"elicitation": {}}, revision),
    }
    for order in permutations(clients):
        for who in (*order, *reversed(order)):
            assert names(visible(items, clients[who])) == [who, "echo"]


@pytest.mark.parametrize("revision", BOTH)
def test_a_client_that_comes_back_with_more_or_less_gets_the_view_of_now(revision):
    items = [tool("s", SAMPLING), ECHO]
    seen = [names(visible(items, raw, revision=revision)) for raw in ({}, {"sampling": {}}, {}, {"sampling": {}})]
    assert seen == [["echo"], ["s", "echo"], ["echo"], ["s", "echo"]]


def test_what_a_session_lost_when_its_revision_was_lowered_is_hidden():
    declared = {"sampling": {"tools": {}}, "elicitation": {"url": {}}}
    items = [tool("t", SAMPLING_TOOLS), tool("u", ELICITATION_URL), tool("s", SAMPLING)]
    assert names(visible(items, declared, revision="2025-11-25")) == ["t", "u", "s"]
    assert names(visible(items, declared, revision="2025-06-18")) == ["s"]


# What counts as declared


@pytest.mark.parametrize(
    ("revision", "declared", "form", "url", "either"),
    [
        ("2025-03-26", {}, False, False, False),
        ("2025-03-26", {"elicitation": {}}, False, False, False),
        ("2025-06-18", {"elicitation": {}}, True, False, True),
        ("2025-06-18", {"elicitation": {"url": {}}}, True, False, True),
        *(
            (revision, declared, *wanted)
            for revision in BOTH
            for declared, wanted in (
                ({"elicitation": {}}, (True, False, True)),
                ({"elicitation": {"form": {}}}, (True, False, True)),
                ({"elicitation": {"url": {}}}, (False, True, True)),
                ({"elicitation": {"form": {}, "url": {}}}, (True, True, True)),
                ({"elicitation": {"other": {}}}, (False, False, False)),
                ({"elicitation": None}, (False, False, False)),
                ({"elicitation": True}, (False, False, False)),
                ({"elicitation": {"form": False, "url": {}}}, (False, True, True)),
            )
        ),
    ],
)
def test_an_empty_elicitation_is_form_and_only_that(revision, declared, form, url, either):
    found = [
        not missing(need, declared, revision=revision) for need in (ELICITATION_FORM, ELICITATION_URL, ELICITATION)
    ]
    assert found == [form, url, either]


@pytest.mark.parametrize(
    ("requirement", "declared"),
    [
        (SAMPLING_TOOLS, {"sampling": {"tools": {}}}),
        (SAMPLING_CONTEXT, {"sampling": {"context": {}}}),
        (ROOTS_LIST_CHANGED, {"roots": {"listChanged": True}}),
        (TASKS_LIST, {"tasks": {"list": {}}}),
        (TASKS_CANCEL, {"tasks": {"cancel": {}}}),
        (TASKS_SAMPLING, {"tasks": {"requests": {"sampling": {"createMessage": {}}}}}),
        (TASKS_ELICITATION, {"tasks": {"requests": {"elicitation": {"create": {}}}}}),
        (experimental("x"), {"experimental": {"x": {}}}),
    ],
)
def test_a_part_needs_the_part_and_not_only_the_whole(requirement, declared):
    whole = {name: {} for name in declared}
    assert missing(requirement, declared) == ()
    assert missing(requirement, whole) == (str(requirement),)


def test_a_flag_that_is_false_is_not_declared():
    assert missing(ROOTS_LIST_CHANGED, {"roots": {"listChanged": False}}) == ("roots.listChanged",)


def test_a_capability_counts_only_where_the_revision_defines_it():
    declared = {"roots": {"listChanged": True}, "tasks": {}, "extensions": {UI: {}}}
    everything = ROOTS_LIST_CHANGED | TASKS | extension(UI)
    assert missing(everything, declared, revision=OLDEST) == (str(extension(UI)),)
    assert missing(everything, declared, revision=NEWEST) == ("roots.listChanged", "tasks")


def test_what_is_missing_stands_in_the_order_of_the_register():
    everything = ELICITATION_URL | SAMPLING | any_of(TASKS, ROOTS) | experimental("x")
    assert missing(everything, {}) == ("experimental.x", "roots or tasks", "sampling", "elicitation.url")


def test_capabilities_may_be_a_model_of_the_sdk():
    declared = Model.model_validate({"elicitation": {}, "roots": {"listChanged": True}})
    assert missing(ELICITATION_FORM | ROOTS_LIST_CHANGED | SAMPLING, declared) == ("sampling",)


@pytest.mark.parametrize("declared", [True, [], "sampling", 7])
def test_capabilities_that_are_no_object_declare_nothing(declared):
    assert missing(ROOTS, declared) == ("roots",)


def test_an_unknown_revision_is_refused():
    with pytest.raises(ValueError, match="unknown protocol revision '1900-01-01'"):
        missing(ROOTS, {}, revision="1900-01-01")


@pytest.mark.parametrize("revision", [*LEGACY, *MODERN])
def test_nobody_meets_a_requirement_that_cannot_be_read(revision):
    declared = {"sampling": {"tools": {}}, "roots": {}, "elicitation": {}}
    assert missing(NEVER, declared, revision=revision) == ("requirement that cannot be read",)
    view = visible([{"name": "a", "_meta": {META_KEY: 7}}], declared, revision=revision)
    assert view.why == {"a": "needs requirement that cannot be read"}


# Refusals


@pytest.mark.parametrize(
    ("primitive", "words"),
    [
        (SUMMARIZE, "Client missing capabilities to call 'summarize': sampling"),
        (Primitive("prompts", "x"), "Client missing capabilities to get prompt 'x': sampling"),
        (Primitive("resources", "file:///a"), "Client missing capabilities to read 'file:///a': sampling"),
        (Primitive("templates", "file:///a"), "Client missing capabilities to read 'file:///a': sampling"),
    ],
)
@pytest.mark.parametrize("revision", BOTH)
def test_a_refusal_says_what_is_missing_for_what(primitive, words, revision):
    decision = decide(primitive, Need(SAMPLING), read_client({}, revision))
    assert (decision.allowed, decision.message) == (False, words)


def test_several_missing_capabilities_are_joined_by_commas():
    decision = decide(SUMMARIZE, Need(ELICITATION | SAMPLING), read_client({}, OLDEST))
    assert decision.message == "Client missing capabilities to call 'summarize': sampling, elicitation"


def test_only_what_is_missing_is_named():
    decision = decide(SUMMARIZE, Need(ELICITATION | SAMPLING), read_client({"sampling": {}}, NEWEST))
    assert decision.message == "Client missing capabilities to call 'summarize': elicitation"
    assert decision.data == {"requiredCapabilities": {"elicitation": {}}}


def test_an_author_s_words_take_the_place_of_the_usual_ones():
    decision = decide(SUMMARIZE, Need(SAMPLING, "Needs a model"), read_client({}, NEWEST))
    assert (decision.message, decision.missing) == ("Needs a model", ("sampling",))


def test_a_name_of_a_stranger_is_fit_to_print():
    decision = decide(Primitive("tools", "a\x1b[31m\n" + "b" * 500), Need(SAMPLING), None)
    assert decision.message.isprintable()
    assert len(decision.message) < 250


@pytest.mark.parametrize("revision", LEGACY)
def test_legacy_revisions_refuse_with_an_invalid_request(revision):
    decision = decide(SUMMARIZE, Need(SAMPLING), read_client({}, revision))
    assert (decision.code, decision.data) == (-32600, {"requiredCapabilities": {"sampling": {}}})


@pytest.mark.parametrize("revision", MODERN)
def test_modern_revisions_refuse_with_the_code_for_missing_capabilities(revision):
    decision = decide(SUMMARIZE, Need(SAMPLING), read_client({}, revision))
    assert (decision.code, decision.data) == (-32021, {"requiredCapabilities": {"sampling": {}}})


def test_an_allowed_use_has_no_refusal():
    decision = decide(SUMMARIZE, Need(SAMPLING), read_client({"sampling": {}}, OLDEST))
    assert (decision.allowed, decision.why, decision.message, decision.code) == (True, "", "", 0)
    assert decide(SUMMARIZE, None, None).allowed


@pytest.mark.parametrize(
    ("requirement", "legacy", "modern"),
    [
        (SAMPLING_TOOLS | SAMPLING, {"sampling": {"tools": {}}}, {"sampling": {"tools": {}}}),
        (ELICITATION_FORM | ELICITATION_URL, {"elicitation": {"form": {}, "url": {}}}, ...),
        (ROOTS | ROOTS_LIST_CHANGED, {"roots": {"listChanged": True}}, {"roots": {}}),
        (TASKS_SAMPLING, {"tasks": {"requests": {"sampling": {"createMessage": {}}}}}, {}),
        (extension(UI), {}, {"extensions": {UI: {}}}),
        (experimental("x y"), {"experimental": {"x y": {}}}, ...),
        (any_of(SAMPLING, ELICITATION), {"sampling": {}}, ...),
        (any_of(TASKS, extension(UI)), {"tasks": {}}, {"extensions": {UI: {}}}),
        (NEVER, {}, {}),
    ],
)
def test_the_data_of_a_refusal_is_what_a_client_of_the_era_can_declare(requirement, legacy, modern):
    need = Need(requirement)
    assert decide(SUMMARIZE, need, read_client({}, OLDEST)).required == legacy
    assert decide(SUMMARIZE, need, read_client({}, LEGACY[0])).required == legacy
    assert decide(SUMMARIZE, need, None).required == legacy
    wanted = legacy if modern is ... else modern
    assert decide(SUMMARIZE, need, read_client({}, NEWEST)).required == wanted


def test_a_capability_that_only_a_stranger_knows_is_named_and_not_asked_for():
    item = {"name": "a", "_meta": {META_KEY: {"capabilities": ["sampling.video"]}}}
    decision = visible([item], {"sampling": {"video": {}}}).hidden[0].decision
    assert (decision.missing, decision.required) == (("sampling.video",), {})


def test_the_data_of_a_refusal_is_a_copy():
    need = Need(SAMPLING_TOOLS)
    client = read_client({}, NEWEST)
    decide(SUMMARIZE, need, client).data["requiredCapabilities"]["sampling"]["tools"] = 7
    assert decide(SUMMARIZE, need, client).required == {"sampling": {"tools": {}}}


@pytest.mark.skipif(not SCHEMA.exists(), reason=f"{SCHEMA} is not at hand")
@given(requirements)
def test_every_refusal_of_a_modern_request_fits_the_schema(requirement):
    schema = text.loads(SCHEMA.read_text("utf-8"))
    decision = decide(SUMMARIZE, Need(requirement), read_client({}, NEWEST))
    answer = {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": decision.code, "message": decision.message, "data": decision.data},
    }
    validator = Draft202012Validator({"$ref": "#/$defs/MissingRequiredClientCapabilityError", "$defs": schema["$defs"]})
    validator.validate(answer)
    assert read_client(decision.required, NEWEST).problems == ()


@given(requirements, st.sampled_from((*LEGACY, *MODERN)))
def test_who_declares_what_a_refusal_asks_for_is_let_in_where_that_can_be(requirement, revision):
    """All that a host of the newest revision of its era can do about a refusal is what the refusal says."""
    era = register().era(revision)
    newest = register().newest(era)
    decision = decide(SUMMARIZE, Need(requirement), read_client({}, revision))
    left = missing(requirement, dict(decision.required), revision=newest)
    defined = {row.path for row in register().at(Side.CLIENT, newest)}
    for words in left:
        assert not [path for path in words.split(" or ") if path in defined]


def test_the_error_that_authors_catch_says_all():
    decision = decide(SUMMARIZE, Need(SAMPLING | ROOTS), read_client({}, OLDEST))
    error = CapabilityNotMet(decision)
    assert (error.missing, error.primitive, error.decision) == (("roots", "sampling"), SUMMARIZE, decision)
    assert str(error) == "Client missing capabilities to call 'summarize': roots, sampling"


# Clients that sent no capabilities


def test_a_client_that_sent_no_capabilities_is_gated_by_default():
    items = [tool("a", SAMPLING), ECHO]
    assert names(visible(items, None)) == ["echo"]
    decision = decide(SUMMARIZE, Need(SAMPLING), None)
    assert (decision.code, decision.data) == (-32600, {"requiredCapabilities": {"sampling": {}}})


def test_a_client_that_sent_no_capabilities_passes_if_the_operator_says_so():
    assert names(visible([tool("a", SAMPLING), ECHO], None, allow_when_not_declared=True)) == ["a", "echo"]
    assert decide(SUMMARIZE, Need(SAMPLING), None, allow_when_not_declared=True).allowed


@pytest.mark.parametrize("declared", [{}, {"roots": {}}, True])
def test_a_client_that_sent_something_never_passes_for_one_that_sent_nothing(declared):
    assert names(visible([tool("a", SAMPLING)], declared, allow_when_not_declared=True)) == []


# Host profiles


MATRIX = {
    "roots": ROOTS,
    "roots_changed": ROOTS_LIST_CHANGED,
    "sampling": SAMPLING,
    "sampling_tools": SAMPLING_TOOLS,
    "form": ELICITATION_FORM,
    "url": ELICITATION_URL,
    "tasks": TASKS,
    "ui": extension(UI),
    "ask": any_of(ELICITATION_FORM, SAMPLING),
    "echo": None,
}


@pytest.mark.parametrize(
    ("host", "era", "wanted"),
    [
        ("opencode-v1", Era.LEGACY, "roots echo"),
        ("opencode-v2", Era.LEGACY, "roots form url ask echo"),
        ("opencode-v2", Era.MODERN, "form url ask echo"),
        ("lootbox", Era.LEGACY, "echo"),
        ("none-legacy", Era.LEGACY, "echo"),
        ("url-only", Era.LEGACY, "url echo"),
        ("url-only", Era.MODERN, "url echo"),
        ("form-implied", Era.LEGACY, "form ask echo"),
        ("form-implied", Era.MODERN, "form ask echo"),
        ("full-2511", Era.LEGACY, "roots roots_changed sampling sampling_tools form url tasks ask echo"),
        ("full-2026", Era.MODERN, "roots sampling sampling_tools form url ui ask echo"),
    ],
)
@pytest.mark.behaviour("CAP-19-S3")
def test_each_known_host_sees_what_it_can_use(host, era, wanted):
    declared = register().hosts[host].declares[era]
    items = [{"name": name} if need is None else tool(name, need) for name, need in MATRIX.items()]
    view = visible(items, declared, revision=register().newest(era))
    assert names(view) == wanted.split()
    for item, decision in view.hidden:
        assert decision.code == (-32021 if era is Era.MODERN else -32600)
        assert decision.missing == missing(MATRIX[item["name"]], declared, revision=register().newest(era))


def test_the_matrix_has_every_host():
    spoken = [(host.id, era) for host in register().hosts.values() for era in Era if host.declares[era] is not None]
    test = test_each_known_host_sees_what_it_can_use
    cells = next(mark for mark in test.pytestmark if mark.name == "parametrize").args[1]
    assert [(host, era) for host, era, _ in cells] == spoken
