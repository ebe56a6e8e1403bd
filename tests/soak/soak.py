"""A week's abuse in some minutes: ``python tests/soak/soak.py [--minutes 10] [--hosts 200]``.

A gateway in front of four servers of both eras, over stdio and HTTP. Two of the servers are left in peace, so what is
promised about them must hold; two are killed again and again. Hosts of both eras come, call, listen, leave in the
middle of calls and come back; others send junk, or read nothing; the configuration changes and is read again. Every
few seconds a list and a resource change, and every open listener must hear it.

At the end the figures of the gateway are compared with those from before: nothing may have stayed.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "interop")]

import aiohttp
import anyio
import conformance
from soak_figures import Figures, below, command, held, kill
from soak_hosts import (
    HEARD,
    LEFT,
    META,
    NEW,
    OPEN,
    WATCHED,
    Failed,
    Gone,
    HttpHost,
    Ledger,
    LegacyHttp,
    LegacyStdio,
    ModernHttp,
    ModernStdio,
    Plan,
    name,
    uri,
)

from held_ports import held_port

if TYPE_CHECKING:
    from soak_hosts import Host

STEADY, SHAKY = ("old", "new"), ("frail", "web")
OVER_STDIO = 4
"""Hosts over stdio: each starts a gateway with servers of its own."""
BACK = 100.0
"""Seconds within which a killed server must answer again. One that dies again and again is started less and less often:
`Limits.back_off_most` is 60, to which chance adds a quarter, and then it must start."""
CALM = 60.0
"""Seconds within which a gateway without hosts must have let go of everything."""
SERVER = str(conformance.SERVERS / "every_dual.py")


def legacy_command() -> tuple[str, ...]:
    """The server of the old SDK; where its environment is missing, the dual one, to be spoken to in the old way."""
    return conformance.ONLY_LEGACY if Path(conformance.MCP1).is_file() else conformance.DUAL


def unbounded() -> aiohttp.ClientSession:
    """A client for all hosts, that limits nothing by itself."""
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None))


class Soak:
    """One soak.

    Args:
        folder: For configurations and logs.
        seconds: How long.
        hosts: How many.
        seed: What all chance comes from.
    """

    def __init__(self, folder: Path, seconds: float, hosts: int, seed: int) -> None:
        self.folder, self.seconds, self.count, self.seed = folder, seconds, hosts, seed
        self.ledger = Ledger()
        self.random = random.Random(seed)
        self.config = folder / "mcp.json"
        self.ports = ExitStack()
        self.port, self.web_port = (self.ports.enter_context(held_port()) for _ in "ab")
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.hosts: list[Host] = []
        self.heard = 0.0
        self.web: subprocess.Popen[bytes] | None = None
        self.gateway: subprocess.Popen[bytes]

    # Processes

    def write_config(self, *, extra: bool = False) -> None:
        python = sys.executable
        old = legacy_command()
        servers: dict[str, Any] = {
            "old": {"command": old[0], "args": list(old[1:])},
            "new": {"command": python, "args": [SERVER, "modern"]},
            "frail": {"command": python, "args": [SERVER, "dual"]},
            "web": {"url": f"http://127.0.0.1:{self.web_port}/mcp"},
        }
        if extra:
            servers["extra"] = {"command": python, "args": [SERVER, "modern"]}
        whole = self.config.with_suffix(".new")
        whole.write_text(json.dumps({"mcpServers": servers}), "utf-8")
        whole.replace(self.config)

    def write_small_config(self) -> Path:
        """The configuration of hosts over stdio: the steady servers alone."""
        old = legacy_command()
        path = self.folder / "stdio.json"
        servers = {
            "old": {"command": old[0], "args": list(old[1:])},
            "new": {"command": sys.executable, "args": [SERVER, "modern"]},
        }
        path.write_text(json.dumps({"mcpServers": servers}), "utf-8")
        return path

    def start_web(self) -> None:
        log = (self.folder / "web.log").open("ab")
        words = [sys.executable, SERVER, "dual", "--http", str(self.web_port)]
        self.web = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()

    def stop_web(self) -> None:
        if self.web is not None:
            self.web.kill()
            self.web.wait()

    def hang_up(self) -> None:
        """Makes the gateway read its configuration again, if it still lives."""
        if self.gateway.poll() is None:
            self.gateway.send_signal(signal.SIGHUP)

    # What is held

    async def figures(self) -> Figures:
        run = json.loads((self.folder / "troth" / "run" / f"{self.gateway.pid}.json").read_text("utf-8"))
        headers = {"Authorization": f"Bearer {run['operator']}"}
        async with aiohttp.ClientSession() as client, client.get(run["url"] + "/status", headers=headers) as response:
            return held(self.gateway.pid, await response.json())

    # The course

    async def run(self) -> tuple[Figures, Figures]:
        """Figures before and after."""
        self.write_config()
        small = self.write_small_config()
        plan = Plan(self.url, STEADY, SHAKY)
        serve = (sys.executable, "-m", "troth", "serve", str(small), "--stdio")
        alone = Plan(self.url, STEADY, (), serve)
        with self.ports, ExitStack() as running:
            self.start_web()
            running.callback(self.stop_web)
            log = self.folder / "gateway.log"
            # Where it says by which token its status may be read.
            env = {**os.environ, "XDG_STATE_HOME": str(self.folder)}
            command_line = conformance.serve(self.config, self.port)
            self.gateway = running.enter_context(conformance.running(command_line, log, env=env))
            conformance.wait_for_port(self.gateway, self.port, log)
            async with unbounded() as client:
                await self.ready(ModernHttp(plan, self.ledger, self.seed - 3, client))
                # What is loaded at first use is no leak: one host of each kind first.
                await self.live(plan, alone, client, 4, min(5.0, self.seconds / 4))
            # Connections that a client keeps open are its own, and no longer there.
            before = await self.settled()
            async with unbounded() as client:
                await self.abuse(plan, alone, client)
            after = await self.settled(before) if self.gateway.poll() is None else before
            if self.gateway.poll() is not None:
                self.ledger.broke(f"the gateway ended with {self.gateway.returncode}")
            children = below(self.gateway.pid)
            self.gateway.send_signal(signal.SIGTERM)
            try:
                self.gateway.wait(CALM)
            except subprocess.TimeoutExpired:
                self.ledger.broke("the gateway does not end after SIGTERM")
            orphans = [f"{one} {command(one)}" for one in children if command(one)]
            if orphans:
                self.ledger.broke(f"processes outlive the gateway: {orphans}")
        return before, after

    async def ready(self, conductor: HttpHost) -> None:
        """Waits until every server answers: a call of one that starts is refused, and that is no fault."""
        for prefix in (*STEADY, *SHAKY):
            await self.answers_again(conductor, prefix)

    async def live(self, plan: Plan, alone: Plan, client: aiohttp.ClientSession, count: int, seconds: float) -> None:
        """Hosts for some time, without abuse."""
        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as group:
                for host in self.make_hosts(plan, alone, client, count, 0):
                    group.start_soon(host.run)

    def make_hosts(
        self, plan: Plan, alone: Plan, client: aiohttp.ClientSession, count: int, over_stdio: int
    ) -> list[Host]:
        over_http = [
            (LegacyHttp if number % 2 else ModernHttp)(plan, self.ledger, self.seed + number, client)
            for number in range(count - over_stdio)
        ]
        return [
            *over_http,
            *(
                (LegacyStdio if number % 2 else ModernStdio)(alone, self.ledger, self.seed + number)
                for number in range(over_stdio)
            ),
        ]

    async def abuse(self, plan: Plan, alone: Plan, client: aiohttp.ClientSession) -> None:
        self.hosts = self.make_hosts(plan, alone, client, self.count, min(OVER_STDIO, self.count // 10))
        conductor = ModernHttp(plan, self.ledger, self.seed - 1, client)
        async with anyio.create_task_group() as group:
            with anyio.move_on_after(self.seconds):
                async with anyio.create_task_group() as lives:
                    for host in self.hosts:
                        lives.start_soon(host.run)
                    lives.start_soon(self.change, conductor)
                    lives.start_soon(self.kill_servers, ModernHttp(plan, self.ledger, self.seed - 2, client))
                    lives.start_soon(self.reload, ModernHttp(plan, self.ledger, self.seed - 4, client))
                    lives.start_soon(self.junk, client)
                    lives.start_soon(self.read_slowly)
            group.cancel_scope.cancel()
        await self.cancelled(conductor)
        # Nothing stays changed: the figures of before and after must be of the same state.
        self.write_config()
        self.hang_up()
        if self.web is None or self.web.poll() is not None:
            self.start_web()

    async def cancelled(self, conductor: HttpHost) -> None:
        """What modern hosts left must be cancelled at the server; legacy ones may have added to it."""
        seen, deadline = 0, time.monotonic() + HEARD
        while seen < self.ledger.counts[LEFT] and time.monotonic() < deadline:
            await anyio.sleep(0.2)
            result = await conductor.call(STEADY[-1], "test_cancelled")
            seen = int(result["content"][0]["text"])
        self.ledger.counts["calls cancelled at that server"] = seen
        if seen < self.ledger.counts[LEFT]:
            self.ledger.broke(f"{self.ledger.counts[LEFT]} calls were left, and {seen} cancelled at their server")

    async def settled(self, before: Figures | None = None) -> Figures:
        """The figures, when they no longer fall, or are as before."""
        figures = await self.figures()
        with anyio.move_on_after(CALM):
            while True:
                await anyio.sleep(1)
                now = await self.figures()
                quiet = now.descriptors >= figures.descriptors and now.children >= figures.children
                figures = now
                if before is None and quiet and now.streams == 0:
                    break
                if before is not None and not self.left_over(before, now):
                    break
        return figures

    def left_over(self, before: Figures, after: Figures) -> list[str]:
        """What stayed, in words. Sessions stay that nobody ended, until they were idle for long."""
        most = {
            "descriptors": before.descriptors + 5,
            "children": before.children,
            "threads": before.threads + 2,
            "sessions": self.ledger.counts[OPEN],
            "streams": 0,
            "running": 0,
            "memory": before.memory + MOST_MEMORY,
        }
        return [
            f"{figure}: {getattr(before, figure):.0f} -> {getattr(after, figure):.0f}"
            for figure, limit in most.items()
            if getattr(after, figure) > limit
        ]

    # Abuse

    async def change(self, conductor: HttpHost) -> None:
        """Lists and resources change; every listener whose stream is open before and after must hear it."""
        while True:
            await anyio.sleep(self.random.uniform(1, 3))
            prefix = self.random.choice(STEADY)
            await self.changed(conductor, prefix, "test_trigger_tool_change", {}, "tools")
            watched = uri(prefix, WATCHED)
            await self.changed(conductor, prefix, "test_trigger_resource_update", {"uri": WATCHED}, watched)

    async def changed(self, conductor: HttpHost, prefix: str, tool: str, given: dict[str, Any], what: str) -> None:
        # Hosts over stdio have servers of their own, which change by themselves.
        listening = {host: (host.listens, host.changes[what]) for host in self.hosts if isinstance(host, HttpHost)}
        listening = {host: one for host, one in listening.items() if one[0]}
        began = time.monotonic()
        try:
            result = await conductor.call(prefix, tool, given)
        except (Failed, Gone, aiohttp.ClientError) as error:
            self.ledger.broke(f"a change of {prefix}: {error}")
            return
        there, dynamic = "one more" in result["content"][0]["text"], name(prefix, "test_dynamic_tool")
        waiting = dict(listening)
        while waiting and time.monotonic() < began + HEARD:
            waiting = {
                host: one
                for host, one in waiting.items()
                if host.listens == one[0]
                and host.changes[what] == one[1]
                # A host that asks for the list just then has the new one, and needs no word.
                and not (what == "tools" and host.viewed > began and (dynamic in host.view) == there)
            }
            await anyio.sleep(0.02)
        self.heard = max(self.heard, time.monotonic() - began)
        self.ledger.counts[f"changes that were to be heard ({'lists' if what == 'tools' else 'resources'})"] += len(
            listening
        )
        for host in waiting:
            self.ledger.broke(f"{host.name} was not told that {what} of {prefix} changed")

    async def kill_servers(self, conductor: HttpHost) -> None:
        """Servers die, and must answer again."""
        while True:
            await anyio.sleep(self.random.uniform(5, 15) if self.seconds > 60 else 3)
            await self.kill(self.random.choice(SHAKY), conductor)

    async def kill(self, victim: str, conductor: HttpHost) -> None:
        self.ledger.counts["servers killed"] += 1
        if victim == "web":
            self.stop_web()
            await anyio.sleep(self.random.uniform(0, 1.5))
            self.start_web()
        else:
            mine = f"{SERVER} dual"
            for child in below(self.gateway.pid):
                if mine in command(child) and "--http" not in command(child):
                    kill(child)
        await self.answers_again(conductor, victim)
        self.ledger.counts["servers that answered again"] += 1

    async def answers_again(self, conductor: HttpHost, prefix: str) -> None:
        deadline = time.monotonic() + BACK
        while time.monotonic() < deadline:
            with suppress(Failed, Gone, aiohttp.ClientError):
                await conductor.call(prefix, "test_simple_text")
                return
            await anyio.sleep(0.3)
        self.ledger.broke(f"{prefix} does not answer {BACK} s after it was killed")

    async def reload(self, conductor: HttpHost) -> None:
        """A server is added to the configuration, and taken away."""
        extra = False
        while True:
            await anyio.sleep(self.random.uniform(4, 12) if self.seconds > 60 else 4)
            extra = not extra
            self.write_config(extra=extra)
            if self.random.random() < 0.5:
                self.hang_up()
            self.ledger.counts["reloads"] += 1
            await self.reloaded(conductor, extra)

    async def reloaded(self, conductor: HttpHost, extra: bool) -> None:
        """Waits until the change is in the list."""
        deadline = time.monotonic() + BACK
        while time.monotonic() < deadline:
            with suppress(Failed, Gone, aiohttp.ClientError):
                tools = (await conductor.request("tools/list"))["tools"]
                if any(tool["name"].startswith("extra_") for tool in tools) == extra:
                    return
            await anyio.sleep(0.3)
        self.ledger.broke(f"the configuration changed {BACK} s ago, and the list is as before")

    async def junk(self, client: aiohttp.ClientSession) -> None:
        """Frames and bytes that are none."""
        while True:
            await anyio.sleep(self.random.uniform(0.05, 0.5))
            body = self.random.choice(JUNK)
            headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
            if self.random.random() < 0.5:
                headers |= {"MCP-Protocol-Version": NEW, "Mcp-Method": "tools/call", "Mcp-Name": "x"}
            if self.random.random() < 0.3:
                headers["Mcp-Session-Id"] = "no-such-session"
            self.ledger.counts["junk frames"] += 1
            try:
                with anyio.move_on_after(10):
                    async with client.post(self.url, data=io.BytesIO(body), headers=headers) as response:
                        if response.status >= 500:
                            self.ledger.broke(f"HTTP {response.status} to {body[:80]!r}")
            except aiohttp.ClientError as error:
                self.ledger.counts["connections closed on junk"] += 1
                if self.gateway.poll() is not None:
                    self.ledger.broke(f"the gateway ended at {body[:80]!r}: {error}")
                    return
            if self.random.random() < 0.3:
                await self.raw_junk()

    async def raw_junk(self) -> None:
        with suppress(OSError), anyio.move_on_after(5):
            async with await anyio.connect_tcp("127.0.0.1", self.port) as stream:
                await stream.send(self.random.choice(BYTES))
                await anyio.sleep(self.random.uniform(0, 0.5))

    async def read_slowly(self) -> None:
        """Hosts that listen and read nothing."""
        frame = {
            "jsonrpc": "2.0",
            "id": "slow",
            "method": "subscriptions/listen",
            "params": {
                "notifications": {"toolsListChanged": True, "resourceSubscriptions": [f"old+{WATCHED}"]},
                "_meta": {f"{META}protocolVersion": NEW, f"{META}clientCapabilities": {}},
            },
        }
        body = json.dumps(frame).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {NEW}\r\n"
            f"Mcp-Method: subscriptions/listen\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()
        while True:
            with ExitStack() as open_ones:
                for _ in range(5):
                    slow = open_ones.enter_context(socket.socket())
                    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
                    slow.setblocking(False)
                    with suppress(OSError):
                        slow.connect(("127.0.0.1", self.port))
                    await anyio.sleep(0.1)
                    with suppress(OSError):
                        slow.send(head + body)
                    self.ledger.counts["listeners that read nothing"] += 1
                await anyio.sleep(min(20, self.seconds / 4))


JUNK: tuple[bytes, ...] = (
    b"",
    b"{",
    b"null",
    b"[]",
    b"[1,2,3]",
    b"\xff\xfe\x00",
    b'{"jsonrpc":"2.0"}',
    b'{"jsonrpc":"2.0","id":1}',
    b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":1e400,"method":"tools/list","params":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}',
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"x"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"old_test_simple_text","name":"x"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n{"jsonrpc":"2.0","id":2,"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * 100_000 + b'"}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":'
    + b"[" * 5000
    + b"]" * 5000
    + b"}}",
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":"'
    + b"a" * 3_000_000
    + b'"}}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
)
BYTES: tuple[bytes, ...] = (
    b"\x16\x03\x01\x02\x00\x01\x00",
    b"GET / HTTP/1.1\r\n",
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n{",
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffff\r\n",
    b"\r\n" * 1000,
    b"GET /mcp HTTP/1.1\r\nHost: evil.example.com\r\n\r\n",
    b"A" * 70_000,
)


MOST_MEMORY = 80.0
"""MB that the gateway may have grown by: pools and caches that hundreds of hosts fill, not what each leaves."""


def show(soak: Soak, before: Figures, after: Figures, seconds: float) -> None:
    print(f"soak: {seconds:.0f} s, {soak.count} hosts, seed {soak.seed}")
    for what, count in sorted(soak.ledger.counts.items()):
        print(f"  {what:56} {count:>8}")
    slowest, asked = soak.ledger.slowest
    print(f"  {f'slowest answer, s ({asked})':56} {slowest:>8.2f}")
    print(f"  {'slowest change to be heard by all, s':56} {soak.heard:>8.2f}")
    print("  of the gateway                                             before    after")
    for figure in ("descriptors", "children", "threads", "memory", "sessions", "streams", "running"):
        one, other = getattr(before, figure), getattr(after, figure)
        print(f"  {figure:56} {one:>8.0f} {other:>8.0f}")
    for broken in soak.ledger.broken:
        print(f"  BROKEN {broken}")


def soak(seconds: float, hosts: int, seed: int, folder: Path) -> list[str]:
    """Runs a soak and prints its figures; what was broken or stayed."""
    one = Soak(folder, seconds, hosts, seed)
    began = time.monotonic()
    before, after = anyio.run(one.run)
    for leak in one.left_over(before, after):
        one.ledger.broke(f"left over: {leak}")
    show(one, before, after, time.monotonic() - began)
    return one.ledger.broken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="for configurations and logs; a temporary one without")
    chosen = parser.parse_args()
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    broken = soak(chosen.minutes * 60, chosen.hosts, chosen.seed, folder)
    if broken:
        print(f"  logs are in {folder}")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
