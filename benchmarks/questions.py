"""What becomes of questions: ``python -m benchmarks.questions kinds|parked|killed``, or nothing for all three.

``kinds``: every kind of question, asked of hosts that declared this or that, in the four pairs of eras, by upstreams
that ask whatever was declared to them; what came of it, and how soon. ``parked``: calls that wait for answers all at
once; memory for each and time to resume. ``killed``: the gateway is killed with questions and tasks open, is started
again, and is asked about them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import anyio

from benchmarks.gateway.processes import Started, free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

Json = dict[str, Any]

LEGACY, MODERN = "2025-11-25", "2026-07-28"
ERAS = {"legacy": LEGACY, "modern": MODERN}
META = "io.modelcontextprotocol/"
FORM: Json = {"form": {}}
URL: Json = {"url": {}}
DECLARED: dict[str, Json] = {
    "none": {},
    "form only": {"elicitation": FORM},
    "url only": {"elicitation": URL},
    "sampling": {"sampling": {}},
    "sampling+tools": {"sampling": {"tools": {}}},
    "all": {"roots": {}, "sampling": {"tools": {}}, "elicitation": {**FORM, **URL}},
}
"""Kinds of hosts, by what they declare."""
PATIENT: Json = {"elicitation": FORM, "extensions": {"io.modelcontextprotocol/tasks": {}}}
"""What a host declares that takes tasks."""
SAMPLE = Path(__file__).parents[1] / "examples" / "sample_server.py"
KINDS = ("roots", "sampling", "sampling_tools", "form", "url")
SAID: dict[str, Json] = {
    "roots/list": {"roots": [{"uri": "file:///ada", "name": "ada"}]},
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": "four"},
        "model": "m",
        "stopReason": "endTurn",
    },
    "form": {"action": "accept", "content": {"name": "Ada"}},
    "url": {"action": "accept"},
}
"""What hosts answer, by method; to elicitations by mode."""
PATIENCE = 120.0
"""Seconds for one call, and for a start."""
PARKED = 1000
LEFT = 20
"""Questions that are open when the gateway is killed."""


def answer(request: Json) -> Json:
    """A host's answer to a question."""
    if request["method"] == "elicitation/create":
        return SAID[request["params"].get("mode", "form")]
    return SAID[request["method"]]


class Host:
    """A host of either era at the endpoint of the gateway."""

    def __init__(self, http: aiohttp.ClientSession, url: str, revision: str, declared: Json) -> None:
        self.http, self.url, self.revision, self.declared = http, url, revision, declared
        self.headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": revision}
        self.ids = count(1)
        self.info = {"name": "host", "version": "1"}

    async def open(self) -> Host:
        """Does the handshake of its era."""
        if self.revision == LEGACY:
            params = {"protocolVersion": LEGACY, "capabilities": self.declared, "clientInfo": self.info}
            opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
            async with self.http.post(self.url, json=opening, headers=self.headers) as response:
                self.headers["mcp-session-id"] = response.headers["mcp-session-id"]
                await response.read()
            await self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    async def say(self, message: Json) -> None:
        """Sends what is not answered."""
        async with self.http.post(self.url, json=message, headers=self.headers) as response:
            await response.read()

    async def ask(self, method: str, params: Json) -> Json:
        """One request and its answer; what is asked meanwhile is answered."""
        headers = dict(self.headers)
        if self.revision == MODERN:
            told = {f"{META}protocolVersion": MODERN, f"{META}clientInfo": self.info}
            params = {**params, "_meta": {**told, f"{META}clientCapabilities": self.declared}}
            named = params.get("name", params.get("taskId"))
            headers |= {"mcp-method": method, **({"mcp-name": named} if named else {})}
        message = {"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": params}
        with anyio.fail_after(PATIENCE):
            async with self.http.post(self.url, json=message, headers=headers) as response:
                async for frame in frames(response):
                    if "method" not in frame:
                        return frame
                    if "id" in frame:
                        await self.say({"jsonrpc": "2.0", "id": frame["id"], "result": answer(frame)})
        raise RuntimeError(f"no answer to {method}")

    async def call(self, tool: str) -> Json:
        """A call with all its rounds: the last answer."""
        params: Json = {"name": tool, "arguments": {}}
        frame = await self.ask("tools/call", params)
        while frame.get("result", {}).get("resultType") == "input_required":
            frame = await self.ask("tools/call", {**params, **retried(frame["result"])})
        return frame

    async def named(self, wanted: set[str]) -> None:
        """Waits until the gateway lists the tools.

        Raises:
            RuntimeError: It does not in time.
        """
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            listed = await self.ask("tools/list", {})
            if wanted <= {tool["name"] for tool in listed["result"]["tools"]}:
                return
            await anyio.sleep(0.1)
        raise RuntimeError(f"the gateway does not list {sorted(wanted)}")


def retried(result: Json) -> Json:
    """The members that a call is sent again with."""
    answers = {key: answer(request) for key, request in result.get("inputRequests", {}).items()}
    return {"inputResponses": answers, "requestState": result["requestState"]}


async def frames(response: aiohttp.ClientResponse) -> AsyncIterator[Json]:
    """The messages of a response of either content type."""
    if response.content_type == "application/json":
        yield json.loads(await response.read())
        return
    async for line in response.content:
        if line.startswith(b"data:") and (data := line[5:].strip()):
            yield json.loads(data)


class Place:
    """A folder with upstreams and a gateway."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entries: dict[str, Json] = {}
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.config = folder / "mcp.json"
        self.env = {"XDG_STATE_HOME": str(folder / "state"), "XDG_CONFIG_HOME": str(folder / "config")}

    @contextmanager
    def asker(self, name: str, revision: str, *more: str, **settings: Any) -> Iterator[None]:
        """A server over HTTP that asks."""
        words = ("--transport", "http", "--variant", "asker", "--revision", revision, *more)
        with self.server(name, sys.executable, "-m", "troth.testing", "server", *words, **settings):
            yield

    @contextmanager
    def server(self, name: str, *command: str, **settings: Any) -> Iterator[None]:
        """A server over HTTP, which takes ``--port``."""
        port = free_port()
        server = Started(name, (*command, "--port", str(port)), self.folder)
        try:
            server.wait(port)
            entry: Json = {"url": f"http://127.0.0.1:{port}/mcp"}
            self.entries[name] = {**entry, **({"troth": settings} if settings else {})}
            yield
        finally:
            server.stop()

    def start(self) -> Started:
        """The gateway in front of them."""
        self.config.write_text(json.dumps({"mcpServers": self.entries}), "utf-8")
        words = ("-m", "troth", "serve", str(self.config), "--port", str(self.port), "--no-auth")
        gateway = Started("gateway", (sys.executable, *words), self.folder, self.env)
        gateway.wait(self.port)
        return gateway


def pending(place: Place) -> list[Json]:
    """What `troth questions list` tells of a place."""
    command = (sys.executable, "-m", "troth", "questions", "list", "--json")
    env = {**os.environ, **place.env}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE, env=env)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[2:])}: {done.stderr.strip()}")
    return json.loads(done.stdout)


@asynccontextmanager
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    """An HTTP client that takes as many connections as it needs."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None)) as http:
        yield http


def told(frame: Json) -> str:
    """What came of a call, in few words."""
    if "error" in frame:
        return f"error {frame['error']['code']}"
    text = frame["result"]["content"][0]["text"]
    if found := re.search(r'"code": (-?\d+)', text):
        return f"refused {found[1]}"
    if "cannot be asked" in text:
        return "not asked"
    if found := re.search(r'"action": "(cancel|decline)"', text):
        return found[1]
    return "answered"


async def kinds(folder: Path) -> None:
    """The table of kinds of questions, kinds of hosts and pairs of eras."""
    place = Place(folder)
    with ExitStack() as stack:
        for kind in KINDS:
            for era, revision in ERAS.items():
                dashed = kind.replace("_", "-")
                more = ("--break", f"asks-undeclared-{dashed}")
                stack.enter_context(place.asker(f"{era}-{dashed}", revision, *more))
        gateway = place.start()
        stack.callback(gateway.stop)
        print("\n## Kinds of questions, kinds of hosts, pairs of eras\n")
        pairs = [(host, upstream) for host in ERAS for upstream in ERAS]
        print("| question | host declares |", " | ".join(f"{host} host, {one} upstream" for host, one in pairs), "|")
        print("|---" * (2 + len(pairs)) + "|")
        async with client() as http:
            for kind in KINDS:
                for name, declared in DECLARED.items():
                    cells = [await cell(http, place, kind, declared, *pair) for pair in pairs]
                    print(f"| {kind} | {name} |", " | ".join(cells), "|", flush=True)


async def cell(http: aiohttp.ClientSession, place: Place, kind: str, declared: Json, host: str, upstream: str) -> str:
    """What came of one question, and after how many milliseconds."""
    peer = await Host(http, place.url, ERAS[host], declared).open()
    tool = f"{upstream}-{kind.replace('_', '-')}_ask_{kind}"
    await peer.named({tool})
    began = time.perf_counter()
    frame = await peer.call(tool)
    return f"{told(frame)}, {(time.perf_counter() - began) * 1000:.0f} ms"


async def parked(folder: Path, number: int) -> None:
    """Many calls of modern hosts wait for answers behind a legacy server, and are all resumed."""
    place = Place(folder)
    with ExitStack() as stack:
        stack.enter_context(place.asker("old", LEGACY))
        gateway = place.start()
        stack.callback(gateway.stop)
        async with client() as http:
            host = await Host(http, place.url, MODERN, DECLARED["all"]).open()
            await host.named({"ask_form"})
            await host.call("ask_form")
            before = gateway.memory(root=True)
            waiting: list[Json] = []

            async def park() -> None:
                frame = await host.ask("tools/call", {"name": "ask_form", "arguments": {}})
                waiting.append(frame["result"])

            began = time.perf_counter()
            await together(park, number)
            parking = time.perf_counter() - began
            grown = gateway.memory(root=True) - before
            times: list[float] = []
            ends: Counter[str] = Counter()

            async def resume() -> None:
                call = {"name": "ask_form", "arguments": {}, **retried(waiting.pop())}
                start = time.perf_counter()
                frame = await host.ask("tools/call", call)
                times.append(time.perf_counter() - start)
                ends[told(frame)] += 1

            alone = [await timed(resume) for _ in range(10)]
            began = time.perf_counter()
            await together(resume, number - len(alone))
            print(f"\n## {number} parked calls\n")
            print(f"- parked in {parking:.1f} s; {grown / number / 1000:.1f} kB for each call")
            print(f"- resumed one by one: {statistics.median(alone) * 1000:.1f} ms (median of {len(alone)})")
            print(f"- resumed all at once: {time.perf_counter() - began:.1f} s; the slowest took {max(times):.1f} s")
            print(f"- ended: {', '.join(f'{count} {end}' for end, count in ends.items())}")


async def together(work: Callable[[], Awaitable[None]], times: int, at_once: int = 200) -> None:
    """Does something many times, several at once."""
    bound = anyio.CapacityLimiter(at_once)

    async def one() -> None:
        async with bound:
            await work()

    async with anyio.create_task_group() as group:
        for _ in range(times):
            group.start_soon(one)


async def timed(work: Callable[[], Awaitable[None]]) -> float:
    """Seconds that something takes."""
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


async def killed(folder: Path) -> None:
    """The gateway is killed while it holds questions for people and for hosts."""
    place = Place(folder)
    with ExitStack() as stack:
        stack.enter_context(place.asker("people", LEGACY, ask=["broker"]))
        stack.enter_context(place.asker("old", LEGACY))
        place.entries["sample"] = {"command": sys.executable, "args": [str(SAMPLE)]}
        stack.enter_context(place.server("kept", sys.executable, str(SAMPLE), "http"))
        gateway = place.start()
        async with client() as http:
            host = await Host(http, place.url, MODERN, PATIENT).open()
            await host.named({"old_ask_form", "people_ask_form", "sample_count", "kept_count"})
            long = {"arguments": {"to": 10_000}}
            tasks = await tasks_of(host, {"name": "sample_count", **long})
            kept_tasks = await tasks_of(host, {"name": "kept_count", **long})
            states = [await host.ask("tools/call", {"name": "old_ask_form", "arguments": {}}) for _ in range(LEFT)]
            async with anyio.create_task_group() as group:
                for _ in range(LEFT):
                    group.start_soon(lost, host)
                await filed(place, LEFT)
                gateway.process.kill()
        gateway.stop()
        gateway = place.start()
        stack.callback(gateway.stop)
        kept = pending(place)
        print(f"\n## Killed with {LEFT} questions for people, parked calls and tasks each, and started again\n")
        print(f"- `troth questions list`: {len(kept)} of {LEFT}, {Counter(each['state'] for each in kept)}")
        async with client() as http:
            host = await Host(http, place.url, MODERN, PATIENT).open()
            await host.named({"old_ask_form", "kept_count"})
            said: Counter[str] = Counter()
            for state in states:
                call = {"name": "old_ask_form", "arguments": {}, **retried(state["result"])}
                error = (await host.ask("tools/call", call)).get("error", {})
                said[f"{error.get('code')} {error.get('message')}"] += 1
            for text, times in said.items():
                print(f"- a parked call that is answered now, {times} times: {text}")
            for where, names in (("on pipes", tasks), ("over HTTP, which has the extension,", kept_tasks)):
                said = Counter([told_of(await host.ask("tasks/get", {"taskId": name})) for name in names])
                for text, times in said.items():
                    print(f"- a task of a server {where} that is asked about now, {times} times: {text}")
            await went_on(host, kept_tasks)


async def tasks_of(host: Host, call: Json) -> list[str]:
    """Ids of tasks that a call becomes."""
    return [(await host.ask("tools/call", call))["result"]["taskId"] for _ in range(LEFT)]


async def went_on(host: Host, names: list[str]) -> None:
    """Waits until the words of each task have changed; how long that took, and what came of cancelling them all."""
    words = {name: told_of(await host.ask("tasks/get", {"taskId": name})) for name in names}
    began = time.perf_counter()
    with anyio.fail_after(PATIENCE):
        while words:
            for name in [*words]:
                if told_of(await host.ask("tasks/get", {"taskId": name})) != words[name]:
                    del words[name]
            await anyio.sleep(0.05)
    print(f"- all {len(names)} of those were seen to go on within {time.perf_counter() - began:.1f} s")
    for name in names:
        await host.ask("tasks/cancel", {"taskId": name})
    said = Counter([told_of(await host.ask("tasks/get", {"taskId": name})) for name in names])
    for text, times in said.items():
        print(f"- after they were cancelled, {times} times: {text}")


def told_of(frame: Json) -> str:
    """What became of a task."""
    if "error" in frame:
        return f"{frame['error']['code']} {frame['error']['message']}"
    task = frame["result"]
    return f"{task['status']}: {task.get('error', {}).get('message') or task.get('statusMessage')}"


async def filed(place: Place, number: int) -> None:
    """Waits until so many questions wait for people.

    Raises:
        TimeoutError: They do not in time.
    """
    with anyio.fail_after(PATIENCE):
        while len(pending(place)) < number:  # noqa: ASYNC110 - another process files them
            await anyio.sleep(0.05)


async def lost(host: Host) -> None:
    """A call whose gateway dies."""
    with suppress(aiohttp.ClientError, RuntimeError):
        await host.ask("tools/call", {"name": "people_ask_form", "arguments": {}})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=["kinds", "parked", "killed"])
    parser.add_argument("--calls", type=int, default=PARKED, help="calls that are parked at once")
    chosen = parser.parse_args()
    parts = {"kinds": kinds, "parked": lambda folder: parked(folder, chosen.calls), "killed": killed}
    for part in [chosen.part] if chosen.part else parts:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(parts[part](Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
