"""Content blocks."""

from __future__ import annotations

import base64
import json
from pathlib import Path, PurePosixPath
from urllib.parse import urlparse

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import AudioContent, EmbeddedResource, ResourceLink, TextResourceContents
from pydantic import AnyUrl
from results_official import NEEDS_SCHEMAS, REVISIONS, check

from troth.results import call_tool_result, content_block, get_prompt_result, resource_contents

HEADS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff\xe0",
    "image/gif": b"GIF89a",
    "image/webp": b"RIFF0000WEBP",
    "image/avif": b"0000ftypavif",
    "audio/wav": b"RIFF0000WAVE",
    "audio/flac": b"fLaC",
    "audio/ogg": b"OggS",
    "audio/mpeg": b"ID3",
    "audio/mp4": b"0000ftypM4A",
}


@pytest.mark.parametrize("mime", sorted(HEADS))
@pytest.mark.parametrize("form", [bytes, bytearray, memoryview, lambda data: base64.b64encode(data).decode()])
def test_the_mime_type_is_told_from_the_first_bytes(mime, form):
    kind = mime.partition("/")[0]

    block = content_block((kind, form(HEADS[mime] + b"rest")))

    assert block == {"type": kind, "data": base64.b64encode(HEADS[mime] + b"rest").decode(), "mimeType": mime}


@pytest.mark.parametrize(
    ("name", "mime"), [("a.png", "image/png"), ("a.JPG", "image/jpeg"), ("a.webp", "image/webp"), ("a.svg", None)]
)
def test_a_path_is_read_and_its_name_tells_the_mime_type(tmp_path, name, mime):
    path = tmp_path / name
    path.write_bytes(b"bits")

    assert content_block(image=path) == {"type": "image", "data": "Yml0cw==", "mimeType": mime or "image/svg+xml"}
    assert content_block(image=("image/x", path))["mimeType"] == "image/x"
    assert content_block(image={"data": path})["mimeType"] == mime or "image/svg+xml"


def test_a_file_that_cannot_be_read_is_named():
    with pytest.raises(ValueError, match=r"image\.data: cannot read the file '/no/such\.png': No such file"):
        content_block(image=Path("/no/such.png"))
    with pytest.raises(ValueError, match="cannot read the file"):
        content_block(image=Path("a\x00.png"))


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (b"unknown", ValueError, r"does not tell a MIME type; write image=\('image/\.\.\.', data\)"),
        (b"ID3", ValueError, "tells the MIME type audio/mpeg; write image="),
        (("image/png", "not base64!"), ValueError, "must be base64 already"),
        (("image/png", "!!!!"), ValueError, "must be base64 already"),
        (("image/png", "abc"), ValueError, "must be base64 already"),
        (("image/png", "\u00fc"), ValueError, "must be base64 already"),
        (("image/png", 3), TypeError, "must be bytes, a Path or a base64 string, not int"),
        (("eHg=", "image/png"), ValueError, "must be base64 already"),
        (("png", b"x"), ValueError, "no MIME type such as 'image/png'; it comes before data"),
        ((3, b"x"), TypeError, "must be a MIME type"),
        (("a", "b", "c"), TypeError, r"must be \(MIME type, data\), not 3 values"),
        ({"mimeType": "image/png"}, ValueError, "needs 'data'"),
        (("image/png", None), ValueError, "needs 'data'"),
        ({"mimeType": "image/png", "mime_type": "image/png", "data": b""}, ValueError, "mimeType twice"),
        (7, TypeError, "must be bytes"),
        (None, ValueError, "needs 'data'"),
    ],
)
def test_a_wrong_image_is_refused_with_the_reason(value, error, message):
    with pytest.raises(error, match=message):
        content_block(image=value)


def test_every_shorthand_makes_its_block():
    assert (
        content_block("a") == content_block(text="a") == content_block(("text", "a")) == {"type": "text", "text": "a"}
    )
    assert content_block(audio=("audio/mp3", "YmFzZTY0")) == {
        "type": "audio",
        "data": "YmFzZTY0",
        "mimeType": "audio/mp3",
    }
    assert content_block(resource={"uri": "x:1", "text": "a", "mime_type": "text/html"}) == {
        "type": "resource",
        "resource": {"uri": "x:1", "text": "a", "mimeType": "text/html"},
    }
    assert content_block(link={"name": "n", "uri": "https://a.example/"}) == {
        "type": "resource_link",
        "name": "n",
        "uri": "https://a.example/",
    }


@pytest.mark.parametrize(
    ("uri", "expected", "name"),
    [
        ("https://a.example/b/c.json", "https://a.example/b/c.json", "c.json"),
        (AnyUrl("https://a.example/c.json"), "https://a.example/c.json", "c.json"),
        (urlparse("https://a.example/c.json"), "https://a.example/c.json", "c.json"),
        (Path("/tmp/ü.json"), "file:///tmp/%C3%BC.json", "%C3%BC.json"),
        (PurePosixPath("/a/c.json"), "file:///a/c.json", "c.json"),
    ],
)
def test_a_link_may_be_its_address_alone(uri, expected, name):
    block = {"type": "resource_link", "uri": expected, "name": name, "mimeType": "application/json"}

    assert content_block(link=uri) == content_block(link={"uri": uri}) == block


def test_a_link_without_path_is_named_by_its_address():
    assert content_block(link="urn:")["name"] == "urn:"


def test_a_relative_path_becomes_an_absolute_address():
    assert content_block(link=Path("a b.txt"))["uri"] == (Path.cwd() / "a b.txt").as_uri()


@pytest.mark.parametrize(
    ("part", "error", "message"),
    [
        (("link", {"name": "n"}), ValueError, "link needs 'uri'"),
        (("link", {"name": "n", "uri": "no scheme"}), ValueError, "no URI: it needs a scheme"),
        (("link", {"name": "n", "uri": "x:\x1b[31m"}), ValueError, "no white space or control"),
        (("link", {"name": "n", "uri": 3}), TypeError, "must be a URI as a string, a URL or a Path, not int"),
        (("link", {"name": 3, "uri": "x:1"}), TypeError, "name must be a string"),
        (("link", {"uri": "x:" + "a" * 99 + " "}), ValueError, r"aaa\.\.\., which is no URI"),
        (("resource", {"text": "a"}), ValueError, "resource needs 'uri'"),
        (("resource", {"uri": "x:1"}), ValueError, "needs a body, either 'text' or 'blob', and has neither"),
        (("resource", {"uri": "x:1", "text": "a", "blob": b""}), ValueError, "has text and blob"),
        (("resource", "x:1"), TypeError, "resource must be a mapping, not str"),
        (("resource", {1: 2}), TypeError, "has the key 1; keys"),
        (("text", 3), TypeError, "text must be a string or a mapping with 'text', not int"),
        (("text", {}), ValueError, "text needs 'text'"),
        (("text", "\ud800"), ValueError, "lone surrogate at index 0"),
        (("txt", "a"), ValueError, "no shorthand 'txt'; did you mean 'text'"),
        (("error", "a"), ValueError, "no shorthand 'error'; there are"),
        (("block", {"kind": "x"}), ValueError, "must be a content block with a 'type'"),
        (3, TypeError, "must be a mapping, not int"),
        (None, TypeError, "takes one part, not 0"),
    ],
)
def test_a_wrong_part_is_refused_with_the_reason(part, error, message):
    with pytest.raises(error, match=message):
        content_block(part)


def test_two_parts_are_one_too_many():
    with pytest.raises(TypeError, match="takes one part, not 2"):
        content_block(text="a", link="x:1")


def test_annotations_and_meta_are_members_of_the_block():
    block = content_block(text="a", annotations={"audience": ["user"], "last_modified": "x"}, meta={"m": 1})

    assert block == {
        "type": "text",
        "text": "a",
        "annotations": {"audience": ["user"], "lastModified": "x"},
        "_meta": {"m": 1},
    }
    assert content_block("a", _meta={"m": 1}) == {"type": "text", "text": "a", "_meta": {"m": 1}}
    with pytest.raises(ValueError, match="annotations twice"):
        content_block(text={"text": "a", "annotations": {}}, annotations={})


@pytest.mark.parametrize(
    ("notes", "message"),
    [
        ({"audience": "user"}, "audience must be a list of 'user' or 'assistant'"),
        ({"audience": ["robot"]}, "audience must be"),
        ({"audience": [["x"]]}, "audience must be"),
        ({"priority": 2}, "priority must be a number from 0 to 1"),
        ({"priority": True}, "priority must be"),
        ({"lastModified": 3}, "lastModified must be a string"),
        ("x", "must be a mapping"),
    ],
)
def test_annotations_are_checked(notes, message):
    with pytest.raises(TypeError, match=message):
        content_block("a", annotations=notes)


def test_a_moment_may_be_a_datetime():
    from datetime import UTC, datetime

    moment = datetime(2026, 1, 2, tzinfo=UTC)

    assert content_block("a", annotations={"lastModified": moment})["annotations"] == {
        "lastModified": "2026-01-02T00:00:00+00:00"
    }


def test_whole_blocks_pass_whether_mappings_or_models():
    embedded = EmbeddedResource(resource=TextResourceContents(uri="x:1", text="a"), _meta={"m": 1})
    link = ResourceLink(uri="x:1", name="n", size=3)

    assert content_block(AudioContent(data="", mime_type="audio/x")) == {
        "type": "audio",
        "data": "",
        "mimeType": "audio/x",
    }
    assert content_block(embedded) == {"type": "resource", "resource": {"uri": "x:1", "text": "a"}, "_meta": {"m": 1}}
    assert content_block(link) == {"type": "resource_link", "uri": "x:1", "name": "n", "size": 3}
    assert content_block(block={"type": "hologram", "x": 1}) == {"type": "hologram", "x": 1}


def test_annotations_of_contents_go_to_the_block():
    notes = {"audience": ["user"]}
    contents = resource_contents(uri="x:1", text="a", annotations=notes)
    block = {"type": "resource", "resource": {"uri": "x:1", "text": "a"}, "annotations": notes}

    assert content_block(resource=contents) == block
    assert content_block({"type": "resource", "resource": contents}) == block
    assert content_block(resource={"resource": contents, "annotations": {}})["annotations"] == {}


def test_members_of_no_revision_stay():
    assert content_block({"type": "text", "text": "a", "x-mine": [1]}, revision=REVISIONS[0]) == {
        "type": "text",
        "text": "a",
        "x-mine": [1],
    }


@pytest.mark.behaviour("GEN-B7")
def test_a_link_becomes_text_with_its_address_where_there_are_no_links():
    link = {"name": "n", "uri": "x:1", "description": "About n", "annotations": {"priority": 1}}

    for revision in REVISIONS[:2]:
        assert content_block(link=link, revision=revision) == {
            "type": "text",
            "text": "n: x:1\nAbout n",
            "annotations": {"priority": 1},
        }
    for revision in REVISIONS[2:]:
        assert content_block(link=link, revision=revision)["type"] == "resource_link"


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.builds(Path, st.text())
    | st.just(object()),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(
            st.sampled_from(["type", "text", "uri", "data", "mimeType", "resource", "annotations", "_meta", "x"]), inner
        )
    ),
    max_leaves=6,
)
kinds = st.sampled_from(["text", "image", "audio", "resource", "link", "block"])


def outcome(part, revision):
    try:
        return content_block(part, revision=revision), None
    except Exception as error:
        return None, error


@NEEDS_SCHEMAS
@given(part=anything | st.tuples(kinds, anything), revision=st.sampled_from(REVISIONS))
def test_any_input_gives_a_valid_block_or_an_error_with_a_sentence(part, revision):
    block, refusal = outcome(part, revision)
    if block is None:
        assert type(refusal) in (TypeError, ValueError)
        assert len(str(refusal).split()) > 3
    else:
        if block["type"] in ("text", "image", "audio", "resource", "resource_link"):
            definition = {"resource": "EmbeddedResource"}.get(block["type"], block["type"].title() + "Content")
            check(block, {"Resource_LinkContent": "ResourceLink"}.get(definition, definition), revision)


@given(
    parts=st.lists(
        anything | st.tuples(kinds | st.sampled_from(["data", "_data", "error", "user"]), anything), max_size=3
    ),
    revision=st.sampled_from([None, *REVISIONS]),
    builder=st.sampled_from([call_tool_result, get_prompt_result]),
)
def test_any_parts_give_a_result_that_json_can_write_or_an_error_with_a_sentence(parts, revision, builder):
    try:
        result, refusal = builder(*parts, revision=revision), None
    except Exception as error:
        result, refusal = None, error
    if result is None:
        assert type(refusal) in (TypeError, ValueError)
        assert len(str(refusal).split()) > 3
    else:
        assert json.loads(json.dumps(result, allow_nan=False)) == result


@NEEDS_SCHEMAS
@given(value=st.text(st.characters(exclude_categories=["Cs"])), revision=st.sampled_from(REVISIONS))
def test_every_text_survives(value, revision):
    assert content_block(text=value, revision=revision) == {"type": "text", "text": value}


@given(data=st.binary())
def test_every_sequence_of_bytes_survives(data):
    assert base64.b64decode(content_block(image=("image/png", data))["data"]) == data
