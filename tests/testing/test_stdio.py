"""The server as a process on stdio, and its command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from troth.register import register
from troth.testing import FAULTS, Exit, Send, stdio
from troth.testing.__main__ import main
from troth.testing.script import Script

from .peer import META

if TYPE_CHECKING:
    from collections.abc import Iterator

WAIT = 30
"""Seconds that anything may take."""
NOW = register().revisions[-1]
DISCOVER = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "server/discover",
    "params": {"_meta": {META + "protocolVersion": NOW, META + "clientCapabilities": {}}},
}
PING: dict[str, Any] = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


def run(*options: str, lines: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "troth.testing", "server", *options]
    return subprocess.run(command, input=lines, capture_output=True, timeout=WAIT, check=False)


def encoded(*messages: Any) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def test_a_process_answers_line_by_line_and_ends_with_its_input() -> None:
    done = run(lines=encoded(DISCOVER) + b"\nnot json\n" + encoded(PING))
    first, second, third = (json.loads(line) for line in done.stdout.splitlines())
    assert (done.returncode, done.stderr) == (0, b"")
    assert (first["id"], second["error"]["code"], third) == (1, -32700, {"jsonrpc": "2.0", "id": 2, "result": {}})


def test_the_options_choose_variant_revision_name_and_fault() -> None:
    options = ("--variant", "empty", "--revision", NOW, "--instance", "b", "--break", "tools-not-an-object")
    done = run(*options, lines=encoded(DISCOVER, PING))
    result = json.loads(done.stdout.splitlines()[0])["result"]
    assert result["capabilities"] == {"tools": True, "prompts": {}, "resources": {}}
    assert result["_meta"][META + "serverInfo"]["name"] == "troth-testing-b"


@pytest.fixture
def pipes() -> Iterator[tuple[int, int, int, int]]:
    source, feed = os.pipe()
    read, sink = os.pipe()
    yield source, feed, read, sink
    for each in (source, feed, read, sink):
        try:
            os.close(each)
        except OSError:
            continue


def serve(pipes: tuple[int, int, int, int], lines: bytes, *breaks: str) -> tuple[int, list[Any]]:
    from troth.testing import twists

    source, feed, read, sink = pipes
    os.write(feed, lines)
    os.close(feed)
    status = stdio.serve(Script(twists=twists(breaks)), source, sink)
    os.close(sink)
    return status, os.read(read, 1 << 20).splitlines()


def test_held_answers_come_in_reverse_order_when_nothing_more_comes_in(pipes: tuple[int, int, int, int]) -> None:
    first, second = {**PING, "id": 1}, {**PING, "id": 2}
    status, lines = serve(pipes, encoded(first, second), "out-of-order")
    assert (status, [json.loads(line)["id"] for line in lines]) == (0, [2, 1])


def test_held_answers_are_let_go_while_the_input_stays_open() -> None:
    command = [sys.executable, "-m", "troth.testing", "server", "--break", "out-of-order"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(encoded(PING))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 2
        process.stdin.close()
        assert process.wait(WAIT) == 0


def test_a_server_that_dies_says_nothing_more(pipes: tuple[int, int, int, int]) -> None:
    status, lines = serve(pipes, encoded(PING, PING), "dies-on=ping")
    assert (status, lines) == (3, [])


def test_junk_is_written_as_it_is(pipes: tuple[int, int, int, int]) -> None:
    _, lines = serve(pipes, encoded(PING), "bytes-on-stdout")
    assert lines[0] == b"\xff\xfe"


def test_a_reader_that_went_away_ends_the_server(pipes: tuple[int, int, int, int]) -> None:
    source, feed, read, sink = pipes
    os.close(read)
    os.write(feed, encoded(PING))
    assert stdio.serve(Script(), source, sink) == 0


def test_deep_nesting_is_a_parse_error() -> None:
    [answer] = stdio.take(Script(), b"[" * 200_000)
    assert isinstance(answer, Send)
    assert answer.message["error"]["code"] == -32700
    assert stdio.write([Exit(7)], 1) == 7


def test_a_server_that_does_not_start_gives_a_reason() -> None:
    done = run("--break", "does-not-start")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"ModuleNotFoundError" in done.stderr


def test_an_interrupt_ends_it_quietly() -> None:
    command = [sys.executable, "-m", "troth.testing", "server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(encoded(PING))
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_a_server_that_ignores_the_end_lives_on_until_it_is_killed() -> None:
    command = [sys.executable, "-m", "troth.testing", "server", "--break", "ignores-the-end"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(encoded(PING))
        process.stdin.flush()
        process.stdout.readline()
        process.stdin.close()
        process.terminate()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.kill()
        assert process.wait(WAIT) == -signal.SIGKILL


def test_a_server_that_leaves_a_child_leaves_it_in_its_process_group() -> None:
    command = [sys.executable, "-m", "troth.testing", "server", "--break", "leaves-a-child"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, start_new_session=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        assert process.wait(WAIT) == 0
        os.killpg(process.pid, signal.SIGKILL)
        assert process.stdout.read() == b""


def test_the_command_lists_the_faults(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["faults"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(FAULTS)
    assert lines[0] == "tools-refused\tCAP-19\tbroken\tDeclares tools and refuses every tools method with -32601."
    assert any(line.startswith("hang=tools/list\t-\tprotocol.hangs\t") for line in lines)


def test_an_unknown_fault_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["server", "--break", "tools-refusd"])
    assert "did you mean 'tools-refused'" in capsys.readouterr().err


@pytest.mark.parametrize(("options", "status"), [((), 0), (("--break", "ignores-the-end"), 0)])
def test_main_serves_stdio(monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], status: int) -> None:
    slept: list[float] = []
    kept = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(stdio, "serve", lambda script: 0)
    monkeypatch.setattr("troth.testing.__main__.time.sleep", slept.append)
    try:
        assert main(["server", *options]) == status
    finally:
        signal.signal(signal.SIGTERM, kept)
    assert bool(slept) is bool(options)


def test_main_ends_quietly_when_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(script: Script) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(stdio, "serve", interrupted)
    assert main(["server"]) == 130


def test_main_says_why_it_does_not_start(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["server", "--break", "does-not-start"]) == 1
    assert "ModuleNotFoundError" in capsys.readouterr().err
