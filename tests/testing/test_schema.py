"""Every message of the honest server is valid in its revision."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from troth.register import register

from .peer import EVERYTHING, Host, converse

SCHEMAS = Path(__file__).parents[3] / "shared" / "schema"
RESULTS = {
    "initialize": "InitializeResult",
    "server/discover": "DiscoverResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "completion/complete": "CompleteResult",
    "tasks/list": "ListTasksResult",
    "tasks/get": "GetTaskResult",
    "tasks/cancel": "CancelTaskResult",
    "tasks/result": "CallToolResult",
}
ERRORS = {
    -32020: "HeaderMismatchError",
    -32021: "MissingRequiredClientCapabilityError",
    -32022: "UnsupportedProtocolVersionError",
}
OUTSIDE = ("notifications/tasks",)
"""Notifications of extensions, which the schema does not know."""


class Judge:
    """Validates messages of one revision, strictly: members that a definition does not name are faults, too."""

    def __init__(self, revision: str) -> None:
        path = SCHEMAS / revision / "schema.json"
        if not path.exists():
            pytest.skip("the official schemas are not here")
        self.schema = json.loads(path.read_text("utf-8"))
        self.key = "$defs" if "$defs" in self.schema else "definitions"
        self.definitions = self.schema[self.key]
        self.checked: set[str] = set()

    def check(self, name: str, value: Any) -> None:
        import jsonschema

        self.checked.add(name)
        validator = jsonschema.validators.validator_for(self.schema)
        problems = list(validator({**self.schema, "$ref": f"#/{self.key}/{name}"}).iter_errors(value))
        assert not problems, (name, value, problems[0].message)
        strange = set(value) - set(self.members(self.definitions[name]))
        assert not strange, (name, strange)
        for member, item in value.items():
            inner = self.definitions[name].get("properties", {}).get(member, {})
            target = inner.get("$ref") or inner.get("items", {}).get("$ref")
            if target and isinstance(item, (dict, list)):
                kind = target.rsplit("/", 1)[1]
                if "properties" in self.definitions[kind] and kind != "Result":
                    for each in item if isinstance(item, list) else [item]:
                        self.check(kind, each)

    def members(self, definition: dict[str, Any]) -> list[str]:
        found = list(definition.get("properties", {}))
        for part in (*definition.get("allOf", ()), *definition.get("anyOf", ())):
            found += self.members(self.definitions[part["$ref"].rsplit("/", 1)[1]] if "$ref" in part else part)
        return found

    def named(self, method: str, family: str) -> str:
        for name, definition in self.definitions.items():
            const = definition.get("properties", {}).get("method", {}).get("const")
            if const == method and name.endswith(family):
                return name
        raise AssertionError(f"{method} is not in the schema")


def judge_message(judge: Judge, message: dict[str, Any], methods: dict[Any, str]) -> None:
    if "method" in message:
        if message["method"] in OUTSIDE:
            return
        name = judge.named(message["method"], "Request" if "id" in message else "Notification")
        bare = (
            message
            if "jsonrpc" in judge.definitions[name]["properties"]
            else {key: value for key, value in message.items() if key not in ("jsonrpc", "id")}
        )
        judge.check(name, bare)
        return
    if "error" in message:
        kind = "JSONRPCErrorResponse" if "JSONRPCErrorResponse" in judge.definitions else "JSONRPCError"
        judge.check(kind, message)
        if message["error"]["code"] in ERRORS:
            judge.check(ERRORS[message["error"]["code"]], message)
        return
    result, method = message["result"], methods[message["id"]]
    if result.get("resultType") == "input_required":
        judge.check("InputRequiredResult", result)
    elif result.get("resultType") == "task" or (method.startswith("tasks/") and "resultType" in result):
        pass
    elif "task" in result:
        judge.check("CreateTaskResult", result)
    elif method in RESULTS:
        judge.check(RESULTS[method], result)
    else:
        judge.check("EmptyResult" if "resultType" not in result else "Result", result)


@pytest.mark.behaviour("GEN-B3")
@pytest.mark.parametrize("capabilities", [{}, EVERYTHING], ids=["nothing", "everything"])
@pytest.mark.parametrize("revision", register().revisions)
def test_every_message_is_valid_in_its_revision(revision: str, capabilities: dict[str, Any]) -> None:
    judge = Judge(revision)
    methods: dict[Any, str] = {}

    class Watched(Host):
        def feed(self, value: Any) -> Any:
            if "id" in value and "method" in value:
                methods[value["id"]] = value["method"]
            return super().feed(value)

    host = Watched(revision, capabilities=capabilities)
    converse(host)
    counter_offer = next((n for n, m in enumerate(host.heard) if "protocolVersion" in str(m.get("result"))), 0)
    for number, message in enumerate(host.heard):
        if number < counter_offer or message.get("id") == "early":
            continue
        if (message.get("result") or {}).get("protocolVersion", revision) != revision:
            continue
        judge_message(judge, message, methods)
    assert {"ListToolsResult", "CallToolResult", "Tool", "ReadResourceResult", "CompleteResult"} <= judge.checked
