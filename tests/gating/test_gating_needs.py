"""Where needs come from, and the operator's settings."""

from __future__ import annotations

import re
import tomllib

import pytest

from troth.gating import (
    ELICITATION,
    ELICITATION_FORM,
    META_KEY,
    ROOTS,
    SAMPLING,
    TASKS,
    GatingSettings,
    Need,
    Needs,
    Primitive,
    any_of,
    primitive,
    read_settings,
    requires,
    settings_from_environment,
    stated,
    visible,
)

TOML = """
[gating]
allow_when_not_declared = true
meta = false
[gating.tools]
summarize = "sampling, roots or elicitation.form"
ask = { capabilities = ["elicitation"], message = "Asks you" }
[gating.prompts]
greet = ["roots"]
[gating.resources]
"file:///a" = "tasks"
[gating.templates]
"file:///{x}" = "sampling"
"""


def settings() -> GatingSettings:
    return read_settings(tomllib.loads(TOML)["gating"])


def test_every_source_adds_to_the_rest():
    @requires(SAMPLING, message="mark")
    def work(): ...

    needs = Needs(
        {"work": ROOTS},
        lambda primitive: TASKS if primitive.kind == "tools" else None,
        GatingSettings(tools={"work": Need(any_of(ELICITATION, ROOTS))}),
    )
    meta = {META_KEY: {"capabilities": ["elicitation.url"]}}
    found = needs.of(Primitive("tools", "work"), work, meta)
    assert str(found.requirement) == "roots, sampling, elicitation.url, tasks"
    assert found.message == "mark"
    assert needs.of(Primitive("prompts", "work")) == Need(ROOTS)
    assert needs.of(Primitive("prompts", "other")) is None


def test_a_mapping_and_a_callback_may_give_words_for_the_refusal():
    needs = Needs({"a": Need(ROOTS, "mapped")}, lambda primitive: Need(SAMPLING, primitive.name))
    assert needs.of(Primitive("tools", "a")) == Need(ROOTS | SAMPLING, "mapped")
    assert needs.of(Primitive("tools", "b")) == Need(SAMPLING, "b")


def test_without_sources_nothing_is_needed():
    needs = Needs()
    assert (needs.of(Primitive("tools", "a")), needs.settings) == (None, GatingSettings())


def test_settings_are_read_from_a_file():
    found = settings()
    assert (found.allow_when_not_declared, found.meta) == (True, False)
    assert found.of(Primitive("tools", "summarize")) == Need(SAMPLING | any_of(ROOTS, ELICITATION_FORM))
    assert found.of(Primitive("tools", "ask")) == Need(ELICITATION, "Asks you")
    assert found.of(Primitive("prompts", "greet")) == Need(ROOTS)
    assert found.of(Primitive("resources", "file:///a")) == Need(TASKS)
    assert found.of(Primitive("templates", "file:///{x}")) == Need(SAMPLING)
    assert found.of(Primitive("prompts", "summarize")) is None


def test_gated_is_the_default_everywhere():
    assert GatingSettings() == read_settings({}) == settings_from_environment({})
    assert not GatingSettings().allow_when_not_declared


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (
            {"allow_when_not_declard": True},
            "gating.allow_when_not_declard: there is no such key; did you mean allow",
        ),
        ({"zzz": True}, "gating.zzz: there is no such key; there are: allow_when_not_declared, meta, tools"),
        ({"meta": 1}, "gating.meta: a number where true or false belongs"),
        ({"tools": ["a"]}, "gating.tools: an array where a table of names belongs"),
        ({"tools": {"a": "rots"}}, "gating.tools.a: no client capability is called 'rots'; did you mean 'roots'?"),
        ({"tools": {"a": {"message": "b"}}}, "gating.tools.a: null where capabilities belong"),
        (
            {"tools": {"a": {"capabilities": "roots", "message": 7}}},
            "gating.tools.a.message: a number where a text belongs",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_named(table, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        read_settings(table)


def test_the_environment_comes_after_the_file():
    environment = {
        "TROTH_GATING_ALLOW_WHEN_NOT_DECLARED": "No",
        "TROTH_GATING_META": " 1 ",
        "TROTH_GATING_TOOLS": '{"summarize": "tasks"}',
        "TROTH_GATING_PROMPTS": "",
        "OTHER": "x",
    }
    found = settings_from_environment(environment, settings())
    assert (found.allow_when_not_declared, found.meta) == (False, True)
    assert found.tools == {"summarize": Need(TASKS), "ask": Need(ELICITATION, "Asks you")}
    assert found.prompts == settings().prompts
    assert settings_from_environment({}, settings()) == settings()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("META", "perhaps", "TROTH_GATING_META: one of 1, true, yes, 0, false, no belongs here"),
        ("TOOLS", "sampling", "TROTH_GATING_TOOLS: a JSON object belongs here"),
        ("TOOLS", "[" * 100_000, "TROTH_GATING_TOOLS: a JSON object belongs here"),
        ("TOOLS", "[]", "TROTH_GATING_TOOLS: an array where a table of names belongs"),
        ("TOOLS", '{"a": "rots"}', "TROTH_GATING_TOOLS.a: no client capability is called 'rots'"),
    ],
)
def test_what_is_wrong_in_the_environment_is_named(name, value, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        settings_from_environment({f"TROTH_GATING_{name}": value})


def test_items_of_every_form_name_themselves():
    class Model:
        name = "a"
        uri = "file:///a"
        meta = {META_KEY: {"capabilities": ["roots"]}}  # noqa: RUF012

    def work(): ...

    assert primitive({"name": "a"}) == Primitive("tools", "a")
    assert primitive({"name": "a"}, "prompts") == Primitive("prompts", "a")
    assert primitive({"name": "a", "uri": "u"}) == Primitive("resources", "u")
    assert primitive({"name": "a", "uriTemplate": "u{x}"}) == Primitive("templates", "u{x}")
    assert primitive(Model()) == Primitive("resources", "file:///a")
    assert primitive(work) == Primitive("tools", "work")
    assert stated(Model()) == Need(ROOTS)
    with pytest.raises(TypeError, match="int has neither a name nor a URI"):
        primitive(7)


def test_a_list_may_be_of_functions_and_of_models():
    @requires(SAMPLING)
    def ask(): ...

    def echo(): ...

    view = visible([ask, echo], {})
    assert (view.shown, view.why) == ((echo,), {"ask": "needs sampling"})


def test_needs_of_a_list_may_come_from_elsewhere():
    needs = {"a": Need(ROOTS)}
    view = visible([{"name": "a"}, {"name": "b"}], {}, kind="prompts", need=lambda item: needs.get(item["name"]))
    assert view.shown == ({"name": "b"},)
    assert view.hidden[0].decision.message == "Client missing capabilities to get prompt 'a': roots"
