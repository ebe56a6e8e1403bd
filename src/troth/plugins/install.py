"""``troth.install(server)``: one line makes a server say what it does, and do what it says. Framework-free.

The plug-in of the framework is imported when a server of it is at hand.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from weakref import WeakKeyDictionary

from troth.capabilities import Facts, build
from troth.capabilities.facts import FAMILIES
from troth.capabilities.values import described, is_object
from troth.gating import NEEDS, GatingSettings, Need, Needs, read_settings, settings_from_environment
from troth.gating.needs import KINDS
from troth.plugins.announcing import Change
from troth.plugins.honest import CURRENT
from troth.plugins.tasking import TaskOptions, read_options
from troth.register import Era, register

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from troth.gating import Primitive, Requirement
    from troth.tasks import Store

_S = TypeVar("_S")

PLUGINS: Final[Mapping[str, str]] = {
    "mcp.server": "troth.plugins.mcp_install",
    "fastmcp": "troth.plugins.fastmcp_source",
}
"""Where classes of server objects come from -> the plug-in that installs."""

VARIABLE: Final = "TROTH_CONFIG"
"""Environment variable with the path of a TOML file that has a table ``[gating]``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a plug-in is given.

    Attributes:
        needs: What primitives need, from all sources.
        base: The author's own set of capabilities, which can only take away.
        announces: Families whose changes the author announces by hand.
        outside: Whether needs may come from elsewhere than marks and ``_meta``.
        tasks: What is said of tasks.
    """

    needs: Needs
    base: Mapping[str, object] | None
    announces: frozenset[str]
    outside: bool
    tasks: TaskOptions


_installed: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def install(
    server: _S,
    *,
    requirements: Mapping[str, Requirement | Need] | None = None,
    need: Callable[[Primitive], Requirement | Need | None] | None = None,
    config: str | Path | None = None,
    allow_when_not_declared: bool | None = None,
    meta: bool | None = None,
    announces: Collection[str] = (),
    tasks: Collection[str] = (),
    task_store: Store | str | Path | None = None,
    capabilities: Mapping[str, object] | None = None,
) -> _S:
    """Makes a server honest: declarations, refusals, questions, results, notifications, gating.

    Args:
        server: ``MCPServer`` or the low-level ``Server`` of ``mcp`` 2, or ``FastMCP`` 4.
        requirements: Name, URI or URI template -> what it needs, beside what ``@requires`` says.
        need: Called once per primitive, for what it needs.
        config: A TOML file with a table ``[gating]``; without it, the file that ``TROTH_CONFIG`` names. Variables
            ``TROTH_GATING_...`` win over the file, and the arguments here over both.
        allow_when_not_declared: Let those legacy hosts pass who send no capabilities at all.
        meta: Whether requirements are written into ``_meta``.
        announces: Families (``tools``, ``prompts``, ``resources``) of which the author announces every change with
            ``notify_..._changed``, where Troth cannot see changes by itself.
        tasks: Tools that take long, beside those with ``@troth.task``: hosts that know tasks need not wait for them.
        task_store: Where tasks are kept: a file (SQLite), or a store; without it they end with the process. One server
            process uses it at a time.
        capabilities: The most to declare, short forms allowed; it takes away and never adds.

    Returns:
        The server.

    Raises:
        TypeError: It is none of those servers, or an argument is of a wrong type.
        ValueError: It has Troth already, an argument names what there is not, or the configuration is wrong.
    """
    if installed(server):
        raise ValueError("troth is installed in this server already; install it once")
    settings = _settings(config)
    given: dict[str, object] = {"allow_when_not_declared": allow_when_not_declared, "meta": meta}
    for name, value in given.items():
        if value is not None and not isinstance(value, bool):
            raise TypeError(f"{name}: {described(value)} where True or False belongs")
    settings = replace(settings, **cast("Any", {key: value for key, value in given.items() if value is not None}))
    if capabilities is not None:
        # What is wrong with it is said here, and not to the first host.
        build(Facts(), revision=register().newest(Era.MODERN), base=_object("capabilities", capabilities))
    options = Options(
        needs=Needs(requirements, need, settings),
        base=capabilities,
        announces=_families(announces),
        tasks=read_options(tasks, task_store),
        outside=bool(requirements or need or any(getattr(settings, kind) for kind in KINDS)),
    )
    _installed[server] = _plugin(server).install(server, options)
    setattr(server, NEEDS, options.needs)
    return server


def installed(server: object) -> bool:
    """Whether Troth is installed in a server."""
    return server in _installed


def notify_tools_changed(server: object = None) -> None:
    """Tells every host that the list of tools changed.

    What is registered with, or removed from, an ``MCPServer`` or a FastMCP is told by itself. May be called from any
    thread; does not wait.

    Args:
        server: Of which server; without it, the one whose request is handled here, else every one with Troth.
    """
    _tell(Change("tools"), server)


def notify_prompts_changed(server: object = None) -> None:
    """Tells every host that the list of prompts changed; see ``notify_tools_changed``."""
    _tell(Change("prompts"), server)


def notify_resources_changed(server: object = None) -> None:
    """Tells every host that the list of resources or templates changed; see ``notify_tools_changed``."""
    _tell(Change("resources"), server)


def notify_resource_updated(uri: str, server: object = None) -> None:
    """Tells every host that subscribed to a resource that it changed; see ``notify_tools_changed``."""
    _tell(Change("resources", str(uri)), server)


def _tell(change: Change, server: object) -> None:
    now = CURRENT.get()
    if server is not None:
        if not installed(server):
            raise ValueError("troth is not installed in this server: call troth.install(server) first")
        _installed[server].tell(change)
    elif now is not None:
        now.asker.tell(change)
    else:
        for middleware in tuple(_installed.values()):
            middleware.tell(change)


def _plugin(server: object) -> Any:
    modules = [kind.__module__ for kind in type(server).__mro__]
    for prefix, plugin in PLUGINS.items():
        if any(module == prefix or module.startswith(f"{prefix}.") for module in modules):
            return import_module(plugin)
    kind = type(server)
    raise TypeError(
        f"troth.install takes an MCPServer or a low-level Server of mcp 2, or a FastMCP 4, not "
        f"{kind.__module__}.{kind.__qualname__}"
    )


def _object(name: str, given: object) -> Mapping[str, object]:
    if not is_object(given):
        raise TypeError(f"{name}: {described(given)} where a mapping belongs")
    return cast("Mapping[str, object]", given)


def _families(given: Collection[str]) -> frozenset[str]:
    if isinstance(given, str):
        raise TypeError("announces: a collection of families belongs here, such as {'tools'}")
    unknown = [name for name in given if name not in FAMILIES]
    if unknown:
        raise ValueError(f"announces: there is no family {unknown[0]!r}; there are: {', '.join(sorted(FAMILIES))}")
    return frozenset(given)


def _settings(config: str | Path | None) -> GatingSettings:
    path = config or os.environ.get(VARIABLE)
    base = GatingSettings()
    if path:
        where = "config of troth.install" if config else f"variable {VARIABLE}"
        try:
            table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            full = Path(path).absolute()
            raise ValueError(f"{where}: there is no file {full}; create it, name another one or leave it out") from None
        except OSError as error:
            raise ValueError(f"{where}: {path} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise ValueError(f"{where}: {path} is not TOML: {error}") from None
        found: object = table.get("gating", {})
        if not is_object(found):
            raise ValueError(f"{path}: gating: a table belongs here")
        base = read_settings(cast("Mapping[str, object]", found), f"{path}: gating")
    return settings_from_environment(os.environ, base)
