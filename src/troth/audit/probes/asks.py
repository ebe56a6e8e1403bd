"""What a server asks of its client: which capability each question needs, and whether it was declared.

`roots.py`, `sampling.py`, `elicitation.py` and `client_tasks.py` say what each question needs; this file collects the
questions and judges them. A question that is never asked is not observable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from troth.audit.context import mapping
from troth.audit.model import Severity, Verdict
from troth.audit.probes import client_tasks, elicitation, roots, sampling
from troth.audit.probes.provoke import call_tool, callable_tools
from troth.audit.probes.tools import ABSENT_TOOL
from troth.audit.wire.connect import answer_all
from troth.capabilities import read_client
from troth.register import Side, register

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from troth.audit.context import Called, Context
    from troth.audit.model import Frame
    from troth.audit.wire.session import Session
    from troth.audit.wire.types import Reply

NEEDS = (roots.needs, sampling.needs, elicitation.needs, client_tasks.needs)
MISSING = -32021
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
    questions = [*_asked(ctx.sessions, ctx.full.capabilities), *_of_calls(ctx.calls, ctx.full.capabilities)]
    askers = _askers(ctx)
    if ctx.none is not None:
        questions += await _with_nothing(ctx, ctx.none, askers)
    if askers:
        questions += await (_narrow_modern(ctx, askers) if ctx.modern else _narrow_legacy(ctx, askers, questions))
    _judge(ctx, questions)
    if ctx.modern:
        for question in _asked(ctx.sessions, {}):
            ctx.finding(
                "protocol.request-in-modern",
                f"The server sends `{question.method}` as a request; this revision asks within results.",
                question.frame,
            )


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


def _askers(ctx: Context) -> dict[str, Mapping[str, Any]]:
    """Tools that asked something when they were called with everything declared, with their arguments."""
    arguments = callable_tools(ctx)
    found: dict[str, Mapping[str, Any]] = {}
    for called in ctx.calls:
        ask_frames = [ask.frame.at for session in ctx.sessions for ask in session.asks if needs(ask.method, ask.params)]
        sent, last = called.reply.frames[0].at, called.reply.frames[-1].at
        if called.asks or any(sent <= at <= last for at in ask_frames):
            found[called.name] = arguments.get(called.name, {})
    return found


async def _with_nothing(ctx: Context, none: Session, askers: Mapping[str, Mapping[str, Any]]) -> list[Question]:
    """What is asked of a client that declared nothing."""
    calls: list[Called] = []
    await none.call("tools/call", {"name": ABSENT_TOOL, "arguments": {}})
    named = ctx.options.change_tool
    again = {**askers, **({named: callable_tools(ctx)[named]} if named in callable_tools(ctx) else {})}
    for name, arguments in again.items():
        if not none.dead:
            calls.append(await call_tool(none, name, arguments))
    await none.settle()
    for called in calls:
        _refusal(ctx, called.reply, {})
    return [*_asked([none], none.capabilities), *_of_calls(calls, none.capabilities)]


async def _narrow_modern(ctx: Context, askers: Mapping[str, Mapping[str, Any]]) -> list[Question]:
    """The same calls on one connection with one narrower declaration after another: nothing may be inferred."""
    questions: list[Question] = []
    for name, arguments in askers.items():
        for declared in NARROW:
            called = await call_tool(await ctx.alive(), name, arguments, capabilities=declared)
            found = [*_of_calls([called], declared)]
            questions += found
            _refusal(ctx, called.reply, declared)
            if not declared and found:
                ctx.finding(
                    "modern.infers",
                    f"`{name}` asks for `{found[0].method}` on a request that declares nothing, after one that did.",
                    found[0].frame,
                    rows=needs(found[0].method, found[0].params),
                    hint="Read the client capabilities of each request from its own `_meta`.",
                )
    return questions


async def _narrow_legacy(
    ctx: Context, askers: Mapping[str, Mapping[str, Any]], known: Iterable[Question]
) -> list[Question]:
    """One session per narrower declaration that has something to tell apart."""
    questions: list[Question] = []
    kinds = {question.method.partition("/")[0] for question in known}
    for declared in NARROW:
        # Nothing at all was tried before, and a declaration tells something only about its own kind of question.
        kind = next(iter(declared), None)
        if kind not in kinds or kind == "roots" or ctx.open is None:
            continue
        if read_client(declared, ctx.revision).problems:
            continue
        session = await ctx.open(declared, answer_all)
        if session is None:
            continue
        for name, arguments in askers.items():
            await call_tool(session, name, arguments)
        await session.settle()
        questions += _asked([session], declared)
    return questions


def _refusal(ctx: Context, reply: Reply, declared: Mapping[str, Any]) -> None:
    """A refusal for a missing capability says which, and only those that are missing (modern)."""
    if not ctx.modern or reply.code != MISSING:
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


def _judge(ctx: Context, questions: list[Question]) -> None:
    for row in register().at(Side.CLIENT, ctx.revision):
        about = [question for question in questions if row.id in needs(question.method, question.params)]
        if not about:
            continue
        bad = [question for question in about if not read_client(question.declared, ctx.revision).has(row.path)]
        if bad:
            soft = row.id == sampling.CONTEXT
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
