"""Tools that take long: the mark of one, whose task it is, and what a server keeps of tasks. Framework-free.

A marked tool is called as ever by hosts that know no tasks. A host that may have a task gets one, in the form of its
revision: the core tasks of 2025-11-25, or those of the extension ``io.modelcontextprotocol/tasks``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from troth.capabilities.facts import SERVER_TASKS
from troth.gating import extension
from troth.gating.marks import INSIDE, WITHIN, layers
from troth.tasks import Core, Engine, Extension, MemoryStore, Requester, SqliteStore
from troth.tasks.face import EXTENSION

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from troth.tasks import Store

_T = TypeVar("_T")

MARK: Final = "__troth_task__"
"""The attribute of a marked function."""

CALL: Final = "tasks.requests.tools.call"
"""Path of what is declared where a call may become a core task."""
KEY: Final = extension(EXTENSION)
"""What a modern request declares that may be answered with a task."""
METHODS: Final = ("tasks/get", "tasks/result", "tasks/list", "tasks/update", "tasks/cancel")
"""Requests of both faces."""
SUPPORT: Final[Mapping[str, str]] = {"taskSupport": "optional"}
"""What the list says of a marked tool. Never ``required``: whoever knows no tasks calls it as ever."""

ANONYMOUS: Final = Requester("anonymous", shared=True)
"""Hosts over HTTP that say not who they are: the id of a task alone opens it, and nobody gets a list."""


def task(target: _T) -> _T:
    """Marks a tool that takes long, so that hosts which know tasks need not wait for it.

    Works like ``requires``: on functions and methods, above or below the framework's decorator.

    Raises:
        TypeError: There is no function to mark.
    """
    done = 0
    for layer in layers(target, INSIDE):
        try:
            setattr(layer, MARK, True)
        except (AttributeError, TypeError, ValueError):
            continue
        done += 1
    if not done:
        raise TypeError(f"task marks functions and methods, and {type(target).__qualname__} holds none")
    return target


def takes_long(thing: object) -> bool:
    """Whether a function, or the function inside ``thing``, is marked."""
    return any(getattr(layer, MARK, None) is True for layer in layers(thing, WITHIN))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """What ``install`` is told of tasks.

    Attributes:
        names: Tools that take long, beside those that are marked.
        store: Where tasks are kept; None for memory.
    """

    names: frozenset[str] = frozenset()
    store: Store | None = None


def read_options(names: Collection[str], store: Store | str | Path | None) -> TaskOptions:
    """The options out of what ``install`` is given.

    Raises:
        TypeError: ``names`` is no collection of texts.
    """
    if isinstance(names, str) or not all(isinstance(name, str) for name in cast("Collection[object]", names)):
        raise TypeError("tasks: a collection of names of tools belongs here, such as {'render'}")
    kept = SqliteStore(Path(store)) if isinstance(store, str | Path) else store
    return TaskOptions(names=frozenset(names), store=kept)


class Tasking:
    """The tasks of one server.

    Args:
        options: What ``install`` was told.

    Attributes:
        engine: Keeps and moves them.
        core: The methods of 2025-11-25.
        extension: The methods of the extension.
        durable: Whether tasks are kept beyond the process.
    """

    def __init__(self, options: TaskOptions) -> None:
        self.durable = options.store is not None
        self.engine = Engine(options.store or MemoryStore())
        self.core = Core(self.engine)
        self.extension = Extension(self.engine)

    def requester(self, principal: tuple[str | None, ...] | None, pipe: str | None) -> Requester:
        """Whose tasks a request is about.

        Args:
            principal: Who the request is authorized for; None where nobody is.
            pipe: Name of the pipe that it came over, which one host has; None where others may have come over the same.
        """
        if principal is not None:
            return Requester(f"principal:{json.dumps(principal)}")
        if pipe is None:
            return ANONYMOUS
        # What outlives the process is for whoever comes next on a pipe, and several hosts may have one each.
        return Requester("pipe", shared=True) if self.durable else Requester(f"pipe:{pipe}")


def offered(requester: Requester) -> frozenset[str]:
    """What core tasks offer to a requester."""
    return SERVER_TASKS - {"list"} if requester.shared else SERVER_TASKS


def supporting(result: dict[str, Any], names: Collection[str] | None) -> dict[str, Any]:
    """A list of tools that says which may run as tasks.

    Args:
        result: The list.
        names: Those that may; None where tasks are not declared, so that nothing may be said of them.
    """
    tools: list[Any] = []
    for tool in result.get("tools") or ():
        rest = {key: value for key, value in tool.items() if key != "execution"}
        tools.append({**rest, "execution": dict(SUPPORT)} if tool.get("name") in (names or ()) else rest)
    return {**result, "tools": tools}
