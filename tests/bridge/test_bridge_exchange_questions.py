"""Questions in the course of a call as scripts, for every kind of question and every pair of eras."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from bridge_asking import (
    ACCEPTED,
    ANSWERS,
    FILLED,
    FOLDERS,
    FORM,
    FORMS_ONLY,
    ROOTS,
    SAMPLED,
    SAMPLING,
    TOOLS,
    URL,
    asked_of,
    asks,
    called,
    entries_of,
    failed,
    finished,
    frame,
    heard,
    opened,
    plain,
    question_of,
    refused,
    replied,
    requires,
    result,
    retry,
    round_of,
    sent,
    told,
)

from troth.bridge import Cause, Lost
from troth.bridge import asks as rows
from troth.bridge.exchange import TABLE, Exchange, State
from troth.bridge.exchange_model import (
    DEADLINE,
    GATHERING,
    KEEPING,
    MOST_STATE,
    ROUNDS,
    SETTLING,
    AskOthers,
    CancelUpstream,
    Due,
    Finish,
    HostCalled,
    HostCancelled,
    HostGone,
    Note,
    OthersAnswered,
    Park,
    Round,
    SendHost,
    SendUpstream,
    Unask,
    UpstreamAnswered,
    UpstreamAsked,
    UpstreamLost,
    UpstreamNotified,
    WakeMe,
)
from troth.bridge.exchange_rounds import input_required
from troth.bridge.questions import MOST
from troth.bridge.replies import Reply
from troth.register import Era

KINDS = [FORM, URL, SAMPLING, TOOLS, ROOTS]
L, M = Era.LEGACY, Era.MODERN
LOST = UpstreamLost(Lost(Cause.BROKEN, "it exited"))
FORGET = [WakeMe("deadline", None), WakeMe("keep", None)]


def answer(method: str, params: Any) -> Any:
    """A good answer to a question, as the upstream hears it."""
    if params.get("mode") == "url":
        return {"action": "accept"}
    return FILLED if method == FORM[0] else ANSWERS[method]


# legacy host, legacy upstream


@pytest.mark.behaviour("CAP-04-S1", "CAP-06-S1", "CAP-07-S1", "CAP-09-S1")
@pytest.mark.parametrize("question", KINDS)
def test_a_legacy_host_is_asked_on_its_call_and_its_answer_goes_back(question: tuple[str, Any]) -> None:
    exchange = opened(L, L)
    asked, timer = exchange.handle(asks(question, "u"))
    method, params = question
    if "message" in params:
        params = {**params, "message": f"files asks: {params['message']}"}
    assert asked_of(asked) == [("q1", method, params or None)]
    assert timer == WakeMe("question q1", DEADLINE)
    assert exchange.state is State.ASKING
    given = answer(*question) if question is not FORM else ACCEPTED
    forget, back = exchange.handle(replied("q1", given))
    assert forget == WakeMe("question q1", None)
    assert (back.id, heard(back)) == ("u", answer(*question))
    assert exchange.state is State.OPEN
    assert exchange.handle(replied("q1", given)) == ()
    (end,) = exchange.handle(result())
    assert finished(end)["content"] == []


def test_an_error_of_a_legacy_host_goes_back_as_it_is() -> None:
    exchange = opened(L, L)
    exchange.handle(asks(SAMPLING))
    _, back = exchange.handle(failed("q1", -1, "rejected"))
    assert heard(back) == {"code": -1, "message": "rejected"}


def test_an_answer_that_cannot_be_used_is_an_error_to_the_upstream() -> None:
    exchange = opened(L, L)
    exchange.handle(asks(FORM))
    _, back = exchange.handle(replied("q1", {"action": "maybe"}))
    assert heard(back)["code"] == -32603


@pytest.mark.behaviour("CAP-02-B1")
def test_what_is_left_out_of_an_answer_is_said() -> None:
    exchange = opened(L, L)
    exchange.handle(asks(ROOTS))
    _, note, back = exchange.handle(replied("q1", {"roots": [{"uri": "http://a"}]}))
    assert isinstance(note, Note)
    assert (note.key, len(note.notes)) == ("q1", 1)
    assert heard(back) == {"roots": []}


def test_several_questions_are_open_at_once_and_each_has_its_own_end() -> None:
    exchange = opened(L, L, deadline=5.0)
    exchange.handle(asks(FORM, 1))
    _, timer = exchange.handle(asks(SAMPLING, 2))
    assert timer == WakeMe("question q2", 5.0)
    taken, back = exchange.handle(Due("question q1"))
    assert taken == Unask(("q1",), "no answer in time")
    assert (back.id, heard(back)) == (1, {"action": "cancel"})
    assert exchange.state is State.ASKING
    assert exchange.handle(replied("q1", ACCEPTED)) == ()
    assert exchange.handle(Due("question q1")) == ()
    assert exchange.handle(Due("gather")) == ()
    _, back = exchange.handle(replied("q2", SAMPLED))
    assert (back.id, heard(back)) == (2, SAMPLED)
    assert exchange.state is State.OPEN


@pytest.mark.behaviour("CAP-04-C2", "CAP-07-S2")
@pytest.mark.parametrize("question", KINDS)
def test_rule_6_a_legacy_host_that_lets_the_deadline_pass_is_cancel_or_an_error(question: tuple[str, Any]) -> None:
    exchange = opened(L, L)
    exchange.handle(asks(question))
    taken, back = exchange.handle(Due("question q1"))
    assert taken == Unask(("q1",), "no answer in time")
    if question[0] == FORM[0]:
        assert heard(back) == {"action": "cancel"}
    else:
        assert heard(back)["code"] == -32603


@pytest.mark.behaviour("CAP-09-S4")
@pytest.mark.parametrize(
    ("event", "heard_by_upstream"), [(HostCancelled("gone"), True), (result(), True), (LOST, False)]
)
def test_when_the_call_ends_its_open_questions_end_with_it(event: Any, heard_by_upstream: bool) -> None:
    exchange = opened(L, L)
    exchange.handle(asks(URL))
    *commands, last = exchange.handle(event)
    if heard_by_upstream:
        assert heard(commands.pop(0)) == {"action": "cancel"}
    assert commands.pop(0) == Unask(("q1",), "the call is over")
    assert isinstance(last, Finish)
    assert commands == ([CancelUpstream("gone")] if isinstance(event, HostCancelled) else [])
    assert exchange.handle(replied("q1", ACCEPTED)) == ()


@pytest.mark.parametrize("host", [L, M])
def test_a_question_that_the_upstream_takes_back_gets_no_answer(host: Era) -> None:
    exchange = opened(host, L)
    exchange.handle(asks(FORM, "u"))

    def cancelled(**params: Any) -> Any:
        return exchange.handle(UpstreamNotified(frame(method="notifications/cancelled", params=params)))

    assert cancelled(requestId="x") == ()
    assert cancelled(requestId={}) == ()
    commands = cancelled(requestId="u")
    if host is L:
        assert commands == (WakeMe("question q1", None), Unask(("q1",), "the upstream took it back"))
    else:
        assert commands == ()
        assert exchange.handle(Due("gather")) == ()
    assert exchange.state is State.OPEN
    (end,) = exchange.handle(result())
    assert finished(end)["content"] == []
    other = opened(host, L)
    assert other.handle(UpstreamNotified(frame(method="notifications/cancelled", params={"requestId": 1}))) == ()


@pytest.mark.behaviour("CAP-09-S2")
def test_a_completed_visit_is_told_to_the_host_that_was_asked_and_to_no_other() -> None:
    exchange = opened(L, L)

    def complete(identity: Any) -> Any:
        params = {"elicitationId": identity}
        return exchange.handle(UpstreamNotified(frame(method="notifications/elicitation/complete", params=params)))

    assert complete("e1") == ()
    asked, _ = exchange.handle(asks(URL))
    assert asked.questions[0].elicitation == "e1"
    assert complete("e2") == complete(5) == ()
    (line,) = complete("e1")
    assert told(line) == {
        "jsonrpc": "2.0",
        "method": "notifications/elicitation/complete",
        "params": {"elicitationId": "e1"},
    }


@pytest.mark.behaviour("CAP-09-S2")
def test_an_id_is_made_for_a_visit_without_one() -> None:
    made: set[str] = set()
    for mark in ("a", "b"):
        exchange = opened(L, L, mark=mark)
        params = {name: value for name, value in URL[1].items() if name != "elicitationId"}
        for identity in (1, 2):
            asked, _ = exchange.handle(asks((URL[0], params), identity))
            made.add(asked.questions[0].params["elicitationId"])
    assert len(made) == 4
    assert all(len(identity) == 32 for identity in made)


# What nobody answers


@pytest.mark.behaviour("CAP-02-C4", "CAP-06-C1", "CAP-08-C1", "GEN-B6")
@pytest.mark.parametrize("host", [L, M])
@pytest.mark.parametrize(
    ("question", "asks_of", "code"),
    [
        (ROOTS, {rows.FORM}, -32601),
        (SAMPLING, {rows.FORM}, -32601),
        (TOOLS, {rows.SAMPLING}, -32602),
        (FORM, {rows.URL}, -32602),
        (URL, {rows.FORM}, -32602),
        (FORM, {rows.ROOTS}, -32601),
        (("x", {}), {rows.FORM}, -32601),
        (("elicitation/create", {}), {rows.FORM}, -32602),
    ],
)
def test_what_the_host_cannot_be_asked_is_refused_at_once(
    host: Era, question: tuple[str, Any], asks_of: set[str], code: int
) -> None:
    exchange = opened(host, L, asks=frozenset(asks_of))
    (back,) = exchange.handle(asks(question))
    assert heard(back)["code"] == code
    assert exchange.state is State.OPEN


def test_a_ping_is_answered_where_the_host_can_be_asked_too() -> None:
    (back,) = opened(L, L).handle(UpstreamAsked(frame(id=4, method="ping")))
    assert heard(back) == {}


def test_more_questions_at_once_than_anybody_answers_are_refused() -> None:
    exchange = opened(L, L)
    for number in range(MOST):
        exchange.handle(asks(SAMPLING, number))
    (back,) = exchange.handle(asks(SAMPLING, "last"))
    assert "too many" in heard(back)["message"]


@pytest.mark.behaviour("CAP-07-S3")
def test_a_form_that_the_hosts_revision_cannot_say_is_refused() -> None:
    schema = {"type": "object", "properties": {"f": {"type": "array"}}, "required": ["f"]}
    question = ("elicitation/create", {"message": "m", "requestedSchema": schema})
    (back,) = opened(FORMS_ONLY, L).handle(asks(question))
    assert heard(back)["code"] == -32602
    (others, _) = opened(FORMS_ONLY, L, elsewhere=frozenset({rows.FORM})).handle(asks(question))
    assert isinstance(others, AskOthers)
    (again,) = opened(FORMS_ONLY, M).handle(requires({"k": question}))
    assert sent(again)["inputResponses"] == {"k": {"action": "cancel"}}


@pytest.mark.behaviour("CAP-02-S2")
def test_rule_5_a_method_that_cannot_be_parked_asks_no_modern_host() -> None:
    exchange = opened(M, L, method="completion/complete", elsewhere=frozenset({rows.ROOTS}))
    (back,) = exchange.handle(asks(FORM))
    assert heard(back)["code"] == -32601
    others, _ = exchange.handle(asks(ROOTS))
    assert isinstance(others, AskOthers)


# modern host, legacy upstream


def parked(*questions: tuple[str, Any], **changes: Any) -> tuple[Exchange, Park]:
    """A call that waits for its host."""
    exchange = opened(M, L, **changes)
    for number, question in enumerate(questions or (FORM,), 1):
        exchange.handle(asks(question, number))
    park, *timers = exchange.handle(Due("gather"))
    assert isinstance(park, Park)
    assert timers == [WakeMe("deadline", changes.get("deadline", DEADLINE)), WakeMe("keep", KEEPING)]
    assert exchange.state is State.PARKED
    return exchange, park


@pytest.mark.behaviour("CAP-02-S2", "CAP-04-S1", "CAP-07-S4", "CAP-09-S3")
def test_rule_7_questions_are_gathered_into_one_round_and_the_retry_answers_them() -> None:
    exchange = opened(M, L)
    assert exchange.handle(asks(FORM, "a")) == (WakeMe("gather", GATHERING),)
    assert (
        exchange.handle(asks(URL, "b")) == exchange.handle(asks(SAMPLING, "c")) == exchange.handle(asks(ROOTS, 4)) == ()
    )
    park, *_ = exchange.handle(Due("gather"))
    assert entries_of(park) == {
        "q1": {"method": FORM[0], "params": {**FORM[1], "message": "files asks: Who?"}},
        "q2": {"method": URL[0], "params": {"mode": "url", "message": "files asks: Go", "url": "https://a.example"}},
        "q3": {"method": SAMPLING[0], "params": SAMPLING[1]},
        "q4": {"method": ROOTS[0]},
    }
    assert (park.round.number, park.round.state, park.round.answers) == (1, None, {})
    responses = {"q1": ACCEPTED, "q2": {"action": "decline"}, "q3": SAMPLED, "q4": FOLDERS, "q9": 5}
    *forget, one, two, three, four = exchange.handle(retry(1, responses))
    assert forget == FORGET
    assert [(back.id, heard(back)) for back in (one, two, three, four)] == [
        ("a", FILLED),
        ("b", {"action": "decline"}),
        ("c", SAMPLED),
        (4, FOLDERS),
    ]
    (end,) = exchange.handle(result())
    assert json.loads(end.line)["id"] == 8


def test_rule_7_one_retry_of_a_round_wins_and_the_others_hear_that_it_is_used() -> None:
    exchange, _ = parked()
    assert "already used" in refused(exchange.handle(retry(2, {"q1": ACCEPTED})))
    assert "already used" in refused(exchange.handle(retry(0, {"q1": ACCEPTED})))
    assert exchange.state is State.PARKED
    exchange.handle(retry(1, {"q1": ACCEPTED}, identity="first"))
    assert "already used" in refused(exchange.handle(retry(1, {"q1": ACCEPTED}, identity="second")))
    (end,) = exchange.handle(result())
    assert json.loads(end.line)["id"] == "first"


@pytest.mark.parametrize("responses", [5, {"q1": 5}, {"q1": {"action": "maybe"}}, {"q1": {"action": "accept"}}])
def test_a_retry_whose_answers_cannot_be_used_does_not_win(responses: Any) -> None:
    exchange, _ = parked()
    assert "inputResponses" in refused(exchange.handle(retry(1, responses)))
    assert exchange.state is State.PARKED
    *_, back = exchange.handle(retry(1, {"q1": ACCEPTED}))
    assert heard(back) == FILLED


def test_the_check_of_the_shell_lets_the_person_mend_the_form() -> None:
    exchange, _ = parked(check=lambda _schema, content: "name: too short" if b"Ann" in bytes(content) else "")
    assert "name: too short" in refused(exchange.handle(retry(1, {"q1": ACCEPTED})))
    *_, back = exchange.handle(retry(1, {"q1": {"action": "accept", "content": {"name": "Anna-Lena"[4:]}}}))
    assert heard(back)["content"]["name"] == "-Lena"


def test_rule_7_what_a_retry_leaves_out_is_asked_again_with_what_came_meanwhile() -> None:
    exchange, _ = parked(FORM, SAMPLING)
    assert exchange.handle(asks(ROOTS, 3)) == ()
    *forget, back, gather = exchange.handle(retry(1, {"q2": SAMPLED, "q3": FOLDERS}))
    assert (forget, heard(back), gather) == (FORGET, SAMPLED, WakeMe("gather", GATHERING))
    assert exchange.handle(asks(URL, 4)) == ()
    park, *_ = exchange.handle(Due("gather"))
    assert (park.round.number, sorted(park.round.entries)) == (2, ["q1", "q3", "q4"])
    *_, one, two, three = exchange.handle(retry(2, {"q4": {"action": "cancel"}, "q1": ACCEPTED, "q3": FOLDERS}))
    assert [back.id for back in (one, two, three)] == [1, 3, 4]


def test_rule_7_there_are_eight_rounds_and_then_nobody_is_asked() -> None:
    exchange, _ = parked()
    for number in range(1, ROUNDS):
        *_, gather = exchange.handle(retry(number))
        assert gather == WakeMe("gather", GATHERING)
        park, *_ = exchange.handle(Due("gather"))
        assert round_of(park).number == number + 1
    exchange.handle(retry(ROUNDS))
    (back,) = exchange.handle(Due("gather"))
    assert heard(back) == {"action": "cancel"}
    (back,) = exchange.handle(asks(SAMPLING, 2))
    assert "8 rounds" in heard(back)["message"]
    assert exchange.state is State.OPEN


@pytest.mark.behaviour("CAP-04-C2", "CAP-07-S2")
def test_rule_6_a_silent_modern_host_is_answered_for_at_the_deadline() -> None:
    exchange, _ = parked(FORM, SAMPLING, deadline=9.0)
    exchange.handle(asks(ROOTS, 3))
    one, two, three = exchange.handle(Due("deadline"))
    assert [heard(one), heard(two)["code"], heard(three)["code"]] == [{"action": "cancel"}, -32603, -32603]
    assert exchange.handle(Due("deadline")) == ()
    (back,) = exchange.handle(asks(FORM, 4))
    assert heard(back) == {"action": "cancel"}
    assert exchange.state is State.PARKED
    assert exchange.handle(retry(1, {"q1": ACCEPTED}))[: len(FORGET)] == tuple(FORGET)
    assert exchange.handle(asks(FORM, 5)) == (WakeMe("gather", GATHERING),)


@pytest.mark.parametrize("responses", [None, {"q1": ACCEPTED}, {"q1": 5}])
def test_rule_7_a_result_that_comes_while_the_host_is_away_is_kept_for_its_retry(responses: Any) -> None:
    exchange, _ = parked()
    back, forget = exchange.handle(result(more=1))
    assert (heard(back), forget) == ({"action": "cancel"}, WakeMe("deadline", None))
    assert exchange.handle(result()) == exchange.handle(LOST) == ()
    (late,) = exchange.handle(asks(FORM, 2))
    assert heard(late) == {"action": "cancel"}
    *_, end = exchange.handle(retry(1, responses, identity="back"))
    assert finished(end)["more"] == 1
    assert json.loads(end.line)["id"] == "back"


def test_rule_19_a_call_whose_upstream_is_lost_while_it_is_parked_says_so_to_the_retry() -> None:
    exchange, _ = parked()
    assert exchange.handle(LOST) == (WakeMe("deadline", None),)
    *_, end = exchange.handle(retry(1))
    assert "upstream session lost" in finished(end)["message"]


@pytest.mark.parametrize(("event", "reason"), [(Due("keep"), "the host did not come again"), (HostCancelled("x"), "x")])
@pytest.mark.parametrize("kept", [True, False])
def test_a_host_that_never_comes_again_is_cleaned_up_and_the_upstream_told(event: Any, reason: str, kept: bool) -> None:
    exchange, _ = parked()
    if kept:
        exchange.handle(result())
        assert exchange.handle(event) == (Finish(None),)
    else:
        back, *rest = exchange.handle(event)
        assert heard(back) == {"action": "cancel"}
        assert rest == [CancelUpstream(reason), Finish(None)]
    assert exchange.handle(retry(1)) == ()


def test_rule_7_a_retry_that_disconnects_cancels_and_never_parks_again() -> None:
    exchange, _ = parked(FORM, SAMPLING)
    assert exchange.handle(HostGone()) == ()
    exchange.handle(retry(1, {"q1": ACCEPTED}))
    back, *rest = exchange.handle(HostGone())
    assert heard(back)["code"] == -32603
    assert rest == [CancelUpstream("the host disconnected"), Finish(None)]
    assert exchange.handle(Due("gather")) == ()


@pytest.mark.parametrize("token", [None, "new"])
def test_rule_16_a_retry_has_its_own_progress_token_and_level_or_none(token: Any) -> None:
    exchange = opened(M, L, asked={"_meta": {"progressToken": "old"}}, level="debug")

    def progress(value: int) -> list[Any]:
        params = {"progressToken": 1, "progress": value}
        commands = exchange.handle(UpstreamNotified(frame(method="notifications/progress", params=params)))
        return [told(command)["params"]["progressToken"] for command in commands]

    def logs() -> int:
        message = frame(method="notifications/message", params={"level": "info", "data": ""})
        return len(exchange.handle(UpstreamNotified(message)))

    exchange.handle(asks(FORM))
    assert (progress(5), logs()) == (["old"], 1)
    exchange.handle(Due("gather"))
    assert (progress(6), logs()) == ([], 0)
    exchange.handle(retry(1, {"q1": ACCEPTED}, token=token))
    assert (progress(1), logs()) == ([] if token is None else ["new"], 0)


def test_a_question_taken_back_while_the_call_is_parked_is_forgotten() -> None:
    exchange, _ = parked(FORM, SAMPLING)
    assert exchange.handle(UpstreamNotified(frame(method="notifications/cancelled", params={"requestId": 1}))) == ()
    *_, back = exchange.handle(retry(1, {"q1": ACCEPTED, "q2": SAMPLED}))
    assert back.id == 2


def test_a_host_that_comes_again_with_less_is_asked_less() -> None:
    exchange, _ = parked(FORM, SAMPLING, elsewhere=frozenset({rows.FORM}))
    *_, others, timer, back = exchange.handle(retry(1, {}, asks=frozenset({rows.ROOTS})))
    assert isinstance(others, AskOthers)
    assert timer == WakeMe("question q1", DEADLINE)
    assert heard(back)["code"] == -32601
    (refusal,) = exchange.handle(asks(SAMPLING, 5))
    assert heard(refusal)["code"] == -32601


def test_the_answer_of_a_parked_call_carries_the_questions_and_our_state() -> None:
    _, park = parked(ROOTS)
    assert json.loads(input_required(3, park.round, "sealed")) == {
        "jsonrpc": "2.0",
        "id": 3,
        "result": {
            "resultType": "input_required",
            "inputRequests": {"q1": {"method": "roots/list"}},
            "requestState": "sealed",
        },
    }
    none = Round(entries={}, number=1)
    assert json.loads(input_required(3, none, "s"))["result"] == {"resultType": "input_required", "requestState": "s"}


# Others answer


@pytest.mark.behaviour("CAP-02-C1", "CAP-07-S2")
@pytest.mark.parametrize("host", [L, M])
def test_what_the_host_cannot_answer_others_do(host: Era) -> None:
    exchange = opened(host, L, asks=frozenset({rows.FORM}), elsewhere=frozenset({rows.FORM, rows.ROOTS}))
    others, timer = exchange.handle(asks(ROOTS, "u"))
    assert isinstance(others, AskOthers)
    assert [one.key for one in others.questions] == ["q1"]
    assert timer == WakeMe("question q1", DEADLINE)
    assert exchange.state is State.OPEN
    exchange.handle(asks(FORM, "v"))
    assert exchange.handle(OthersAnswered("q2", Reply(result={}))) == ()
    assert exchange.handle(replied("q1", {"roots": [{"uri": "file:///host"}]})) == ()
    forget, back = exchange.handle(OthersAnswered("q1", Reply(result=FOLDERS)))
    assert (forget, heard(back)) == (WakeMe("question q1", None), FOLDERS)
    assert exchange.handle(OthersAnswered("q1", Reply(result=FOLDERS))) == ()


def test_others_answer_while_the_call_is_parked_and_have_deadlines_of_their_own() -> None:
    exchange = opened(M, L, asks=frozenset({rows.FORM}), elsewhere=frozenset({rows.ROOTS, rows.SAMPLING}))
    exchange.handle(asks(ROOTS, 1))
    exchange.handle(asks(SAMPLING, 2))
    exchange.handle(asks(FORM, 3))
    park, *_ = exchange.handle(Due("gather"))
    assert list(park.round.entries) == ["q3"]
    assert exchange.handle(Due("question q3")) == ()
    _, back = exchange.handle(OthersAnswered("q1", Reply(result=FOLDERS)))
    assert heard(back) == FOLDERS
    taken, back = exchange.handle(Due("question q2"))
    assert (taken, heard(back)["code"]) == (Unask(("q2",), "no answer in time"), -32603)
    exchange.handle(asks(ROOTS, 4))
    one, two, taken, *rest = exchange.handle(Due("keep"))
    assert [one.id, two.id] == [3, 4]
    assert taken == Unask(("q4",), "the call is over")
    assert isinstance(rest[-1], Finish)


# legacy host, modern upstream


@pytest.mark.behaviour("CAP-02-C3")
def test_each_input_request_becomes_a_request_to_a_legacy_host_and_the_answers_go_back_with_the_state() -> None:
    exchange = opened(L, M, level="error")
    visit = (URL[0], {name: value for name, value in URL[1].items() if name != "elicitationId"})
    asked, *timers = exchange.handle(requires({"a": FORM, "b": visit, "c": TOOLS, "d": ROOTS}, "St\u2028ate\n"))
    assert [(key, method) for key, method, _ in asked_of(asked)] == [
        ("a", FORM[0]),
        ("b", URL[0]),
        ("c", TOOLS[0]),
        ("d", ROOTS[0]),
    ]
    assert timers == [WakeMe(f"question {key}", DEADLINE) for key in "abcd"]
    made = asked.questions[1].elicitation
    assert asked_of(asked)[1][2]["elicitationId"] == made
    assert exchange.state is State.ASKING
    given = {"a": ACCEPTED, "b": {"action": "accept"}, "c": SAMPLED}
    for key, value in given.items():
        assert exchange.handle(replied(key, value)) == (WakeMe(f"question {key}", None),)
    _, again = exchange.handle(replied("d", FOLDERS))
    assert sent(again) == {
        "name": "t",
        "arguments": {"a": 1},
        "inputResponses": {"a": FILLED, "b": {"action": "accept"}, "c": SAMPLED, "d": FOLDERS},
        "requestState": "St\u2028ate\n",
    }
    assert again.outgoing.level == "error"
    complete, end = exchange.handle(result())
    assert told(complete)["params"] == {"elicitationId": made}
    assert finished(end)["content"] == []


def test_rule_6_an_error_of_a_legacy_host_ends_the_call_of_a_modern_upstream_with_it() -> None:
    exchange = opened(L, M)
    exchange.handle(requires({"a": SAMPLING, "b": FORM}))
    forget, taken, end = exchange.handle(failed("a", -1, "rejected"))
    assert (forget, taken) == (WakeMe("question a", None), Unask(("b",), "the call is over"))
    assert finished(end) == {"code": -1, "message": "rejected"}


def test_at_the_deadline_a_modern_upstream_hears_cancel_or_the_call_fails() -> None:
    exchange = opened(L, M)
    exchange.handle(requires({"a": FORM}))
    _, again = exchange.handle(Due("question a"))
    assert sent(again)["inputResponses"] == {"a": {"action": "cancel"}}
    exchange.handle(requires({"a": SAMPLING}))
    _, end = exchange.handle(Due("question a"))
    assert finished(end)["code"] == -32603


@pytest.mark.parametrize("event", [HostCancelled("x"), LOST])
def test_a_call_that_ends_while_a_legacy_host_is_asked_cancels_nothing_upstream(event: Any) -> None:
    exchange = opened(L, M)
    exchange.handle(requires({"a": FORM}))
    assert exchange.handle(HostGone()) == ()
    taken, end = exchange.handle(event)
    assert taken == Unask(("a",), "the call is over")
    assert isinstance(end, Finish)


@pytest.mark.parametrize("host", [L, M])
def test_a_state_without_questions_goes_back_at_once(host: Era) -> None:
    exchange = opened(host, M, asks=frozenset())
    (again,) = exchange.handle(requires({}))
    assert sent(again) == {"name": "t", "arguments": {"a": 1}, "requestState": "S"}
    for _ in range(ROUNDS - 1):
        (again,) = exchange.handle(requires({}))
    (end,) = exchange.handle(requires({}))
    assert "8 rounds" in finished(end)["message"]


def test_answers_go_back_without_a_state_where_there_was_none() -> None:
    exchange = opened(L, M)
    exchange.handle(requires({"a": ROOTS}, None))
    _, again = exchange.handle(replied("a", FOLDERS))
    assert sent(again) == {"name": "t", "arguments": {"a": 1}, "inputResponses": {"a": FOLDERS}}


@pytest.mark.parametrize(
    ("host", "upstream", "changes", "passes"),
    [
        (M, M, {}, True),
        (M, L, {}, False),
        (L, M, {}, False),
        (M, M, {"asks": frozenset()}, False),
        (M, M, {"elsewhere": frozenset({rows.ROOTS})}, False),
        (M, M, {"method": "completion/complete"}, False),
    ],
)
def test_answers_that_nobody_asked_for_pass_between_modern_peers_only(
    host: Era, upstream: Era, changes: Any, passes: bool
) -> None:
    exchange = Exchange(called(host, upstream, asked={"inputResponses": {"a": ACCEPTED, "b": 1}}, **changes))
    (command,) = exchange.handle(HostCalled())
    assert isinstance(command, SendUpstream)
    assert sent(command).get("inputResponses") == ({"a": ACCEPTED, "b": 1} if passes else None)


def test_answers_that_nobody_asked_for_and_cannot_be_read_are_refused() -> None:
    exchange = Exchange(called(M, M, asked={"inputResponses": 5}))
    (end,) = exchange.handle(HostCalled())
    assert finished(end)["code"] == -32602


@pytest.mark.parametrize("host", [L, M])
@pytest.mark.parametrize(
    ("event", "changes"),
    [
        (requires({}, None), {}),
        (requires({"a": FORM}, "x" * (MOST_STATE + 1)), {}),
        (requires({"a": FORM}, 5), {}),
        (requires({"a": ("x", {})}), {}),
        (requires({"a": (FORM[0], {})}), {}),
        (requires({"a": FORM}), {"method": "completion/complete"}),
        (requires({"a": FORM}), {"asks": frozenset({rows.URL})}),
        (requires({"a": SAMPLING}), {"asks": frozenset()}),
        (UpstreamAnswered(frame(id=1, result={"resultType": "task"})), {}),
    ],
)
def test_a_modern_upstream_that_asks_what_it_must_not_ends_the_call(host: Era, event: Any, changes: Any) -> None:
    (end,) = opened(host, M, **changes).handle(event)
    error = finished(end)
    assert error["code"] == -32603
    assert error["message"].startswith("upstream files broke the protocol: ")


def test_a_state_alone_cannot_be_asked_for_by_a_method_without_rounds() -> None:
    (end,) = opened(L, M, method="completion/complete").handle(requires({}))
    assert "broke the protocol" in finished(end)["message"]


def test_a_round_with_several_audiences_is_split() -> None:
    exchange = opened(L, M, asks=frozenset({rows.FORM}), elsewhere=frozenset({rows.ROOTS}))
    asked, timer, others, other = exchange.handle(requires({"a": FORM, "b": ROOTS}))
    assert asked_of(asked)[0][0] == "a"
    assert isinstance(others, AskOthers)
    assert [timer, other] == [WakeMe("question a", DEADLINE), WakeMe("question b", DEADLINE)]
    assert exchange.handle(OthersAnswered("b", Reply(result=FOLDERS))) == (WakeMe("question b", None),)
    _, again = exchange.handle(replied("a", ACCEPTED))
    assert sent(again)["inputResponses"] == {"a": FILLED, "b": FOLDERS}


# modern host, modern upstream


@pytest.mark.behaviour("CAP-07-S4")
def test_a_round_of_a_modern_upstream_passes_to_a_modern_host_with_nothing_left_behind() -> None:
    exchange = opened(M, M)
    (end,) = exchange.handle(requires({"a": FORM, "b": ROOTS}))
    asked = round_of(end)
    assert (asked.number, asked.state, asked.answers, asked.reissue) == (1, "S", {}, False)
    assert entries_of(end) == {
        "a": {"method": FORM[0], "params": {**FORM[1], "message": "files asks: Who?"}},
        "b": {"method": ROOTS[0]},
    }
    assert exchange.done
    sealed = msgspec.json.decode(msgspec.json.encode(asked), type=Round)
    responses = {"a": ACCEPTED, "b": {"roots": [{"uri": "http://x"}, {"uri": "file:///a"}]}, "z": 1}
    again = Exchange(called(M, M, asked={"inputResponses": responses, "requestState": "sealed"}, resume=sealed))
    (command,) = again.handle(HostCalled())
    assert sent(command) == {
        "name": "t",
        "arguments": {"a": 1},
        "inputResponses": {"a": FILLED, "b": FOLDERS},
        "requestState": "S",
    }
    (end,) = again.handle(requires({"c": FORM}, "S2"))
    assert (round_of(end).number, round_of(end).state) == (2, "S2")


def test_a_modern_pair_has_eight_rounds() -> None:
    resume = Round(entries={}, number=ROUNDS, state="S")
    exchange = Exchange(called(M, M, resume=resume))
    (command,) = exchange.handle(HostCalled())
    assert sent(command) == {"name": "t", "arguments": {"a": 1}, "requestState": "S"}
    (end,) = exchange.handle(requires({"a": FORM}))
    assert "8 rounds" in finished(end)["message"]


@pytest.mark.parametrize("responses", [5, {"a": {"action": "maybe"}}])
def test_answers_that_cannot_be_used_do_not_reach_a_modern_upstream(responses: Any) -> None:
    (end,) = opened(M, M).handle(requires({"a": FORM}))
    exchange = Exchange(called(M, M, asked={"inputResponses": responses}, resume=round_of(end)))
    (refusal,) = exchange.handle(HostCalled())
    assert finished(refusal)["code"] == -32602


def test_what_others_answered_waits_in_the_round() -> None:
    exchange = opened(M, M, asks=frozenset({rows.FORM}), elsewhere=frozenset({rows.ROOTS, rows.SAMPLING}))
    others, *timers = exchange.handle(requires({"a": FORM, "b": ROOTS, "c": SAMPLING}))
    assert isinstance(others, AskOthers)
    assert len(timers) == 2
    assert exchange.state is State.ASKING
    assert "already used" in refused(exchange.handle(retry(1)))
    assert exchange.handle(replied("a", ACCEPTED)) == ()
    assert exchange.handle(OthersAnswered("b", Reply(result=FOLDERS))) == (WakeMe("question b", None),)
    _, end = exchange.handle(OthersAnswered("c", Reply(result=SAMPLED)))
    assert list(round_of(end).entries) == ["a"]
    assert plain(round_of(end).answers) == {"b": FOLDERS, "c": SAMPLED}
    again = Exchange(called(M, M, asked={"inputResponses": {"a": ACCEPTED}}, resume=round_of(end)))
    (command,) = again.handle(HostCalled())
    assert sent(command)["inputResponses"] == {"a": FILLED, "b": FOLDERS, "c": SAMPLED}


def test_a_round_that_others_answer_alone_never_reaches_the_host() -> None:
    exchange = opened(M, M, asks=frozenset(), elsewhere=frozenset({rows.ROOTS, rows.SAMPLING}))
    exchange.handle(requires({"a": ROOTS}))
    _, again = exchange.handle(OthersAnswered("a", Reply(result=FOLDERS)))
    assert sent(again)["inputResponses"] == {"a": FOLDERS}
    exchange.handle(requires({"a": ROOTS, "b": SAMPLING}))
    taken, end = exchange.handle(HostGone())
    assert (taken, end) == (Unask(("a", "b"), "the call is over"), Finish(None))


# Visits that a legacy upstream requires before it does anything


def required(*visits: Any) -> UpstreamAnswered:
    error = {"code": -32042, "message": "Go there first", "data": {"elicitations": visits, "more": 1}}
    return UpstreamAnswered(frame(id=1, error=error))


@pytest.mark.behaviour("CAP-09-B1")
def test_rule_20_a_required_visit_becomes_a_round_and_its_retry_the_one_permitted_second_run() -> None:
    (end,) = opened(M, L).handle(required(URL[1]))
    asked = round_of(end)
    assert (asked.number, asked.reissue, asked.state) == (1, True, None)
    entry = {"method": URL[0], "params": {"mode": "url", "message": "files asks: Go", "url": "https://a.example"}}
    assert entries_of(end) == {"url1": entry}
    accepted = {"inputResponses": {"url1": {"action": "accept"}}, "requestState": "sealed"}
    again = Exchange(called(M, L, asked=accepted, resume=asked))
    (command,) = again.handle(HostCalled())
    assert sent(command) == {"name": "t", "arguments": {"a": 1}}
    (end,) = again.handle(required(URL[1]))
    assert finished(end) == {"code": -32603, "message": "Go there first"}
    for responses in ({}, {"url1": {"action": "decline"}}):
        refused_visit = Exchange(called(M, L, asked={"inputResponses": responses}, resume=asked))
        (end,) = refused_visit.handle(HostCalled())
        assert "not accepted" in finished(end)["message"]


@pytest.mark.behaviour("CAP-09-B1")
def test_rule_20_a_host_that_knows_the_error_gets_it_with_the_upstreams_name() -> None:
    exchange = opened(L, L)
    (end,) = exchange.handle(required(URL[1]))
    assert finished(end) == {
        "code": -32042,
        "message": "Go there first",
        "data": {"elicitations": [{**URL[1], "message": "files asks: Go"}], "more": 1},
    }


@pytest.mark.behaviour("CAP-09-B1", "CAP-09-S1")
@pytest.mark.parametrize("host", [L, M, FORMS_ONLY])
@pytest.mark.parametrize(
    ("event", "changes"),
    [
        (required(URL[1]), {"asks": frozenset({rows.FORM})}),
        (required({**URL[1], "url": "javascript:x"}), {}),
        (required(), {}),
    ],
)
def test_for_all_others_a_required_visit_is_a_plain_error(host: Era, event: Any, changes: Any) -> None:
    (end,) = opened(host, L, **changes).handle(event)
    assert finished(end) == {"code": -32603, "message": "Go there first"}


def test_a_required_visit_that_the_hosts_revision_cannot_say_is_a_plain_error() -> None:
    (end,) = opened(FORMS_ONLY, L, asks=frozenset({rows.URL})).handle(required(URL[1]))
    assert finished(end) == {"code": -32603, "message": "Go there first"}


# The table


def test_every_state_that_waits_hears_its_answers_its_timers_and_its_end() -> None:
    for state in (State.OPEN, State.ASKING, State.PARKED):
        assert {HostCancelled, UpstreamLost, OthersAnswered, Due} <= {event for at, event in TABLE if at is state}
    assert (State.PARKED, HostGone) not in TABLE


def before(*questions: tuple[str, Any], **changes: Any) -> tuple[Exchange, tuple[Any, ...]]:
    """A call of a modern host for which questions of a legacy upstream wait, and what follows from it."""
    waiting = tuple(question_of(question, f"w{number}") for number, question in enumerate(questions, 1))
    exchange = Exchange(called(M, L, waiting=waiting, **changes))
    return exchange, exchange.handle(HostCalled())


def is_sent(exchange: Exchange, settle: Any) -> bool:
    """Whether a call that was held back is sent after a moment, and once."""
    assert settle == WakeMe("settle", SETTLING)
    (send,) = exchange.handle(Due("settle"))
    assert exchange.handle(Due("settle")) == ()
    return isinstance(send, SendUpstream)


def taken_back(identity: str) -> UpstreamNotified:
    return UpstreamNotified(frame(method="notifications/cancelled", params={"requestId": identity}))


def test_rule_5_the_first_round_of_a_call_carries_what_was_asked_outside_of_calls_and_then_it_is_sent() -> None:
    exchange, (gather,) = before(ROOTS)
    assert gather == WakeMe("gather", GATHERING)
    park, *timers = exchange.handle(Due("gather"))
    assert (park.round.number, park.round.entries) == (1, {"q1": {"method": "roots/list"}})
    assert timers == [WakeMe("deadline", DEADLINE), WakeMe("keep", KEEPING)]
    *forgotten, back, settle = exchange.handle(retry(1, {"q1": FOLDERS}))
    assert forgotten == [WakeMe("deadline", None), WakeMe("keep", None)]
    assert (back.id, heard(back)) == ("w1", FOLDERS)
    assert settle == WakeMe("settle", SETTLING)
    (send,) = exchange.handle(Due("settle"))
    assert sent(send) == {"name": "t", "arguments": {"a": 1}}
    (end,) = exchange.handle(result())
    assert finished(end)["content"] == []


def test_rule_5_a_host_that_leaves_roots_out_is_asked_again_and_the_call_waits_for_them() -> None:
    exchange, _ = before(ROOTS)
    for number in range(1, ROUNDS + 1):
        exchange.handle(Due("gather"))
        assert exchange.handle(retry(number, {}))[-1] == WakeMe("gather", GATHERING)
    back, settle = exchange.handle(Due("gather"))
    assert heard(back)["code"] == -32603
    assert is_sent(exchange, settle)


def test_rule_5_a_host_that_comes_late_has_its_call_sent_without_roots() -> None:
    exchange, _ = before(ROOTS)
    exchange.handle(Due("gather"))
    (back,) = exchange.handle(Due("deadline"))
    assert (back.id, heard(back)["code"]) == ("w1", -32603)
    assert is_sent(exchange, exchange.handle(retry(1, {"q1": FOLDERS}))[-1])


@pytest.mark.parametrize("changes", [{"asks": frozenset()}, {"asks": frozenset(), "elsewhere": frozenset()}])
def test_a_call_whose_host_cannot_be_asked_what_waits_is_sent(changes: Any) -> None:
    exchange, (back, settle) = before(ROOTS, **changes)
    assert heard(back)["code"] == -32601
    assert is_sent(exchange, settle)
    assert exchange.handle(Due("gather")) == ()


def test_what_waits_and_others_answer_holds_a_call_back_until_they_did() -> None:
    exchange, (given, timer) = before(ROOTS, asks=frozenset(), elsewhere=frozenset({rows.ROOTS}))
    assert isinstance(given, AskOthers)
    assert timer == WakeMe("question q1", DEADLINE)
    _, back, settle = exchange.handle(OthersAnswered("q1", Reply(result=FOLDERS)))
    assert heard(back) == FOLDERS
    assert is_sent(exchange, settle)


def test_a_call_is_sent_when_what_it_was_held_back_for_is_taken_back() -> None:
    exchange, _ = before(ROOTS)
    (settle,) = exchange.handle(taken_back("w1"))
    assert is_sent(exchange, settle)
    assert exchange.handle(Due("gather")) == ()


def test_a_call_is_sent_when_others_need_not_answer_any_more_what_it_was_held_back_for() -> None:
    exchange, _ = before(ROOTS, asks=frozenset(), elsewhere=frozenset({rows.ROOTS}))
    forget, unask, settle = exchange.handle(taken_back("w1"))
    assert (forget, unask) == (WakeMe("question q1", None), Unask(("q1",), "the upstream took it back"))
    assert is_sent(exchange, settle)


def test_a_call_whose_host_is_away_is_not_sent_when_its_question_is_taken_back() -> None:
    exchange, _ = before(ROOTS)
    exchange.handle(Due("gather"))
    assert exchange.handle(taken_back("w1")) == ()
    assert is_sent(exchange, exchange.handle(retry(1, {}))[-1])


@pytest.mark.parametrize("event", [HostCancelled("x"), HostGone(), Due("keep")])
def test_a_call_that_ends_before_it_is_sent_leaves_no_question_open_and_cancels_nothing(event: Any) -> None:
    exchange, _ = before(ROOTS)
    if isinstance(event, Due):
        exchange.handle(Due("gather"))
    back, end = exchange.handle(event)
    assert (back.id, heard(back)["code"]) == ("w1", -32603)
    assert isinstance(end, Finish)


@pytest.mark.parametrize("host", [L, M])
def test_rule_5_roots_that_nobody_told_before_a_call_ended_are_still_waited_for(host: Era) -> None:
    exchange = opened(host, L, leaves=True)
    exchange.handle(asks(ROOTS, "r"))
    exchange.handle(asks(FORM, "f"))
    back, *taken, left, end = exchange.handle(result())
    assert (back.id, heard(back)) == ("f", {"action": "cancel"})
    assert taken == ([Unask(("q1", "q2"), "the call is over")] if host is L else [])
    assert (left.question.id, left.question.method) == ("r", "roots/list")
    assert isinstance(end, Finish)


def test_rule_5_roots_that_a_call_was_held_back_for_outlive_it() -> None:
    exchange, _ = before(ROOTS, leaves=True)
    left, end = exchange.handle(HostGone())
    assert left.question.id == "w1"
    assert isinstance(end, Finish)


@pytest.mark.parametrize(("host", "upstream"), [(host, upstream) for host in Era for upstream in Era])
def test_without_anybody_to_ask_nothing_is_asked_and_nothing_is_parked(host: Era, upstream: Era) -> None:
    exchange = opened(host, upstream, asks=frozenset())
    commands = exchange.handle(asks(FORM)) if upstream is L else exchange.handle(requires({"a": FORM}))
    assert not any(isinstance(command, (AskOthers, Park, SendHost, SendUpstream, WakeMe)) for command in commands)
    assert exchange.state in (State.OPEN, State.DONE)
