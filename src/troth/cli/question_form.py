"""A form of a server, filled in at the terminal or from the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import click

from troth.cli.question_page import said
from troth.gateway.forms import fields, parse, problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from troth.gateway.forms import Field


def given(schema: object, texts: Sequence[str]) -> dict[str, Any]:
    """What fields on the command line say.

    Args:
        schema: The requested schema.
        texts: ``NAME=VALUE`` each.

    Raises:
        click.UsageError: One is of another form, or names no field.
    """
    known = {field.name: field for field in fields(schema)}
    content: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            names = ", ".join(said(name) for name in known) or "none"
            raise click.UsageError(f"--field {said(text)}: NAME=VALUE belongs here; the names are: {names}")
        content[name] = parse(known[name], value)
    return content


def fill(schema: object) -> dict[str, Any]:
    """Asks at the terminal for one field after the other, each until it fits. What is not required may stay empty."""
    content: dict[str, Any] = {}
    for field in fields(schema):
        value = _fill(field, schema)
        if value is not None:
            content[field.name] = value
    return content


def _fill(field: Field, schema: object) -> object:
    for line in _about(field):
        click.echo(line)
    default = _default(field)
    while True:
        text: str = click.prompt(said(field.title), default=default, show_default=bool(default))
        if not text and not field.required:
            return None
        # What is shown of a proposal may be less than it is: without line breaks, or with commas in its items.
        proposed = bool(default) and text == default and not _wrong(field.name, schema, field.default)
        value = field.default if proposed else parse(field, text)
        wrong = _wrong(field.name, schema, value)
        if not wrong:
            return value
        click.echo(f"  {wrong}")


def _about(field: Field) -> list[str]:
    lines = ["", f"  {said(field.description)}"] if field.description else [""]
    lines += [f"  - {said(value)}" + (f": {said(title)}" if title != value else "") for value, title in field.options]
    if field.type == "array":
        lines.append("  (several, with commas between them)")
    return lines


def _default(field: Field) -> str | None:
    """What is proposed; nothing can be proposed for a field that must be filled in and has no default."""
    value = field.default
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ",".join(str(item) for item in cast("list[object]", value))
    if value is None:
        return None if field.required else ""
    return said(str(value))


def _wrong(name: str, schema: object, value: object) -> str:
    """What is wrong with one field, whatever the others are."""
    properties: Any = cast("dict[str, Any]", schema).get("properties") if isinstance(schema, dict) else {}
    return problem({"properties": {name: properties[name]}}, {name: value})
