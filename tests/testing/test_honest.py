"""The honest server keeps what it promises, in every revision."""

from __future__ import annotations

from typing import Any

import pytest

from troth.register import Era, Side, register
from troth.testing import VARIANTS, Context, Junk, Script, Send

from .peer import EVERYTHING, META, ONE, TASKS, Host

REVISIONS = register().revisions
LEGACY = register().eras[Era.LEGACY]
MODERN = register().eras[Era.MODERN]
LATEST = LEGACY[-1]
NOW = MODERN[-1]

revisions = pytest.mark.parametrize("revision", REVISIONS)
legacy = pytest.mark.parametrize("revision", LEGACY)
modern = pytest.mark.parametrize("revision", MODERN)


def opened(revision: str, *breaks: str, **how: Any) -> Host:
    host = Host(revision, *breaks, **how)
    host.open()
    return host


def pages(host: Host, method: str, member: str) -> list[Any]:
    found: list[Any] = []
    params: dict[str, Any] = {}
    while True:
        result = host.result(method, params)
        found += result[member]
        if "nextCursor" not in result:
            return found
        params = {"cursor": result["nextCursor"]}


def test_it_declares_in_each_revision_what_that_revision_defines() -> None:
    declared = {revision: sorted(Host(revision).open()["capabilities"]) for revision in REVISIONS}
    oldest = ["experimental", "logging", "prompts", "resources", "tools"]
    middle = ["completions", *oldest]
    assert declared == {
        "2024-11-05": oldest,
        "2025-03-26": middle,
        "2025-06-18": middle,
        "2025-11-25": sorted([*middle, "tasks"]),
        "2026-07-28": sorted([*middle, "extensions"]),
    }


@legacy
def test_initialize_answers_with_the_revision_asked_for(revision: str) -> None:
    assert Host(revision).open()["protocolVersion"] == revision


def test_an_unknown_version_gets_a_counter_offer_from_initialize() -> None:
    assert Host(LATEST).open(wanted="1900-01-01")["protocolVersion"] == LATEST


def test_an_unknown_version_in_meta_is_refused_with_what_is_supported() -> None:
    host = Host(NOW)
    meta = {**host.meta(), META + "protocolVersion": "1900-01-01"}
    answer = host.answer_in(host.feed({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}))
    assert answer["error"]["code"] == -32022
    assert answer["error"]["data"] == {"supported": [NOW], "requested": "1900-01-01"}


@pytest.mark.parametrize(
    "meta",
    [
        {META + "protocolVersion": NOW},
        {META + "clientCapabilities": {}},
        {META + "protocolVersion": 7, META + "clientCapabilities": {}},
        {META + "protocolVersion": NOW, META + "clientCapabilities": []},
        {META + "protocolVersion": NOW, META + "clientCapabilities": {}, META + "logLevel": "loud"},
        "none",
    ],
)
def test_a_modern_request_without_its_meta_is_invalid(meta: Any) -> None:
    host = Host(NOW)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    assert host.answer_in(host.feed(message))["error"]["code"] == -32602


@pytest.mark.parametrize(("served", "code"), [((), -32602), (LEGACY, -32600), (MODERN, -32602)])
def test_a_request_without_session_and_meta_is_refused(served: tuple[str, ...], code: int) -> None:
    host = Host(LATEST, revisions=served)
    assert host.code("tools/list") == code


def test_a_server_of_one_era_does_not_know_the_other() -> None:
    assert Host(NOW, revisions=LEGACY).code("server/discover") == -32601
    host = Host(LATEST, revisions=MODERN)
    assert host.code("initialize", {"_meta": Host(NOW).meta()}) == -32601


def test_ping_is_answered_before_and_in_a_session_and_not_on_modern() -> None:
    assert Host(LATEST).result("ping") == {}
    assert opened(LATEST).result("ping") == {}
    assert Host(NOW).code("ping") == -32601


@revisions
def test_every_list_comes_in_pages_and_no_item_is_lost(revision: str) -> None:
    host = opened(revision)
    full = VARIANTS["full"]
    lists = {
        "tools/list": ("tools", full.tools, "name"),
        "prompts/list": ("prompts", full.prompts, "name"),
        "resources/list": ("resources", full.resources, "uri"),
        "resources/templates/list": ("resourceTemplates", full.templates, "uriTemplate"),
    }
    for method, (member, items, key) in lists.items():
        assert [item[key] for item in pages(host, method, member)] == [item[key] for item in items]
    for method in ("tools/list", "prompts/list", "resources/list"):
        assert "nextCursor" in host.result(method)
        for cursor in ("after-x", "other", 7, "after-²", "after-" + "9" * 99):
            assert host.code(method, {"cursor": cursor}) == -32602


@revisions
def test_what_is_wrong_with_the_parameters_is_invalid(revision: str) -> None:
    host = opened(revision)
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("tools/call", {"name": "no_such"}),
        ("tools/call", {"name": "touch", "arguments": []}),
        ("prompts/get", {"name": "no_such"}),
        ("prompts/get", {"name": "greet"}),
        ("prompts/get", {"name": "greet", "arguments": 7}),
        ("resources/read", {}),
        ("completion/complete", {}),
        ("completion/complete", {"ref": {"type": "ref/prompt"}, "argument": {"name": 1, "value": ""}}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}}),
        ("completion/complete", {"ref": {"type": "other"}, "argument": {"name": "a", "value": ""}}),
    ]
    if host.modern:
        wrong.append(("subscriptions/listen", {}))
    else:
        wrong += [
            ("initialize", {}),
            ("logging/setLevel", {"level": "loud"}),
            ("resources/subscribe", {}),
            ("resources/unsubscribe", {"uri": 7}),
        ]
    assert {(method, host.code(method, params)) for method, params in wrong} == {(name, -32602) for name, _ in wrong}


@revisions
def test_an_unknown_resource_has_the_code_of_its_era(revision: str) -> None:
    host = opened(revision)
    error = host.ask("resources/read", {"uri": "note://no"})["error"]
    assert (error["code"], error["data"]) == (-32602 if host.modern else -32002, {"uri": "note://no"})


@legacy
def test_an_unknown_resource_cannot_be_watched(revision: str) -> None:
    assert opened(revision).code("resources/subscribe", {"uri": "note://no"}) == -32002


@revisions
def test_prompts_resources_and_completions_deliver(revision: str) -> None:
    host = opened(revision)
    got = host.result("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}})
    assert got["messages"][0]["content"]["text"] == "Say hello to Ada."
    assert host.result("prompts/get", {"name": "summary"})["messages"]
    read = host.result("resources/read", {"uri": ONE})
    assert read["contents"] == [{"uri": ONE, "mimeType": "text/plain", "text": "This is one."}]
    cases = [
        ({"type": "ref/prompt", "name": "greet"}, "name", "a", ["Ada", "Alan"]),
        ({"type": "ref/prompt", "name": "greet"}, "other", "", []),
        ({"type": "ref/resource", "uri": "note://notes/{id}"}, "id", "t", ["two", "three"]),
        ({"type": "ref/resource", "uri": "note://notes/{id}"}, "other", "", []),
    ]
    for ref, name, value, values in cases:
        result = host.result("completion/complete", {"ref": ref, "argument": {"name": name, "value": value}})
        assert result["completion"]["values"] == values


@revisions
def test_unknown_methods_are_refused_and_unknown_notifications_ignored(revision: str) -> None:
    host = opened(revision)
    assert host.code("no/such") == -32601
    assert host.code("sampling/createMessage") == -32601
    assert host.code("skills/list") == -32601
    assert host.tell("notifications/no/such") == []
    assert host.tell("no/such", {"x": 1}) == []


def test_methods_that_modern_revisions_removed_are_refused_there() -> None:
    removed = ("initialize", "logging/setLevel", "resources/subscribe", "tasks/list", "tasks/result")
    assert {Host(NOW, capabilities=TASKS).code(method) for method in removed} == {-32601}


@pytest.mark.parametrize(
    "value",
    [
        7,
        [],
        {},
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": True, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": 7},
    ],
)
def test_what_is_no_message_is_an_invalid_request(value: Any) -> None:
    assert Host(LATEST).answer_in(Host(LATEST).feed(value))["error"]["code"] == -32600


def test_parameters_that_are_no_object_are_invalid() -> None:
    host = Host(LATEST)
    assert (
        host.answer_in(host.feed({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}))["error"]["code"]
        == -32602
    )
    assert host.feed({"jsonrpc": "2.0", "method": "ping", "params": []}) == []
    assert host.feed({"jsonrpc": "2.0", "method": "x", "params": {"_meta": 7}}) == []


def test_a_batch_is_answered_by_a_batch_where_the_revision_has_them() -> None:
    host = opened("2025-03-26")
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    log = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "read_note"}}
    *before, answers = [out.message for out in host.feed([ping, log]) if isinstance(out, Send)]
    assert [message["method"] for message in before] == ["notifications/message"]
    assert [answer["id"] for answer in answers] == [1, 2]
    assert host.feed([{"jsonrpc": "2.0", "method": "notifications/x"}]) == []
    assert opened(LATEST).feed([ping])[0].message["error"]["code"] == -32600  # type: ignore[union-attr]


@legacy
def test_list_changes_are_announced_in_the_session_after_initialized(revision: str) -> None:
    host = Host(revision)
    host.open(initialized=False)
    host.call("grow")
    assert host.notes("notifications/tools/list_changed") == []
    host.tell("notifications/initialized")
    host.call("grow")
    for family in ("tools", "prompts", "resources"):
        assert len(host.notes(f"notifications/{family}/list_changed")) == 1
    assert [out.stream for out in host.outs if isinstance(out, Send) and "list_changed" in str(out.message)] == [
        "push:one"
    ] * 3
    assert "added_6" in str(pages(host, "resources/list", "resources"))


@modern
def test_list_changes_are_announced_only_where_a_listen_asked(revision: str) -> None:
    host = opened(revision)
    host.call("grow")
    assert host.notes("notifications/tools/list_changed") == []
    host.listen(toolsListChanged=True, promptsListChanged=False, resourceSubscriptions=[ONE, "note://no", 7])
    [acknowledged] = host.notes("notifications/subscriptions/acknowledged")
    tag = {META + "subscriptionId": host.ids}
    wanted = {"toolsListChanged": True, "resourceSubscriptions": [ONE]}
    assert acknowledged["params"] == {"_meta": tag, "notifications": wanted}
    listening = host.ids
    host.call("grow")
    host.call("touch")
    host.call("touch", {"uri": "note://notes/two"})
    assert [note["params"] for note in host.notes("notifications/tools/list_changed")] == [{"_meta": tag}]
    assert host.notes("notifications/prompts/list_changed") == []
    assert [note["params"] for note in host.notes("notifications/resources/updated")] == [{"_meta": tag, "uri": ONE}]
    host.tell("notifications/cancelled", {"requestId": listening})
    host.call("grow")
    assert len(host.notes("notifications/tools/list_changed")) == 1


@modern
def test_a_closed_stream_ends_its_listens(revision: str) -> None:
    host = opened(revision)
    host.listen(toolsListChanged=True)
    host.script.close("elsewhere")
    host.script.close("here")
    host.call("grow")
    assert host.notes("notifications/tools/list_changed") == []


@legacy
def test_updates_come_while_a_resource_is_watched(revision: str) -> None:
    host = opened(revision)
    host.call("touch")
    host.ask("resources/subscribe", {"uri": ONE})
    host.call("touch")
    host.call("touch", {"uri": "note://notes/two"})
    host.ask("resources/unsubscribe", {"uri": ONE})
    host.call("touch")
    assert [note["params"] for note in host.notes("notifications/resources/updated")] == [{"uri": ONE}]
    assert host.call("touch", {"uri": "note://no"})["result"]["isError"]


@legacy
def test_log_messages_respect_the_level_of_the_session(revision: str) -> None:
    host = opened(revision)
    host.ask("logging/setLevel", {"level": "critical"})
    host.call("log")
    levels = [note["params"]["level"] for note in host.notes("notifications/message")]
    assert levels == ["critical", "alert", "emergency"]


@modern
def test_log_messages_respect_the_level_of_the_request(revision: str) -> None:
    host = opened(revision)
    host.ask("tools/call", {"name": "log"})
    assert host.notes("notifications/message") == []
    host.ask("tools/call", {"name": "log"}, logLevel="alert")
    assert [note["params"]["level"] for note in host.notes("notifications/message")] == ["alert", "emergency"]


QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "roots": ("roots", {"roots": {}}),
    "sampling": ("sampling", {"sampling": {}}),
    "sampling_tools": ("sampling.tools", {"sampling": {"tools": {}}}),
    "sampling_context": ("sampling", {"sampling": {}}),
    "form": ("elicitation.form", {"elicitation": {"form": {}}}),
    "url": ("elicitation.url", {"elicitation": {"url": {}}}),
}


def asked(host: Host) -> list[Any]:
    entries = [message for message in host.heard if "method" in message and "id" in message]
    for message in host.heard:
        entries += (message.get("result") or {}).get("inputRequests", {}).values()
    return entries


@revisions
@pytest.mark.parametrize("kind", QUESTIONS)
def test_a_question_is_asked_only_of_a_client_that_declared_it(kind: str, revision: str) -> None:
    path, declared = QUESTIONS[kind]
    paths = (path, "elicitation") if path == "elicitation.form" else (path,)
    defined = any(row.at(revision) for each in paths for row in register().path(each, Side.CLIENT))
    able = opened(revision, capabilities=declared)
    final = able.call(f"ask_{kind}")
    assert len(asked(able)) == (1 if defined else 0)
    assert ("The client answered" in str(final)) is defined

    unable = opened(revision)
    final = unable.call(f"ask_{kind}")
    assert asked(unable) == []
    if unable.modern:
        assert final["error"]["code"] == -32021
        assert final["error"]["data"] == {"requiredCapabilities": declared}
    else:
        assert final["result"]["isError"]


def test_an_empty_elicitation_means_forms_only() -> None:
    for revision in (LATEST, NOW):
        host = opened(revision, capabilities={"elicitation": {}})
        host.call("ask_form")
        assert len(asked(host)) == 1
        host.call("ask_url")
        assert len(asked(host)) == 1
        other = opened(revision, capabilities={"elicitation": {"voice": {}}})
        other.call("ask_form")
        assert asked(other) == []


def test_context_is_asked_for_only_where_it_is_offered() -> None:
    for declared, wanted in (({}, "none"), ({"context": {}}, "thisServer")):
        host = opened(LATEST, capabilities={"sampling": declared})
        host.call("ask_sampling_context")
        assert asked(host)[0]["params"]["includeContext"] == wanted


def test_the_client_may_refuse_or_give_up_a_question() -> None:
    host = opened(LATEST, capabilities=EVERYTHING)
    host.ask("tools/call", {"name": "ask_roots"})
    refusal = {"jsonrpc": "2.0", "id": "ask-1", "error": {"code": -1, "message": "no"}}
    assert "refused" in str(host.answer_in(host.feed(refusal)))
    assert host.feed(refusal) == []
    host.ask("tools/call", {"name": "ask_roots"})
    host.tell("notifications/cancelled", {"requestId": host.ids})
    assert host.feed({"jsonrpc": "2.0", "id": "ask-2", "result": {"roots": []}}) == []
    assert Script().feed(refusal, Context()) == []


@modern
def test_a_request_state_fits_its_own_call_only(revision: str) -> None:
    host = opened(revision, capabilities=EVERYTHING)
    state = host.result("tools/call", {"name": "ask_roots"})["requestState"]
    retry = {"name": "ask_roots", "inputResponses": {"question": {"roots": []}}, "requestState": state}
    assert host.result("tools/call", retry)["resultType"] == "complete"
    for wrong in (
        {"name": "ask_form"},
        {"arguments": {"a": 1}},
        {"requestState": "made up"},
        {"requestState": "é"},
        {"requestState": None},
        {"inputResponses": {}},
        {"inputResponses": None},
    ):
        assert host.code("tools/call", {**retry, **wrong}) == -32602


@modern
def test_capabilities_are_those_of_the_request(revision: str) -> None:
    host = opened(revision, capabilities=EVERYTHING)
    host.call("ask_roots")
    host.capabilities = {}
    assert host.code("tools/call", {"name": "ask_roots"}) == -32021


def test_a_core_task_lives_until_it_is_done_or_cancelled() -> None:
    host = opened(LATEST)
    task = host.result("tools/call", {"name": "slow", "task": {"ttl": 1}})["task"]
    where = {"taskId": task["taskId"]}
    assert host.result("tasks/list")["tasks"] == [task]
    assert host.result("tasks/get", where)["status"] == "working"
    assert host.result("tasks/get", where)["status"] == "completed"
    assert host.code("tasks/cancel", where) == -32602
    done = host.result("tasks/result", where)
    assert done["_meta"] == {META + "related-task": where}
    other = host.result("tools/call", {"name": "slow", "task": {}})["task"]["taskId"]
    assert host.result("tasks/cancel", {"taskId": other})["status"] == "cancelled"
    assert host.code("tasks/result", {"taskId": other}) == -32602
    assert host.code("tasks/cancel", {"taskId": "absent"}) == -32602
    assert host.code("tasks/get", {"taskId": 7}) == -32602
    assert host.code("tasks/result", {"taskId": "absent"}) == -32602
    assert host.code("tools/call", {"name": "touch", "task": {}}) == -32601
    assert host.code("tools/call", {"name": "slow", "task": 7}) == -32602


def test_a_session_does_not_see_the_tasks_of_another() -> None:
    host = opened(LATEST)
    made = host.result("tools/call", {"name": "slow", "task": {}})["task"]["taskId"]
    host.context = Context(session="two", stream="there")
    host.open()
    assert host.result("tasks/list")["tasks"] == []
    assert host.code("tasks/get", {"taskId": made}) == -32602


@pytest.mark.parametrize("revision", LEGACY[:-1])
def test_a_task_asked_for_where_there_are_none_is_ignored(revision: str) -> None:
    host = opened(revision)
    assert "content" in host.result("tools/call", {"name": "slow", "task": {"ttl": 1}})
    assert host.code("tasks/list") == -32601


@modern
def test_a_modern_task_is_made_only_for_a_request_that_declares_the_extension(revision: str) -> None:
    host = opened(revision)
    assert "content" in host.result("tools/call", {"name": "slow", "task": {}})
    needed = {"requiredCapabilities": TASKS}
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        assert host.ask(method, {"taskId": "x"})["error"]["data"] == needed
    assert host.ask("subscriptions/listen", {"notifications": {"taskIds": []}})["error"]["data"] == needed
    host.capabilities = TASKS
    assert host.code("tasks/get", {"taskId": "x"}) == -32602
    made = host.result("tools/call", {"name": "slow"})
    where = {"taskId": made["taskId"]}
    assert made["resultType"] == "task"
    host.listen(taskIds=[made["taskId"], "absent"])
    assert host.result("tasks/update", where) == {"resultType": "complete"}
    assert host.result("tasks/get", where)["status"] == "working"
    done = host.result("tasks/get", where)
    assert (done["status"], done["result"]["content"][0]["text"]) == ("completed", "The work is done.")
    assert [note["params"]["status"] for note in host.notes("notifications/tasks")] == ["completed"]
    assert host.result("tasks/cancel", where) == {"resultType": "complete"}
    assert host.result("tasks/get", where)["status"] == "completed"
    other = {"taskId": host.result("tools/call", {"name": "slow"})["taskId"]}
    host.result("tasks/cancel", other)
    assert host.result("tasks/get", other)["status"] == "cancelled"


@revisions
def test_slow_work_tells_its_progress_to_who_asks(revision: str) -> None:
    host = opened(revision)
    meta = {**(host.meta() if host.modern else {}), "progressToken": "p"}
    host.feed({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "slow", "_meta": meta}})
    [note] = host.notes("notifications/progress")
    assert note["params"]["progressToken"] == "p"
    assert ("message" in note["params"]) is (revision != REVISIONS[0])


def test_tools_are_added_called_and_removed() -> None:
    host = opened(LATEST)
    assert host.call("remove_tool")["result"]["isError"]
    host.call("add_tool")
    assert host.call("added_1")["result"]["content"][0]["text"] == "This is added_1."
    host.call("remove_tool")
    assert host.code("tools/call", {"name": "added_1"}) == -32602
    assert len(host.notes("notifications/tools/list_changed")) == 2


@revisions
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_refuses_what_it_does_not_offer(variant: str, revision: str) -> None:
    host = Host(revision, variant=variant)
    declared = host.open()["capabilities"]
    methods = {
        "tools/list": "tools",
        "prompts/list": "prompts",
        "resources/list": "resources",
        "resources/templates/list": "resources",
    }
    for method, family in methods.items():
        assert host.code(method) == (None if family in declared else -32601)
    complete = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": ""}}
    assert (host.code("completion/complete", complete) is None) is (variant == "full")
    assert (host.call("read_note") or {}).get("error", {}).get("code") == (
        -32602 if variant in ("empty", "asker") else None
    )
    assert host.notes("notifications/message") == [] or variant == "full"


def test_a_session_can_be_ended() -> None:
    host = opened(LATEST)
    assert host.script.end("one")
    assert not host.script.end("one")
    assert host.code("tools/list") == -32602


def test_two_instances_have_two_names() -> None:
    names = [Host(LATEST, instance=each).open()["serverInfo"]["name"] for each in ("", "a", "b")]
    assert names == ["troth-testing", "troth-testing-a", "troth-testing-b"]


def test_junk_is_not_a_message() -> None:
    host = opened(LATEST, "junk-on-stdout")
    assert [type(out) for out in host.feed({"jsonrpc": "2.0", "id": 1, "method": "ping"})] == [Junk, Send]
