"""Tasks of servers and hosts that others wrote."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from middle_gateway import MODERN, PATIENCE, Served, serving
from middle_site import OLD, site, until
from task_hosts import KNOWS, begin, ended, knowing

from troth.gateway.settings import Transport, UpstreamSettings

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

HERE = Path(__file__).parent
PYTHON = HERE.parents[2] / ".envs" / "mcp1" / "bin" / "python"

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not PYTHON.exists(), reason="no environment with the Python SDK 1"),
]

FORM = {"elicitation": {"form": {}}}


@asynccontextmanager
async def before() -> AsyncGenerator[Served]:
    """A gateway before a server of the SDK, over stdio."""
    command = (str(PYTHON), str(HERE / "task_server_130.py"))
    upstream = UpstreamSettings(name="sdk", transport=Transport.STDIO, command=command, start_timeout=PATIENCE)
    async with serving(upstream) as served:
        await served.ready()
        yield served


@pytest.mark.behaviour("CAP-24-C1")
async def test_a_task_of_the_sdk_is_awaited_for_hosts_that_know_none() -> None:
    async with before() as served, served.legacy("2024-11-05") as old, served.modern() as new:
        for asking in (old, new):
            told = await asking.call("work")
            assert told.result["content"] == [{"type": "text", "text": "done"}]


async def test_a_task_of_the_sdk_that_fails_is_told_to_hosts_that_know_none() -> None:
    async with before() as served, served.modern() as asking:
        told = await asking.call("fail")
        assert told.error == {"code": -32603, "message": "the disk is full"}


async def test_a_task_of_the_sdk_asks_a_modern_host_that_knows_no_tasks() -> None:
    async with before() as served, served.modern(declares=FORM) as asking:
        round_ = (await asking.call("ask")).result
        (key,) = round_["inputRequests"]
        answers = {key: {"action": "accept", "content": {"name": "Ada"}}}
        params = {"name": "ask", "arguments": {}, "requestState": round_["requestState"], "inputResponses": answers}
        told = await asking.ask("tools/call", params)
        assert told.result["content"][0]["text"] == "accept {'name': 'Ada'}"


@pytest.mark.parametrize("revision", [OLD, MODERN])
async def test_a_task_of_the_sdk_is_a_task_of_hosts_that_know_them(revision: str) -> None:
    async with before() as served, knowing(served, revision) as asking:
        name = await begin(asking, "work")
        assert (await ended(asking, name)).result["status"] == "completed"
        name = await begin(asking, "wait")
        await ended(asking, name, lambda task: task.get("statusMessage") == "begun")
        await asking.ask("tasks/cancel", {"taskId": name})
        assert (await ended(asking, name)).result["status"] == "cancelled"


async def test_a_task_of_the_sdk_asks_the_core_host_whose_task_it_is() -> None:
    async with before() as served, served.legacy(OLD, declares=FORM) as asking:
        name = await begin(asking, "ask")
        await ended(asking, name, lambda task: task["status"] == "input_required")
        result = asyncio.get_running_loop().create_task(asking.ask("tasks/result", {"taskId": name}))
        session = await until(lambda: next((one for one in served.front.sessions if one.questions), None))
        (number,) = session.questions
        answer = {"action": "accept", "content": {"name": "Ada"}}
        await asking.post({"jsonrpc": "2.0", "id": number, "result": answer})
        assert (await result).result["content"][0]["text"] == "accept {'name': 'Ada'}"


async def test_a_task_of_the_sdk_asks_the_extension_host_whose_task_it_is() -> None:
    async with before() as served, knowing(served, MODERN, declares={**KNOWS, **FORM}) as asking:
        name = await begin(asking, "ask")
        told = await ended(asking, name, lambda task: task["status"] == "input_required")
        (key,) = told.result["inputRequests"]
        answer = {"action": "accept", "content": {"name": "Ada"}}
        await asking.ask("tasks/update", {"taskId": name, "inputResponses": {key: answer}})
        assert (await ended(asking, name)).result["result"]["content"][0]["text"] == "accept {'name': 'Ada'}"


@pytest.mark.parametrize("upstream", [OLD, MODERN])
async def test_a_host_of_the_sdk_runs_tools_of_either_face_as_tasks(upstream: str) -> None:
    async with site(upstream) as one, serving(one.settings("up")) as served:
        await served.ready()
        client = await asyncio.create_subprocess_exec(
            str(PYTHON), str(HERE / "task_client_130.py"), f"{served.url}/mcp", "slow", stdout=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(2 * PATIENCE):
            out, _ = await client.communicate()
        told = json.loads(out)
        assert (told["tasks"], told["support"]) == (True, "optional")
        assert told["states"][-1] == "completed"
        assert told["texts"] == ["The work is done."]
