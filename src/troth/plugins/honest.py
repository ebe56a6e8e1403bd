"""What a server that Troth is installed in says and refuses. Framework-free: it decides, the plug-ins act.

A plug-in gives a ``Source``: what its server object really has, and what each primitive needs. This file makes the
declaration for a revision from it, judges requests by that declaration, and lists by what the asker declared.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import msgspec

from troth.bridge.errors import (
    BAD_PARAMS,
    RESOURCE_NOT_FOUND,
    ErrorValue,
    not_supported,
    resource_not_found,
    unknown_method,
)
from troth.bridge.promise import also_served
from troth.capabilities import build, read_client
from troth.capabilities.facts import SERVER_TASKS
from troth.capabilities.values import is_object
from troth.gating import META_KEY, Decision, GatingSettings, Need, Primitive, decide, missing
from troth.gating.decide import INVALID_REQUEST, MISSING_CAPABILITY
from troth.register import Era, register
from troth.results import spell
from troth.tasks.face import EXTENSION

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from troth.capabilities import Built, ClientCapabilities, Facts
    from troth.gating import Requirement
    from troth.gating.decide import PrimitiveKind
    from troth.plugins.announcing import Change

CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
"""Where a modern request keeps what its client declares (2026-07-28 basic)."""

MOST_CACHED: Final = 4096
"""Bytes of a declaration that is worth remembering."""


@dataclass(frozen=True, slots=True)
class ListShape:
    """Where a list keeps its items, and what they are called by."""

    member: str
    name: str
    definition: str


LISTS: Final[Mapping[str, tuple[PrimitiveKind, ListShape]]] = {
    "tools/list": ("tools", ListShape("tools", "name", "ListToolsResult")),
    "prompts/list": ("prompts", ListShape("prompts", "name", "ListPromptsResult")),
    "resources/list": ("resources", ListShape("resources", "uri", "ListResourcesResult")),
    "resources/templates/list": (
        "templates",
        ListShape("resourceTemplates", "uriTemplate", "ListResourceTemplatesResult"),
    ),
}
"""Method -> the kind that it lists, and how."""

USES: Final[Mapping[str, tuple[PrimitiveKind, str]]] = {
    "tools/call": ("tools", "name"),
    "prompts/get": ("prompts", "name"),
    "resources/read": ("resources", "uri"),
    "resources/subscribe": ("resources", "uri"),
}
"""Method -> the kind that it uses, and the param that names it."""

ABOUT_RESOURCES: Final = frozenset({"resources/read", "resources/subscribe", "resources/unsubscribe"})
"""Methods whose errors may be about a resource that is not there."""

NOT_FOUND: Final = frozenset({BAD_PARAMS, RESOURCE_NOT_FOUND})
"""Codes for that, in one revision or another."""

RESULTS: Final[Mapping[str, str]] = {
    **{method: shape.definition for method, (_, shape) in LISTS.items()},
    "completion/complete": "CompleteResult",
    "prompts/get": "GetPromptResult",
    "resources/read": "ReadResourceResult",
    "tools/call": "CallToolResult",
}
"""Method -> what its result is called in the schema."""

FAMILIES: Final[Mapping[PrimitiveKind, str]] = {
    "tools": "tools",
    "prompts": "prompts",
    "resources": "resources",
    "templates": "resources",
}
"""Kind -> the capability that its list belongs to."""


class Unknown(Enum):
    """Not nothing: not known."""

    UNKNOWN = 0


UNKNOWN: Final = Unknown.UNKNOWN


class Source(Protocol):
    """What a plug-in knows of its server."""

    @property
    def version(self) -> int:
        """Grows whenever something is registered or removed."""
        ...

    def facts(self, said: Mapping[str, object] | None, revision: str, /) -> Facts:
        """What the server really serves, now.

        Args:
            said: What the framework would declare on this connection; None if it was not asked.
            revision: The revision in force.
        """
        ...

    def stale(self, family: str, /) -> None:
        """Told when the author says that a list changed."""
        ...

    def gated(self, kind: PrimitiveKind, /) -> bool:
        """Whether any primitive of the kind needs something; True where that cannot be known."""
        ...

    def names(self, kind: PrimitiveKind, /) -> Collection[str]:
        """Primitives of the kind that are known to need something."""
        ...

    def entry(self, kind: PrimitiveKind, name: str, item: Mapping[str, Any], /) -> Need | Unknown | None:
        """What an entry of a list needs, if that is known without asking; ``UNKNOWN`` if it is not."""
        ...

    async def need(self, kind: PrimitiveKind, name: str, context: object, /) -> Need | None:
        """What a primitive needs.

        Args:
            kind: Its kind.
            name: The name that hosts use; a concrete URI for what a template serves.
            context: The context of the framework.
        """
        ...

    @property
    def long_running(self) -> bool:
        """Whether there is a tool that takes long."""
        ...

    async def takes_long(self, name: str, context: object, /) -> bool:
        """Whether a tool takes long, so that a call of it may become a task."""
        ...

    async def exists(self, uri: str, context: object, /) -> bool:
        """Whether there is such a resource."""
        ...

    async def listing(self, kind: PrimitiveKind, context: object, /) -> None:
        """Told that a list of the kind is about to be judged entry by entry."""
        ...

    async def everything(self, context: object, /) -> Mapping[PrimitiveKind, Collection[str]]:
        """The names of all that there is."""
        ...


@dataclass(frozen=True, slots=True)
class Current:
    """The host behind the request that is handled.

    Attributes:
        revision: The revision in force.
        client: What the host declared; None if it sent no capabilities (legacy).
        built: What was declared to it.
        tell: Tells all hosts of the server of a change.
    """

    revision: str
    client: ClientCapabilities | None
    built: Built
    tell: Callable[[Change], None] = field(repr=False)

    @property
    def era(self) -> Era:
        """Legacy or modern."""
        return _era(self.revision)

    def can(self, requirement: Requirement) -> bool:
        """Whether the host declared all of a requirement, in the revision in force."""
        return not self.missing(requirement)

    def missing(self, requirement: Requirement) -> tuple[str, ...]:
        """What the host did not declare of a requirement, in the register's order."""
        return missing(requirement, self.client, revision=self.revision)


@lru_cache(maxsize=64)
def _era(revision: str) -> Era:
    return register().era(revision)


class Asked(Protocol):
    """What handles a request; a call that comes again may change its asker."""

    asker: Current


CURRENT: ContextVar[Asked | None] = ContextVar("troth_current", default=None)


def current() -> Current:
    """The host behind the request that is handled.

    Raises:
        LookupError: No request of a server that Troth is installed in is handled here.
    """
    found = CURRENT.get()
    if found is None:
        raise LookupError("troth.current() works inside a handler of a server with troth.install(server)")
    return found.asker


@dataclass(frozen=True, slots=True)
class Seen:
    """A list as an asker may see it.

    Attributes:
        result: The list.
        gated: Whether anything of the kind needs something.
        shown: Entries that are in it.
        hidden: Name of what was left out -> why.
    """

    result: dict[str, Any]
    gated: bool = False
    shown: int = 0
    hidden: Mapping[str, str] = field(default_factory=dict[str, str])


class Honest:
    """The judgement of one server.

    Args:
        source: What the plug-in knows.
        settings: What the operator says of gating.
        base: The author's own set of capabilities, which can only take away.
        tasks: Whether calls of tools that take long may become tasks.
    """

    def __init__(
        self,
        source: Source,
        settings: GatingSettings,
        base: Mapping[str, object] | None = None,
        *,
        tasks: bool = False,
    ) -> None:
        self.source = source
        self.settings = settings
        self._base = base
        self._tasks = tasks
        self._declared: dict[tuple[str, bool, frozenset[str]], Built] = {}
        self._version = -1

    @property
    def runs_tasks(self) -> bool:
        """Whether there is a tool that may run as a task."""
        return self._tasks and self.source.long_running

    def declaration(
        self,
        revision: str,
        *,
        push: bool,
        said: Mapping[str, object] | None = None,
        offered: frozenset[str] = SERVER_TASKS,
    ) -> Built:
        """What to declare now on a connection.

        Args:
            revision: The revision in force.
            push: Whether the connection can be pushed to (legacy), or listened on (modern).
            said: What the framework would declare on it, once per session. What was built without it is remembered.
            offered: What core tasks offer to this host, where there are any.
        """
        if said is not None:
            return self._build(revision, push=push, said=said, offered=offered)
        if self._version != self.source.version:
            self._declared, self._version = {}, self.source.version
        key = (revision, push, offered)
        if key not in self._declared:
            self._declared[key] = self._build(revision, push=push, said=None, offered=offered)
        return self._declared[key]

    def _build(self, revision: str, *, push: bool, said: Mapping[str, object] | None, offered: frozenset[str]) -> Built:
        facts = self.source.facts(said, revision)
        if push and self.runs_tasks:
            # Work in the background ends with the server, and a session has to last for it.
            facts = replace(facts, tasks=offered, extensions={**facts.extensions, EXTENSION: {}})
        facts = facts if push else replace(facts, push=False, listen=frozenset())
        return build(facts, revision=revision, base=self._base)

    def refused(self, asker: Current, method: str, own: Callable[[str], bool]) -> ErrorValue | None:
        """Why a method is not served to an asker; None if it is.

        Args:
            asker: Who asks.
            method: What it asks.
            own: Tells whether the server has a handler for a method.
        """
        served = also_served(asker.built, method)
        if served is True:
            return None
        if isinstance(served, str):
            return not_supported(method, served)
        return None if own(method) and not known(method) else unknown_method(method)

    async def judged(
        self, asker: Current, method: str, params: Mapping[str, Any] | None, context: object
    ) -> tuple[Need | None, Decision | None]:
        """What the primitive that a request uses needs, and the refusal of an asker that may not see it."""
        used = _used(method, params or {})
        if used is None or not self._any(used.kind):
            return None, None
        need = await self.source.need(used.kind, used.name, context)
        decision = self.decide(asker, used, need)
        return need, None if decision.allowed else decision

    def decide(self, asker: Current, primitive: Primitive, need: Need | None) -> Decision:
        """Whether an asker may see and use a primitive."""
        return decide(primitive, need, asker.client, allow_when_not_declared=self.settings.allow_when_not_declared)

    async def seen(self, asker: Current, method: str, result: dict[str, Any], context: object, version: int) -> Seen:
        """A list without what the asker may not see; everything else of it stays, the cursor too.

        What is gone since ``version`` of the source, when the list was asked for, is left out: nobody can say any more
        what it needed.
        """
        kind, shape = LISTS[method]
        if not self.source.gated(kind):
            return Seen(result)
        await self.source.listing(kind, context)
        shown: list[Any] = []
        hidden: dict[str, str] = {}
        there: set[str] = set()
        # By identity: sources give the same object each time, and the hash of a need is of all that is in it.
        verdicts: dict[int, tuple[Need, str, dict[str, object]]] = {}
        for item in result.get(shape.member) or ():
            name = str(item.get(shape.name, ""))
            need = self.source.entry(kind, name, item)
            if need is UNKNOWN:
                need = await self.source.need(kind, name, context)
                if need is None and self.source.version != version:
                    there = there or set((await self.source.everything(context)).get(kind, ()))
                    if name not in there:
                        continue
            if need is None:
                shown.append(item)
                continue
            verdict = verdicts.get(id(need))
            if verdict is None:
                verdict = (need, self.decide(asker, Primitive(kind, name), need).why, need.json())
                verdicts[id(need)] = verdict
            _, why, stated = verdict
            if why:
                hidden[name] = why
            else:
                shown.append(_stating(item, stated) if self.settings.meta else _silent(item))
        if not verdicts and not self.source.names(kind):
            return Seen(result)
        result = {**result, shape.member: shown}
        if asker.era is Era.MODERN:
            result["cacheScope"] = "private"
        return Seen(result, True, len(shown), hidden)

    async def changed(self, before: Current, after: Current, context: object) -> list[str]:
        """Families whose lists look different to a host after it declared itself anew."""
        found: dict[str, None] = {}
        for kind, family in FAMILIES.items():
            for name in self.source.names(kind):
                need = await self.source.need(kind, name, context)
                primitive = Primitive(kind, name)
                if self.decide(before, primitive, need).allowed != self.decide(after, primitive, need).allowed:
                    found[family] = None
        return list(found)

    def _any(self, kind: PrimitiveKind) -> bool:
        if kind == "resources":
            return self.source.gated("resources") or self.source.gated("templates")
        return self.source.gated(kind)


def coded(method: str, code: int, data: object, revision: str) -> int:
    """The code of an error as the revision has it, where frameworks use that of another revision."""
    if code == MISSING_CAPABILITY and not _defined(code, revision):
        return INVALID_REQUEST
    if method not in ABOUT_RESOURCES or code not in NOT_FOUND or not (is_object(data) and "uri" in data):
        return code
    return resource_not_found("", revision).code


@lru_cache(maxsize=64)
def _defined(code: int, revision: str) -> bool:
    return any(error.code == code for error in register().errors_at(revision))


def _used(method: str, params: Mapping[str, Any]) -> Primitive | None:
    """The primitive that a request uses."""
    if method in USES:
        kind, param = USES[method]
        return Primitive(kind, str(params.get(param, "")))
    if method != "completion/complete" or not isinstance(params.get("ref"), dict):
        return None
    ref = cast("dict[str, Any]", params["ref"])
    if ref.get("type") == "ref/prompt":
        return Primitive("prompts", str(ref.get("name", "")))
    return Primitive("templates", str(ref.get("uri", "")))


def _stating(item: Mapping[str, Any], need: Mapping[str, object]) -> dict[str, Any]:
    """An entry of a list whose ``_meta`` says what it needs, for gateways to read."""
    return {**item, "_meta": {**(item.get("_meta") or {}), META_KEY: need}}


def _silent(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """An entry of a list whose ``_meta`` says nothing of needs."""
    meta = item.get("_meta")
    if not meta or META_KEY not in meta:
        return item
    rest = {key: value for key, value in meta.items() if key != META_KEY}
    return {**item, "_meta": rest} if rest else {key: value for key, value in item.items() if key != "_meta"}


@lru_cache(maxsize=256)
def known(method: str) -> bool:
    """Whether any revision defines a method."""
    return any((method, revision) in register().methods for revision in register().revisions)


def spelled(method: str, result: dict[str, Any], revision: str) -> dict[str, Any]:
    """A result as the revision spells it.

    Frameworks spell results for the newest revision of each era by themselves.
    """
    definition = RESULTS.get(method)
    if definition is None or newest(revision):
        return result
    return spell(result, definition, revision)


@lru_cache(maxsize=64)
def newest(revision: str) -> bool:
    """Whether a revision is the newest of its era."""
    return register().newest(_era(revision)) == revision


def declared_by(params: Mapping[str, Any] | None, revision: str) -> ClientCapabilities:
    """What a modern request declares; nothing where its ``_meta`` does not say."""
    meta: object = (params or {}).get("_meta")
    return read(meta.get(CAPABILITIES_KEY) if is_object(meta) else {}, revision)


def read(raw: object, revision: str) -> ClientCapabilities:
    """A client's declaration, remembered by its bytes: hosts say the same in every request."""
    try:
        text = msgspec.json.encode(raw)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        # What JSON text cannot carry, such as half a surrogate pair in a key, is read all the same.
        return read_client(raw, revision)
    return _remembered(text, revision) if len(text) <= MOST_CACHED else read_client(raw, revision)


@lru_cache(maxsize=256)
def _remembered(text: bytes, revision: str) -> ClientCapabilities:
    return read_client(msgspec.json.decode(text), revision)
