"""Calls that wait for a modern host to come again with answers: found by the id in its state, and bounded in number.

A parked call is an opaque value here. Which retry wins a round, and how long a call waits, its exchange decides.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from troth.bridge import BAD_PARAMS
from troth.bridge.errors import INTERNAL, ErrorValue
from troth.gateway.hosts.asgi import LIMIT_REACHED

if TYPE_CHECKING:
    from troth.gateway.limits import Limits

T = TypeVar("T")

USED: Final = ErrorValue(BAD_PARAMS, "requestState: already used: another retry answered this round")
LOST: Final = ErrorValue(INTERNAL, "The call was lost when the gateway was started anew, and may have had effects")


@dataclass(frozen=True, slots=True)
class Parked(Generic[T]):
    """One call.

    Attributes:
        id: Its id, which says in which run it was parked.
        principal: Name of the principal whose it is.
        upstream: Name of the upstream that it waits for.
        call: Whatever the owner needs to go on.
    """

    id: str
    principal: str
    upstream: str
    call: T


class Parking(Generic[T]):
    """The parked calls of one process.

    Args:
        run: Name of this run, which no other has.
        limits: Bounds.
    """

    def __init__(self, run: str, limits: Limits) -> None:
        self._run = run
        self._limits = limits
        self._calls: dict[str, Parked[T]] = {}
        self._made = 0
        self._principals: Counter[str] = Counter()
        self._upstreams: Counter[str] = Counter()

    def __len__(self) -> int:
        """How many calls there are."""
        return len(self._calls)

    def put(self, call: T, *, principal: str, upstream: str) -> Parked[T] | ErrorValue:
        """Parks a call that was not parked before.

        Args:
            call: What its owner needs to go on.
            principal: Name of the principal.
            upstream: Name of the upstream.

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
        parked = Parked(f"{self._run}-{self._made}", principal, upstream, call)
        self._calls[parked.id] = parked
        self._principals[principal] += 1
        self._upstreams[upstream] += 1
        return parked

    def find(self, name: str) -> Parked[T] | ErrorValue:
        """The call of this id; or why there is none: it ended, or it is of another run."""
        parked = self._calls.get(name)
        if parked is None:
            return USED if name.startswith(f"{self._run}-") else LOST
        return parked

    def end(self, parked: Parked[T]) -> None:
        """Forgets a call. May be said twice."""
        if self._calls.pop(parked.id, None) is None:
            return
        for counts, key in ((self._principals, parked.principal), (self._upstreams, parked.upstream)):
            counts[key] -= 1
            if not counts[key]:
                del counts[key]

    def all(self) -> list[Parked[T]]:
        """Every call."""
        return [*self._calls.values()]
