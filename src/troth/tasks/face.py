"""What both faces share: reading of params, times, results as JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from troth.bridge.errors import INTERNAL, ErrorValue

if TYPE_CHECKING:
    from troth.tasks.model import Outcome, Requester, Task

Params = Mapping[str, Any]
"""Members of ``params``: JSON values, or `Raw` out of a frame."""
Result = Mapping[str, Any]
"""Members of a result: JSON values, and `Raw` that is copied as it stands."""
Answer = Result | ErrorValue
"""What a request is answered with."""
Spell = Callable[["Task", Raw], "Raw | ErrorValue"]
"""Spells a kept result for the revision of the face, or says why it cannot be."""

PROTOCOL: Final = "io.modelcontextprotocol/"
RELATED: Final = PROTOCOL + "related-task"
"""Key in ``_meta`` of what belongs to a task of 2025-11-25."""
EXTENSION: Final = PROTOCOL + "tasks"
"""Key of the extension of 2026-07-28."""

UNREADABLE: Final = ErrorValue(INTERNAL, "The result of the task cannot be read")


def as_it_is(_task: Task, result: Raw) -> Raw:
    """Leaves a result as it was kept."""
    return result


def member(params: Params, name: str) -> Any:
    """A member as a JSON value; None where there is none, or where it is no text that Python can hold."""
    value = params.get(name)
    try:
        return msgspec.json.decode(value) if isinstance(value, Raw) else value
    except msgspec.DecodeError:
        return None


def members(value: object) -> dict[str, Raw] | None:
    """The members of a JSON object; None if it is none."""
    raw = value if isinstance(value, Raw) else msgspec.json.encode(value)
    try:
        return msgspec.json.decode(raw, type=dict[str, Raw])
    except msgspec.DecodeError:
        return None


def moment(seconds: float) -> str:
    """A time as ISO 8601, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def outcome_members(task: Task, outcome: Outcome, spell: Spell) -> dict[str, Raw] | ErrorValue:
    """The members of the result of a task, or its error."""
    if outcome.error is not None:
        return outcome.error
    spelled = spell(task, outcome.result)
    if isinstance(spelled, ErrorValue):
        return spelled
    found = members(spelled)
    return UNREADABLE if found is None else found


Handler = Callable[["Requester", Params], Awaitable[Answer]]
