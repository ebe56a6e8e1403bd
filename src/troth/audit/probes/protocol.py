"""Faults of the protocol that belong to no capability: unknown methods, notifications, envelopes, headers, junk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from troth.audit.context import INVALID_PARAMS, METHOD_NOT_FOUND, fault, mapping, told
from troth.audit.model import Direction, Severity
from troth.audit.wire.dialect import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from troth.audit.wire.session import CLIENT_INFO
from troth.audit.wire.types import Failure
from troth.register import Era, register

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from troth.audit.context import Context
    from troth.audit.model import Finding, Frame
    from troth.audit.wire.session import Session
    from troth.audit.wire.types import Reply

UNKNOWN_METHOD = "troth/unknown"
UNKNOWN_NOTIFICATION = "notifications/troth/unknown"
NO_VERSION = "1900-01-01"
UNSUPPORTED = -32022
STRANGE: Mapping[str, Any] = {"trothUnknown": {}}
"""A client capability that nobody defines."""
LOGGED_EARLY = "notifications/message"


async def probe(ctx: Context) -> None:
    """Opening checks: an unknown method and notification, `ping`, and what the modern envelope demands."""
    ctx.unknown = await ctx.call(UNKNOWN_METHOD)
    if ctx.unknown.code != METHOD_NOT_FOUND:
        ctx.finding(
            "protocol.unknown-method",
            f"An unknown method gets {told(ctx.unknown)} in place of -32601.",
            ctx.unknown,
            severity=Severity.ERROR if ctx.unknown.failure is Failure.TIMEOUT else None,
        )
    elif ctx.modern and ctx.unknown.status not in (None, 404):
        ctx.finding("http.status", f"Error -32601 comes with HTTP {ctx.unknown.status} in place of 404.", ctx.unknown)
    await _notification(ctx)
    await _ping(ctx)
    await _session(ctx)
    if ctx.modern:
        await _stranger(ctx)
        await _version(ctx)
        await _envelope(ctx)
        await _headers(ctx)


async def _notification(ctx: Context) -> None:
    session = await ctx.alive()
    before, mark = len(session.strays), session.mark()
    await session.notify(UNKNOWN_NOTIFICATION, {})
    await session.settle()
    answered = session.strays[before:] or [
        frame
        for frame in session.frames[mark:]
        if frame.direction is Direction.RECEIVED and ("error" in mapping(frame.message))
    ]
    if answered:
        ctx.finding("protocol.notification-answered", "An unknown notification is answered.", *answered[:2])


async def _ping(ctx: Context) -> None:
    reply = await ctx.call("ping")
    if ctx.modern:
        if reply.ok:
            ctx.finding("method.removed-served", "`ping` is answered; this revision does not have it.", reply)
    elif reply.result != {}:
        what = f"gets {told(reply)}" if not reply.ok else "has members in its result"
        severity = Severity.NOTE if reply.ok and isinstance(reply.result, dict) else None
        ctx.finding("protocol.ping", f"`ping` {what}; an empty result is due.", reply, severity=severity)


async def _session(ctx: Context) -> None:
    """A session id that was never handed out is refused (HTTP)."""
    session = await ctx.alive()
    if session.link.transport != "http" or session.session_id is None:
        return
    reply = await session.call("ping", headers={"Mcp-Session-Id": "troth-no-such-session"})
    if reply.ok:
        ctx.finding("http.session-ignored", "A request of a session that does not exist is served; 404 is due.", reply)


async def ended(ctx: Context, session: Session) -> None:
    """A session that was ended by DELETE is not served any more (HTTP). The session cannot be used after this."""
    delete = getattr(session.link, "delete", None)
    if ctx.modern or delete is None or session.session_id is None:
        return
    status = await delete(session.headers())
    if status in (200, 202, 204):
        reply = await session.call("ping")
        if reply.ok:
            ctx.finding("http.session-not-ended", f"DELETE gets HTTP {status}, and the session is still served.", reply)
    session.session_id = None


async def counter_offer(ctx: Context) -> None:
    """A handshake for a version that does not exist gets a version that does (legacy).

    It declares a capability that nobody knows besides. Only if it is refused, the two are told apart, and from a
    server that takes no further connection.
    """
    reply = await _handshake(ctx, NO_VERSION, STRANGE)
    if reply is not None and not reply.ok:
        plain = await _handshake(ctx, ctx.full.revision, {})
        strange = await _handshake(ctx, ctx.full.revision, STRANGE) if plain is not None and plain.ok else None
        if strange is None:
            return
        if strange.refused:
            _refuses_strangers(ctx, strange)
            reply = await _handshake(ctx, NO_VERSION, {})
    if reply is None:
        return
    offered = mapping(reply.result).get("protocolVersion")
    if not reply.ok:
        ctx.finding(
            "negotiation.unknown-version",
            f"`initialize` for version {NO_VERSION} gets {told(reply)}; an offer of another version is due.",
            reply,
        )
    elif offered not in register().revisions:
        message = f"`initialize` for version {NO_VERSION} is answered with version {str(offered)[:40]!r}."
        ctx.finding("negotiation.unknown-version", message, reply)


async def _handshake(ctx: Context, version: str, capabilities: Mapping[str, Any]) -> Reply | None:
    session = await ctx.fresh()
    if session is None:
        return None
    params = {"protocolVersion": version, "capabilities": dict(capabilities), "clientInfo": dict(CLIENT_INFO)}
    return await session.call("initialize", params, timeout=ctx.options.limits.start)


def _refuses_strangers(ctx: Context, reply: Reply) -> None:
    message = f"`{reply.method}` with a client capability that no revision defines gets {told(reply)}."
    ctx.finding("declaration.client-refused", message, reply, hint="Ignore capabilities that you do not know.")


async def _stranger(ctx: Context) -> None:
    """A capability of the client that nobody knows is no reason to refuse it (modern)."""
    reply = await ctx.call("server/discover", capabilities={**ctx.full.capabilities, **STRANGE})
    if reply.refused:
        _refuses_strangers(ctx, reply)


async def _version(ctx: Context) -> None:
    """A version that does not exist is refused with -32022, which tells the versions that do."""
    reply = await ctx.call(
        "server/discover", meta={PROTOCOL_VERSION: NO_VERSION}, headers={"MCP-Protocol-Version": NO_VERSION}
    )
    data = mapping(reply.data)
    if reply.code != UNSUPPORTED:
        ctx.finding(
            "negotiation.unknown-version",
            f"Protocol version {NO_VERSION} gets {told(reply)} in place of -32022.",
            reply,
        )
    elif not isinstance(data.get("supported"), list) or data.get("requested") != NO_VERSION:
        ctx.finding(
            "negotiation.unknown-version",
            "Error -32022 does not carry `data.supported` and `data.requested`.",
            reply,
        )
    elif reply.status not in (None, 400):
        ctx.finding("http.status", f"Error -32022 comes with HTTP {reply.status} in place of 400.", reply)


async def _envelope(ctx: Context) -> None:
    """A request without its client capabilities is malformed: -32602."""
    session = await ctx.alive()
    reply = await session.call("tools/list", meta={CLIENT_CAPABILITIES: None})
    if reply.ok:
        ctx.finding(
            "modern.meta-not-required",
            "A request whose `_meta` lacks the client capabilities is served; -32602 is due.",
            reply,
        )
    elif reply.code == INVALID_PARAMS and reply.status not in (None, 400):
        ctx.finding("http.status", f"A malformed `_meta` comes with HTTP {reply.status} in place of 400.", reply)


async def _headers(ctx: Context) -> None:
    """Over HTTP the headers are made from the body, and a server compares them."""
    session = await ctx.alive()
    if session.link.transport != "http":
        return
    if session.minted:
        ctx.finding("modern.session-id", "An `Mcp-Session-Id` is handed out in a stateless era.", ctx.full.opening)
    reply = await session.call("tools/list", headers={"Mcp-Method": "prompts/list"})
    if reply.ok:
        message = "`Mcp-Method: prompts/list` on a `tools/list` is served; -32020 is due."
        ctx.finding("modern.header-unchecked", message, reply)


def opening(ctx: Context, reply: Reply) -> None:
    """The opening result: its members, and what came before the handshake was over."""
    result = mapping(reply.result)
    if ctx.modern:
        missing = [
            name
            for name in ("supportedVersions", "capabilities", "resultType", "ttlMs", "cacheScope")
            if name not in result
        ]
        if missing:
            ctx.finding(
                "era.discover-malformed",
                f"The result of `server/discover` lacks {', '.join(missing)}.",
                reply,
                hint="A strict host takes such a server for a legacy one.",
            )
        versions = result.get("supportedVersions")
        offered = cast("list[Any]", versions) if isinstance(versions, list) else []
        if "supportedVersions" in result and ctx.revision not in offered:
            ctx.finding(
                "era.discover-malformed", "`supportedVersions` does not name the revision in which it answers.", reply
            )
        return
    for name, kind in (("serverInfo", dict), ("capabilities", dict)):
        if not isinstance(result.get(name), kind):
            ctx.finding("negotiation.malformed", f"The result of `initialize` has no object `{name}`.", reply)
    if ctx.revision != ctx.full.revision:
        message = f"Asked for {ctx.full.revision}, the server answers in {ctx.revision}; it is judged by that."
        ctx.finding("negotiation.other-version", message, reply)
    early = [frame for frame in ctx.full.frames[: ctx.full.ready] if _speaks(frame)]
    if early:
        method = mapping(early[0].message)["method"]
        ctx.finding("protocol.early", f"`{method}` comes before `notifications/initialized`.", *early[:2])


def unopened(session: Session, reply: Reply) -> tuple[Finding, ...]:
    """What a target that does not serve the revision shows all the same."""
    junk = [fault(code, f"{text[:1].upper()}{text[1:]}.", frame) for code, text, frame in session.problems[:1]]
    junk += [
        fault("protocol.stray", "A response answers nothing that was asked.", frame) for frame in session.strays[:1]
    ]
    if session.era is Era.LEGACY and reply.ok:
        said = mapping(reply.result).get("protocolVersion")
        message = f"`initialize` answers with protocol version {str(said)[:40]!r}, which has no handshake."
        return (fault("negotiation.malformed", message, reply), *junk)
    if session.era is Era.MODERN and reply.failure is Failure.TIMEOUT:
        message = "`server/discover` is never answered: hosts that begin with it wait in vain."
        hint = "Refuse unknown methods with -32601 at once."
        return (fault("era.discover-silent", message, reply, hint=hint), *junk)
    return tuple(junk)


def _speaks(frame: Frame) -> bool:
    """A message of the server's own accord that may not come before the handshake is over."""
    method = mapping(frame.message).get("method")
    return frame.direction is Direction.RECEIVED and isinstance(method, str) and method not in ("ping", LOGGED_EARLY)


ASKING = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Methods whose result may ask for input. Source: 2026-07-28, input_required is defined for these alone."""


def _asked_elsewhere(ctx: Context, session: Session) -> None:
    """Input asked for in answer to a method that has no way to carry the answer."""
    methods = {
        mapping(frame.message)["id"]: mapping(frame.message).get("method")
        for frame in session.frames
        if frame.direction is Direction.SENT and {"id", "method"} <= mapping(frame.message).keys()
    }
    for frame in session.frames:
        body = mapping(frame.message)
        if frame.direction is Direction.RECEIVED and mapping(body.get("result")).get("resultType") == "input_required":
            ident = body.get("id")
            method = methods.get(ident) if isinstance(ident, int) else None
            if method not in ASKING:
                ctx.finding("input-required.wrong-method", f"`{method}` is answered with a question.", frame)


async def unstable(ctx: Context, none: Session) -> None:
    """Two openings of the same kind differ in what they declare."""
    if ctx.modern:
        again = await ctx.call("server/discover")
        if again.ok and mapping(again.result).get("capabilities") != ctx.declared.raw:
            message = "`server/discover` declares other things when it is asked again."
            ctx.finding("declaration.unstable", message, ctx.full.opening, again)
            return
    first, second = (mapping(cast("Reply", session.opening).result) for session in (ctx.full, none))
    if first.get("capabilities") != second.get("capabilities"):
        message = "A client that declares nothing is told other capabilities than one that declares everything."
        ctx.finding("declaration.unstable", message, ctx.full.opening, none.opening)


def closing(ctx: Context, *sessions: Session) -> None:
    """Faults that the transcripts show at the end."""
    for session in sessions:
        _asked_elsewhere(ctx, session)
        sent = (mapping(frame.message) for frame in session.frames if frame.direction is Direction.SENT)
        asked = frozenset(body["method"] for body in sent if {"id", "method"} <= body.keys())
        for code, text, frame in session.problems:
            ctx.finding(code, f"{text[:1].upper()}{text[1:]}.", frame)
        for frame in session.strays[:3]:
            if any(frame in finding.evidence for finding in ctx.findings):
                continue
            late = any(_timed_out(note, asked) for note in session.frames)
            text = "A response comes after its time or twice." if late else "A response answers nothing that was asked."
            ctx.finding("protocol.stray", text, frame)
        for note in session.frames:
            method = _timed_out(note, asked)
            if method and not (method == "tools/call" and ctx.slow):
                ctx.finding("protocol.hangs", f"`{method}` is never answered.", note)


def _timed_out(note: Frame, asked: Collection[str]) -> str:
    """The method that a note of the auditor says was never answered; empty for every other frame.

    A transport's note quotes the peer, but never begins with its words.
    """
    if note.direction is not Direction.NOTE or not isinstance(note.message, str):
        return ""
    method, colon, detail = note.message.partition(": ")
    return method if colon and method in asked and detail.startswith("no answer within ") else ""
