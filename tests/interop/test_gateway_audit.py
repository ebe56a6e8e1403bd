"""The audit of the gateway itself, in front of every combination of upstreams and at every revision.

The upstreams are scripted servers and everything servers of both eras; what they break is broken by themselves alone.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import conformance
import pytest
from ahead import Ahead, need, selected
from audits import run, told

from held_ports import held_port
from troth.audit.model import Outcome, Severity, Verdict
from troth.audit.targets import HttpTarget, StdioTarget
from troth.audit.wire.types import Limits
from troth.register import register

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.audit.model import TargetReport
    from troth.audit.targets import Target

REVISIONS = register().revisions
OLD, NEW = "2025-11-25", "2026-07-28"
LIMITS = Limits(start=90, method=20, settle=0.3, stop=5)
VARIANTS = ("full", "tools-only", "files", "empty", "asker", "ui")
ERAS: dict[str, tuple[str, ...]] = {"dual": (), "legacy": ("--revision", OLD), "modern": ("--revision", NEW)}
PATIENT = "[gateway]\nstartup_wait = 60\n"
"""The machine may be busy: lists that are not known yet would differ between two connections."""

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

Command = tuple[str, ...]


def scripted(variant: str, era: str) -> Command:
    """A scripted server."""
    words = ("-m", "troth.testing", "server", "--transport", "stdio", "--variant", variant)
    return (sys.executable, *words, *ERAS[era])


def everything(kind: str) -> Command:
    return conformance.KINDS[kind].command


COMBINATIONS: dict[str, dict[str, Command | str]] = {
    "nothing": {},
    **{f"{variant}-{era}": {"one": scripted(variant, era)} for variant in VARIANTS for era in ERAS},
    **{f"every-{kind}": {"one": everything(kind)} for kind, one in conformance.KINDS.items() if one.over == "stdio"},
    # A name of a kind in place of a command: it is started, and reached by its address.
    **{f"every-{kind}": {"one": kind} for kind, one in conformance.KINDS.items() if one.over == "http"},
    "two-eras": {"old": scripted("full", "legacy"), "new": scripted("full", "modern")},
    "two-everything": {"old": everything("legacy-stdio"), "new": "modern"},
    "old-tools-new-files": {"old": scripted("tools-only", "legacy"), "new": scripted("files", "modern")},
    "new-tools-old-files": {"new": scripted("tools-only", "modern"), "old": scripted("files", "legacy")},
    "one-is-dead": {"dead": (sys.executable, "-c", "pass"), "one": scripted("full", "dual")},
    "many": {
        **{f"{variant}-{era}": scripted(variant, era) for variant in VARIANTS for era in ("legacy", "modern")},
        "every": everything("dual-stdio"),
    },
}


def config(name: str, folder: Path, running: ExitStack) -> Path:
    """The configuration of a combination; servers with addresses are started."""
    lines = [PATIENT]
    for server, how in COMBINATIONS[name].items():
        need(Path(conformance.KINDS[how].command[0] if isinstance(how, str) else how[0]))
        if isinstance(how, str):
            url, _ = running.enter_context(conformance.upstream(conformance.KINDS[how], folder))
            lines.append(f"[servers.{server}]\nurl = {json.dumps(url)}\n")
        else:
            lines.append(f"[servers.{server}]\ncommand = {json.dumps(how[0])}\nargs = {json.dumps(how[1:])}\n")
    path = folder / "troth.toml"
    path.write_text("\n".join(lines), "utf-8")
    return path


def audited(base: Path, name: str, way: str) -> TargetReport:
    """The report about the gateway in front of a combination, over HTTP or stdio."""
    folder = base / f"{name}-{way}"
    folder.mkdir()
    with ExitStack() as running:
        path = config(name, folder, running)
        target: Target
        if way == "stdio":
            target = StdioTarget(name=name, command=(sys.executable, "-m", "troth", "serve", str(path), "--stdio"))
        else:
            port, log = running.enter_context(held_port()), folder / "gateway.log"
            process = running.enter_context(conformance.running(conformance.serve(path, port), log))
            conformance.wait_for_port(process, port, log)
            target = HttpTarget(name=name, url=f"http://127.0.0.1:{port}/mcp")
        return run([target], REVISIONS, LIMITS, jobs=1)[name]


def faults(report: TargetReport) -> list[str]:
    """What the audit holds against a gateway, in words."""
    found = [f"{one.code}: {one.message}" for one in report.findings if one.severity is Severity.ERROR]
    for revision, one in report.revisions.items():
        bad = [row.id for row in one.rows if row.verdict in {Verdict.BROKEN, Verdict.LEAKED}]
        found += [f"{revision} {told(one, [row])}" for row in bad]
        found += [f"{revision} {each.code}: {each.message}" for each in one.findings if each.severity is Severity.ERROR]
    return found


@pytest.fixture(scope="module")
def reports(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ahead]:
    wanted = selected(request, "test_the_gateway_keeps_what_it_promises", "name", "way")
    made = Ahead(partial(audited, tmp_path_factory.mktemp("gateway-audit")), wanted)
    yield made
    made.close()


@pytest.mark.parametrize("way", ["http", "stdio"])
@pytest.mark.parametrize("name", COMBINATIONS)
def test_the_gateway_keeps_what_it_promises(reports: Ahead, name: str, way: str) -> None:
    report = reports[name, way]
    assert report.outcome is Outcome.CHECKED, report.reason
    assert faults(report) == []
