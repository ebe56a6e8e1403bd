"""Tells in words what the register knows about one thing. Pure: values in, pages out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from troth.register.find import Topic
from troth.register.layout import Fact, Page, Section
from troth.register.practice import practice, uses
from troth.register.words import changes, gate_facts, rules, span, value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from troth.register.find import Found
    from troth.register.layout import Block
    from troth.register.load import Register
    from troth.register.model import Definition, HostUse, Row

MARKS = ("+", "d", ".")
"""In the overview: defined, defined and deprecated, not defined."""
NO_RULES = "No sentence of the specification with a MUST or SHOULD names it."


def explain(register: Register, found: Found) -> tuple[Page, ...]:
    """The pages about what was found: one for each row, else a single one."""
    return tuple(_PAGES[found.topic](register, key) for key in found.keys)


def capability(register: Register, key: str, *, whole: bool = True) -> Page:
    """What a capability field is, per revision; ends with hosts and with what breaks.

    Args:
        register: Where it is looked up.
        key: Id of the row.
        whole: False leaves the rules to the first row of the family, which has the same.

    Raises:
        KeyError: No row has this id.
    """
    row = register.by_id[key]
    status = f" It is an {row.extension} extension." if row.extension else ""
    absent = [revision for revision in register.revisions if revision not in row.definitions]
    sections = [Section(heading, blocks) for heading, blocks in changes(register, row)]
    if absent:
        sections.append(Section(span(register, absent), ("The revision does not define it.",)))
    sections.append(Section("Where it is not declared", (row.when_absent,)))
    if parts := [other for other in register.family(row.family or "") if other is not row]:
        facts = tuple(_line(part) for part in parts)
        sections.append(Section("In the same family", (facts,)))
    first = register.family(row.family)[0] if row.family else row
    told: Block = rules(register, [register.norms[norm] for norm in row.norms]) or NO_RULES
    sections.append(Section("Rules", (told if whole or first is row else f"As for {first.id}.",)))
    if row.gaps:
        sections.append(Section("Left open by the specification", tuple(_gap_facts(register, gap) for gap in row.gaps)))
    sections += [
        Section("Hosts", (practice(register, row),)),
        Section("When it is declared and not kept", (row.breaks,)),
    ]
    return Page(f"{row.id} `{row.path}` ({row.side})", f"{row.title}.{status}", tuple(sections))


def method(register: Register, key: str) -> Page:
    """Who sends a method, which capability gates it at which revision, and which hosts use it."""
    at = {revision: use for revision in register.revisions if (use := register.method(key, revision))}
    rows = list({row.id: row for revision in at for row in register.gating(key, revision)}.values())
    sections = [Section("By revision", (tuple(_method_facts(register, key)),))]
    if rows:
        facts = tuple(_line(row) for row in rows)
        sections.append(Section("Gated by", (facts,)))
    if params := tuple(_param_facts(register, key)):
        sections.append(Section("Parameters that need more", (params,)))
    if not key.startswith("notifications/"):
        refusal = "A receiver that did not declare the capability refuses it with -32601, as one that lacks the method."
        sections.append(Section("Where it is not declared", (refusal,) if rows else ("It needs no declaration.",)))
    sections.append(Section("Hosts", (uses(register, key),)))
    if rows:
        facts = tuple(Fact(row.id, row.breaks) for row in rows)
        sections.append(Section("When the promise is not kept", (facts,)))
    return Page(f"`{key}`", f"It exists in {span(register, list(at))}.", tuple(sections))


def error(register: Register, key: str) -> Page:
    """What an error code says, where, and which sentences and gaps speak of it.

    Raises:
        KeyError: No such code.
    """
    found = register.error(key)
    if found is None:
        raise KeyError(key)
    facts = [Fact("used in", span(register, found.revisions))]
    if found.http:
        facts.append(Fact("HTTP status", found.http))
    facts.append(Fact("sources", ", ".join(found.sources)))
    sections = [Section("Where", (tuple(facts),))]
    # A code is not part of a longer number, of a date or of a range.
    named = re.compile(rf"(?<![\w.-]){re.escape(key)}(?!\d|\.\.)")
    if naming := [norm for norm in register.norms.values() if named.search(norm.text)]:
        sections.append(Section("Rules that name it", (rules(register, naming),)))
    if gaps := [gap.id for gap in register.gaps.values() if named.search(f"{gap.question} {gap.choice} {gap.reason}")]:
        sections.append(Section("Left open by the specification", tuple(_gap_facts(register, gap) for gap in gaps)))
    return Page(f"{found.code} {found.name}", found.use, tuple(sections))


def gap(register: Register, key: str) -> Page:
    """An open place of the specification, our choice, and the capabilities it touches.

    Raises:
        KeyError: No such gap.
    """
    found = register.gaps[key]
    facts = [Fact("choice", found.choice), Fact("reason", found.reason)]
    if found.applied:
        facts.append(Fact("applied in", ", ".join(f"`{name}`" for name in found.applied)))
    sections = [Section("What Troth does", (tuple(facts),))]
    if rows := tuple(_line(row) for row in register.rows if key in row.gaps):
        sections.append(Section("It touches", (rows,)))
    return Page(key, found.question, tuple(sections))


def revision(register: Register, key: str) -> Page:
    """What a revision defines, and what differs from the one before."""
    sections = [
        Section(
            f"Capabilities of the {side}",
            (tuple(_line(row, key) for row in rows),),
        )
        for side in ("client", "server")
        if (rows := [row for row in register.rows if row.side == side and key in row.definitions])
    ]
    free = [name for (name, at), use in register.methods.items() if at == key and not use.rows]
    needless = ", ".join(f"`{name}`" for name in sorted(free))
    sections.append(Section("Methods that need no declaration", (f"{needless}.",)))
    codes = tuple(Fact(str(error.code), f"{error.name}.") for error in register.errors_at(key))
    sections.append(Section("Error codes", (codes,)))
    index = register.revisions.index(key)
    if index:
        sections.append(Section("Other than before", (_difference(register, register.revisions[index - 1], key),)))
    era = register.era(key)
    told = {
        "legacy": "capabilities are exchanged once, in initialize, and hold for the session",
        "modern": "the client declares its capabilities in every request, the server in the result of server/discover",
    }[era]
    return Page(key, f"A revision of the {era} era: {told}.", tuple(sections))


def host(register: Register, key: str) -> Page:
    """What a host profile declares, answers, calls and honours.

    Raises:
        KeyError: No such profile.
    """
    found = register.hosts[key]
    declares = [
        Fact(era, "does not speak this era." if declared is None else f"`{value(declared)}`")
        for era, declared in found.declares.items()
    ]
    transports = f"{', '.join(found.transports)}. {found.transports_note}".rstrip()
    about = [Fact("offers", found.offers), Fact("transports", transports)]
    if found.sdk:
        about.append(Fact("built on", found.sdk))
    about += [Fact(f"waits for {name}", f"{seconds} s") for name, seconds in found.timeouts.items()]
    sections = [
        Section("Declares", (tuple(declares), *((found.note,) if found.note else ()))),
        Section("Answers", (tuple(Fact(item.method, f"{item.answer} ({item.certainty})") for item in found.answers),)),
        Section("Calls", (tuple(_host_uses(found.calls)),)),
        Section("Never calls", (", ".join(f"`{name}`" for name in found.never_calls),)),
        Section("Honours", (tuple(_host_uses(found.honours)),)),
        Section("Ignores", (tuple(_host_uses(found.ignores)),)),
        Section("Habits", (tuple(Fact(quirk.id, f"{quirk.text} ({quirk.certainty})") for quirk in found.quirks),)),
        Section("For a gateway", (tuple(Fact(name, value(hint)) for name, hint in found.hints.items()),)),
        Section("More", (tuple(about),)),
    ]
    return Page(key, f"{found.product}.", tuple(section for section in sections if any(section.blocks)))


def overview(register: Register) -> Page:
    """Everything that can be asked for."""
    legend = "Columns: " + ", ".join(register.revisions) + ". + defined, d defined and deprecated, . not defined."
    rows = tuple(Fact(row.id, f"{marks(register, row)}  `{row.path}` ({row.side})") for row in register.rows)
    methods = sorted({name for name, _ in register.methods})
    return Page(
        "What can be explained",
        "An id, a path, a method, an error code, a gap, a revision or a host.",
        (
            Section("Capabilities", (legend, rows)),
            Section("Methods", (", ".join(f"`{name}`" for name in methods),)),
            Section("Error codes", (tuple(Fact(str(error.code), f"{error.name}.") for error in register.errors),)),
            Section("Gaps", (tuple(Fact(gap.id, gap.question) for gap in register.gaps.values()),)),
            Section("Revisions", (", ".join(register.revisions),)),
            Section("Hosts", (tuple(Fact(host.id, f"{host.product}.") for host in register.hosts.values()),)),
        ),
    )


def marks(register: Register, row: Row) -> str:
    """One character for each revision, oldest first: see ``MARKS``."""
    defined, deprecated, missing = MARKS
    found = [row.at(revision) for revision in register.revisions]
    return "".join(missing if at is None else deprecated if at.outdated else defined for at in found)


def _line(row: Row, at: str | None = None) -> Fact:
    advice = ", deprecated" if at and row.definitions[at].outdated else ""
    return Fact(row.id, f"`{row.path}` ({row.side}{advice}). {row.title}.")


def _difference(register: Register, before: str, after: str) -> Block:
    old, new = ({row.id for row in register.rows if at in row.definitions} for at in (before, after))
    was, has = ({name for name, at in register.methods if at == wanted} for wanted in (before, after))
    kept = [row for row in register.rows if row.id in old & new]
    changed = [row.id for row in kept if _wire(row.definitions[before]) != _wire(row.definitions[after])]
    groups = (
        ("new fields", [row.id for row in register.rows if row.id in new - old]),
        ("gone fields", [row.id for row in register.rows if row.id in old - new]),
        ("other on the wire", changed),
        ("new methods", [f"`{name}`" for name in sorted(has - was)]),
        ("gone methods", [f"`{name}`" for name in sorted(was - has)]),
    )
    return tuple(Fact(label, ", ".join(names) + ".") for label, names in groups if names) or "Nothing differs."


def _wire(definition: Definition) -> tuple[object, ...]:
    return (definition.kind, definition.gates, definition.params, definition.notifications, definition.channel)


def _gap_facts(register: Register, key: str) -> tuple[Fact, ...]:
    found = register.gaps[key]
    return (Fact(found.id, found.question), Fact("choice", found.choice), Fact("reason", found.reason))


def _method_facts(register: Register, key: str) -> Iterator[Fact]:
    groups: list[tuple[list[str], str]] = []
    for at in register.revisions:
        told = gate_facts(register, key, at)
        if groups and groups[-1][1] == told:
            groups[-1][0].append(at)
        else:
            groups.append(([at], told))
    yield from (Fact(span(register, group), told) for group, told in groups)


def _param_facts(register: Register, key: str) -> Iterator[Fact]:
    for row in register.rows:
        params = dict.fromkeys(
            param.removeprefix(f"{key} ")
            for definition in row.definitions.values()
            for param in definition.params
            if param.startswith(f"{key} ")
        )
        if params:
            yield Fact(row.id, f"`{row.path}` of the {row.side}: {', '.join(params)}.")


def _host_uses(found: Iterable[HostUse]) -> Iterator[Fact]:
    for use in found:
        needs = f"If the server declares `{use.needs}`." if use.needs else ""
        yield Fact(use.method, " ".join(part for part in (needs, use.note, f"({use.certainty})") if part))


_PAGES: dict[Topic, Callable[[Register, str], Page]] = {
    Topic.CAPABILITY: capability,
    Topic.METHOD: method,
    Topic.ERROR: error,
    Topic.GAP: gap,
    Topic.REVISION: revision,
    Topic.HOST: host,
}
