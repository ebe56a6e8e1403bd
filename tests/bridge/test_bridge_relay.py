"""What passes between hosts and upstreams: results, requests and notifications, spelled for the other revision."""

from __future__ import annotations

import json
from typing import Any

import pytest
import results_official
from bridge_json import is_one_line, mended, messages, strict
from bridge_results import (
    LEGACY,
    NEW,
    OLD,
    OLDEST,
    PAIRS,
    REVISIONS,
    mapped,
    raw_response,
    response,
    results,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from troth.bridge import Bad, Frame, Kind, read, rewrite
from troth.bridge.errors import INTERNAL
from troth.bridge.relay import GROWN, RESULTS, SUBSCRIPTION, answer, item, notification, outgoing
from troth.bridge.tree import MOST
from troth.results import spell

pairs = st.sampled_from(PAIRS)
padding = st.sampled_from([{}, {"pad": "x" * 2000}, {"pad": '"' * 2000}, {"pad": "\x1b" * 200}, {"pad": [""] * 999}])
"""Members that nobody knows. How long a body is, and of what, decides how it is looked at."""


def relayed(frame: Frame, method: str, source: str, target: str, **more: Any) -> Any:
    """The result that a host gets."""
    line = answer(frame, "h", method=method, source=source, target=target, **more)
    assert isinstance(line, bytes), line
    assert is_one_line(line)
    value = json.loads(line)
    assert value.keys() == {"jsonrpc", "id", "result"}
    assert value["id"] == "h"
    return value["result"]


def read_out(result: Any) -> Any:
    """The result with the value of a sole text block that is JSON: such a text may spell it in several ways."""
    content = result.get("content")
    try:
        return result | {"content": json.loads(content[0]["text"])} if content and len(content) == 1 else result
    except (KeyError, ValueError):
        return result


@pytest.mark.behaviour("GEN-B7", "CAP-19-S1")
@given(results, pairs, st.booleans(), padding)
@settings(max_examples=400)
def test_a_result_arrives_as_the_host_s_revision_spells_it(pair, revisions, ascii_only, free):
    (method, newest), (source, target) = pair, revisions
    definition = RESULTS.get(method, "Result")
    said = spell(newest | free, definition, source)

    got = relayed(response(said, ascii_only=ascii_only), method, source, target)

    assert read_out(got) == read_out(spell(said, definition, target))


@results_official.NEEDS_SCHEMAS
@pytest.mark.behaviour("GEN-B3")
@given(results, pairs, st.sampled_from(["", "fs"]), st.booleans())
@settings(max_examples=300, deadline=None)
def test_what_a_host_gets_is_valid_and_holds_no_member_that_its_revision_lacks(pair, revisions, prefix, inline):
    (method, newest), (source, target) = pair, revisions
    definition = {"resources/subscribe": "EmptyResult"}.get(method) or RESULTS[method]
    said = response(spell(newest, RESULTS.get(method, "Result"), source))

    results_official.check(relayed(said, method, source, target, prefix=prefix, inline=inline), definition, target)


@pytest.mark.behaviour("CAP-16-B1")
@given(results, pairs, st.booleans(), padding)
@settings(max_examples=400)
def test_every_resource_that_a_result_names_has_the_host_s_uri(pair, revisions, ascii_only, free):
    (method, newest), (source, target) = pair, revisions
    definition = RESULTS.get(method, "Result")
    said = spell(newest | free, definition, source)

    got = relayed(response(said, ascii_only=ascii_only), method, source, target, prefix="fs")

    assert read_out(got) == read_out(spell(mapped(said, "fs"), definition, target))


@given(messages(), st.sampled_from(LEGACY), st.sampled_from(["prompts/get", "resources/read", "x/y"]))
def test_a_result_in_which_nothing_must_change_leaves_equal_as_json(data, revision, method):
    frame = read(data)
    if not isinstance(frame, Frame) or frame.kind is not Kind.RESPONSE:
        return
    line = answer(frame, 7, method=method, source=revision, target=revision)

    assert isinstance(line, bytes)
    assert is_one_line(line)
    assert strict(line) == mended(strict(data)) | {"id": ("7",)}


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_body_in_which_nothing_must_change_is_copied_as_it_stands(source, target):
    body = '{ "resultType" : "complete", "content" : [ {"type":"x", "n": 1.50e+999} ] }'
    if source not in LEGACY and target not in LEGACY:
        assert body.encode() in answer(raw_response(body), 1, method="tools/call", source=source, target=target)
    body = '{ "content" : [ {"type":"text", "text": "\\"icons\\"", "n": 1.50e+999} ] }'
    if source in LEGACY and target in LEGACY:
        assert body.encode() in answer(raw_response(body), 1, method="tools/call", source=source, target=target)


@pytest.mark.parametrize("target", REVISIONS)
@pytest.mark.parametrize("source", REVISIONS)
def test_numbers_come_through_as_they_were_written_also_where_something_changes(source, target):
    body = (
        '{"resultType":"complete","content":[{"type":"resource_link","uri":"a:b","name":"n","size":1e999,'
        '"icons":[],"annotations":{"priority":0.10},"_meta":{"n":-0}},{"type":"text","text":"t","n":123456789012345678901},'
        '{"type":"audio","data":"","mimeType":"audio/x","annotations":{"priority":0.30}}],'
        '"structuredContent":{"big":99999999999999999999999999,"exact":0.1000000000000000055511151231257827}}'
    )
    line = answer(raw_response(body), 1, method="tools/call", source=source, target=target, prefix="fs")
    result = strict(line)["result"]

    assert result["content"][0]["annotations"] == {"priority": ("0.10",)}
    assert result["content"][1]["n"] == ("123456789012345678901",)
    assert result["content"][2]["annotations"] == {"priority": ("0.30",)}
    if "structuredContent" in result:
        assert result["structuredContent"] == {
            "big": ("99999999999999999999999999",),
            "exact": ("0.1000000000000000055511151231257827",),
        }
    if "size" in result["content"][0]:
        assert result["content"][0]["size"] == ("1e999",)


@pytest.mark.behaviour("CAP-19-S1")
@pytest.mark.parametrize("source", REVISIONS)
def test_structured_content_that_cannot_be_carried_is_told_as_text_where_nothing_else_is(source):
    body = '{"resultType":"complete","content":[],"structuredContent":{"a": [1.50, "é"]}}'

    got = relayed(raw_response(body), "tools/call", source, OLDEST)

    assert got == {"content": [{"type": "text", "text": '{"a":[1.50,"é"]}'}]}


def test_structured_content_that_is_no_object_is_for_the_newest_only():
    body = '{"resultType":"complete","content":[],"structuredContent":[1.50]}'

    assert relayed(raw_response(body), "tools/call", NEW, OLD) == {"content": [{"type": "text", "text": "[1.50]"}]}
    assert relayed(raw_response(body), "tools/call", NEW, NEW)["structuredContent"] == [1.5]


@pytest.mark.parametrize("source", LEGACY)
def test_what_a_legacy_upstream_says_about_caches_and_types_of_results_means_nothing(source):
    body = {"contents": [], "resultType": "input_required", "ttlMs": 9, "cacheScope": "public"}

    assert relayed(response(body), "resources/read", source, NEW) == {
        "contents": [],
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
    }
    assert relayed(response(body), "resources/read", source, NEW, prefix="fs") == {
        "contents": [],
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
    }


def test_a_modern_result_without_what_is_required_gets_it():
    assert relayed(response({"contents": [], "ttlMs": 9}), "resources/read", NEW, NEW) == {
        "contents": [],
        "ttlMs": 9,
        "resultType": "complete",
        "cacheScope": "private",
    }
    with_uri = {"contents": [{"uri": "a:b", "text": ""}], "ttlMs": 9}
    assert relayed(response(with_uri), "resources/read", NEW, NEW, prefix="fs") == {
        "contents": [{"uri": "fs+a:b", "text": ""}],
        "ttlMs": 9,
        "resultType": "complete",
        "cacheScope": "private",
    }


@pytest.mark.parametrize("target", REVISIONS)
@pytest.mark.parametrize(
    ("sort", "words"),
    [('"input_required"', "a question"), ('"task"', "a task"), ('"x\\u001b"', "unknown"), ("3", "unknown")],
)
def test_a_result_that_does_not_end_the_call_is_refused_for_now(target, sort, words):
    got = answer(raw_response(f'{{"resultType":{sort}}}'), 1, method="tools/call", source=NEW, target=target)

    assert isinstance(got, Bad)
    assert (got.code, got.id, got.kind) == (INTERNAL, 1, Kind.RESPONSE)
    assert words in got.reason
    assert got.reason.isprintable()


def test_a_complete_result_may_be_spelled_in_escapes():
    body = '{"resultType":"compl\\u0065te","content":[]}'

    assert relayed(raw_response(body), "tools/call", NEW, OLD) == {"content": []}


def test_a_result_that_could_be_read_in_two_ways_is_refused():
    for body in ('{"resultType":"complete","resultType":"task"}', '{"ResultType":"complete"}', '{"_meta":3}'):
        got = answer(raw_response(body), 1, method="tools/call", source=NEW, target=NEW)

        assert isinstance(got, Bad)
        assert got.code == INTERNAL


@pytest.mark.parametrize("target", REVISIONS)
@pytest.mark.parametrize("source", REVISIONS)
@pytest.mark.parametrize(
    "members",
    [
        '"content":[1,null,"icons",[{"type":"audio"}]]',
        '"content":[{"type":7,"icons":1}]',
        '"content":[{"type":"hologram","icons":[1],"uri":"a:b"}]',
        '"content":[{"icons":[1]}]',
        '"content":[{"type":"resource","resource":7}]',
        '"content":[{"type":"resource_link","uri":7,"name":1e999,"title":[1e999]}]',
        '"content":[{"type":"resource_link","icons":null,"_meta":7}]',
        '"content":[{"type":"text","text":"x","_meta":{"ui":7}}]',
        '"content":[{"type":"text","text":"x","_meta":{"ui":{"resourceUri":7},"ui/resourceUri":null}}]',
    ],
)
def test_a_malformed_result_breaks_nothing_and_passes_as_far_as_it_is_harmless(source, target, members):
    body = f'{{"resultType":"complete",{members}}}'

    for more in ({}, {"prefix": "fs"}, {"inline": True}):
        got = relayed(raw_response(body), "tools/call", source, target, **more)
        assert "content" in got


LONG = f'{{"type":"text","text":"{"x" * 5000}"}}'


@pytest.mark.parametrize("target", REVISIONS)
@pytest.mark.parametrize("source", REVISIONS)
@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ('"content":"x"', "content: an array belongs here"),
        ('"content":7', "content: an array belongs here"),
        (f'"content":{LONG}', "content: an array belongs here"),
        ('"content":[],"isError":"false"', "isError: true or false belongs here"),
        ('"isError":1,"content":[]', "isError: true or false belongs here"),
        (f'"content":[{LONG}],"isError":{{"isError":false}}', "isError: true or false belongs here"),
        (f'"isError":[],"content":[{LONG}]', "isError: true or false belongs here"),
    ],
)
def test_a_result_of_a_tool_that_no_strict_host_takes_is_refused_and_named(source, target, members, reason):
    typed = ',"resultType":"complete"' if source == NEW else ""
    for more in ({}, {"prefix": "fs"}, {"inline": True}):
        got = answer(
            raw_response(f"{{{members}{typed}}}"), 1, method="tools/call", source=source, target=target, **more
        )

        assert isinstance(got, Bad)
        assert (got.code, got.reason) == (INTERNAL, f"the upstream's answer is malformed: {reason}")


@pytest.mark.parametrize("target", REVISIONS)
@pytest.mark.parametrize("source", REVISIONS)
@pytest.mark.parametrize(
    ("members", "content", "flags"),
    [
        ("", [], {}),
        ('"content":null', [], {}),
        ('"isError":true', [], {"isError": True}),
        ('"content":null,"isError":null', [], {}),
        ('"isError":null,"content":[{"type":"text","text":"x"}]', [{"type": "text", "text": "x"}], {}),
        (f'"content":[{LONG}],"isError":null', [json.loads(LONG)], {}),
    ],
)
def test_a_result_of_a_tool_without_content_has_none_and_null_is_no_member(source, target, members, content, flags):
    typed = '"resultType":"complete",' if source == NEW else ""
    said = raw_response(f'{{{typed}"_meta":{{"a/b":1}}{members and ","}{members}}}')

    for more in ({}, {"prefix": "fs"}, {"inline": True}):
        got = relayed(said, "tools/call", source, target, **more)

        sort = {"resultType": "complete"} if target == NEW else {}
        assert got == {"content": content, "_meta": {"a/b": 1}, **flags, **sort}


@pytest.mark.parametrize("target", REVISIONS)
@pytest.mark.parametrize("source", REVISIONS)
@pytest.mark.parametrize("space", ["", " "])
def test_null_in_the_place_of_an_object_is_no_member(source, target, space):
    typed = '"resultType":"complete",' if source == NEW else ""
    sort = {"resultType": "complete"} if target == NEW else {}
    for nulls in ("_meta", "structuredContent"):
        for body in ('{%s"content":[],%s}', '{%s"content":[],%s,"isError":false}', '{%s%s,"content":[]}'):
            said = raw_response(body % (typed, f'"{nulls}":{space}null'))
            for more in ({}, {"prefix": "fs"}, {"inline": True}):
                got = relayed(said, "tools/call", source, target, **more)

                if (nulls, source) == ("structuredContent", NEW):
                    # There it may be any JSON, and what is no object stands as text for those before.
                    assert got.pop("structuredContent", "text") == (None if target == NEW else "text")
                    assert got.pop("content") == ([] if target == NEW else [{"type": "text", "text": "null"}])
                    got["content"] = []
                got.pop("isError", None)
                assert got == {"content": [], **sort}


@pytest.mark.parametrize("target", REVISIONS)
@pytest.mark.parametrize("source", REVISIONS)
@pytest.mark.parametrize(
    "members",
    [
        '"content":[],"content":5',
        f'"content":[{LONG}],"content":null',
        '"content":[],"isError":"x","isError":false',
        f'"content":[{LONG}],"isError":"x","isError":true',
    ],
)
def test_a_result_of_a_tool_with_a_member_twice_is_refused(source, target, members):
    typed = ',"resultType":"complete"' if source == NEW else ""
    got = answer(raw_response(f"{{{members}{typed}}}"), 1, method="tools/call", source=source, target=target)

    assert isinstance(got, Bad)
    assert got.code == INTERNAL
    assert "twice" in got.reason


@pytest.mark.parametrize("target", REVISIONS)
@pytest.mark.parametrize("source", REVISIONS)
@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ('"task":{"taskId":"1","status":"working"}', "a task, which nobody asked for"),
        ('"content":null,"task":{}', "a task, which nobody asked for"),
        ('"toolResult":{"a":1}', "malformed: toolResult stands in no revision; content belongs here"),
    ],
)
def test_what_stands_in_the_place_of_content_is_no_empty_success(source, target, members, reason):
    typed = ',"resultType":"complete"' if source == NEW else ""
    got = answer(raw_response(f"{{{members}{typed}}}"), 1, method="tools/call", source=source, target=target)

    assert isinstance(got, Bad)
    assert (got.code, got.reason) == (INTERNAL, f"the upstream's answer is {reason}")


@pytest.mark.parametrize("target", REVISIONS)
def test_structured_content_alone_is_a_result(target):
    got = relayed(response({"structuredContent": {"a": 1}}), "tools/call", OLD, target)

    alone = {"content": [], "structuredContent": {"a": 1}}
    assert got.get("structuredContent") == (None if target in {OLDEST, "2025-03-26"} else alone["structuredContent"])
    assert isinstance(got["content"], list)


@pytest.mark.parametrize("space", ["", " "])
@pytest.mark.parametrize("flag", ["", '"isError":false', '"isError":true', '"structuredContent":{"isError":"x"}'])
def test_a_good_result_of_a_tool_leaves_as_it_came(space, flag):
    for block in ('{"type":"text","text":"a \\"isError\\": 7"}', LONG):
        body = f'{{"content":{space}[{block}]{flag and ","}{flag}}}'
        line = answer(raw_response(body), 1, method="tools/call", source=OLD, target=OLD)

        assert isinstance(line, bytes)
        assert f'"result":{body}'.encode() in line


@pytest.mark.parametrize("target", REVISIONS)
def test_content_of_a_kind_that_nobody_knows_passes_with_everything(target):
    block = {"type": "hologram", "icons": [1], "uri": "a:b", "_meta": {"ui": {"resourceUri": "ui://x"}}}

    got = relayed(response({"content": [block], "x": {"icons": []}}), "tools/call", OLD, target, prefix="fs")

    assert got["content"] == [block]
    assert got["x"] == {"icons": []}


@pytest.mark.behaviour("GEN-B3")
@pytest.mark.parametrize("key", ["icons", "ic\\u006fns", "\\u0069cons"])
def test_a_member_is_found_however_its_name_is_spelled(key):
    body = f'{{"content":[{{"type":"resource_link","uri":"a:b","name":"n","{key}":[]}}]}}'

    got = relayed(raw_response(body), "tools/call", OLD, "2025-06-18")

    assert got == {"content": [{"type": "resource_link", "uri": "a:b", "name": "n"}]}


@pytest.mark.behaviour("GEN-B3")
@pytest.mark.parametrize("pad", ["", "x", "x" * 5000, [1] * 2000, ["a"] * 400])
@pytest.mark.parametrize("key", ["icons", "".join(f"\\u{ord(letter):04x}" for letter in "icons")])
def test_a_member_is_found_in_a_body_of_any_length(pad, key):
    link = f'{{"type":"resource_link","uri":"a:b","name":"n","{key}":[]}}'

    said = json.dumps(pad)
    for body in (f'{{"content":[{link}],"pad":{said}}}', f'{{"pad":{said},"content":[{link}]}}'):
        got = relayed(raw_response(body), "tools/call", OLD, "2025-06-18")
        assert got["content"] == [{"type": "resource_link", "uri": "a:b", "name": "n"}]
        assert got["pad"] == pad


@pytest.mark.parametrize(
    "content",
    [
        [{"": 0}] * (MOST + 1),
        [{"type": "text", "text": ""}] * 20_000,
        [{"type": "resource_link", "uri": "a:b", "icons": [{}] * (MOST + 1)}],
        [{"type": "text"} | {str(number): 0 for number in range(MOST + 1)}],
    ],
)
def test_a_result_of_too_many_parts_is_refused_before_it_costs_much(content):
    frame = response({"content": content})

    got = answer(frame, 1, method="tools/call", source=OLD, target=OLDEST, prefix="fs")

    assert isinstance(got, Bad)
    assert got.code == INTERNAL
    assert str(MOST) in got.reason
    assert isinstance(answer(frame, 1, method="tools/call", source=OLD, target=OLD), bytes)


@pytest.mark.parametrize("key", ["io.modelcontextprotocol/serverInfo", "io.modelcontextprotocol\\/serverInfo"])
def test_the_name_of_the_upstream_is_not_told_to_hosts_that_have_no_place_for_it(key):
    body = f'{{"content":[],"_meta":{{"{key}":{{"name":"x","version":"1"}},"a":1}}}}'

    assert relayed(raw_response(body), "tools/call", OLD, OLD) == {"content": [], "_meta": {"a": 1}}


@pytest.mark.parametrize("uri", ["uri", "\\u0075ri"])
def test_a_uri_is_found_however_its_name_is_spelled(uri):
    body = f'{{"contents":[{{"{uri}":"a:b","text":"uri: a:b"}}]}}'

    assert relayed(raw_response(body), "resources/read", OLD, OLD, prefix="fs") == {
        "contents": [{"uri": "fs+a:b", "text": "uri: a:b"}]
    }


@pytest.mark.parametrize("slash", ["/", "\\/"])
def test_views_of_apps_are_mapped_in_both_spellings(slash):
    body = f'{{"content":[],"_meta":{{"ui{slash}resourceUri":"ui://x/y","ui":{{"resourceUri":"ui://z","a":1}}}}}}'

    assert relayed(raw_response(body), "tools/call", OLD, OLD, prefix="fs")["_meta"] == {
        "ui/resourceUri": "ui://fs/x/y",
        "ui": {"resourceUri": "ui://fs/z", "a": 1},
    }


@pytest.mark.parametrize("target", REVISIONS)
def test_links_become_text_for_hosts_that_get_no_resources(target):
    link = {"type": "resource_link", "uri": "a:b", "name": "n", "description": "about", "annotations": {"priority": 1}}
    said = response({"content": [link, {"type": "text", "text": "resource_link"}]})

    got = relayed(said, "tools/call", OLD, target, prefix="fs", inline=True)

    assert got["content"] == [
        {"type": "text", "text": "n: fs+a:b\nabout", "annotations": {"priority": 1}},
        {"type": "text", "text": "resource_link"},
    ]
    message = response({"messages": [{"role": "user", "content": link}]})
    got = relayed(message, "prompts/get", OLD, target, inline=True)
    assert got["messages"][0]["content"]["text"] == "n: a:b\nabout"


def test_what_stands_beside_the_result_passes():
    frame = read(b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"icons":1},"x":[1.0]}')
    assert isinstance(frame, Frame)

    line = answer(frame, 2, method="tools/call", source=OLD, target=NEW)

    assert isinstance(line, bytes)
    assert strict(line)["x"] == [("1.0",)]


# Requests on their way up


def request(method: str, params: object = None) -> Frame:
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": method}
    frame = read(json.dumps(body if params is None else body | {"params": params}).encode())
    assert isinstance(frame, Frame)
    return frame


ENVELOPE = {
    "progressToken": 1,
    "io.modelcontextprotocol/protocolVersion": NEW,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "secret", "version": "1"},
    "io.modelcontextprotocol/logLevel": "debug",
    "io.modelcontextprotocol/subscriptionId": 1,
}


def sent(frame: Frame, target: str, params: Any = None) -> Any:
    found = outgoing(frame, target, params=params)
    line = rewrite(found.frame, params=found.params, drop=found.drop, meta=found.meta, drop_meta=found.drop_meta)
    return json.loads(line).get("params")


@pytest.mark.parametrize("target", REVISIONS)
def test_what_a_host_says_to_us_alone_goes_no_further(target):
    params = {"name": "a", "arguments": {"task": 1}, "task": {}, "inputResponses": {}, "requestState": "x"}

    assert sent(request("tools/call", params | {"_meta": ENVELOPE}), target) == {"name": "a", "arguments": {"task": 1}}


def test_rule_21_params_task_is_ignored_where_tasks_are_undeclared():
    assert sent(request("tools/call", {"name": "a", "task": {"ttl": 1}}), OLD) == {"name": "a"}


@pytest.mark.parametrize("target", REVISIONS)
def test_members_that_nobody_knows_go_up(target):
    params = {"name": "a", "x": [1], "_meta": {**ENVELOPE, "com.example/a": 1}}

    assert sent(request("tools/call", params), target) == {"name": "a", "x": [1], "_meta": {"com.example/a": 1}}


def test_the_upstream_s_own_name_takes_the_place_of_the_host_s():
    found = sent(request("tools/call", {"name": "fs_a", "arguments": {}}), OLD, {"name": "a"})

    assert found == {"name": "a", "arguments": {}}


def test_a_request_in_which_nothing_must_change_is_left_alone():
    found = outgoing(request("tools/call", {"name": "a"}), OLD)

    assert rewrite(found.frame) == rewrite(found.frame, drop=found.drop, drop_meta=found.drop_meta)
    assert (found.params, found.drop, found.meta, found.drop_meta) == ({}, frozenset(), {}, frozenset())
    assert sent(request("resources/subscribe"), OLD) is None
    assert outgoing(request("completion/complete", {"ref": {}}), OLDEST).drop == frozenset()


@pytest.mark.behaviour("GEN-B3")
@pytest.mark.parametrize("target", REVISIONS)
def test_context_of_a_completion_goes_to_those_who_know_it(target):
    params = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}

    found = sent(request("completion/complete", params | {"context": {"arguments": {}}}), target)

    assert ("context" in found) == (target in GROWN["completion/complete"].revisions)
    assert found.items() >= params.items()


@results_official.NEEDS_SCHEMAS
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("method", "definition"),
    [("completion/complete", "CompleteRequest"), ("notifications/progress", "ProgressNotification")],
)
def test_the_table_of_grown_members_agrees_with_the_schema(revision, method, definition):
    node = results_official.definitions(revision)[definition]["properties"]["params"]
    members = results_official.resolve(node, revision)["properties"]

    assert (GROWN[method].member in members) == (revision in GROWN[method].revisions)


@results_official.NEEDS_SCHEMAS
@pytest.mark.parametrize(
    ("method", "definition"),
    [
        ("tools/call", "CallToolRequest"),
        ("prompts/get", "GetPromptRequest"),
        ("resources/read", "ReadResourceRequest"),
        ("completion/complete", "CompleteRequest"),
        ("notifications/message", "LoggingMessageNotification"),
        ("notifications/progress", "ProgressNotification"),
        ("notifications/resources/updated", "ResourceUpdatedNotification"),
    ],
)
def test_params_differ_between_revisions_in_no_other_member(method, definition):
    ours = {"_meta", "task", "inputResponses", "requestState"} | ({GROWN[method].member} if method in GROWN else set())
    found = set()
    for revision in REVISIONS:
        node = results_official.definitions(revision)[definition]["properties"]["params"]
        found.add(frozenset(results_official.resolve(node, revision)["properties"]) - ours)

    assert len(found) == 1


# Items of lists


TOOL = {
    "name": "read",
    "title": "Read",
    "inputSchema": {"type": "object", "properties": {"a": True, "b": {"maximum": 1}}},
    "outputSchema": {"type": "object"},
    "execution": {"taskSupport": "required"},
    "annotations": {"readOnlyHint": True},
    "icons": [{"src": "https://x"}],
    "_meta": {"ui": {"resourceUri": "ui://v", "visibility": ["app"]}, "a": 1},
}


@results_official.NEEDS_SCHEMAS
@pytest.mark.behaviour("GEN-B7", "GEN-B3")
@pytest.mark.parametrize("target", REVISIONS)
@pytest.mark.parametrize(
    ("definition", "members"),
    [
        ("Tool", TOOL),
        ("Prompt", {"name": "p", "title": "P", "arguments": [{"name": "a", "title": "A"}], "icons": [], "_meta": {}}),
        ("Resource", {"name": "r", "uri": "a:b", "title": "R", "icons": [], "_meta": {}, "size": 1}),
        ("ResourceTemplate", {"name": "t", "uriTemplate": "a:{b}", "title": "T", "icons": [], "_meta": {}}),
    ],
)
def test_items_of_lists_are_valid_for_the_host(definition, members, target):
    got = json.loads(json.dumps(plain(item(definition, members, target=target, prefix="fs"))))

    results_official.check(got, definition, target)


def plain(value: Any) -> Any:
    if isinstance(value, Raw):
        return json.loads(bytes(value))
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    return [plain(member) for member in value] if isinstance(value, list) else value


def test_a_tool_is_called_by_its_prefix_and_offers_no_tasks():
    before = json.dumps(TOOL)
    got = plain(item("Tool", TOOL, target=NEW, prefix="fs"))

    assert got == {
        **{name: member for name, member in TOOL.items() if name != "execution"},
        "name": "fs_read",
        "_meta": {"ui": {"resourceUri": "ui://fs/v", "visibility": ["app"]}, "a": 1},
    }
    assert json.dumps(TOOL) == before
    assert "execution" not in item("Tool", TOOL, target=OLD)
    assert item("Tool", TOOL, target=OLD)["name"] == "read"


def test_an_item_may_be_shown_under_another_name():
    assert item("Tool", TOOL, target=NEW, prefix="fs", name="other")["name"] == "other"
    assert item("Prompt", {"name": 7}, target=NEW, prefix="fs", name="other")["name"] == 7
    assert item("Resource", {"name": "r", "uri": "a:b"}, target=NEW, prefix="fs", name="x")["name"] == "r"


@pytest.mark.behaviour("CAP-16-B1")
def test_resources_and_templates_are_listed_under_uris_of_the_host():
    resource = item("Resource", {"name": "r", "uri": "a:b"}, target=OLD, prefix="fs")
    template = item("ResourceTemplate", {"name": "r", "uriTemplate": "ui://a/{b}"}, target=OLD, prefix="fs")

    assert resource == {"name": "r", "uri": "fs+a:b"}
    assert template == {"name": "r", "uriTemplate": "ui://fs/a/{b}"}


def test_schemas_of_tools_change_only_where_the_revision_demands_it():
    members = {"name": "a", "inputSchema": Raw(b'{"type":"object","properties":{"a":false,"b":{"maximum":1e999}}}')}
    old = item("Tool", {**members, "outputSchema": {"type": "array"}}, target=OLD)
    new = item("Tool", {**members, "outputSchema": {"type": "array"}}, target=NEW)

    assert "outputSchema" not in old
    assert new["outputSchema"] == {"type": "array"}
    assert old["inputSchema"]["properties"] == {"a": {"not": {}}, "b": Raw(b'{"maximum":1e999}')}
    assert new["inputSchema"]["properties"] == {"a": False, "b": Raw(b'{"maximum":1e999}')}


@pytest.mark.parametrize("schema", [7, [], {}, {"type": 1e10}, {"properties": {"a": {}}}, {"properties": 7}, None])
def test_schemas_that_are_none_break_nothing(schema):
    for target in REVISIONS:
        found = plain(item("Tool", {"name": "a", "inputSchema": schema}, target=target))
        assert found == {"name": "a", "inputSchema": schema}


# Notifications on their way down


def told(method: str, params: object, **more: Any) -> Any:
    body = {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})
    frame = read(json.dumps(body).encode())
    assert isinstance(frame, Frame)
    line = notification(frame, **more)
    if line is None:
        return None
    assert is_one_line(line)
    value = json.loads(line)
    assert value["method"] == method
    return value["params"]


@pytest.mark.parametrize("target", REVISIONS)
def test_logs_pass(target):
    log = {"level": "info", "logger": "l", "data": {"uri": "a:b"}}

    assert told("notifications/message", log, target=target, prefix="fs", token=1) == log


@pytest.mark.behaviour("GEN-B3")
@pytest.mark.parametrize("target", REVISIONS)
def test_rule_16_progress_carries_the_token_of_the_host_and_goes_to_no_host_without_one(target):
    progress = {"progressToken": 77, "progress": 1, "total": 2, "message": "m"}
    expected = progress | {"progressToken": "1"}
    if target == OLDEST:
        del expected["message"]

    assert told("notifications/progress", progress, target=target, token="1") == expected
    assert told("notifications/progress", progress, target=target) is None


@pytest.mark.behaviour("CAP-16-B1")
@pytest.mark.parametrize("target", REVISIONS)
def test_updates_carry_the_host_s_uri_and_the_id_of_its_listen(target):
    meta = {"io.modelcontextprotocol/subscriptionId": "ours", "a": 1}
    update = {"uri": "a:b", "_meta": meta}

    assert told("notifications/resources/updated", update, target=target, prefix="fs") == {
        "uri": "fs+a:b",
        "_meta": {"a": 1},
    }
    assert told("notifications/resources/updated", update, target=target, subscription=4) == {
        "uri": "a:b",
        "_meta": {"a": 1, SUBSCRIPTION: 4},
    }


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("notifications/tools/list_changed", None),
        ("notifications/cancelled", {"requestId": 1}),
        ("notifications/resources/updated", {"uri": 7}),
        ("notifications/resources/updated", {}),
        ("notifications/message", {"level": "info"}),
        ("notifications/progress", None),
        ("x", {}),
    ],
)
def test_what_is_malformed_or_between_the_upstream_and_us_goes_to_no_host(method, params):
    assert told(method, params, target=OLD, token=1) is None
