"""Each fault does what it says, in the revisions it names, and nothing in the others."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from troth.register import Era, Side, register
from troth.testing import FAULTS, Context, Exit, Junk, Script, Send, Twist, twists

from .peer import EVERYTHING, META, ONE, TASKS, Host, converse

if TYPE_CHECKING:
    from collections.abc import Callable

REVISIONS = register().revisions
LEGACY = register().eras[Era.LEGACY]
LATEST = LEGACY[-1]
NOW = register().newest(Era.MODERN)
MISSING = "missing"
CLIENTS: tuple[dict[str, Any], ...] = ({}, {**EVERYTHING, "sampling": {"tools": {}}})
VERDICTS = frozenset(
    (
        "kept",
        "empty",
        "partial",
        "broken",
        "undeclared",
        "leaked",
        "malformed",
        "wrong-code",
        "ungated",
        "not-observable",
    )
)
SHELLS = frozenset(name for name, fault in FAULTS.items() if fault.make(fault.value or "").shell)
"""Faults of the shells, which no script shows: `test_stdio` and `test_http` prove them."""
SMALL = {"flood": "flood=3", "long-line": "long-line=9"}


def written(name: str) -> str:
    return SMALL.get(name, name)


@cache
def honest(revision: str, transport: str) -> list[list[str]]:
    return [converse(Host(revision, capabilities=client, transport=transport)) for client in CLIENTS]


@pytest.mark.parametrize("name", sorted(FAULTS.keys() - SHELLS - {"out-of-order"}))
def test_a_fault_shows_in_the_revisions_it_names_and_in_no_other(name: str) -> None:
    transport = "http" if name == "stdio-http-differ" else "stdio"
    shown = [
        revision
        for revision in REVISIONS
        if [converse(Host(revision, written(name), capabilities=client, transport=transport)) for client in CLIENTS]
        != honest(revision, transport)
    ]
    assert tuple(shown) == FAULTS[name].revisions


def test_every_server_row_of_the_register_has_a_fault() -> None:
    rows = {row.id for row in register().rows if row.side is Side.SERVER}
    assert rows - {fault.row for fault in FAULTS.values()} == set()


def test_every_fault_says_what_an_audit_must_find() -> None:
    rows = register().by_id
    for name, fault in FAULTS.items():
        assert fault.name == name
        assert bool(fault.verdict) != bool(fault.finding), name
        assert not fault.verdict or fault.verdict in VERDICTS, name
        assert {row for row in (fault.row, *fault.also) if row} <= set(rows), name
        assert fault.row or fault.finding or fault.verdict == "kept", name
        assert set(fault.revisions) <= set(REVISIONS), name
        assert fault.revisions, name
        assert fault.description.endswith("."), name
        assert fault.transport in ("any", "stdio", "http"), name


def test_rows_of_questions_have_a_fault_too() -> None:
    rows = {fault.row for fault in FAULTS.values() if fault.verdict == "ungated"}
    assert {"CAP-02", "CAP-04", "CAP-05", "CAP-06", "CAP-07", "CAP-08", "CAP-09"} <= rows


def test_a_wrong_fault_is_refused_with_the_near_one() -> None:
    with pytest.raises(ValueError, match="did you mean 'tools-refused'"):
        twists(["tools-refusd"])
    with pytest.raises(ValueError, match=r"unknown fault 'qqqqq'$"):
        twists(["qqqqq"])
    with pytest.raises(ValueError, match="takes no value"):
        twists(["tools-refused=1"])


def each(names: list[str] | tuple[str, ...] | dict[str, Any]) -> Any:
    """Each fault in each revision that it names."""
    pairs = [(name, revision) for name in names for revision in FAULTS[name].revisions]
    return pytest.mark.parametrize(("name", "revision"), pairs)


def opened(revision: str, name: str, capabilities: dict[str, Any] | None = None, **how: Any) -> Host:
    host = Host(revision, written(name), capabilities=capabilities, **how)
    host.open()
    return host


DECLARED: dict[str, tuple[str, Any]] = {
    "tools-undeclared-but-served": ("tools", MISSING),
    "tools-unknown-subkey": ("tools/list", True),
    "tools-not-an-object": ("tools", True),
    "tools-wrong-code": ("tools", MISSING),
    "prompts-undeclared-but-served": ("prompts", MISSING),
    "prompts-unknown-subkey": ("prompts/list", True),
    "prompts-not-an-object": ("prompts", True),
    "prompts-wrong-code": ("prompts", MISSING),
    "resources-undeclared-but-served": ("resources", MISSING),
    "resources-unknown-subkey": ("resources/list", True),
    "resources-not-an-object": ("resources", True),
    "resources-wrong-code": ("resources", MISSING),
    "tools-list-changed-undeclared": ("tools/listChanged", False),
    "prompts-list-changed-undeclared": ("prompts/listChanged", False),
    "resources-list-changed-undeclared": ("resources/listChanged", False),
    "tools-list-changed-not-boolean": ("tools/listChanged", "yes"),
    "prompts-list-changed-not-boolean": ("prompts/listChanged", "yes"),
    "resources-list-changed-not-boolean": ("resources/listChanged", "yes"),
    "subscribe-undeclared-but-accepted": ("resources/subscribe", False),
    "subscribe-not-boolean": ("resources/subscribe", {}),
    "subscribe-wrong-code": ("resources/subscribe", MISSING),
    "logging-undeclared-messages": ("logging", MISSING),
    "logging-undeclared-but-served": ("logging", MISSING),
    "logging-setlevel-wrong-code": ("logging", MISSING),
    "logging-not-an-object": ("logging", True),
    "completions-undeclared-but-served": ("completions", MISSING),
    "completions-wrong-code": ("completions", MISSING),
    "completions-not-an-object": ("completions", True),
    "completions-declared-2024": ("completions", {}),
    "tasks-empty": ("tasks", {}),
    "tasks-not-an-object": ("tasks", True),
    "tasks-undeclared-but-served": ("tasks", MISSING),
    "tasks-list-not-an-object": ("tasks/list", True),
    "tasks-list-undeclared-but-served": ("tasks/list", MISSING),
    "tasks-cancel-not-an-object": ("tasks/cancel", True),
    "tasks-requests-not-an-object": ("tasks/requests", True),
    "tasks-requests-empty": ("tasks/requests", {}),
    "tasks-requests-tools-empty": ("tasks/requests/tools", {}),
    "tasks-requests-tools-not-an-object": ("tasks/requests/tools", True),
    "tasks-declared-elsewhere": ("tasks", {"list": {}, "cancel": {}}),
    "experimental-not-object": ("experimental/stateless", True),
    "experimental-not-a-map": ("experimental", True),
    "experimental-differs": ("experimental", MISSING),
    "extensions-in-initialize": ("extensions", {META + "ui": {}}),
    "extensions-bad-key": ("extensions/tasks", {}),
    "extensions-not-a-map": ("extensions", True),
    "exttasks-core-beside": ("tasks", {"list": {}, "cancel": {}}),
    "sampling-in-server-capabilities": ("sampling", {}),
}
SLASHED: dict[str, tuple[str, Any]] = {
    "extensions-value-not-an-object": ("com.example/thing", True),
    "exttasks-undeclared-but-served": (META + "tasks", MISSING),
    "exttasks-not-an-object": (META + "tasks", True),
    "ui-declared-with-none": (META + "ui", {}),
    "skills-declared-not-served": (META + "skills", {}),
    "oauth-declared": (META + "oauth-client-credentials", {}),
}
"""The same under ``extensions``, whose keys have slashes."""


@each(DECLARED)
def test_it_declares_what_it_says(name: str, revision: str) -> None:
    path, wanted = DECLARED[name]
    value = Host(revision, name).open()["capabilities"]
    for part in path.split("/"):
        value = value.get(part, MISSING)
    assert value == wanted


@each(SLASHED)
def test_it_declares_the_extension_that_it_says(name: str, revision: str) -> None:
    key, wanted = SLASHED[name]
    assert Host(revision, name).open()["capabilities"]["extensions"].get(key, MISSING) == wanted


COMPLETE = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": ""}}
GREET = {"name": "greet", "arguments": {"name": "Ada"}}
LISTEN = {"notifications": {"toolsListChanged": True}}

CODES: dict[str, list[tuple[str, dict[str, Any], int | None]]] = {
    "tools-refused": [("tools/list", {}, -32601), ("tools/call", {"name": "log"}, -32601)],
    "tools-call-refused": [("tools/list", {}, None), ("tools/call", {"name": "log"}, -32601)],
    "tools-undeclared-but-served": [("tools/list", {}, None), ("tools/call", {"name": "log"}, None)],
    "tools-wrong-code": [("tools/list", {}, -32603)],
    "tools-unknown-name-accepted": [("tools/call", {"name": "no"}, None)],
    "prompts-refused": [("prompts/list", {}, -32601), ("prompts/get", GREET, -32601)],
    "prompts-get-refused": [("prompts/list", {}, None), ("prompts/get", GREET, -32601)],
    "prompts-undeclared-but-served": [("prompts/list", {}, None)],
    "prompts-wrong-code": [("prompts/list", {}, -32603)],
    "resources-refused": [("resources/list", {}, -32601), ("resources/templates/list", {}, -32601)],
    "resources-read-refused": [("resources/list", {}, None), ("resources/read", {"uri": ONE}, -32601)],
    "resources-templates-refused": [("resources/list", {}, None), ("resources/templates/list", {}, -32601)],
    "resources-undeclared-but-served": [("resources/list", {}, None)],
    "resources-wrong-code": [("resources/list", {}, -32603)],
    "cursor-refused": [("prompts/list", {}, None), ("prompts/list", {"cursor": "after-2"}, -32602)],
    "subscribe-refused": [("resources/subscribe", {"uri": ONE}, -32601)],
    "unsubscribe-refused": [
        ("resources/subscribe", {"uri": ONE}, None),
        ("resources/unsubscribe", {"uri": ONE}, -32601),
    ],
    "subscribe-wrong-code": [("resources/subscribe", {"uri": ONE}, -32603)],
    "modern-subscribe-rpc-still-served": [("resources/subscribe", {"uri": ONE}, None)],
    "listen-refused": [("subscriptions/listen", LISTEN, -32601)],
    "logging-refused": [("logging/setLevel", {"level": "debug"}, -32601)],
    "logging-undeclared-messages": [("logging/setLevel", {"level": "debug"}, -32601)],
    "logging-undeclared-but-served": [("logging/setLevel", {"level": "debug"}, None)],
    "logging-setlevel-wrong-code": [("logging/setLevel", {"level": "debug"}, -32603)],
    "logging-setlevel-refused": [("logging/setLevel", {"level": "debug"}, -32601)],
    "logging-bad-level-accepted": [("logging/setLevel", {"level": "loud"}, None)],
    "logging-modern-setlevel-served": [("logging/setLevel", {"level": "debug"}, None)],
    "completions-refused": [("completion/complete", COMPLETE, -32601)],
    "completions-undeclared-but-served": [("completion/complete", COMPLETE, None)],
    "completions-wrong-code": [("completion/complete", COMPLETE, -32603)],
    "tasks-get-refused": [("tasks/get", {"taskId": "x"}, -32601), ("tasks/result", {"taskId": "x"}, -32601)],
    "tasks-get-absent-method-not-found": [("tasks/get", {"taskId": "x"}, -32601)],
    "tasks-list-refused": [("tasks/list", {}, -32601)],
    "tasks-list-undeclared-but-served": [("tasks/list", {}, None)],
    "tasks-undeclared-but-served": [("tasks/list", {}, None)],
    "tasks-cancel-refused": [("tasks/cancel", {"taskId": "x"}, -32601)],
    "exttasks-refused": [("tasks/get", {"taskId": "x"}, -32601), ("tasks/update", {"taskId": "x"}, -32601)],
    "exttasks-missing-32021": [("tasks/get", {"taskId": "x"}, -32602)],
    "exttasks-core-methods-served": [("tasks/list", {}, None)],
    "exttasks-undeclared-but-served": [("tasks/get", {"taskId": "x"}, -32021)],
    "skills-declared-not-served": [("skills/list", {}, -32601)],
    "modern-gate-wrong-code": [("tools/call", {"name": "ask_roots"}, -32603)],
    "unknown-method-wrong-code": [("no/such", {}, -32602)],
    "unknown-method-accepted": [("no/such", {}, None)],
    "discover-wrong-error": [("server/discover", {}, -32602)],
    "initialize-refuses-version": [("initialize", {"protocolVersion": "1900-01-01", "capabilities": {}}, -32022)],
}


@each(CODES)
def test_it_answers_with_the_code_that_it_says(name: str, revision: str) -> None:
    host = opened(revision, name)
    assert [host.code(method, params) for method, params, _ in CODES[name]] == [code for *_, code in CODES[name]]


UNKNOWN = {"resources-absent-wrong-code": {LEGACY: -32602, (NOW,): -32002}}


@each(UNKNOWN)
def test_the_code_of_an_unknown_resource_is_the_other_era_s(name: str, revision: str) -> None:
    [wanted] = [code for revisions, code in UNKNOWN[name].items() if revision in revisions]
    assert opened(revision, name).code("resources/read", {"uri": "note://no"}) == wanted


def _listed(member: str, method: str, wanted: Any) -> Callable[[Host], None]:
    def check(host: Host) -> None:
        assert host.result(method).get(member) == wanted

    return check


def _lacks(method: str, params: dict[str, Any], *members: str) -> Callable[[Host], None]:
    def check(host: Host) -> None:
        assert [member for member in members if member in host.result(method, params)] == []

    return check


def _pushed(tool: str, method: str, count: int, *, listening: bool = True) -> Callable[[Host], None]:
    """How many notifications of a kind a call of a tool brings to a host that watches everything, or nothing."""

    def check(host: Host) -> None:
        if host.modern and listening:
            kinds = {f"{family}ListChanged": True for family in ("tools", "prompts", "resources")}
            host.listen(**kinds, resourceSubscriptions=[ONE])
        elif listening:
            host.ask("resources/subscribe", {"uri": ONE})
        host.call(tool)
        assert len(host.notes(method)) == count

    return check


def _grows(family: str) -> Callable[[Host], None]:
    def check(host: Host) -> None:
        before = len(getattr(host.script.catalogue, family))
        _pushed("read_note", f"notifications/{family}/list_changed", 0)(host)
        assert len(getattr(host.script.catalogue, family)) == before + 1

    return check


def _asks(kind: str, method: str) -> Callable[[Host], None]:
    def check(host: Host) -> None:
        host.call(f"ask_{kind}")
        entries = [message for message in host.heard if "method" in message and "id" in message]
        for message in host.heard:
            entries += (message.get("result") or {}).get("inputRequests", {}).values()
        assert [entry["method"] for entry in entries] == [method]

    return check


def check_early(host: Host) -> None:
    fresh = Host(host.revision, "list-changed-before-initialized")
    fresh.open(initialized=False)
    assert len(fresh.notes("notifications/tools/list_changed")) == 1


def check_other_uri(host: Host) -> None:
    _pushed("touch", "notifications/resources/updated", 1)(host)
    assert host.notes("notifications/resources/updated")[0]["params"]["uri"] != ONE


def check_untagged(host: Host) -> None:
    _pushed("grow", "notifications/tools/list_changed", 1)(host)
    assert "_meta" not in str(host.notes("notifications/tools/list_changed"))


def check_missing_kind(host: Host) -> None:
    host.listen(toolsListChanged=True, promptsListChanged=True)
    [acknowledged] = host.notes("notifications/subscriptions/acknowledged")
    assert acknowledged["params"]["notifications"] == {"promptsListChanged": True}
    host.call("add_tool")
    assert host.notes("notifications/tools/list_changed") == []


def check_late_acknowledgement(host: Host) -> None:
    host.listen(toolsListChanged=True)
    assert [message["method"] for message in host.heard[-2:]] == [
        "notifications/tools/list_changed",
        "notifications/subscriptions/acknowledged",
    ]


def check_no_acknowledgement(host: Host) -> None:
    host.listen(toolsListChanged=True)
    assert host.notes("notifications/subscriptions/acknowledged") == []


def check_unasked(host: Host) -> None:
    host.listen(toolsListChanged=True)
    host.call("add_prompt")
    assert len(host.notes("notifications/prompts/list_changed")) == 1
    [acknowledged] = host.notes("notifications/subscriptions/acknowledged")
    assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}


def check_listen_answered(host: Host) -> None:
    assert "result" in host.listen(toolsListChanged=True)


def check_ignored_level(host: Host) -> None:
    if not host.modern:
        host.ask("logging/setLevel", {"level": "emergency"})
    host.ask("tools/call", {"name": "read_note"}, logLevel="emergency")
    assert [note["params"]["level"] for note in host.notes("notifications/message")] == ["info"]


def check_undeclared_log(host: Host) -> None:
    host.ask("tools/call", {"name": "read_note"}, logLevel="info")
    assert len(host.notes("notifications/message")) == 1


def check_101_values(host: Host) -> None:
    assert len(host.result("completion/complete", COMPLETE)["completion"]["values"]) == 101


def check_unreachable(host: Host) -> None:
    assert "execution" not in str(host.result("tools/list")) + str(host.result("tools/list", {"cursor": "after-8"}))


def check_execution(host: Host) -> None:
    assert "execution" in str(host.result("tools/list"))


def check_unwrapped(host: Host) -> None:
    result = host.result("tools/call", {"name": "slow", "task": {}})
    assert "task" not in result
    assert "taskId" in result


def check_inline(host: Host) -> None:
    host.capabilities = TASKS
    assert "content" in host.result("tools/call", {"name": "slow", "task": {}})


def check_foreign_tasks(host: Host) -> None:
    made = host.result("tools/call", {"name": "slow", "task": {}})["task"]["taskId"]
    host.context = Context(session="two", stream="there")
    host.open()
    assert [task["taskId"] for task in host.result("tasks/list")["tasks"]] == [made]


def check_cancelled_twice(host: Host) -> None:
    where = {"taskId": host.result("tools/call", {"name": "slow", "task": {}})["task"]["taskId"]}
    host.result("tasks/result", where)
    assert host.result("tasks/cancel", where)["status"] == "cancelled"


def check_unasked_task(host: Host) -> None:
    assert host.result("tools/call", {"name": "slow"})["resultType"] == "task"


def check_ui(host: Host) -> None:
    listed = str(host.result("resources/list", {"cursor": "after-2"}))
    assert "ui://troth/panel" in listed
    assert "text/html" in str(host.result("resources/read", {"uri": "ui://troth/panel"}))


def check_context(host: Host) -> None:
    host.capabilities = {"sampling": {}}
    host.open()
    host.ask("tools/call", {"name": "ask_sampling_context"})
    assert "thisServer" in str(host.heard[-1])


def check_sampling_task(host: Host) -> None:
    host.capabilities = {"sampling": {}}
    host.open()
    host.ask("tools/call", {"name": "ask_sampling"})
    assert host.heard[-1]["params"]["task"] == {"ttl": 60_000}


def check_no_required(host: Host) -> None:
    assert "data" not in host.ask("tools/call", {"name": "ask_roots"})["error"]


def check_listed_required(host: Host) -> None:
    assert host.ask("tools/call", {"name": "ask_roots"})["error"]["data"] == {"requiredCapabilities": ["roots"]}


def check_server_request(host: Host) -> None:
    host.capabilities = EVERYTHING
    assert host.ask("tools/call", {"name": "ask_roots"}) is None
    assert host.heard[-1]["method"] == "roots/list"


def check_asking_list(host: Host) -> None:
    host.capabilities = EVERYTHING
    assert host.result("prompts/list")["resultType"] == "input_required"


def check_asking_prompt(host: Host) -> None:
    assert host.result("prompts/get", {"name": "greet"})["resultType"] == "input_required"
    assert host.result("prompts/get", {**GREET, "inputResponses": {}})["messages"]


def check_asking_resource(host: Host) -> None:
    assert host.result("resources/read", {"uri": "note://notes/one"})["resultType"] == "input_required"


def check_picky(host: Host) -> None:
    host.capabilities = {"unheardOf": {}}
    assert host.open() is None


def check_forbidden_runs(host: Host) -> None:
    assert host.result("tools/call", {"name": "read_note", "task": {}})["content"]


def check_inference(host: Host) -> None:
    host.capabilities = EVERYTHING
    host.call("ask_roots")
    host.capabilities = {}
    assert host.result("tools/call", {"name": "ask_roots"})["resultType"] == "input_required"


def check_varying_list(host: Host) -> None:
    last = {"cursor": "after-8"}
    assert "ask_form" not in str(host.result("tools/list", last))
    host.capabilities = EVERYTHING
    assert "ask_form" in str(host.result("tools/list", last))
    assert host.result("tools/list")["cacheScope"] == "public"


def check_silent(host: Host) -> None:
    assert host.ask("no/such") is None


def check_answered_notification(host: Host) -> None:
    assert "error" in host.answer_in(host.tell("notifications/no/such"))
    assert host.tell("notifications/cancelled", {"requestId": "x"}) == []


def check_old_version(host: Host) -> None:
    assert host.open()["protocolVersion"] == LEGACY[0]


def check_1900(host: Host) -> None:
    if host.modern:
        host.revision = "1900-01-01"
        assert "tools" in host.result("tools/list")
    else:
        assert host.open(wanted="1900-01-01")["protocolVersion"] == "1900-01-01"


def check_no_versions(host: Host) -> None:
    host.revision = "1900-01-01"
    error = host.ask("tools/list")["error"]
    assert (error["code"], "data" in error) == (-32022, False)


def check_no_meta(host: Host) -> None:
    meta = {META + "protocolVersion": host.revision}
    bare = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    assert "result" in host.answer_in(host.feed(bare))


def check_no_session(host: Host) -> None:
    host.context = Context(session="other", stream="there")
    assert "tools" in host.result("tools/list")


def check_modern_members(host: Host) -> None:
    assert host.result("tools/list")["resultType"] == "complete"


def _answer_id(wanted: Any) -> Callable[[Host], None]:
    def check(host: Host) -> None:
        answer = host.ask("tools/list")
        assert answer["id"] == (str(host.ids) if wanted is str else wanted)

    return check


def check_twice(host: Host) -> None:
    host.ask("tools/list")
    assert host.heard[-1] == host.heard[-2]


def check_held(host: Host) -> None:
    script = Script(twists=twists(["out-of-order"]))
    fresh = Host(host.revision, script=script)
    fresh.open()
    params = {"_meta": fresh.meta()} if fresh.modern else {}
    for number in (1, 2):
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/list", "params": params}
        assert script.feed(message, fresh.context) == []
    released = script.release()
    assert [out.message["id"] for out in released if isinstance(out, Send)] == [2, 1]
    assert script.release() == []


def check_hang(host: Host) -> None:
    assert host.ask("tools/list") is None
    assert "prompts" in host.result("prompts/list")
    assert Host(NOW, "hang=prompts/list").ask("prompts/list") is None


def check_dies(host: Host) -> None:
    host.ask("tools/list")
    assert host.outs[-1] == Exit(3)


def check_dies_inside(host: Host) -> None:
    host.ask("tools/list")
    assert [type(out) for out in host.outs[-2:]] == [Junk, Exit]


def check_flood(host: Host) -> None:
    host.ask("tools/list")
    assert len(host.notes("notifications/progress")) == 3


def _junk(method: str, text: str) -> Callable[[Host], None]:
    def check(host: Host) -> None:
        host.ask(method)
        [*_, junk, answer] = host.outs
        assert isinstance(junk, Junk)
        assert junk.text.startswith(text)
        assert isinstance(answer, Send)

    return check


def check_hostile(host: Host) -> None:
    assert "\x1b" in "".join(host.open()["capabilities"])
    assert "<script>" in str(host.result("tools/list"))


def check_transports(host: Host) -> None:
    assert "prompts" in host.open()["capabilities"]
    assert "prompts" not in Host(host.revision, "stdio-http-differ", transport="http").open()["capabilities"]


def check_unstable(host: Host) -> None:
    seen = {"prompts" in host.open()["capabilities"] for _ in range(4)}
    seen.add("prompts" in Host(host.revision, "declaration-changes").open()["capabilities"])
    host.script.received += 1
    seen.add("prompts" in host.open()["capabilities"])
    assert seen == {True, False}


UPDATED = "notifications/resources/updated"
CHECKS: dict[str, Callable[[Host], None]] = {
    "tools-wrong-shape": _listed("tools", "tools/list", None),
    "prompts-wrong-shape": _listed("prompts", "prompts/list", None),
    "resources-wrong-shape": _listed("resources", "resources/list", None),
    "tools-empty": _listed("tools", "tools/list", []),
    "prompts-empty": _listed("prompts", "prompts/list", []),
    "resources-empty": _listed("resources", "resources/list", []),
    "pages-never-end": _listed("nextCursor", "resources/templates/list", "after-0"),
    "tools-list-changed-never-sent": _grows("tools"),
    "prompts-list-changed-never-sent": _grows("prompts"),
    "resources-list-changed-never-sent": _grows("resources"),
    "tools-list-changed-undeclared": _pushed("add_tool", "notifications/tools/list_changed", 1),
    "prompts-list-changed-undeclared": _pushed("add_prompt", "notifications/prompts/list_changed", 1),
    "resources-list-changed-undeclared": _pushed("add_resource", "notifications/resources/list_changed", 1),
    "tools-list-changed-unsolicited": _pushed("grow", "notifications/tools/list_changed", 1, listening=False),
    "prompts-list-changed-unsolicited": _pushed("grow", "notifications/prompts/list_changed", 1, listening=False),
    "resources-list-changed-unsolicited": _pushed("grow", "notifications/resources/list_changed", 1, listening=False),
    "list-changed-before-initialized": check_early,
    "subscribe-undeclared-but-accepted": _pushed("touch", UPDATED, 1),
    "updated-never-sent": _pushed("touch", UPDATED, 0),
    "updated-without-subscribe": _pushed("touch", UPDATED, 1, listening=False),
    "updated-other-uri": check_other_uri,
    "listen-ack-missing-kind": check_missing_kind,
    "listen-untagged": check_untagged,
    "listen-no-ack-first": check_late_acknowledgement,
    "listen-never-acknowledged": check_no_acknowledgement,
    "listen-unasked-kind": check_unasked,
    "listen-answered-at-once": check_listen_answered,
    "logging-undeclared-messages": check_undeclared_log,
    "logging-refused": _pushed("read_note", "notifications/message", 0),
    "logging-setlevel-wrong-code": _pushed("read_note", "notifications/message", 0),
    "logging-setlevel-refused": _pushed("read_note", "notifications/message", 1),
    "logging-modern-without-loglevel": _pushed("read_note", "notifications/message", 1, listening=False),
    "logging-ignores-level": check_ignored_level,
    "completions-empty-object": _lacks("completion/complete", COMPLETE, "completion"),
    "completions-over-100": check_101_values,
    "tasks-unreachable": check_unreachable,
    "tasks-execution-elsewhere": check_execution,
    "tasks-wrong-shape": check_unwrapped,
    "tasks-call-ignored": check_inline,
    "tasks-list-wrong-shape": _lacks("tasks/list", {}, "tasks"),
    "tasks-list-leaks": check_foreign_tasks,
    "tasks-cancel-finished-accepted": check_cancelled_twice,
    "exttasks-without-client-key": check_unasked_task,
    "exttasks-inline": check_inline,
    "ui-undeclared": check_ui,
    "asks-undeclared-roots": _asks("roots", "roots/list"),
    "asks-undeclared-sampling": _asks("sampling", "sampling/createMessage"),
    "asks-undeclared-sampling-tools": _asks("sampling_tools", "sampling/createMessage"),
    "asks-undeclared-form": _asks("form", "elicitation/create"),
    "asks-undeclared-url": _asks("url", "elicitation/create"),
    "asks-undeclared-elicitation": _asks("form", "elicitation/create"),
    "asks-elicitation-too-early": _asks("form", "elicitation/create"),
    "asks-undeclared-context": check_context,
    "asks-undeclared-task": check_sampling_task,
    "modern-missing-required-capabilities-data": check_no_required,
    "modern-malformed-required-capabilities": check_listed_required,
    "modern-server-request": check_server_request,
    "modern-asks-in-a-list": check_asking_list,
    "modern-prompt-asks-undeclared-roots": check_asking_prompt,
    "modern-resource-asks-undeclared-roots": check_asking_resource,
    "refuses-unknown-client-capabilities": check_picky,
    "tasks-forbidden-tool-runs": check_forbidden_runs,
    "infers-capabilities-between-requests": check_inference,
    "list-varies-public": check_varying_list,
    "unknown-method-unanswered": check_silent,
    "unknown-notification-answered": check_answered_notification,
    "discover-malformed": _lacks("server/discover", {}, "supportedVersions", "resultType", "ttlMs", "cacheScope"),
    "discover-silent": lambda host: _none(host.ask("server/discover")),
    "always-old-version": check_old_version,
    "accepts-1900": check_1900,
    "unsupported-version-without-data": check_no_versions,
    "missing-meta-accepted": check_no_meta,
    "result-type-missing": _lacks("tools/list", {}, "resultType"),
    "cache-members-missing": _lacks("tools/list", {}, "ttlMs", "cacheScope"),
    "result-members-of-other-revisions": check_modern_members,
    "id-null": _answer_id(None),
    "wrong-id": _answer_id("nobody-sent-this"),
    "id-as-string": _answer_id(str),
    "duplicate-answer": check_twice,
    "out-of-order": check_held,
    "hang": check_hang,
    "dies-on": check_dies,
    "dies-inside": check_dies_inside,
    "flood": check_flood,
    "junk-on-stdout": _junk("prompts/list", "INFO"),
    "bytes-on-stdout": _junk("prompts/list", "\udcff"),
    "not-json-rpc": _junk("prompts/list", "[1"),
    "deep-json": _junk("tools/list", "[[["),
    "long-line": _junk("tools/list", '"xxxxxxxxx"'),
    "hostile-text": check_hostile,
    "stdio-http-differ": check_transports,
    "declaration-changes": check_unstable,
}


def _none(value: Any) -> None:
    assert value is None


@each(CHECKS)
def test_it_does_what_it_says(name: str, revision: str) -> None:
    CHECKS[name](opened(revision, name))


def test_every_fault_is_proved_somewhere() -> None:
    proved = DECLARED.keys() | SLASHED.keys() | CODES.keys() | UNKNOWN.keys() | CHECKS.keys() | SHELLS
    assert FAULTS.keys() - proved == set()


def test_a_twist_without_revisions_bends_all() -> None:
    assert Twist().bends(LATEST)
    assert not Twist(revisions=(NOW,)).bends(LATEST)
    assert Twist(revisions=(NOW,)).bends(None)
