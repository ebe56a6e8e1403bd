"""An in-memory host of any revision and declaration, for tests of servers on the SDK (``mcp`` 2) and FastMCP 4.

It says what it is told to say and hides nothing: results are the JSON objects that came, errors their code, message and
data. Questions of the server are answered by ``answers``; what has none is refused with -32601.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

from troth.plugins.honest import CAPABILITIES_KEY, LISTS
from troth.register import Era, register

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.server.lowlevel import Server

Answer = Mapping[str, Any] | Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""The answer to a question: a result, or what makes it of the question's params."""

ANSWERS: Final[Mapping[str, Answer]] = {
    "elicitation/create": {"action": "accept", "content": {}},
    "roots/list": {"roots": [{"uri": "file:///srv/notes", "name": "work"}]},
    "sampling/createMessage": {
        "role": "assistant",
        "model": "troth-host",
        "content": {"type": "text", "text": "an answer of the model"},
    },
}
"""What a host answers unless the test says otherwise."""

SECONDS: Final = 10.0
"""Longest wait for one answer, and for one notification."""
ROUNDS: Final = 8
"""Most rounds of questions in results (2026-07-28)."""
WAITING: Final = 1000
"""Messages that wait to be read."""

PREFIX: Final = "io.modelcontextprotocol"


class HostError(Exception):
    """The server refused a request.

    Attributes:
        code: Code of JSON-RPC.
        message: What it said.
        data: What else it said; None for nothing.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class Host:
    """A host that is connected to a server; made by ``connect``.

    Attributes:
        revision: The revision in force.
        capabilities: What it declares.
        declared: What the server declared to it.
        heard: Notifications of the server, as they came.
        asked: Methods of the server's questions, as they came.
    """

    def __init__(
        self,
        send: MemoryObjectSendStream[SessionMessage | Exception],
        revision: str,
        capabilities: Mapping[str, Any],
        answers: Mapping[str, Answer],
    ) -> None:
        self._send = send
        self.revision = revision
        self.capabilities = capabilities
        self._answers = answers
        self._count = 0
        self._waiting: dict[int, tuple[anyio.Event, list[dict[str, Any]]]] = {}
        self._news = anyio.Event()
        self.declared: dict[str, Any] = {}
        self.heard: list[dict[str, Any]] = []
        self.asked: list[str] = []

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Sends a request, and gives its result.

        Raises:
            HostError: The server refused it.
            TimeoutError: No answer came in time.
        """
        self._count += 1
        number = self._count
        given = dict(params or {})
        if register().era(self.revision) is Era.MODERN:
            given["_meta"] = {**self._meta(), **given.get("_meta", {})}
        arrived = anyio.Event()
        box: list[dict[str, Any]] = []
        self._waiting[number] = (arrived, box)
        await self._write(types.JSONRPCRequest(jsonrpc="2.0", id=number, method=method, params=given))
        with anyio.fail_after(SECONDS):
            await arrived.wait()
        message = box[0]
        if "error" in message:
            error = message["error"]
            raise HostError(error["code"], error["message"], error.get("data"))
        return message["result"]

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Sends a notification."""
        given = None if params is None else dict(params)
        await self._write(types.JSONRPCNotification(jsonrpc="2.0", method=method, params=given))

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Calls a tool, answers its questions, and gives the result.

        Raises:
            HostError: The server refused it.
            TimeoutError: No answer came in time.
        """
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        for _ in range(ROUNDS):
            result = await self.request("tools/call", params)
            if result.get("resultType") != "input_required":
                return result
            asked = cast("dict[str, dict[str, Any]]", result.get("inputRequests") or {})
            params["inputResponses"] = {
                key: self._answer(one["method"], one.get("params") or {}) or {} for key, one in asked.items()
            }
            if "requestState" in result:
                params["requestState"] = result["requestState"]
        raise TimeoutError(f"{name} asks for more than {ROUNDS} rounds")

    async def tools(self) -> list[str]:
        """Names of all tools that it sees."""
        return await self._names("tools/list")

    async def prompts(self) -> list[str]:
        """Names of all prompts that it sees."""
        return await self._names("prompts/list")

    async def resources(self) -> list[str]:
        """URIs of all resources that it sees."""
        return await self._names("resources/list")

    async def templates(self) -> list[str]:
        """URI templates of all resource templates that it sees."""
        return await self._names("resources/templates/list")

    async def until(self, method: str) -> dict[str, Any]:
        """Waits until a notification has come, and gives the first of its method.

        Raises:
            TimeoutError: It did not come in time.
        """
        with anyio.fail_after(SECONDS):
            while True:
                found = next((one for one in self.heard if one["method"] == method), None)
                if found is not None:
                    return found
                self._news = anyio.Event()
                await self._news.wait()

    async def open(self) -> None:
        """Shakes hands (legacy), or asks what the server is (modern)."""
        if register().era(self.revision) is Era.MODERN:
            self.declared = (await self.request("server/discover"))["capabilities"]
            return
        params = {"protocolVersion": self.revision, "capabilities": self.capabilities, "clientInfo": _INFO}
        result = await self.request("initialize", params)
        self.revision = result["protocolVersion"]
        self.declared = result["capabilities"]
        await self.notify("notifications/initialized")

    async def listen(self, read: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Takes what the server sends, until the stream ends."""
        async for item in read:
            message = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
            if "method" not in message:
                arrived, box = self._waiting.pop(message["id"])
                box.append(message)
                arrived.set()
            elif "id" in message:
                await self._reply(message)
            else:
                self.heard.append(message)
                self._news.set()

    async def _reply(self, message: Mapping[str, Any]) -> None:
        method = message["method"]
        self.asked.append(method)
        nothing: Mapping[str, Any] = {}
        result = nothing if method == "ping" else self._answer(method, message.get("params") or {})
        if result is None:
            error = types.ErrorData(code=-32601, message=f"Unknown method: {method}")
            await self._write(types.JSONRPCError(jsonrpc="2.0", id=message["id"], error=error))
        else:
            await self._write(types.JSONRPCResponse(jsonrpc="2.0", id=message["id"], result=dict(result)))

    def _answer(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        answer = self._answers.get(method)
        return answer(params) if callable(answer) else answer

    async def _names(self, method: str) -> list[str]:
        _, shape = LISTS[method]
        found: list[str] = []
        params: dict[str, Any] = {}
        while True:
            page = await self.request(method, params)
            found += [item[shape.name] for item in page[shape.member]]
            if not page.get("nextCursor"):
                return found
            params = {"cursor": page["nextCursor"]}

    def _meta(self) -> dict[str, Any]:
        return {
            f"{PREFIX}/protocolVersion": self.revision,
            f"{PREFIX}/clientInfo": _INFO,
            CAPABILITIES_KEY: self.capabilities,
        }

    async def _write(self, message: Any) -> None:
        await self._send.send(SessionMessage(message))


_INFO: Final = {"name": "troth-host", "version": "1"}


@asynccontextmanager
async def connect(
    server: object,
    *,
    capabilities: Mapping[str, Any] | None = None,
    revision: str | None = None,
    answers: Mapping[str, Answer] | None = None,
) -> AsyncGenerator[Host]:
    """Connects a host to a server, in memory.

    Args:
        server: ``MCPServer`` or the low-level ``Server`` of ``mcp`` 2, or ``FastMCP`` 4.
        capabilities: What the host declares; nothing without it.
        revision: The protocol revision that it speaks; the newest legacy one without it.
        answers: Method of a question -> its answer, in place of those in ``ANSWERS``.

    Yields:
        The host, after the handshake.

    Raises:
        TypeError: ``server`` is none of these.
        ValueError: There is no such revision.
    """
    revision = revision or register().newest(Era.LEGACY)
    if revision not in register().revisions:
        raise ValueError(f"{revision!r} is no revision; there are: {', '.join(register().revisions)}")
    low_level = low_level_of(server)
    to_server, server_reads = anyio.create_memory_object_stream[SessionMessage | Exception](WAITING)
    server_writes, from_server = anyio.create_memory_object_stream[SessionMessage](WAITING)
    host = Host(to_server, revision, capabilities or {}, {**ANSWERS, **(answers or {})})
    async with anyio.create_task_group() as tasks, to_server, from_server, server_reads, server_writes:
        options = low_level.create_initialization_options()
        tasks.start_soon(low_level.run, server_reads, server_writes, options)
        tasks.start_soon(host.listen, from_server)
        await host.open()
        yield host
        tasks.cancel_scope.cancel()


def low_level_of(server: object) -> Server[Any]:
    """The low-level server inside a server object.

    Raises:
        TypeError: There is none.
    """
    held = getattr(server, "__dict__", {})
    found = held.get("_mcp_server") or held.get("_lowlevel_server") or server
    if not hasattr(found, "create_initialization_options"):
        kind = type(server)
        raise TypeError(f"an in-memory host takes an MCPServer, a Server or a FastMCP, not {kind.__qualname__}")
    return cast("Server[Any]", found)
