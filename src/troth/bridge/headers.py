"""HTTP headers that repeat what a modern request says in its body: made for an upstream, checked from a host. Sans-IO.

A tool may ask for arguments to be repeated in headers of their own, ``Mcp-Param-...``, by ``x-mcp-header`` in its
input schema. `plan` compiles that once per tool; `mirrored` makes the headers of one call. Incoming headers are held
against the body (`disagreement`) and then forgotten: outgoing ones are made from the outgoing body.

Values of headers never stand in a reason: an argument may be a secret.

Source: 2026-07-28/basic/transports/streamable-http, request metadata; 2026-07-28/server/tools, ``x-mcp-header``;
RFC 9110, 5.1, 5.5 and 5.6.2; JSON Schema 2020-12, core, 10 (where schemas stand in a schema).
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from msgspec import Raw

from troth.bridge.levels import members
from troth.bridge.model import BAD_PARAMS, Bad, Frame
from troth.bridge.tree import items_of, members_of, text
from troth.bridge.write import written

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NAMED: Mapping[str, str] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The member of params that ``Mcp-Name`` repeats. Source: the transport's page; ext-tasks."""

ANNOTATION = "x-mcp-header"
_PREFIX = "Mcp-Param-"
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_SORTS = frozenset({"boolean", "integer", "string"})
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")
_INTEGER = re.compile(r"-?[0-9]+")
_NUMBER_LENGTH = 64
"""Characters of a number that is compared by value. Integers that may be mirrored have 16 digits at most."""

_OPEN, _CLOSE = "=?base64?", "?="
_WRAPPING = len(_OPEN) + len(_CLOSE)

_ONE = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_SOME = frozenset(["allOf", "anyOf", "items", "oneOf", "prefixItems"])
_BY_NAME = frozenset(["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"])
"""Keywords whose value is a schema, a list of them, or an object of them."""


@dataclass(frozen=True, slots=True)
class Mirror:
    """One argument that is repeated in a header.

    Attributes:
        header: Name of the header, as the tool spells it.
        path: Names of properties that lead to the argument.
    """

    header: str
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The headers of a tool's calls.

    Attributes:
        mirrors: The arguments that are repeated.
    """

    mirrors: tuple[Mirror, ...]


def plan(input_schema: object) -> Plan | Bad | None:
    """What headers the calls of a tool have.

    Args:
        input_schema: The tool's ``inputSchema``, as a JSON value or `Raw`.

    Returns:
        The plan; None for a tool without annotations; the reason why the annotations are invalid, and with them the
        tool for every client over HTTP.
    """
    raw = Raw(written(input_schema))
    if not _mentions(raw):
        return None
    mirrors: dict[str, Mirror] = {}
    for path, schema in _schemas(raw):
        if ANNOTATION not in schema:
            continue
        name = text(schema[ANNOTATION])
        if problem := _problem(name, path, schema):
            return Bad(BAD_PARAMS, f"{ANNOTATION}: {problem}")
        mirror = Mirror(f"{_PREFIX}{name}", path or ())
        if mirrors.setdefault(mirror.header.lower(), mirror) is not mirror:
            return Bad(BAD_PARAMS, f"{ANNOTATION}: two properties name the same header")
    return Plan(tuple(mirrors.values())) if mirrors else None


def without_annotations(schema: object) -> Raw:
    """The schema without its annotations, for peers that get no headers from it.

    Args:
        schema: A JSON Schema, as a JSON value or `Raw`; it is not changed.
    """
    raw = Raw(written(schema))
    return _stripped(raw) if _mentions(raw) else raw


def mirrored(plan: Plan, arguments: Raw | None) -> dict[str, str]:
    """The headers ``Mcp-Param-...`` of one call; arguments that are absent or null have none.

    Args:
        plan: The plan of the tool.
        arguments: Arguments as they go out; None for none.
    """
    found = _values(plan, arguments)
    if isinstance(found, Bad):
        return {}
    return {mirror.header: encoded(words) for mirror, (words, _) in found.items()}


def disagreement(frame: Frame, revision: str, headers: Mapping[str, str], plan: Plan | None = None) -> str:
    """What in the headers of a modern request is missing, malformed, or says something else than the body.

    Args:
        frame: The request.
        revision: The revision that its ``_meta`` names.
        headers: The headers by their names in lower case.
        plan: The plan of the tool that is called; None for none.

    Returns:
        The reason, without any value; empty if all agree.
    """
    problem = _differs("MCP-Protocol-Version", headers.get("mcp-protocol-version"), revision, wrapped=False)
    problem = problem or _differs("Mcp-Method", headers.get("mcp-method"), frame.method, wrapped=False)
    if not problem and (member := NAMED.get(frame.method)) is not None:
        name = text((frame.parts or {}).get(member)) or ""
        problem = _differs("Mcp-Name", headers.get("mcp-name"), name)
    if problem or plan is None:
        return problem
    return _unlike(plan, (frame.parts or {}).get("arguments"), headers)


def encoded(value: str) -> str:
    """A text as the value of ``Mcp-Name`` or ``Mcp-Param-...``: as it is, or in base64 where it would be damaged."""
    if value.isascii() and value.isprintable() and value == value.strip() and not _wrapped(value):
        return value
    return f"{_OPEN}{base64.b64encode(value.encode('utf-8', 'replace')).decode('ascii')}{_CLOSE}"


def decoded(value: str) -> str | None:
    """The text that such a value stands for; None for one that is malformed."""
    if not _clean(value):
        return None
    if not _wrapped(value):
        return value
    try:
        return base64.b64decode(value[len(_OPEN) : -len(_CLOSE)], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _clean(value: str) -> bool:
    """Whether a value has only characters that a header may have: visible ASCII, spaces, tabs."""
    return value.isascii() and (value.isprintable() or value.replace("\t", " ").isprintable())


def _wrapped(value: str) -> bool:
    return value.startswith(_OPEN) and value.endswith(_CLOSE) and len(value) >= _WRAPPING


def _differs(header: str, value: str | None, words: str, *, wrapped: bool = True, number: bool = False) -> str:
    """Why a header does not say what the body says, in words; empty if it does."""
    if value is None:
        return f"the header {header} is missing"
    found = decoded(value) if wrapped else value if _clean(value) else None
    if found is None:
        return f"the header {header} is malformed"
    same = found == words or (number and _equal(found, words))
    return "" if same else f"the header {header} and the body of the request differ"


def _equal(one: str, other: str) -> bool:
    """Whether two numbers are the same, however they are written."""
    if max(len(one), len(other)) > _NUMBER_LENGTH or not (_NUMBER.fullmatch(one) and _NUMBER.fullmatch(other)):
        return False
    return Decimal(one) == Decimal(other)


def _unlike(plan: Plan, arguments: Raw | None, headers: Mapping[str, str]) -> str:
    """What the headers of a call say otherwise than its arguments, in words; empty if nothing."""
    values = _values(plan, arguments)
    if isinstance(values, Bad):
        return values.reason
    for mirror in plan.mirrors:
        value = headers.get(mirror.header.lower())
        if mirror in values:
            words, number = values[mirror]
            if problem := _differs(mirror.header, value, words, number=number):
                return problem
        elif value is not None:
            return f"the header {mirror.header} is there, and the argument that it repeats is not"
    return ""


def _values(plan: Plan, arguments: Raw | None) -> dict[Mirror, tuple[str, bool]] | Bad:
    """The arguments that are repeated: their words, and whether they are numbers.

    Returns:
        The words; -32602 for arguments that could be read in two ways.
    """
    levels: dict[tuple[str, ...], Mapping[str, Raw]] = {}
    found: dict[Mirror, tuple[str, bool]] = {}
    for mirror in plan.mirrors:
        value = arguments
        for depth, name in enumerate(mirror.path):
            above = mirror.path[:depth]
            if above not in levels:
                level = _level(value)
                if isinstance(level, Bad):
                    return level
                levels[above] = level
            value = levels[above].get(name)
        if value is not None and (words := _words(value)) is not None:
            found[mirror] = words
    return found


def _level(raw: Raw | None) -> Mapping[str, Raw] | Bad:
    """The members of arguments, or of an object in them; none where there is no object."""
    return members(raw, "arguments") if raw is not None and _starts(raw, b"{") else {}


def _starts(raw: Raw, start: bytes) -> bool:
    return bytes(memoryview(raw)[:1]) == start


def _words(raw: Raw) -> tuple[str, bool] | None:
    """What a header says for a value, and whether it is a number; None for null, objects and arrays."""
    if (words := text(raw)) is not None:
        return words, False
    words = bytes(raw).decode()
    if words in ("true", "false"):
        return words, False
    if _INTEGER.fullmatch(words):
        return ("0" if words == "-0" else words), True
    if len(words) <= _NUMBER_LENGTH and _NUMBER.fullmatch(words):
        number = Decimal(words)
        return (str(int(number)) if number == number.to_integral_value() else words), True
    return None


def _problem(name: str | None, path: tuple[str, ...] | None, schema: Mapping[str, Raw]) -> str:
    """What is wrong with an annotation, in words; empty if nothing."""
    if not path:
        return "it stands where no call could tell the value: only properties of properties may have it"
    if name is None or not _TOKEN.fullmatch(name):
        return "it is no name that a header can have"
    return "" if text(schema.get("type")) in _SORTS else "only a string, an integer or a boolean can be repeated"


def _mentions(raw: Raw) -> bool:
    body = bytes(raw)
    return ANNOTATION.encode() in body or b"\\u00" in body


def _schemas(raw: Raw) -> Iterator[tuple[tuple[str, ...] | None, Mapping[str, Raw]]]:
    """Every schema in a schema, with the names of properties that lead to it; None where something else does too."""
    stack: list[tuple[tuple[str, ...] | None, Raw]] = [((), raw)]
    while stack:
        path, raw = stack.pop()
        schema = members_of(raw)
        yield path, schema
        for keyword, value in schema.items():
            for name, inner in _inner(keyword, value):
                reached = path is not None and keyword == "properties" and name is not None
                stack.append(((*(path or ()), name or "") if reached else None, inner))


def _inner(keyword: str, value: Raw) -> Iterator[tuple[str | None, Raw]]:
    """The schemas in the value of a keyword, with their names where they have some."""
    if keyword in _BY_NAME:
        yield from members_of(value).items()
    elif keyword in _SOME and _starts(value, b"["):
        yield from ((None, item) for item in items_of(value))
    elif keyword in _ONE:
        yield None, value


def _stripped(raw: Raw) -> Raw:
    schema = members_of(raw)
    if not schema:
        return raw
    return Raw(written({name: _bare(name, value) for name, value in schema.items() if name != ANNOTATION}))


def _bare(keyword: str, value: Raw) -> object:
    if keyword in _BY_NAME and _starts(value, b"{"):
        return {name: _stripped(inner) for name, inner in members_of(value).items()}
    if keyword in _SOME and _starts(value, b"["):
        return [_stripped(inner) for inner in items_of(value)]
    return _stripped(value) if keyword in _ONE else value
