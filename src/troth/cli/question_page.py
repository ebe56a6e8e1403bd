"""Questions as text for people at a terminal. All that servers said is cleaned first."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from troth.audit.report.clean import line
from troth.gateway.forms import fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LONGEST = 1000
"""Characters of one thing that a server said."""
ADDRESS = 8192
"""Characters of an address, which is shown whole or not at all."""
SHORT = 60
"""Characters of a message in the list."""


def said(text: object, most: int = LONGEST) -> str:
    """Words of a stranger on one line, without what a terminal would obey."""
    return line(text, most) if isinstance(text, str) else ""


def rows(questions: Sequence[Mapping[str, Any]]) -> str:
    """Questions as a table, one a line."""
    if not questions:
        return "No question waits.\n"
    table = [("ID", "SERVER", "FOR", "KIND", "LEFT", "MESSAGE")]
    for one in questions:
        message = said(_params(one).get("message"), SHORT) or said(one.get("kind"))
        table.append(
            (
                said(one["id"]),
                said(one.get("upstream"), 30),
                said(one.get("principal"), 30),
                said(one.get("kind"), 10),
                _left(one),
                message,
            )
        )
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table)
    return "".join(f"{text.rstrip()}\n" for text in lines)


def page(question: Mapping[str, Any]) -> str:
    """One question in full."""
    params = _params(question)
    head = (
        f"{said(question['id'])}: {said(question.get('upstream'))} asks ({said(question.get('kind'))}), "
        f"for {said(question.get('principal'))}, {_left(question)}"
    )
    lines = [head, f"  {said(params.get('message'))}" if params.get("message") else ""]
    lines += _ABOUT.get(str(question.get("kind")), _about_result)(params)
    if question.get("why"):
        lines.append(f"  {said(question['why'])}")
    return "".join(f"{text}\n" for text in lines if text)


def _about_form(params: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for field in fields(params.get("requestedSchema")):
        options = ", ".join(said(value, SHORT) for value, _ in field.options)
        facts = [field.type, "required" if field.required else "", f"one of {options}" if options else ""]
        words = f": {said(field.title)}" if field.title != field.name else ""
        lines.append(f"  {said(field.name)} ({', '.join(fact for fact in facts if fact)}){words}")
    return lines


def _about_visit(params: Mapping[str, Any]) -> list[str]:
    address = params.get("url")
    if not isinstance(address, str) or len(address) > ADDRESS or said(address, ADDRESS) != address:
        return ["  Its address cannot be shown safely; decline it."]
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:
        host = ""
    return [f"  Host: {said(host)}", f"  Address: {address}", "  Open it only if you trust that host, then answer."]


def _about_result(params: Mapping[str, Any]) -> list[str]:
    messages = params.get("messages")
    return (
        [f"  {said(str(message))}" for message in cast("list[object]", messages)] if isinstance(messages, list) else []
    )


_ABOUT = {"form": _about_form, "url": _about_visit}


def _params(question: Mapping[str, Any]) -> dict[str, Any]:
    params = question.get("params")
    return cast("dict[str, Any]", params) if isinstance(params, dict) else {}


def _left(question: Mapping[str, Any]) -> str:
    """How long there is, or what became of it."""
    state, expires = question.get("state"), question.get("expires")
    if state != "pending" or not isinstance(expires, int | float):
        return said(state)
    return f"{max(expires - time.time(), 0):.0f} s left"
