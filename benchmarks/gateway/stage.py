"""The contenders, and the stage that starts and ends them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.gateway.processes import Started, free_port

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

DIRECT, RELAY, MUX = "direct", "bare relay", "40-line mux"
TROTH, FASTMCP, BEST = "troth", "fastmcp", "fastmcp, at its best"
PACKAGE = "benchmarks.gateway"
_TROTH = shlex.split(os.environ.get("BENCH_TROTH", "")) or [str(Path(sys.executable).with_name("troth"))]
"""The command; ``BENCH_TROTH`` names another one, of another checkout."""


@dataclass(frozen=True, slots=True)
class Running:
    """A contender that answers.

    Attributes:
        name: What it is called in the tables.
        url: Where hosts reach it.
        process: Itself.
        start: Seconds from its start until its port was open.
    """

    name: str
    url: str
    process: Started
    start: float


def serves() -> bool:
    """Whether this Troth has the command `serve`."""
    try:
        found = subprocess.run([*_TROTH, "serve", "--help"], capture_output=True, check=False, timeout=60)
    except FileNotFoundError:
        return False
    return found.returncode == 0


class Stage:
    """Starts processes, and ends every one of them when it is left."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="bench-"))
        self._started: list[Started] = []
        self._troth = serves()

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in self._started:
            process.stop()

    def module(self, name: str, module: str, *arguments: str) -> Running:
        """Starts a module of this package that takes ``--http PORT``."""
        port = free_port()
        command = [sys.executable, "-m", f"{PACKAGE}.{module}"]
        at = arguments.index("--") if "--" in arguments else len(arguments)
        return self.start(name, [*command, *arguments[:at], "--http", str(port), *arguments[at:]], port)

    def start(self, name: str, command: Sequence[str], port: int) -> Running:
        # What a gateway remembers between runs stays in the folder of this one.
        homes = {name: str(self.folder) for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME")}
        process = Started(f"{name}-{port}", command, self.folder, homes)
        self._started.append(process)
        return Running(name, f"http://127.0.0.1:{port}/mcp", process, process.wait(port))

    def gateway(self, name: str, servers: Mapping[str, Mapping[str, object]]) -> Running | None:
        """Starts a gateway in front of servers; None if this Troth cannot serve."""
        config = self.config(servers)
        if name == TROTH:
            if not self._troth:
                return None
            port = free_port()
            return self.start(name, [*_TROTH, "serve", str(config), "--port", str(port), "--no-auth"], port)
        return self.module(name, "fastmcp_proxy", str(config), *(["--best"] if name == BEST else []))

    def config(self, servers: Mapping[str, Mapping[str, object]]) -> Path:
        path = self.folder / f"mcp-{len(list(self.folder.iterdir()))}.json"
        path.write_text(json.dumps({"mcpServers": servers}, indent=1))
        return path

    def end(self, running: Running) -> None:
        running.process.stop()


def http(url: str) -> dict[str, dict[str, object]]:
    """One server on HTTP, as a host's configuration says it."""
    return {"up": {"type": "http", "url": url}}


def stdio() -> dict[str, dict[str, object]]:
    """One server on stdio. It runs as the gateways start it, so the package must be found from anywhere."""
    root = str(Path(__file__).parents[2])
    return {"up": {"command": sys.executable, "args": ["-m", f"{PACKAGE}.sdk_upstream"], "env": {"PYTHONPATH": root}}}
