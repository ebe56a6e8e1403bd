"""An upstream and a relay without any MCP library, on the HTTP libraries of the gateway: what cannot be gone below.

    python -m benchmarks.gateway.bare upstream --http PORT [--tools N]
    python -m benchmarks.gateway.bare relay --http PORT --to URL [--client NAME]

The upstream answers every path as a server of its own, in both eras: ``echo``, and tools to be listed. The relay passes
any method and the headers of MCP, and writes another id into each request and the first one back into the answer.
"""

from __future__ import annotations

import argparse
from typing import Any

import msgspec
import uvicorn
from msgspec import Raw

CAPABILITIES = {"tools": {"listChanged": False}}
INFO = {"name": "bare", "version": "1"}
META = {"_meta": {"io.modelcontextprotocol/serverInfo": INFO}}
CACHE = {"resultType": "complete", "ttlMs": 60_000, "cacheScope": "public"}
PASSED = (b"mcp-protocol-version", b"mcp-method", b"mcp-name", b"mcp-session-id", b"last-event-id")


ABSENT = Raw(b"")  # One object: a default is left out by identity.


SENT_BACK = ("mcp-session-id",)


class Request(msgspec.Struct, omit_defaults=True):
    jsonrpc: str
    method: str
    id: Raw = ABSENT
    params: Raw = ABSENT


class Response(msgspec.Struct, omit_defaults=True):
    jsonrpc: str
    id: Raw
    result: Raw = ABSENT
    error: Raw = ABSENT


_request = msgspec.json.Decoder(Request).decode
_response = msgspec.json.Decoder(Response).decode
_any = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


async def _body(receive: Any) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def _answer(send: Any, status: int, body: bytes, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *(headers or [])]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


async def _lifespan(receive: Any, send: Any) -> None:
    while True:
        message = await receive()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return


def tool(name: str) -> dict[str, object]:
    text = {"type": "string", "description": "What the tool is to say, word for word."}
    schema = {"type": "object", "properties": {"text": text}, "required": ["text"], "additionalProperties": False}
    return {"name": name, "description": "Answers with what it was given. " * 6, "inputSchema": schema}


class Upstream:
    """Answers by the method; every path has the same tools."""

    def __init__(self, tools: int) -> None:
        names = ["echo", *(f"tool_{number}" for number in range(tools - 1))]
        listed = {"tools": [tool(name) for name in names]}
        first = {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "serverInfo": INFO}
        offer = {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES, **CACHE, **META}
        self._fixed = {
            "initialize": _encode(first),
            "server/discover": _encode(offer),
            "tools/list": _encode({**listed, **CACHE, **META}),
            "ping": b"{}",
        }

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if scope["method"] != "POST":
            await _answer(send, 405 if scope["method"] == "GET" else 200, b"")
            return
        request = _request(await _body(receive))
        if not request.id:
            await _answer(send, 202, b"")
            return
        result = self._fixed.get(request.method)
        if request.method == "tools/call":
            text = _encode(_any(request.params)["arguments"]["text"])
            result = b'{"content":[{"type":"text","text":%s}],"isError":false,"resultType":"complete"}' % text
        error = Raw(b'{"code":-32601,"message":"Method not found"}')
        body = _encode(
            Response("2.0", request.id, Raw(result), ABSENT) if result else Response("2.0", request.id, ABSENT, error)
        )
        session = [(b"mcp-session-id", b"0123456789abcdef")] if request.method == "initialize" else []
        await _answer(send, 200 if result else 404, body, session)


class Relay:
    """Passes requests on, each under another id."""

    def __init__(self, url: str, client: str) -> None:
        self._url = url
        self._client = client
        self._number = 0
        self._send: Any = None

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if self._send is None:
            from benchmarks.gateway.clients import CLIENTS

            self._send = CLIENTS[self._client](self._url)
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        headers |= {key.decode(): value.decode() for key, value in scope["headers"] if key in PASSED}
        body = await _body(receive)
        theirs = Raw(b"")
        if body:
            request = _request(body)
            theirs = request.id
            if theirs:
                self._number += 1
                request.id = Raw(b"%d" % self._number)
                body = _encode(request)
        status, data, found = await self._send(scope["method"], body, headers)
        back = [(key.encode(), value.encode()) for key in SENT_BACK if (value := found.get(key))]
        if theirs and data:
            response = _response(data)
            response.id = theirs
            data = _encode(response)
        await _answer(send, status, data, back)


def serve(app: Any, port: int) -> None:
    uvicorn.run(
        app, port=port, loop="uvloop", http="httptools", log_level="warning", access_log=False, timeout_keep_alive=120
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=("upstream", "relay"))
    parser.add_argument("--http", type=int, required=True)
    parser.add_argument("--to", default="")
    parser.add_argument("--client", default="aiohttp")
    parser.add_argument("--tools", type=int, default=1)
    options = parser.parse_args()
    serve(Upstream(options.tools) if options.role == "upstream" else Relay(options.to, options.client), options.http)


if __name__ == "__main__":
    main()
