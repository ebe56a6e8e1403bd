"""The facts of the register as lines of text, to be kept beside the tests: no row changes unnoticed.

Write the file anew, after a look at the difference: ``python tests/register/pin.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from troth.register import Definition, Gate, Register, register

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = Path(__file__).with_name("pinned.txt")


def pinned(known: Register) -> str:
    return "\n".join(_lines(known)) + "\n"


def _lines(known: Register) -> Iterator[str]:
    for row in known.rows:
        names = (row.id, row.family, row.side, row.path, row.extension, *row.norms, *row.gaps, *row.sources)
        yield " | ".join(str(name) for name in names)
        for revision, definition in row.definitions.items():
            yield f"  {revision} | {' | '.join(_definition(definition))}"
    for revision in known.revisions:
        for role in ("ClientRequest", "ServerRequest", "InputRequest", "ClientNotification", "ServerNotification"):
            methods = [name for (name, at), use in known.methods.items() if at == revision and role in use.roles]
            yield f"{revision} {role}: {' '.join(methods)}"
    for norm in known.norms.values():
        yield f"{norm.id} | {norm.level} | {norm.who} | {norm.source} | {' '.join(norm.rows)}"
    for error in known.errors:
        yield f"{error.code} | {error.name} | {' '.join(error.revisions)} | {error.http} | {' '.join(error.sources)}"
    for related in known.related:
        yield f"{related.id} | {related.where} | {related.revision} | {dict(related.fields)} | {related.source}"


def _definition(definition: Definition) -> Iterator[str]:
    deprecated = definition.deprecated
    yield definition.kind
    yield definition.shape
    yield definition.channel or "-"
    yield f"gates {_gates(definition.gates)}"
    yield f"params {'; '.join(definition.params)}"
    yield f"notifies {_gates(definition.notifications)}"
    yield f"deprecated {(deprecated.since, deprecated.proposal, deprecated.soft)}" if deprecated else "-"
    yield str(definition.source)


def _gates(gates: tuple[Gate, ...]) -> str:
    return "; ".join(f"{gate.method} ({', '.join(gate.directions)})" for gate in gates)


if __name__ == "__main__":
    FILE.write_text(pinned(register()), "utf-8")
