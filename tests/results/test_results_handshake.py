"""What a server says of itself."""

from __future__ import annotations

from urllib.parse import urlsplit

import mcp_types
import pytest
from results_official import NEEDS_SCHEMAS, REVISIONS, check

from troth.capabilities import Facts, build, read_server
from troth.results import discover_result, initialize_result, server_info

FULL = {
    "name": "n",
    "version": "1",
    "title": "N",
    "description": "d",
    "website_url": "https://a.example/",
    "icons": ["https://a.example/i.png", {"src": "data:image/png;base64,eA==", "mime_type": "image/png"}],
}
CAPABILITIES = {
    "tools": {"listChanged": True},
    "completions": {},
    "tasks": {},
    "extensions": {"a.example/x": {}},
    "x": {"y": 1},
    "logging": None,
}


def test_a_server_is_described_in_full_without_a_revision():
    assert server_info(**FULL) == {
        "name": "n",
        "version": "1",
        "title": "N",
        "description": "d",
        "websiteUrl": "https://a.example/",
        "icons": [
            {"src": "https://a.example/i.png"},
            {"src": "data:image/png;base64,eA==", "mimeType": "image/png"},
        ],
    }
    assert server_info(name="n", version="1") == {"name": "n", "version": "1"}
    assert server_info(name="n", version="1", website_url=urlsplit("https://a.example/x"))["websiteUrl"] == (
        "https://a.example/x"
    )


def test_an_icon_may_be_a_file_which_is_put_in_whole(tmp_path):
    (tmp_path / "i.png").write_bytes(b"x")
    (tmp_path / "i").write_bytes(b"x")

    icons = server_info(name="n", version="1", icons=[tmp_path / "i.png", tmp_path / "i"])["icons"]

    assert icons == [{"src": "data:image/png;base64,eA=="}, {"src": "data:application/octet-stream;base64,eA=="}]


@pytest.mark.behaviour("GEN-B7")
def test_each_revision_gets_the_members_that_it_defines():
    sizes = [sorted(server_info(**FULL, revision=revision)) for revision in REVISIONS]

    full = ["description", "icons", "name", "title", "version", "websiteUrl"]
    assert sizes == [["name", "version"], ["name", "version"], ["name", "title", "version"], full, full]


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({}, TypeError, "name"),
        ({"name": "n"}, TypeError, "version"),
        ({"name": None, "version": "1"}, ValueError, "server_info needs 'name'"),
        ({"name": "n", "version": 1}, TypeError, "version must be a string, not 1"),
        ({"name": "n", "version": "1", "website_url": "example"}, ValueError, "websiteUrl is 'example', which is no"),
        ({"name": "n", "version": "1", "icons": "https://a.example/i"}, TypeError, "icons must be a list, not str"),
        ({"name": "n", "version": "1", "icons": [3]}, TypeError, r"icons\[0\] must be a mapping, not int"),
        ({"name": "n", "version": "1", "icons": [{"src": "x:1", "theme": "red"}]}, TypeError, "theme must be 'light'"),
        ({"name": "n", "version": "1", "revision": "2025"}, ValueError, "no protocol revision '2025'"),
    ],
)
def test_a_server_is_described_rightly_or_not_at_all(keywords, error, message):
    with pytest.raises(error, match=message):
        server_info(**keywords)


@NEEDS_SCHEMAS
@pytest.mark.behaviour("GEN-B3", "GEN-B7")
@pytest.mark.parametrize("revision", REVISIONS[:-1])
def test_initialize_validates_strictly_at_every_revision_that_has_it(revision):
    result = initialize_result(
        server_info=server_info(**FULL),
        capabilities=CAPABILITIES,
        instructions="i",
        meta={"m": 1, "io.modelcontextprotocol/serverInfo": {"name": "n", "version": "1"}},
        revision=revision,
    )

    check(result, "InitializeResult", revision)
    assert result["_meta"] == {"m": 1}
    assert result["protocolVersion"] == revision
    assert (
        sorted(result["capabilities"])
        == {
            "2024-11-05": ["tools", "x"],
            "2025-03-26": ["completions", "tools", "x"],
            "2025-06-18": ["completions", "tools", "x"],
            "2025-11-25": ["completions", "tasks", "tools", "x"],
        }[revision]
    )


def test_initialize_means_the_newest_revision_with_a_handshake():
    assert initialize_result(server_info={"name": "n", "version": "1"}) == {
        "protocolVersion": "2025-11-25",
        "serverInfo": {"name": "n", "version": "1"},
        "capabilities": {},
    }


def test_each_era_has_its_own_result():
    info = {"name": "n", "version": "1"}
    with pytest.raises(ValueError, match="2026-07-28 has no initialize; build a discover_result"):
        initialize_result(server_info=info, revision="2026-07-28")
    with pytest.raises(ValueError, match="2025-11-25 has no server/discover; build an initialize_result"):
        discover_result(server_info=info, revision="2025-11-25")


@NEEDS_SCHEMAS
@pytest.mark.behaviour("GEN-S6", "GEN-B3")
def test_discover_says_everything_in_its_place():
    result = discover_result(
        server_info=mcp_types.Implementation(name="n", version="1"),
        capabilities=mcp_types.ServerCapabilities(tools=mcp_types.ToolsCapability(list_changed=True)),
        supported_versions=["2025-03-26", "2026-07-28", "2025-11-25"],
        instructions="i",
        meta={"m": 1},
        ttl_ms=60_000,
        cache_scope="public",
    )

    check(result, "DiscoverResult", "2026-07-28")
    assert result == {
        "supportedVersions": ["2026-07-28", "2025-11-25", "2025-03-26"],
        "capabilities": {"tools": {"listChanged": True}},
        "instructions": "i",
        "ttlMs": 60_000,
        "cacheScope": "public",
        "resultType": "complete",
        "_meta": {"m": 1, "io.modelcontextprotocol/serverInfo": {"name": "n", "version": "1"}},
    }


def test_discover_promises_nothing_unasked():
    assert discover_result(capabilities=CAPABILITIES) == {
        "supportedVersions": ["2026-07-28"],
        "capabilities": {
            "tools": {"listChanged": True},
            "completions": {},
            "extensions": {"a.example/x": {}},
            "x": {"y": 1},
        },
        "ttlMs": 0,
        "cacheScope": "private",
        "resultType": "complete",
    }


READ = read_server({"tools": {}, "prompts": None, "extensions": {}}, "2025-11-25")
BUILT = build(Facts(tools=True), revision="2025-11-25")


@pytest.mark.parametrize("builder", [initialize_result, discover_result])
@pytest.mark.parametrize("value", [READ, BUILT])
def test_capabilities_that_were_read_or_built_are_declared_as_far_as_they_are_in_force(builder, value):
    assert builder(server_info={"name": "n", "version": "1"}, capabilities=value)["capabilities"] == {"tools": {}}


@pytest.mark.parametrize("builder", [initialize_result, discover_result])
@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"capabilities": ["tools"]}, TypeError, "capabilities must be a mapping, not list"),
        ({"capabilities": {"tools": True}}, TypeError, r"capabilities\.tools must be an object such as {}, not True"),
        ({"instructions": 3}, TypeError, "instructions must be a string, not int"),
        ({"instructions": "\udc80"}, ValueError, "lone surrogate"),
        ({"meta": 3}, TypeError, "mapping|object"),
        ({"server_info": {"name": "n"}}, ValueError, "needs 'version'"),
        ({"server_info": "n"}, TypeError, "must be a mapping"),
    ],
)
def test_what_is_wrong_is_said(builder, keywords, error, message):
    with pytest.raises(error, match=message):
        builder(**{"server_info": {"name": "n", "version": "1"}, **keywords})


@pytest.mark.parametrize(
    ("versions", "error", "message"),
    [
        ([], ValueError, "supported_versions is empty"),
        ("2026-07-28", TypeError, "must be a list of revisions, not str"),
        (["2026-07-29"], ValueError, "did you mean '2026-07-28'"),
    ],
)
def test_supported_versions_are_known_revisions(versions, error, message):
    with pytest.raises(error, match=message):
        discover_result(supported_versions=versions)


def test_initialize_needs_a_server():
    with pytest.raises(ValueError, match="initialize_result needs server_info; build it"):
        initialize_result(server_info=None)
