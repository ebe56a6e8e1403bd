"""Forms that upstreams ask for: what their fields are, and whether an answer fits. For people and for hosts' answers.

A schema of a stranger is reduced to the keywords that forms have before anything is held against it. So nothing in it
is fetched, nothing in it recurses, and no pattern of its making runs: the time is bounded by its size and the answer's.

Source: client/elicitation of 2025-06-18 to 2026-07-28, requested schema (``PrimitiveSchemaDefinition``).
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from msgspec import Raw

from troth.bridge.fields import fields_of, filled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

LARGEST: Final = 256 * 1024
"""Bytes of the largest schema or answer that is looked at."""
FIELDS: Final = 256
"""Fields of the largest form."""
OPTIONS: Final = 1024
"""Options of one field."""

TYPES: Final = ("string", "integer", "number", "boolean", "array")

_KEYWORDS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "enum": list,
    "const": str,
    "minLength": int,
    "maxLength": int,
    "minimum": (int, float),
    "maximum": (int, float),
    "minItems": int,
    "maxItems": int,
    "format": str,
}
"""Keywords of a field that decide, and the type of their value; one of another type is left out."""

_MORE: Final[Mapping[str, Any]] = {"type": ["string", "number", "boolean", "array"], "items": {"type": "string"}}
"""What a member is that no field asks for. Source: schema, ElicitResult: ``content``."""

_YES: Final = {"true": True, "yes": True, "y": True, "1": True, "false": False, "no": False, "n": False, "0": False}


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a form.

    Attributes:
        name: Its name in the answer.
        title: What a person reads; the name if there is no title.
        description: More words; empty for none.
        type: Of `TYPES`.
        options: Values to choose from, each with its title; empty where anything of the type is taken.
        required: Whether the answer must have it.
        default: What is proposed; None for nothing.
    """

    name: str
    title: str
    description: str = ""
    type: str = "string"
    options: tuple[tuple[str, str], ...] = ()
    required: bool = False
    default: object = None


def fields(schema: object) -> tuple[Field, ...]:
    """The fields of a requested schema, in its order; what cannot be read of it is left out.

    Args:
        schema: The schema as a JSON value.
    """
    whole = _object(schema)
    required = {name for name in _list(whole.get("required")) if isinstance(name, str)}
    return tuple(_field(name, _object(value), name in required) for name, value in _properties(whole).items())


def check(schema: Raw, content: Raw) -> str:
    """What is wrong with an answer to a form; empty if nothing is.

    Whoever answers, the rule is one: fields that are left out or null have their defaults, and members that the form
    does not ask for are taken where its schema does not forbid them, of the types that answers have.

    Args:
        schema: The requested schema.
        content: The answer: an object with a value per field.
    """
    if len(bytes(schema)) > LARGEST or len(bytes(content)) > LARGEST:
        return f"the form or its answer is larger than {LARGEST} bytes"
    try:
        fields = fields_of(schema)
        given = filled(fields if isinstance(fields, dict) else {}, msgspec.json.decode(content, type=dict[str, Raw]))
        return problem(msgspec.json.decode(schema), msgspec.json.decode(msgspec.json.encode(given)))
    except msgspec.ValidationError:
        return "an object with a value per field belongs here"
    except msgspec.DecodeError:
        return "the form or its answer is no JSON that can be read"


def problem(schema: object, content: object) -> str:
    """What is wrong with an answer to a form, both as JSON values; empty if nothing is."""
    from jsonschema import Draft202012Validator, FormatChecker
    from referencing import Registry

    checker = FormatChecker(())
    for name, (test, errors) in _FORMATS.items():
        checker.checks(name, errors)(test)
    registry: Registry[Any] = Registry()
    validator = Draft202012Validator(_reduced(schema), registry=registry, format_checker=checker)
    errors = cast("Any", validator).iter_errors(content)
    first = next(iter(errors), None)
    if first is None:
        return ""
    where = ".".join(str(step) for step in first.absolute_path)
    words = _shown(str(first.message))
    return f"{_shown(where)}: {words}" if where else words


def parse(field: Field, text: str) -> object:
    """What a person typed for a field, as the type of the field; the text itself where it is none.

    Several options are separated by commas. Numbers are as in JSON; yes and no stand for true and false.
    """
    match field.type:
        case "boolean":
            return _YES.get(text.strip().lower(), text)
        case "integer" | "number":
            return _number(text.strip(), whole=field.type == "integer")
        case "array":
            return [_option(field, item.strip()) for item in text.split(",") if item.strip()]
        case _:
            return _option(field, text)


def _number(text: str, *, whole: bool) -> object:
    try:
        value = msgspec.json.decode(text, type=int | float)
    except msgspec.MsgspecError:
        return text
    return int(value) if whole and isinstance(value, float) and value.is_integer() else value


def _option(field: Field, text: str) -> str:
    """The value of an option that is named by its value or its title."""
    values = {value for value, _ in field.options}
    return text if text in values else next((value for value, title in field.options if title == text), text)


# Reading what strangers wrote


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    return dict([*_object(schema.get("properties")).items()][:FIELDS])


def _field(name: str, field: Mapping[str, Any], required: bool) -> Field:
    kind = field.get("type")
    return Field(
        name=name,
        title=_text(field.get("title")) or name,
        description=_text(field.get("description")),
        type=kind if kind in TYPES else "string",
        options=tuple(_options(_object(field.get("items")) if kind == "array" else field)),
        required=required,
        default=field.get("default"),
    )


def _options(field: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """Options in any spelling: texts, texts with a list of names beside, or each with its title."""
    titled = _list(field.get("oneOf")) or _list(field.get("anyOf"))
    if titled:
        pairs = [(_object(option).get("const"), _object(option).get("title")) for option in titled[:OPTIONS]]
        return [(value, _text(title) or value) for value, title in pairs if isinstance(value, str)]
    values = [value for value in _list(field.get("enum"))[:OPTIONS] if isinstance(value, str)]
    names = _list(field.get("enumNames"))
    named = dict(zip(values, names, strict=False))
    return [(value, _text(named.get(value)) or value) for value in values]


def _reduced(schema: object) -> dict[str, Any]:
    """A schema of the keywords of forms alone, of three levels at most."""
    whole = _object(schema)
    properties = {name: _reduced_field(_object(field)) for name, field in _properties(whole).items()}
    required = [name for name in _list(whole.get("required"))[:FIELDS] if isinstance(name, str)]
    more = False if whole.get("additionalProperties") is False else _MORE
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": more}


def _reduced_field(field: Mapping[str, Any]) -> dict[str, Any]:
    kind = field.get("type")
    reduced = {**_kept(field), "type": kind if kind in TYPES else "string"}
    if kind == "array":
        reduced["items"] = {**_kept(_object(field.get("items"))), "type": "string"}
    return reduced


def _kept(field: Mapping[str, Any]) -> dict[str, Any]:
    kept = {
        name: field[name]
        for name, kind in _KEYWORDS.items()
        if isinstance(field.get(name), kind) and not isinstance(field.get(name), bool)
    }
    options = [value for value, _ in _options(field)]
    return {**kept, "enum": options} if options else {name: kept[name] for name in kept if name != "enum"}


def _is_mail(value: object) -> bool:
    return not isinstance(value, str) or re.fullmatch(r"[^@\s]{1,64}@[^@\s]{1,255}", value) is not None


def _is_uri(value: object) -> bool:
    return not isinstance(value, str) or re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]+", value) is not None


def _is_date(value: object) -> bool:
    return not isinstance(value, str) or (len(value) == 10 and bool(date.fromisoformat(value)))


def _is_moment(value: object) -> bool:
    return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None


_FORMATS: Final[Mapping[str, tuple[Callable[[object], bool], type[Exception] | tuple[()]]]] = {
    "email": (_is_mail, ()),
    "uri": (_is_uri, ()),
    "date": (_is_date, ValueError),
    "date-time": (_is_moment, ValueError),
}


def _shown(text: str, most: int = 200) -> str:
    """Words that may hold a stranger's: short, and without what a terminal would obey."""
    clean = "".join(letter if letter.isprintable() else "?" for letter in text[:most])
    return clean if len(text) <= most else f"{clean}..."
