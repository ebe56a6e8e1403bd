"""A server without a wire: one JSON value in, what the server does about it out.

An honest `Script` keeps every promise it makes, in all five revisions at once: a legacy client opens a session with
``initialize``, a modern one sends ``_meta`` with each request. Faults bend it (`troth.testing.FAULTS`). Shells for
stdio and HTTP carry what it says; a test can do the same in memory.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from troth.register import Era, register
from troth.testing import methods, spelling
from troth.testing.content import VARIANTS, Catalogue
from troth.testing.model import (
    CLIENT,
    CLIENT_INFO,
    LEVEL,
    LEVELS,
    SUBSCRIPTION,
    VERSION,
    Call,
    Context,
    Listen,
    Out,
    Refusal,
    Send,
    Session,
    Silent,
    Task,
)
from troth.testing.promises import offered, serves
from troth.testing.tools import resume

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from troth.testing.model import Answer, Id, Json, JsonObject, Twist


def _now() -> str:
    return datetime.now(UTC).isoformat()


class Script:
    """A server as a state machine.

    Args:
        variant: What it offers: a key of ``VARIANTS``.
        revisions: Revisions it serves; all five by default.
        twists: How it is bent; none for an honest server. See ``troth.testing.twists``.
        transport: ``stdio`` or ``http``, for faults that depend on it.
        instance: Ends the server's name, to tell two of them apart.
        now: Tells the time, as ISO 8601.

    Raises:
        KeyError: No such variant or revision.
    """

    def __init__(
        self,
        *,
        variant: str = "full",
        revisions: Iterable[str] = (),
        twists: Iterable[Twist] = (),
        transport: str = "stdio",
        instance: str = "",
        now: Callable[[], str] = _now,
    ) -> None:
        served = tuple(revisions) or register().revisions
        eras = {revision: register().era(revision) for revision in served}
        self.served = {era: [r for r in register().eras[era] if r in eras] for era in Era}
        self.variant = VARIANTS[variant]
        self.catalogue = Catalogue.of(self.variant)
        self.twists = tuple(twists)
        self.transport = transport
        self.info: JsonObject = {
            "name": f"troth-testing{'-' + instance if instance else ''}",
            "title": "Troth testing server",
            "version": "1.0.0",
        }
        self.now = now
        self.sessions: dict[str, Session] = {}
        self.listens: list[Listen] = []
        self.tasks: dict[str, Task] = {}
        self.secret = secrets.token_bytes(32)
        self.remembered: JsonObject = {}
        self.asked = 0
        self.received = 0
        self.held: list[Out] = []
        """What is kept back until nothing more comes in; see `release`."""
        self._out: list[Out] = []

    def feed(self, value: Json, context: Context) -> list[Out]:
        """Takes one incoming JSON value and returns everything that goes out because of it, in order."""
        session = self.sessions.get(context.session or "")
        if isinstance(value, list) and session and session.revision in spelling.BATCHES:
            return self._batch(cast("list[Json]", value), context)
        self._out = []
        self.received += 1
        call = self._message(value, context)
        out = self._out
        for twist in self.twists:
            if twist.after and twist.bends(call.revision if call else None):
                out = twist.after(self, call, out)
        return out

    def release(self) -> list[Out]:
        """What was held back, the newest first. A shell asks for it when nothing comes in for a while."""
        held, self.held = self.held, []
        return held[::-1]

    def close(self, stream: str) -> None:
        """A stream is gone: what listened on it is forgotten."""
        self.listens = [listen for listen in self.listens if listen.stream != stream]

    def end(self, session: str) -> bool:
        """Ends a legacy session; False if there is no such session."""
        return self.sessions.pop(session, None) is not None

    def lax(self, check: str, revision: str) -> bool:
        """Whether a fault skips this check in a revision."""
        return any(check in twist.lax and twist.bends(revision) for twist in self.twists)

    def skips(self, check: str) -> bool:
        """Whether a fault skips this check of the shell."""
        return any(check in twist.shell for twist in self.twists)

    def offers(self, revision: str) -> JsonObject:
        """What the server really does in a revision."""
        return offered(self.variant.offers, revision)

    def declaration(self, revision: str) -> JsonObject:
        """The capability object that it shows in a revision."""
        shown = self.offers(revision)
        for twist in self.twists:
            if twist.declare and twist.bends(revision):
                twist.declare(self, shown, revision)
        return shown

    def send(self, message: JsonObject, stream: str) -> None:
        """Puts a message on a stream."""
        self._out.append(Send({"jsonrpc": "2.0", **message}, stream))

    def notify(self, method: str, params: JsonObject, stream: str) -> None:
        """Puts a notification on a stream."""
        self.send({"method": method, **({"params": params} if params else {})}, stream)

    def log(self, call: Call, level: str, data: Json) -> None:
        """Logs for the client of a call, if it wants to know: at its session's level, or at the request's."""
        if "logging" not in self.offers(call.revision):
            return
        wanted = call.session.level if call.session else call.meta.get(LEVEL)
        if self.lax("log-without-level", call.revision) and wanted is None:
            wanted = "debug"
        if wanted is None:
            return
        if self.lax("log-level", call.revision) or LEVELS.index(level) >= LEVELS.index(wanted):
            self.notify("notifications/message", {"level": level, "logger": "troth", "data": data}, call.stream)

    def announce(self, family: str) -> None:
        """Tells whoever may be told that a list (``tools``, ``prompts``, ``resources``) changed."""
        method = f"notifications/{family}/list_changed"
        for session in self.sessions.values():
            if session.initialized and self._pushes(family, "listChanged", session.revision):
                self.notify(method, {}, session.push)
        for listen in self.listens:
            if listen.filter.get(f"{family}ListChanged"):
                self.notify(method, {"_meta": {SUBSCRIPTION: listen.id}}, listen.stream)

    def updated(self, uri: str) -> None:
        """Tells whoever watches a resource that it changed."""
        method = "notifications/resources/updated"
        for session in self.sessions.values():
            if uri in session.subscriptions:
                self.notify(method, {"uri": uri}, session.push)
        for listen in self.listens:
            if uri in listen.filter.get("resourceSubscriptions", ()):
                self.notify(method, {"_meta": {SUBSCRIPTION: listen.id}, "uri": uri}, listen.stream)

    def respond(self, call: Call, answer: Answer) -> None:
        """Sends the answer to a request, spelled for its revision."""
        if isinstance(answer, Silent) or call.id is None:
            return
        if isinstance(answer, Refusal):
            self._refuse(call.id, answer, call.stream)
        else:
            # initialize settles the revision that its own answer is spelled in.
            revision = call.session.revision if call.session else call.revision
            self.send({"id": call.id, "result": spelling.result(call.method, answer, revision)}, call.stream)

    def _pushes(self, family: str, flag: str, revision: str) -> bool:
        return bool(self.offers(revision).get(family, {}).get(flag))

    def _refuse(self, request: Id | None, refusal: Refusal, stream: str) -> None:
        error: JsonObject = {"code": refusal.code, "message": refusal.message}
        if refusal.data is not None:
            error["data"] = refusal.data
        self.send({**({} if request is None else {"id": request}), "error": error}, stream)

    def _batch(self, values: list[Json], context: Context) -> list[Out]:
        outs = [out for value in values for out in self.feed(value, context)]
        answers = [out for out in outs if isinstance(out, Send) and "method" not in out.message]
        rest = [out for out in outs if out not in answers]
        return [*rest, Send([out.message for out in answers], context.stream)] if answers else rest

    def _message(self, value: Json, context: Context) -> Call | None:
        message = cast("JsonObject", value) if isinstance(value, dict) else {}
        request = message.get("id")
        usable = isinstance(request, (str, int)) and not isinstance(request, bool)
        if message.get("jsonrpc") != "2.0" or ("id" in message and not usable):
            self._refuse(None, Refusal(-32600, "Not a JSON-RPC 2.0 message"), context.stream)
            return None
        if "method" not in message:
            self._reply(message, context)
            return None
        method, params = message["method"], message.get("params", {})
        if not isinstance(method, str) or not isinstance(params, dict):
            if usable:
                refusal = (
                    Refusal(-32602, "params must be an object")
                    if isinstance(method, str)
                    else Refusal(-32600, "method must be a string")
                )
                self._refuse(cast("Id", request), refusal, context.stream)
            return None
        placed = self._place(method, cast("JsonObject", params), cast("Id | None", request), context)
        if isinstance(placed, Refusal):
            if usable:
                self._refuse(cast("Id", request), placed, context.stream)
            return None
        if placed.id is None:
            self._notification(placed)
        else:
            self.respond(placed, self._answer(placed))
        return placed

    def _place(self, method: str, params: JsonObject, request: Id | None, context: Context) -> Call | Refusal:
        meta = params.get("_meta", {})
        if not isinstance(meta, dict):
            return Refusal(-32602, "params._meta must be an object")
        meta = cast("JsonObject", meta)
        session = self.sessions.get(context.session or "")
        marked = any(key in meta for key in (VERSION, CLIENT, CLIENT_INFO))
        modern = self.served[Era.MODERN] and (marked or (method == "server/discover" and session is None))
        place: dict[str, Any] = {
            "method": method,
            "params": params,
            "id": request,
            "meta": meta,
            "stream": context.stream,
        }
        if modern or not self.served[Era.LEGACY]:
            return self._modern(place)
        if session is None and method not in ("initialize", "ping") and request is not None:
            known = register().method(method, register().newest(Era.LEGACY))
            if known is None:
                return Refusal(-32601, f"Method not found: {method}")
            if not self.lax("initialize", self.served[Era.LEGACY][-1]):
                code = -32602 if self.served[Era.MODERN] else -32600
                return Refusal(code, "No session and no _meta: call initialize first, or send _meta with the request")
        revision = session.revision if session else self.served[Era.LEGACY][-1]
        if method == "initialize" and params.get("protocolVersion") in self.served[Era.LEGACY]:
            revision = params["protocolVersion"]
        if session is None and context.session is not None:
            session = Session(id=context.session, revision=revision, capabilities={}, push=f"push:{context.session}")
        capabilities = session.capabilities if session else {}
        return Call(**place, revision=revision, era=Era.LEGACY, capabilities=capabilities, session=session)

    def _modern(self, place: dict[str, Any]) -> Call | Refusal:
        meta = place["meta"]
        if place["id"] is None:
            return Call(**place, revision=self._newest(), era=Era.MODERN, capabilities={}, session=None)
        version, capabilities = meta.get(VERSION), meta.get(CLIENT)
        if self.lax("meta", self._newest()):
            version, capabilities = meta.setdefault(VERSION, self._newest()), meta.setdefault(CLIENT, {})
        if not isinstance(version, str) or not isinstance(capabilities, dict):
            return Refusal(-32602, f"_meta must have {VERSION} (a string) and {CLIENT} (an object)")
        supported = list(reversed(self.served[Era.MODERN]))
        if version not in supported and not self.lax("version", self._newest()):
            return Refusal(
                -32022, f"Unsupported protocol version {version!r}", {"supported": supported, "requested": version}
            )
        if LEVEL in meta and meta[LEVEL] not in LEVELS:
            return Refusal(-32602, f"Unknown log level; one of {', '.join(LEVELS)}")
        if self.lax("no-inference", version):
            self.remembered = capabilities = {**self.remembered, **cast("JsonObject", capabilities)}
        revision = version if version in supported else self._newest()
        return Call(
            **place, revision=revision, era=Era.MODERN, capabilities=cast("JsonObject", capabilities), session=None
        )

    def _newest(self) -> str:
        return self.served[Era.MODERN][-1]

    def _answer(self, call: Call) -> Answer:
        for twist in self.twists:
            answer = twist.instead(self, call) if twist.instead and twist.bends(call.revision) else None
            if answer is not None:
                return answer
        return self.honest(call)

    def honest(self, call: Call) -> Answer:
        """What an honest server answers to a request."""
        handler = methods.METHODS.get(call.method)
        if handler is None or not serves(self.offers(call.revision), call.method, call.revision):
            return Refusal(-32601, f"Method not found: {call.method}")
        return handler(self, call)

    def _notification(self, call: Call) -> None:
        if call.method == "notifications/initialized" and call.session:
            call.session.initialized = True
        elif call.method == "notifications/cancelled":
            request = call.params.get("requestId")
            if call.session:
                pending = call.session.pending
                call.session.pending = {key: q for key, q in pending.items() if q.call.id != request}
            self.listens = [it for it in self.listens if it.stream != call.stream or it.id != request]

    def _reply(self, message: JsonObject, context: Context) -> None:
        session = self.sessions.get(context.session or "")
        question = session.pending.pop(message.get("id", ""), None) if session else None
        if question:
            self.respond(question.call, resume(message))
