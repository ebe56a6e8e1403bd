"""The everything server on the low-level class of the Python SDK 2: ``every_dual.py dual|modern [--http PORT]``.

``dual`` speaks both eras, each in its own way of asking; ``modern`` refuses the handshake.
"""

from __future__ import annotations

import argparse
import contextlib
import warnings
from functools import cached_property
from typing import Any

import anyio
import uvicorn
from every import INVALID, LEVELS, NOT_FOUND_LEGACY, Every, Refusal
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp.types import (
    CreateMessageRequest,
    CreateMessageResult,
    ElicitRequest,
    ElicitResult,
    EmptyResult,
    ListRootsRequest,
    ListRootsResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

UNSUPPORTED_VERSION = -32022
ASKED = {
    "elicitation/create": (ElicitRequest, ElicitResult),
    "sampling/createMessage": (CreateMessageRequest, CreateMessageResult),
    "roots/list": (ListRootsRequest, ListRootsResult),
}
EVENTS = {"tools": ToolsListChanged, "prompts": PromptsListChanged, "resources": ResourcesListChanged}
TOLD = {
    "tools": "send_tool_list_changed",
    "prompts": "send_prompt_list_changed",
    "resources": "send_resource_list_changed",
}


class EveryServer(Server):
    """Handlers of the low-level class; what changes is told on every open listen and to every session."""

    def __init__(self, variant: str) -> None:
        self.every = Every()
        self.bus = InMemorySubscriptionBus()
        self.sessions: dict[str | None, Any] = {}
        self.subscribed: set[tuple[str | None, str]] = set()
        self.levels: dict[str | None, str] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            super().__init__(
                f"every-{variant}",
                version="1",
                instructions="Everything that the suite asks for.",
                get_tool_input_schema=self.every.schema,
                on_list_tools=self.answering(lambda peer, params: self.every.tools()),
                on_list_prompts=self.answering(lambda peer, params: self.every.prompts()),
                on_list_resources=self.answering(lambda peer, params: self.every.resources()),
                on_list_resource_templates=self.answering(lambda peer, params: self.every.templates()),
                on_call_tool=self.answering(
                    lambda peer, params: self.every.call(peer, params.name, params.arguments or {})
                ),
                on_get_prompt=self.answering(
                    lambda peer, params: self.every.prompt(peer, params.name, params.arguments or {})
                ),
                on_read_resource=self.answering(lambda peer, params: self.every.read(str(params.uri), peer.missing)),
                on_completion=self.answering(lambda peer, params: self.every.complete(params.argument.value)),
                on_subscribe_resource=self.answering(self.subscribe),
                on_unsubscribe_resource=self.answering(self.unsubscribe),
                on_set_logging_level=self.answering(self.set_level),
                on_subscriptions_listen=ListenHandler(self.bus),
            )
        if variant == "modern":
            self.middleware.append(refuse_handshake)
        self.middleware.append(self.remember)

    def create_initialization_options(self, *arguments, **named):
        return super().create_initialization_options(NotificationOptions(True, True, True))

    def answering(self, answer):
        async def handler(ctx, params):
            try:
                result = answer(Peer(self, ctx), params)
                return result if isinstance(result, dict | EmptyResult) else await result
            except Refusal as refusal:
                raise MCPError(refusal.code, refusal.message, refusal.data) from refusal

        return handler

    async def remember(self, ctx, call_next):
        if ctx.method == "notifications/initialized":
            self.sessions[scope(ctx)] = ctx.session
        return await call_next(ctx)

    def subscribe(self, peer: Peer, params) -> EmptyResult:
        self.subscribed.add((scope(peer.ctx), str(params.uri)))
        return EmptyResult()

    def unsubscribe(self, peer: Peer, params) -> EmptyResult:
        self.subscribed.discard((scope(peer.ctx), str(params.uri)))
        return EmptyResult()

    def set_level(self, peer: Peer, params) -> EmptyResult:
        self.levels[scope(peer.ctx)] = params.level
        return EmptyResult()


def scope(ctx) -> str | None:
    """The session of a legacy client over HTTP."""
    return ctx.request.headers.get("mcp-session-id") if ctx.request is not None else None


async def refuse_handshake(ctx, call_next):
    if ctx.method == "initialize" and ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        asked = (ctx.params or {}).get("protocolVersion")
        data = {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": asked}
        raise MCPError(UNSUPPORTED_VERSION, f"Unsupported protocol version: {asked}", data)
    return await call_next(ctx)


class Peer:
    """The client of one request."""

    def __init__(self, server: EveryServer, ctx: Any) -> None:
        self.server, self.ctx = server, ctx
        self.modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        self.missing = INVALID if self.modern else NOT_FOUND_LEGACY
        self.answers = (ctx.params or {}).get("inputResponses") or {}
        self.state = (ctx.params or {}).get("requestState")

    @cached_property
    def declared(self) -> frozenset[str]:
        capabilities = self.ctx.session.client_capabilities
        return frozenset(capabilities.model_dump(exclude_none=True)) if capabilities else frozenset()

    @property
    def related(self) -> ServerMessageMetadata:
        return ServerMessageMetadata(related_request_id=self.ctx.request_id)

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        request, result = ASKED[method]
        question = request.model_validate({"method": method, "params": params})
        answer = await self.ctx.session.send_request(question, result, metadata=self.related)
        return answer.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def log(self, level: str, data: str) -> None:
        wanted = self.server.levels.get(scope(self.ctx), "debug")
        if LEVELS.index(level) >= LEVELS.index(wanted):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                await self.ctx.session.send_log_message(level, data, related_request_id=self.ctx.request_id)

    async def progress(self, progress: float, total: float) -> None:
        await self.ctx.session.report_progress(progress, total)

    async def changed(self, kind: str) -> None:
        await self.server.bus.publish(EVENTS[kind]())
        for key, session in list(self.server.sessions.items()):
            await self.tell(key, getattr(session, TOLD[kind]))

    async def updated(self, uri: str) -> None:
        await self.server.bus.publish(ResourceUpdated(uri=uri))
        for key, session in list(self.server.sessions.items()):
            if (key, uri) in self.server.subscribed:
                await self.tell(key, session.send_resource_updated, uri)

    async def tell(self, key: str | None, send, *arguments: str) -> None:
        """Tells a session that may be gone by now."""
        try:
            await send(*arguments)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            with contextlib.suppress(KeyError):
                del self.server.sessions[key]


async def over_stdio(server: EveryServer) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("variant", choices=("dual", "modern"))
    parser.add_argument("--http", type=int)
    chosen = parser.parse_args()
    server = EveryServer(chosen.variant)
    if chosen.http is None:
        anyio.run(over_stdio, server)
    else:
        uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=chosen.http, log_level="warning")


if __name__ == "__main__":
    main()
