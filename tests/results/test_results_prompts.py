"""Results of prompts."""

from __future__ import annotations

import pytest
from mcp_types import PromptMessage, TextContent
from results_official import NEEDS_SCHEMAS, REVISIONS, check

from troth.results import get_prompt_result


def said(role, text):
    return {"role": role, "content": {"type": "text", "text": text}}


def test_keywords_become_messages_in_order():
    result = get_prompt_result(description="d", assistant="You are kind.", text="q", user="r")

    assert result == {
        "description": "d",
        "messages": [said("assistant", "You are kind."), said("user", "q"), said("user", "r")],
        "resultType": "complete",
    }


def test_pairs_repeat_and_keep_their_order():
    result = get_prompt_result(("user", "a"), ("assistant", "b"), ("user", "c"), ("text", "d"), "e", description="d")

    assert result["messages"] == [
        said("user", "a"),
        said("assistant", "b"),
        said("user", "c"),
        said("user", "d"),
        said("user", "e"),
    ]


def test_messages_blocks_and_models_pass():
    image = {"type": "image", "data": "", "mimeType": "image/png"}

    result = get_prompt_result(
        ("assistant", ("image", ("image/png", b""))),
        ("user", image),
        image,
        {"role": "assistant", "content": "a", "x": 1},
        PromptMessage(role="user", content=TextContent(text="b")),
        TextContent(text="c"),
        meta={"m": 1},
    )

    assert result["_meta"] == {"m": 1}
    assert result["messages"] == [
        {"role": "assistant", "content": image},
        {"role": "user", "content": image},
        {"role": "user", "content": image},
        {**said("assistant", "a"), "x": 1},
        said("user", "b"),
        said("user", "c"),
    ]


@pytest.mark.parametrize("revision", [None, *REVISIONS])
@pytest.mark.parametrize("name", ["error", "data", "_data"])
@pytest.mark.parametrize("value", [None, False, True, "x"])
def test_errors_and_structured_data_are_always_refused(revision, name, value):
    with pytest.raises(ValueError, match=f"{name}: a prompt has no"):
        get_prompt_result(**{name: value}, revision=revision)
    with pytest.raises(ValueError, match=f"{name}: a prompt has no"):
        get_prompt_result((name, value), revision=revision)


LINK = {"type": "resource_link", "uri": "x:1", "name": "n"}
WITH_LINK = [("link", "x:1"), ("user", ("link", "x:1")), LINK, {"role": "user", "content": LINK}]


@pytest.mark.parametrize("revision", REVISIONS[:2])
@pytest.mark.parametrize("part", WITH_LINK)
def test_links_are_refused_where_the_revision_has_none(revision, part):
    with pytest.raises(ValueError, match=f"revision {revision} has no resource links"):
        get_prompt_result(part, revision=revision)


@pytest.mark.parametrize("revision", [None, *REVISIONS[2:]])
@pytest.mark.parametrize("part", WITH_LINK)
def test_links_pass_where_the_revision_has_them(revision, part):
    message = get_prompt_result(part, revision=revision)["messages"][0]

    assert message["content"]["type"] == "resource_link"


@pytest.mark.parametrize(
    ("part", "error", "message"),
    [
        (("usr", "a"), ValueError, "no shorthand 'usr'; did you mean 'user'"),
        (("user", 3), TypeError, "user must be a mapping"),
        ({"role": "robot", "content": "a"}, TypeError, "role must be 'user' or 'assistant'"),
        ({"role": "user"}, TypeError, "content must be a mapping"),
        (None, TypeError, "must be a mapping"),
    ],
)
def test_wrong_messages_are_refused_with_the_reason(part, error, message):
    with pytest.raises(error, match=message):
        get_prompt_result(part)


def test_a_description_is_text():
    with pytest.raises(TypeError, match="description must be a string"):
        get_prompt_result(description=3)


@NEEDS_SCHEMAS
@pytest.mark.behaviour("GEN-B3", "GEN-B7")
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_prompt_validates_strictly_at_every_revision(revision):
    result = get_prompt_result(
        ("user", "a"),
        ("assistant", ("audio", ("audio/mp3", b"x"))),
        ("image", {"mimeType": "image/png", "data": b"x", "annotations": {"priority": 1}, "meta": {"m": 1}}),
        ("resource", {"uri": "x:1", "text": "a", "_meta": {"m": 1}}),
        *([("link", "x:1")] if revision in REVISIONS[2:] else []),
        description="d",
        meta={"m": 1},
        revision=revision,
    )

    check(result, "GetPromptResult", revision)
    assert result["messages"][1]["content"]["type"] == ("text" if revision == REVISIONS[0] else "audio")
