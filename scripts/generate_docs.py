"""Writes the pages that are made from data; with ``--check`` it only says which of them are stale.

A new page is a function that returns its text, and a line in ``PAGES``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from troth.audit.context import laid_down
from troth.audit.model import Severity
from troth.audit.verdicts import FINDINGS, VERDICTS
from troth.register import Register, Side, register
from troth.register.explain import capability, error, gap, host
from troth.register.layout import as_markdown, marked, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from troth.audit.verdicts import Meaning

ROOT = Path(__file__).parents[1]
NOTE = "<!-- Made by scripts/generate_docs.py from the register. Change the register, then run `make docs`. -->"
FINDINGS_NOTE = (
    "<!-- Made by scripts/generate_docs.py from troth.audit.verdicts. Change that, then run `make docs`. -->"
)
MARKS = {None: "–", False: "yes", True: "deprecated"}


def capabilities_page(known: Register) -> str:
    parts = [
        "# Capabilities",
        NOTE,
        "What each capability field means in each protocol revision, what it gates, how it is delivered, what the "
        "specification demands, where it leaves things open and what Troth does there, what known hosts do, and what "
        "goes wrong for people when the promise is not kept. `troth explain` tells the same at the command line.",
        *(_era(known, era, told) for era, told in ERAS.items()),
        "## Overview",
        *(part for side in Side for part in (f"### Fields of the {side}", _fields(known, side))),
        "### Methods",
        "The capability that gates each method: *free* where none does, – where the revision has no such method.",
        _methods(known),
        *(as_markdown(capability(known, row.id, whole=False), level=2) for row in known.rows),
        "## Error codes",
        *(as_markdown(error(known, str(code.code)), level=3) for code in known.errors),
        "## Gaps",
        "Places where the specification is silent or contradicts itself, with the choice of Troth and its reason.",
        *(as_markdown(gap(known, name), level=3) for name in known.gaps),
        "## Hosts",
        "What hosts declare, answer, call and honour. In parentheses, how a fact is known: *seen* in the host's own "
        "source, *reported* by people who compared hosts, *inferred* from other facts, *defined* for made-up hosts.",
        *(as_markdown(host(known, name), level=3) for name in known.hosts),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


ERAS = {
    "legacy": "Capabilities are exchanged once, in `initialize`, and hold for the session; the server may send "
    "requests.",
    "modern": "The client declares its capabilities in `_meta` of every request, the server in the result of "
    "`server/discover`; questions to the client travel in results.",
}


def _era(known: Register, era: str, told: str) -> str:
    revisions = ", ".join(revision for revision in known.revisions if known.era(revision) == era)
    return f"**{era.capitalize()}** ({revisions}): {told}"


def _fields(known: Register, side: Side) -> str:
    rows = [row for row in known.rows if row.side is side]
    cells = [
        (
            f"[{row.id}](#{slug(capability(known, row.id).title)})",
            f"`{row.path}`",
            *(MARKS[at and at.outdated] for at in map(row.at, known.revisions)),
            marked(row.title),
        )
        for row in rows
    ]
    return table(("id", "field", *known.revisions, "what"), cells)


def _methods(known: Register) -> str:
    cells = [(f"`{name}`", *(_gate(known, name, at) for at in known.revisions)) for name in _names(known)]
    return table(("method", *known.revisions), cells)


def _names(known: Register) -> list[str]:
    return sorted({name for name, _ in known.methods}, key=lambda name: (name.startswith("notifications/"), name))


def _gate(known: Register, method: str, revision: str) -> str:
    use = known.method(method, revision)
    return "–" if use is None else ", ".join(use.rows) or "free"


def slug(title: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def findings_page() -> str:
    families = sorted({code.partition(".")[0] for code in FINDINGS})
    parts = [
        "# Verdicts and findings",
        FINDINGS_NOTE,
        "What [the audit](audit.md) says. `--fail-on` counts a severity and all above it: note, warning, error. A "
        "probe may give another severity than the usual one, with a reason.",
        "## Verdicts",
        "On one row of the register in one revision, from the least to the most serious. Where several apply, the most "
        "serious stands.",
        table(
            ("verdict", "severity", "meaning"),
            [
                (f"`{name}`", "–" if told.severity is Severity.NONE else told.severity, told.text)
                for name, told in VERDICTS.items()
            ],
        ),
        "## Findings",
        "Faults that belong to no single row, by their stable code, and where the specification lays it down.",
        *(
            part
            for family in families
            for part in (
                f"### {family}",
                _meanings({code: told for code, told in FINDINGS.items() if code.startswith(f"{family}.")}),
            )
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _meanings(told: dict[str, Meaning]) -> str:
    cells = [
        (f"`{code}`", str(meaning.severity), meaning.text, laid_down(meaning.source) or "–")
        for code, meaning in told.items()
    ]
    return table(("code", "severity", "meaning", "laid down in"), cells)


PAGES: dict[str, Callable[[], str]] = {
    "docs/capabilities.md": lambda: capabilities_page(register()),
    "docs/findings.md": findings_page,
}
"""Pages by their place in the repository."""


def stale(root: Path) -> list[str]:
    """The pages under ``root`` that are missing or differ from what would be written."""
    return [
        name
        for name, text in PAGES.items()
        if not (root / name).is_file() or (root / name).read_text("utf-8") != text()
    ]


def main(arguments: list[str], root: Path = ROOT) -> int:
    found = stale(root)
    if arguments == ["--check"]:
        for name in found:
            print(f"{name} is stale: run `make docs`")
        return int(bool(found))
    if arguments:
        print("usage: generate_docs.py [--check]", file=sys.stderr)
        return 2
    for name in found:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(PAGES[name](), "utf-8")
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
