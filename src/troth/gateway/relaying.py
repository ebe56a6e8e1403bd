"""Calls of tools, prompts, resources and completion: found in the catalogue, carried to their owner."""

from __future__ import annotations

import time
from contextlib import suppress
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import msgspec

from troth.bridge import BAD_PARAMS, NOT_A_MESSAGE, Bad, errors, members, peek
from troth.bridge.asks import ROOTS, client_capabilities
from troth.bridge.exchange import Exchange
from troth.bridge.exchange_model import Called, Round
from troth.bridge.headers import mirrored
from troth.bridge.names import shown_name, upstream_uri
from troth.gateway import forms
from troth.gateway.asked import printable
from troth.gateway.calls import Call
from troth.gateway.desk import CallDesk
from troth.gateway.hiding import hidden_upstream, refusal
from troth.gateway.model import Answer, Status, UnavailableError
from troth.gateway.parking import Parked
from troth.gateway.seal import Sealed, digest
from troth.gateway.tasks.room import Place
from troth.register import Era

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from msgspec import Raw

    from troth.bridge import Frame, Id
    from troth.bridge.listed import Entry
    from troth.bridge.listed import Kind as ListKind
    from troth.gateway.asked import Asked, Running
    from troth.gateway.member import Member
    from troth.gateway.model import Conversation
    from troth.gateway.tasks.desks import Wrap


class Relayed(NamedTuple):
    """How a relayed method names its target: the kind of list, and the member of ``params``."""

    kind: ListKind
    member: str
    sort: str


RELAYED: Final[Mapping[str, Relayed]] = {
    "tools/call": Relayed("tools", "name", "tool"),
    "prompts/get": Relayed("prompts", "name", "prompt"),
    "resources/read": Relayed("resources", "uri", "resource"),
}


MOST_VALUES: Final = 100
"""Most values of one completion."""
RESTART: Final = 2.0
"""Seconds that a call waits for an upstream which is just started again."""

_EMPTY: Final = msgspec.Raw(b"{}")
_REFERENCE: Final = ("type", "name", "uri")
_REFERENCES: Final[Mapping[str, tuple[ListKind, str]]] = {
    "ref/prompt": ("prompts", "name"),
    "ref/resource": ("templates", "uri"),
}
_read_text = msgspec.json.Decoder(str).decode
_read_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_read_list = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Target(NamedTuple):
    """Where a request goes, under which name."""

    entry: Entry
    owner: Member
    conversation: Conversation
    params: Mapping[str, object]
    name: str
    resume: Round | None
    wrap: Wrap | None = None
    """Makes the desk of its call another one."""


async def relayed(asked: Asked) -> Answer:
    """A tool is called, a prompt or a resource read."""
    how = RELAYED[asked.frame.method]
    named = peek(asked.frame, cast("Any", how.member))
    if isinstance(named, Bad):
        return asked.bad(named)
    shown = cast("str | None", named.get(how.member))
    if shown is None:
        return asked.error(BAD_PARAMS, f"params: {how.member}: a text belongs here")
    if asked.host.era is Era.MODERN and (asked.frame.parts or {}).get("requestState") is not None:
        return await _retried(asked)
    entry = await asked.route(how.kind, shown)
    if entry is None:
        return unknown(asked, how, shown)
    if (refused := refusal(asked, entry, shown)) is not None:
        return refused
    return await _relay(asked, entry, {how.member: entry.own}, name=entry.own)


async def _retried(asked: Asked) -> Answer:
    """A modern host comes again with answers: for a call that is parked, or for an upstream that keeps none open."""
    frame, host = asked.frame, asked.host
    peeked = peek(frame, "requestState")
    if isinstance(peeked, Bad):
        return asked.bad(peeked)
    parts = frame.parts or {}
    sealed = asked.gateway.seal.open(
        peeked.get("requestState", ""), host.principal.name, frame.method, digest(frame.method, parts), time.time()
    )
    if isinstance(sealed, Bad):
        return asked.bad(sealed)
    if not sealed.call:
        return await _resumed(asked, sealed)
    parked = asked.gateway.parking.find(sealed.call)
    if not isinstance(parked, Parked):
        return asked.refuse(parked)
    return await parked.call.again(asked, sealed.round)


async def _resumed(asked: Asked, sealed: Sealed) -> Answer:
    """Sends a retry on to the upstream that asked, with its own state."""
    how = RELAYED[asked.frame.method]
    shown = cast("str", cast("Any", peek(asked.frame, cast("Any", how.member)))[how.member])
    entry = await asked.route(how.kind, shown)
    if entry is None or entry.source != sealed.upstream:
        return unknown(asked, how, shown)
    asked_before = Round(
        entries={},
        number=sealed.round,
        state=sealed.state,
        answers=sealed.answers,
        expected=sealed.expected(),
        reissue=sealed.reissue,
    )
    return await _relay(asked, entry, {how.member: entry.own}, name=entry.own, resume=asked_before)


async def complete(asked: Asked) -> Answer:
    """Values for an argument of a prompt or a template, from its owner."""
    peeked = peek(asked.frame, "ref")
    reference = peeked if isinstance(peeked, Bad) else members(peeked.get("ref", _EMPTY), "params: ref", _REFERENCE)
    if isinstance(reference, Bad):
        return asked.bad(reference)
    try:
        sort, shown, member = _referred(reference)
    except (KeyError, msgspec.DecodeError):
        return asked.error(BAD_PARAMS, "params: ref: a ref/prompt with a name or ref/resource with a uri belongs here")
    entry = await asked.route(sort, shown)
    if entry is None and sort == "templates":
        entry = await asked.route("resources", shown)
    if entry is None:
        nothing = asked.error(BAD_PARAMS, f"params: ref: nothing here is called {printable(shown)}")
        return hidden_upstream(asked, sort, shown) or nothing
    if (refused := refusal(asked, entry, shown)) is not None:
        return refused
    owner = asked.fleet.member(entry.source)
    conversation = owner.conversation if owner is not None else None
    if (
        owner is not None
        and conversation is not None
        and not (owner.completes or conversation.capabilities.has("completions"))
    ):
        return asked.result({"completion": {"values": [], "hasMore": False}})
    changed = {**reference, member: entry.own}
    return _at_most(await _relay(asked, entry, {"ref": changed}), asked)


def _at_most(answer: Answer, asked: Asked) -> Answer:
    """The values of a completion, of which no more than the specification allows.

    Source: 2025-11-25/server/utilities/completion; schema, CompleteResult (at most 100 items).
    """
    if answer.code is not None or not answer.line:
        return answer
    result = _read_members(_read_members(answer.line)["result"])
    try:
        completion = _read_members(result["completion"])
        values = _read_list(completion["values"])
    except (KeyError, msgspec.DecodeError):
        return asked.error(errors.INTERNAL, "the upstream answered completion/complete without a list of values")
    if len(values) <= MOST_VALUES:
        return answer
    cut = {**completion, "values": values[:MOST_VALUES], "hasMore": True}
    return asked.result({**result, "completion": cut})


def unknown(asked: Asked, how: Relayed, shown: str) -> Answer:
    """The refusal of a name that no list of the host has, in the revision's way.

    It says why where the upstream hides it from this host, or may own it and is down.
    """
    if (refused := hidden_upstream(asked, how.kind, shown)) is not None:
        return refused
    if (owner := _absent(asked, how, shown)) is not None:
        return asked.error(errors.INTERNAL, f"upstream {owner.name} is not reachable: {owner.upstream.why}")
    if how.member == "uri":
        return asked.refuse(errors.resource_not_found(shown, asked.host.revision))
    return asked.refuse(errors.unknown_name(how.sort, shown))


def _absent(asked: Asked, how: Relayed, shown: str) -> Member | None:
    """The upstream that a name belongs to by its prefix and whose lists are not known."""
    return next((member for member in asked.fleet.absent() if _claims(member.prefix, how, shown)), None)


def _claims(prefix: str, how: Relayed, shown: str) -> bool:
    """Whether a name or URI has the prefix of an upstream."""
    return upstream_uri(prefix, shown) is not None if how.member == "uri" else shown.startswith(shown_name(prefix, ""))


async def _relay(
    asked: Asked, entry: Entry, params: Mapping[str, object], name: str = "", resume: Round | None = None
) -> Answer:
    owner = asked.fleet.member(entry.source)
    conversation = None
    if owner is not None:
        conversation = (await owner.lease() if owner.asks else owner.conversation) or await _reopened(owner)
    if owner is None or conversation is None:
        why = owner.upstream.why if owner is not None else "it was removed"
        return asked.error(errors.INTERNAL, f"upstream {entry.source} is not reachable: {why}")
    if owner.asks:
        await asked.fleet.outside.told(conversation)
    target = Target(entry, owner, conversation, params, name, resume)
    if asked.host.level is None:
        return await _run(asked, target)
    # A modern host names a level with each request; a legacy upstream is told while that request runs.
    wish = object()
    owner.level(wish, asked.host.level)
    try:
        await owner.levelled()
        return await _run(asked, target)
    finally:
        owner.level(wish, None)


async def _reopened(owner: Member) -> Conversation | None:
    """The conversation that is just opened, for the first time or again; None if none is."""
    if owner.lists and owner.listed and owner.upstream.status is Status.STARTING:
        seconds = RESTART if owner.settled.is_set() else owner.settings.start_timeout
        with suppress(UnavailableError):
            return await owner.upstream.ready(seconds)
    return None


async def _run(asked: Asked, target: Target) -> Answer:
    if target.entry.support or "task" in (asked.frame.parts or {}):
        taken = await asked.gateway.tasks.taken(asked, place(target))
        if isinstance(taken, Answer):
            return taken
        target = target._replace(conversation=taken)
    call = _call(asked, target)
    if asked.session is None:
        return await _ended(asked, target, call, {})
    if asked.frame.id in asked.session.running:
        return asked.error(NOT_A_MESSAGE, "a request with this id is running; give each its own")
    return await _ended(asked, target, call, asked.session.running)


def place(target: Target) -> Place:
    """The target as tasks know it."""

    def run(
        asked: Asked, conversation: Conversation, wrap: Wrap, resume: Round | None = None
    ) -> Coroutine[Any, Any, Answer]:
        there = target._replace(conversation=conversation, resume=resume or target.resume, wrap=wrap)
        return _ended(asked, there, _call(asked, there), {})

    entry = target.entry
    return Place(target.owner, target.conversation, entry.shown, entry.support, run)


async def _ended(asked: Asked, target: Target, call: Call, running: dict[Id, Running]) -> Answer:
    """Runs a call to its end, and once more if the upstream refused its headers unread."""
    identity = cast("Id", asked.frame.id)
    running[identity] = call
    try:
        answer = await call.run()
        code = errors.code(call.refusal) if call.refusal is not None else None
        if code == errors.MISSING_CAPABILITY and call.refusal is not None:
            target.owner.learn(target.entry.own, call.refusal)
        if code != errors.HEADER_MISMATCH or target.conversation.era is not Era.MODERN:
            return answer
        # What is known of the tool's headers is old, and nothing was done: the list is fetched, the call sent again.
        target.owner.refetch("tools")
        await target.owner.fetched()
        if call.withdrawn:
            return answer
        again = asked.fleet.known.route(target.entry.kind, target.entry.shown)
        if again is None or again.source != target.owner.name:
            return answer
        running[identity] = call = _call(asked, target._replace(entry=again))
        return await call.run()
    finally:
        del running[identity]


def _call(asked: Asked, target: Target) -> Call:
    entry, owner, conversation, params, name, resume, wrap = target
    host, frame = asked.host, asked.frame
    level = asked.session.level if asked.session is not None else host.level
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
    if not owner.asks or frame.method not in RELAYED:
        # What could be asked is told only where it will be answered; keys of the host hold for every request.
        declares = (
            None if owner.told == owner.asks else client_capabilities(owner.told - owner.asks, conversation.revision)
        )
        return Call(Exchange(called), conversation, asked.stream, declares=declares)
    visits = asked.gateway.visits(owner)
    called = msgspec.structs.replace(
        called,
        asks=owner.of_hosts & host.asks,
        elsewhere=(owner.asks & asked.gateway.answers(owner.settings)) | visits,
        mark=token_urlsafe(12),
        deadline=owner.settings.ask_timeout,
        keep=asked.gateway.limits.parked_time,
        resume=resume,
        check=forms.check,
    )
    desk = CallDesk(asked, owner, called.keep, conversation.revision, visits)
    if wrap is not None:
        return Call(Exchange(called), conversation, asked.stream, wrap(desk))
    if ROOTS not in called.asks or conversation.era is Era.MODERN:
        return Call(Exchange(called), conversation, asked.stream, desk)
    # A call of a modern host brings along what was asked outside of calls: nothing else can.
    outside = asked.fleet.outside
    waiting = outside.taken(conversation) if host.era is Era.MODERN and resume is None else ()
    called = msgspec.structs.replace(called, leaves=True, waiting=waiting)
    call = Call(Exchange(called), conversation, asked.stream, desk, outside=outside)
    outside.carry(conversation, call, waiting)
    return call


def _referred(reference: Mapping[str, Raw]) -> tuple[ListKind, str, str]:
    """Kind of list, name and member of a reference."""
    kind, member = _REFERENCES[_read_text(reference["type"])]
    return kind, _read_text(reference[member]), member


def _mirrored(entry: Entry, frame: Frame, conversation: Conversation) -> Mapping[str, str]:
    if conversation.era is not Era.MODERN or entry.plan is None:
        return {}
    arguments = (frame.parts or {}).get("arguments", _EMPTY)
    return mirrored(entry.plan, arguments)
