"""Notices that the configuration changed, and says what is different."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import anyio

from troth.config.jsonc import LARGEST

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from troth.gateway.config import Faults
    from troth.gateway.settings import GatewaySettings

_log = logging.getLogger(__name__)

INTERVAL = 1.0
"""Seconds between two looks: a look is one `stat` per file."""

_Mark = tuple[int, int, int]
"""Inode, size and time of change of a file: cheap to ask, different after every way of saving."""


class Spawns(Protocol):
    """What `watch` needs of a crew."""

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> object:
        """Starts a task."""
        ...


class Watch:
    """Looks at files until its task is cancelled.

    A change counts once the file reads the same at two looks in a row: what an editor is still writing is not loaded.
    A configuration with faults is reported like any other; whoever hears of it keeps the settings that it has.

    Args:
        paths: The configuration, and files that belong to it. A missing one is a file without content.
        load: Reads them.
        changed: Hears of the new settings, or of what is wrong with them. Called from the event loop.
        interval: Seconds between two looks.
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        load: Callable[[], GatewaySettings | Faults],
        changed: Callable[[GatewaySettings | Faults], None],
        interval: float = INTERVAL,
    ) -> None:
        self._paths = tuple(Path(path) for path in paths)
        self._load, self._changed, self._interval = load, changed, interval
        self._marks = self._stat()
        self._digest = self._read()
        self._pending: bytes | None = None

    async def run(self) -> None:
        """Looks for ever."""
        while True:
            await anyio.sleep(self._interval)
            self.look()

    def look(self) -> None:
        """Looks once. Reads files only if one of them was touched since."""
        marks = self._stat()
        if marks == self._marks and self._pending is None:
            return
        self._marks = marks
        digest = self._read()
        if digest == self._digest:
            self._pending = None
        elif digest == self._pending:
            self._take(digest)
        else:
            self._pending = digest

    def now(self) -> None:
        """Loads at once what is there, changed or not: what a SIGHUP asks for."""
        self._marks = self._stat()
        self._take(self._read())

    def _take(self, digest: bytes) -> None:
        for path in self._paths:
            if path.exists() and not path.is_file():
                # Reading a pipe or device would stop the gateway until somebody writes.
                _log.error("%s is no regular file any more; the settings before it stay", path)
                return
        self._digest, self._pending = digest, None
        self._changed(self._load())

    def _stat(self) -> tuple[_Mark | None, ...]:
        return tuple(_mark(path) for path in self._paths)

    def _read(self) -> bytes:
        digest = hashlib.sha256()
        for path in self._paths:
            content = _content(path)
            digest.update(b"-" if content is None else b"+" + hashlib.sha256(content).digest())
        return digest.digest()


def watch(
    paths: Sequence[str | Path],
    load: Callable[[], GatewaySettings | Faults],
    changed: Callable[[GatewaySettings | Faults], None],
    crew: Spawns,
    interval: float = INTERVAL,
) -> Watch:
    """Starts a watch as a task of the crew.

    Args:
        paths: See `Watch`.
        load: See `Watch`.
        changed: See `Watch`.
        crew: Who owns the task.
        interval: Seconds between two looks.

    Returns:
        The watch; its `now` is what to call on SIGHUP.
    """
    watching = Watch(paths, load, changed, interval)
    crew.spawn(watching.run(), "configuration")
    return watching


def _mark(path: Path) -> _Mark | None:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _content(path: Path) -> bytes | None:
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return file.read(LARGEST + 1)
    except (OSError, ValueError):
        return None
