"""What is answered without an upstream: ping, ``server/discover``, and lists out of the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from troth.bridge import Bad, peek
from troth.bridge.promise import page_size
from troth.gateway.asked import us
from troth.gateway.fetching import LISTS
from troth.gateway.hiding import asker
from troth.register import Era, register
from troth.results import discover_result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.bridge.listed import Kind as ListKind
    from troth.gateway.asked import Asked
    from troth.gateway.model import Answer

_KINDS: Final[Mapping[str, ListKind]] = {how.method: kind for kind, how in LISTS.items()}


async def ping(asked: Asked) -> Answer:
    """Both sides are there."""
    return asked.result({})


async def discover(asked: Asked) -> Answer:
    """What this gateway offers to this very request."""
    built = asked.built
    result = discover_result(
        server_info=us(asked.host.revision),
        capabilities=built,
        supported_versions=register().revisions,
        instructions=asked.fleet.instructions() or None,
        revision=asked.host.revision,
    )
    return asked.result(result)


async def listing(asked: Asked) -> Answer:
    """One page of a list, which is the whole unless the operator wants pages."""
    await asked.fleet.settled()
    kind = _KINDS[asked.frame.method]
    how = LISTS[kind]
    peeked = peek(asked.frame, "cursor")
    if isinstance(peeked, Bad):
        return asked.bad(peeked)
    cursor = peeked.get("cursor")
    size = page_size(asked.host.profile, asked.gateway.settings.page_size)
    hide = asked.fleet.catalogue.hidden(kind, asker(asked.host))
    page = asked.fleet.catalogue.page(kind, asked.host.revision, size, cursor, hide)
    if isinstance(page, Bad):
        return asked.bad(page)
    ttl, scope = asked.fleet.catalogue.ttl_and_scope(kind, hide)
    if cursor is None:
        asked.fleet.serves(how.family, asked.host)
    result: dict[str, object] = {how.member: msgspec.Raw(page.items)}
    if page.cursor is not None:
        result["nextCursor"] = page.cursor
    if asked.host.era is Era.MODERN:
        result |= {"resultType": "complete", "ttlMs": ttl, "cacheScope": scope}
    return asked.result(result)
