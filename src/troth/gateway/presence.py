"""Which runs of the gateway still run, told by locks that the system lets go of when a process ends in any way.

Tasks and pending questions name the run whose they are. Several gateways may use one folder at once, numbers of
processes come again, and in containers every process is the first; a lock is held by the living alone.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_NAME: Final = r"[0-9a-f]{24}"


class Presence:
    """This run among others. Made once; `close` when all that names it has ended.

    Args:
        folder: Folder of the locks (made with mode 0700).

    Attributes:
        name: Name of this run: 96 random bits.
        problem: Why others cannot see that this one runs; empty if they can.
    """

    def __init__(self, folder: Path) -> None:
        self.name = secrets.token_hex(12)
        self.problem = ""
        self._folder = folder
        self._held = -1
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._held = os.open(self._file(self.name), os.O_RDWR | os.O_CREAT, 0o600)
            _lock(self._held)
        except OSError as error:
            self.problem = f"{folder}: cannot be written: {error.strerror or error}"

    def alive(self, name: str) -> bool:
        """Whether a run still runs: this one does; one that cannot be judged does not."""
        if name == self.name:
            return True
        if not re.fullmatch(_NAME, name):
            return False
        try:
            lock = os.open(self._file(name), os.O_RDWR)
        except OSError:
            return False
        try:
            _lock(lock)
        except OSError:
            return True
        finally:
            os.close(lock)
        # Whoever held it is gone, and nobody takes the name again.
        with suppress(OSError):
            self._file(name).unlink()
        return False

    def close(self) -> None:
        """Ends this run. May be said twice."""
        held, self._held = self._held, -1
        if held >= 0:
            with suppress(OSError):
                self._file(self.name).unlink()
            os.close(held)

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.lock"


def _lock(descriptor: int) -> None:
    """Takes a lock for as long as the descriptor is open.

    Raises:
        OSError: Somebody else has it.
    """
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
