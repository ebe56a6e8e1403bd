"""Adds servers to a configuration file and takes them out. Comments, order and layout of all else stay.

A file is edited as text, and the result is read again: if it does not say exactly what was wanted, nothing is written.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, cast

from troth.config import Document, Fault, mapping, read_json, read_list
from troth.config.jsonc import strip_comments
from troth.gateway.config.read import near
from troth.gateway.config.source import is_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tomlkit import TOMLDocument
    from tomlkit.items import InlineTable

    from troth.config import Span

_LINE_START = re.compile(r"[ \t]*\Z")


def add_server(path: str, text: str | None, name: str, entry: Mapping[str, Any]) -> str | Fault:
    """The text of a file with one server more.

    Args:
        path: The file.
        text: What stands in it; None where there is no file yet.
        name: Name of the server.
        entry: Its members.

    Returns:
        The new text; or why there is none.
    """
    if is_toml(path):
        return _add_toml(path, text or "", name, entry)
    return _add_json(path, '{\n  "mcpServers": {}\n}\n' if text is None or not text.strip() else text, name, entry)


def remove_server(path: str, text: str, name: str) -> str | Fault:
    """The text of a file with one server less; or why there is none."""
    return _remove_toml(path, text, name) if is_toml(path) else _remove_json(path, text, name)


def _exists(path: str, where: str) -> Fault:
    return Fault(path, where, "is there already", "choose another name, or remove that one first")


def _unknown(path: str, key: str, name: str, servers: Mapping[str, Any]) -> Fault:
    return Fault(path, key, f"has no server {name!r}", near(name, servers))


def _strange(path: str) -> Fault:
    return Fault(path, "", "is written in a way that cannot be edited safely", "edit it by hand")


# TOML


def _parse_toml(path: str, text: str) -> TOMLDocument | Fault:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(text)
    except (TOMLKitError, RecursionError, ValueError) as error:
        return Fault(path, "", f"not TOML: {error}")


def _add_toml(path: str, text: str, name: str, entry: Mapping[str, Any]) -> str | Fault:
    import tomlkit
    from tomlkit.items import InlineTable

    document = _parse_toml(path, text)
    if isinstance(document, Fault):
        return document
    servers: Any = document.setdefault("servers", tomlkit.table(is_super_table=True))
    if not hasattr(servers, "unwrap") or mapping(servers.unwrap()) is None:
        return Fault(path, "servers", "must be a table of servers by name")
    if name in servers:
        return _exists(path, f"servers.{name}")
    wanted = document.unwrap()
    wanted["servers"] = {**wanted["servers"], name: dict(entry)}
    inline = isinstance(servers, InlineTable)
    table = tomlkit.inline_table() if inline else tomlkit.table()
    for key, value in entry.items():
        table.add(key, value if mapping(value) is None else _inline(value))
    servers.append(name, table)
    return _checked_toml(path, document, wanted)


def _inline(value: Mapping[str, Any]) -> InlineTable:
    import tomlkit

    table = tomlkit.inline_table()
    for key, item in value.items():
        table.add(key, item)
    return table


def _remove_toml(path: str, text: str, name: str) -> str | Fault:
    document = _parse_toml(path, text)
    if isinstance(document, Fault):
        return document
    wanted = document.unwrap()
    servers = mapping(wanted.get("servers")) or {}
    if name not in servers:
        return _unknown(path, "servers", name, servers)
    del servers[name]
    cast("dict[str, Any]", document["servers"]).pop(name)
    return _checked_toml(path, document, wanted)


def _checked_toml(path: str, document: TOMLDocument, wanted: Mapping[str, Any]) -> str | Fault:
    text = document.as_string()
    again = _parse_toml(path, text)
    said = None if isinstance(again, Fault) else again.unwrap()
    # A table without servers may vanish with its last one.
    return text if said is not None and {"servers": {}, **said} == {"servers": {}, **wanted} else _strange(path)


# JSON


def _read_json(path: str, text: str) -> tuple[Document, tuple[str, ...], Mapping[str, Any]] | Fault:
    listed = read_list(path, text)
    if isinstance(listed, Fault):
        return listed
    document, key, servers = listed
    return (document, tuple(key.split(".")), servers) if not document.twice else _strange(path)


def _add_json(path: str, text: str, name: str, entry: Mapping[str, Any]) -> str | Fault:
    found = _read_json(path, text)
    if isinstance(found, Fault):
        return found
    document, home, servers = found
    if name in servers:
        return _exists(path, ".".join((*home, name)))
    span = document.spans[home]
    children = _children(document, home)
    base = _indent(text, span.key)
    inner = _indent(text, children[-1].key) if children else ""
    step = inner.removeprefix(base) if inner.startswith(base) and inner != base else _step(base)
    plain = strip_comments(text)
    comma = bool(children) and "," in plain[children[-1].end : span.end - 1]
    if children and "\n" not in text[span.start : span.end]:
        after = "" if comma else ","
        at = children[-1].end + (1 + plain[children[-1].end :].index(",") if comma else 0)
        member = f"{after} {json.dumps(name, ensure_ascii=False)}: {json.dumps(entry, ensure_ascii=False)}"
        edited = text[:at] + member + text[at:]
    else:
        value = json.dumps(entry, indent=step, ensure_ascii=False).replace("\n", f"\n{base}{step}")
        member = f"\n{base}{step}{json.dumps(name, ensure_ascii=False)}: {value}" + ("," if comma else "")
        body = text[: span.end - 1].rstrip()
        if children and not comma:
            body = body[: children[-1].end] + "," + body[children[-1].end :]
        edited = f"{body}{member}\n{base}{text[span.end - 1 :]}"
    return _checked_json(path, document, edited, home, {**servers, name: dict(entry)})


def _remove_json(path: str, text: str, name: str) -> str | Fault:
    found = _read_json(path, text)
    if isinstance(found, Fault):
        return found
    document, home, servers = found
    if name not in servers:
        return _unknown(path, ".".join(home), name, servers)
    plain = strip_comments(text)
    children = _children(document, home)
    gone = document.spans[(*home, name)]
    index = children.index(gone)
    start, end = gone.key, gone.end
    close = document.spans[home].end - 1
    after = plain[end : children[index + 1].key if index + 1 < len(children) else close]
    cut: list[tuple[int, int]] = []
    if "," in after:
        end += after.index(",") + 1
    elif index:
        comma = children[index - 1].end + plain[children[index - 1].end :].index(",")
        cut.append((comma, comma + 1))
    # A line that holds nothing else goes with its entry.
    lead = _LINE_START.search(text, text.rfind("\n", 0, start) + 1, start)
    rest = re.compile(r"[ \t]*(?:\r?\n|(?=[}]))").match(text, end)
    if lead is not None and rest is not None:
        start, end = lead.start(), rest.end()
    elif rest is None and index + 1 < len(children):
        end += len(text[end:]) - len(text[end:].lstrip(" \t"))
    cut.append((start, end))
    for begin, finish in sorted(cut, reverse=True):
        text = text[:begin] + text[finish:]
    return _checked_json(path, document, text, home, {key: value for key, value in servers.items() if key != name})


def _checked_json(
    path: str, before: Document, text: str, home: tuple[str, ...], servers: Mapping[str, Any]
) -> str | Fault:
    """The text, if it says what was said before but for the servers."""
    after = read_json(path, text)
    wanted = _with(before.value, home, servers)
    same = isinstance(after, Document) and after.value == wanted and not after.twice
    return text if same else _strange(path)


def _with(value: object, path: tuple[str, ...], new: object) -> object:
    if not path:
        return new
    members = mapping(value) or {}
    return {**members, path[0]: _with(members.get(path[0]), path[1:], new)}


def _children(document: Document, home: tuple[str, ...]) -> list[Span]:
    spans = [span for path, span in document.spans.items() if len(path) == len(home) + 1 and path[:-1] == home]
    return sorted(spans, key=lambda span: span.start)


def _indent(text: str, at: int) -> str:
    """The blanks at the beginning of the line of a character."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _step(base: str) -> str:
    """One level of indentation, where no sibling shows it."""
    return "\t" if base.startswith("\t") else "  "
