"""Prefixes, names with a prefix, URIs with a prefix and back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.bridge import host_uri, name_problem, prefix_for, shown_name, upstream_uri
from troth.bridge.names import MOST_NAME, MOST_PREFIX, MOST_SHOWN

PREFIX = re.compile(r"[a-z][a-z0-9-]*")
SCOTLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
prefixes = st.from_regex(PREFIX, fullmatch=True)
uris = st.one_of(
    st.text(),
    st.text().map(lambda rest: f"ui://{rest}"),
    st.sampled_from(
        ["file:///a.txt", "ui://x/y", "ui://", "ui:/", "{+path}", "ui://{name}/x", "fs+file:///a", "UI://x"]
    ),
)


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("fs", "fs"),
        ("My Files (2)", "my-files-2"),
        ("github.com/owner", "github-com-owner"),
        ("Café_Zürich", "cafe-zurich"),
        ("3d-tools", "d-tools"),
        ("--a--", "a"),
        ("a" * 40, "a" * MOST_PREFIX),
        (f"{'a' * (MOST_PREFIX - 1)} b", "a" * (MOST_PREFIX - 1)),
        ("日本", None),
        ("42", None),
        ("", None),
    ],
)
def test_rule_9_names_are_mapped_to_prefixes_by_a_documented_rule(name, prefix):
    assert prefix_for(name) == prefix


@given(st.text())
def test_rule_9_every_prefix_is_a_legal_part_of_a_scheme(name):
    prefix = prefix_for(name)

    assert prefix is None or (PREFIX.fullmatch(prefix) and len(prefix) <= MOST_PREFIX)
    assert prefix is None or prefix_for(prefix) == prefix


def test_a_name_stands_behind_its_prefix():
    assert shown_name("fs", "read_file") == "fs_read_file"


@given(st.text())
def test_without_a_prefix_names_and_uris_stay_as_they_are(text):
    assert shown_name("", text) == text
    assert host_uri("", text) == text
    assert upstream_uri("", text) == text


@given(prefixes, st.text(st.characters(exclude_categories=()), max_size=200))
def test_a_shown_name_fits_and_is_the_same_always(prefix, name):
    shown = shown_name(prefix, name)

    assert len(shown) <= MOST_SHOWN
    assert shown == shown_name(prefix, name)
    if len(prefix) + 1 + len(name) <= MOST_SHOWN:
        assert shown == f"{prefix}_{name}"


def test_a_shortened_name_never_changes_between_releases():
    assert shown_name("files", "a" * 80) == f"files_{'a' * 45}_13783b84c42c"


@given(prefixes, st.lists(st.text(max_size=150), min_size=2, max_size=20, unique=True))
def test_long_names_that_begin_alike_stay_apart(prefix, ends):
    names = ["n" * 60 + end for end in ends]

    assert len({shown_name(prefix, name) for name in names}) == len(names)


@given(st.lists(prefixes, min_size=2, max_size=2, unique=True), st.text(max_size=30), st.text(max_size=30))
def test_names_of_two_upstreams_never_meet(two, one, other):
    assert shown_name(two[0][:20], one) != shown_name(two[1][:20], other) or two[0][:20] == two[1][:20]


@pytest.mark.parametrize(
    "name",
    [
        "read_file",
        "a.b/c",
        "with space",
        "日本語",
        "family 👨‍👩‍👧",
        "✏️ edit",
        "1️⃣",
        "-",
        "a" * 128,
        "a" * MOST_NAME,
        "é",
        "a\u00a0b",
        "می\u200cخواهم",
        "क्\u200cष",
        "क्\u200dष",
        "र\u200d्य",
        "ന്\u200d",
        "ᠮᠣᠩᠭᠣᠯ\u180bᠤ",
        "ᠠ\u180eᠨ",
        "葛\U000e0100",
        "齒\ufe00",
        "∩\ufe00",
        "☺\ufe0e",
        "ℹ\ufe0f",
        "👩🏽\u200d💻",
        "❤\ufe0f\u200d🔥",
        "🏴\u200d☠\ufe0f",
        f"{SCOTLAND} map",
    ],
)
def test_a_name_that_some_host_takes_passes(name):
    assert name_problem(name) == ""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "empty"),
        (" \t", "empty"),
        ("a\nb", "control"),
        ("a\x00", "control"),
        ("a\x9bm", "control"),
        ("a\u2028b", "control"),
        ("a\ud800", "control"),
        *((f"a{letter}txt.exe", "turns text around") for letter in "\u202a\u202e\u2066\u2069\u061c\u200e\u200f"),
        *((f"read{letter}", "shown as nothing") for letter in "\u200b\u200c\u200d\u2060\ufeff\u00ad\u3164\ufe0f"),
        ("\U000e0001read\U000e0061\U000e007f", "shown as nothing"),
        ("\ufe0fread", "shown as nothing"),
        ("✏\u200dread", "shown as nothing"),
        ("read\u200d✏", "shown as nothing"),
        *((f"e{letter}\u0301t\u00e9", "shown as nothing") for letter in "\u200c\u200d\ufe0f"),
        *((f"\u00e9{letter}", "shown as nothing") for letter in ("\ufe0f", "\ufe0f\ufe0f", "\U000e0100", "\u180b")),
        ("a\ufff9b\ufffac\ufffb", "shown as nothing"),
        ("😀\ufe0f\ufe0f", "shown as nothing"),
        ("葛\U000e0100\U000e0100", "shown as nothing"),
        ("工\ufe0f", "shown as nothing"),
        ("a\ufe0f\u20e3", "shown as nothing"),
        ("+\ufe0f", "shown as nothing"),
        ("1\ufe0e", "shown as nothing"),
        ("می\u200c\u200cخ", "shown as nothing"),
        ("می\u200c", "shown as nothing"),
        ("\u200cمی", "shown as nothing"),
        ("٣\u200c٣", "shown as nothing"),
        ("ре\u200dре", "shown as nothing"),
        ("read\u200dه", "shown as nothing"),
        ("😀\u200c😀", "shown as nothing"),
        ("a\ufe0f\u200d😀", "shown as nothing"),
        (SCOTLAND[:-1], "shown as nothing"),
        (SCOTLAND[1:], "shown as nothing"),
        (SCOTLAND.replace("\U000e0073", "\U000e0074"), "shown as nothing"),
        *((f"{blank}read", "begins or ends with a blank") for blank in " \u00a0\u2003\u3000"),
        *((f"read{blank}", "begins or ends with a blank") for blank in " \u00a0\u2003\u3000"),
        ("a" * (MOST_NAME + 1), "more than 512"),
    ],
)
def test_a_name_that_no_host_takes_is_refused_and_named(name, words):
    assert words in name_problem(name)


@pytest.mark.behaviour("CAP-16-B1")
@given(prefixes, uris)
def test_every_uri_comes_back_as_it_went_in(prefix, uri):
    assert upstream_uri(prefix, host_uri(prefix, uri)) == uri


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("file:///a.txt", "fs+file:///a.txt"),
        ("ui://x/y", "ui://fs/x/y"),
        ("ui://x/{name}", "ui://fs/x/{name}"),
        ("file:///{+path}", "fs+file:///{+path}"),
        ("no scheme", "fs+no scheme"),
    ],
)
def test_the_prefix_is_part_of_the_scheme_and_views_keep_theirs(uri, shown):
    assert host_uri("fs", uri) == shown


@given(prefixes, st.text(st.characters(categories=["L", "N"])), st.text(st.characters(categories=["L", "N"])))
def test_what_a_template_expands_to_comes_back_as_its_own_expansion(prefix, scheme, path):
    template = "{scheme}://{path}"

    def expand(text):
        return text.replace("{scheme}", scheme).replace("{path}", path)

    assert upstream_uri(prefix, expand(host_uri(prefix, template))) == expand(template)


def test_a_view_that_came_of_a_template_comes_back_too():
    assert upstream_uri("fs", "fs+ui://x") == "ui://x"


@given(prefixes, prefixes, uris)
def test_a_uri_of_another_upstream_is_not_mine(mine, other, uri):
    if mine != other:
        assert upstream_uri(mine, host_uri(other, uri)) is None


@pytest.mark.parametrize("uri", ["file:///a", "ui://x/y", "ui://fsx/y", "fsx+file:///a", "ui://fs", ""])
def test_a_uri_without_the_prefix_is_nobodys(uri):
    assert upstream_uri("fs", uri) is None
