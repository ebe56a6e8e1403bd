"""An HTTP server inside the test: records every request, and answers as the test says."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    Handler = Callable[["Asked"], Awaitable[web.StreamResponse]]

CAPABILITIES = {"tools": {}}


@dataclass
class Asked:
    """One HTTP request that came."""

    verb: str
    headers: dict[str, str]
    body: Any
    request: web.Request

    @property
    def method(self) -> str:
        return self.body.get("method", "") if isinstance(self.body, dict) else ""

    def answer(self, status: int = 200, headers: dict[str, str] | None = None, **members: Any) -> web.Response:
        message = {"jsonrpc": "2.0", "id": self.body.get("id"), **members}
        return web.json_response(message, status=status, headers=headers)

    def error(self, code: int, status: int = 200, **members: Any) -> web.Response:
        error = {"code": code, "message": "no", **({"data": members.pop("data")} if "data" in members else {})}
        return self.answer(status, error=error, **members)

    def initialized(self, revision: str = "2025-11-25", session: str = "", capabilities: Any = None) -> web.Response:
        result = {
            "protocolVersion": revision,
            "capabilities": CAPABILITIES if capabilities is None else capabilities,
            "serverInfo": {"name": "web", "version": "1"},
        }
        return self.answer(headers={"Mcp-Session-Id": session} if session else None, result=result)

    def discovered(self, capabilities: Any = None, **members: Any) -> web.Response:
        return self.answer(
            result={
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": CAPABILITIES if capabilities is None else capabilities,
                "ttlMs": 0,
                "cacheScope": "private",
                **members,
            }
        )


@dataclass
class Web:
    """The server and what it was asked."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def of(self, method: str) -> list[Asked]:
        return [one for one in self.asked if one.method == method]

    def verbs(self, verb: str) -> list[Asked]:
        return [one for one in self.asked if one.verb == verb]


async def legacy(asked: Asked, revision: str = "2025-11-25", session: str = "one") -> web.StreamResponse | None:
    """What an honest legacy server answers to all but calls; None for those."""
    if asked.verb == "GET":
        return web.Response(status=405)
    if asked.verb == "DELETE" or "id" not in asked.body:
        return web.Response(status=202)
    if asked.method == "server/discover":
        return asked.error(-32601)
    return asked.initialized(revision, session) if asked.method == "initialize" else None


async def modern(asked: Asked) -> web.StreamResponse | None:
    """What an honest modern server answers to all but calls; None for those."""
    return asked.discovered() if asked.method == "server/discover" else None


@asynccontextmanager
async def website(handler: Handler) -> AsyncIterator[Web]:
    site = Web()

    async def handle(request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = Asked(request.method, headers, json.loads(raw) if raw else None, request)
        site.asked.append(asked)
        return await handler(asked)

    application = web.Application()
    application.router.add_route("*", "/{rest:.*}", handle)
    runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    site.url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    try:
        yield site
    finally:
        await runner.cleanup()
