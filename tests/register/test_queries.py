"""What the register answers when code asks it."""

from __future__ import annotations

import pytest

from troth.register import Channel, Era, HostUse, Kind, Related, Side, register
from troth.register.find import Found, Topic, find, suggest


def test_revisions_belong_to_eras_oldest_first() -> None:
    known = register()
    assert known.revisions == ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
    assert [known.era(revision) for revision in known.revisions] == [Era.LEGACY] * 4 + [Era.MODERN]
    assert (known.newest(Era.LEGACY), known.newest(Era.MODERN)) == ("2025-11-25", "2026-07-28")
    with pytest.raises(KeyError):
        known.era("1900-01-01")


def test_a_row_is_found_by_id_path_and_family() -> None:
    known = register()
    row = known.by_id["CAP-17"]
    assert (row.side, row.path, row.key) == (Side.SERVER, "resources.subscribe", ("resources", "subscribe"))
    assert known.path("resources.subscribe") == (row,)
    assert [row.id for row in known.path("tasks")] == ["CAP-10", "CAP-21"]
    assert [row.id for row in known.path("tasks", Side.SERVER)] == ["CAP-21"]
    assert known.path("no.such") == ()
    assert [row.id for row in known.family("CAP-26")] == ["CAP-26-client", "CAP-26-server"]


def test_the_key_of_an_extension_is_one_name() -> None:
    assert register().by_id["CAP-26-client"].key == ("extensions", "io.modelcontextprotocol/tasks")


def test_a_missing_definition_means_not_in_this_revision() -> None:
    row = register().by_id["CAP-03"]
    assert row.at("2026-07-28") is None
    definition = row.at("2025-11-25")
    assert definition
    assert (definition.kind, definition.channel) == (Kind.BOOLEAN, Channel.CLIENT_NOTIFICATION)


def test_rows_by_side_and_revision() -> None:
    known = register()
    oldest = [row.path for row in known.at(Side.CLIENT, "2024-11-05")]
    assert oldest == ["experimental", "roots", "roots.listChanged", "sampling"]
    assert "extensions" in [row.path for row in known.at(Side.SERVER, "2026-07-28")]
    assert "extensions" not in [row.path for row in known.at(Side.SERVER, "2025-11-25")]


def test_a_method_is_known_per_revision() -> None:
    known = register()
    use = known.method("resources/subscribe", "2025-11-25")
    assert use
    assert (use.roles, use.rows) == (("ClientRequest",), ("CAP-17",))
    assert known.method("resources/subscribe", "2026-07-28") is None
    assert [row.id for row in known.gating("resources/subscribe", "2024-11-05")] == ["CAP-17"]
    assert known.gating("resources/subscribe", "2026-07-28") == ()
    assert known.gating("ping", "2025-11-25") == ()


def test_each_side_gates_the_tasks_methods_that_it_answers() -> None:
    known = register()
    for row, direction in (("CAP-10", "server->client request"), ("CAP-21", "client->server request")):
        gates = known.by_id[row].definitions["2025-11-25"].gates
        assert {gate.method: gate.directions for gate in gates} == {
            "tasks/get": (direction,),
            "tasks/result": (direction,),
        }


def test_norms_of_a_row_and_of_a_revision() -> None:
    known = register()
    row = known.by_id["CAP-13"]
    assert [norm.id for norm in known.norms_of(row, "2025-03-26")] == [
        "N-COMPLETIONS-DECLARE@2025-03-26",
        "N-COMPLETIONS-32601@2025-03-26",
    ]
    assert known.norms_of(row, "2024-11-05") == ()
    assert sum(len(known.norms_at(revision)) for revision in known.revisions) == len(known.norms)


def test_errors_by_code_and_by_revision() -> None:
    known = register()
    found = known.error(-32021)
    assert found
    assert (found.name, found.http) == ("MissingRequiredClientCapability", "400.")
    assert known.error("-32021") == found
    assert known.error(-1234) is None
    assert [error.code for error in known.errors_at("2025-11-25")] == [-32601, -32602, -32002, -32042, -1]


def test_related_switches_name_their_place() -> None:
    assert register().related[1] == Related(
        id="REL-logLevel",
        where='request _meta["io.modelcontextprotocol/logLevel"]',
        revision="2026-07-28",
        fields={"*": "CAP-12"},
        source="schema/2026-07-28/schema.ts:110",
    )


def test_a_host_tells_what_it_calls_honours_and_leaves() -> None:
    host = register().hosts["opencode-v1"]
    assert host.declares == {Era.LEGACY: {"roots": {}}, Era.MODERN: None}
    tools = host.calling("tools/list")
    assert tools
    assert (tools.needs, tools.certainty) == ("tools", "seen")
    assert host.calling("resources/subscribe") is None
    assert host.never("tasks/get")
    assert not host.never("tools/call")
    assert host.honouring("notifications/message")
    assert host.honouring("notifications/resources/updated") is None
    assert host.ignoring("notifications/resources/updated")
    assert host.has("resources-cost-tools")
    assert not host.has("first-page-only")


def test_a_star_in_a_profile_stands_for_any_rest() -> None:
    host = register().hosts["lootbox"]
    assert host.ignoring("notifications/message") == HostUse(method="notifications/*")
    assert host.answering("roots/list") == host.answers[0]
    assert host.answering("notifications/message") is None
    assert register().hosts["none-legacy"].answering("roots/list") is None


def test_profiles_for_tests_say_so() -> None:
    made_up = [host.id for host in register().hosts.values() if host.test]
    assert made_up == ["none-legacy", "url-only", "form-implied", "full-2511", "full-2026"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("cap-17", Found(topic=Topic.CAPABILITY, keys=("CAP-17",))),
        ("CAP-10-Sampling", Found(topic=Topic.CAPABILITY, keys=("CAP-10-sampling",))),
        ("CAP-26", Found(topic=Topic.CAPABILITY, keys=("CAP-26-client", "CAP-26-server"))),
        ("ROOTS.listchanged", Found(topic=Topic.CAPABILITY, keys=("CAP-03",))),
        (" tasks ", Found(topic=Topic.CAPABILITY, keys=("CAP-10", "CAP-21"))),
        ("io.modelcontextprotocol/ui", Found(topic=Topic.CAPABILITY, keys=("XE-ui-client", "XE-ui-server"))),
        ("notifications/message", Found(topic=Topic.METHOD, keys=("notifications/message",))),
        ("-32021", Found(topic=Topic.ERROR, keys=("-32021",))),
        ("-32005", Found(topic=Topic.ERROR, keys=("-32000..-32019",))),
        ("-32020", Found(topic=Topic.ERROR, keys=("-32020",))),
        ("g-06", Found(topic=Topic.GAP, keys=("G-06",))),
        ("2025-11-25", Found(topic=Topic.REVISION, keys=("2025-11-25",))),
        ("Lootbox", Found(topic=Topic.HOST, keys=("lootbox",))),
        ("-31999", None),
        ("-99999999999999999999", None),
        ("", None),
    ],
)
def test_a_query_finds(query: str, found: Found | None) -> None:
    assert find(register(), query) == found


@pytest.mark.parametrize(
    ("query", "near"),
    [
        ("CAP17", "CAP-17"),
        ("root.listChanged", "roots.listChanged"),
        ("resources/subcribe", "resources/subscribe"),
        ("subscribe", "resources/subscribe"),
    ],
)
def test_a_miss_suggests_the_near_name(query: str, near: str) -> None:
    assert near in suggest(register(), query)


def test_nonsense_suggests_nothing() -> None:
    assert suggest(register(), "qqqqqqqq") == ()
