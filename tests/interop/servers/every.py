"""What the everything servers offer, whatever SDK they are built on.

The official conformance suite calls tools, prompts and resources by fixed names; the tables below have them. What asks
the peer is written once, as rounds of questions: a legacy server sends them as requests in the middle of the call, a
modern one returns them as ``InputRequiredResult``. `Every` keeps what changes while a server runs.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from troth.results import (
    call_tool_result,
    get_prompt_result,
    list_prompts_result,
    list_resource_templates_result,
    list_resources_result,
    list_tools_result,
    read_resource_result,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Json = dict[str, Any]
    Questions = dict[str, tuple[str, Json]]
    """Key -> method and params of a question."""

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFAQH/q842iQAAAABJRU5ErkJggg=="
)
# A WAV file of no samples.
WAV = b"RIFF" + (36).to_bytes(4, "little") + b"WAVEfmt " + bytes.fromhex("10000000010001001f400000803e000002001000")
WAV += b"data" + (0).to_bytes(4, "little")
TEMPLATE = "test://template/{id}/data"
STATIC = "test://static-text"
WATCHED = "test://watched-resource"
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
NOBODY = {"type": "object", "properties": {}}
PAUSE = 0.05
"""Between two notifications of one call, so that a peer that gathers them is seen."""


def taking(**properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties)}


TEXT = {"type": "string"}
SCHEMA_2020 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {"$anchor": "addressDef", "type": "object", "properties": {"street": TEXT, "city": TEXT}},
    },
    "properties": {
        "name": TEXT,
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": TEXT,
        "email": TEXT,
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

TOOLS: dict[str, tuple[str, Json]] = {
    "test_simple_text": ("Returns one text", NOBODY),
    "test_image_content": ("Returns one image", NOBODY),
    "test_audio_content": ("Returns one sound", NOBODY),
    "test_embedded_resource": ("Returns a resource", NOBODY),
    "test_multiple_content_types": ("Returns a text, an image and a resource", NOBODY),
    "test_structured_content": ("Adds two numbers", taking(a={"type": "integer"}, b={"type": "integer"})),
    "test_tool_with_logging": ("Sends three log messages", NOBODY),
    "test_logging_tool": ("Sends a log message", NOBODY),
    "test_tool_with_progress": ("Reports progress three times", NOBODY),
    "test_error_handling": ("Always fails", NOBODY),
    "test_slow": (
        "Answers after some seconds, and tells whether it was cancelled",
        taking(seconds={"type": "number"}),
    ),
    "test_cancelled": ("How many calls of test_slow were cancelled", NOBODY),
    "test_header_param": ("Takes a parameter that is also a header", taking(region={**TEXT, "x-mcp-header": "Region"})),
    "test_trigger_tool_change": ("Adds a tool, or takes it away again", NOBODY),
    "test_trigger_prompt_change": ("Adds a prompt, or takes it away again", NOBODY),
    "test_trigger_resource_change": ("Adds a resource, or takes it away again", NOBODY),
    "test_trigger_resource_update": ("Updates a resource", taking(uri=TEXT)),
    "test_sampling": ("Asks the model", taking(prompt=TEXT)),
    "test_elicitation": ("Asks the user", taking(message=TEXT)),
    "test_elicitation_sep1034_defaults": ("Asks the user, with defaults", NOBODY),
    "test_elicitation_sep1330_enums": ("Asks the user to choose", NOBODY),
    "test_missing_capability": ("Needs sampling", NOBODY),
    "test_streaming_elicitation": ("Asks the user in the middle of a stream", NOBODY),
    "test_input_required_result_elicitation": ("Asks the user for a name", NOBODY),
    "test_input_required_result_sampling": ("Asks the model for a capital", NOBODY),
    "test_input_required_result_list_roots": ("Asks for the roots", NOBODY),
    "test_input_required_result_request_state": ("Asks with a state", NOBODY),
    "test_input_required_result_multiple_inputs": ("Asks for three things at once", NOBODY),
    "test_input_required_result_multi_round": ("Asks twice", NOBODY),
    "test_input_required_result_tampered_state": ("Asks with a state that is signed", NOBODY),
    "test_input_required_result_capabilities": ("Asks only what the client can answer", NOBODY),
    "json_schema_2020_12_tool": ("Has a schema with much in it", SCHEMA_2020),
}
PROMPTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "test_simple_prompt": ("A prompt without arguments", ()),
    "test_prompt_with_arguments": ("A prompt with two arguments", ("arg1", "arg2")),
    "test_prompt_with_embedded_resource": ("A prompt with a resource", ("resourceUri",)),
    "test_prompt_with_image": ("A prompt with an image", ()),
    "test_input_required_result_prompt": ("A prompt that asks the user", ()),
}
RESOURCES: dict[str, tuple[str, str, str | bytes]] = {
    STATIC: ("static-text", "text/plain", "This is the content of the static text resource."),
    "test://static-binary": ("static-binary", "image/png", PNG),
    WATCHED: ("watched-resource", "text/plain", "Something that changes."),
    "test://example-resource": ("example-resource", "text/plain", "An example."),
}

CONTENTS: dict[str, tuple[tuple[str, Any], ...]] = {
    "test_simple_text": (("text", "This is a simple text response for testing."),),
    "test_image_content": (("image", ("image/png", PNG)),),
    "test_audio_content": (("audio", ("audio/wav", WAV)),),
    "test_embedded_resource": (
        (
            "resource",
            {
                "uri": "test://embedded-resource",
                "mimeType": "text/plain",
                "text": "This is an embedded resource content.",
            },
        ),
    ),
    "test_multiple_content_types": (
        ("text", "Multiple content types test:"),
        ("image", ("image/png", PNG)),
        (
            "resource",
            {
                "uri": "test://mixed-content-resource",
                "mimeType": "application/json",
                "text": '{"test":"data","value":123}',
            },
        ),
    ),
}


def form(message: str, *, required: bool = True, **properties: Json) -> tuple[str, Json]:
    """A question to the user."""
    schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(properties)
    return "elicitation/create", {"mode": "form", "message": message, "requestedSchema": schema}


def sampling(text: str, tokens: int = 100) -> tuple[str, Json]:
    """A question to the model."""
    content = {"type": "text", "text": text}
    return "sampling/createMessage", {"messages": [{"role": "user", "content": content}], "maxTokens": tokens}


ROOTS: tuple[str, Json] = ("roots/list", {})
NEEDS = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
SHAPES = {"elicitation/create": "action", "sampling/createMessage": "content", "roots/list": "roots"}
"""The member by which an answer is known to answer such a question."""
NAME = {"user_name": form("What is your name?", name=TEXT)}
SURE = {"confirm": form("Please confirm", ok={"type": "boolean"})}


def options(*names: str) -> list[Json]:
    return [{"const": f"value{number}", "title": name} for number, name in enumerate(names, 1)]


ENUMS = form(
    "Choose",
    required=False,
    untitledSingle={"type": "string", "enum": ["option1", "option2", "option3"]},
    titledSingle={"type": "string", "oneOf": options("First Option", "Second Option", "Third Option")},
    legacyEnum={
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    untitledMulti={"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    titledMulti={"type": "array", "items": {"anyOf": options("First Choice", "Second Choice", "Third Choice")}},
)
DEFAULTS = form(
    "Is this right?",
    required=False,
    name={"type": "string", "default": "John Doe"},
    age={"type": "integer", "default": 30},
    score={"type": "number", "default": 95.5},
    status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    verified={"type": "boolean", "default": True},
)
CONTACT = {
    "username": {"type": "string", "description": "User's response"},
    "email": {"type": "string", "description": "User's email address"},
}

ASKING: dict[str, Callable[[Json], list[Questions]]] = {
    "test_sampling": lambda given: [{"answer": sampling(str(given.get("prompt", "")))}],
    "test_elicitation": lambda given: [{"user": form(str(given.get("message", "")), **CONTACT)}],
    "test_elicitation_sep1034_defaults": lambda _: [{"user": DEFAULTS}],
    "test_elicitation_sep1330_enums": lambda _: [{"user": ENUMS}],
    "test_missing_capability": lambda _: [{"answer": sampling("Are you there?")}],
    "test_streaming_elicitation": lambda _: [NAME],
    "test_input_required_result_elicitation": lambda _: [NAME],
    "test_input_required_result_sampling": lambda _: [{"capital_question": sampling("What is the capital of France?")}],
    "test_input_required_result_list_roots": lambda _: [{"client_roots": ROOTS}],
    "test_input_required_result_request_state": lambda _: [SURE],
    "test_input_required_result_multiple_inputs": lambda _: [
        {**NAME, "greeting": sampling("Generate a greeting", 50), "client_roots": ROOTS}
    ],
    "test_input_required_result_multi_round": lambda _: [
        {"step1": form("Step 1: What is your name?", name=TEXT)},
        {"step2": form("Step 2: What is your favorite color?", color=TEXT)},
    ],
    "test_input_required_result_tampered_state": lambda _: [SURE],
    "test_input_required_result_capabilities": lambda _: [{**NAME, "greeting": sampling("Generate a greeting", 50)}],
    "test_input_required_result_prompt": lambda _: [
        {"user_context": form("What context should the prompt use?", context=TEXT)}
    ],
}
"""Tools and prompts that ask: arguments -> rounds of questions."""


class Peer(Protocol):
    """The client of one request, as an SDK shows it.

    Attributes:
        modern: Whether it is asked by results; else by requests in the middle of the call.
        declared: The capabilities that it declared.
        answers: What a modern client sent along: key -> answer.
        state: The state that it sent back.
    """

    modern: bool
    declared: frozenset[str]
    answers: Mapping[str, Any]
    state: str | None

    async def ask(self, method: str, params: Json) -> Json: ...

    async def log(self, level: str, data: str) -> None: ...

    async def progress(self, progress: float, total: float) -> None: ...

    async def changed(self, kind: str) -> None: ...

    async def updated(self, uri: str) -> None: ...


class Refusal(Exception):  # noqa: N818 - it is the peer's fault, not ours
    """A request that ends with an error of JSON-RPC."""

    def __init__(self, code: int, message: str, data: Json | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


INVALID, MISSING_CAPABILITY, NOT_FOUND_LEGACY = -32602, -32021, -32002


@dataclass
class Every:
    """One everything server: what it offers now.

    Attributes:
        revision: Revision to spell results for; None where the SDK does it.
        more: Whether each list has one item more than the tables.
        cancelled: Calls of ``test_slow`` that were cancelled.
        key: Signs the states that go out with questions.
    """

    revision: str | None = None
    more: dict[str, bool] = field(default_factory=lambda: {"tools": False, "prompts": False, "resources": False})
    cancelled: int = 0
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    # Lists

    def tools(self) -> Json:
        names = [*TOOLS.items(), *([("test_dynamic_tool", ("Comes and goes", NOBODY))] if self.more["tools"] else [])]
        items = [{"name": name, "description": text, "inputSchema": schema} for name, (text, schema) in names]
        return list_tools_result(items, revision=self.revision)

    def schema(self, name: str) -> Json | None:
        return TOOLS[name][1] if name in TOOLS else None

    def prompts(self) -> Json:
        more = [("test_dynamic_prompt", ("Comes and goes", ()))] if self.more["prompts"] else []
        items = [
            {
                "name": name,
                "description": text,
                "arguments": [{"name": one, "description": f"Argument {one}", "required": True} for one in arguments],
            }
            for name, (text, arguments) in [*PROMPTS.items(), *more]
        ]
        return list_prompts_result(items, revision=self.revision)

    def resources(self) -> Json:
        more = [("test://dynamic", ("dynamic", "text/plain", ""))] if self.more["resources"] else []
        items = [
            {"uri": uri, "name": name, "description": f"The resource {name}", "mimeType": kind}
            for uri, (name, kind, _) in [*RESOURCES.items(), *more]
        ]
        return list_resources_result(items, revision=self.revision)

    def templates(self) -> Json:
        item = {"uriTemplate": TEMPLATE, "name": "template", "description": "By id", "mimeType": "application/json"}
        return list_resource_templates_result([item], revision=self.revision)

    # What a peer reads

    def read(self, uri: str, missing: int = INVALID) -> Json:
        if uri in RESOURCES:
            _, kind, body = RESOURCES[uri]
            member = {"text": body} if isinstance(body, str) else {"blob": body}
            return read_resource_result(uri=uri, mime_type=kind, revision=self.revision, **member)
        before, after = TEMPLATE.split("{id}")
        if uri.startswith(before) and uri.endswith(after):
            given = uri[len(before) : -len(after)]
            text = json.dumps({"id": given, "templateTest": True, "data": f"Data for ID: {given}"})
            return read_resource_result(uri=uri, mime_type="application/json", text=text, revision=self.revision)
        raise Refusal(missing, "Resource not found", {"uri": uri})

    async def prompt(self, peer: Peer, name: str, given: Mapping[str, str]) -> Json:
        if name in ASKING:
            answers = await self._ask(peer, name, dict(given))
            if answers.get("resultType") == "input_required":
                return answers
            context = (answers["user_context"].get("content") or {}).get("context", "")
            return get_prompt_result(("user", f"Context: {context}"), revision=self.revision)
        messages: dict[str, list[tuple[str, Any]]] = {
            "test_simple_prompt": [("user", "This is a simple prompt for testing.")],
            "test_prompt_with_arguments": [
                ("user", f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'")
            ],
            "test_prompt_with_embedded_resource": [
                (
                    "user",
                    (
                        "resource",
                        {
                            "uri": given.get("resourceUri", STATIC),
                            "mimeType": "text/plain",
                            "text": "Embedded resource content for testing.",
                        },
                    ),
                ),
                ("user", "Please process the embedded resource above."),
            ],
            "test_prompt_with_image": [
                ("user", ("image", ("image/png", PNG))),
                ("user", "Please analyze the image above."),
            ],
            "test_dynamic_prompt": [("user", "I come and go.")],
        }
        if name not in messages:
            raise Refusal(INVALID, f"Unknown prompt: {name}")
        return get_prompt_result(*messages[name], revision=self.revision)

    def complete(self, value: str) -> Json:
        found = [word for word in ("paris", "park", "party", "testValue1") if word.startswith(value)]
        result = {"completion": {"values": found, "total": len(found), "hasMore": False}}
        return result if self.revision else {**result, "resultType": "complete"}

    # Calls

    async def call(self, peer: Peer, name: str, given: Json) -> Json:
        """A call of a tool.

        Raises:
            Refusal: The tool is unknown, or needs what the peer did not declare.
        """
        if name in CONTENTS:
            return call_tool_result(*CONTENTS[name], revision=self.revision)
        if name in ASKING:
            answers = await self._ask(peer, name, given)
            if answers.get("resultType") == "input_required":
                return answers
            return call_tool_result(text=f"state-ok: {json.dumps(answers)}", revision=self.revision)
        method = getattr(self, f"_{name}", None)
        if method is None or not (name in TOOLS or self.more["tools"]):
            raise Refusal(INVALID, f"Unknown tool: {name}")
        return call_tool_result(await method(peer, given), revision=self.revision)

    async def _test_structured_content(self, _: Peer, given: Json) -> Any:
        return ("data", {"sum": given["a"] + given["b"]})

    async def _test_tool_with_logging(self, peer: Peer, _: Json) -> Any:
        for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await peer.log("info", text)
            await asyncio.sleep(PAUSE)
        return ("text", "logged")

    async def _test_logging_tool(self, peer: Peer, _: Json) -> Any:
        await peer.log("info", "A log message")
        return ("text", "logged")

    async def _test_tool_with_progress(self, peer: Peer, _: Json) -> Any:
        for step in (0, 50, 100):
            await peer.progress(step, 100)
            await asyncio.sleep(PAUSE)
        return ("text", "done")

    async def _test_error_handling(self, _: Peer, __: Json) -> Any:
        return ("error", "This tool intentionally returns an error for testing")

    async def _test_slow(self, peer: Peer, given: Json) -> Any:
        try:
            await peer.progress(0, 1)
            await asyncio.sleep(float(given.get("seconds", 1)))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return ("text", "slow")

    async def _test_cancelled(self, _: Peer, __: Json) -> Any:
        return ("text", str(self.cancelled))

    async def _test_header_param(self, _: Peer, given: Json) -> Any:
        return ("text", f"region: {given.get('region')}")

    async def _test_dynamic_tool(self, _: Peer, __: Json) -> Any:
        return ("text", "I come and go.")

    async def _toggle(self, peer: Peer, kind: str) -> Any:
        self.more[kind] = not self.more[kind]
        await peer.changed(kind)
        return ("text", f"{kind}: {'one more' if self.more[kind] else 'one less'}")

    async def _test_trigger_tool_change(self, peer: Peer, _: Json) -> Any:
        return await self._toggle(peer, "tools")

    async def _test_trigger_prompt_change(self, peer: Peer, _: Json) -> Any:
        return await self._toggle(peer, "prompts")

    async def _test_trigger_resource_change(self, peer: Peer, _: Json) -> Any:
        return await self._toggle(peer, "resources")

    async def _test_trigger_resource_update(self, peer: Peer, given: Json) -> Any:
        await peer.updated(str(given.get("uri", WATCHED)))
        return ("text", "updated")

    # Questions

    async def _ask(self, peer: Peer, name: str, given: Json) -> Json:
        """Answers of all rounds by key, or the result that asks for those of the next one."""
        rounds = ASKING[name](given)
        if peer.modern:
            return self._ask_by_result(peer, name, rounds)
        answers: Json = {}
        for questions in rounds:
            allowed = self._allowed(peer, questions)
            # All questions of a round are open at once.
            try:
                async with asyncio.TaskGroup() as group:
                    asked = {key: group.create_task(peer.ask(*question)) for key, question in allowed.items()}
            except* Exception as failed:
                raise failed.exceptions[0] from None
            answers |= {key: task.result() for key, task in asked.items()}
        return answers

    def _allowed(self, peer: Peer, questions: Questions) -> Questions:
        allowed = {key: one for key, one in questions.items() if NEEDS[one[0]] in peer.declared}
        if not allowed:
            missing = {NEEDS[method]: {} for method, _ in questions.values()}
            code = MISSING_CAPABILITY if peer.modern else INVALID
            raise Refusal(code, f"The client lacks {', '.join(missing)}", {"requiredCapabilities": missing})
        return allowed

    def _ask_by_result(self, peer: Peer, name: str, rounds: list[Questions]) -> Json:
        answers: Json = {}
        current = 0
        if peer.state is not None:
            current, answers = self._opened(peer.state, name)
        questions = self._allowed(peer, rounds[current])
        for key, (method, _) in questions.items():
            answer = peer.answers.get(key)
            if isinstance(answer, dict) and SHAPES[method] in answer:
                answers[key] = answer
        if all(key in answers for key in questions):
            current += 1
            if current == len(rounds):
                return answers
            questions = self._allowed(peer, rounds[current])
        return {
            "resultType": "input_required",
            "inputRequests": {
                key: {"method": method, "params": params}
                for key, (method, params) in questions.items()
                if key not in answers
            },
            "requestState": self._sealed(name, current, answers),
        }

    def _sealed(self, name: str, current: int, answers: Json) -> str:
        body = base64.urlsafe_b64encode(json.dumps([name, current, answers]).encode()).decode()
        return f"{body}.{hmac.new(self.key, body.encode(), hashlib.sha256).hexdigest()}"

    def _opened(self, state: str, name: str) -> tuple[int, Json]:
        body, _, seal = state.partition(".")
        if not hmac.compare_digest(seal, hmac.new(self.key, body.encode(), hashlib.sha256).hexdigest()):
            raise Refusal(INVALID, "The request state is not ours, or was changed")
        owner, current, answers = json.loads(base64.urlsafe_b64decode(body))
        if owner != name:
            raise Refusal(INVALID, "The request state belongs to another request")
        return current, answers
