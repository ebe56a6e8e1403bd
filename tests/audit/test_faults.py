"""Every fault of `troth.testing` is found by the probe that guards the broken promise, and by no lucky accident.

The honest server beside them is judged kept by the same probes in all five revisions: a probe that says the same of
both would fail one of the two tests.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from subprocess import PIPE, Popen
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from troth.audit.engine import audit
from troth.audit.model import Outcome, TargetReport, Verdict
from troth.audit.options import Options
from troth.audit.targets import HttpTarget, StdioTarget
from troth.audit.wire.types import Limits
from troth.register import Era, register
from troth.testing import FAULTS, Fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LIMITS = Limits(start=60, method=4, settle=0.3, stop=1)
JOBS = 16
HARMLESS = {"out-of-order"}
"""Faults that are none: allowed behaviour that a careless client trips over."""
PAIRED = {"stdio-http-differ"}
"""Faults that show only beside the same server on the other transport."""


BEHAVIOURS = {
    "CAP-12": "AUD-A4",
    "CAP-13": "AUD-A5",
    "CAP-15": "AUD-A2",
    "CAP-18": "AUD-A2",
    "CAP-20": "AUD-A2",
    "CAP-17": "AUD-A3",
    "CAP-21": "AUD-A6",
    "CAP-22": "AUD-A6",
    "CAP-23": "AUD-A6",
    "CAP-24": "AUD-A6",
    "CAP-26-server": "AUD-A6",
    "CAP-02": "AUD-A7",
    "CAP-04": "AUD-A7",
    "CAP-06": "AUD-A7",
    "CAP-08": "AUD-A7",
    "CAP-09": "AUD-A7",
}
"""The behaviour that finding a fault of a row proves; of other rows it is the general one."""


def claims(name: str) -> str:
    fault = FAULTS[name]
    if fault.finding == "modern.infers":
        return "AUD-A8"
    return "AUD-A10" if fault.verdict == "leaked" else BEHAVIOURS.get(fault.row, "AUD-A1")


def command(fault: Fault) -> list[str]:
    return [sys.executable, "-m", "troth.testing", "server", "--break", fault.name]


def revisions(fault: Fault) -> tuple[str, ...]:
    """The newest revision of each era in which the fault shows; both eras where it is about them."""
    shown = fault.revisions or register().revisions
    if fault.finding.startswith(("era.", "declaration.eras")):
        return tuple(register().newest(era) for era in Era)
    newest = [[name for name in shown if register().era(name) is era][-1:] for era in Era]
    return tuple(name for names in newest for name in names)


def serve(stack: ExitStack, name: str, words: list[str]) -> HttpTarget:
    process = stack.enter_context(Popen([*words, "--transport", "http"], stderr=PIPE, text=True))
    stack.callback(process.kill)
    assert process.stderr is not None
    return HttpTarget(name=name, url=process.stderr.readline().split()[1], headers={})


@pytest.fixture(scope="module")
def reports() -> Mapping[str, TargetReport]:
    """One audit of every broken server, many at once."""
    found: dict[str, TargetReport] = {}

    async def one(fault: Fault, limiter: anyio.CapacityLimiter) -> None:
        async with limiter:
            with ExitStack() as stack:
                http = fault.transport == "http"
                target = (
                    serve(stack, fault.name, command(fault))
                    if http
                    else StdioTarget(name=fault.name, command=tuple(command(fault)))
                )
                options = Options(
                    revisions=revisions(fault),
                    change_tool=fault.provoke or None,
                    limits=LIMITS,
                )
                (found[fault.name],) = await audit([target], options, lambda _: None)

    async def everything() -> None:
        limiter = anyio.CapacityLimiter(JOBS)
        async with anyio.create_task_group() as tasks:
            for fault in FAULTS.values():
                tasks.start_soon(one, fault, limiter)

    anyio.run(everything)
    return found


def codes(report: TargetReport) -> set[str]:
    """Codes of all findings of a target."""
    inside = {finding.code for revision in report.revisions.values() for finding in revision.findings}
    return inside | {finding.code for finding in report.findings}


def verdicts(report: TargetReport, row: str) -> Iterator[Verdict]:
    for revision in report.revisions.values():
        yield from (found.verdict for found in revision.rows if found.id == row)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.behaviour(claims(name))) for name in FAULTS if name not in HARMLESS | PAIRED],
)
def test_the_audit_finds_the_fault(name: str, reports: Mapping[str, TargetReport]) -> None:
    fault, report = FAULTS[name], reports[name]
    if fault.verdict:
        assert fault.verdict in {verdict.value for verdict in verdicts(report, fault.row)}
    else:
        outcomes = {report.outcome.value, *(revision.outcome.value for revision in report.revisions.values())}
        assert fault.finding in codes(report) | outcomes


def test_what_is_asked_of_everybody_is_inferred_from_nothing(reports: Mapping[str, TargetReport]) -> None:
    assert "modern.infers" not in codes(reports["modern-prompt-asks-undeclared-roots"])


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_the_audit_is_not_misled(name: str, reports: Mapping[str, TargetReport]) -> None:
    report = reports[name]
    assert report.outcome is Outcome.CHECKED
    assert codes(report) <= {"declaration.deprecated"}


@pytest.mark.parametrize("name", [name for name in FAULTS if FAULTS[name].verdict])
def test_every_verdict_has_its_proof(name: str, reports: Mapping[str, TargetReport]) -> None:
    rows = [row for revision in reports[name].revisions.values() for row in revision.rows]
    accused = [row for row in rows if row.verdict not in (Verdict.KEPT, Verdict.ABSENT, Verdict.NOT_OBSERVABLE)]
    unproven: list[Any] = [row.id for row in accused if not row.evidence]
    assert unproven == []


@pytest.mark.behaviour("AUD-A9")
def test_two_transports_of_one_server_are_compared() -> None:
    words = command(FAULTS["stdio-http-differ"])
    options = Options(revisions=("2025-11-25",), limits=LIMITS)

    async def run(words: list[str]) -> TargetReport:
        with ExitStack() as stack:
            stdio = StdioTarget(name="stdio", command=tuple(words))
            return (await audit([stdio, serve(stack, "http", words)], options, lambda _: None))[1]

    assert "declaration.transports-differ" in codes(anyio.run(run, words))
    assert "declaration.transports-differ" not in codes(anyio.run(run, words[:4]))


@pytest.mark.behaviour("CAP-02-B2")
def test_what_is_deprecated_is_said_where_it_is_used(honest: TargetReport) -> None:
    rows = {
        name: {row for finding in revision.findings if finding.code == "declaration.deprecated" for row in finding.rows}
        for name, revision in honest.revisions.items()
    }
    assert rows.pop("2026-07-28") == {"CAP-02", "CAP-04", "CAP-05", "CAP-06", "CAP-12"}
    assert not any(rows.values())


@pytest.fixture(scope="module")
def honest() -> TargetReport:
    """The honest server in all five revisions, everything provoked."""
    target = StdioTarget(name="honest", command=(sys.executable, "-m", "troth.testing", "server"))
    options = Options(revisions=register().revisions, active=True, limits=LIMITS)

    async def run() -> TargetReport:
        return (await audit([target], options, lambda _: None))[0]

    return anyio.run(run)


def test_the_honest_server_is_judged_honest(honest: TargetReport) -> None:
    wrong = [
        (name, row.id, row.verdict.value)
        for name, revision in honest.revisions.items()
        for row in revision.rows
        if row.verdict not in (Verdict.KEPT, Verdict.ABSENT, Verdict.NOT_OBSERVABLE)
    ]
    assert wrong == []
    assert codes(honest) == {"declaration.deprecated"}
    assert {row.id for row in honest.revisions["2025-11-25"].rows if row.verdict is Verdict.KEPT} >= {
        "CAP-02", "CAP-04", "CAP-07", "CAP-08", "CAP-09", "CAP-12", "CAP-13", "CAP-14", "CAP-15", "CAP-16",
        "CAP-17", "CAP-18", "CAP-19", "CAP-20", "CAP-21", "CAP-22", "CAP-23", "CAP-24",
    }  # fmt: skip
