"""The real servers that the audit is held against, and how to start each."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from held_ports import held_port
from troth.audit.targets import HttpTarget, StdioTarget

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ENVS = ROOT / ".envs"
SERVERS = HERE / "servers"
MCP1 = ENVS / "mcp1" / "bin" / "python"
NPM = ENVS / "npm"
PACKAGES = NPM / "node_modules" / "@modelcontextprotocol"
START = 60.0
"""Seconds that a server may take until its port answers: a popular one needs more than 15 under load."""


@dataclass(frozen=True)
class Server:
    """A server that others wrote, or that is written with an SDK of others.

    Attributes:
        name: Also the name of its captures.
        command: How it is started for stdio.
        http: How it is started for Streamable HTTP, ``{port}`` where the port goes; empty where it cannot.
        env: Variables that it needs; ``{port}`` as above.
        needs: A file that an environment must have.
    """

    name: str
    command: tuple[str, ...]
    http: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    needs: Path = Path(sys.executable)

    def stdio(self) -> StdioTarget:
        return StdioTarget(name=self.name, command=self.command, env=self.env)

    @contextmanager
    def listening(self) -> Iterator[HttpTarget]:
        """The server over HTTP on a free port, stopped afterwards."""
        with held_port() as port, self._started(port) as process:
            try:
                wait_for_port(process, port)
                yield HttpTarget(name=self.name, url=f"http://127.0.0.1:{port}/mcp")
            finally:
                process.terminate()
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()

    def _started(self, port: int) -> subprocess.Popen[bytes]:
        nothing = subprocess.DEVNULL
        env = {**os.environ, **{key: value.format(port=port) for key, value in self.env.items()}}
        command = [word.format(port=port) for word in self.http]
        return subprocess.Popen(command, env=env, stdin=nothing, stdout=nothing, stderr=nothing)


def wait_for_port(process: subprocess.Popen[bytes], port: int) -> None:
    """Returns when the port takes connections.

    Raises:
        AssertionError: The server ended, or did not listen in time.
    """
    deadline = time.monotonic() + START
    while time.monotonic() < deadline:
        assert process.poll() is None, f"the server ended with {process.returncode}"
        with socket.socket() as attempt:
            attempt.settimeout(1)
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens on port {port} after {START} s")


def by_python(name: str, python: str | Path = sys.executable) -> Server:
    """A small server in ``servers/``: ``min23-full`` is the variant ``full`` of ``min23.py``."""
    file, _, variant = name.partition("-")
    command = (str(python), str(SERVERS / f"{file}.py"), variant)
    return Server(name, command, (*command, "--http", "{port}"), needs=Path(python))


def by_node(name: str) -> Server:
    file, _, variant = name.partition("-")
    command = ("node", str(SERVERS / f"{file}.mjs"), variant)
    return Server(name, command, (*command, "--http", "{port}"), {"TROTH_NPM": str(NPM)}, NPM / ".stamp")


def from_npm(name: str, *arguments: str, http: tuple[str, ...] = (), **env: str) -> Server:
    script = str(PACKAGES / f"server-{name}" / "dist" / "index.js")
    over_http = ("node", script, *http) if http else ()
    return Server(name, ("node", script, *arguments), over_http, env, NPM / ".stamp")


def from_pypi(name: str) -> Server:
    return Server(name, (sys.executable, "-m", name.replace("-", "_")))


FLEET = {
    server.name: server
    for server in (
        from_pypi("mcp-server-time"),
        from_pypi("mcp-server-git"),
        from_pypi("mcp-server-fetch"),
        from_npm("everything", "stdio", http=("streamableHttp",), PORT="{port}"),
        from_npm("filesystem", str(HERE)),
        from_npm("memory", MEMORY_FILE_PATH=os.devnull),
        from_npm("sequential-thinking"),
        *(by_python(f"min23-{variant}") for variant in ("empty", "tool", "full")),
        *(
            by_python(f"low23-{variant}")
            for variant in ("empty", "tool", "listen", "sub", "level", "wrongflags", "calltoolonly")
        ),
        *(by_python(f"fm4-{variant}") for variant in ("empty", "full")),
        *(by_python(f"min130-{variant}", MCP1) for variant in ("empty", "full", "sub", "tasks")),
        *(by_node(f"ts1-{variant}") for variant in ("empty", "tool", "declared", "full")),
        *(by_node(f"ts2-{variant}") for variant in ("empty", "tool", "declared", "full")),
    )
}
OVER_HTTP = ("everything", "min23-full", "low23-listen", "fm4-full", "min130-full", "ts1-full", "ts2-full")
TOUCHED = ("min23-full", "fm4-full", "min130-full", "ts1-full", "ts2-full")
"""Servers with a tool ``touch`` that changes lists and a resource."""
