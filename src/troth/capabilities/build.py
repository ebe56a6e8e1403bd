"""Builds what a server or client may declare at a revision, with a reason for every member.

Rules of the room:

1. Only facts create a member. The author's own set (``base``) can take away and never add.
2. A flag never creates the object it stands in.
3. ``false`` is legal and says nothing: it is left out.
4. What a revision does not define is left out there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from troth.capabilities.facts import ClientFacts, Facts
from troth.capabilities.paths import fields, is_extension_key, rows, spell
from troth.capabilities.read import KEYED, read_client, read_server
from troth.capabilities.rules import CLIENT, HOLLOW, SERVER
from troth.capabilities.short import expand, tops
from troth.capabilities.values import copied, described, is_object
from troth.register.load import register
from troth.register.model import Era, Kind, Row, Side

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from troth.capabilities.facts import Settings
    from troth.capabilities.model import Capabilities
    from troth.capabilities.paths import Key
    from troth.capabilities.rules import Reason
    from troth.register.model import Definition

FRAMEWORKS: Mapping[str, str] = {
    "mcp.server": "troth.plugins.mcp_sdk",
    "fastmcp": "troth.plugins.fastmcp",
}
"""Where classes of server objects come from -> the plug-in that reads their facts. A plug-in is imported on use."""

ACCEPTED = (
    "give troth.Facts, or a server object (mcp 2: MCPServer or the low-level Server; fastmcp 4: FastMCP), "
    "with that framework installed"
)


@dataclass(frozen=True, kw_only=True)
class Built:
    """A declaration, with its reasons.

    Attributes:
        side: Who declares it.
        revision: The revision it is for.
        capabilities: The object to send.
        why: For every path of the side, and every key of its open maps: ``true because ...`` or ``absent because
            ...``.
        declared: The same declaration as the peer reads it.
    """

    side: Side
    revision: str
    capabilities: dict[str, object]
    why: Mapping[str, str]
    declared: Capabilities = field(repr=False)

    def has(self, path: str) -> bool:
        """Whether the declaration promises ``path``, written as for ``Capabilities.has``.

        Raises:
            ValueError: No revision defines such a path; the message names the nearest one.
        """
        return self.declared.has(path)


def build(
    source: object,
    *,
    revision: str | None = None,
    era: Era | str | None = None,
    base: Mapping[str, object] | None = None,
    push: bool | None = None,
) -> Built:
    """What a server may declare, in ``initialize`` (legacy) or ``server/discover`` (modern).

    Args:
        source: ``Facts``, or a server object: ``MCPServer`` or the low-level ``Server`` of ``mcp`` 2, ``FastMCP`` 4.
        revision: The protocol revision to declare for.
        era: ``legacy`` or ``modern``, for its newest revision. With neither, the newest legacy one.
        base: The author's own set, short forms allowed; the result has no member that is not in it.
        push: Whether this connection can be pushed to on legacy; None leaves it to the facts.

    Raises:
        ValueError: ``revision`` or ``era`` is unknown, or they contradict each other.
        TypeError: ``source`` is none of the above, or ``base`` names something that is no server capability.
    """
    revision = _settle(revision, era)
    facts = source if isinstance(source, Facts) else _facts_of(source)
    if push is not None:
        facts = replace(facts, push=push)

    def rule(row: Row, definition: Definition) -> Reason:
        return SERVER[row.id](facts, row, definition)

    maps = {"experimental": facts.experimental, "extensions": facts.extensions}
    return _Builder(Side.SERVER, revision, rule, maps, base).build()


def build_client(
    facts: ClientFacts,
    *,
    revision: str | None = None,
    era: Era | str | None = None,
    base: Mapping[str, object] | None = None,
) -> Built:
    """What a client may declare, in ``initialize`` (legacy) or with every request (modern).

    Args and errors are those of ``build``.
    """
    revision = _settle(revision, era)

    def rule(row: Row, definition: Definition) -> Reason:
        return CLIENT[row.id](facts, row, definition)

    maps = {"experimental": facts.experimental, "extensions": facts.extensions}
    return _Builder(Side.CLIENT, revision, rule, maps, base).build()


class _Builder:
    """One declaration in the making."""

    def __init__(
        self,
        side: Side,
        revision: str,
        rule: Callable[[Row, Definition], Reason],
        maps: Mapping[str, Settings],
        base: Mapping[str, object] | None,
    ) -> None:
        self.side = side
        self.revision = revision
        self.rule = rule
        self.maps = maps
        self.fields = fields(side, revision)
        self.reader: Callable[[object, str], Capabilities] = read_server if side is Side.SERVER else read_client
        self.asked = None if base is None else self.reader(expand(base, tops(side)), revision)
        self.why: dict[str, str] = {}

    def build(self) -> Built:
        made = self.children(())
        if self.asked is not None:
            for problem in self.asked.problems:
                reason = self.why.get(problem.path, "absent because no fact asks for it")
                self.why[problem.path] = f"{reason}; of the base: {problem.message}"
        return Built(
            side=self.side,
            revision=self.revision,
            capabilities=made,
            why=dict(sorted(self.why.items())),
            declared=self.reader(copied(made), self.revision),
        )

    def children(self, key: Key, missing: str | None = None) -> dict[str, object]:
        """The members below ``key``; all absent where the parent ``missing`` is."""
        made: dict[str, object] = {}
        for row in rows(self.side).values():
            if row.key[:-1] == key and (value := self.member(row, missing)) is not None:
                made[row.key[-1]] = value
        return made

    def member(self, row: Row, missing: str | None) -> object | None:
        """The value to declare for ``row``; None to leave it out. Records why, for it and all below it."""
        found = self.fields.get(row.key)
        is_map = row.path in self.maps
        value: object | None = None
        if found is None:
            ok, reason = False, f"{self.revision} does not define it (only {', '.join(row.definitions)})"
        elif missing is not None:
            ok, reason = False, f"{missing} is absent"
        elif is_map:
            ok, reason = True, "it has entries"
        else:
            ok, reason = self.rule(row, found[1])
        ok, reason = self.narrowed(row.key, ok, reason)
        gone = None if ok else row.path
        if is_map:
            value = self.entries(row, gone)
            ok, reason = (ok and bool(value), reason if value or not ok else "there are no entries")
        elif found is not None and found[1].kind is Kind.BOOLEAN:
            value = True
        else:
            value = self.children(row.key, gone)
            if ok and self.hollow(row, value):
                ok, reason = False, "nothing that it could promise is left"
                self.children(row.key, row.path)
        self.why[row.path] = f"{'true' if ok else 'absent'} because {reason}"
        return value if ok else None

    def hollow(self, row: Row, made: Mapping[str, object]) -> bool:
        needed = [register().by_id[row_id].key for row_id in HOLLOW.get(row.id, ())]
        needed = [key for key in needed if key in self.fields]
        return bool(needed) and not any(key[-1] in made for key in needed)

    def narrowed(self, key: Key, ok: bool, reason: str) -> Reason:
        """The decision after a look at the author's own set."""
        if self.asked is None:
            return ok, reason
        asked = key in self.asked.in_force
        if ok and not asked:
            return False, f"the base leaves it out (otherwise true: {reason})"
        if asked and not ok:
            return False, f"{reason}, although the base asks for it"
        return ok, reason

    def entries(self, row: Row, gone: str | None) -> dict[str, object]:
        """The entries of an open map: those of the facts, and a reason for every key that the register names."""
        made: dict[str, object] = {}
        known = [other.key[-1] for other in rows(self.side).values() if other.key[:-1] == row.key]
        given = self.maps[row.path]
        for name in dict.fromkeys((*known, *given)):
            ok, reason = _entry(row, name, given)
            if ok and gone is not None:
                ok, reason = False, f"{gone} is absent"
            ok, reason = self.narrowed((*row.key, name), ok, reason)
            if ok:
                made[name] = copied(given[name])
            self.why[spell((*row.key, name))] = f"{'true' if ok else 'absent'} because {reason}"
        return made


def _entry(row: Row, name: str, given: Settings) -> Reason:
    if name not in given:
        return False, "it is not implemented"
    if row.path == KEYED and not is_extension_key(name):
        return False, "its key is not PREFIX/NAME, such as com.example/feature"
    if not is_object(given[name]):
        return False, f"its value is {described(given[name])} where an object belongs"
    return True, "it is implemented" if row.path == KEYED else "it is configured"


def _settle(revision: str | None, era: Era | str | None) -> str:
    """The revision to build for."""
    if era is not None and era not in list(Era):
        raise ValueError(f"unknown era {era!r}; there are: {', '.join(Era)}")
    if revision is None:
        return register().newest(Era(era) if era is not None else Era.LEGACY)
    fields(Side.SERVER, revision)
    if era is not None and register().era(revision) is not Era(era):
        raise ValueError(f"revision {revision} is {register().era(revision)}, not {era}: give one of the two")
    return revision


def plugin_of(source: object) -> Any:
    """The plug-in module for a framework's server object, imported now.

    Raises:
        TypeError: No plug-in is for it, or its release is not supported.
    """
    for home in (base.__module__ for base in type(source).__mro__):
        for prefix, plugin in FRAMEWORKS.items():
            if home == prefix or home.startswith(f"{prefix}."):
                try:
                    return import_module(plugin)
                except ImportError as error:
                    raise TypeError(f"{_named(source)} is of a release that is not supported: {ACCEPTED}") from error
    raise TypeError(f"cannot tell what {_named(source)} implements: {ACCEPTED}")


def _facts_of(source: object) -> Facts:
    """The facts of a framework's server object, read by its plug-in."""
    return cast("Callable[[object], Facts]", plugin_of(source).facts)(source)


def _named(source: object) -> str:
    return f"{type(source).__module__}.{type(source).__qualname__}"
