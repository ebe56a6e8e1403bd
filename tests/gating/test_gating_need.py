"""Needs in ``_meta``: ours, the other library's, and what cannot be read."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_gating_requirement import json, requirements

from troth.gating import (
    ELICITATION,
    ELICITATION_FORM,
    ELICITATION_URL,
    META_KEY,
    NEVER,
    OTHER_KEY,
    ROOTS,
    SAMPLING,
    TASKS,
    TASKS_CANCEL,
    TASKS_ELICITATION,
    TASKS_LIST,
    TASKS_SAMPLING,
    Need,
    Requirement,
    any_of,
    both,
    from_meta,
    with_need,
)
from troth.gating.need import MOST_MESSAGE


def test_the_key_is_a_legal_and_free_name():
    prefix, _, name = META_KEY.partition("/")
    assert all(re.fullmatch(r"[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?", label) for label in prefix.split("."))
    assert prefix.split(".")[1] not in ("modelcontextprotocol", "mcp")
    assert re.fullmatch(r"[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?", name)


def test_a_need_stands_in_meta_beside_what_is_there():
    need = Need(SAMPLING | any_of(ROOTS, ELICITATION_FORM), "Needs a model")
    meta = with_need({"com.example/a": 1}, need)
    assert meta == {
        "com.example/a": 1,
        "io.troth/requires": {"capabilities": [["roots", "elicitation.form"], "sampling"], "message": "Needs a model"},
    }
    assert from_meta(meta) == need


def test_a_need_that_is_there_already_is_added_to():
    first = with_need(None, Need(SAMPLING, "first"))
    assert from_meta(with_need(first, Need(ROOTS))) == Need(ROOTS | SAMPLING, "first")


def test_a_need_that_is_there_and_cannot_be_read_stays_unreadable():
    meta = with_need({META_KEY: 7}, Need(ROOTS))
    assert meta == {META_KEY: {"capabilities": [[]]}}
    assert from_meta(meta) == Need(NEVER)


@pytest.mark.parametrize("meta", [None, 7, [], {}, {"other": 1}, {META_KEY: {"capabilities": []}}])
def test_meta_that_asks_for_nothing_is_no_need(meta):
    assert from_meta(meta) is None


@pytest.mark.parametrize(
    "value", [None, True, "sampling", ["sampling"], {}, {"capabilities": "sampling"}, {"capabilities": [[]]}]
)
def test_an_unreadable_requirement_fails_closed(value):
    assert from_meta({META_KEY: value}) == Need(NEVER)


@pytest.mark.parametrize("message", [None, 7, ["a"], ""])
def test_a_message_that_is_no_text_is_none(message):
    assert from_meta({META_KEY: {"capabilities": ["roots"], "message": message}}) == Need(ROOTS)


def test_a_message_is_one_line_of_bounded_length():
    need = from_meta({META_KEY: {"capabilities": ["roots"], "message": " a\nb\x1b[31m " + "x" * 2000}})
    assert need.message.startswith("a b [31m xx")
    assert len(need.message) <= MOST_MESSAGE + 1


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        ("Sampling", SAMPLING),
        ("Sampling, Roots", SAMPLING | ROOTS),
        ("ElicitationForm,elicitationurl", ELICITATION_FORM | ELICITATION_URL),
        ("Elicitation, Tasks", ELICITATION | TASKS),
        ("TaskList, TaskCancel", TASKS_LIST | TASKS_CANCEL),
        ("TaskAugmentedSampling, TaskAugmentedElicitation", TASKS_SAMPLING | TASKS_ELICITATION),
    ],
)
def test_flags_of_the_other_library_are_read(flags, wanted):
    assert from_meta({OTHER_KEY: {"flags": flags, "message": None}}) == Need(wanted)
    assert from_meta({OTHER_KEY: {"flags": flags, "message": "why"}}) == Need(wanted, "why")


def test_its_word_for_nothing_is_no_need():
    assert from_meta({OTHER_KEY: {"flags": "None"}}) is None


@pytest.mark.parametrize("value", [None, {}, {"flags": 1}, {"flags": ["Sampling"]}, "Sampling"])
def test_flags_that_cannot_be_read_fail_closed(value):
    assert from_meta({OTHER_KEY: value}) == Need(NEVER)


@pytest.mark.parametrize("flags", ["", "Video", "Sampling, Video", "5"])
def test_a_flag_that_nobody_knows_is_met_by_nobody(flags):
    need = from_meta({OTHER_KEY: {"flags": flags}})
    assert any(path.startswith("?") for path in need.requirement.paths)


def test_both_keys_add_up():
    meta = {META_KEY: {"capabilities": ["roots"], "message": "ours"}, OTHER_KEY: {"flags": "Sampling", "message": "b"}}
    assert from_meta(meta) == Need(ROOTS | SAMPLING, "ours")


def test_sources_add_up():
    assert both(None, None) is None
    assert both(Need(ROOTS), None) == both(None, Need(ROOTS)) == Need(ROOTS)
    assert both(Need(ROOTS), Need(SAMPLING, "b")) == Need(ROOTS | SAMPLING, "b")
    with pytest.raises(TypeError):
        Need(ROOTS) | ROOTS  # type: ignore[operator]


@given(requirements, st.text(st.characters(categories=["L", "N"]), max_size=20))
def test_a_need_comes_back_out_of_meta(requirement, message):
    assert from_meta(with_need(None, Need(requirement, message))) == Need(requirement, message)


@given(st.dictionaries(st.sampled_from([META_KEY, OTHER_KEY, "capabilities", "flags"]), json))
def test_no_meta_makes_the_reader_raise(meta):
    found = from_meta(meta)
    assert found is None or isinstance(found.requirement, Requirement)
