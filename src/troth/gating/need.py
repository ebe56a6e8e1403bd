"""What a primitive needs of a client, and how it stands in ``_meta`` so that gateways can read it.

``_meta`` of a tool, prompt, resource or resource template::

    "io.troth/requires": {"capabilities": ["sampling", ["roots", "elicitation.form"]], "message": "Needs a model"}

Of the list each entry is needed; of a list inside it, any one. ``message`` takes the place of the usual words of a
refusal, and may be missing. What cannot be read is met by nobody: a reader that let it pass would show what its author
wanted hidden.

Source: 2026-07-28 basic, ``_meta``, for the grammar of the key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from troth.capabilities.values import is_object
from troth.gating.requirement import NEVER, Requirement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

META_KEY: Final = "io.troth/requires"
"""The key in ``_meta``."""

OTHER_KEY: Final = "__mcp_capabilities_required"
"""The key of the .NET library McpCapabilities.Server, which is read and never written: ``{"flags": "Sampling, Roots",
"message": ...}``. No ``_meta`` name may begin with an underscore."""

MOST_MESSAGE: Final = 1000
"""Characters of a refusal's own words that are read from ``_meta``."""

FLAGS: Final[Mapping[str, str]] = {
    "sampling": "sampling",
    "roots": "roots",
    "elicitation": "elicitation",
    "elicitationform": "elicitation.form",
    "elicitationurl": "elicitation.url",
    "tasks": "tasks",
    "tasklist": "tasks.list",
    "taskcancel": "tasks.cancel",
    "taskaugmentedsampling": "tasks.requests.sampling.createMessage",
    "taskaugmentedelicitation": "tasks.requests.elicitation.create",
}
"""Flags of that library, in small letters -> paths."""

NO_FLAG: Final = "none"
"""Its word for nothing."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a primitive needs of a client.

    Attributes:
        requirement: The capabilities.
        message: What a refusal says; empty for the usual words.
    """

    requirement: Requirement
    message: str = ""

    def __or__(self, other: object) -> Need:
        """Both are needed. The words are those of the left one, if it has any."""
        if not isinstance(other, Need):
            return NotImplemented
        return Need(self.requirement | other.requirement, self.message or other.message)

    def json(self) -> dict[str, object]:
        """The value that stands under ``META_KEY``."""
        value: dict[str, object] = {"capabilities": self.requirement.json()}
        return {**value, "message": self.message} if self.message else value


def both(left: Need | None, right: Need | None) -> Need | None:
    """What two sources of needs ask for together; None if neither asks for anything."""
    return left | right if left and right else left or right


def from_meta(meta: object) -> Need | None:
    """The need that a primitive's ``_meta`` states, under our key or the other library's.

    Args:
        meta: Any JSON.

    Returns:
        The need; None where neither key is there. Nothing is raised: what cannot be read is met by nobody.
    """
    if not is_object(meta):
        return None
    need: Need | None = None
    for key, reader in _READERS.items():
        if key in meta:
            need = both(need, reader(meta[key]))
    return need if need and need.requirement else None


def with_need(meta: Mapping[str, object] | None, need: Need) -> dict[str, object]:
    """A copy of ``_meta`` that states a need. One that is there already is kept and added to."""
    stated = from_meta({META_KEY: meta[META_KEY]} if meta and META_KEY in meta else None)
    return {**(meta or {}), META_KEY: (both(need, stated) or need).json()}


def _ours(value: object) -> Need:
    if not is_object(value):
        return Need(NEVER)
    return Need(Requirement.tolerant(value.get("capabilities")), _message(value))


def _other(value: object) -> Need:
    flags = value.get("flags") if is_object(value) else None
    if not is_object(value) or not isinstance(flags, str):
        return Need(NEVER)
    return Need(Requirement.tolerant(list(_paths(flags))), _message(value))


_READERS: Final[Mapping[str, Callable[[object], Need]]] = {META_KEY: _ours, OTHER_KEY: _other}


def _paths(flags: str) -> Iterator[str]:
    for flag in flags.split(","):
        name = flag.strip()
        if name.lower() != NO_FLAG:
            yield FLAGS.get(name.lower(), f"?{name}")


def _message(value: Mapping[object, object]) -> str:
    """The refusal's own words, on one line and without what a terminal would obey."""
    message = value.get("message")
    if not isinstance(message, str):
        return ""
    cut = message if len(message) <= MOST_MESSAGE else f"{message[:MOST_MESSAGE]}…"
    return "".join(letter if letter.isprintable() else " " for letter in cut).strip()
