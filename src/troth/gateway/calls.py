"""One relayed request: carries out what its exchange decides. The exchange knows the protocol, this file the wires."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from troth.bridge import Kind
from troth.bridge.exchange_model import (
    AnswerUpstream,
    CancelUpstream,
    Finish,
    HostCalled,
    HostCancelled,
    SendHost,
    SendUpstream,
    Told,
    UpstreamAnswered,
    UpstreamAsked,
    UpstreamLost,
    UpstreamNotified,
)
from troth.gateway.model import Answer, Sort

if TYPE_CHECKING:
    from collections.abc import Sequence

    from troth.bridge import Frame, Id, Lost
    from troth.bridge.exchange import Exchange
    from troth.bridge.exchange_model import Command, Event
    from troth.gateway.model import Conversation, Stream

_SORTS: Final = {Told.PROGRESS: Sort.PROGRESS, Told.LOG: Sort.LOG, Told.COMPLETE: Sort.OTHER}


class Call:
    """The shell of one exchange. Implements `troth.gateway.model.Sink`.

    Args:
        exchange: What decides.
        conversation: Where the request goes.
        stream: Where messages before the answer go.
    """

    __slots__ = ("_conversation", "_done", "_exchange", "_id", "_stream", "refusal", "withdrawn")

    def __init__(self, exchange: Exchange, conversation: Conversation, stream: Stream) -> None:
        self._exchange = exchange
        self._conversation = conversation
        self._stream = stream
        self._id: Id | None = None
        self._done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.refusal: Frame | None = None
        """The error that the upstream answered with; None for none."""
        self.withdrawn = False
        """Whether the host does not want the answer any more."""

    async def run(self) -> Answer:
        """Sends the request and waits for its end. Cancelling this withdraws it."""
        self._handle(HostCalled())
        try:
            return await self._done
        except asyncio.CancelledError:
            self._handle(HostCancelled("the host is gone"))
            raise

    def withdraw(self, reason: str) -> None:
        """The host does not want the answer any more."""
        self.withdrawn = True
        self._handle(HostCancelled(reason))

    def level(self, level: str) -> None:
        """The host set another log level while its request runs."""
        self._exchange.level = level

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
        """The upstream asks something because of the request."""
        self._handle(UpstreamAsked(frame))
        return True

    def lost(self, why: Lost) -> None:
        """No answer will come."""
        self._handle(UpstreamLost(why))

    def _handle(self, event: Event) -> None:
        self._carry_out(self._exchange.handle(event))

    def _carry_out(self, commands: Sequence[Command]) -> None:
        for command in commands:
            match command:
                case SendUpstream():
                    self._id = self._conversation.start(command.outgoing, self)
                case SendHost():
                    self._stream.send(command.line, _SORTS[command.sort])
                case Finish():
                    if not self._done.done():
                        self._done.set_result(Answer(command.line or b"", command.code))
                case CancelUpstream():
                    if self._id is not None:
                        self._conversation.cancel(self._id, command.reason)
                case AnswerUpstream():
                    self._conversation.answer(command.line)
