"""``@requires``: marks a function with what it needs, and finds the mark again under whatever wraps the function.

A mark is an attribute of the function object, so it does not matter whether it stands above or below a framework's
decorator: what reads the marks takes the function out of the framework's object.
"""

from __future__ import annotations

from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Final, TypeVar, cast

from troth.capabilities.values import described
from troth.gating.need import Need, both
from troth.gating.requirement import Requirement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

MARK: Final = "__troth_requires__"
"""The attribute."""

INSIDE: Final = ("__wrapped__", "__func__", "fn")
"""Attributes that lead to another form of the same function: inside decorators, methods, and the tools, prompts and
resources of frameworks."""

WITHIN: Final = (*INSIDE, "func", "parent_tool")
"""The same, and what others may use without needing anything: the function inside ``functools.partial``, the tool that
FastMCP made another of."""

HELD: Final[Mapping[str, str]] = {"fastmcp.server.dependencies": "fn"}
"""Module of wrappers that lead to their function by no attribute -> the variable of theirs that holds it. FastMCP makes
such of prompts, resources and templates that take its context or other dependencies."""

DEEPEST: Final = 32
"""Wrappers around a function that are looked through."""

_T = TypeVar("_T")


def requires(requirement: Requirement, *, message: str = "") -> Callable[[_T], _T]:
    """Marks a tool, prompt, resource or resource template with the client capabilities that it needs.

    Works on functions and methods, sync and async, and on what a framework's decorator makes of them. Marks on the same
    function add up.

    Args:
        requirement: What is needed: ``SAMPLING``, ``SAMPLING | ROOTS``, ``any_of(ROOTS, ELICITATION_FORM)``.
        message: What a client without it is told; empty for the usual words.

    Raises:
        TypeError: ``requirement`` or ``message`` is none; or, on the decorated object, if it has no function to mark.
    """
    if not isinstance(cast("object", message), str):
        raise TypeError(f"requires(): message: {described(message)} where a text belongs")
    need = Need(Requirement.checked(requirement, "requires()"), message)

    def mark(target: _T) -> _T:
        done = 0
        for layer in layers(target, INSIDE):
            try:
                setattr(layer, MARK, both(need, _own(layer)))
            except (AttributeError, TypeError, ValueError):
                continue
            done += 1
        if not done:
            raise TypeError(f"requires() marks functions and methods, and {type(target).__qualname__} holds none")
        return target

    return mark


def marked(thing: object) -> Need | None:
    """What the marks on a function, or on the function inside ``thing``, ask for together; None without marks."""
    need: Need | None = None
    for layer in layers(thing, WITHIN):
        need = both(need, _own(layer))
    return need


def _own(layer: object) -> Need | None:
    found = getattr(layer, MARK, None)
    return found if isinstance(found, Need) else None


def layers(thing: object, within: tuple[str, ...]) -> Iterator[object]:
    """The object itself, then what it wraps, from the outside in.

    Args:
        thing: A function, or what a decorator made of one.
        within: Attributes that lead further in: `INSIDE` or `WITHIN`.
    """
    seen: list[object] = []
    waiting = [thing]
    while waiting and len(seen) < DEEPEST:
        layer = waiting.pop(0)
        if any(layer is known for known in seen):
            continue
        seen.append(layer)
        yield layer
        waiting += (inner for name in within if (inner := getattr(layer, name, None)) is not None)
        waiting += _held(layer)


def _held(layer: object) -> list[object]:
    """What a wrapper is made of where no attribute shows it: its function, or the object that is called."""
    if isinstance(layer, MethodType) and layer.__name__ == "__call__":
        return [layer.__self__]
    if not isinstance(layer, FunctionType):
        return []
    variable = HELD.get(layer.__globals__.get("__name__", ""))
    cells = zip(layer.__code__.co_freevars, layer.__closure__ or (), strict=True)
    return [cell.cell_contents for name, cell in cells if name == variable]
