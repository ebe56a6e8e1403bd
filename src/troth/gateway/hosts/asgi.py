"""The little of ASGI 3 that is used here: types, a request with its principal, and answers of one piece.

Source: ASGI specification 3.0, HTTP connection scope.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from troth.bridge.errors import INTERNAL
from troth.bridge.fresh import error_line

if TYPE_CHECKING:
    from troth.bridge import Id
    from troth.gateway.crew import Crew
    from troth.gateway.hosts.head import Head
    from troth.gateway.model import Principal

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]

ABORT: Final = "troth.abort"
"""Extension of the scope: a function that drops the connection at once. Servers other than ours have none."""

TARGET: Final = "troth.target"
"""Extension of the scope: the authority of a request target in absolute form, which counts as `Host` does."""

WHOLE: Final = "troth.whole"
"""Extension of the scope: a function that answers a POST with JSON at once. Servers other than ours have none.

It takes the scope, a status and the body, and returns whether it did.
"""

JSON: Final = (b"content-type", b"application/json")
CLOSE: Final = (b"connection", b"close")
STREAM_HEADERS: Final[tuple[Header, ...]] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    # nginx and others gather a response before they pass it on, unless told otherwise.
    (b"x-accel-buffering", b"no"),
)
STREAM_HEAD: Final[Message] = {"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS}

LIMIT_REACHED: Final = -32000
"""Code of the error for a limit of ours, of the range that is left to implementations."""
NO_SESSION: Final = -32001
"""Code of the error for a session that is not there; official SDKs use the same."""


@dataclass(slots=True, eq=False)
class Owed:
    """What is owed to a batch.

    Attributes:
        answers: The answers that are there.
        requests: Ids of the requests that have none yet.
    """

    answers: list[bytes]
    requests: list[Id]


@dataclass(slots=True, eq=False)
class Visit:
    """One request whose head was judged.

    Attributes:
        head: Its head.
        principal: Who sends it.
        scope: Of ASGI.
        receive: Of ASGI.
        send: Of ASGI.
        whole: Answers with JSON and no further headers, if the server can do that now; see `WHOLE`.
        request: Id of the one JSON-RPC request in its body; None for none, and until that is read.
        owed: What is owed to the batch in its body; None for none, and until that is read.
    """

    head: Head
    principal: Principal
    scope: Scope
    receive: Receive
    send: Send
    whole: Callable[[Scope, int, bytes], bool] | None = None
    request: Id | None = None
    owed: Owed | None = None

    def refused(self, status: int, words: str) -> Refused:
        """An error in place of each answer that is owed, for a fault of ours.

        Source: 2025-03-26, schema, JSONRPCBatchResponse.
        """
        line = error_line(self.request, INTERNAL, words)
        if self.owed is not None and (self.owed.answers or self.owed.requests):
            errors = (error_line(number, INTERNAL, words) for number in self.owed.requests)
            line = b"[%b]" % b",".join((*self.owed.answers, *errors))
        return Refused(status, line, close=True)

    def abort(self) -> None:
        """Drops the connection, if the server lets us."""
        abort = self.scope.get("extensions", {}).get(ABORT)
        if abort is not None:
            abort()

    async def answer(self, status: int, line: bytes, headers: tuple[Header, ...] = ()) -> None:
        """Answers with JSON in one piece."""
        if headers or self.whole is None or not self.whole(self.scope, status, line):
            await respond(self.send, status, line, (JSON, *headers))

    def look_out(self, crew: Crew, gone: Callable[[], None]) -> None:
        """Calls `gone` when the connection is, or when the response is complete: the server says the same for both."""
        crew.spawn(self._gone(gone), "host look-out")

    async def _gone(self, gone: Callable[[], None]) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass
        gone()


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a request is not handled.

    Attributes:
        status: HTTP status.
        line: Body: one JSON-RPC error.
        headers: Further headers.
        close: End the connection, since what follows on it is not read.
    """

    status: int
    line: bytes
    headers: tuple[Header, ...] = ()
    close: bool = False


def over(limit: str, words: str, status: int, identity: Id | None = None) -> Refused:
    """The refusal for a limit that is reached, with its name."""
    return Refused(status, error_line(identity, LIMIT_REACHED, f"{words} (limit: {limit})", {"limit": limit}))


async def respond(send: Send, status: int, body: bytes = b"", headers: Iterable[Header] = (JSON,)) -> None:
    """Answers in one piece."""
    length = () if status == 204 else ((b"content-length", b"%d" % len(body)),)
    await send({"type": "http.response.start", "status": status, "headers": (*headers, *length)})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def refuse(send: Send, refused: Refused) -> None:
    """Answers with a refusal."""
    headers = (JSON, *refused.headers, CLOSE) if refused.close else (JSON, *refused.headers)
    await respond(send, refused.status, refused.line, headers)
