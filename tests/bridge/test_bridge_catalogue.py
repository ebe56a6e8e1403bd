"""What hosts see of all upstreams: merged, filtered, routed, paged, compared."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from results_official import NEEDS_SCHEMAS
from results_official import _validator as validator

from troth.bridge import BAD_PARAMS, Bad
from troth.bridge.catalogue import VARIANTS, Catalogue, Page
from troth.bridge.listed import FORMS, MOST_URI, Kind, Source
from troth.register import Era, register

LEGACY = register().newest(Era.LEGACY)
MODERN = register().newest(Era.MODERN)
EVERY = register().revisions
KINDS = tuple(FORMS)
kinds = pytest.mark.parametrize("kind", KINDS)
Item = Mapping[str, object]


def tool(name: str, **more: Any) -> Item:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def one(kind: Kind, key: str, **more: Any) -> Item:
    """An item of a kind, called by its key."""
    made = {
        "tools": tool(key),
        "prompts": {"name": key},
        "resources": {"uri": key, "name": "n"},
        "templates": {"uriTemplate": key, "name": "n"},
    }
    return {**made[kind], **more}


def source(name: str, kind: Kind, *keys: str, prefix: str | None = None, **more: Any) -> Source:
    items = tuple(one(kind, key) for key in keys)
    return Source(name=name, prefix=name if prefix is None else prefix, **{kind: items, **more})


def items(catalogue: Catalogue, kind: Kind, revision: str = LEGACY, **more: Any) -> list[Any]:
    return json.loads(catalogue.listing(kind, revision, **more))


def names(catalogue: Catalogue, kind: Kind, **more: Any) -> list[str]:
    return [item[FORMS[kind].key] for item in items(catalogue, kind, **more)]


def raw(item: Item) -> Item:
    return msgspec.json.decode(msgspec.json.encode(item), type=dict[str, Raw])


# Merging and routing


@pytest.mark.behaviour("CAP-19-S2")
def test_lists_are_merged_in_the_order_of_the_configuration_and_then_of_the_upstream() -> None:
    catalogue = Catalogue.build([source("zoo", "tools", "b", "a"), source("ark", "tools", "c", "a")])
    assert names(catalogue, "tools") == ["zoo_b", "zoo_a", "ark_c", "ark_a"]
    assert catalogue.problems == ()


@kinds
@pytest.mark.parametrize("prefix", ["", "fs"])
def test_what_is_listed_is_routed_to_its_owner_under_its_own_name(kind: Kind, prefix: str) -> None:
    catalogue = Catalogue.build([source("fs", kind, "a:b", prefix=prefix), source("other", kind, "a:b")])
    for shown, owner in zip(names(catalogue, kind), ("fs", "other"), strict=True):
        entry = catalogue.route(kind, shown)
        assert entry is not None
        assert (entry.source, entry.own, entry.shown) == (owner, "a:b", shown)


@kinds
def test_a_name_that_nobody_has_is_nobodys(kind: Kind) -> None:
    catalogue = Catalogue.build([source("fs", kind, "a:b"), Source(name="down", prefix="down")])
    assert catalogue.route(kind, "x:y") is None


@pytest.mark.behaviour("CAP-19-S2")
@kinds
def test_the_first_in_order_keeps_a_name_and_the_other_one_is_named(kind: Kind) -> None:
    catalogue = Catalogue.build([source("one", kind, "a:b", "a:b", prefix=""), source("two", kind, "a:b", prefix="")])
    assert [entry.source for entry in catalogue.entries(kind)] == ["one"]
    word = FORMS[kind].word
    assert catalogue.problems == (
        f"one: {word} 'a:b' is left out: the same upstream has one of this name before it",
        f"two: {word} 'a:b' is left out: upstream one has one of this name before it",
    )


def test_a_bare_name_that_meets_a_prefixed_one_is_named() -> None:
    catalogue = Catalogue.build([source("bare", "tools", "fs_read", prefix=""), source("fs", "tools", "read")])
    assert names(catalogue, "tools") == ["fs_read"]
    assert catalogue.problems == ("fs: tool 'fs_read' is left out: upstream bare has one of this name before it",)


@pytest.mark.parametrize("kind", ["resources", "templates"])
@pytest.mark.parametrize("uri", ["fs+a:b", "ui://fs/x"])
def test_a_bare_uri_that_looks_like_one_of_another_upstream_is_left_out(kind: Kind, uri: str) -> None:
    catalogue = Catalogue.build([source("bare", kind, uri, prefix=""), source("fs", kind, "c:d")])
    assert len(catalogue.entries(kind)) == 1
    assert catalogue.problems == (
        f"bare: {FORMS[kind].word} '{uri}' is left out: it looks like one of another upstream",
    )


def test_a_list_that_is_not_known_is_empty_and_costs_nobody_else_anything() -> None:
    catalogue = Catalogue.build([Source(name="down", prefix="down"), source("up", "tools", "a")])
    assert names(catalogue, "tools") == ["up_a"]
    assert names(catalogue, "prompts") == []


def test_rule_9_a_uri_that_no_list_has_is_routed_by_its_prefix() -> None:
    catalogue = Catalogue.build([source("bare", "resources", prefix=""), source("fs", "resources", "a:b")])
    for uri, own in (("fs+x:y", "x:y"), ("ui://fs/view", "ui://view")):
        entry = catalogue.route("resources", uri)
        assert entry is not None
        assert (entry.source, entry.prefix, entry.own, entry.members) == ("fs", "fs", own, {})


def test_every_other_uri_is_of_the_only_upstream_without_a_prefix() -> None:
    catalogue = Catalogue.build([source("fs", "resources", "a:b"), source("bare", "resources", prefix="")])
    entry = catalogue.route("resources", "x:y")
    assert entry is not None
    assert (entry.source, entry.own) == ("bare", "x:y")


def test_among_several_upstreams_without_a_prefix_the_template_that_says_most_decides() -> None:
    catalogue = Catalogue.build(
        [
            source("any", "templates", "{+all}", prefix=""),
            source("docs", "templates", "doc://{a}/{b}.md", "doc://x", prefix=""),
            source("late", "templates", "doc://{a}/{c}.md", prefix=""),
            source("fs", "templates", "doc://{a}/{b}.md"),
        ]
    )
    owners = {
        "doc://one/two.md": "docs",
        "doc://one/two.txt": "any",
        "doc://.md": "any",
        "doc://one.md": "any",
        "doc:": "any",
        "doc://x": "docs",
        "fs+doc://one/two.md": "fs",
    }
    for uri, owner in owners.items():
        entry = catalogue.route("resources", uri)
        assert entry is not None
        assert entry.source == owner, uri
    closed = Catalogue.build([source(name, "templates", f"{name}:{{x}}", prefix="") for name in ("a", "b")])
    assert closed.route("resources", "c:d") is None
    assert closed.route("templates", "a:{x}") is not None


# Filters and changes of the operator


def test_the_operators_patterns_decide_which_tools_are_seen_by_their_own_names() -> None:
    tools = {"tools": tuple(tool(name) for name in ("read", "read_all", "write", "Read"))}
    catalogue = Catalogue.build(
        [
            Source(name="a", prefix="a", allow=("read*", "write"), deny=("*_all",), **tools),
            Source(name="b", prefix="b", allow=(), **tools),
            Source(name="c", prefix="c", deny=("*",), **tools),
        ]
    )
    assert names(catalogue, "tools") == ["a_read", "a_write"]
    assert catalogue.route("tools", "a_read_all") is None
    assert catalogue.problems == ()


def test_tools_are_renamed_and_described_as_the_operator_says() -> None:
    catalogue = Catalogue.build(
        [Source(name="a", prefix="a", tools=(tool("x"), tool("y")), rename={"x": "z"}, describe={"x": "New"})]
    )
    assert names(catalogue, "tools") == ["a_z", "a_y"]
    assert [item.get("description") for item in items(catalogue, "tools")] == ["New", None]
    entry = catalogue.route("tools", "a_z")
    assert entry is not None
    assert entry.own == "x"


def test_a_rename_onto_another_tool_is_a_clash_and_one_to_no_name_is_refused() -> None:
    catalogue = Catalogue.build(
        [Source(name="a", tools=(tool("x"), tool("y"), tool("w")), rename={"y": "x", "w": " "})]
    )
    assert names(catalogue, "tools") == ["x"]
    assert catalogue.problems == (
        "a: tool 'w' is left out: the name is empty",
        "a: tool 'x' is left out: the same upstream has one of this name before it",
    )


# Items


@kinds
@pytest.mark.parametrize("key", ["", "a\nb", None, 3, "x" * (MOST_URI + 1)])
def test_an_item_with_a_name_that_no_host_takes_costs_itself_only(kind: Kind, key: Any) -> None:
    bad = {**one(kind, "a:b"), FORMS[kind].key: key}
    for given_items in ((bad, one(kind, "c:d")), (raw(bad), raw(one(kind, "c:d")))):
        catalogue = Catalogue.build([Source(name="a", **{kind: given_items})])
        assert names(catalogue, kind) == ["c:d"]
        (problem,) = catalogue.problems
        assert problem.startswith(f"a: {FORMS[kind].word} ")
        assert problem.isprintable()


UNUSABLE: list[tuple[Kind, dict[str, Any]]] = [
    ("tools", {"inputSchema": 1}),
    ("tools", {"inputSchema": {"type": "string"}}),
    ("tools", {"inputSchema": {"properties": []}}),
    ("tools", {"inputSchema": None}),
    ("prompts", {"arguments": {}}),
    ("prompts", {"arguments": [{"description": "nameless"}]}),
    ("resources", {"name": None}),
    ("templates", {"name": 1}),
]


@pytest.mark.parametrize(("kind", "members"), UNUSABLE)
def test_an_item_that_lacks_what_it_needs_is_left_out_and_named(kind: Kind, members: dict[str, Any]) -> None:
    for change in (lambda item: item, raw):
        broken = change({**one(kind, "a:b"), **members})
        catalogue = Catalogue.build([Source(name="a", **{kind: (broken, one(kind, "c:d"))})])
        assert names(catalogue, kind) == ["c:d"]
        (problem,) = catalogue.problems
        assert problem.startswith(f"a: {FORMS[kind].word} 'a:b' is left out: {next(iter(members))} is m")


MALFORMED: list[tuple[Kind, dict[str, Any]]] = [
    ("tools", {"description": 1}),
    ("tools", {"outputSchema": True}),
    ("tools", {"annotations": {"readOnlyHint": "yes"}}),
    ("tools", {"_meta": []}),
    ("prompts", {"icons": [{}]}),
    ("resources", {"size": "1"}),
    ("resources", {"annotations": {"audience": "user"}}),
    ("templates", {"mimeType": 1}),
    ("templates", {"annotations": []}),
]


@pytest.mark.parametrize(("kind", "members"), MALFORMED)
def test_a_malformed_member_that_an_item_can_do_without_is_left_out_and_named(
    kind: Kind, members: dict[str, Any]
) -> None:
    for change in (lambda item: item, raw):
        broken = change({**one(kind, "a:b"), **members})
        catalogue = Catalogue.build([Source(name="a", **{kind: (broken,)})])
        assert items(catalogue, kind, MODERN) == [one(kind, "a:b")]
        (problem,) = catalogue.problems
        assert problem.startswith(f"a: {FORMS[kind].word} 'a:b': {next(iter(members))} is malformed: ")
        assert problem.endswith("; it goes without")


NULLS: list[tuple[Kind, dict[str, Any], dict[str, Any]]] = [
    (
        "tools",
        {"description": None, "annotations": {"title": None, "readOnlyHint": True}},
        {"annotations": {"readOnlyHint": True}},
    ),
    ("prompts", {"arguments": [{"name": "x", "description": None}]}, {"arguments": [{"name": "x"}]}),
    ("resources", {"size": None, "icons": [{"src": "data:", "sizes": None}]}, {"icons": [{"src": "data:"}]}),
    ("templates", {"annotations": None, "own/member": {"x": None}}, {"own/member": {"x": None}}),
]


@pytest.mark.parametrize(("kind", "members", "expected"), NULLS)
def test_null_in_the_place_of_a_member_that_may_be_absent_is_left_out(
    kind: Kind, members: dict[str, Any], expected: dict[str, Any]
) -> None:
    for change in (lambda item: item, raw):
        catalogue = Catalogue.build([Source(name="a", **{kind: (change({**one(kind, "a:b"), **members}),)})])
        assert items(catalogue, kind, MODERN) == [{**one(kind, "a:b"), **expected}]
        assert catalogue.problems == ()


def test_a_schema_without_a_type_takes_an_object() -> None:
    given = {"name": "x", "inputSchema": {"properties": {"a": {"type": "string"}}}}
    catalogue = Catalogue.build([Source(name="a", tools=(given,))])
    assert items(catalogue, "tools")[0]["inputSchema"] == {"type": "object", **given["inputSchema"]}


@pytest.mark.behaviour("GEN-B7")
def test_lists_are_spelled_for_the_revision_and_keep_what_nobody_defines() -> None:
    given = tool("x", title="T", icons=[{"src": "data:"}], **{"com.example/own": 10**30})
    catalogue = Catalogue.build([Source(name="a", tools=(given,))])
    assert items(catalogue, "tools", MODERN) == [given]
    assert items(catalogue, "tools", EVERY[0]) == [tool("x", **{"com.example/own": 10**30})]


@kinds
def test_uris_carry_the_prefix_in_lists(kind: Kind) -> None:
    catalogue = Catalogue.build([source("fs", kind, "a:b", prefix="p")])
    expected = "p_a:b" if FORMS[kind].key == "name" else "p+a:b"
    assert names(catalogue, kind) == [expected]


# Headers


def annotated(header: Any) -> Item:
    schema = {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": header}}}
    return {"name": "t", "inputSchema": schema}


@pytest.mark.parametrize("mirrors", [True, False])
def test_rule_12_a_tool_with_annotations_has_a_compiled_plan(mirrors: bool) -> None:
    catalogue = Catalogue.build([Source(name="a", tools=(annotated("Region"), tool("u")), mirrors=mirrors)])
    entries = catalogue.entries("tools")
    assert entries[0].plan is not None
    assert [mirror.header for mirror in entries[0].plan.mirrors] == ["Mcp-Param-Region"]
    assert entries[1].plan is None
    assert "x-mcp-header" in json.dumps(items(catalogue, "tools", MODERN))


def test_rule_12_an_invalid_annotation_costs_the_tool_where_headers_are_read_and_itself_elsewhere() -> None:
    dropped = Catalogue.build([Source(name="a", tools=(annotated("no header"), tool("u")), mirrors=True)])
    assert names(dropped, "tools") == ["u"]
    assert dropped.problems[0].startswith("a: tool 't' is left out: x-mcp-header: ")
    kept = Catalogue.build([Source(name="a", tools=(annotated("no header"), tool("u")))])
    assert names(kept, "tools") == ["t", "u"]
    assert kept.entries("tools")[0].plan is None
    assert "x-mcp-header" not in json.dumps(items(kept, "tools", MODERN))
    assert kept.problems[0].startswith("a: tool 't' goes without its annotations: x-mcp-header: ")


# Keeping and comparing


def test_rule_11_what_is_made_of_an_unchanged_source_is_taken_over() -> None:
    old = Catalogue.build([source("a", "tools", "x"), source("b", "tools", "y")])
    new = Catalogue.build([source("b", "tools", "y"), source("a", "tools", "x", "z")], old)
    assert new.route("tools", "b_y") is old.route("tools", "b_y")
    assert names(new, "tools") == ["b_y", "a_x", "a_z"]
    changed = Catalogue.build([Source(name="b", prefix="b", tools=(tool("y", title="T"),))], old)
    assert items(changed, "tools", MODERN)[0]["title"] == "T"


def test_two_catalogues_differ_where_a_host_sees_another_list() -> None:
    old = Catalogue.build([source("a", "tools", "x")])
    titled = Catalogue.build([Source(name="a", prefix="a", tools=(tool("x", title="T"),), prompts=())])
    assert old.digest("tools", MODERN) != titled.digest("tools", MODERN)
    assert old.digest("tools", EVERY[0]) == titled.digest("tools", EVERY[0])
    assert old.digest("prompts", MODERN) == titled.digest("prompts", MODERN)
    assert old.digest("tools", MODERN, frozenset({"a_x"})) == titled.digest("tools", MODERN, frozenset({"a_x"}))
    assert len(old.digest("tools", MODERN)) == 16


def test_what_is_hidden_from_a_host_is_not_listed_to_it() -> None:
    catalogue = Catalogue.build([source("a", "tools", "x", "y")])
    assert names(catalogue, "tools", hide=frozenset({"a_x"})) == ["a_y"]
    assert names(catalogue, "tools") == ["a_x", "a_y"]


def test_lists_that_are_kept_ready_are_bounded() -> None:
    catalogue = Catalogue.build([source("a", "tools", "x", "y")])
    first = catalogue.listing("tools", MODERN)
    assert catalogue.listing("tools", MODERN) is first
    for number in range(VARIANTS):
        catalogue.listing("tools", MODERN, frozenset({str(number)}))
    again = catalogue.listing("tools", MODERN)
    assert again == first
    assert again is not first


HINTS: list[tuple[list[dict[str, Any]], tuple[int, str]]] = [
    ([], (0, "private")),
    ([{"hints": {"tools": (500, "public")}}], (500, "public")),
    ([{"hints": {"tools": (500, "public")}}, {"hints": {"tools": (200, "public")}}], (200, "public")),
    ([{"hints": {"tools": (500, "public")}}, {"hints": {"tools": (900, "private")}}], (500, "private")),
    ([{"hints": {"tools": (500, "public")}}, {}], (0, "private")),
    ([{"hints": {"tools": (500, "public")}}, {"tools": ()}], (500, "public")),
    ([{"hints": {"tools": (500, "public")}}, {"tools": None}], (0, "private")),
    ([{"hints": {"tools": (500, "public")}, "deny": ("x",)}], (500, "private")),
    ([{"hints": {"tools": (500, "public")}, "deny": ("z",)}], (500, "public")),
]


@pytest.mark.parametrize(("sources", "expected"), HINTS)
def test_rule_11_a_merged_list_is_public_only_if_every_part_is_and_lives_as_long_as_the_shortest(
    sources: list[dict[str, Any]], expected: tuple[int, str]
) -> None:
    given_sources = [
        Source(**{"name": str(place), "prefix": f"p{place}", "tools": (tool("x"), tool("y")), **more})
        for place, more in enumerate(sources)
    ]
    catalogue = Catalogue.build(given_sources)
    assert catalogue.ttl_and_scope("tools") == expected
    assert catalogue.ttl_and_scope("tools", frozenset({"x"})) == (expected[0], "private")


# Pages


def pages(catalogue: Catalogue, size: int | None, kind: Kind = "tools") -> list[list[str]]:
    found: list[list[str]] = []
    cursor: str | None = None
    while True:
        page = catalogue.page(kind, LEGACY, size, cursor)
        assert isinstance(page, Page)
        found.append([item[FORMS[kind].key] for item in json.loads(page.items)])
        cursor = page.cursor
        if cursor is None:
            return found


@kinds
@pytest.mark.parametrize(("size", "expected"), [(None, [5]), (5, [5]), (9, [5]), (2, [2, 2, 1]), (1, [1] * 5)])
def test_pages_are_the_whole_list_in_order(kind: Kind, size: int | None, expected: list[int]) -> None:
    catalogue = Catalogue.build([source("a", kind, *"abcde")])
    found = pages(catalogue, size, kind)
    assert [len(page) for page in found] == expected
    assert [name for page in found for name in page] == names(catalogue, kind)
    assert pages(Catalogue.build([]), size, kind) == [[]]


@given(
    st.lists(st.sampled_from("abcdefghij"), unique=True),
    st.integers(1, 4),
    st.lists(st.lists(st.sampled_from("klmn"), unique=True, max_size=2), min_size=12, max_size=12),
    st.lists(st.sampled_from("abcdefghij"), unique=True, max_size=3),
)
def test_a_change_between_two_pages_neither_repeats_nor_loses_what_stays(
    first: list[str], size: int, added: list[list[str]], leaving: list[str]
) -> None:
    keys, cursor, seen = first, None, list[str]()
    gone = [key for key in leaving if key in keys]
    for new in added:
        page = Catalogue.build([source("a", "tools", *keys, prefix="")]).page("tools", LEGACY, size, cursor)
        assert isinstance(page, Page)
        seen += [item["name"] for item in json.loads(page.items)]
        if (cursor := page.cursor) is None:
            break
        if gone:
            keys = [key for key in keys if key != gone[0]]
            gone = gone[1:]
        keys = [key for key in new if key not in keys] + keys
    if cursor is None:
        assert len(seen) == len(set(seen))
        assert [key for key in seen if key in keys and key in first] == [key for key in keys if key in first]


@pytest.mark.parametrize(
    ("left", "expected"), [("cd", "cd"), ("xcd", "cd"), ("de", "de"), ("xyzfg", "xy"), ("xyzde", "xy"), ("", "")]
)
def test_a_page_goes_on_about_in_its_place_when_all_that_was_before_it_is_gone(left: str, expected: str) -> None:
    before = Catalogue.build([source("a", "tools", *"abcde", prefix="")]).page("tools", LEGACY, 2, None)
    assert isinstance(before, Page)
    after = Catalogue.build([source("a", "tools", *left, prefix="")]).page("tools", LEGACY, 2, before.cursor)
    assert isinstance(after, Page)
    assert "".join(item["name"] for item in json.loads(after.items)) == expected


@pytest.mark.parametrize(("left", "expected"), [("abde", "de"), ("xbde", "de"), ("abxcd", "xc")])
def test_a_page_goes_on_behind_the_last_item_before_it_that_is_left(left: str, expected: str) -> None:
    before = Catalogue.build([source("a", "tools", *"abcde", prefix="")]).page("tools", LEGACY, 2, None)
    assert isinstance(before, Page)
    after = Catalogue.build([source("a", "tools", *left, prefix="")]).page("tools", LEGACY, 2, before.cursor)
    assert isinstance(after, Page)
    assert "".join(item["name"] for item in json.loads(after.items)) == expected


def cursor(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "x",
        "é",
        "AAAA",
        cursor([]),
        cursor(["prompts", 1, [], "a"]),
        cursor(["tools", -1, [], "a"]),
        cursor(["tools", 1, [1], "a"]),
        cursor(["tools", 1, [], "a", 1]),
        cursor(["tools", 1, ["a"] * 5, "a"]),
        cursor(["tools", 1, ["a" * 40000], "a"]),
    ],
)
def test_a_cursor_that_is_none_is_refused(bad: str) -> None:
    found = Catalogue.build([source("a", "tools", *"abc")]).page("tools", LEGACY, 2, bad)
    assert isinstance(found, Bad)
    assert found.code == BAD_PARAMS
    assert "cursor" in found.reason


@given(st.text())
def test_no_cursor_of_a_stranger_raises(text: str) -> None:
    assert isinstance(Catalogue.build([source("a", "tools", *"abc")]).page("tools", LEGACY, 2, text), Bad)


# Hostile lists

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
MEMBERS = ["name", "uri", "uriTemplate", "inputSchema", "outputSchema", "annotations", "arguments", "icons", "_meta"]
MEMBERS += ["title", "description", "mimeType", "size", "execution"]


@given(
    st.sampled_from(KINDS), st.lists(st.dictionaries(st.sampled_from(MEMBERS), json_values), max_size=4), st.booleans()
)
def test_no_list_of_a_stranger_raises_or_costs_an_item_without_a_word(
    kind: Kind, given_items: list[dict[str, Any]], as_raw: bool
) -> None:
    changed = tuple(raw(item) if as_raw else item for item in (*given_items, one(kind, "good:one")))
    catalogue = Catalogue.build([Source(name="a", prefix="a", **{kind: cast("Any", changed)})])
    left_out = [problem for problem in catalogue.problems if " is left out: " in problem]
    assert len(catalogue.entries(kind)) + len(left_out) == len(changed)
    assert names(catalogue, kind)[-1].endswith("good:one")
    assert all(problem.isprintable() for problem in catalogue.problems)
    for revision in EVERY:
        for item in items(catalogue, kind, revision):
            entry = catalogue.route(kind, item[FORMS[kind].key])
            assert entry is not None
            assert entry.shown == item[FORMS[kind].key]


# Schemas

texts = st.sampled_from(["", "text/plain", "file:///a", "user", "light", "48x48"])
wrong = st.none() | st.booleans() | st.integers(-2, 2) | texts | st.just([]) | st.just({})
icon = st.fixed_dictionaries(
    {"src": texts},
    optional={"mimeType": texts | wrong, "sizes": st.lists(texts) | wrong, "theme": st.just("dark") | wrong},
)
annotations = st.fixed_dictionaries(
    {},
    optional={
        "audience": st.lists(st.sampled_from(["user", "assistant", "nobody"])) | wrong,
        "priority": st.floats(-1, 2) | wrong,
        "lastModified": texts | wrong,
        "readOnlyHint": st.booleans() | wrong,
        "title": texts | wrong,
    },
)
schemas = st.fixed_dictionaries(
    {},
    optional={
        "type": st.just("object") | wrong,
        "properties": st.dictionaries(texts, st.fixed_dictionaries({"type": texts}) | wrong, max_size=2) | wrong,
        "required": st.lists(texts) | wrong,
        "$schema": texts | wrong,
    },
)
argument = st.fixed_dictionaries(
    {"name": texts}, optional={"description": texts | wrong, "title": texts | wrong, "required": st.booleans() | wrong}
)
near = st.fixed_dictionaries(
    {},
    optional={
        "inputSchema": schemas,
        "outputSchema": schemas | wrong,
        "annotations": annotations | wrong,
        "icons": st.lists(icon, max_size=2) | wrong,
        "arguments": st.lists(argument, max_size=2) | wrong,
        "_meta": st.just({"x/y": 1}) | wrong,
        "title": texts | wrong,
        "description": texts | wrong,
        "mimeType": texts | wrong,
        "size": st.integers() | st.floats(0, 9) | wrong,
        "execution": st.just({"taskSupport": "required"}) | wrong,
    },
)


@NEEDS_SCHEMAS
@pytest.mark.parametrize("revision", EVERY)
@kinds
@given(members=near)
@settings(deadline=None, max_examples=50)
def test_every_item_that_is_listed_keeps_the_schema_of_the_hosts_revision(
    kind: Kind, revision: str, members: dict[str, Any]
) -> None:
    catalogue = Catalogue.build([Source(name="a", **{kind: cast("Any", ({**one(kind, "a:b"), **members},))})])
    for item in items(catalogue, kind, revision):
        assert list(validator(revision, FORMS[kind].definition).iter_errors(item)) == []


@pytest.mark.parametrize(
    ("execution", "support"),
    [
        ('{"taskSupport":"required"}', "required"),
        ('{"taskSupport":"never"}', ""),
        ('{"taskSupport":1}', ""),
        ("[]", ""),
    ],
)
def test_how_a_tool_takes_tasks_is_what_it_says_if_that_can_be_read(execution: str, support: str) -> None:
    tool = {"name": Raw(b'"slow"'), "inputSchema": Raw(b'{"type":"object"}'), "execution": Raw(execution.encode())}
    catalogue = Catalogue.build((Source(name="up", prefix="", tasks="core", tools=(tool,)),))
    entry = catalogue.route("tools", "slow")
    assert entry is not None
    assert entry.support == support
