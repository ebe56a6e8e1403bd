"""The status of a gateway for people at a terminal. Whatever peers said of themselves is cleaned first."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from troth.audit.report.clean import line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from troth.gateway.status import HostStatus, Status, UpstreamStatus

NARROWEST = 60
"""Columns below which nothing can be set."""
LONGEST = 200
"""Characters of one thing that a peer or a file said."""
STATES = {"ready": "green", "starting": "yellow", "down": "bold red", "stopped": "dim"}
"""How the states of an upstream look."""
_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def page(status: Status, *, colour: bool, width: int, promises: bool = False) -> str:
    """The status as text.

    Args:
        status: What the gateway told.
        colour: Whether the terminal takes colours.
        width: Its columns.
        promises: Whether every capability is listed for every host, with the reason.
    """
    out = StringIO()
    console = Console(
        file=out,
        width=max(width, NARROWEST),
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )
    _head(console, status)
    _upstreams(console, status.upstreams)
    _hosts(console, status.hosts)
    for host in status.hosts if promises else ():
        _promises(console, host)
    return "".join(f"{text.rstrip()}\n" for text in out.getvalue().splitlines())


def _said(text: str) -> str:
    return line(text, LONGEST)


def _head(console: Console, status: Status) -> None:
    facts = [
        _said(status.url) or "no address",
        f"up {duration(status.uptime)}",
        f"process {status.pid}",
        size(status.memory) if status.memory else "",
        _said(status.config),
        f"troth {_said(status.troth)}" if status.troth else "",
    ]
    console.print(Text("  ".join(fact for fact in facts if fact), style="bold"), soft_wrap=True)
    if status.faults:
        console.print(Text("The changed configuration is not in force:", style="bold red"))
    for text in status.faults:
        console.print(Text(f"  {_said(text)}", style="red"), soft_wrap=True)
    _notes(console, "", status.notes)


def _table(*columns: tuple[str, bool]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True, header_style="bold", show_edge=False)
    for title, right in columns:
        table.add_column(title, justify="right" if right else "left", overflow="fold")
    return table


def _upstreams(console: Console, upstreams: Sequence[UpstreamStatus]) -> None:
    console.print()
    if not upstreams:
        console.print("No servers.")
        return
    table = _table(
        ("server", False),
        ("state", False),
        ("era", False),
        ("revision", False),
        ("tools", True),
        ("list", True),
        ("calls", True),
        ("failed", True),
        ("sessions", True),
        ("memory", True),
    )
    for item in upstreams:
        listed = item.listed
        table.add_row(
            _who(item),
            Text(_said(item.state), style=STATES.get(item.state, "")),
            _said(item.era) or "-",
            _said(item.revision) or "-",
            f"{listed.tools}" if listed else "-",
            size(listed.bytes) if listed else "-",
            str(item.calls),
            str(item.failed),
            str(item.sessions),
            "-" if item.memory is None else size(item.memory),
        )
    console.print(table)
    told: set[tuple[str, str]] = set()
    for item in upstreams:
        if item.why:
            due = "" if item.retry is None else f" (next attempt in {duration(item.retry)})"
            console.print(Text(f"{_who(item)}: {_said(item.why)}{due}", style="red"), soft_wrap=True)
        if item.promised:
            console.print(Text(f"{_who(item)} promises {_paths(item.promised)}"), soft_wrap=True)
        hidden = item.listed.hidden if item.listed else 0
        notes = (*item.notes, *([f"{hidden} tools are hidden by filters"] if hidden else []))
        # Several credentials have connections of their own to one server, of which the same is to be said.
        _notes(console, _who(item), [note for note in notes if (item.name, note) not in told])
        told |= {(item.name, note) for note in notes}


def _who(item: UpstreamStatus) -> str:
    return f"{_said(item.name)} ({_said(item.principal)})" if item.principal else _said(item.name)


def _paths(paths: Sequence[str]) -> str:
    return ", ".join(_said(path) for path in paths) or "nothing"


def _hosts(console: Console, hosts: Sequence[HostStatus]) -> None:
    console.print()
    if not hosts:
        console.print("No hosts.")
        return
    table = _table(
        ("host", False),
        ("credential", False),
        ("by", False),
        ("era", False),
        ("revision", False),
        ("calls", True),
        ("idle", True),
    )
    for host in hosts:
        table.add_row(
            _said(host.name),
            _said(host.principal),
            _said(host.transport),
            _said(host.era),
            _said(host.revision),
            str(host.calls),
            duration(host.idle),
        )
    console.print(table)
    told_of: set[tuple[str, str]] = set()
    for host in hosts:
        given = [item.path for item in host.promised if item.promised]
        treated = f" (treated as {_said(host.profile)})" if host.profile else ""
        told = f"{_said(host.name)}{treated} declares {_paths(host.declared)}, and is promised {_paths(given)}"
        console.print(Text(told), soft_wrap=True)
        _notes(console, _said(host.name), [note for note in host.notes if (host.name, note) not in told_of])
        told_of |= {(host.name, note) for note in host.notes}


def _promises(console: Console, host: HostStatus) -> None:
    console.print()
    console.print(Text(_said(host.name), style="bold"))
    table = _table(("capability", False), ("promised", False), ("why", False))
    for item in host.promised:
        table.add_row(_said(item.path), "yes" if item.promised else "no", _said(item.why))
    console.print(table)


def _notes(console: Console, who: str, notes: Sequence[str]) -> None:
    for note in notes:
        console.print(Text(f"{who}: {_said(note)}" if who else _said(note), style="yellow"), soft_wrap=True)


def size(count: int) -> str:
    """Bytes in words: powers of 1,000."""
    for unit, word in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= unit:
            return f"{count / unit:.1f} {word}" if count < 10 * unit else f"{count // unit} {word}"
    return f"{count} B"


def duration(seconds: float) -> str:
    """A time in words: the largest unit that fits."""
    for unit, word in _UNITS:
        if seconds >= unit:
            return f"{int(seconds // unit)} {word}"
    return "0 s"
