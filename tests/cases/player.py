"""Plays one case as a server on stdio: ``player.py CASES.json ID`` or ``player.py '{"id": ..., "rev": ...}'``.

A case says what a server declares (``declare``) and how it behaves (``behave``) in one revision (``rev``); without
``behave`` the server keeps every promise that it makes. Members of ``behave``:

==========================  ===========================================================================================
a method                    ``{"error": [code, text]}``, ``{"result": ...}``, ``{"http": status, "body": text}`` (a
                            refusal of a transport, here an error -32603), ``{"raw": message}``, ``{"text": line}``
                            (``$id`` stands for the id of the request), ``"drop"``, ``"die"``
``unknown``                 the same for every method that is not declared
``emit_on_call``            notifications sent during every tools/call
``emit_on_start``           notifications sent after ``notifications/initialized``
``grow_on_call``            ``true`` or a family: its list grows at every tools/call
``announce``                ``true``: growth is announced, in the way of the revision
``ask_on_call``             requests to the client, sent in every tools/call, declared by it or not
``listen_ack``              what ``subscriptions/listen`` acknowledges, whatever was asked
``modern_declare``          a legacy server that also serves the modern era, and declares this there
``version``                 the revision that ``initialize`` always answers; ``"echo"``: whatever was asked
``logs``                    ``true``: a log message at every tools/call, at the level that was asked for
``task_tool``               ``true``: there is a tool that can be a task
``hide_without``            a client capability without which there are no tools; ``by_process``: each has its own
``cache``                   the ``cacheScope`` of lists in the modern era (``private``)
``exit``                    what is written to standard error before the server ends without an answer
``junk``                    text printed between the messages
``answer_notifications``    ``true``: notifications are answered
``no_meta_check``           ``true``: modern requests without ``_meta`` are served
``reject_client_caps_with`` a refusal of ``roots.listChanged`` in modern client capabilities
==========================  ===========================================================================================
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

PREFIX = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
FAMILIES = {
    "tools/": "tools",
    "resources/": "resources",
    "prompts/": "prompts",
    "logging/": "logging",
    "completion/": "completions",
    "tasks/": "tasks",
}
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
NOT_FOUND = (-32601, "Method not found")


class RefusalError(Exception):
    def __init__(self, code: int, text: str, data: Any = None) -> None:
        super().__init__(text)
        self.error = {"code": code, "message": text, **({} if data is None else {"data": data})}


class Player:
    """One server."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.case = case
        self.behave: dict[str, Any] = case.get("behave", {})
        self.revision: str = case["rev"]
        self.modern = self.revision == MODERN
        self.level: str | None = None
        self.handshake: dict[str, Any] = {}
        self.listening: list[tuple[Any, dict[str, Any]]] = []
        self.subscribed: set[str] = set()
        self.asked = 0
        name = f"act{os.getpid()}" if self.behave.get("by_process") else "act"
        tool: dict[str, Any] = {"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
        slow = {**tool, "name": "slow", "execution": {"taskSupport": "optional"}}
        self.lists: dict[str, list[dict[str, Any]]] = {
            "tools": [tool, *([slow] if self.behave.get("task_tool") else [])],
            "resources": [{"uri": "probe://one", "name": "one"}],
            "prompts": [{"name": "greet", "arguments": [{"name": "who"}]}],
            "resourceTemplates": [{"uriTemplate": "probe://t/{x}", "name": "t"}],
        }

    def out(self, message: Any) -> None:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    def declared(self) -> dict[str, Any]:
        own = self.case["declare"]
        return self.behave.get("modern_declare", own) if self.modern else own

    def member(self, *path: str) -> Any:
        value: Any = self.declared()
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        self.out({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})

    def publish(self, family: str) -> None:
        """Announces a changed list where this revision announces it."""
        method = f"notifications/{family}/list_changed"
        if not self.modern:
            self.notify(method)
            return
        for request, wanted in self.listening:
            if wanted.get(f"{family}ListChanged"):
                self.notify(method, {"_meta": {PREFIX + "subscriptionId": request}})

    # Answers, by method

    def opening(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        info = {"name": self.case["id"], "version": "0"}
        if method == "server/discover":
            rest = {"ttlMs": 0, "cacheScope": "private", "_meta": {PREFIX + "serverInfo": info}}
            return {"supportedVersions": [MODERN], "capabilities": self.declared(), **rest}
        self.handshake = params.get("capabilities") or {}
        version = self.behave.get("version", self.case["rev"])
        if version == "echo":
            version = params.get("protocolVersion")
        return {"protocolVersion": version, "capabilities": self.declared(), "serverInfo": info}

    def listed(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        family = "resourceTemplates" if method == "resources/templates/list" else method.partition("/")[0]
        cache = {"ttlMs": 0, "cacheScope": self.behave.get("cache", "private")} if self.modern else {}
        client = self.client(params) if self.modern else self.handshake
        hidden = family == "tools" and self.behave.get("hide_without", "") not in ("", *client)
        return {family: [] if hidden else list(self.lists[family]), **cache}

    def read(self, params: dict[str, Any]) -> dict[str, Any]:
        uri = params.get("uri")
        if uri not in [one["uri"] for one in self.lists["resources"]] and not str(uri).startswith("probe://t/"):
            raise RefusalError(-32602 if self.modern else -32002, "Resource not found", {"uri": uri})
        cache = {"ttlMs": 0, "cacheScope": "private"} if self.modern else {}
        return {"contents": [{"uri": uri, "text": "x"}], **cache}

    def subscribe(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if self.modern or self.member("resources", "subscribe") is not True:
            raise RefusalError(*NOT_FOUND)
        (self.subscribed.add if method == "resources/subscribe" else self.subscribed.discard)(params.get("uri", ""))
        return {}

    def set_level(self, params: dict[str, Any]) -> dict[str, Any]:
        if self.modern:
            raise RefusalError(*NOT_FOUND)
        if params.get("level") not in LEVELS:
            raise RefusalError(-32602, "Unknown level")
        self.level = params["level"]
        return {}

    def get_prompt(self, params: dict[str, Any]) -> dict[str, Any]:
        if params.get("name") not in [one["name"] for one in self.lists["prompts"]]:
            raise RefusalError(-32602, "Unknown prompt")
        return {"messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}]}

    def task(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "tasks/list" and self.member("tasks", "list") is not None:
            return {"tasks": []}
        if method in ("tasks/get", "tasks/result") or self.member("tasks", method.partition("/")[2]) is not None:
            raise RefusalError(-32602, "Unknown task")
        raise RefusalError(*NOT_FOUND)

    def task_extension(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method not in ("tasks/get", "tasks/cancel", "tasks/update"):
            raise RefusalError(*NOT_FOUND)
        client = self.client(params).get("extensions") or {}
        if PREFIX + "tasks" not in client:
            needed = {"extensions": {PREFIX + "tasks": {}}}
            raise RefusalError(-32021, "Missing required client capability", {"requiredCapabilities": needed})
        raise RefusalError(-32602, "Unknown task")

    @staticmethod
    def client(params: dict[str, Any]) -> dict[str, Any]:
        return (params.get("_meta") or {}).get(PREFIX + "clientCapabilities") or {}

    def call(self, params: dict[str, Any]) -> dict[str, Any]:
        for notification in self.behave.get("emit_on_call", ()):
            self.out({"jsonrpc": "2.0", **notification})
        self.log(params)
        grown = self.behave.get("grow_on_call")
        if grown:
            self.grow("tools" if grown is True else grown)
        if self.behave.get("ask_on_call") and self.modern and "inputResponses" not in params:
            asked = {f"k{number}": one for number, one in enumerate(self.behave["ask_on_call"])}
            return {"resultType": "input_required", "inputRequests": asked, "requestState": "s"}
        for request in [] if self.modern else self.behave.get("ask_on_call", ()):
            self.asked += 1
            self.out({"jsonrpc": "2.0", "id": f"ask-{self.asked}", **request})
        if params.get("name") not in [one["name"] for one in self.lists["tools"]]:
            raise RefusalError(-32602, "Unknown tool")
        return {"content": [{"type": "text", "text": "ok"}]}

    def log(self, params: dict[str, Any]) -> None:
        if not self.behave.get("logs"):
            return
        meta = params.get("_meta") or {}
        least = meta.get(PREFIX + "logLevel") if self.modern else self.level or "debug"
        if least in LEVELS and LEVELS.index("info") >= LEVELS.index(least):
            self.notify("notifications/message", {"level": "info", "data": "x"})

    def grow(self, family: str) -> None:
        number = len(self.lists[family])
        new = {
            "tools": {"name": f"late{number}", "inputSchema": {"type": "object"}},
            "resources": {"uri": f"probe://late{number}", "name": f"late{number}"},
            "prompts": {"name": f"late{number}"},
        }
        self.lists[family].append(new[family])
        if self.behave.get("announce"):
            self.publish(family)

    def default(self, method: str, params: dict[str, Any]) -> Any:
        if method == ("server/discover" if self.modern else "initialize"):
            return self.opening(method, params)
        if method == "ping" and not self.modern:
            return {}
        if self.modern and method.startswith("tasks/") and self.member("extensions", PREFIX + "tasks") is not None:
            return self.task_extension(method, params)
        family = next((name for start, name in FAMILIES.items() if method.startswith(start)), None)
        if family is None or family not in self.declared():
            raise RefusalError(*NOT_FOUND)
        answers: dict[str, Any] = {
            "tools/list": lambda: self.listed(method, params),
            "resources/list": lambda: self.listed(method, params),
            "resources/templates/list": lambda: self.listed(method, params),
            "prompts/list": lambda: self.listed(method, params),
            "tools/call": lambda: self.call(params),
            "resources/read": lambda: self.read(params),
            "resources/subscribe": lambda: self.subscribe(method, params),
            "resources/unsubscribe": lambda: self.subscribe(method, params),
            "prompts/get": lambda: self.get_prompt(params),
            "logging/setLevel": lambda: self.set_level(params),
            "completion/complete": lambda: {"completion": {"values": ["alpha"]}},
        }
        if method.startswith("tasks/"):
            return self.task(method, params)
        if method not in answers:
            raise RefusalError(*NOT_FOUND)
        return answers[method]()

    # The conversation

    def listen(self, request: Any, params: dict[str, Any]) -> None:
        """Acknowledges what is declared (or what the case says), and keeps the stream open."""
        wanted = params.get("notifications") or {}
        could = {f"{family}ListChanged" for family in self.lists if self.member(family, "listChanged") is True}
        could |= {"resourceSubscriptions"} if self.member("resources", "subscribe") is True else set()
        there = {one["uri"] for one in self.lists["resources"]}
        honoured = {key: value for key, value in wanted.items() if key in could}
        if "resourceSubscriptions" in honoured:
            honoured["resourceSubscriptions"] = [uri for uri in honoured["resourceSubscriptions"] if uri in there]
        honoured = self.behave.get("listen_ack", honoured)
        self.listening.append((request, honoured))
        meta = {PREFIX + "subscriptionId": request}
        self.notify("notifications/subscriptions/acknowledged", {"_meta": meta, "notifications": honoured})

    def check(self, method: str, params: dict[str, Any]) -> None:
        """What a modern server must know before it serves a request."""
        meta = params.get("_meta")
        if self.behave.get("no_meta_check"):
            return
        if not isinstance(meta, dict) or not isinstance(meta.get(PREFIX + "clientCapabilities"), dict):
            raise RefusalError(-32602, "_meta is incomplete")
        if meta.get(PREFIX + "protocolVersion") != MODERN:
            asked = meta.get(PREFIX + "protocolVersion")
            raise RefusalError(-32022, "Unsupported protocol version", {"supported": [MODERN], "requested": asked})
        if self.behave.get("reject_client_caps_with") and "listChanged" in json.dumps(self.client(params)):
            raise RefusalError(-32602, "clientCapabilities are invalid")

    def answer(self, request: Any, method: str, params: dict[str, Any]) -> None:
        if method in ("server/discover", "initialize") and "modern_declare" in self.behave:
            self.modern = method == "server/discover"
        told = self.behave.get(method)
        if told is None and "unknown" in self.behave and self.unknown(method):
            told = self.behave["unknown"]
        if told == "drop":
            return
        if told == "die":
            sys.exit(3)
        if isinstance(told, dict) and "raw" in told:
            self.out({**told["raw"], "id": request} if told["raw"].get("id") == "$id" else told["raw"])
            return
        if isinstance(told, dict) and "text" in told:
            sys.stdout.write(told["text"].replace("$id", json.dumps(request)) + "\n")
            sys.stdout.flush()
            return
        try:
            if isinstance(told, dict) and "error" in told:
                raise RefusalError(*told["error"])
            if isinstance(told, dict) and "http" in told:
                raise RefusalError(-32603, told["body"])
            if self.modern:
                self.check(method, params)
            if method == "subscriptions/listen" and self.modern and self.listens():
                self.listen(request, params)
                return
            result = told["result"] if isinstance(told, dict) else self.default(method, params)
        except RefusalError as refusal:
            self.out({"jsonrpc": "2.0", "id": request, "error": refusal.error})
            return
        if self.modern and isinstance(result, dict) and not (isinstance(told, dict) and "result" in told):
            result = {"resultType": "complete", **result}
        self.out({"jsonrpc": "2.0", "id": request, "result": result})

    def unknown(self, method: str) -> bool:
        family = next((name for start, name in FAMILIES.items() if method.startswith(start)), None)
        known = ("initialize", "ping", "server/discover") if not self.modern else ("server/discover",)
        return method not in known and (family is None or family not in self.declared())

    def listens(self) -> bool:
        flags = [self.member(family, "listChanged") for family in self.lists]
        return "listen_ack" in self.behave or True in (*flags, self.member("resources", "subscribe"))

    def notification(self, method: str) -> None:
        if method == "notifications/initialized":
            for notification in self.behave.get("emit_on_start", ()):
                self.out({"jsonrpc": "2.0", **notification})
        elif self.behave.get("answer_notifications"):
            self.out({"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "Method not found"}})

    def run(self) -> None:
        if "exit" in self.behave:
            sys.exit(self.behave["exit"])
        for line in sys.stdin:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if not isinstance(message, dict) or not isinstance(message.get("method"), str):
                continue
            if self.behave.get("junk"):
                sys.stdout.write(self.behave["junk"] + "\n")
            params = message.get("params")
            if "id" in message:
                self.answer(message["id"], message["method"], params if isinstance(params, dict) else {})
            else:
                self.notification(message["method"])


def main() -> None:
    first, *rest = sys.argv[1:]
    if rest:
        cases = {case["id"]: case for case in json.loads(Path(first).read_text("utf-8"))}
        Player(cases[rest[0]]).run()
    else:
        Player(json.loads(first)).run()


if __name__ == "__main__":
    main()
