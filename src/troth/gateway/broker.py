"""Questions of upstreams that no host answers: kept for people, or for a command of the operator's, until a deadline.

They lie in a SQLite file, so that a question whose asker survives a restart survives it too. Answers are never made
up: they come from somebody who looks, or nothing comes and the question expires.
"""

from __future__ import annotations

import logging
import secrets
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import msgspec
from msgspec import Raw

from troth.bridge.errors import ErrorValue
from troth.bridge.questions import QuestionKind
from troth.gateway.answering import ask_command
from troth.gateway.forms import check
from troth.gateway.hosts.asgi import LIMIT_REACHED
from troth.tasks.database import Database
from troth.tasks.model import StoreError
from troth.tasks.rows import Rows
from troth.tasks.signals import Signals

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from troth.gateway.crew import Crew
    from troth.gateway.limits import Limits

_log = logging.getLogger(__name__)

T = TypeVar("T")

VERSION: Final = 1
SCHEMA: Final = (
    """CREATE TABLE questions (
        id TEXT PRIMARY KEY, upstream TEXT NOT NULL, state TEXT NOT NULL, asked REAL NOT NULL, expires REAL NOT NULL,
        question BLOB NOT NULL
    )""",
    "CREATE INDEX by_state ON questions (state, asked)",
)

_LETTERS: Final = "abcdefghjkmnpqrstuvwxyz23456789"
"""Letters of ids, which people type: none that looks like another."""
_LENGTH: Final = 6
_RECHECK: Final = 1.0
"""Seconds after which an answer that another process took is seen."""
_KEPT: Final = 24 * 3600.0
"""Seconds for which it is kept what became of a question, without its answer."""
RETRY: Final = 5.0
"""Seconds after a failure to write to the file, in which it is not tried again."""
_SHOWN: Final = 1000
"""Questions of one listing."""

_encode = msgspec.json.Encoder().encode
_NULL: Final = Raw(b"null")


class State(StrEnum):
    """What became of a question."""

    PENDING = "pending"
    ANSWERED = "answered"
    DECLINED = "declined"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """A question that somebody is to answer, or was.

    Attributes:
        id: Short, for people to type.
        upstream: Name of the upstream that asks.
        principal: Name of the principal whose call it is.
        kind: What it is about.
        params: What the upstream asks: members of the params, as JSON.
        asked: When, in seconds since 1970.
        expires: When it is too late.
        survives: Whether its asker survives a restart: a round of a modern host, or a task.
        run: The run of the gateway whose call waits.
        state: What became of it.
        why: Words on that; empty for none.
        result: The answer: members of the result as JSON; null unless it is answered, and once it was fetched.
    """

    id: str
    upstream: str
    principal: str
    kind: QuestionKind
    params: Raw
    asked: float
    expires: float
    survives: bool = False
    run: str = ""
    state: State = State.PENDING
    why: str = ""
    result: Raw = _NULL


_decode = msgspec.json.Decoder(Pending).decode
_members = msgspec.json.Decoder(dict[str, Raw]).decode


def _read(data: bytes) -> Pending:
    """The question of a row.

    Raises:
        ValueError: It is none.
        RecursionError: It nests too deep.
    """
    found = _decode(data)
    _members(found.params)
    return found


class Broker:
    """Pending questions of one gateway. Must be made inside the loop; `start` before all else.

    Args:
        path: The file (0600). Several processes may share it.
        limits: Bounds.
        run: Name of this run, which no other has.
        clock: Tells the time in seconds since 1970.
        command: What the operator lets answer, as program and arguments; empty for nobody but people.
        crew: Owns the runs of the command.

    Attributes:
        command: As given; may be changed at any time.
        problem: Why the file cannot be used, in words, since it was last tried; empty while it can.
    """

    def __init__(
        self,
        path: Path,
        limits: Limits,
        *,
        run: str,
        clock: Callable[[], float],
        crew: Crew,
        command: Sequence[str] = (),
    ) -> None:
        self._database = Database(path, SCHEMA, VERSION)
        self._table = _Table(path)
        self._limits = limits
        self._name = run
        self._clock = clock
        self._crew = crew
        self.command = tuple(command)
        self.problem = ""
        self._failed = -RETRY
        self._alive: Callable[[str], bool] | None = None
        self._opening = anyio.Lock()
        self._writing = anyio.Lock()
        self._signals = Signals()
        self._watched_until = 0.0

    # For the gateway

    async def start(self, alive: Callable[[str], bool] = lambda _run: False) -> tuple[int, int]:
        """Looks after what earlier runs left: what still has an asker stays, the rest is cancelled.

        Where the file cannot be used, that is done before the next thing that somebody wants of it, at most every
        `RETRY` seconds.

        Args:
            alive: Whether another run still runs.

        Returns:
            How many questions stay, and how many were cancelled.

        Raises:
            StoreError: The file cannot be used.
        """
        self._alive = alive
        return await self._look_after()

    async def ask(
        self,
        kind: QuestionKind,
        params: Mapping[str, Any],
        *,
        upstream: str,
        principal: str,
        survives: bool = False,
        seconds: float | None = None,
    ) -> Pending | ErrorValue:
        """Keeps a question, and gives it to the operator's command if there is one. Then `wait` for the answer.

        Args:
            kind: What it is about.
            params: Members of its params: JSON values, or `Raw`.
            upstream: Name of the upstream.
            principal: Name of the principal whose call it is.
            survives: Whether its asker survives a restart.
            seconds: Until it is too late; None for `Limits.question`.

        Returns:
            The question; or the error with the name of the limit that is reached.
        """
        now = self._clock()
        question = Pending(
            id="",
            upstream=upstream,
            principal=principal,
            kind=kind,
            params=Raw(_encode(params)),
            asked=now,
            expires=now + (self._limits.question if seconds is None else seconds),
            survives=survives,
            run=self._name,
        )
        if len(bytes(question.params)) > self._limits.question_bytes:
            return _over("question_bytes", "the question is too large to be kept for people")
        kept = await self._do(lambda connection: self._insert(connection, question))
        if isinstance(kept, Pending):
            self._signals.fire(_ANY)
            if self.command:
                self._crew.spawn(self._ask_command(kept), "question to the operator's command")
        return kept

    async def wait(self, name: str) -> Pending | None:
        """Waits until a question is settled: answered, declined, cancelled, or over its deadline.

        The answer is handed out once and not kept. If this is cancelled, the question stays; `cancel` it.

        Returns:
            What became of it; None for an id that there is no question of.
        """
        with self._signals.of(name) as signal:
            while True:
                changed = signal.event
                question = await self.show(name)
                if question is None:
                    return None
                left = question.expires - self._clock()
                if question.state is State.PENDING and left <= 0:
                    await self._settle(name, State.EXPIRED, "nobody answered in time")
                    continue
                if question.state is not State.PENDING:
                    await self._write(_without_answer(question))
                    return question
                with anyio.move_on_after(min(left, _RECHECK)):
                    await changed.wait()

    async def withdraw(self, upstream: str, why: str) -> int:
        """Cancels the questions of this run that an upstream asked which is gone; returns how many."""
        mine = [one for one in await self._find(State.PENDING) if (one.upstream, one.run) == (upstream, self._name)]
        return sum([isinstance(await self._settle(one.id, State.CANCELLED, why), Pending) for one in mine])

    async def close(self) -> None:
        """Lets go of the file."""
        await self._database.close()

    # For people

    @property
    def watched(self) -> bool:
        """Whether somebody watches now."""
        return self._clock() < self._watched_until

    def watch(self) -> None:
        """Somebody watches: counts for `Limits.watching` seconds."""
        self._watched_until = self._clock() + self._limits.watching

    async def pending(self, *, settled: bool = False) -> tuple[Pending, ...]:
        """The questions that wait, the oldest first; also those that were settled lately if that is wanted."""
        now = self._clock()
        found = await self._find(*(State if settled else (State.PENDING,)))
        return tuple(_without_answer(one) for one in found if settled or now < one.expires)

    async def show(self, name: str) -> Pending | None:
        """One question; None if there is none of this id."""
        return await self._do(lambda connection: self._table.get(connection, name), write=False)

    async def answer(self, name: str, value: object) -> Pending | str:
        """Answers a question.

        Args:
            name: Its id.
            value: For a form what is filled in, an object with a value per field. For a visit to an address nothing
                (None): it was made. For all else the members of the result.

        Returns:
            The question; or why this is no answer to it.
        """
        question = await self.show(name)
        if question is None or question.state is not State.PENDING:
            return _not_pending(name, question)
        result = _result(question, value)
        return result if isinstance(result, str) else await self._settle(name, State.ANSWERED, "", result)

    async def decline(self, name: str) -> Pending | str:
        """Says no to a question; returns it, or why that cannot be."""
        return await self._settle(name, State.DECLINED, "")

    async def cancel(self, name: str, why: str = "") -> Pending | str:
        """Ends a question without an answer; returns it, or why that cannot be."""
        return await self._settle(name, State.CANCELLED, why)

    # Within

    def _insert(self, connection: sqlite3.Connection, question: Pending) -> Pending | ErrorValue:
        # What is over its deadline no longer counts, though nobody may be left to settle it.
        waiting = "SELECT count(*) FROM questions WHERE state = 'pending' AND expires > ?"
        for limit, most, statement, values in (
            ("questions", self._limits.questions, waiting, (question.asked,)),
            (
                "upstream_questions",
                self._limits.upstream_questions,
                f"{waiting} AND upstream = ?",
                (question.asked, question.upstream),
            ),
        ):
            if connection.execute(statement, values).fetchone()[0] >= most:
                return _over(limit, "too many questions wait for people")
        while True:
            name = "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))
            if connection.execute("SELECT 1 FROM questions WHERE id = ?", (name,)).fetchone() is None:
                kept = msgspec.structs.replace(question, id=name)
                _write(connection, kept)
                return kept

    async def _write(self, question: Pending) -> None:
        await self._do(lambda connection: _write(connection, question))

    async def _settle(self, name: str, state: State, why: str, result: Raw = _NULL) -> Pending | str:
        """Settles a question that is pending; one of several wins."""
        now = self._clock()
        found = await self._do(
            lambda connection: self._table.settle(connection, name, now, state=state, why=why, result=result)
        )
        self._signals.fire(name)
        return _without_answer(found) if isinstance(found, Pending) else found

    async def _find(self, *states: State) -> list[Pending]:
        return await self._do(lambda connection: self._table.find(connection, *states), write=False)

    async def _do(self, work: Callable[[sqlite3.Connection], T], *, write: bool = True) -> T:
        """Does something with the file; see `Database.run`.

        Raises:
            StoreError: It cannot be used.
        """
        if self._alive is not None:
            await self._look_after()
        return await self._told(work, write=write)

    async def _told(self, work: Callable[[sqlite3.Connection], T], *, write: bool = True) -> T:
        """Does something with the file; see `_run`.

        Where writing fails, whoever comes in the next `RETRY` seconds hears so at once: a file that another program
        holds would cost each of them the wait for it, one after the other.
        """
        if not write:
            return await self._run(work, write=False)
        async with self._writing:
            if 0 <= self._clock() - self._failed < RETRY:
                raise StoreError(self.problem)
            try:
                found = await self._run(work)
            except StoreError:
                self._failed = self._clock()
                raise
            self._failed = -RETRY
            return found

    async def _run(self, work: Callable[[sqlite3.Connection], T], *, write: bool = True) -> T:
        """Does something with the file, and tells the operator of what is wrong with that, once."""
        try:
            found = await self._database.run(work, write=write)
        except StoreError as error:
            if self.problem != str(error):
                self.problem = str(error)
                _log.error("questions cannot be kept for people: %s", error)
            raise
        if write and self.problem:
            self.problem = ""
            _log.warning("questions can be kept for people again")
        return found

    async def _look_after(self) -> tuple[int, int]:
        """See `start`."""
        async with self._opening:
            alive, now = self._alive, self._clock()
            if alive is None:
                return 0, 0

            def look(connection: sqlite3.Connection) -> tuple[int, int]:
                _forget(connection, now - _KEPT)
                left = self._table.find(connection, State.PENDING)
                left = [one for one in left if one.run != self._name and not alive(one.run)]
                over = [one for one in left if not one.survives or now >= one.expires]
                self._table.end(connection, over, now)
                return len(left) - len(over), len(over)

            found = await self._told(look)
            self._alive = None
            return found

    async def _ask_command(self, question: Pending) -> None:
        """Asks the operator's command; what is no answer of it leaves the question to people."""
        with suppress(StoreError):
            answer = await ask_command(self.command, as_told(question), max(question.expires - self._clock(), 0.0))
            if isinstance(answer, str):
                _log.warning("the command for questions gave no answer to %s: %s", question.id, answer)
                return
            problem = await act(self, question.id, answer)
            if isinstance(problem, str):
                _log.warning("the command for questions gave no answer to %s: %s", question.id, problem)


_ANY: Final = "*"

_ACTIONS: Final = ("accept", "decline", "cancel")


async def act(broker: Broker, name: str, said: Mapping[str, Any]) -> Pending | str:
    """Does what people or the command say about a question.

    Args:
        broker: The broker.
        name: The question.
        said: ``action`` (``accept``, ``decline``, ``cancel``), and with ``accept`` the ``content``.

    Returns:
        The question; or why that cannot be done.
    """
    match said.get("action"):
        case "accept":
            return await broker.answer(name, said.get("content"))
        case "decline":
            return await broker.decline(name)
        case "cancel":
            return await broker.cancel(name, "cancelled by the operator")
        case _:
            return f"action: one of {', '.join(_ACTIONS)} belongs here"


def as_told(question: Pending) -> dict[str, Any]:
    """A question as people and the command get it: JSON values, without an answer."""
    told = msgspec.structs.asdict(question)
    del told["result"], told["run"]
    return told


def _result(question: Pending, value: object) -> Raw | str:
    """The result that an answer makes; or why it is none."""
    match question.kind:
        case QuestionKind.FORM:
            schema = _members(question.params).get("requestedSchema", Raw(b"{}"))
            problem = check(schema, Raw(_encode(value)))
            return problem or Raw(_encode({"action": "accept", "content": value}))
        case QuestionKind.URL:
            return "a visit to an address has no content" if value else Raw(b'{"action":"accept"}')
        case QuestionKind.ROOTS:
            return Raw(_encode(value)) if _has(value, "roots", list) else "an object with a list of roots belongs here"
        case QuestionKind.SAMPLING:
            fits = _has(value, "role", str) and _has(value, "model", str) and _has(value, "content", (dict, list))
            return Raw(_encode(value)) if fits else "an object with role, model and content belongs here"


def _has(value: object, name: str, kind: type | tuple[type, ...]) -> bool:
    return isinstance(value, dict) and isinstance(value.get(name), kind)  # pyright: ignore[reportUnknownMemberType]


def _not_pending(name: str, question: Pending | None) -> str:
    return f"there is no question {name}" if question is None else f"the question {name} is {question.state} already"


def _without_answer(question: Pending) -> Pending:
    return msgspec.structs.replace(question, result=_NULL)


def _over(limit: str, words: str) -> ErrorValue:
    return ErrorValue(LIMIT_REACHED, f"{words} (limit: {limit})", {"limit": limit})


def _write(connection: sqlite3.Connection, question: Pending) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO questions VALUES (?, ?, ?, ?, ?, ?)",
        (question.id, question.upstream, question.state, question.asked, question.expires, _encode(question)),
    )


class _Table:
    """The questions in the file, of which those that cannot be read are left out.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._rows = Rows(path, "question", _read)

    def get(self, connection: sqlite3.Connection, name: str) -> Pending | None:
        """The question of this id."""
        row = connection.execute("SELECT rowid, question FROM questions WHERE id = ?", (name,)).fetchone()
        return None if row is None else self._rows.read(*row)

    def find(self, connection: sqlite3.Connection, *states: State) -> list[Pending]:
        """Questions of these states, the oldest first; of each the youngest `_SHOWN`."""
        statement = "SELECT rowid, question FROM questions WHERE state = ? ORDER BY asked DESC, id LIMIT ?"
        found: list[Pending] = []
        for state in states:
            found += self._rows.first(
                _SHOWN, lambda limit, state=state: connection.execute(statement, (state, limit)).fetchall()
            )
        return sorted(found, key=lambda one: (one.asked, one.id))

    def settle(
        self, connection: sqlite3.Connection, name: str, now: float, *, state: State, why: str, result: Raw = _NULL
    ) -> Pending | str:
        """Settles a question that is pending; returns it, or why that cannot be."""
        question = self.get(connection, name)
        if question is None or question.state is not State.PENDING:
            return _not_pending(name, question)
        if now >= question.expires and state is not State.EXPIRED:
            return f"the question {name} is over its deadline"
        settled = msgspec.structs.replace(question, state=state, why=why, result=result)
        _write(connection, settled)
        return settled

    def end(self, connection: sqlite3.Connection, questions: Sequence[Pending], now: float) -> None:
        """Settles questions of runs that ended."""
        for question in questions:
            late = now >= question.expires
            state = State.EXPIRED if late else State.CANCELLED
            why = "nobody answered in time" if late else "the gateway was started anew"
            self.settle(connection, question.id, now, state=state, why=why)


def _forget(connection: sqlite3.Connection, before: float) -> None:
    connection.execute("DELETE FROM questions WHERE state != 'pending' AND expires < ?", (before,))
