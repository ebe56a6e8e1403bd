"""Targets from the server lists that hosts keep: Claude Desktop and its kin, VS Code, opencode (`troth.config`)."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from troth.audit.options import UsageError
from troth.audit.targets import HttpTarget, Place, StdioTarget, Target, url_problem
from troth.config import LARGEST, Entry, Fault, read_servers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["LARGEST", "read_config"]


def read_config(path: str, names: Sequence[str], environ: Mapping[str, str]) -> tuple[Target, ...]:
    """The servers of a configuration file as targets, in the file's order.

    Args:
        path: The file.
        names: Servers to take, also disabled ones; empty for all that are not disabled.
        environ: Where ``${VAR}``, ``${VAR:-default}``, ``${env:VAR}`` and ``{env:VAR}`` are looked up.

    Raises:
        UsageError: The file cannot be read, is no such configuration, lacks a named server or a variable.
    """
    found = read_servers(path, environ)
    if isinstance(found, Fault):
        raise UsageError(str(found) if found.column else f"{path}: {found.words}")
    servers = {entry.name: entry for entry in found.entries}
    for name in names:
        if name not in servers:
            raise UsageError(f"{path}: no server {name!r}. {_near(name, servers)}")
    chosen = [entry for entry in found.entries if (entry.name in names if names else not entry.disabled)]
    if not chosen:
        what = "are disabled; name one with --server" if servers else "are missing: the list is empty"
        raise UsageError(f"{path}: {found.key}: all servers {what}.")
    return tuple(_target(path, entry) for entry in chosen)


def _near(name: str, known: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(name, [*known], 1)
    return f"Did you mean {close[0]!r}?" if close else f"It has: {', '.join(known) or 'none'}."


def _target(path: str, entry: Entry) -> Target:
    if entry.faults:
        raise UsageError(f"{path}: {entry.faults[0].words}")
    place = Place(path, entry.line or 1)
    if entry.command:
        return StdioTarget(name=entry.name, command=entry.command, env=entry.env, cwd=entry.cwd, place=place)
    problem = url_problem(entry.url)
    if problem:
        raise UsageError(f"{path}: {entry.where}.{entry.url_key}: {problem.rstrip('.')}.")
    return HttpTarget(name=entry.name, url=entry.url, headers=entry.headers, place=place)
