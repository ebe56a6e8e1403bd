"""What Troth knows of a server of the SDK (``mcp`` 2) that it is installed in.

An ``MCPServer`` keeps what is registered in dicts, which are watched, so needs are read once per change. A low-level
server keeps its lists inside its handlers; there, needs stand in ``_meta`` of what it lists, and in the requirements
that were given to ``install``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

import mcp_types as types

from troth.bridge.catalogue import fits
from troth.capabilities.facts import FAMILIES
from troth.gating import Need, Primitive
from troth.plugins.announcing import Change
from troth.plugins.honest import LISTS, Unknown
from troth.plugins.mcp_sdk import facts as facts_of
from troth.plugins.mcp_session import as_dict
from troth.plugins.tasking import takes_long
from troth.plugins.watching import watch
from troth.register import Era, register

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from mcp.server.lowlevel import Server
    from mcp.server.mcpserver import MCPServer

    from troth.capabilities.facts import Facts
    from troth.gating.decide import PrimitiveKind
    from troth.plugins.install import Options

    LowLevel = Server[Any]

KEPT: Final[Mapping[PrimitiveKind, tuple[str, str, str]]] = {
    "tools": ("_tool_manager", "_tools", "tools"),
    "prompts": ("_prompt_manager", "_prompts", "prompts"),
    "resources": ("_resource_manager", "_resources", "resources"),
    "templates": ("_resource_manager", "_templates", "resources"),
}
"""Kind -> where an ``MCPServer`` keeps it, and its family."""


class McpServerSource:
    """An ``MCPServer``.

    Args:
        server: The server.
        options: What was given to ``install``.
        changed: Told of a family when something of it is registered or removed.
    """

    def __init__(self, server: MCPServer[Any], options: Options, changed: Callable[[Change], None]) -> None:
        self._server = server
        self._needs = options.needs
        self._options = options
        self._long: frozenset[str] | None = None
        self._found: dict[PrimitiveKind, dict[str, Need | None]] = {}
        self._gated: dict[PrimitiveKind, list[str]] = {}
        self.version = 0
        self._announced: set[str] = {family for _, _, family in KEPT.values()}
        for kind, (manager, attribute, family) in KEPT.items():
            if not watch(vars(server).get(manager), attribute, lambda k=kind, f=family: self._told(k, f, changed)):
                self._announced.discard(family)

    def facts(self, said: Mapping[str, object] | None, _revision: str) -> Facts:
        """See ``Source``. What the SDK would say of an ``MCPServer`` is no more than its handlers."""
        experimental = cast("dict[str, Mapping[str, object]]", (said or {}).get("experimental") or {})
        found = facts_of(self._server)
        return replace(found, announces=frozenset(self._announced), experimental={**found.experimental, **experimental})

    def stale(self, _family: str) -> None:
        """See ``Source``. What is kept is watched."""

    def gated(self, kind: PrimitiveKind) -> bool:
        """See ``Source``."""
        return bool(self.names(kind))

    def names(self, kind: PrimitiveKind) -> Collection[str]:
        """See ``Source``."""
        known = self.known(kind)
        if kind not in self._gated:
            self._gated[kind] = [name for name, need in known.items() if need is not None]
        return self._gated[kind]

    async def need(self, kind: PrimitiveKind, name: str, _context: object) -> Need | None:
        """See ``Source``."""
        needs = self.known(kind)
        if kind != "resources" or name in self._kept("resources"):
            return needs.get(name)
        if not self.gated("templates"):
            return None
        templates = self.known("templates")
        for template in tuple(self._kept("templates").values()):
            if _matches(template, name):
                return templates.get(template.uri_template)
        return None

    @property
    def long_running(self) -> bool:
        """See ``Source``."""
        return bool(self._takes_long())

    async def takes_long(self, name: str, _context: object) -> bool:
        """See ``Source``."""
        return name in self._takes_long()

    def _takes_long(self) -> frozenset[str]:
        if self._long is None:
            named = self._options.tasks.names
            self._long = frozenset(
                name for name, tool in tuple(self._kept("tools").items()) if name in named or takes_long(tool)
            )
        return self._long

    async def exists(self, uri: str, _context: object) -> bool:
        """See ``Source``."""
        templates = tuple(self._kept("templates").values())
        return uri in self._kept("resources") or any(_matches(template, uri) for template in templates)

    async def listing(self, kind: PrimitiveKind, _context: object) -> None:
        """See ``Source``. What is kept is at hand."""

    async def everything(self, _context: object) -> Mapping[PrimitiveKind, Collection[str]]:
        """See ``Source``."""
        return {kind: tuple(self._kept(kind)) for kind in KEPT}

    def _told(self, kind: PrimitiveKind, family: str, changed: Callable[[Change], None]) -> None:
        self._found.pop(kind, None)
        self._gated.pop(kind, None)
        self._long = None
        self.version += 1
        changed(Change(family))

    def _kept(self, kind: PrimitiveKind) -> dict[str, Any]:
        """What is registered now. A copy where it is gone through, since other threads may register."""
        manager, attribute, _ = KEPT[kind]
        return getattr(vars(self._server)[manager], attribute)

    def entry(self, kind: PrimitiveKind, name: str, _item: Mapping[str, Any]) -> Need | Unknown | None:
        """See ``Source``."""
        return self.known(kind).get(name)

    def known(self, kind: PrimitiveKind) -> Mapping[str, Need | None]:
        """What each primitive of a kind needs. Read once after each change."""
        found = self._found.get(kind)
        if found is None:
            found = {}
            for name, item in tuple(self._kept(kind).items()):
                need = self._needs.of(Primitive(kind, name), item, getattr(item, "meta", None))
                found[name] = need
            self._found[kind] = found
        return found


class LowLevelSource:
    """A low-level ``Server``.

    Args:
        server: The server.
        options: What was given to ``install``.
        listens: Whether the author serves ``subscriptions/listen``.
    """

    def __init__(self, server: LowLevel, options: Options, *, listens: bool) -> None:
        self._server = server
        self._options = options
        self._listens = listens
        self._found: dict[PrimitiveKind, dict[str, Need]] = {}
        self._learnt: dict[PrimitiveKind, int] = {}
        self._said: dict[PrimitiveKind, dict[str, tuple[object, Need | None]]] = {}
        self.version = 0

    def facts(self, said: Mapping[str, object] | None, revision: str) -> Facts:
        """See ``Source``.

        Lists stand in the author's handlers, so their changes are announced by the author or not at all: what was said
        so to the SDK, or to ``install``, is believed.
        """
        if said is None:
            made = self._server.get_capabilities(protocol_version=revision)
            said = made.model_dump(by_alias=True, mode="json", exclude_none=True)
        found = facts_of(self._server)
        announces = {family for family in FAMILIES if _flag(said, family) or family in self._options.announces}
        if not self._listens and register().era(revision) is Era.MODERN:
            # The SDK derives these flags from the handler, which is ours.
            announces &= self._options.announces
        listen = {f"{family}ListChanged" for family in announces} | {"resourceSubscriptions"}
        experimental = cast("dict[str, Mapping[str, object]]", said.get("experimental") or {})
        return replace(found, announces=announces, listen=listen, experimental=experimental)

    def stale(self, _family: str) -> None:
        """See ``Source``."""
        self.version += 1
        self._said.clear()
        self._found.clear()

    def gated(self, _kind: PrimitiveKind) -> bool:
        """See ``Source``."""
        return True

    def names(self, kind: PrimitiveKind) -> Collection[str]:
        """See ``Source``."""
        return self._found.get(kind, {})

    async def need(self, kind: PrimitiveKind, name: str, context: object) -> Need | None:
        """See ``Source``."""
        await self._learn(kind, cast("Any", context))
        need = self._found.get(kind, {}).get(name)
        if kind != "resources" or need is not None:
            return need
        await self._learn("templates", cast("Any", context))
        return fitting(self._found.get("templates", {}), name)

    @property
    def long_running(self) -> bool:
        """See ``Source``."""
        return bool(self._options.tasks.names)

    async def takes_long(self, name: str, _context: object) -> bool:
        """See ``Source``."""
        return name in self._options.tasks.names

    async def exists(self, uri: str, context: object) -> bool:
        """See ``Source``. What is neither listed nor of a listed template is not known to exist."""
        for kind in ("resources", "templates"):
            await self._learn(kind, cast("Any", context))
        return uri in self._said.get("resources", ()) or any(
            fits(template, uri) for template in self._said.get("templates", ())
        )

    async def listing(self, kind: PrimitiveKind, _context: object) -> None:
        """See ``Source``. Entries say themselves what they need."""

    async def everything(self, context: object) -> Mapping[PrimitiveKind, Collection[str]]:
        """See ``Source``."""
        for kind in KEPT:
            await self._learn(kind, cast("Any", context))
        return {kind: self._said.get(kind, {}) for kind in KEPT}

    def entry(self, kind: PrimitiveKind, name: str, item: Mapping[str, Any]) -> Need | Unknown | None:
        """See ``Source``. Read again only if its ``_meta`` is another than last time."""
        meta = item.get("_meta")
        said = self._said.setdefault(kind, {})
        before = said.get(name)
        if before is not None and before[0] == meta:
            return before[1]
        need = self._options.needs.of(Primitive(kind, name), None, meta)
        if len(said) < MOST_REMEMBERED:
            said[name] = (meta, need)
        found = self._found.setdefault(kind, {})
        found.pop(name, None)
        if need is not None:
            found[name] = need
        return need

    async def _learn(self, kind: PrimitiveKind, context: Any) -> None:
        """Reads a list of the server's own once per change, so that a call is judged although nobody listed."""
        if self._learnt.get(kind) == self.version:
            return
        self._learnt[kind] = self.version
        method, shape = next((method, shape) for method, (listed, shape) in LISTS.items() if listed == kind)
        entry = self._server.get_request_handler(method)
        cursor: str | None = None
        for _ in range(MOST_PAGES if entry is not None else 0):
            params = types.PaginatedRequestParams(cursor=cursor)
            page = as_dict(await cast("Any", entry).handler(context, params))
            for item in page.get(shape.member) or ():
                self.entry(kind, str(item.get(shape.name)), item)
            cursor = page.get("nextCursor")
            if not cursor:
                return


_EXPRESSION: Final = re.compile(r"\{[^{}]*\}")

MOST_REMEMBERED: Final = 10_000
"""Entries of lists whose needs are remembered; beyond that they are read each time."""

MOST_PAGES: Final = 100
"""Pages of a list that are read to learn what its entries need."""


def _flag(said: Mapping[str, object], family: str) -> bool:
    found = said.get(family)
    return isinstance(found, dict) and cast("dict[str, object]", found).get("listChanged") is True


def fitting(templates: Mapping[str, Need], uri: str) -> Need | None:
    """What the templates that a URI can come of need; the one with the longest text of its own counts."""
    found = [template for template in templates if fits(template, uri)]
    return templates[max(found, key=lambda template: len(_EXPRESSION.sub("", template)))] if found else None


def _matches(template: Any, uri: str) -> bool:
    try:
        return template.matches(uri) is not None
    except Exception:
        # The SDK refuses such a URI by itself, with its own words.
        return False
