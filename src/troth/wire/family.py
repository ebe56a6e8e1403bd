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


MARK = "TROTH_TARGET"
"""Variable that every started server gets, with a value of its own: a daemon that left the tree still carries it."""


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


def family(leader: int, mark: str) -> frozenset[Member]:
    """The living descendants of a process, members of its session and bearers of its mark, without itself."""
    stats = list(_stats())
    found = {leader} | {stat.member.pid for stat in stats if stat.session == leader or _bears(stat.member.pid, mark)}
    while more := {stat.member.pid for stat in stats if stat.parent in found} - found:
        found |= more
    return frozenset(stat.member for stat in stats if stat.member.pid in found - {leader})


def _bears(pid: int, mark: str) -> bool:
    """Whether a process was started with this mark. Those of other users cannot be read, and are not ours."""
    with suppress(OSError):
        return f"{MARK}={mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return False


def living(members: frozenset[Member]) -> frozenset[Member]:
    """Those that still live. Looks at them alone, so it is cheap."""
    stats = (_stat(Path(f"/proc/{member.pid}")) for member in members)
    return frozenset(stat.member for stat in stats if stat is not None) & members


def kill(members: frozenset[Member]) -> int:
    """Sends SIGKILL to those that still live, and tells how many they were."""
    alive = living(members)
    for member in alive:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(member.pid, signal.SIGKILL)
    return len(alive)


def _stats() -> Iterator[_Stat]:
    for folder in Path("/proc").glob("[0-9]*"):
        if (stat := _stat(folder)) is not None:
            yield stat


def _stat(folder: Path) -> _Stat | None:
    """What is known of one process; None if it is dead or a zombie."""
    # The name in brackets is free text; what follows the last bracket is numbers. It may vanish meanwhile.
    with suppress(OSError, ValueError, IndexError):
        fields = (folder / "stat").read_text("ascii", "replace").rpartition(")")[2].split()
        if fields[0] not in "ZX":
            return _Stat(Member(int(folder.name), int(fields[19])), int(fields[1]), int(fields[3]))
    return None
