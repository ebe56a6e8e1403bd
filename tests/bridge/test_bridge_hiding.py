"""What the catalogue hides from hosts that did not declare what it needs."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from test_bridge_catalogue import KINDS, LEGACY, MODERN, one, tool

from troth.bridge import asks
from troth.bridge.catalogue import GATED_TTL, VARIANTS, Asker, Catalogue, Page
from troth.bridge.listed import FORMS, Source
from troth.capabilities import read_client
from troth.gating import (
    ELICITATION_FORM,
    ELICITATION_URL,
    META_KEY,
    NEVER,
    OTHER_KEY,
    ROOTS,
    SAMPLING,
    Need,
    any_of,
)

STATED = {"_meta": {META_KEY: Need(SAMPLING).json()}}
FLAGGED = {"_meta": {OTHER_KEY: {"flags": "Roots"}}}


def asker(revision: str = LEGACY, **declared: Any) -> Asker:
    return Asker(revision, read_client(declared, revision).in_force)


def built(kind: Any, *items: Any, **more: Any) -> Catalogue:
    return Catalogue.build([Source(name="s", **{kind: items}, **more)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_what_needs_something_is_hidden_from_those_without_it(kind: Any, revision: str) -> None:
    catalogue = built(kind, one(kind, "a:a", **STATED), one(kind, "a:b", **FLAGGED), one(kind, "a:c"))
    if FORMS[kind].key == "name":
        catalogue = built(kind, one(kind, "a", **STATED), one(kind, "b", **FLAGGED), one(kind, "c"))
    every = [entry.shown for entry in catalogue.entries(kind)]
    assert catalogue.hidden(kind, asker(revision)) == set(every[:2])
    assert catalogue.hidden(kind, asker(revision, roots={})) == {every[0]}
    assert catalogue.hidden(kind, asker(revision, sampling={})) == {every[1]}
    assert catalogue.hidden(kind, asker(revision, sampling={}, roots={})) == set()
    assert catalogue.hidden(kind, Asker(revision, None)) == set()


def test_the_operator_adds_to_what_the_upstream_says() -> None:
    requires = {"a": Need(ROOTS), "c": Need(ROOTS)}
    catalogue = built("tools", tool("a", **STATED), tool("b"), tool("c"), requires=requires, rename={"c": "d"})
    assert catalogue.hidden("tools", asker(sampling={})) == {"a", "d"}
    assert catalogue.hidden("tools", asker(sampling={}, roots={})) == set()
    assert [entry.need for entry in catalogue.entries("tools")] == [Need(ROOTS | SAMPLING), None, Need(ROOTS)]


def test_what_the_operator_answers_is_not_asked_of_hosts_unless_the_operator_wants_it() -> None:
    both, form, broken = Need(SAMPLING | ROOTS, "words"), Need(any_of(ELICITATION_FORM, ELICITATION_URL)), Need(NEVER)
    stated = {"a": Need(SAMPLING), "b": both, "c": form, "d": broken, "e": Need(ELICITATION_URL)}
    catalogue = built(
        "tools",
        *(tool(name, _meta={META_KEY: need.json()}) for name, need in stated.items()),
        tool("f"),
        requires={"f": Need(SAMPLING)},
        answered=frozenset({asks.SAMPLING, asks.FORM}),
    )
    needs = {entry.shown: entry.need for entry in catalogue.entries("tools")}
    assert needs == {**stated, "a": None, "b": Need(ROOTS, "words"), "c": None, "f": Need(SAMPLING)}


@pytest.mark.parametrize(
    "meta",
    [
        b'{"io.troth/requires": 7}',
        b'{"io.troth/requires": {"capabilities": [1e999]}}',
        b'{"x": 1e999, "io.troth/requires": null}',
        b'{"io.troth\\/requires": []}',
        b'{"\\u0069o.troth/requi\\u0072es": 7}',
        b'{"__mcp_capabilities_required": {"flags": 5}}',
    ],
)
def test_what_cannot_be_read_is_hidden_from_everybody_and_named(meta: bytes) -> None:
    catalogue = built("tools", tool("a", _meta=Raw(meta)), tool("b"))
    assert catalogue.hidden("tools", asker(sampling={"tools": {}}, roots={}, elicitation={})) == {"a"}
    assert catalogue.problems == ("s: tool 'a': no host sees it, since what it requires cannot be read",)


@pytest.mark.parametrize("meta", [{}, {"required": 1}, {"a": "\u1234"}, {META_KEY: {"capabilities": []}}])
def test_meta_that_requires_nothing_hides_nothing(meta: Any) -> None:
    catalogue = built("tools", tool("a", _meta=msgspec.Raw(json.dumps(meta).encode())))
    assert (catalogue.hidden("tools", asker()), catalogue.problems) == (frozenset(), ())


def test_meta_stays_in_the_list_as_it_came() -> None:
    catalogue = built("tools", tool("a", **STATED))
    assert json.loads(catalogue.listing("tools", LEGACY))[0]["_meta"] == STATED["_meta"]


def test_a_list_that_depends_on_the_host_is_private_and_short_lived() -> None:
    hints = {"tools": (60_000, "public"), "prompts": (60_000, "public")}
    catalogue = built("tools", tool("a", **STATED), tool("b"), prompts=({"name": "p"},), hints=hints)
    assert catalogue.ttl_and_scope("tools") == (GATED_TTL, "private")
    assert catalogue.ttl_and_scope("tools", frozenset({"a"})) == (GATED_TTL, "private")
    assert catalogue.ttl_and_scope("prompts") == (60_000, "public")
    brief = built("tools", tool("a", **STATED), hints={"tools": (7, "public")})
    assert brief.ttl_and_scope("tools") == (7, "private")


def test_every_page_keeps_its_cursor() -> None:
    tools = [tool(f"t{number}", **(STATED if number % 2 else {})) for number in range(10)]
    catalogue = built("tools", *tools)
    hide = catalogue.hidden("tools", asker())
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = catalogue.page("tools", LEGACY, 2, cursor, hide)
        assert isinstance(page, Page)
        seen += [item["name"] for item in json.loads(page.items)]
        cursor = page.cursor
        if cursor is None:
            break
    assert seen == [f"t{number}" for number in range(0, 10, 2)]


def test_a_hidden_tool_that_comes_is_no_change_for_who_does_not_see_it() -> None:
    before, after = built("tools", tool("a")), built("tools", tool("a"), tool("b", **STATED))
    poor, rich = asker(), asker(sampling={})
    digests = [
        [catalogue.digest("tools", LEGACY, catalogue.hidden("tools", who)) for catalogue in (before, after)]
        for who in (poor, rich)
    ]
    assert [one == other for one, other in digests] == [True, False]


def test_an_unlisted_resource_needs_what_its_template_needs() -> None:
    templates = (
        one("templates", "file:///{path}"),
        one("templates", "file:///secret/{path}", **STATED),
    )
    resources = (one("resources", "file:///secret/open"),)
    for prefix in ("", "fs"):
        catalogue = built("templates", *templates, resources=resources, prefix=prefix)
        uri = "file:///{}" if not prefix else "fs+file:///{}"
        needs = {}
        for path in ("a", "secret/b", "secret/open"):
            entry = catalogue.route("resources", uri.format(path))
            assert entry is not None
            needs[path] = catalogue.need(entry)
        assert needs == {"a": None, "secret/b": Need(SAMPLING), "secret/open": None}


def test_a_template_of_another_upstream_needs_nothing_of_this_one() -> None:
    gated = Source(name="a", prefix="a", templates=(one("templates", "file:///{path}", **STATED),))
    catalogue = Catalogue.build([gated, Source(name="b", prefix="b", resources=())])
    entry = catalogue.route("resources", "b+file:///x")
    assert entry is not None
    assert catalogue.need(entry) is None


def test_a_resource_without_templates_needs_what_it_says() -> None:
    catalogue = built("resources", one("resources", "file:///a", **STATED))
    entry, other = catalogue.route("resources", "file:///a"), catalogue.route("resources", "file:///b")
    assert entry is not None
    assert other is not None
    assert (catalogue.need(entry), catalogue.need(other)) == (Need(SAMPLING), None)


def test_what_is_remembered_of_askers_is_bounded() -> None:
    catalogue = built("tools", tool("a", **STATED))
    for number in range(3 * VARIANTS):
        assert catalogue.hidden("tools", asker(experimental={f"x{number}": {}})) == {"a"}
    assert len(vars(catalogue)["_hidden"]) <= VARIANTS
    assert catalogue.hidden("tools", asker(experimental={"x0": {}})) is catalogue.hidden(
        "tools", asker(experimental={"x0": {}})
    )


@given(
    st.lists(st.sampled_from([None, SAMPLING, ROOTS, SAMPLING | ROOTS, NEVER]), max_size=6),
    st.dictionaries(st.sampled_from(["sampling", "roots"]), st.just({})),
)
def test_what_is_shown_is_what_can_be_used(needs: list[Any], declared: dict[str, Any]) -> None:
    tools = [
        tool(f"t{number}", **({} if need is None else {"_meta": {META_KEY: Need(need).json()}}))
        for number, need in enumerate(needs)
    ]
    catalogue = built("tools", *tools)
    who = asker(**declared)
    shown = [item["name"] for item in json.loads(catalogue.listing("tools", LEGACY, catalogue.hidden("tools", who)))]
    wanted = [f"t{number}" for number, need in enumerate(needs) if need is None or _met(need, declared)]
    assert shown == wanted


def _met(need: Any, declared: dict[str, Any]) -> bool:
    return need != NEVER and all(path in declared for path in need.paths)
