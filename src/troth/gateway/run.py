"""Files that say which gateways run, so that the operator's own commands find them and may ask them."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

from troth.gateway.private import read_private, write_private

FOLDER = "run"
"""Folder of these files inside the operator's folder for state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A gateway that runs.

    Attributes:
        pid: Its process.
        url: Address without a path (``http://127.0.0.1:8300``); empty where it serves over stdio only.
        operator: The token by which its status may be read.
        config: Its configuration file, absolute once it is announced; empty for none.
        started: When it was started, in seconds since 1970.
    """

    pid: int
    url: str
    operator: str = field(repr=False)
    config: str = ""
    started: float = 0.0


def announce(folder: Path, run: Run) -> str:
    """Writes the file of a gateway (mode 0600).

    Args:
        folder: The operator's folder for state.
        run: The gateway.

    Returns:
        Why it could not be written; empty if it was.
    """
    # Commands are given in other folders than the gateway was.
    config = str(Path(run.config).resolve()) if run.config else ""
    return write_private(_file(folder, run.pid), {**asdict(run), "config": config})


def withdraw(folder: Path, pid: int) -> None:
    """Removes the file of a gateway that ends; never raises."""
    try:
        _file(folder, pid).unlink(missing_ok=True)
    except OSError:
        # It is recognised as stale by whoever looks next.
        return


def running(folder: Path) -> tuple[Run, ...]:
    """The gateways that run, the newest first. Files of those that do not are removed."""
    try:
        files = sorted((folder / FOLDER).glob("*.json"))
    except OSError:
        return ()
    found: list[Run] = []
    for file in files:
        run = _read(file)
        if run is not None and alive(run.pid):
            found.append(run)
        elif run is not None and file.stem == str(run.pid):
            withdraw(folder, run.pid)
    return tuple(sorted(found, key=lambda run: run.started, reverse=True))


def alive(pid: int) -> bool:
    """Whether there is a process of this number."""
    if sys.platform == "win32":
        # There signal 0 ends a process; a dead gateway shows when it is asked.
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _file(folder: Path, pid: int) -> Path:
    return folder / FOLDER / f"{pid}.json"


def _read(file: Path) -> Run | None:
    found = read_private(file)
    if isinstance(found, str):
        return None
    pid, url, operator = found.get("pid"), found.get("url"), found.get("operator")
    config, started = found.get("config"), found.get("started")
    if (
        isinstance(pid, int)
        and 0 < pid < 2**31
        and isinstance(url, str)
        and isinstance(operator, str)
        and isinstance(config, str)
        and isinstance(started, int | float)
    ):
        return Run(pid=pid, url=url, operator=operator, config=config, started=float(started))
    return None
