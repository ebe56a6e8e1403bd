"""Whether a client may see and use a primitive: a value that says why. Nothing here raises or waits.

What counts is what the client declared and the revision in force defines: of the session (legacy), of this very request
(modern). A client that sent no capabilities at all, which only legacy allows, is None here. It declared nothing, so it
is shown nothing that needs something, unless ``allow_when_not_declared`` says otherwise.

Source of the errors: 2026-07-28 schema, MissingRequiredClientCapabilityError. Legacy revisions have no code for it;
-32600 says there that the request cannot be served as the session stands.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, cast

from troth.capabilities.model import ClientCapabilities
from troth.capabilities.paths import fields, find, rows, shown
from troth.capabilities.read import read_client
from troth.capabilities.values import copied
from troth.gating.requirement import ELICITATION, ELICITATION_FORM, in_words
from troth.register.load import register
from troth.register.model import Era, Kind, Side

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.capabilities.paths import Key
    from troth.gating.need import Need
    from troth.gating.requirement import Clause, Requirement

PrimitiveKind: TypeAlias = Literal["tools", "prompts", "resources", "templates"]
"""Kind of a primitive, by the list that it stands in."""

Client: TypeAlias = "ClientCapabilities | None"
"""What a client declared; None if it sent no capabilities object (legacy)."""

MISSING_CAPABILITY: Final = -32021
INVALID_REQUEST: Final = -32600

TEXTS: Final[Mapping[PrimitiveKind, str]] = {
    "tools": "to call '{}'",
    "prompts": "to get prompt '{}'",
    "resources": "to read '{}'",
    "templates": "to read '{}'",
}
"""What a refusal calls the use of a primitive."""

UNMODED: Final[Mapping[str, str]] = {str(ELICITATION_FORM): str(ELICITATION)}
"""Capability -> the one that means the same in a revision that has no such member (2025-06-18: elicitation has no
modes, and is form)."""


class Primitive(NamedTuple):
    """What a client wants to use.

    Attributes:
        kind: The list that it stands in.
        name: Name, URI or URI template, as the client knows it.
    """

    kind: PrimitiveKind
    name: str


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a client may see and use a primitive.

    Attributes:
        primitive: Which.
        missing: What the client did not declare, in the register's order; empty if it may. Alternatives are one entry:
            ``roots or elicitation.form``.
        message: What a refusal says; empty if it may.
        code: The code of the refusal, in the revision in force; 0 if it may.
        required: The missing capabilities in the shape of a declaration.
    """

    primitive: Primitive
    missing: tuple[str, ...] = ()
    message: str = ""
    code: int = 0
    required: Mapping[str, object] = field(default_factory=dict[str, object], hash=False)

    @property
    def allowed(self) -> bool:
        """Whether the client may see and use it."""
        return not self.missing

    @property
    def why(self) -> str:
        """Why it is hidden: ``needs sampling``; empty if it is not."""
        return f"needs {', '.join(self.missing)}" if self.missing else ""

    @property
    def data(self) -> dict[str, object]:
        """``data`` of the refusal, the same in every revision."""
        return {"requiredCapabilities": copied(self.required)}


class CapabilityNotMet(Exception):  # noqa: N818 - a refusal, and the name that authors catch
    """A client used a primitive without the capabilities that it needs. Its text is that of the refusal.

    Attributes:
        decision: The decision that says so.
        missing: What the client did not declare, in the register's order.
        primitive: What it wanted to use.
    """

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision.message)
        self.decision = decision
        self.missing = decision.missing
        self.primitive = decision.primitive


def missing(requirement: Requirement, client_capabilities: object, *, revision: str | None = None) -> tuple[str, ...]:
    """What a client did not declare of a requirement.

    Args:
        requirement: What is needed.
        client_capabilities: What the client declared: as ``read_client`` gives it, as the JSON object that came, or as
            a model of the SDK. None if it sent nothing.
        revision: The revision in force, for what ``read_client`` did not read; the newest legacy one if not given.

    Returns:
        Paths in the register's order, alternatives as one entry; empty if all is there.

    Raises:
        ValueError: There is no such revision.
    """
    client = as_client(client_capabilities, revision)
    return tuple(in_words(clause) for clause in _lacking(requirement, client))


def decide(
    primitive: Primitive, need: Need | None, client: Client, *, allow_when_not_declared: bool = False
) -> Decision:
    """Whether a client may see and use a primitive.

    Args:
        primitive: Which; its name as the client says it, a concrete URI for a template that is read.
        need: What it needs; None for nothing.
        client: What the client declared for this session (legacy) or request (modern).
        allow_when_not_declared: Let those pass who sent no capabilities object at all.
    """
    if need is None or (client is None and allow_when_not_declared):
        return Decision(primitive)
    clauses = _lacking(need.requirement, client)
    if not clauses:
        return Decision(primitive)
    revision = register().newest(Era.LEGACY) if client is None else client.revision
    return _refused(primitive, clauses, need.message, revision)


def as_client(declared: object, revision: str | None = None) -> Client:
    """What a client declared, in whatever form it is at hand; see ``missing``."""
    if declared is None or isinstance(declared, ClientCapabilities):
        return declared
    dump = getattr(declared, "model_dump", None)
    raw: object = dump(mode="json", by_alias=True, exclude_none=True) if callable(dump) else declared
    return read_client(raw, revision or register().newest(Era.LEGACY))


def unmet(requirement: Requirement, declared: frozenset[Key], revision: str) -> tuple[Clause, ...]:
    """The clauses of a requirement that a declaration does not meet.

    Args:
        requirement: What is needed.
        declared: What is declared and in force, as ``ClientCapabilities.in_force`` has it.
        revision: The revision in force.
    """
    return tuple(clause for clause, keys in _plan(requirement, revision) if keys.isdisjoint(declared))


def _lacking(requirement: Requirement, client: Client) -> tuple[Clause, ...]:
    return requirement.clauses if client is None else unmet(requirement, client.in_force, client.revision)


@lru_cache(maxsize=1024)
def _plan(requirement: Requirement, revision: str) -> tuple[tuple[Clause, frozenset[Key]], ...]:
    """Each clause with the keys that meet it at a revision, so that a decision only looks them up."""
    return tuple(
        (clause, frozenset(key for path in clause if (key := _key(path, revision)) is not None))
        for clause in requirement.clauses
    )


def _key(path: str, revision: str) -> Key | None:
    key = find(path, Side.CLIENT)
    if path in UNMODED and key not in fields(Side.CLIENT, revision):
        return find(UNMODED[path], Side.CLIENT)
    return key


@lru_cache(maxsize=1024)
def _refused(primitive: Primitive, clauses: tuple[Clause, ...], message: str, revision: str) -> Decision:
    """The refusal for the want of some clauses. Hosts that lack something lack it in every list that they ask for."""
    lacking = tuple(map(in_words, clauses))
    usual = f"Client missing capabilities {TEXTS[primitive.kind].format(shown(primitive.name))}: {', '.join(lacking)}"
    required = _declaration(clauses, register().era(revision))
    return Decision(primitive, lacking, message or usual, _code(revision), required)


@cache
def _code(revision: str) -> int:
    known = {error.code for error in register().errors_at(revision)}
    return MISSING_CAPABILITY if MISSING_CAPABILITY in known else INVALID_REQUEST


def _declaration(clauses: tuple[Clause, ...], era: Era) -> Mapping[str, object]:
    """The missing capabilities as a client of the era declares them; of alternatives, the first that it can declare.

    What no revision of the era defines is left out: nobody could declare it there, and the message names it.
    """
    made: dict[str, object] = {}
    for clause in clauses:
        keys = (find(path, Side.CLIENT) for path in clause)
        key = next((key for key in keys if key is not None and _kind(key, era) is not None), None)
        if key is None:
            continue
        place = made
        for name in key[:-1]:
            place = cast("dict[str, object]", place.setdefault(name, {}))
        place.setdefault(key[-1], True if _kind(key, era) is Kind.BOOLEAN else {})
    return made


def _kind(key: Key, era: Era) -> Kind | None:
    """The JSON type of a capability in the newest revision of the era that has it; None where none has."""
    row = rows(Side.CLIENT).get(key)
    if row is None:
        return Kind.OBJECT if _kind(key[:1], era) is Kind.MAP else None
    found = [row.definitions[revision] for revision in register().eras[era] if revision in row.definitions]
    return found[-1].kind if found else None
