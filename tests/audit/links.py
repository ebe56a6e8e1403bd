"""Links in memory: what a session sends is seen, what it receives is said by the test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from troth.audit.wire.session import Session
from troth.audit.wire.types import Incoming, Limits
from troth.register import register

Reaction = Callable[["FakeLink", dict[str, Any]], None]
LIMITS = Limits(start=2, method=2, settle=0.02, stop=0.1)


@dataclass
class FakeLink:
    """A link whose peer is a function of each message that is sent."""

    react: Reaction
    transport: str = "stdio"
    stderr: str = ""
    dead: str = ""
    sent: list[dict[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    cancelled: list[object] = field(default_factory=list)
    stream: int = 200
    receive: Callable[[Incoming], None] = lambda _: None

    async def send(self, message: dict[str, Any], headers: Mapping[str, str]) -> None:
        self.sent.append(message)
        self.headers.append(headers)
        self.react(self, message)

    async def open_stream(self, headers: Mapping[str, str]) -> int:
        self.headers.append(headers)
        return self.stream

    def cancel(self, request: object) -> None:
        self.cancelled.append(request)

    def say(self, message: Any, **how: Any) -> None:
        """Delivers a message to the session."""
        self.receive(Incoming(value=message, channel="stdio", **how))

    def answer(self, request: Mapping[str, Any], result: Any = None, **how: Any) -> None:
        """Delivers a response to a request."""
        self.say({"jsonrpc": "2.0", "id": request["id"], "result": {} if result is None else result}, **how)


def silent(_: FakeLink, __: dict[str, Any]) -> None:
    """A peer that never says anything."""


def echo(link: FakeLink, message: dict[str, Any]) -> None:
    """A peer that answers every request with its parameters."""
    if "id" in message and "method" in message:
        link.answer(message, message.get("params"))


def session(
    link: FakeLink,
    revision: str,
    *,
    capabilities: Mapping[str, Any] | None = None,
    answer: Callable[[str, Mapping[str, Any]], Mapping[str, Any] | None] = lambda _m, _p: None,
    limits: Limits = LIMITS,
) -> Session:
    return Session(
        link,
        revision=revision,
        capabilities=capabilities or {},
        answer=answer,
        limits=limits,
        started=0.0,
        number=1,
    )


LEGACY = register().revisions[:-1]
MODERN = register().revisions[-1]
