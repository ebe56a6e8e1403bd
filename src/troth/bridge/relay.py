"""What passes between a host and an upstream, spelled for the revision of the one it goes to. Sans-IO.

Nothing is modelled. A body in which nothing must change is copied as one piece; else only those levels are opened
that the tables of `troth.results` know, and all below stays as the bytes that came, numbers too. Whether something
must change is found by searching the bytes for the names that the target revision lacks.

Text is never touched, also where it mentions a name or a URI.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from msgspec import Raw, structs

from troth.bridge.errors import INTERNAL
from troth.bridge.levels import opened
from troth.bridge.model import Bad, Frame, Id, Kind, PeekedMeta
from troth.bridge.names import host_uri, shown_name
from troth.bridge.outgoing import Outgoing
from troth.bridge.tree import MOST, UNIONS, VIEW, Job, branch, text, tree, views
from troth.bridge.write import rewrite, written
from troth.results.spelling import spelled
from troth.results.table import CHILDREN, CONTENT, DEFAULTS, KNOWN, MEMBERS, OPEN_SHAPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

RESULTS: Mapping[str, str] = {
    "completion/complete": "CompleteResult",
    "prompts/get": "GetPromptResult",
    "resources/read": "ReadResourceResult",
    "tools/call": "CallToolResult",
}
"""Definition of the result of each method that is relayed; ``Result`` for all others."""

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
"""Member of ``_meta`` that says to which listen of a modern host a notification belongs."""


class Grown(NamedTuple):
    """A member that the params of a method did not have from the start."""

    member: str
    revisions: frozenset[str]
    """Those that have it."""


GROWN: Mapping[str, Grown] = {
    "completion/complete": Grown("context", frozenset({"2025-06-18", "2025-11-25", "2026-07-28"})),
    "notifications/progress": Grown("message", frozenset({"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"})),
}
"""By method. Params of all other methods that pass have the same members in all revisions, but for `_OURS`."""

_OURS = frozenset({"inputResponses", "requestState", "task"})
"""Members of a host's params that end here: answers to questions, and the wish for a task."""

_ENVELOPE = frozenset(PeekedMeta.__annotations__) - {"io.modelcontextprotocol/related-task"}
"""Members of ``_meta`` in params that neighbours say to each other: they end here."""

_NAMED = frozenset({"Prompt", "Tool"})
"""Items of lists that are called by their name."""

_NEEDED: Mapping[str, frozenset[str]] = {
    "notifications/message": frozenset({"level", "data"}),
    "notifications/progress": frozenset({"progress"}),
    "notifications/resources/updated": frozenset({"uri"}),
}
"""The notifications of an upstream that pass, with the members that they must have. Others are about us and it."""

_ESCAPE = b"\\u00"
"""How a letter of a name looks when it is escaped: a search for the name would not find it."""
_COMPLETE = Raw(b'"complete"')
_NULLLESS = frozenset({"_meta", "isError"})


def outgoing(frame: Frame, target: str, *, params: Mapping[str, object] | None = None) -> Outgoing:
    """A host's request as what to send to an upstream: without what is said to us alone, or what is unknown there.

    Args:
        frame: The host's request.
        target: Revision in force with the upstream.
        params: Members of ``params`` to put in the place of the host's: the upstream's own name or URI.
    """
    parts = frame.parts or {}
    drop = _OURS.intersection(parts) | _ungrown(frame, target)
    return Outgoing(frame=frame, params=params or {}, drop=drop, drop_meta=_ENVELOPE.intersection(frame.meta))


def answer(
    frame: Frame,
    id: Id,  # noqa: A002 - the name of the member
    *,
    method: str,
    source: str,
    target: str,
    prefix: str = "",
    inline: bool = False,
) -> bytes | Bad:
    """An upstream's result as the line for the host.

    Args:
        frame: The response, opened or not.
        id: Id of the host's request.
        method: Method of the request.
        source: Revision in force with the upstream.
        target: Revision in force with the host.
        prefix: Prefix of the upstream, put before the URIs of resources.
        inline: Whether links to resources become text, for a host that gets no resources.

    A result of a tool that has no content, or null in the place of a member, is mended; null is a value only as
    structured content of a revision in which that may be any JSON.

    Returns:
        One line without its end, or -32603 for a result that does not end the call (it asks for input, or is a task),
        for one that could be read in two ways, and for one of a tool that no strict host takes.
    """
    form = _form(RESULTS.get(method, "Result"), source, target)
    needs = _needs(frame, form, prefix, inline=inline)
    if not needs.opens and (not form.tool or _plain(frame.body or _NULL)):
        return rewrite(frame, id=id)
    found = opened(frame)
    if isinstance(found, Bad):
        return Bad(INTERNAL, f"the upstream's answer cannot be relayed: {found.reason}", id, Kind.RESPONSE)
    parts = found.parts or {}
    if form.typed and (sort := parts.get("resultType", _COMPLETE)) != _COMPLETE and text(sort) != "complete":
        return Bad(INTERNAL, f"the upstream's answer is {_sort(sort)}, and only complete ones pass", id, Kind.RESPONSE)
    mended = _tool_result(parts, form) if form.tool else None
    if isinstance(mended, str):
        return Bad(INTERNAL, f"the upstream's answer is {mended}", id, Kind.RESPONSE)
    if mended is not None:
        parts = mended
        found = structs.replace(found, parts=parts)
    drop: Iterable[str] = form.lacks.intersection(parts)
    spells = needs.spells or _misshapen(parts, form)
    if spells or needs.maps:
        job = Job(prefix, inline, target)
        changes, drop = _respelled(parts, form, job, spells=spells)
        if job.left < 0:
            return Bad(INTERNAL, f"the upstream's answer has more than {MOST} parts", id, Kind.RESPONSE)
    else:
        changes = form.always if parts.keys() >= form.defaults.keys() else _defaulted(parts, form)
    if mended is not None:
        changes = {"content": parts["content"], **changes}
    meta = views(found.meta, prefix) if prefix and found.meta else {}
    return rewrite(found, id=id, result=changes, drop=drop, meta=meta, drop_meta=form.meta.intersection(found.meta))


def item(
    definition: str, members: Mapping[str, object], *, target: str, prefix: str = "", name: str | None = None
) -> dict[str, object]:
    """One item of an upstream's list as the list of a host has it.

    Args:
        definition: ``Tool``, ``Prompt``, ``Resource`` or ``ResourceTemplate``.
        members: The item, as JSON values or `Raw`; it is not changed.
        target: Revision in force with the host.
        prefix: Prefix of the upstream, put before its URI.
        name: Name to show for a tool or prompt; None for its own behind the prefix.

    Returns:
        A new object, of JSON values and `Raw`.
    """
    found = tree(Raw(written(members)), definition, Job(prefix, inline=False, target=target, left=sys.maxsize))
    new = cast("dict[str, object]", spelled(found, definition, target))
    # How a tool takes tasks is up to who holds the tasks: see `troth.bridge.listed.Entry`.
    new.pop("execution", None)
    own = new.get("name")
    if definition in _NAMED and isinstance(own, str):
        new["name"] = shown_name(prefix, own) if name is None else name
    return new


def notification(
    frame: Frame, *, target: str, prefix: str = "", token: Id | None = None, subscription: Id | None = None
) -> bytes | None:
    """An upstream's notification as the line for a host: logs, progress, and updates of resources.

    Args:
        frame: The notification.
        target: Revision in force with the host.
        prefix: Prefix of the upstream, put before the URI of a resource.
        token: The host's own progress token; progress goes to no host without one.
        subscription: Id of the modern host's listen that the message is for; None for none.

    Returns:
        One line without its end; None for what is malformed, or is not for hosts as it is.
    """
    parts = frame.parts or {}
    needed = _NEEDED.get(frame.method)
    if needed is None or not needed <= parts.keys():
        return None
    params: dict[str, object] = {}
    if frame.method == "notifications/progress":
        if token is None:
            return None
        params["progressToken"] = token
    elif "uri" in needed:
        uri = text(parts["uri"])
        if uri is None:
            return None
        params["uri"] = host_uri(prefix, uri)
    meta = {} if subscription is None else {SUBSCRIPTION: subscription}
    drop_meta = _ENVELOPE.intersection(frame.meta)
    return rewrite(frame, params=params, drop=_ungrown(frame, target), meta=meta, drop_meta=drop_meta)


@dataclass(frozen=True, slots=True)
class _Form:
    """What to look for in the results of one definition between two revisions; made once for each."""

    definition: str
    tool: bool
    """Whether it is the result of a tool, which is held against the schema."""
    typed: bool
    """Whether the source says by ``resultType`` what a result is."""
    opens: bool
    """Whether every result must be opened: one of the two revisions asks for members at its top."""
    always: Mapping[str, object]
    """Members that the target requires and the source does not have: what the upstream says there is not meant so."""
    defaults: Mapping[str, object]
    """Members that the target requires."""
    lacks: frozenset[str]
    """Members of the top that the target lacks."""
    meta: frozenset[str]
    """Members of ``_meta`` at the top that it lacks."""
    nullless: frozenset[str]
    """Members of the result of a tool that null cannot be: where it stands, they are not there."""
    open_shape: bool
    """Whether structured content may be any JSON at the target."""
    top: tuple[bytes, ...]
    """What to search for at the top."""
    deep: tuple[bytes, ...]
    """What to search for below: names of members, and kinds of content, that the target lacks."""


@cache
def _form(definition: str, source: str, target: str) -> _Form:
    defaults = DEFAULTS.get((definition, target), {})
    given = MEMBERS[definition, source]
    lacks, meta = _lacking(definition, target), _lacking("ResultMetaObject", target)
    below: set[str] = set()
    for kind in _below(definition):
        if (kind, target) in MEMBERS:
            below |= _lacking(kind, target)
        else:
            below |= {sort for sort, block in CONTENT.items() if block == kind}
    return _Form(
        definition=definition,
        tool=definition == RESULTS["tools/call"],
        typed="resultType" in given,
        opens="resultType" in given or bool(defaults),
        always={name: value for name, value in defaults.items() if name not in given},
        defaults=defaults,
        lacks=lacks,
        meta=meta,
        nullless=_NULLLESS if source in OPEN_SHAPES else _NULLLESS | {"structuredContent"},
        open_shape=target in OPEN_SHAPES,
        top=_spellings(lacks | meta),
        deep=_spellings(below),
    )


def _lacking(definition: str, revision: str) -> frozenset[str]:
    return KNOWN[definition] - MEMBERS[definition, revision]


def _below(definition: str) -> set[str]:
    """The definitions that objects within a result can be, but for ``_meta`` at its top."""
    found: set[str] = set()
    queue = {definition}
    while queue:
        kind = queue.pop()
        for parent, name in CHILDREN:
            if parent == kind:
                child = CHILDREN[parent, name]
                queue |= UNIONS.get(child, {child}) - found - {"ResultMetaObject"}
        found |= queue
    return found


def _spellings(words: Iterable[str]) -> tuple[bytes, ...]:
    r"""Names as they stand in JSON, in both ways to write a slash."""
    return tuple(
        f'"{spelling}"'.encode()
        for word in sorted(words)
        for spelling in dict.fromkeys((word, word.replace("/", r"\/")))
    )


_URI = _spellings(("uri", "resourceUri", VIEW))
_LINK = _spellings(("resource_link",))


class _Needs(NamedTuple):
    """What must be done to a result."""

    opens: bool
    """Its top must be looked at."""
    maps: bool
    """Something below its top must change that all revisions have: a URI, a link."""
    spells: bool
    """Something below its top may be unknown to the target."""


def _needs(frame: Frame, form: _Form, prefix: str, *, inline: bool) -> _Needs:
    if not (prefix or inline or form.deep or (form.top and not form.opens)):
        return _Needs(opens=form.opens, maps=False, spells=False)
    strings = _strings(bytes(frame.body or b""))
    unsure = strings is None or _ESCAPE in strings

    def holds(words: tuple[bytes, ...]) -> bool:
        return unsure or any(word in (strings or b"") for word in words)

    maps = (bool(prefix) and holds(_URI)) or (inline and holds(_LINK))
    spells = bool(form.deep) and holds(form.deep)
    return _Needs(opens=form.opens or maps or spells or holds(form.top), maps=maps, spells=spells)


def _strings(body: bytes) -> bytes | None:
    """What to search for names; None where opening the body costs less.

    Of a long body with few strings that is those of them that are short enough to be names: looking for a quote is a
    hundred times faster than looking for a word, and a file or a long text is one string.
    """
    if len(body) < _LONG:
        return body
    pieces = [b""]
    start = 0
    for _ in range(_QUOTES):
        end = body.find(b'"', start)
        if end < 0:
            return b'"'.join((*pieces, b""))
        if end - start <= _NAME:
            pieces.append(body[start:end])
        start = end + 1
    return None


_LONG = 1024
"""Bytes from which on searching for a few words takes longer than opening."""
_QUOTES = 64
"""Quotes of a body with few strings."""
_NAME = 256
"""Bytes of a string that may be a name looked for: the longest has 33 letters, six bytes each when escaped."""


def _plain(body: Raw) -> bool:
    """Whether the result of a tool surely has what the schema requires, as most servers write it.

    Of a long one only the ends are looked at, where servers write ``isError``.
    """
    view = memoryview(body)
    tail = bytes(view[-_LONG:])
    if not (tail if len(view) <= _LONG else bytes(view[: len(_CONTENT)])).startswith(_CONTENT):
        return False
    start = len(_CONTENT) if len(view) <= _LONG else 0
    end = len(tail) - len(_FLAGGED[0]) if tail.endswith(_FLAGGED) else len(tail)
    return _UNSURE.search(tail, start, end) is None


def _tool_result(parts: Mapping[str, Raw], form: _Form) -> Mapping[str, Raw] | str | None:
    """The members of the result of a tool, mended; or what it is instead, in words; None if nothing is wrong with it.

    Hosts that take the schema at its word refuse a result without content, and show its user something about their
    own insides; others take it as empty.

    Source: CallToolResult of the schemas of all revisions.
    """
    content, flag = parts.get("content", _NULL), parts.get("isError", _FALSE)
    if flag not in (_FALSE, _TRUE, _NULL):
        return "malformed: isError: true or false belongs here"
    if content == _NULL and (other := _INSTEAD.keys() & parts.keys()):
        return _INSTEAD[min(other)]
    if memoryview(content)[0] != ord("[") and content != _NULL:
        return "malformed: content: an array belongs here"
    nulls = {name for name in form.nullless if parts.get(name) == _NULL}
    if content != _NULL and not nulls:
        return None
    kept = {name: raw for name, raw in parts.items() if name not in nulls}
    return {**kept, "content": _EMPTY if content == _NULL else content}


_NULL, _FALSE, _TRUE, _EMPTY = Raw(b"null"), Raw(b"false"), Raw(b"true"), Raw(b"[]")
_CONTENT = b'{"content":['
_FLAGGED = (b'"isError":false}', b'"isError":true}')
_UNSURE = re.compile(rb'"(?:content"|isError"|(?:_meta|structuredContent)"[ \t\r\n]*:[ \t\r\n]*null)')
"""What stands in no plain result, but for content at its start and a flag at its end: a second one, or null."""
_INSTEAD: Mapping[str, str] = {
    "task": "a task, which nobody asked for",
    "toolResult": "malformed: toolResult stands in no revision; content belongs here",
}
"""What some servers say in the place of content, and what a result with it is."""


def _misshapen(parts: Mapping[str, Raw], form: _Form) -> bool:
    """Whether there is structured content that the target cannot carry: then something may have to take its place."""
    if form.open_shape or "structuredContent" not in parts:
        return False
    return "structuredContent" in form.lacks or bytes(memoryview(parts["structuredContent"])[:1]) != b"{"


def _respelled(
    parts: Mapping[str, Raw], form: _Form, job: Job, *, spells: bool
) -> tuple[dict[str, Any], frozenset[str]]:
    """Members of a result to put in, and those to leave out. ``_meta`` is not among them."""
    kept = {name: raw for name, raw in parts.items() if name != "_meta" and name not in form.always}
    new = branch(kept, form.definition, job)
    if spells:
        new = cast("dict[str, Any]", spelled(new, form.definition, job.target))
    else:
        new = {name: value for name, value in new.items() if name not in form.lacks}
        new |= {name: value for name, value in form.defaults.items() if name not in new}
    changes = {name: value for name, value in new.items() if value is not parts.get(name)}
    return changes, frozenset(parts.keys() - new.keys() - {"_meta"})


def _defaulted(parts: Mapping[str, Raw], form: _Form) -> Mapping[str, object]:
    """Members to put in where the target requires some that are not there."""
    missing = {name: value for name, value in form.defaults.items() if name not in parts}
    return {**missing, **form.always}


def _ungrown(frame: Frame, target: str) -> frozenset[str]:
    """Members of params that are there and that the target lacks."""
    grown = GROWN.get(frame.method)
    if grown is None or target in grown.revisions:
        return frozenset()
    return frozenset({grown.member}).intersection(frame.parts or {})


def _sort(raw: Raw) -> str:
    """What a result says it is, in words of ours."""
    sort = text(raw)
    return _SORTS.get(sort or "", "of an unknown type")


_SORTS: Mapping[str, str] = {"input_required": "a question", "task": "a task"}
