"""Spelling a result that others made, as a gateway does."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from results_official import NEEDS_SCHEMAS, REVISIONS, check

from troth.results import call_tool_result, list_tools_result, spell
from troth.results.spelling import DEFINITIONS
from troth.results.table import KNOWN, MEMBERS


@pytest.mark.behaviour("GEN-B7")
def test_the_result_is_a_copy_and_the_original_stays():
    original = list_tools_result(
        [{"name": "t", "title": "T", "icons": ["x:1"], "inputSchema": {"properties": {"a": True}}}]
    )
    before = copy.deepcopy(original)

    spelled = spell(original, "ListToolsResult", REVISIONS[0])
    spelled["tools"][0]["inputSchema"]["properties"]["b"] = {}

    assert original == before


@pytest.mark.behaviour("GEN-B7", "CAP-19-S1")
def test_members_and_content_types_of_no_revision_survive():
    result = {
        "content": [
            {"type": "hologram", "title": "kept", "x": 1},
            {"type": "text", "text": "a", "x": 1, "annotations": {"x": 1, "lastModified": "t"}, "_meta": {"m": 1}},
            {"type": 3},
            "not even an object",
        ],
        "x": {"title": "kept"},
        "isError": False,
        "structuredContent": {"a": 1},
    }

    assert spell(result, "CallToolResult", REVISIONS[0]) == {
        "content": [
            {"type": "hologram", "title": "kept", "x": 1},
            {"type": "text", "text": "a", "x": 1, "annotations": {"x": 1}},
            {"type": 3},
            "not even an object",
        ],
        "x": {"title": "kept"},
        "isError": False,
    }


@pytest.mark.parametrize("payload", [[1], 3, None, "a"])
def test_structured_content_of_another_shape_gives_way_to_its_text(payload):
    result = call_tool_result(_data=payload)

    for revision in REVISIONS[:-1]:
        spelled = spell(result, "CallToolResult", revision)
        assert set(spelled) == {"content"}
        assert [block["type"] for block in spelled["content"]] == ["text"]
    assert spell(result, "CallToolResult", REVISIONS[-1]) == result
    mirrored = spell(call_tool_result(data=payload), "CallToolResult", REVISIONS[3])
    assert len(mirrored["content"]) == 1


def test_what_the_revision_requires_is_added_and_what_is_there_stays():
    assert spell({"tools": []}, "ListToolsResult", REVISIONS[-1]) == {
        "tools": [],
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
    }
    task = {"content": [], "resultType": "task"}
    assert spell(task, "CallToolResult", REVISIONS[-1]) == task
    assert spell({"content": []}, "CallToolResult", REVISIONS[3]) == {"content": []}


def test_an_audio_block_and_a_link_say_what_they_were():
    assert spell({"type": "audio"}, "ContentBlock", REVISIONS[0])["text"].startswith("[audio omitted: None;")
    link = {"type": "resource_link", "uri": "x:1", "name": "n", "title": "N", "_meta": {}}
    assert spell(link, "ContentBlock", REVISIONS[1]) == {"type": "text", "text": "N: x:1"}


def test_the_name_of_the_server_goes_where_results_have_no_place_for_it():
    result = {"messages": [], "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "n", "version": "1"}, "m": 1}}

    assert spell(result, "GetPromptResult", REVISIONS[3])["_meta"] == {"m": 1}
    assert spell(result, "GetPromptResult", REVISIONS[4])["_meta"] == result["_meta"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            ({}, "CallToolResul", REVISIONS[0]),
            ValueError,
            "no definition 'CallToolResul'; did you mean 'CallToolResult'",
        ),
        (({}, "CallToolResult", "1"), ValueError, "no protocol revision '1'"),
        (({}, "DiscoverResult", REVISIONS[0]), ValueError, "2024-11-05 has no DiscoverResult; these have: 2026-07-28"),
        (([], "CallToolResult", REVISIONS[0]), TypeError, "CallToolResult must be a mapping, not list"),
        (({"x": object()}, "CallToolResult", REVISIONS[0]), TypeError, "CallToolResult.x is of type object"),
    ],
)
def test_wrong_arguments_are_refused_with_the_reason(arguments, error, message):
    with pytest.raises(error, match=message):
        spell(*arguments)


KEYS = (
    *("type", "content", "text", "_meta", "annotations", "icons", "title", "tools", "inputSchema", "x", "messages"),
    *("outputSchema", "properties", "structuredContent", "resource", "contents", "capabilities"),
)
frames = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner | st.sampled_from(["text", "audio", "resource_link", "resource"]),
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(
    frame=st.dictionaries(st.sampled_from(["content", "tools", "_meta", "structuredContent", "x"]), frames),
    definition=st.sampled_from(sorted(DEFINITIONS - {"DiscoverResult", "InitializeResult"})),
    revision=st.sampled_from(REVISIONS),
)
def test_any_frame_of_a_peer_is_spelled_without_an_exception_and_unchanged(frame, definition, revision):
    before = copy.deepcopy(frame)
    if (definition, revision) in MEMBERS or definition not in KNOWN:
        spelled = spell(frame, definition, revision)
        assert spell(spelled, definition, revision) == spelled
        assert spelled.get("x") == before.get("x")
    else:
        with pytest.raises(ValueError, match=f"has no {definition}"):
            spell(frame, definition, revision)
    assert frame == before


@NEEDS_SCHEMAS
@pytest.mark.behaviour("GEN-B3")
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_result_of_one_revision_is_valid_at_every_other_after_spelling(revision):
    newest = call_tool_result(("audio", ("audio/x", b"")), ("link", "x:1"), {"a": 1}, revision=REVISIONS[-1])

    for start in REVISIONS:
        check(spell(spell(newest, "CallToolResult", start), "CallToolResult", revision), "CallToolResult", revision)
