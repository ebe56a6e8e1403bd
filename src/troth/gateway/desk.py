"""Gets the questions of one call to those who answer them: its host, or what the operator configured.

A legacy host is asked on the stream of its call, by requests under ids of ours that its session keeps. A modern one
gets them as the answer to its request, with a sealed state by which its retry finds the call again.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, cast

from troth.bridge import Bad, errors, fresh, replies
from troth.bridge.asks import NOTHING
from troth.bridge.exchange_rounds import input_required
from troth.bridge.questions import QuestionKind
from troth.bridge.replies import Reply
from troth.gateway.broker import Pending, State
from troth.gateway.model import Answer, Sort
from troth.gateway.parking import Parked
from troth.gateway.seal import digest, of_round
from troth.register import Era
from troth.tasks.model import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from troth.bridge import Id
    from troth.bridge.asks import Asks
    from troth.bridge.errors import ErrorValue
    from troth.bridge.exchange_model import HostQuestion, Round
    from troth.bridge.questions import Question
    from troth.gateway.asked import Asked
    from troth.gateway.broker import Broker
    from troth.gateway.calls import Call
    from troth.gateway.member import Member


class CallDesk:
    """The desk of one call. Implements `troth.gateway.calls.Desk`.

    Args:
        asked: The host's request.
        owner: The upstream that asks.
        keep: Seconds for which a parked call waits for its host.
        revision: Revision of the upstream.
        visits: What people who watch are asked besides.
    """

    def __init__(self, asked: Asked, owner: Member, keep: float, revision: str, visits: Asks = NOTHING) -> None:
        self._asked = asked
        self._owner = owner
        self._keep = keep
        declares = owner.declares(revision, visits)
        self.declares: Mapping[str, object] | None = None if owner.era is Era.LEGACY else declares
        self._sent: dict[str, Id] = {}
        self._brokers: dict[str, str] = {}
        self._parked: Parked[Call] | None = None

    def retried(self, asked: Asked) -> None:
        """The host came again: what is said next answers this request."""
        self._asked = asked

    def ask_host(self, call: Call, questions: Sequence[HostQuestion]) -> None:
        """See `Desk`."""
        session = self._asked.session
        if session is None:
            return
        for question in questions:
            if question.elicitation:
                session.visiting(self._owner.name, question.elicitation, call)
            number = self._sent[question.key] = session.put(call, question.key)
            call.stream.send(fresh.request_line(number, question.method, question.params), Sort.OTHER)

    def ask_others(self, call: Call, questions: Sequence[Question]) -> None:
        """See `Desk`. Answers come after this returned, as all of others do."""
        loop = asyncio.get_running_loop()
        for question in questions:
            reply = self._configured(question)
            if reply is None:
                self._asked.gateway.crew.spawn(self._brokered(call, question), "a question for the broker")
            else:
                loop.call_soon(call.others_answered, question.key, reply)

    def unask(self, call: Call, keys: Sequence[str], reason: str) -> None:
        """See `Desk`."""
        session = self._asked.session
        gateway = self._asked.gateway
        for key in keys:
            pending = self._brokers.pop(key, "")
            if pending and gateway.broker is not None:
                gateway.crew.spawn(gateway.broker.cancel(pending, reason), "take a question back")
            number = self._sent.pop(key, None)
            if number is not None and session is not None:
                session.questions.pop(number, None)
                params = {"requestId": number, "reason": reason}
                call.stream.send(fresh.notification_line("notifications/cancelled", params), Sort.OTHER)

    def round(self, call: Call, asked: Round, *, parked: bool) -> Answer:
        """See `Desk`."""
        frame, gateway = self._asked.frame, self._asked.gateway
        expires = time.time() + self._keep
        if parked and (problem := self._park(call)) is not None:
            return self._asked.refuse(problem)
        remembered = of_round(
            asked,
            principal=self._asked.host.principal.name,
            method=frame.method,
            digest=digest(frame.method, frame.parts or {}),
            expires=expires,
            upstream=self._owner.name,
            call=self._parked.id if parked and self._parked is not None else "",
        )
        sealed = gateway.seal.seal(remembered)
        if not isinstance(sealed, str):
            return self._asked.error(errors.INTERNAL, sealed.reason)
        return Answer(input_required(cast("Id", frame.id), asked, sealed))

    def ended(self) -> None:
        """See `Desk`."""
        session = self._asked.session
        if session is not None:
            for number in self._sent.values():
                session.questions.pop(number, None)
        if self._parked is not None:
            self._asked.gateway.parking.end(self._parked)

    def _park(self, call: Call) -> ErrorValue | None:
        """Lets a call be found when its host comes again; or which limit forbids it."""
        if self._parked is not None:
            return None
        parking = self._asked.gateway.parking
        parked = parking.put(call, principal=self._asked.host.principal.name, upstream=self._owner.name)
        if isinstance(parked, Parked):
            self._parked = parked
            return None
        return parked

    async def _brokered(self, call: Call, question: Question) -> None:
        """Has a question answered by people, or by the operator's command."""
        broker = self._asked.gateway.broker
        if broker is None:
            call.others_answered(question.key, replies.refusal(question, NOTHING))
            return
        if question.kind is QuestionKind.URL and not broker.watched:
            call.others_answered(question.key, replies.expired(question))
            return
        try:
            reply = await self._by_people(broker, question)
        except StoreError:
            reply = replies.expired(question, "it cannot be kept for people")
        self._brokers.pop(question.key, None)
        call.others_answered(question.key, reply)

    async def _by_people(self, broker: Broker, question: Question) -> Reply:
        self._brokers[question.key] = ""
        kept = await broker.ask(
            question.kind,
            question.params,
            upstream=self._owner.name,
            principal=self._asked.host.principal.name,
            seconds=self._owner.settings.ask_timeout,
        )
        if not isinstance(kept, Pending):
            return Reply(error=kept)
        if question.key in self._brokers:
            self._brokers[question.key] = kept.id
        else:
            # It was taken back while it was being written.
            await broker.cancel(kept.id, "no longer needed")
        return _reply(question, await broker.wait(kept.id))

    def _configured(self, question: Question) -> Reply | None:
        """What the operator configured as the answer; None if that is for the broker."""
        roots = self._owner.settings.roots
        if question.kind is QuestionKind.ROOTS and roots is not None:
            return Reply(result={"roots": [{"uri": uri} for uri in roots]})
        return None


def _reply(question: Question, found: Pending | None) -> Reply:
    """What became of a question at the broker, as the upstream understands it."""
    if found is None or found.state is not State.ANSWERED:
        declined = found is not None and found.state is State.DECLINED
        return replies.declined(question) if declined else replies.expired(question)
    reply = replies.read_entry(question, found.result)
    return replies.malformed(question, reply) if isinstance(reply, Bad) else reply
