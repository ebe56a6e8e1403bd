"""One relayed request as scripts: events in, commands out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from troth.bridge import Cause, Frame, Id, Lost, Outgoing, read
from troth.bridge.exchange import LEVELS, LOST, PAIRS, TABLE, Exchange, State
from troth.bridge.exchange_model import (
    AnswerUpstream,
    Called,
    CancelUpstream,
    Command,
    Finish,
    HostCalled,
    HostCancelled,
    HostGone,
    SendHost,
    SendUpstream,
    Told,
    UpstreamAnswered,
    UpstreamAsked,
    UpstreamLost,
    UpstreamNotified,
)
from troth.register import Era, register

LEGACY = register().newest(Era.LEGACY)
OLDEST = register().eras[Era.LEGACY][0]
MODERN = register().newest(Era.MODERN)
BY_ERA = {Era.LEGACY: LEGACY, Era.MODERN: MODERN}
ERAS = [(host, upstream) for host in Era for upstream in Era]
pairs = pytest.mark.parametrize(("host", "upstream"), ERAS)
CALL: dict[str, Any] = {"name": "files_t", "arguments": {"a": 1}}


def called(host: Era | str = Era.LEGACY, upstream: Era | str = Era.LEGACY, **changes: Any) -> Called:
    """A call of a host to an upstream, each given by its era or revision."""
    params = changes.pop("asked", CALL)
    if "token" in changes:
        params = {**params, "_meta": {"progressToken": changes.pop("token")}}
    request = frame(id=changes.pop("id", 7), method=changes.pop("method", "tools/call"), params=params)
    return Called(
        frame=request,
        host_revision=BY_ERA[host] if isinstance(host, Era) else host,
        upstream="files",
        upstream_revision=BY_ERA[upstream] if isinstance(upstream, Era) else upstream,
        **changes,
    )


def opened(*args: Any, **changes: Any) -> Exchange:
    """An exchange whose request was sent."""
    exchange = Exchange(called(*args, **changes))
    (command,) = exchange.handle(HostCalled())
    assert isinstance(command, SendUpstream)
    return exchange


def frame(**members: Any) -> Frame:
    made = read(json.dumps({"jsonrpc": "2.0", **members}).encode())
    assert isinstance(made, Frame)
    return made


def result(**members: Any) -> UpstreamAnswered:
    return UpstreamAnswered(frame(id=1, result={"content": [], **members}))


def notified(method: str, **params: Any) -> UpstreamNotified:
    return UpstreamNotified(frame(method=f"notifications/{method}", params=params))


def finished(commands: tuple[Command, ...]) -> dict[str, Any]:
    """The answer of a single `Finish`, whose code is that of the answer."""
    assert len(commands) == 1
    assert isinstance(commands[0], Finish)
    assert commands[0].line is not None
    answer = json.loads(commands[0].line)
    assert commands[0].code == answer.get("error", {}).get("code")
    return answer


def told(commands: tuple[Command, ...]) -> list[tuple[Told, Any]]:
    sent = [command for command in commands if isinstance(command, SendHost)]
    assert len(sent) == len(commands)
    return [(command.sort, json.loads(command.line)["params"]) for command in sent]


@pairs
@pytest.mark.parametrize("identity", [7, "7", 2**53, "a b"])
def test_a_call_is_sent_and_answered_under_the_hosts_id(host: Era, upstream: Era, identity: Id) -> None:
    exchange = opened(host, upstream, id=identity)
    assert not exchange.done
    answer = finished(exchange.handle(result(isError=True, more={"x": 1})))
    assert exchange.done
    assert answer["id"] == identity
    assert type(answer["id"]) is type(identity)
    assert answer["result"]["isError"] is True


@pairs
def test_what_is_sent_is_the_request_with_the_upstreams_own_name(host: Era, upstream: Era) -> None:
    given: dict[str, Any] = {"headers": {"Mcp-Param-A": "1"}, "timeout": 5.0, "level": "error"}
    call = called(host, upstream, token="x", params={"name": "t"}, name="t", **given)
    (command,) = Exchange(call).handle(HostCalled())
    assert isinstance(command, SendUpstream)
    assert command.outgoing == Outgoing(
        frame=call.frame,
        params={"name": "t"},
        name="t",
        drop=frozenset(),
        drop_meta={"progressToken"},
        progress=True,
        **given,
    )


@pairs
def test_no_progress_and_no_logs_are_asked_for_a_host_that_did_not(host: Era, upstream: Era) -> None:
    (command,) = Exchange(called(host, upstream)).handle(HostCalled())
    assert isinstance(command, SendUpstream)
    assert (command.outgoing.progress, command.outgoing.level) == (False, None)


@pairs
def test_a_call_is_sent_once(host: Era, upstream: Era) -> None:
    assert opened(host, upstream).handle(HostCalled()) == ()


@pytest.mark.behaviour("GEN-S10")
@pairs
def test_a_cancelled_call_is_cancelled_upstream_and_never_answered(host: Era, upstream: Era) -> None:
    exchange = opened(host, upstream)
    assert exchange.handle(HostCancelled("enough")) == (CancelUpstream("enough"), Finish(None))
    assert exchange.handle(result()) == ()


@pytest.mark.behaviour("GEN-S10")
@pairs
def test_a_disconnect_cancels_for_a_modern_host_and_does_not_for_a_legacy_one(host: Era, upstream: Era) -> None:
    exchange = opened(host, upstream)
    gone = exchange.handle(HostGone())
    if host is Era.MODERN:
        assert gone == (CancelUpstream("the host disconnected"), Finish(None))
    else:
        assert gone == ()
        assert finished(exchange.handle(result()))["result"]["content"] == []


@pairs
def test_what_ends_before_it_was_sent_is_not_cancelled_upstream(host: Era, upstream: Era) -> None:
    assert Exchange(called(host, upstream)).handle(HostCancelled()) == (Finish(None),)
    gone = Exchange(called(host, upstream)).handle(HostGone())
    assert gone == ((Finish(None),) if host is Era.MODERN else ())


@pairs
def test_after_the_end_nothing_is_done(host: Era, upstream: Era) -> None:
    events = [
        HostCalled(),
        HostCancelled(),
        HostGone(),
        result(),
        UpstreamAsked(frame(id=1, method="ping")),
        notified("progress", progressToken=1, progress=1),
        notified("message", level="error", data=""),
        UpstreamLost(Lost(Cause.DOWN, "")),
    ]
    exchange = opened(host, upstream, token=1, level="debug")
    finished(exchange.handle(result()))
    assert [exchange.handle(event) for event in events] == [()] * len(events)


@pairs
@pytest.mark.parametrize("token", [5, "5"])
def test_rule_16_progress_carries_the_hosts_token_and_only_increases(host: Era, upstream: Era, token: Id) -> None:
    exchange = opened(host, upstream, token=token)
    seen: list[Any] = []
    for value in (0, 0, 1.5, 1.5, 1, 2, 10**30, 10**29):
        for sort, params in told(exchange.handle(notified("progress", progressToken=99, progress=value, total=4))):
            assert sort is Told.PROGRESS
            assert params["progressToken"] == token
            assert type(params["progressToken"]) is type(token)
            assert params["total"] == 4
            seen.append(params["progress"])
    assert seen == [0, 1.5, 2, 10**30]


@pairs
def test_a_host_that_asked_for_no_progress_gets_none(host: Era, upstream: Era) -> None:
    assert opened(host, upstream).handle(notified("progress", progressToken=99, progress=1)) == ()


@pairs
@pytest.mark.parametrize("params", [{}, {"progress": "1"}, {"progress": True}, {"progress": None}])
def test_progress_without_a_number_is_dropped(host: Era, upstream: Era, params: dict[str, Any]) -> None:
    assert opened(host, upstream, token=1).handle(notified("progress", progressToken=99, **params)) == ()


@pytest.mark.behaviour("CAP-12-S4")
@pytest.mark.parametrize("upstream", list(Era))
@pytest.mark.parametrize("level", LEVELS)
def test_rule_10_a_legacy_host_gets_every_log_until_it_sets_a_level(upstream: Era, level: str) -> None:
    exchange = opened(Era.LEGACY, upstream)
    message = notified("message", level=level, data={"x": 1}, logger="l")
    assert told(exchange.handle(message)) == [(Told.LOG, {"level": level, "data": {"x": 1}, "logger": "l"})]
    exchange.level = "warning"
    assert len(exchange.handle(message)) == (LEVELS.index(level) >= LEVELS.index("warning"))


@pytest.mark.behaviour("CAP-12-S3")
@pytest.mark.parametrize("upstream", list(Era))
@pytest.mark.parametrize("level", LEVELS)
def test_a_modern_host_gets_logs_at_or_above_the_level_that_its_request_asked_for(upstream: Era, level: str) -> None:
    message = notified("message", level=level, data="")
    assert opened(Era.MODERN, upstream).handle(message) == ()
    asked = opened(Era.MODERN, upstream, level="error").handle(message)
    assert len(told(asked)) == (LEVELS.index(level) >= LEVELS.index("error"))


@pairs
@pytest.mark.parametrize(
    "params", [{"data": ""}, {"level": 3, "data": ""}, {"level": "loud", "data": ""}, {"level": "error"}]
)
def test_a_log_without_a_level_that_exists_or_data_is_dropped(host: Era, upstream: Era, params: dict[str, Any]) -> None:
    assert opened(host, upstream, level="debug").handle(notified("message", **params)) == ()


@pairs
def test_notifications_that_belong_to_no_request_do_not_reach_the_host_on_it(host: Era, upstream: Era) -> None:
    assert opened(host, upstream, token=1, level="debug").handle(notified("tools/list_changed")) == ()


@pairs
@pytest.mark.parametrize("cause", list(Cause))
def test_rule_19_a_loss_is_an_error_that_names_the_upstream_and_never_a_second_run(
    host: Era, upstream: Era, cause: Cause
) -> None:
    error = finished(opened(host, upstream).handle(UpstreamLost(Lost(cause, "the reason"))))["error"]
    assert error["code"] == -32603
    assert error["message"] == LOST[cause].format(name="files", why="the reason")
    assert "files" in error["message"]
    assert ("may have had effects" in error["message"]) is (cause not in (Cause.DOWN, Cause.REFUSED))


def test_a_call_to_an_upstream_that_is_down_fails_before_it_is_sent() -> None:
    answer = finished(Exchange(called()).handle(UpstreamLost(Lost(Cause.DOWN, "it exited with 1"))))
    assert answer["error"]["message"] == "upstream files is not reachable: it exited with 1"


@pytest.mark.behaviour("GEN-B11")
@pairs
def test_an_error_of_the_upstream_becomes_the_hosts(host: Era, upstream: Era) -> None:
    refused = UpstreamAnswered(frame(id=1, error={"code": -32000, "message": "no", "data": [1]}))
    assert finished(opened(host, upstream).handle(refused)) == {
        "jsonrpc": "2.0",
        "id": 7,
        "error": {"code": -32000, "message": "no", "data": [1]},
    }


@pytest.mark.behaviour("GEN-B11", "CAP-16-S2")
@pairs
def test_a_missing_resource_has_the_code_of_the_hosts_revision_and_its_uri(host: Era, upstream: Era) -> None:
    missing = UpstreamAnswered(frame(id=1, error={"code": -32002, "message": "gone", "data": {"uri": "a:b"}}))
    call = opened(host, upstream, method="resources/read", asked={"uri": "files+a:b"})
    error = finished(call.handle(missing))["error"]
    assert error["code"] == {Era.LEGACY: -32002, Era.MODERN: -32602}[host]
    assert error["data"] == {"uri": "files+a:b"}


@pytest.mark.parametrize("host", list(Era))
@pytest.mark.parametrize(
    "given",
    [b'{"_meta":{},"_meta":{}}', b'{"resultType":"input_required","inputRequests":{}}', b'{"resultType":"task"}'],
)
def test_an_answer_that_nothing_allows_is_an_error_that_names_the_upstream(host: Era, given: bytes) -> None:
    made = read(b'{"jsonrpc":"2.0","id":1,"result":%s}' % given)
    assert isinstance(made, Frame)
    error = finished(opened(host, Era.MODERN).handle(UpstreamAnswered(made)))["error"]
    assert error["code"] == -32603
    assert error["message"].startswith("upstream files broke the protocol: ")
    assert error["message"].endswith("; the call may have had effects")


@pytest.mark.behaviour("CAP-16-S1")
@pairs
def test_links_to_resources_become_text_for_a_host_that_gets_no_resources(host: Era, upstream: Era) -> None:
    answer = result(content=[{"type": "resource_link", "uri": "a:b", "name": "n"}])
    kept = finished(opened(host, upstream, prefix="p").handle(answer))["result"]["content"][0]
    assert kept["uri"] == "p+a:b"
    inlined = finished(opened(host, upstream, prefix="p", inline_links=True).handle(answer))["result"]["content"][0]
    assert inlined["type"] == "text"
    assert "a:b" in inlined["text"]


QUESTIONS = [
    ("sampling/createMessage", LEGACY, "sampling", "Method not found: sampling/createMessage (sampling not supported)"),
    ("roots/list", OLDEST, "roots", "Method not found: roots/list (roots not supported)"),
    ("elicitation/create", LEGACY, "elicitation", "Method not found: elicitation/create (elicitation not supported)"),
    ("elicitation/create", OLDEST, None, "Unknown method: elicitation/create"),
    ("tasks/get", LEGACY, "tasks", "Method not found: tasks/get (tasks not supported)"),
    ("tools/list", LEGACY, None, "Unknown method: tools/list"),
    ("x", LEGACY, None, "Unknown method: x"),
]


@pytest.mark.behaviour("GEN-B6")
@pytest.mark.parametrize("host", list(Era))
@pytest.mark.parametrize("identity", [3, "3"])
@pytest.mark.parametrize(("method", "revision", "capability", "words"), QUESTIONS)
def test_a_question_that_no_host_can_answer_is_refused_at_once(
    host: Era, identity: Id, method: str, revision: str, capability: str | None, words: str
) -> None:
    exchange = opened(host, revision)
    (command,) = exchange.handle(UpstreamAsked(frame(id=identity, method=method)))
    assert isinstance(command, AnswerUpstream)
    assert command.id == identity
    error: dict[str, Any] = {"code": -32601, "message": words}
    if capability is not None:
        error["data"] = {"capability": capability}
    assert json.loads(command.line) == {"jsonrpc": "2.0", "id": identity, "error": error}
    assert "result" in finished(exchange.handle(result()))


@pytest.mark.parametrize("host", list(Era))
def test_a_ping_of_the_upstream_is_answered(host: Era) -> None:
    (command,) = opened(host, Era.LEGACY).handle(UpstreamAsked(frame(id="p", method="ping")))
    assert isinstance(command, AnswerUpstream)
    assert json.loads(command.line) == {"jsonrpc": "2.0", "id": "p", "result": {}}


@pytest.mark.behaviour("GEN-B6")
@pytest.mark.parametrize("host", list(Era))
def test_a_modern_upstream_that_sends_a_request_gets_no_answer(host: Era) -> None:
    assert opened(host, Era.MODERN).handle(UpstreamAsked(frame(id=1, method="ping"))) == ()


@pairs
def test_what_waits_for_a_host_ends_when_it_is_cancelled_or_lost(host: Era, upstream: Era) -> None:
    for state in (State.ASKING, State.PARKED):
        exchange = opened(host, upstream)
        exchange.move(state)
        assert exchange.handle(HostCancelled("x")) == (CancelUpstream("x"), Finish(None))
    exchange = opened(host, upstream)
    exchange.move(State.ASKING)
    finished(exchange.handle(UpstreamLost(Lost(Cause.BROKEN, "it exited"))))


@pairs
def test_rule_16_while_parked_nothing_reaches_the_host(host: Era, upstream: Era) -> None:
    exchange = opened(host, upstream, token=1, level="debug")
    exchange.move(State.PARKED)
    assert exchange.handle(notified("progress", progressToken=9, progress=1)) == ()
    assert exchange.handle(notified("message", level="error", data="")) == ()
    assert exchange.handle(HostGone()) == ()


def test_every_live_state_ends_by_a_cancel_and_by_a_loss_and_the_last_one_by_nothing() -> None:
    live = [state for state in State if state is not State.DONE]
    assert all((state, event) in TABLE for state in live for event in (HostCancelled, UpstreamLost))
    assert not any(state is State.DONE for state, _ in TABLE)
    assert {event for _, _, event in PAIRS} <= {event for _, event in TABLE}
