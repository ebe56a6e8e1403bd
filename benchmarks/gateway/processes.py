"""Processes of a benchmark: started, measured as trees by /proc, ended."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

TICK = 1.0 / os.sysconf("SC_CLK_TCK")
START = 60.0
"""Seconds that a process may take until it answers."""


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def _parents() -> dict[int, list[int]]:
    """Children of every process."""
    found: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                found.setdefault(parent, []).append(int(entry.name))
    return found


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    children = _parents()
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found


def cpu_of(pid: int) -> float:
    """User and system time in seconds of one process, with threads and reaped children that ended."""
    try:
        own = time.clock_gettime(((~pid) << 3) | 2)  # The process's CPU clock, see clock_getcpuclockid(3): no ticks.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return own + (int(fields[13]) + int(fields[14])) * TICK


def busy() -> float:
    """Seconds of CPU time that all programs of the machine took together."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    idle, waiting, stolen, guest, guest_nice = (fields[index] for index in (3, 4, 7, 8, 9))
    return (sum(fields) - idle - waiting - stolen - guest - guest_nice) * TICK


def memory_of(pid: int) -> int:
    """Resident bytes of one process."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


class Started:
    """One process in a session of its own, with what it starts."""

    def __init__(self, name: str, command: Sequence[str], log: Path, env: dict[str, str] | None = None) -> None:
        self.name = name
        self.log = log / f"{name.replace(' ', '-')}.log"
        self.begun = time.perf_counter()
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
                env={**os.environ, **(env or {})},
            )  # fmt: skip

    def wait(self, port: int) -> float:
        """Waits until the port is open; returns the seconds since the start."""
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
                return time.perf_counter() - self.begun
            self.check()
            time.sleep(0.005)

    def check(self) -> None:
        """Raises if the process ended or had its time."""
        if self.process.poll() is not None or time.perf_counter() - self.begun > START:
            text = self.log.read_text(errors="replace")[-2000:]
            raise RuntimeError(f"{self.name} does not start (code {self.process.poll()}):\n{text}")

    def cpu(self, *, root: bool = False) -> float:
        """Seconds of CPU time of the tree, or of its root alone."""
        pids = [self.process.pid] if root else tree(self.process.pid)
        return sum(map(cpu_of, pids))

    def memory(self, *, root: bool = False) -> int:
        pids = [self.process.pid] if root else tree(self.process.pid)
        return sum(map(memory_of, pids))

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
