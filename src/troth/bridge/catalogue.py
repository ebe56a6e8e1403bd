"""What hosts see of all upstreams of a principal: lists merged, routed by, served in pages and compared. Sans-IO.

Rules of this room:

1. Order is that of the configuration, then the upstream's own. The first in order keeps a name; another item of the
   same name is left out and named in `Catalogue.problems`.
2. A name that a host says is looked up, never taken apart. Only a URI that no list has is routed by its prefix, or by
   the templates of upstreams without a prefix.
3. A catalogue never changes. A new one takes over what the old one made of sources that are the same.
"""

from __future__ import annotations

import base64
import re
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from troth.bridge.listed import FORMS, Entry, Kind, Prepared, Source, left_out, prepare
from troth.bridge.model import BAD_PARAMS, Bad
from troth.bridge.names import upstream_uri
from troth.gating import unmet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from troth.capabilities.paths import Key
    from troth.gating import Need

NOTHING: frozenset[str] = frozenset()

GATED_TTL = 5000
"""Milliseconds that a list which depends on the host's capabilities may be kept at most."""

VARIANTS = 64
"""Lists that are kept ready. A host class needs one for each kind; classes differ by revision and hidden names."""

MOST_CURSOR = 32 * 1024
"""Characters of a cursor that is read: a few names, at their longest, in base64."""

REMEMBERED = 4
"""Names at the end of a page that its cursor keeps, beside the one that follows. The next page starts behind the last
of them that is still there, else with that which follows, else about where it was."""

_EXPRESSION = re.compile(r"\{[^{}]*\}")


class Page(NamedTuple):
    """A part of a list."""

    items: bytes
    """The JSON array."""
    cursor: str | None
    """Where the next part starts; None on the last one."""


class Asker(NamedTuple):
    """What of a host decides which items it sees.

    Attributes:
        revision: Its revision.
        declared: What it declared and its revision defines; None for one from whom nothing is hidden.
    """

    revision: str
    declared: frozenset[Key] | None


class _List(NamedTuple):
    """A list, ready to be served."""

    names: tuple[str, ...]
    lines: tuple[bytes, ...]
    array: bytes
    digest: bytes


class _Cursor(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    kind: str
    position: int
    names: list[str]
    following: str


_read_cursor = msgspec.json.Decoder(_Cursor).decode


class Catalogue:
    """The merged lists. Made by `build`.

    Attributes:
        problems: What was left out or mended, and why: one sentence each, fit to print.
    """

    def __init__(self, prepared: tuple[Prepared, ...]) -> None:
        problems = [problem for one in prepared for problem in one.problems]
        self._prepared = prepared
        self._entries: Mapping[Kind, Mapping[str, Entry]] = {kind: _merged(kind, prepared, problems) for kind in FORMS}
        self._bare = [one.source.name for one in prepared if not one.source.prefix]
        self._gated: Mapping[Kind, tuple[Entry, ...]] = {
            kind: tuple(entry for entry in entries.values() if entry.need is not None)
            for kind, entries in self._entries.items()
        }
        self._hidden: dict[tuple[Kind, Asker], frozenset[str]] = {}
        self._lists: dict[tuple[Kind, str, frozenset[str]], _List] = {}
        self.problems = tuple(problems)

    @classmethod
    def build(cls, sources: Iterable[Source], previous: Catalogue | None = None) -> Catalogue:
        """Merges the lists of upstreams.

        Args:
            sources: The upstreams in the order of the configuration.
            previous: The catalogue before: what it made of equal sources is taken over.
        """
        known = {one.source.name: one for one in (previous._prepared if previous is not None else ())}
        return cls(
            tuple(
                old if (old := known.get(source.name)) is not None and old.source == source else prepare(source)
                for source in sources
            )
        )

    def entries(self, kind: Kind) -> tuple[Entry, ...]:
        """Everything of a kind, in order."""
        return tuple(self._entries[kind].values())

    def route(self, kind: Kind, shown: str) -> Entry | None:
        """Who owns what a host names.

        Args:
            kind: What it is. A URI of ``resources`` need not be in a list.
            shown: Name, URI or URI template, as hosts see it.

        Returns:
            The entry; None if nobody has it.
        """
        entry = self._entries[kind].get(shown)
        return self._unlisted(shown) if entry is None and kind == "resources" else entry

    def hidden(self, kind: Kind, asker: Asker) -> frozenset[str]:
        """The shown names of what a host does not see, for the want of capabilities; see `listing`."""
        gated = self._gated[kind]
        if not gated or asker.declared is None:
            return NOTHING
        key = (kind, asker)
        names = self._hidden.get(key)
        if names is None:
            names = frozenset(
                entry.shown
                for entry in gated
                if entry.need is not None and unmet(entry.need.requirement, asker.declared, asker.revision)
            )
            if len(self._hidden) >= VARIANTS:
                del self._hidden[next(iter(self._hidden))]
            self._hidden[key] = names
        return names

    def need(self, entry: Entry) -> Need | None:
        """What a host must have declared to use what `route` found; of an unlisted resource, what its template says."""
        if entry.need is not None or entry.members or entry.kind != "resources" or not self._gated["templates"]:
            return entry.need
        template = _fitting((one for one in self.entries("templates") if one.source == entry.source), entry.own)
        return template.need if template is not None else None

    def listing(self, kind: Kind, revision: str, hide: frozenset[str] = NOTHING) -> bytes:
        """A whole list as a JSON array.

        Args:
            kind: Which.
            revision: Revision of the host.
            hide: Shown names that this host does not see.
        """
        return self._list(kind, revision, hide).array

    def digest(self, kind: Kind, revision: str, hide: frozenset[str] = NOTHING) -> bytes:
        """16 bytes that are the same for the same list; see `listing`."""
        return self._list(kind, revision, hide).digest

    def page(
        self, kind: Kind, revision: str, size: int | None, cursor: str | None, hide: frozenset[str] = NOTHING
    ) -> Page | Bad:
        """A part of a list.

        What comes or goes between two pages makes neither repeat nor skip an item that stays, unless all names that
        the cursor keeps went at once.

        Args:
            kind: Which list.
            revision: Revision of the host.
            size: Most items; None for all.
            cursor: Where to start, as a page before gave it; None for the start.
            hide: See `listing`.

        Returns:
            The page, or -32602 for a cursor that is none, or of another kind.
        """
        made = self._list(kind, revision, hide)
        start = 0 if cursor is None else _start(kind, made.names, cursor)
        if start is None:
            return Bad(BAD_PARAMS, f"params: cursor: it is none of a page of {kind}; start without one")
        end = len(made.names) if size is None else min(start + size, len(made.names))
        following = None if end == len(made.names) else _cursor(kind, made.names, end)
        whole = start == 0 and following is None
        return Page(made.array if whole else _array(made.lines[start:end]), following)

    def ttl_and_scope(self, kind: Kind, hide: frozenset[str] = NOTHING) -> tuple[int, str]:
        """How long a modern host may keep a list (milliseconds), and who may be served what it kept.

        The shortest time of all parts. ``public`` only if every part is and nothing was filtered. A list that depends
        on what the host declared is never public, also where this host sees all of it, and not kept for long: what a
        host declares may change with its next request.
        """
        parts = [
            (one.source.hints.get(kind, (0, "private")), one.filtered and kind == "tools")
            for one in self._prepared
            if one.entries.get(kind) != () or kind in one.source.hints
        ]
        gated = bool(self._gated[kind])
        whole = not hide and not gated and all(hint[1] == "public" and not cut for hint, cut in parts)
        ttl = min((hint[0] for hint, _ in parts), default=0)
        return min(ttl, GATED_TTL) if gated else ttl, "public" if parts and whole else "private"

    def _list(self, kind: Kind, revision: str, hide: frozenset[str]) -> _List:
        key = (kind, revision, hide)
        made = self._lists.get(key)
        if made is None:
            entries = [entry for entry in self._entries[kind].values() if entry.shown not in hide]
            lines = tuple(entry.line(revision) for entry in entries)
            array = _array(lines)
            digest = blake2b(array, digest_size=16).digest()
            if len(self._lists) >= VARIANTS:
                del self._lists[next(iter(self._lists))]
            made = self._lists[key] = _List(tuple(entry.shown for entry in entries), lines, array, digest)
        return made

    def _unlisted(self, uri: str) -> Entry | None:
        """The owner of a URI that no list has: by prefix, else the one upstream without a prefix, else by template."""
        for one in self._prepared:
            if one.source.prefix and (own := upstream_uri(one.source.prefix, uri)) is not None:
                return _owned(one.source.name, one.source.prefix, uri, own)
        if len(self._bare) == 1:
            return _owned(self._bare[0], "", uri, uri)
        template = _fitting((entry for entry in self._entries["templates"].values() if not entry.prefix), uri)
        return None if template is None else _owned(template.source, "", uri, uri)


def _merged(kind: Kind, prepared: tuple[Prepared, ...], problems: list[str]) -> dict[str, Entry]:
    """Everything of a kind by its shown name, in order. What is left out goes to `problems`."""
    found: dict[str, Entry] = {}
    prefixes = [one.source.prefix for one in prepared if one.source.prefix] if FORMS[kind].key != "name" else []
    for one in prepared:
        for entry in one.entries.get(kind, ()):
            first = found.setdefault(entry.shown, entry)
            if first is not entry:
                where = "the same upstream" if first.source == entry.source else f"upstream {first.source}"
                problems.append(left_out(entry.source, kind, entry.shown, f"{where} has one of this name before it"))
            elif not entry.prefix and any(upstream_uri(prefix, entry.own) is not None for prefix in prefixes):
                del found[entry.shown]
                problems.append(left_out(entry.source, kind, entry.shown, "it looks like one of another upstream"))
    return found


def _owned(source: str, prefix: str, shown: str, own: str) -> Entry:
    return Entry(kind="resources", shown=shown, source=source, prefix=prefix, own=own)


def _fitting(templates: Iterable[Entry], uri: str) -> Entry | None:
    """The template that a URI comes of: the first of those that say most about it; None if it comes of none."""
    fitting = [entry for entry in templates if fits(entry.own, uri)]
    return max(fitting, key=lambda entry: len(_EXPRESSION.sub("", entry.own)), default=None)


def fits(template: str, uri: str) -> bool:
    """Whether a URI can come of a URI template (RFC 6570): an expression stands for any text. Linear in its length."""
    first, *rest = _EXPRESSION.split(template)
    if not rest:
        return uri == template
    *middle, last = rest
    if not uri.startswith(first):
        return False
    position = len(first)
    for literal in middle:
        position = uri.find(literal, position)
        if position < 0:
            return False
        position += len(literal)
    return uri.endswith(last) and len(uri) - len(last) >= position


def _array(lines: tuple[bytes, ...]) -> bytes:
    return b"[" + b",".join(lines) + b"]"


def _cursor(kind: Kind, names: tuple[str, ...], end: int) -> str:
    data = msgspec.json.encode(_Cursor(kind, end, list(names[max(0, end - REMEMBERED) : end]), names[end]))
    return base64.urlsafe_b64encode(data).decode("ascii")


def _start(kind: Kind, names: tuple[str, ...], cursor: str) -> int | None:
    """Where a cursor goes on; None if it is none of this kind."""
    if len(cursor) > MOST_CURSOR:
        return None
    try:
        found = _read_cursor(base64.b64decode(cursor, altchars=b"-_", validate=True))
    except (ValueError, msgspec.DecodeError):
        return None
    if found.kind != kind or found.position < 0 or len(found.names) > REMEMBERED:
        return None
    places = {name: place for place, name in enumerate(names)}
    last = max((places.get(name, -1) for name in found.names), default=-1)
    if last >= 0:
        return last + 1
    # All names before it are gone, and so are at least as many places.
    return places.get(found.following, max(0, min(found.position, len(names)) - len(found.names)))
