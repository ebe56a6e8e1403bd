"""The middle of the gateway: what a host's request becomes. Implements `troth.gateway.model.Front`."""

from __future__ import annotations

import asyncio
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from troth.bridge import BAD_PARAMS, Bad, Kind, errors, fresh, peek, peek_meta
from troth.bridge.errors import ErrorValue
from troth.bridge.exchange import LEVELS
from troth.bridge.headers import disagreement
from troth.bridge.levels import REPEATED
from troth.bridge.promise import also_served
from troth.capabilities import ClientCapabilities, read_client
from troth.gateway import listening, lists, relaying
from troth.gateway.asked import Asked, HostSession, Seen, connection_of, printable, us
from troth.gateway.audience import Audience
from troth.gateway.fetching import FAMILIES, LISTS
from troth.gateway.model import Answer, Host
from troth.gateway.tasks import held
from troth.register import Era, HostProfile, register
from troth.results import initialize_result
from troth.tasks import core, extension

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from msgspec import Raw

    from troth.bridge import Frame, Id
    from troth.capabilities import Built
    from troth.gateway.gateway import Gateway
    from troth.gateway.model import Principal, Session, Stream

META: Final = "io.modelcontextprotocol/"
VERSION_KEY: Final = META + "protocolVersion"
CAPABILITIES_KEY: Final = META + "clientCapabilities"
INFO_KEY: Final = META + "clientInfo"
LEVEL_KEY: Final = META + "logLevel"

UNSUPPORTED_VERSION: Final = -32022
REMEMBERED: Final = 256
"""Modern hosts that the status tells of, and those that are known by what they say."""

METHODS: Final[Mapping[str, Callable[[Asked], Awaitable[Answer]]]] = {
    "ping": lists.ping,
    "server/discover": lists.discover,
    **{how.method: lists.listing for how in LISTS.values()},
    **dict.fromkeys(relaying.RELAYED, relaying.relayed),
    "completion/complete": relaying.complete,
    "logging/setLevel": listening.set_level,
    "resources/subscribe": listening.subscribe,
    "resources/unsubscribe": listening.unsubscribe,
    "subscriptions/listen": listening.listen,
    **dict.fromkeys({*core.METHODS, *extension.METHODS}, held.held),
}
"""What is done for each method, in every revision that has it."""

_read_object = msgspec.json.Decoder(dict[str, Any]).decode


class MiddleFront:
    """Answers hosts from the fleets of a gateway.

    Args:
        gateway: Where fleets come from.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.sessions: set[HostSession] = set()
        self._seen: dict[tuple[str, str, str], Seen] = {}
        self._known: dict[tuple[bytes, Principal, str], Host] = {}
        self._settings = gateway.settings

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
            asks=self._gateway.asks_of(principal, declared),
            name=f"{name} {version}".strip(),
            transport=transport,
            profile=_profile(principal, name, version),
            gated="capabilities" in peeked or not self._gateway.settings.allow_when_not_declared,
        )
        fleet = self._gateway.session_fleet(principal, host.asks)
        if isinstance(fleet, str):
            return None, self.refusal(Bad(errors.INTERNAL, fleet, frame.id), None)
        try:
            await fleet.settled(strangers=True)
        except asyncio.CancelledError:
            self._gateway.release(fleet)
            raise
        connection = connection_of(host, push=push)
        built = fleet.promised(connection)
        families = [family for family in FAMILIES if built.has(f"{family}.listChanged")]
        session = HostSession(host, fleet, connection, Audience(host, outbox, families))
        host.session = session
        self.sessions.add(session)
        fleet.join(session.audience)
        result = initialize_result(
            server_info=us(revision),
            capabilities=built,
            instructions=fleet.instructions() or None,
            revision=revision,
        )
        return session, Answer(fresh.result_line(cast("Id", frame.id), result))

    def modern(self, frame: Frame, principal: Principal, transport: str) -> Host | Bad:
        """See `troth.gateway.model.Front`. Hosts say the same with every request, so it is read once."""
        said = (frame.parts or {}).get("_meta")
        if said is None or len(said) > REPEATED or "progressToken" in frame.meta:
            return self._modern(frame, principal, transport)
        if self._settings is not self._gateway.settings:
            # Which keys of a host pass is another question now.
            self._settings = self._gateway.settings
            self._known.clear()
        key = (bytes(said), principal, transport)
        known = self._known.get(key)
        if known is None:
            host = self._modern(frame, principal, transport)
            if isinstance(host, Bad):
                return host
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            known = self._known[key] = host
        return known

    def _modern(self, frame: Frame, principal: Principal, transport: str) -> Host | Bad:
        meta = peek_meta(frame, VERSION_KEY, CAPABILITIES_KEY, INFO_KEY, LEVEL_KEY)
        if isinstance(meta, Bad):
            return meta
        revision, raw = meta.get(VERSION_KEY), meta.get(CAPABILITIES_KEY)
        if revision is None or raw is None:
            key = VERSION_KEY if revision is None else CAPABILITIES_KEY
            return Bad(BAD_PARAMS, f"params: _meta: {key} is missing", frame.id, frame.kind)
        if revision not in register().eras[Era.MODERN]:
            return Bad(UNSUPPORTED_VERSION, f"Unsupported protocol version: {printable(revision)}", frame.id)
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
            asks=self._gateway.asks_of(principal, declared),
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
                self._gateway.fleet(host.principal, host.asks).known.route("tools", name.get("name", ""))
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
            fleet = self._gateway.fleet(host.principal, host.asks)
            if frame.method not in relaying.RELAYED:
                # What is declared may depend on upstreams that just start; who owns a name is waited for by itself.
                await fleet.settled()
            built = fleet.promised_to(host)
            self._see(host, built)
        served = also_served(built, frame.method)
        handler = METHODS.get(frame.method)
        if served is not True or handler is None:
            return _refused(frame, served)
        return await handler(Asked(self._gateway, frame, host, session, fleet, built, stream))

    def notify(self, frame: Frame, host: Host) -> None:
        """See `troth.gateway.model.Front`."""
        session = cast("HostSession | None", host.session)
        if session is None:
            return
        if frame.kind in (Kind.RESPONSE, Kind.ERROR):
            session.answered(frame)
        elif frame.method == "notifications/initialized":
            session.fleet.open(session.audience)
        elif frame.method == "notifications/roots/list_changed":
            session.fleet.outside.roots_changed(host)
        elif frame.method == "notifications/cancelled":
            peeked = peek(frame, "requestId")
            request = None if isinstance(peeked, Bad) else peeked.get("requestId")
            if request is not None and (call := session.running.get(request)) is not None:
                call.withdraw("cancelled by the host")

    def close(self, session: Session) -> None:
        """See `troth.gateway.model.Front`."""
        ours = cast("HostSession", session)
        self.sessions.discard(ours)
        ours.audience.ended.set()
        for call in tuple(ours.running.values()):
            call.withdraw("the session ended")
        ours.fleet.level(ours, None)
        self._gateway.crew.spawn(self._leave(ours), "leave")

    async def _leave(self, session: HostSession) -> None:
        await session.fleet.leave(session.audience)
        self._gateway.release(session.fleet)

    def stop(self) -> None:
        """Ends every listen in the way of its era, and tells nobody of changes any more."""
        for fleet in self._gateway.every_fleet():
            for audience in fleet.audiences:
                audience.ended.set()

    def seen(self) -> list[Seen]:
        """The modern hosts of late."""
        for seen in self._seen.values():
            audiences = self._gateway.fleet(seen.host.principal, seen.host.asks).audiences
            seen.streams = sum(who.tag is not None and who.host.name == seen.host.name for who in audiences)
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


def _refused(frame: Frame, served: bool | str) -> Answer:
    """The refusal of a method that was not promised (rule 27)."""
    if isinstance(served, str):
        error = errors.not_supported(frame.method, served)
    elif any(method == frame.method for method, _ in register().methods):
        error = ErrorValue(errors.METHOD_NOT_FOUND, f"Method not found: {printable(frame.method)}")
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
    return printable(name) if isinstance(name, str) else "", printable(version) if isinstance(version, str) else ""


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
