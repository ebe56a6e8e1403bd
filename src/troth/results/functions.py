"""Describes a plain Python function as a tool."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final, cast, get_args, get_origin, get_type_hints

import msgspec

from troth.results.values import plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from troth.results.spelling import Object

_REFS: Final = "#/$defs/{name}"
_FRAMEWORKS: Final = ("mcp", "fastmcp")


def described(function: Callable[..., object], where: str) -> Object:
    """A tool from a function: its name, its docstring, and its parameters as a JSON Schema.

    Parameters may have any type that msgspec describes (numbers, strings, lists, dicts, literals, enums, dates,
    dataclasses, structs, typed dicts, unions, ``Annotated`` with ``msgspec.Meta`` or a description string) or a
    pydantic model. A parameter without annotation takes anything. The request context of a framework is left out.

    Raises:
        ValueError: No name (a lambda), a parameter that cannot be passed by name, or a type without a JSON Schema.
    """
    name = getattr(function, "__name__", "<no name>")
    if not name.isidentifier():
        raise ValueError(f"{where}: {name} is no name for a tool; define a function, or give a mapping with 'name'")
    where = f"{where} ({name})"
    try:
        hints = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters
    except (NameError, TypeError, ValueError) as error:
        raise ValueError(f"{where}: cannot read its signature: {error}") from error
    schema = _schema([item for item in parameters.values() if not _is_context(hints.get(item.name))], hints, where)
    about = inspect.getdoc(function)
    return {"name": name, **({"description": about} if about else {}), "inputSchema": schema}


def _schema(parameters: list[inspect.Parameter], hints: dict[str, Any], where: str) -> Object:
    properties: Object = {}
    required: list[str] = []
    shared: Object = {}
    extra: Object = {}
    for item in parameters:
        if item.kind is item.VAR_KEYWORD:
            extra["additionalProperties"] = True
            continue
        if item.kind not in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY):
            raise ValueError(f"{where}: parameter {item.name!r} cannot be passed by name; tool arguments are named")
        properties[item.name] = _property(item, hints, shared, where)
        if item.default is item.empty:
            required.append(item.name)
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        **({"$defs": shared} if shared else {}),
        **extra,
    }


def _property(item: inspect.Parameter, hints: dict[str, Any], shared: Object, where: str) -> Object:
    hint = hints.get(item.name, Any)
    try:
        (schema,), components = msgspec.json.schema_components(
            [hint], schema_hook=lambda kind: _model_schema(kind, shared), ref_template=_REFS
        )
    except TypeError as error:
        raise ValueError(
            f"{where}: the type of parameter {item.name!r} has no JSON Schema ({error}); "
            "give the tool as a mapping with 'inputSchema'"
        ) from error
    shared.update(components)
    about = _description(hint)
    default = {} if item.default is item.empty else _default(item.default)
    return {**schema, **({"description": about} if about else {}), **default}


def _model_schema(kind: type, shared: Object) -> Object:
    """The schema of a pydantic model; the models inside it move to the definitions of the tool."""
    if not hasattr(kind, "model_json_schema"):
        raise NotImplementedError
    schema: Object = dict(cast("Any", kind).model_json_schema(ref_template="#/$defs/{model}"))
    shared.update(schema.pop("$defs", {}))
    return schema


def _description(hint: Any) -> str | None:
    for note in getattr(hint, "__metadata__", ()):
        about = note if isinstance(note, str) else getattr(note, "description", None)
        if isinstance(about, str):
            return about
    return None


def _default(value: object) -> Object:
    """The default, where it has a JSON form; it is only a note for the reader."""
    try:
        return {"default": plain(value, "default")}
    except (TypeError, ValueError):
        return {}


def _is_context(hint: Any) -> bool:
    """Whether a framework fills this parameter itself."""
    kinds = [get_origin(hint) or hint, *get_args(hint)]
    bases = [base for kind in kinds for base in getattr(kind, "__mro__", ())]
    return any(base.__name__ == "Context" and base.__module__.split(".")[0] in _FRAMEWORKS for base in bases)
