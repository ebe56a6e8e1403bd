"""A host in memory: drives a script and keeps every word of it."""

from __future__ import annotations

import re
from typing import Any

from troth.register import Era, register
from troth.testing import Context, Exit, Junk, Out, Script, Send, twists

META = "io.modelcontextprotocol/"
EVERYTHING = {
    "roots": {},
    "sampling": {"tools": {}, "context": {}},
    "elicitation": {"form": {}, "url": {}},
}
TASKS = {"extensions": {META + "tasks": {}}}
ANSWERS: dict[str, Any] = {
    "roots/list": {"roots": [{"uri": "file:///a"}]},
    "sampling/createMessage": {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}},
    "elicitation/create": {"action": "decline"},
}
ONE = "note://notes/one"


class Host:
    """Speaks one revision with one script, in one session."""

    def __init__(self, revision: str, *breaks: str, capabilities: dict[str, Any] | None = None, **how: Any) -> None:
        self.revision = revision
        self.modern = register().era(revision) is Era.MODERN
        self.capabilities: dict[str, Any] = {} if capabilities is None else capabilities
        self.script = how.pop("script", None) or Script(
            twists=twists(breaks), now=lambda: "2026-01-01T00:00:00Z", **how
        )
        self.context = Context(session="one", stream="here")
        self.heard: list[Any] = []
        self.outs: list[Out] = []
        self.ids = 0

    def feed(self, value: Any) -> list[Out]:
        outs = [*self.script.feed(value, self.context), *self.script.release()]
        self.outs += outs
        self.heard += [out.message for out in outs if isinstance(out, Send)]
        return outs

    def meta(self, **more: Any) -> dict[str, Any]:
        fixed = {META + "protocolVersion": self.revision, META + "clientCapabilities": self.capabilities}
        return {**fixed, **{META + name: value for name, value in more.items()}}

    def ask(self, method: str, params: dict[str, Any] | None = None, **meta: Any) -> Any:
        """The response, or None; what else is said is in ``heard``."""
        self.ids += 1
        params = dict(params or {})
        if self.modern:
            params["_meta"] = self.meta(**meta)
        outs = self.feed({"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params})
        return self.answer_in(outs)

    def answer_in(self, outs: list[Out]) -> Any:
        messages = [out.message for out in outs if isinstance(out, Send) and isinstance(out.message, dict)]
        return next((m for m in messages if "method" not in m), None)

    def result(self, method: str, params: dict[str, Any] | None = None, **meta: Any) -> Any:
        return (self.ask(method, params, **meta) or {}).get("result")

    def code(self, method: str, params: dict[str, Any] | None = None, **meta: Any) -> Any:
        return (self.ask(method, params, **meta) or {}).get("error", {}).get("code")

    def tell(self, method: str, params: dict[str, Any] | None = None) -> list[Out]:
        return self.feed({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})

    def open(self, *, wanted: str = "", initialized: bool = True) -> Any:
        """Opens the session, or discovers; returns the result."""
        if self.modern:
            return self.result("server/discover")
        info = {"name": "host", "version": "1"}
        params = {
            "protocolVersion": wanted or self.revision,
            "capabilities": self.capabilities,
            "clientInfo": info,
        }
        opened = self.result("initialize", params)
        if initialized:
            self.tell("notifications/initialized")
        return opened

    def call(self, tool: str, arguments: dict[str, Any] | None = None, **params: Any) -> Any:
        """Calls a tool and answers what it asks; returns the final response."""
        asked = {"name": tool, "arguments": arguments or {}, **params}
        response = self.ask("tools/call", asked)
        if response is None:
            question = next((m for m in reversed(self.heard) if "method" in m and "id" in m), None)
            if question is None:
                return None
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": ANSWERS[question["method"]]}
            return self.answer_in(self.feed(answer))
        result = response.get("result") or {}
        if result.get("resultType") == "input_required":
            answers = {key: ANSWERS[entry["method"]] for key, entry in result["inputRequests"].items()}
            return self.ask("tools/call", {**asked, "inputResponses": answers, "requestState": result["requestState"]})
        return response

    def notes(self, method: str) -> list[Any]:
        return [message for message in self.heard if isinstance(message, dict) and message.get("method") == method]

    def listen(self, **kinds: Any) -> Any:
        return self.ask("subscriptions/listen", {"notifications": kinds})


def converse(host: Host) -> list[str]:
    """A conversation that touches every promise; returns all that the server said, with random parts named alike."""
    if host.modern:
        host.listen(toolsListChanged=True)
        host.feed(
            {"jsonrpc": "2.0", "id": "bare", "method": "tools/list", "params": {"_meta": {META + "clientInfo": {}}}}
        )
        unknown = {**host.meta(), META + "protocolVersion": "1900-01-01"}
        host.feed({"jsonrpc": "2.0", "id": "old", "method": "tools/list", "params": {"_meta": unknown}})
        host.open()
        host.open()
        host.listen(
            toolsListChanged=True, promptsListChanged=True, resourcesListChanged=True, resourceSubscriptions=[ONE]
        )
    else:
        host.feed({"jsonrpc": "2.0", "id": "early", "method": "tools/list"})
        if host.revision == register().newest(Era.LEGACY):
            host.open(wanted="1900-01-01")
        host.open()
        host.ask("resources/subscribe", {"uri": ONE})
        host.ask("logging/setLevel", {"level": "loud"})
        host.ask("logging/setLevel", {"level": "error"})
    host.tell("notifications/unknown")
    for method in ("ping", "no/such", "logging/setLevel", "resources/subscribe", "tasks/list", "skills/list"):
        host.ask(method, {"uri": ONE, "level": "error"})
    for name in ("tools", "prompts", "resources", "resources/templates"):
        first = host.result(f"{name}/list") or {}
        if "nextCursor" in first:
            host.ask(f"{name}/list", {"cursor": first["nextCursor"]})
    host.ask("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}})
    for uri in (ONE, "ui://troth/panel"):
        host.ask("resources/read", {"uri": uri})
    reference = {"type": "ref/prompt", "name": "greet"}
    host.ask("completion/complete", {"ref": reference, "argument": {"name": "name", "value": "a"}})
    host.ask("tools/call", {"name": "no_such"})
    for tool in ("read_note", "touch", "log", "add_tool", "add_prompt", "add_resource", "remove_tool", "slow"):
        host.call(tool)
    host.ask("tools/call", {"name": "log"}, logLevel="error")
    for kind in ("roots", "sampling", "sampling_tools", "sampling_context", "form", "url"):
        host.call(f"ask_{kind}")
    _tasks(host)
    host.ask("resources/unsubscribe", {"uri": ONE})
    first = host.script.sessions.get("one")
    host.context = Context(session="two", stream="there")
    if first:
        host.open()
        host.ask("tasks/list")
    host.context = Context(session="three", stream="elsewhere")
    host.capabilities = {**host.capabilities, "unheardOf": {}}
    host.open()
    return transcript(host)


def _tasks(host: Host) -> None:
    own = host.capabilities
    host.capabilities = {**own, **TASKS} if host.modern else own
    host.call("read_note", task={"ttl": 1000})
    made = (host.call("slow", task={"ttl": 1000}) or {}).get("result") or {}
    identity = (made.get("task") or made).get("taskId", "absent")
    for method in ("tasks/get", "tasks/list", "tasks/get", "tasks/result", "tasks/cancel", "tasks/update"):
        host.ask(method, {"taskId": identity})
    host.ask("tasks/get", {"taskId": "absent"})
    host.capabilities = own
    host.ask("tasks/get", {"taskId": identity})


def transcript(host: Host) -> list[str]:
    lines: list[str] = []
    for out in host.outs:
        if isinstance(out, Send):
            text = f"{out.stream} {out.message!r}"
        else:
            text = out.text[:100] if isinstance(out, Junk) else f"exit {out.code}" if isinstance(out, Exit) else ""
        for identity in host.script.tasks:
            text = text.replace(identity, "TASK")
        lines.append(re.sub(r"'requestState': '[^']+'", "'requestState': 'STATE'", text))
    return lines
