"""A call that an upstream turns into a task, as a conversation in which it is answered like any other.

What decides about a call (`troth.bridge.exchange`) knows no tasks. It speaks to an `Awaiting`, which asks for a task
where the upstream wants that, waits for its end in the way of the revision, and hands over its result or error.

Source: 2025-11-25/basic/utilities/tasks; the extension ``io.modelcontextprotocol/tasks``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from troth.bridge import Bad, Cause, Frame, Kind, Lost, Outgoing, ask, error_line, opened, read, result_line, rewrite
from troth.bridge.errors import INTERNAL
from troth.bridge.promise import TASKS_KEY, with_tasks
from troth.gateway.model import UnavailableError
from troth.gateway.upstream.waiting import Refused, Waiter
from troth.tasks.face import RELATED
from troth.wire.words import excerpt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from troth.bridge import Id
    from troth.gateway.crew import Crew
    from troth.gateway.model import Conversation, Sink
    from troth.gateway.upstream.pause import Pause

POLL: Final = 1.0
"""Seconds between two looks where the upstream suggests none."""
POLL_LEAST: Final = 0.02
POLL_MOST: Final = 30.0
"""Bounds of what it suggests: it may neither keep us busy nor leave a host waiting long after the end."""
FAILURES: Final = 5
"""Looks at a task that may fail in a row where the upstream does not keep it while it cannot be reached."""
_LONGEST: Final = 1024
"""Characters of the longest id that an upstream may give."""
_WORDS: Final = 1024
"""Characters of its words on a state that are repeated."""
_MARK: Final = "troth-task:"
"""How the state begins by which questions of a task find it again. Only that upstream and we ever see it."""

_APART: Final = frozenset({Cause.DOWN, Cause.BROKEN, Cause.REFUSED})
"""Why a task cannot be reached: the call that it was made of arrived all the same."""

LATER: Final = frozenset({429, 502, 503, 504})
"""HTTP statuses by which a proxy, or a server that is just started, says that it is for later."""
_AWAY: Final = frozenset({Cause.DOWN, Cause.BROKEN, Cause.TIMEOUT})
"""Why an upstream was not reached, which is no word of it on its task."""

_SPENT: Final = frozenset({"completed", "failed", "cancelled"})


class Made(msgspec.Struct, frozen=True):
    """A task as an upstream tells of it, in either spelling.

    Attributes:
        taskId: The upstream's id.
        status: Its state.
        statusMessage: Words for people.
    """

    taskId: Annotated[str, msgspec.Meta(min_length=1, max_length=_LONGEST)]  # noqa: N815 - names of the protocol
    status: str = "working"
    statusMessage: str = ""  # noqa: N815
    pollInterval: float | None = None  # noqa: N815
    pollIntervalMs: float | None = None  # noqa: N815

    @property
    def pause(self) -> float:
        """Seconds until the next look."""
        told = self.pollIntervalMs if self.pollInterval is None else self.pollInterval
        return POLL if told is None else min(max(told / 1000, POLL_LEAST), POLL_MOST)


class _State(msgspec.Struct, frozen=True):
    """What the answers to questions of a task need to find it."""

    task: str
    asked: tuple[str, ...] = ()


_read_made = msgspec.json.Decoder(Made).decode
_read_state = msgspec.json.Decoder(_State).decode
_read_members = msgspec.json.Decoder(dict[str, Raw]).decode
_read_text = msgspec.json.Decoder(str).decode


class Awaiting:
    """One call towards an upstream. Implements `troth.gateway.model.Conversation` and, towards it, `Sink`.

    Args:
        conversation: Where the call goes.
        current: The conversation that is open now, by which a task of the extension is found again after a restart.
        crew: Owner of what waits.
        method: Budget in seconds for one look at a task.
        patience: Seconds for which a task is awaited, which is cancelled then.
        told: Hears of the task when it is there and whenever a look at it showed something; None for nobody.
        over: Called when the upstream need not hear of the task any more.
        stays: Whether a task of the extension that is given up goes on, since a later run of the gateway takes it up.
        found: The upstream's id of a task of the extension to go on with, in the place of a call; empty for none.
        keeps: Whether the upstream keeps its tasks while it cannot be reached now, so that they are waited for.
        pause: The time between two looks that fail.
    """

    def __init__(
        self,
        conversation: Conversation,
        current: Callable[[], Conversation | None],
        crew: Crew,
        *,
        method: float,
        patience: float,
        told: Callable[[Made], None] | None = None,
        over: Callable[[], None] = lambda: None,
        stays: Callable[[], bool] = lambda: False,
        found: str = "",
        keeps: Callable[[], bool],
        pause: Pause,
    ) -> None:
        self.era = conversation.era
        self.revision = conversation.revision
        self.capabilities = conversation.capabilities
        self.instructions = conversation.instructions
        self.info = conversation.info
        self._conversation = conversation
        self._current = current
        self._extends = conversation.capabilities.has(TASKS_KEY)
        self._crew = crew
        self._method = method
        self._patience = patience
        self._told = told
        self._over = over
        self._stays = stays
        self._found = found
        self._keeps = keeps
        self._pause = pause
        self._sink: Sink = cast("Sink", None)
        self._request: Outgoing = cast("Outgoing", None)
        self._first: Id = 0
        self._task = ""
        self._asked: tuple[str, ...] = ()
        self._work: asyncio.Task[Any] | None = None
        self._withdrawn = False

    # Conversation

    @property
    def busy(self) -> bool:
        """See `Conversation`."""
        return self._conversation.busy

    def start(self, request: Outgoing, sink: Sink) -> Id:
        """Sends the call so that it may become a task; or, with answers to questions of one, goes on with that."""
        self._sink, self._withdrawn = sink, False
        if self._extends:
            self._request = replace(request, declares=with_tasks(request.declares))
            state = _state(request.params.get("requestState"))
            if state is not None:
                self._task, self._asked = state.task, state.asked
                self._go_on(self._update(request.params.get("inputResponses", {})))
                return self._first
            if self._found:
                self._task = self._found
                self._go_on(self._polled(Made(self._task, pollIntervalMs=0)))
                return self._first
        else:
            wish = {"ttl": int(self._patience * 1000)}
            drop = frozenset(request.drop) - {"task"}
            self._request = replace(request, params={**request.params, "task": wish}, drop=drop)
        self._first = self._conversation.start(self._request, self)
        return self._first

    def cancel(self, request: Id, reason: str) -> None:  # noqa: ARG002 - there is one
        """Gives the call up, and the task with it."""
        self._withdrawn = True
        if self._task and self._extends and self._stays():
            self._stop()
        elif self._task:
            self._end()
        elif self._extends:
            self._conversation.cancel(self._first, reason)
        # A core task may be there already, with its id on the way: whatever comes is cancelled then.

    def answer(self, line: bytes, question: Id | None = None) -> None:
        """See `Conversation`."""
        self._conversation.answer(line, question)

    def tell(self, method: str, params: Mapping[str, object] | None = None) -> None:
        """See `Conversation`."""
        self._conversation.tell(method, params)

    async def ask(self, request: Outgoing) -> Frame:
        """See `Conversation`."""
        return await self._conversation.ask(request)

    # Sink of the call

    def answered(self, frame: Frame) -> None:
        """A task, or what the call is answered with."""
        made = _made(frame, flat=self._extends)
        if made is None:
            if not self._withdrawn:
                self._sink.answered(frame)
            return
        if isinstance(made, Lost):
            self.lost(made)
            return
        self._task = made.taskId
        if self._withdrawn:
            self._end()
            return
        self._tell(made)
        self._go_on(self._polled(made) if self._extends else self._held(made))

    def notified(self, frame: Frame) -> None:
        """See `Sink`."""
        if not self._withdrawn:
            self._sink.notified(frame)

    def asked(self, frame: Frame) -> bool:
        """See `Sink`."""
        return not self._withdrawn and self._sink.asked(frame)

    def lost(self, why: Lost) -> None:
        """See `Sink`."""
        if not self._withdrawn:
            self._sink.lost(why)

    # The task

    def _go_on(self, work: Any) -> None:
        self._work = self._crew.spawn(self._bounded(work), "await a task of an upstream")

    async def _bounded(self, work: Any) -> None:
        """Waits for the end of the task, and hands it over. It is cancelled where it takes too long."""
        limit = self._patience
        try:
            async with asyncio.timeout(limit):
                found = await work
        except TimeoutError:
            self._work = None
            self._end()
            found = Lost(Cause.TIMEOUT, f"its task did not end in {limit:g} s (limit: awaited)")
        else:
            self._over()
        if self._withdrawn:
            return
        if isinstance(found, Lost):
            self._sink.lost(Lost(Cause.TASK, found.words) if found.cause in _APART else found)
        else:
            self._sink.answered(found)

    async def _held(self, made: Made) -> Frame | Lost:
        """Waits for the end of a core task by asking for its result, which the upstream holds back until then."""
        watching = self._crew.spawn(self._watch(made), "look at a task") if self._told is not None else None
        try:
            for _ in range(FAILURES):
                found = await self._result()
                if isinstance(found, Frame):
                    return await self._told_apart(found)
                # The answer that was held back got lost. The task need not be.
                looked = await self._look()
                if isinstance(looked, Lost):
                    return found
                await asyncio.sleep(looked.pause)
            return Lost(Cause.BROKEN, "it gives no result")
        finally:
            if watching is not None:
                watching.cancel()

    async def _told_apart(self, frame: Frame) -> Frame:
        """The result of a task; or why it has none, which some servers say by its state alone."""
        found = opened(frame)
        if isinstance(found, Bad) or found.kind is Kind.ERROR or "content" in (found.parts or {}):
            return frame if isinstance(found, Bad) or RELATED not in found.meta else _unrelated(found)
        looked = await self._look()
        if isinstance(looked, Lost) or looked.status not in _SPENT - {"completed"}:
            return _unrelated(found)
        words = excerpt(looked.statusMessage, _WORDS) or f"The upstream's task is {looked.status}"
        return _frame(error_line(0, INTERNAL, words))

    async def _result(self) -> Frame | Lost:
        """Asks for the result once. Questions of the task come meanwhile."""
        held = _Held(self)
        wish = Outgoing(frame=ask("tasks/result", {"taskId": self._task}), asks=self._request.asks)
        number = self._conversation.start(wish, held)
        try:
            return await held.outcome
        finally:
            if not held.outcome.done() or held.outcome.cancelled():
                self._conversation.cancel(number, "no longer needed")

    async def _watch(self, made: Made) -> None:
        """Looks at a core task from time to time, to tell of it."""
        while made.status not in _SPENT:
            await asyncio.sleep(made.pause)
            looked = await self._look()
            if isinstance(looked, Lost):
                return
            made = looked
            self._tell(made)

    async def _look(self) -> Made | Lost:
        try:
            frame = await self._send("tasks/get")
            return _read_made(frame.body or b"")
        except UnavailableError as error:
            return error.lost
        except (msgspec.MsgspecError, RecursionError):
            return Lost(Cause.MALFORMED, "tasks/get: no task in it")

    async def _polled(self, made: Made) -> Frame | Lost:
        """Looks at a task of the extension until it ends or asks; also while its upstream cannot be reached."""
        failures = 0
        while True:
            if made.status not in _SPENT:
                await asyncio.sleep(made.pause)
            try:
                frame = await self._send("tasks/get")
                made = _read_made(frame.body or b"")
            except UnavailableError as error:
                failures += 1
                away = error.error is None and self._away(error.lost)
                if error.error is not None or (failures >= FAILURES and not away):
                    return error.lost
                if away:
                    await self._rest()
                continue
            except (msgspec.MsgspecError, RecursionError):
                return Lost(Cause.MALFORMED, "tasks/get: no task in it")
            failures = 0
            self._tell(made)
            found = self._ended(made, frame.parts or {})
            if found is not None:
                return found

    def _ended(self, made: Made, parts: Mapping[str, Raw]) -> Frame | Lost | None:
        """What the call is answered with; None while the task runs."""
        if made.status == "completed":
            return _frame(b'{"jsonrpc":"2.0","id":0,"result":%b}' % bytes(parts.get("result", b"{}")))
        if made.status == "failed":
            plain = error_line(0, INTERNAL, "The upstream's task failed without an error")
            return _frame(b'{"jsonrpc":"2.0","id":0,"error":%b}' % bytes(parts["error"]) if "error" in parts else plain)
        if made.status == "cancelled":
            return _frame(error_line(0, INTERNAL, "The upstream cancelled its task"))
        if made.status == "input_required":
            return self._asking(parts.get("inputRequests", Raw(b"{}")))
        return None

    def _asking(self, raw: Raw) -> Frame | Lost | None:
        """Questions that were not asked before, as the result that asks them."""
        try:
            requests = {key: entry for key, entry in _read_members(raw).items() if key not in self._asked}
        except msgspec.DecodeError:
            return Lost(Cause.MALFORMED, "inputRequests is no object")
        if not requests:
            return None
        state = _State(self._task, (*self._asked, *requests))
        text = _MARK + msgspec.json.encode(state).decode()
        return _frame(result_line(0, {"resultType": "input_required", "inputRequests": requests, "requestState": text}))

    async def _update(self, responses: object) -> Frame | Lost:
        """Brings answers to the task, and waits on."""
        while True:
            try:
                await self._send("tasks/update", {"inputResponses": responses})
                break
            except UnavailableError as error:
                # What was sent is not sent again.
                if error.lost.cause is not Cause.DOWN or not self._keeps():
                    return error.lost
                await self._rest()
        return await self._polled(Made(self._task, pollIntervalMs=0))

    def _away(self, lost: Lost) -> bool:
        """Whether the upstream keeps the task and only cannot be reached, be it by word of a proxy."""
        later = isinstance(lost, Refused) and lost.status in LATER
        return (later or lost.cause in _AWAY) and self._keeps()

    async def _rest(self) -> None:
        await asyncio.sleep(min(self._pause.next(), POLL_MOST))

    async def _send(self, method: str, more: Mapping[str, object] | None = None) -> Frame:
        frame = ask(method, {"taskId": self._task, **(more or {})})
        again = method == "tasks/get"
        declares = self._request.declares if self._extends else None
        # A core task lives in the session that made it.
        now = self._current() if self._extends else None
        return await (now or self._conversation).ask(
            Outgoing(frame=frame, name=self._task, declares=declares, timeout=self._method, again=again)
        )

    def _end(self) -> None:
        """Stops waiting, and has the upstream stop."""
        self._stop()
        self._crew.spawn(self._cancelled(), "cancel a task of an upstream")

    def _stop(self) -> None:
        if self._work is not None:
            self._work.cancel()

    async def _cancelled(self) -> None:
        try:
            await self._send("tasks/cancel")
        except UnavailableError as error:
            # It ended by itself, cannot be cancelled, or is gone with its upstream: nobody waits for it any more.
            if error.error is None:
                return
        self._over()

    def _tell(self, made: Made) -> None:
        if self._told is not None:
            self._told(made)


class _Held(Waiter):
    """The sink of ``tasks/result``: what comes with it belongs to the call."""

    def __init__(self, call: Awaiting) -> None:
        super().__init__(call.notified)
        self._call = call

    def asked(self, frame: Frame) -> bool:
        """See `Sink`."""
        return self._call.asked(frame)


def _made(frame: Frame, *, flat: bool) -> Made | Lost | None:
    """The task that a call was answered with; None for any other answer."""
    found = opened(frame)
    if isinstance(found, Bad) or found.kind is not Kind.RESPONSE:
        return None
    parts = found.parts or {}
    try:
        if flat:
            sort = _text(parts.get("resultType"))
            return _read_made(found.body or b"") if sort == "task" else None
        return _read_made(parts["task"]) if "task" in parts and "content" not in parts else None
    except (msgspec.MsgspecError, RecursionError):
        return Lost(Cause.MALFORMED, "a task without an id")


def _unrelated(frame: Frame) -> Frame:
    """A result without the mark that it belongs to a task, which the host knows nothing of."""
    return _frame(rewrite(frame, drop_meta=(RELATED,)))


def _frame(line: bytes) -> Frame:
    """A message of ours as one that came."""
    found = read(line)
    return _frame(error_line(0, INTERNAL, "The upstream's task has no result")) if isinstance(found, Bad) else found


def _state(value: object) -> _State | None:
    """What `Awaiting` wrote into a state; None for states of upstreams."""
    text = _text(value)
    if text is None or not text.startswith(_MARK):
        return None
    try:
        return _read_state(text.removeprefix(_MARK))
    except msgspec.MsgspecError:
        return None


def _text(value: object) -> str | None:
    if isinstance(value, Raw):
        try:
            return _read_text(value)
        except msgspec.DecodeError:
            return None
    return value if isinstance(value, str) else None
