"""One request of a host with everything that its handler needs, and what is known of the host that sent it."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

from troth.bridge import Bad, fresh
from troth.bridge.promise import Connection
from troth.gateway.hosts.access import ANONYMOUS
from troth.gateway.hosts.stdio import STDIO
from troth.gateway.model import Answer
from troth.register import Era
from troth.results import server_info
from troth.wire.words import excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.bridge import Frame, Id
    from troth.bridge.errors import ErrorValue
    from troth.bridge.listed import Entry
    from troth.bridge.listed import Kind as ListKind
    from troth.capabilities import Built
    from troth.gateway.audience import Audience
    from troth.gateway.calls import Call
    from troth.gateway.fleet import Fleet
    from troth.gateway.gateway import Gateway
    from troth.gateway.model import Host, Principal, Stream

VISITS: Final = 64
"""Visits of one session that are remembered: their completion may come at any time."""
SHOWN: Final = 120
"""Characters of a stranger's text that are repeated."""


class HostSession:
    """A legacy session. Implements `troth.gateway.model.Session`.

    Attributes:
        id: Unguessable.
        host: Who it is with.
        push: Whether its outbox reaches the host.
        reached: Whether it has reached it by now, or could have.
        built: What it was promised, which holds to its end.
        audience: Where it hears of changes; joined from ``notifications/initialized`` on.
        fleet: The upstreams that it sees.
        level: Log level that it set; None before.
        running: Relayed requests in flight, by the host's id.
        calls: Requests that it made.
        last: When it made the last one (monotonic seconds).
        connection: What its connection can carry.
        questions: Requests of ours that it has not answered, by our id: who waits, and under which key.
        visits: Addresses that it was asked to visit, by upstream and id: the call that asked.
    """

    def __init__(self, host: Host, fleet: Fleet, connection: Connection, audience: Audience) -> None:
        self.id = secrets.token_urlsafe(24)
        self.host = host
        self.connection = connection
        self.push = connection.push
        self.reached = host.transport != "http"
        self.built = fleet.promised(connection)
        self.audience = audience
        self.fleet = fleet
        self.level: str | None = None
        self.running: dict[Id, Running] = {}
        self.calls = 0
        self.last = time.monotonic()
        self.questions: dict[Id, tuple[Asker, str]] = {}
        self.visits: dict[tuple[str, str], Call] = {}
        self._numbers = count(1)

    def visiting(self, upstream: str, visit: str, call: Call) -> None:
        """Notes a visit, of which the upstream may say that it is complete after its call has ended."""
        self.visits[upstream, visit] = call
        if len(self.visits) > VISITS:
            del self.visits[next(iter(self.visits))]

    def put(self, asker: Asker, key: str) -> str:
        """An id for a request to this host, whose answer goes to `asker`."""
        number = f"troth-{next(self._numbers)}"
        self.questions[number] = (asker, key)
        return number

    def answered(self, frame: Frame) -> None:
        """Takes an answer of the host to one of ours; what answers nothing is dropped."""
        found = self.questions.pop(frame.id, None) if frame.id is not None else None
        if found is not None:
            asker, key = found
            asker.host_answered(key, frame)


class Running(Protocol):
    """A request in flight that its host can withdraw."""

    def withdraw(self, reason: str) -> None:
        """The host does not want the answer any more."""
        ...

    def level(self, level: str) -> None:
        """The host set another log level."""
        ...


class Asker(Protocol):
    """Who waits for an answer of a legacy host."""

    def host_answered(self, key: str, frame: Frame) -> None:
        """The host answered."""
        ...


@dataclass(slots=True)
class Seen:
    """What is known of a modern host: requests of one credential under one name.

    Attributes:
        host: The host of the last request.
        built: What it was promised.
        calls: Requests that it made.
        last: When it made the last one (monotonic seconds).
        streams: Listens that are open.
    """

    host: Host
    built: Built
    calls: int = 0
    last: float = 0.0
    streams: int = 0


class Asked(NamedTuple):
    """One request with everything that its handler needs."""

    gateway: Gateway
    frame: Frame
    host: Host
    session: HostSession | None
    fleet: Fleet
    built: Built
    stream: Stream

    def result(self, result: Mapping[str, object]) -> Answer:
        """The answer with this result; complete, where the revision says so."""
        if self.host.era is Era.MODERN and "resultType" not in result:
            result = {**result, "resultType": "complete"}
        return Answer(fresh.result_line(cast("Id", self.frame.id), result))

    def error(self, code: int, message: str, data: object = None) -> Answer:
        """The answer with this error."""
        return Answer(fresh.error_line(self.frame.id, code, message, data), code)

    def refuse(self, error: ErrorValue) -> Answer:
        """The answer with this error."""
        return self.error(error.code, error.message, error.data)

    def bad(self, bad: Bad) -> Answer:
        """The answer to a request with this fault."""
        return self.error(bad.code, bad.reason)

    async def route(self, kind: ListKind, shown: str) -> Entry | None:
        """Who owns a name. Names of upstreams that have not started yet are waited for.

        None also for a URI in no list whose upstream has no resources: it is not asked for what it does not declare.
        """
        entry = self.fleet.known.route(kind, shown)
        waiting = self.fleet.waiting()
        if waiting and (entry is None or (not entry.members and self.fleet.member(entry.source) in waiting)):
            # What no list has may need what its template says, once the templates are known.
            await self.fleet.settled()
            entry = self.fleet.known.route(kind, shown)
        if entry is not None and kind == "resources" and not entry.members:
            owner = self.fleet.member(entry.source)
            conversation = owner.conversation if owner is not None else None
            if conversation is not None and not conversation.capabilities.has(kind):
                return None
        return entry


def connection_of(host: Host, *, push: bool = False) -> Connection:
    """What the connection of a host can carry."""
    return Connection(
        revision=host.revision,
        push=push,
        can_listen=host.era is Era.MODERN,
        profile=host.profile,
        alone=alone(host.principal),
    )


def alone(principal: Principal) -> bool:
    """Whether a credential tells a host from others.

    Without one nobody can be told apart, and whoever starts a gateway on pipes is as good as any other that does.
    """
    return principal not in (ANONYMOUS, STDIO)


@lru_cache(maxsize=16)
def us(revision: str) -> dict[str, Any]:
    """``serverInfo`` of the gateway."""
    from troth._version import version

    return server_info(name="troth", version=version, title="Troth", revision=revision)


def printable(text: str) -> str:
    """A stranger's text, fit to print: short, without controls."""
    return excerpt(text, SHOWN)
