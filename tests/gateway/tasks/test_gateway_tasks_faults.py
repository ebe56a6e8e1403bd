"""Tasks when something fails: upstreams that lose or damage them, hosts that go, a store that cannot be used."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from middle_gateway import CALM, MODERN, PATIENCE, serving
from middle_site import OLD, until
from task_hosts import ACCEPTED, DONE, KNOWS, Work, asks, begin, ended, knowing, tasked

from troth.bridge import Frame, read, request_line
from troth.gateway.limits import Limits
from troth.gateway.model import UnavailableError
from troth.gateway.settings import EraChoice, Transport, UpstreamSettings
from troth.gateway.tasks import Tasks
from troth.gateway.tasks.awaiting import FAILURES, Awaiting
from troth.gateway.tasks.room import Passing
from troth.tasks import MemoryStore, StoreError
from troth.testing.model import SILENT, Refusal

if TYPE_CHECKING:
    from middle_site import Site

    from troth.tasks import Task

pytestmark = pytest.mark.anyio

FORM = {"elicitation": {"form": {}}}
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
QUESTION = {"method": "elicitation/create", "params": {"mode": "form", "message": "Who?", "requestedSchema": SCHEMA}}


def refusing(one: Site, method: str, code: int = -32602) -> None:
    one.answers[method] = lambda _script, _call: Refusal(code, "no such task")


SAMPLE = Path(__file__).parents[3] / "examples" / "sample_server.py"


@pytest.mark.parametrize("era", [EraChoice.LEGACY, EraChoice.MODERN])
@pytest.mark.parametrize("end", ["killed", "removed"])
async def test_a_task_whose_upstream_is_gone_fails_with_the_truth(era: EraChoice, end: str) -> None:
    command = (sys.executable, str(SAMPLE))
    upstream = UpstreamSettings(name="one", transport=Transport.STDIO, command=command, era=era)
    async with serving(upstream) as served:
        await served.ready()
        async with served.legacy(OLD) as asking:
            call = {"name": "count", "arguments": {"to": 100_000}}
            name = (await asking.ask("tools/call", {**call, "task": {}})).result["task"]["taskId"]
            await ended(asking, name, lambda task: "of 100000" in task.get("statusMessage", ""))
            (member,) = next(iter(served.front.sessions)).fleet.members
            if end == "killed":
                os.kill(member.upstream.conversation.link.pid, signal.SIGKILL)  # type: ignore[union-attr]
            else:
                served.gateway.reload(replace(served.gateway.settings, upstreams=()))
            told = await ended(asking, name)
            assert told.result["status"] == "failed"
            words = told.result["statusMessage"]
            assert "one" in words
            assert "may have had effects" in words
            assert "another" not in words
            if end == "removed":
                assert "the gateway ended its connection" in words


class Broken(MemoryStore):
    """A store that cannot be used."""

    async def create(self, task: Task) -> None:
        raise StoreError("the disk is full")

    async def get(self, task_id: str) -> Task | None:
        raise StoreError("the disk is full")


async def test_an_upstream_that_forgot_a_task_ends_the_call_that_waits_for_it() -> None:
    async with tasked(MODERN) as (one, served), served.modern() as asking:
        refusing(one, "tasks/get")
        told = await asking.call("slow")
        assert told.error["code"] == -32603
        assert "tasks/get" in told.error["message"]


async def test_looks_that_fail_are_repeated_before_a_task_is_given_up() -> None:
    async with tasked(MODERN) as (one, served), served.modern() as asking:
        work = Work(one)
        looks: list[Any] = []

        def get(_script: object, call: Any) -> Any:
            looks.append(call)
            if len(looks) < 3:
                return {"resultType": "complete", "taskId": 7}
            work.status = "completed"
            return work.task(call.params["taskId"])

        one.answers["tasks/get"] = get
        assert "no task in it" in (await asking.call("slow")).error["message"]


def failing(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Requests of tasks that do not reach their upstream, as they fail."""
    failed: list[str] = []
    send = Awaiting._send

    async def watched(self: Awaiting, method: str, more: Any = None) -> Frame:
        try:
            return await send(self, method, more)
        except UnavailableError:
            failed.append(method)
            raise

    monkeypatch.setattr(Awaiting, "_send", watched)
    return failed


BRIEF = replace(CALM, back_off=0.02, back_off_most=0.1)


@pytest.mark.parametrize("revision", [OLD, MODERN])
async def test_a_task_that_its_upstream_keeps_is_waited_for_while_that_cannot_be_reached(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = failing(monkeypatch)
    async with (
        tasked(MODERN, limits=BRIEF) as (one, served),
        knowing(served, revision) as asking,
        served.legacy("2025-06-18") as plain,
    ):
        work = Work(one)
        name = await begin(asking)
        awaited = asyncio.get_running_loop().create_task(plain.call("slow"))
        await one.until(lambda: len({look["params"]["taskId"] for look in one.of("tasks/get")}) == 2)
        await one.stop()
        await until(lambda: len(failed) > 3 * FAILURES)
        assert (await asking.ask("tasks/get", {"taskId": name})).result["status"] == "working"
        work.status = "completed"
        await one.start()
        assert (await ended(asking, name)).result["status"] == "completed"
        assert (await awaited).result["content"] == DONE


async def test_answers_wait_for_an_upstream_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = failing(monkeypatch)
    async with tasked(MODERN, limits=BRIEF) as (one, served), served.legacy(OLD, declares=FORM) as asking:
        came = asks(Work(one))
        name = await begin(asking)
        await ended(asking, name, lambda task: task["status"] == "input_required")
        result = asyncio.get_running_loop().create_task(asking.ask("tasks/result", {"taskId": name}))
        session = await until(lambda: next((each for each in served.front.sessions if each.questions), None))
        (number,) = session.questions
        await one.stop()
        await until(lambda: session.fleet.members[0].conversation is None)
        await asking.post({"jsonrpc": "2.0", "id": number, "result": ACCEPTED})
        await until(lambda: failed.count("tasks/update") > 1)
        await one.start()
        assert (await result).result["content"] == DONE
        assert came == [{"who": ACCEPTED}]


@pytest.mark.parametrize(("more", "words"), [({}, "without an error"), ({"error": 7}, "")])
async def test_a_failed_task_without_a_good_error_is_an_error(more: dict[str, Any], words: str) -> None:
    async with tasked(MODERN) as (one, served), served.modern() as asking:
        work = Work(one)
        plain = work.task

        def get(_script: object, call: Any) -> Any:
            found = plain(call.params["taskId"])
            found.pop("error", None)
            return {**found, "status": "failed", **more}

        one.answers["tasks/get"] = get
        told = await asking.call("slow")
        assert told.error["code"] == -32603
        assert words in told.error["message"]


async def test_answers_that_an_upstream_does_not_take_end_the_call() -> None:
    async with tasked(MODERN) as (one, served), served.modern(declares=FORM) as asking:
        work = Work(one)
        work.status, work.more = "input_required", {"inputRequests": {"who": QUESTION}}
        refusing(one, "tasks/update")
        round_ = (await asking.call("slow")).result
        params = {"name": "slow", "arguments": {}, "requestState": round_["requestState"]}
        answer = {"action": "accept", "content": {"name": "Ada"}}
        told = await asking.ask("tools/call", {**params, "inputResponses": {"who": answer}})
        assert "tasks/update" in told.error["message"]


@pytest.mark.parametrize("requests", [7, []])
async def test_malformed_questions_of_a_task_end_the_call(requests: object) -> None:
    async with tasked(MODERN) as (one, served), served.modern(declares=FORM) as asking:
        work = Work(one)
        work.status, work.more = "input_required", {"inputRequests": requests}
        assert "inputRequests" in (await asking.call("slow")).error["message"]


def holding(one: Site) -> list[Any]:
    """Calls that come to the server, none of which it answers."""
    held: list[Any] = []

    def hold(_script: object, call: Any) -> Any:
        held.append(call)
        return SILENT

    one.answers["tools/call"] = hold
    return held


@pytest.mark.parametrize("upstream", [OLD, MODERN])
async def test_an_upstream_that_does_not_answer_keeps_no_host_from_the_id_of_its_task(upstream: str) -> None:
    async with tasked(upstream) as (one, served), served.legacy(OLD) as asking:
        held = holding(one)
        name = await begin(asking)
        await until(lambda: held)
        assert (await asking.ask("tasks/get", {"taskId": name})).result["status"] == "working"
        await asking.ask("tasks/cancel", {"taskId": name})


async def test_a_host_that_never_hears_the_id_of_its_task_leaves_none_behind() -> None:
    async with tasked(MODERN, limits=Limits(task_id=600)) as (one, served), served.legacy(OLD):
        held = holding(one)
        (session,) = served.front.sessions
        params = {"name": "slow", "arguments": {}, "task": {}}
        frame = read(request_line(7, "tools/call", params))
        assert isinstance(frame, Frame)
        answering = served.front.answer(frame, session.host, Passing())
        request = asyncio.get_running_loop().create_task(answering)
        await until(lambda: held)
        store = served.gateway.tasks.engine._store
        assert await store.unfinished("", 10)
        # As it is when the gateway stops.
        request.cancel()
        async with asyncio.timeout(PATIENCE):
            while await store.unfinished("", 10):  # noqa: ASYNC110 - nobody sets an event
                await asyncio.sleep(0.02)


async def test_a_call_that_is_cancelled_before_its_core_task_is_there_cancels_it_then() -> None:
    async with tasked(OLD) as (one, served), served.legacy("2025-06-18") as asking:
        held = holding(one)
        call = asyncio.get_running_loop().create_task(asking.call("slow"))
        await until(lambda: held)
        await asking.notify("notifications/cancelled", {"requestId": 1})
        await call
        one.do(lambda script: script.respond(held[0], {"task": {"taskId": "late", "status": "working"}}))
        assert (await one.hears("tasks/cancel"))["params"]["taskId"] == "late"


async def test_a_host_that_goes_before_its_call_is_a_task_withdraws_the_call() -> None:
    async with tasked(MODERN) as (one, served), knowing(served, MODERN) as asking:
        held = holding(one)
        call = asyncio.get_running_loop().create_task(asking.call("slow"))
        await until(lambda: held)
        call.cancel()
        await until(lambda: "a call of up" not in {task.get_name() for task in served.gateway.crew._tasks})
        assert one.count("tasks/get") == 0


@pytest.mark.parametrize("upstream", [OLD, MODERN])
async def test_nothing_is_handed_out_that_cannot_be_kept(upstream: str) -> None:
    async with tasked(upstream) as (one, served), knowing(served, MODERN) as new, served.legacy(OLD) as old:
        Work(one)
        served.gateway.tasks = Tasks(Broken(), served.gateway.crew, served.gateway.limits)
        for told in (
            await new.call("slow"),
            await old.call("slow", task={}),
            await new.ask("tasks/get", {"taskId": "x"}),
            await old.ask("tasks/result", {"taskId": "x"}),
            await new.ask("subscriptions/listen", {"notifications": {"taskIds": ["x"]}}),
        ):
            assert told.error["code"] == -32603
            assert "log says why" in told.error["message"]


async def test_a_core_host_that_refuses_a_question_ends_nothing() -> None:
    async with tasked(MODERN) as (one, served), served.legacy(OLD, declares=FORM) as asking:
        work = Work(one)
        found: list[Any] = []

        def update(_script: object, call: Any) -> dict[str, Any]:
            found.append(call.params["inputResponses"])
            work.status, work.more = "completed", {}
            return {"resultType": "complete"}

        one.answers["tasks/update"] = update
        work.status, work.more = "input_required", {"inputRequests": {"who": QUESTION}}
        name = await begin(asking)
        await ended(asking, name, lambda task: task["status"] == "input_required")
        result = asyncio.get_running_loop().create_task(asking.ask("tasks/result", {"taskId": name}))
        session = await until(lambda: next((each for each in served.front.sessions if each.questions), None))
        (number,) = session.questions
        await asking.post({"jsonrpc": "2.0", "id": number, "result": {"action": "decline"}})
        assert (await result).result["content"] == DONE
        assert found == [{"who": {"action": "decline"}}]


async def test_a_core_host_that_answers_a_question_with_an_error_hears_of_it_in_the_result() -> None:
    async with tasked(MODERN) as (one, served), served.legacy(OLD, declares=FORM) as asking:
        work = Work(one)
        work.status, work.more = "input_required", {"inputRequests": {"who": QUESTION}}
        name = await begin(asking)
        await ended(asking, name, lambda task: task["status"] == "input_required")
        result = asyncio.get_running_loop().create_task(asking.ask("tasks/result", {"taskId": name}))
        session = await until(lambda: next((each for each in served.front.sessions if each.questions), None))
        (number,) = session.questions
        await asking.post({"jsonrpc": "2.0", "id": number, "error": {"code": -1, "message": "no"}})
        assert "error" in (await result).answer


async def test_a_request_with_an_id_that_runs_already_is_refused() -> None:
    async with tasked(OLD) as (one, served), served.legacy(OLD) as asking:
        work = Work(one)
        name = await begin(asking)
        message = {"jsonrpc": "2.0", "id": 99, "method": "tasks/result", "params": {"taskId": name}}
        first = asyncio.get_running_loop().create_task(asking.post(message))
        session = next(iter(served.front.sessions))
        await until(lambda: session.running)
        assert (await asking.post(message)).error["code"] == -32600
        await asking.ask("logging/setLevel", {"level": "error"})
        work.end()
        assert (await first).result["content"] == DONE


async def test_a_result_of_a_later_revision_is_spelled_for_an_older_host() -> None:
    async with (
        tasked(MODERN, tokens=("anna",)) as (one, served),
        knowing(served, MODERN, token="anna", declares=KNOWS) as new,
    ):
        await new.ask("server/discover")
        await served.ready()
        work = Work(one)
        name = await begin(new)
        work.end(result={"content": DONE, "structuredContent": [1, 2]})
        assert (await ended(new, name)).result["result"]["structuredContent"] == [1, 2]
        async with served.legacy(OLD, token="anna") as old:
            result = (await old.ask("tasks/result", {"taskId": name})).result
            assert not isinstance(result.get("structuredContent"), list)
            assert "resultType" not in result
