"""A dict that tells when it is changed, put in the place where a framework keeps what is registered."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Watched(dict[Any, Any]):
    """The entries of another dict; ``told`` is called after each change, on the thread that made it."""

    def __init__(self, entries: dict[Any, Any], told: Callable[[], None]) -> None:
        super().__init__(entries)
        self.told = told


def _telling(name: str) -> Any:
    method = getattr(dict, name)

    @wraps(method)
    def change(self: Watched, *args: Any, **kwargs: Any) -> Any:
        result = method(self, *args, **kwargs)
        self.told()
        return result

    return change


for _name in ("__delitem__", "__ior__", "__setitem__", "clear", "pop", "popitem", "setdefault", "update"):
    setattr(Watched, _name, _telling(_name))


def watch(holder: object, attribute: str, told: Callable[[], None]) -> bool:
    """Watches a dict that an object keeps in an attribute.

    Returns:
        Whether there is such a dict. A framework that keeps its entries otherwise is not watched, and then nothing may
        be promised about its changes.
    """
    entries = vars(holder).get(attribute)
    if not isinstance(entries, dict):
        return False
    setattr(holder, attribute, Watched(entries, told))  # pyright: ignore[reportUnknownArgumentType]
    return True
