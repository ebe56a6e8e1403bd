"""The link to a process, against processes that are honest, silent, noisy, stubborn or dead."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from contextlib import asynccontextmanager
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import anyio
import pytest
from link_recorder import Recorder, message, process, run

from troth.gateway.crew import Crew
from troth.gateway.limits import Limits
from troth.gateway.upstream import stdio
from troth.gateway.upstream.stdio import StdioLink, open_stdio
from troth.wire.errors import LinkError
from troth.wire.family import family
from troth.wire.start import INHERITED

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from troth.gateway.settings import UpstreamSettings

ECHO = """
    import sys
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
"""


@asynccontextmanager
async def linked(
    settings: UpstreamSettings, limits: Limits | None = None
) -> AsyncGenerator[tuple[StdioLink, Recorder]]:
    heard = Recorder()
    link = await open_stdio(settings, heard, limits or Limits(stop=1.0))
    try:
        yield link, heard
    finally:
        await link.close()
        assert not alive(link.pid)
        assert family(link.pid, link.mark) == frozenset()


def alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def gone(pid: int) -> None:
    with anyio.fail_after(30):
        while alive(pid):  # noqa: ASYNC110 - a stranger's process tells nobody
            await anyio.sleep(0.01)


def test_frames_come_back_line_by_line_in_order() -> None:
    async def test() -> None:
        async with linked(process(ECHO)) as (link, heard):
            for number in range(100):
                link.send(number, message(number))
            await heard.count(100)
            assert [data for _, data in heard.frames] == [message(number) for number in range(100)]
            assert {key for key, _ in heard.frames} == {None}
            assert await link.deliver(message(100)) is None
            await heard.count(101)
            assert heard.ends == []

    run(test)


@pytest.mark.parametrize("between", [b"\n", b"\r\n", b"\r"])
def test_rule_3_a_line_break_in_a_frame_never_makes_two_lines_of_it(between: bytes) -> None:
    async def test() -> None:
        async with linked(process(ECHO)) as (link, heard):
            link.send(1, b'{"id":1,"x":' + between + b'{"id":2}' + between + b"}")
            link.send(3, message(3))
            await heard.count(2)
            assert heard.values[0] == {"id": 1, "x": {"id": 2}}
            assert heard.values[1]["id"] == 3

    run(test)


def test_a_frame_larger_than_the_pipe_goes_both_ways() -> None:
    async def test() -> None:
        async with linked(process(ECHO)) as (link, heard):
            big = message(1, params={"text": "x" * 3_000_000})
            link.send(1, big)
            await heard.count(1)
            assert heard.frames == [(None, big)]

    run(test)


def test_rule_24_the_reader_goes_on_while_the_process_does_not_read() -> None:
    talks = """
        import sys
        sys.stdin.buffer.read(1)
        for number in range(50_000):
            print('{"n": %d, "pad": "%s"}' % (number, "x" * 50))
        sys.stdin.buffer.read()
    """

    async def test() -> None:
        async with linked(process(talks)) as (link, heard):
            for number in range(1000):
                link.send(number, message(number, params={"pad": "x" * 1000}))
            await heard.count(50_000)
            assert not link.why

    run(test)


def test_a_process_that_never_reads_counts_as_dead_after_a_named_time() -> None:
    async def test() -> None:
        async with linked(process("import time; time.sleep(60)"), Limits(unread=0.2)) as (link, heard):
            link.send(1, message(1, params={"pad": "x" * 1_000_000}))
            assert await heard.death() == "does not read its standard input for 0.2 seconds"
            await gone(link.pid)
            link.send(2, message(2))

    run(test)


def test_a_slow_reader_lives(tmp_path: Path) -> None:
    slow = """
        import os, sys, time
        for number in range(8):
            got = 0
            while got < 100_000:
                got += len(os.read(0, 100_000 - got))
            print('{"got": %d}' % number)
            while not os.path.exists(f"{sys.argv[1]}/{number}"):
                time.sleep(0.01)
        os.read(0, 1)
    """

    async def test() -> None:
        async with linked(process(slow, str(tmp_path)), Limits(unread=600.0)) as (link, heard):
            link.send(1, message(1, params={"pad": "x" * 1_000_000}))
            for number in range(8):
                await heard.count(number + 1)
                # As the clock does: since the last look it has read more than a pipe holds.
                link._look()
                assert heard.deaths == []
                (tmp_path / str(number)).touch()
            link._look()
            link._look()
            assert heard.deaths == ["does not read its standard input for 600 seconds"]

    run(test)


def test_what_waits_for_a_process_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "PENDING", 1_000_000)

    async def test() -> None:
        async with linked(process("import time; time.sleep(60)")) as (link, heard):
            for number in range(30):
                link.send(number, message(number, params={"pad": "x" * 100_000}))
            assert await heard.death() == "does not read its standard input: more than 1000000 bytes wait"

    run(test)


def test_junk_and_long_lines_are_dropped_and_counted_and_what_follows_arrives(
    caplog: pytest.LogCaptureFixture,
) -> None:
    noisy = """
        import sys
        print("Starting \\x1b[2J up")
        print()
        print("[" + "1," * 2000 + "1]")
        print(' \\t{"id": 1}\\r')
        sys.stdout.write('{"id": 2}')
        sys.stdout.flush()
    """

    async def test() -> None:
        async with linked(process(noisy), Limits(line=1000)) as (link, heard):
            assert await heard.death() == "exited with status 0"
            assert heard.values == [{"id": 1}, {"id": 2}]
            assert len(link.notes) == 1
            assert link.notes[0].startswith("2 lines dropped that are no messages; the last: [1,1,")

    with caplog.at_level(logging.DEBUG):
        run(test)
    assert "dropped no message: Starting \\x1b[2J up" in caplog.text
    assert "dropped a line of more than 1000 bytes" in caplog.text


@pytest.mark.parametrize(
    ("form", "answers"),
    [
        ('{"jsonrpc": "2.0", "id": 7, "result": {"x": "%s"}}', True),
        ('{"id":7,"jsonrpc":"2.0","error":{"x":"%s"}}', True),
        ('{"result":{"x":"%s"},"jsonrpc":"2.0","id":7}', True),
        ('{"jsonrpc":"2.0","result":["%s"],"id":7} ', True),
        ('{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":"%s"}}', False),
        ('{"method":"ping","params":{"x":"%s"},"id":7}', False),
        ('{"result":{"x":"%s","y":{},"id":7}}', False),
    ],
)
def test_a_request_whose_answer_is_too_long_for_a_line_ends(form: str, answers: bool) -> None:
    code = f"import sys\nprint({form!r} % ('x' * 5000))\nprint('{{}}', flush=True)\nsys.stdin.read()"

    async def test() -> None:
        async with linked(process(code), Limits(line=1000)) as (_, heard):
            await heard.until(lambda heard: heard.frames)
        assert heard.values == [{}]
        ends = [(7, "the answer has more than 1000 bytes")] if answers else []
        assert [(key, problem.words) for key, problem in heard.ends if problem] == ends

    run(test)


@pytest.mark.parametrize(
    "code",
    ["while True: print('x')", "import sys\nwhile True: sys.stdout.write('x' * 100_000)"],
    ids=["lines", "one line"],
)
def test_a_flood_of_junk_ends_the_process(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "JUNK_BYTES", 10_000_000)

    async def test() -> None:
        async with linked(process(code), Limits(line=1_000_000)) as (link, heard):
            assert await heard.death() == "floods its standard output with what is no message"
            await gone(link.pid)

    run(test)


def test_a_death_says_how_and_the_operator_hears_the_last_words_without_secrets(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failing = """
        import os, sys
        print("cannot log in with", os.environ["API_KEY"], file=sys.stderr)
        sys.exit(3)
    """

    async def test() -> None:
        settings = process(failing, env={"API_KEY": "hunter2-hunter2"})
        async with linked(settings) as (link, heard):
            words = "cannot log in with [hidden]"
            assert await heard.death() == "exited with status 3"
            assert link.notes == (words,)
            assert link.why == heard.deaths[0]

    with caplog.at_level(logging.DEBUG):
        run(test)
    assert "upstream peer says: cannot log in with [hidden]" in caplog.text
    assert "hunter2" not in caplog.text


def test_a_killed_process_is_named_by_its_signal() -> None:
    async def test() -> None:
        async with linked(process(ECHO)) as (link, heard):
            os.kill(link.pid, signal.SIGKILL)
            assert await heard.death() == "killed by signal SIGKILL"

    run(test)


def test_standard_error_is_kept_bounded() -> None:
    code = """
        import sys
        for number in range(10_000):
            print(number, "x" * 10_000, file=sys.stderr)
        print('{}')
        sys.stdin.read()
    """

    async def test() -> None:
        async with linked(process(code)) as (link, heard):
            await heard.count(1)
            assert len(link.notes) <= stdio.STDERR_LINES + 1
            assert all(len(note) < 300 for note in link.notes)

    run(test)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os, time; os.close(1); time.sleep(60)", "closed its standard output or input"),
        ("import os, time; os.close(0); os.write(1, b'{}\\n'); time.sleep(60)", "closed its standard output or input"),
    ],
    ids=["output", "input"],
)
def test_a_process_that_closes_a_pipe_is_dead(code: str, words: str) -> None:
    async def test() -> None:
        async with linked(process(code)) as (link, heard):
            if "os.close(0)" in code:
                await heard.count(1)
                link.send(1, message(1))
            assert await heard.death() == words

    run(test)


def test_the_process_gets_only_the_environment_that_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TROTH_SECRET", "of the gateway")

    async def test() -> None:
        code = "import json, os; print(json.dumps(dict(os.environ)))"
        async with linked(process(code, env={"GIVEN": "value"})) as (_, heard):
            await heard.count(1)
            got = heard.values[0]
            assert got["GIVEN"] == "value"
            assert set(got) <= {*INHERITED, "GIVEN", "TROTH_TARGET"}

    run(test)


def test_closing_ends_a_process_that_reads_to_the_end_without_a_signal(tmp_path: Path) -> None:
    done = tmp_path / "done"
    code = """
        import pathlib, sys
        print("{}")
        sys.stdin.read()
        pathlib.Path(sys.argv[1]).write_text("cleaned up")
    """

    async def test() -> None:
        async with linked(process(code, str(done)), Limits(stop=30.0)) as (link, heard):
            await heard.count(1)
            await link.close()
            assert done.read_text() == "cleaned up"
            assert heard.deaths == []

    run(test)


STUBBORN = """
    import json, os, signal, subprocess, sys, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    own = subprocess.Popen(["sleep", "60"])
    strange = subprocess.Popen(["sleep", "60"], start_new_session=True)
    print(json.dumps({"pids": [own.pid, strange.pid]}))
    time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who descends from whom")
def test_closing_leaves_nothing_of_a_stubborn_family_behind() -> None:
    async def test() -> None:
        async with linked(process(STUBBORN), Limits(stop=0.1)) as (link, heard):
            await heard.count(1)
            await link.close()
            for pid in heard.values[0]["pids"]:
                await gone(pid)

    run(test)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who descends from whom")
def test_closing_after_a_death_ends_what_the_process_left_behind() -> None:
    code = """
        import json, subprocess
        strange = subprocess.Popen(["sleep", "60"], start_new_session=True)
        print(json.dumps({"pid": strange.pid}))
    """

    async def test() -> None:
        async with linked(process(code), Limits(stop=0.1)) as (link, heard):
            await heard.death()
            await link.close()
            await gone(heard.values[0]["pid"])

    run(test)


def test_closing_twice_and_under_cancellation_ends_the_process() -> None:
    async def test() -> None:
        heard = Recorder()
        link = await open_stdio(process(STUBBORN), heard, Limits(stop=0.1))
        await heard.count(1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(link.close)
            await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        await link.close()
        assert not alive(link.pid)
        link.send(1, message(1))

    run(test)


async def closing() -> tuple[StdioLink, Recorder, Crew]:
    """A link to a process that does not go, and the crew that closes it."""
    heard = Recorder()
    link = await open_stdio(process(STUBBORN), heard, Limits(stop=60.0))
    await heard.count(1)
    crew = Crew()
    crew.spawn(link.close(), "closing")
    await anyio.wait_all_tasks_blocked()
    return link, heard, crew


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who descends from whom")
def test_a_crew_that_is_closed_while_it_closes_a_link_leaves_nothing_behind() -> None:
    async def test() -> None:
        link, heard, crew = await closing()
        await crew.close()
        for pid in (link.pid, *heard.values[0]["pids"]):
            await gone(pid)

    run(test)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who descends from whom")
def test_a_process_that_a_busy_system_takes_its_time_to_kill_is_reaped(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        link, heard, crew = await closing()
        monkeypatch.setattr(link, "_signal", lambda number: threading.Timer(0.3, os.killpg, (link.pid, number)).start())
        await crew.close()
        assert link._process.returncode == -signal.SIGKILL
        for pid in heard.values[0]["pids"]:
            await gone(pid)

    run(test)


GATEWAY = """
    import anyio, sys
    from link_recorder import Recorder, process
    from troth.gateway.limits import Limits
    from troth.gateway.upstream.stdio import open_stdio

    async def main():
        heard = Recorder()
        code = sys.stdin.read()
        links = [await open_stdio(process(code), heard, Limits(stop=float(sys.argv[1]))) for _ in "ab"]
        await heard.count(2)
        print(*(pid for value in heard.values for pid in value), flush=True)
        await anyio.sleep_forever()

    anyio.run(main, backend_options={"use_uvloop": True})
"""


def killed_gateway(code: str, seconds: float) -> list[int]:
    """Processes that a gateway had started before it was killed."""
    settings = process(GATEWAY, str(seconds))
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen(settings.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as gateway:
        assert gateway.stdin is not None
        assert gateway.stdout is not None
        gateway.stdin.write(dedent(code).encode())
        gateway.stdin.close()
        pids = [int(pid) for pid in gateway.stdout.readline().split()]
        gateway.kill()
    return pids


def test_a_process_reads_the_end_of_its_input_when_the_gateway_is_killed() -> None:
    code = "import os; print([os.getpid()]); os.read(0, 1)"
    pids = killed_gateway(code, 60.0)
    assert len(pids) == 2

    async def test() -> None:
        for pid in pids:
            await gone(pid)

    run(test)


def test_a_stubborn_group_is_killed_when_the_gateway_is_killed() -> None:
    code = """
        import os, signal, subprocess, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print([os.getpid(), subprocess.Popen(["sleep", "60"]).pid])
        time.sleep(60)
    """
    pids = killed_gateway(code, 0.3)
    assert len(pids) == 4

    async def test() -> None:
        for pid in pids:
            await gone(pid)

    run(test)


def test_a_program_that_does_not_exist_is_an_error_with_a_mend() -> None:
    from troth.gateway.settings import Transport, UpstreamSettings

    async def test() -> None:
        settings = UpstreamSettings(name="peer", transport=Transport.STDIO, command=("no-such-program",))
        with pytest.raises(LinkError, match="there is no such program"):
            await open_stdio(settings, Recorder(), Limits())

    run(test)


def test_a_fault_of_the_user_in_one_frame_does_not_cost_the_next(caplog: pytest.LogCaptureFixture) -> None:
    class Faulty(Recorder):
        def receive(self, data: bytes, key: object) -> bool:
            if b"bad" in data:
                raise ValueError("fault")
            return super().receive(data, None)

    async def test() -> None:
        heard = Faulty()
        link = await open_stdio(process('print(\'{"bad": 1}\\n{"good": 1}\'); input()'), heard, Limits())
        await heard.count(1)
        assert heard.values == [{"good": 1}]
        await link.close()

    run(test)
    assert "a frame could not be handled" in caplog.text


def test_it_speaks_with_a_server(tmp_path: Path) -> None:
    async def test() -> None:
        settings = process(
            "import runpy, sys; sys.argv = ['server', 'server', '--transport', 'stdio']; "
            "runpy.run_module('troth.testing', run_name='__main__')"
        )
        hello = {
            "jsonrpc": "2.0",
            "id": 7,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        }
        async with linked(settings) as (link, heard):
            link.send(7, json.dumps(hello).encode())
            await heard.count(1)
            assert heard.values[0]["id"] == 7
            assert heard.values[0]["result"]["protocolVersion"] == "2025-11-25"

    run(test)


def test_an_input_that_closes_when_the_link_is_let_go_ends_once() -> None:
    told: list[object] = []

    async def test() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context))
        link = await open_stdio(process(ECHO), Recorder(), Limits())
        assert link._stdin is not None
        link._stdin.close()
        link._release()
        await gone(link.pid)
        link._process.wait(30)

    # Not on uvloop, whose pipes forgive it.
    anyio.run(test)
    assert told == []


@pytest.mark.parametrize("steps", range(1, 4))
@pytest.mark.anyio
async def test_a_start_that_is_interrupted_ends_as_it_was_told_to(steps: int) -> None:
    starting = asyncio.get_running_loop().create_task(open_stdio(process(ECHO), Recorder(), Limits(stop=1.0)))
    for _ in range(steps):
        await asyncio.sleep(0)
    assert not starting.done()
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
