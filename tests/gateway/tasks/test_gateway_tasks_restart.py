"""Tasks of a gateway that is killed and started again."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from middle_gateway import PATIENCE, Legacy, Modern, Told, serving
from middle_site import MODERN, OLD, on_pipes, site
from task_hosts import ACCEPTED, DONE, KNOWS, Work, asks, begin, ended, knowing

from troth.gateway.state import State
from troth.testing.model import SILENT

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


@dataclass
class Endpoint:
    """A gateway that is a process, as hosts need it."""

    url: str
    http: aiohttp.ClientSession
    process: asyncio.subprocess.Process
    folder: Path

    def legacy(self, revision: str, **given: Any) -> Legacy:
        return Legacy(self, revision, **given)

    async def kill(self) -> None:
        self.process.kill()
        async with asyncio.timeout(PATIENCE):
            await self.process.wait()

    def owned(self) -> dict[str, str]:
        """Id of an unfinished task -> the upstream's id that is kept with it.

        Nothing before the gateway has made its store, which is not looked into while it is turned to a write-ahead log:
        whoever reads it then is in the gateway's way.
        """
        path = self.folder / "troth" / "tasks.db"
        if not path.with_name("tasks.db-wal").exists():
            return {}
        with closing(sqlite3.connect(path, timeout=PATIENCE)) as file:
            if not file.execute("SELECT 1 FROM sqlite_master WHERE name = 'tasks'").fetchall():
                return {}
            rows = file.execute("SELECT id, task FROM tasks WHERE NOT ended").fetchall()
        known = {name: json.loads(json.loads(task)["keep"] or "{}").get("task") for name, task in rows}
        return {name: theirs for name, theirs in known.items() if theirs}

    async def keeps(self, name: str) -> str:
        """Waits until the upstream's id is kept with that of a task, which is handed out before if that takes long."""
        async with asyncio.timeout(PATIENCE):
            while name not in (owned := self.owned()):  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.02)
        return owned[name]


@asynccontextmanager
async def endpoint(one: Site, folder: Path, *options: str, name: str = "one") -> AsyncGenerator[Endpoint]:
    """A gateway over HTTP; killed at the end if it still runs."""
    config = folder / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {name: {"type": "http", "url": one.settings(name).url}}}))
    environ = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_STATE_HOME": str(folder)}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "troth", "serve", str(config), "--port", "0", *(options or ("--no-auth",))),
        stderr=asyncio.subprocess.PIPE,
        env=environ,
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE):
            while not (line := (await process.stderr.readline()).decode()).startswith("ready "):
                assert line, "the gateway ended"
        url = line.split()[1].removesuffix("/mcp")
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as http:
            yield Endpoint(url, http, process, folder)
    finally:
        if process.returncode is None:
            process.kill()
        async with asyncio.timeout(PATIENCE):
            # The rest of what it said is read, so that its pipe does not outlive the loop.
            await process.communicate()


async def listed(host: Legacy | Modern, name: str = "slow") -> None:
    """Waits until a host sees a tool."""
    async with asyncio.timeout(PATIENCE):
        while name not in [tool["name"] for tool in (await host.ask("tools/list")).result["tools"]]:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def outlives(one: Site, support: str = "required") -> Work:
    """Work of a server that takes until the test says otherwise."""
    for tool in one.script.catalogue.tools:
        if tool["name"] == "slow":
            tool["execution"] = {"taskSupport": support}
    return Work(one)


BOTH = {**KNOWS, "elicitation": {"form": {}}}


@pytest.mark.parametrize(
    ("revision", "support", "end"),
    [
        (OLD, "required", "kill"),
        (MODERN, "required", "kill"),
        (MODERN, "optional", "kill"),
        (MODERN, "optional", "stop"),
    ],
)
async def test_a_task_that_its_upstream_keeps_goes_on_after_a_restart(
    revision: str, support: str, end: str, tmp_path: Path
) -> None:
    async with site(MODERN) as one:
        work = outlives(one, support)
        async with endpoint(one, tmp_path) as before, knowing(before, revision) as host:
            await listed(host)
            name = await begin(host)
            assert (await host.ask("tasks/get", {"taskId": name})).result["status"] == "working"
            await before.keeps(name)
            assert list(before.owned()) == [name]
            if end == "kill":
                await before.kill()
            else:
                before.process.terminate()
                async with asyncio.timeout(PATIENCE):
                    await before.process.wait()
        work.message = "half of it is done"
        async with endpoint(one, tmp_path) as after, knowing(after, revision) as host:
            told = await ended(host, name, lambda task: task.get("statusMessage") == work.message)
            assert told.result["status"] == "working"
            work.status = "completed"
            told = await ended(host, name)
            assert told.result["status"] == "completed"
            if revision == OLD:
                assert (await host.ask("tasks/result", {"taskId": name})).result["content"] == DONE
            else:
                assert told.result["result"]["content"] == DONE
        assert one.count("tools/call") == 1
        assert one.count("tasks/cancel") == 0


@pytest.mark.parametrize("revision", [OLD, MODERN])
async def test_a_task_that_goes_on_after_a_restart_is_cancelled_at_its_upstream(revision: str, tmp_path: Path) -> None:
    async with site(MODERN) as one:
        outlives(one)
        async with endpoint(one, tmp_path) as before, knowing(before, revision) as host:
            await listed(host)
            name = await begin(host)
            theirs = await before.keeps(name)
            await before.kill()
        async with endpoint(one, tmp_path) as after, knowing(after, revision) as host:
            await host.ask("tasks/cancel", {"taskId": name})
            assert (await one.hears("tasks/cancel"))["params"]["taskId"] == theirs


@pytest.mark.parametrize("answered", ["before the end", "between", "after the start"])
async def test_a_question_of_a_task_is_answered_once_over_a_restart(answered: str, tmp_path: Path) -> None:
    async with site(MODERN) as one:
        work = outlives(one)
        brought = asks(work)
        async with endpoint(one, tmp_path) as before, knowing(before, MODERN, declares=BOTH) as host:
            await listed(host)
            if answered == "before the end":
                one.answers["tasks/update"] = lambda *_: SILENT
            name = await begin(host)
            asked = (await ended(host, name, lambda task: bool(task.get("inputRequests")))).result["inputRequests"]
            if answered == "before the end":
                await host.ask("tasks/update", {"taskId": name, "inputResponses": {"who": ACCEPTED}})
                await one.hears("tasks/update")
            await before.keeps(name)
            await before.kill()
        if answered == "between":
            await one.stop()
        brought = asks(work)
        async with endpoint(one, tmp_path) as after, knowing(after, MODERN, declares=BOTH) as host:
            if answered == "between":
                assert (await host.ask("tasks/get", {"taskId": name})).result["inputRequests"] == asked
                await host.ask("tasks/update", {"taskId": name, "inputResponses": {"who": ACCEPTED}})
                answers = dict(one.answers)
                await one.start()
                one.answers.update(answers)
            elif answered == "before the end":
                # Nobody knows whether the answer arrived: the upstream says so by asking again.
                told = await ended(host, name, lambda task: bool(task.get("inputRequests")))
                ((key, _),) = told.result["inputRequests"].items()
                await host.ask("tasks/update", {"taskId": name, "inputResponses": {key: ACCEPTED}})
            else:
                told = await ended(host, name, lambda task: task["status"] == "input_required")
                assert told.result["inputRequests"] == asked
                await host.ask("tasks/update", {"taskId": name, "inputResponses": {"who": ACCEPTED}})
            assert (await ended(host, name)).result["result"]["content"] == DONE
        assert brought == [{"who": ACCEPTED}]


async def test_a_question_that_its_upstream_no_longer_asks_is_taken_back_after_a_restart(tmp_path: Path) -> None:
    async with site(MODERN) as one:
        work = outlives(one)
        asks(work)
        async with endpoint(one, tmp_path) as before, knowing(before, MODERN, declares=BOTH) as host:
            await listed(host)
            name = await begin(host)
            await ended(host, name, lambda task: task["status"] == "input_required")
            await before.keeps(name)
            await before.kill()
        work.status, work.more = "working", {}
        async with endpoint(one, tmp_path) as after, knowing(after, MODERN, declares=BOTH) as host:
            await ended(host, name, lambda task: task["status"] == "working")
            work.status = "completed"
            assert (await ended(host, name)).result["status"] == "completed"


async def test_a_task_of_an_upstream_that_is_another_one_now_is_lost(tmp_path: Path) -> None:
    async with site(MODERN) as one, site(MODERN) as other:
        outlives(one)
        outlives(other)
        async with endpoint(one, tmp_path) as before, knowing(before, MODERN) as host:
            await listed(host)
            name = await begin(host)
            await before.keeps(name)
            await before.kill()
        async with endpoint(other, tmp_path) as after, knowing(after, MODERN) as host:
            told = await ended(host, name)
            assert told.result["status"] == "failed"
            assert "may have had effects" in told.result["error"]["message"]
        assert other.count("tasks/get") == 0


async def test_a_gateway_leaves_tasks_to_another_one_whose_hosts_have_them(tmp_path: Path) -> None:
    async with site(MODERN) as one:
        work = outlives(one)
        async with endpoint(one, tmp_path) as before, knowing(before, MODERN) as host:
            await listed(host)
            name = await begin(host)
            await before.keeps(name)
            await before.kill()
        async with running(one, tmp_path) as pipes:
            assert "code" in await pipes.ask("tasks/get", taskId=name)
        work.status = "completed"
        async with endpoint(one, tmp_path) as after, knowing(after, MODERN) as host:
            assert (await ended(host, name)).result["result"]["content"] == DONE


async def test_a_task_stays_with_its_principal_over_a_restart(tmp_path: Path) -> None:
    tokens = {"theirs": "t" * 32, "ours": "o" * 32}
    (tmp_path / "troth").mkdir()
    credentials(tmp_path, tokens)
    async with site(MODERN) as one:
        work = outlives(one)
        async with endpoint(one, tmp_path, "--log-level", "warning") as before:
            async with knowing(before, MODERN, token=tokens["ours"]) as host:
                await listed(host)
                name = await begin(host)
            await before.keeps(name)
            await before.kill()
        work.status = "completed"
        async with endpoint(one, tmp_path, "--log-level", "warning") as after:
            async with knowing(after, MODERN, token=tokens["theirs"]) as host:
                assert (await host.ask("tasks/get", {"taskId": name})).error["code"] == -32602
            async with knowing(after, MODERN, token=tokens["ours"]) as host:
                assert (await ended(host, name)).result["result"]["content"] == DONE


def credentials(folder: Path, tokens: dict[str, str]) -> None:
    """Lets these be the tokens of gateways."""
    path = folder / "troth" / "tokens.json"
    path.write_text(json.dumps({name: {"token": token} for name, token in tokens.items()}))
    path.chmod(0o600)


async def test_a_task_of_a_principal_that_may_speak_no_more_is_not_gone_on_with(tmp_path: Path) -> None:
    tokens = {"theirs": "t" * 32, "ours": "o" * 32}
    (tmp_path / "troth").mkdir()
    credentials(tmp_path, tokens)
    async with site(MODERN) as one:
        outlives(one)
        async with endpoint(one, tmp_path, "--log-level", "warning") as before:
            async with knowing(before, MODERN, token=tokens["ours"]) as host:
                await listed(host)
                name = await begin(host)
            await before.keeps(name)
            await before.kill()
        await one.stop()
        async with endpoint(one, tmp_path, "--log-level", "warning") as after:
            assert after.owned()
            credentials(tmp_path, {"theirs": tokens["theirs"]})
            async with asyncio.timeout(PATIENCE):
                while after.owned():  # noqa: ASYNC110 - another process ends it
                    await asyncio.sleep(0.05)
        await one.start()


async def test_what_an_upstream_still_does_for_a_call_that_died_with_the_gateway_is_cancelled(tmp_path: Path) -> None:
    async with site(MODERN) as one:
        outlives(one)
        async with endpoint(one, tmp_path) as before, before_call(before) as call:
            await one.hears("tasks/get")
            theirs = one.of("tasks/get")[0]["params"]["taskId"]
            async with asyncio.timeout(PATIENCE):
                while list(before.owned().values()) != [theirs]:  # noqa: ASYNC110 - another process writes it
                    await asyncio.sleep(0.02)
            await before.kill()
            with pytest.raises(aiohttp.ClientError):
                await call
        async with endpoint(one, tmp_path) as after:
            assert (await one.hears("tasks/cancel"))["params"]["taskId"] == theirs
            async with asyncio.timeout(PATIENCE):
                while after.owned():  # noqa: ASYNC110 - another process forgets it
                    await asyncio.sleep(0.02)


async def test_a_call_whose_task_ended_leaves_nothing_to_cancel(tmp_path: Path) -> None:
    async with site(MODERN) as one:
        work = outlives(one)
        async with endpoint(one, tmp_path) as before, before_call(before) as call:
            await one.hears("tasks/get")
            work.status = "completed"
            assert (await call).result["content"] == DONE
            async with asyncio.timeout(PATIENCE):
                while before.owned():  # noqa: ASYNC110 - another process forgets it
                    await asyncio.sleep(0.02)


@asynccontextmanager
async def before_call(served: Endpoint) -> AsyncGenerator[asyncio.Task[Told]]:
    """A call of a host that knows no tasks."""
    async with Modern(served) as host:
        await listed(host)
        call = asyncio.get_running_loop().create_task(host.call("slow"))
        try:
            yield call
        finally:
            call.cancel()


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
            assert lost["statusMessage"] == "The task was lost in a restart, and may have had effects"
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
