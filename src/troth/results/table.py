"""Which members each definition of a server's results has, revision by revision. Data only; ``spelling`` applies it.

A definition without an entry for a revision does not exist there. Members that no revision defines are not listed:
every object of the protocol is open. Source: ``schema.json`` of the five revisions, compared in both directions by a
test.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_TABLE: Final[Mapping[str, Mapping[str, str]]] = {
    "Annotations": {
        "2024-11-05": "audience priority",
        "2025-03-26": "audience priority",
        "2025-06-18": "audience lastModified priority",
        "2025-11-25": "audience lastModified priority",
        "2026-07-28": "audience lastModified priority",
    },
    "AudioContent": {
        "2025-03-26": "annotations data mimeType type",
        "2025-06-18": "_meta annotations data mimeType type",
        "2025-11-25": "_meta annotations data mimeType type",
        "2026-07-28": "_meta annotations data mimeType type",
    },
    "BlobResourceContents": {
        "2024-11-05": "blob mimeType uri",
        "2025-03-26": "blob mimeType uri",
        "2025-06-18": "_meta blob mimeType uri",
        "2025-11-25": "_meta blob mimeType uri",
        "2026-07-28": "_meta blob mimeType uri",
    },
    "CallToolResult": {
        "2024-11-05": "_meta content isError",
        "2025-03-26": "_meta content isError",
        "2025-06-18": "_meta content isError structuredContent",
        "2025-11-25": "_meta content isError structuredContent",
        "2026-07-28": "_meta content isError resultType structuredContent",
    },
    "CompleteResult": {
        "2024-11-05": "_meta completion",
        "2025-03-26": "_meta completion",
        "2025-06-18": "_meta completion",
        "2025-11-25": "_meta completion",
        "2026-07-28": "_meta completion resultType",
    },
    "DiscoverResult": {
        "2026-07-28": "_meta cacheScope capabilities instructions resultType supportedVersions ttlMs",
    },
    "EmbeddedResource": {
        "2024-11-05": "annotations resource type",
        "2025-03-26": "annotations resource type",
        "2025-06-18": "_meta annotations resource type",
        "2025-11-25": "_meta annotations resource type",
        "2026-07-28": "_meta annotations resource type",
    },
    "GetPromptResult": {
        "2024-11-05": "_meta description messages",
        "2025-03-26": "_meta description messages",
        "2025-06-18": "_meta description messages",
        "2025-11-25": "_meta description messages",
        "2026-07-28": "_meta description messages resultType",
    },
    "Icon": {
        "2025-11-25": "mimeType sizes src theme",
        "2026-07-28": "mimeType sizes src theme",
    },
    "ImageContent": {
        "2024-11-05": "annotations data mimeType type",
        "2025-03-26": "annotations data mimeType type",
        "2025-06-18": "_meta annotations data mimeType type",
        "2025-11-25": "_meta annotations data mimeType type",
        "2026-07-28": "_meta annotations data mimeType type",
    },
    "Implementation": {
        "2024-11-05": "name version",
        "2025-03-26": "name version",
        "2025-06-18": "name title version",
        "2025-11-25": "description icons name title version websiteUrl",
        "2026-07-28": "description icons name title version websiteUrl",
    },
    "InitializeResult": {
        "2024-11-05": "_meta capabilities instructions protocolVersion serverInfo",
        "2025-03-26": "_meta capabilities instructions protocolVersion serverInfo",
        "2025-06-18": "_meta capabilities instructions protocolVersion serverInfo",
        "2025-11-25": "_meta capabilities instructions protocolVersion serverInfo",
    },
    "ListPromptsResult": {
        "2024-11-05": "_meta nextCursor prompts",
        "2025-03-26": "_meta nextCursor prompts",
        "2025-06-18": "_meta nextCursor prompts",
        "2025-11-25": "_meta nextCursor prompts",
        "2026-07-28": "_meta cacheScope nextCursor prompts resultType ttlMs",
    },
    "ListResourceTemplatesResult": {
        "2024-11-05": "_meta nextCursor resourceTemplates",
        "2025-03-26": "_meta nextCursor resourceTemplates",
        "2025-06-18": "_meta nextCursor resourceTemplates",
        "2025-11-25": "_meta nextCursor resourceTemplates",
        "2026-07-28": "_meta cacheScope nextCursor resourceTemplates resultType ttlMs",
    },
    "ListResourcesResult": {
        "2024-11-05": "_meta nextCursor resources",
        "2025-03-26": "_meta nextCursor resources",
        "2025-06-18": "_meta nextCursor resources",
        "2025-11-25": "_meta nextCursor resources",
        "2026-07-28": "_meta cacheScope nextCursor resources resultType ttlMs",
    },
    "ListToolsResult": {
        "2024-11-05": "_meta nextCursor tools",
        "2025-03-26": "_meta nextCursor tools",
        "2025-06-18": "_meta nextCursor tools",
        "2025-11-25": "_meta nextCursor tools",
        "2026-07-28": "_meta cacheScope nextCursor resultType tools ttlMs",
    },
    "Prompt": {
        "2024-11-05": "arguments description name",
        "2025-03-26": "arguments description name",
        "2025-06-18": "_meta arguments description name title",
        "2025-11-25": "_meta arguments description icons name title",
        "2026-07-28": "_meta arguments description icons name title",
    },
    "PromptArgument": {
        "2024-11-05": "description name required",
        "2025-03-26": "description name required",
        "2025-06-18": "description name required title",
        "2025-11-25": "description name required title",
        "2026-07-28": "description name required title",
    },
    "PromptMessage": {
        "2024-11-05": "content role",
        "2025-03-26": "content role",
        "2025-06-18": "content role",
        "2025-11-25": "content role",
        "2026-07-28": "content role",
    },
    "ReadResourceResult": {
        "2024-11-05": "_meta contents",
        "2025-03-26": "_meta contents",
        "2025-06-18": "_meta contents",
        "2025-11-25": "_meta contents",
        "2026-07-28": "_meta cacheScope contents resultType ttlMs",
    },
    "Resource": {
        "2024-11-05": "annotations description mimeType name size uri",
        "2025-03-26": "annotations description mimeType name size uri",
        "2025-06-18": "_meta annotations description mimeType name size title uri",
        "2025-11-25": "_meta annotations description icons mimeType name size title uri",
        "2026-07-28": "_meta annotations description icons mimeType name size title uri",
    },
    "ResourceLink": {
        "2025-06-18": "_meta annotations description mimeType name size title type uri",
        "2025-11-25": "_meta annotations description icons mimeType name size title type uri",
        "2026-07-28": "_meta annotations description icons mimeType name size title type uri",
    },
    "ResourceTemplate": {
        "2024-11-05": "annotations description mimeType name uriTemplate",
        "2025-03-26": "annotations description mimeType name uriTemplate",
        "2025-06-18": "_meta annotations description mimeType name title uriTemplate",
        "2025-11-25": "_meta annotations description icons mimeType name title uriTemplate",
        "2026-07-28": "_meta annotations description icons mimeType name title uriTemplate",
    },
    "Result": {
        "2024-11-05": "_meta",
        "2025-03-26": "_meta",
        "2025-06-18": "_meta",
        "2025-11-25": "_meta",
        "2026-07-28": "_meta resultType",
    },
    "ResultMetaObject": {
        "2024-11-05": "",
        "2025-03-26": "",
        "2025-06-18": "",
        "2025-11-25": "",
        "2026-07-28": "io.modelcontextprotocol/serverInfo",
    },
    "TextContent": {
        "2024-11-05": "annotations text type",
        "2025-03-26": "annotations text type",
        "2025-06-18": "_meta annotations text type",
        "2025-11-25": "_meta annotations text type",
        "2026-07-28": "_meta annotations text type",
    },
    "TextResourceContents": {
        "2024-11-05": "mimeType text uri",
        "2025-03-26": "mimeType text uri",
        "2025-06-18": "_meta mimeType text uri",
        "2025-11-25": "_meta mimeType text uri",
        "2026-07-28": "_meta mimeType text uri",
    },
    "Tool": {
        "2024-11-05": "description inputSchema name",
        "2025-03-26": "annotations description inputSchema name",
        "2025-06-18": "_meta annotations description inputSchema name outputSchema title",
        "2025-11-25": "_meta annotations description execution icons inputSchema name outputSchema title",
        "2026-07-28": "_meta annotations description icons inputSchema name outputSchema title",
    },
    "ToolAnnotations": {
        "2025-03-26": "destructiveHint idempotentHint openWorldHint readOnlyHint title",
        "2025-06-18": "destructiveHint idempotentHint openWorldHint readOnlyHint title",
        "2025-11-25": "destructiveHint idempotentHint openWorldHint readOnlyHint title",
        "2026-07-28": "destructiveHint idempotentHint openWorldHint readOnlyHint title",
    },
    "ToolExecution": {
        "2025-11-25": "taskSupport",
    },
}

MEMBERS: Final[Mapping[tuple[str, str], frozenset[str]]] = MappingProxyType(
    {
        (definition, revision): frozenset(words.split())
        for definition, rows in _TABLE.items()
        for revision, words in rows.items()
    }
)
"""Members by (definition, revision); a missing key means: not in this revision."""

KNOWN: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        definition: frozenset(word for words in rows.values() for word in words.split())
        for definition, rows in _TABLE.items()
    }
)
"""Members that any revision gives a definition. A member outside this set is nobody's, and is left alone."""

CHILDREN: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("AudioContent", "annotations"): "Annotations",
        ("CallToolResult", "_meta"): "ResultMetaObject",
        ("CallToolResult", "content"): "ContentBlock",
        ("CompleteResult", "_meta"): "ResultMetaObject",
        ("DiscoverResult", "_meta"): "ResultMetaObject",
        ("DiscoverResult", "capabilities"): "ServerCapabilities",
        ("EmbeddedResource", "annotations"): "Annotations",
        ("EmbeddedResource", "resource"): "ResourceContents",
        ("GetPromptResult", "_meta"): "ResultMetaObject",
        ("GetPromptResult", "messages"): "PromptMessage",
        ("ImageContent", "annotations"): "Annotations",
        ("Implementation", "icons"): "Icon",
        ("InitializeResult", "_meta"): "ResultMetaObject",
        ("InitializeResult", "capabilities"): "ServerCapabilities",
        ("InitializeResult", "serverInfo"): "Implementation",
        ("ListPromptsResult", "_meta"): "ResultMetaObject",
        ("ListPromptsResult", "prompts"): "Prompt",
        ("ListResourceTemplatesResult", "_meta"): "ResultMetaObject",
        ("ListResourceTemplatesResult", "resourceTemplates"): "ResourceTemplate",
        ("ListResourcesResult", "_meta"): "ResultMetaObject",
        ("ListResourcesResult", "resources"): "Resource",
        ("ListToolsResult", "_meta"): "ResultMetaObject",
        ("ListToolsResult", "tools"): "Tool",
        ("Prompt", "arguments"): "PromptArgument",
        ("Prompt", "icons"): "Icon",
        ("PromptMessage", "content"): "ContentBlock",
        ("ReadResourceResult", "_meta"): "ResultMetaObject",
        ("ReadResourceResult", "contents"): "ResourceContents",
        ("Resource", "annotations"): "Annotations",
        ("Resource", "icons"): "Icon",
        ("ResourceLink", "annotations"): "Annotations",
        ("ResourceLink", "icons"): "Icon",
        ("ResourceTemplate", "annotations"): "Annotations",
        ("ResourceTemplate", "icons"): "Icon",
        ("Result", "_meta"): "ResultMetaObject",
        ("ResultMetaObject", "io.modelcontextprotocol/serverInfo"): "Implementation",
        ("TextContent", "annotations"): "Annotations",
        ("Tool", "annotations"): "ToolAnnotations",
        ("Tool", "execution"): "ToolExecution",
        ("Tool", "icons"): "Icon",
    }
)
"""The definition of a member's value, or of its items where the value is an array."""

CONTENT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "text": "TextContent",
        "image": "ImageContent",
        "audio": "AudioContent",
        "resource_link": "ResourceLink",
        "resource": "EmbeddedResource",
    }
)
"""The content blocks of tool results and prompts: value of ``type`` -> definition."""

_COMPLETE: Final[Mapping[str, str | int]] = MappingProxyType({"resultType": "complete"})
_CACHEABLE: Final[Mapping[str, str | int]] = MappingProxyType(
    {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
)

DEFAULTS: Final[Mapping[tuple[str, str], Mapping[str, str | int]]] = MappingProxyType(
    {
        ("CallToolResult", "2026-07-28"): _COMPLETE,
        ("CompleteResult", "2026-07-28"): _COMPLETE,
        ("DiscoverResult", "2026-07-28"): _CACHEABLE,
        ("GetPromptResult", "2026-07-28"): _COMPLETE,
        ("ListPromptsResult", "2026-07-28"): _CACHEABLE,
        ("ListResourceTemplatesResult", "2026-07-28"): _CACHEABLE,
        ("ListResourcesResult", "2026-07-28"): _CACHEABLE,
        ("ListToolsResult", "2026-07-28"): _CACHEABLE,
        ("ReadResourceResult", "2026-07-28"): _CACHEABLE,
        ("Result", "2026-07-28"): _COMPLETE,
    }
)
"""What a revision requires beyond the payload. Stale at once and for one asker only: nothing is promised unasked."""

OPEN_SHAPES: Final[frozenset[str]] = frozenset({"2026-07-28"})
"""Revisions where structured content is any JSON and an output schema any JSON Schema; an object elsewhere."""
