"""One conversation with a target over a link: ids, correlation, envelopes, and a transcript of every frame.

The session sends what it is told to and judges nothing; probes read its replies and its transcript.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import anyio

from troth.audit.model import Direction, Frame
from troth.audit.wire.dialect import CLIENT_CAPABILITIES, SUBSCRIPTION_ID, legacy_headers, modern_headers, modern_meta
from troth.audit.wire.types import Failure, Incoming, Limits, Link, Reply
from troth.register import Era, register

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CLIENT_INFO = {"name": "troth-audit", "version": "1"}
STRIKES = 2
"""After so many unanswered requests on one connection the others get a fifth of the budget: one that hangs on
everything must not cost the full budget each time."""

type_key = tuple[type, object]


def _id_key(value: object) -> type_key:
    """Ids compare by type and value: 1, "1" and true are three ids."""
    return (type(value), value if isinstance(value, (str, int, float)) else repr(value))


@dataclass(slots=True)
class _Pending:
    method: str
    sent: Frame
    done: anyio.Event = field(default_factory=anyio.Event)
    reply: Reply | None = None
    stream: list[Frame] = field(default_factory=list[Frame])


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request that the target sent to its client.

    Attributes:
        method: Such as ``roots/list``.
        params: As they came; an empty mapping where they were no object.
        frame: The frame.
        answer: What was answered: ``result``, ``error`` or ``none``.
    """

    method: str
    params: Mapping[str, Any]
    frame: Frame
    answer: str


@dataclass(slots=True, kw_only=True)
class Listen:
    """An open `subscriptions/listen`.

    Attributes:
        id: Id of the request; notifications of this stream are tagged with it.
        acknowledged: The honoured filter, once acknowledged.
        reply: The final response, if one came (a refusal, or the end of the stream).
        frames: Request, acknowledgement or refusal.
    """

    id: object
    acknowledged: Mapping[str, Any] | None = None
    reply: Reply | None = None
    frames: list[Frame] = field(default_factory=list[Frame])


class Session:
    """A conversation in one era.

    Args:
        link: The connection.
        revision: The revision to ask for; it decides the era.
        capabilities: Client capabilities to declare.
        answer: Answers a request of the target: a result, or None to refuse with -32601.
        limits: Named limits.
        started: `time.monotonic()` of the beginning of the target's audit.
        number: Number of the connection, for the evidence.
    """

    def __init__(
        self,
        link: Link,
        *,
        revision: str,
        capabilities: Mapping[str, Any],
        answer: Callable[[str, Mapping[str, Any]], Mapping[str, Any] | None],
        limits: Limits,
        started: float,
        number: int,
    ) -> None:
        self.link = link
        self.revision = revision
        self.era = register().era(revision)
        self.capabilities = capabilities
        self.limits = limits
        self.frames: list[Frame] = []
        self.asks: list[Ask] = []
        self.strays: list[Frame] = []
        """Responses that answer nothing that was asked, and messages that are none."""
        self.problems: list[tuple[str, str, Frame]] = []
        """What was wrong with frames as frames: code of the finding, words, and the frame or the note of it."""
        self.schemas: dict[str, object] = {}
        """Input schemas of the tools that were listed, by name: some arguments travel in headers too (modern HTTP)."""
        self.negotiated: str | None = None
        self.opening: Reply | None = None
        """The reply to `initialize` or `server/discover`."""
        self.session_id: str | None = None
        self.minted = False
        """Whether any answer carried a session id."""
        self.stream_status: int | None = None
        """HTTP status of the legacy GET stream; None where it was not opened."""
        self.ready = 0
        """Place in the transcript at which a legacy handshake was over."""
        self._answer = answer
        self._started = started
        self._number = number
        self._pending: dict[type_key, _Pending] = {}
        self._listens: dict[type_key, Listen] = {}
        self._next = 0
        self._strikes = 0
        self._outbox: deque[Any] = deque()
        self._arrived = anyio.Event()
        self._has_mail = anyio.Event()
        link.receive = self._receive

    # -- what probes use -------------------------------------------------------------------------------------------

    @property
    def dead(self) -> str:
        """Why nothing more can come; empty while the connection lives."""
        return self.link.dead

    def mark(self) -> int:
        """A place in the transcript, for `since`."""
        return len(self.frames)

    def since(self, mark: int, method: str | None = None) -> tuple[Frame, ...]:
        """Notifications received after ``mark``, all or those of one method."""
        return tuple(
            frame
            for frame in self.frames[mark:]
            if frame.direction is Direction.RECEIVED
            and "id" not in (body := _object(frame.message))
            and "method" in body
            and method in (None, body["method"])
        )

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        capabilities: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        bare: bool = False,
        timeout: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Sends a request and waits for its reply, at most ``timeout`` seconds.

        Args:
            method: The method.
            params: Its parameters, without the envelope.
            capabilities: Client capabilities of this request, where they differ from the session's (modern).
            meta: Further members of `_meta`; None leaves a member out.
            bare: Without the modern envelope and headers, to see what the target makes of that.
            timeout: Seconds; by default the budget for a method, less after several requests went unanswered.
            headers: Headers that replace the right ones of the same name (an empty value leaves one out).
        """
        pending = await self.start(method, params, capabilities=capabilities, meta=meta, bare=bare, headers=headers)
        budget = timeout if timeout is not None else self.limits.method / (5 if self._strikes >= STRIKES else 1)
        with anyio.move_on_after(budget):
            await pending.done.wait()
        reply = self._finish(pending, budget)
        if reply.failure is Failure.TIMEOUT and method != "initialize" and not self.dead:
            # Nobody waits any more, and the target should know. `initialize` may not be cancelled.
            await self.notify("notifications/cancelled", {"requestId": _object(pending.sent.message)["id"]})
        return reply

    async def start(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        capabilities: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        bare: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> _Pending:
        """Sends a request without waiting for the reply."""
        self._next += 1
        number = self._next
        body = dict(params or {})
        if self.era is Era.MODERN and not bare:
            envelope = modern_meta(self.revision, self.capabilities, CLIENT_INFO)
            if capabilities is not None:
                envelope[CLIENT_CAPABILITIES] = dict(capabilities)
            merged = {**envelope, **(meta or {})}
            body["_meta"] = {key: value for key, value in merged.items() if value is not None}
        elif meta:
            body["_meta"] = dict(meta)
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method}
        if body or method == "initialize":
            message["params"] = body
        pending = _Pending(method, self._record(Direction.SENT, message))
        self._pending[_id_key(number)] = pending
        if method == "subscriptions/listen":
            self._listens[_id_key(number)] = Listen(id=number, frames=[pending.sent])
        if self.dead:
            self._fail(pending, Failure.CLOSED, self.dead)
        else:
            await self.link.send(message, {} if bare else self._headers(method, body, headers or {}))
        return pending

    def give_up(self, method: str) -> None:
        """Stops waiting for the requests of this method: their budget turned out to be too long."""
        for pending in self._pending.values():
            if pending.method == method and not pending.done.is_set():
                detail = "no answer, long after the same target answered a legacy handshake"
                pending.reply = Reply(
                    method=method, failure=Failure.TIMEOUT, detail=detail, frames=(pending.sent, *pending.stream)
                )
                pending.done.set()

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Sends a notification."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params:
            message["params"] = dict(params)
        self._record(Direction.SENT, message)
        if not self.dead:
            await self.link.send(message, self._headers(method, params or {}, {}))

    async def listen(self, filters: Mapping[str, Any], timeout: float | None = None) -> Listen:
        """Opens `subscriptions/listen` and waits for its acknowledgement or refusal.

        Both are right where there is nothing to announce (gap G-19).
        """
        pending = await self.start("subscriptions/listen", {"notifications": dict(filters)})
        listen = self._listens[_id_key(_object(pending.sent.message)["id"])]
        await self.wait_for(
            lambda: listen.acknowledged is not None or pending.done.is_set(), timeout or self.limits.method
        )
        if pending.done.is_set():
            listen.reply = pending.reply
        elif listen.acknowledged is None:
            listen.reply = self._finish(pending, timeout or self.limits.method)
        if listen.reply is not None:
            listen.frames.extend(frame for frame in listen.reply.frames if frame not in listen.frames)
        return listen

    async def close_listen(self, listen: Listen) -> None:
        """Ends a listen as the transport wants it: a cancelled notification on stdio, closing the stream on HTTP."""
        if self.link.transport == "stdio" and not self.dead:
            await self.notify("notifications/cancelled", {"requestId": listen.id})
        self.link.cancel(listen.id)
        self._pending.pop(_id_key(listen.id), None)

    async def wait_for(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Waits until ``condition`` holds, looking again whenever something arrives; at most ``timeout`` seconds."""
        with anyio.move_on_after(timeout):
            while not condition() and not self.dead:
                await self._arrived.wait()
        return condition()

    async def settle(self) -> None:
        """Listens until nothing has arrived for `Limits.settle` seconds, at most ten times that."""
        with anyio.move_on_after(self.limits.settle * 10):
            while not self.dead:
                seen = len(self.frames)
                with anyio.move_on_after(self.limits.settle):
                    while len(self.frames) == seen:
                        await self._arrived.wait()
                if len(self.frames) == seen:
                    return

    async def open_stream(self) -> None:
        """Opens the legacy GET stream (HTTP only)."""
        if self.link.transport == "http":
            self.stream_status = await self.link.open_stream(self.headers())

    def headers(self) -> dict[str, str]:
        """Headers of a message that is no request (legacy: version and session)."""
        return self._headers("", {}, {})

    async def serve(self) -> None:
        """Sends the answers to the target's requests. Runs beside the conversation until it is cancelled."""
        while True:
            while self._outbox:
                await self.link.send(self._outbox.popleft(), self.headers())
            self._has_mail = anyio.Event()
            if not self._outbox:
                await self._has_mail.wait()

    # -- what arrives ----------------------------------------------------------------------------------------------

    def _receive(self, incoming: Incoming) -> None:
        if incoming.headers.get("mcp-session-id"):
            self.minted = True
            if self.session_id is None and self.era is Era.LEGACY:
                self.session_id = incoming.headers["mcp-session-id"]
        if incoming.problem or incoming.value is None:
            self._trouble(incoming)
        if incoming.value is not None:
            frame = self._record(Direction.RECEIVED, incoming.value, incoming.channel, incoming.status)
            self._dispatch(incoming, frame)
        if len(self.frames) > self.limits.frames:
            text = f"more than {self.limits.frames} frames on one connection"
            self.problems.append(("protocol.flood", text, self.frames[-1]))
            self._fail_all(f"more than {self.limits.frames} frames came; the rest is not read")
        self._arrived.set()
        self._arrived = anyio.Event()

    def _trouble(self, incoming: Incoming) -> None:
        """A note of the transport: junk, an HTTP answer without a message, the end of a stream or of everything."""
        quiet_end = incoming.end and not incoming.problem
        if not quiet_end:
            note = self._record(Direction.NOTE, incoming.problem or "null", incoming.channel, incoming.status)
            if not incoming.end:
                text = incoming.problem or "a JSON null in place of a message"
                self.problems.append(("protocol.junk", text, note))
        if not incoming.end:
            return
        if incoming.request is None:
            if self.dead:
                self._fail_all(self.dead)
            return
        pending = self._pending.get(_id_key(incoming.request))
        if pending is not None and not pending.done.is_set():
            detail = incoming.problem or "the stream ended without a response"
            self._fail(pending, Failure.HTTP, detail, incoming.status)

    def _dispatch(self, incoming: Incoming, frame: Frame) -> None:
        message = incoming.value
        if isinstance(message, list):
            # Batches exist at 2025-03-26 only; nobody may send one unasked, but its items still count.
            self.problems.append(("protocol.junk", "a JSON array in place of a message", frame))
            for item in cast("list[Any]", message)[: self.limits.frames]:
                self._dispatch(Incoming(value=item, channel=incoming.channel, request=incoming.request), frame)
            return
        if not isinstance(message, dict):
            self.problems.append(("protocol.junk", "a JSON value that is no message", frame))
            return
        body = cast("dict[str, Any]", message)
        if isinstance(body.get("method"), str):
            if "id" in body:
                self._asked(body, frame)
            else:
                self._notified(body, frame, incoming)
        elif "result" in body or "error" in body:
            self._answered(body, frame, incoming)
        else:
            self.problems.append(("protocol.junk", "a message with neither method nor result nor error", frame))

    def _notified(self, body: Mapping[str, Any], frame: Frame, incoming: Incoming) -> None:
        if incoming.request is not None:
            pending = self._pending.get(_id_key(incoming.request))
            if pending is not None and len(pending.stream) < 1000:
                pending.stream.append(frame)
        if body["method"] != "notifications/subscriptions/acknowledged":
            return
        params = _object(body.get("params"))
        tag = _object(params.get("_meta")).get(SUBSCRIPTION_ID)
        listen = self._listens.get(_id_key(tag)) if tag is not None else self._untagged(incoming)
        if listen is not None and listen.acknowledged is None:
            listen.acknowledged = _object(params.get("notifications"))
            listen.frames.append(frame)

    def _untagged(self, incoming: Incoming) -> Listen | None:
        """An acknowledgement without its tag: still plain over HTTP by its stream, or where only one listen waits."""
        if incoming.request is not None:
            return self._listens.get(_id_key(incoming.request))
        waiting = [listen for listen in self._listens.values() if listen.acknowledged is None]
        return waiting[0] if len(waiting) == 1 else None

    def _asked(self, body: Mapping[str, Any], frame: Frame) -> None:
        params = _object(body.get("params"))
        result = self._answer(body["method"], params)
        # A modern client has no requests to answer: there are none in that era.
        kind = "none" if self.era is Era.MODERN else "error" if result is None else "result"
        self.asks.append(Ask(method=body["method"], params=params, frame=frame, answer=kind))
        if kind == "none":
            return
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": body["id"]}
        if result is None:
            answer["error"] = {"code": -32601, "message": f"Method not found: {body['method']}"}
        else:
            answer["result"] = dict(result)
        self._record(Direction.SENT, answer)
        self._outbox.append(answer)
        self._has_mail.set()

    def _answered(self, body: Mapping[str, Any], frame: Frame, incoming: Incoming) -> None:
        key = _id_key(body.get("id"))
        pending = self._pending.get(key)
        if pending is None and body.get("id") is None:
            # An error that could not name its request answers the one whose body it is, or the only one there is.
            waiting = [item for item in self._pending.values() if not item.done.is_set() and not self._open(item)]
            own = self._pending.get(_id_key(incoming.request)) if incoming.request is not None else None
            pending = own or (waiting[0] if len(waiting) == 1 else None)
            # An HTTP refusal may come without an id. Source: 2025-11-25/basic/transports.
            if pending is not None and (incoming.status or 0) < 400:
                self.problems.append(("protocol.null-id", "a response whose id is null", frame))
        elif pending is None and (incoming.status or 0) >= 400 and incoming.request is not None:
            # The exchange tells which request is refused; the id that the refusal made up tells nothing.
            pending = self._pending.get(_id_key(incoming.request))
            if pending is not None:
                self.problems.append(("protocol.null-id", "a refusal over HTTP under an id that was never sent", frame))
        if pending is None or pending.done.is_set():
            self.strays.append(frame)
            if pending is None:
                self._misnamed(body, frame)
            return
        self._settle(pending, _reply(pending, body, frame, incoming.status))

    def _misnamed(self, body: Mapping[str, Any], frame: Frame) -> None:
        """A response under an id that was never sent: if one request waits, waiting longer for it is vain."""
        waiting = [item for item in self._pending.values() if not item.done.is_set() and not self._open(item)]
        if len(waiting) == 1:
            detail = f"a response under the id {str(body.get('id'))[:40]!r}, which was never sent"
            frames = (waiting[0].sent, frame)
            self._settle(
                waiting[0],
                Reply(method=waiting[0].method, failure=Failure.MALFORMED, detail=detail, frames=frames),
            )

    def _open(self, pending: _Pending) -> bool:
        """Whether this is a listen that was acknowledged, so that its response may be far away."""
        return any(
            listen.frames[0] is pending.sent and listen.acknowledged is not None for listen in self._listens.values()
        )

    # -- bookkeeping -----------------------------------------------------------------------------------------------

    def _settle(self, pending: _Pending, reply: Reply) -> None:
        pending.reply = reply
        pending.done.set()
        for listen in self._listens.values():
            if listen.frames and listen.frames[0] is pending.sent and listen.acknowledged is not None:
                listen.reply = reply

    def _fail(self, pending: _Pending, failure: Failure, detail: str, status: int | None = None) -> None:
        frames = (pending.sent, *pending.stream, *self.frames[-1:])
        self._settle(
            pending, Reply(method=pending.method, failure=failure, detail=detail, status=status, frames=frames)
        )

    def _fail_all(self, detail: str) -> None:
        for pending in self._pending.values():
            if not pending.done.is_set():
                self._fail(pending, Failure.CLOSED, detail)

    def _finish(self, pending: _Pending, budget: float) -> Reply:
        if pending.reply is None:
            self._strikes += 1
            detail = f"no answer within {budget:g} s"
            asked = _object(pending.sent.message)
            name = _object(asked.get("params")).get("name")
            note = self._record(Direction.NOTE, f"{pending.method}: {detail}{f' ({name})' if name else ''}")
            frames = (pending.sent, *pending.stream, note)
            # The late answer, if it comes, is a stray; the stream over HTTP is closed.
            self.link.cancel(asked["id"])
            return Reply(method=pending.method, failure=Failure.TIMEOUT, detail=detail, frames=frames)
        self._strikes = 0 if pending.reply.ok or pending.reply.refused else self._strikes
        return pending.reply

    def _headers(self, method: str, params: Mapping[str, Any], replace: Mapping[str, str]) -> dict[str, str]:
        if self.era is Era.MODERN:
            headers = modern_headers(self.revision, method, params, self.schemas)
        else:
            headers = legacy_headers(self.negotiated, self.session_id)
        left_out = {key for key, value in replace.items() if not value}
        return {key: value for key, value in {**headers, **replace}.items() if key not in left_out}

    def _record(
        self, direction: Direction, message: Any, channel: str | None = None, status: int | None = None
    ) -> Frame:
        frame = Frame(
            at=int((time.monotonic() - self._started) * 1000),
            direction=direction,
            channel=channel or ("stdio" if self.link.transport == "stdio" else "post"),
            connection=self._number,
            message=message,
            status=status,
        )
        self.frames.append(frame)
        return frame


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _reply(pending: _Pending, body: Mapping[str, Any], frame: Frame, status: int | None) -> Reply:
    """Reads a response; what is none is a failure of the kind malformed."""
    frames = (pending.sent, *pending.stream, frame)
    error: object = body.get("error")
    if "error" not in body:
        return Reply(method=pending.method, result=body.get("result"), status=status, frames=frames)
    if "result" in body:
        wrong = "both result and error in one response"
    elif not isinstance(error, dict):
        wrong = "error is no object"
    else:
        wrong = ""
    details = _object(cast("object", error))
    code = details.get("code")
    if not wrong and (not isinstance(code, int) or isinstance(code, bool)):
        wrong = "error.code is no integer"
    if wrong:
        return Reply(method=pending.method, failure=Failure.MALFORMED, detail=wrong, status=status, frames=frames)
    return Reply(
        method=pending.method,
        code=cast("int", code),
        message=str(details.get("message", "")),
        data=details.get("data"),
        status=status,
        frames=frames,
    )
