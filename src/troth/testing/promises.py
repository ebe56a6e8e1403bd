"""What a scripted server declares in a revision, what its client declared, and which methods that opens."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, cast

from troth.register import Side, register

if TYPE_CHECKING:
    from troth.register import Row
    from troth.testing.model import Json, JsonObject

OPEN = frozenset({"experimental", "extensions"})
"""Members whose keys are free."""

ASKS: dict[str, tuple[str, tuple[str, ...]]] = {
    "roots": ("roots/list", ("roots",)),
    "sampling": ("sampling/createMessage", ("sampling",)),
    "sampling_tools": ("sampling/createMessage", ("sampling.tools",)),
    "sampling_context": ("sampling/createMessage", ("sampling",)),
    "form": ("elicitation/create", ("elicitation.form", "elicitation")),
    "url": ("elicitation/create", ("elicitation.url",)),
}
"""Kind of question -> method, and the client capability that it needs: the first one that the revision defines."""


def offered(offers: JsonObject, revision: str) -> JsonObject:
    """The part of ``offers`` that ``revision`` defines for a server."""
    keys = {row.key for row in register().at(Side.SERVER, revision)}

    def prune(value: JsonObject, path: tuple[str, ...]) -> JsonObject:
        kept: JsonObject = {}
        for name, item in value.items():
            if (*path, name) not in keys:
                continue
            deeper = isinstance(item, dict) and name not in OPEN
            kept[name] = prune(cast("JsonObject", item), (*path, name)) if deeper else deepcopy(cast("Json", item))
        return kept

    return prune(offers, ())


def _at(value: Json, key: tuple[str, ...]) -> Json:
    for name in key:
        if not isinstance(value, dict) or name not in value:
            return None
        value = cast("JsonObject", value)[name]
    return value


def declares(capabilities: JsonObject, row: Row) -> bool:
    """Whether a capability object makes the promise of a row: an object is there, or a flag is true."""
    value = _at(capabilities, row.key)
    return value is True or isinstance(value, dict)


def serves(offers: JsonObject, method: str, revision: str) -> bool:
    """Whether a server with these capabilities answers a request in a revision."""
    use = register().method(method, revision)
    if use is None:
        return False
    gating = [
        row
        for row in (register().by_id[name] for name in use.rows)
        if row.side is Side.SERVER and any(gate.method == method for gate in row.definitions[revision].gates)
    ]
    if gating:
        return any(declares(offers, row) for row in gating)
    return "ClientRequest" in use.roles


def needs(kind: str, capabilities: JsonObject, revision: str) -> JsonObject | None:
    """The client capabilities that a question of this kind lacks.

    Args:
        kind: A key of ``ASKS``.
        capabilities: What the client declared.
        revision: The revision in force.

    Returns:
        The missing capability object; an empty one if nothing is missing; None where the revision cannot ask this.
    """
    for path in ASKS[kind][1]:
        row = next((row for row in register().path(path, Side.CLIENT) if row.at(revision)), None)
        if row is None:
            continue
        implied = path == "elicitation.form" and capabilities.get("elicitation") == {}
        if implied or isinstance(_at(capabilities, row.key), dict):
            return {}
        lacking: JsonObject = {}
        for name in reversed(row.key):
            lacking = {name: lacking}
        return lacking
    return None
