"""How a process ended, without reaping it: while it is a zombie, its number and group belong to nobody else."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess


def exit_code(process: subprocess.Popen[bytes]) -> int | None:
    """Exit status, or the negative number of the signal that killed it; None while it runs."""
    if sys.platform != "linux" or process.returncode is not None:
        return process.poll()
    try:
        seen = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return process.poll()
    if seen is None:
        return None
    return seen.si_status if seen.si_code == os.CLD_EXITED else -seen.si_status


def exit_words(process: subprocess.Popen[bytes]) -> str:
    """How the process ended, in words; empty while it runs. Leaves it unreaped where the system can."""
    code = exit_code(process)
    if code is None:
        return ""
    if code >= 0:
        return f"exited with status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = str(-code)
    return f"killed by signal {name}"
