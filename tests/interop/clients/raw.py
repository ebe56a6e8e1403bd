"""A client that speaks raw frames over HTTP in either era, and forgives nothing by itself.

SDKs mend what they read: they leave out tools with bad headers, or fill in what is missing. Where the gateway is to be
judged and not an SDK, this speaks instead. It answers questions, in the era's own way.
"""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Json = dict[str, Any]

MODERN = frozenset({"2026-07-28"})
META = "io.modelcontextprotocol/"
INFO = {"name": "raw", "version": "1"}
EVERYTHING = {"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": True}}
SECONDS = 30.0


class Refused(Exception):  # noqa: N818 - an answer, and not a fault of ours
    """An answer that is an error of JSON-RPC, or no answer."""

    def __init__(self, error: Json, status: int) -> None:
        super().__init__(f"HTTP {status}: {error}")
        self.error, self.status = error, status


def fill(schema: Json) -> Json:
    """Content for a form: the defaults, and something for what has none."""
    made = {"string": "word", "integer": 1, "number": 1.5, "boolean": True, "array": []}
    return {
        name: one.get("default", made.get(one.get("type", "string"), "word"))
        for name, one in schema.get("properties", {}).items()
    }


def answer(method: str, params: Json) -> Json:
    """What a willing client answers to a question."""
    match method:
        case "elicitation/create":
            return {"action": "accept", "content": fill(params.get("requestedSchema", {}))}
        case "sampling/createMessage":
            content = {"type": "text", "text": "A model's answer"}
            return {"role": "assistant", "content": content, "model": "test", "stopReason": "endTurn"}
        case "roots/list":
            return {"roots": [{"uri": "file:///folder", "name": "folder"}]}
    return {}


def header(value: Any) -> str | None:
    """The value of a header that repeats an argument; None where there is none."""
    if value is None:
        return None
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
    plain = all(" " <= one <= "~" for one in text) and text == text.strip()
    if plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


class Raw:
    """One client.

    Args:
        url: Address of the endpoint.
        revision: Revision that it speaks; its era follows from it.
        capabilities: What it declares.
        answer: What it answers to questions: method and params -> result.
    """

    def __init__(
        self,
        url: str,
        revision: str,
        *,
        capabilities: Json | None = None,
        answer: Callable[[str, Json], Json] = answer,
        token: str | None = None,
    ) -> None:
        self.url, self.revision = url, revision
        self.modern = revision in MODERN
        self.capabilities = EVERYTHING if capabilities is None else capabilities
        self.answer = answer
        self.token = token
        self.session: str | None = None
        self.plans: dict[str, dict[str, str]] = {}
        self.notifications: list[Json] = []
        self._number = 0

    def open(self) -> Json:
        """What the server says of itself."""
        if self.modern:
            return self.request("server/discover")
        params = {"protocolVersion": self.revision, "capabilities": self.capabilities, "clientInfo": INFO}
        result = self.request("initialize", params)
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"}, "")
        return result

    def tools(self) -> list[Json]:
        tools = self.request("tools/list")["tools"]
        for tool in tools:
            properties = tool.get("inputSchema", {}).get("properties", {})
            self.plans[tool["name"]] = {
                name: one["x-mcp-header"]
                for name, one in properties.items()
                if isinstance(one, dict) and isinstance(one.get("x-mcp-header"), str)
            }
        return tools

    def call(self, name: str, arguments: Json | None = None, **more: Any) -> Json:
        """Calls a tool; asks back as long as the result asks."""
        return self.request("tools/call", {"name": name, "arguments": arguments or {}, **more})

    def request(self, method: str, params: Json | None = None) -> Json:
        """A result; questions in between are answered.

        Raises:
            Refused: The answer is an error.
        """
        sent = dict(params or {})
        while True:
            result = self._once(method, sent)
            if result.get("resultType") != "input_required":
                return result
            asked = result.get("inputRequests") or {}
            sent = dict(params or {})
            if asked:
                sent["inputResponses"] = {
                    key: self.answer(one["method"], one.get("params", {})) for key, one in asked.items()
                }
            if "requestState" in result:
                sent["requestState"] = result["requestState"]

    def _once(self, method: str, params: Json) -> Json:
        self._number += 1
        if self.modern:
            own = {f"{META}protocolVersion": self.revision, f"{META}clientInfo": INFO}
            own[f"{META}clientCapabilities"] = self.capabilities
            params = {**params, "_meta": {**params.get("_meta", {}), **own}}
        frame = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        status = 0
        for status, message in self._post(frame, method):
            if "method" in message and "id" in message:
                result = self.answer(message["method"], message.get("params", {}))
                list(self._post({"jsonrpc": "2.0", "id": message["id"], "result": result}, ""))
            elif "method" in message:
                self.notifications.append(message)
            elif "error" in message:
                raise Refused(message["error"], status)
            elif message.get("id") == self._number:
                return message["result"]
        raise Refused({"message": f"no answer to {method}"}, status)

    def _headers(self, frame: Json, method: str) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        if method != "initialize":
            headers["MCP-Protocol-Version"] = self.revision
        if self.modern:
            params = frame.get("params", {})
            headers["Mcp-Method"] = method
            name = params.get("name") or params.get("uri")
            if method in {"tools/call", "prompts/get", "resources/read"} and name:
                headers["Mcp-Name"] = header(name) or ""
            for argument, suffix in self.plans.get(name or "", {}).items():
                value = header((params.get("arguments") or {}).get(argument))
                if method == "tools/call" and value is not None:
                    headers[f"Mcp-Param-{suffix}"] = value
        return headers

    def _post(self, frame: Json, method: str) -> list[tuple[int, Json]] | Iterator[tuple[int, Json]]:
        request = urllib.request.Request(self.url, json.dumps(frame).encode(), self._headers(frame, method))
        try:
            response = urllib.request.urlopen(request, timeout=SECONDS)
        except urllib.error.HTTPError as refused:
            response = refused
        if session := response.headers.get("Mcp-Session-Id"):
            self.session = session
        if "id" not in frame or not method:
            response.close()
            return []
        return self._messages(response)

    def _messages(self, response: Any) -> Iterator[tuple[int, Json]]:
        with response:
            if not response.headers.get("Content-Type", "").startswith("text/event-stream"):
                if text := response.read():
                    yield response.status, json.loads(text)
                return
            data: list[str] = []
            for raw in response:
                text = raw.decode().rstrip("\r\n")
                if text.startswith("data:"):
                    data.append(text[5:].strip())
                elif not text and data:
                    if whole := "\n".join(data):
                        yield response.status, json.loads(whole)
                    data = []

    def close(self) -> None:
        if self.session:
            request = urllib.request.Request(self.url, headers=self._headers({}, "delete"), method="DELETE")
            try:
                urllib.request.urlopen(request, timeout=SECONDS).close()
            except urllib.error.HTTPError as refused:
                refused.close()
