"""What a process and its children hold, from ``/proc``."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Figures:
    """What is held at one time.

    Attributes:
        descriptors: Open files and sockets of the gateway.
        children: Processes below it.
        threads: Its threads.
        memory: Its resident memory in MB.
        sessions: Legacy sessions of hosts that it knows.
        streams: Streams to hosts that are open.
        running: Requests of hosts that run.
    """

    descriptors: int
    children: int
    threads: int
    memory: float
    sessions: int
    streams: int
    running: int


def below(process: int) -> list[int]:
    """The processes below one, children first."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                # The name of the program may have spaces and brackets: the parent stands after the last bracket.
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                parents.setdefault(parent, []).append(int(folder.name))
    found, open_ones = [], [process]
    while open_ones:
        children = parents.get(open_ones.pop(0), [])
        found += children
        open_ones += children
    return found


def command(process: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    return ""


def held(process: int, status: dict[str, Any]) -> Figures:
    """The figures of a gateway, beside what its status tells."""
    folder = Path(f"/proc/{process}")
    resident = int((folder / "statm").read_text().split()[1]) * PAGE / 1e6
    hosts = status["hosts"]
    return Figures(
        descriptors=len(list((folder / "fd").iterdir())),
        children=len(below(process)),
        threads=len(list((folder / "task").iterdir())),
        memory=resident,
        sessions=sum(host["era"] == "legacy" for host in hosts),
        streams=sum(host["streams"] for host in hosts),
        running=sum(host["running"] for host in hosts),
    )


def kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
