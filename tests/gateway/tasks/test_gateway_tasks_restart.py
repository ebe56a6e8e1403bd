"""Tasks of a gateway that is killed and started again."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from middle_gateway import PATIENCE, serving
from middle_site import MODERN, OLD, on_pipes, site
from task_hosts import DONE, Work

from troth.gateway.state import State

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from middle_site import Site

pytestmark = pytest.mark.anyio


class Pipes:
    """A host of 2025-11-25 at the pipes of a gateway."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.last = 0

    async def ask(self, method: str, **params: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.last += 1
        message = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        async with asyncio.timeout(PATIENCE):
            while True:
                said = json.loads(await self.process.stdout.readline())
                if said.get("id") == self.last:
                    return said.get("result") or said["error"]


@asynccontextmanager
async def running(one: Site, folder: Path) -> AsyncGenerator[Pipes]:
    """A gateway, which is killed at the end."""
    process = await on_pipes(one, folder)
    try:
        host = Pipes(process)
        info = {"name": "pipes", "version": "1"}
        await host.ask("initialize", protocolVersion=OLD, capabilities={}, clientInfo=info)
        yield host
    finally:
        process.kill()
        async with asyncio.timeout(PATIENCE):
            await process.wait()


async def test_tasks_that_ended_survive_a_kill_and_others_are_told_to_be_lost(tmp_path: Path) -> None:
    async with site(OLD) as one:
        work = Work(one)
        async with running(one, tmp_path) as host:
            done = (await host.ask("tools/call", name="slow", arguments={}, task={}))["task"]["taskId"]
            while (await host.ask("tasks/get", taskId=done))["status"] == "working":
                work.end()
            work.status = "working"
            open_ = (await host.ask("tools/call", name="slow", arguments={}, task={}))["task"]["taskId"]
        async with running(one, tmp_path) as host:
            assert (await host.ask("tasks/result", taskId=done))["content"] == DONE
            lost = await host.ask("tasks/get", taskId=open_)
            assert lost["status"] == "failed"
            assert "may have had effects" in lost["statusMessage"]
            # Other hosts may start gateways on pipes too, so none gets a list.
            assert (await host.ask("tasks/list"))["code"] == -32601
        assert (tmp_path / "troth" / "tasks.db").stat().st_mode & 0o777 == 0o600
        work.end()


@pytest.mark.parametrize("upstream", [OLD, MODERN])
async def test_tasks_are_promised_before_a_server_that_had_them_has_spoken_again(upstream: str, tmp_path: Path) -> None:
    kept = tmp_path / "state.json"
    async with site(upstream) as one:
        settings = one.settings("up")
        async with serving(settings, state=State.load(kept)) as served:
            await served.ready()
            async with served.legacy() as peer:
                before = peer.opening["capabilities"]["tasks"]
        await one.stop()
        async with serving(settings, state=State.load(kept)) as served, served.legacy() as peer:
            assert peer.opening["capabilities"]["tasks"] == before
        await one.start()
