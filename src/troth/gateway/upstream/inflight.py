"""Requests in flight on one connection, and whom a message without an id of theirs belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.gateway.upstream.waiting import Waiting

if TYPE_CHECKING:
    from troth.bridge import Id


class Inflight(dict["Id", Waiting]):
    """Id -> request that waits for its answer, in the order in which they were sent.

    Attributes:
        questions: Id of a question of the upstream -> the request that it belongs to.
    """

    def __init__(self) -> None:
        super().__init__()
        self.questions: dict[Id, Id] = {}

    def end(self, number: Id) -> Waiting | None:
        """A request is over, and so are the questions that belong to it. None if there is none of this id."""
        waiting = self.pop(number, None)
        if waiting is None:
            return None
        waiting.stop()
        if self.questions:
            self.questions = {ask: asker for ask, asker in self.questions.items() if asker != number}
        return waiting

    def asking(self) -> list[Waiting]:
        """Calls about which questions may come."""
        return [one for one in self.values() if one.request.asks]

    def answered(self, question: Id | None) -> Waiting | None:
        """The request that a question belongs to; the question is over."""
        return None if question is None else self.get(self.questions.pop(question, ""))

    def surely(self, key: Id | None, *, streams: bool) -> Waiting | None:
        """The request that a message without a token surely belongs to.

        Args:
            key: The request on whose own stream it came; None for none.
            streams: Whether requests have streams of their own (HTTP).
        """
        if key is not None:
            waiting = self.get(key)
            return None if waiting is None or waiting.listens else waiting
        if streams:
            return None
        calls = (one for one in self.values() if not one.listens)
        only, another = next(calls, None), next(calls, None)
        return only if another is None else None

    def asker(self, key: Id | None, *, streams: bool) -> Waiting | None:
        """The request that a question surely belongs to: by its stream, or the only one about which may be asked.

        Args:
            key: The request on whose own stream it came; None for none.
            streams: Whether requests have streams of their own (HTTP).
        """
        if key is not None:
            return self.surely(key, streams=streams)
        # Over HTTP many servers ask on the stream of the session, though they mean a call.
        asking = self.asking()
        return asking[0] if len(asking) == 1 else self.surely(key, streams=streams) if not asking else None
