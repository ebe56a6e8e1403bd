"""The audit of the gateway itself, in front of every combination of upstreams and at every revision.

The upstreams are scripted servers of both eras and everything servers; what they break is broken by themselves alone.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, Any

import conformance
import pytest
from audits import run, told

from troth.audit.model import Outcome, Severity, Verdict
from troth.audit.targets import HttpTarget, StdioTarget
from troth.audit.wire.types import Limits
from troth.register import register

if TYPE_CHECKING:
    from pathlib import Path

    from troth.audit.model import TargetReport

REVISIONS = register().revisions
OLD, NEW = "2025-11-25", "2026-07-28"
LIMITS = Limits(start=60, method=15, settle=0.3, stop=3)
VARIANTS = ("full", "tools-only", "files", "empty", "asker", "ui")
ERAS: dict[str, tuple[str, ...]] = {"dual": (), "legacy": ("--revision", OLD), "modern": ("--revision", NEW)}

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]


def scripted(variant: str, era: str) -> dict[str, Any]:
    """An entry of a configuration: a scripted server."""
    arguments = ["-m", "troth.testing", "server", "--transport", "stdio", "--variant", variant, *ERAS[era]]
    return {"command": sys.executable, "args": arguments}


def everything(kind: str) -> dict[str, Any]:
    command = conformance.KINDS[kind].command
    return {"command": command[0], "args": list(command[1:])}


COMBINATIONS: dict[str, dict[str, dict[str, Any]]] = {
    "nothing": {},
    **{f"{variant}-{era}": {"one": scripted(variant, era)} for variant in VARIANTS for era in ERAS},
    **{kind: {"one": everything(kind)} for kind in ("dual-stdio", "legacy-stdio", "modern-stdio")},
    "two-eras": {"old": scripted("full", "legacy"), "new": scripted("full", "modern")},
    "two-everything": {"old": everything("legacy-stdio"), "new": everything("modern-stdio")},
    "old-tools-new-files": {"old": scripted("tools-only", "legacy"), "new": scripted("files", "modern")},
    "new-tools-old-files": {"new": scripted("tools-only", "modern"), "old": scripted("files", "legacy")},
    "one-is-dead": {"dead": {"command": sys.executable, "args": ["-c", "pass"]}, "one": scripted("full", "dual")},
    "all": {
        **{f"{variant}-{era}": scripted(variant, era) for variant in VARIANTS for era in ERAS},
        "every": everything("dual-stdio"),
    },
}


def config(name: str, folder: Path) -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"mcpServers": COMBINATIONS[name]}), "utf-8")
    return path


@cache
def over_stdio(folder: Path) -> dict[str, TargetReport]:
    serve = (sys.executable, "-m", "troth", "serve")
    targets = [StdioTarget(name=name, command=(*serve, str(config(name, folder)), "--stdio")) for name in COMBINATIONS]
    return run(targets, REVISIONS, LIMITS, jobs=2)


@cache
def over_http(folder: Path) -> dict[str, TargetReport]:
    reports: dict[str, TargetReport] = {}
    for name in COMBINATIONS:
        with ExitStack() as running:
            port, log = conformance.free_port(), folder / f"{name}.log"
            command = conformance.serve(config(name, folder), port)
            process = running.enter_context(conformance.running(command, log))
            conformance.wait_for_port(process, port, log)
            target = HttpTarget(name=name, url=f"http://127.0.0.1:{port}/mcp")
            reports.update(run([target], REVISIONS, LIMITS, jobs=1))
    return reports


WAYS = {"stdio": over_stdio, "http": over_http}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gateway-audit")


def faults(report: TargetReport) -> list[str]:
    """What the audit holds against a gateway, in words."""
    found = [f"{one.code}: {one.message}" for one in report.findings if one.severity is Severity.ERROR]
    for revision, one in report.revisions.items():
        bad = [row.id for row in one.rows if row.verdict in {Verdict.BROKEN, Verdict.LEAKED}]
        found += [f"{revision} {told(one, [row])}" for row in bad]
        found += [f"{revision} {each.code}: {each.message}" for each in one.findings if each.severity is Severity.ERROR]
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", COMBINATIONS)
def test_the_gateway_keeps_what_it_promises(name: str, way: str, folder: Path) -> None:
    report = WAYS[way](folder)[name]
    assert report.outcome is Outcome.CHECKED, report.reason
    assert faults(report) == []
