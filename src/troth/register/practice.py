"""What the known hosts do about a capability or a method, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from troth.register.layout import Fact
from troth.register.model import Side
from troth.register.words import value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from troth.register.layout import Block
    from troth.register.load import Register
    from troth.register.model import HostProfile, Row

NOTHING = "No host profile says anything about it."


def practice(register: Register, row: Row) -> Block:
    """What each host declares and honours for a capability; hosts that nothing is known of share one line."""
    return _listed({host.id: told(register, row, host) for host in register.hosts.values()})


def uses(register: Register, method: str) -> Block:
    """What each host does about a method; hosts that nothing is known of share one line."""
    return _listed({host.id: tuple(_about(host, (method,))) for host in register.hosts.values()})


def told(register: Register, row: Row, host: HostProfile) -> tuple[str, ...]:
    """What is known of one host about one capability, as phrases."""
    eras = [era for era, revisions in register.eras.items() if any(at in row.definitions for at in revisions)]
    spoken = [era for era in eras if host.declares.get(era) is not None]
    if not spoken:
        return ("speaks no revision that defines it",)
    phrases: list[str] = []
    if row.side is Side.CLIENT:
        phrases += _declared(row, {era: cast("Mapping[str, object]", host.declares[era]) for era in spoken})
    phrases += _about(host, tuple(_methods(row)))
    phrases += [_bare(quirk.text) for quirk in host.quirks if row.family in quirk.rows]
    return tuple(phrases)


def _declared(row: Row, declares: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    found = {era: _phrase(row, declaration) for era, declaration in declares.items()}
    if len(set(found.values())) == 1:
        yield next(iter(found.values()))
    else:
        yield from (f"{era}: {phrase}" for era, phrase in found.items())


def _phrase(row: Row, declaration: Mapping[str, object]) -> str:
    node = declaration
    for depth, name in enumerate(row.key):
        if name not in node:
            parent = ".".join(row.key[:depth])
            return f"does not declare it ({parent} is `{value(node)}`)" if depth else "does not declare it"
        node = cast("Mapping[str, object]", node[name])
    return f"declares `{value(node)}`"


def _methods(row: Row) -> Iterator[str]:
    definitions = row.definitions.values()
    gates = (gate for definition in definitions for gate in (*definition.gates, *definition.notifications))
    yield from dict.fromkeys(gate.method for gate in gates)


def _about(host: HostProfile, methods: tuple[str, ...]) -> Iterator[str]:
    for answer in host.answers:
        if answer.method in methods:
            yield f"answers `{answer.method}`: {_bare(answer.answer)}"
    if never := [method for method in methods if host.never(method)]:
        yield f"never calls {_named(never)}"
    for verb, known in (("calls", host.calling), ("honours", host.honouring), ("ignores", host.ignoring)):
        groups: dict[tuple[str | None, str], list[str]] = {}
        for method in methods:
            if use := known(method):
                groups.setdefault((use.needs, use.note), []).append(method)
        for (needs, note), found in groups.items():
            condition = f" if `{needs}` is declared" if needs else ""
            yield f"{verb} {_named(found)}{condition}" + (f" ({_bare(note)})" if note else "")


def _named(methods: list[str]) -> str:
    return ", ".join(f"`{method}`" for method in methods)


def _listed(phrases: Mapping[str, tuple[str, ...]]) -> Block:
    facts = [Fact(host, "; ".join(known) + ".") for host, known in phrases.items() if known]
    silent = [host for host, known in phrases.items() if not known]
    if not facts:
        return NOTHING
    return (*facts, Fact("others", f"nothing is known ({', '.join(silent)}).")) if silent else tuple(facts)


def _bare(sentence: str) -> str:
    return sentence.removesuffix(".")
