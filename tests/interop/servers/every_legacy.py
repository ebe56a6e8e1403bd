"""The everything server on the Python SDK 1: ``every_legacy.py [--http PORT]``, run with ``.envs/mcp1/bin/python``.

It speaks the legacy era alone and asks by requests in the middle of a call.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "src"))

import anyio
import mcp.types as types
import uvicorn
from every import LEVELS, NOT_FOUND_LEGACY, Every, Refusal
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import McpError
from mcp.shared.message import ServerMessageMetadata
from pydantic import AnyUrl
from starlette.applications import Starlette
from starlette.routing import Mount

ASKED = {
    "elicitation/create": (types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
    "roots/list": (types.ListRootsRequest, types.ListRootsResult),
}
TOLD = {
    "tools": "send_tool_list_changed",
    "prompts": "send_prompt_list_changed",
    "resources": "send_resource_list_changed",
}


class EveryServer(Server):
    """Handlers of the low-level class; what changes is told to every session."""

    def __init__(self) -> None:
        super().__init__("every-legacy", version="1", instructions="Everything that the suite asks for.")
        self.every = Every(revision=types.LATEST_PROTOCOL_VERSION)
        self.sessions: WeakSet[Any] = WeakSet()
        self.subscribed: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
        self.levels: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        every = self.every
        self.answer(types.ListToolsRequest, types.ListToolsResult, lambda peer, params: every.tools())
        self.answer(types.ListPromptsRequest, types.ListPromptsResult, lambda peer, params: every.prompts())
        self.answer(types.ListResourcesRequest, types.ListResourcesResult, lambda peer, params: every.resources())
        self.answer(
            types.ListResourceTemplatesRequest,
            types.ListResourceTemplatesResult,
            lambda peer, params: every.templates(),
        )
        self.answer(
            types.CallToolRequest,
            types.CallToolResult,
            lambda peer, params: every.call(peer, params.name, params.arguments or {}),
        )
        self.answer(
            types.GetPromptRequest,
            types.GetPromptResult,
            lambda peer, params: every.prompt(peer, params.name, params.arguments or {}),
        )
        self.answer(
            types.ReadResourceRequest,
            types.ReadResourceResult,
            lambda peer, params: every.read(str(params.uri), NOT_FOUND_LEGACY),
        )
        self.answer(
            types.CompleteRequest, types.CompleteResult, lambda peer, params: every.complete(params.argument.value)
        )
        self.answer(types.SubscribeRequest, types.EmptyResult, self.subscribe)
        self.answer(types.UnsubscribeRequest, types.EmptyResult, self.unsubscribe)
        self.answer(types.SetLevelRequest, types.EmptyResult, self.set_level)

    def answer(self, request, result, respond) -> None:
        async def handler(req):
            peer = Peer(self, self.request_context)
            self.sessions.add(peer.ctx.session)
            try:
                got = respond(peer, req.params)
                return types.ServerResult(result.model_validate(got if isinstance(got, dict) else await got))
            except Refusal as refusal:
                error = types.ErrorData(code=refusal.code, message=refusal.message, data=refusal.data)
                raise McpError(error) from refusal

        self.request_handlers[request] = handler

    def get_capabilities(self, notification_options, experimental_capabilities) -> types.ServerCapabilities:
        declared = super().get_capabilities(NotificationOptions(True, True, True), experimental_capabilities)
        declared.resources = types.ResourcesCapability(subscribe=True, listChanged=True)
        return declared

    def subscribe(self, peer: Peer, params) -> dict[str, Any]:
        self.subscribed.setdefault(peer.ctx.session, set()).add(str(params.uri))
        return {}

    def unsubscribe(self, peer: Peer, params) -> dict[str, Any]:
        self.subscribed.setdefault(peer.ctx.session, set()).discard(str(params.uri))
        return {}

    def set_level(self, peer: Peer, params) -> dict[str, Any]:
        self.levels[peer.ctx.session] = params.level
        return {}


class Peer:
    """The client of one request."""

    modern = False
    state = None

    def __init__(self, server: EveryServer, ctx: Any) -> None:
        self.server, self.ctx = server, ctx
        self.answers: dict[str, Any] = {}

    @property
    def declared(self) -> frozenset[str]:
        params = self.ctx.session.client_params
        return frozenset(params.capabilities.model_dump(exclude_none=True)) if params else frozenset()

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        request, result = ASKED[method]
        question = types.ServerRequest(request.model_validate({"method": method, "params": params}))
        related = ServerMessageMetadata(related_request_id=self.ctx.request_id)
        answer = await self.ctx.session.send_request(question, result, metadata=related)
        return answer.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def log(self, level: str, data: str) -> None:
        if LEVELS.index(level) >= LEVELS.index(self.server.levels.get(self.ctx.session, "debug")):
            await self.ctx.session.send_log_message(level, data, related_request_id=self.ctx.request_id)

    async def progress(self, progress: float, total: float) -> None:
        token = self.ctx.meta.progressToken if self.ctx.meta else None
        if token is not None:
            related = str(self.ctx.request_id)
            await self.ctx.session.send_progress_notification(token, progress, total, related_request_id=related)

    async def changed(self, kind: str) -> None:
        for session in list(self.server.sessions):
            await self.tell(session, getattr(session, TOLD[kind]))

    async def updated(self, uri: str) -> None:
        for session, uris in list(self.server.subscribed.items()):
            if uri in uris:
                await self.tell(session, session.send_resource_updated, AnyUrl(uri))

    async def tell(self, session: Any, send, *arguments: AnyUrl) -> None:
        """Tells a session that may be gone by now."""
        try:
            await send(*arguments)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            self.server.sessions.discard(session)
            self.server.subscribed.pop(session, None)


async def over_stdio(server: EveryServer) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def over_http(server: EveryServer, port: int) -> None:
    local = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=["127.0.0.1:*", "localhost:*", "[::1]:*"],
        allowed_origins=["http://127.0.0.1:*", "http://localhost:*", "http://[::1]:*"],
    )
    manager = StreamableHTTPSessionManager(app=server, security_settings=local)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette):
        async with manager.run():
            yield

    async def handle(scope, receive, send) -> None:
        await manager.handle_request(scope, receive, send)

    app = Starlette(routes=[Mount("/mcp", app=handle)], lifespan=lifespan)

    async def whole(scope, receive, send) -> None:
        # A mount answers /mcp with a redirect to /mcp/, which not every client follows with its body.
        if scope["type"] == "http" and scope["path"] == "/mcp":
            await handle(scope, receive, send)
        else:
            await app(scope, receive, send)

    uvicorn.run(whole, host="127.0.0.1", port=port, log_level="warning")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=int)
    chosen = parser.parse_args()
    server = EveryServer()
    if chosen.http is None:
        asyncio.run(over_stdio(server))
    else:
        over_http(server, chosen.http)


if __name__ == "__main__":
    main()
