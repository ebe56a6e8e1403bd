"""Results of resources/read."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp_types import BlobResourceContents
from results_official import NEEDS_SCHEMAS, REVISIONS, check

from troth.results import read_resource_result, resource_contents


def test_text_and_binary_contents_are_told_apart():
    assert resource_contents(uri="file:///a.md", text="a") == {
        "uri": "file:///a.md",
        "text": "a",
        "mimeType": "text/markdown",
    }
    assert resource_contents(uri="x:1", blob=b"%PDF-1", meta={"m": 1}) == {
        "uri": "x:1",
        "blob": "JVBERi0x",
        "mimeType": "application/pdf",
        "_meta": {"m": 1},
    }
    assert resource_contents(uri="x:1", blob="eA==", mime_type="a/b") == {
        "uri": "x:1",
        "blob": "eA==",
        "mimeType": "a/b",
    }
    assert resource_contents(uri="http://[", text="a") == {"uri": "http://[", "text": "a"}
    assert resource_contents(uri="x:1", text="") == {"uri": "x:1", "text": ""}


def test_annotations_have_no_place_in_contents_of_a_revision():
    notes = {"priority": 1}

    assert resource_contents(uri="x:1", text="a", annotations=notes)["annotations"] == notes
    for revision in REVISIONS:
        assert resource_contents(uri="x:1", text="a", annotations=notes, revision=revision) == {
            "uri": "x:1",
            "text": "a",
        }
    noted = resource_contents(uri="x:1", text="a", annotations=notes)
    assert read_resource_result(noted)["contents"] == [{"uri": "x:1", "text": "a"}]
    with pytest.raises(TypeError, match=r"annotations\.priority must be a number"):
        resource_contents(uri="x:1", text="a", annotations={"priority": "high"})


def test_files_are_read_as_text_or_bytes(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text("é = 1", "utf-8")

    assert resource_contents(uri=path, text=path) == {
        "uri": path.as_uri(),
        "text": "é = 1",
        "mimeType": "application/toml",
    }
    assert resource_contents(uri=path, blob=path)["blob"] == "w6kgPSAx"
    path.write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"not UTF-8 text .*; use blob="):
        resource_contents(uri=path, text=path)


@pytest.mark.parametrize("builder", [resource_contents, read_resource_result])
@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({}, ValueError, "needs 'uri', which is missing"),
        ({"text": "a"}, ValueError, "needs 'uri', which is missing"),
        ({"uri": "x:1"}, ValueError, "needs a body, either 'text' or 'blob', and has neither"),
        ({"uri": "x:1", "text": "a", "blob": b""}, ValueError, "and has text and blob"),
        ({"uri": "a.txt", "text": "a"}, ValueError, "no URI"),
        ({"uri": "x:1", "text": 3}, TypeError, "text must be a string, not 3"),
        ({"uri": "x:1", "text": "a", "mime_type": "x"}, ValueError, "no MIME type"),
        ({"uri": "x:1", "text": "a", "meta": {}, "_meta": {}}, ValueError, "_meta twice"),
        ({"uri": "x:1", "text": "a", "meta": 3}, TypeError, "_meta must be an object, not 3"),
    ],
)
def test_what_is_missing_or_wrong_is_said(builder, keywords, error, message):
    with pytest.raises(error, match=message):
        builder(**keywords)


def test_keywords_make_one_content_and_positions_several():
    one = {"uri": "x:1", "text": "a"}

    assert read_resource_result(uri="x:1", text="a", meta={"m": 1})["contents"] == [{**one, "_meta": {"m": 1}}]
    assert read_resource_result(one, BlobResourceContents(uri="x:2", blob=""), _meta={"m": 1}) == {
        "contents": [one, {"uri": "x:2", "blob": ""}],
        "_meta": {"m": 1},
        "ttlMs": 0,
        "cacheScope": "private",
        "resultType": "complete",
    }


def test_contents_may_come_as_one_list():
    one = {"uri": "x:1", "text": "a"}

    assert read_resource_result([one, one]) == read_resource_result(one, one)
    assert read_resource_result([], revision="2024-11-05") == {"contents": []}


def test_positions_and_keywords_do_not_mix():
    with pytest.raises(TypeError, match="not both: uri, text given too"):
        read_resource_result({"uri": "x:1", "text": "a"}, uri="x:2", text="b")


@pytest.mark.parametrize(
    ("hints", "error", "message"),
    [
        ({"ttl_ms": -1}, ValueError, "0 or more milliseconds, not -1"),
        ({"ttl_ms": 0.5}, TypeError, "an integer of milliseconds, not float"),
        ({"ttl_ms": True}, TypeError, "not bool"),
        ({"cache_scope": "shared"}, ValueError, "'private' or 'public', not 'shared'"),
    ],
)
def test_cache_hints_are_checked(hints, error, message):
    with pytest.raises(error, match=message):
        read_resource_result(uri="x:1", text="a", **hints)


@NEEDS_SCHEMAS
@pytest.mark.behaviour("GEN-B3", "GEN-B7")
@pytest.mark.parametrize("revision", REVISIONS)
def test_contents_validate_strictly_at_every_revision(revision):
    result = read_resource_result(
        resource_contents(uri=Path("/a b.txt"), text="a", meta={"m": 1}),
        {"uri": "x:1", "blob": b"x"},
        meta={"m": 1},
        ttl_ms=5,
        cache_scope="public",
        revision=revision,
    )

    check(result, "ReadResourceResult", revision)
    assert ("ttlMs" in result, "_meta" in result["contents"][0]) == (
        revision == REVISIONS[-1],
        revision in REVISIONS[2:],
    )
    assert result.get("cacheScope", "public") == "public"


@NEEDS_SCHEMAS
@pytest.mark.parametrize("revision", REVISIONS)
def test_single_contents_validate_strictly_at_every_revision(revision):
    check(resource_contents(uri="x:1", text="a", meta={"m": 1}, revision=revision), "TextResourceContents", revision)
