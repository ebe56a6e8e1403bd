"""Brings an author's mapping into the protocol's form and checks it member by member.

Names may be written Python's way (``mime_type``, ``meta``), values may be bytes, paths, URLs, dates and models.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, cast

from troth.results.media import address, encoded, guess, mime_type
from troth.results.table import CHILDREN, KNOWN
from troth.results.values import is_array, is_mapping, plain, shown, step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from troth.results.spelling import Object

REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "AudioContent": ("data", "mimeType"),
    "BlobResourceContents": ("uri", "blob"),
    "EmbeddedResource": ("resource",),
    "Icon": ("src",),
    "ImageContent": ("data", "mimeType"),
    "Implementation": ("name", "version"),
    "Prompt": ("name",),
    "PromptArgument": ("name",),
    "PromptMessage": ("role", "content"),
    "Resource": ("name", "uri"),
    "ResourceLink": ("name", "uri"),
    "ResourceTemplate": ("name", "uriTemplate"),
    "TextContent": ("text",),
    "TextResourceContents": ("uri", "text"),
    "Tool": ("name", "inputSchema"),
}
"""Members that an author must give; ``type`` is ours to write. The same in every revision."""


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_priority(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _one_of(*words: str) -> tuple[str, Callable[[Any], bool]]:
    return " or ".join(repr(word) for word in words), lambda value: value in words


def _list_of(what: str, check: Callable[[Any], bool]) -> tuple[str, Callable[[Any], bool]]:
    return f"a list of {what}", lambda value: isinstance(value, list) and all(map(check, cast("list[Any]", value)))


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool)


_STRING = ("a string", _is_string)
_OBJECT = ("an object", _is_object)
_BOOLEAN = ("true or false", _is_boolean)

_CHECKS: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    **dict.fromkeys(
        ("blob", "data", "description", "lastModified", "mimeType", "name", "src", "text", "title", "uri"), _STRING
    ),
    **dict.fromkeys(("uriTemplate", "version", "websiteUrl"), _STRING),
    **dict.fromkeys(("_meta", "annotations", "execution", "inputSchema", "outputSchema", "resource"), _OBJECT),
    **dict.fromkeys(("destructiveHint", "idempotentHint", "openWorldHint", "readOnlyHint", "required"), _BOOLEAN),
    "arguments": _list_of("objects", _is_object),
    "audience": _list_of("'user' or 'assistant'", lambda value: value in ("user", "assistant")),
    "content": _OBJECT,
    "icons": _list_of("objects", _is_object),
    "priority": ("a number from 0 to 1", _is_priority),
    "role": _one_of("user", "assistant"),
    "size": ("an integer", _is_integer),
    "sizes": _list_of("strings", _is_string),
    "taskSupport": _one_of("forbidden", "optional", "required"),
    "theme": _one_of("light", "dark"),
}
"""What a member of this name must be, wherever it stands."""


def _icon_source(value: object, where: str) -> str:
    """The address of an icon. The protocol wants https: or data: here, so a file is put in whole."""
    if not isinstance(value, PurePath):
        return address(value, where)
    data = encoded(value, where)
    return f"data:{guess(value, data) or 'application/octet-stream'};base64,{data}"


def _moment(value: object, _where: str) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


_CONVERT: Final[Mapping[str, Callable[[object, str], object]]] = {
    "blob": encoded,
    "data": encoded,
    "lastModified": _moment,
    "mimeType": mime_type,
    "src": _icon_source,
    "uri": address,
    "websiteUrl": address,
}
"""Members that Python writes in ways of its own."""


def members(value: object, where: str) -> Mapping[str, object]:
    """The members of a mapping, a model, a dataclass or a struct, not yet copied.

    Raises:
        TypeError: It is none of these.
        ValueError: A model that cannot be dumped.
    """
    opened: object = value if is_mapping(value) else plain(value, where)
    if not is_mapping(opened):
        raise TypeError(f"{where} must be a mapping, not {type(value).__name__}")
    for key in opened:
        if not isinstance(key, str):
            raise TypeError(f"{where} has the key {shown(key)}; keys of a JSON object must be strings")
    return cast("Mapping[str, object]", opened)


def shaped(value: object, definition: str, where: str) -> Object:
    """A checked copy of an author's object in the protocol's form.

    Members of no revision are kept. Optional members that are None are left out.

    Args:
        value: A mapping, model, dataclass or struct.
        definition: Its name in the schema.
        where: What the value is, for messages.

    Raises:
        TypeError: No object, or a value of a wrong type.
        ValueError: A member that is missing, given twice or out of range.
    """
    new: Object = {}
    for name, member in renamed(value, definition, where).items():
        new[name] = _member(member, definition, name, f"{where}{step(name)}")
    for name in REQUIRED.get(definition, ()):
        if name not in new:
            raise ValueError(f"{where} needs {name!r}, which is missing")
    return new


def renamed(value: object, definition: str, where: str) -> dict[str, object]:
    """The members of an author's object under the protocol's names, unchecked; known members that are None are out.

    Raises:
        TypeError: It is no object.
        ValueError: A member is given twice, once by each name.
    """
    known = KNOWN[definition]
    new: dict[str, object] = {}
    for key, member in members(value, where).items():
        name = _wire_name(key, known)
        if name in known and member is None:
            continue
        if name in new:
            raise ValueError(f"{where} has {name} twice, once as {shown(key)}")
        new[name] = member
    return new


def _wire_name(name: str, known: frozenset[str]) -> str:
    """The protocol's name of a member that may be written Python's way."""
    if name in known:
        return str.__str__(name)
    camel = "_meta" if name == "meta" else re.sub(r"_([a-z])", lambda match: match[1].upper(), name)
    return camel if camel in known else plain(name, "a member's name")


def _member(value: object, definition: str, name: str, where: str) -> Any:
    if name not in KNOWN[definition]:
        return plain(value, where)
    child = CHILDREN.get((definition, name))
    if child == "Icon" and is_array(value):
        value = [_icon(item) for item in value]
    if child is not None and child in KNOWN:
        checked = _children(value, child, where)
    else:
        checked = plain(_CONVERT[name](value, where) if name in _CONVERT else value, where)
    if name in _CHECKS and not _CHECKS[name][1](checked):
        raise TypeError(f"{where} must be {_CHECKS[name][0]}, not {shown(checked)}")
    return checked


def _icon(item: object) -> object:
    """An icon given by its address alone."""
    return {"src": item} if isinstance(item, str | PurePath) or hasattr(item, "scheme") else item


def _children(value: object, child: str, where: str) -> Any:
    if is_array(value):
        return [shaped(item, child, f"{where}[{index}]") for index, item in enumerate(value)]
    return shaped(value, child, where)
