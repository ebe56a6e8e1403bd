"""How the lists of an upstream are fetched: whole, page by page and bounded, with what is wrong with them in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import msgspec
from msgspec import Raw

from troth.bridge import Kind, Outgoing, Spared, ask, errors, peek, spared
from troth.bridge.listed import FORMS
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


Left = tuple[str, str]
"""An item that cannot be read: its name, empty where that cannot be read either, and why."""


class Fetched(NamedTuple):
    """A list as an upstream gave it.

    Attributes:
        items: Its items, of all pages that could be read.
        note: What is wrong with it, in words; empty if nothing is.
        hint: How long it may be kept (milliseconds), and by whom (modern); None where that cannot be read.
        left: Items that cannot be read; they are not among `items`.
    """

    items: tuple[Item, ...]
    note: str
    hint: tuple[int, str] | None
    left: tuple[Left, ...]


@dataclass(slots=True)
class _Found:
    """What the pages so far held."""

    items: list[Item] = field(default_factory=list[Item])
    others: int = 0
    hint: tuple[int, str] | None = None
    left: list[Left] = field(default_factory=list[Left])
    size: int = 0

    def take(self, frame: Frame, how: Listed, limits: Limits) -> str:
        """Takes one page; returns why nothing of it can be used, in words, or an empty text."""
        raw = (frame.parts or {}).get(how.member)
        if frame.kind is not Kind.RESPONSE or raw is None:
            return f"a result without {how.member}"
        self.hint = _hint(frame, self.hint, limits)
        try:
            values = _read_items(raw)
        except (msgspec.DecodeError, RecursionError):
            return f"{how.member} is no list"
        items = [_read_item(value) for value in values if bytes(memoryview(value)[:1]) == b"{"]
        self.items += items
        self.others += len(values) - len(items)
        return ""


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
    found = _Found()
    notes = [await _pages(conversation, kind, declares, limits, found)]
    if found.others:
        notes.append(f"{found.others} items that are no objects")
    return Fetched(tuple(found.items[: limits.listed]), "; ".join(filter(None, notes)), found.hint, tuple(found.left))


async def _pages(
    conversation: Conversation, kind: ListKind, declares: Mapping[str, object] | None, limits: Limits, found: _Found
) -> str:
    """Fetches all pages of a list; returns why not all of them, in words, or an empty text."""
    how = LISTS[kind]
    cursors: set[str] = set()
    params: dict[str, object] = {}
    for _ in range(limits.pages):
        wish = Outgoing(frame=ask(how.method, params), timeout=limits.method, again=True, declares=declares)
        page = await _page(conversation, wish, how)
        found.size += len(page.frame.body or b"") + sum(len(raw) for raw, _ in page.left)
        if found.items and found.size > limits.listed_bytes:
            return f"more than {limits.listed_bytes} bytes; the rest is left out"
        found.left += ((_named(raw, FORMS[kind].key), why) for raw, why in page.left)
        if problem := found.take(page.frame, how, limits):
            return problem
        if len(found.items) + len(found.left) > limits.listed:
            return f"more than {limits.listed} items; the rest is left out"
        peeked = peek(page.frame, "nextCursor")
        cursor = peeked.get("nextCursor") if isinstance(peeked, dict) else None
        if cursor is None:
            return ""
        if cursor in cursors:
            return "the same cursor twice; the rest is left out"
        cursors.add(cursor)
        params = {"cursor": cursor}
    return f"more than {limits.pages} pages; the rest is left out"


async def _page(conversation: Conversation, wish: Outgoing, how: Listed) -> Spared:
    """One page. An item that breaks a limit of frames costs itself only.

    Raises:
        UnavailableError: The page did not come, or breaks one elsewhere.
    """
    try:
        return Spared(await conversation.ask(wish), ())
    except UnavailableError as error:
        page = spared(error.lost.line, how.member) if error.lost.line else None
        if not isinstance(page, Spared):
            raise
        return page


def _named(raw: Raw, key: str) -> str:
    """What an item is called by; empty for what is no object, or has no such text."""
    try:
        return _read_text(_read_item(raw).get(key, b""))
    except msgspec.DecodeError:
        return ""


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
