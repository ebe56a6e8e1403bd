"""Names that were given to ``install`` or in its configuration and that nothing has: the author hears of them once.

What a server has may be registered after ``install``, so it is the first list that is waited for. Framework-free.
"""

from __future__ import annotations

import logging
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, Protocol

from troth.capabilities.paths import shown

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from troth.gating import Needs
    from troth.gating.decide import PrimitiveKind

logger = logging.getLogger(__name__)

WORDS: Final[Mapping[PrimitiveKind | None, str]] = {
    "tools": "tool",
    "prompts": "prompt",
    "resources": "resource",
    "templates": "resource template",
    None: "tool, prompt, resource or resource template",
}
"""Kind -> what one of it is called; None for any."""


class _Knows(Protocol):
    async def everything(self, context: object, /) -> Mapping[PrimitiveKind, Collection[str]]: ...


class Given:
    """The names that were given to one server.

    Args:
        needs: The sources of needs.
        tasks: Tools that take long.
    """

    def __init__(self, needs: Needs, tasks: Collection[str]) -> None:
        self._names: list[tuple[str, PrimitiveKind | None, str]] = []
        self._names.extend(("a requirement", kind, name) for kind, name in needs.named())
        self._names.extend(("tasks=", "tools", name) for name in sorted(tasks))

    @property
    def unchecked(self) -> bool:
        """Whether there are names that nobody looked for."""
        return bool(self._names)

    async def check(self, source: _Knows, context: object) -> None:
        """Looks for all names once, and logs a warning for each that nothing has."""
        names, self._names = self._names, []
        try:
            there = await source.everything(context)
        except Exception:
            logger.debug("the names that were given could not be looked for", exc_info=True)
            return
        for what, kind, name in names:
            found = [one for each, own in there.items() if kind in {None, each} for one in own]
            if name not in found:
                near = get_close_matches(name, found, n=1)
                hint = f"did you mean {shown(near[0])!r}?" if near else "it has no effect until there is one"
                logger.warning("%s names %r, and there is no %s of that name; %s", what, name, WORDS[kind], hint)
