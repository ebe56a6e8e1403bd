"""Calls that wait for a host to come again with answers: each resumed once at most, and none kept for ever.

A parked call is an opaque value here. Its id and round travel in the sealed state; the deadline there and here is the
same. One timer serves all calls.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from troth.bridge import BAD_PARAMS
from troth.bridge.errors import INTERNAL, ErrorValue
from troth.gateway.hosts.asgi import LIMIT_REACHED

if TYPE_CHECKING:
    from collections.abc import Callable

    from troth.gateway.limits import Limits

T = TypeVar("T")

USED: Final = ErrorValue(BAD_PARAMS, "requestState: already used: another retry answered this round")
LOST: Final = ErrorValue(INTERNAL, "The call was lost when the gateway was started anew, and may have had effects")
ROUNDS: Final = ErrorValue(INTERNAL, "The upstream asks again and again; the call was ended (limit: rounds)")


class State(Enum):
    """Where a parked call is."""

    PARKED = "parked"
    """Waits for a retry."""
    ANSWERING = "answering"
    """A retry won it; it runs, and may be parked again."""
    FINISHED = "finished"
    """Its result came while it was parked, and waits for a retry."""
    DEAD = "dead"
    """It ended: answered, given up, or over its deadline."""


class Parked(Generic[T]):
    """One call.

    Attributes:
        id: Its id, which says in which run it was parked.
        principal: Name of the principal whose it is.
        upstream: Name of the upstream that it waits for.
        call: Whatever the owner needs to go on.
        round: Round that the next retry answers, from 1.
        expires: When it dies unless somebody comes, by the clock of the parking.
        state: Where it is.
        kept: What came for it while it was parked; None if nothing did.
        size: Bytes of that.
    """

    __slots__ = ("call", "expires", "id", "kept", "principal", "round", "size", "state", "upstream")

    def __init__(self, name: str, principal: str, upstream: str, call: T, expires: float) -> None:
        self.id = name
        self.principal = principal
        self.upstream = upstream
        self.call = call
        self.round = 1
        self.expires = expires
        self.state = State.PARKED
        self.kept: object = None
        self.size = 0


class Timer(Protocol):
    """What `later` returns."""

    def cancel(self) -> object:
        """It does not fire any more."""
        ...


@dataclass(frozen=True, slots=True)
class Counts:
    """What there is, for the status.

    Attributes:
        parked: Calls that wait for a retry.
        answering: Calls that a retry won and that run.
        finished: Calls whose result waits for a retry.
        principals: All of these by principal.
        upstreams: All of these by upstream.
        bytes: Size of the results that wait.
        died: Calls whose deadline passed so far.
    """

    parked: int
    answering: int
    finished: int
    principals: dict[str, int]
    upstreams: dict[str, int]
    bytes: int
    died: int


class Parking(Generic[T]):
    """The parked calls of one process.

    Args:
        run: Name of this run, which no other has.
        limits: Bounds.
        clock: Tells the time in seconds since 1970.
        later: Calls a function after some seconds, as `asyncio.AbstractEventLoop.call_later` does.
        died: Gets each call whose deadline passed, once; must return at once and not raise. Cancel it upstream.
    """

    def __init__(
        self,
        run: str,
        limits: Limits,
        *,
        clock: Callable[[], float],
        later: Callable[[float, Callable[[], None]], Timer],
        died: Callable[[Parked[T]], None],
    ) -> None:
        self._run = run
        self._limits = limits
        self._clock = clock
        self._later = later
        self._died = died
        self._calls: dict[str, Parked[T]] = {}
        self._ends: list[tuple[float, str]] = []
        self._timer: Timer | None = None
        self._wakes = 0.0
        self._made = 0
        self._bytes = 0
        self._dead = 0
        self._principals: Counter[str] = Counter()
        self._upstreams: Counter[str] = Counter()

    def __len__(self) -> int:
        """How many calls there are, in any state."""
        return len(self._calls)

    def put(self, call: T, *, principal: str, upstream: str, expires: float) -> Parked[T] | ErrorValue:
        """Parks a call that was not parked before.

        Args:
            call: What its owner needs to go on.
            principal: Name of the principal.
            upstream: Name of the upstream.
            expires: When it dies unless a retry comes.

        Returns:
            The parked call; or the error with the name of the limit that is reached.
        """
        limits = self._limits
        for name, most, count, whose in (
            ("parked", limits.parked, len(self._calls), "the gateway"),
            ("principal_parked", limits.principal_parked, self._principals[principal], "this credential"),
            ("upstream_parked", limits.upstream_parked, self._upstreams[upstream], "this upstream"),
        ):
            if count >= most:
                words = f"too many calls of {whose} wait for answers: {count} (limit: {name})"
                return ErrorValue(LIMIT_REACHED, words, {"limit": name})
        self._made += 1
        parked = Parked(f"{self._run}-{self._made}", principal, upstream, call, expires)
        self._calls[parked.id] = parked
        self._principals[principal] += 1
        self._upstreams[upstream] += 1
        self._schedule(parked)
        return parked

    def claim(self, name: str, number: int) -> Parked[T] | ErrorValue:
        """A retry takes a call: exactly one per round.

        Args:
            name: Id of the call, out of a state that was opened.
            number: Round that the retry answers.

        Returns:
            The call: answering, or ended with what was kept for this retry. Else why it is not for this retry: somebody
            was faster, or the call is of another run.
        """
        parked = self._calls.get(name)
        if parked is None:
            return USED if name.startswith(f"{self._run}-") else LOST
        if parked.round != number or parked.state is State.ANSWERING:
            return USED
        if parked.state is State.FINISHED:
            self.end(parked)
        else:
            parked.state = State.ANSWERING
        return parked

    def find(self, name: str) -> Parked[T] | ErrorValue:
        """The call of this id, whatever it does; or why there is none: it ended, or it is of another run."""
        parked = self._calls.get(name)
        if parked is None:
            return USED if name.startswith(f"{self._run}-") else LOST
        return parked

    def renew(self, parked: Parked[T], expires: float) -> None:
        """Gives a call another deadline: it asks once more."""
        parked.expires, parked.state = expires, State.PARKED
        self._schedule(parked)

    def resume(self, parked: Parked[T]) -> None:
        """A retry took the call over: it has no deadline while it runs."""
        parked.state = State.ANSWERING

    def again(self, parked: Parked[T], expires: float) -> ErrorValue | None:
        """Parks a call that a retry won and that asks once more: the next round.

        Returns:
            None; or the error that ends the call, which asked too often. It is ended then.
        """
        if parked.state is not State.ANSWERING:
            raise ValueError(f"a call that is {parked.state.value} is not parked again")
        if parked.round >= self._limits.rounds:
            self.end(parked)
            return ROUNDS
        parked.round += 1
        parked.expires = expires
        parked.state = State.PARKED
        self._schedule(parked)
        return None

    def keep(self, parked: Parked[T], result: object, size: int) -> bool:
        """Keeps what came for a parked call until its deadline.

        Args:
            parked: A call that is parked.
            result: What the next valid retry gets.
            size: Its size in bytes.

        Returns:
            Whether there was room; if not, keep a short error instead.
        """
        if parked.state is not State.PARKED:
            raise ValueError(f"nothing is kept for a call that is {parked.state.value}")
        if self._bytes + size > self._limits.parked_bytes:
            return False
        parked.state, parked.kept, parked.size = State.FINISHED, result, size
        self._bytes += size
        return True

    def end(self, parked: Parked[T]) -> None:
        """Forgets a call, whatever it does. May be said twice."""
        if self._calls.pop(parked.id, None) is None:
            return
        parked.state = State.DEAD
        self._bytes -= parked.size
        for counts, key in ((self._principals, parked.principal), (self._upstreams, parked.upstream)):
            counts[key] -= 1
            if not counts[key]:
                del counts[key]
        if len(self._ends) > 2 * len(self._calls) + _SLACK:
            self._tidy()

    def end_all(self) -> list[Parked[T]]:
        """Forgets all calls and returns them; nothing more happens by itself."""
        calls = [*self._calls.values()]
        for parked in calls:
            self.end(parked)
        self._ends.clear()
        self._arm()
        return calls

    def of(self, *, principal: str | None = None, upstream: str | None = None) -> list[Parked[T]]:
        """The calls of a principal or an upstream that is gone."""
        return [
            parked
            for parked in self._calls.values()
            if principal in (None, parked.principal) and upstream in (None, parked.upstream)
        ]

    def counts(self) -> Counts:
        """What there is now."""
        states = Counter(parked.state for parked in self._calls.values())
        return Counts(
            states[State.PARKED],
            states[State.ANSWERING],
            states[State.FINISHED],
            dict(self._principals),
            dict(self._upstreams),
            self._bytes,
            self._dead,
        )

    # Deadlines

    def _schedule(self, parked: Parked[T]) -> None:
        heapq.heappush(self._ends, (parked.expires, parked.id))
        if self._timer is None or parked.expires < self._wakes:
            self._arm()

    def _arm(self) -> None:
        """Sets the one timer to the next deadline; without calls there is none."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._ends:
            self._wakes = self._ends[0][0]
            self._timer = self._later(max(self._wakes - self._clock(), 0.0), self._due)

    def _due(self) -> None:
        self._timer = None
        now = self._clock()
        over: list[Parked[T]] = []
        while self._ends and self._ends[0][0] <= now:
            expires, name = heapq.heappop(self._ends)
            if self._stands(expires, name):
                over.append(self._calls[name])
                self.end(over[-1])
        self._arm()
        self._dead += len(over)
        for parked in over:
            self._died(parked)

    def _stands(self, expires: float, name: str) -> bool:
        """Whether a deadline is that of a call that still waits, and of its present round."""
        parked = self._calls.get(name)
        return parked is not None and parked.state is not State.ANSWERING and parked.expires == expires

    def _tidy(self) -> None:
        """Drops deadlines of calls that ended, so that their number stays that of the calls."""
        self._ends = [entry for entry in self._ends if self._stands(*entry)]
        heapq.heapify(self._ends)
        self._arm()


_SLACK: Final = 64
"""Deadlines of ended calls that are left lying before they are cleared away."""
