"""The table of members against the official schemas, in both directions."""

from __future__ import annotations

import pytest
from results_official import NEEDS_SCHEMAS, REVISIONS, definitions, resolve

from troth.register import Side, register
from troth.results.shapes import REQUIRED
from troth.results.spelling import DEFINITIONS
from troth.results.table import CHILDREN, CONTENT, DEFAULTS, KNOWN, MEMBERS, OPEN_SHAPES

pytestmark = NEEDS_SCHEMAS

RESULTS = [name for name in KNOWN if name.endswith("Result")]


def official(definition, revision):
    """The schema of a definition, also where an older revision writes it in place; None where there is none."""
    if definition in definitions(revision):
        return definitions(revision)[definition]
    if definition == "Annotations":
        return definitions(revision)["TextContent"]["properties"]["annotations"]
    if definition == "ResultMetaObject":
        return definitions(revision)["Result"]["properties"]["_meta"]
    return None


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("definition", sorted(KNOWN))
def test_every_definition_has_the_members_that_the_schema_gives_it_and_no_other(definition, revision):
    node = official(definition, revision)
    expected = None if node is None else frozenset(node.get("properties", {}))

    assert MEMBERS.get((definition, revision)) == expected


def test_the_table_knows_no_other_revision():
    assert {revision for _, revision in MEMBERS} == set(REVISIONS)


def children(node, revision):
    """The definitions that a member's schema leads to."""
    if "$ref" in node:
        return {node["$ref"].rpartition("/")[2]}
    if "items" in node:
        return children(node["items"], revision)
    return set().union(*(children(option, revision) for option in node.get("anyOf", [])))


LEAVES = {"Role", "ContentBlock", "JSONObject", "MetaObject", "ResultType"}


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("definition", sorted(KNOWN))
def test_every_member_leads_to_the_definition_that_the_schema_names(definition, revision):
    node = official(definition, revision)
    for name, member in (node or {}).get("properties", {}).items():
        found = children(member, revision) - LEAVES
        child = CHILDREN.get((definition, name))
        if child in (None, "Annotations", "ResultMetaObject"):
            # Older revisions write these two in place.
            assert found <= ({child} - {None}), name
        elif child == "ContentBlock":
            union = set(CONTENT.values()) if children(member, revision) == {"ContentBlock"} else found
            assert union == {kind for kind in CONTENT.values() if (kind, revision) in MEMBERS}, name
        elif child == "ResourceContents":
            assert found == {"TextResourceContents", "BlobResourceContents"}, name
        else:
            assert found == {child}, name


def test_every_child_is_a_member_of_some_revision_and_a_definition():
    for (definition, name), child in CHILDREN.items():
        assert name in KNOWN[definition]
        assert child in DEFINITIONS


@pytest.mark.parametrize("revision", REVISIONS)
def test_content_types_are_spelled_as_in_the_schema(revision):
    for kind, definition in CONTENT.items():
        if (definition, revision) in MEMBERS:
            assert definitions(revision)[definition]["properties"]["type"]["const"] == kind


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("definition", RESULTS)
def test_the_defaults_are_the_members_that_this_revision_alone_requires(definition, revision):
    node = official(definition, revision)
    added = {"resultType", "ttlMs", "cacheScope"}

    assert set(DEFAULTS.get((definition, revision), {})) == (set(node.get("required", ())) & added if node else set())


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("definition", sorted(REQUIRED))
def test_authors_must_give_what_the_schema_requires(definition, revision):
    node = official(definition, revision)
    if node is not None:
        assert set(REQUIRED[definition]) == set(node.get("required", ())) - {"type"}


@pytest.mark.parametrize("revision", REVISIONS)
def test_structured_content_is_an_object_except_where_the_schema_is_open(revision):
    node = definitions(revision)["CallToolResult"]["properties"].get("structuredContent", {"type": "object"})

    assert (resolve(node, revision).get("type") is None) == (revision in OPEN_SHAPES)


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_register_knows_the_server_capabilities_of_the_schema(revision):
    rows = {row.key[0] for row in register().at(Side.SERVER, revision)}

    assert rows == set(definitions(revision)["ServerCapabilities"]["properties"])
