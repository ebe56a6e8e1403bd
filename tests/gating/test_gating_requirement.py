"""Requirements as values: how they combine, read and are written."""

from __future__ import annotations

import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.capabilities.paths import rows
from troth.gating import (
    ELICITATION,
    ELICITATION_FORM,
    ELICITATION_URL,
    NEVER,
    ROOTS,
    ROOTS_LIST_CHANGED,
    SAMPLING,
    SAMPLING_CONTEXT,
    SAMPLING_TOOLS,
    TASKS,
    TASKS_CANCEL,
    TASKS_ELICITATION,
    TASKS_LIST,
    TASKS_SAMPLING,
    Requirement,
    any_of,
    experimental,
    extension,
)
from troth.gating.requirement import MOST
from troth.register import Side

UI = "io.modelcontextprotocol/ui"
CONSTANTS = (
    ROOTS,
    ROOTS_LIST_CHANGED,
    SAMPLING,
    SAMPLING_CONTEXT,
    SAMPLING_TOOLS,
    ELICITATION,
    ELICITATION_FORM,
    ELICITATION_URL,
    TASKS,
    TASKS_LIST,
    TASKS_CANCEL,
    TASKS_SAMPLING,
    TASKS_ELICITATION,
)

single = st.sampled_from([*CONSTANTS, extension(UI), experimental("x"), experimental("a b")])
requirements = st.recursive(
    single,
    lambda inner: st.lists(inner, min_size=1, max_size=3).flatmap(
        lambda some: st.sampled_from([any_of(*some), _all(some)])
    ),
    max_leaves=4,
)


def _all(some):
    made = some[0]
    for other in some[1:]:
        made |= other
    return made


def test_the_constants_are_the_client_capabilities_of_the_register():
    containers = {
        "experimental",
        "extensions",
        "tasks.requests",
        "tasks.requests.sampling",
        "tasks.requests.elicitation",
    }
    known = {row.path for row in rows(Side.CLIENT).values() if not row.path.startswith("extensions[")}
    assert {str(constant) for constant in CONSTANTS} == known - containers


def test_all_of_them_stand_in_the_order_of_the_register_and_once():
    made = ELICITATION | SAMPLING | ROOTS | SAMPLING
    assert str(made) == "roots, sampling, elicitation"
    assert made == ROOTS | (SAMPLING | ELICITATION)
    assert hash(made) == hash(ROOTS | ELICITATION | SAMPLING)
    assert made.paths == ("roots", "sampling", "elicitation")


def test_alternatives_stand_in_the_order_of_the_register():
    assert str(any_of(ELICITATION_FORM, ROOTS) | SAMPLING) == "roots or elicitation.form, sampling"
    assert any_of(ROOTS) == ROOTS
    assert any_of(ROOTS, ELICITATION_FORM) == any_of(ELICITATION_FORM, ROOTS)


def test_alternatives_of_several_capabilities_need_one_of_each():
    assert any_of(ROOTS | SAMPLING, ELICITATION).json() == [["roots", "elicitation"], ["sampling", "elicitation"]]


def test_what_a_smaller_clause_implies_is_left_out():
    assert ROOTS | any_of(ROOTS, SAMPLING) == ROOTS
    assert any_of(ROOTS, ROOTS | SAMPLING) == ROOTS


def test_keys_of_open_maps_are_named_as_the_register_names_them():
    assert str(extension(UI)) == f'extensions["{UI}"]'
    assert str(experimental("x")) == "experimental.x"
    assert str(experimental("a b")) == 'experimental["a b"]'
    assert str(extension(UI) | experimental("x") | ROOTS) == f'experimental.x, roots, extensions["{UI}"]'


def test_an_extension_key_without_a_prefix_is_refused():
    with pytest.raises(ValueError, match="'ui' is no extension key"):
        extension("ui")


def test_alternatives_of_nothing_and_of_too_much_are_refused():
    with pytest.raises(ValueError, match="at least one"):
        any_of()
    three = ROOTS | SAMPLING | TASKS
    with pytest.raises(ValueError, match="more than 32 clauses"):
        any_of(three, three, three, three)


def test_a_requirement_of_too_much_is_refused():
    made = _all([experimental(f"x{number}") for number in range(MOST)])
    with pytest.raises(ValueError, match="more than 32 clauses"):
        made | ROOTS


def test_a_requirement_combines_only_with_one():
    with pytest.raises(TypeError):
        ROOTS | "sampling"  # type: ignore[operator]


def test_only_a_requirement_that_needs_something_is_true():
    assert ROOTS
    assert NEVER
    assert not Requirement()


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("sampling", SAMPLING),
        (" sampling ,roots", SAMPLING | ROOTS),
        ("sampling, roots or elicitation.form", SAMPLING | any_of(ROOTS, ELICITATION_FORM)),
        (["sampling", ["roots", "elicitation.form"]], SAMPLING | any_of(ROOTS, ELICITATION_FORM)),
        (f"extensions.{UI}", extension(UI)),
        (f"extensions['{UI}']", extension(UI)),
        ('experimental["x"]', experimental("x")),
        ([["roots"]], ROOTS),
    ],
)
def test_a_person_may_write_it_in_words_or_as_a_list(written, wanted):
    assert Requirement.read(written) == wanted


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("sampling, rots", "'rots'; did you mean 'roots'?"),
        ("tools", "it is a server capability"),
        ("", "no client capability is called ''"),
        ([], "names at least one capability"),
        ([[]], "an empty list of alternatives"),
        ([7], "a number where capabilities belong"),
        ([["roots", None]], "null where the path of a capability belongs"),
        (None, "null where capabilities belong"),
        ({"roots": True}, "an object where capabilities belong"),
        (["roots"] * (MOST + 1), "more than 32 capabilities"),
    ],
)
def test_what_a_person_writes_wrong_is_named(written, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        Requirement.read(written)


@pytest.mark.parametrize("value", [None, True, 7, "sampling", {}, [[]], [7], [[None]], ["roots"] * (MOST + 1)])
def test_a_stranger_s_requirement_that_cannot_be_read_is_met_by_nobody(value):
    assert Requirement.tolerant(value) == NEVER


def test_a_capability_that_only_a_stranger_knows_is_kept_by_name():
    made = Requirement.tolerant(["sampling.video", "roots", "a\x1b[31mb"])
    assert str(made) == "roots, a\\x1b[31mb, sampling.video"


def test_many_capabilities_that_nobody_knows_are_read_at_once():
    many = [[f"sampling.{'x' * 200}{row}.{column}" for column in range(MOST)] for row in range(MOST)]
    assert len(Requirement.tolerant(many).clauses) <= MOST


@given(requirements)
def test_what_is_written_comes_back(made):
    assert Requirement.tolerant(made.json()) == made
    assert Requirement.read(made.json()) == made
    assert Requirement.read(str(made)) == made
    assert pickle.loads(pickle.dumps(made)) == made


@given(requirements, requirements)
def test_order_does_not_matter(left, right):
    assert left | right == right | left
    assert hash(left | right) == hash(right | left)
    assert any_of(left, right) == any_of(right, left)


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@given(json)
def test_no_json_makes_the_reader_raise(value):
    assert isinstance(Requirement.tolerant(value), Requirement)
