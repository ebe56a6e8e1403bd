"""The builders of ``troth.results``, handing out models of the SDK (``mcp_types``) in place of dicts.

Same names, same arguments: ``typed.call_tool_result(text="a")`` is an ``mcp_types.CallToolResult``. The SDK has one
family of models for all revisions, so what a revision spells down is simply unset.

Raises:
    ImportError: On import, where the SDK is not installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar

from troth import results

try:
    import mcp_types
    from pydantic import TypeAdapter
except ImportError as error:
    raise ImportError("troth.results.typed needs the MCP SDK; install it with: pip install 'troth[mcp]'") from error

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")


def _typed(builder: Callable[P, results.Object], adapter: TypeAdapter[T]) -> Callable[P, T]:
    def build(*args: P.args, **kwargs: P.kwargs) -> T:
        return adapter.validate_python(builder(*args, **kwargs))

    build.__doc__ = builder.__doc__
    build.__name__ = build.__qualname__ = builder.__name__
    return build


_ContentBlock: TypeAdapter[mcp_types.ContentBlock] = TypeAdapter(mcp_types.ContentBlock)
_Contents: TypeAdapter[mcp_types.TextResourceContents | mcp_types.BlobResourceContents] = TypeAdapter(
    mcp_types.TextResourceContents | mcp_types.BlobResourceContents
)

call_tool_result = _typed(results.call_tool_result, TypeAdapter(mcp_types.CallToolResult))
content_block = _typed(results.content_block, _ContentBlock)
discover_result = _typed(results.discover_result, TypeAdapter(mcp_types.DiscoverResult))
get_prompt_result = _typed(results.get_prompt_result, TypeAdapter(mcp_types.GetPromptResult))
initialize_result = _typed(results.initialize_result, TypeAdapter(mcp_types.InitializeResult))
list_prompts_result = _typed(results.list_prompts_result, TypeAdapter(mcp_types.ListPromptsResult))
list_resource_templates_result = _typed(
    results.list_resource_templates_result, TypeAdapter(mcp_types.ListResourceTemplatesResult)
)
list_resources_result = _typed(results.list_resources_result, TypeAdapter(mcp_types.ListResourcesResult))
list_tools_result = _typed(results.list_tools_result, TypeAdapter(mcp_types.ListToolsResult))
read_resource_result = _typed(results.read_resource_result, TypeAdapter(mcp_types.ReadResourceResult))
resource_contents = _typed(results.resource_contents, _Contents)
server_info = _typed(results.server_info, TypeAdapter(mcp_types.Implementation))

__all__ = [
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
]
