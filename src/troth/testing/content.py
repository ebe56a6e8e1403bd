"""What a scripted server has to offer: its tools, prompts, resources, and the variants that offer less."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.testing.model import JsonObject

PAGE = 2
"""Prompts, resources, templates and tasks come in pages of this many."""
TOOL_PAGE = 8
"""Tools come in pages of this many."""
MOST_VALUES = 100
"""Most completion values of one answer."""

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
UI_EXTENSION = "io.modelcontextprotocol/ui"
UI_MIME = "text/html;profile=mcp-app"

FIRST = "note://notes/one"
"""The resource that ``touch`` changes unless told otherwise."""
TEMPLATE = "note://notes/{id}"
NAMES = ("Ada", "Alan", "Barbara", "Grace")
"""Completions of the argument of the prompt ``greet``."""

_EMPTY_INPUT: JsonObject = {"type": "object", "properties": {}}


def _tool(name: str, title: str, description: str, **more: object) -> JsonObject:
    return {
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": deepcopy(_EMPTY_INPUT),
        "annotations": {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False},
        **more,
    }


READ_NOTE = _tool(
    "read_note",
    "Read the note",
    "Answers with the first note and logs that it was read.",
    annotations={"readOnlyHint": True, "openWorldHint": False},
    outputSchema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)
TOUCH = _tool(
    "touch",
    "Touch a resource",
    "Changes a resource; who watches it is told.",
    inputSchema={"type": "object", "properties": {"uri": {"type": "string"}}},
)
ASKING = (
    _tool("ask_roots", "Ask for roots", "Asks the client for its roots."),
    _tool("ask_sampling", "Ask for a message", "Asks the client's model for a message."),
    _tool("ask_sampling_tools", "Ask with tools", "Asks the client's model and gives it a tool."),
    _tool("ask_sampling_context", "Ask with context", "Asks the client's model, with context where it is offered."),
    _tool("ask_form", "Ask the user", "Asks the user to fill in a form."),
    _tool("ask_url", "Send the user to a page", "Asks the user to open a page."),
)
TOOLS = (
    READ_NOTE,
    _tool("add_tool", "Add a tool", "Adds one tool to the list."),
    _tool("remove_tool", "Remove a tool", "Removes the tool that was added last."),
    _tool("add_prompt", "Add a prompt", "Adds one prompt to the list."),
    _tool("add_resource", "Add a resource", "Adds one resource to the list."),
    _tool("grow", "Grow", "Adds a tool, a prompt and a resource."),
    TOUCH,
    _tool("log", "Log", "Logs one message at each level."),
    _tool("slow", "Work slowly", "Work that can be run as a task.", execution={"taskSupport": "optional"}),
    *ASKING,
)
PROMPTS: tuple[JsonObject, ...] = (
    {
        "name": "greet",
        "title": "Greeting",
        "description": "Greets someone.",
        "arguments": [{"name": "name", "title": "Name", "description": "Whom to greet.", "required": True}],
    },
    {"name": "summary", "title": "Summary", "description": "Asks for a summary of the notes."},
    {"name": "farewell", "title": "Farewell", "description": "Says goodbye."},
)
RESOURCES: tuple[JsonObject, ...] = tuple(
    {"uri": f"note://notes/{name}", "name": name, "title": f"Note {name}", "mimeType": "text/plain"}
    for name in ("one", "two", "three")
)
TEMPLATES: tuple[JsonObject, ...] = (
    {"uriTemplate": TEMPLATE, "name": "note", "title": "A note by its name", "mimeType": "text/plain"},
)
PANEL: JsonObject = {"uri": "ui://troth/panel", "name": "panel", "title": "Panel", "mimeType": UI_MIME}

_EVERYTHING: JsonObject = {
    "experimental": {"troth/testing": {}},
    "logging": {},
    "completions": {},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "tools": {"listChanged": True},
    "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}},
    "extensions": {TASKS_EXTENSION: {}},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A server by what it offers.

    Attributes:
        offers: Its capabilities, as if one revision had all of them; each revision declares what it defines.
    """

    offers: JsonObject
    tools: tuple[JsonObject, ...] = ()
    prompts: tuple[JsonObject, ...] = ()
    resources: tuple[JsonObject, ...] = ()
    templates: tuple[JsonObject, ...] = ()


VARIANTS: Mapping[str, Variant] = {
    "full": Variant(offers=_EVERYTHING, tools=TOOLS, prompts=PROMPTS, resources=RESOURCES, templates=TEMPLATES),
    "tools-only": Variant(offers={"tools": {}}, tools=(READ_NOTE,)),
    "files": Variant(
        offers={"tools": {}, "resources": {}}, tools=(READ_NOTE,), resources=RESOURCES, templates=TEMPLATES
    ),
    "empty": Variant(offers={"tools": {}, "prompts": {}, "resources": {}}),
    "asker": Variant(offers={"tools": {}}, tools=ASKING),
    "ui": Variant(
        offers={"tools": {}, "resources": {}, "extensions": {UI_EXTENSION: {}}},
        tools=({**READ_NOTE, "_meta": {"ui": {"resourceUri": PANEL["uri"]}}},),
        resources=(*RESOURCES, PANEL),
    ),
}
"""Variants by the name that ``--variant`` takes."""


@dataclass(slots=True, kw_only=True)
class Catalogue:
    """The lists as they stand; every session of a server sees the same.

    Attributes:
        texts: Body of each resource by URI.
        made: How many items were added so far; their names count up.
    """

    tools: list[JsonObject]
    prompts: list[JsonObject]
    resources: list[JsonObject]
    templates: list[JsonObject]
    texts: dict[str, str] = field(default_factory=dict[str, str])
    made: int = 0

    @classmethod
    def of(cls, variant: Variant) -> Catalogue:
        """A fresh copy of what a variant has."""
        made = cls(
            tools=deepcopy(list(variant.tools)),
            prompts=deepcopy(list(variant.prompts)),
            resources=deepcopy(list(variant.resources)),
            templates=deepcopy(list(variant.templates)),
        )
        made.texts = {item["uri"]: f"This is {item['name']}." for item in made.resources}
        return made

    def add(self, family: str) -> str:
        """Adds one item to ``tools``, ``prompts`` or ``resources`` and returns its name."""
        self.made += 1
        name = f"added_{self.made}"
        if family == "tools":
            self.tools.append(_tool(name, "Added", "Was added while the server ran."))
        elif family == "prompts":
            self.prompts.append({"name": name, "title": "Added"})
        else:
            uri = f"note://notes/{name}"
            self.resources.append({"uri": uri, "name": name, "title": "Added", "mimeType": "text/plain"})
            self.texts[uri] = f"This is {name}."
        return name

    def remove_tool(self) -> str | None:
        """Removes the tool that was added last; None if there is none."""
        added = [tool for tool in self.tools if tool["name"].startswith("added_")]
        if not added:
            return None
        self.tools.remove(added[-1])
        return added[-1]["name"]
