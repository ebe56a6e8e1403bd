"""Opens a conversation: the link to a target, the handshake of the era, the legacy GET stream."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import anyio

from troth.audit.targets import StdioTarget
from troth.audit.wire.session import CLIENT_INFO, Session
from troth.register import Era, register

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from troth.audit.targets import HttpTarget
    from troth.audit.wire.types import Limits

    Target = StdioTarget | HttpTarget

SAMPLED = {
    "role": "assistant",
    "content": {"type": "text", "text": "probe"},
    "model": "troth-audit",
    "stopReason": "endTurn",
}
ANSWERS: dict[str, dict[str, Any]] = {
    "ping": {},
    "roots/list": {"roots": []},
    "sampling/createMessage": SAMPLED,
    "elicitation/create": {"action": "decline"},
}
"""What a client that declares everything answers: no root, a canned sampling, a declined question."""


def answer_all(method: str, _params: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Answers for a client that declared everything."""
    return ANSWERS.get(method)


def answer_none(method: str, _params: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Answers for a client that declared nothing: `ping` is free, the rest is refused."""
    return {} if method == "ping" else None


@asynccontextmanager
async def connect(
    target: Target,
    *,
    revision: str,
    capabilities: Mapping[str, Any],
    answer: Callable[[str, Mapping[str, Any]], Mapping[str, Any] | None],
    limits: Limits,
    started: float,
    number: int,
) -> AsyncGenerator[Session]:
    """A session on a fresh connection, not yet opened (see `open_session`).

    Raises:
        LinkError: The process cannot be started or the place cannot be reached.
    """
    async with AsyncExitStack() as stack:
        link = await stack.enter_async_context(_link(target, limits))
        session = Session(
            link,
            revision=revision,
            capabilities=capabilities,
            answer=answer,
            limits=limits,
            started=started,
            number=number,
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.serve)
            try:
                yield session
            finally:
                tasks.cancel_scope.cancel()
                await _end(session)


def _link(target: Target, limits: Limits) -> Any:
    """The link's context manager. The transports are imported here since HTTP is heavy and often not needed."""
    if isinstance(target, StdioTarget):
        from troth.audit.wire import stdio

        return stdio.open_link(target.command, env=target.env, cwd=target.cwd, limits=limits)
    if urlsplit(target.url).path.endswith("/sse"):
        # By custom the address of the HTTP+SSE transport of 2024-11-05.
        from troth.audit.wire import legacy_sse

        return legacy_sse.open_link(target.url, headers=target.headers, limits=limits)
    from troth.audit.wire import http

    return http.open_link(target.url, headers=target.headers, limits=limits)


async def _end(session: Session) -> None:
    """Ends a legacy HTTP session as its revision asks: with DELETE."""
    delete = getattr(session.link, "delete", None)
    if delete is None or session.session_id is None:
        return
    with anyio.CancelScope(shield=True), anyio.move_on_after(session.limits.stop):
        await delete(session.headers())


async def open_session(session: Session, patience: float | None = None) -> None:
    """Sends the opening request of the session's era; `Session.opening` and `Session.negotiated` tell what came.

    Args:
        session: A session on a fresh connection.
        patience: Seconds to wait for the answer; by default the budget for starting.

    Legacy: `initialize`, the GET stream (opened before anything can be missed on it), `notifications/initialized`.
    Modern: `server/discover`, for what it tells; the era needs no opening.
    """
    patience = patience or session.limits.start
    if session.era is Era.MODERN:
        session.opening = await session.call("server/discover", timeout=patience)
        session.negotiated = session.revision if session.opening.ok else None
        return
    session.opening = await session.call(
        "initialize",
        {
            "protocolVersion": session.revision,
            "capabilities": dict(session.capabilities),
            "clientInfo": dict(CLIENT_INFO),
        },
        timeout=patience,
    )
    result = session.opening.result
    if not isinstance(result, dict):
        return
    version = cast("dict[str, Any]", result).get("protocolVersion")
    session.negotiated = version if isinstance(version, str) and version in register().eras[Era.LEGACY] else None
    if session.negotiated is not None:
        await session.open_stream()
        session.ready = session.mark()
        await session.notify("notifications/initialized")
