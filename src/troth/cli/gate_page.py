"""The table of `troth gate`: primitives by hosts, as text, JSON or Markdown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from troth.capabilities.paths import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from troth.gating import HostAt, Matrix, MatrixRow

WORDS: Final[Mapping[str, str]] = {
    "tools": "Tools",
    "prompts": "Prompts",
    "resources": "Resources",
    "templates": "Resource templates",
}
NOTHING: Final = "The server lists nothing."
EVERYBODY: Final = "Nothing is hidden from any of these hosts."
WIDEST_NAME: Final = 40
"""Columns of a name in the text table; longer ones are cut."""


def as_text(server: str, matrix: Matrix, width: int) -> str:
    """The table for a terminal, in blocks as wide as it takes; then why what is hidden is hidden."""
    columns = _columns(matrix)
    lines = [f"{shown(server)}: what each host sees", ""]
    if not matrix.rows:
        return "\n".join([*lines, NOTHING, ""])
    names = [_cut(row.listed.primitive.name) for row in matrix.rows]
    first = max(len("Resource templates"), *(len(name) + 2 for name in names))
    for block in _blocks(tuple(columns), width - first):
        lines.append("".join([" " * first, *(f"  {host}" for host in block)]).rstrip())
        kind = ""
        for row, name in zip(matrix.rows, names, strict=True):
            if row.listed.primitive.kind != kind:
                kind = row.listed.primitive.kind
                lines.append(WORDS[kind])
            cells = (f"  {_cell(row, columns[host]):<{len(host)}}" for host in block)
            lines.append("".join([f"  {name}".ljust(first), *cells]).rstrip())
        lines.append("")
    lines += [f"{name}: {why}" for name, why in _reasons(matrix, columns)] or [EVERYBODY]
    return "\n".join([*lines, ""])


def as_markdown(server: str, matrix: Matrix, width: int) -> str:  # noqa: ARG001 - Markdown has no width
    """The table for a page."""
    columns = _columns(matrix)
    lines = [f"What each host sees of {_safe(server)}:", ""]
    if not matrix.rows:
        return "\n".join([*lines, NOTHING, ""])
    lines += [f"| | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    for row in matrix.rows:
        cells = " | ".join(_cell(row, places) for places in columns.values())
        lines.append(f"| {WORDS[row.listed.primitive.kind].lower()}: {_safe(row.listed.primitive.name)} | {cells} |")
    reasons = [f"- {_safe(name)}: {why}" for name, why in _reasons(matrix, columns)]
    return "\n".join([*lines, "", *(reasons or [EVERYBODY]), ""])


def as_json(server: str, matrix: Matrix, width: int) -> str:  # noqa: ARG001 - JSON has no width
    """All of it, for programs."""
    primitives = [
        {
            "kind": row.listed.primitive.kind,
            "name": row.listed.primitive.name,
            "needs": row.listed.need.requirement.json() if row.listed.need is not None else [],
            "hosts": [
                {
                    "host": host.profile.id,
                    "era": host.era.value,
                    "revision": host.revision,
                    "visible": decision.allowed,
                    "missing": list(decision.missing),
                    **({} if decision.allowed else {"code": decision.code, "message": decision.message}),
                }
                for host, decision in zip(matrix.hosts, row.decisions, strict=True)
            ],
        }
        for row in matrix.rows
    ]
    return json.dumps({"server": server, "primitives": primitives}, indent=2, ensure_ascii=False) + "\n"


WRITERS: Final[Mapping[str, Callable[[str, Matrix, int], str]]] = {
    "text": as_text,
    "json": as_json,
    "markdown": as_markdown,
}


def _columns(matrix: Matrix) -> dict[str, list[int]]:
    """Host -> its places in the rows, one for each era that it speaks."""
    columns: dict[str, list[int]] = {}
    for place, host in enumerate(matrix.hosts):
        columns.setdefault(host.profile.id, []).append(place)
    return columns


def _blocks(hosts: Sequence[str], width: int) -> Iterator[Sequence[str]]:
    """As many hosts side by side as fit, but at least one."""
    start, used = 0, 0
    for end, host in enumerate(hosts):
        if end > start and used + len(host) + 2 > width:
            yield hosts[start:end]
            start, used = end, 0
        used += len(host) + 2
    yield hosts[start:]


def _cell(row: MatrixRow, places: Sequence[int]) -> str:
    """What one host sees of one primitive, in all eras that it speaks."""
    seen = {row.decisions[place].allowed for place in places}
    return "in part" if len(seen) > 1 else "visible" if seen == {True} else "hidden"


def _reasons(matrix: Matrix, columns: Mapping[str, Sequence[int]]) -> Iterator[tuple[str, str]]:
    """For each primitive and each reason, the hosts that it is hidden from."""
    for row in matrix.rows:
        hosts: dict[str, list[str]] = {}
        for host, places in columns.items():
            whys = {row.decisions[place].why for place in places}
            for place in places:
                if why := row.decisions[place].why:
                    told = host if len(whys) == 1 else f"{host} ({_era(matrix.hosts[place])})"
                    if told not in hosts.setdefault(why, []):
                        hosts[why].append(told)
        for why, told in hosts.items():
            yield shown(row.listed.primitive.name), f"hidden from {', '.join(told)}: {why}"


def _era(host: HostAt) -> str:
    return f"{host.era.value}, {host.revision}"


def _cut(name: str) -> str:
    clean = shown(name)
    return clean if len(clean) <= WIDEST_NAME else f"{clean[: WIDEST_NAME - 1]}…"


def _safe(text: str) -> str:
    """A stranger's text in a Markdown table: as code, on one line."""
    return "`" + shown(text).replace("`", "'").replace("|", "\\|") + "`"
