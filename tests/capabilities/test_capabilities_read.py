from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.capabilities import Presence, Problem, ProblemKind, read_client, read_server
from troth.capabilities.read import MAX_DEPTH, MAX_PROBLEMS
from troth.register import Side, register

REVISIONS = register().revisions
LEGACY = REVISIONS[:-1]
MODERN = "2026-07-28"
TASKS = 'extensions["io.modelcontextprotocol/tasks"]'
READ = {Side.SERVER: read_server, Side.CLIENT: read_client}

keys = [*sorted({name for row in register().rows for name in row.key}), "list", "voice", "bad", "a.b/c"]
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
any_json = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(keys) | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=25,
)


def affirmed(caps) -> set[str]:
    return {row.path for row in register().rows if row.side is caps.side and caps.has(row.path)}


@pytest.mark.behaviour("GEN-B2")
@pytest.mark.parametrize("revision", REVISIONS)
def test_an_empty_object_declares_and_an_absent_member_does_not(revision):
    caps = read_server({"tools": {}}, revision)
    assert (caps.has("tools"), caps.has("prompts"), caps.problems) == (True, False, ())
    assert caps.effective == {"tools": {}}
    assert caps.row("CAP-19").state is Presence.PRESENT
    assert caps.row("CAP-14").state is Presence.ABSENT


@pytest.mark.behaviour("GEN-B2")
@pytest.mark.parametrize(
    ("value", "word"),
    [
        (None, "null"),
        (False, "a boolean"),
        (True, "a boolean"),
        ([], "an array"),
        ("", "a string"),
        (0, "a number"),
        (1.5, "a number"),
        ({1}, "a set"),
    ],
)
def test_what_is_no_object_where_one_belongs_is_malformed_and_absent(value, word):
    caps = read_server({"tools": value, "prompts": {"listChanged": True}}, "2025-11-25")
    assert caps.effective == {"prompts": {"listChanged": True}}
    assert not caps.has("tools")
    assert caps.row("CAP-19").state is Presence.MALFORMED
    assert caps.row("CAP-19").value == value
    [problem] = caps.problems
    assert problem == Problem(
        kind=ProblemKind.MALFORMED,
        path="tools",
        row_id="CAP-19",
        message=f"tools is {word} where an object belongs; it counts as absent",
        value_type=word.split()[-1],
    )


@pytest.mark.parametrize("value", [None, {}, "true", 1])
def test_what_is_no_boolean_where_one_belongs_is_malformed_and_leaves_its_parent(value):
    caps = read_server({"resources": {"subscribe": value, "listChanged": False}}, "2025-06-18")
    assert caps.effective == {"resources": {"listChanged": False}}
    assert [(problem.kind, problem.path, problem.row_id) for problem in caps.problems] == [
        (ProblemKind.MALFORMED, "resources.subscribe", "CAP-17")
    ]


def test_a_false_flag_stays_visible_and_counts_as_absent():
    caps = read_server({"tools": {"listChanged": False}}, "2025-11-25")
    assert caps.effective == {"tools": {"listChanged": False}}
    assert not caps.has("tools.listChanged")
    assert (caps.row("CAP-20").state, caps.row("CAP-20").value) == (Presence.ABSENT, False)


@pytest.mark.behaviour("GEN-B1")
def test_effective_is_what_was_declared_and_the_negotiated_revision_defines():
    offered = {
        "elicitation": {"form": {}, "url": {}},
        "sampling": {"tools": {}},
        "tasks": {"list": {}, "requests": {"sampling": {"createMessage": {}}}},
    }
    caps = read_client(offered, "2025-06-18")
    assert caps.effective == {"elicitation": {}, "sampling": {}}
    assert [(problem.kind, problem.row_id) for problem in caps.problems] == [
        (ProblemKind.NOT_IN_REVISION, "CAP-08"),
        (ProblemKind.NOT_IN_REVISION, "CAP-09"),
        (ProblemKind.NOT_IN_REVISION, "CAP-06"),
        (ProblemKind.NOT_IN_REVISION, "CAP-10"),
    ]
    assert caps.row("CAP-10").state is Presence.NOT_IN_REVISION
    assert caps.row("CAP-10-list").state is Presence.ABSENT
    assert affirmed(caps) == {"elicitation", "sampling"}
    assert affirmed(read_client(offered, "2025-11-25")) == {
        "elicitation",
        "elicitation.form",
        "elicitation.url",
        "sampling",
        "sampling.tools",
        "tasks",
        "tasks.list",
        "tasks.requests",
        "tasks.requests.sampling",
        "tasks.requests.sampling.createMessage",
    }


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("side", Side)
def test_every_row_that_a_revision_lacks_is_reported_and_has_no_effect(side, revision):
    for row in register().rows:
        parent_defined = len(row.key) == 1 or register().path(row.path.rpartition(".")[0], side)
        if row.side is not side or row.at(revision) or row.extension or not parent_defined:
            continue
        raw: object = {}
        for name in reversed(row.key):
            raw = {name: raw}
        caps = READ[side](raw, revision)
        [problem] = caps.problems
        assert problem.kind is ProblemKind.NOT_IN_REVISION
        assert row.path.startswith(problem.path)
        assert not caps.has(row.path)


@pytest.mark.behaviour("CAP-03-C1")
def test_roots_list_changed_has_no_place_in_the_modern_revision():
    caps = read_client({"roots": {"listChanged": False}}, MODERN)
    assert caps.effective == {"roots": {}}
    assert [(problem.kind, problem.row_id) for problem in caps.problems] == [(ProblemKind.NOT_IN_REVISION, "CAP-03")]


@pytest.mark.parametrize(
    ("read", "raw", "path", "row_id"),
    [
        (read_server, {"sampling": {}}, "sampling", "CAP-04"),
        (read_client, {"tools": {}}, "tools", "CAP-19"),
        (read_server, {"tasks": {"requests": {"sampling": {}}}}, "tasks.requests.sampling", "CAP-10-requests-sampling"),
    ],
)
def test_a_member_of_the_other_side_is_reported_with_its_row(read, raw, path, row_id):
    caps = read(raw, "2025-11-25")
    assert [(problem.kind, problem.path, problem.row_id) for problem in caps.problems] == [
        (ProblemKind.NOT_IN_REVISION, path, row_id)
    ]


def test_members_that_no_revision_defines_are_kept_and_marked():
    caps = read_server({"tools": {"list": True}, "x": [1], "completions": {"own": 1}}, "2025-11-25")
    assert caps.effective == {"tools": {}, "completions": {"own": 1}}
    assert caps.unknown == {"tools.list": True, "x": [1]}
    assert [(problem.kind, problem.path, problem.row_id) for problem in caps.problems] == [
        (ProblemKind.UNKNOWN, "tools.list", None),
        (ProblemKind.UNKNOWN, "x", None),
    ]


@pytest.mark.behaviour("CAP-08-S1", "CAP-09-S1")
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
@pytest.mark.parametrize(
    ("elicitation", "whole", "form", "url"),
    [
        ({}, True, True, False),
        ({"form": {}}, True, True, False),
        ({"url": {}}, True, False, True),
        ({"form": {}, "url": {}}, True, True, True),
        ({"voice": {}}, False, False, False),
        ({"form": None}, False, False, False),
        ({"form": True, "url": {}}, True, False, True),
    ],
)
def test_modes_of_elicitation(revision, elicitation, whole, form, url):
    caps = read_client({"elicitation": elicitation}, revision)
    assert (caps.has("elicitation"), caps.has("elicitation.form"), caps.has("elicitation.url")) == (whole, form, url)
    assert ("elicitation" in caps.effective) is whole


@pytest.mark.behaviour("CAP-08-S1")
def test_a_revision_without_modes_has_no_paths_for_them():
    caps = read_client({"elicitation": {}}, "2025-06-18")
    assert affirmed(caps) == {"elicitation"}
    assert affirmed(read_client({"elicitation": {}}, "2025-03-26")) == set()


@pytest.mark.behaviour("CAP-08-B1")
def test_keys_inside_form_are_tolerated():
    caps = read_client({"elicitation": {"form": {"applyDefaults": True}}}, "2025-11-25")
    assert (caps.problems, caps.unknown, caps.has("elicitation.form")) == ((), {}, True)


@pytest.mark.behaviour("CAP-01-B1")
@pytest.mark.parametrize("revision", REVISIONS)
def test_values_of_experimental_must_be_objects(revision):
    caps = read_client({"experimental": {"ours": {"a": None, "b": 1.5}, "odd": True}}, revision)
    assert caps.effective == {"experimental": {"ours": {"a": None, "b": 1.5}}}
    assert [(problem.kind, problem.path, problem.row_id) for problem in caps.problems] == [
        (ProblemKind.MALFORMED, "experimental.odd", "CAP-01-client")
    ]
    assert (caps.has("experimental.ours"), caps.has('experimental["odd"]')) == (True, False)


@pytest.mark.behaviour("CAP-11-C1")
@pytest.mark.parametrize(
    "key", ["tasks", "/tasks", "-a/b", "a-/b", "a..b/c", "1a/b", "a/", "a/-b", "a/b-", "a b/c", "a/b\n", ""]
)
def test_extension_keys_need_a_prefix_and_a_name(key):
    caps = read_server({"extensions": {key: {}, "com.example-2.x/y_z.1": {}}}, MODERN)
    assert caps.effective == {"extensions": {"com.example-2.x/y_z.1": {}}}
    assert [(problem.kind, problem.row_id) for problem in caps.problems] == [(ProblemKind.MALFORMED, "CAP-25")]


def test_an_extension_of_the_register_has_its_own_row():
    key = "io.modelcontextprotocol/tasks"
    good = read_server({"extensions": {key: {}}}, MODERN)
    assert (good.has(TASKS), good.has(f"extensions.{key}"), good.row("CAP-26-server").state) == (
        True,
        True,
        Presence.PRESENT,
    )
    bad = read_server({"extensions": {key: []}}, MODERN)
    assert (bad.has(TASKS), bad.row("CAP-26-server").state, bad.problems[0].row_id) == (
        False,
        Presence.MALFORMED,
        "CAP-26-server",
    )


@pytest.mark.parametrize("revision", LEGACY)
def test_extensions_are_leaked_before_the_modern_revision(revision):
    caps = read_client({"extensions": {"io.modelcontextprotocol/tasks": {}}}, revision)
    assert (caps.effective, caps.has(TASKS), caps.problems[0].row_id) == ({}, False, "CAP-11")


@pytest.mark.behaviour("GEN-B4")
def test_two_requests_are_read_apart():
    first = read_client({"sampling": {}}, MODERN)
    second = read_client({}, MODERN)
    assert (first.has("sampling"), second.has("sampling")) == (True, False)


@pytest.mark.parametrize(("raw", "kind"), [(None, "null"), ([], "array"), ("x", "string"), (True, "boolean")])
def test_what_is_no_object_at_all_declares_nothing(raw, kind):
    caps = read_client(raw, MODERN)
    assert (caps.raw, caps.effective, affirmed(caps)) == (raw, {}, set())
    assert [(problem.kind, problem.path, problem.value_type) for problem in caps.problems] == [
        (ProblemKind.MALFORMED, "", kind)
    ]


def nested(levels):
    value: object = 1
    for level in range(levels):
        value = {"a": value} if level % 2 else [value]
    return {"a": value}


def test_a_member_that_nests_too_deep_is_malformed():
    caps = read_client({"sampling": nested(MAX_DEPTH - 1), "x": nested(MAX_DEPTH), "roots": {}}, "2025-03-26")
    assert caps.effective == {"sampling": nested(MAX_DEPTH - 1), "roots": {}}
    assert [(problem.kind, problem.path) for problem in caps.problems] == [(ProblemKind.MALFORMED, "x")]
    caps = read_client({"sampling": nested(100_000)}, "2025-03-26")
    assert caps.effective == {}
    assert [(problem.kind, problem.path, problem.row_id) for problem in caps.problems] == [
        (ProblemKind.MALFORMED, "sampling", "CAP-04")
    ]
    assert caps.row("CAP-04").state is Presence.MALFORMED


def test_a_flood_of_strangers_is_counted_and_a_row_is_still_reported():
    raw = {f"x{number}": 1 for number in range(MAX_PROBLEMS + 500)} | {"tools": None}
    caps = read_server(raw, "2025-11-25")
    assert len(caps.problems) == MAX_PROBLEMS + 2
    assert caps.problems[-2].row_id == "CAP-19"
    assert caps.problems[-1].message.startswith("500 more members")
    assert len(caps.unknown) == MAX_PROBLEMS + 500


def test_names_are_shown_escaped_and_cut():
    caps = read_server({"\x1b[2J\u202e<b>": 1, "y" * 9000: 1, 5: 1}, "2025-11-25")
    assert caps.problems[0].path == '["\\x1b[2J\\u202e<b>"]'
    assert len(caps.problems[1].path) == 121
    assert set(caps.unknown) == {'["\x1b[2J\u202e<b>"]', "y" * 9000, '["5"]'}
    assert all("\x1b" not in problem.message and len(problem.message) < 250 for problem in caps.problems)


def test_the_effective_object_is_a_copy():
    raw = {"experimental": {"ours": {"list": [{}]}}}
    caps = read_server(raw, MODERN)
    raw["experimental"]["ours"]["list"].append(1)
    assert caps.effective == {"experimental": {"ours": {"list": [{}]}}}
    assert caps.raw is raw


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("tools.listchanged", "did you mean 'tools.listChanged'?"),
        ("roots", "it is a client capability"),
        ("zzzzzz", "there are: completions, experimental"),
        ("tools[0]", "no server capability is called 'tools[0]'"),
        ("experimental.a", None),
        ('extensions["x"]', None),
    ],
)
def test_an_unknown_path_is_an_error_that_names_the_near_one(path, hint):
    caps = read_server({}, MODERN)
    if hint is None:
        assert caps.has(path) is False
        return
    with pytest.raises(ValueError, match="no server capability") as caught:
        caps.has(path)
    assert hint in str(caught.value)


def test_unknown_rows_and_revisions_are_errors():
    caps = read_server({}, MODERN)
    for row_id in ("CAP-99", "CAP-02"):
        with pytest.raises(ValueError, match="no server row"):
            caps.row(row_id)
    with pytest.raises(ValueError, match="unknown protocol revision '2025-01-01'; known: 2024-11-05, "):
        read_server({}, "2025-01-01")


def test_every_path_of_the_register_can_be_asked_at_every_revision():
    for revision in REVISIONS:
        for row in register().rows:
            assert READ[row.side]({}, revision).has(row.path) is False


@given(raw=any_json, side=st.sampled_from(Side), revision=st.sampled_from(REVISIONS))
def test_reading_any_json_raises_nothing_and_reading_the_effective_object_changes_nothing(raw, side, revision):
    caps = READ[side](raw, revision)
    again = READ[side](caps.effective, revision)
    assert (again.effective, again.problems, again.in_force) == (caps.effective, (), caps.in_force)
    assert {row.id for row in register().at(side, revision)} >= {row for row, d in again.declared_rows.items()}


CAPTURES = Path(__file__).parents[2] / "../shared/captures/servers"


@pytest.mark.skipif(not CAPTURES.exists(), reason="the captures are not in ../shared/captures")
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("everything.stdio.2025-11-25.full", []),
        ("everything.stdio.2025-06-18.full", [("not-in-revision", "tasks")]),
        ("everything.stdio.2024-11-05.full", [("not-in-revision", "completions"), ("not-in-revision", "tasks")]),
        (
            "fm2-full.stdio.2025-11-25.full",
            [("unknown", "tasks.requests.prompts"), ("unknown", "tasks.requests.resources")],
        ),
        ("ts2-declared.stdio.2025-11-25.full", [("not-in-revision", "extensions"), ("unknown", "bogus")]),
        ("fm4-full.stdio.2026-07-28.full", []),
    ],
)
def test_what_real_servers_declared_is_read_as_it_was(name, found):
    capture = json.loads((CAPTURES / f"{name}.json").read_text("utf-8"))
    caps = read_server(capture["capabilities"], capture["negotiated"] or capture["rev"])
    assert sorted((problem.kind.value, problem.path) for problem in caps.problems) == found
    assert caps.has("tools")
