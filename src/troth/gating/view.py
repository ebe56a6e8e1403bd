"""What of a list a client sees, and why not the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from troth.capabilities.values import is_object
from troth.gating.decide import Decision, Primitive, as_client, decide
from troth.gating.marks import marked
from troth.gating.need import both, from_meta

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from troth.gating.decide import PrimitiveKind
    from troth.gating.need import Need

_T = TypeVar("_T")


class Listed(NamedTuple):
    """A primitive, and what it needs."""

    primitive: Primitive
    need: Need | None


class Hidden(NamedTuple, Generic[_T]):
    """What a client does not see."""

    item: _T
    """As it was given."""
    decision: Decision
    """Why."""


@dataclass(frozen=True, slots=True)
class Visible(Generic[_T]):
    """What of a list a client sees.

    Attributes:
        shown: What it sees, in the order of the list.
        hidden: What it does not see, in the order of the list.
    """

    shown: tuple[_T, ...]
    hidden: tuple[Hidden[_T], ...]

    @property
    def why(self) -> Mapping[str, str]:
        """For the name of each hidden one, why: ``needs sampling``."""
        return {decision.primitive.name: decision.why for _, decision in self.hidden}


_NAMES: Final[Mapping[str, PrimitiveKind]] = {
    "uriTemplate": "templates",
    "uri_template": "templates",
    "uri": "resources",
    "name": "tools",
    "__name__": "tools",
}
"""Member that a primitive is called by -> its kind, the most telling first."""


def visible(
    items: Iterable[_T],
    client_capabilities: object,
    *,
    revision: str | None = None,
    kind: PrimitiveKind | None = None,
    need: Callable[[_T], Need | None] | None = None,
    allow_when_not_declared: bool = False,
) -> Visible[_T]:
    """What of a list a client sees, and for each hidden one why.

    Args:
        items: Tools, prompts, resources or templates: as JSON objects, as models of the SDK or of a framework, or as
            functions with ``@requires``.
        client_capabilities: What the client declared, as for ``missing``; None if it sent nothing.
        revision: The revision in force, as for ``missing``.
        kind: What the items are; without it, what has a URI is a resource, what has a URI template a template, and all
            else a tool.
        need: What an item needs; without it, its ``_meta`` and its marks say so.
        allow_when_not_declared: See ``decide``.

    Raises:
        ValueError: There is no such revision.
        TypeError: An item that needs something has no name.
    """
    client = as_client(client_capabilities, revision)
    told = need or stated
    shown: list[_T] = []
    hidden: list[Hidden[_T]] = []
    for item in items:
        wanted = told(item)
        if wanted is None:
            shown.append(item)
            continue
        decision = decide(primitive(item, kind), wanted, client, allow_when_not_declared=allow_when_not_declared)
        if decision.allowed:
            shown.append(item)
        else:
            hidden.append(Hidden(item, decision))
    return Visible(tuple(shown), tuple(hidden))


def stated(item: object) -> Need | None:
    """What an item says itself that it needs: in its ``_meta``, by its marks."""
    if is_object(item):
        return from_meta(item.get("_meta"))
    return both(marked(item), from_meta(getattr(item, "meta", None)))


def primitive(item: object, kind: PrimitiveKind | None = None) -> Primitive:
    """Kind and name of an item; see ``visible``.

    Raises:
        TypeError: It has no name.
    """
    for member, implied in _NAMES.items():
        name: object = item.get(member) if is_object(item) else getattr(item, member, None)
        if name is not None:
            return Primitive(kind or implied, str(name))
    raise TypeError(f"{type(item).__qualname__} has neither a name nor a URI")
