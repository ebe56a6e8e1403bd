"""Plays a capture as a server on stdio: ``replay.py CAPTURE [CAPTURE_WITHOUT_CLIENT_CAPABILITIES]``.

A capture is the record of one connection to a real server. A request that was recorded gets the recorded answer,
preceded and followed by whatever the server sent at that time. A request that was not recorded gets the answer to the
most similar one (another URI, another unknown name), and a method that was never asked gets what the server answered
to an unknown method. Standard library only.

What no capture holds is made up as the least that keeps a promise: a listed prompt can be got, a listed resource can
be read, an input request that was answered completes the call.
"""

from __future__ import annotations

import copy
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

META = "io.modelcontextprotocol/"
SUBSCRIPTION = META + "subscriptionId"
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
NOT_FOUND = {"error": {"code": -32601, "message": "Method not found"}}


@dataclass
class Exchange:
    """One message to the server, and all that came because of it."""

    method: str
    params: dict[str, Any]
    before: list[dict[str, Any]] = field(default_factory=list)
    answer: dict[str, Any] | None = None
    after: list[dict[str, Any]] = field(default_factory=list)
    calls: int = 0
    """How many tools had been called when it was sent."""


def envelope(params: dict[str, Any], revision: str) -> str:
    """What kind of ``_meta`` a request carries."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or META + "protocolVersion" not in meta:
        return "none"
    version = meta[META + "protocolVersion"]
    if version != revision:
        return "legacy" if isinstance(version, str) and version[:2] == "20" else "bad"
    return "full" if isinstance(meta.get(META + "clientCapabilities"), dict) else "incomplete"


def bare(method: str, params: dict[str, Any]) -> str:
    """What tells two requests apart: everything but ``_meta``, which counts where it is the question itself."""
    rest = {key: value for key, value in params.items() if key != "_meta"}
    return json.dumps([rest, method == "server/discover" and "_meta" in params], sort_keys=True)


def about_headers(entry: dict[str, Any]) -> bool:
    """Whether a recorded request asks what becomes of wrong HTTP headers, which has no counterpart on stdio."""
    headers, meta = entry.get("headers"), (entry["msg"].get("params") or {}).get("_meta")
    if headers is None or not isinstance(meta, dict) or META + "protocolVersion" not in meta:
        return False
    asked = (headers.get("MCP-Protocol-Version"), headers.get("Mcp-Method"))
    return asked != (meta[META + "protocolVersion"], entry["msg"]["method"]) and entry["msg"]["method"] == "tools/list"


def read(log: list[dict[str, Any]]) -> list[Exchange]:
    """Sorts the frames of a log into exchanges."""
    exchanges: list[Exchange] = []
    by_id: dict[Any, Exchange] = {}
    calls = 0
    for entry in log:
        message = entry["msg"]
        if entry["dir"] == ">":
            if "method" not in message or about_headers(entry):
                continue
            exchange = Exchange(message["method"], message.get("params") or {}, calls=calls)
            calls += message["method"] == "tools/call"
            exchanges.append(exchange)
            if "id" in message:
                by_id[message["id"]] = exchange
        elif "method" in message and exchanges:
            at = exchanges[-1]
            (at.after if at.answer or at not in by_id.values() else at.before).append(message)
        elif "result" in message or "error" in message:
            post = str(entry.get("via", "")).removeprefix("post#")
            exchange = by_id.get(message.get("id")) or (by_id.get(int(post)) if post.isdigit() else None)
            if exchange is not None and exchange.answer is None:
                exchange.answer = {key: message[key] for key in ("result", "error") if key in message}
    return exchanges


class Replay:
    """One capture, ready to be asked."""

    def __init__(self, capture: dict[str, Any]) -> None:
        self.revision: str = capture["rev"]
        self.modern = "server/discover" in capture["methods"]
        self.exchanges = read(capture["log"])
        self.names = {
            "tools/call": set(capture.get("tools") or ()),
            "prompts/get": set(capture.get("prompts") or ()),
            "resources/read": set(capture.get("resources") or ()),
        }
        self.served_calls: set[int] = set()
        self.watched = {
            one.params.get("uri")
            for one in self.exchanges
            if one.method == "resources/subscribe" and "result" in (one.answer or {})
        }
        """Resources whose updates were sent because the recording client had subscribed to them."""

    def kind(self, params: dict[str, Any]) -> str:
        return envelope(params, self.revision) if self.modern else "full"

    def variant(self, method: str, params: dict[str, Any]) -> Any:
        """What makes two requests of a method comparable."""
        if method == "logging/setLevel":
            return params.get("level") in LEVELS
        if method == "completion/complete":
            return (params.get("ref") or {}).get("type")
        if method == "tools/call":
            return params.get("name")
        if method == "prompts/get":
            return params.get("name") in self.names[method]
        if method == "resources/read":
            return params.get("uri") in self.names[method]
        return None

    def find(self, method: str, params: dict[str, Any]) -> Exchange | None:
        """The recorded exchange that answers a request best."""
        kind = self.kind(params)
        if kind != "full":
            refused = [one for one in self.exchanges if one.method == "tools/list" and self.kind(one.params) == kind]
            if refused and "error" in (refused[0].answer or {}):
                return refused[0]
        same = [one for one in self.exchanges if one.method == method and self.kind(one.params) == "full"]
        exact = [one for one in same if bare(method, one.params) == bare(method, params)]
        if exact:
            # A list that was read again after calls is served again only after as many.
            reached = [one for one in exact if one.calls <= len(self.served_calls)]
            return (reached or exact[:1])[-1]
        alike = [one for one in same if self.variant(method, one.params) == self.variant(method, params)]
        if alike:
            return alike[0]
        known = self.variant(method, params) is True
        if method == "prompts/get" and known:
            return Exchange(method, params, answer={"result": self.complete({"messages": []})})
        if method == "tools/call":
            absent = [one for one in same if one.params.get("name") == "__probe_absent__"]
            return absent[0] if absent else None
        if same:
            return same[0]
        unknown = [one for one in self.exchanges if one.method == "probe/unknown"]
        return unknown[0] if unknown else None

    def complete(self, result: dict[str, Any]) -> dict[str, Any]:
        return {"resultType": "complete", **result} if self.modern else result


class Player:
    """Speaks as the server of one or two captures."""

    def __init__(self, full: Replay, none: Replay | None) -> None:
        self.full = full
        self.none = none or full
        self.active = full
        self.listening: list[tuple[Any, dict[str, Any]]] = []
        self.subscribed: set[Any] = set()
        self.level: str | None = None
        self.asked = 0

    def out(self, message: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    def send(self, message: dict[str, Any]) -> None:
        """Sends a recorded notification or request of the server, on the subscriptions that are open now."""
        message = copy.deepcopy(message)
        if "id" in message:
            self.asked += 1
            message["id"] = f"replay-{self.asked}"
        meta = (message.get("params") or {}).get("_meta") or {}
        if SUBSCRIPTION not in meta:
            uri = (message.get("params") or {}).get("uri")
            if uri not in self.active.watched - self.subscribed:
                self.out(message)
            return
        for request, wanted in self.listening:
            if self.wanted(message, wanted):
                meta[SUBSCRIPTION] = request
                self.out(message)

    @staticmethod
    def wanted(message: dict[str, Any], wanted: dict[str, Any]) -> bool:
        if message["method"] == "notifications/resources/updated":
            return message["params"].get("uri") in (wanted.get("resourceSubscriptions") or ())
        family = message["method"].split("/")[1]
        return bool(wanted.get(f"{family}ListChanged"))

    def loud(self, message: dict[str, Any], params: dict[str, Any], exchange: Exchange) -> bool:
        """Whether a recorded log message is due: the recording client had asked for every level."""
        if message["method"] != "notifications/message":
            return True
        key = META + "logLevel"
        asked = (exchange.params.get("_meta") or {}).get(key)
        least = (params.get("_meta") or {}).get(key) if asked else self.level
        if asked and least is None:
            return False
        return least not in LEVELS or LEVELS.index(message["params"].get("level", "debug")) >= LEVELS.index(least)

    def listen(self, request: Any, params: dict[str, Any], exchange: Exchange) -> None:
        """Acknowledges what was acknowledged when everything was asked, as far as it is asked now."""
        recorded = next((one for one in exchange.before if one["method"].endswith("/acknowledged")), None)
        if recorded is None:
            return
        wanted = params.get("notifications") or {}
        could = recorded["params"]["notifications"]
        honoured = {key: value for key, value in wanted.items() if key in could}
        self.listening.append((request, honoured))
        acknowledged = {"_meta": {SUBSCRIPTION: request}, "notifications": honoured}
        self.out({"jsonrpc": "2.0", "method": recorded["method"], "params": acknowledged})

    def choose(self, method: str, params: dict[str, Any]) -> None:
        """Takes the capture with the client capabilities that the peer has."""
        declared: Any = None
        if method == "initialize":
            declared = params.get("capabilities")
        elif self.full.modern:
            declared = (params.get("_meta") or {}).get(META + "clientCapabilities")
        if declared is not None:
            # A client that declares a part of everything was never recorded: it is met as one that declares nothing.
            everything = {"roots", "sampling"} <= set(declared)
            self.active = self.full if everything else self.none

    def request(self, request: Any, method: str, params: dict[str, Any]) -> None:
        self.choose(method, params)
        exchange = self.active.find(method, params)
        if exchange is None:
            self.out({"jsonrpc": "2.0", "id": request, **NOT_FOUND})
            return
        if method == "subscriptions/listen" and exchange.answer is None:
            self.listen(request, params, exchange)
            return
        for message in exchange.before:
            if self.loud(message, params, exchange):
                self.send(message)
        answer = exchange.answer
        if method == "tools/call" and "inputResponses" in params and "inputResponses" not in exchange.params:
            answer = {"result": self.active.complete({"content": []})}
        elif method == "resources/read" and answer and "result" in answer and params.get("uri"):
            answer = copy.deepcopy(answer)
            for content in answer["result"].get("contents", []):
                content["uri"] = params["uri"]
        if answer is not None:
            self.out({"jsonrpc": "2.0", "id": request, **answer})
        for message in exchange.after:
            if self.loud(message, params, exchange):
                self.send(message)
        if method == "logging/setLevel" and "result" in (answer or {}):
            self.level = params.get("level")
        if method == "resources/subscribe" and "result" in (answer or {}):
            self.subscribed.add(params.get("uri"))
        if method == "tools/call" and exchange.params.get("name") == params.get("name"):
            self.active.served_calls.add(id(exchange))

    def notification(self, method: str) -> None:
        for exchange in self.active.exchanges:
            if exchange.method == method and not method.endswith("/cancelled"):
                for message in exchange.after:
                    self.send(message)
                return

    def run(self) -> None:
        for line in sys.stdin:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if not isinstance(message, dict) or "method" not in message:
                continue
            params = message.get("params")
            if "id" in message:
                self.request(message["id"], message["method"], params if isinstance(params, dict) else {})
            else:
                self.notification(message["method"])


def main() -> None:
    full, *rest = (Replay(json.loads(Path(name).read_text("utf-8"))) for name in sys.argv[1:3])
    Player(full, rest[0] if rest else None).run()


if __name__ == "__main__":
    main()
