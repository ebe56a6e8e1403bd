"""What a client must have declared before a server may ask it something. Framework-free.

Source: 2025-11-25 client/sampling, client/roots, client/elicitation; 2026-07-28 basic/patterns/mrtr.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Final

from troth.gating import (
    ELICITATION_FORM,
    ELICITATION_URL,
    ROOTS,
    SAMPLING,
    SAMPLING_CONTEXT,
    SAMPLING_TOOLS,
    TASKS_ELICITATION,
    TASKS_SAMPLING,
    Requirement,
)
from troth.register import register

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NOTHING: Final = Requirement()

LIBRARIES: Final = frozenset(
    {
        "anyio",
        "asyncio",
        "contextlib",
        "fastmcp",
        "functools",
        "mcp",
        "mcp_types",
        "pydantic",
        "troth",
        "typing_extensions",
    }
)
"""Top-level modules whose frames are not the author's code."""


def _sampling(params: Mapping[str, object]) -> Requirement:
    need = SAMPLING
    if params.get("tools") is not None or params.get("toolChoice") is not None:
        need |= SAMPLING_TOOLS
    if params.get("includeContext") not in {None, "none"}:
        need |= SAMPLING_CONTEXT
    return need | TASKS_SAMPLING if params.get("task") is not None else need


def _elicitation(params: Mapping[str, object]) -> Requirement:
    need = _MODES.get(params.get("mode", "form"), ELICITATION_FORM)
    return need | TASKS_ELICITATION if params.get("task") is not None else need


def _roots(_params: Mapping[str, object]) -> Requirement:
    return ROOTS


_MODES: Final[Mapping[object, Requirement]] = {"form": ELICITATION_FORM, "url": ELICITATION_URL}

ASKING: Final[Mapping[str, Callable[[Mapping[str, object]], Requirement]]] = {
    "elicitation/create": _elicitation,
    "roots/list": _roots,
    "sampling/createMessage": _sampling,
}
"""Request of a server -> what it needs of the client, by its params."""


def needed(method: str, params: Mapping[str, object] | None) -> Requirement:
    """What a request to the client needs; nothing for ``ping`` and what no revision defines."""
    rule = ASKING.get(method)
    return NOTHING if rule is None else rule(params or {})


LATER: Final[Mapping[str, Mapping[str, str]]] = {"elicitation/create": {"mode": "elicitation.form"}}
"""Request of a server -> params that came with a capability, and are foreign to revisions without it."""


def foreign(method: str, revision: str) -> list[str]:
    """Params of a request to the client that the revision does not have."""
    found = LATER.get(method, {})
    return [name for name, path in found.items() if all(row.at(revision) is None for row in register().path(path))]


def place() -> str:
    """``file:line`` of the author's code that runs; empty if there is none on the stack."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in LIBRARIES:
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
