"""What hosts want to hear of: log levels, resource subscriptions, ``subscriptions/listen``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio
import msgspec

from troth.bridge import BAD_PARAMS, Bad, Cause, ErrorValue, errors, fresh, members, peek
from troth.bridge.exchange import LEVELS
from troth.gateway.asked import printable
from troth.gateway.audience import SUBSCRIPTION, Audience
from troth.gateway.fetching import FAMILIES
from troth.gateway.hiding import refusal
from troth.gateway.model import Sort, UnavailableError
from troth.gateway.relaying import RELAYED, unknown
from troth.gateway.tasks.held import watched
from troth.gateway.upstream.waiting import Refused
from troth.tasks.extension import FILTER as TASK_IDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgspec import Raw

    from troth.gateway.asked import Asked
    from troth.gateway.model import Answer
    from troth.tasks import Task

FILTERS: Final[Mapping[str, str]] = {f"{family}ListChanged": family for family in FAMILIES}
"""Field of the filter of ``subscriptions/listen`` -> the family whose changes it asks for."""


AT_ONCE: Final = 16
"""Subscriptions of one listen that are made at the same time."""
ACKNOWLEDGED: Final = 5.0
"""Seconds after which a listen is acknowledged without the URIs whose upstreams have not answered."""

_FILTER: Final = (*FILTERS, "resourceSubscriptions", TASK_IDS)
_read_flag = msgspec.json.Decoder(bool).decode
_read_texts = msgspec.json.Decoder(list[str]).decode


async def set_level(asked: Asked) -> Answer:
    """The level from which on a session gets log messages."""
    peeked = peek(asked.frame, "level")
    level = None if isinstance(peeked, Bad) else peeked.get("level")
    if level not in LEVELS or asked.session is None:
        return asked.error(BAD_PARAMS, f"params: level: one of {', '.join(LEVELS)} belongs here")
    asked.session.level = level
    for call in asked.session.running.values():
        call.level(level)
    asked.fleet.level(asked.session, level)
    await asked.fleet.levelled()
    return asked.result({})


async def subscribe(asked: Asked) -> Answer:
    """Updates of a resource, for a session."""
    return await _subscription(asked, begins=True)


async def unsubscribe(asked: Asked) -> Answer:
    """No more updates of a resource, for a session."""
    return await _subscription(asked, begins=False)


async def _subscription(asked: Asked, *, begins: bool) -> Answer:
    peeked = peek(asked.frame, "uri")
    uri = None if isinstance(peeked, Bad) else peeked.get("uri")
    if uri is None or asked.session is None:
        return asked.error(BAD_PARAMS, "params: uri: the URI of a resource belongs here")
    audience = asked.session.audience
    if not begins:
        await asked.fleet.unsubscribe(audience, uri)
        return asked.result({})
    limit = asked.gateway.limits.subscriptions
    if uri not in audience.watched and len(audience.watched) >= limit:
        return asked.error(errors.INTERNAL, f"more than {limit} subscriptions (limit: subscriptions)")
    problem = await _watch(asked, audience, uri)
    return asked.result({}) if problem is None else problem


async def listen(asked: Asked) -> Answer:
    """A stream of changes: acknowledged first, then open until the host or the gateway ends it."""
    peeked = peek(asked.frame, "notifications")
    raw = peeked if isinstance(peeked, Bad) else peeked.get("notifications")
    wanted = raw if isinstance(raw, Bad) or raw is None else members(raw, "params: notifications", _FILTER)
    if wanted is None or isinstance(wanted, Bad):
        reason = wanted.reason if wanted is not None else "params: notifications: an object belongs here"
        return asked.error(BAD_PARAMS, reason)
    filter_ = _filter(wanted, asked.gateway.limits.subscriptions)
    if isinstance(filter_, Bad):
        return asked.error(BAD_PARAMS, filter_.reason)
    flags, uris = filter_
    families = [family for family in flags if asked.built.has(f"{family}.listChanged")]
    audience = Audience(asked.host, asked.stream, families, asked.frame.id)
    tasks = await watched(asked, wanted[TASK_IDS]) if TASK_IDS in wanted else None
    if isinstance(tasks, ErrorValue):
        return asked.refuse(tasks)
    try:
        return await _listened(asked, audience, families, uris, tasks)
    finally:
        asked.gateway.tasks.leave(audience)
        asked.gateway.crew.spawn(asked.fleet.leave(audience), "leave")


async def _listened(
    asked: Asked, audience: Audience, families: list[str], uris: list[str] | None, tasks: tuple[Task, ...] | None
) -> Answer:
    honoured: dict[str, object] = {name: True for name, family in FILTERS.items() if family in families}
    asked.fleet.join(audience)
    if uris is not None and asked.built.has("resources.subscribe"):
        await _watch_all(asked, audience, uris)
        honoured["resourceSubscriptions"] = [uri for uri in uris if uri in audience.watched]
    if tasks is not None:
        honoured[TASK_IDS] = [task.id for task in tasks]
    acknowledged = {"_meta": audience.meta, "notifications": honoured}
    asked.stream.send(fresh.notification_line("notifications/subscriptions/acknowledged", acknowledged), Sort.OTHER)
    asked.fleet.open(audience)
    for task in tasks or ():
        await asked.gateway.tasks.begin(audience, task.id)
    await audience.ended.wait()
    if asked.host.transport == "stdio":
        asked.stream.send(fresh.notification_line("notifications/cancelled", {"requestId": asked.frame.id}), Sort.OTHER)
    return asked.result({"resultType": "complete", "_meta": {SUBSCRIPTION: asked.frame.id}})


async def _watch_all(asked: Asked, audience: Audience, uris: list[str]) -> None:
    """Subscribes to resources, side by side: an upstream that does not answer costs its own only."""
    left = iter(uris)

    async def some() -> None:
        for uri in left:
            await _watch(asked, audience, uri)

    with anyio.move_on_after(ACKNOWLEDGED):
        async with anyio.create_task_group() as tasks:
            for _ in range(min(AT_ONCE, len(uris))):
                tasks.start_soon(some)


async def _watch(asked: Asked, audience: Audience, uri: str) -> Answer | None:
    """Subscribes to a resource; what to answer if that cannot be."""
    entry = await asked.route("resources", uri)
    owner = asked.fleet.member(entry.source) if entry is not None else None
    if entry is None or owner is None:
        return unknown(asked, RELAYED["resources/read"], uri)
    if (refused := refusal(asked, entry, uri)) is not None:
        return refused
    most = asked.gateway.limits.principal_subscriptions
    if sum(len(other.watched) for other in asked.fleet.audiences) >= most:
        return asked.error(errors.INTERNAL, f"more than {most} subscriptions (limit: principal_subscriptions)")
    try:
        await asked.fleet.subscribe(audience, uri, owner, entry.own)
    except UnavailableError as error:
        if error.error is not None and owner.conversation is not None:
            made = errors.translated(
                error.error, asked.frame.method, owner.conversation.revision, asked.host.revision, uri
            )
            return asked.refuse(made)
        unwatchable = error.lost.cause is Cause.REFUSED and not isinstance(error.lost, Refused)
        code = BAD_PARAMS if unwatchable else errors.INTERNAL
        return asked.error(code, f"nobody tells of updates of {printable(uri)}: {error}")
    return None


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
