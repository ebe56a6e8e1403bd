"""An upstream on the Python SDK as its guide shows: ``echo`` and ``large``, over HTTP (JSON, uvloop) or stdio.

    python -m benchmarks.gateway.sdk_upstream [--http PORT] [--legacy]

``echo`` is a plain function, which the SDK runs in a thread; ``async_echo`` shows what that costs. ``--legacy`` answers
only hosts of the legacy era (HTTP), as a server of an older SDK does.
"""

from __future__ import annotations

import argparse
import json
import warnings
from typing import TYPE_CHECKING, Any

import uvicorn
from mcp.server.mcpserver import MCPServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Asgi = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


def server() -> MCPServer:
    made = MCPServer("bench", log_level="WARNING")

    @made.tool()
    def echo(text: str) -> str:
        return text

    @made.tool()
    async def async_echo(text: str) -> str:
        return text

    @made.tool(structured_output=False)
    async def large(size: int) -> str:
        return "x" * size

    return made


def only_legacy(app: Asgi) -> Asgi:
    """Refuses the revision that a server of the legacy era has never heard of."""

    async def refusing(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http" and (b"mcp-protocol-version", b"2026-07-28") in scope["headers"]:
            error = {"code": -32000, "message": "Bad Request: Unsupported protocol version"}
            body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
            headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
            await send({"type": "http.response.start", "status": 400, "headers": headers})
            await send({"type": "http.response.body", "body": body})
            return
        await app(scope, receive, send)

    return refusing


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=int)
    parser.add_argument("--legacy", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.http is None:
        server().run("stdio")
        return
    app = server().streamable_http_app(json_response=True)
    uvicorn.run(
        only_legacy(app) if options.legacy else app,
        port=options.http,
        loop="uvloop",
        log_level="warning",
        access_log=False,
        timeout_keep_alive=120,
    )


if __name__ == "__main__":
    main()
