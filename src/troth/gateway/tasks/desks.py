"""Who answers the questions of a call that is, or becomes, a task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from troth.bridge import Bad, ErrorValue, error_line, read, request_line
from troth.bridge.asks import URL, client_capabilities
from troth.gateway.model import Answer
from troth.register import Era, register
from troth.tasks import Asked as Question

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping, Sequence

    from troth.bridge import Frame, Id
    from troth.bridge.exchange_model import HostQuestion, Round
    from troth.bridge.questions import Question as Relayed
    from troth.gateway.asked import Asked
    from troth.gateway.calls import Call, Desk
    from troth.gateway.crew import Crew
    from troth.gateway.member import Member
    from troth.gateway.model import Conversation, Host
    from troth.tasks import Job

Wrap = Callable[["Desk"], "Desk"]
"""Makes another desk of one."""


class Turning:
    """The desk of a modern host's call to a modern upstream, which may become a task while it runs.

    Until then a round of questions is the answer to the host's request. Afterwards it is one of the task.

    Args:
        desk: The desk of the call.
        turned: Whether it is a task already.

    Attributes:
        turned: Whether it is a task.
        left: The round that the task is to ask; None for none.
    """

    def __init__(self, desk: Desk, *, turned: bool = False) -> None:
        self._desk = desk
        self.declares = desk.declares
        self.turned = turned
        self.left: Round | None = None

    def ask_host(self, call: Call, questions: Sequence[HostQuestion]) -> None:
        """See `Desk`."""
        self._desk.ask_host(call, questions)

    def ask_others(self, call: Call, questions: Sequence[Relayed]) -> None:
        """See `Desk`."""
        self._desk.ask_others(call, questions)

    def unask(self, call: Call, keys: Sequence[str], reason: str) -> None:
        """See `Desk`."""
        self._desk.unask(call, keys, reason)

    def round(self, call: Call, asked: Round, *, parked: bool) -> Answer:
        """See `Desk`."""
        if not self.turned:
            return self._desk.round(call, asked, parked=parked)
        self.left = asked
        return Answer(b"")

    def retried(self, asked: Asked) -> None:
        """See `Desk`."""
        self._desk.retried(asked)

    def ended(self) -> None:
        """See `Desk`."""
        self._desk.ended()


class Turnings:
    """The desks of one call, each round of which has one.

    Args:
        turned: Whether the call is a task already.
    """

    def __init__(self, *, turned: bool = False) -> None:
        self._turned = turned
        self._last: Turning | None = None

    def wrap(self, desk: Desk) -> Turning:
        """The desk of a round."""
        self._last = Turning(desk, turned=self._turned)
        return self._last

    def turn(self) -> None:
        """The call is a task now."""
        self._turned = True
        if self._last is not None:
            self._last.turned = True

    @property
    def left(self) -> Round | None:
        """What the task is to ask; None for nothing."""
        return None if self._last is None else self._last.left


class JobDesk:
    """The desk of a call that is a task from the start: its questions are those of the task.

    Args:
        desk: The desk of the call, for what is answered without a host.
        crew: Owner of what waits.
        job: The work of the task.
        declares: What a modern upstream is told that it may ask; None for none.
    """

    def __init__(self, desk: Desk, crew: Crew, job: Job, declares: Mapping[str, object] | None) -> None:
        self._desk = desk
        self._crew = crew
        self._asking: dict[str, asyncio.Task[Any]] = {}
        self.declares = declares
        self._job = job

    def ask_host(self, call: Call, questions: Sequence[HostQuestion]) -> None:
        """See `Desk`."""
        for question in questions:
            self._asking[question.key] = self._crew.spawn(self._ask(call, question), "a question of a task")

    async def _ask(self, call: Call, question: HostQuestion) -> None:
        found = await self._job.ask({question.key: Question(question.method, question.params or {})})
        self._asking.pop(question.key, None)
        if isinstance(found, ErrorValue):
            # The task is over, and the call with it.
            return
        outcome = found[question.key]
        error = outcome.error
        if error is None:
            line = b'{"jsonrpc":"2.0","id":0,"result":%b}' % bytes(outcome.result)
        else:
            line = error_line(0, error.code, error.message, error.data)
        frame = read(line)
        if isinstance(frame, Bad):
            frame = cast("Frame", read(error_line(0, frame.code, f"The answer cannot be used: {frame.reason}")))
        call.host_answered(question.key, frame)

    def ask_others(self, call: Call, questions: Sequence[Relayed]) -> None:
        """See `Desk`."""
        self._desk.ask_others(call, questions)

    def unask(self, call: Call, keys: Sequence[str], reason: str) -> None:
        """See `Desk`."""
        for key in keys:
            asking = self._asking.pop(key, None)
            if asking is not None:
                asking.cancel()
        self._desk.unask(call, keys, reason)

    def round(self, call: Call, asked: Round, *, parked: bool) -> Answer:
        """See `Desk`."""
        return self._desk.round(call, asked, parked=parked)

    def retried(self, asked: Asked) -> None:
        """See `Desk`."""
        self._desk.retried(asked)

    def ended(self) -> None:
        """See `Desk`."""
        for asking in self._asking.values():
            asking.cancel()
        self._desk.ended()


def asking_by_requests(host: Host) -> Host:
    """A host as the call of a task sees it, which asks by requests in the words of the core protocol.

    Both faces carry those questions. A visit to an address is not among them: the faces spell it differently.
    """
    return replace(host, revision=_core(), era=Era.LEGACY, session=None, asks=host.asks - {URL})


def declares_of(owner: Member, conversation: Conversation) -> Mapping[str, object] | None:
    """What a modern upstream is told that such a call may ask."""
    asks = owner.asks - {URL}
    modern = conversation.era is Era.MODERN
    return client_capabilities(asks, conversation.revision) if asks and modern else None


@cache
def _core() -> str:
    """The revision whose core protocol has tasks."""
    return next(revision for method, revision in register().methods if method == "tasks/result")


async def answered(job: Job, asked: Asked, left: Round) -> Asked | ErrorValue:
    """Asks a round of questions by the task.

    Returns:
        The host's request with the answers in it, or why none will come.
    """
    entries: dict[str, Question] = {}
    for key, entry in left.entries.items():
        parts = cast("Mapping[str, Any]", entry)
        entries[key] = Question(str(parts["method"]), cast("Mapping[str, Any]", parts.get("params") or {}))
    found = await job.ask(entries)
    if isinstance(found, ErrorValue):
        return found
    responses = {key: outcome.result for key, outcome in found.items()}
    frame = with_params(asked.frame, {"inputResponses": responses})
    return frame if isinstance(frame, ErrorValue) else asked._replace(frame=frame)


def with_params(frame: Frame, more: Mapping[str, object]) -> Frame | ErrorValue:
    """A request with further members of its params."""
    made = read(request_line(cast("Id", frame.id), frame.method, {**(frame.parts or {}), **more}))
    return ErrorValue(made.code, made.reason) if isinstance(made, Bad) else made
