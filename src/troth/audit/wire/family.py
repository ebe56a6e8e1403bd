"""Who descends from a process, and who belongs to its session: what killing a process group misses.

A browser that a server started, or a job of a shell, leads a group of its own. Linux only (``/proc``); elsewhere there
is nobody to be found, and the group is all that is ended.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class Member(NamedTuple):
    """A process. The number alone may come to mean another one; with the start time it cannot.

    Attributes:
        pid: Number of the process.
        started: Start time, in clock ticks since the system's start.
    """

    pid: int
    started: int


class _Stat(NamedTuple):
    member: Member
    parent: int
    session: int


def family(leader: int) -> frozenset[Member]:
    """The living descendants of a process and members of its session, without itself."""
    stats = list(_stats())
    found = {leader} | {stat.member.pid for stat in stats if stat.session == leader}
    while more := {stat.member.pid for stat in stats if stat.parent in found} - found:
        found |= more
    return frozenset(stat.member for stat in stats if stat.member.pid in found - {leader})


def living() -> frozenset[Member]:
    """Every process that lives now."""
    return frozenset(stat.member for stat in _stats())


def kill(members: frozenset[Member]) -> int:
    """Sends SIGKILL to those that still live, and tells how many they were."""
    if not members:
        return 0
    alive = living() & members
    for member in alive:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(member.pid, signal.SIGKILL)
    return len(alive)


def _stats() -> Iterator[_Stat]:
    for folder in Path("/proc").glob("[0-9]*"):
        # The name in brackets is free text; what follows the last bracket is numbers. It may vanish meanwhile.
        with suppress(OSError, ValueError, IndexError):
            fields = (folder / "stat").read_text("ascii", "replace").rpartition(")")[2].split()
            if fields[0] not in "ZX":
                yield _Stat(Member(int(folder.name), int(fields[19])), int(fields[1]), int(fields[3]))
