"""Audits of real servers, over real transports, in all revisions.

The verdicts are kept in ``goldens/``; where captures of the same server are at hand, the goldens are right by them too.
``TROTH_WRITE_GOLDENS=1`` rewrites the goldens: look at what changed before you keep it.
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from audits import run
from expectations import ABSENT, expected
from fleet import FLEET, OVER_HTTP, TOUCHED, Server

from troth.audit.model import Outcome, Severity
from troth.audit.wire.types import Limits
from troth.register import register

if TYPE_CHECKING:
    from troth.audit.model import Finding, TargetReport

HERE = Path(__file__).parent
GOLDENS = HERE / "goldens"
CAPTURES = HERE.parents[2] / "shared" / "captures" / "servers"
REVISIONS = register().revisions
NEWEST = REVISIONS[-2:]
# Generous: one of these servers has a tool that takes 10 s, and the machine may be busy.
LIMITS = Limits(start=60, method=25, settle=0.3, stop=3)
IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]


def ready(server: Server) -> bool:
    return server.needs.is_file()


def demand(name: str) -> None:
    """Skips where an environment is missing, with a word; continuous integration must have them all."""
    server = FLEET[name]
    if not ready(server):
        word = f"{server.needs} is missing: run `make envs` (npm servers need node)"
        pytest.fail(word) if IN_CI else pytest.skip(word)


@cache
def over_stdio() -> dict[str, TargetReport]:
    return run([server.stdio() for server in FLEET.values() if ready(server)], REVISIONS, LIMITS, jobs=2)


@cache
def over_http() -> dict[str, TargetReport]:
    with ExitStack() as running:
        servers = [FLEET[name] for name in OVER_HTTP if ready(FLEET[name])]
        targets = [running.enter_context(server.listening()) for server in servers]
        return run(targets, REVISIONS, LIMITS, jobs=2)


@cache
def touched() -> dict[str, TargetReport]:
    servers = [FLEET[name] for name in TOUCHED if ready(FLEET[name])]
    return run([server.stdio() for server in servers], NEWEST, LIMITS, jobs=2, change_tool="touch")


WAYS = {"stdio": over_stdio, "http": over_http, "touch": touched}
AUDITS = [
    *((name, "stdio") for name in FLEET),
    *((name, "http") for name in OVER_HTTP),
    *((name, "touch") for name in TOUCHED),
]


SEEN_OR_LOST = ("kept", "not-observable")
RACES = {("everything", "http"): ("CAP-20",)}
"""Rows that depend on when a stream is opened: this server announces its tools at once, and what comes before the
stream is there is lost. Their goldens say so."""


def digest(name: str, way: str, report: TargetReport) -> dict[str, Any]:
    """What a golden keeps: what was negotiated, and every verdict but absent."""
    rows: dict[str, dict[str, str]] = {}
    for revision, one in report.revisions.items():
        for row in one.rows:
            race = row.id in RACES.get((name, way), ()) and row.verdict in SEEN_OR_LOST
            if row.verdict != ABSENT:
                rows.setdefault(row.id, {})[revision] = "|".join(SEEN_OR_LOST) if race else row.verdict.value
    return {
        "negotiated": {revision: one.negotiated for revision, one in report.revisions.items()},
        "verdicts": {row: rows[row] for row in sorted(rows)},
    }


@pytest.mark.parametrize(("name", "way"), AUDITS, ids=lambda value: value)
def test_the_audit_of_a_real_server_says_what_it_said(name: str, way: str) -> None:
    demand(name)
    report = WAYS[way]()[name]
    assert report.outcome is Outcome.CHECKED, report.reason
    got = digest(name, way, report)
    golden = GOLDENS / f"{name}.{way}.json"
    if os.environ.get("TROTH_WRITE_GOLDENS"):
        golden.write_text(json.dumps(got, indent=1) + "\n", "utf-8")
    assert got == json.loads(golden.read_text("utf-8"))


FOUND = {
    # The SDK answers -32602 to whatever it does not know.
    ("min130-empty", "stdio"): {"protocol.unknown-method"},
    ("min130-full", "http"): {"protocol.unknown-method"},
    # Both acknowledge a subscription to a resource that does not exist.
    ("low23-listen", "stdio"): {"listen.acknowledged-absent"},
    ("min23-full", "http"): {"listen.acknowledged-absent"},
    # Over stdio this package speaks revision 1900-01-01 as well.
    ("ts2-tool", "stdio"): {"negotiation.unknown-version"},
    ("ts2-full", "stdio"): {"negotiation.unknown-version"},
    # A low-level handler that looks at no name.
    ("low23-tool", "stdio"): {"tools.unknown-accepted"},
}
"""Findings that were seen in frames of these servers by other means than the audit."""


def findings(report: TargetReport) -> list[Finding]:
    return [*report.findings, *(one for revision in report.revisions.values() for one in revision.findings)]


@pytest.mark.parametrize(("name", "way"), FOUND, ids=lambda value: value)
def test_a_known_fault_of_a_real_server_is_found(name: str, way: str) -> None:
    demand(name)
    assert FOUND[name, way] <= {one.code for one in findings(WAYS[way]()[name])}


@pytest.mark.parametrize(("name", "way"), AUDITS, ids=lambda value: value)
def test_no_working_server_is_said_to_break_the_protocol(name: str, way: str) -> None:
    demand(name)
    assert [one for one in findings(WAYS[way]()[name]) if one.severity is Severity.ERROR] == []


def captured() -> list[tuple[str, str, str]]:
    """Audits of which there is a capture: server, transport, revision."""
    found = [(name, way, revision) for name, way in AUDITS for revision in REVISIONS]
    return [one for one in found if (CAPTURES / "{}.{}.{}.full.json".format(*one)).is_file()]


@pytest.mark.skipif(not CAPTURES.is_dir(), reason="the captures are not beside this repository")
@pytest.mark.parametrize(("name", "way", "revision"), captured(), ids=lambda value: value)
def test_a_golden_is_right_by_the_capture_of_the_same_server(name: str, way: str, revision: str) -> None:
    capture = json.loads((CAPTURES / f"{name}.{way}.{revision}.full.json").read_text("utf-8"))
    golden = json.loads((GOLDENS / f"{name}.{way}.json").read_text("utf-8"))
    right = expected(capture, http=way == "http")
    assert golden["negotiated"][revision] == capture["negotiated"]
    for row, choice in (right or {}).items():
        said = set(golden["verdicts"].get(row, {}).get(revision, ABSENT).split("|"))
        assert said <= choice, f"{row} is {said}, and {set(choice)} is right"


def test_every_golden_belongs_to_an_audit() -> None:
    assert {path.name for path in GOLDENS.glob("*.json")} == {f"{name}.{way}.json" for name, way in AUDITS}
