"""`troth audit`: compare what servers declare with what they deliver."""

from __future__ import annotations

import difflib
import json
import math
import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from troth.audit.report import FORMATS
from troth.cli.output import NotWritten, deliver, screen, write

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from anyio.abc import TaskStatus

    from troth.audit.baseline import Entry
    from troth.audit.model import AuditReport, Severity, TargetReport
    from troth.audit.options import Options
    from troth.audit.targets import Place, Target

KEPT, FINDINGS, USAGE, UNCHECKED, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit status: promises kept; findings at or above --fail-on, or a stale baseline; wrong usage; a target that could
not be checked, a report that could not be written or a fault of Troth; Ctrl-C."""

_ARGUMENTS, _COMMAND = "troth.audit.arguments", "troth.audit.command"


class _Audit(click.Command):
    """Everything after the first bare ``--`` is the command of a server, whatever it looks like."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_ARGUMENTS] = tuple(args)
        if "--" in args:
            split = args.index("--")
            ctx.meta[_COMMAND] = tuple(args[split + 1 :]) or ("",)
            args = args[:split]
        return super().parse_args(ctx, args)


@dataclass(frozen=True, kw_only=True)
class _Call:
    """The options of one call as click read them; names as on the command line."""

    targets: tuple[str, ...]
    config: str | None
    server: tuple[str, ...]
    name: str | None
    header: tuple[str, ...]
    env: tuple[str, ...]
    revision: tuple[str, ...]
    profile: str | None
    active: bool
    change_tool: str | None
    touch: str | None
    timeout: float | None
    start_timeout: float | None
    jobs: int
    format: str
    output: str | None
    fail_on: str
    baseline: str | None
    write_baseline: str | None
    anchor: str | None
    verbose: bool
    quiet: bool


LONGEST = 86_400.0
"""Seconds that may be asked for as a wait: a day, so that every wait has an end."""


class _Seconds(click.FloatRange):
    """A wait: more than nothing, and not for ever."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds: float = super().convert(value, param, ctx)
        return seconds if math.isfinite(seconds) else self.fail(f"{value} is no number of seconds.", param, ctx)


_POSITIVE = _Seconds(min=0, min_open=True, max=LONGEST)


def _once(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> str | None:
    """The value of an option whose values do not add up; one of several would be taken without a word otherwise."""
    if len(given) > 1:
        raise click.BadParameter(f"give it once, not {len(given)} times; for the others run the audit again.")
    return given[0] if given else None


@click.command(
    cls=_Audit,
    short_help="Compare what MCP servers declare with what they deliver.",
    options_metavar="[OPTIONS]",
    epilog="Exit status: 0 kept, 1 findings at or above --fail-on or a stale baseline, 2 wrong usage, 3 a target could "
    "not be checked (the reason is a JSON line on standard error), 130 interrupted.",
)
@click.argument("targets", nargs=-1, metavar="[TARGET]... [-- COMMAND ARGS...]")
@click.option(
    "--config",
    multiple=True,
    callback=_once,
    metavar="FILE",
    help="Audit the servers of a host's configuration (mcp.json).",
)
@click.option("--server", multiple=True, metavar="NAME", help="Only this server of --config; repeatable.")
@click.option("--name", metavar="NAME", help="What reports call the only target.")
@click.option("--header", multiple=True, metavar="'K: V'", help="Send this header to HTTP targets; repeatable.")
@click.option("--env", multiple=True, metavar="K=V", help="Set this variable for started targets; repeatable.")
@click.option("--revision", multiple=True, metavar="DATE", help="Only this protocol revision; repeatable.")
@click.option(
    "--as",
    "profile",
    multiple=True,
    callback=_once,
    metavar="PROFILE",
    help="Also show what this host would see and use.",
)
@click.option("--active", is_flag=True, help="Allow calls of tools that may have effects.")
@click.option(
    "--change-tool",
    multiple=True,
    callback=_once,
    metavar="NAME[=JSON]",
    help="Call this tool, which changes a list or resource.",
)
@click.option(
    "--touch",
    multiple=True,
    callback=_once,
    metavar="COMMAND",
    help="Run this command, which changes a list or resource.",
)
@click.option("--timeout", type=_POSITIVE, metavar="SECONDS", help="Longest wait for one answer.  [default: 10]")
@click.option("--start-timeout", type=_POSITIVE, metavar="SECONDS", help="The same for the first.  [default: 60]")
@click.option("--jobs", type=click.IntRange(1), default=1, metavar="N", help="Audit this many targets at once.")
@click.option("--format", type=click.Choice([*FORMATS]), default="text", show_default=True, help="Form of the report.")
@click.option("--output", "-o", metavar="FILE", help="Write the report to this file.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "note", "never"]),
    default="error",
    show_default=True,
    help="Least severity that makes the exit status 1.",
)
@click.option("--baseline", metavar="FILE", help="Suppress the findings in this file; stale entries fail.")
@click.option("--write-baseline", metavar="FILE", help="Accept the present findings: write them, exit 0.")
@click.option("--anchor", metavar="FILE[:LINE]", help="Where SARIF pins findings, instead of the configuration.")
@click.option("--verbose", "-v", is_flag=True, help="Show all evidence in full length.")
@click.option("--quiet", "-q", is_flag=True, help="No progress; as text only findings and summary.")
@click.pass_context
def command(ctx: click.Context, **options: Any) -> None:
    """Compare what MCP servers declare with what they deliver, in every protocol revision.

    TARGET is a URL (http://..., :8000/mcp, localhost:8000/mcp) or a Python server object (server.py:mcp). A server that
    is to be started stands after --, and servers of a host's configuration come with --config. Several at once are
    compared. Nothing is called that may have effects, unless --active, --change-tool or --touch allow it.
    """
    from troth.audit.options import UsageError

    try:
        status = _Run(_Call(**options), ctx.meta[_ARGUMENTS], ctx.meta.get(_COMMAND, ())).status()
    except UsageError as error:
        raise click.UsageError(str(error), ctx) from None
    ctx.exit(status)


class _Run:
    """One audit from options to exit status.

    Raises:
        UsageError: The options are wrong.
    """

    def __init__(self, call: _Call, arguments: Sequence[str], server_command: Sequence[str]) -> None:
        from troth.audit.baseline import read_baseline
        from troth.audit.targets import parse_targets

        self.call = call
        self.targets: tuple[Target, ...] = parse_targets(
            call.targets,
            server_command,
            config=call.config,
            servers=call.server,
            headers=call.header,
            env=call.env,
            name=call.name,
        )
        self.options = _options(call)
        self.anchor = _anchor(call.anchor)
        self.baseline = read_baseline(call.baseline) if call.baseline is not None else None
        self.secrets = tuple(dict.fromkeys(secret for target in self.targets for secret in target.secrets))
        self.command_line = ("troth", "audit", *_masked(arguments, self.secrets))

    def status(self) -> int:
        """Runs the audit, writes what was asked for, and tells the exit status."""
        for path in (self.call.output, self.call.write_baseline):
            if path is not None and not Path(path).absolute().parent.is_dir():
                return self._failed("output", None, f"{path}: there is no folder {Path(path).parent}")
        try:
            return self._judge(self._audit())
        except _Interrupted as interrupted:
            return interrupted.status
        except NotWritten as error:
            return self._failed("output", None, str(error))
        except Exception as error:
            return self._internal(error)

    def _audit(self) -> AuditReport:
        from datetime import UTC, datetime

        from troth._version import version
        from troth.audit.model import AuditReport

        started = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        reports = _run(self.targets, self.options, progress=not self.call.quiet)
        return AuditReport(troth=version, started_at=started, command_line=self.command_line, targets=reports)

    def _judge(self, report: AuditReport) -> int:
        from troth.audit.baseline import apply_baseline, to_text
        from troth.audit.model import Severity
        from troth.audit.report import render

        applied = apply_baseline(report, self.baseline) if self.baseline is not None else None
        shown = applied.report if applied else report
        suppressed: frozenset[Entry] = applied.suppressed if applied else frozenset()
        fail_on = None if self.call.fail_on == "never" else Severity(self.call.fail_on)
        colour, width = (False, 100) if self.call.output else screen()
        text = render(
            shown,
            self.call.format,
            width=width,
            colour=colour,
            verbose=self.call.verbose,
            quiet=self.call.quiet,
            anchor=self.anchor,
            places={target.name: target.place for target in self.targets if target.place is not None},
            secrets=self.secrets,
            suppressed=suppressed,
            fail_on=fail_on,
        )
        deliver(text, self.call.output, machine=self.call.format != "text")
        unchecked = [target for target in report.targets if not _checked(target)]
        for target in unchecked:
            self._failed(target.outcome.value, target.name, target.reason or "none of the revisions asked is served")
        if unchecked:
            if self.call.write_baseline:
                self._failed("baseline", None, f"{self.call.write_baseline}: not written, a target was not checked")
            return UNCHECKED
        if self.call.write_baseline:
            write(self.call.write_baseline, to_text(report))
            return KEPT
        failing = fail_on is not None and _reached(shown, suppressed, fail_on)
        return FINDINGS if failing or shown.stale else KEPT

    def _failed(self, error: str, target: str | None, reason: str) -> int:
        """Says on standard error, as one JSON line, what could not be done."""
        from troth.audit.masking import mask_text
        from troth.audit.report.clean import clean_name, line

        name = None if target is None else clean_name(target, self.secrets)
        shown = line(mask_text(reason, self.secrets))
        click.echo(json.dumps({"error": error, "target": name, "reason": shown}), err=True)
        return UNCHECKED

    def _internal(self, error: Exception) -> int:
        if os.environ.get("TROTH_DEBUG"):
            import traceback

            traceback.print_exception(error)
        cause: BaseException = error
        while isinstance(cause, BaseExceptionGroup):
            cause = cast("BaseExceptionGroup[BaseException]", cause).exceptions[0]
        what = f"a fault in Troth itself: {type(cause).__name__}: {cause} (TROTH_DEBUG=1 shows where)"
        return self._failed("internal", None, what)


class _Interrupted(Exception):  # noqa: N818
    """The audit was stopped by a signal."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def _options(call: _Call) -> Options:
    from dataclasses import replace

    from troth.audit.options import Options
    from troth.audit.wire.types import Limits
    from troth.register import register

    known = register().revisions
    for revision in call.revision:
        _must_be_known(revision, known, "--revision", "revision")
    if call.profile is not None:
        _must_be_known(call.profile, [*register().hosts], "--as", "host profile")
    tool, arguments = _change_tool(call.change_tool)
    limits = Limits()
    return Options(
        revisions=tuple(revision for revision in known if not call.revision or revision in call.revision),
        active=call.active,
        change_tool=tool,
        change_arguments=arguments,
        touch=_touch(call.touch),
        profile=call.profile,
        limits=replace(limits, method=call.timeout or limits.method, start=call.start_timeout or limits.start),
        jobs=call.jobs,
    )


def _must_be_known(given: str, known: Sequence[str], option: str, what: str) -> None:
    from troth.audit.options import UsageError

    if given in known:
        return
    close = difflib.get_close_matches(given, known, 1)
    mend = f"Did you mean {close[0]}?" if close else f"Known: {', '.join(known)}."
    raise UsageError(f"{option}: no {what} {given!r}. {mend}")


def _change_tool(given: str | None) -> tuple[str | None, Mapping[str, Any] | None]:
    from troth.audit.options import UsageError

    if given is None:
        return None, None
    name, equals, text = given.partition("=")
    if not name:
        raise UsageError("--change-tool: name the tool, as in: --change-tool add or --change-tool 'add={\"n\": 1}'")
    if not equals:
        return name, None
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--change-tool {name}: the arguments are not JSON: {error}") from None
    if not isinstance(value, dict):
        raise UsageError(f"--change-tool {name}: the arguments must be a JSON object, as in '{name}={{\"n\": 1}}'")
    return name, cast("dict[str, Any]", value)


def _touch(given: str | None) -> tuple[str, ...] | None:
    from troth.audit.options import UsageError

    if given is None:
        return None
    try:
        words = tuple(shlex.split(given))
    except ValueError as error:
        raise UsageError(f"--touch: not a command line: {error}: {given!r}") from None
    if not words:
        raise UsageError("--touch: the command is empty.")
    if shutil.which(words[0]) is None:
        raise UsageError(f"--touch: there is no program {words[0]!r}; check the spelling, and that it can be executed.")
    return words


def _anchor(given: str | None) -> Place | None:
    from troth.audit.options import UsageError
    from troth.audit.targets import Place

    if given is None:
        return None
    file, colon, line = given.rpartition(":")
    if colon and line.isdecimal():
        given, number = file, int(line)
    else:
        number = 1
    if not given or number < 1:
        raise UsageError("--anchor: write FILE or FILE:LINE, lines counted from 1.")
    return Place(given, number)


def _masked(arguments: Sequence[str], secrets: Sequence[str]) -> tuple[str, ...]:
    """The arguments as a report may show them: values of --header and --env gone, like every known secret."""
    from troth.audit.masking import MASK, mask_words

    shown: list[str] = []
    mark = ""
    for index, word in enumerate(arguments):
        if word == "--":
            return (*mask_words(shown, secrets), *mask_words(arguments[index:], secrets))
        option, equals, value = word.partition("=")
        own = {"--header": ":", "--env": "="}.get(option, "")
        if mark:
            name, found, _ = word.partition(mark)
            shown.append(f"{name}{found}{MASK}")
        elif own and equals:
            name, found, _ = value.partition(own)
            shown.append(f"{option}={name}{found}{MASK}")
        else:
            shown.append(word)
        mark = own if own and not equals and not mark else ""
    return mask_words(shown, secrets)


def _reached(report: AuditReport, suppressed: frozenset[Entry], fail_on: Severity) -> bool:
    """Whether any fault that the baseline does not suppress is as severe as ``fail_on``."""
    from troth.audit.report.common import View
    from troth.audit.verdicts import SEVERITY_RANK

    faults = View(report=report, suppressed=suppressed).faults
    return any(SEVERITY_RANK[item.severity] >= SEVERITY_RANK[fail_on] for item in faults)


def _checked(target: TargetReport) -> bool:
    from troth.audit.model import Outcome

    return target.outcome is Outcome.CHECKED


def _run(targets: tuple[Target, ...], options: Options, *, progress: bool) -> tuple[TargetReport, ...]:
    """Runs the engine; a signal stops it in good order.

    Raises:
        _Interrupted: Ctrl-C, or the signal to end.
    """
    import signal

    import anyio

    from troth.audit.engine import audit
    from troth.cli.progress import Progress

    caught: list[int] = []

    async def watch(scope: anyio.CancelScope, *, task_status: TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            async for number in signals:
                caught.append(number)
                scope.cancel()
                return

    async def run() -> tuple[TargetReport, ...]:
        reports: tuple[TargetReport, ...] = ()
        async with anyio.create_task_group() as group:
            await group.start(watch, group.cancel_scope)
            with Progress(len(targets), wanted=progress) as shown:
                reports = await audit(targets, options, shown.event)
            group.cancel_scope.cancel()
        return reports

    try:
        reports = anyio.run(run)
    except KeyboardInterrupt:
        raise _Interrupted(INTERRUPTED) from None
    if caught:
        raise _Interrupted(128 + caught[0])
    return reports
