"""Dicts and lists that tell when they are changed, put in the places where a framework keeps what is registered."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Told = "Callable[[], None]"


class WatchedDict(dict[Any, Any]):
    """The entries of another dict; each of ``told`` is called after each change, on the thread that made it."""

    told: list[Callable[[], None]]


class WatchedList(list[Any]):
    """The same of a list."""

    told: list[Callable[[], None]]


def _telling(base: type, name: str) -> Any:
    method = getattr(base, name)

    @wraps(method)
    def change(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = method(self, *args, **kwargs)
        for told in self.told:
            told()
        return result

    return change


_CHANGES: Final[Mapping[type, Iterable[str]]] = {
    WatchedDict: ("__delitem__", "__ior__", "__setitem__", "clear", "pop", "popitem", "setdefault", "update"),
    WatchedList: ("__delitem__", "__iadd__", "__setitem__", "append", "clear", "extend", "insert", "pop", "remove"),
}
for _class, _names in _CHANGES.items():
    for _name in _names:
        setattr(_class, _name, _telling(_class.__mro__[1], _name))


def watch(holder: object, attribute: str, told: Callable[[], None]) -> bool:
    """Watches a dict or list that an object keeps in an attribute.

    Returns:
        Whether there is one. A framework that keeps its entries otherwise is not watched, and then nothing may be
        promised about its changes.
    """
    entries = cast("object", vars(holder).get(attribute))
    if isinstance(entries, WatchedDict | WatchedList):
        entries.told.append(told)
        return True
    kind = WatchedDict if isinstance(entries, dict) else WatchedList if isinstance(entries, list) else None
    if kind is None:
        return False
    watched = cast("Any", kind)(entries)
    watched.told = [told]
    setattr(holder, attribute, watched)
    return True
