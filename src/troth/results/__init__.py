"""Builders of everything that a server returns, spelled for the protocol revision in force.

Every builder gives a new dict of plain JSON values and changes none of its arguments. With ``revision=None`` the
result has the newest shape and keeps every member it was given, which is what the SDK's servers expect: they spell it
for the peer themselves. Name a revision to have it spelled here. ``troth.results.typed`` has the same builders and
hands out models of the SDK.

Bad arguments raise ``TypeError`` or ``ValueError`` with a sentence that says what was wrong, where, and what to do.
"""

from troth.results.calls import CallParts, call_tool_result
from troth.results.content import ContentParts, JsonObject, content_block
from troth.results.handshake import discover_result, initialize_result, server_info
from troth.results.lists import (
    list_prompts_result,
    list_resource_templates_result,
    list_resources_result,
    list_tools_result,
)
from troth.results.prompts import PromptParts, get_prompt_result
from troth.results.resources import CacheScope, read_resource_result, resource_contents
from troth.results.spelling import Object, spell

__all__ = [
    "CacheScope",
    "CallParts",
    "ContentParts",
    "JsonObject",
    "Object",
    "PromptParts",
    "call_tool_result",
    "content_block",
    "discover_result",
    "get_prompt_result",
    "initialize_result",
    "list_prompts_result",
    "list_resource_templates_result",
    "list_resources_result",
    "list_tools_result",
    "read_resource_result",
    "resource_contents",
    "server_info",
    "spell",
]
