"""The messages of a sampling, and what a model answered, spelled for a revision. Sans-IO.

Blocks about tools (``tool_use``, ``tool_result``) pass as they came: they are between the upstream and the model.

Source: client/sampling of every revision (``SamplingMessage``, ``CreateMessageResult``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from troth.bridge.tree import MOST, Job, members_of, text, tree
from troth.results.spelling import spelled

if TYPE_CHECKING:
    from collections.abc import Mapping

MANY: Final = frozenset({"2025-11-25", "2026-07-28"})
"""Revisions in which a message may have several blocks, blocks about tools, and ``_meta``."""

OF_TOOLS: Final = frozenset({"tool_result", "tool_use"})
"""Blocks that only those may be sent who declared ``sampling.tools``."""

_LIST, _OBJECT = b"[{"
_read_items = msgspec.json.Decoder(list[Raw]).decode
_read_objects = msgspec.json.Decoder(list[dict[str, Raw]]).decode


def blocks_of(raw: Raw | None) -> list[Raw] | None:
    """The content blocks of a message, of one or many; None for what is neither an object nor an array of objects."""
    if raw is None:
        return None
    start = memoryview(raw)[0]
    items = _read_items(raw) if start == _LIST else [raw]
    return items if all(memoryview(item)[0] == _OBJECT for item in items) else None


def uses_tools(params: Mapping[str, Raw]) -> bool | str:
    """Whether a sampling has to do with tools; or what is wrong with it, in words.

    Args:
        params: Its params, without members that the revision of the upstream does not define.
    """
    try:
        messages = _read_objects(params.get("messages", b""))
    except msgspec.DecodeError:
        return "params: messages: an array of objects belongs here"
    found = "tools" in params or "toolChoice" in params
    left = MOST
    for message in messages:
        blocks = blocks_of(message.get("content"))
        if blocks is None or text(message.get("role")) is None:
            return "params: messages: a message has a role, and content blocks"
        left -= 1 + len(blocks)
        if left < 0:
            return f"params: messages: more than {MOST} parts"
        found = found or any(block_type(block) in OF_TOOLS for block in blocks)
    if "tools" in params:
        try:
            _read_objects(params["tools"])
        except msgspec.DecodeError:
            return "params: tools: an array of objects belongs here"
    return found


def messages_for(raw: Raw, revision: str) -> list[dict[str, object]]:
    """Messages as a revision has them. Where it has one block in each, a message of several becomes several.

    Args:
        raw: What `uses_tools` found nothing wrong with.
        revision: Revision of the host.
    """
    found: list[dict[str, object]] = []
    for message in _read_objects(raw):
        content = message["content"]
        if revision in MANY:
            new = [_block(block, revision) for block in blocks_of(content) or ()]
            found.append({**message, "content": new if memoryview(content)[0] == _LIST else new[0]})
            continue
        for block in blocks_of(content) or ():
            rest = {name: value for name, value in message.items() if name != "_meta"}
            found.append({**rest, "content": _block(block, revision)})
    return found


def tools_for(raw: Raw, revision: str) -> object:
    """Tools that a model may use, as a revision has them."""
    job = Job("", inline=False, target=revision)
    return spelled(tree(raw, "Tool", job), "Tool", revision)


def content_for(raw: Raw, revision: str) -> object:
    """What a model answered, as the revision of the upstream has it.

    Where that has one block, texts become one text, a line each; without texts the first block stands for all.

    Args:
        raw: One block or several, of objects.
        revision: Revision of the upstream.
    """
    blocks = blocks_of(raw) or []
    if revision in MANY:
        new = [_block(block, revision) for block in blocks]
        return new if memoryview(raw)[0] == _LIST else new[0]
    texts = [text(members_of(block).get("text")) or "" for block in blocks if block_type(block) == "text"]
    if len(blocks) > 1 and texts:
        return {"type": "text", "text": "\n".join(texts)}
    return _block(blocks[0], revision) if blocks else {"type": "text", "text": ""}


def block_type(block: Raw) -> str | None:
    """The type of a content block."""
    return text(members_of(block).get("type"))


def _block(block: Raw, revision: str) -> Any:
    if block_type(block) in OF_TOOLS:
        return block
    opened = tree(block, "ContentBlock", Job("", inline=False, target=revision))
    return spelled(opened, "ContentBlock", revision)
