"""What a server asks of its client: which capability each question needs, and whether it was declared.

`roots.py`, `sampling.py`, `elicitation.py` and `client_tasks.py` say what each question needs; this file collects the
questions and judges them. A question that is never asked is not observable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from troth.audit.context import mapping, told
from troth.audit.model import Severity, Verdict
from troth.audit.probes import client_tasks, elicitation, roots, sampling
from troth.audit.probes.provoke import call_tool, callable_tools, exchange
from troth.audit.probes.tools import ABSENT_TOOL
from troth.audit.wire.connect import answer_all
from troth.capabilities import read_client
from troth.register import Side, register

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from troth.audit.context import Called, Context
    from troth.audit.model import Frame
    from troth.audit.wire.session import Session

Askers = list[tuple["Called", tuple[str, ...]]]
"""Requests that made the server ask, with the rows that its questions need."""
NEEDS = (roots.needs, sampling.needs, elicitation.needs, client_tasks.needs)
MISSING = -32021
TOOL = "tools/call"
NARROW: tuple[Mapping[str, Any], ...] = (
    {},
    {"elicitation": {}},
    {"elicitation": {"url": {}}},
    {"sampling": {}},
    {"roots": {}},
)
"""Declarations between all and nothing: each must be enough for its own questions and for no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question and the declaration it met.

    Attributes:
        method: Such as ``elicitation/create``.
        params: Its parameters.
        declared: The client capabilities that were in force.
        frame: The frame that asked.
    """

    method: str
    params: Mapping[str, Any]
    declared: Mapping[str, Any]
    frame: Frame


async def probe(ctx: Context) -> None:
    """Repeats with narrower declarations what asked something, and judges every question."""
    made = [*ctx.calls, *ctx.fetched]
    questions = [*_asked(ctx.sessions, ctx.full.capabilities), *_of_calls(made, ctx.full.capabilities)]
    askers = _askers(ctx)
    if ctx.none is not None:
        questions += await _with_nothing(ctx, ctx.none, askers)
    if askers:
        questions += await (_narrow_modern if ctx.modern else _narrow_legacy)(ctx, askers, questions)
    _judge(ctx, questions)
    _unheard_of(ctx)
    if ctx.modern:
        for question in _asked(ctx.sessions, {}):
            ctx.finding(
                "protocol.request-in-modern",
                f"The server sends `{question.method}` as a request; this revision asks within results.",
                question.frame,
            )


def _unheard_of(ctx: Context) -> None:
    """Requests to the client that the revision does not have."""
    for session in ctx.sessions:
        for ask in session.asks:
            if ask.method != "ping" and not needs(ask.method, ask.params):
                message = f"The server asks its client for `{ask.method[:80]}`, which no revision has."
                ctx.finding("protocol.unknown-request", message, ask.frame)


def needs(method: str, params: Mapping[str, Any]) -> tuple[str, ...]:
    """Ids of the client rows that a question needs."""
    return tuple(row for rule in NEEDS for row in rule(method, params))


def _asked(sessions: Iterable[Session], declared: Mapping[str, Any]) -> Iterator[Question]:
    for session in sessions:
        for ask in session.asks:
            if needs(ask.method, ask.params):
                yield Question(method=ask.method, params=ask.params, declared=declared, frame=ask.frame)


def _of_calls(calls: Iterable[Called], declared: Mapping[str, Any]) -> Iterator[Question]:
    for called in calls:
        for method, params, frame in called.asks:
            yield Question(method=method, params=params, declared=declared, frame=frame)


def _askers(ctx: Context) -> Askers:
    """What made the server ask of a client that declares everything, with the rows that its questions needed."""
    ready = callable_tools(ctx)
    asked = [ask for session in ctx.sessions for ask in session.asks]
    found: Askers = []
    for called in (*ctx.calls, *ctx.fetched):
        sent, last = called.reply.frames[0].at, called.reply.frames[-1].at
        rows = {row for method, params, _ in called.asks for row in needs(method, params)}
        rows |= {row for ask in asked if sent <= ask.frame.at <= last for row in needs(ask.method, ask.params)}
        if rows and (called.method != TOOL or called.name in ready):
            found.append((called, tuple(sorted(rows))))
    return found


async def _again(session: Session, called: Called, capabilities: Mapping[str, Any] | None = None) -> Called:
    return await exchange(session, called.name, called.method, called.params, capabilities=capabilities)


async def _with_nothing(ctx: Context, none: Session, askers: Askers) -> list[Question]:
    """What is asked of a client that declared nothing."""
    calls: list[tuple[Called, tuple[str, ...]]] = []
    if ctx.modern:
        await none.listen({})
    await none.call("tools/call", {"name": ABSENT_TOOL, "arguments": {}})
    needed = {called.name: rows for called, rows in askers if called.method == TOOL}
    for name, arguments in callable_tools(ctx).items():
        if not none.dead:
            calls.append((await call_tool(none, name, arguments), needed.get(name, ())))
    for called, rows in askers:
        if called.method != TOOL and not none.dead:
            calls.append((await _again(none, called), rows))
    await none.settle()
    for called, rows in calls:
        _refusal(ctx, called, rows, {})
    return [*_asked([none], none.capabilities), *_of_calls((called for called, _ in calls), none.capabilities)]


async def _narrow_modern(ctx: Context, askers: Askers, known: Iterable[Question]) -> list[Question]:
    """The same calls on one connection with one narrower declaration after another: nothing may be inferred."""
    questions: list[Question] = []
    # What asks a stranger too asks everybody, and infers nothing from earlier requests.
    everybody = {question.method for question in known if not question.declared}
    for asker, rows in askers:
        for declared in NARROW:
            called = await _again(await ctx.alive(), asker, declared)
            found = [*_of_calls([called], declared)]
            questions += found
            _refusal(ctx, called, rows, declared)
            inferred = [question for question in found if question.method not in everybody]
            if not declared and inferred and ctx.none is not None:
                ctx.finding(
                    "modern.infers",
                    f"`{asker.name}` asks for `{inferred[0].method}` on a request that declares nothing, after one "
                    "that did.",
                    inferred[0].frame,
                    rows=needs(inferred[0].method, inferred[0].params),
                    hint="Read the client capabilities of each request from its own `_meta`.",
                )
    return questions


async def _narrow_legacy(ctx: Context, askers: Askers, known: Iterable[Question]) -> list[Question]:
    """One session per narrower declaration that has something to tell apart."""
    questions: list[Question] = []
    kinds = {question.method.partition("/")[0] for question in known}
    for declared in NARROW:
        # Nothing at all was tried before, and a declaration tells something only about its own kind of question.
        kind = next(iter(declared), None)
        if kind not in kinds or kind == "roots":
            continue
        if read_client(declared, ctx.revision).problems:
            continue
        session = await ctx.open(declared, answer_all)
        if session is None:
            continue
        for asker, _ in askers:
            await _again(session, asker)
        await session.settle()
        questions += _asked([session], declared)
    return questions


def _refusal(ctx: Context, called: Called, needed: Iterable[str], declared: Mapping[str, Any]) -> None:
    """A refusal for a missing capability says which, and only those that are missing (modern)."""
    reply = called.reply
    if not ctx.modern or not reply.refused:
        return
    if reply.code != MISSING:
        lacking = [row for row in needed if not read_client(declared, ctx.revision).has(register().by_id[row].path)]
        for row in lacking:
            message = f"`{called.name}` refuses a client without it with {told(reply)} in place of -32021."
            ctx.judge(row, Verdict.WRONG_CODE, message, reply)
        return
    required = mapping(reply.data).get("requiredCapabilities")
    wanted = read_client(required, ctx.revision)
    rows = register().at(Side.CLIENT, ctx.revision)
    missing = [row.id for row in rows if wanted.has(row.path) and not read_client(declared, ctx.revision).has(row.path)]
    if not isinstance(required, dict) or not required or wanted.problems or not missing:
        ctx.finding(
            "modern.required-capabilities",
            "Error -32021 does not carry the missing capabilities in `data.requiredCapabilities`.",
            reply,
            rows=missing,
        )
    if reply.status is not None and reply.status != 400:
        ctx.finding("http.status", f"Error -32021 comes with HTTP {reply.status} in place of 400.", reply)


def _beyond(ctx: Context, questions: list[Question]) -> None:
    """Questions, and parts of questions, that the revision in force does not have."""
    for question in questions:
        for row_id in needs(question.method, question.params):
            row = register().by_id[row_id]
            # A form without a mode, and context before it had a flag, are how earlier revisions spell the question.
            spelled = (row_id != elicitation.MODES["form"] or "mode" in question.params) and row_id != sampling.CONTEXT
            if ctx.revision not in row.definitions and spelled:
                message = f"`{question.method}` is asked as only {', '.join(row.definitions)} has it."
                ctx.judge(row_id, Verdict.LEAKED, message, question.frame)


def _judge(ctx: Context, questions: list[Question]) -> None:
    _beyond(ctx, questions)
    for row in register().at(Side.CLIENT, ctx.revision):
        about = [question for question in questions if row.id in needs(question.method, question.params)]
        if not about:
            continue
        bad = [question for question in about if not read_client(question.declared, ctx.revision).has(row.path)]
        if bad:
            soft = row.id == sampling.CONTEXT  # advice, not a rule (gap G-04)
            ctx.judge(
                row.id,
                Verdict.UNGATED,
                f"`{bad[0].method}` needs `{row.path}` and is asked of a client that did not declare it.",
                *(question.frame for question in bad[:2]),
                hint="Look at the client's declaration before asking.",
                severity=Severity.WARNING if soft else None,
            )
        else:
            ctx.judge(
                row.id,
                Verdict.KEPT,
                f"`{about[0].method}` is asked where `{row.path}` is declared, and only there.",
                *(question.frame for question in about[:2]),
            )
