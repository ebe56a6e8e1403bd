"""Who waits for a tool that takes long, and who need not."""

import pytest

from patient_notes import server

TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


@pytest.mark.anyio
async def test_a_host_that_knows_no_tasks_waits(troth_host):
    async with troth_host(server, revision="2025-06-18") as host:
        assert (await host.call("proofread"))["content"][0]["text"] == "no mistakes"


@pytest.mark.anyio
async def test_a_host_of_2025_11_25_may_ask_for_a_task(troth_host):
    async with troth_host(server, revision="2025-11-25") as host:
        made = await host.request("tools/call", {"name": "proofread", "task": {"ttl": 60_000}})
        result = await host.request("tasks/result", {"taskId": made["task"]["taskId"]})
        assert result["content"][0]["text"] == "no mistakes"


@pytest.mark.anyio
async def test_a_modern_host_that_declares_the_extension_gets_a_task(troth_host):
    async with troth_host(server, capabilities=TASKS, revision="2026-07-28") as host:
        made = await host.request("tools/call", {"name": "proofread"})
        found = await host.request("tasks/get", {"taskId": made["taskId"]})
        assert (made["resultType"], found["status"]) == ("task", "working")
