"""What upstreams ask outside of calls, and what hosts say of their roots: rule 5 of questions without a call.

Servers ask for roots as soon as they are initialized. Nothing tells which host is meant, so the one legacy host of the
fleet is asked if there is but one. A modern host cannot be asked outside of its calls: its next call brings the
question along, and what it answers is kept for that session of the upstream. Else the operator's roots are told.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, cast
from weakref import WeakKeyDictionary, WeakSet

import anyio
import msgspec

from troth.bridge import Bad, fresh, peek, replies
from troth.bridge.asks import ROOTS, ROOTS_CHANGED
from troth.bridge.exchange_model import SETTLING
from troth.bridge.questions import Question, for_host, read_request, refused
from troth.bridge.tree import text
from troth.gateway.model import Sort

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from troth.bridge import Frame, Id
    from troth.gateway.asked import HostSession
    from troth.gateway.audience import Audience
    from troth.gateway.calls import Call
    from troth.gateway.fleet import Fleet
    from troth.gateway.limits import Limits
    from troth.gateway.member import Member
    from troth.gateway.model import Conversation, Host

EARLY: Final = 16
"""Questions of one session of an upstream that wait for a host. A server asks for roots once."""


TELLING: Final = 1.0
"""Seconds from a question on in which calls wait for roots that their upstream asked for before. Hosts tell them
without a person; one that did not in that time delays no call again before it tells something."""


class _Answer(msgspec.Struct):
    """What was answered to a question."""

    result: dict[str, msgspec.Raw] = {}


_read_answer = msgspec.json.Decoder(_Answer).decode


class Waiting(NamedTuple):
    """A question that waits for a host.

    Attributes:
        member: Whose it is.
        question: The question.
        timer: Ends the wait.
    """

    member: Member
    question: Question
    timer: asyncio.TimerHandle


class Outside:
    """A question of a legacy upstream outside of calls, on its way to a legacy host and back.

    Args:
        question: The question.
        conversation: Where the answer goes.
        number: The upstream's id of it.
        session: The host.
        ended: Called when it is over, with whether the host told something.
        nobody: Answers it in the host's place, which opened no stream to be asked on.
    """

    def __init__(
        self,
        question: Question,
        conversation: Conversation,
        number: Id,
        session: HostSession,
        *,
        ended: Callable[[bool], object],
        nobody: Callable[[], object],
    ) -> None:
        self._question = question
        self._session = session
        self._conversation = conversation
        self._number = number
        self._ended = ended
        self._nobody = nobody
        self._asked = ""
        self._timer: asyncio.TimerHandle | None = None

    def send(self, params: Mapping[str, object], seconds: float, early: float) -> None:
        """Asks, and waits no longer than that; for a host to open a stream no longer than `early`."""
        session = self._session
        self._asked = session.put(self, self._question.key)
        line = fresh.request_line(self._asked, self._question.method, params or None)
        session.audience.stream.send(line, Sort.OTHER)
        if session.reached:
            self._wait(seconds)
        else:
            self._timer = asyncio.get_running_loop().call_later(early, self._look, seconds)

    def _wait(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self.expire)

    def _look(self, seconds: float) -> None:
        if self._session.reached:
            self._wait(seconds)
            return
        self.withdraw()
        self._ended(False)
        self._nobody()

    def host_answered(self, key: str, frame: Frame) -> None:  # noqa: ARG002 - there is one
        """The host answered."""
        reply = replies.read_frame(self._question, frame, self._session.host.revision)
        self._answer(replies.malformed(self._question, reply) if isinstance(reply, Bad) else reply)

    def expire(self) -> None:
        """The host did not answer in time."""
        self._answer(replies.expired(self._question))

    def withdraw(self) -> None:
        """The host need not answer any more, and hears so. Nobody is answered."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._session.questions.pop(self._asked, None)
            params = {"requestId": self._asked, "reason": "it is not needed any more"}
            self._session.audience.stream.send(fresh.notification_line("notifications/cancelled", params), Sort.OTHER)

    def _answer(self, reply: replies.Reply) -> None:
        self._ended(reply.error is None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._session.questions.pop(self._asked, None)
            self._conversation.answer(reply.line(self._number))


class Outsiders:
    """The questions outside of calls of one fleet.

    Args:
        fleet: Its hosts and upstreams.
        limits: Bounds.
    """

    def __init__(self, fleet: Fleet, limits: Limits) -> None:
        self._fleet = fleet
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._open: dict[tuple[Conversation, Id], Outside] = {}
        self._early: dict[tuple[Conversation, Id], Waiting] = {}
        self._carried: dict[tuple[Conversation, Id], Call] = {}
        self._roots: WeakKeyDictionary[Conversation, Mapping[str, msgspec.Raw]] = WeakKeyDictionary()
        self._changed: asyncio.TimerHandle | None = None
        self._news = anyio.Event()
        self._since: WeakKeyDictionary[Conversation, float] = WeakKeyDictionary()
        self._silent: WeakSet[Conversation] = WeakSet()
        self._settled: WeakKeyDictionary[Conversation, float] = WeakKeyDictionary()

    @property
    def idle(self) -> bool:
        """Whether no question is open."""
        return not self._open and not self._early and not self._carried

    @property
    def early(self) -> int:
        """How many questions wait for a host."""
        return len(self._early)

    def close(self) -> None:
        """Ends all waits."""
        for timer in (self._changed, *(waiting.timer for waiting in self._early.values())):
            if timer is not None:
                timer.cancel()

    def roots_changed(self, host: Host) -> None:
        """A legacy host says that its roots are others: so do we, to upstreams that were told they would hear of it.

        Several changes at once are told once. What is asked then comes to `asked`.
        """
        if ROOTS_CHANGED in host.asks and self._changed is None:
            self._changed = self._loop.call_later(self._limits.coalesce, self._tell)

    def visited(self, member: Member, frame: Frame) -> bool:
        """A visit is complete: the host whose call asked for it hears so, if the call did not tell it itself."""
        visit = text((frame.parts or {}).get("elicitationId"))
        for audience in self._fleet.audiences:
            session = cast("HostSession | None", audience.host.session)
            call = None if session is None else session.visits.pop((member.name, visit or ""), None)
            if call is not None:
                if call.ended:
                    line = fresh.notification_line(frame.method, {"elicitationId": visit})
                    audience.stream.send(line, Sort.OTHER)
                return True
        return False

    def _tell(self) -> None:
        self._changed = None
        for member in self._fleet.members:
            if ROOTS_CHANGED in member.of_hosts:
                member.roots_changed()

    def asked(self, member: Member, conversation: Conversation, frame: Frame) -> bool:
        """Has roots told that an upstream asks for outside of calls: by a host, else as configured.

        Servers ask as soon as they are initialized, which may be before their host is ready or has called anything:
        that one is waited for.
        """
        key = (conversation, cast("Id", frame.id))
        question = read_request(frame, conversation.revision, "outside")
        if not isinstance(question, Question) or key in self._open or key in self._early or key in self._carried:
            return False
        return self._told(member, conversation, question)

    def left(self, conversation: Conversation, question: Question) -> None:
        """A call is over, and its upstream still asks for roots: it hears of them as outside of calls."""
        self._carried.pop((conversation, cast("Id", question.id)), None)
        member = next((one for one in self._fleet.members if one.has(conversation)), None)
        if member is None or not self._told(member, conversation, question):
            self._refuse(conversation, question)

    def _told(self, member: Member, conversation: Conversation, question: Question) -> bool:
        key = (conversation, cast("Id", question.id))
        # With several watchers there are hosts elsewhere, and nothing tells which is meant.
        if ROOTS in member.of_hosts and len(member.watchers) == 1:
            sessions = [one for one in self._fleet.audiences if one.host.session is not None and not one.ended.is_set()]
            ready = [audience.host for audience in sessions if audience.opened]
            if len(ready) == 1 and self._ask(ready[0], member, conversation, question):
                return True
            known = None if ready else self._roots.get(conversation)
            if known is not None:
                conversation.answer(fresh.result_line(key[1], known))
                return True
            if not ready and sum(asker is conversation for asker, _ in self._early) < EARLY:
                seconds = self._limits.early if sessions else self._limits.roots
                timer = self._loop.call_later(seconds, self._too_late, key)
                self._early[key] = Waiting(member, question, timer)
                return True
        return self._configured(member, conversation, key[1])

    def taken(self, conversation: Conversation) -> tuple[Question, ...]:
        """What a session of an upstream asked and no host could answer yet, for a call of a modern host (`carry`)."""
        keys = [key for key in self._early if key[0] is conversation]
        found = [self._early.pop(key) for key in keys]
        for waiting in found:
            waiting.timer.cancel()
        return tuple(waiting.question for waiting in found)

    def carry(self, conversation: Conversation, call: Call, questions: Sequence[Question]) -> None:
        """Notes that a call has these questions answered."""
        if questions:
            self._since[conversation] = self._loop.time()
        self._carried.update({(conversation, cast("Id", question.id)): call for question in questions})

    def answered(self, conversation: Conversation, number: Id, line: bytes) -> None:
        """An upstream that asked for roots got an answer in a call: what a modern host told is kept."""
        result = _read_answer(line).result
        if self._carried.pop((conversation, number), None) is not None:
            self._moved(conversation, told="roots" in result)
        if "roots" in result:
            self._roots[conversation] = result

    def _ask(self, host: Host, member: Member, conversation: Conversation, question: Question) -> bool:
        """Asks a legacy host; False if it cannot be asked this."""
        session = cast("HostSession", host.session)
        if ROOTS not in host.asks or not session.push:
            return False
        params = for_host(question, host.revision, member.name)
        if isinstance(params, Bad):
            return False
        key = (conversation, cast("Id", question.id))
        nobody = partial(self._nobody, member, conversation, question)
        outside = Outside(question, conversation, key[1], session, ended=partial(self._ended, key), nobody=nobody)
        self._open[key] = outside
        self._since[conversation] = self._loop.time()
        outside.send(params, member.settings.ask_timeout, self._limits.early)
        return True

    def _ended(self, key: tuple[Conversation, Id], told: bool) -> None:
        self._open.pop(key, None)
        self._moved(key[0], told=told)

    def _moved(self, conversation: Conversation, *, told: bool) -> None:
        if told:
            self._silent.discard(conversation)
        self._settled[conversation] = self._loop.time() + SETTLING
        self._news.set()
        self._news = anyio.Event()

    async def told(self, conversation: Conversation) -> None:
        """Waits for a moment until a host has answered what this session of an upstream asked before a call."""
        rest = self._since.get(conversation, -TELLING) + TELLING - self._loop.time()
        if rest > 0 and conversation not in self._silent:
            with anyio.move_on_after(rest) as waited:
                while any(asker is conversation for asker, _ in (*self._open, *self._carried)):
                    await self._news.wait()
            if waited.cancelled_caught:
                self._silent.add(conversation)
        rest = self._settled.get(conversation, 0.0) - self._loop.time()
        if rest > 0:
            await anyio.sleep(rest)

    def _configured(self, member: Member, conversation: Conversation, number: Id) -> bool:
        roots = member.settings.roots
        if roots is None:
            return False
        conversation.answer(fresh.result_line(number, {"roots": [{"uri": uri} for uri in roots]}))
        return True

    def _too_late(self, key: tuple[Conversation, Id]) -> None:
        """No host came in time: the answer is what it is without one."""
        waiting = self._early.pop(key)
        waiting.timer.cancel()
        self._nobody(waiting.member, key[0], waiting.question)

    def _nobody(self, member: Member, conversation: Conversation, question: Question) -> None:
        """Answers what no host tells: as configured, or by a refusal."""
        if not self._configured(member, conversation, cast("Id", question.id)):
            self._refuse(conversation, question)

    def _refuse(self, conversation: Conversation, question: Question) -> None:
        error = refused(question.method, conversation.revision)
        conversation.answer(fresh.error_line(question.id, error.code, error.message, error.data))

    def host_came(self, audience: Audience) -> None:
        """Asks what waited for a legacy host. What an upstream asked that was started again since is nobody's."""
        if audience.host.session is None:
            return
        for key, waiting in list(self._early.items()):
            if not waiting.member.has(key[0]) or self._ask(audience.host, waiting.member, key[0], waiting.question):
                waiting.timer.cancel()
                del self._early[key]
            else:
                self._too_late(key)

    def withdrawn(self, conversation: Conversation | None, frame: Frame) -> None:
        """An upstream takes a question back that it asked outside of calls."""
        peeked = peek(frame, "requestId")
        number = peeked.get("requestId") if isinstance(peeked, dict) else None
        if conversation is None or number is None:
            return
        key = (conversation, number)
        if (outside := self._open.get(key)) is not None:
            self._ended(key, False)
            outside.withdraw()
        elif (early := self._early.pop(key, None)) is not None:
            early.timer.cancel()
        elif (call := self._carried.pop(key, None)) is not None:
            call.notified(frame)
