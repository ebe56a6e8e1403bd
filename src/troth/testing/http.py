"""The HTTP shell: Streamable HTTP as the legacy revisions have it, and the stateless one of modern revisions.

A legacy client gets a session by ``initialize`` and reads what the server sends by itself from a GET stream. A modern
request is checked against its headers; ``subscriptions/listen`` is answered by a stream that stays open.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import sys
from itertools import count
from typing import TYPE_CHECKING, cast

from aiohttp import web

from troth.bridge.headers import NAMED
from troth.register import Era
from troth.testing.model import CLIENT, CLIENT_INFO, VERSION, Context, Exit, Junk, Out

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.testing.model import Json, JsonObject
    from troth.testing.script import Script

PATH = "/mcp"
SESSION, PROTOCOL, METHOD, NAME = "Mcp-Session-Id", "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"
BODY = 4 * 1024 * 1024
"""Most bytes of a request."""
ACCEPTED = ("application/json", "text/event-stream")

STATUSES: Mapping[int, int] = {-32601: 404, -32600: 400, -32020: 400, -32021: 400, -32022: 400}
"""HTTP status of a modern answer by its JSON-RPC code; 200 for every other one, and see `_status`."""


class Shell:
    """Carries a script over HTTP: one queue per open stream.

    Args:
        script: The server.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.streams: dict[str, asyncio.Queue[Json]] = {}
        self.stopped = asyncio.Event()
        self.status = 0
        self._names = count(1)

    def application(self) -> web.Application:
        """The web application."""
        application = web.Application(client_max_size=BODY)
        application.router.add_route("*", PATH, self.handle)
        return application

    def deliver(self, outs: list[Out]) -> None:
        """Puts what goes out on its streams; what has no open stream is lost."""
        for out in outs:
            if isinstance(out, Exit):
                self.status = out.code
                self.stopped.set()
            elif out.stream in self.streams:
                self.streams[out.stream].put_nowait(out.text if isinstance(out, Junk) else out.message)

    def stop(self) -> None:
        """Ends every stream, and with it what still waits for an answer."""
        for queue in self.streams.values():
            queue.put_nowait(None)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answers one HTTP request."""
        if self.script.skips("unauthorized"):
            return web.Response(status=401, headers={"WWW-Authenticate": "Bearer"})
        if self.script.skips("failing"):
            return web.Response(status=503, text="<h1>Out of service</h1>", content_type="text/html")
        if request.method == "POST":
            return await self._post(request)
        if request.method == "GET":
            return await self._get(request)
        if request.method == "DELETE":
            return self._delete(request)
        return web.Response(status=405, headers={"Allow": "GET, POST, DELETE"})

    def _unknown_session(self, request: web.Request) -> web.Response | None:
        identity = request.headers.get(SESSION)
        if self.script.skips("session") or self.script.skips("session-id"):
            return None
        if identity is None:
            return web.Response(status=400, text=f"{SESSION} is missing")
        return None if identity in self.script.sessions else web.Response(status=404, text="no such session")

    async def _get(self, request: web.Request) -> web.StreamResponse:
        identity = request.headers.get(SESSION, "")
        if self.script.skips("get") or not self.script.served[Era.LEGACY]:
            return web.Response(status=405, headers={"Allow": "POST"})
        refused = self._unknown_session(request)
        if refused:
            return refused
        push = f"push:{identity}"
        if push in self.streams:
            return web.Response(status=409, text="the session has a stream already")
        self.streams[push] = asyncio.Queue()
        return await self._stream(request, push, None, {})

    def _delete(self, request: web.Request) -> web.Response:
        refused = self._unknown_session(request)
        if refused:
            return refused
        if not self.script.skips("delete"):
            identity = request.headers.get(SESSION, "")
            self.script.end(identity)
            if f"push:{identity}" in self.streams:
                self.streams[f"push:{identity}"].put_nowait(None)
        return web.Response(status=204)

    async def _post(self, request: web.Request) -> web.StreamResponse:
        accept = request.headers.get("Accept", "*/*")
        if "*/*" not in accept and not all(kind in accept for kind in ACCEPTED):
            return web.Response(status=406, text=f"Accept must name {' and '.join(ACCEPTED)}")
        try:
            value: Json = json.loads(await request.read())
        except (ValueError, RecursionError):
            return _error(400, None, -32700, "Parse error")
        message = cast("JsonObject", value) if isinstance(value, dict) else {}
        modern = self._is_modern(message, request)
        identity = request.headers.get(SESSION)
        if modern:
            mismatch = None if self.script.skips("headers") else _mismatch(message, request)
            if mismatch:
                return _error(400, message.get("id"), -32020, mismatch)
            identity = None
        elif message.get("method") == "initialize":
            identity = secrets.token_urlsafe(18)
        elif self.script.served[Era.LEGACY]:
            refused = self._unknown_session(request) or self._wrong_version(request)
            if refused:
                return refused
            if identity not in self.script.sessions:
                # Only a shell that ignores sessions comes here: whoever asks speaks for the newest session.
                identity = next(reversed(self.script.sessions), identity)
        return await self._exchange(request, value, identity, modern=modern)

    def _is_modern(self, message: JsonObject, request: web.Request) -> bool:
        meta = _meta(message)
        marked = any(key in meta for key in (VERSION, CLIENT, CLIENT_INFO))
        served = self.script.served
        claims = request.headers.get(PROTOCOL) in served[Era.MODERN]
        return bool(served[Era.MODERN]) and (marked or claims or not served[Era.LEGACY])

    def _wrong_version(self, request: web.Request) -> web.Response | None:
        named = request.headers.get(PROTOCOL)
        if named is None or named in self.script.served[Era.LEGACY]:
            return None
        return web.Response(status=400, text=f"{PROTOCOL} names a revision that is not served")

    async def _exchange(
        self, request: web.Request, value: Json, identity: str | None, *, modern: bool
    ) -> web.StreamResponse:
        stream = f"post:{next(self._names)}"
        self.streams[stream] = asyncio.Queue()
        self.deliver(self.script.feed(value, Context(session=identity, stream=stream)))
        headers = self._session_headers(value, identity, modern=modern)
        waits = _requests(value)
        ready = self._drain(stream)
        if not waits:
            return web.json_response(ready[0], status=400) if ready else web.Response(status=202)
        if len(ready) == 1 and _answers(ready[0], waits):
            status = 200 if not modern or self.script.skips("status") else _status(ready[0], cast("JsonObject", value))
            return web.json_response(ready[0], status=status, headers=headers)
        self.streams[stream] = asyncio.Queue()
        for message in ready:
            self.streams[stream].put_nowait(message)
        return await self._stream(request, stream, waits, headers)

    def _session_headers(self, value: Json, identity: str | None, *, modern: bool) -> dict[str, str]:
        if modern:
            return {SESSION: "modern"} if self.script.skips("stateless") else {}
        opened = isinstance(value, dict) and cast("JsonObject", value).get("method") == "initialize"
        if not opened or identity not in self.script.sessions or self.script.skips("session-id"):
            return {}
        return {SESSION: identity}

    def _drain(self, stream: str) -> list[Json]:
        queue = self.streams.pop(stream)
        return [queue.get_nowait() for _ in range(queue.qsize())]

    async def _stream(
        self, request: web.Request, stream: str, waits: list[Json] | None, headers: dict[str, str]
    ) -> web.StreamResponse:
        """Writes a stream as server-sent events until every answer went out, or the client is gone."""
        queue: asyncio.Queue[Json] = self.streams[stream]
        response = web.StreamResponse(headers={**headers, "Content-Type": ACCEPTED[1], "Cache-Control": "no-cache"})
        try:
            await response.prepare(request)
            while True:
                message = await queue.get()
                if message is None:
                    break
                text = message if isinstance(message, str) else json.dumps(message)
                await response.write(f"event: message\ndata: {text}\n\n".encode(errors="surrogateescape"))
                if waits is not None and _answers(message, waits):
                    break
        except ConnectionResetError:
            return response
        finally:
            self.streams.pop(stream, None)
            self.script.close(stream)
        return response


def _requests(value: Json) -> list[Json]:
    """The ids of the requests in a message or a batch."""
    messages = cast("list[Json]", value) if isinstance(value, list) else [value]
    return [
        cast("JsonObject", message)["id"]
        for message in messages
        if isinstance(message, dict) and "method" in message and "id" in message
    ]


def _answers(message: Json, waits: list[Json]) -> bool:
    if isinstance(message, list):
        return True
    return isinstance(message, dict) and "method" not in message and bool(waits)


def _meta(message: JsonObject) -> JsonObject:
    params = message.get("params")
    meta = cast("JsonObject", params).get("_meta") if isinstance(params, dict) else None
    return cast("JsonObject", meta) if isinstance(meta, dict) else {}


def _status(answer: Json, asked: JsonObject) -> int:
    """The HTTP status of a modern answer."""
    error = cast("JsonObject", answer).get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict):
        return 200
    code = cast("JsonObject", error)["code"]
    if code == -32602:
        meta = _meta(asked)
        return 200 if isinstance(meta.get(VERSION), str) and isinstance(meta.get(CLIENT), dict) else 400
    return STATUSES.get(code, 200)


def _mismatch(message: JsonObject, request: web.Request) -> str:
    """What is wrong with the headers of a modern request; empty if nothing is."""
    params = message.get("params")
    params = cast("JsonObject", params) if isinstance(params, dict) else {}
    meta = _meta(message)
    method = message.get("method")
    wanted = {METHOD: method, PROTOCOL: meta.get(VERSION)}
    if isinstance(method, str) and method in NAMED:
        wanted[NAME] = params.get(NAMED[method])
    for header, value in wanted.items():
        if isinstance(value, str) and request.headers.get(header) != value:
            return f"{header} must be {value!r}, as in the body"
    return ""


def _error(status: int, request: Json, code: int, text: str) -> web.Response:
    identity = {} if request is None else {"id": request}
    return web.json_response({"jsonrpc": "2.0", **identity, "error": {"code": code, "message": text}}, status=status)


async def _run(script: Script, port: int) -> int:
    shell = Shell(script)
    runner = web.AppRunner(shell.application(), access_log=None, handler_cancellation=True, shutdown_timeout=0.2)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, shell.stopped.set)
    _, bound = runner.addresses[0][:2]
    sys.stderr.write(f"ready http://127.0.0.1:{bound}{PATH}\n")
    sys.stderr.flush()
    await shell.stopped.wait()
    shell.stop()
    await runner.cleanup()
    return shell.status


def serve(script: Script, port: int = 0) -> int:
    """Serves on 127.0.0.1 until a signal comes; says on standard error where, in one line ``ready URL``.

    Args:
        script: The server.
        port: TCP port; 0 picks a free one.

    Returns:
        The exit status.

    Raises:
        OSError: The port is taken.
    """
    return asyncio.run(_run(script, port))
