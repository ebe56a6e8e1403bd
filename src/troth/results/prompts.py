"""What ``prompts/get`` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Unpack, cast

from troth.results.content import (
    KINDS,
    ContentParts,
    JsonObject,
    any_block,
    as_pair,
    block_of,
    near,
    one_meta,
)
from troth.results.shapes import members, shaped
from troth.results.spelling import Object, finish, known_revision
from troth.results.table import MEMBERS
from troth.results.values import is_mapping, is_model, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

_WHERE = "get_prompt_result"
_ROLES: Final = ("user", "assistant")
_NAMES: Final = (*_ROLES, *KINDS)

_REFUSED: Final[Mapping[str, str]] = {
    "error": "a prompt has no way to report an error; raise it, so that the request fails",
    "data": "a prompt has no structured content; write it as text",
    "_data": "a prompt has no structured content; write it as text",
}
"""Shorthands of tool results that a prompt cannot carry, and why."""


class PromptParts(ContentParts, total=False):
    """The shorthands of a prompt. Those of content blocks make messages of the user."""

    user: object
    """A message of the user: a string, a pair or a block."""
    assistant: object
    """A message of the assistant: a string, a pair or a block."""


def get_prompt_result(
    *messages: object,
    description: str | None = None,
    meta: JsonObject | None = None,
    revision: str | None = None,
    **shorthands: Unpack[PromptParts],
) -> Object:
    """Builds the result of ``prompts/get``.

    Keywords: ``get_prompt_result(assistant="You are kind.", text=question)``. Pairs, in any number:
    ``get_prompt_result(("user", "a"), ("assistant", ("image", ("image/png", data))), ("text", "b"))``. Blocks are
    messages of the user; mappings and models with ``role`` and ``content`` are messages as they are. The messages keep
    the order of the call, positions before keywords.

    Args:
        messages: Pairs, blocks, strings and whole messages.
        description: What the prompt is for.
        meta: ``_meta`` of the result; ``_meta=`` means the same.
        revision: The protocol revision in force; None gives the newest shape with every member kept.
        shorthands: See ``PromptParts`` and ``ContentParts``.

    Returns:
        A new dict.

    Raises:
        TypeError: A value of a wrong type.
        ValueError: An unknown shorthand or revision, an error or structured data, or a resource link where the
            revision has none (before 2025-06-18).
    """
    known_revision(revision)
    given = dict(cast("Mapping[str, object]", shorthands))
    found_meta = one_meta(meta, given, _WHERE)
    parts = (*messages, *given.items())
    result = shaped({"description": description, "_meta": found_meta}, "GetPromptResult", _WHERE)
    result["messages"] = [_message(part, revision) for part in parts]
    return finish(result, "GetPromptResult", revision)


def _message(part: object, revision: str | None) -> Object:
    pair = as_pair(part)
    if pair is not None:
        kind, value = pair
        if kind in _REFUSED:
            raise ValueError(f"{_WHERE}: {kind}: {_REFUSED[kind]}")
        if kind in _ROLES:
            return {"role": kind, "content": _linkless(any_block(value, f"{_WHERE}: {kind}"), revision)}
        if kind not in KINDS:
            raise ValueError(f"{_WHERE} has no shorthand {shown(kind)}{near(kind, _NAMES)}")
        return {"role": "user", "content": _linkless(block_of(kind, value, _WHERE), revision)}
    if is_mapping(part) or is_model(part):
        raw = members(part, f"{_WHERE}: message")
        if "role" in raw:
            block = any_block(raw.get("content"), f"{_WHERE}: content")
            return shaped({**raw, "content": _linkless(block, revision)}, "PromptMessage", f"{_WHERE}: message")
    return {"role": "user", "content": _linkless(any_block(part, _WHERE), revision)}


def _linkless(block: Object, revision: str | None) -> Object:
    """The block, unless it is a link that the revision does not have."""
    if block.get("type") == "resource_link" and revision is not None and ("ResourceLink", revision) not in MEMBERS:
        raise ValueError(
            f"{_WHERE}: protocol revision {revision} has no resource links; embed the resource or write its URI as text"
        )
    return block
