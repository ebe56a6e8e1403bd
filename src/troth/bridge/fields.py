"""The fields of a form: what a revision can ask for, defaults, and what a host filled in. Sans-IO.

Only what some revision defines and the host's does not is changed; what no revision defines passes as it came. Whether
what was filled in fits the schema in every point is not decided here.

Source: 2025-06-18, 2025-11-25 and 2026-07-28 client/elicitation, requested schema (``PrimitiveSchemaDefinition``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec import Raw

from troth.bridge.levels import members
from troth.bridge.model import BAD_PARAMS, Bad
from troth.bridge.tree import members_of, text

if TYPE_CHECKING:
    from collections.abc import Mapping

Field = dict[str, Raw]
"""Members of the schema of one field."""


class Form(NamedTuple):
    """What a revision knows of forms."""

    defaults: frozenset[str]
    """Types of fields that may have a default."""
    titled: bool
    """Whether a choice may give its options a title each (``oneOf``), without the older ``enumNames``."""
    many: bool
    """Whether several options may be chosen (an array of texts)."""


_ALL: Final = Form(frozenset({"string", "number", "integer", "boolean", "array"}), titled=True, many=True)

FORMS: Final[Mapping[str, Form]] = {
    "2025-06-18": Form(frozenset({"boolean"}), titled=False, many=False),
    "2025-11-25": _ALL,
    "2026-07-28": _ALL,
}
"""By revision; a missing key means: no forms in this revision."""

_SCHEMA: Final = ("$schema", "properties", "required", "type")
_FIELD: Final = ("default", "enum", "enumNames", "items", "oneOf", "type")

_read_texts = msgspec.json.Decoder(list[str]).decode
_read_value = msgspec.json.Decoder(str | int | float | bool | list[str]).decode
_NULL: Final = Raw(b"null")


class _Option(msgspec.Struct):
    const: str
    title: str


_read_options = msgspec.json.Decoder(list[_Option]).decode


def fields_of(raw: Raw | None) -> dict[str, Field] | str:
    """The fields that a requested schema asks for, each with its members; or what is wrong with it."""
    where = "params: requestedSchema"
    schema = members(Raw(b"null") if raw is None else raw, where, _SCHEMA)
    if isinstance(schema, Bad):
        return schema.reason
    properties = members(schema.get("properties", Raw(b"null")), f"{where}: properties")
    if isinstance(properties, Bad):
        return properties.reason
    fields: dict[str, Field] = {}
    for name, value in properties.items():
        field = members(value, f"{where}: a field", _FIELD)
        if isinstance(field, Bad):
            return field.reason
        fields[name] = field
    return fields


def limited(raw: Raw, fields: Mapping[str, Field], revision: str) -> object | Bad:
    """A requested schema as a host of this revision knows it.

    A field that its revision cannot ask for is left out if it is not required: its default is filled in afterwards.

    Args:
        raw: The schema.
        fields: Its fields (`fields_of`).
        revision: Revision of the host; one that has forms.

    Returns:
        The schema; or which sort of field it cannot do without and the revision does not have.
    """
    form = FORMS[revision]
    if form == _ALL:
        return raw
    # A revision that knows less than all has no name for the dialect either.
    schema: dict[str, object] = {name: value for name, value in members_of(raw).items() if name != "$schema"}
    required = _required(members_of(raw))
    kept: dict[str, object] = {}
    for name, field in fields.items():
        if text(field.get("type")) == "array" and not form.many:
            if name in required:
                return Bad(BAD_PARAMS, "requestedSchema: the host's revision has no choice of several options")
            continue
        kept[name] = _limited_field(field, form)
    schema["properties"] = kept
    return schema


def filled(fields: Mapping[str, Field], content: Mapping[str, Raw]) -> dict[str, Raw]:
    """What was filled in, with the default of every field that was left out. What was given is never overwritten."""
    found = {name: raw for name, raw in content.items() if raw != _NULL}
    for name, field in fields.items():
        default = field.get("default")
        if name not in found and default is not None and _value(default) is not None:
            found[name] = default
    return found


def unfit(content: Mapping[str, Raw], revision: str) -> str:
    """What in the content of an accepted form has no place in it, at the upstream's revision; empty if nothing."""
    form = FORMS[revision]
    for raw in content.values():
        value = None if raw == _NULL else _value(raw)
        if value is None and raw != _NULL:
            return "content: texts, numbers, booleans and arrays of texts belong here"
        if isinstance(value, list) and not form.many:
            return "content: an array, where the upstream's revision has none"
    return ""


def _value(raw: Raw) -> object:
    try:
        return _read_value(raw)
    except msgspec.DecodeError:
        return None


def _required(schema: Mapping[str, Raw]) -> frozenset[str]:
    try:
        return frozenset(_read_texts(schema.get("required", b"[]")))
    except msgspec.DecodeError:
        return frozenset()


def _limited_field(field: Field, form: Form) -> dict[str, object]:
    new: dict[str, object] = dict(field)
    if "default" in new and text(field.get("type")) not in form.defaults:
        del new["default"]
    if "oneOf" in new and not form.titled:
        try:
            options = _read_options(field["oneOf"])
        except msgspec.DecodeError:
            return new
        del new["oneOf"]
        new |= {"enum": [option.const for option in options], "enumNames": [option.title for option in options]}
    return new
