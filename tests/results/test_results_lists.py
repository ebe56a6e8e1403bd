"""Results of the four list methods."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import fastmcp
import mcp_types
import pytest
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resources import TextResource
from msgspec import Meta
from pydantic import BaseModel, Field
from results_official import NEEDS_SCHEMAS, REVISIONS, check

from troth.results import (
    list_prompts_result,
    list_resource_templates_result,
    list_resources_result,
    list_tools_result,
)

if TYPE_CHECKING:
    from nowhere import Missing

ICON = {"src": "https://a.example/i.png", "sizes": ["48x48"], "theme": "dark"}
NOTES = {"audience": ["user"], "priority": 1, "lastModified": "2026-01-02T12:00:00Z"}
TOOL = {
    "name": "t",
    "title": "T",
    "description": "d",
    "input_schema": {"properties": {"a": True, "b": False, "c": {"type": "string"}}},
    "output_schema": {"type": "object", "properties": {"a": True}},
    "annotations": {"read_only_hint": True, "title": "T"},
    "execution": {"task_support": "optional"},
    "icons": [ICON],
    "meta": {"m": 1},
}
PROMPT = {
    "name": "p",
    "title": "P",
    "arguments": [{"name": "a", "title": "A", "required": True}],
    "icons": [ICON],
    "meta": {},
}
RESOURCE = {
    "name": "r",
    "title": "R",
    "uri": Path("/a b.txt"),
    "mime_type": "text/plain",
    "size": 3,
    "annotations": NOTES,
    "icons": [ICON],
    "meta": {"m": 1},
}
TEMPLATE = {
    "name": "r",
    "title": "R",
    "uri_template": "file:///{a}",
    "mime_type": "text/plain",
    "annotations": NOTES,
    "icons": [ICON],
    "meta": {"m": 1},
}

LISTS = [
    (list_tools_result, "ListToolsResult", "tools", TOOL),
    (list_prompts_result, "ListPromptsResult", "prompts", PROMPT),
    (list_resources_result, "ListResourcesResult", "resources", RESOURCE),
    (list_resource_templates_result, "ListResourceTemplatesResult", "resourceTemplates", TEMPLATE),
]
each_list = pytest.mark.parametrize(("builder", "definition", "member", "item"), LISTS)


@each_list
def test_a_list_has_items_cursor_meta_and_hints(builder, definition, member, item):
    result = builder([item], "next", meta={"m": 1}, ttl_ms=5, cache_scope="public")

    items = result.pop(member)
    assert (len(items), items[0]["name"]) == (1, item["name"])
    assert result == {
        "nextCursor": "next",
        "_meta": {"m": 1},
        "ttlMs": 5,
        "cacheScope": "public",
        "resultType": "complete",
    }
    assert builder([], next_cursor="")["nextCursor"] == ""
    assert builder(iter([])) == {member: [], "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}


@NEEDS_SCHEMAS
@pytest.mark.behaviour("GEN-B3", "GEN-B7")
@pytest.mark.parametrize("revision", REVISIONS)
@each_list
def test_a_list_validates_strictly_at_every_revision(builder, definition, member, item, revision):
    result = builder([item, {**item, "title": None, "icons": None}], "next", meta={"m": 1}, revision=revision)

    check(result, definition, revision)
    assert result["nextCursor"] == "next"


@pytest.mark.behaviour("CAP-24-S2")
def test_execution_is_sent_at_its_one_revision_only():
    sent = [
        revision for revision in REVISIONS if "execution" in list_tools_result([TOOL], revision=revision)["tools"][0]
    ]

    assert sent == ["2025-11-25"]
    assert list_tools_result([TOOL])["tools"][0]["execution"] == {"taskSupport": "optional"}


@pytest.mark.behaviour("GEN-B7")
def test_members_arrive_with_the_revision_that_defines_them():
    first = {
        name: next(
            revision for revision in REVISIONS if name in list_tools_result([TOOL], revision=revision)["tools"][0]
        )
        for name in ("name", "annotations", "title", "outputSchema", "_meta", "icons")
    }

    assert first == {
        "name": "2024-11-05",
        "annotations": "2025-03-26",
        "title": "2025-06-18",
        "outputSchema": "2025-06-18",
        "_meta": "2025-06-18",
        "icons": "2025-11-25",
    }


def test_schemas_are_spelled_for_revisions_that_want_objects():
    tool = {"name": "t", "inputSchema": TOOL["input_schema"], "outputSchema": {"type": "array"}}

    new = list_tools_result([tool], revision="2026-07-28")["tools"][0]
    old = list_tools_result([tool], revision="2025-11-25")["tools"][0]

    assert new["inputSchema"]["properties"]["a"] is True
    assert new["outputSchema"] == {"type": "array"}
    assert old == {
        "name": "t",
        "inputSchema": {"type": "object", "properties": {"a": {}, "b": {"not": {}}, "c": {"type": "string"}}},
    }


@each_list
@pytest.mark.parametrize("wrong", [None, "abc", b"abc", {"name": "x"}, 3])
def test_what_is_no_list_is_refused(builder, definition, member, item, wrong):
    with pytest.raises(TypeError, match=rf"list_\w+_result takes a list of {member}, not"):
        builder(wrong)


@each_list
def test_a_cursor_is_a_string(builder, definition, member, item):
    with pytest.raises(TypeError, match="next_cursor must be a string or None, not int"):
        builder([], 3)


@each_list
def test_a_wrong_item_is_named_by_its_place(builder, definition, member, item):
    with pytest.raises(ValueError, match=rf"list_\w+: {member}\[1\] needs 'name'"):
        builder([item, {key: value for key, value in item.items() if key != "name"}])
    with pytest.raises(TypeError, match=rf"{member}\[0\] must be a mapping, a model of the SDK or a registered"):
        builder([object()])
    with pytest.raises(TypeError, match=rf"{member}\[0\]\.title must be a string, not 3"):
        builder([{**item, "title": 3}])
    with pytest.raises(TypeError, match=rf"{member}\[0\]\.icons must be a list of objects"):
        builder([{**item, "icons": {"src": "x:1"}}])
    with pytest.raises(ValueError, match=rf"{member}\[0\]\.icons\[0\] needs 'src'"):
        builder([{**item, "icons": [{}]}])


def test_an_input_schema_is_about_an_object():
    assert list_tools_result([{"name": "t"}])["tools"][0] == {"name": "t", "inputSchema": {"type": "object"}}
    with pytest.raises(ValueError, match="root of inputSchema must be of type 'object', not 'array'"):
        list_tools_result([{"name": "t", "inputSchema": {"type": "array"}}])
    with pytest.raises(TypeError, match="inputSchema must be an object"):
        list_tools_result([{"name": "t", "inputSchema": True}])


@NEEDS_SCHEMAS
@pytest.mark.parametrize("revision", REVISIONS)
def test_models_of_the_sdk_are_items(revision):
    tool = mcp_types.Tool(name="t", input_schema={"type": "object"}, annotations=mcp_types.ToolAnnotations(title="T"))
    prompt = mcp_types.Prompt(name="p", arguments=[mcp_types.PromptArgument(name="a")])
    resource = mcp_types.Resource(name="r", uri="x:1", icons=[mcp_types.Icon(src="https://a.example/i")])
    template = mcp_types.ResourceTemplate(name="r", uri_template="x:{a}")

    lists = [
        list_tools_result([tool], revision=revision),
        list_prompts_result([prompt], revision=revision),
        list_resources_result([resource], revision=revision),
        list_resource_templates_result([template], revision=revision),
    ]

    for result, (_, definition, member, _) in zip(lists, LISTS, strict=True):
        check(result, definition, revision)
        assert len(result[member]) == 1


def served():
    server = MCPServer("s")

    @server.tool(title="Add", annotations=mcp_types.ToolAnnotations(read_only_hint=True), meta={"m": 1})
    def add(a: int, b: int = 2) -> int:
        """Adds."""
        return a + b

    @server.prompt(title="Ask")
    def ask(topic: str) -> str:
        """Asks."""
        return topic

    @server.resource("x:1", name="one", mime_type="text/plain")
    def one() -> str:
        return "1"

    @server.resource("x:{a}", name="any")
    def any_(a: str) -> str:
        return a

    return server


@NEEDS_SCHEMAS
@pytest.mark.parametrize("revision", REVISIONS)
def test_components_registered_with_the_sdk_are_items(revision):
    server = served()
    tools = list_tools_result(server._tool_manager.list_tools(), revision=revision)
    prompts = list_prompts_result(server._prompt_manager.list_prompts(), revision=revision)
    resources = list_resources_result(server._resource_manager.list_resources(), revision=revision)
    templates = list_resource_templates_result(server._resource_manager.list_templates(), revision=revision)

    for result, (_, definition, _, _) in zip((tools, prompts, resources, templates), LISTS, strict=True):
        check(result, definition, revision)
    tool = tools["tools"][0]
    assert (tool["name"], tool["description"], tool["inputSchema"]["required"]) == ("add", "Adds.", ["a"])
    assert prompts["prompts"][0]["arguments"][0]["name"] == "topic"
    assert (resources["resources"][0]["name"], resources["resources"][0]["uri"]) == ("one", "x:1")
    assert templates["resourceTemplates"][0]["uriTemplate"] == "x:{a}"


def test_a_registered_resource_shows_no_more_than_its_description():
    resource = TextResource(uri="x:1", name="one", text="secret", meta={"m": 1})

    assert list_resources_result([resource])["resources"] == [
        {"_meta": {"m": 1}, "mimeType": "text/plain", "name": "one", "uri": "x:1"}
    ]


@NEEDS_SCHEMAS
@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("revision", REVISIONS)
async def test_components_registered_with_fastmcp_are_items(revision, anyio_backend):
    server = fastmcp.FastMCP("s")
    server.tool(name="add", description="Adds.")(lambda a: a)
    server.prompt(name="ask")(lambda topic: topic)
    server.resource("x://1", name="one")(lambda: "1")
    server.resource("x://{a}", name="any")(lambda a: a)

    lists = [
        list_tools_result(await server.list_tools(), revision=revision),
        list_prompts_result(await server.list_prompts(), revision=revision),
        list_resources_result(await server.list_resources(), revision=revision),
        list_resource_templates_result(await server.list_resource_templates(), revision=revision),
    ]

    for result, (_, definition, member, _) in zip(lists, LISTS, strict=True):
        check(result, definition, revision)
        assert len(result[member]) == 1
    assert lists[0]["tools"][0]["inputSchema"]["required"] == ["a"]


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int


class Inner(BaseModel):
    n: int


class Outer(BaseModel):
    inner: Inner


def paint(
    colour: Colour,
    where: Annotated[Point, "Where to paint"],
    size: Annotated[int, Meta(ge=1)] = 3,
    mode: Literal["a", "b"] | None = None,
    anything=object,
    *,
    outer: Annotated[Outer | None, Field(description="Around")] = None,
    ctx: Context[Any, Any] | None = None,
    **more: Any,
) -> str:
    """Paints.

    Twice.
    """
    return f"{colour}{where}{size}{mode}{anything}{outer}{ctx}{more}"


def test_a_function_is_described_by_its_signature():
    tool = list_tools_result([paint])["tools"][0]

    assert tool == {
        "name": "paint",
        "description": "Paints.\n\nTwice.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "colour": {"$ref": "#/$defs/Colour"},
                "where": {"$ref": "#/$defs/Point", "description": "Where to paint"},
                "size": {"type": "integer", "minimum": 1, "default": 3},
                "mode": {"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}], "default": None},
                "anything": {},
                "outer": {
                    "anyOf": [
                        {
                            "type": "object",
                            "title": "Outer",
                            "properties": {"inner": {"$ref": "#/$defs/Inner"}},
                            "required": ["inner"],
                        },
                        {"type": "null"},
                    ],
                    "description": "Around",
                    "default": None,
                },
            },
            "required": ["colour", "where"],
            "$defs": tool["inputSchema"]["$defs"],
            "additionalProperties": True,
        },
    }
    assert sorted(tool["inputSchema"]["$defs"]) == ["Colour", "Inner", "Point"]


async def wait(seconds: float) -> None:
    return None


class Holder:
    def method(self, a: str) -> str:
        return a


def test_coroutine_functions_and_methods_are_tools():
    tools = list_tools_result([wait, Holder().method])["tools"]

    assert tools == [
        {
            "name": "wait",
            "inputSchema": {"type": "object", "properties": {"seconds": {"type": "number"}}, "required": ["seconds"]},
        },
        {
            "name": "method",
            "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        },
    ]


def starred(*args: int) -> None:
    return None


def odd(a: Holder) -> None:
    return None


def unresolved(a: Missing) -> None:
    return None


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a: a, "<lambda> is no name for a tool"),
        (starred, r"\(starred\): parameter 'args' cannot be passed by name"),
        (odd, r"\(odd\): the type of parameter 'a' has no JSON Schema"),
        (unresolved, "cannot read its signature: name 'Missing' is not defined"),
    ],
)
def test_a_function_that_cannot_be_described_is_refused(function, message):
    with pytest.raises(ValueError, match=message):
        list_tools_result([function])


def test_a_callable_that_is_no_function_needs_a_name():
    with pytest.raises(TypeError, match="partial has no 'name'"):
        list_tools_result([partial(wait, 1)])
