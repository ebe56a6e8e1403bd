"""Runs an audit: targets, revisions, conversations, probes in their order, verdicts for every row."""

from __future__ import annotations

import os
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import anyio
import msgspec

from troth.audit import across, era, hostview
from troth.audit.context import Context, fault, mapping
from troth.audit.model import Finding, Outcome, RevisionReport, TargetReport, Verdict
from troth.audit.options import Event, Options
from troth.audit.probes import (
    asks,
    completions,
    declaration,
    experimental,
    extensions,
    gating,
    list_changed,
    lists,
    logging,
    prompts,
    protocol,
    provoke,
    resources,
    subscribe,
    tasks_core,
    tasks_extension,
    tools,
)
from troth.audit.wire.connect import answer_all, answer_none, connect, open_session
from troth.audit.wire.dialect import META, declarable
from troth.audit.wire.types import Failure
from troth.capabilities import read_server
from troth.register import Era, Side, register
from troth.wire.errors import LinkError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from troth.audit.context import Answer
    from troth.audit.targets import Target
    from troth.audit.wire.session import Session
    from troth.audit.wire.types import Reply

PROBES: tuple[tuple[str, Callable[[Context], Awaitable[None]]], ...] = (
    ("protocol", protocol.probe),
    ("lists", lists.learn),
    ("subscriptions", subscribe.start),
    ("lists as watched", list_changed.start),
    ("log level", logging.start),
    ("calls", provoke.probe),
    ("tools", tools.probe),
    ("prompts", prompts.probe),
    ("resources", resources.probe),
    ("completions", completions.probe),
    ("logging", logging.probe),
    ("tasks", tasks_core.probe),
    ("tasks extension", tasks_extension.probe),
    ("lists again", lists.again),
    ("list changes", list_changed.probe),
    ("updates", subscribe.probe),
    ("extensions", extensions.probe),
    ("experimental", experimental.probe),
    ("questions", asks.probe),
    ("gating", gating.probe),
    ("declaration", declaration.probe),
)
"""The probes in their order: what provokes comes before what judges by everything seen."""

AT_ONCE = 2
"""Revisions of one target that open at once: starting costs a processor each. The conversations then run side by
side, since they mostly wait."""
SILENCE = 3.0
"""A modern target may take so many times as long for its first answer as it took for the legacy handshake."""


@dataclass(slots=True)
class _Run:
    """One target while it is audited."""

    target: Target
    options: Options
    tell: Callable[[Event], None]
    started: float = field(default_factory=time.monotonic)
    connections: int = 0
    step: int = 0
    answered: anyio.Event = field(default_factory=anyio.Event)
    """Set when a legacy handshake was answered: the target has started."""
    took: float = 0.0
    patience: float | None = None
    """Seconds for an opening, once one went unanswered: a target that hangs need not cost the full budget each time."""
    handshake: tuple[Outcome, str] | None = None
    """What became of a legacy handshake that was made for its own sake."""
    silent: set[str] = field(default_factory=set[str])
    """Modern revisions whose opening got no answer at all."""
    sessions: list[Session] = field(default_factory=list["Session"])
    starting: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(AT_ONCE))

    def event(self, revision: str | None, text: str) -> None:
        self.step += 1
        steps = len(self.options.revisions) * (len(PROBES) + 1)
        self.tell(Event(target=self.target.name, revision=revision, step=self.step, steps=steps, text=text))

    async def enter(
        self, stack: AsyncExitStack, revision: str, capabilities: Mapping[str, Any], answer: Answer
    ) -> Session:
        self.connections += 1
        session = await stack.enter_async_context(
            connect(
                self.target,
                revision=revision,
                capabilities=capabilities,
                answer=answer,
                limits=self.options.limits,
                started=self.started,
                number=self.connections,
            )
        )
        self.sessions.append(session)
        return session

    async def enter_again(
        self, stack: AsyncExitStack, revision: str, capabilities: Mapping[str, Any], answer: Answer
    ) -> Session | None:
        """One more connection to a target that could be reached before; None if it cannot any more."""
        try:
            return await self.enter(stack, revision, capabilities, answer)
        except LinkError:
            return None


async def audit(
    targets: Sequence[Target], options: Options, on_event: Callable[[Event], None]
) -> tuple[TargetReport, ...]:
    """Audits every target in every revision that ``options`` names.

    Args:
        targets: What to audit; several are compared where they are one server on two transports.
        options: How far to go.
        on_event: Called for each step, for people who wait.

    Returns:
        One report per target, in their order. A target that cannot be reached has a report that says so.
    """
    reports: list[TargetReport | None] = [None] * len(targets)
    limiter = anyio.CapacityLimiter(max(1, options.jobs))

    async def one(index: int, target: Target) -> None:
        async with limiter:
            reports[index] = await _target(_Run(target, options, on_event))

    async with anyio.create_task_group() as tasks:
        for index, target in enumerate(targets):
            tasks.start_soon(one, index, target)
    return across.transports(tuple(cast("list[TargetReport]", reports)))


async def _target(run: _Run) -> TargetReport:
    now = datetime.now(UTC)
    revisions = run.options.revisions
    results: dict[str, RevisionReport] = {}
    infos: dict[str, Any] = {}
    # The modern revision and the newest legacy one go first: together they tell what the target is.
    modern = [name for name in revisions if register().era(name) is Era.MODERN]
    legacy = [name for name in reversed(revisions) if name not in modern]
    order = [*legacy[:1], *modern, *legacy[1:]]

    async def one(revision: str) -> None:
        results[revision], infos[revision] = await _revision(run, revision)

    async with anyio.create_task_group() as tasks:
        if modern and not legacy:
            tasks.start_soon(_pace, run)
        for revision in order:
            tasks.start_soon(one, revision)
    reports = _nothing_started(run, {revision: results[revision] for revision in revisions})
    outcome, reason = _outcome(reports)
    if outcome is Outcome.UNREACHABLE and run.handshake is not None and run.handshake[0] is Outcome.DID_NOT_START:
        outcome, reason = run.handshake
    return TargetReport(
        name=run.target.name,
        transport=run.target.transport,
        address=run.target.address,
        server_info=next((info for info in infos.values() if info is not None), None),
        outcome=outcome,
        reason=reason,
        revisions=reports,
        findings=(*across.eras(reports), *across.endings(run.sessions)),
        started_at=now.isoformat(timespec="seconds").replace("+00:00", "Z"),
        elapsed_ms=int((time.monotonic() - run.started) * 1000),
    )


def _nothing_started(run: _Run, reports: Mapping[str, RevisionReport]) -> dict[str, RevisionReport]:
    """Silence on the modern opening tells the era of a server that lives; one that never started has none."""
    legacy = [report for name, report in reports.items() if register().era(name) is Era.LEGACY]
    found = [(report.outcome, report.reason) for report in legacy] or [run.handshake]
    dead = [state[1] for state in found if state is not None and state[0] is Outcome.DID_NOT_START]
    if len(dead) != len(found):
        return dict(reports)
    changed = {"outcome": Outcome.DID_NOT_START, "reason": dead[0]}
    return {
        name: msgspec.structs.replace(report, **changed) if name in run.silent else report
        for name, report in reports.items()
    }


def _outcome(reports: Mapping[str, RevisionReport]) -> tuple[Outcome, str]:
    """The target's outcome: checked if any revision was; else the strongest reason why none could be."""
    outcomes = {report.outcome: report for report in reports.values()}
    for outcome in (Outcome.CHECKED, Outcome.UNREACHABLE, Outcome.DID_NOT_START):
        if outcome in outcomes:
            return outcome, "" if outcome is Outcome.CHECKED else outcomes[outcome].reason
    reasons = "; ".join(dict.fromkeys(report.reason for report in reports.values()))
    return Outcome.UNREACHABLE, f"it speaks none of the revisions asked for: {reasons}"


async def _pace(run: _Run) -> None:
    """Times a legacy handshake, so that silence on the modern one can be told from a slow start."""
    revision = register().newest(Era.LEGACY)
    async with AsyncExitStack() as stack:
        try:
            session = await run.enter(stack, revision, {}, answer_none)
        except LinkError:
            return
        await open_session(session)
        _note_start(run, session)
        run.handshake = _judged(session, era.judge_initialize)


def _note_start(run: _Run, session: Session) -> None:
    if session.opening is not None and session.opening.failure is Failure.TIMEOUT:
        run.patience = run.options.limits.method
    elif session.opening is not None:
        run.took = (session.opening.frames[-1].at - session.opening.frames[0].at) / 1000
        run.answered.set()


async def _revision(run: _Run, revision: str) -> tuple[RevisionReport, Any]:
    """One revision of a target; the second value is what the server says of itself."""
    begun = time.monotonic()
    run.event(revision, "opening")
    async with AsyncExitStack() as stack:
        try:
            async with run.starting:
                full = await run.enter(stack, revision, declarable(revision), answer_all)
                none = await run.enter(stack, revision, {}, answer_none) if full.era is Era.LEGACY else None
                await _open(run, full, none)
        except LinkError as error:
            outcome = Outcome.DID_NOT_START if run.target.transport == "stdio" else Outcome.UNREACHABLE
            return _unchecked(outcome, str(error), begun), None
        report, info = await _conversation(run, stack, revision, full, none)
    elapsed = int((time.monotonic() - begun) * 1000)
    return _timed(report, elapsed), info


def _timed(report: RevisionReport, elapsed: int) -> RevisionReport:
    return msgspec.structs.replace(report, elapsed_ms=elapsed)


async def _open(run: _Run, full: Session, none: Session | None) -> None:
    """Opens both sessions side by side. Silence of a modern one ends soon after a legacy handshake was answered."""
    async with anyio.create_task_group() as tasks:
        if none is not None:
            tasks.start_soon(open_session, none, run.patience)
            await open_session(full, run.patience)
            _note_start(run, full)
            return

        async def hurry() -> None:
            await run.answered.wait()
            await anyio.sleep(max(run.options.limits.method, SILENCE * run.took))
            full.give_up("server/discover")

        tasks.start_soon(hurry)
        await open_session(full, run.patience)
        tasks.cancel_scope.cancel()


def _judged(session: Session, judge: Callable[[Reply], tuple[Outcome, str]]) -> tuple[Outcome, str]:
    """What the opening says, with the server's own last words where it did not start."""
    reply = cast("Reply", session.opening)
    if session.dead and session.link.transport == "http" and not reply.ok:
        return Outcome.UNREACHABLE, f"`{reply.method}` gets no answer: {session.dead}"
    outcome, reason = judge(reply)
    if outcome is Outcome.CHECKED and session.negotiated is None:
        said = mapping(reply.result).get("protocolVersion")
        return Outcome.NOT_SERVED, f"`initialize` answers with protocol version {str(said)[:40]!r}"
    tail = session.link.stderr.strip()
    if tail and outcome is Outcome.DID_NOT_START:
        return outcome, f"{reason}. Its standard error ends: {tail[-600:]}"
    return outcome, reason


async def _conversation(
    run: _Run, stack: AsyncExitStack, revision: str, full: Session, none: Session | None
) -> tuple[RevisionReport, Any]:
    reply = cast("Reply", full.opening)
    legacy = full.era is Era.LEGACY
    outcome, reason = _judged(full, era.judge_initialize if legacy else era.judge)
    if outcome is not Outcome.CHECKED:
        if not legacy and reply.failure in (Failure.TIMEOUT, Failure.CLOSED):
            run.silent.add(revision)
        return _unchecked(outcome, reason, 0.0, protocol.unopened(full, reply)), None
    if none is not None and (none.opening is None or not none.opening.ok):
        none = None
    in_force = cast("str", full.negotiated)
    declared = read_server(mapping(reply.result).get("capabilities"), in_force)

    async def further(capabilities: Mapping[str, Any], answer: Answer) -> Session | None:
        session = await run.enter_again(stack, revision, capabilities, answer)
        if session is not None:
            await open_session(session)
        return session if session is not None and session.negotiated is not None else None

    ctx = Context(
        revision=in_force,
        declared=declared,
        options=run.options,
        full=full,
        none=none,
        reopen=lambda: further(declarable(revision), answer_all),
        open=further,
        fresh=lambda: run.enter_again(stack, revision, {}, answer_none),
    )
    if not legacy:
        ctx.none = await further({}, answer_none)
    await _guarded(ctx, "opening", _opening)
    for text, probe in PROBES:
        run.event(revision, text)
        await _guarded(ctx, text, probe)
    await _guarded(ctx, "host view", _host)
    await _guarded(ctx, "closing", _closing)
    _complete(ctx)
    declaration.deprecated(ctx)
    order = {row.id: index for index, row in enumerate(register().rows)}
    report = RevisionReport(
        outcome=Outcome.CHECKED,
        negotiated=in_force,
        era=ctx.era.value,
        declared=declared.raw,
        rows=tuple(sorted(ctx.rows.values(), key=lambda row: order[row.id])),
        findings=(*ctx.findings, *(fault(code, f"{more} more of this kind.") for code, more in ctx.unlisted.items())),
        host_view=ctx.view,
    )
    return report, _server_info(reply.result)


async def _opening(ctx: Context) -> None:
    """What the handshakes show."""
    protocol.opening(ctx, cast("Reply", ctx.full.opening))
    if ctx.none is not None:
        await protocol.unstable(ctx, ctx.none)
    if ctx.full.revision == register().newest(Era.LEGACY):
        await protocol.counter_offer(ctx)


async def _host(ctx: Context) -> None:
    """What the host of ``--as`` would see."""
    if ctx.options.profile is not None:
        ctx.view = await hostview.view(ctx, ctx.options.profile)


async def _closing(ctx: Context) -> None:
    """Ends what is open, and judges what the transcripts show."""
    if ctx.listen is not None and ctx.listen.acknowledged is not None:
        await ctx.full.close_listen(ctx.listen)
    if ctx.none is not None:
        await protocol.ended(ctx, ctx.none)
    protocol.closing(ctx, *ctx.sessions, *([ctx.none] if ctx.none is not None else []))


async def _guarded(ctx: Context, text: str, probe: Callable[[Context], Awaitable[None]]) -> None:
    """Runs a probe. A fault of the audit itself costs that probe's verdicts, is said, and costs nothing else."""
    try:
        await probe(ctx)
    except Exception as error:
        if os.environ.get("TROTH_DEBUG"):
            raise
        message = f"The audit itself failed in the probe {text!r}: {type(error).__name__}: {error}"[:300]
        ctx.finding("audit.fault", message, hint="Please report this; TROTH_DEBUG=1 shows where it happened.")


def _server_info(result: object) -> Any:
    body = mapping(result)
    return body.get("serverInfo", mapping(body.get("_meta")).get(META + "serverInfo"))


def _complete(ctx: Context) -> None:
    """Gives every row of the revision a verdict: what nothing decided is absent or not observable."""
    for row in register().at(Side.SERVER, ctx.revision):
        if row.id not in ctx.rows:
            declared = ctx.declares(row.id)
            verdict = Verdict.NOT_OBSERVABLE if declared else Verdict.ABSENT
            ctx.judge(row.id, verdict, "Declared; nothing that was seen decides it." if declared else "Not declared.")
    for row in register().at(Side.CLIENT, ctx.revision):
        if row.id not in ctx.rows:
            hint = "Name a tool that asks with --change-tool, or allow all with --active." + provoke.left_out(ctx)
            ctx.judge(row.id, Verdict.NOT_OBSERVABLE, "The server asked nothing that needs it.", hint=hint)


def _unchecked(outcome: Outcome, reason: str, begun: float, findings: tuple[Finding, ...] = ()) -> RevisionReport:
    return RevisionReport(
        outcome=outcome,
        negotiated=None,
        era=None,
        declared=None,
        rows=(),
        findings=findings,
        reason=reason,
        elapsed_ms=int((time.monotonic() - begun) * 1000) if begun else 0,
    )
