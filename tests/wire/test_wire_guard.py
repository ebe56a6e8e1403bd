"""The guard of a process group."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

from troth.wire import guard
from troth.wire.guard import Guard

if TYPE_CHECKING:
    import pytest


def test_a_released_guard_leaves_the_group_alone() -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        watching = Guard(process.pid, 0.0)
        watching.release()
        assert process.poll() is None
        os.killpg(process.pid, signal.SIGKILL)


def test_without_a_shell_there_is_no_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "SHELL", "/no/such/shell")
    Guard(2**31 - 1, 0.0).release()
