"""Calls of tools, prompts, resources and completion: found in the catalogue, carried to their owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import msgspec

from troth.bridge import BAD_PARAMS, NOT_A_MESSAGE, Bad, errors, members, peek
from troth.bridge.exchange import Exchange
from troth.bridge.exchange_model import Called
from troth.bridge.headers import mirrored
from troth.gateway.asked import printable
from troth.gateway.calls import Call
from troth.register import Era

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgspec import Raw

    from troth.bridge import Frame
    from troth.bridge.listed import Entry
    from troth.bridge.listed import Kind as ListKind
    from troth.gateway.asked import Asked
    from troth.gateway.member import Member
    from troth.gateway.model import Answer, Conversation


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


_EMPTY: Final = msgspec.Raw(b"{}")
_REFERENCE: Final = ("type", "name", "uri")
_REFERENCES: Final[Mapping[str, tuple[ListKind, str]]] = {
    "ref/prompt": ("prompts", "name"),
    "ref/resource": ("templates", "uri"),
}
_read_text = msgspec.json.Decoder(str).decode


class Target(NamedTuple):
    """Where a request goes, under which name."""

    entry: Entry
    owner: Member
    conversation: Conversation
    params: Mapping[str, object]
    name: str


async def relayed(asked: Asked) -> Answer:
    """A tool is called, a prompt or a resource read."""
    how = RELAYED[asked.frame.method]
    named = peek(asked.frame, cast("Any", how.member))
    if isinstance(named, Bad):
        return asked.bad(named)
    shown = cast("str | None", named.get(how.member))
    if shown is None:
        return asked.error(BAD_PARAMS, f"params: {how.member}: a text belongs here")
    entry = await asked.route(how.kind, shown)
    if entry is None:
        return unknown(asked, how, shown)
    return await _relay(asked, entry, {how.member: entry.own}, name=entry.own)


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
    if entry is None:
        return asked.error(BAD_PARAMS, f"params: ref: nothing here is called {printable(shown)}")
    owner = asked.fleet.member(entry.source)
    conversation = owner.conversation if owner is not None else None
    if (
        owner is not None
        and conversation is not None
        and not (owner.completes or conversation.capabilities.has("completions"))
    ):
        return asked.result({"completion": {"values": [], "hasMore": False}})
    changed = {**reference, member: entry.own}
    return await _relay(asked, entry, {"ref": changed})


def unknown(asked: Asked, how: Relayed, shown: str) -> Answer:
    """The refusal of a name that nobody owns, in the revision's way."""
    if how.member == "uri":
        return asked.refuse(errors.resource_not_found(shown, asked.host.revision))
    return asked.error(BAD_PARAMS, f"{how.unknown}: {printable(shown)}")


async def _relay(asked: Asked, entry: Entry, params: Mapping[str, object], name: str = "") -> Answer:
    owner = asked.fleet.member(entry.source)
    conversation = owner.conversation if owner is not None else None
    if owner is None or conversation is None:
        why = owner.upstream.why if owner is not None else "it was removed"
        return asked.error(errors.INTERNAL, f"upstream {entry.source} is not reachable: {why}")
    target = Target(entry, owner, conversation, params, name)
    call = _call(asked, target)
    answer = await _run(asked, call)
    if not call.mismatched:
        return answer
    # What is known of the tool's headers is old, and nothing was done: the list is fetched, the call sent again.
    owner.refetch("tools")
    await owner.fetched()
    entry = asked.fleet.known.route(entry.kind, entry.shown) or entry
    return await _run(asked, _call(asked, target._replace(entry=entry)))


async def _run(asked: Asked, call: Call) -> Answer:
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


def _call(asked: Asked, target: Target) -> Call:
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


def _referred(reference: Mapping[str, Raw]) -> tuple[ListKind, str, str]:
    """Kind of list, name and member of a reference."""
    kind, member = _REFERENCES[_read_text(reference["type"])]
    return kind, _read_text(reference[member]), member


def _mirrored(entry: Entry, frame: Frame, conversation: Conversation) -> Mapping[str, str]:
    if conversation.era is not Era.MODERN or entry.plan is None:
        return {}
    arguments = (frame.parts or {}).get("arguments", _EMPTY)
    return mirrored(entry.plan, arguments)
