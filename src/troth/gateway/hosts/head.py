"""The head of a request: the headers that are read, each at most once, and what browsers want to know beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from troth.bridge import NOT_A_MESSAGE
from troth.bridge.fresh import error_line
from troth.gateway.hosts.asgi import Refused, respond

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.gateway.hosts.asgi import Header, Message, Scope, Send
    from troth.gateway.limits import Limits

MOST: Final = 128
"""Headers of a request. Real ones have under 30, and a `Mcp-Param-` for each marked parameter of a tool."""

SHORT: Final = 64 * 1024
"""A body that is refused unread is skipped up to this size; after a longer one the connection ends."""

PREFLIGHT_SECONDS: Final = b"600"

_SINGLE: Final = frozenset(
    (
        b"host",
        b"origin",
        b"authorization",
        b"content-type",
        b"content-length",
        b"mcp-session-id",
        b"mcp-protocol-version",
        b"mcp-method",
        b"mcp-name",
        b"last-event-id",
    )
)
_ANY = b"*/*"


@dataclass(slots=True, frozen=True)
class Head:
    """What is read of the head.

    Attributes:
        method: HTTP method.
        headers: All headers by their names in lower case.
    """

    method: str
    headers: Mapping[bytes, bytes]

    @property
    def host(self) -> bytes | None:
        """`Host`."""
        return self.headers.get(b"host")

    @property
    def origin(self) -> bytes | None:
        """`Origin`."""
        return self.headers.get(b"origin")

    @property
    def authorization(self) -> bytes | None:
        """`Authorization`."""
        return self.headers.get(b"authorization")

    @property
    def session(self) -> bytes | None:
        """`Mcp-Session-Id`."""
        return self.headers.get(b"mcp-session-id")

    @property
    def version(self) -> bytes | None:
        """`MCP-Protocol-Version`."""
        return self.headers.get(b"mcp-protocol-version")

    @property
    def last_event(self) -> bytes | None:
        """`Last-Event-ID`."""
        return self.headers.get(b"last-event-id")

    @property
    def long(self) -> bool:
        """Whether the body may be long."""
        length = self.headers.get(b"content-length", b"0")
        return b"transfer-encoding" in self.headers or not length.isdigit() or len(length) > 9 or int(length) > SHORT

    @property
    def words(self) -> dict[str, str]:
        """The headers of MCP as text."""
        return {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in self.headers.items()
            if name.startswith(b"mcp-")
        }

    @property
    def accepts(self) -> tuple[bool, bool]:
        """Whether JSON, and whether an event stream is accepted."""
        return _accepted(self.headers.get(b"accept"))


def head_of(scope: Scope, limits: Limits) -> Head | Refused:
    """The head of a request, unless it is too large or says something twice.

    Args:
        scope: Of ASGI.
        limits: Bounds.
    """
    raw: list[Header] = scope["headers"]
    # White space around a value is none of it (RFC 9110, 5.5); the parser leaves what stands behind.
    headers = {name: value.strip(b" \t") for name, value in raw}
    size = sum(map(len, headers.values()))
    if len(raw) > MOST or size > limits.headers:
        return Refused(
            431, error_line(None, NOT_A_MESSAGE, "headers: too many or too long (limit: headers)"), close=True
        )
    if size > limits.header and max(map(len, headers.values())) > limits.header:
        return Refused(431, error_line(None, NOT_A_MESSAGE, "headers: one is too long (limit: header)"), close=True)
    if len(headers) < len(raw):
        names = [name for name, _ in raw]
        if double := sorted(name for name in _SINGLE if names.count(name) > 1):
            return Refused(
                400, error_line(None, NOT_A_MESSAGE, f"headers: {double[0].decode()} stands there twice"), close=True
            )
        headers[b"accept"] = b", ".join(value for name, value in raw if name == b"accept")
    return Head(scope["method"], headers)


_ACCEPTED: dict[bytes, tuple[bool, bool]] = {}


def _accepted(value: bytes | None) -> tuple[bool, bool]:
    """Whether JSON, and whether an event stream is accepted. An absent or empty header accepts both."""
    if not value:
        return True, True
    known = _ACCEPTED.get(value)
    if known is None:
        kinds = {kind.partition(b";")[0].strip().lower() for kind in value.split(b",")}
        json = bool(kinds & {_ANY, b"application/json", b"application/*"})
        events = bool(kinds & {_ANY, b"text/event-stream", b"text/*"})
        if len(_ACCEPTED) > 64:
            _ACCEPTED.clear()
        known = _ACCEPTED[value] = json, events
    return known


def with_origin(send: Send, origin: bytes) -> Send:
    """A `send` that lets a page of this origin read the answer."""
    extra: tuple[Header, ...] = (
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", b"mcp-session-id, mcp-protocol-version, www-authenticate"),
        (b"vary", b"origin"),
    )

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *extra]}
        await send(message)

    return sending


async def preflight(send: Send, head: Head) -> None:
    """Answers what a browser asks before it sends a request of another origin."""
    asked = head.headers.get(b"access-control-request-headers", b"")
    names = [name.strip() for name in asked.split(b",")]
    await respond(
        send,
        204,
        headers=(
            (b"access-control-allow-methods", b"POST, GET, DELETE, OPTIONS"),
            (b"access-control-allow-headers", b", ".join(name for name in names if _is_token(name))),
            (b"access-control-max-age", PREFLIGHT_SECONDS),
        ),
    )


def _is_token(name: bytes) -> bool:
    return bool(name) and name.replace(b"-", b"").replace(b"_", b"").isalnum()
