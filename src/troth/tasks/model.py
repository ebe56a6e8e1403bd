"""Values of tasks: states and their moves, what is kept of a task, who asked for it, limits.

A task is kept in the words of neither revision; `troth.tasks.core` and `troth.tasks.extension` spell it.

Source: 2025-11-25/basic/utilities/tasks; the extension ``io.modelcontextprotocol/tasks``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from troth.bridge.errors import ErrorValue

if TYPE_CHECKING:
    from collections.abc import Mapping

LIMIT_REACHED: Final = -32000
"""Code of the refusal for a limit of ours, of the range that is left to implementations."""


class Status(StrEnum):
    """The states of a task. Both revisions have these five."""

    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    """The request has a result, also one that reports an error of the tool; each face spells that in its own way."""
    FAILED = "failed"
    """The request ended with an error of JSON-RPC."""
    CANCELLED = "cancelled"


MOVES: Final[Mapping[Status, frozenset[Status]]] = {
    Status.WORKING: frozenset(Status),
    Status.INPUT_REQUIRED: frozenset(Status),
    Status.COMPLETED: frozenset(),
    Status.FAILED: frozenset(),
    Status.CANCELLED: frozenset(),
}
"""Where a task may go. To stay where it is counts as a move: its message or its questions change."""

ENDED: Final = frozenset(status for status, moves in MOVES.items() if not moves)
"""The states that are never left."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a request ended, or how a question was answered: a result or an error.

    Attributes:
        result: The result as JSON, an object; null where there is an error.
        error: The error; None where there is a result.
        is_error: Whether the result reports an error of the tool (``isError``).
    """

    result: Raw = Raw(b"null")
    error: ErrorValue | None = None
    is_error: bool = False


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A task as it is kept. Times in seconds since 1970, durations in milliseconds as on the wire.

    Attributes:
        id: At least 128 random bits, as text that fits into a header.
        owner: Key of the requester that it belongs to.
        method: Method of the request that it stands for.
        created: When it was made.
        updated: When it last changed.
        ttl: Time to live from its creation, as promised to the requester.
        expires: When it is swept away.
        poll: Pause between two looks that is suggested to the requester.
        status: Its state.
        message: Words on the state for people; empty for none.
        asked: Questions that wait for an answer, by key, as JSON objects with ``method`` and ``params``.
        answers: Answers that the work has not fetched yet, by key.
        used: Keys of all questions so far; none is used twice.
        run: The run of a program that does the work.
        keep: What its owner needs to go on with the work after a restart; empty if it cannot.
        version: Counts changes; an update names the one it follows.
        outcome: How it ended; None before, and in lists.
    """

    id: str
    owner: str
    method: str
    created: float
    updated: float
    ttl: int
    expires: float
    poll: int
    status: Status = Status.WORKING
    message: str = ""
    asked: dict[str, Raw] = {}
    answers: dict[str, Outcome] = {}
    used: tuple[str, ...] = ()
    run: str = ""
    keep: str = ""
    is_error: bool = False
    version: int = 0
    outcome: Outcome | None = None

    @property
    def ended(self) -> bool:
        """Whether it changes no more."""
        return self.status in ENDED


@dataclass(frozen=True, slots=True)
class Requester:
    """Who asks for a task.

    Attributes:
        key: The same after a restart; nobody else has it, unless it is shared.
        shared: Whether several hosts come under this key and cannot be told apart (one token for all, or none). They
            get no list: the id alone opens a task, and it lives for a short time.
    """

    key: str
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """Some tasks of one requester, the oldest first.

    Attributes:
        tasks: The tasks, without their outcomes.
        after: Where the next page begins; None for the last page.
    """

    tasks: tuple[Task, ...]
    after: tuple[float, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLimits:
    """Bounds of one engine. Durations in milliseconds where the wire has them, else in seconds.

    Attributes:
        ttl: Time to live where the requester names none.
        ttl_least: Least time to live: a host must be able to ask twice.
        ttl_most: Longest time to live. Results may be large, and are kept on disk.
        ttl_shared: Longest one where ids alone grant access.
        poll: Pause between two looks that is suggested.
        kept: Most tasks at once.
        requester_kept: Most tasks of one requester.
        page: Most tasks of one page of a list.
        asked: Most questions of one task that wait at once.
        questions: Most questions of one task in its life; their keys are kept.
        question: Most bytes of a question or an answer.
        outcome: Most bytes of an outcome.
        message: Most characters of the words on a state.
        grace: Seconds for which a task that ran out of time still says so.
        recheck: Seconds after which a change by another process is seen.
        sweep: Seconds between two looks for tasks whose time is over.
    """

    ttl: int = 3_600_000
    ttl_least: int = 1_000
    ttl_most: int = 7 * 24 * 3_600_000
    ttl_shared: int = 600_000
    poll: int = 1_000
    kept: int = 10_000
    requester_kept: int = 1_000
    page: int = 100
    asked: int = 64
    questions: int = 1_024
    question: int = 1024 * 1024
    outcome: int = 16 * 1024 * 1024
    message: int = 1_024
    grace: float = 60.0
    recheck: float = 5.0
    sweep: float = 5.0


class StoreError(Exception):
    """Tasks cannot be kept or read. The message says which file, what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question for the requester.

    Attributes:
        method: ``elicitation/create``, ``sampling/createMessage`` or ``roots/list``.
        params: Its params as a JSON value.
    """

    method: str
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def raw(self) -> Raw:
        """The question as it is kept."""
        return Raw(msgspec.json.encode({"method": self.method, "params": self.params}))


def unknown() -> ErrorValue:
    """The refusal of an id that this requester has no task for: foreign and lost ones look the same."""
    return ErrorValue(-32602, "Unknown task: there is none with this taskId, or its time is over")
