"""Notices that the configuration changed, and says what is different."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, fields, replace
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What is different between two configurations.

    Attributes:
        added: Names of upstreams that are new.
        removed: Names of upstreams that are gone.
        changed: Names of upstreams that must be started or addressed in another way, or shown differently.
        restart: Those of `changed` whose process or connection must be made anew.
        reordered: Whether the upstreams that stay stand in another order.
        other: Names of fields of `GatewaySettings` that differ (``tokens``, ``policies``, ...).
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()
    reordered: bool = False
    other: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is different."""
        return bool(self.added or self.removed or self.changed or self.reordered or self.other)


SHOWN = frozenset({"allow", "deny", "rename", "describe", "requires", "prefix", "where"})
"""Fields of an upstream that change what hosts see, and nothing of the conversation with it."""


def difference(old: GatewaySettings, new: GatewaySettings) -> Difference:
    """What changes from one configuration to the next. Where an upstream stands in its file is no difference."""
    before = {item.name: replace(item, where="") for item in old.upstreams}
    after = {item.name: replace(item, where="") for item in new.upstreams}
    both = [name for name in after if name in before]
    changed = tuple(name for name in both if before[name] != after[name])
    spoken = [field.name for field in fields(next(iter(after.values())))] if after else []
    restart = tuple(
        name
        for name in changed
        if any(getattr(before[name], part) != getattr(after[name], part) for part in spoken if part not in SHOWN)
    )
    return Difference(
        added=tuple(name for name in after if name not in before),
        removed=tuple(name for name in before if name not in after),
        changed=changed,
        restart=restart,
        reordered=[name for name in before if name in after] != both,
        other=tuple(
            field.name
            for field in fields(new)
            if field.name not in {"upstreams", "path", "notes"} and getattr(old, field.name) != getattr(new, field.name)
        ),
    )
