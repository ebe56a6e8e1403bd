"""Results of tools."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime

import msgspec
import pytest
from mcp_types import ImageContent, TextContent
from pydantic import BaseModel, Field
from results_official import NEEDS_SCHEMAS, REVISIONS, check

from troth.results import call_tool_result

PNG = b"\x89PNG\r\n\x1a\n0000"
PNG64 = "iVBORw0KGgowMDAw"


def text(value):
    return {"type": "text", "text": value}


def test_keywords_keep_their_order_and_each_does_its_part():
    result = call_tool_result(text="a", data={"rows": 3}, error="x")

    assert result == {
        "content": [text("a"), text('{"rows":3}'), text("x")],
        "structuredContent": {"rows": 3},
        "isError": True,
        "resultType": "complete",
    }
    assert call_tool_result(error="x", text="a")["content"] == [text("x"), text("a")]


def test_pairs_blocks_and_data_come_in_order_and_may_repeat():
    result = call_tool_result(("text", "a"), ("image", ("image/png", PNG)), {"a": 1}, ("text", "b"), text("c"), "d")

    assert result["content"] == [
        text("a"),
        {"type": "image", "mimeType": "image/png", "data": PNG64},
        text('{"a":1}'),
        text("b"),
        text("c"),
        text("d"),
    ]
    assert result["structuredContent"] == {"a": 1}


def test_positions_come_before_keywords():
    assert call_tool_result("a", ("text", "b"), text="c")["content"] == [text("a"), text("b"), text("c")]


def test_nothing_is_an_empty_result():
    assert call_tool_result() == {"content": [], "resultType": "complete"}


@pytest.mark.parametrize("parts", [{"data": {"ü": [1, None]}}, None])
def test_bare_data_and_data_are_mirrored_as_json_text(parts):
    result = call_tool_result(**parts) if parts else call_tool_result({"ü": [1, None]})

    assert result["structuredContent"] == {"ü": [1, None]}
    assert result["content"] == [text('{"ü":[1,null]}')]


def test_underscored_data_is_not_mirrored():
    result = call_tool_result(text="Summary", _data={"rows": 3})

    assert (result["content"], result["structuredContent"]) == ([text("Summary")], {"rows": 3})


@pytest.mark.parametrize(
    "parts",
    [
        ({"a": 1}, {"b": 2}),
        (("data", {"a": 1}), ("_data", {"a": 1})),
        (("data", None), ("data", None)),
    ],
)
def test_a_second_structured_payload_is_an_error(parts):
    with pytest.raises(ValueError, match="one structured payload"):
        call_tool_result(*parts)


@pytest.mark.parametrize(
    ("errors", "marked", "texts"),
    [
        ([True], True, []),
        (["boom"], True, ["boom"]),
        ([""], True, [""]),
        ([None], False, []),
        ([False], False, []),
        ([True, False, None], True, []),
        (["a", False, "b"], True, ["a", "b"]),
        ([ValueError("bad row")], True, ["bad row"]),
        ([ValueError()], True, ["ValueError"]),
    ],
)
def test_an_error_is_marked_once_and_stays(errors, marked, texts):
    result = call_tool_result(*(("error", error) for error in errors))

    assert result == {
        "content": [text(word) for word in texts],
        **({"isError": True} if marked else {}),
        "resultType": "complete",
    }


@pytest.mark.parametrize("wrong", [1, 0, [], {"message": "x"}])
def test_an_error_of_another_type_is_refused(wrong):
    with pytest.raises(TypeError, match="error must be true, false, None"):
        call_tool_result(error=wrong)


@pytest.mark.parametrize("revision", REVISIONS[:-1])
@pytest.mark.parametrize("payload", [[1], "a", 3, True, None])
def test_structured_content_is_an_object_before_the_newest_revision(revision, payload):
    with pytest.raises(ValueError, match=f"must be an object at protocol revision {revision}"):
        call_tool_result(data=payload, revision=revision)


@pytest.mark.parametrize("revision", [None, REVISIONS[-1]])
@pytest.mark.parametrize("payload", [[1], "a", 3, True, None, {"a": 1}])
def test_structured_content_is_any_json_at_the_newest_revision(revision, payload):
    result = call_tool_result(data=payload, revision=revision)

    assert result["structuredContent"] == payload
    assert json.loads(result["content"][0]["text"]) == payload


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_lacks_are_refused_with_their_place(bad):
    with pytest.raises(ValueError, match=r"data\.rows\[1\]\.x is -?(nan|inf)"):
        call_tool_result(data={"rows": [1, {"x": bad}]})


@dataclasses.dataclass
class Row:
    name: str
    when: datetime


class Struct(msgspec.Struct, rename="camel"):
    row_count: int


class Model(BaseModel):
    row_count: int = Field(serialization_alias="rowCount")
    when: datetime


NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (Row("a", NOON), {"name": "a", "when": "2026-01-02T12:00:00Z"}),
        (Struct(3), {"rowCount": 3}),
        (Model(row_count=3, when=NOON), {"rowCount": 3, "when": "2026-01-02T12:00:00Z"}),
        ({"rows": [Struct(1), Model(row_count=2, when=NOON)]}, None),
    ],
)
@pytest.mark.parametrize("bare", [True, False])
def test_dataclasses_structs_and_models_are_structured_payloads(payload, expected, bare):
    result = call_tool_result(payload) if bare else call_tool_result(data=payload)

    expected = expected or {"rows": [{"rowCount": 1}, {"rowCount": 2, "when": "2026-01-02T12:00:00Z"}]}
    assert result["structuredContent"] == expected
    assert json.loads(result["content"][0]["text"]) == expected


def test_models_of_the_sdk_are_blocks():
    result = call_tool_result(TextContent(text="a"), ImageContent(data=PNG64, mime_type="image/png"))

    assert result["content"] == [text("a"), {"type": "image", "data": PNG64, "mimeType": "image/png"}]


def test_a_mapping_with_a_type_of_its_own_is_data_and_an_unfinished_block_is_an_error():
    assert call_tool_result({"type": "video"})["structuredContent"] == {"type": "video"}
    assert call_tool_result(data={"type": "text"})["structuredContent"] == {"type": "text"}
    assert call_tool_result(block={"type": "video", "x": [1]})["content"] == [{"type": "video", "x": [1]}]
    with pytest.raises(ValueError, match="text needs 'text'"):
        call_tool_result({"type": "text"})


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ([("text", "a")], "not list; unpack it"),
        (("text", "a", "b"), "not tuple; unpack it"),
        (3, "not int; name it"),
        (None, "not NoneType; name it"),
        (b"x", "not bytes; name it"),
    ],
)
def test_other_parts_are_refused_with_advice(part, message):
    with pytest.raises(TypeError, match=message):
        call_tool_result(part)


def test_a_wrong_shorthand_names_the_near_one():
    with pytest.raises(ValueError, match="no shorthand 'imge'; did you mean 'image'"):
        call_tool_result(("imge", b""))
    with pytest.raises(ValueError, match="no shorthand 'xyzzy'; there are: text, image"):
        call_tool_result(xyzzy=1)


def test_a_wrong_revision_names_the_near_one():
    with pytest.raises(ValueError, match="no protocol revision '2025-11-26'; did you mean '2025-11-25'"):
        call_tool_result(revision="2025-11-26")
    with pytest.raises(ValueError, match="no protocol revision 'x'; known are: 2024-11-05"):
        call_tool_result(revision="x")


def test_meta_has_two_spellings_and_one_place():
    assert call_tool_result(meta={"a/b": 1}) == call_tool_result(_meta={"a/b": 1})
    assert call_tool_result(meta={"a/b": 1})["_meta"] == {"a/b": 1}
    with pytest.raises(TypeError, match="meta= or _meta=, not both"):
        call_tool_result(meta={}, _meta={})
    with pytest.raises(TypeError, match="_meta must be a mapping"):
        call_tool_result(meta="x")


def everything(revision):
    notes = {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-02T12:00:00Z"}
    return call_tool_result(
        ("text", {"text": "a", "annotations": notes, "meta": {"m": 1}}),
        ("image", ("image/png", PNG)),
        ("audio", {"mime_type": "audio/mp3", "data": b"x", "annotations": notes}),
        ("resource", {"uri": "file:///a.txt", "text": "a", "annotations": notes, "_meta": {"m": 1}}),
        ("resource", {"uri": "file:///a.bin", "blob": b"x"}),
        (
            "link",
            {"uri": "https://a.example/b.txt", "name": "b", "title": "B", "size": 3, "icons": ["https://a.example/i"]},
        ),
        {"a": 1},
        error="x",
        meta={"m": 1, "io.modelcontextprotocol/serverInfo": {"name": "n", "version": "1", "title": "N"}},
        revision=revision,
    )


@NEEDS_SCHEMAS
@pytest.mark.behaviour("GEN-B3", "GEN-B7")
@pytest.mark.parametrize("revision", REVISIONS)
def test_a_full_result_validates_strictly_at_every_revision(revision):
    check(everything(revision), "CallToolResult", revision)


@NEEDS_SCHEMAS
@pytest.mark.behaviour("GEN-B3")
def test_the_strict_sweep_sees_a_member_of_another_revision():
    with pytest.raises(AssertionError, match="structuredContent"):
        check(call_tool_result({"a": 1}), "CallToolResult", REVISIONS[0])


@pytest.mark.behaviour("GEN-B7")
def test_what_the_oldest_revision_lacks_is_spelled_down():
    notes = {"audience": ["user"], "priority": 0.5}

    assert everything(REVISIONS[0]) == {
        "_meta": {"m": 1},
        "content": [
            {**text("a"), "annotations": notes},
            {"type": "image", "mimeType": "image/png", "data": PNG64},
            {
                **text("[audio omitted: audio/mp3; protocol revision 2024-11-05 has no audio content]"),
                "annotations": notes,
            },
            {
                "type": "resource",
                "annotations": notes,
                "resource": {"uri": "file:///a.txt", "text": "a", "mimeType": "text/plain"},
            },
            {
                "type": "resource",
                "resource": {"uri": "file:///a.bin", "blob": "eA==", "mimeType": "application/octet-stream"},
            },
            text("B: https://a.example/b.txt"),
            text('{"a":1}'),
            text("x"),
        ],
        "isError": True,
    }


@pytest.mark.behaviour("CAP-19-S1")
@pytest.mark.parametrize("revision", REVISIONS[2:])
def test_error_mark_structured_content_blocks_and_meta_reach_revisions_that_define_them(revision):
    result = everything(revision)

    assert result["isError"] is True
    assert result["structuredContent"] == {"a": 1}
    assert result["_meta"]["m"] == 1
    assert [block["type"] for block in result["content"][:6]] == [
        "text",
        "image",
        "audio",
        "resource",
        "resource",
        "resource_link",
    ]
    assert result["content"][0]["_meta"] == {"m": 1}


def test_unmirrored_data_alone_does_not_vanish_where_the_revision_cannot_carry_it():
    assert call_tool_result(_data={"a": 1}, revision=REVISIONS[0]) == {"content": [text('{"a":1}')]}
    assert call_tool_result(_data={"a": 1}, text="s", revision=REVISIONS[0]) == {"content": [text("s")]}
    assert call_tool_result(_data={"a": 1}, revision="2025-06-18") == {"content": [], "structuredContent": {"a": 1}}


def test_the_arguments_are_neither_changed_nor_shared():
    data, block, meta = {"a": [1]}, {**text("a"), "annotations": {"audience": ["user"]}}, {"m": [1]}
    before = json.dumps([data, block, meta])

    result = call_tool_result(block, data, meta=meta)
    result["structuredContent"]["a"].append(2)
    result["content"][0]["annotations"]["audience"].append("assistant")
    result["_meta"]["m"].append(2)

    assert json.dumps([data, block, meta]) == before


@pytest.mark.parametrize(
    "hostile", ["\x1b[31mred\x00", "<script>alert(1)</script>", "\u202e\u2028", "a" * 10_000, "🦊"]
)
def test_hostile_strings_arrive_as_they_are(hostile):
    result = call_tool_result(hostile, ("error", hostile), {hostile: hostile})

    assert [block["text"] for block in result["content"][:2]] == [hostile, hostile]
    assert json.loads(result["content"][2]["text"]) == {hostile: hostile}
