"""Ends a process group when we are killed ourselves, which nobody else would see.

A guard is a shell that waits for the end of a pipe whose other end only we hold: the system closes it however we end.
Then the group gets some time, for its members read the end of their own pipes, and is killed. POSIX only; where there
is no shell there is no guard.
"""

from __future__ import annotations

import subprocess
from contextlib import suppress
from typing import Final

SHELL: Final = "/bin/sh"

STEP: Final = 0.1
"""Seconds between two looks at the group: so short that its number cannot come to mean another one."""

_SCRIPT: Final = """
read -r _
left=$2
while [ "$left" -gt 0 ]; do
    kill -s 0 -- "-$1" || exit 0
    sleep "$3"
    left=$((left - 1))
done
kill -s KILL -- "-$1"
"""


class Guard:
    """Watches over one process group until it is released.

    Args:
        group: Number of the group.
        seconds: How long its members get to end by themselves.
    """

    def __init__(self, group: int, seconds: float) -> None:
        self._shell: subprocess.Popen[bytes] | None = None
        with suppress(OSError):
            self._shell = subprocess.Popen(  # noqa: S603 - a text of ours
                [SHELL, "-c", _SCRIPT, "guard", str(group), str(round(seconds / STEP)), str(STEP)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"PATH": "/usr/bin:/bin"},
                cwd="/",
                start_new_session=True,
            )

    def release(self) -> None:
        """Ends the guard, and nothing else. To be called before the group's leader is reaped."""
        if self._shell is not None:
            self._shell.kill()
            self._shell.wait()
            if self._shell.stdin is not None:
                self._shell.stdin.close()
