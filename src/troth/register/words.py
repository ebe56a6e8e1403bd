"""Phrases that several pages share: spans of revisions, what changes between them, rules with their sources."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from troth.register.layout import Fact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from troth.register.layout import Block
    from troth.register.load import Register
    from troth.register.model import Definition, Gate, Norm, Row


def value(declared: object) -> str:
    """A JSON value as it stands on the wire, on one line."""
    return declared if isinstance(declared, str) else json.dumps(declared, ensure_ascii=False)


def span(register: Register, revisions: Sequence[str]) -> str:
    """Revisions in words: ``all revisions``, a run from first to last, else each by name."""
    known = register.revisions
    if len(revisions) == len(known):
        return "all revisions"
    first = known.index(revisions[0])
    if len(revisions) > 2 and tuple(revisions) == known[first : first + len(revisions)]:
        return f"{revisions[0]} to {revisions[-1]}"
    return ", ".join(revisions)


def changes(register: Register, row: Row) -> Iterator[tuple[str, tuple[Block, ...]]]:
    """For each run of revisions that say the same: its heading, the meaning and the facts.

    A run whose meaning is that of the run before shows only what differs.
    """
    runs: list[tuple[list[str], dict[str, Fact]]] = []
    for revision, definition in row.definitions.items():
        facts = _facts(definition)
        if runs and runs[-1][1] == facts:
            runs[-1][0].append(revision)
        else:
            runs.append(([revision], facts))
    before: dict[str, Fact] = {}
    for revisions, facts in runs:
        meaning = facts["meaning"]
        same = before.get("meaning") == meaning
        shown = tuple(
            fact for label, fact in facts.items() if label != "meaning" and not (same and before.get(label) == fact)
        )
        text = "As before, but:" if same else meaning.text
        yield span(register, revisions), (text, (*shown, Fact("source", _sources(row, revisions))))
        before = facts


def gate_facts(register: Register, method: str, revision: str) -> str:
    """How ``method`` stands at ``revision``: who sends it, and which promise it needs."""
    use = register.method(method, revision)
    if use is None:
        return "Not in this revision."
    rows = register.gating(method, revision)
    roles = [_ROLES[role] for role in use.roles] or ["a method of an extension"]
    told = " and ".join(roles)
    needs = ", ".join(f"{row.id} `{row.path}` of the {row.side}" for row in rows)
    return f"{told[0].upper()}{told[1:]}; {f'needs {needs}' if needs else 'needs no declaration'}."


def rules(register: Register, norms: Iterable[Norm]) -> tuple[Fact, ...]:
    """Normative sentences, those that several revisions share told once."""
    groups: dict[tuple[str, str, str], list[Norm]] = {}
    for norm in norms:
        groups.setdefault((norm.level, norm.who, norm.text), []).append(norm)
    return tuple(
        Fact(
            f"{who} {level}",
            text,
            f"{span(register, [norm.revision for norm in group])}: {', '.join(norm.source for norm in group)}",
        )
        for (level, who, text), group in groups.items()
    )


_ROLES = {
    "ClientRequest": "a request of the client",
    "ServerRequest": "a request of the server",
    "InputRequest": "an input request of the server",
    "ClientNotification": "a notification of the client",
    "ServerNotification": "a notification of the server",
}
"""The unions of the schemas in words."""


def _facts(definition: Definition) -> dict[str, Fact]:
    facts = {
        "meaning": definition.meaning,
        "shape": f"`{definition.shape}`",
        "gates": _gates(definition.gates),
        "parameters": "; ".join(definition.params),
        "notifies": _gates(definition.notifications),
        "delivery": definition.delivery,
        "deprecated": _deprecation(definition),
    }
    return {label: Fact(label, text) for label, text in facts.items() if text}


def _gates(gates: Iterable[Gate]) -> str:
    return ", ".join(f"`{gate.method}` ({', '.join(gate.directions)})" for gate in gates)


def _deprecation(definition: Definition) -> str:
    found = definition.deprecated
    if found is None:
        return ""
    what = "Only the values that it gates, since" if found.soft else "Since"
    by = f" by {found.proposal}" if found.proposal else ""
    return f"{what} {found.since}{by}. {found.removal or ''}".rstrip()


def _sources(row: Row, revisions: Iterable[str]) -> str:
    found = [source for revision in revisions if (source := row.definitions[revision].source)]
    return ", ".join(found or row.sources)
