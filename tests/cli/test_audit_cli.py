"""`troth audit` against an engine that hands out a ready report: options, output, exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from types import ModuleType
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from click.testing import CliRunner, Result

from troth.audit.model import (
    Finding,
    Outcome,
    RevisionReport,
    RowResult,
    Severity,
    TargetReport,
    Verdict,
)
from troth.audit.options import Event, Options
from troth.audit.report import FORMATS
from troth.audit.targets import HttpTarget, StdioTarget, Target
from troth.audit.wire.types import Limits
from troth.cli import main
from troth.cli.progress import Progress
from troth.register import register

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REVISION = "2025-11-25"


def row(identifier: str, verdict: Verdict, severity: Severity) -> RowResult:
    known = register().by_id[identifier]
    return RowResult(
        id=identifier, path=known.path, side=known.side.value, verdict=verdict, severity=severity, message="As found."
    )


KEPT = row("CAP-19", Verdict.KEPT, Severity.NONE)
EMPTY = row("CAP-14", Verdict.EMPTY, Severity.NOTE)
LEAKED = row("CAP-25", Verdict.LEAKED, Severity.WARNING)
BROKEN = row("CAP-17", Verdict.BROKEN, Severity.ERROR)


def report(target: Target, *rows: RowResult, **changes: Any) -> TargetReport:
    part = RevisionReport(
        outcome=Outcome.CHECKED, negotiated=REVISION, era="legacy", declared={}, rows=rows, findings=()
    )
    values: dict[str, Any] = {
        "name": target.name,
        "transport": target.transport,
        "address": target.address,
        "server_info": {"name": "s", "version": "1"},
        "outcome": Outcome.CHECKED,
        "revisions": {REVISION: part},
        "started_at": "2026-11-29T12:00:00Z",
    }
    return TargetReport(**{**values, **changes})


class Engine:
    """Stands in for ``troth.audit.engine``: remembers what it was asked, and answers with these rows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: tuple[RowResult, ...] = (KEPT,)
        self.changes: dict[str, Any] = {}
        self.act: Callable[[], object] = lambda: None
        self.targets: tuple[Target, ...] = ()
        self.options: Options | None = None
        module = ModuleType("troth.audit.engine")
        module.audit = self.audit  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "troth.audit.engine", module)

    async def audit(
        self, targets: tuple[Target, ...], options: Options, on_event: Callable[[Event], None]
    ) -> tuple[TargetReport, ...]:
        self.targets, self.options = targets, options
        on_event(Event(target=targets[0].name, revision=REVISION, step=1, steps=2, text="asking"))
        result = self.act()
        if result is not None:
            await anyio.sleep(60)
        return tuple(report(target, *self.rows, **self.changes) for target in targets)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    return Engine(monkeypatch)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["audit", *arguments])


def test_everything_after_the_first_bare_dashes_is_the_command(engine: Engine) -> None:
    result = run("--revision", REVISION, "--", "server", "--format", "json", "--", "-v", "--help")
    assert result.exit_code == 0
    assert engine.targets == (StdioTarget(name="server", command=("server", "--format", "json", "--", "-v", "--help")),)
    assert "Capabilities" in result.stdout


def test_every_option_reaches_the_engine(engine: Engine, tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text('{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}', "utf-8")
    result = run(
        ":8000/mcp", "--config", str(config), "--server", "b", "--header", "A: b", "--env", "C=d", "--revision",
        "2026-07-28", "--revision", "2024-11-05", "--as", "opencode-v1", "--active", "--change-tool", 'add={"n": 1}',
        "--touch", "touch 'a b'", "--timeout", "1.5", "--start-timeout", "20", "--jobs", "3",
    )  # fmt: skip
    assert result.exit_code == 0
    http, stdio = engine.targets
    assert http == HttpTarget(name="127.0.0.1:8000/mcp", url="http://127.0.0.1:8000/mcp", headers={"A": "b"})
    assert isinstance(stdio, StdioTarget)
    assert (stdio.name, stdio.command, stdio.env) == ("b", ("y",), {"C": "d"})
    assert engine.options == Options(
        revisions=("2024-11-05", "2026-07-28"),
        active=True,
        change_tool="add",
        change_arguments={"n": 1},
        touch=("touch", "a b"),
        profile="opencode-v1",
        limits=Limits(method=1.5, start=20.0),
        jobs=3,
    )


def test_without_options_all_revisions_are_asked_and_nothing_is_called(engine: Engine) -> None:
    assert run("--change-tool", "add", "--", "server").exit_code == 0
    assert engine.options == Options(revisions=register().revisions, change_tool="add")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "No target."),
        (["--"], "The command after -- is empty"),
        (["--revision", "2025-11-26", "--", "x"], "--revision: no revision '2025-11-26'. Did you mean 2025-11-25?"),
        (["--revision", "latest", "--", "x"], "Known: 2024-11-05, 2025-03-26"),
        (["--as", "opencode", "--", "x"], "--as: no host profile 'opencode'. Did you mean opencode-v"),
        (["--change-tool", "=1", "--", "x"], "--change-tool: name the tool"),
        (["--change-tool", "a", "--change-tool", "b", "--", "x"], "'--change-tool': give it once, not 2 times"),
        (["--touch", "true", "--touch", "true", "--", "x"], "'--touch': give it once, not 2 times"),
        (["--as", "lootbox", "--as", "opencode-v1", "--", "x"], "'--as': give it once, not 2 times"),
        (["--change-tool", "a={", "--", "x"], "--change-tool a: the arguments are not JSON"),
        (["--change-tool", "a=[]", "--", "x"], "must be a JSON object"),
        (["--touch", "'", "--", "x"], "--touch: not a command line: No closing quotation"),
        (["--touch", " ", "--", "x"], "--touch: the command is empty"),
        (["--touch", "no-such-program a", "--", "x"], "--touch: there is no program 'no-such-program'"),
        (["--anchor", ":3", "--", "x"], "--anchor: write FILE or FILE:LINE"),
        (["--anchor", "a:0", "--", "x"], "--anchor: write FILE or FILE:LINE"),
        (["--timeout", "0", "--", "x"], "--timeout"),
        (["--format", "xml", "--", "x"], "'xml' is not one of 'text'"),
        (["--frmat", "xml", "--", "x"], "No such option"),
        (["--baseline", "none.json", "--", "x"], "none.json: the baseline cannot be read"),
        (["--server", "a"], "--config FILE"),
    ],
)
@pytest.mark.usefixtures("engine")
def test_wrong_usage_exits_with_2_and_says_what_to_do(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert result.stdout == ""


@pytest.mark.behaviour("AUD-A14")
@pytest.mark.parametrize(
    ("rows", "fail_on", "status"),
    [
        ((KEPT,), "note", 0),
        ((KEPT, EMPTY), "error", 0),
        ((KEPT, EMPTY), "warning", 0),
        ((KEPT, EMPTY), "note", 1),
        ((LEAKED,), "error", 0),
        ((LEAKED,), "warning", 1),
        ((BROKEN,), "error", 1),
        ((BROKEN,), "note", 1),
        ((BROKEN,), "never", 0),
    ],
)
def test_the_exit_status_follows_severity(
    engine: Engine, rows: tuple[RowResult, ...], fail_on: str, status: int
) -> None:
    engine.rows = rows
    assert run("--fail-on", fail_on, "--", "x").exit_code == status


@pytest.mark.parametrize(
    ("outcome", "reason", "told"),
    [
        (Outcome.DID_NOT_START, "exit status 1 \x1b[1m", "exit status 1 \\x1b[1m"),
        (Outcome.UNREACHABLE, "refused", "refused"),
        (Outcome.NOT_SERVED, "", "none of the revisions asked is served"),
    ],
)
def test_a_target_that_could_not_be_checked_exits_with_3_and_a_json_line(
    engine: Engine, tmp_path: Path, outcome: Outcome, reason: str, told: str
) -> None:
    engine.changes = {"outcome": outcome, "reason": reason}
    result = run("--", "server")
    assert result.exit_code == 3
    assert [json.loads(line) for line in result.stderr.splitlines()] == [
        {"error": outcome.value, "target": "server", "reason": told}
    ]
    baseline = tmp_path / "baseline.json"
    assert run("--write-baseline", str(baseline), "--", "server").exit_code == 3
    assert not baseline.exists()


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_goes_to_standard_output_or_a_file(engine: Engine, tmp_path: Path, form: str) -> None:
    engine.rows = (BROKEN,)
    printed = run("--format", form, "--", "x")
    path = tmp_path / "report"
    path.write_text("old", "utf-8")
    written = run("--format", form, "--output", str(path), "--", "x")
    assert (printed.exit_code, written.exit_code) == (1, 1)
    assert (printed.stderr, written.stderr, written.stdout) == ("", "", "")
    assert "CAP-17" in printed.stdout
    assert "CAP-17" in path.read_text("utf-8")
    assert os.listdir(tmp_path) == ["report"]  # noqa: PTH208


def test_the_json_report_tells_version_time_and_command_line_without_secrets(engine: Engine) -> None:
    arguments = [
        "--format", "json", "--env", "A=env-secret-1", "--env=B=b", "--", "x",
        "--token", "cli-secret-2", "env-secret-1",
    ]  # fmt: skip
    result = run(*arguments)
    value = json.loads(result.stdout)
    assert value["commandLine"] == [
        "troth", "audit", "--format", "json", "--env", "A=***", "--env=B=***", "--", "x", "--token", "***", "***",
    ]  # fmt: skip
    assert value["startedAt"].endswith("Z")
    assert value["troth"]
    assert "secret" not in result.stdout
    header = run("--format", "json", "--header", "X-A: header-secret", "--header=X-B: b", ":1")
    assert "header-secret" not in header.stdout
    assert json.loads(header.stdout)["commandLine"][4:7] == ["--header", "X-A:***", "--header=X-B:***"]
    assert engine.targets[0] == HttpTarget(
        name="127.0.0.1:1", url="http://127.0.0.1:1", headers={"X-A": "header-secret", "X-B": "b"}
    )


def test_a_baseline_is_written_then_suppresses_then_goes_stale(engine: Engine, tmp_path: Path) -> None:
    path = str(tmp_path / "baseline.json")
    engine.rows = (KEPT, BROKEN)
    assert run("--write-baseline", path, "--", "x").exit_code == 0
    suppressed = run("--baseline", path, "--", "x")
    assert suppressed.exit_code == 0
    assert "1 finding suppressed: CAP-17 broken" in suppressed.stdout
    engine.rows = (KEPT, BROKEN, LEAKED)
    assert run("--baseline", path, "--fail-on", "warning", "--", "x").exit_code == 1
    engine.rows = (KEPT,)
    stale = run("--baseline", path, "--fail-on", "never", "--", "x")
    assert stale.exit_code == 1
    assert "x 2025-11-25 CAP-17 broken: in the baseline and no longer found" in stale.stdout


def test_sarif_points_at_the_configuration_or_the_anchor(engine: Engine, tmp_path: Path) -> None:
    engine.rows = (BROKEN,)
    config = tmp_path / "mcp.json"
    config.write_text('{"mcpServers": {\n"a": {"command": "x"}}}', "utf-8")

    def place(*arguments: str) -> tuple[str, int]:
        value = json.loads(run("--format", "sarif", *arguments).stdout)
        physical = value["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
        return physical["artifactLocation"]["uri"], physical["region"]["startLine"]

    assert place("--config", str(config)) == (config.as_uri(), 2)
    assert place("--config", str(config), "--anchor", "ci/mcp.json:9") == ("ci/mcp.json", 9)
    assert place("--anchor", "ci/mcp.json", "--", "x") == ("ci/mcp.json", 1)
    assert place("--", "x") == ("mcp.json", 1)


@pytest.mark.parametrize("option", ["--output", "--write-baseline"])
def test_a_file_that_cannot_be_written_exits_with_3(engine: Engine, tmp_path: Path, option: str) -> None:
    for path, reason in (
        (str(tmp_path / "none" / "report"), "there is no folder"),
        (str(tmp_path), "is a folder"),
        ("/dev/full", "No space left on device"),
    ):
        result = run(option, path, "--", "x")
        assert result.exit_code == 3
        error = json.loads(result.stderr)
        assert error["error"] == "output"
        assert error["reason"].startswith(path)
        assert reason in error["reason"]
    assert list(tmp_path.iterdir()) == []
    assert run(option, "/dev/null", "--", "x").exit_code == 0
    assert engine.targets


def test_a_report_is_replaced_whole_or_not_at_all(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report"
    path.write_text("old", "utf-8")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert run("--output", str(path), "--", "x").exit_code == 3
    assert path.read_text("utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]
    assert engine.targets


def test_a_fault_of_ours_is_one_line_and_exit_3(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ExceptionGroup("many", [ValueError("odd secret-value")])

    engine.act = fail
    result = run("--env", "A=secret-value", "--", "x")
    assert result.exit_code == 3
    assert json.loads(result.stderr) == {
        "error": "internal",
        "target": None,
        "reason": "a fault in Troth itself: ValueError: odd *** (TROTH_DEBUG=1 shows where)",
    }
    monkeypatch.setenv("TROTH_DEBUG", "1")
    assert "Traceback" in run("--", "x").stderr


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_the_audit_without_a_traceback(engine: Engine, number: signal.Signals, status: int) -> None:
    def interrupt() -> bool:
        os.kill(os.getpid(), number)
        return True

    engine.act = interrupt
    result = run("--", "x")
    assert (result.exit_code, result.stdout, result.stderr) == (status, "", "")


def test_quiet_and_verbose_change_the_text(engine: Engine) -> None:
    engine.rows = (BROKEN,)
    assert "Capabilities" not in run("--quiet", "--", "x").stdout
    assert "Capabilities" in run("--verbose", "--", "x").stdout


def test_colours_follow_the_terminal_and_no_color(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def colours() -> bool:
        result = CliRunner().invoke(main, ["audit", "--", "x"], color=True)
        return "\x1b[" in result.stdout

    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    assert not colours()
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert colours()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not colours()
    assert engine.targets


class Terminal:
    """A standard error that says it is a terminal."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None: ...


def test_progress_is_shown_only_at_a_terminal_and_cleaned(monkeypatch: pytest.MonkeyPatch) -> None:
    event = Event(target="a\x1b[2J", revision=REVISION, step=1, steps=4, text="tools")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with Progress(1, wanted=True) as shown:
        shown.event(event)
        shown.event(event)
    assert "a\\x1b[2J 2025-11-25 tools" in terminal.text
    silent = Terminal()
    monkeypatch.setattr(sys, "stderr", silent)
    with Progress(1, wanted=False) as shown:
        shown.event(event)
    assert silent.text == ""


def fresh(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60, check=False
    )


def test_help_imports_nothing_heavy() -> None:
    done = fresh("""
        import sys
        from troth.cli import main
        main(["audit", "--help"], standalone_mode=False)
        heavy = {"rich", "aiohttp", "jinja2", "mcp", "pydantic", "starlette", "anyio"} & set(sys.modules)
        print("HEAVY", sorted(heavy))
    """)
    assert "HEAVY []" in done.stdout
    assert "--write-baseline FILE" in done.stdout


STUB = """
    import sys, types
    from troth.audit.model import *
    async def audit(targets, options, on_event):
        return tuple(TargetReport(name=t.name, transport="stdio", address="x", server_info=None,
                     outcome=Outcome.CHECKED, revisions={}, started_at="") for t in targets)
    module = types.ModuleType("troth.audit.engine")
    module.audit = audit
    sys.modules["troth.audit.engine"] = module
    from troth.cli import main
"""


def test_a_reader_that_leaves_early_is_no_fault() -> None:
    done = fresh(
        STUB
        + """
    import os
    reading, writing = os.pipe()
    os.close(reading)
    os.dup2(writing, 1)
    main(["audit", "--", "x"])
    """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_standard_output_exits_with_3() -> None:
    done = fresh(
        STUB
        + """
    import os
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    main(["audit", "--", "x"])
    """
    )
    assert done.returncode == 3
    assert json.loads(done.stderr) == {
        "error": "output", "target": None, "reason": "standard output: No space left on device",
    }  # fmt: skip


def test_findings_of_a_target_as_a_whole_count_too(engine: Engine) -> None:
    finding = Finding(code="process.died", severity=Severity.ERROR, message="gone")
    engine.changes = {"findings": (finding,)}
    assert run("--", "x").exit_code == 1
