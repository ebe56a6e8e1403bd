"""Where needs come from: marks, ``_meta``, a mapping, a callback, configuration. Put together once per primitive."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

from troth.capabilities.paths import shown
from troth.capabilities.values import described, is_object
from troth.gating.marks import marked
from troth.gating.need import Need, both, from_meta
from troth.gating.requirement import Requirement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from troth.gating.decide import Primitive, PrimitiveKind

KINDS: Final[tuple[PrimitiveKind, ...]] = ("tools", "prompts", "resources", "templates")

VARIABLE: Final = "TROTH_GATING_"
"""What the environment variables begin with; the rest is the key in capitals."""

WORDS: Final[Mapping[str, bool]] = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
"""What a switch may be in the environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatingSettings:
    """What an operator says of gating, in a file or in the environment.

    Attributes:
        allow_when_not_declared: Let those legacy clients pass who send no capabilities object at all.
        meta: Whether requirements are written into ``_meta``, for gateways to read.
        tools: Name -> what it needs, beside what its author says.
        prompts: The same of prompts.
        resources: The same of resources, by URI.
        templates: The same of resource templates, by URI template.
    """

    allow_when_not_declared: bool = False
    meta: bool = True
    tools: Mapping[str, Need] = field(default_factory=dict[str, Need])
    prompts: Mapping[str, Need] = field(default_factory=dict[str, Need])
    resources: Mapping[str, Need] = field(default_factory=dict[str, Need])
    templates: Mapping[str, Need] = field(default_factory=dict[str, Need])

    def of(self, primitive: Primitive) -> Need | None:
        """What the operator says that a primitive needs."""
        found: Mapping[str, Need] = getattr(self, primitive.kind)
        return found.get(primitive.name)


SWITCHES: Final = ("allow_when_not_declared", "meta")


def read_settings(table: Mapping[str, object], where: str = "gating") -> GatingSettings:
    """Settings out of a table of a TOML file.

    A need is words, a list, or a table with ``capabilities`` and ``message``::

        [gating]
        allow_when_not_declared = false
        [gating.tools]
        summarize = "sampling, roots or elicitation.form"

    Args:
        table: The table.
        where: Its name, for messages.

    Raises:
        ValueError: Something in it is wrong; the message says where, and what belongs there.
    """
    given: dict[str, object] = {}
    for key, value in table.items():
        place = f"{where}.{shown(key)}"
        if key in SWITCHES:
            if not isinstance(value, bool):
                raise ValueError(f"{place}: {described(value)} where true or false belongs")
            given[key] = value
        elif key in KINDS:
            given[key] = read_needs(value, place)
        else:
            near = get_close_matches(key, (*SWITCHES, *KINDS), n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join((*SWITCHES, *KINDS))}"
            raise ValueError(f"{place}: there is no such key; {hint}")
    return GatingSettings(**cast("dict[str, Any]", given))


def read_needs(table: object, where: str) -> dict[str, Need]:
    """The table name -> need of one kind of primitive.

    Raises:
        ValueError: Something in it is wrong; the message says where, and what belongs there.
    """
    if not is_object(table):
        raise ValueError(f"{where}: {described(table)} where a table of names belongs")
    return {str(name): _need(value, f"{where}.{shown(name)}") for name, value in table.items()}


def settings_from_environment(environment: Mapping[str, str], under: GatingSettings | None = None) -> GatingSettings:
    """Settings out of environment variables, over those of a file.

    ``TROTH_GATING_ALLOW_WHEN_NOT_DECLARED`` and ``TROTH_GATING_META`` are switches; ``TROTH_GATING_TOOLS``,
    ``_PROMPTS``, ``_RESOURCES`` and ``_TEMPLATES`` are JSON objects such as ``{"summarize": "sampling"}``, and add to
    the names of the file.

    Raises:
        ValueError: A variable is wrong; the message says which, and what belongs there, but not what it is.
    """
    base = under or GatingSettings()
    given: dict[str, object] = {}
    for key in (*SWITCHES, *KINDS):
        name = VARIABLE + key.upper()
        value = environment.get(name, "").strip()
        if not value:
            given[key] = getattr(base, key)
        elif key in SWITCHES:
            if value.lower() not in WORDS:
                raise ValueError(f"{name}: one of {', '.join(WORDS)} belongs here")
            given[key] = WORDS[value.lower()]
        else:
            try:
                table = json.loads(value)
            except (ValueError, RecursionError):
                raise ValueError(f'{name}: a JSON object belongs here, such as {{"NAME": "sampling"}}') from None
            given[key] = {**getattr(base, key), **read_needs(table, name)}
    return GatingSettings(**cast("dict[str, Any]", given))


class Needs:
    """What each primitive of a server needs, from all sources together: whoever asks for something adds to the rest.

    Args:
        requirements: Name, URI or URI template -> what it needs, of whatever kind it is.
        callback: Called once per primitive, when it is first seen.
        settings: What the operator says.

    Raises:
        TypeError: Something else is where a requirement belongs.
    """

    def __init__(
        self,
        requirements: Mapping[str, Requirement | Need] | None = None,
        callback: Callable[[Primitive], Requirement | Need | None] | None = None,
        settings: GatingSettings | None = None,
    ) -> None:
        self.settings = settings or GatingSettings()
        if not is_object(given := cast("object", requirements or {})):
            raise TypeError(f"requirements: {described(given)} where a mapping of names belongs")
        if callback is not None and not callable(callback):
            raise TypeError(f"need: {described(callback)} where a function belongs")
        self._requirements = {str(name): _as_need(need, f"requirements: {shown(name)}") for name, need in given.items()}
        self._callback = callback

    def of(self, primitive: Primitive, function: object = None, meta: object = None) -> Need | None:
        """What a primitive needs. Not cached: ask once, when it is registered, and keep the answer.

        Equal needs are the same object, so that who judges many can tell them by identity.

        Args:
            primitive: Which.
            function: The function behind it, or the framework's object around it, for its marks.
            meta: Its ``_meta``.
        """
        need = both(marked(function), from_meta(meta))
        need = both(need, self._requirements.get(primitive.name))
        need = both(need, self.settings.of(primitive))
        if self._callback is not None and (told := self._callback(primitive)) is not None:
            need = both(need, _as_need(told, f"need: what it gave for {shown(primitive.name)}"))
        return None if need is None else _one(need)

    def named(self) -> Iterator[tuple[PrimitiveKind | None, str]]:
        """What is named beside marks and ``_meta``, with its kind; None where it may be any."""
        for name in self._requirements:
            yield None, name
        for kind in KINDS:
            for name in getattr(self.settings, kind):
                yield kind, name


NEEDS: Final = "__troth_needs__"
"""The attribute of a server object that holds its ``Needs``, where it has been given some."""


def needs_of(server: object) -> Needs:
    """The sources of needs that a server object was given; without any, its marks and ``_meta`` speak alone."""
    found = getattr(server, NEEDS, None)
    return found if isinstance(found, Needs) else Needs()


@lru_cache(maxsize=1024)
def _one(need: Need) -> Need:
    """The first of those that are equal."""
    return need


def _as_need(value: object, where: str) -> Need:
    return value if isinstance(value, Need) else Need(Requirement.checked(value, where))


def _need(value: object, where: str) -> Need:
    message = ""
    if is_object(value):
        message = value.get("message", "")
        if not isinstance(message, str):
            raise ValueError(f"{where}.message: {described(message)} where a text belongs")
        value = value.get("capabilities")
    try:
        return Need(Requirement.read(value), message)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
