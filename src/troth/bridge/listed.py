"""Items of an upstream's lists: what hosts could not take is left out and named, small faults are mended. Sans-IO.

One item that breaks the schema makes strict hosts refuse the whole list, so an item is held against it before it is
served: members that the protocol defines have their types. What nobody defines stands as it came.

Source: ``Tool``, ``Prompt``, ``Resource`` and ``ResourceTemplate`` of the schemas of all revisions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple, cast

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from troth.bridge import headers
from troth.bridge.asks import NOTHING, Asks, client_capabilities
from troth.bridge.model import Bad
from troth.bridge.names import host_uri, name_problem, shown_name
from troth.bridge.relay import item as spelled
from troth.bridge.write import written
from troth.capabilities import read_client
from troth.capabilities.paths import shown as printable
from troth.gating import META_KEY, NEVER, OTHER_KEY, Need, Requirement, both, from_meta, unmet
from troth.register import Era, register
from troth.results.table import MEMBERS

Kind = Literal["tools", "prompts", "resources", "templates"]
"""A kind of list, by the name that `Source` gives it."""

MOST_URI = 8192
"""Characters of a URI or URI template in a list. Every list repeats them, and hosts send them back."""


class Form(NamedTuple):
    """What items of a kind are."""

    definition: str
    """Name in the schema."""
    key: str
    """The member that they are called by."""
    word: str
    """In messages."""


FORMS: Mapping[Kind, Form] = {
    "tools": Form("Tool", "name", "tool"),
    "prompts": Form("Prompt", "name", "prompt"),
    "resources": Form("Resource", "uri", "resource"),
    "templates": Form("ResourceTemplate", "uriTemplate", "resource template"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The lists of one upstream, and what the operator wants of them.

    Attributes:
        name: Name of the upstream.
        prefix: Text before its names and URIs; empty for none.
        tools: Its tools in its order, each an object of JSON values or `Raw`; None while they are not known.
        prompts: The same of its prompts.
        resources: The same of its resources.
        templates: The same of its resource templates.
        left: Kind -> items that could not be read, each by name and why.
        allow: Patterns (globs) of its own names of the tools that hosts see.
        deny: Patterns of tools that they do not see, also of allowed ones.
        rename: Its own name of a tool -> the name to show before the prefix is put on.
        describe: Its own name of a tool -> the description to show.
        requires: Its own name, URI or URI template -> what hosts must have declared, beside what the item says itself.
        answered: What the operator answers where a host cannot: items that say of themselves that they need it need
            nothing of hosts for that.
        mirrors: Whether it reads ``Mcp-Param`` headers (modern HTTP): a tool whose annotations are invalid is then
            left out, else the annotations are.
        hints: Kind -> ``ttlMs`` and ``cacheScope`` of its list, where it gave them.
        tasks: Whether it may answer a call of any tool with a task (the extension), or of those whose ``execution``
            says so (core).
    """

    name: str
    prefix: str = ""
    tools: tuple[Mapping[str, object], ...] | None = None
    prompts: tuple[Mapping[str, object], ...] | None = None
    resources: tuple[Mapping[str, object], ...] | None = None
    templates: tuple[Mapping[str, object], ...] | None = None
    left: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict[str, "tuple[tuple[str, str], ...]"])
    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict[str, str])
    describe: Mapping[str, str] = field(default_factory=dict[str, str])
    requires: Mapping[str, Need] = field(default_factory=dict[str, "Need"])
    answered: Asks = NOTHING
    mirrors: bool = False
    hints: Mapping[str, tuple[int, str]] = field(default_factory=dict[str, "tuple[int, str]"])
    tasks: Literal["", "core", "extension"] = ""

    def items(self, kind: Kind) -> tuple[Mapping[str, object], ...] | None:
        """The list of a kind; None while it is not known."""
        return getattr(self, kind)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that hosts can name.

    Attributes:
        kind: The kind of list that it is of.
        shown: The name, URI or URI template that hosts see.
        source: Name of its upstream.
        prefix: Prefix of its upstream.
        own: The upstream's own name, URI or URI template.
        members: The item, as `Raw`; empty for a resource that no list has.
        plan: The headers of its calls (tools); None for none.
        need: What a host must have declared to see and use it; None for nothing.
        support: How a tool of an upstream with tasks takes them: ``optional`` or ``required``; empty for not at all.
        lines: Revision -> the item as hosts of it see it, made on demand.
    """

    kind: Kind
    shown: str
    source: str
    prefix: str
    own: str
    members: Mapping[str, Raw] = {}
    plan: headers.Plan | None = None
    need: Need | None = None
    support: str = ""
    lines: dict[str, bytes] = {}

    def line(self, revision: str) -> bytes:
        """The item as a host of a revision sees it."""
        made = self.lines.get(revision)
        if made is None:
            definition = FORMS[self.kind].definition
            item = spelled(definition, self.members, target=revision, prefix=self.prefix, name=self.shown)
            if self.support and "execution" in MEMBERS[definition, revision]:
                item["execution"] = _OPTIONAL
            made = self.lines[revision] = written(item)
        return made


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a source gives to the catalogue.

    Attributes:
        source: The source.
        entries: Kind -> entries in the upstream's order; a kind that is not known is missing.
        problems: What was left out or mended, and why.
        filtered: Whether the operator's patterns left something out.
    """

    source: Source
    entries: Mapping[Kind, tuple[Entry, ...]]
    problems: tuple[str, ...]
    filtered: bool


def prepare(source: Source) -> Prepared:
    """Reads the lists of a source."""
    problems: list[str] = []
    entries: dict[Kind, tuple[Entry, ...]] = {}
    allowed = _allowed(source.allow, source.deny)
    filtered = False
    for kind, form in FORMS.items():
        items = source.items(kind)
        if items is None:
            continue
        unread = source.left.get(kind, ())
        problems += (left_out(source.name, kind, own, why) for own, why in unread if kind != "tools" or allowed(own))
        found: list[Entry] = []
        for item in items:
            own = _text(item.get(form.key))
            if kind == "tools" and not allowed(own):
                filtered = True
                continue
            made = _entry(source, kind, own, item, problems)
            if isinstance(made, str):
                problems.append(left_out(source.name, kind, own, made))
                continue
            need = both(_left(_stated(made.members), source.answered), source.requires.get(own))
            if need is not None and need.requirement == NEVER:
                problems.append(
                    f"{source.name}: {form.word} {printable(own)!r}: no host sees it, since what it requires "
                    "cannot be read"
                )
            found.append(made if need is None else replace(made, need=need))
        entries[kind] = tuple(found)
    return Prepared(source, entries, tuple(problems), filtered)


def left_out(source: str, kind: Kind, name: str, why: str) -> str:
    """The sentence about an item that hosts do not see."""
    return f"{source}: {FORMS[kind].word} {printable(name)!r} is left out: {why}"


class _Icon(msgspec.Struct):
    src: str
    mimeType: str = ""  # noqa: N815 - names of the protocol, here and below
    sizes: list[str] = []
    theme: Literal["dark", "light"] = "dark"


class _Hints(msgspec.Struct):
    title: str = ""
    readOnlyHint: bool = False  # noqa: N815
    destructiveHint: bool = False  # noqa: N815
    idempotentHint: bool = False  # noqa: N815
    openWorldHint: bool = False  # noqa: N815


class _Annotations(msgspec.Struct):
    audience: list[Literal["assistant", "user"]] = []
    priority: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0
    lastModified: str = ""  # noqa: N815


class _Execution(msgspec.Struct):
    taskSupport: str = ""  # noqa: N815


class _Argument(msgspec.Struct):
    name: str
    title: str = ""
    description: str = ""
    required: bool = False


class _Schema(msgspec.Struct):
    type: Raw = Raw(b"")
    dialect: str = msgspec.field(name="$schema", default="")
    properties: dict[str, dict[str, Raw] | bool] = {}
    required: list[str] = []


_STATES = (b"require", b"\\u")
"""What stands in the bytes of any ``_meta`` that states a requirement, if only as an escape."""

_OPTIONAL = {"taskSupport": "optional"}
"""How hosts see a tool that may run as a task: where it must, the gateway awaits it for those that ask for none."""

_OBJECT = Raw(b'"object"')
_NULL = Raw(b"null")

_SHARED: Mapping[str, Any] = {
    "name": str,
    "title": str,
    "description": str,
    "icons": list[_Icon],
    "_meta": dict[str, Raw],
}
_OF_RESOURCES: Mapping[str, Any] = {**_SHARED, "mimeType": str, "annotations": _Annotations}
_SHAPES: Mapping[Kind, Mapping[str, Any]] = {
    "tools": {**_SHARED, "inputSchema": _Schema, "outputSchema": _Schema, "annotations": _Hints},
    "prompts": {**_SHARED, "arguments": list[_Argument]},
    "resources": {**_OF_RESOURCES, "uri": str, "size": int},
    "templates": {**_OF_RESOURCES, "uriTemplate": str},
}
"""What the members that the schema defines are; null is treated before."""

_NEEDED: Mapping[Kind, tuple[str, ...]] = {
    "tools": ("name", "inputSchema"),
    "prompts": ("name",),
    "resources": ("uri", "name"),
    "templates": ("uriTemplate", "name"),
}
_VITAL = frozenset({*(name for names in _NEEDED.values() for name in names), "arguments"})
"""Members without which an item cannot be used as it is meant."""
_NESTED = ("annotations", "arguments", "icons")
"""Members in whose own members null means absent too."""

_READERS: Mapping[Kind, Mapping[str, Callable[[Raw], object]]] = {
    kind: {name: msgspec.json.Decoder(shape).decode for name, shape in shapes.items()}
    for kind, shapes in _SHAPES.items()
}
_read_level = msgspec.json.Decoder(dict[str, Raw] | list[Raw]).decode
_read_any = msgspec.json.Decoder().decode
_read_members = msgspec.json.Decoder(dict[str, Raw]).decode
_read_text = msgspec.json.Decoder(str).decode
_read_execution = msgspec.json.Decoder(_Execution).decode


def _members(kind: Kind, item: Mapping[str, object], mended: list[str]) -> dict[str, Raw] | str:
    """The members of an item that a strict host takes, or why there is no such item.

    Null in the place of a member that may be absent means absent. A tool's ``inputSchema`` without a type takes an
    object, since arguments are one. Of members that an item can do without, those that are malformed are left out.
    """
    data = written(item)
    members = _read_members(written(_present(item, _NESTED)) if b"null" in data else data)
    for name in _NEEDED[kind]:
        if name not in members:
            return f"{name} is missing"
    for name, reader in _READERS[kind].items():
        try:
            if name in members:
                reader(members[name])
        except msgspec.DecodeError as error:
            why = f"{name} is malformed: {error}"
            if name in _VITAL:
                return why
            del members[name]
            mended.append(why)
    if kind == "tools":
        schema = _read_members(members["inputSchema"])
        if "type" not in schema:
            members["inputSchema"] = Raw(written({"type": _OBJECT, **schema}))
        elif schema["type"] != _OBJECT:
            return "inputSchema is malformed: its type is not object"
    return members


def _present(value: object, nested: tuple[str, ...] = ()) -> object:
    """A value without members that are null, and the same of the named members."""
    if isinstance(value, Raw):
        value = _read_level(value) if memoryview(value)[0] in b"{[" else value
    if isinstance(value, list):
        return [_present(item) for item in cast("list[object]", value)]
    if not isinstance(value, Mapping):
        return value
    members = cast("Mapping[str, object]", value)
    return {
        name: _present(member) if name in nested else member
        for name, member in members.items()
        if member is not None and member != _NULL
    }


def _left(need: Need | None, answered: Asks) -> Need | None:
    """What of a need is up to hosts, since the operator answers the rest."""
    if need is None or not answered:
        return need
    revision = register().newest(Era.LEGACY)
    declared = read_client(client_capabilities(answered, revision), revision).in_force
    clauses = unmet(need.requirement, declared, revision)
    return Need(Requirement(clauses), need.message) if clauses else None


def _stated(members: Mapping[str, Raw]) -> Need | None:
    """What an item says in its ``_meta`` that a host must have declared."""
    meta = bytes(members.get("_meta", b""))
    if not any(part in meta for part in _STATES):
        return None
    stated = _read_members(meta)
    return from_meta({key: _value(stated[key]) for key in (META_KEY, OTHER_KEY) if key in stated})


def _value(raw: Raw) -> object:
    """JSON values; None for what no reader of ours can hold, such as a number that is too large."""
    try:
        return _read_any(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def _text(value: object) -> str:
    """The text that a member is; empty for anything else."""
    if isinstance(value, Raw):
        try:
            return _read_text(value)
        except msgspec.DecodeError:
            return ""
    return value if isinstance(value, str) else ""


def _uri_problem(uri: str) -> str:
    """Why no host would take a URI or URI template, in words; empty if it is fine."""
    if not uri.strip():
        return "the URI is empty"
    if len(uri) > MOST_URI:
        return f"the URI has more than {MOST_URI} characters"
    return "" if uri.isprintable() else "the URI has a character that cannot be shown"


@lru_cache(maxsize=256)
def _allowed(allow: tuple[str, ...], deny: tuple[str, ...]) -> Callable[[str], bool]:
    """Whether hosts see a tool, by its own name."""
    yes, no = _pattern(allow), _pattern(deny)
    return lambda name: yes.match(name) is not None and no.match(name) is None


def _pattern(globs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, globs)) or r"(?!)")


def _entry(source: Source, kind: Kind, own: str, item: Mapping[str, object], problems: list[str]) -> Entry | str:
    """The entry of an item, or why it is left out. What is only mended goes to `problems`."""
    mended: list[str] = []
    members = _members(kind, item, mended)
    if isinstance(members, str):
        return members
    problems += (f"{source.name}: {FORMS[kind].word} {printable(own)!r}: {why}; it goes without" for why in mended)
    if kind in ("resources", "templates"):
        shown = host_uri(source.prefix, own)
        return _uri_problem(own) or Entry(
            kind=kind, shown=shown, source=source.name, prefix=source.prefix, own=own, members=members
        )
    name = source.rename.get(own, own) if kind == "tools" else own
    if problem := name_problem(name):
        return problem
    plan = None
    if kind == "tools":
        if own in source.describe:
            members["description"] = Raw(written(source.describe[own]))
        found = headers.plan(members["inputSchema"])
        if isinstance(found, Bad):
            if source.mirrors:
                return found.reason
            members["inputSchema"] = headers.without_annotations(members["inputSchema"])
            problems.append(f"{source.name}: tool {printable(own)!r} goes without its annotations: {found.reason}")
        else:
            plan = found
    return Entry(
        kind=kind,
        shown=shown_name(source.prefix, name),
        source=source.name,
        prefix=source.prefix,
        own=own,
        members=members,
        plan=plan,
        support=_support(source, members) if source.tasks and kind == "tools" else "",
    )


def _support(source: Source, members: Mapping[str, Raw]) -> str:
    """How a tool takes tasks, by what its upstream declared and the tool says.

    Source: 2025-11-25/basic/utilities/tasks, tool-level negotiation.
    """
    if source.tasks == "extension":
        return "optional"
    try:
        support = _read_execution(members["execution"]).taskSupport if "execution" in members else ""
    except (msgspec.MsgspecError, RecursionError):
        return ""
    return support if support in ("optional", "required") else ""
