"""Tasks of an upstream in front of hosts that know none: awaited, and answered like any other call."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from middle_gateway import LEGACY, MODERN
from middle_site import EACH, OLD, host, until
from task_hosts import DONE, EXTENSION, Work, tasked

from troth.gateway.limits import Limits

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("upstream", EACH)
@pytest.mark.parametrize("revision", ["2025-06-18", MODERN])
async def test_a_tool_that_runs_as_a_task_only_answers_a_host_that_knows_no_tasks(upstream: str, revision: str) -> None:
    async with tasked(upstream) as (one, served), host(served, revision) as asking:
        told = await asking.call("slow")
        assert told.result["content"] == DONE
        assert "task" not in told.result
        assert "io.modelcontextprotocol/related-task" not in told.result.get("_meta", {})
        assert one.count("tasks/result" if upstream == OLD else "tasks/get") > 0


async def test_a_core_host_that_asks_for_no_task_gets_the_result_of_a_tool_that_needs_one() -> None:
    async with tasked(OLD) as (one, served), served.legacy(OLD) as asking:
        assert (await asking.call("slow")).result["content"] == DONE
        assert one.of("tools/call")[0]["params"]["task"] == {"ttl": 3_600_000}


async def test_the_extension_is_declared_with_calls_to_upstreams_that_have_it_only() -> None:
    async with tasked(MODERN) as (one, served), served.modern() as asking:
        await asking.call("slow")
        declared = one.of("tools/call")[0]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
        assert declared == {"extensions": {EXTENSION: {}}}
        for look in one.of("tasks/get"):
            assert look["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] == declared


@pytest.mark.parametrize("revision", LEGACY)
async def test_a_tool_that_needs_a_task_looks_callable_to_every_host(revision: str) -> None:
    async with tasked(OLD) as (_, served), served.legacy(revision) as asking:
        tools = {tool["name"]: tool for tool in (await asking.ask("tools/list")).result["tools"]}
        assert tools["slow"].get("execution") == ({"taskSupport": "optional"} if revision == OLD else None)


@pytest.mark.parametrize("upstream", EACH)
async def test_an_optional_tool_of_a_core_upstream_runs_at_once_for_a_host_without_tasks(upstream: str) -> None:
    async with tasked(upstream, "optional") as (one, served), served.modern() as asking:
        assert (await asking.call("slow")).result["content"] == DONE
        assert one.count("tasks/result") == 0


@pytest.mark.parametrize("upstream", EACH)
@pytest.mark.parametrize("revision", ["2025-06-18", MODERN])
async def test_a_cancelled_call_cancels_its_task(upstream: str, revision: str) -> None:
    async with tasked(upstream) as (one, served), host(served, revision) as asking:
        work = Work(one)
        call = asyncio.get_running_loop().create_task(asking.call("slow"))
        await one.hears("tasks/get" if upstream == MODERN else "tasks/result")
        if revision == MODERN:
            call.cancel()
        else:
            number = one.count("tools/call")
            assert number == 1
            await asking.notify("notifications/cancelled", {"requestId": 1})
        cancel = await one.hears("tasks/cancel")
        assert cancel["params"]["taskId"]
        work.end()
        await asyncio.wait({call})
        call.cancelled() or call.result()


@pytest.mark.parametrize("upstream", EACH)
async def test_a_task_that_fails_is_the_error_of_its_call(upstream: str) -> None:
    async with tasked(upstream) as (one, served), served.modern() as asking:
        work = Work(one)
        work.status, work.error = "failed", {"code": -32050, "message": "the disk is full"}
        told = await asking.call("slow")
        assert told.error["code"] == -32050
        assert told.error["message"] == "the disk is full"


@pytest.mark.parametrize("upstream", EACH)
async def test_a_task_whose_tool_reports_an_error_is_a_result_with_is_error(upstream: str) -> None:
    async with tasked(upstream) as (one, served), served.modern() as asking:
        work = Work(one)
        work.status = "failed" if upstream == OLD else "completed"
        work.result = {"content": DONE, "isError": True}
        assert (await asking.call("slow")).result["isError"] is True


async def test_a_task_that_its_upstream_cancels_is_an_error_with_words() -> None:
    async with tasked(MODERN) as (one, served), served.modern() as asking:
        Work(one).status = "cancelled"
        assert "cancelled" in (await asking.call("slow")).error["message"]


@pytest.mark.parametrize("upstream", EACH)
async def test_an_awaited_task_obeys_a_ceiling_and_is_cancelled_then(upstream: str) -> None:
    limits = Limits(coalesce=0.01, back_off=0.05, stop=1.0, awaited=0.2)
    async with tasked(upstream, limits=limits) as (one, served), served.modern() as asking:
        Work(one)
        told = await asking.call("slow")
        assert "limit: awaited" in told.error["message"]
        await one.hears("tasks/cancel")


@pytest.mark.parametrize("upstream", EACH)
@pytest.mark.parametrize("made", [{}, {"taskId": ""}, {"taskId": 7}, {"taskId": "x" * 2000}, None])
async def test_a_malformed_task_ends_the_call(upstream: str, made: Any) -> None:
    async with tasked(upstream) as (one, served), served.modern() as asking:
        flat = {"resultType": "task", **(made or {})}
        one.results["tools/call"] = {"task": made} if upstream == OLD else flat
        told = await asking.call("slow")
        assert told.error["code"] == -32603


async def test_a_task_outlives_a_lost_answer_to_tasks_result() -> None:
    async with tasked(OLD) as (one, served), served.modern() as asking:
        work = Work(one)
        call = asyncio.get_running_loop().create_task(asking.call("slow"))
        await until(lambda: work.waiting)
        one.do(lambda script: script.respond(work.waiting[0], {"content": DONE}))
        assert (await call).result["content"] == DONE
