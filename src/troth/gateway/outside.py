"""What upstreams ask outside of calls, and what hosts say of their roots: rule 5 of questions without a call.

Servers ask for roots as soon as they are initialized. Nothing tells which host is meant, so the one host of the fleet
is asked if there is but one, and else the operator's roots are told.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from troth.bridge import Bad, fresh, peek, replies
from troth.bridge.asks import ROOTS, ROOTS_CHANGED
from troth.bridge.questions import Question, for_host, read_request, refused
from troth.bridge.tree import text
from troth.gateway.model import Sort

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from troth.bridge import Frame, Id
    from troth.gateway.asked import HostSession
    from troth.gateway.audience import Audience
    from troth.gateway.fleet import Fleet
    from troth.gateway.limits import Limits
    from troth.gateway.member import Member
    from troth.gateway.model import Conversation, Host

EARLY: Final = 16
"""Questions that wait for a host to be ready. A server asks for roots once."""


class Outside:
    """A question of a legacy upstream outside of calls, on its way to a legacy host and back.

    Args:
        question: The question.
        conversation: Where the answer goes.
        number: The upstream's id of it.
        session: The host.
        ended: Called when it is answered.
    """

    def __init__(
        self,
        question: Question,
        conversation: Conversation,
        number: Id,
        session: HostSession,
        ended: Callable[[], object],
    ) -> None:
        self._question = question
        self._session = session
        self._conversation = conversation
        self._number = number
        self._ended = ended
        self._asked = ""
        self._timer: asyncio.TimerHandle | None = None

    def send(self, params: Mapping[str, object], seconds: float) -> None:
        """Asks, and waits no longer than that."""
        session = self._session
        self._asked = session.put(self, self._question.key)
        line = fresh.request_line(self._asked, self._question.method, params or None)
        session.audience.stream.send(line, Sort.OTHER)
        self._timer = asyncio.get_running_loop().call_later(seconds, self.expire)

    def host_answered(self, key: str, frame: Frame) -> None:  # noqa: ARG002 - there is one
        """The host answered."""
        reply = replies.read_frame(self._question, frame, self._session.host.revision)
        self._answer(replies.malformed(self._question, reply) if isinstance(reply, Bad) else reply)

    def expire(self) -> None:
        """The host did not answer in time."""
        self._answer(replies.expired(self._question))

    def withdraw(self) -> None:
        """The upstream does not want to know any more: the host is told, and nobody is answered."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._session.questions.pop(self._asked, None)
            params = {"requestId": self._asked, "reason": "the server withdrew it"}
            self._session.audience.stream.send(fresh.notification_line("notifications/cancelled", params), Sort.OTHER)

    def _answer(self, reply: replies.Reply) -> None:
        self._ended()
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
        self._early: dict[tuple[Conversation, Id], tuple[Member, Frame, asyncio.TimerHandle]] = {}
        self._changed: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Whether no question is open."""
        return not self._open and not self._early

    @property
    def early(self) -> int:
        """How many questions wait for a host."""
        return len(self._early)

    def close(self) -> None:
        """Ends all waits."""
        for timer in (self._changed, *(wait for *_, wait in self._early.values())):
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

    def asked(self, member: Member, frame: Frame) -> bool:
        """Has roots told that an upstream asks for outside of calls: by its one host, else as configured.

        Servers ask as soon as they are initialized, which may be before their host is: that one is waited for.
        """
        conversation, number = member.conversation, frame.id
        if conversation is None or number is None:
            return False
        # With several watchers there are hosts elsewhere, and nothing tells which is meant.
        if ROOTS in member.of_hosts and len(member.watchers) == 1:
            hosts = [host.host for host in self._fleet.audiences if host.host.session is not None and host.opened]
            if len(hosts) == 1 and self._ask(hosts[0], member, conversation, frame):
                return True
            if not hosts and len(self._early) < EARLY:
                key = (conversation, number)
                wait = self._loop.call_later(self._limits.early, self._too_late, key)
                self._early[key] = (member, frame, wait)
                return True
        return self._configured(member, conversation, number)

    def _ask(self, host: Host, member: Member, conversation: Conversation, frame: Frame) -> bool:
        """Asks a legacy host; False if it cannot be asked this."""
        number = cast("Id", frame.id)
        question = read_request(frame, conversation.revision, "outside")
        session = cast("HostSession", host.session)
        if not isinstance(question, Question) or ROOTS not in host.asks or not session.push:
            return False
        params = for_host(question, host.revision, member.name)
        if isinstance(params, Bad):
            return False
        key = (conversation, number)
        outside = Outside(question, conversation, number, session, partial(self._open.pop, key, None))
        self._open[key] = outside
        outside.send(params, member.settings.ask_timeout)
        return True

    def _configured(self, member: Member, conversation: Conversation, number: Id) -> bool:
        roots = member.settings.roots
        if roots is None:
            return False
        conversation.answer(fresh.result_line(number, {"roots": [{"uri": uri} for uri in roots]}))
        return True

    def _too_late(self, key: tuple[Conversation, Id]) -> None:
        """No host came in time: the answer is what it is without one."""
        member, frame, wait = self._early.pop(key)
        wait.cancel()
        conversation, number = key
        if not self._configured(member, conversation, number):
            error = refused(frame.method, conversation.revision)
            conversation.answer(fresh.error_line(number, error.code, error.message, error.data))

    def host_came(self, audience: Audience) -> None:
        """Asks what waited for a legacy host."""
        if audience.host.session is None:
            return
        for key, (member, frame, wait) in list(self._early.items()):
            if self._ask(audience.host, member, key[0], frame):
                wait.cancel()
                del self._early[key]
            else:
                self._too_late(key)

    def withdrawn(self, member: Member, frame: Frame) -> None:
        """An upstream takes a question back that it asked outside of calls."""
        peeked = peek(frame, "requestId")
        number = peeked.get("requestId") if isinstance(peeked, dict) else None
        if member.conversation is None or number is None:
            return
        key = (member.conversation, number)
        if (outside := self._open.pop(key, None)) is not None:
            outside.withdraw()
        elif (early := self._early.pop(key, None)) is not None:
            early[2].cancel()
