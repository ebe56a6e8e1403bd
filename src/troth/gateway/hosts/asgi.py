"""The little of ASGI 3 that is used here: types, heads, and answers of one piece.

Source: ASGI specification 3.0, HTTP connection scope.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

from troth.bridge import Id, written

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]

ABORT: Final = "troth.abort"
"""Extension of the scope: a function that drops the connection at once. Servers other than ours have none."""

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
    headers: tuple[Header, ...] = field(default=())
    close: bool = False


def error_line(code: int, message: str, identity: Id | None = None, data: object = None) -> bytes:
    """A JSON-RPC error as one line.

    Args:
        code: Its code.
        message: What was wrong and what to do.
        identity: Id of the request; None where it is not known.
        data: Member `data`; None for none.
    """
    error: dict[str, object] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return written({"jsonrpc": "2.0", "id": identity, "error": error})


def over(limit: str, words: str, status: int, identity: Id | None = None) -> Refused:
    """The refusal for a limit that is reached, with its name."""
    return Refused(status, error_line(LIMIT_REACHED, f"{words} (limit: {limit})", identity, {"limit": limit}))


async def respond(send: Send, status: int, body: bytes = b"", headers: Iterable[Header] = (JSON,)) -> None:
    """Answers in one piece."""
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [*headers, (b"content-length", b"%d" % len(body))] if status != 204 else list(headers),
        }
    )
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def refuse(send: Send, refused: Refused) -> None:
    """Answers with a refusal."""
    headers = (JSON, *refused.headers, CLOSE) if refused.close else (JSON, *refused.headers)
    await respond(send, refused.status, refused.line, headers)
