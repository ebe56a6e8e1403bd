"""Tasks of hosts, in all four pairs of the face of the host and that of the upstream."""

from __future__ import annotations

import asyncio

import pytest
from middle_gateway import LEGACY, MODERN, serving
from middle_site import EACH, OLD, site, until
from task_hosts import DONE, EXTENSION, KNOWS, Work, begin, ended, knowing, tasked

pytestmark = pytest.mark.anyio

RELATED = "io.modelcontextprotocol/related-task"
CORE = {"cancel": {}, "requests": {"tools": {"call": {}}}}


@pytest.fixture(params=EACH, ids=lambda revision: f"upstream-{revision}")
def upstream(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=EACH, ids=lambda revision: f"host-{revision}")
def revision(request: pytest.FixtureRequest) -> str:
    return request.param


# Declarations


@pytest.mark.behaviour("CAP-21-S1", "CAP-26-B1")
async def test_core_tasks_are_declared_to_hosts_of_their_revision_only(upstream: str) -> None:
    async with tasked(upstream) as (_, served):
        for each in LEGACY:
            async with served.legacy(each, declares=KNOWS) as asking:
                declared = asking.opening["capabilities"]
                assert declared.get("tasks") == (CORE if each == OLD else None)
                assert "extensions" not in declared
        async with served.modern() as asking:
            declared = (await asking.ask("server/discover")).result["capabilities"]
            assert declared["extensions"] == {EXTENSION: {}}
            assert "tasks" not in declared


async def test_no_tasks_are_declared_where_no_upstream_has_them() -> None:
    async with site(OLD, variant="tools-only") as one, serving(one.settings("up")) as served:
        await served.ready()
        async with served.legacy(OLD) as asking:
            assert "tasks" not in asking.opening["capabilities"]
            assert (await asking.ask("tasks/get", {"taskId": "x"})).error["code"] == -32601
        async with served.modern(declares=KNOWS) as asking:
            assert "extensions" not in (await asking.ask("server/discover")).result["capabilities"]


async def test_a_host_whose_credential_is_its_own_gets_the_list_too() -> None:
    async with tasked(OLD, tokens=("anna",)) as (_, served), served.legacy(OLD, token="anna") as asking:
        # The first host of a principal starts its upstreams, which were never seen.
        await served.ready()
    async with tasked(OLD, tokens=("anna",)) as (_, served):
        async with served.legacy(OLD, token="anna"):
            await served.ready()
        async with served.legacy(OLD, token="anna") as asking:
            assert asking.opening["capabilities"]["tasks"] == {"list": {}, **CORE}


# Life of a task


async def test_a_task_works_and_its_result_is_fetched(upstream: str, revision: str) -> None:
    async with tasked(upstream) as (one, served), knowing(served, revision) as asking:
        work = Work(one)
        name = await begin(asking)
        assert len(name) >= 22
        assert (await asking.ask("tasks/get", {"taskId": name})).result["status"] == "working"
        work.end()
        told = await ended(asking, name)
        assert told.result["status"] == "completed"
        if revision == MODERN:
            assert told.result["result"] == {"content": DONE, "resultType": "complete"}
        else:
            result = (await asking.ask("tasks/result", {"taskId": name})).result
            assert result == {"content": DONE, "_meta": {RELATED: {"taskId": name}}}


async def test_words_on_an_upstreams_task_are_seen_on_ours(upstream: str, revision: str) -> None:
    async with tasked(upstream) as (one, served), knowing(served, revision) as asking:
        work = Work(one)
        name = await begin(asking)
        work.message = "half of it"
        await ended(asking, name, lambda task: task.get("statusMessage") == "half of it")
        work.end()
        await ended(asking, name)


@pytest.mark.behaviour("CAP-26-B2")
async def test_a_tool_error_is_failed_in_the_core_and_completed_in_the_extension(upstream: str, revision: str) -> None:
    async with tasked(upstream) as (one, served), knowing(served, revision) as asking:
        work = Work(one)
        name = await begin(asking)
        work.end("failed" if upstream == OLD else "completed", result={"content": DONE, "isError": True})
        told = await ended(asking, name)
        assert told.result["status"] == ("failed" if revision == OLD else "completed")
        result = told.result.get("result") or (await asking.ask("tasks/result", {"taskId": name})).result
        assert result["isError"] is True


async def test_an_error_of_the_protocol_is_failed_in_both_faces(upstream: str, revision: str) -> None:
    async with tasked(upstream) as (one, served), knowing(served, revision) as asking:
        work = Work(one)
        name = await begin(asking)
        full = {"code": -32050, "message": "the disk is full", "data": {"free": [0]}}
        work.end("failed", error=full)
        told = await ended(asking, name)
        assert told.result["status"] == "failed"
        error = told.result.get("error") or (await asking.ask("tasks/result", {"taskId": name})).error
        assert error == full


@pytest.mark.behaviour("CAP-23-S1")
async def test_cancelling_a_task_cancels_that_of_the_upstream(upstream: str, revision: str) -> None:
    async with tasked(upstream) as (one, served), knowing(served, revision) as asking:
        work = Work(one)
        name = await begin(asking)
        await one.hears("tasks/get" if upstream == MODERN else "tasks/result")
        told = await asking.ask("tasks/cancel", {"taskId": name})
        if revision == MODERN:
            assert told.result == {"resultType": "complete"}
        else:
            assert told.result["status"] == "cancelled"
        heard = await one.hears("tasks/cancel")
        assert heard["params"]["taskId"] != name
        assert (await asking.ask("tasks/get", {"taskId": name})).result["status"] == "cancelled"
        again = await asking.ask("tasks/cancel", {"taskId": name})
        assert again.answer.get("error", {}).get("code") == (None if revision == MODERN else -32602)
        work.end()


async def test_a_task_goes_on_when_its_host_is_gone(upstream: str) -> None:
    async with tasked(upstream, tokens=("anna",)) as (one, served):
        async with served.legacy(OLD, token="anna"):
            await served.ready()
        async with served.legacy(OLD, token="anna") as asking:
            work = Work(one)
            name = await begin(asking)
            await asking.delete()
        work.end()
        async with served.legacy(OLD, token="anna") as later:
            await ended(later, name)
            assert (await later.ask("tasks/result", {"taskId": name})).result["content"] == DONE


# Whose they are


@pytest.mark.behaviour("CAP-22-S1", "GEN-B10")
async def test_another_principal_sees_nothing_of_a_task(upstream: str) -> None:
    async with tasked(upstream, tokens=("anna", "bert")) as (one, served):
        for token in ("anna", "bert"):
            async with served.legacy(OLD, token=token):
                await served.ready()
        async with served.legacy(OLD, token="anna") as anna, served.legacy(OLD, token="bert") as bert:
            work = Work(one)
            name = await begin(anna)
            unknown = (await bert.ask("tasks/get", {"taskId": "x" * 43})).error
            for method in ("tasks/get", "tasks/result", "tasks/cancel"):
                assert (await bert.ask(method, {"taskId": name})).error == unknown
            assert (await bert.ask("tasks/list")).result["tasks"] == []
            assert [task["taskId"] for task in (await anna.ask("tasks/list")).result["tasks"]] == [name]
            async with knowing(served, MODERN, token="bert") as other:
                for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                    assert (await other.ask(method, {"taskId": name})).error == unknown
            work.end()
            await ended(anna, name)


async def test_hosts_without_credentials_get_no_list(upstream: str) -> None:
    async with tasked(upstream) as (_, served), served.legacy(OLD) as asking:
        assert (await asking.ask("tasks/list")).error["code"] == -32601


# What is refused


@pytest.mark.behaviour("CAP-24-S1")
async def test_a_wish_for_a_task_of_a_tool_that_takes_none_is_refused() -> None:
    async with tasked(OLD) as (_, served), served.legacy(OLD) as asking:
        assert (await asking.call("log", task={})).error["code"] == -32601


@pytest.mark.parametrize("each", ["2024-11-05", "2025-06-18", MODERN])
async def test_a_wish_for_a_task_is_ignored_where_none_was_declared(each: str) -> None:
    async with tasked(OLD) as (_, served), served.modern() if each == MODERN else served.legacy(each) as asking:
        told = await asking.ask("tools/call", {"name": "slow", "arguments": {}, "task": {}})
        assert told.result["content"] == DONE


@pytest.mark.parametrize("task", [7, "x", [], {"ttl": -1}, {"ttl": "long"}, {"ttl": True}])
async def test_a_malformed_wish_is_refused(task: object) -> None:
    async with tasked(OLD) as (_, served), served.legacy(OLD) as asking:
        assert (await asking.call("slow", task=task)).error["code"] == -32602


@pytest.mark.behaviour("CAP-26-S2")
async def test_task_methods_need_the_extension_on_their_own_request(upstream: str) -> None:
    async with (
        tasked(upstream) as (_, served),
        knowing(served, MODERN) as asking,
        knowing(served, MODERN, declares={}) as other,
    ):
        name = await begin(asking)
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            told = await other.ask(method, {"taskId": name})
            assert told.error["code"] == -32021
            assert told.error["data"] == {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        for method in ("tasks/result", "tasks/list"):
            assert (await asking.ask(method, {"taskId": name})).error["code"] == -32601


@pytest.mark.behaviour("CAP-26-S1")
async def test_a_modern_host_without_the_extension_gets_no_task(upstream: str) -> None:
    async with tasked(upstream) as (_, served), served.modern() as asking:
        assert (await asking.call("slow")).result["resultType"] == "complete"


async def test_the_answer_of_an_upstream_that_makes_no_task_passes() -> None:
    async with tasked(MODERN) as (_, served), knowing(served, MODERN) as asking:
        told = await asking.call("log")
        assert told.result["resultType"] == "complete"
        assert "content" in told.result


async def test_a_task_has_the_time_that_its_host_asked_for() -> None:
    async with tasked(OLD, tokens=("anna",)) as (one, served):
        async with served.legacy(OLD, token="anna"):
            await served.ready()
        async with served.legacy(OLD, token="anna") as asking:
            work = Work(one)
            name = await begin(asking, ttl=90_000)
            assert (await asking.ask("tasks/get", {"taskId": name})).result["ttl"] == 90_000
            work.end()
            await ended(asking, name)


# Changes


async def test_the_session_that_made_a_task_hears_of_its_end_and_no_other(upstream: str) -> None:
    async with tasked(upstream) as (one, served), served.legacy(OLD) as asking, served.legacy(OLD) as other:
        mine, theirs = await asking.listen(), await other.listen()
        work = Work(one)
        name = await begin(asking)
        work.end()
        heard = await mine.method("notifications/tasks/status")
        assert heard["params"]["taskId"] == name
        assert heard["params"]["status"] == "completed"
        assert RELATED not in heard["params"].get("_meta", {})
        one.add("tools")
        await theirs.method("notifications/tools/list_changed")
        assert "notifications/tasks/status" not in theirs.methods()


async def test_an_answer_held_back_comes_when_the_task_ends(upstream: str) -> None:
    async with tasked(upstream) as (one, served), served.legacy(OLD) as asking:
        work = Work(one)
        name = await begin(asking)
        waiting = asyncio.get_running_loop().create_task(asking.ask("tasks/result", {"taskId": name}))
        session = next(iter(served.front.sessions))
        await until(lambda: session.running)
        work.end()
        assert (await waiting).result["content"] == DONE


async def test_a_held_answer_can_be_withdrawn_and_the_task_goes_on() -> None:
    async with tasked(OLD) as (one, served), served.legacy(OLD) as asking:
        work = Work(one)
        name = await begin(asking)
        waiting = asyncio.get_running_loop().create_task(asking.ask("tasks/result", {"taskId": name}))
        session = next(iter(served.front.sessions))
        await until(lambda: session.running)
        await asking.notify("notifications/cancelled", {"requestId": next(iter(session.running))})
        assert (await waiting).answer == {}
        work.end()
        assert (await asking.ask("tasks/result", {"taskId": name})).result["content"] == DONE


async def test_a_listen_hears_of_the_tasks_that_it_names_and_are_its_own(upstream: str) -> None:
    async with (
        tasked(upstream) as (one, served),
        knowing(served, MODERN) as asking,
    ):
        work = Work(one)
        name = await begin(asking)
        other = await begin(asking)
        inbox = await asking.listen(taskIds=[name, "unknown"])
        acknowledged = await inbox.method("notifications/subscriptions/acknowledged")
        assert acknowledged["params"]["notifications"]["taskIds"] == [name]
        first = await inbox.method("notifications/tasks")
        assert first["params"]["status"] == "working"
        assert first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"]
        work.end()
        last = await inbox.until(lambda message: message.get("params", {}).get("status") == "completed")
        assert last["params"]["result"]["content"] == DONE
        await ended(asking, other)
        assert {told["params"]["taskId"] for told in inbox.all if told["method"] == "notifications/tasks"} == {name}


async def test_a_listen_without_the_extension_may_name_no_tasks() -> None:
    async with tasked(OLD) as (_, served), served.modern() as asking:
        told = await asking.ask("subscriptions/listen", {"notifications": {"taskIds": []}})
        assert told.error["code"] == -32021


async def test_a_listen_that_is_over_is_forgotten() -> None:
    async with tasked(OLD) as (one, served), knowing(served, MODERN) as asking:
        work = Work(one)
        name = await begin(asking)
        await asking.listen(taskIds=[name])
        await until(lambda: served.gateway.tasks.listening)
        await asking.close()
        await until(lambda: not served.gateway.tasks.listening)
        work.end()
