"""How the lists of an upstream are fetched: whole, page by page and bounded, with what is wrong with them in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast

import msgspec
from msgspec import Raw

from troth.bridge import Kind, Outgoing, ask, errors, peek
from troth.gateway.model import UnavailableError
from troth.register import Side, register

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from troth.bridge import Frame
    from troth.bridge.listed import Kind as ListKind
    from troth.gateway.limits import Limits
    from troth.gateway.model import Conversation

Item = dict[str, Raw]
"""One item of a list, its members as they came: no number in them is read."""


class Listed(NamedTuple):
    """How a list is asked for: method, member of the result, family that gates it."""

    method: str
    member: str
    family: str


LISTS = cast(
    "Mapping[ListKind, Listed]",
    {
        "tools": Listed("tools/list", "tools", "tools"),
        "prompts": Listed("prompts/list", "prompts", "prompts"),
        "resources": Listed("resources/list", "resources", "resources"),
        "templates": Listed("resources/templates/list", "resourceTemplates", "resources"),
    },
)
"""Kinds of lists."""

FAMILIES: Final = ("tools", "prompts", "resources")
"""Capabilities that gate lists."""

COMPLETE: Final = "completion/complete"

_read_items = msgspec.json.Decoder(list[Raw]).decode
_read_item = msgspec.json.Decoder(Item).decode
_read_number = msgspec.json.Decoder(int).decode
_read_text = msgspec.json.Decoder(str).decode


class Fetched(NamedTuple):
    """A list as an upstream gave it.

    Attributes:
        items: Its items, of all pages that could be read.
        note: What is wrong with it, in words; empty if nothing is.
        hint: How long it may be kept (milliseconds), and by whom (modern); None where that cannot be read.
    """

    items: tuple[Item, ...]
    note: str
    hint: tuple[int, str] | None


async def fetch(
    conversation: Conversation, kind: ListKind, declares: Mapping[str, object] | None, limits: Limits
) -> Fetched:
    """Fetches all pages of a list.

    Args:
        conversation: With the upstream.
        kind: Which list.
        declares: Client capabilities of the requests (modern).
        limits: Bounds of pages, items, bytes and waits.

    Raises:
        UnavailableError: A page did not come.
    """
    how = LISTS[kind]
    items: list[Item] = []
    cursors: set[str] = set()
    params: dict[str, object] = {}
    hint: tuple[int, str] | None = None
    size = 0
    for _ in range(limits.pages):
        wish = Outgoing(frame=ask(how.method, params), timeout=limits.method, again=True, declares=declares)
        frame = await conversation.ask(wish)
        size += len(memoryview(frame.body or b""))
        if items and size > limits.listed_bytes:
            return Fetched(tuple(items), f"more than {limits.listed_bytes} bytes; the rest is left out", hint)
        page, problem = _items(frame, how.member)
        items += page
        hint = _hint(frame, hint, limits)
        if len(items) > limits.listed:
            note = f"more than {limits.listed} items; the rest is left out"
            return Fetched(tuple(items[: limits.listed]), note, hint)
        peeked = peek(frame, "nextCursor")
        cursor = peeked.get("nextCursor") if isinstance(peeked, dict) else None
        if problem or cursor is None:
            return Fetched(tuple(items), problem, hint)
        if cursor in cursors:
            return Fetched(tuple(items), "the same cursor twice; the rest is left out", hint)
        cursors.add(cursor)
        params = {"cursor": cursor}
    return Fetched(tuple(items), f"more than {limits.pages} pages; the rest is left out", hint)


async def completes(
    conversation: Conversation, lists: Mapping[str, Sequence[Item]], limits: Limits, known: bool | None
) -> bool | None:
    """Tries completion where the revision has no capability that would tell (2024-11-05).

    Args:
        conversation: With the upstream.
        lists: What it lists.
        limits: Bounds of waits.
        known: What was found before; None for nothing.

    Returns:
        Whether the upstream answers it; None where the capability decides, or nothing is listed to try it with.
    """
    if any(row.side is Side.SERVER for row in register().gating(COMPLETE, conversation.revision)):
        return None
    if known is not None:
        return known
    prompts, templates = lists.get("prompts", ()), lists.get("templates", ())
    references = [("ref/prompt", "name", one.get("name")) for one in prompts[:1]]
    references += [("ref/resource", "uri", one.get("uriTemplate")) for one in templates[:1]]
    for sort, member, value in references[:1]:
        params = {"ref": {"type": sort, member: value}, "argument": {"name": "", "value": ""}}
        try:
            await conversation.ask(Outgoing(frame=ask(COMPLETE, params), timeout=limits.method, again=True))
        except UnavailableError as error:
            return error.error is not None and errors.code(error.error) != errors.METHOD_NOT_FOUND
        return True
    return None


def _hint(frame: Frame, before: tuple[int, str] | None, limits: Limits) -> tuple[int, str] | None:
    """How long a list may be kept, and by whom, after one more page of it (modern)."""
    parts = frame.parts or {}
    try:
        ttl = _read_number(parts.get("ttlMs", b"0"))
        scope = _read_text(parts.get("cacheScope", b'"private"'))
    except msgspec.DecodeError:
        return before
    ttl = max(0, min(ttl, int(limits.poll_most * 1000)))
    least, of = before or (ttl, scope)
    return min(least, ttl), scope if of == scope else "private"


def _items(frame: Frame, member: str) -> tuple[list[Item], str]:
    """The items of one page; what is no object is left out, and said."""
    raw = (frame.parts or {}).get(member)
    if frame.kind is not Kind.RESPONSE or raw is None:
        return [], f"a result without {member}"
    try:
        values = _read_items(raw)
    except (msgspec.DecodeError, RecursionError):
        return [], f"{member} is no list"
    items = [_read_item(value) for value in values if value and bytes(memoryview(value)[:1]) == b"{"]
    return items, "" if len(items) == len(values) else f"{len(values) - len(items)} items that are no objects"
