"""Which client capabilities a primitive needs, as a value.

A requirement is a list of clauses, all of which must be met. A clause is a list of capabilities, any of which meets it;
so a clause without any is met by nobody. Clauses stand in the order of the register, without repeats and without those
that another one implies, so that two requirements that say the same in another order are equal.

A capability is named by its path in the register: ``sampling.tools``, ``extensions["io.modelcontextprotocol/ui"]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from troth.capabilities.paths import find, is_extension_key, maps, resolve, rows, shown, spell
from troth.capabilities.values import described
from troth.register.model import Side

if TYPE_CHECKING:
    from collections.abc import Iterable

    from troth.capabilities.paths import Key

Clause: TypeAlias = tuple[str, ...]
"""Paths of capabilities, any of which meets it."""

MOST: Final = 32
"""Clauses of a requirement, and capabilities of a clause. Nobody needs so many; a stranger may say more."""

ALL: Final = ", "
"""Between clauses, in words."""
ANY: Final = " or "
"""Between the capabilities of a clause, in words."""
UNREADABLE: Final = "requirement that cannot be read"
"""What stands in words for a clause that nobody meets."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """Client capabilities that are needed. Combine with ``|`` (all of them) and ``any_of``.

    Make it from the constants, ``extension``, ``experimental`` or ``Requirement.read``.

    Attributes:
        clauses: All must be met, each by any of its capabilities.
    """

    clauses: tuple[Clause, ...] = ()

    def __or__(self, other: object) -> Requirement:
        """The capabilities of both are needed.

        Raises:
            ValueError: They have more than ``MOST`` clauses together.
        """
        if not isinstance(other, Requirement):
            return NotImplemented
        return _ordered((*self.clauses, *other.clauses))

    def __bool__(self) -> bool:
        """Whether anything is needed."""
        return bool(self.clauses)

    def __str__(self) -> str:
        """In words: ``sampling, roots or elicitation.form``. ``read`` takes it back."""
        return ALL.join(in_words(clause) for clause in self.clauses)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every capability that is named, in the register's order."""
        return tuple(sorted({path for clause in self.clauses for path in clause}, key=_rank))

    def json(self) -> list[str | list[str]]:
        """A JSON array: a text is needed, of an array any one."""
        return [clause[0] if len(clause) == 1 else list(clause) for clause in self.clauses]

    @classmethod
    def checked(cls, value: object, where: str) -> Requirement:
        """A requirement that an author wrote in code.

        Args:
            value: What was written.
            where: What takes it, for the message.

        Raises:
            TypeError: It is none. What is let pass here would hide nothing, or fail far away.
        """
        if not isinstance(value, cls):
            raise TypeError(
                f"{where}: {described(value)} where a requirement belongs, such as troth.SAMPLING; words become one by "
                'Requirement.read("sampling")'
            )
        return value

    @classmethod
    def read(cls, value: object) -> Requirement:
        """A requirement as a person writes it.

        Args:
            value: Words (``sampling, roots or elicitation.form``), or an array as ``json`` gives it.

        Raises:
            ValueError: Something else, or a capability that no revision defines; the message names the nearest one.
        """
        clauses = _clauses(_from_words(value) if isinstance(value, str) else value)
        if not clauses:
            raise ValueError("a requirement names at least one capability, such as sampling")
        return _ordered(tuple(tuple(_known(path) for path in clause) for clause in clauses))

    @classmethod
    def tolerant(cls, value: object) -> Requirement:
        """A requirement as a stranger's JSON says it. Whatever cannot be read is met by nobody; nothing is raised."""
        try:
            return _ordered(tuple(tuple(map(_spelled, clause)) for clause in _clauses(value)))
        except ValueError:
            return NEVER


NEVER: Final = Requirement(((),))
"""Nobody meets it."""

SAMPLING: Final = Requirement((("sampling",),))
SAMPLING_CONTEXT: Final = Requirement((("sampling.context",),))
SAMPLING_TOOLS: Final = Requirement((("sampling.tools",),))
ROOTS: Final = Requirement((("roots",),))
ROOTS_LIST_CHANGED: Final = Requirement((("roots.listChanged",),))
"""Only legacy revisions have it."""
ELICITATION: Final = Requirement((("elicitation",),))
"""Elicitation in whatever mode."""
ELICITATION_FORM: Final = Requirement((("elicitation.form",),))
"""Also met by ``elicitation: {}``, and by ``elicitation`` in the revision that has no modes (2025-06-18)."""
ELICITATION_URL: Final = Requirement((("elicitation.url",),))
TASKS: Final = Requirement((("tasks",),))
"""Tasks that the client runs (2025-11-25), in whatever part. 2026-07-28 has
``extension("io.modelcontextprotocol/tasks")`` in their place."""
TASKS_LIST: Final = Requirement((("tasks.list",),))
TASKS_CANCEL: Final = Requirement((("tasks.cancel",),))
TASKS_SAMPLING: Final = Requirement((("tasks.requests.sampling.createMessage",),))
TASKS_ELICITATION: Final = Requirement((("tasks.requests.elicitation.create",),))


def any_of(*requirements: Requirement) -> Requirement:
    """A requirement that is met as soon as one of these is.

    Raises:
        TypeError: One of them is no requirement.
        ValueError: None is given, or so many that nobody can read them (``MOST``).
    """
    if not requirements:
        raise ValueError("any_of needs at least one requirement")
    requirements = tuple(Requirement.checked(one, "any_of()") for one in requirements)
    size = 1
    for requirement in requirements:
        size *= len(requirement.clauses)
        if size > MOST:
            raise ValueError(f"these alternatives make more than {MOST} clauses; name fewer")
    chosen = product(*(requirement.clauses for requirement in requirements))
    return _ordered(tuple(tuple(path for clause in choice for path in clause) for choice in chosen))


def extension(key: str) -> Requirement:
    """An extension, which only modern revisions have.

    Args:
        key: Its identifier, e.g. ``io.modelcontextprotocol/ui``.

    Raises:
        ValueError: It is no identifier.
    """
    if not is_extension_key(key):
        raise ValueError(f"{shown(key)!r} is no extension key (PREFIX/NAME, such as com.example/feature)")
    return Requirement(((spell(("extensions", key)),),))


def experimental(key: str) -> Requirement:
    """An experimental capability, by the name that client and server agreed on."""
    return Requirement(((spell(("experimental", key)),),))


def in_words(clause: Clause) -> str:
    """A clause in words: ``roots or elicitation.form``."""
    return ANY.join(clause) if clause else UNREADABLE


def _ordered(clauses: tuple[Clause, ...]) -> Requirement:
    """Sorted, each once, and without those that a smaller clause implies."""
    kept: list[frozenset[str]] = []
    for clause in sorted({frozenset(clause) for clause in clauses}, key=len):
        if not any(smaller <= clause for smaller in kept):
            kept.append(clause)
    if len(kept) > MOST:
        raise ValueError(f"a requirement of more than {MOST} clauses; name fewer capabilities")
    inner = (tuple(sorted(clause, key=_rank)) for clause in kept)
    return Requirement(tuple(sorted(inner, key=lambda clause: [_rank(path) for path in clause])))


@cache
def _places() -> dict[Key, int]:
    return {key: place for place, key in enumerate(rows(Side.CLIENT))}


def _rank(path: str) -> tuple[int, str]:
    """The place of a path in the register; keys of an open map stand where the map does, strangers at the end."""
    places = _places()
    key = find(path, Side.CLIENT)
    if key is None:
        return len(places), path
    return places[key[:1]] if key[0] in maps(Side.CLIENT) else places[key], path


def _clauses(value: object) -> tuple[Clause, ...]:
    """The clauses that a JSON array says.

    Raises:
        ValueError: It is none; the message says what is wrong.
    """
    return tuple(tuple(_path(path) for path in _alternatives(entry)) for entry in _array(value))


def _array(value: object) -> list[object]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{described(value)} where capabilities belong: a text or a list of texts")
    found = list(cast("Iterable[object]", value))
    if len(found) > MOST:
        raise ValueError(f"more than {MOST} capabilities")
    return found


def _alternatives(entry: object) -> list[object]:
    if isinstance(entry, str):
        return [entry]
    found = _array(entry)
    if not found:
        raise ValueError("an empty list of alternatives, which nobody meets")
    return found


def _path(path: object) -> str:
    if not isinstance(path, str):
        raise ValueError(f"{described(path)} where the path of a capability belongs, such as sampling")
    return path


def _from_words(words: str) -> list[list[str]]:
    return [[path.strip() for path in part.split(ANY)] for part in words.split(ALL.strip())]


def _known(path: str) -> str:
    return spell(resolve(path, Side.CLIENT))


def _spelled(path: str) -> str:
    """The path as we write it; of one that no revision defines, as much as can be shown."""
    key = find(path, Side.CLIENT)
    return shown(path if key is None else spell(key))
