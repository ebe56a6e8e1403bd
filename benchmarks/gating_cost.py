"""What Troth in a server costs: CPU of the server process per call and per list of 200 tools.

    python -m benchmarks.gating_cost [--rounds N]

Three servers of each framework run side by side on stdio: as its author wrote it; with Troth installed and nothing
gated; with Troth installed and every fourth tool gated, seen by a host that may use them all, which is the dearest
case. In each round each of them is asked once more, so that what else the machine does hits all of them alike. The cost
is the CPU time of the process (all threads, from the kernel's scheduler); what is added is the median over the rounds
of the ratio within a round. Exits 1 if gating adds more than 5 % to a call or 10 % to a list beside the same server
with Troth and nothing gated; what Troth as a whole adds is shown beside it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import median

from troth.register import Era, register

TOOLS = 200
MOST = {"tools/call": 0.05, "tools/list": 0.10}
REQUESTS = {"tools/call": 10, "tools/list": 1}
PARAMS = {"tools/call": {"name": "tool_0", "arguments": {"a": 1}}, "tools/list": {}}
HOSTS = {"legacy": register().newest(Era.LEGACY), "modern": register().newest(Era.MODERN)}
DECLARED = {"sampling": {}}
PREFIX = "io.modelcontextprotocol"


class Server:
    """A server in a process of its own, spoken to in raw frames."""

    def __init__(self, framework: str, kind: str, era: str) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.gating_servers", framework, kind]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        self.era, self.count = era, 0
        if era == "legacy":
            client = {"name": "benchmark", "version": "1"}
            self.ask("initialize", {"protocolVersion": HOSTS[era], "capabilities": DECLARED, "clientInfo": client})
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message: dict) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict) -> dict:
        self.count += 1
        if self.era == "modern":
            meta = {
                f"{PREFIX}/protocolVersion": HOSTS["modern"],
                f"{PREFIX}/clientInfo": {"name": "benchmark", "version": "1"},
                f"{PREFIX}/clientCapabilities": DECLARED,
            }
            params = {**params, "_meta": meta}
        self.send({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params})
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self.count:
                return message["result"]
        raise SystemExit(f"the server ended: {self.process.args}")

    def cpu(self) -> int:
        """Nanoseconds on a processor so far."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text("ascii").split()[0]) for task in tasks)

    def round(self, method: str) -> float:
        """Microseconds of CPU per request."""
        before = self.cpu()
        for _ in range(REQUESTS[method]):
            self.ask(method, PARAMS[method])
        return (self.cpu() - before) / REQUESTS[method] / 1000


def measured(framework: str, era: str, rounds: int) -> dict[str, list[tuple[float, float, float]]]:
    """Method -> for each round, microseconds of the three servers."""
    servers = [Server(framework, kind, era) for kind in ("plain", "installed", "gated")]
    found: dict[str, list[tuple[float, float, float]]] = {}
    try:
        for method in MOST:
            for server in servers:
                server.round(method)
            found[method] = [tuple(server.round(method) for server in servers) for _ in range(rounds)]
    finally:
        for server in servers:
            server.process.kill()
            server.process.wait()
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=150)
    rounds = parser.parse_args().rounds
    print("| framework | era | request | plain, µs | with Troth | and gating | Troth adds | gating adds |")
    print("|---|---|---|---:|---:|---:|---:|---:|")
    broken = 0
    for framework in ("sdk", "lowlevel", "fastmcp"):
        for era in HOSTS:
            for method, costs in measured(framework, era, rounds).items():
                plain, installed, gated = (median(column) for column in zip(*costs, strict=True))
                whole = median(cost[2] / cost[0] for cost in costs) - 1
                adds = median(cost[2] / cost[1] for cost in costs) - 1
                broken += adds > MOST[method]
                figures = f"{plain:.0f} | {installed:.0f} | {gated:.0f} | {whole:+.1%} | {adds:+.1%}"
                print(f"| {framework} | {era} | `{method}` | {figures} |", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
