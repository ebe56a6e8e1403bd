"""One host on pipes: both eras, cancellation, bounds, ends."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from scripted_front import (
    CHANGED,
    META,
    ScriptedFront,
    call,
    initialize,
    notification,
    progress_then,
    request,
    result,
    until,
    waits,
)

from troth.bridge import Kind
from troth.gateway.crew import Crew
from troth.gateway.hosts import StdioHost, serve_stdio
from troth.gateway.hosts.pipes import open_pipes
from troth.gateway.limits import Limits
from troth.gateway.model import Answer, Sort

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


class Pipes:
    """The host's ends of a pair of pipes."""

    def __init__(self, reader: asyncio.StreamReader, write_fd: int, task: asyncio.Task[Any], front: ScriptedFront):
        self.reader = reader
        self.fd = write_fd
        self.task = task
        self.front = front

    def send(self, *messages: Any) -> None:
        for message in messages:
            data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            assert os.write(self.fd, data) == len(data)

    async def get(self) -> dict[str, Any]:
        async with asyncio.timeout(30):
            line = await self.reader.readline()
        assert line.endswith(b"\n"), line
        return json.loads(line)

    def eof(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    async def ended(self) -> None:
        async with asyncio.timeout(30):
            await asyncio.wait([self.task])
        if not self.task.cancelled():
            self.task.result()

    async def ready(self, revision: str = "2025-11-25") -> None:
        self.send(initialize(revision))
        assert (await self.get())["result"]["protocolVersion"] == revision
        self.send(INITIALIZED)
        await until(lambda: self.front.notified)


@asynccontextmanager
async def host(front: ScriptedFront | None = None, limits: Limits | None = None):
    front = front or ScriptedFront()
    crew = Crew()
    theirs, ours = os.pipe()
    back, out = os.pipe()
    loop = asyncio.get_running_loop()
    task = loop.create_task(serve_stdio(front, theirs, out, limits or Limits(drain=0.2), crew))
    reader = asyncio.StreamReader(limit=64 * 1024 * 1024)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(back, "rb", 0))
    pipes = Pipes(reader, ours, task, front)
    pipes.transport = transport
    try:
        yield pipes
    finally:
        pipes.eof()
        await pipes.ended()
        transport.close()
        await crew.close()
        assert len(crew) == 0


async def test_rule_18_both_eras_live_on_one_pipe() -> None:
    async with host() as pipes:
        pipes.send(request("server/discover", 1, META))
        assert (await pipes.get())["result"]["supportedVersions"]
        pipes.send(call(2))
        assert (await pipes.get())["error"]["code"] == -32600
        pipes.send(request("ping", 3))
        assert (await pipes.get())["result"] == {}
        await pipes.ready()
        pipes.send(call(4), call(5, META))
        answers = {(await pipes.get())["id"] for _ in range(2)}
        assert answers == {4, 5}
        pipes.send(request("server/discover", 6, {**META, "io.modelcontextprotocol/protocolVersion": "2031-01-01"}))
        assert (await pipes.get())["error"]["code"] == -32022
        pipes.send(initialize(identity=7))
        assert "already" in (await pipes.get())["error"]["message"]
        assert pipes.front.sessions[0].host.principal.name == "stdio"
    assert pipes.front.closed == pipes.front.sessions


async def test_what_belongs_to_no_request_waits_until_the_session_is_open() -> None:
    async with host() as pipes:
        pipes.send(initialize())
        await pipes.get()
        outbox = pipes.front.sessions[0].outbox
        for _ in range(3):
            outbox.send(CHANGED, Sort.CHANGE)
            outbox.send(notification("notifications/message", data=1), Sort.LOG)
        pipes.send(request("ping", 1))
        assert (await pipes.get())["id"] == 1
        pipes.send(INITIALIZED)
        assert (await pipes.get())["method"] == "notifications/tools/list_changed"
        outbox.send(CHANGED, Sort.CHANGE)
        assert (await pipes.get())["method"] == "notifications/tools/list_changed"
        pipes.send(request("ping", 2))
        assert (await pipes.get())["id"] == 2


async def test_requests_run_side_by_side_and_are_cancelled_by_notification() -> None:
    gate = asyncio.Event()
    async with host(ScriptedFront({"tools/call": waits(gate)})) as pipes:
        await pipes.ready()
        pipes.send(call("slow", META), call(1), call(1), request("tools/list", 3, META))
        assert (await pipes.get())["error"]["message"].startswith("id:")
        assert (await pipes.get())["id"] == 3
        for wanted in ("slow", "unknown", 1, {}):
            cancel = {"requestId": wanted}
            pipes.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel})
        await until(lambda: pipes.front.cancelled == ["slow"])
        # A legacy one is the front's to end; the transport only tells it.
        await until(lambda: len(pipes.front.notified) == 4)
        gate.set()
        assert (await pipes.get())["id"] == 1


@pytest.mark.behaviour("GEN-B5")
async def test_a_notification_on_a_pipe_is_never_answered() -> None:
    async with host() as pipes:
        pipes.send({"jsonrpc": "2.0", "method": "no/such"})
        pipes.send({"jsonrpc": "2.0", "method": "no/such", "params": []})
        pipes.send({"jsonrpc": "2.0", "id": 4, "result": {}})
        await pipes.ready()
        pipes.send({"jsonrpc": "2.0", "method": "no/such"})
        pipes.send({"jsonrpc": "2.0", "id": 4, "result": {}})
        pipes.send(request("ping", 5))
        assert (await pipes.get())["id"] == 5
        assert len(pipes.front.notified) == 3


async def test_what_is_no_answer_ends_what_it_answers() -> None:
    async with host() as pipes:
        pipes.send({"jsonrpc": "2.0", "id": "early", "result": 5})
        await pipes.ready()
        for number, spoiled in enumerate(({"result": 5}, {"error": None}, {"result": None, "error": "x"})):
            pipes.send({"jsonrpc": "2.0", "id": f"troth-{number}", **spoiled})
        pipes.send({"jsonrpc": "2.0", "id": None, "result": 5}, request("ping", 9))
        while (await pipes.get())["id"] != 9:
            pass
        answers = [frame for frame in pipes.front.notified if frame.kind is Kind.ERROR]
        assert [frame.id for frame in answers] == ["troth-0", "troth-1", "troth-2"]


async def test_junk_is_answered_and_does_no_harm() -> None:
    async with host(limits=Limits(body=1000, drain=0.2)) as pipes:
        for junk, code in (
            (b"{\n", -32700),
            (b"\xff\n", -32700),
            (b"[]\n", -32600),
            (b"[" * 900 + b"\n", -32700),
            (b'{"a":"' + b"x" * 5000 + b'"}\n', -32600),
        ):
            pipes.send(junk)
            answer = await pipes.get()
            assert answer["error"]["code"] == code
            assert answer["id"] is None
        pipes.send(b"\r\n", b"\n", b"  \n")
        pipes.send(json.dumps(call(1, META)).encode() + b"\r\n")
        assert (await pipes.get())["id"] == 1


async def test_a_message_is_one_line_whatever_is_in_it() -> None:
    async def script(frame, host, stream):
        stream.send(b'{"jsonrpc":"2.0",\n"method":"x"}', Sort.OTHER)
        return Answer(b'{"jsonrpc":"2.0",\r\n"id":1,"result":{}}')

    async with host(ScriptedFront({"tools/call": script})) as pipes:
        pipes.send(call(1, META))
        assert (await pipes.get())["method"] == "x"
        assert (await pipes.get())["id"] == 1


async def test_requests_are_answered_after_the_end_of_the_input() -> None:
    async def script(frame, host, stream):
        await asyncio.sleep(0.02)
        return result(frame, {"text": "x" * 300_000})

    async with host(ScriptedFront({"tools/call": script}), Limits(drain=30)) as pipes:
        pipes.send(call(1, META), json.dumps(call(2, META)).encode())
        pipes.eof()
        assert {(await pipes.get())["id"] for _ in range(2)} == {1, 2}
        await pipes.ended()
        assert await pipes.reader.read() == b""


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": uvloop}) for uvloop in (False, True)])
async def test_what_waits_is_written_before_the_output_closes() -> None:
    async def script(frame, host, stream):
        return result(frame, {"text": "x" * 300_000})

    async with host(ScriptedFront({"tools/call": script}), Limits(drain=30)) as pipes:
        pipes.transport.pause_reading()
        pipes.send(*[call(number, META) for number in range(5)])
        pipes.eof()
        await until(lambda: len(pipes.front.finished) == 5)
        pipes.transport.resume_reading()
        assert {(await pipes.get())["id"] for _ in range(5)} == set(range(5))
        await pipes.ended()


async def test_what_runs_too_long_after_the_end_is_cancelled() -> None:
    never = asyncio.Event()
    scripts = {"tools/call": waits(never), "subscriptions/listen": waits(never)}
    async with host(ScriptedFront(scripts), Limits(drain=0.05)) as pipes:
        await pipes.ready()
        pipes.send(call(1, META), request("subscriptions/listen", 2, META), call(3))
        pipes.send(request("ping", 4))
        await pipes.get()
        pipes.eof()
        await pipes.ended()
        assert sorted(pipes.front.cancelled) == [1, 2, 3]
        assert pipes.front.closed == pipes.front.sessions


async def test_a_gateway_that_stops_lets_listens_say_their_last() -> None:
    stopped = asyncio.Event()
    scripts = {"subscriptions/listen": waits(stopped), "tools/call": waits(asyncio.Event())}
    async with host(ScriptedFront(scripts), Limits(drain=1.0)) as pipes:
        pipes.send(request("subscriptions/listen", 2, META), call(1, META), request("ping", 4))
        await pipes.get()
        stopped.set()
        pipes.task.cancel()
        assert (await pipes.get())["id"] == 2
        with pytest.raises(asyncio.CancelledError):
            await pipes.task
        assert pipes.front.cancelled == [1]


async def test_a_broken_output_ends_the_host() -> None:
    gate = asyncio.Event()
    async with host(ScriptedFront({"tools/call": progress_then(1, gate)})) as pipes:
        await pipes.ready()
        pipes.send(call(1))
        await pipes.get()
        pipes.transport.close()
        await pipes.ended()
        assert pipes.front.cancelled == [1]
        assert pipes.front.closed == pipes.front.sessions


async def test_rule_24_progress_is_thinned_out_for_a_slow_host_and_answers_wait() -> None:
    async def script(frame, host, stream):
        for number in range(2000):
            text = "x" * 1000
            stream.send(
                notification("notifications/progress", progressToken=1, progress=number, text=text), Sort.PROGRESS
            )
            if not number % 100:
                await asyncio.sleep(0)
        return result(frame, {"text": "x" * 1000})

    async with host(ScriptedFront({"tools/call": script}), Limits(queue=200_000)) as pipes:
        pipes.transport.pause_reading()
        pipes.send(*[call(number, META) for number in range(20)])
        await until(lambda: len(pipes.front.finished) == 20)
        pipes.transport.resume_reading()
        answers, progress = set(), []
        while len(answers) < 20:
            message = await pipes.get()
            if "id" in message:
                answers.add(message["id"])
            else:
                progress.append(message["params"]["progress"])
        assert len(progress) < 20 * 2000
        assert progress.count(1999) == 20


async def test_rule_24_answers_wait_for_room_so_that_memory_is_bounded() -> None:
    async def script(frame, host, stream):
        return result(frame, {"text": "x" * 100_000})

    front = ScriptedFront({"tools/call": script})
    crew = Crew()
    (given, out), (back, written) = os.pipe(), os.pipe()
    lines, output = await open_pipes(given, written, Limits())
    stdio = StdioHost(front, Limits(queue=500_000, drain=0.2), crew)
    task = asyncio.get_running_loop().create_task(stdio.serve(lines, output))
    for number in range(40):
        os.write(out, json.dumps(call(number, META)).encode() + b"\n")
    await until(lambda: len(front.finished) == 40)
    await until(lambda: stdio._waiting.bytes > 250_000)
    assert stdio._waiting.bytes < 500_000
    with os.fdopen(back, "rb") as reader:
        loop = asyncio.get_running_loop()
        got = []
        while len(got) < 40:
            got.append(json.loads(await loop.run_in_executor(None, reader.readline))["id"])
            assert stdio._waiting.bytes < 500_000
        assert sorted(got) == list(range(40))
        os.close(out)
        async with asyncio.timeout(30):
            await task
    await crew.close()


async def test_a_host_that_never_reads_is_cut_off() -> None:
    async with host(limits=Limits(queue=100_000, drain=0.2)) as pipes:
        await pipes.ready()
        pipes.transport.pause_reading()
        outbox = pipes.front.sessions[0].outbox
        for number in range(1000):
            outbox.send(notification("notifications/other", number=number, text="x" * 1000), Sort.OTHER)
            await asyncio.sleep(0)
        await pipes.ended()
        assert pipes.front.closed == pipes.front.sessions


async def test_too_many_requests_at_once_are_refused_by_name() -> None:
    gate = asyncio.Event()
    async with host(ScriptedFront({"tools/call": waits(gate)}), Limits(running=1)) as pipes:
        pipes.send(call(1, META), call(2, META))
        answer = await pipes.get()
        assert (answer["id"], answer["error"]["data"]) == (2, {"limit": "running"})
        gate.set()
        assert (await pipes.get())["id"] == 1


async def test_rule_25_batches_are_exploded_at_2025_03_26_only() -> None:
    for revision, expected in (("2025-03-26", {1, 2}), ("2025-06-18", {None})):
        async with host() as pipes:
            await pipes.ready(revision)
            pipes.send([call(1), request("ping", 2)])
            assert {(await pipes.get())["id"] for _ in expected} == expected


async def test_a_failed_initialize_may_be_tried_again() -> None:
    front = ScriptedFront()
    real = front.initialize

    async def failing(frame, principal, outbox, *, push, transport):
        front.initialize = real
        return None, Answer(b'{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"not now"}}', -32603)

    front.initialize = failing
    async with host(front) as pipes:
        pipes.send(initialize())
        assert "error" in await pipes.get()
        await pipes.ready()


async def test_files_and_sockets_serve_as_well_as_pipes(tmp_path: Path) -> None:
    given, out = tmp_path / "in", tmp_path / "out"
    given.write_bytes(b"".join(json.dumps(item).encode() + b"\n" for item in (initialize(), INITIALIZED, call(1))))
    crew = Crew()
    read_fd, write_fd = os.open(given, os.O_RDONLY), os.open(out, os.O_WRONLY | os.O_CREAT)
    async with asyncio.timeout(30):
        await serve_stdio(ScriptedFront(), read_fd, write_fd, Limits(), crew)
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == [0, 1]
    os.close(read_fd)
    os.close(write_fd)

    # Node gives its children a socket for each of the two.
    (given_in, ours_in), (given_out, ours_out) = socket.socketpair(), socket.socketpair()
    serving = serve_stdio(ScriptedFront(), given_in.detach(), given_out.detach(), Limits(drain=0.1), crew)
    task = asyncio.get_running_loop().create_task(serving)
    reader, writer = await asyncio.open_connection(sock=ours_out)
    ours_in.sendall(json.dumps(call(1, META)).encode() + b"\n")
    async with asyncio.timeout(30):
        assert json.loads(await reader.readline())["id"] == 1
        ours_in.close()
        await task
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
    await crew.close()
