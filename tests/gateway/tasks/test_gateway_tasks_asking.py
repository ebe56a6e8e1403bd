"""Tasks that need input, in front of hosts that know no tasks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from middle_gateway import MODERN
from middle_site import OLD, until
from task_hosts import DONE, Work, tasked

pytestmark = pytest.mark.anyio

FORM = {"elicitation": {"form": {}}}
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
QUESTION = {"method": "elicitation/create", "params": {"mode": "form", "message": "Who?", "requestedSchema": SCHEMA}}
ACCEPTED = {"action": "accept", "content": {"name": "Ada"}}


def asks(work: Work) -> list[dict[str, Any]]:
    """The work waits for input until that comes; what comes."""
    found: list[dict[str, Any]] = []
    work.status, work.more = "input_required", {"inputRequests": {"who": QUESTION}}

    def update(_script: object, call: Any) -> dict[str, Any]:
        found.append(call.params["inputResponses"])
        work.status, work.more = "completed", {}
        return {"resultType": "complete"}

    work.one.answers["tasks/update"] = update
    return found


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
