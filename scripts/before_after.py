"""Writes docs/before-after.md: audits of plain servers as their authors wrote them, and after ``troth.install``.

    python scripts/before_after.py [--check]

With ``--check`` nothing is written; it exits 1 if the page is stale. Takes a minute or two.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from troth.audit.engine import audit
from troth.audit.model import Severity, Verdict
from troth.audit.options import Options
from troth.audit.targets import StdioTarget
from troth.audit.verdicts import SEVERITY_RANK
from troth.register import register

if TYPE_CHECKING:
    from troth.audit.model import TargetReport

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "before-after.md"
PLAIN = {
    "MCPServer of the SDK (mcp 2)": "plain_sdk",
    "low-level Server of the SDK (mcp 2)": "plain_lowlevel",
    "FastMCP 4": "plain_fastmcp",
}
CHANGE = "publish"
QUIET = {Verdict.ABSENT, Verdict.NOT_OBSERVABLE}
NOTE = "<!-- Made by scripts/before_after.py from audits of the servers in examples/. Change those, then run it. -->"


def report(name: str, *, installed: bool) -> TargetReport:
    """The audit of a plain server, with or without Troth."""
    command = (sys.executable, "-W", "ignore", str(ROOT / "examples" / "honest.py"), name)
    target = StdioTarget(name=name, command=(*command, "install") if installed else command)
    options = Options(revisions=register().revisions, change_tool=CHANGE)
    return anyio.run(audit, [target], options, lambda _event: None)[0]


def verdicts(found: TargetReport) -> dict[str, dict[str, Verdict]]:
    """Path -> revision -> verdict, of the rows that both sides of the register have."""
    paths: dict[str, dict[str, Verdict]] = {}
    for revision, one in found.revisions.items():
        for row in one.rows:
            paths.setdefault(f"{row.side}: `{row.path}`", {})[revision] = row.verdict
    return paths


def cell(found: dict[str, Verdict]) -> str:
    """The verdicts of a row in words, revisions that agree together."""
    parts = []
    for verdict, group in groupby(found.items(), key=lambda item: item[1]):
        revisions = [revision for revision, _ in group]
        if len(revisions) == len(found):
            return word(verdict)
        span = revisions[0] if len(revisions) == 1 else f"{revisions[0]} to {revisions[-1]}"
        if verdict not in QUIET:
            parts.append(f"{word(verdict)} ({span})")
    return ", ".join(parts) or "–"


def word(verdict: Verdict) -> str:
    if verdict in QUIET:
        return "–"
    return str(verdict) if verdict is Verdict.KEPT else f"**{verdict}**"


def findings(found: TargetReport) -> list[str]:
    """Codes of findings of at least the severity *warning*."""
    all_of = [one for revision in found.revisions.values() for one in revision.findings] + list(found.findings)
    return sorted({one.code for one in all_of if SEVERITY_RANK[one.severity] >= SEVERITY_RANK[Severity.WARNING]})


def section(title: str, name: str, before: TargetReport, after: TargetReport) -> str:
    was, now = verdicts(before), verdicts(after)
    lines = [f"## {title}", f"`examples/{name}.py`", "", "| field | before | after |", "|---|---|---|"]
    for path, found in was.items():
        cells = cell(found), cell(now[path])
        if cells != ("–", "–"):
            lines.append(f"| {path} | {cells[0]} | {cells[1]} |")
    told = [", ".join(f"`{code}`" for code in findings(one)) or "none" for one in (before, after)]
    lines.append(f"| other findings | {told[0]} | {told[1]} |")
    return "\n".join(lines)


def page() -> str:
    parts = [
        "# Before and after",
        NOTE,
        "Three ordinary servers that keep notes, one on each framework, audited in every protocol revision as their "
        "authors wrote them, and after the one line `troth.install(server)`. *Before* holds for any server that is "
        "written like them. – is not declared and not served, or not to be seen from outside; verdicts in bold are "
        "faults, and `docs/findings.md` says what each means. `troth audit --change-tool publish -- python "
        "examples/honest.py plain_fastmcp` prints one side of it, with `install` at its end the other.",
    ]
    for title, name in PLAIN.items():
        parts.append(section(title, name, report(name, installed=False), report(name, installed=True)))
    return "\n\n".join(parts) + "\n"


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        stale = not PAGE.exists() or PAGE.read_text("utf-8") != text
        if stale:
            print(f"stale: {PAGE.relative_to(ROOT)}", file=sys.stderr)
        return int(stale)
    PAGE.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
