"""The honest answers: one function per method, a table from method to function.

A function is reached only if the revision in force has the method and the server offers what gates it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from troth.register import Era, register
from troth.testing import tasks, tools
from troth.testing.content import MOST_VALUES, NAMES, PAGE, TEMPLATE, TOOL_PAGE
from troth.testing.model import LEVELS, META, SILENT, SUBSCRIPTION, Call, Listen, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from troth.testing.model import Answer, Json, JsonObject
    from troth.testing.script import Script

_CACHE: JsonObject = {"ttlMs": 5000, "cacheScope": "public"}
LISTED = ("tools", "prompts", "resources")


def page(call: Call, member: str, items: Sequence[Json], size: int) -> Answer:
    """One page of a list; the cursor tells how many items came before."""
    cursor = call.params.get("cursor", "after-0")
    start = cursor.removeprefix("after-") if isinstance(cursor, str) else ""
    if not (isinstance(cursor, str) and cursor.startswith("after-") and start.isdecimal() and len(start) < 10):
        return Refusal(-32602, "Invalid cursor", {"cursor": cursor})
    end = int(start) + size
    more: JsonObject = {"nextCursor": f"after-{end}"} if end < len(items) else {}
    return {member: list(items[int(start) : end]), **more, **_CACHE}


def text(call: Call, name: str) -> str | Refusal:
    """A parameter that must be a string."""
    value = call.params.get(name)
    return value if isinstance(value, str) else Refusal(-32602, f"params.{name} must be a string")


def initialize(script: Script, call: Call) -> Answer:
    """Opens a session at the revision asked for, or offers the newest one served."""
    wanted, capabilities = call.params.get("protocolVersion"), call.params.get("capabilities")
    if not isinstance(wanted, str) or not isinstance(capabilities, dict):
        return Refusal(-32602, "initialize needs protocolVersion (a string) and capabilities (an object)")
    served = script.served[Era.LEGACY]
    revision = wanted if wanted in served else served[-1]
    if call.session:
        call.session.revision, call.session.capabilities = revision, cast("JsonObject", capabilities)
        call.session.initialized = False
        script.sessions[call.session.id] = call.session
    return {
        "protocolVersion": revision,
        "capabilities": script.declaration(revision),
        "serverInfo": script.info,
        "instructions": "A server for tests.",
    }


def discover(script: Script, call: Call) -> Answer:
    """Says which modern revisions are served, and what is promised in this one."""
    return {
        "supportedVersions": list(reversed(script.served[Era.MODERN])),
        "capabilities": script.declaration(call.revision),
        "instructions": "A server for tests.",
        "_meta": {f"{META}serverInfo": script.info},
        **_CACHE,
    }


def ping(_script: Script, _call: Call) -> Answer:
    """Nothing, at once."""
    return {}


def list_tools(script: Script, call: Call) -> Answer:
    """A page of the tools."""
    return page(call, "tools", script.catalogue.tools, TOOL_PAGE)


def list_prompts(script: Script, call: Call) -> Answer:
    """A page of the prompts."""
    return page(call, "prompts", script.catalogue.prompts, PAGE)


def list_resources(script: Script, call: Call) -> Answer:
    """A page of the resources."""
    return page(call, "resources", script.catalogue.resources, PAGE)


def list_templates(script: Script, call: Call) -> Answer:
    """A page of the resource templates."""
    return page(call, "resourceTemplates", script.catalogue.templates, PAGE)


def get_prompt(script: Script, call: Call) -> Answer:
    """A prompt with its arguments filled in."""
    prompt = next((item for item in script.catalogue.prompts if item["name"] == call.params.get("name")), None)
    given = call.params.get("arguments", {})
    if prompt is None or not isinstance(given, dict):
        return Refusal(-32602, "Unknown prompt, or arguments that are no object")
    given = cast("JsonObject", given)
    lacking = [item["name"] for item in prompt.get("arguments", ()) if not isinstance(given.get(item["name"]), str)]
    if lacking:
        return Refusal(-32602, f"Missing argument: {', '.join(lacking)}")
    words = f"Say hello to {given['name']}." if prompt["name"] == "greet" else f"The prompt {prompt['name']}."
    return {"messages": [{"role": "user", "content": {"type": "text", "text": words}}]}


def unknown_resource(call: Call, uri: str) -> Refusal:
    """The error for a resource that is not there, as the revision in force spells it."""
    legacy = register().error(-32002)
    code = -32002 if legacy and call.revision in legacy.revisions else -32602
    return Refusal(code, "Resource not found", {"uri": uri})


def read_resource(script: Script, call: Call) -> Answer:
    """The text of a resource."""
    uri = text(call, "uri")
    if isinstance(uri, Refusal):
        return uri
    item = next((item for item in script.catalogue.resources if item["uri"] == uri), None)
    if item is None:
        return unknown_resource(call, uri)
    contents = {"uri": uri, "mimeType": item["mimeType"], "text": script.catalogue.texts[uri]}
    return {"contents": [contents], **_CACHE}


def subscribe(script: Script, call: Call) -> Answer:
    """Watches a resource for this session."""
    uri = text(call, "uri")
    if isinstance(uri, Refusal):
        return uri
    if uri not in script.catalogue.texts:
        return unknown_resource(call, uri)
    if call.session:
        call.session.subscriptions.add(uri)
    return {}


def unsubscribe(_script: Script, call: Call) -> Answer:
    """Watches it no longer; fine if it never did."""
    uri = text(call, "uri")
    if isinstance(uri, Refusal):
        return uri
    if call.session:
        call.session.subscriptions.discard(uri)
    return {}


def set_level(_script: Script, call: Call) -> Answer:
    """Sets the least level that this session wants."""
    if call.params.get("level") not in LEVELS:
        return Refusal(-32602, f"Unknown log level; one of {', '.join(LEVELS)}")
    if call.session:
        call.session.level = call.params["level"]
    return {}


def complete(script: Script, call: Call) -> Answer:
    """Values for an argument of the prompt or of the template."""
    ref, argument = call.params.get("ref"), call.params.get("argument")
    if not isinstance(ref, dict) or not isinstance(argument, dict):
        return Refusal(-32602, "completion/complete needs ref and argument, both objects")
    ref, argument = cast("JsonObject", ref), cast("JsonObject", argument)
    name, value = argument.get("name"), argument.get("value")
    if not isinstance(name, str) or not isinstance(value, str):
        return Refusal(-32602, "argument needs name and value, both strings")
    if "completions" not in script.variant.offers:
        return Refusal(-32601, "Method not found: completion/complete")
    found = _values(script, ref, name)
    if found is None:
        return Refusal(-32602, "Unknown ref")
    fitting = [item for item in found if item.lower().startswith(value.lower())]
    return {
        "completion": {"values": fitting[:MOST_VALUES], "total": len(fitting), "hasMore": len(fitting) > MOST_VALUES}
    }


def _values(script: Script, ref: JsonObject, name: str) -> Sequence[str] | None:
    if ref.get("type") == "ref/prompt":
        prompt = next((item for item in script.catalogue.prompts if item["name"] == ref.get("name")), None)
        if prompt is None:
            return None
        return NAMES if any(item["name"] == name for item in prompt.get("arguments", ())) else ()
    if ref.get("type") == "ref/resource" and ref.get("uri") == TEMPLATE:
        return tuple(item["name"] for item in script.catalogue.resources) if name == "id" else ()
    return None


def listen(script: Script, call: Call) -> Answer:
    """Opens a stream of notifications: acknowledges what will be sent on it, and answers no more."""
    wanted = call.params.get("notifications")
    if not isinstance(wanted, dict) or call.id is None:
        return Refusal(-32602, "subscriptions/listen needs notifications (an object)")
    wanted = cast("JsonObject", wanted)
    offers = script.offers(call.revision)
    honoured: JsonObject = {}
    for family in LISTED:
        if wanted.get(f"{family}ListChanged") is True and offers.get(family, {}).get("listChanged"):
            honoured[f"{family}ListChanged"] = True
    uris = [uri for uri in _strings(wanted.get("resourceSubscriptions")) if uri in script.catalogue.texts]
    if uris and offers.get("resources", {}).get("subscribe"):
        honoured["resourceSubscriptions"] = uris
    if "taskIds" in wanted and tasks.extension(script, call):
        refusal = tasks.ungranted(call)
        if refusal:
            return refusal
        honoured["taskIds"] = [task for task in _strings(wanted["taskIds"]) if task in script.tasks]
    script.listens.append(Listen(id=call.id, stream=call.stream, filter=dict(honoured)))
    acknowledged: JsonObject = {"_meta": {SUBSCRIPTION: call.id}, "notifications": honoured}
    script.notify("notifications/subscriptions/acknowledged", acknowledged, call.stream)
    return SILENT


def _strings(value: Json) -> list[str]:
    return [item for item in cast("list[Json]", value) if isinstance(item, str)] if isinstance(value, list) else []


METHODS: Mapping[str, Callable[[Script, Call], Answer]] = {
    "initialize": initialize,
    "server/discover": discover,
    "ping": ping,
    "tools/list": list_tools,
    "tools/call": tools.call_tool,
    "prompts/list": list_prompts,
    "prompts/get": get_prompt,
    "resources/list": list_resources,
    "resources/templates/list": list_templates,
    "resources/read": read_resource,
    "resources/subscribe": subscribe,
    "resources/unsubscribe": unsubscribe,
    "logging/setLevel": set_level,
    "completion/complete": complete,
    "subscriptions/listen": listen,
    "tasks/get": tasks.get,
    "tasks/result": tasks.payload,
    "tasks/list": tasks.listed,
    "tasks/cancel": tasks.cancel,
    "tasks/update": tasks.update,
}
