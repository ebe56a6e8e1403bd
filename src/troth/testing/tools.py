"""The tools of a scripted server, and the questions that some of them ask."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import TYPE_CHECKING, cast

from troth.register import Era
from troth.testing import spelling, tasks
from troth.testing.content import FIRST
from troth.testing.model import LEVELS, SILENT, Call, Question, Refusal
from troth.testing.promises import ASKS, needs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from troth.testing.model import Answer, JsonObject
    from troth.testing.script import Script

KEY = "question"
"""Name of the one entry of ``inputRequests``."""

_MESSAGE: JsonObject = {"role": "user", "content": {"type": "text", "text": "Say something."}}
_FORM: JsonObject = {"type": "object", "properties": {"name": {"type": "string", "title": "Your name"}}}
_GIVEN_TOOL: JsonObject = {"name": "dice", "description": "Throws a die.", "inputSchema": {"type": "object"}}


def said(words: str, *, error: bool = False) -> JsonObject:
    """A tool result of one text."""
    return {"content": [{"type": "text", "text": words}], **({"isError": True} if error else {})}


def call_tool(script: Script, call: Call) -> Answer:
    """Runs a tool, as a task where the client may and does ask for one."""
    name, arguments = call.params.get("name"), call.params.get("arguments", {})
    tool = next((tool for tool in script.catalogue.tools if tool["name"] == name), None)
    if tool is None:
        return Refusal(-32602, f"Unknown tool: {name!r}")
    if not isinstance(arguments, dict):
        return Refusal(-32602, "arguments must be an object")
    started = tasks.start(script, call, tool)
    if started is not None:
        return started
    if tool["name"].startswith("ask_"):
        return ask(script, call, tool["name"].removeprefix("ask_"))
    run = RUNS.get(tool["name"], _added)
    return run(script, call, cast("JsonObject", arguments))


def _added(_script: Script, call: Call, _arguments: JsonObject) -> JsonObject:
    return said(f"This is {call.params['name']}.")


def _read_note(script: Script, call: Call, _arguments: JsonObject) -> JsonObject:
    words = script.catalogue.texts.get(FIRST, "There is no note.")
    script.log(call, "info", "The note was read.")
    return {**said(words), "structuredContent": {"text": words}}


def _add(*families: str) -> Callable[[Script, Call, JsonObject], JsonObject]:
    def run(script: Script, _call: Call, _arguments: JsonObject) -> JsonObject:
        names = [script.catalogue.add(family) for family in families]
        for family in families:
            script.announce(family)
        return said(f"Added {', '.join(names)}.")

    return run


def _remove_tool(script: Script, _call: Call, _arguments: JsonObject) -> JsonObject:
    name = script.catalogue.remove_tool()
    if name is None:
        return said("No tool was added.", error=True)
    script.announce("tools")
    return said(f"Removed {name}.")


def _touch(script: Script, _call: Call, arguments: JsonObject) -> JsonObject:
    uri = arguments.get("uri", FIRST)
    if not isinstance(uri, str) or uri not in script.catalogue.texts:
        return said("There is no such resource.", error=True)
    script.catalogue.texts[uri] += " It was touched."
    script.updated(uri)
    return said(f"Touched {uri}.")


def _log(script: Script, call: Call, _arguments: JsonObject) -> JsonObject:
    for level in LEVELS:
        script.log(call, level, f"A message at level {level}.")
    return said("Logged.")


def _slow(script: Script, call: Call, _arguments: JsonObject) -> JsonObject:
    token = call.meta.get("progressToken")
    if isinstance(token, (str, int)):
        params: JsonObject = {"progressToken": token, "progress": 1, "total": 1, "message": "Nearly done."}
        params = spelling.spell("ProgressParams", params, call.revision)
        script.notify("notifications/progress", params, call.stream)
    return tasks.outcome()


RUNS: Mapping[str, Callable[[Script, Call, JsonObject], JsonObject]] = {
    "read_note": _read_note,
    "add_tool": _add("tools"),
    "add_prompt": _add("prompts"),
    "add_resource": _add("resources"),
    "grow": _add("tools", "prompts", "resources"),
    "remove_tool": _remove_tool,
    "touch": _touch,
    "log": _log,
    "slow": _slow,
}
"""Tools by name; those named ``ask_...`` ask, every other one only says its name."""


def ask(script: Script, call: Call, kind: str) -> Answer:
    """Asks the client something in the middle of a call, in the way of the era, if the client declared that it can."""
    lacking = needs(kind, call.capabilities, call.revision)
    if script.lax(f"ask-{kind}", call.revision):
        lacking = {}
    if call.era is Era.MODERN:
        if lacking:
            return Refusal(-32021, f"ask_{kind} needs client capabilities", {"requiredCapabilities": lacking})
        return _ask_modern(script, call, kind)
    if lacking != {} or call.session is None:
        return said(f"The client cannot be asked for {kind}.", error=True)
    script.asked += 1
    identity = f"ask-{script.asked}"
    call.session.pending[identity] = Question(call=call, kind=kind)
    script.send({"id": identity, **_request(script, call, kind)}, call.stream)
    return SILENT


def resume(message: JsonObject) -> Answer:
    """What the call makes of the client's answer (legacy)."""
    if "error" in message:
        return said(f"The client refused: {json.dumps(message['error'])}", error=True)
    return said(f"The client answered: {json.dumps(message.get('result'))}")


def _ask_modern(script: Script, call: Call, kind: str) -> Answer:
    responses, state = call.params.get("inputResponses"), call.params.get("requestState")
    if responses is None and state is None:
        entry = _request(script, call, kind)
        return {"resultType": "input_required", "inputRequests": {KEY: entry}, "requestState": seal(script, call, kind)}
    if not isinstance(state, str) or not hmac.compare_digest(state.encode(), seal(script, call, kind).encode()):
        return Refusal(-32602, "requestState is not the one of this call")
    if not isinstance(responses, dict) or KEY not in responses:
        return Refusal(-32602, f"inputResponses must have {KEY!r}")
    return said(f"The client answered: {json.dumps(responses[KEY])}")


def seal(script: Script, call: Call, kind: str) -> str:
    """The ``requestState`` of a question: a keyed digest of method, tool and arguments, so it fits this call only."""
    bound = json.dumps([call.method, call.params.get("name"), call.params.get("arguments", {}), kind], sort_keys=True)
    digest = hmac.new(script.secret, bound.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode()


def _request(script: Script, call: Call, kind: str) -> JsonObject:
    method = ASKS[kind][0]
    if method == "roots/list":
        return {"method": method}
    if method == "sampling/createMessage":
        return {"method": method, "params": _sampling(script, call, kind)}
    params: JsonObject = {"message": "Your name?", "mode": "form", "requestedSchema": _FORM}
    if kind == "url":
        url = "https://example.com/connect"
        params = {"message": "Please connect.", "mode": "url", "url": url, "elicitationId": f"connect-{script.asked}"}
    return {"method": method, "params": spelling.spell("ElicitParams", params, call.revision)}


def _sampling(script: Script, call: Call, kind: str) -> JsonObject:
    params: JsonObject = {"messages": [_MESSAGE], "maxTokens": 64}
    if kind == "sampling_tools":
        return {**params, "tools": [_GIVEN_TOOL], "toolChoice": {"mode": "auto"}}
    if kind == "sampling_context":
        declared = script.lax("context", call.revision) or "context" in call.capabilities.get("sampling", {})
        return {**params, "includeContext": "thisServer" if declared else "none"}
    return params
