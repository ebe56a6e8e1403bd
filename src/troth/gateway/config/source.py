"""A configuration file of either form as one shape: servers, sections, and the line of each member."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, cast

from troth.config import Fault, mapping, misspelt, read_list

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_AT = re.compile(r" \(at line (\d+), column (\d+)\)$")
_HEADER = re.compile(r"\s*\[{1,2}([^\[\]\n]+)\]{1,2}\s*(?:#.*)?$")
_KEY = re.compile(
    r"""\s*((?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*'))*)\s*="""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a file says, before anything of it is judged.

    Attributes:
        file: The file.
        toml: Whether it is a ``troth.toml``, where Troth's keys stand beside the others.
        servers: The servers by name.
        servers_path: Where they stand.
        sections: `keys.SECTIONS` that are there, and all else beside them.
        sections_path: Where those stand.
        line: The line of a path.
        faults: Members that stand twice.
        notes: Members that look like a list of servers beside the one that is read.
    """

    file: str
    toml: bool
    servers: Mapping[str, Any] = field(repr=False)
    servers_path: tuple[str, ...]
    sections: Mapping[str, Any] = field(repr=False)
    sections_path: tuple[str, ...]
    line: Callable[[tuple[str, ...]], int | None] = field(repr=False)
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()


def is_toml(path: str) -> bool:
    """Whether a file is read as TOML: by its name."""
    return PurePath(path).suffix.lower() == ".toml"


def read_source(path: str, text: str) -> Source | Fault:
    """Reads a text of either form.

    Args:
        path: The file that it stands in.
        text: The text.
    """
    return _toml(path, text) if is_toml(path) else _json(path, text)


def _json(path: str, text: str) -> Source | Fault:
    listed = read_list(path, text)
    if isinstance(listed, Fault):
        return listed
    document, key, servers = listed
    top = cast("dict[str, Any]", document.value)
    parts = tuple(key.split("."))
    faults = [
        Fault(
            path,
            ".".join(member),
            f"stands twice (first on line {document.line_at(first)})",
            "give one of the two servers another name" if member[:-1] == parts else "keep one of the two",
            document.line_at(at),
        )
        for member, first, at in document.twice
        # What stands twice elsewhere in a host's settings is none of our business.
        if member[: len(parts)] == parts or member[0] == "troth"
    ]
    sections = mapping(top.get("troth", {}))
    if sections is None:
        faults.append(Fault(path, "troth", "must be an object", "", document.line(("troth",))))
    return Source(
        file=path,
        toml=False,
        servers=servers,
        servers_path=parts,
        sections=sections or {},
        sections_path=("troth",),
        line=document.line,
        faults=tuple(faults),
        notes=(f"{meant[0]}: has no effect here; did you mean {meant[1]!r}?",) if (meant := misspelt(top)) else (),
    )


def _toml(path: str, text: str) -> Source | Fault:
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = _AT.search(str(error))
        words = _AT.sub("", str(error))
        line, column = (int(at[1]), int(at[2])) if at else (None, None)
        return Fault(path, "", f"not TOML: {words}", "", line, column)
    except (RecursionError, ValueError) as error:
        return Fault(path, "", f"not usable TOML: {error}")
    lines = toml_lines(text)
    servers = mapping(value.get("servers", {}))
    faults = () if servers is not None else (Fault(path, "servers", "must be a table of servers by name"),)
    return Source(
        file=path,
        toml=True,
        servers=servers or {},
        servers_path=("servers",),
        sections={name: member for name, member in value.items() if name not in {"servers", "$schema"}},
        sections_path=(),
        line=lines.get,
        faults=faults,
    )


def toml_lines(text: str) -> dict[tuple[str, ...], int]:
    """Lines of tables and keys of a text that is known to be TOML; a key inside an inline table has none.

    A line of a text over several lines may pass for a key: it only ever names a line, never a value.
    """
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header and (path := _path(header[1])):
            table = path
            lines.setdefault(table, number)
            continue
        key = _KEY.match(line)
        if key and (path := _path(key[1])):
            for end in range(1, len(path) + 1):
                lines.setdefault((*table, *path[:end]), number)
    for path, number in list(lines.items()):
        for end in range(1, len(path)):
            lines.setdefault(path[:end], number)
    return lines


def _path(dotted: str) -> tuple[str, ...]:
    try:
        value: object = tomllib.loads(f"{dotted} = 0")
    except (tomllib.TOMLDecodeError, RecursionError):
        return ()
    path: list[str] = []
    while (table := mapping(value)) is not None:
        name, value = next(iter(table.items()))
        path.append(name)
    return tuple(path)
