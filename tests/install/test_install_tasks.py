"""Tools that take long, on every framework: for hosts that know no tasks, core tasks, and tasks of the extension."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import Annotated

import aiohttp
import anyio
import mcp_types as types
import pytest
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel
from task_servers import ENDED, TASK_MAKERS, on_low_level, on_sdk

import troth
from troth.audited import _served as served
from troth.plugins.mcp_host import HostError, connect
from troth.register import Era, register
from troth.tasks import MemoryStore, StoreError

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
OLD, NEW = (register().newest(era) for era in Era)
TASKS = "io.modelcontextprotocol/tasks"
RELATED = "io.modelcontextprotocol/related-task"
KEY = {"extensions": {TASKS: {}}}
MODEL = {"sampling": {}}
TOOLS = {"add", "wait", "ask", "fail"}
ENVELOPE = {"protocolVersion": NEW, "clientInfo": {"name": "t", "version": "1"}, "clientCapabilities": KEY}
BOUND = 30


@pytest.fixture(params=sorted(TASK_MAKERS))
def server(request):
    return TASK_MAKERS[request.param]()


def old(server, **capabilities):
    return connect(server, revision=OLD, capabilities=capabilities)


def new(server, **capabilities):
    return connect(server, revision=NEW, capabilities={**KEY, **capabilities})


async def refused(awaitable):
    with pytest.raises(HostError) as caught:
        await awaitable
    return caught.value


async def core(host, name, task=None, **arguments):
    """Asks for a core task, and gives its id."""
    params = {"name": name, "arguments": arguments, "task": task or {"ttl": 60_000}}
    made = await host.request("tools/call", params)
    assert made["_meta"][RELATED] == {"taskId": made["task"]["taskId"]}
    assert made["task"]["status"] == "working"
    return made["task"]["taskId"]


async def extension(host, name, **arguments):
    """Calls a tool that answers with a task, and gives its id."""
    made = await host.request("tools/call", {"name": name, "arguments": arguments})
    assert made["resultType"] == "task"
    assert made["status"] == "working"
    return made["taskId"]


async def until(host, task, *states):
    """The task, once it is in one of these states."""
    with anyio.fail_after(BOUND):
        while True:
            found = await host.request("tasks/get", {"taskId": task})
            if found["status"] in states:
                return found
            await anyio.lowlevel.checkpoint()


def text(result):
    return result["content"][0]["text"]


@pytest.mark.behaviour("CAP-11-S1")
@pytest.mark.parametrize("revision", register().revisions)
async def test_a_host_that_knows_no_tasks_gets_an_ordinary_result(server, revision):
    async with connect(server, revision=revision) as host:
        result = await host.call("add", a=2)
        assert text(result) == "3"
        assert result.get("resultType", "complete") == "complete"
        assert RELATED not in (result.get("_meta") or {})


@pytest.mark.behaviour("CAP-21-S1", "CAP-24-S2", "CAP-26-B1")
@pytest.mark.parametrize("revision", register().revisions)
async def test_each_revision_is_told_of_its_own_kind_of_tasks(server, revision):
    async with connect(server, revision=revision, capabilities=KEY) as host:
        assert ("tasks" in host.declared) == (revision == OLD)
        assert (TASKS in host.declared.get("extensions", {})) == (revision == NEW)
        tools = (await host.request("tools/list"))["tools"]
        said = {tool["name"] for tool in tools if "execution" in tool}
        assert said == (TOOLS if revision == OLD else set())
        if revision == OLD:
            assert {tool["execution"]["taskSupport"] for tool in tools if "execution" in tool} == {"optional"}


@pytest.mark.behaviour("CAP-21-S1", "CAP-24-S3")
async def test_a_core_task_is_made_polled_and_its_result_fetched(server):
    async with old(server) as host:
        task = await core(host, "add", a=2)
        found = await until(host, task, "completed")
        assert RELATED not in found.get("_meta", {})
        assert found["ttl"] == 60_000
        result = await host.request("tasks/result", {"taskId": task})
        assert text(result) == "3"
        assert result["_meta"][RELATED] == {"taskId": task}
        assert [one["taskId"] for one in (await host.request("tasks/list"))["tasks"]] == [task]


@pytest.mark.behaviour("CAP-24-S3")
async def test_the_session_of_a_core_task_hears_of_its_states_and_its_progress(server):
    async with old(server) as host:
        params = {"name": "add", "arguments": {}, "task": {}, "_meta": {"progressToken": "p"}}
        task = (await host.request("tools/call", params))["task"]["taskId"]
        progress = (await host.until("notifications/progress"))["params"]
        assert progress["_meta"][RELATED] == {"taskId": task}
        assert (progress["progressToken"], progress["progress"]) == ("p", 1)
        await until(host, task, "completed")
        with anyio.fail_after(BOUND):
            while not any(one["params"].get("status") == "completed" for one in host.heard):
                await anyio.lowlevel.checkpoint()
        said = [one["params"] for one in host.heard if one["method"] == "notifications/tasks/status"]
        assert {one["taskId"] for one in said} == {task}
        assert all(RELATED not in one.get("_meta", {}) for one in said)


async def test_another_session_hears_nothing_of_a_task():
    server = on_sdk()
    async with old(server) as host, old(server) as other:
        await until(host, await core(host, "add"), "completed")
        await host.until("notifications/tasks/status")
        assert [one for one in other.heard if "tasks" in one["method"]] == []


@pytest.mark.behaviour("CAP-22-S1")
async def test_a_task_is_unknown_to_every_other_host(server):
    async with old(server) as host, old(server) as other:
        task = await core(host, "wait")
        assert (await other.request("tasks/list"))["tasks"] == []
        foreign = await refused(other.request("tasks/get", {"taskId": task}))
        unknown = await refused(other.request("tasks/get", {"taskId": "none"}))
        assert (foreign.code, foreign.message) == (unknown.code, unknown.message) == (-32602, unknown.message)
        for method in ("tasks/result", "tasks/cancel"):
            assert (await refused(other.request(method, {"taskId": task}))).code == -32602


@pytest.mark.behaviour("CAP-23-S1")
async def test_a_cancelled_core_task_ends_its_work_and_stays_cancelled(server):
    ENDED.clear()
    async with old(server) as host:
        task = await core(host, "wait")
        assert (await host.request("tasks/cancel", {"taskId": task}))["status"] == "cancelled"
        with anyio.fail_after(BOUND):
            while not ENDED:
                await anyio.lowlevel.checkpoint()
        assert (await refused(host.request("tasks/cancel", {"taskId": task}))).code == -32602
        assert (await refused(host.request("tasks/result", {"taskId": task}))).code == -32602


@pytest.mark.behaviour("CAP-24-S1")
async def test_params_task_is_refused_for_a_tool_that_runs_at_once(server):
    async with old(server) as host:
        error = await refused(host.request("tools/call", {"name": "quick", "arguments": {}, "task": {}}))
        assert error.code == -32601
        assert text(await host.call("quick")) == "quick"


@pytest.mark.behaviour("CAP-24-S1", "CAP-26-S2")
@pytest.mark.parametrize("revision", [one for one in register().revisions if one != OLD])
async def test_params_task_is_ignored_where_it_is_not_declared(server, revision):
    async with connect(server, revision=revision) as host:
        result = await host.request("tools/call", {"name": "add", "arguments": {"a": 2}, "task": {}})
        assert text(result) == "3"
        assert "task" not in result


async def test_a_task_of_a_tool_that_reports_an_error_failed_in_the_core_and_completed_in_the_extension(server):
    async with old(server) as host:
        task = await core(host, "fail")
        await until(host, task, "failed")
        assert (await host.request("tasks/result", {"taskId": task}))["isError"] is True
    async with new(server) as host:
        found = await until(host, await extension(host, "fail"), "completed")
        assert found["result"]["isError"] is True


@pytest.mark.behaviour("CAP-26-S1")
async def test_an_extension_task_is_made_and_polled_to_its_result(server):
    async with new(server) as host:
        task = await extension(host, "add", a=2)
        found = await until(host, task, "completed")
        assert text(found["result"]) == "3"
        assert found["result"]["resultType"] == found["resultType"] == "complete"


@pytest.mark.behaviour("CAP-26-S1", "CAP-11-S1")
async def test_only_a_request_that_declares_the_key_gets_a_task(server):
    async with new(server) as host:
        host.capabilities = {}
        assert text(await host.call("add")) == "2"
        host.capabilities = KEY
        await extension(host, "add")


@pytest.mark.behaviour("CAP-26-S2")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_task_methods_without_the_key_are_refused_and_name_it(server, method):
    async with new(server) as host:
        task = await extension(host, "add")
        host.capabilities = {}
        error = await refused(host.request(method, {"taskId": task, "inputResponses": {}}))
        assert error.code == -32021
        assert error.data == {"requiredCapabilities": KEY}


@pytest.mark.behaviour("CAP-26-S2")
@pytest.mark.parametrize("method", ["tasks/list", "tasks/result"])
async def test_methods_of_core_tasks_are_unknown_to_modern_hosts(server, method):
    async with new(server) as host:
        assert (await refused(host.request(method, {"taskId": "none"}))).code == -32601


@pytest.mark.behaviour("CAP-26-B1")
async def test_the_key_turns_nothing_on_for_a_legacy_host(server):
    async with old(server, **KEY) as host:
        result = await host.call("add", a=2)
        assert text(result) == "3"
        assert (await refused(host.request("tasks/update", {"taskId": "none"}))).code == -32601


@pytest.mark.behaviour("CAP-23-S1", "CAP-26-S2")
async def test_a_cancelled_extension_task_is_acknowledged_and_ends_its_work(server):
    ENDED.clear()
    async with new(server) as host:
        task = await extension(host, "wait")
        assert set(await host.request("tasks/cancel", {"taskId": task})) <= {"resultType", "_meta"}
        assert (await until(host, task, "cancelled"))["taskId"] == task
        with anyio.fail_after(BOUND):
            while not ENDED:
                await anyio.lowlevel.checkpoint()


async def test_a_core_task_asks_its_host_on_the_stream_of_its_result(server):
    async with old(server, **MODEL) as host:
        task = await core(host, "ask")
        await until(host, task, "input_required")
        assert host.asked == []
        assert text(await host.request("tasks/result", {"taskId": task})) == "an answer of the model"
        assert host.asked == ["sampling/createMessage"]


async def test_an_extension_task_asks_its_host_in_its_state(server):
    async with new(server, **MODEL) as host:
        task = await extension(host, "ask")
        asked = (await until(host, task, "input_required"))["inputRequests"]
        assert [one["method"] for one in asked.values()] == ["sampling/createMessage"]
        answer = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "answered"}}
        await host.request("tasks/update", {"taskId": task, "inputResponses": dict.fromkeys(asked, answer)})
        assert text((await until(host, task, "completed"))["result"]) == "answered"


async def test_a_task_asks_nothing_that_its_host_did_not_declare(server):
    async with new(server) as host:
        found = await until(host, await extension(host, "ask"), "completed", "failed")
        assert "sampling" in str(found.get("error") or found["result"])


async def test_a_host_that_refuses_a_question_of_a_core_task_fails_its_tool():
    def refuse(_params):
        return None

    async with connect(
        on_low_level(), revision=OLD, capabilities=MODEL, answers={"sampling/createMessage": refuse}
    ) as host:
        error = await refused(host.request("tasks/result", {"taskId": await core(host, "ask")}))
        assert error.code == -32601


class Size(BaseModel):
    size: str


def size() -> Elicit[Size]:
    return Elicit("Which size?", Size)


def resolver() -> MCPServer:
    """A server whose tool asks by its result where the era wants that."""
    server = MCPServer("resolver")

    @troth.task
    @server.tool()
    async def order(size: Annotated[Size, Resolve(size)]) -> str:
        return size.size

    return troth.install(server)


async def test_a_tool_that_asks_by_its_result_goes_on_with_the_answer():
    async with new(resolver(), elicitation={"form": {}}) as host:
        task = await extension(host, "order")
        asked = (await until(host, task, "input_required"))["inputRequests"]
        answer = {"action": "accept", "content": {"size": "big"}}
        await host.request("tasks/update", {"taskId": task, "inputResponses": dict.fromkeys(asked, answer)})
        assert text((await until(host, task, "completed"))["result"]) == "big"


async def test_a_tool_that_asks_for_ever_is_ended():
    async def call_tool(ctx, params):
        return types.InputRequiredResult(input_requests={}, request_state="again")

    async def list_tools(ctx, params):
        return types.ListToolsResult(tools=[types.Tool(name="ask", input_schema={"type": "object"})])

    from troth.plugins import mcp_tasks

    server = troth.install(Server("low", on_list_tools=list_tools, on_call_tool=call_tool), tasks={"ask"})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(mcp_tasks, "ROUNDS", 1)
        async with new(server) as host:
            found = await until(host, await extension(host, "ask"), "failed")
            assert "rounds" in found["error"]["message"]


@asynccontextmanager
async def listening(host, **wanted):
    """Listens, and gives the acknowledged filter."""
    async with anyio.create_task_group() as group:
        group.start_soon(host.request, "subscriptions/listen", {"notifications": wanted})
        said = await host.until("notifications/subscriptions/acknowledged")
        yield said["params"]["notifications"]
        group.cancel_scope.cancel()


@pytest.mark.behaviour("CAP-26-S2")
async def test_a_listener_hears_of_the_tasks_that_it_names(server):
    async with new(server) as host:
        task, other = await extension(host, "wait"), await extension(host, "wait")
        async with listening(host, taskIds=[task, "none"], toolsListChanged=True) as agreed:
            assert agreed["taskIds"] == [task]
            await host.request("tasks/cancel", {"taskId": task})
            await host.request("tasks/cancel", {"taskId": other})
            with anyio.fail_after(BOUND):
                while not any(one["params"].get("status") == "cancelled" for one in host.heard):
                    await anyio.lowlevel.checkpoint()
        said = [one["params"] for one in host.heard if one["method"] == "notifications/tasks"]
        assert {one["taskId"] for one in said} == {task}
        assert all("io.modelcontextprotocol/subscriptionId" in one["_meta"] for one in said)


@pytest.mark.behaviour("CAP-26-S2")
async def test_nobody_hears_of_tasks_who_did_not_listen_for_them(server):
    async with new(server) as host, listening(host, toolsListChanged=True):
        await until(host, await extension(host, "add"), "completed")
        assert [one for one in host.heard if one["method"].startswith("notifications/tasks")] == []


@pytest.mark.behaviour("CAP-26-S2")
async def test_to_listen_for_tasks_needs_the_key(server):
    async with new(server) as host:
        host.capabilities = {}
        error = await refused(host.request("subscriptions/listen", {"notifications": {"taskIds": ["none"]}}))
        assert (error.code, error.data) == (-32021, {"requiredCapabilities": KEY})
        host.capabilities = KEY
        assert (await refused(host.request("subscriptions/listen", {"notifications": {"taskIds": 1}}))).code == -32602


async def test_a_tool_that_is_hidden_from_a_host_becomes_no_task():
    server = MCPServer("gated")

    @troth.task
    @troth.requires(troth.SAMPLING)
    @server.tool()
    async def long() -> str:
        return "done"

    troth.install(server)
    async with new(server) as host:
        assert (await refused(host.request("tools/call", {"name": "long"}))).code == -32021
    async with old(server) as host:
        params = {"name": "long", "arguments": {}, "task": {}}
        assert (await refused(host.request("tools/call", params))).code == -32600
        assert (await host.request("tasks/list"))["tasks"] == []


async def test_the_words_of_progress_stand_on_the_task_also_without_a_token():
    server = MCPServer("words")

    @troth.task
    @server.tool()
    async def long(ctx: Context) -> str:
        await ctx.report_progress(1, 2)
        await ctx.report_progress(1, 2, "half of it")
        await anyio.sleep_forever()

    async with new(troth.install(server)) as host:
        task = await extension(host, "long")
        with anyio.fail_after(BOUND):
            while (await until(host, task, "working")).get("statusMessage") != "half of it":
                await anyio.lowlevel.checkpoint()
        assert [one for one in host.heard if one["method"] == "notifications/progress"] == []


async def test_a_question_of_a_task_that_nobody_answers_ends_when_its_tool_says_so():
    server = MCPServer("late")

    @troth.task
    @server.tool()
    async def ask(ctx: Context) -> str:
        question = types.ListRootsRequest()
        try:
            await ctx.session.send_request(question, types.ListRootsResult, request_read_timeout_seconds=0.01)
        except MCPError as error:
            return error.message
        return "answered"

    async with new(troth.install(server), roots={}) as host:
        found = await until(host, await extension(host, "ask"), "completed")
        assert text(found["result"]) == "roots/list was not answered in time"


class Verifier:
    """Takes every token, as that of the subject with its name."""

    async def verify_token(self, token):
        return AccessToken(token=token, client_id="client", scopes=[], subject=token, claims={"iss": "me"})


@pytest.mark.behaviour("CAP-22-S1")
async def test_who_is_authorized_over_http_has_their_tasks_to_themselves():
    settings = AuthSettings(issuer_url="https://example.com", resource_server_url="http://127.0.0.1/mcp")
    server = MCPServer("guarded", token_verifier=Verifier(), auth=settings)

    @server.tool()
    @troth.task
    async def long() -> str:
        return "done"

    troth.install(server)

    async def post(token, method, **params):
        headers = {
            "authorization": f"Bearer {token}",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": NEW,
            "mcp-method": method,
            "mcp-name": params.get("name", params.get("taskId", "")),
        }
        meta = {f"io.modelcontextprotocol/{key}": value for key, value in ENVELOPE.items()}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        async with http.post(url, json=body, headers=headers) as answer:
            return await answer.json()

    with served(server.streamable_http_app()) as url:
        async with aiohttp.ClientSession() as http:
            task = (await post("ann", "tools/call", name="long", arguments={}))["result"]["taskId"]
            assert "result" in await post("ann", "tasks/get", taskId=task)
            assert (await post("bob", "tasks/get", taskId=task))["error"]["code"] == -32602


async def test_a_server_without_such_tools_declares_no_tasks():
    server = MCPServer("plain")
    server.add_tool(lambda: "done", name="quick")
    troth.install(server)
    async with old(server) as host:
        assert "tasks" not in host.declared
        assert (await refused(host.request("tasks/list"))).code == -32601
        assert text(await host.request("tools/call", {"name": "quick", "arguments": {}, "task": {}})) == "done"
    async with new(server) as host:
        assert TASKS not in host.declared.get("extensions", {})
        assert (await refused(host.request("tasks/get", {"taskId": "none"}))).code == -32601
        async with listening(host, taskIds=["none"], toolsListChanged=True) as agreed:
            assert "taskIds" not in agreed


async def test_who_serves_tasks_alone_is_left_alone():
    async def got(ctx, params):
        return {"mine": True}

    async def call_tool(ctx, params):
        return types.CallToolResult(content=[types.TextContent(type="text", text="done")])

    async def list_tools(ctx, params):
        return types.ListToolsResult(tools=[types.Tool(name="add", input_schema={"type": "object"})])

    server = Server("own", on_list_tools=list_tools, on_call_tool=call_tool)
    server.add_request_handler("tasks/get", types.RequestParams, got)
    troth.install(server, tasks={"add"})
    async with old(server) as host:
        assert "tasks" not in host.declared
    async with new(server) as host:
        assert text(await host.call("add")) == "done"


async def test_a_tool_that_appears_later_may_run_as_a_task_for_modern_hosts():
    server = troth.install(MCPServer("later"))
    async with new(server) as host:
        assert TASKS not in host.declared.get("extensions", {})

        async def late() -> str:
            return "late"

        server.add_tool(troth.task(late))
        task = await extension(host, "late")
        assert text((await until(host, task, "completed"))["result"]) == "late"


async def test_arguments_that_do_not_fit_fail_the_task_and_not_the_server(server):
    async with new(server) as host:
        made = await host.request("tools/call", {"name": "add", "arguments": 1})
        found = await until(host, made["taskId"], "failed")
        assert found["error"]["code"] == -32602
        assert text(await host.call("quick")) == "quick"


async def test_the_limit_of_tasks_is_told():
    async with old(on_sdk()) as host:
        error = await refused(host.request("tools/call", {"name": "add", "arguments": {}, "task": {"ttl": -1}}))
        assert error.code == -32602


async def test_tasks_outlive_the_process_where_a_file_is_given(tmp_path, caplog):
    store = tmp_path / "tasks.db"
    async with new(on_sdk(task_store=store)) as host:
        done, lost = await extension(host, "add", a=2), await extension(host, "wait")
        await until(host, done, "completed")
    async with new(on_sdk(task_store=str(store))) as host:
        assert text((await until(host, done, "completed"))["result"]) == "3"
        assert "lost" in (await until(host, lost, "failed"))["error"]["message"]
    async with old(on_sdk(task_store=store)) as host:
        # Several hosts may have a pipe to this file, and nothing tells them apart.
        assert "list" not in host.declared["tasks"]


async def test_a_store_that_fails_costs_its_task_only(tmp_path, caplog):
    class Broken(MemoryStore):
        async def update(self, task):
            raise StoreError("the disk is full")

    with caplog.at_level(logging.CRITICAL):
        async with new(on_sdk(task_store=Broken())) as host:
            await extension(host, "add")
            assert text(await host.call("quick")) == "quick"


def test_what_cannot_be_marked_is_refused():
    with pytest.raises(TypeError, match="holds none"):
        troth.task(3)
    with pytest.raises(TypeError, match="a collection of names"):
        troth.install(MCPServer("x"), tasks="add")


@pytest.mark.parametrize("name", sorted(TASK_MAKERS))
def test_a_server_with_tasks_is_honest(name, assert_honest):
    assert_honest(TASK_MAKERS[name](), change_tools=["add"])
