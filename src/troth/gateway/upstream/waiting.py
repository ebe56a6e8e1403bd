"""What a conversation keeps and tells: requests in flight, who hears of them, what they cost."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from troth.bridge import Lost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from troth.bridge import Frame, Id, Outgoing
    from troth.gateway.model import Sink
    from troth.gateway.upstream.conversation import Talk

LISTEN: Final = "subscriptions/listen"
UNSURE: Final = frozenset({401, 403, 429})
"""HTTP statuses (and those from 500 on) that come from whatever stands before a server: what they carry under an id
that is not ours is no answer of the server's."""


@dataclass(frozen=True, slots=True)
class Refused(Lost):
    """An HTTP status in place of an answer.

    Attributes:
        status: The status.
        after: Seconds that the server asks to wait; 0 if it does not say.
    """

    status: int = 0
    after: float = 0.0


@dataclass(slots=True)
class Counts:
    """What an upstream cost so far, over all its conversations.

    Attributes:
        calls: Requests that were sent.
        errors: Of those, the ones that ended without an answer.
        relayed: Of them, those that a host sent: lists, probes and streams of ours are none.
        failed: Of these, the ones that ended without an answer.
        received: Bytes that came.
        sent: Bytes that went.
        junk: Frames that are no messages.
        strays: Messages that belong to nothing: answers to nobody, progress of what is over, questions that a modern
            server must not ask.
    """

    calls: int = 0
    errors: int = 0
    relayed: int = 0
    failed: int = 0
    received: int = 0
    sent: int = 0
    junk: int = 0
    strays: int = 0


class Owner(Protocol):
    """Who a conversation belongs to. Its methods never block and never raise."""

    def heard(self, talk: Talk, frame: Frame) -> None:
        """A notification that belongs to no request."""
        ...

    def asked(self, talk: Talk, frame: Frame) -> bool:
        """A request of a legacy upstream that belongs to no request of ours. False: it is refused."""
        ...

    def over(self, talk: Talk, why: str) -> None:
        """The connection is gone; every request in flight is lost already."""
        ...

    def expired(self, talk: Talk) -> None:
        """The upstream forgot the session: requests in flight are lost, those that it refused are held for a new one.

        The owner hands them over with `Talk.hand_over`, or gives them up with `Talk.finish`.
        """
        ...

    def suspect(self, talk: Talk) -> None:
        """An answer broke off: the upstream may be gone."""
        ...

    def gap(self, talk: Talk) -> None:
        """The stream of messages outside requests opened again: something may have been missed."""
        ...


@dataclass(slots=True, eq=False)
class Waiting:
    """A request in flight."""

    sink: Sink
    request: Outgoing
    number: Id
    seen: float = 0.0
    timer: asyncio.TimerHandle | None = None
    second: bool = False
    problem: str = ""

    @property
    def listens(self) -> bool:
        """Whether it is a stream that stays open by design: nothing but its own notifications belongs to it."""
        return self.request.frame.method == LISTEN

    def stop(self) -> None:
        """It ended: its time no longer runs."""
        if self.timer is not None:
            self.timer.cancel()


class Waiter:
    """The sink of a request of ours that somebody waits for.

    Attributes:
        number: Id of the request.
        outcome: What became of it.
    """

    def __init__(self, heard: Callable[[Frame], None]) -> None:
        self.number: Id = 0
        self.outcome: asyncio.Future[Frame | Lost] = asyncio.get_running_loop().create_future()
        self._heard = heard

    def answered(self, frame: Frame) -> None:
        """See `Sink`."""
        if not self.outcome.done():
            self.outcome.set_result(frame)

    def lost(self, why: Lost) -> None:
        """See `Sink`."""
        if not self.outcome.done():
            self.outcome.set_result(why)

    def notified(self, frame: Frame) -> None:
        """A request of ours belongs to no host: whatever comes with it is of the upstream as a whole."""
        self._heard(frame)

    def asked(self, frame: Frame) -> bool:  # noqa: ARG002
        """Nobody can be asked on behalf of a request of ours."""
        return False


@dataclass(slots=True)
class Facts:
    """What a server said of itself.

    Attributes:
        capabilities: Its declaration as it came; None for none.
        instructions: Its instructions; empty for none.
        info: Its ``serverInfo``; empty for none.
    """

    capabilities: object = None
    instructions: str = ""
    info: Mapping[str, object] = field(default_factory=dict[str, object])
