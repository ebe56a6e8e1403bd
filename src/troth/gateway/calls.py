"""One relayed request: carries out what its exchange decides. The exchange knows the protocol, this file the wires."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from troth.bridge import Kind
from troth.bridge.exchange_model import (
    AnswerUpstream,
    AskHost,
    AskOthers,
    CancelUpstream,
    Due,
    Finish,
    HostAnswered,
    HostCalled,
    HostCancelled,
    HostRetried,
    Leave,
    Note,
    OthersAnswered,
    Park,
    Refuse,
    SendHost,
    SendUpstream,
    Told,
    Unask,
    UpstreamAnswered,
    UpstreamAsked,
    UpstreamLost,
    UpstreamNotified,
    WakeMe,
)
from troth.bridge.questions import QuestionKind
from troth.gateway.model import Answer, Sort
from troth.gateway.parking import USED
from troth.register import Era

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from troth.bridge import Frame, Id, Lost
    from troth.bridge.exchange import Exchange
    from troth.bridge.exchange_model import Command, Event, HostQuestion, Round
    from troth.bridge.questions import Question
    from troth.bridge.replies import Reply
    from troth.gateway.asked import Asked
    from troth.gateway.model import Conversation, Stream

_log = logging.getLogger(__name__)

_SORTS: Final = {Told.PROGRESS: Sort.PROGRESS, Told.LOG: Sort.LOG, Told.COMPLETE: Sort.OTHER}


class Desk(Protocol):
    """Who gets questions of one call to those that answer them. A call without one asks nobody.

    Attributes:
        declares: What a modern upstream is told that it may ask; None for none.
    """

    declares: Mapping[str, object] | None

    def ask_host(self, call: Call, questions: Sequence[HostQuestion]) -> None:
        """Sends requests to the legacy host of the call; the answers come by `Call.host_answered`."""
        ...

    def ask_others(self, call: Call, questions: Sequence[Question]) -> None:
        """Has questions answered by the operator's means; the answers come by `Call.others_answered`."""
        ...

    def unask(self, call: Call, keys: Sequence[str], reason: str) -> None:
        """Takes questions back."""
        ...

    def round(self, call: Call, asked: Round, *, parked: bool) -> Answer:
        """The answer that hands questions to a modern host; `parked` calls wait for its retry."""
        ...

    def retried(self, asked: Asked) -> None:
        """A modern host came again: what is said next answers this request."""
        ...

    def ended(self) -> None:
        """The call is over."""
        ...


class Around(Protocol):
    """Who has roots told outside of calls, and learns from calls what they are."""

    def answered(self, conversation: Conversation, number: Id, line: bytes) -> None:
        """An upstream that asked for roots got an answer in a call of a modern host."""
        ...

    def left(self, conversation: Conversation, question: Question) -> None:
        """A call is over, and a question that came during it is not."""
        ...


class Call:
    """The shell of one exchange. Implements `troth.gateway.model.Sink`.

    Args:
        exchange: What decides.
        conversation: Where the request goes.
        stream: Where messages before the answer go.
        desk: Who asks; None where nobody can be asked.
        declares: What a modern upstream is told of the host's capabilities where nobody can be asked; None for nothing.
        outside: Has questions answered that are not of this call only; None for nobody.
    """

    __slots__ = (
        "_conversation",
        "_declares",
        "_desk",
        "_done",
        "_exchange",
        "_id",
        "_outside",
        "_stream",
        "_timers",
        "refusal",
        "withdrawn",
    )

    def __init__(
        self,
        exchange: Exchange,
        conversation: Conversation,
        stream: Stream,
        desk: Desk | None = None,
        *,
        declares: Mapping[str, object] | None = None,
        outside: Around | None = None,
    ) -> None:
        self._exchange = exchange
        self._conversation = conversation
        self._stream = stream
        self._desk = desk
        self._declares = declares
        self._outside = outside
        self._id: Id | None = None
        self._done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self.refusal: Frame | None = None
        """The error that the upstream answered with; None for none."""
        self.withdrawn = False
        """Whether the host does not want the answer any more."""

    @property
    def stream(self) -> Stream:
        """The stream of the host's current request."""
        return self._stream

    async def run(self) -> Answer:
        """Sends the request and waits for its end, or for questions to a modern host. Cancelling withdraws it."""
        self._handle(HostCalled())
        return await self._answer()

    async def again(self, asked: Asked, number: int) -> Answer:
        """A modern host comes again with answers of a round; see `run`. One retry of a round takes the call over."""
        if self._desk is None:
            raise AssertionError("a call that asks nobody is not parked")
        asks = asked.host.asks & self._exchange.call.asks
        commands = self._exchange.handle(HostRetried(asked.frame, number, asks, asked.host.level))
        refused = next((command for command in commands if isinstance(command, Refuse)), None)
        if refused is not None or not commands:
            return Answer(refused.line, refused.code) if refused is not None else asked.refuse(USED)
        self._desk.retried(asked)
        self._stream = asked.stream
        self._done = asyncio.get_running_loop().create_future()
        self._carry_out(commands)
        return await self._answer()

    async def _answer(self) -> Answer:
        try:
            return await self._done
        except asyncio.CancelledError:
            self._handle(HostCancelled("the host is gone"))
            raise

    @property
    def ended(self) -> bool:
        """Whether its host has the answer."""
        return self._done.done()

    def withdraw(self, reason: str) -> None:
        """The host does not want the answer any more."""
        self.withdrawn = True
        self._handle(HostCancelled(reason))

    def level(self, level: str) -> None:
        """The host set another log level while its request runs."""
        self._exchange.level = level

    def host_answered(self, key: str, frame: Frame) -> None:
        """A legacy host answered a question."""
        self._handle(HostAnswered(key, frame))

    def others_answered(self, key: str, reply: Reply) -> None:
        """A question was answered without the host."""
        self._handle(OthersAnswered(key, reply))

    # Sink

    def answered(self, frame: Frame) -> None:
        """The upstream answered."""
        if frame.kind is Kind.ERROR:
            self.refusal = frame
        self._handle(UpstreamAnswered(frame))

    def notified(self, frame: Frame) -> None:
        """The upstream tells something about the request."""
        self._handle(UpstreamNotified(frame))

    def asked(self, frame: Frame) -> bool:
        """The upstream asks something because of the request; False where nobody can be asked on its behalf."""
        if self._desk is None:
            return False
        self._handle(UpstreamAsked(frame))
        return True

    def lost(self, why: Lost) -> None:
        """No answer will come."""
        self._handle(UpstreamLost(why))

    # What the exchange decides

    def _handle(self, event: Event) -> None:
        self._carry_out(self._exchange.handle(event))

    def _carry_out(self, commands: Sequence[Command]) -> None:
        for command in commands:
            match command:
                case SendUpstream():
                    outgoing = command.outgoing
                    if self._desk is not None:
                        outgoing = msgspec.structs.replace(outgoing, asks=True, declares=self._desk.declares)
                    elif self._declares is not None:
                        outgoing = msgspec.structs.replace(outgoing, declares=self._declares)
                    self._id = self._conversation.start(outgoing, self)
                case SendHost():
                    self._stream.send(command.line, _SORTS[command.sort])
                case CancelUpstream():
                    if self._id is not None:
                        self._conversation.cancel(self._id, command.reason)
                case AnswerUpstream():
                    self._conversation.answer(command.line, command.id)
                    roots = command.kind is QuestionKind.ROOTS and self._exchange.host_era is Era.MODERN
                    if roots and self._outside is not None:
                        self._outside.answered(self._conversation, command.id, command.line)
                case Finish():
                    self._finish(command)
                case _:
                    self._question(command)

    def _finish(self, command: Finish) -> None:
        for timer in self._timers.values():
            timer.cancel()
        if self._desk is not None:
            self._desk.ended()
        if self._desk is not None and command.round is not None:
            self._resolve(self._desk.round(self, command.round, parked=False))
        else:
            self._resolve(Answer(command.line or b"", command.code))

    def _question(self, command: AskHost | AskOthers | Unask | Leave | Park | Refuse | Note | WakeMe) -> None:
        """What only happens where somebody can be asked."""
        desk = self._desk
        match command:
            case Note():
                _log.info("%s: %s", self._exchange.call.upstream, "; ".join(command.notes))
            case WakeMe():
                self._wake(command.name, command.seconds)
            case AskHost() if desk is not None:
                desk.ask_host(self, command.questions)
            case AskOthers() if desk is not None:
                desk.ask_others(self, command.questions)
            case Unask() if desk is not None:
                desk.unask(self, command.keys, command.reason)
            case Leave() if self._outside is not None:
                self._outside.left(self._conversation, command.question)
            case Park() if desk is not None:
                answer = desk.round(self, command.round, parked=True)
                self._resolve(answer)
                if answer.code is not None:
                    # First the error, which the host hears, then the end, of which it hears nothing.
                    self.withdraw("it cannot be parked")
            case _:
                raise AssertionError(f"{type(command).__name__} of a call that asks nobody")

    def _resolve(self, answer: Answer) -> None:
        if not self._done.done():
            self._done.set_result(answer)

    def _wake(self, name: str, seconds: float | None) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()
        if seconds is not None and not self._exchange.done:
            loop = asyncio.get_running_loop()
            self._timers[name] = loop.call_later(seconds, self._handle, Due(name))
