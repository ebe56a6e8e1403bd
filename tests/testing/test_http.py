"""The server over HTTP: sessions and streams of the legacy era, the stateless modern one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import anyio
import pytest
from aiohttp.test_utils import TestServer

from troth.register import Era, register
from troth.testing import Script, twists
from troth.testing.http import METHOD, NAME, NAMED, PATH, PROTOCOL, SESSION, Shell

from .peer import ANSWERS, EVERYTHING, META, ONE
from .test_schema import Judge, judge_message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.anyio
WAIT = 30
LEGACY = register().eras[Era.LEGACY]
LATEST = LEGACY[-1]
NOW = register().newest(Era.MODERN)
KINDS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Web:
    """One host over HTTP, in one revision."""

    def __init__(self, client: aiohttp.ClientSession, url: str, revision: str, capabilities: dict[str, Any]) -> None:
        self.client, self.url, self.revision, self.capabilities = client, url, revision, capabilities
        self.modern = register().era(revision) is Era.MODERN
        self.session: dict[str, str] = {}
        self.heard: list[Any] = []
        self.ids = 0

    def message(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        self.ids += 1
        params = dict(params or {})
        if self.modern:
            params["_meta"] = {META + "protocolVersion": self.revision, META + "clientCapabilities": self.capabilities}
        return {"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params}

    def headers(self, message: Any) -> dict[str, str]:
        if not self.modern:
            return {**KINDS, **self.session}
        headers = {**KINDS, PROTOCOL: self.revision, METHOD: message["method"]}
        if message["method"] in NAMED:
            headers[NAME] = str(message["params"].get(NAMED[message["method"]]))
        return headers

    async def post(self, message: Any, **headers: str) -> tuple[int, Any]:
        """Status and the answer: the last message of the body or the stream, or the text."""
        sent = {**self.headers(message), **{name.replace("_", "-"): value for name, value in headers.items()}}
        async with self.client.post(self.url, data=json.dumps(message), headers=sent) as response:
            if SESSION in response.headers:
                self.session = {SESSION: response.headers[SESSION]}
            if response.content_type == "text/event-stream":
                return response.status, await self._events(response)
            text = await response.text()
        if "json" not in response.content_type:
            return response.status, text
        self.heard.append(json.loads(text))
        return response.status, self.heard[-1]

    async def _events(self, response: aiohttp.ClientResponse) -> Any:
        answer: Any = None
        async for value in events(response):
            self.heard.append(value)
            answer = value
            if "method" in value and "id" in value:
                reply = {"jsonrpc": "2.0", "id": value["id"], "result": ANSWERS[value["method"]]}
                assert (await self.post(reply))[0] == 202
        return answer

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> Any:
        return (await self.post(self.message(method, params)))[1]

    async def open(self) -> Any:
        if self.modern:
            return await self.ask("server/discover")
        info = {"name": "host", "version": "1"}
        params = {"protocolVersion": self.revision, "capabilities": self.capabilities, "clientInfo": info}
        opened = await self.ask("initialize", params)
        assert (await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}))[0] == 202
        return opened

    @asynccontextmanager
    async def stream(self) -> AsyncIterator[AsyncIterator[Any]]:
        async with self.client.get(self.url, headers={**KINDS, **self.session}) as response:
            assert (response.status, response.content_type) == (200, "text/event-stream")
            yield events(response)

    @asynccontextmanager
    async def listen(self, **kinds: Any) -> AsyncIterator[AsyncIterator[Any]]:
        message = self.message("subscriptions/listen", {"notifications": kinds})
        async with self.client.post(self.url, data=json.dumps(message), headers=self.headers(message)) as response:
            assert (response.status, response.content_type) == (200, "text/event-stream")
            yield events(response)


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[Any]:
    async for line in response.content:
        if line.startswith(b"data: "):
            yield json.loads(line.removeprefix(b"data: "))


@asynccontextmanager
async def serving(
    revision: str, *breaks: str, capabilities: dict[str, Any] | None = None, **how: Any
) -> AsyncIterator[tuple[Web, Shell]]:
    shell = Shell(Script(twists=twists(breaks), transport="http", **how))
    with anyio.fail_after(WAIT):
        async with TestServer(shell.application()) as server, aiohttp.ClientSession() as client:
            yield Web(client, str(server.make_url(PATH)), revision, capabilities or {}), shell
            shell.stop()


@pytest.mark.behaviour("GEN-B3")
@pytest.mark.parametrize("revision", register().revisions)
async def test_every_message_over_http_is_valid_in_its_revision(revision: str) -> None:
    judge = Judge(revision)
    methods: dict[Any, str] = {}
    async with serving(revision, capabilities=EVERYTHING) as (web, _):
        await web.open()
        for method, params in (
            *((f"{name}/list", {}) for name in ("tools", "prompts", "resources", "resources/templates")),
            ("resources/read", {"uri": ONE}),
            ("prompts/get", {"name": "summary"}),
            ("no/such", {}),
            *(
                ("tools/call", {"name": name})
                for name in ("read_note", "add_tool", "slow", "ask_roots", "ask_sampling")
            ),
        ):
            methods[web.ids + 1] = method
            await web.ask(method, params)
    methods[1] = "server/discover" if web.modern else "initialize"
    for message in web.heard:
        judge_message(judge, message, methods)
    assert {"Tool", "CallToolResult"} <= judge.checked


@pytest.mark.parametrize("revision", LEGACY)
async def test_a_legacy_session_is_pushed_to_on_its_stream_until_it_is_deleted(revision: str) -> None:
    async with serving(revision) as (web, shell):
        await web.open()
        async with web.stream() as pushed:
            second = await web.client.get(web.url, headers={**KINDS, **web.session})
            assert second.status == 409
            await web.ask("tools/call", {"name": "add_tool"})
            assert (await anext(pushed))["method"] == "notifications/tools/list_changed"
            async with web.client.delete(web.url, headers=web.session) as gone:
                assert gone.status == 204
            assert [value async for value in pushed] == []
        assert shell.script.sessions == {}
        assert (await web.post(web.message("tools/list")))[0] == 404


async def test_what_is_pushed_without_a_stream_is_lost() -> None:
    async with serving(LATEST) as (web, _):
        await web.open()
        answer = await web.ask("tools/call", {"name": "grow"})
        assert "result" in answer
        async with web.stream() as pushed:
            await web.ask("tools/call", {"name": "add_prompt"})
            assert (await anext(pushed))["method"] == "notifications/prompts/list_changed"


async def test_a_question_turns_the_answer_into_a_stream() -> None:
    async with serving(LATEST, capabilities=EVERYTHING) as (web, _):
        await web.open()
        answer = await web.ask("tools/call", {"name": "ask_roots"})
        assert "The client answered" in str(answer)
        assert [message["method"] for message in web.heard if "method" in message] == ["roots/list"]


async def test_log_messages_come_before_the_answer_on_its_stream() -> None:
    async with serving(LATEST) as (web, _):
        await web.open()
        await web.ask("tools/call", {"name": "read_note"})
        assert ["method" in message for message in web.heard[-2:]] == [True, False]


async def test_requests_without_or_with_a_wrong_session_are_refused() -> None:
    async with serving(LATEST) as (web, _):
        await web.open()
        kept, web.session = web.session, {}
        assert (await web.post(web.message("tools/list")))[0] == 400
        web.session = {SESSION: "no-such"}
        assert (await web.post(web.message("tools/list")))[0] == 404
        async with web.client.get(web.url, headers=KINDS) as response:
            assert response.status == 400
        async with web.client.delete(web.url, headers=web.session) as response:
            assert response.status == 404
        web.session = {**kept, PROTOCOL: "1900-01-01"}
        assert (await web.post(web.message("tools/list")))[0] == 400
        web.session = {**kept, PROTOCOL: LATEST}
        assert (await web.post(web.message("tools/list")))[0] == 200


async def test_what_is_no_request_of_the_protocol_is_refused() -> None:
    async with serving(LATEST) as (web, _):
        async with web.client.put(web.url) as response:
            assert (response.status, response.headers["Allow"]) == (405, "GET, POST, DELETE")
        async with web.client.post(web.url, data="{}", headers={"Accept": "text/html"}) as response:
            assert response.status == 406
        async with web.client.post(web.url, data="not json", headers=KINDS) as response:
            assert (response.status, (await response.json())["error"]["code"]) == (400, -32700)
        await web.open()
        assert (await web.post({"jsonrpc": "1.0"}))[0] == 400
        assert (await web.post(7))[0] == 400


async def test_a_batch_is_answered_by_a_batch() -> None:
    async with serving("2025-03-26") as (web, _):
        await web.open()
        status, answers = await web.post([web.message("ping"), web.message("ping")])
        assert (status, [answer["result"] for answer in answers]) == (200, [{}, {}])


@pytest.mark.behaviour("GEN-S7")
async def test_a_modern_answer_carries_no_session() -> None:
    async with serving(NOW) as (web, shell):
        assert "result" in await web.open()
        assert (web.session, shell.script.sessions) == ({}, {})


@pytest.mark.parametrize(
    ("method", "params", "status", "code"),
    [
        ("tools/list", {}, 200, None),
        ("ping", {}, 404, -32601),
        ("tools/call", {"name": "ask_roots"}, 400, -32021),
        ("tools/call", {"name": "no_such"}, 200, -32602),
    ],
)
async def test_a_modern_error_has_its_http_status(
    method: str, params: dict[str, Any], status: int, code: int | None
) -> None:
    async with serving(NOW) as (web, _):
        found, answer = await web.post(web.message(method, params))
        assert (found, answer.get("error", {}).get("code")) == (status, code)


async def test_a_modern_request_with_a_wrong_version_or_without_meta_is_a_bad_request() -> None:
    async with serving(NOW) as (web, _):
        message = web.message("tools/list")
        message["params"]["_meta"][META + "protocolVersion"] = "1900-01-01"
        status, answer = await web.post(message, MCP_Protocol_Version="1900-01-01")
        assert (status, answer["error"]["code"]) == (400, -32022)
        del message["params"]["_meta"][META + "clientCapabilities"]
        status, answer = await web.post(message, MCP_Protocol_Version="1900-01-01")
        assert (status, answer["error"]["code"]) == (400, -32602)
        status, answer = await web.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert (status, answer["error"]["code"]) == (400, -32602)


@pytest.mark.parametrize("header", [PROTOCOL, METHOD, NAME])
async def test_headers_must_agree_with_the_body(header: str) -> None:
    async with serving(NOW) as (web, _):
        message = web.message("tools/call", {"name": "log"})
        assert (await web.post(message))[0] == 200
        status, answer = await web.post(message, **{header.replace("-", "_"): "other"})
        assert (status, answer["error"]["code"]) == (400, -32020)


async def test_a_modern_stream_says_what_it_listened_for_until_it_is_closed() -> None:
    async with serving(NOW) as (web, shell):
        async with web.listen(toolsListChanged=True) as heard:
            assert (await anext(heard))["method"] == "notifications/subscriptions/acknowledged"
            await web.ask("tools/call", {"name": "grow"})
            assert (await anext(heard))["method"] == "notifications/tools/list_changed"
        with anyio.fail_after(WAIT):
            while shell.script.listens:
                await anyio.lowlevel.checkpoint()
        async with web.client.get(web.url, headers=KINDS) as response:
            assert response.status == 400


async def test_a_modern_only_server_has_no_get_stream() -> None:
    async with serving(NOW, revisions=[NOW]) as (web, _):
        async with web.client.get(web.url, headers=KINDS) as response:
            assert response.status == 405
        status, answer = await web.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, Mcp_Method="tools/list")
        assert (status, answer["error"]["code"]) == (400, -32602)


async def test_a_shell_without_sessions_hands_out_none_and_has_no_stream() -> None:
    async with serving(LATEST, "get-405-with-listchanged-no-session") as (web, _):
        opened = await web.open()
        assert opened["result"]["capabilities"]["tools"] == {"listChanged": True}
        assert web.session == {}
        assert "tools" in (await web.ask("tools/list"))["result"]
        async with web.client.get(web.url, headers=KINDS) as response:
            assert response.status == 405


async def test_a_shell_that_ignores_sessions_answers_any() -> None:
    async with serving(LATEST, "session-ignored") as (web, _):
        await web.open()
        web.session = {SESSION: "no-such"}
        assert "tools" in (await web.ask("tools/list"))["result"]


async def test_a_shell_that_ignores_delete_keeps_the_session() -> None:
    async with serving(LATEST, "delete-ignored") as (web, _):
        await web.open()
        async with web.client.delete(web.url, headers=web.session) as response:
            assert response.status == 204
        assert "tools" in (await web.ask("tools/list"))["result"]


async def test_a_shell_may_hand_out_sessions_to_modern_requests() -> None:
    async with serving(NOW, "session-on-modern") as (web, _):
        await web.open()
        assert web.session == {SESSION: "modern"}


async def test_a_shell_may_answer_errors_with_200() -> None:
    async with serving(NOW, "status-200-for-32021") as (web, _):
        status, answer = await web.post(web.message("tools/call", {"name": "ask_roots"}))
        assert (status, answer["error"]["code"]) == (200, -32021)


async def test_a_shell_may_take_any_headers() -> None:
    async with serving(NOW, "missing-header-check") as (web, _):
        status, _ = await web.post(web.message("tools/list"), Mcp_Method="other")
        assert status == 200


@pytest.mark.parametrize(("fault", "status"), [("unauthorized", 401), ("failing", 503)])
async def test_a_shell_may_refuse_everything(fault: str, status: int) -> None:
    async with serving(NOW, fault) as (web, _):
        assert (await web.post(web.message("server/discover")))[0] == status


async def test_a_server_that_dies_cuts_the_answer() -> None:
    async with serving(NOW, "dies-on=tools/list") as (web, shell):
        message = web.message("tools/list")
        async with anyio.create_task_group() as group:
            group.start_soon(web.post, message)
            await shell.stopped.wait()
            shell.stop()
        assert shell.status == 3


@pytest.mark.parametrize("options", [(), ("--break", "dies-on=server/discover")])
async def test_a_process_says_where_it_listens_and_ends_cleanly(options: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "troth.testing", "server", "--transport", "http", *options]
    process = await anyio.open_process(command, stderr=subprocess.PIPE)
    with anyio.fail_after(WAIT):
        async with process:
            assert process.stderr is not None
            said = (await process.stderr.receive()).decode()
            assert said.startswith("ready http://127.0.0.1:")
            async with aiohttp.ClientSession() as client:
                web = Web(client, said.split()[1], NOW, {})
                if options:
                    await web.post(web.message("server/discover"))
                else:
                    assert "result" in await web.open()
                    process.send_signal(signal.SIGTERM)
                assert await process.wait() == (3 if options else 0)
