"""The values of an audit: frames seen, verdicts reached, the report made of them.

The structs are the JSON report: field names become camelCase on the wire, ``OMITTED`` members are left out. The JSON
Schema in ``audit/report/schema.json`` is generated from them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec


class Verdict(StrEnum):
    """What was found about one capability row. The texts are in ``audit.verdicts``."""

    KEPT = "kept"
    EMPTY = "empty"
    PARTIAL = "partial"
    BROKEN = "broken"
    UNDECLARED = "undeclared"
    LEAKED = "leaked"
    MALFORMED = "malformed"
    WRONG_CODE = "wrong-code"
    UNGATED = "ungated"
    ABSENT = "absent"
    NOT_OBSERVABLE = "not-observable"


class Severity(StrEnum):
    """How much a verdict matters, in ascending order: ``--fail-on`` counts a severity and all above it."""

    NONE = "none"
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


class Outcome(StrEnum):
    """What became of the attempt to speak with a target at all, or in one revision."""

    CHECKED = "checked"
    NOT_SERVED = "not-served"
    """The target lives and does not serve this revision."""
    DID_NOT_START = "did-not-start"
    UNREACHABLE = "unreachable"


class Direction(StrEnum):
    """Who sent a frame, seen from the auditor."""

    SENT = "sent"
    RECEIVED = "received"
    NOTE = "note"
    """Not a frame: something the transport saw (an exit, a closed stream, an HTTP status without a message)."""


class Frame(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One message on the wire, or a note about the wire, as evidence.

    Attributes:
        at: Milliseconds since the audit of this target began.
        direction: Who sent it.
        channel: Where: ``stdio``, ``post``, ``get`` (legacy stream), ``listen``, ``sse``, ``delete``.
        connection: Number of the connection within this target's audit, from 1.
        message: The JSON value, or for a note its text. Long values are cut by the report, never here.
        status: HTTP status, where there is one.
    """

    at: int
    direction: Direction
    channel: str
    connection: int
    message: Any
    status: int | None = None


class RowResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The verdict on one capability row in one revision.

    Attributes:
        id: Row id of the register.
        path: Dotted path in the capability object.
        side: ``server``, or ``client`` where the row is about what the server asks of its client.
        verdict: What was found.
        severity: How much it matters.
        message: What happened and why that is the verdict, in a sentence.
        hint: What would make it observable, or what mends it.
        source: File and line in the specification.
        evidence: The frames that prove it.
    """

    id: str
    path: str
    side: str
    verdict: Verdict
    severity: Severity
    message: str
    hint: str = ""
    source: str = ""
    evidence: tuple[Frame, ...] = ()


class Finding(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A fault that belongs to no single row: of the protocol, of the era, between transports.

    Attributes:
        code: Stable id of the kind of fault, e.g. ``era.discover-malformed``; the table is ``audit.verdicts.FINDINGS``.
        rows: Ids of the rows it touches.
    """

    code: str
    severity: Severity
    message: str
    hint: str = ""
    source: str = ""
    rows: tuple[str, ...] = ()
    evidence: tuple[Frame, ...] = ()


class HostView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What one host would see and use of a target (``--as``).

    Attributes:
        profile: Id of the host profile.
        speaks: Whether the host speaks this revision.
        effective: Server capabilities that this host makes use of, by path: what it does with them.
        tools, prompts, resources: Names (URIs) that the target lists for this host's declaration.
        notes: Consequences worth knowing, in sentences.
    """

    profile: str
    speaks: bool
    effective: dict[str, str]
    tools: tuple[str, ...]
    prompts: tuple[str, ...]
    resources: tuple[str, ...]
    notes: tuple[str, ...]


class RevisionReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One target asked in one revision.

    Attributes:
        negotiated: Revision in force; None if none came about.
        era: Era in force; None if none came about.
        declared: The server's capability object as it came.
        outcome: Whether it could be checked.
        reason: Why not, if not.
        elapsed_ms: Time spent, in milliseconds.
    """

    outcome: Outcome
    negotiated: str | None
    era: str | None
    declared: Any
    rows: tuple[RowResult, ...]
    findings: tuple[Finding, ...]
    reason: str = ""
    host_view: HostView | None = None
    elapsed_ms: int = 0


class TargetReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One target over all revisions that were asked.

    Attributes:
        name: As the user named it, or made from the command or URL.
        transport: ``stdio`` or ``http``.
        address: Command line or URL, with secrets masked.
        server_info: As the target told it, or None.
        revisions: By the revision that was asked for.
        started_at: UTC, ISO 8601.
        findings: Faults between revisions, eras or transports.
    """

    name: str
    transport: str
    address: str
    server_info: Any
    outcome: Outcome
    revisions: dict[str, RevisionReport]
    started_at: str
    findings: tuple[Finding, ...] = ()
    reason: str = ""
    elapsed_ms: int = 0


class AuditReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The whole report.

    Attributes:
        troth: Version of Troth.
        command_line: How the audit was called, with secrets masked.
        suppressed: Number of findings that a baseline suppressed.
        stale: Entries of the baseline that nothing matched.
    """

    troth: str
    started_at: str
    command_line: tuple[str, ...]
    targets: tuple[TargetReport, ...]
    suppressed: int = 0
    stale: tuple[str, ...] = ()
