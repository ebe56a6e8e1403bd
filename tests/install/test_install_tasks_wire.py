"""Tasks of servers with Troth over real pipes and sockets, with the clients of the SDK (2 and 1)."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any, ClassVar, Literal

import aiohttp
import anyio
import mcp_types as types
import pytest
from install_hosts import SECONDS, served
from mcp.client.extension import ClientExtension, NotificationBinding, ResultClaim
from pydantic import ConfigDict
from task_servers import TASK_MAKERS
from test_install_wire import OLD, SCRIPT, over

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
NAMES = sorted(TASK_MAKERS)
TRANSPORTS = ("stdio", "http")


class AnyResult(types.Result):
    model_config = ConfigDict(extra="allow")


class AboutTask(types.Request[dict[str, Any], str]):
    """A request about a task, whose id goes into a header over HTTP."""

    name_param: ClassVar[str] = "taskId"


class Handed(types.Result):
    """A call that became a task."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str


async def said(host, method, kind=types.Request[dict[str, Any], str], **params):
    result = await host.session.send_request(kind(method=method, params=params), AnyResult)
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


class Tasks(ClientExtension):
    """A client that has its calls answered with tasks, and waits for them itself."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self):
        self.handed = []
        self.heard = []

    def claims(self):
        return [ResultClaim(result_type="task", model=Handed, resolve=self._resolve)]

    def notifications(self):
        return [NotificationBinding(method="notifications/tasks", params_type=AnyResult, handler=self._hear)]

    async def _hear(self, params):
        self.heard.append(params)

    async def _resolve(self, handed, context):
        self.handed.append(handed.task_id)
        while True:
            found = await said(context, "tasks/get", AboutTask, taskId=handed.task_id)
            if found["status"] == "input_required":
                answer = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "asked"}}
                responses = dict.fromkeys(found["inputRequests"], answer)
                await said(context, "tasks/update", AboutTask, taskId=handed.task_id, inputResponses=responses)
            elif found["status"] != "working":
                return types.CallToolResult.model_validate(found["result"], by_name=False)
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("name", NAMES)
async def test_a_modern_client_has_its_calls_become_tasks_and_gets_their_results(transport, name):
    tasks = Tasks()
    with anyio.fail_after(3 * SECONDS):
        async with over(transport, name, "auto", "sampling", extensions=[tasks]) as host:
            assert "io.modelcontextprotocol/tasks" in host.server_capabilities.extensions
            assert (await host.call_tool("add", {"a": 2})).content[0].text == "3"
            assert (await host.call_tool("ask")).content[0].text == "asked"
            assert (await host.call_tool("fail")).is_error is True
            assert (await host.call_tool("quick")).content[0].text == "quick"
            assert len(tasks.handed) == 3


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("name", NAMES)
async def test_a_client_that_knows_no_tasks_waits_for_its_results(transport, name, mode):
    with anyio.fail_after(3 * SECONDS):
        async with over(transport, name, mode) as host:
            assert (await host.call_tool("add", {"a": 2})).content[0].text == "3"


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("name", NAMES)
async def test_a_legacy_client_makes_core_tasks(transport, name):
    with anyio.fail_after(3 * SECONDS):
        async with over(transport, name, "legacy", "sampling") as host:
            declared = host.server_capabilities.model_dump(by_alias=True, exclude_none=True)["tasks"]
            # Over HTTP without authorization nobody can be told from anybody.
            assert ("list" in declared) == (transport == "stdio")
            params = {"name": "ask", "arguments": {}, "task": {"ttl": 60_000}}
            # The client holds results of calls against the schema, in which it has no tasks.
            made = await host.session._dispatcher.send_raw_request("tools/call", params)
            task = made["task"]["taskId"]
            result = await said(host, "tasks/result", taskId=task)
            assert result["content"][0]["text"] == "sampled"
            assert (await said(host, "tasks/get", taskId=task))["status"] == "completed"


@pytest.mark.parametrize("name", NAMES)
async def test_a_header_that_names_another_task_is_refused(name):
    with anyio.fail_after(3 * SECONDS), served(name) as url:
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {Tasks.identifier: {}}},
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"taskId": "a", "_meta": meta}}
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28"}
        codes = []
        async with aiohttp.ClientSession(headers={**headers, "mcp-method": "tasks/get"}) as http:
            for name in ("b", "a"):
                async with http.post(url, json=body, headers={"mcp-name": name}) as answer:
                    codes.append((await answer.json())["error"]["code"])
        assert codes == [-32020, -32602]


OLD_CLIENT = """
import asyncio, sys, warnings
warnings.simplefilter("ignore")
from contextlib import asynccontextmanager
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
@asynccontextmanager
async def connected(args):
    if args[0].startswith("http"):
        async with streamablehttp_client(args[0]) as (read, write, _):
            yield read, write
    else:
        async with stdio_client(StdioServerParameters(command=args[0], args=args[1:])) as (read, write):
            yield read, write
async def sampled(context, params):
    return types.CreateMessageResult(role="assistant", model="m", content=types.TextContent(type="text", text="old"))
async def main():
    async with connected(sys.argv[1:]) as (read, write):
        async with ClientSession(read, write, sampling_callback=sampled) as session:
            await session.initialize()
            tasks = session.experimental
            for name in ("add", "ask"):
                task = (await tasks.call_tool_as_task(name, {})).task.taskId
                if name == "ask":
                    while (await tasks.get_task(task)).status != "input_required":
                        await asyncio.sleep(0)
                result = await tasks.get_task_result(task, types.CallToolResult)
                print(result.content[0].text, (await tasks.get_task(task)).status)
            task = (await tasks.call_tool_as_task("wait", {})).task.taskId
            print((await tasks.cancel_task(task)).status)
            print((await session.call_tool("add", {"a": 2})).content[0].text)
asyncio.run(main())
"""


@pytest.mark.skipif(not OLD.exists(), reason="the environment of the old SDK is not made: make envs")
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("name", NAMES)
async def test_the_tasks_client_of_the_old_sdk_is_served(transport, name):
    command = [str(OLD), "-c", OLD_CLIENT]
    with anyio.fail_after(3 * SECONDS):
        if transport == "stdio":
            done = await anyio.run_process(
                [*command, sys.executable, "-W", "ignore", str(SCRIPT), name, "stdio"], check=False
            )
        else:
            with served(name) as url:
                done = await anyio.run_process([*command, url], check=False)
    said = done.stdout.decode().splitlines()
    assert said == ["2 completed", "old completed", "cancelled", "3"], done.stderr.decode()


SCRIPT_CLIENT = """
import { createRequire } from "node:module";
const packages = createRequire(process.env.TROTH_NPM + "/package.json");
const { Client } = packages("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = packages("@modelcontextprotocol/sdk/client/streamableHttp.js");
const types = packages("@modelcontextprotocol/sdk/types.js");
const client = new Client({ name: "ts1", version: "1" }, { capabilities: { sampling: {} } });
client.setRequestHandler(types.CreateMessageRequestSchema, () => ({
  role: "assistant", model: "m", content: { type: "text", text: "script" },
}));
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[1])));
await client.listTools();
for (const name of ["add", "ask", "quick"]) {
  const kinds = [];
  for await (const one of client.experimental.tasks.callToolStream({ name, arguments: {} })) {
    kinds.push(one.type);
    if (one.type === "result") kinds.push(one.result.content[0].text);
    if (one.type === "error") kinds.push(String(one.error));
  }
  console.log([kinds[0], ...kinds.slice(-2)].join(" "));
}
await client.close();
"""
NPM = OLD.parents[2] / "npm"
NODE = next(OLD.parents[2].glob("node/bin/node"), None) or shutil.which("node")


@pytest.mark.skipif(not (NODE and NPM.exists()), reason="the environment of the TypeScript SDK is not made: make envs")
@pytest.mark.parametrize("name", NAMES)
async def test_the_tasks_client_of_the_typescript_sdk_is_served(name):
    command = [str(NODE), "--input-type=module", "-e", SCRIPT_CLIENT]
    with anyio.fail_after(3 * SECONDS), served(name) as url:
        environment = {**os.environ, "TROTH_NPM": str(NPM)}
        done = await anyio.run_process([*command, url], check=False, env=environment)
    said = done.stdout.decode().splitlines()
    assert said == ["taskCreated result 2", "taskCreated result script", "result result quick"], done.stderr.decode()
