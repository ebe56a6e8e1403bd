"""What only shows between reports: one server that declares differently per era or per transport."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec

from troth.audit.context import fault, mapping
from troth.audit.model import Finding, Outcome, TargetReport
from troth.capabilities import read_server
from troth.register import Era, Kind, Side, register

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from troth.audit.model import RevisionReport
    from troth.audit.wire.session import Session


def eras(reports: Mapping[str, RevisionReport]) -> tuple[Finding, ...]:
    """Where `initialize` and `server/discover` of one target differ without the revisions' leave.

    Flags are left out: whether a change can be pushed is another question in each era.
    """
    checked = [report for report in reports.values() if report.outcome is Outcome.CHECKED and report.negotiated]
    sides = {report.era: report for report in checked}
    if set(sides) != {Era.LEGACY.value, Era.MODERN.value}:
        return ()
    legacy, modern = (
        read_server(report.declared, cast("str", report.negotiated))
        for report in (sides[Era.LEGACY.value], sides[Era.MODERN.value])
    )
    found: list[Finding] = []
    for row in register().at(Side.SERVER, legacy.revision):
        later = row.at(modern.revision)
        if later is None or later.kind is Kind.BOOLEAN:
            continue
        old, new = legacy.has(row.path), modern.has(row.path)
        if old != new:
            where = f"in `initialize` ({legacy.revision}) and not in `server/discover`"
            other = f"in `server/discover` and not in `initialize` ({legacy.revision})"
            message = f"`{row.path}` is declared {where if old else other}."
            found.append(fault("declaration.eras-differ", message, rows=(row.id,)))
    return tuple(found)


def endings(sessions: Iterable[Session]) -> tuple[Finding, ...]:
    """Processes that do not end when their input does, or that leave others behind."""
    found: dict[str, Finding] = {}
    for session in sessions:
        if getattr(session.link, "ended_by", "") == "SIGKILL":
            message = "The server outlives the end of its input and SIGTERM; it had to be killed."
        elif getattr(session.link, "left_behind", 0):
            message = "The server leaves a process of its own behind, which had to be killed."
        else:
            continue
        found.setdefault(message, fault("process.lives-on", message))
    return tuple(found.values())


def transports(reports: tuple[TargetReport, ...]) -> tuple[TargetReport, ...]:
    """Adds to each target how its declarations differ from those of the same server on another transport."""
    return tuple(
        msgspec.structs.replace(report, findings=(*report.findings, *_against(report, reports[:index])))
        for index, report in enumerate(reports)
    )


def _against(report: TargetReport, earlier: tuple[TargetReport, ...]) -> Iterator[Finding]:
    for other in earlier:
        if other.transport == report.transport or _name(other) is None or _name(other) != _name(report):
            continue
        for revision, mine in report.revisions.items():
            theirs = other.revisions.get(revision)
            if theirs is None or mine.negotiated is None or mine.negotiated != theirs.negotiated:
                continue
            rows = tuple(_differing(mine, theirs))
            if rows:
                paths = ", ".join(f"`{register().by_id[row].path}`" for row in rows)
                message = f"At {revision}, {paths} is declared on one of {other.name!r} and {report.name!r} only."
                yield fault("declaration.transports-differ", message, rows=rows)


def _name(report: TargetReport) -> object:
    return mapping(report.server_info).get("name")


def _differing(mine: RevisionReport, theirs: RevisionReport) -> Iterator[str]:
    revision = cast("str", mine.negotiated)
    one, two = read_server(mine.declared, revision), read_server(theirs.declared, revision)
    for row in register().at(Side.SERVER, revision):
        if one.has(row.path) != two.has(row.path):
            yield row.id
