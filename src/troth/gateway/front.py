"""The middle of the gateway: what a host's request becomes. Implements `troth.gateway.model.Front`."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import msgspec

from troth.bridge import BAD_PARAMS, NOT_A_MESSAGE, Bad, Frame, errors, fresh, members, peek, peek_meta
from troth.bridge.errors import ErrorValue
from troth.bridge.exchange import Exchange
from troth.bridge.exchange_model import Called
from troth.bridge.headers import disagreement, mirrored
from troth.bridge.promise import Connection, also_served, page_size
from troth.capabilities import Built, ClientCapabilities, read_client
from troth.gateway.audience import SUBSCRIPTION, Audience
from troth.gateway.calls import Call
from troth.gateway.fleet import LEVELS
from troth.gateway.member import FAMILIES, LISTS
from troth.gateway.model import Answer, Host, Sort, UnavailableError
from troth.register import Era, HostProfile, register
from troth.results import discover_result, initialize_result, server_info

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from msgspec import Raw

    from troth.bridge import Id
    from troth.bridge.listed import Entry
    from troth.bridge.listed import Kind as ListKind
    from troth.gateway.fleet import Fleet
    from troth.gateway.gateway import Gateway
    from troth.gateway.member import Member
    from troth.gateway.model import Conversation, Principal, Session, Stream

META: Final = "io.modelcontextprotocol/"
VERSION_KEY: Final = META + "protocolVersion"
CAPABILITIES_KEY: Final = META + "clientCapabilities"
INFO_KEY: Final = META + "clientInfo"
LEVEL_KEY: Final = META + "logLevel"

UNSUPPORTED_VERSION: Final = -32022
REMEMBERED: Final = 256
"""Modern hosts that the status tells of."""
SHOWN: Final = 120
"""Characters of a host's name that are kept."""

FILTERS: Final[Mapping[str, str]] = {f"{family}ListChanged": family for family in FAMILIES}
"""Field of the filter of ``subscriptions/listen`` -> the family whose changes it asks for."""


class Relayed(NamedTuple):
    """How a relayed method names its target: the kind of list, and the member of ``params``."""

    kind: ListKind
    member: str
    unknown: str


RELAYED: Final[Mapping[str, Relayed]] = {
    "tools/call": Relayed("tools", "name", "Unknown tool"),
    "prompts/get": Relayed("prompts", "name", "Unknown prompt"),
    "resources/read": Relayed("resources", "uri", "Resource not found"),
}


class HostSession:
    """A legacy session. Implements `troth.gateway.model.Session`.

    Attributes:
        id: Unguessable.
        host: Who it is with.
        push: Whether its outbox reaches the host.
        built: What it was promised, which holds to its end.
        audience: Where it hears of changes; joined from ``notifications/initialized`` on.
        fleet: The upstreams that it sees.
        level: Log level that it set; None before.
        running: Relayed requests in flight, by the host's id.
        calls: Requests that it made.
        last: When it made the last one (monotonic seconds).
        connection: What its connection can carry.
    """

    def __init__(self, host: Host, fleet: Fleet, connection: Connection, audience: Audience) -> None:
        self.id = secrets.token_urlsafe(24)
        self.host = host
        self.connection = connection
        self.push = connection.push
        self.built = fleet.promised(connection)
        self.audience = audience
        self.fleet = fleet
        self.level: str | None = None
        self.running: dict[Id, Call] = {}
        self.calls = 0
        self.last = time.monotonic()


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


class MiddleFront:
    """Answers hosts from the fleets of a gateway.

    Args:
        gateway: Where fleets come from.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.sessions: set[HostSession] = set()
        self.listens: set[Audience] = set()
        self._seen: dict[tuple[str, str, str], Seen] = {}

    # Who asks

    async def initialize(
        self, frame: Frame, principal: Principal, outbox: Stream, *, push: bool, transport: str
    ) -> tuple[Session | None, Answer]:
        """See `troth.gateway.model.Front`."""
        peeked = peek(frame, "protocolVersion", "capabilities", "clientInfo")
        if isinstance(peeked, Bad):
            return None, self.refusal(peeked, None)
        asked = peeked.get("protocolVersion")
        if asked is None:
            bad = Bad(BAD_PARAMS, "params: protocolVersion: the revision that you offer belongs here", frame.id)
            return None, self.refusal(bad, None)
        legacy = register().eras[Era.LEGACY]
        revision = asked if asked in legacy else legacy[-1]
        declared = _declared(bytes(peeked.get("capabilities", b"{}")), revision)
        if isinstance(declared, Bad):
            return None, self.refusal(msgspec.structs.replace(declared, id=frame.id), None)
        name, version = _named(peeked.get("clientInfo"))
        host = Host(
            principal=principal,
            revision=revision,
            era=Era.LEGACY,
            capabilities=declared,
            name=f"{name} {version}".strip(),
            transport=transport,
            profile=_profile(principal, name, version),
        )
        fleet = self._gateway.fleet(principal)
        await fleet.settled()
        connection = self._connection(host, push=push)
        built = fleet.promised(connection)
        families = [family for family in FAMILIES if built.has(f"{family}.listChanged")]
        session = HostSession(host, fleet, connection, Audience(host, outbox, families))
        host.session = session
        self.sessions.add(session)
        result = initialize_result(
            server_info=_us(revision),
            capabilities=built,
            instructions=fleet.instructions() or None,
            revision=revision,
        )
        return session, Answer(fresh.result_line(_id(frame), result))

    def modern(self, frame: Frame, principal: Principal, transport: str) -> Host | Bad:
        """See `troth.gateway.model.Front`."""
        meta = peek_meta(frame, VERSION_KEY, CAPABILITIES_KEY, INFO_KEY, LEVEL_KEY)
        if isinstance(meta, Bad):
            return meta
        revision, raw = meta.get(VERSION_KEY), meta.get(CAPABILITIES_KEY)
        if revision is None or raw is None:
            key = VERSION_KEY if revision is None else CAPABILITIES_KEY
            return Bad(BAD_PARAMS, f"params: _meta: {key} is missing", frame.id, frame.kind)
        if revision not in register().eras[Era.MODERN]:
            return Bad(UNSUPPORTED_VERSION, f"Unsupported protocol version: {_printable(revision)}", frame.id)
        declared = _declared(bytes(raw), revision)
        if isinstance(declared, Bad):
            return msgspec.structs.replace(declared, id=frame.id, kind=frame.kind)
        level = meta.get(LEVEL_KEY)
        if level is not None and level not in LEVELS:
            return Bad(BAD_PARAMS, f"params: _meta: {LEVEL_KEY}: one of {', '.join(LEVELS)} belongs here", frame.id)
        name, version = _named(meta.get(INFO_KEY))
        return Host(
            principal=principal,
            revision=revision,
            era=Era.MODERN,
            capabilities=declared,
            name=f"{name} {version}".strip(),
            transport=transport,
            profile=register().hosts.get(principal.profile),
            level=level,
        )

    def refusal(self, bad: Bad, revision: str | None) -> Answer:  # noqa: ARG002 - every revision says it so
        """See `troth.gateway.model.Front`."""
        data: object = None
        if bad.code == UNSUPPORTED_VERSION:
            requested = bad.reason.rpartition(": ")[2]
            data = {"supported": [*reversed(register().eras[Era.MODERN])], "requested": requested}
        return Answer(fresh.error_line(bad.id, bad.code, bad.reason, data), bad.code)

    def header_fault(self, frame: Frame, host: Host, headers: Mapping[str, str]) -> Bad | None:
        """See `troth.gateway.model.Front`."""
        plan = None
        if frame.method == "tools/call":
            name = peek(frame, "name")
            entry = (
                self._gateway.fleet(host.principal).known.route("tools", name.get("name", ""))
                if isinstance(name, dict)
                else None
            )
            plan = entry.plan if entry is not None else None
        fault = disagreement(frame, host.revision, headers, plan)
        return Bad(errors.HEADER_MISMATCH, fault, frame.id, frame.kind) if fault else None

    # Requests

    async def answer(self, frame: Frame, host: Host, stream: Stream) -> Answer:
        """See `troth.gateway.model.Front`."""
        session = cast("HostSession | None", host.session)
        if session is not None:
            fleet, built = session.fleet, session.built
            session.calls += 1
            session.last = time.monotonic()
        else:
            fleet = self._gateway.fleet(host.principal)
            built = fleet.promised(self._connection(host))
            self._see(host, built)
        served = also_served(built, frame.method)
        handler = _HANDLERS.get(frame.method)
        if served is not True or handler is None:
            return _refused(frame, served)
        return await handler(self, Asked(frame, host, session, fleet, built, stream))

    def notify(self, frame: Frame, host: Host) -> None:
        """See `troth.gateway.model.Front`."""
        session = cast("HostSession | None", host.session)
        if session is None:
            return
        if frame.method == "notifications/initialized":
            session.fleet.join(session.audience)
        elif frame.method == "notifications/cancelled":
            peeked = peek(frame, "requestId")
            request = None if isinstance(peeked, Bad) else peeked.get("requestId")
            if request is not None and (call := session.running.get(request)) is not None:
                call.withdraw("cancelled by the host")

    def close(self, session: Session) -> None:
        """See `troth.gateway.model.Front`."""
        ours = cast("HostSession", session)
        self.sessions.discard(ours)
        for call in tuple(ours.running.values()):
            call.withdraw("the session ended")
        ours.fleet.level(ours, None)
        ours.audience.ended.set()
        self._gateway.crew.spawn(ours.fleet.leave(ours.audience), "leave")

    def stop(self) -> None:
        """Ends every listen in the way of its era, and tells nobody of changes any more."""
        for audience in (*self.listens, *(session.audience for session in self.sessions)):
            audience.ended.set()

    def seen(self) -> list[Seen]:
        """The modern hosts of late."""
        for seen in self._seen.values():
            seen.streams = sum(audience.host.name == seen.host.name for audience in self.listens)
        return list(self._seen.values())

    def _see(self, host: Host, built: Built) -> None:
        key = (host.principal.name, host.name, host.revision)
        seen = self._seen.get(key)
        if seen is None:
            if len(self._seen) >= REMEMBERED:
                del self._seen[min(self._seen, key=lambda known: self._seen[known].last)]
            seen = self._seen[key] = Seen(host, built)
        seen.host, seen.built = host, built
        seen.calls += 1
        seen.last = time.monotonic()

    def _connection(self, host: Host, *, push: bool = False) -> Connection:
        return Connection(
            revision=host.revision, push=push, can_listen=host.era is Era.MODERN, changes=True, profile=host.profile
        )

    # Handlers

    async def ping(self, asked: Asked) -> Answer:
        """Both sides are there."""
        return asked.result({})

    async def discover(self, asked: Asked) -> Answer:
        """What this gateway offers to this very request."""
        await asked.fleet.settled()
        built = asked.fleet.promised(self._connection(asked.host))
        result = discover_result(
            server_info=_us(asked.host.revision),
            capabilities=built,
            supported_versions=register().revisions,
            instructions=asked.fleet.instructions() or None,
            revision=asked.host.revision,
        )
        return asked.result(result)

    async def listing(self, asked: Asked) -> Answer:
        """One page of a list, which is the whole unless the operator wants pages."""
        await asked.fleet.settled()
        kind = _KINDS[asked.frame.method]
        how = LISTS[kind]
        peeked = peek(asked.frame, "cursor")
        if isinstance(peeked, Bad):
            return self.refusal(peeked, asked.host.revision)
        cursor = peeked.get("cursor")
        size = page_size(asked.host.profile, self._gateway.settings.page_size)
        page = asked.fleet.catalogue.page(kind, asked.host.revision, size, cursor)
        if isinstance(page, Bad):
            return self.refusal(msgspec.structs.replace(page, id=asked.frame.id), asked.host.revision)
        ttl, scope = asked.fleet.catalogue.ttl_and_scope(kind)
        if cursor is None:
            asked.fleet.serves(how.family, asked.host)
        result: dict[str, object] = {how.member: msgspec.Raw(page.items)}
        if page.cursor is not None:
            result["nextCursor"] = page.cursor
        if asked.host.era is Era.MODERN:
            result |= {"resultType": "complete", "ttlMs": ttl, "cacheScope": scope}
        return asked.result(result)

    async def relayed(self, asked: Asked) -> Answer:
        """A tool is called, a prompt or a resource read."""
        how = RELAYED[asked.frame.method]
        named = peek(asked.frame, cast("Any", how.member))
        if isinstance(named, Bad):
            return self.refusal(named, asked.host.revision)
        shown = cast("str | None", named.get(how.member))
        if shown is None:
            return asked.error(BAD_PARAMS, f"params: {how.member}: a text belongs here")
        entry = await self._route(asked, how.kind, shown)
        if entry is None:
            return _unknown(asked, how, shown)
        return await self._relay(asked, entry, {how.member: entry.own}, name=entry.own)

    async def complete(self, asked: Asked) -> Answer:
        """Values for an argument of a prompt or a template, from its owner."""
        peeked = peek(asked.frame, "ref")
        reference = peeked if isinstance(peeked, Bad) else members(peeked.get("ref", _EMPTY), "params: ref", _REFERENCE)
        if isinstance(reference, Bad):
            return self.refusal(msgspec.structs.replace(reference, id=asked.frame.id), asked.host.revision)
        try:
            sort, shown, member = _referred(reference)
        except (KeyError, msgspec.DecodeError):
            return asked.error(
                BAD_PARAMS, "params: ref: a ref/prompt with a name or ref/resource with a uri belongs here"
            )
        entry = await self._route(asked, sort, shown)
        if entry is None:
            return asked.error(BAD_PARAMS, f"params: ref: nothing here is called {_printable(shown)}")
        owner = asked.fleet.member(entry.source)
        conversation = owner.conversation if owner is not None else None
        if (
            owner is not None
            and conversation is not None
            and not (owner.completes or conversation.capabilities.has("completions"))
        ):
            return asked.result({"completion": {"values": [], "hasMore": False}})
        changed = {**reference, member: entry.own}
        return await self._relay(asked, entry, {"ref": changed})

    async def set_level(self, asked: Asked) -> Answer:
        """The level from which on a session gets log messages."""
        peeked = peek(asked.frame, "level")
        level = None if isinstance(peeked, Bad) else peeked.get("level")
        if level not in LEVELS or asked.session is None:
            return asked.error(BAD_PARAMS, f"params: level: one of {', '.join(LEVELS)} belongs here")
        asked.session.level = level
        asked.fleet.level(asked.session, level)
        return asked.result({})

    async def subscribe(self, asked: Asked) -> Answer:
        """Updates of a resource, for a session."""
        return await self._subscription(asked, begins=True)

    async def unsubscribe(self, asked: Asked) -> Answer:
        """No more updates of a resource, for a session."""
        return await self._subscription(asked, begins=False)

    async def _subscription(self, asked: Asked, *, begins: bool) -> Answer:
        peeked = peek(asked.frame, "uri")
        uri = None if isinstance(peeked, Bad) else peeked.get("uri")
        if uri is None or asked.session is None:
            return asked.error(BAD_PARAMS, "params: uri: the URI of a resource belongs here")
        audience = asked.session.audience
        if not begins:
            await asked.fleet.unsubscribe(audience, uri)
            return asked.result({})
        limit = self._gateway.limits.subscriptions
        if len(audience.watched) >= limit:
            return asked.error(errors.INTERNAL, f"more than {limit} subscriptions (limit: subscriptions)")
        problem = await self._watch(asked, audience, uri)
        return asked.result({}) if problem is None else problem

    async def listen(self, asked: Asked) -> Answer:
        """A stream of changes: acknowledged first, then open until the host or the gateway ends it."""
        peeked = peek(asked.frame, "notifications")
        raw = peeked if isinstance(peeked, Bad) else peeked.get("notifications")
        wanted = raw if isinstance(raw, Bad) or raw is None else members(raw, "params: notifications", _FILTER)
        if wanted is None or isinstance(wanted, Bad):
            reason = wanted.reason if wanted is not None else "params: notifications: an object belongs here"
            return asked.error(BAD_PARAMS, reason)
        filter_ = _filter(wanted, self._gateway.limits.subscriptions)
        if isinstance(filter_, Bad):
            return asked.error(BAD_PARAMS, filter_.reason)
        await asked.fleet.settled()
        flags, uris = filter_
        families = [family for family in flags if asked.built.has(f"{family}.listChanged")]
        audience = Audience(asked.host, asked.stream, families, asked.frame.id)
        try:
            return await self._listened(asked, audience, families, uris)
        finally:
            self.listens.discard(audience)
            self._gateway.crew.spawn(asked.fleet.leave(audience), "leave")

    async def _listened(self, asked: Asked, audience: Audience, families: list[str], uris: list[str] | None) -> Answer:
        honoured: dict[str, object] = {name: True for name, family in FILTERS.items() if family in families}
        if uris is not None and asked.built.has("resources.subscribe"):
            honoured["resourceSubscriptions"] = [uri for uri in uris if await self._watch(asked, audience, uri) is None]
        acknowledged = {"_meta": audience.meta, "notifications": honoured}
        asked.stream.send(fresh.notification_line("notifications/subscriptions/acknowledged", acknowledged), Sort.OTHER)
        for family in families:
            audience.served[family] = asked.fleet.digest(family, asked.host)
            if asked.fleet.missed(family, asked.host):
                audience.changed(family)
        self.listens.add(audience)
        asked.fleet.join(audience)
        await audience.ended.wait()
        if asked.host.transport == "stdio":
            asked.stream.send(
                fresh.notification_line("notifications/cancelled", {"requestId": asked.frame.id}), Sort.OTHER
            )
        return asked.result({"resultType": "complete", "_meta": {SUBSCRIPTION: asked.frame.id}})

    async def _watch(self, asked: Asked, audience: Audience, uri: str) -> Answer | None:
        """Subscribes to a resource; what to answer if that cannot be."""
        entry = await self._route(asked, "resources", uri)
        owner = asked.fleet.member(entry.source) if entry is not None else None
        if entry is None or owner is None:
            return _unknown(asked, RELAYED["resources/read"], uri)
        try:
            await asked.fleet.subscribe(audience, uri, owner, entry.own)
        except UnavailableError as error:
            if error.error is not None and owner.conversation is not None:
                made = errors.translated(
                    error.error, asked.frame.method, owner.conversation.revision, asked.host.revision, uri
                )
                return asked.refuse(made)
            return asked.error(errors.INTERNAL, f"{owner.name}: {error}")
        return None

    # Relaying

    async def _route(self, asked: Asked, kind: ListKind, shown: str) -> Entry | None:
        """Who owns a name. Names of upstreams that have not started yet are waited for."""
        entry = asked.fleet.known.route(kind, shown)
        if entry is None and asked.fleet.waiting():
            await asked.fleet.settled()
            entry = asked.fleet.known.route(kind, shown)
        return entry

    async def _relay(self, asked: Asked, entry: Entry, params: Mapping[str, object], name: str = "") -> Answer:
        owner = asked.fleet.member(entry.source)
        conversation = owner.conversation if owner is not None else None
        if owner is None or conversation is None:
            why = owner.upstream.why if owner is not None else "it was removed"
            return asked.error(errors.INTERNAL, f"upstream {entry.source} is not reachable: {why}")
        target = Target(entry, owner, conversation, params, name)
        call = self._call(asked, target)
        answer = await self._run(asked, call)
        if not call.mismatched:
            return answer
        # What is known of the tool's headers is old, and nothing was done: the list is fetched, the call sent again.
        owner.refetch("tools")
        await owner.fetched()
        entry = asked.fleet.known.route(entry.kind, entry.shown) or entry
        return await self._run(asked, self._call(asked, target._replace(entry=entry)))

    async def _run(self, asked: Asked, call: Call) -> Answer:
        session, identity = asked.session, asked.frame.id
        if session is None or identity is None:
            return await call.run()
        if identity in session.running:
            return asked.error(NOT_A_MESSAGE, "a request with this id is running; give each its own")
        session.running[identity] = call
        try:
            return await call.run()
        finally:
            del session.running[identity]

    def _call(self, asked: Asked, target: Target) -> Call:
        entry, owner, conversation, params, name = target
        host, frame = asked.host, asked.frame
        level = asked.session.level if asked.session is not None else host.level
        if asked.session is None and level is not None:
            asked.fleet.level(host.principal, level)
        called = Called(
            frame=frame,
            host_revision=host.revision,
            upstream=owner.name,
            upstream_revision=conversation.revision,
            prefix=owner.prefix,
            params=params,
            name=name,
            headers=_mirrored(entry, frame, conversation),
            level=level,
            timeout=owner.settings.call_timeout,
            inline_links=not asked.built.has("resources"),
        )
        return Call(Exchange(called), conversation, asked.stream)


class Target(NamedTuple):
    """Where a request goes, under which name."""

    entry: Entry
    owner: Member
    conversation: Conversation
    params: Mapping[str, object]
    name: str


class Asked(NamedTuple):
    """One request with everything that its handler needs."""

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
        return Answer(fresh.result_line(_id(self.frame), result))

    def error(self, code: int, message: str, data: object = None) -> Answer:
        """The answer with this error."""
        return Answer(fresh.error_line(self.frame.id, code, message, data), code)

    def refuse(self, error: ErrorValue) -> Answer:
        """The answer with this error."""
        return self.error(error.code, error.message, error.data)


_HANDLERS: Final[Mapping[str, Callable[[MiddleFront, Asked], Awaitable[Answer]]]] = {
    "ping": MiddleFront.ping,
    "server/discover": MiddleFront.discover,
    **{how.method: MiddleFront.listing for how in LISTS.values()},
    **dict.fromkeys(RELAYED, MiddleFront.relayed),
    "completion/complete": MiddleFront.complete,
    "logging/setLevel": MiddleFront.set_level,
    "resources/subscribe": MiddleFront.subscribe,
    "resources/unsubscribe": MiddleFront.unsubscribe,
    "subscriptions/listen": MiddleFront.listen,
}

_KINDS: Final[Mapping[str, ListKind]] = {how.method: kind for kind, how in LISTS.items()}
_EMPTY: Final = msgspec.Raw(b"{}")
_REFERENCE: Final = ("type", "name", "uri")
_FILTER: Final = (*FILTERS, "resourceSubscriptions")
_REFERENCES: Final[Mapping[str, tuple[ListKind, str]]] = {
    "ref/prompt": ("prompts", "name"),
    "ref/resource": ("templates", "uri"),
}
_read_text = msgspec.json.Decoder(str).decode
_read_flag = msgspec.json.Decoder(bool).decode
_read_texts = msgspec.json.Decoder(list[str]).decode
_read_object = msgspec.json.Decoder(dict[str, Any]).decode


def _referred(reference: Mapping[str, Raw]) -> tuple[ListKind, str, str]:
    """Kind of list, name and member of a reference."""
    kind, member = _REFERENCES[_read_text(reference["type"])]
    return kind, _read_text(reference[member]), member


def _filter(wanted: Mapping[str, Raw], most: int) -> tuple[list[str], list[str] | None] | Bad:
    """The families and URIs that a listen asks for."""
    try:
        flags = [family for name, family in FILTERS.items() if name in wanted and _read_flag(wanted[name])]
        raw = wanted.get("resourceSubscriptions")
        uris = None if raw is None else list(dict.fromkeys(_read_texts(raw)))
    except msgspec.DecodeError:
        return Bad(BAD_PARAMS, "params: notifications: flags are true or false, resourceSubscriptions a list of texts")
    if uris is not None and len(uris) > most:
        return Bad(BAD_PARAMS, f"params: notifications: more than {most} URIs (limit: subscriptions)")
    return flags, uris


def _mirrored(entry: Entry, frame: Frame, conversation: Conversation) -> Mapping[str, str]:
    if conversation.era is not Era.MODERN or entry.plan is None:
        return {}
    arguments = (frame.parts or {}).get("arguments", _EMPTY)
    return mirrored(entry.plan, arguments)


def _unknown(asked: Asked, how: Relayed, shown: str) -> Answer:
    """The refusal of a name that nobody owns, in the revision's way."""
    if how.member == "uri":
        return asked.refuse(errors.resource_not_found(shown, asked.host.revision))
    return asked.error(BAD_PARAMS, f"{how.unknown}: {_printable(shown)}")


def _refused(frame: Frame, served: bool | str) -> Answer:
    """The refusal of a method that was not promised (rule 27)."""
    if isinstance(served, str):
        error = errors.not_supported(frame.method, served)
    elif any(method == frame.method for method, _ in register().methods):
        error = ErrorValue(errors.METHOD_NOT_FOUND, f"Method not found: {_printable(frame.method)}")
    else:
        error = errors.unknown_method(frame.method)
    return Answer(fresh.error_line(frame.id, error.code, error.message, error.data), error.code)


@lru_cache(maxsize=512)
def _declared(raw: bytes, revision: str) -> ClientCapabilities | Bad:
    """What a host declares. Hosts send the same bytes with every request."""
    try:
        value = _read_object(raw)
    except (msgspec.DecodeError, RecursionError):
        return Bad(BAD_PARAMS, "the client capabilities are no object")
    return read_client(value, revision)


def _named(raw: Raw | None) -> tuple[str, str]:
    """Name and version out of ``clientInfo``, fit to print; empty where they are not there."""
    try:
        value = _read_object(raw) if raw is not None else {}
    except (msgspec.DecodeError, RecursionError):
        value = {}
    name, version = value.get("name"), value.get("version")
    return _printable(name) if isinstance(name, str) else "", _printable(version) if isinstance(version, str) else ""


def _printable(text: str) -> str:
    short = text[:SHOWN]
    return short if short.isprintable() else short.encode("unicode_escape").decode("ascii")


def _profile(principal: Principal, name: str, version: str) -> HostProfile | None:
    """The known host behind a session: what the operator said, else by name and first number of the version."""
    hosts = register().hosts
    if principal.profile:
        return hosts.get(principal.profile)
    for profile in hosts.values():
        known = profile.client_info
        if not profile.test and known["name"] == name and _first(known["version"]) in (_first(version), "unknown"):
            return profile
    return None


def _first(version: str) -> str:
    return version.partition(".")[0]


@lru_cache(maxsize=16)
def _us(revision: str) -> dict[str, Any]:
    from troth._version import version

    return server_info(name="troth", version=version, title="Troth", revision=revision)


def _id(frame: Frame) -> Id:
    return cast("Id", frame.id)
