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
    """What each host declares and honours for a capability; hosts of which the same is known share one fact."""
    return _listed({host.id: told(register, row, host) for host in register.hosts.values()})


def uses(register: Register, method: str) -> Block:
    """What each host does about a method; hosts of which the same is known share one fact."""
    roles = {role for (name, _), use in register.methods.items() if name == method for role in use.roles}
    asked = bool(roles & {"ServerRequest", "InputRequest"})
    return _listed({host.id: tuple(_about(host, (method,), asked=asked)) for host in register.hosts.values()})


def told(register: Register, row: Row, host: HostProfile) -> tuple[str, ...]:
    """What is known of one host about one capability, as sentences."""
    eras = [era for era, revisions in register.eras.items() if any(at in row.definitions for at in revisions)]
    spoken = [era for era in eras if host.declares.get(era) is not None]
    if not spoken:
        return ("Speaks no revision that defines it.",)
    sentences: list[str] = []
    if row.side is Side.CLIENT:
        sentences += _declared(row, {era: cast("Mapping[str, object]", host.declares[era]) for era in spoken})
    sentences += _about(host, tuple(_methods(row)), asked=row.side is Side.CLIENT)
    sentences += [quirk.text for quirk in host.quirks if row.family in quirk.rows]
    return tuple(sentences)


def _declared(row: Row, declares: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    found = {era: _declaration(row, declaration) for era, declaration in declares.items()}
    if len(set(found.values())) == 1:
        yield f"{next(iter(found.values()))}."
    else:
        yield from (f"{told}, in the {era} era." for era, told in found.items())


def _declaration(row: Row, declaration: Mapping[str, object]) -> str:
    node = declaration
    for depth, name in enumerate(row.key):
        if name not in node:
            parent = ".".join(row.key[:depth])
            return f"Does not declare it ({parent} is `{value(node)}`)" if depth else "Does not declare it"
        node = cast("Mapping[str, object]", node[name])
    return f"Declares `{value(node)}`"


def _methods(row: Row) -> Iterator[str]:
    definitions = row.definitions.values()
    gates = (gate for definition in definitions for gate in (*definition.gates, *definition.notifications))
    yield from dict.fromkeys(gate.method for gate in gates)


def _about(host: HostProfile, methods: tuple[str, ...], *, asked: bool) -> Iterator[str]:
    for method in methods if asked else ():
        if answer := host.answering(method):
            yield f"Answers `{method}`: {answer.answer}"
    if never := [method for method in methods if host.never(method)]:
        yield f"Never calls {_named(never)}."
    for verb, known in (("Calls", host.calling), ("Honours", host.honouring), ("Ignores", host.ignoring)):
        groups: dict[tuple[str | None, str], list[str]] = {}
        for method in methods:
            if use := known(method):
                groups.setdefault((use.needs, use.note), []).append(method)
        for (needs, note), found in groups.items():
            condition = f" if `{needs}` is declared" if needs else ""
            yield f"{verb} {_named(found)}{condition}. {note}".rstrip()


def _named(methods: list[str]) -> str:
    return ", ".join(f"`{method}`" for method in methods)


def _listed(sentences: Mapping[str, tuple[str, ...]]) -> Block:
    groups: dict[tuple[str, ...], list[str]] = {}
    for host, known in sentences.items():
        groups.setdefault(known, []).append(host)
    silent = groups.pop((), [])
    facts = [Fact(", ".join(hosts), " ".join(known)) for known, hosts in groups.items()]
    if silent and facts:
        facts.append(Fact("others", f"Nothing is known of {', '.join(silent)}."))
    return tuple(facts) or NOTHING
