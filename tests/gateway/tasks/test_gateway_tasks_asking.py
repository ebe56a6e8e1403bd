"""Tasks that need input, in front of hosts that know no tasks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from middle_gateway import MODERN
from middle_site import OLD, until
from task_hosts import ACCEPTED, DONE, KNOWS, QUESTION, Work, asks, begin, ended, knowing, tasked

if TYPE_CHECKING:
    from middle_gateway import Legacy, Served, Told

pytestmark = pytest.mark.anyio

FORM = {"elicitation": {"form": {}}}


@pytest.mark.behaviour("CAP-26-C1")
async def test_questions_of_a_task_go_to_the_modern_host_of_its_call_and_answers_to_the_task() -> None:
    async with tasked(MODERN) as (one, served), served.modern(declares=FORM) as asking:
        found = asks(Work(one))
        round_ = (await asking.call("slow")).result
        assert round_["resultType"] == "input_required"
        assert round_["inputRequests"]["who"]["method"] == "elicitation/create"
        params = {"name": "slow", "arguments": {}, "requestState": round_["requestState"]}
        told = await asking.ask("tools/call", {**params, "inputResponses": {"who": ACCEPTED}})
        assert told.result["content"] == DONE
        assert found == [{"who": ACCEPTED}]
        assert one.count("tools/call") == 1
        declared = one.of("tasks/update")[0]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
        assert set(declared) == {"elicitation", "extensions"}


async def test_questions_of_a_task_go_to_the_legacy_host_of_its_call() -> None:
    async with tasked(MODERN) as (one, served), served.legacy(OLD, declares=FORM) as asking:
        found = asks(Work(one))
        inbox = await asking.listen()
        call = asyncio.get_running_loop().create_task(asking.call("slow"))
        session = next(iter(served.front.sessions))
        await until(lambda: session.questions)
        (number,) = session.questions
        await asking.post({"jsonrpc": "2.0", "id": number, "result": ACCEPTED})
        told = await call
        assert told.result["content"] == DONE
        assert [message["method"] for message in told.before] == ["elicitation/create"]
        assert "elicitation/create" not in inbox.methods()
        assert found == [{"who": ACCEPTED}]


async def test_a_task_that_asks_what_nobody_declared_ends_its_call_at_once() -> None:
    async with tasked(MODERN) as (one, served), served.modern() as asking:
        asks(Work(one))
        assert "not declared" in (await asking.call("slow")).error["message"]


# Of hosts that know tasks


async def answering(served: Served, asking: Legacy, name: str) -> Told:
    """Waits for the result of a task that asks, and answers its question."""
    await ended(asking, name, lambda task: task["status"] == "input_required")
    result = asyncio.get_running_loop().create_task(asking.ask("tasks/result", {"taskId": name}))
    session = await until(lambda: next((one for one in served.front.sessions if one.questions), None))
    (number,) = session.questions
    await asking.post({"jsonrpc": "2.0", "id": number, "result": ACCEPTED})
    return await result


BOTH = {**KNOWS, **FORM}


async def test_questions_of_a_task_are_those_of_the_hosts_task_and_answered_by_update() -> None:
    async with tasked(MODERN) as (one, served), knowing(served, MODERN, declares=BOTH) as asking:
        work = Work(one)
        name = await begin(asking)
        found = asks(work)
        told = await ended(asking, name, lambda task: task["status"] == "input_required")
        ((key, entry),) = told.result["inputRequests"].items()
        assert entry["method"] == "elicitation/create"
        update = {"taskId": name, "inputResponses": {key: ACCEPTED}}
        assert (await asking.ask("tasks/update", update)).result == {"resultType": "complete"}
        assert (await ended(asking, name)).result["result"]["content"] == DONE
        assert found == [{"who": ACCEPTED}]
        assert one.count("tools/call") == 1


@pytest.mark.parametrize("support", ["required", "optional"])
@pytest.mark.parametrize(
    "response",
    [*({}, 5, None, {"action": "maybe"}, {"action": "accept"}), {"action": "accept", "content": {"name": 5}}],
)
async def test_an_answer_of_no_use_is_refused_and_the_task_waits_for_a_proper_one(
    response: object, support: str
) -> None:
    async with tasked(MODERN, support) as (one, served), knowing(served, MODERN, declares=BOTH) as asking:
        work = Work(one)
        name = await begin(asking)
        found = asks(work)
        told = await ended(asking, name, lambda task: task["status"] == "input_required")
        (key,) = told.result["inputRequests"]
        update = {"taskId": name, "inputResponses": {key: response}}
        assert (await asking.ask("tasks/update", update)).error["code"] == -32602
        again = await asking.ask("tasks/get", {"taskId": name})
        assert again.result["inputRequests"] == told.result["inputRequests"]
        await asking.ask("tasks/update", {"taskId": name, "inputResponses": {key: ACCEPTED}})
        assert (await ended(asking, name)).result["result"]["content"] == DONE
        assert found == [{"who": ACCEPTED}]


async def test_a_call_that_asks_before_it_is_a_task_asks_its_host() -> None:
    async with tasked(MODERN) as (one, served), knowing(served, MODERN, declares=BOTH) as asking:
        first: list[Any] = []

        def ask(_script: object, call: Any) -> Any:
            first.append(call)
            asked = {"resultType": "input_required", "inputRequests": {"who": QUESTION}, "requestState": "theirs"}
            return asked if len(first) == 1 else None

        one.answers["tools/call"] = ask
        round_ = (await asking.call("slow")).result
        assert round_["resultType"] == "input_required"
        params = {"name": "slow", "arguments": {}, "requestState": round_["requestState"]}
        told = await asking.ask("tools/call", {**params, "inputResponses": {"who": ACCEPTED}})
        assert told.result["resultType"] == "task"
        assert first[1].params["requestState"] == "theirs"
        assert (await ended(asking, told.result["taskId"])).result["result"]["content"] == DONE


async def test_another_request_of_the_principal_that_cannot_be_asked_is_shown_no_question() -> None:
    async with (
        tasked(MODERN) as (one, served),
        knowing(served, MODERN, declares=BOTH) as asking,
        knowing(served, MODERN) as other,
    ):
        work = Work(one)
        name = await begin(asking)
        asks(work)
        told = await ended(asking, name, lambda task: task["status"] == "input_required")
        assert told.result["inputRequests"]
        assert (await other.ask("tasks/get", {"taskId": name})).result["inputRequests"] == {}
        await asking.ask("tasks/cancel", {"taskId": name})


async def test_questions_of_a_core_hosts_task_come_on_the_stream_of_tasks_result() -> None:
    async with tasked(MODERN) as (one, served), served.legacy(OLD, declares=FORM) as asking:
        found = asks(Work(one))
        name = await begin(asking)
        told = await answering(served, asking, name)
        assert told.result["content"] == DONE
        assert found == [{"who": ACCEPTED}]
        questions = [message for message in told.before if "id" in message]
        assert [question["method"] for question in questions] == ["elicitation/create"]
        assert questions[0]["params"]["_meta"] == {"io.modelcontextprotocol/related-task": {"taskId": name}}


async def test_a_session_that_cannot_be_asked_is_not_asked_when_it_waits_for_the_result() -> None:
    async with (
        tasked(MODERN) as (one, served),
        served.legacy(OLD, declares=FORM) as asking,
        served.legacy(OLD) as other,
    ):
        asks(Work(one))
        name = await begin(asking)
        await ended(asking, name, lambda task: task["status"] == "input_required")
        waiting = asyncio.get_running_loop().create_task(other.ask("tasks/result", {"taskId": name}))
        await until(lambda: any(session.running for session in served.front.sessions))
        assert (await answering(served, asking, name)).result["content"] == DONE
        assert [message for message in (await waiting).before if "id" in message] == []
