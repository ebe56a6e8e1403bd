"""What survives a restart: how each upstream is named, what it declared when last seen, and its era.

Rules 8 and 9 of the gateway rest on it: names never change under a host, and a family is declared to a legacy host
before its upstream has spoken, if it was known to have it. Losing the file costs no more than that; so a file that is
damaged or cannot be written is told and nothing else happens.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from troth.config import mapping
from troth.gateway.config.keys import PREFIX
from troth.gateway.config.read import prefix_of
from troth.gateway.private import read_private, write_private

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.gateway.settings import GatewaySettings

VERSION = 1
"""Version of the file's layout; others are taken for damaged."""
MOST = 10_000
"""Upstreams that are remembered: a bound for files that somebody else wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known of an upstream from before.

    Attributes:
        prefix: The prefix that it was first served with; None if it never was.
        era: Era that it spoke (``legacy``, ``modern``); empty if it never answered.
        revision: Revision that was spoken; empty likewise.
        declared: Families that it declared, each with the flags that were true; None if it never answered.
    """

    prefix: str | None = None
    era: str = ""
    revision: str = ""
    declared: Mapping[str, frozenset[str]] | None = None


def state_path(folder: Path, config: str | Path) -> Path:
    """Where the state of a configuration is kept.

    Args:
        folder: The operator's folder for state.
        config: The configuration file.
    """
    digest = hashlib.sha256(str(Path(config).resolve()).encode("utf-8", "surrogateescape")).hexdigest()
    return folder / digest[:16] / "state.json"


@dataclass(slots=True, kw_only=True)
class State:
    """The state of one configuration. Changes stay in memory until `save`.

    Attributes:
        path: The file; None keeps nothing.
        problem: Why the file could not be read or written the last time; empty if it could.
    """

    path: Path | None
    problem: str = ""
    _seen: dict[str, Seen] = field(default_factory=dict[str, Seen])
    _changed: set[str] = field(default_factory=set[str])

    @classmethod
    def load(cls, path: Path | None) -> State:
        """Reads a state; an empty one where there is none, or none that can be used (`problem` says why)."""
        seen, problem = _read(path)
        return cls(path=path, problem=problem, _seen=seen)

    def seen(self, name: str) -> Seen | None:
        """What is known of an upstream; None if it was never configured before."""
        return self._seen.get(name)

    def prefixes(self, settings: GatewaySettings) -> dict[str, str]:
        """The prefix of every upstream, decided once and remembered.

        The operator's own wins. An upstream that was served before keeps what it had. The first of all, if it is
        alone, gets none; every other one gets that of its name.

        Args:
            settings: A configuration without faults.
        """
        upstreams = settings.upstreams
        served = any(seen.prefix is not None for seen in self._seen.values())
        alone = len(upstreams) == 1 and not served
        result: dict[str, str] = {}
        for upstream in upstreams:
            known = self._seen.get(upstream.name, Seen())
            prefix = upstream.prefix if upstream.prefix is not None else known.prefix
            if prefix is None:
                made = prefix_of(upstream)
                prefix = "" if alone or not isinstance(made, str) else _free(made, result)
            result[upstream.name] = prefix
            if known.prefix is None:
                self._put(upstream.name, known, prefix=prefix)
        return result

    def remember(self, name: str, *, era: str, revision: str, declared: Mapping[str, frozenset[str]]) -> None:
        """Keeps what an upstream said of itself.

        Args:
            name: Its name in the configuration.
            era: Era that is spoken with it.
            revision: Revision that is spoken with it.
            declared: Families that it declares, each with the flags that are true.
        """
        self._put(name, self._seen.get(name, Seen()), era=era, revision=revision, declared=dict(declared))

    def _put(self, name: str, known: Seen, **changes: Any) -> None:
        fresh = replace(known, **changes)
        if fresh != known:
            self._seen[name] = fresh
            self._changed.add(name)

    def save(self) -> str:
        """Writes what changed; what another process wrote of other upstreams meanwhile stays.

        Returns:
            Why it could not be written; empty if it was, or if there was nothing to write.
        """
        if self.path is None or not self._changed:
            return ""
        on_disk, _ = _read(self.path)
        merged = {**self._seen, **on_disk, **{name: self._seen[name] for name in self._changed}}
        self.problem = write_private(
            self.path, {"version": VERSION, "upstreams": {name: _plain(seen) for name, seen in merged.items()}}
        )
        if not self.problem:
            self._changed.clear()
        return self.problem


def _free(prefix: str, taken: Mapping[str, str]) -> str:
    """The prefix, or the next one like it that no upstream has kept from a time when it was set by hand."""
    used, number, free = {*taken.values()}, 1, prefix
    while free in used:
        number += 1
        free = f"{prefix[:20]}-{number}"
    return free


def _plain(seen: Seen) -> dict[str, object]:
    declared = seen.declared
    return {
        "prefix": seen.prefix,
        "era": seen.era,
        "revision": seen.revision,
        "declared": None if declared is None else {family: sorted(flags) for family, flags in declared.items()},
    }


def _read(path: Path | None) -> tuple[dict[str, Seen], str]:
    found = {} if path is None else read_private(path)
    if isinstance(found, str):
        return {}, found
    if not found:
        return {}, ""
    upstreams = mapping(found.get("upstreams"))
    if found.get("version") != VERSION or upstreams is None or len(upstreams) > MOST:
        return {}, f"{path}: is damaged"
    return {name: _seen(value) for name, value in upstreams.items()}, ""


def _seen(value: object) -> Seen:
    """One entry; what is not of its form counts as unknown."""
    members = mapping(value) or {}
    prefix, declared = members.get("prefix"), mapping(members.get("declared"))
    return Seen(
        prefix=prefix if isinstance(prefix, str) and re.fullmatch(PREFIX, prefix) else None,
        era=_word(members.get("era")),
        revision=_word(members.get("revision")),
        declared=None if declared is None else {family: _flags(flags) for family, flags in declared.items()},
    )


def _word(value: object) -> str:
    return value if isinstance(value, str) and value.isprintable() and len(value) <= 32 else ""


def _flags(value: object) -> frozenset[str]:
    flags = cast("list[object]", value) if isinstance(value, list) else []
    return frozenset(flag for flag in flags if isinstance(flag, str))
