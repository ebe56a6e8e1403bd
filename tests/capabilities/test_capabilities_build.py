from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strict import needs_schemas, problems

from troth.capabilities import ClientFacts, Facts, build, build_client, read_client, read_server
from troth.capabilities.facts import CLIENT_TASKS, FAMILIES, MODES, SERVER_TASKS, listen_kinds
from troth.capabilities.rules import CLIENT, HOLLOW, SERVER
from troth.register import Era, Side, register

GOLDENS = Path(__file__).parent / "goldens"
REVISIONS = register().revisions
LEGACY = register().eras[Era.LEGACY]
MODERN = register().newest(Era.MODERN)
TASKS_KEY = "io.modelcontextprotocol/tasks"
TASKS = f'extensions["{TASKS_KEY}"]'

FULL = Facts(
    tools=True,
    prompts=True,
    resources=True,
    completions=True,
    log_messages=True,
    log_level=True,
    announces=FAMILIES,
    subscribe=True,
    push=True,
    listen=set(listen_kinds().values()),
    tasks=SERVER_TASKS,
    extensions={TASKS_KEY: {}, "com.example/own": {"a": 1}},
    experimental={"ours": {"b": True}},
)
FILES = Facts(
    tools=True,
    resources=True,
    announces={"resources"},
    subscribe=True,
    push=True,
    listen={"resourcesListChanged", "resourceSubscriptions"},
)
SERVERS = {
    "tool-only": Facts(tools=True),
    "file-system": FILES,
    "file-system-without-push": replace(FILES, push=False, listen=()),
    "full": FULL,
}
FULL_CLIENT = ClientFacts(
    roots=True,
    roots_changed=True,
    sampling=True,
    sampling_tools=True,
    sampling_context=True,
    elicitation=MODES,
    tasks=CLIENT_TASKS,
    extensions={TASKS_KEY: {}},
    experimental={"ours": {}},
)
CLIENTS = {
    "client-full": FULL_CLIENT,
    "client-url-only": ClientFacts(elicitation={"url"}),
    "client-proxy": ClientFacts(roots=True, sampling=True, elicitation={"form"}),
}

settings = st.dictionaries(
    st.sampled_from([TASKS_KEY, "com.example/own", "nope", "io.modelcontextprotocol/ui"]),
    st.dictionaries(st.text(max_size=3), st.integers() | st.booleans(), max_size=2),
    max_size=3,
)


def some(names):
    return st.sets(st.sampled_from(sorted(names)))


server_facts = st.builds(
    Facts,
    tools=st.booleans(),
    prompts=st.booleans(),
    resources=st.booleans(),
    completions=st.booleans(),
    log_messages=st.booleans(),
    log_level=st.booleans(),
    announces=some(FAMILIES),
    subscribe=st.booleans(),
    push=st.booleans(),
    listen=some(listen_kinds().values()),
    tasks=some(SERVER_TASKS),
    extensions=settings,
    experimental=settings,
)
client_facts = st.builds(
    ClientFacts,
    roots=st.booleans(),
    roots_changed=st.booleans(),
    sampling=st.booleans(),
    sampling_tools=st.booleans(),
    sampling_context=st.booleans(),
    elicitation=some(MODES),
    tasks=some(CLIENT_TASKS),
    extensions=settings,
    experimental=settings,
)


def declared(built) -> set[str]:
    return {row.path for row in register().rows if row.side is built.side and built.has(row.path)}


def made(name, revision):
    if name in SERVERS:
        return build(SERVERS[name], revision=revision)
    return build_client(CLIENTS[name], revision=revision)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("name", [*SERVERS, *CLIENTS])
def test_declarations_are_as_in_the_goldens(name, revision):
    golden = json.loads((GOLDENS / f"{name}.json").read_text("utf-8"))
    assert made(name, revision).capabilities == golden[revision]


@needs_schemas
@pytest.mark.behaviour("GEN-B3")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("name", [*SERVERS, *CLIENTS])
def test_declarations_are_valid_against_the_official_schema_and_leak_nothing(name, revision):
    built = made(name, revision)
    assert problems(built.capabilities, built.side, revision) == []


@needs_schemas
def test_the_strict_sweep_sees_what_plain_validation_misses():
    assert problems({"roots": {"listChanged": False}}, "client", MODERN) == [".roots.listChanged is not defined"]
    assert problems({"tasks": {}}, "server", MODERN) == [".tasks is not defined"]
    assert problems({"tools": True}, "server", MODERN) == ["True is not of type 'object'"]


def test_every_row_has_a_rule_and_every_rule_a_row():
    maps = {"experimental", "extensions"}
    for side, rules in ((Side.SERVER, SERVER), (Side.CLIENT, CLIENT)):
        rows = {row.id for row in register().rows if row.side is side and row.key[0] not in maps}
        assert set(rules) == rows
    assert set(HOLLOW) | {member for members in HOLLOW.values() for member in members} <= {*SERVER, *CLIENT}


@pytest.mark.behaviour("CAP-15-S1")
@pytest.mark.parametrize("revision", LEGACY)
def test_a_legacy_flag_needs_an_announced_change_and_a_channel_to_push_on(revision):
    facts = Facts(prompts=True, tools=True, resources=True, announces={"prompts"}, subscribe=True)
    flags = {"prompts.listChanged", "resources.subscribe"}
    assert declared(build(facts, revision=revision)) == {"prompts", "resources", "tools"}
    assert declared(build(facts, revision=revision, push=True)) == {"prompts", "resources", "tools"} | flags
    why = build(replace(facts, push=True), revision=revision, push=False).why
    assert why["prompts.listChanged"] == (
        "absent because changes of the list of prompts are announced, but there is no channel to push on "
        "(stdio, or an HTTP session with a GET stream)"
    )
    assert why["tools.listChanged"] == "absent because changes of the list of tools are not announced"


@pytest.mark.behaviour("CAP-15-S4")
def test_a_modern_flag_needs_a_listen_that_delivers_it():
    facts = Facts(prompts=True, resources=True, tools=True, announces=FAMILIES, push=True, subscribe=True)
    assert declared(build(facts, era="modern")) == {"prompts", "resources", "tools"}
    facts = replace(facts, announces=(), push=False, subscribe=False, listen={"promptsListChanged"})
    built = build(facts, era="modern")
    assert declared(built) == {"prompts", "prompts.listChanged", "resources", "tools"}
    assert built.why["prompts.listChanged"] == "true because subscriptions/listen delivers promptsListChanged"
    assert (
        built.why["resources.subscribe"] == "absent because subscriptions/listen does not deliver resourceSubscriptions"
    )


@pytest.mark.parametrize(
    ("messages", "level", "legacy", "modern"),
    [(True, True, True, True), (True, False, False, True), (False, True, False, False)],
)
def test_logging_needs_messages_and_on_legacy_the_level_request(messages, level, legacy, modern):
    facts = Facts(log_messages=messages, log_level=level)
    assert [build(facts, revision=revision).has("logging") for revision in REVISIONS] == [legacy] * 4 + [modern]


@pytest.mark.behaviour("CAP-13-S1", "CAP-13-S2")
def test_completions_are_declared_where_the_capability_exists():
    assert [build(Facts(completions=True), revision=revision).has("completions") for revision in REVISIONS] == [
        False,
        True,
        True,
        True,
        True,
    ]
    assert not build(Facts()).has("completions")


@pytest.mark.behaviour("CAP-21-S1", "CAP-22-S1")
def test_core_tasks_are_declared_at_one_revision_and_listed_only_when_bound():
    facts = Facts(tools=True, tasks={"requests.tools.call", "cancel"}, extensions={TASKS_KEY: {}})
    for revision in REVISIONS:
        built = build(facts, revision=revision)
        assert built.has("tasks") is (revision == "2025-11-25")
        assert built.has(TASKS) is (revision == MODERN)
    assert build(facts).capabilities["tasks"] == {"cancel": {}, "requests": {"tools": {"call": {}}}}
    assert build(facts).why["tasks.list"] == "absent because core tasks offer no list"
    assert build(replace(facts, tasks=SERVER_TASKS)).has("tasks.list")


def test_tasks_that_nothing_can_start_are_not_declared():
    listing = build(Facts(tools=True, tasks={"list", "cancel"}))
    assert listing.capabilities == {"tools": {}}
    assert listing.why["tasks.list"] == "absent because tasks is absent"
    assert not build(Facts(tasks=SERVER_TASKS)).has("tasks")
    client = build_client(ClientFacts(sampling=True, tasks=CLIENT_TASKS))
    assert client.capabilities["tasks"] == {"cancel": {}, "list": {}, "requests": {"sampling": {"createMessage": {}}}}
    assert not build_client(ClientFacts(tasks=CLIENT_TASKS)).has("tasks")


@pytest.mark.behaviour("CAP-01-S1")
def test_experimental_is_declared_from_configuration_only():
    assert "experimental" not in build(FULL, base={"experimental": {"theirs": {}}}).capabilities
    assert build(FULL).capabilities["experimental"] == {"ours": {"b": True}}
    assert "experimental" not in build(replace(FULL, experimental={})).capabilities


@pytest.mark.behaviour("CAP-11-C1")
def test_extensions_need_a_valid_key_and_an_object_and_carry_copies():
    given_settings = {"com.example/own": {"list": [1]}, "nope": {}, "com.example/odd": True}
    built = build(Facts(extensions=given_settings), era="modern")
    assert built.capabilities == {"extensions": {"com.example/own": {"list": [1]}}}
    given_settings["com.example/own"]["list"].append(2)
    assert built.capabilities == {"extensions": {"com.example/own": {"list": [1]}}}
    assert built.why["extensions.nope"].startswith("absent because its key is not PREFIX/NAME")
    assert built.why['extensions["com.example/odd"]'] == (
        "absent because its value is a boolean where an object belongs"
    )
    assert built.why['extensions["com.example/own"]'] == "true because it is implemented"
    assert build_client(FULL_CLIENT, era="modern").has(TASKS)


@pytest.mark.behaviour("CAP-03-C1", "CAP-03-C2")
def test_changes_of_roots_are_promised_on_legacy_only_and_only_if_sent():
    facts = ClientFacts(roots=True, roots_changed=True)
    assert [build_client(facts, revision=revision).capabilities for revision in REVISIONS] == [
        {"roots": {"listChanged": True}}
    ] * 4 + [{"roots": {}}]
    assert build_client(ClientFacts(roots=True)).capabilities == {"roots": {}}
    assert build_client(ClientFacts(roots_changed=True)).capabilities == {}


def test_context_is_promised_only_when_told():
    assert build_client(ClientFacts(sampling=True)).capabilities == {"sampling": {}}
    assert build_client(ClientFacts(sampling=True, sampling_context=True)).capabilities == {"sampling": {"context": {}}}


@pytest.mark.behaviour("GEN-S11")
@pytest.mark.parametrize("revision", REVISIONS)
def test_every_path_says_why(revision):
    for built in (build(FULL, revision=revision), build_client(FULL_CLIENT, revision=revision)):
        paths = [row.path for row in register().rows if row.side is built.side]
        assert set(paths) <= set(built.why)
        for path in paths:
            word = "true" if built.has(path) else "absent"
            assert built.why[path].startswith(f"{word} because ")
            assert len(built.why[path]) > len(word) + 15
    assert build(Facts()).why["tools.listChanged"] == "absent because tools is absent"
    assert build(FULL, revision="2024-11-05").why["completions"] == (
        "absent because 2024-11-05 does not define it (only 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28)"
    )


@pytest.mark.behaviour("GEN-S11")
def test_the_rule_is_the_same_for_stdio_and_http():
    stdio, http = build(FILES, push=True), build(FILES, push=False)
    differing = {path for path in stdio.why if stdio.why[path] != http.why[path]}
    assert differing == {"resources.listChanged", "resources.subscribe"}


def test_a_base_narrows_and_a_flag_creates_no_parent():
    base = {"tools": True, "resources": {"subscribe": True}, "prompts": {"listChanged": True}, "logging": False}
    built = build(replace(FULL, prompts=False), base=base)
    assert built.capabilities == {"tools": {}, "resources": {"subscribe": True}}
    assert built.why["prompts"] == "absent because no prompts are served, although the base asks for it"
    assert built.why["prompts.listChanged"] == "absent because prompts is absent, although the base asks for it"
    assert built.why["completions"] == (
        "absent because the base leaves it out (otherwise true: completion/complete is answered)"
    )


def test_what_is_wrong_with_a_base_is_told():
    built = build(Facts(tools=True, extensions={"a.b/c": {}}), base={"tools": {"list": 1, "listChanged": "yes"}})
    assert built.capabilities == {"tools": {}}
    assert built.why["tools.list"] == (
        "absent because no fact asks for it; of the base: tools.list is defined by no revision; it is kept and has no "
        "effect"
    )
    assert "a string where a boolean belongs" in built.why["tools.listChanged"]
    with pytest.raises(TypeError, match="no capability is called 'toolz'; did you mean 'tools'"):
        build(Facts(), base={"toolz": True})
    with pytest.raises(TypeError, match="no capability is called 'roots' on the server side: it is a client capabi"):
        build(Facts(), base={"roots": True})


def test_a_base_that_leaves_nothing_to_promise_leaves_the_object_out():
    built = build(FULL, base={"tasks": {"list": {}}})
    assert built.capabilities == {}
    assert built.why["tasks"] == "absent because nothing that it could promise is left"
    assert built.why["tasks.list"] == "absent because tasks is absent, although the base asks for it"
    form = build_client(FULL_CLIENT, base={"elicitation": True})
    assert form.capabilities == {"elicitation": {"form": {}}}


def test_the_newest_legacy_revision_is_built_when_nothing_is_said():
    assert build(Facts()).revision == "2025-11-25"
    assert build(Facts(), era="legacy").revision == "2025-11-25"
    assert build(Facts(), era=Era.MODERN).revision == MODERN
    assert build(Facts(), era="legacy", revision="2025-03-26").revision == "2025-03-26"
    with pytest.raises(ValueError, match="revision 2026-07-28 is modern, not legacy: give one of the two"):
        build(Facts(), era="legacy", revision=MODERN)
    with pytest.raises(ValueError, match="unknown era 'old'; there are: legacy, modern"):
        build_client(ClientFacts(), era="old")
    with pytest.raises(ValueError, match="unknown protocol revision '1'"):
        build(Facts(), revision="1")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Facts(announces={"tool"}), "announces knows no 'tool'; did you mean 'tools'?"),
        (lambda: Facts(listen={"toolListChanged"}), "did you mean 'toolsListChanged'?"),
        (lambda: Facts(tasks={"tools.call"}), "did you mean 'requests.tools.call'?"),
        (lambda: ClientFacts(elicitation={"voice"}), "there are: form, url"),
        (lambda: ClientFacts(tasks={"requests.tools.call"}), "tasks knows no"),
    ],
)
def test_a_wrong_name_in_the_facts_is_an_error(make, message):
    with pytest.raises(ValueError, match="knows no") as caught:
        make()
    assert message in str(caught.value)


def test_an_unknown_source_is_an_error_that_names_what_is_accepted():
    with pytest.raises(TypeError, match=r"cannot tell what builtins\.dict implements: give troth\.Facts, or a server"):
        build({"tools": True})


def test_a_source_of_an_unsupported_release_is_an_error(monkeypatch):
    class Old:
        __module__ = "mcp.server.fastmcp.server"

    monkeypatch.setitem(sys.modules, "troth.plugins.mcp_sdk", None)
    with pytest.raises(TypeError, match="is of a release that is not supported: give troth"):
        build(Old())


@pytest.mark.parametrize(
    ("home", "plugin"),
    [("mcp.server.lowlevel.server", "mcp_sdk"), ("mcp.server", "mcp_sdk"), ("fastmcp.server.server", "fastmcp")],
)
def test_facts_of_a_server_object_come_from_the_plugin_of_its_framework(monkeypatch, home, plugin):
    base = type("Base", (), {"__module__": home})
    source = type("Mine", (base,), {"__module__": "mine"})()
    module = SimpleNamespace(facts=lambda server: Facts(tools=server is source))
    monkeypatch.setitem(sys.modules, f"troth.plugins.{plugin}", module)
    assert build(source).capabilities == {"tools": {}}


def test_building_and_reading_import_no_framework():
    code = (
        "import sys, troth; before = set(sys.modules); assert 'troth.capabilities' not in before; "
        "troth.build(troth.Facts()); troth.read_client({}, '2025-11-25'); "
        "assert 'Facts' in dir(troth); "
        "print(sorted({'mcp', 'fastmcp', 'pydantic', 'starlette', 'anyio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


def test_the_package_knows_only_its_public_names():
    import troth

    assert [name for name in troth.__all__ if getattr(troth, name) is None] == []
    with pytest.raises(AttributeError, match="module 'troth' has no attribute 'nothing'"):
        troth.nothing  # noqa: B018


@given(facts=server_facts, revision=st.sampled_from(REVISIONS))
def test_a_server_never_declares_what_the_facts_lack(facts, revision):
    built = build(facts, revision=revision)
    caps, legacy = built.capabilities, revision in LEGACY
    listen = {"tools": "toolsListChanged", "prompts": "promptsListChanged", "resources": "resourcesListChanged"}
    for family, kind in listen.items():
        assert (family in caps) is getattr(facts, family)
        flag = family in facts.announces and facts.push if legacy else kind in facts.listen
        assert (caps.get(family, {}).get("listChanged", False)) is (getattr(facts, family) and flag)
    subscribe = facts.subscribe and facts.push if legacy else "resourceSubscriptions" in facts.listen
    assert caps.get("resources", {}).get("subscribe", False) is (facts.resources and subscribe)
    assert built.has("logging") is (facts.log_messages and (facts.log_level or not legacy))
    assert built.has("completions") is (facts.completions and revision != "2024-11-05")
    tasks = facts.tools and "requests.tools.call" in facts.tasks and revision == "2025-11-25"
    assert built.has("tasks") is tasks
    assert built.has("tasks.list") is (tasks and "list" in facts.tasks)
    assert built.has("tasks.cancel") is (tasks and "cancel" in facts.tasks)
    keys = set() if legacy else set(facts.extensions) - {"nope"}
    assert set(caps.get("extensions", {})) == keys
    assert caps.get("experimental", {}) == facts.experimental
    assert built.declared.problems == ()


@given(facts=client_facts, revision=st.sampled_from(REVISIONS))
def test_a_client_never_declares_what_the_facts_lack(facts, revision):
    built = build_client(facts, revision=revision)
    legacy = revision in LEGACY
    modes = revision in {"2025-11-25", MODERN}
    assert built.has("roots") is facts.roots
    assert built.has("roots.listChanged") is (facts.roots and facts.roots_changed and legacy)
    assert built.has("sampling") is facts.sampling
    assert built.has("sampling.tools") is (facts.sampling and facts.sampling_tools and modes)
    assert built.has("sampling.context") is (facts.sampling and facts.sampling_context and modes)
    assert built.has("elicitation.form") is ("form" in facts.elicitation and modes)
    assert built.has("elicitation.url") is ("url" in facts.elicitation and modes)
    asks = bool(facts.elicitation) if modes else "form" in facts.elicitation and revision == "2025-06-18"
    assert built.has("elicitation") is asks
    tasks = revision == "2025-11-25"
    sampling = tasks and facts.sampling and "requests.sampling.createMessage" in facts.tasks
    elicitation = tasks and bool(facts.elicitation) and "requests.elicitation.create" in facts.tasks
    assert built.has("tasks.requests.sampling.createMessage") is sampling
    assert built.has("tasks.requests.elicitation.create") is elicitation
    assert built.has("tasks") is (sampling or elicitation)
    assert built.declared.problems == ()


bases = st.fixed_dictionaries(
    {},
    optional={
        "tools": st.booleans() | st.just({"listChanged": True}),
        "resources": st.booleans() | st.sampled_from([{"subscribe": True}, {"subscribe": False, "listChanged": True}]),
        "prompts": st.booleans() | st.just({"listChanged": True}),
        "logging": st.booleans(),
        "completions": st.none() | st.just(True),
        "tasks": st.sampled_from([True, {"list": {}}, {"requests": {"tools": {"call": {}}}}, FULL.tasks]),
        "extensions": st.sampled_from([True, {TASKS_KEY: {}}, {"nope": {}}, {"com.example/own": {"x": 1}}]),
        "experimental": st.sampled_from([True, {"com.example/own": {}}]),
    },
)


@given(facts=server_facts, base=bases, revision=st.sampled_from(REVISIONS))
def test_a_base_never_widens(facts, base, revision):
    built = build(facts, revision=revision, base=base)
    own = read_server({name: {} if value is True else value for name, value in base.items() if value}, revision)
    free = build(facts, revision=revision)
    assert built.declared.in_force <= own.in_force & free.declared.in_force
    assert built.declared.problems == ()


@needs_schemas
@pytest.mark.behaviour("GEN-B3")
@given(server=server_facts, client=client_facts, revision=st.sampled_from(REVISIONS))
def test_whatever_is_built_is_valid_in_its_revision(server, client, revision):
    assert problems(build(server, revision=revision).capabilities, "server", revision) == []
    assert problems(build_client(client, revision=revision).capabilities, "client", revision) == []
    assert read_client(build_client(client, revision=revision).capabilities, revision).problems == ()
