"""Reports made by hand, with one of everything in them."""

from __future__ import annotations

from typing import Any

from troth.audit.model import (
    AuditReport,
    Direction,
    Finding,
    Frame,
    HostView,
    Outcome,
    RevisionReport,
    RowResult,
    Severity,
    TargetReport,
    Verdict,
)
from troth.register import Era, register

LEGACY = register().eras[Era.LEGACY]
MODERN = register().eras[Era.MODERN]
SEVERITIES = {
    Verdict.KEPT: Severity.NONE,
    Verdict.ABSENT: Severity.NONE,
    Verdict.NOT_OBSERVABLE: Severity.NONE,
    Verdict.EMPTY: Severity.NOTE,
    Verdict.UNDECLARED: Severity.WARNING,
    Verdict.LEAKED: Severity.WARNING,
}
"""Errors are left out. The formats must show any severity with any verdict, so this is the sample's own."""

STARTED = "2026-11-29T12:00:00Z"


def frame(at: int, direction: Direction, message: Any, *, channel: str = "stdio", status: int | None = None) -> Frame:
    return Frame(at=at, direction=direction, channel=channel, connection=1, message=message, status=status)


def asked(identifier: int, method: str, **params: Any) -> Frame:
    message = {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}
    return frame(10 * identifier, Direction.SENT, message)


def told(identifier: int, **members: Any) -> Frame:
    return frame(10 * identifier + 5, Direction.RECEIVED, {"jsonrpc": "2.0", "id": identifier, **members})


def row(identifier: str, verdict: Verdict, message: str = "", *, hint: str = "", evidence: Any = ()) -> RowResult:
    known = register().by_id[identifier]
    return RowResult(
        id=identifier,
        path=known.path,
        side=known.side.value,
        verdict=verdict,
        severity=SEVERITIES.get(verdict, Severity.ERROR),
        message=message or f"It is {verdict.value}.",
        hint=hint,
        source="" if verdict is Verdict.ABSENT else "schema/2025-11-25/schema.ts:412",
        evidence=tuple(evidence),
    )


REFUSED = (
    asked(3, "resources/subscribe", uri="file:///a.txt"),
    told(3, error={"code": -32601, "message": "Method not found"}),
)


def rows(revision: str) -> tuple[RowResult, ...]:
    modern = revision in MODERN
    found = [
        row("CAP-19", Verdict.KEPT, "tools/list is answered with 2 tools.", evidence=[asked(2, "tools/list")]),
        row("CAP-14", Verdict.EMPTY, "prompts/list is answered, and lists nothing."),
        row("CAP-16", Verdict.PARTIAL, "resources/templates/list is refused.", hint="Answer it with an empty list."),
        row("CAP-20", Verdict.NOT_OBSERVABLE, "The list did not change.", hint="Give --change-tool NAME or --touch."),
        row("CAP-18", Verdict.NOT_OBSERVABLE, "The list did not change.", hint="Give --change-tool NAME or --touch."),
        row("CAP-12", Verdict.UNDECLARED, "Log messages came, and logging is not declared."),
        row(
            "CAP-04", Verdict.UNGATED, "Asks for sampling of a client without it.", evidence=[asked(9, "sampling")] * 9
        ),
        row("CAP-25", Verdict.KEPT if modern else Verdict.LEAKED),
    ]
    if not modern:
        found.append(row("CAP-17", Verdict.BROKEN, "resources/subscribe is refused.", evidence=REFUSED))
    if revision != LEGACY[0]:
        found.append(row("CAP-13", Verdict.MALFORMED, "completions is true, not an object."))
    absent = (known for known in register().rows if revision in known.definitions)
    seen = {item.id for item in found}
    found += [row(known.id, Verdict.ABSENT) for known in absent if known.id not in seen]
    return tuple(found)


def view(*, speaks: bool) -> HostView:
    return HostView(
        profile="opencode-v1",
        speaks=speaks,
        effective={"tools": "lists and calls them"} if speaks else {},
        tools=("add", "sub") if speaks else (),
        prompts=(),
        resources=("file:///a.txt",) if speaks else (),
        notes=("Changes of the prompt list go unnoticed.",),
    )


def revision_report(revision: str, **changes: Any) -> RevisionReport:
    values: dict[str, Any] = {
        "outcome": Outcome.CHECKED,
        "negotiated": revision,
        "era": register().era(revision).value,
        "declared": {"tools": {"listChanged": True}, "prompts": {}, "resources": {"subscribe": True}},
        "rows": rows(revision),
        "findings": (
            Finding(
                code="protocol.junk",
                severity=Severity.WARNING,
                message="A line on standard output is no message.",
                hint="Write logs to standard error.",
                source="basic/transports.mdx:40",
                rows=("CAP-12",),
                evidence=(frame(7, Direction.NOTE, "junk on stdout: 'starting'"),),
            ),
        ),
        "host_view": view(speaks=revision not in MODERN),
        "elapsed_ms": 120,
    }
    return RevisionReport(**{**values, **changes})


def not_served(reason: str) -> dict[str, Any]:
    return {
        "outcome": Outcome.NOT_SERVED,
        "negotiated": None,
        "era": None,
        "declared": None,
        "rows": (),
        "findings": (),
        "host_view": None,
        "reason": reason,
    }


def target(name: str = "files", **changes: Any) -> TargetReport:
    revisions = {revision: revision_report(revision) for revision in (*LEGACY[1:], *MODERN)}
    first = revision_report(LEGACY[0], **not_served("initialize is answered with 2025-11-25"))
    values: dict[str, Any] = {
        "name": name,
        "transport": "stdio",
        "address": "python -m files --root '/srv/my files'",
        "server_info": {"name": "files-server", "version": "1.4.2"},
        "outcome": Outcome.CHECKED,
        "revisions": {LEGACY[0]: first, **revisions},
        "started_at": STARTED,
        "findings": (
            Finding(
                code="declaration.eras-differ",
                severity=Severity.NOTE,
                message="initialize declares resources.subscribe, server/discover does not.",
                rows=("CAP-17",),
            ),
        ),
        "elapsed_ms": 900,
    }
    return TargetReport(**{**values, **changes})


def one() -> AuditReport:
    return AuditReport(
        troth="1.0.0",
        started_at=STARTED,
        command_line=("troth", "audit", "--format", "json", "--as", "opencode-v1", "--", "python", "-m", "files"),
        targets=(target(),),
    )


def several() -> AuditReport:
    web = target(
        "web",
        transport="http",
        address="https://example.org/mcp?token=***",
        server_info=None,
        revisions={revision: revision_report(revision, host_view=None) for revision in register().revisions[-2:]},
        findings=(),
    )
    dead = target(
        "dead",
        outcome=Outcome.DID_NOT_START,
        revisions={},
        findings=(),
        server_info=None,
        reason="exit status 1: ModuleNotFoundError: No module named 'dead'",
    )
    files = target(revisions={revision: revision_report(revision, host_view=None) for revision in LEGACY[-2:]})
    return AuditReport(
        troth="1.0.0",
        started_at=STARTED,
        command_line=("troth", "audit", "--config", "mcp.json"),
        targets=(files, web, dead),
        suppressed=2,
        stale=("files 2025-11-25 CAP-99 broken",),
    )


def kept() -> AuditReport:
    revision = LEGACY[-1]
    part = revision_report(
        revision, rows=(row("CAP-19", Verdict.KEPT),), findings=(), host_view=None, declared={"tools": {}}
    )
    return AuditReport(
        troth="1.0.0",
        started_at=STARTED,
        command_line=("troth", "audit", "--", "python", "-m", "files"),
        targets=(target(revisions={revision: part}, findings=()),),
    )
