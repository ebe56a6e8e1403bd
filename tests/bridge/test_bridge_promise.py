"""What is declared to a host: policies, what is known of upstreams, what the connection can push, and the reasons."""

from __future__ import annotations

from typing import Any

import pytest

from troth.bridge.promise import Connection, UpstreamView, also_served, page_size, paths, promise, with_tasks
from troth.capabilities import read_server
from troth.register import Era, register

LEGACY = register().eras[Era.LEGACY]
OLDEST = LEGACY[0]
NEWEST = register().newest(Era.LEGACY)
MODERN = register().newest(Era.MODERN)
EVERY = register().revisions
FAMILIES = ("tools", "prompts", "resources")


def up(name: str, *, revision: str = NEWEST, **capabilities: Any) -> UpstreamView:
    return UpstreamView(name=name, capabilities=read_server(capabilities, revision))


def on(revision: str, **changes: Any) -> Connection:
    return Connection(**{"revision": revision, "push": True, "can_listen": True, **changes})


@pytest.mark.behaviour("CAP-14-S1")
@pytest.mark.parametrize("revision", EVERY)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_declared_where_an_upstream_declares_it(family: str, revision: str) -> None:
    built = promise((up("one"), up("two", **{family: {}})), on(revision), {})
    assert {name for name in FAMILIES if built.has(name)} == {family}
    assert "declared by: two" in built.why[family]


@pytest.mark.parametrize("revision", EVERY)
def test_rule_8_a_family_that_was_declared_when_last_seen_is_declared_while_the_upstream_is_down(revision: str) -> None:
    down = UpstreamView(name="down", remembered=frozenset({"prompts", "resources", "resources.subscribe", "logging"}))
    built = promise((up("one", tools={}), down), on(revision), {})
    assert all(built.has(path) for path in ("prompts", "resources", "resources.subscribe", "logging"))
    assert "declared when last seen by: down" in built.why["prompts"]


@pytest.mark.parametrize("revision", EVERY)
def test_rule_8_what_nobody_ever_saw_is_declared_with_its_changes(revision: str) -> None:
    built = promise((UpstreamView(name="new"),), on(revision), {})
    for family in FAMILIES:
        assert built.has(f"{family}.listChanged")
        assert "never seen yet" in built.why[family]
    assert not any(built.has(path) for path in ("logging", "resources.subscribe"))


def test_an_upstream_that_was_seen_and_declared_nothing_promises_nothing() -> None:
    built = promise((UpstreamView(name="dull", remembered=frozenset()),), on(NEWEST), {})
    assert built.capabilities == {}
    assert "no upstream is known to declare it" in built.why["tools"]


def test_a_ready_upstream_counts_by_what_it_declares_now_not_by_what_it_did() -> None:
    changed = UpstreamView(name="a", capabilities=read_server({"tools": {}}, NEWEST), remembered=frozenset({"prompts"}))
    assert not promise((changed,), on(NEWEST), {}).has("prompts")


def test_without_upstreams_nothing_is_declared_unless_the_operator_says_so() -> None:
    assert promise((), on(NEWEST), {}).capabilities == {}
    built = promise((), on(NEWEST), {"tools": "always"})
    assert built.capabilities == {"tools": {"listChanged": True}}


@pytest.mark.behaviour("CAP-14-S1")
@pytest.mark.parametrize("revision", EVERY)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_policy_decides_for_each_family(family: str, revision: str) -> None:
    upstreams = (up("one", tools={}, prompts={}, resources={"subscribe": True}),)
    never = promise(upstreams, on(revision), {family: "never"})
    assert not never.has(family)
    assert "never: policy" in never.why[family]
    always = promise((up("one"),), on(revision), {family: "always"})
    assert [name for name in FAMILIES if always.has(name)] == [family]


@pytest.mark.behaviour("CAP-14-S1", "CAP-16-S1")
def test_the_known_host_that_pays_for_resources_gets_none_unless_its_profile_is_told_to() -> None:
    upstreams = (up("one", tools={}, resources={"subscribe": True}),)
    opencode = on(NEWEST, profile=register().hosts["opencode-v1"])
    hidden = promise(upstreams, opencode, {"resources": "always"})
    assert hidden.has("tools")
    assert not hidden.has("resources")
    assert "opencode-v1 pays for it" in hidden.why["resources"]
    shown = promise(upstreams, opencode, {}, {"opencode-v1": {"resources": "auto"}})
    assert shown.has("resources.subscribe")
    other = promise(upstreams, opencode, {}, {"opencode-v1": {"tools": "never"}})
    assert not other.has("tools")
    assert "policy of the profile opencode-v1" in other.why["tools"]
    assert promise(upstreams, on(NEWEST, profile=register().hosts["opencode-v2"]), {}).has("resources")


@pytest.mark.behaviour("CAP-15-S1", "CAP-18-S1", "CAP-20-S1")
@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize("push", [True, False])
@pytest.mark.parametrize("changes", [True, False])
def test_list_changes_are_promised_where_they_can_be_pushed_and_can_happen(
    revision: str, push: bool, changes: bool
) -> None:
    upstreams = (up("one", tools={}, prompts={}, resources={}),)
    built = promise(upstreams, on(revision, push=push, changes=changes), {})
    for family in FAMILIES:
        assert built.has(family)
        assert built.has(f"{family}.listChanged") is (push and changes)


@pytest.mark.behaviour("CAP-15-S4", "CAP-18-S1", "CAP-20-S1")
@pytest.mark.parametrize("can_listen", [True, False])
@pytest.mark.parametrize("changes", [True, False])
def test_list_changes_are_promised_to_a_modern_host_where_it_can_listen(can_listen: bool, changes: bool) -> None:
    upstreams = (up("one", tools={}, prompts={}, resources={}),)
    built = promise(upstreams, on(MODERN, can_listen=can_listen, changes=changes), {})
    for family in FAMILIES:
        assert built.has(f"{family}.listChanged") is (can_listen and changes)


@pytest.mark.behaviour("CAP-17-S1")
@pytest.mark.parametrize("revision", EVERY)
def test_subscriptions_are_promised_where_an_upstream_has_them_and_updates_arrive(revision: str) -> None:
    watched, plain = up("one", resources={"subscribe": True}), up("two", resources={})
    assert promise((plain, watched), on(revision), {}).has("resources.subscribe")
    assert not promise((plain,), on(revision), {}).has("resources.subscribe")
    assert not promise((watched,), on(revision, push=False, can_listen=False), {}).has("resources.subscribe")


@pytest.mark.behaviour("CAP-12-S1")
@pytest.mark.parametrize("revision", LEGACY)
def test_rule_10_logging_is_declared_to_a_legacy_host_where_an_upstream_declares_it(revision: str) -> None:
    built = promise((up("one", logging={}),), on(revision, push=False), {})
    assert built.has("logging")
    assert also_served(built, "logging/setLevel") is True
    silent = promise((up("one", tools={}),), on(revision), {})
    assert not silent.has("logging")
    assert also_served(silent, "logging/setLevel") == "logging"


@pytest.mark.behaviour("CAP-12-S2")
def test_logging_is_still_declared_to_a_modern_host() -> None:
    built = promise((up("one", logging={}),), on(MODERN), {})
    assert built.has("logging")
    assert also_served(built, "logging/setLevel") is False
    assert not promise((up("one"),), on(MODERN), {}).has("logging")


@pytest.mark.behaviour("CAP-13-S1")
@pytest.mark.parametrize("revision", EVERY[1:])
def test_completions_are_declared_where_an_upstream_completes(revision: str) -> None:
    built = promise((up("one", completions={}),), on(revision), {})
    assert built.has("completions")
    assert also_served(built, "completion/complete") is True
    silent = promise((up("one", prompts={}),), on(revision), {})
    assert not silent.has("completions")
    assert also_served(silent, "completion/complete") == "completions"


def test_an_upstream_that_completes_without_a_capability_counts_once_it_was_tried() -> None:
    old = UpstreamView(name="old", capabilities=read_server({"prompts": {}}, OLDEST), completes=True)
    built = promise((old,), on(NEWEST), {})
    assert built.has("completions")
    assert "answered without a declaration by: old" in built.why["completions"]
    untried = UpstreamView(name="old", capabilities=read_server({"prompts": {}}, OLDEST))
    assert not promise((untried,), on(NEWEST), {}).has("completions")


@pytest.mark.behaviour("CAP-13-S2")
def test_completion_is_served_without_a_capability_where_the_revision_has_none() -> None:
    built = promise((up("one", completions={}),), on(OLDEST), {})
    assert "completions" not in built.capabilities
    assert also_served(built, "completion/complete") is True


@pytest.mark.behaviour("CAP-01-S1")
@pytest.mark.parametrize("revision", EVERY)
def test_rule_26_experimental_keys_pass_by_the_operators_list_alone(revision: str) -> None:
    declared = read_server({"experimental": {"a": {"x": 1}, "b": {}}}, NEWEST)
    assert (
        "experimental" not in promise((UpstreamView(name="u", capabilities=declared),), on(revision), {}).capabilities
    )
    listed = UpstreamView(name="u", capabilities=declared, experimental=("a", "gone"))
    built = promise((listed,), on(revision), {})
    assert built.capabilities["experimental"] == {"a": {"x": 1}}


@pytest.mark.behaviour("CAP-25-S1")
@pytest.mark.parametrize("revision", EVERY)
def test_rule_26_extensions_pass_by_the_operators_list_alone_and_to_modern_hosts_only(revision: str) -> None:
    declared = read_server({"extensions": {"com.example/a": {"x": 1}, "com.example/b": {}}}, MODERN)
    assert "extensions" not in promise((UpstreamView(name="u", capabilities=declared),), on(revision), {}).capabilities
    listed = UpstreamView(name="u", capabilities=declared, extensions=("com.example/a",))
    built = promise((listed,), on(revision), {})
    expected = {"com.example/a": {"x": 1}} if register().era(revision) is Era.MODERN else None
    assert built.capabilities.get("extensions") == expected


def test_settings_of_a_key_that_several_upstreams_declare_are_those_that_all_agree_on() -> None:
    views = tuple(
        UpstreamView(name=name, capabilities=read_server({"experimental": {"a": value}}, NEWEST), experimental=("a",))
        for name, value in (("one", {"x": 1, "y": 2}), ("two", {"x": 1, "y": 3, "z": 4}))
    )
    assert promise(views, on(NEWEST), {}).capabilities["experimental"] == {"a": {"x": 1}}


@pytest.mark.behaviour("GEN-S11")
@pytest.mark.parametrize("revision", EVERY)
def test_one_rule_for_every_connection_and_a_reason_for_every_member(revision: str) -> None:
    upstreams = (up("one", tools={}, resources={"subscribe": True}, logging={}), UpstreamView(name="two"))
    built = promise(upstreams, on(revision), {})
    assert built.capabilities == promise(upstreams, on(revision), {}).capabilities
    for path, why in built.why.items():
        assert why.startswith("true because " if path.split("[")[0] and built.has(path) else "absent because ")


def test_what_a_host_may_call_is_what_was_declared_to_it() -> None:
    built = promise((up("one", tools={}, resources={}),), on(NEWEST), {})
    assert also_served(built, "tools/call") is True
    assert also_served(built, "ping") is True
    assert also_served(built, "prompts/get") == "prompts"
    assert also_served(built, "resources/subscribe") == "resources.subscribe"
    assert also_served(built, "tasks/get") == "tasks"
    assert also_served(built, "no/such") is False
    assert also_served(built, "sampling/createMessage") is False


def test_remembered_paths_are_those_of_the_declaration() -> None:
    declared = read_server({"tools": {"listChanged": False}, "resources": {"subscribe": True}, "prompts": None}, NEWEST)
    assert paths(declared) == {"tools", "resources", "resources.subscribe"}


def test_a_host_that_reads_the_first_page_only_gets_one_page() -> None:
    assert page_size(register().hosts["lootbox"], 50) is None
    assert page_size(register().hosts["opencode-v1"], 50) == 50
    assert page_size(None, 50) == 50


def test_tasks_are_added_to_what_is_declared_and_nothing_is_taken() -> None:
    key = "io.modelcontextprotocol/tasks"
    assert with_tasks(None) == {"extensions": {key: {}}}
    declared = {"roots": {}, "extensions": {"com.example/x": {"a": 1}}}
    assert with_tasks(declared) == {"roots": {}, "extensions": {"com.example/x": {"a": 1}, key: {}}}
    assert declared["extensions"] == {"com.example/x": {"a": 1}}
