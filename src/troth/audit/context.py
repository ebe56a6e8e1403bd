"""What a probe works with: the conversations of one revision, what was learnt so far, and where verdicts go."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from troth.audit.model import Finding, Frame, RowResult, Severity, Verdict
from troth.audit.verdicts import FINDINGS, RANK, VERDICTS
from troth.audit.wire.types import Reply
from troth.register import Era, register

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from troth.audit.model import HostView
    from troth.audit.options import Options
    from troth.audit.wire.session import Listen, Session
    from troth.capabilities import ServerCapabilities

    Answer = Callable[[str, Mapping[str, Any]], Mapping[str, Any] | None]

EVIDENCE = 12
"""Most frames kept with one verdict: the first ones, which hold the question and its answer."""
ALIKE = 5
"""Most findings of one kind that are listed; the rest are counted."""
RESTARTS = 4
"""Most fresh connections within one revision after the target died in the middle."""

PLAIN = frozenset({Verdict.ABSENT, Verdict.NOT_OBSERVABLE})
"""Verdicts that need no proof but the declaration, which the report holds anyway."""

METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All pages of one list.

    Attributes:
        method: Such as ``tools/list``.
        replies: One per page.
        items: The entries that are objects, over all pages.
        problem: Why the answer delivers nothing, in words; empty if it does.
        dropped: Why a later page could not be had, in words; empty if all could.
        repeats: Whether a cursor came again, so that the pages never end.
    """

    method: str
    replies: tuple[Reply, ...]
    items: tuple[Mapping[str, Any], ...] = ()
    problem: str = ""
    dropped: str = ""
    repeats: bool = False

    @property
    def reply(self) -> Reply:
        """The reply to the first page."""
        return self.replies[0]

    @property
    def served(self) -> bool:
        """Whether the list was delivered."""
        return self.reply.ok and not self.problem

    def names(self, member: str) -> tuple[str, ...]:
        """The entries' names (or URIs), those that are strings."""
        return tuple(value for item in self.items if isinstance(value := item.get(member), str))


@dataclass(slots=True, kw_only=True)
class Called:
    """One request made to see what it causes: a tool called, a prompt or a resource fetched.

    Attributes:
        name: The tool, the prompt or the URI.
        reply: The last reply.
        method: ``tools/call``, ``prompts/get`` or ``resources/read``.
        params: Parameters of the first request.
        asks: Kinds of input that the answer asked for (modern): method and parameters, with the frame.
        questioned: Whether anything was asked of the client before the last reply, in either era.
    """

    name: str
    reply: Reply
    method: str
    params: Mapping[str, Any]
    questioned: bool = False
    asks: list[tuple[str, Mapping[str, Any], Frame]] = field(
        default_factory=list[tuple[str, "Mapping[str, Any]", Frame]]
    )


@dataclass(slots=True, kw_only=True)
class Context:
    """One target in one revision.

    Attributes:
        revision: The revision in force; rows are judged by it.
        declared: What the server declared, read by that revision.
        options: How far to go.
        full: The present session of a client that declares everything.
        none: The session of a client that declares nothing; None where it could not be opened.
        reopen: Opens a fresh ``full`` session.
        past: Earlier ``full`` sessions, which died.
        unknown: Reply to a method that nobody knows, for comparison.
        lists: Lists by method, as first seen.
        watched: Lists by method, as they were when the listen stream was open (modern); only those whose changes are
            promised.
        later: The same lists, read again at the end.
        listen: The listen stream (modern).
        subscribed: URI that was subscribed to.
        subscription: Reply to `resources/subscribe`.
        before: Content of that resource before anything was provoked.
        logging: Reply to `logging/setLevel`.
        slow: Tools that did not answer within the budget of a method; they are not called again.
        calls: Tool calls made with full capabilities.
        fetched: Prompts and resources fetched with full capabilities.
        polled: Reply to `tasks/get` for a task that the audit made.
        refused_task: Reply to `tasks/get` for a task that does not exist, where it needs a second look.
        made_tasks: Ids of tasks that the audit made.
        open: Opens a further session with a declaration of its own.
        fresh: Makes a connection on which nothing was said yet; None where it cannot be had.
        unlisted: How many findings of a kind were left out.
        view: What the host of ``--as`` would see.
        restarts: How many fresh connections were tried after the target had died.
    """

    revision: str
    declared: ServerCapabilities
    options: Options
    full: Session
    none: Session | None
    reopen: Callable[[], Awaitable[Session | None]]
    past: list[Session] = field(default_factory=list["Session"])
    unknown: Reply | None = None
    lists: dict[str, Listing] = field(default_factory=dict[str, Listing])
    watched: dict[str, Listing] = field(default_factory=dict[str, Listing])
    later: dict[str, Listing] = field(default_factory=dict[str, Listing])
    listen: Listen | None = None
    subscribed: str | None = None
    subscription: Reply | None = None
    before: Reply | None = None
    logging: Reply | None = None
    slow: set[str] = field(default_factory=set[str])
    calls: list[Called] = field(default_factory=list[Called])
    fetched: list[Called] = field(default_factory=list[Called])
    polled: Reply | None = None
    refused_task: Reply | None = None
    made_tasks: set[str] = field(default_factory=set[str])
    open: Callable[[Mapping[str, Any], Answer], Awaitable[Session | None]]
    fresh: Callable[[], Awaitable[Session | None]]
    rows: dict[str, RowResult] = field(default_factory=dict[str, RowResult])
    findings: list[Finding] = field(default_factory=list[Finding])
    unlisted: Counter[str] = field(default_factory=Counter[str])
    restarts: int = 0
    view: HostView | None = None

    @property
    def era(self) -> Era:
        """The era in force."""
        return register().era(self.revision)

    @property
    def modern(self) -> bool:
        """Whether the era in force is the modern one."""
        return self.era is Era.MODERN

    @property
    def sessions(self) -> tuple[Session, ...]:
        """Every session with full capabilities, oldest first."""
        return (*self.past, self.full)

    async def alive(self) -> Session:
        """The full session; a fresh one if the last died. After `RESTARTS` deaths the dead one stays."""
        if self.full.dead and self.restarts < RESTARTS:
            self.restarts += 1
            last = self.full
            sent = [frame for frame in last.frames if frame.direction == "sent"][-1:]
            self.finding(
                "process.died",
                f"The server ended while it was asked: {last.dead}.",
                *sent,
                *last.frames[-1:],
                hint="Its standard error may say why: " + last.link.stderr[-400:] if last.link.stderr else "",
            )
            fresh = await self.reopen()
            if fresh is not None:
                self.past.append(last)
                fresh.schemas = last.schemas
                self.full = fresh
                self.listen = None
        return self.full

    async def call(self, method: str, params: Mapping[str, Any] | None = None, **how: Any) -> Reply:
        """A request on a living full session (see `Session.call`)."""
        return await (await self.alive()).call(method, params, **how)

    def notifications(self, *methods: str) -> tuple[Frame, ...]:
        """Notifications of these methods that came on any full session."""
        return tuple(frame for session in self.sessions for method in methods for frame in session.since(0, method))

    def defines(self, row_id: str) -> bool:
        """Whether the revision in force defines the row."""
        return self.revision in register().by_id[row_id].definitions

    def declares(self, row_id: str) -> bool:
        """Whether the server declared the row, with effect."""
        return self.defines(row_id) and self.declared.has(register().by_id[row_id].path)

    def judge(
        self,
        row_id: str,
        verdict: Verdict,
        message: str,
        *evidence: Reply | Frame | None,
        hint: str = "",
        severity: Severity | None = None,
    ) -> None:
        """Gives a verdict on a row, unless a more serious one stands. The declaration is the least proof."""
        standing = self.rows.get(row_id)
        if standing is not None and RANK[standing.verdict] > RANK[verdict]:
            return
        row = register().by_id[row_id]
        definition = row.at(self.revision)
        source = definition.source if definition is not None and definition.source else row.sources[0]
        self.rows[row_id] = RowResult(
            id=row_id,
            path=row.path,
            side=row.side.value,
            verdict=verdict,
            severity=severity or VERDICTS[verdict].severity,
            message=message,
            hint=hint,
            source=source,
            evidence=frames_of(evidence) or (() if verdict in PLAIN else frames_of([self.full.opening])),
        )

    def finding(
        self,
        code: str,
        message: str,
        *evidence: Reply | Frame | None,
        rows: Iterable[str] = (),
        hint: str = "",
        source: str = "",
        severity: Severity | None = None,
    ) -> None:
        """Reports a fault that belongs to no single row: the same one once, and at most `ALIKE` of a kind."""
        alike = [known for known in self.findings if known.code == code]
        if any(known.message == message for known in alike):
            return
        if len(alike) >= ALIKE:
            self.unlisted[code] += 1
            return
        self.findings.append(fault(code, message, *evidence, rows=rows, hint=hint, source=source, severity=severity))


def fault(
    code: str,
    message: str,
    *evidence: Reply | Frame | None,
    rows: Iterable[str] = (),
    hint: str = "",
    source: str = "",
    severity: Severity | None = None,
) -> Finding:
    """A finding, with the severity that the table gives to its kind unless another one is given."""
    return Finding(
        code=code,
        severity=severity or FINDINGS[code].severity,
        message=message,
        hint=hint,
        source=source or laid_down(FINDINGS[code].source),
        rows=tuple(rows),
        evidence=frames_of(evidence),
    )


def laid_down(source: str) -> str:
    """File and line of a norm, of the newest revision that has it; other words as they are."""
    places = [norm.source for norm in register().norms.values() if norm.id.partition("@")[0] == source]
    return places[-1] if places else source


def frames_of(evidence: Iterable[Reply | Frame | None]) -> tuple[Frame, ...]:
    """The frames behind replies and frames, each once, in the order of time, at most `EVIDENCE`."""
    found: list[Frame] = []
    for item in evidence:
        for frame in item.frames if isinstance(item, Reply) else (item,) if item is not None else ():
            if not any(frame is known for known in found):
                found.append(frame)
    return tuple(sorted(found, key=lambda frame: frame.at)[:EVIDENCE])


def told(reply: Reply) -> str:
    """What came back, in a few words."""
    if reply.failure is not None:
        return reply.detail or reply.failure.value
    if reply.code is not None:
        return f"error {reply.code} ({reply.message[:120]})"
    return "a result"


def mapping(value: object) -> Mapping[str, Any]:
    """``value`` if it is a JSON object, else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
