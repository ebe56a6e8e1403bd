"""Hosts of the soak: legacy and modern, over HTTP and stdio. Each calls, listens, leaves in the middle and comes back.

What a host was promised is written down in a `Ledger`: a call of a steady server succeeds and gets its own answer, and
so does each notification of its progress; every call of any server ends; every open listener hears of every change.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import aiohttp
import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from anyio.abc import ObjectSendStream, Process, TaskGroup

    Json = dict[str, Any]

OLD, NEW = "2025-11-25", "2026-07-28"
META = "io.modelcontextprotocol/"
WATCHED = "test://watched-resource"
OPEN = "sessions that nobody ended"
LEFT = "of these to be cancelled at the server that is asked"
ANSWER = 45.0
"""Seconds within which every call must end: more than any time-out of the gateway that may apply."""
LEAVE = 40.0
"""Seconds that a host takes at most to leave."""
HEARD = 15.0
"""Seconds within which a change must reach every listener. It takes a tenth of a second; much later another change may
have come to its help."""


SHOWN = 60
"""Broken promises that are kept in words; all are counted."""
BEGAN = time.monotonic()
DIED = re.compile(r"\bold\b.* exited with status 1\b")
"""What is said of a server of `mcp` 1.30 when a call is cancelled that ends just then: that ends the process, with or
without a gateway. It is started again."""


@dataclass
class Ledger:
    """What was promised, and what became of it."""

    counts: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")

    def broke(self, what: str) -> None:
        if DIED.search(what):
            self.counts["calls lost as the server of an older SDK died by itself"] += 1
            return
        self.counts["broken promises"] += 1
        if len(self.broken) < SHOWN:
            self.broken.append(f"{time.monotonic() - BEGAN:.1f} s: {what}")


class Gone(Exception):  # noqa: N818 - an event of the soak, not an error
    """The connection of a host ended."""


class Failed(Exception):  # noqa: N818
    """The answer to a request is an error."""


@dataclass(frozen=True)
class Plan:
    """What hosts are to do.

    Attributes:
        url: Endpoint of the gateway.
        steady: Prefixes of names of the servers that are left in peace; empty for a server without the gateway.
        shaky: Those of servers that are killed.
        command: How hosts over stdio start a gateway.
        pause: Least and most seconds between two things that a host does.
    """

    url: str
    steady: tuple[str, ...]
    shaky: tuple[str, ...]
    command: tuple[str, ...] = ()
    pause: tuple[float, float] = (0.1, 1.0)

    def watched(self) -> list[str]:
        """The URIs of the resource that changes, of every server."""
        return [uri(prefix, WATCHED) for prefix in (*self.steady, *self.shaky)]


def name(prefix: str, own: str) -> str:
    """What hosts call a tool or prompt of a server."""
    return f"{prefix}_{own}" if prefix else own


def uri(prefix: str, own: str) -> str:
    """What hosts call a resource of a server."""
    return f"{prefix}+{own}" if prefix else own


class Host:
    """One host: an endless row of things that it does, until it is stopped."""

    kind: ClassVar[str]
    modern: ClassVar[bool]

    def __init__(self, plan: Plan, ledger: Ledger, seed: int) -> None:
        self.plan, self.ledger = plan, ledger
        self.random = random.Random(seed)
        self.name = f"{self.kind}-{seed}"
        self.listens = 0
        """Which of its streams is open: 0 for none, another number for each new one."""
        self._streams = 0
        self._number = 0
        self.changes: Counter[str] = Counter()
        self.view: set[str] = set()
        """The tools that it was last served, and when."""
        self.viewed = 0.0

    # What a kind of host does in its own way

    async def open(self, life: TaskGroup) -> None:
        """Connects; what must run as long as the connection does is started in `life`."""

    async def close(self) -> None:
        """Leaves in good order."""

    async def exchange(self, frame: Json) -> AsyncIterator[Json]:
        """Sends a request; messages up to its answer."""
        raise NotImplementedError
        yield {}

    async def listen(self, started: Callable[[], None]) -> None:
        """Listens until the stream ends."""
        raise NotImplementedError

    # What all do

    def frame(self, method: str, params: Json) -> Json:
        self._number += 1
        if self.modern:
            own = {f"{META}protocolVersion": NEW, f"{META}clientInfo": {"name": self.name, "version": "1"}}
            own[f"{META}clientCapabilities"] = {}
            params = {**params, "_meta": {**params.get("_meta", {}), **own}}
        return {"jsonrpc": "2.0", "id": f"{self.name}:{self._number}", "method": method, "params": params}

    async def request(self, method: str, params: Json | None = None, notes: list[Json] | None = None) -> Json:
        """The result of a request.

        Raises:
            Failed: The answer is an error.
            Gone: The connection ended before the answer.
        """
        frame, began = self.frame(method, params or {}), time.monotonic()
        try:
            with anyio.fail_after(ANSWER):
                async for message in self.exchange(frame):
                    if message.get("id") == frame["id"]:
                        asked = f"{self.kind}: {method} {(params or {}).get('name', '')}"
                        self.ledger.slowest = max(self.ledger.slowest, (time.monotonic() - began, asked))
                        if "error" in message:
                            raise Failed(str(message["error"])[:300])
                        return message["result"]
                    if "method" in message and "id" not in message:
                        self.note(message)
                        if notes is not None:
                            notes.append(message)
                    else:
                        self.ledger.broke(f"{self.name} got what is not its own: {str(message)[:200]}")
        except TimeoutError:
            self.ledger.broke(f"{self.name}: {method} {params} has no answer after {ANSWER} s")
            raise Failed("no answer") from None
        raise Gone(method)

    def note(self, message: Json) -> None:
        """Counts a notification of a change."""
        match message["method"]:
            case "notifications/tools/list_changed":
                self.changes["tools"] += 1
            case "notifications/resources/updated":
                self.changes[str(message["params"].get("uri"))] += 1

    async def call(self, prefix: str, tool: str, arguments: Json | None = None, **more: Any) -> Json:
        return await self.request("tools/call", {"name": name(prefix, tool), "arguments": arguments or {}}, **more)

    async def run(self) -> None:
        """Lives until it is cancelled; what it was promised and did not get is in the ledger."""
        while True:
            async with anyio.create_task_group() as life:
                try:
                    await self.open(life)
                    life.start_soon(self._keep_listening)
                    for _ in range(self.random.randint(10, 40)):
                        await self.random.choice(STEPS)(self)
                        await anyio.sleep(self.random.uniform(*self.plan.pause))
                    self.ledger.counts["hosts that left and came back"] += 1
                except (Gone, Failed, aiohttp.ClientError, OSError) as error:
                    # Nobody ends the connection of a host but the host itself.
                    self.ledger.broke(f"{self.name}: {type(error).__name__} {error}")
                    await anyio.sleep(1)
                finally:
                    self.listens = 0
                    with anyio.CancelScope(shield=True), anyio.move_on_after(LEAVE):
                        await self.leave()
                life.cancel_scope.cancel()

    async def leave(self) -> None:
        """Leaves, at times without a word."""
        with suppress(Gone, Failed, aiohttp.ClientError, OSError):
            await self.close()

    async def _keep_listening(self) -> None:
        self._streams += 1
        number = self._streams

        def started() -> None:
            self.listens = number

        with suppress(Gone, Failed, aiohttp.ClientError, OSError):
            await self.listen(started)
        if self.listens == number:
            self.listens = 0


# Steps


async def add(host: Host) -> None:
    a, b = host.random.randint(0, 10**9), host.random.randint(0, 10**9)
    prefix = host.random.choice(host.plan.steady)
    result = await host.call(prefix, "test_structured_content", {"a": a, "b": b})
    host.ledger.counts["calls of steady servers"] += 1
    if result.get("structuredContent") != {"sum": a + b}:
        host.ledger.broke(f"{host.name}: {a} + {b} is {str(result)[:200]}")


async def progress(host: Host) -> None:
    token = f"{host.name}-{host.random.random()}"
    notes: list[Json] = []
    frame = {"name": name(host.random.choice(host.plan.steady), "test_tool_with_progress"), "arguments": {}}
    await host.request("tools/call", {**frame, "_meta": {"progressToken": token}}, notes)
    mine = [one["params"] for one in notes if one["method"] == "notifications/progress"]
    host.ledger.counts["calls with progress"] += 1
    if [(one["progressToken"], one["progress"]) for one in mine] != [(token, 0), (token, 50), (token, 100)]:
        host.ledger.broke(f"{host.name}: progress {str(mine)[:300]}")


async def risky(host: Host) -> None:
    if not host.plan.shaky:
        return
    a, b = host.random.randint(0, 10**9), host.random.randint(0, 10**9)
    host.ledger.counts["calls of servers that are killed"] += 1
    try:
        result = await host.call(host.random.choice(host.plan.shaky), "test_structured_content", {"a": a, "b": b})
    except Failed:
        host.ledger.counts["of these refused"] += 1
    else:
        if result.get("structuredContent") != {"sum": a + b}:
            host.ledger.broke(f"{host.name}: {a} + {b} is {str(result)[:200]}")


async def look(host: Host) -> None:
    prefix = host.random.choice(host.plan.steady)
    read = await host.request("resources/read", {"uri": uri(prefix, "test://static-text")})
    got = await host.request(
        "prompts/get",
        {"name": name(prefix, "test_prompt_with_arguments"), "arguments": {"arg1": host.name, "arg2": "x"}},
    )
    host.ledger.counts["resources and prompts"] += 2
    if "static text" not in read["contents"][0]["text"] or host.name not in got["messages"][0]["content"]["text"]:
        host.ledger.broke(f"{host.name}: {str(read)[:200]} {str(got)[:200]}")


async def names(host: Host) -> None:
    listed = {tool["name"] for tool in (await host.request("tools/list"))["tools"]}
    host.view, host.viewed = listed, time.monotonic()
    host.ledger.counts["lists"] += 1
    for prefix in host.plan.steady:
        if name(prefix, "test_structured_content") not in listed:
            host.ledger.broke(f"{host.name}: the tools of {prefix} are not in its list")


class Leaving(list["Json"]):
    """Notes of a call that ends what waits for it when the server says that it runs."""

    def __init__(self, scope: anyio.CancelScope) -> None:
        super().__init__()
        self.scope = scope

    def append(self, note: Json) -> None:
        if note["method"] == "notifications/progress":
            self.scope.cancel()


async def vanish(host: Host) -> None:
    """Leaves a call that runs at the server. What a modern host leaves is given up there too."""
    host.ledger.counts["calls left in the middle"] += 1
    modern = isinstance(host, ModernHttp)
    prefix = host.random.choice((*host.plan.steady, *host.plan.shaky))
    # What legacy hosts leave runs on; of the others none must end by itself before the server hears of it.
    call = {"name": name(prefix, "test_slow"), "arguments": {"seconds": 60 if modern else 3}}
    meta = {"_meta": {"progressToken": f"{host.name}-{host.random.random()}"}}
    with anyio.CancelScope() as left, suppress(Failed):
        await host.request("tools/call", {**call, **meta}, Leaving(left))
    if left.cancelled_caught and prefix == host.plan.steady[-1] and modern:
        host.ledger.counts[LEFT] += 1


STEPS = (add, add, add, add, progress, risky, risky, look, names, vanish)


# HTTP


class HttpHost(Host):
    """A host over HTTP."""

    def __init__(self, plan: Plan, ledger: Ledger, seed: int, client: aiohttp.ClientSession) -> None:
        super().__init__(plan, ledger, seed)
        self.client = client
        self.session: str | None = None

    def headers(self, frame: Json) -> dict[str, str]:
        headers = {"Accept": "application/json, text/event-stream"}
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        if frame.get("method") != "initialize":
            headers["MCP-Protocol-Version"] = NEW if self.modern else OLD
        if self.modern and "method" in frame:
            headers["Mcp-Method"] = frame["method"]
            if name := frame["params"].get("name") or frame["params"].get("uri"):
                headers["Mcp-Name"] = name
        return headers

    @asynccontextmanager
    async def post(self, frame: Json) -> AsyncIterator[aiohttp.ClientResponse]:
        async with self.client.post(self.plan.url, json=frame, headers=self.headers(frame)) as response:
            if response.status >= 500:
                self.ledger.broke(f"{self.name}: HTTP {response.status} to {frame.get('method')}")
            yield response

    async def exchange(self, frame: Json) -> AsyncIterator[Json]:
        async with self.post(frame) as response:
            self.session = response.headers.get("Mcp-Session-Id", self.session)
            if response.content_type == "text/event-stream":
                async for message in events(response):
                    yield message
            else:
                text = await response.text()
                try:
                    yield json.loads(text)
                except ValueError:
                    raise Failed(f"HTTP {response.status}: {text[:200]}") from None


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[Json]:
    """The messages of an event stream."""
    data: list[str] = []
    buffer = b""
    async for piece in response.content.iter_any():
        *lines, buffer = (buffer + piece).split(b"\n")
        for line in lines:
            text = line.decode().rstrip("\r")
            if text.startswith("data:"):
                data.append(text[5:].strip())
            elif not text and data:
                if whole := "\n".join(data):
                    yield json.loads(whole)
                data = []


class LegacyHttp(HttpHost):
    kind = "legacy-http"
    modern = False

    async def open(self, life: TaskGroup) -> None:
        self.session = None
        params = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": self.name, "version": "1"}}
        self.ledger.counts[OPEN] += 1
        await self.request("initialize", params)
        async with self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}):
            pass
        for watched in self.plan.watched():
            await self.request("resources/subscribe", {"uri": watched})

    async def listen(self, started: Callable[[], None]) -> None:
        async with self.client.get(self.plan.url, headers=self.headers({})) as response:
            started()
            async for message in events(response):
                self.note(message)

    async def close(self) -> None:
        if self.session and self.random.random() < 0.8:
            async with self.client.delete(self.plan.url, headers=self.headers({})) as response:
                self.ledger.counts[OPEN] -= response.status < 300
        self.session = None


class ModernHttp(HttpHost):
    kind = "modern-http"
    modern = True

    async def listen(self, started: Callable[[], None]) -> None:
        await listen_modern(self, started)


async def listen_modern(host: Host, started: Callable[[], None]) -> None:
    wanted = {"toolsListChanged": True, "resourceSubscriptions": host.plan.watched()}
    frame = host.frame("subscriptions/listen", {"notifications": wanted})
    first = True
    async for message in host.exchange(frame):
        if first and message.get("method") != "notifications/subscriptions/acknowledged":
            host.ledger.broke(f"{host.name}: the first message of a listen is {str(message)[:200]}")
        if first:
            started()
        first = False
        if message.get("method"):
            tag = message["params"].get("_meta", {}).get(f"{META}subscriptionId")
            if tag != frame["id"]:
                host.ledger.broke(f"{host.name}: the tag of {message['method']} is {tag}, not {frame['id']}")
            host.note(message)


# stdio


class StdioHost(Host):
    """A host that starts a gateway of its own over stdio."""

    process: Process

    async def open(self, life: TaskGroup) -> None:
        self.process = await anyio.open_process(self.plan.command, stderr=None)
        self.waiting: dict[str, ObjectSendStream[Json]] = {}
        self.tokens: dict[str, str] = {}
        life.start_soon(self._read)
        if not self.modern:
            params = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": self.name, "version": "1"}}
            await self.request("initialize", params)
            await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        # Its servers start with it: what is asked of one that is not there yet is refused, and that is no fault.
        deadline = time.monotonic() + ANSWER
        for prefix in self.plan.steady:
            while True:
                try:
                    await self.call(prefix, "test_simple_text")
                    break
                except Failed:
                    if time.monotonic() > deadline:
                        raise
                    await anyio.sleep(0.2)
        if not self.modern:
            for watched in self.plan.watched():
                await self.request("resources/subscribe", {"uri": watched})

    async def send(self, frame: Json) -> None:
        try:
            await self.process.stdin.send(json.dumps(frame).encode() + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise Gone("the pipe is closed") from None

    async def _read(self) -> None:
        buffer = b""
        async for piece in self.process.stdout:
            *lines, buffer = (buffer + piece).split(b"\n")
            for line in lines:
                self._sort(json.loads(line))
        for stream in list(self.waiting.values()):
            stream.close()

    def _sort(self, message: Json) -> None:
        """Hands a message to the request that it belongs to; what belongs to none is a change, or late."""
        owner = message.get("id") or message.get("params", {}).get("_meta", {}).get(f"{META}subscriptionId")
        if owner is not None:
            streams = [self.waiting[owner]] if owner in self.waiting else []
        elif message["method"] == "notifications/progress":
            late = message["params"]["progressToken"] not in self.tokens
            streams = [] if late else [self.waiting[self.tokens[message["params"]["progressToken"]]]]
        else:
            self.note(message)
            streams = []
        for stream in streams:
            with suppress(anyio.WouldBlock, anyio.BrokenResourceError):
                stream.send_nowait(message)

    async def exchange(self, frame: Json) -> AsyncIterator[Json]:
        sink, source = anyio.create_memory_object_stream[dict](1000)
        self.waiting[frame["id"]] = sink
        if token := frame["params"].get("_meta", {}).get("progressToken"):
            self.tokens[token] = frame["id"]
        answered = False
        try:
            await self.send(frame)
            async for message in source:
                answered = message.get("id") == frame["id"]
                yield message
                if answered:
                    return
        finally:
            del self.waiting[frame["id"]]
            self.tokens.pop(token, None)
            sink.close()
            source.close()
            if not answered:
                note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": frame["id"]}}
                with anyio.CancelScope(shield=True), anyio.move_on_after(1), suppress(Gone):
                    await self.send(note)

    async def close(self) -> None:
        if not hasattr(self, "process"):
            return
        await self.process.stdin.aclose()
        with anyio.move_on_after(LEAVE / 2):
            await self.process.wait()
        if self.process.returncode is None:
            self.ledger.broke(f"{self.name}: its gateway does not end with its standard input")
            self.process.kill()
            await self.process.wait()
        await self.process.aclose()


class LegacyStdio(StdioHost):
    kind = "legacy-stdio"
    modern = False

    async def listen(self, started: Callable[[], None]) -> None:
        started()
        await anyio.sleep_forever()


class ModernStdio(StdioHost):
    kind = "modern-stdio"
    modern = True

    async def listen(self, started: Callable[[], None]) -> None:
        await listen_modern(self, started)
