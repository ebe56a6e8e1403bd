from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import pytest

from troth.capabilities import Comparison, Difference, Facts, build, compare, read_client, read_server
from troth.capabilities.paths import fields

MODERN = "2026-07-28"
NOTHING = Comparison(lost=(), gained=(), changed=(), redefined=())


def test_equal_declarations_of_one_revision_do_not_differ():
    raw = {"tools": {"listChanged": True}, "experimental": {"x": {"a": 1}}, "completions": {"own": 1}}
    found = compare(read_server(raw, "2025-11-25"), read_server(raw, "2025-11-25"))
    assert found == NOTHING
    assert not found


def test_what_is_lost_and_gained_is_named_with_its_reason():
    full = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}}
    found = compare(read_client(full, "2025-11-25"), read_client({"elicitation": {}, "roots": {}}, "2025-06-18"))
    assert found.lost == (
        Difference(path="sampling", row_id="CAP-04", sentence="sampling: not declared under 2025-06-18"),
        Difference(path="sampling.tools", row_id="CAP-06", sentence="sampling.tools: 2025-06-18 does not define it"),
        Difference(
            path="elicitation.form", row_id="CAP-08", sentence="elicitation.form: 2025-06-18 does not define it"
        ),
        Difference(path="elicitation.url", row_id="CAP-09", sentence="elicitation.url: 2025-06-18 does not define it"),
    )
    assert [(entry.path, entry.row_id) for entry in found.gained] == [("roots", "CAP-02")]
    assert found


def test_keys_of_open_maps_are_compared_one_by_one():
    a = read_server({"extensions": {"a.b/c": {"x": 1}, "a.b/d": {}}, "experimental": {"own": {}}}, MODERN)
    b = read_server({"extensions": {"a.b/c": {"x": 2}, "a.b/e": {}}, "experimental": {"own": {}}}, MODERN)
    found = compare(a, b)
    assert found.changed == (
        Difference(
            path='extensions["a.b/c"]', row_id=None, sentence='extensions["a.b/c"]: declared with other settings'
        ),
    )
    assert [entry.path for entry in found.lost] == ['extensions["a.b/d"]']
    assert [entry.path for entry in found.gained] == ['extensions["a.b/e"]']
    [lost, _] = compare(a, read_server({}, "2025-11-25")).lost[-2:]
    assert lost.sentence == 'extensions["a.b/c"]: 2025-11-25 does not define it'


def test_own_members_of_open_objects_are_settings():
    found = compare(read_server({"completions": {"a": 1}}, MODERN), read_server({"completions": {}}, MODERN))
    assert [entry.path for entry in found.changed] == ["completions"]


def test_an_implied_form_mode_equals_a_named_one():
    found = compare(read_client({"elicitation": {}}, MODERN), read_client({"elicitation": {"form": {}}}, MODERN))
    assert found == NOTHING


def test_what_travels_another_way_is_redefined():
    facts = Facts(
        tools=True,
        resources=True,
        subscribe=True,
        push=True,
        announces={"tools"},
        listen={"toolsListChanged", "resourceSubscriptions"},
    )
    found = compare(build(facts, era="legacy"), build(facts, era="modern"))
    assert (found.lost, found.gained, found.changed) == ((), (), ())
    redefined = {entry.path: entry for entry in found.redefined}
    assert {"resources.subscribe", "tools.listChanged"} <= set(redefined)
    assert redefined["resources.subscribe"].row_id == "CAP-17"
    assert redefined["resources.subscribe"].sentence.startswith(
        "resources.subscribe: travels as subscribed in 2025-11-25, as listen in 2026-07-28"
    )
    assert redefined["tools.listChanged"].sentence.startswith(
        "tools.listChanged: travels as session in 2025-11-25, as listen in 2026-07-28"
    )


def test_what_means_something_else_is_redefined(monkeypatch):
    module = import_module("troth.capabilities.compare")
    meanings = {"2025-06-18": "one thing", "2025-11-25": "another"}

    def told(side, revision):
        return {
            key: (row, replace(definition, meaning=meanings[revision] if row.id == "CAP-13" else "the same"))
            for key, (row, definition) in fields(side, revision).items()
        }

    monkeypatch.setattr(module, "fields", told)
    raw = {"completions": {}, "tools": {}}
    found = compare(read_server(raw, "2025-06-18"), read_server(raw, "2025-11-25"))
    sentence = "completions: in 2025-11-25 it means: another"
    assert found.redefined == (Difference(path="completions", row_id="CAP-13", sentence=sentence),)


def test_the_two_sides_cannot_be_compared():
    with pytest.raises(ValueError, match="capabilities of a server cannot be compared with those of a client"):
        compare(read_server({}, MODERN), read_client({}, MODERN))
