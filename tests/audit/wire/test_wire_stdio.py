import errno
import math
import os
import signal
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from troth.audit.wire import stdio
from troth.audit.wire.types import Incoming, Limits
from troth.wire import start
from troth.wire.errors import LinkError
from troth.wire.family import MARK

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="the peers and the checks use Linux"),
]

PEER = str(Path(__file__).parent / "peers" / "stdio_peer.py")
QUICK = Limits(start=30, method=30, stop=0.3)
PATIENT = replace(QUICK, stop=30)
"""For those that end when they are asked to."""


def peer(name, *arguments, limits=QUICK, env=None, cwd=None):
    return stdio.open_link([sys.executable, "-S", PEER, name, *arguments], env=env, cwd=cwd, limits=limits)


NO_JSON = "no JSON (JSON is malformed: "


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def line(value=None, problem="", **more):
    return Incoming(channel="stdio", value=value, problem=problem, **more)


async def test_a_value_arrives_as_it_was_sent(inbox):
    value = {"jsonrpc": "2.0", "id": 2**200, "params": {"text": "\u2028 ä 😀 \x00", "float": 0.1, "none": None}}
    async with peer("echo", limits=PATIENT) as link:
        box = inbox(link)
        await link.send(value, {"ignored": "header"})
        await box.count(1)
        assert (link.dead, link.transport, await link.open_stream({})) == ("", "stdio", 200)
        link.cancel(value["id"])
    assert box.items == [line(value)]
    assert (link.ended_by, link.dead) == ("stdin", "exited with status 0")


async def test_values_sent_at_once_do_not_mix(inbox):
    values = [{"id": number, "text": "x" * 100_000} for number in range(8)]
    async with peer("echo") as link:
        box = inbox(link)
        async with anyio.create_task_group() as tasks:
            for value in values:
                tasks.start_soon(link.send, value, {})
        await box.count(8)
    assert sorted(box.values, key=lambda value: value["id"]) == values


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"a": 1}\r\n', line({"a": 1})),
        (b"Listening on \x1b[1m8000\x07\n", f"{NO_JSON}invalid character (byte 0)): Listening on \\x1b[1m8000\\x07"),
        (b"\xff\xfe{}\n", NO_JSON + r"invalid character (byte 0)): \xff\xfe{}"),
        (b'{"a": "\xff"}\n', 'no JSON (Invalid UTF-8 encoded string): {"a": "\\xff"}'),
        (b"\n", "a blank line, where a message belongs"),
        (b" \t\r\n", "a blank line, where a message belongs"),
        (b'[{"a": 1}]\n', line([{"a": 1}])),
        (b"null\n", "a bare null, where a message belongs"),
        (b'{"a": NaN}\n', NO_JSON + 'invalid character (byte 6)): {"a": NaN}'),
        (b"{} {}\n", NO_JSON + "trailing characters (byte 4)): {} {}"),
    ],
)
async def test_a_line_is_a_value_or_a_problem_in_words(inbox, data, expected):
    async with peer("write", data.hex()) as link:
        box = inbox(link)
        await box.count(1)
        assert link.dead == ""
    assert box.items == [expected if isinstance(expected, Incoming) else line(problem=expected)]


async def test_a_line_over_the_limit_is_skipped_and_never_held_whole(inbox):
    limits = Limits(line=100_000, stop=0.3)
    tracemalloc.start()
    try:
        async with peer("long_line", limits=limits) as link:
            box = inbox(link)
            await box.count(2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    told = f"a line of more than 100000 bytes, skipped; it begins: {'x' * 200}..."
    assert box.items == [line(problem=told), line({"after": "the long line"})]
    assert peak < 5_000_000


@pytest.mark.parametrize(
    ("name", "limits", "told", "lines"),
    [
        ("flood_of_lines", Limits(frames=50), "50 lines on its standard output", 51),
        ("flood_of_bytes", Limits(total=10**7, line=10**6), "10000000 bytes on its standard output and error", 1),
        ("flood_of_values", Limits(values=5000), "5000 JSON values on its standard output", 3),
        ("flood_of_errors", Limits(total=10**7), "10000000 bytes on its standard output and error", 0),
    ],
)
async def test_a_flood_ends_the_process(inbox, name, limits, told, lines):
    told = f"flood: more than {told}; killed"
    async with peer(name, limits=limits) as link:
        box = inbox(link)
        await box.end()
        assert link.dead == told
        await link.send({"swallowed": True}, {})
    assert box.items[-1] == line(problem=told, end=True)
    assert len(box.items) == lines + 1
    assert link.ended_by == "SIGKILL"


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (("write_and_leave", "", "0"), "exited with status 0"),
        (("write_and_leave", "", "3"), "exited with status 3"),
        (("segfault",), "killed by signal SIGSEGV"),
        (("own_signal",), "killed by signal 35"),
    ],
)
async def test_the_end_of_a_process_is_told(inbox, call, told):
    async with peer(*call) as link:
        box = inbox(link)
        await box.end()
        assert link.dead == told
        await link.send({"swallowed": True}, {})
    assert box.items == [line(problem=told, end=True)]
    assert link.ended_by == "itself"


async def test_what_was_said_before_the_exit_comes_first_and_half_a_line_is_told(inbox):
    async with peer("write_and_leave", b'{"a": 1}\n{"b": '.hex(), "1") as link:
        box = inbox(link)
        await box.end()
    assert box.items == [
        line({"a": 1}),
        line(problem='the output ends without a line end: {"b": '),
        line(problem="exited with status 1", end=True),
    ]


async def test_a_whole_message_without_a_line_end_is_still_named(inbox):
    async with peer("write_and_leave", b'{"a": 1}'.hex(), "0") as link:
        box = inbox(link)
        await box.end()
    assert box.items[0] == line({"a": 1}, 'the output ends without a line end: {"a": 1}')


async def test_half_a_line_and_then_silence_can_be_shown(inbox):
    async with peer("write", b'{"a": 1}\n{"id": 7, "resu'.hex()) as link:
        await inbox(link).count(1)
        with anyio.fail_after(30):
            while not link.partial:
                await anyio.lowlevel.checkpoint()
        assert link.partial == '{"id": 7, "resu'


@pytest.mark.parametrize(
    ("name", "stop", "ended_by", "dead"),
    [
        ("ignore_end_of_input", 3, "SIGTERM", "killed by signal SIGTERM"),
        ("ignore_sigterm", 0.3, "SIGKILL", "killed by signal SIGKILL"),
    ],
)
async def test_a_process_that_stays_is_ended_harder_each_time(inbox, name, stop, ended_by, dead):
    async with peer(name, limits=replace(QUICK, stop=stop)) as link:
        box = inbox(link)
        await box.count(1)
    assert (link.ended_by, link.dead) == (ended_by, dead)
    assert box.items == [line("up")]


@pytest.mark.parametrize("place", ["same", "own"])
async def test_a_stubborn_grandchild_is_gone_too(inbox, place):
    async with peer("stubborn_grandchild", place) as link:
        box = inbox(link)
        await box.count(1)
        pid = box.values[0]["pid"]
        assert alive(pid)
    await gone(pid)


async def gone(pid):
    with anyio.fail_after(30):
        while alive(pid):  # noqa: ASYNC110 - another process sets no event here
            await anyio.sleep(0.01)


async def test_a_process_whose_output_a_grandchild_holds_open_is_dead_all_the_same(inbox):
    async with peer("leave_with_output_held") as link:
        box = inbox(link)
        await box.end()
        assert link.dead == "exited with status 5"
    await gone(box.values[0]["pid"])


async def test_a_process_that_does_not_read_is_dead_after_the_budget(inbox):
    async with peer("never_read", limits=Limits(start=0.2, stop=0.1)) as link:
        box = inbox(link)
        with anyio.fail_after(30):
            await link.send({"text": "x" * 1_000_000}, {})
        assert link.dead == "does not read its standard input"
    assert box.items == [line(problem="does not read its standard input", end=True)]


async def test_after_the_first_line_the_budget_of_a_method_holds_for_writing(inbox):
    async with peer("ignore_end_of_input", limits=Limits(start=60, method=0.2, stop=0.1)) as link:
        await inbox(link).count(1)
        with anyio.fail_after(30):
            await link.send({"text": "x" * 1_000_000}, {})
        assert link.dead == "does not read its standard input"


async def test_a_cancelled_send_leaves_no_torn_line(inbox):
    async with peer("read_when_told") as link:
        box = inbox(link)
        await box.count(1)
        with anyio.move_on_after(0.1) as hurry:
            await link.send({"text": "x" * 300_000}, {})
        assert hurry.cancelled_caught
        os.kill(link.pid, signal.SIGUSR1)
        await link.send({"text": "y"}, {})
        await box.count(3)
    assert box.values == ["up", {"length": 300_000}, {"length": 1}]


@pytest.mark.parametrize(
    ("name", "heard", "told"),
    [("close_stdout", 0, "closed its standard output"), ("close_stdin", 1, "closed its standard input")],
)
async def test_a_process_that_closes_a_pipe_and_lives_on_is_dead(inbox, name, heard, told):
    async with peer(name) as link:
        box = inbox(link)
        await box.count(1)
        await link.send({"any": "thing"}, {})
        await box.end()
        assert link.dead == told
    assert box.items[heard:] == [line(problem=told, end=True)]


async def test_standard_error_is_always_drained_and_its_end_is_kept(inbox):
    async with peer("much_stderr", limits=Limits(stderr=200, stop=0.3)) as link:
        await inbox(link).count(1)
        last = "line 19999 of a chatty server, with \\x1b[31mcolour\\x1b[0m"
        with anyio.fail_after(30):
            while not link.stderr.endswith(last):  # noqa: ASYNC110 - nothing is delivered for it
                await anyio.sleep(0.01)
        assert len(link.stderr) <= 200 + 6 * len(r"\x1b")


async def test_only_harmless_variables_are_inherited(inbox, monkeypatch):
    monkeypatch.setenv("API_TOKEN", "secret")
    monkeypatch.setenv("SHELL", "() { echo a function; }")
    monkeypatch.setenv("TZ", "UTC")
    async with peer("environment", env={"GIVEN": "1", "TZ": "CET"}) as link:
        box = inbox(link)
        await box.count(1)
    seen = box.values[0]
    assert set(seen) <= {*start.INHERITED, "GIVEN", MARK}
    assert "SHELL" not in seen
    assert (seen["GIVEN"], seen["TZ"], seen["PATH"]) == ("1", "CET", os.environ["PATH"])


async def test_it_starts_in_the_folder_given(inbox, tmp_path):
    code = "import os; print('\"' + os.getcwd() + '\"', flush=True); input()"
    async with stdio.open_link([sys.executable, "-c", code], cwd=str(tmp_path), limits=QUICK) as link:
        box = inbox(link)
        await box.count(1)
    assert box.values == [str(tmp_path)]


async def test_what_comes_while_the_link_is_left_is_not_delivered(inbox):
    async with peer("last_words") as link:
        box = inbox(link)
        await box.count(1)
    assert box.items == [line("up")]


async def test_an_error_of_the_user_comes_out_as_it_is(inbox):
    with pytest.raises(KeyError, match="mine"):  # noqa: PT012
        async with peer("echo") as link:
            pid = link.pid
            raise KeyError("mine")
    assert not alive(pid)


async def test_a_cancelled_user_leaves_no_process(inbox):
    with anyio.fail_after(30):
        with anyio.CancelScope() as scope:
            async with peer("ignore_sigterm") as link:
                await inbox(link).count(1)
                scope.cancel()
                await anyio.sleep(math.inf)
        assert scope.cancelled_caught
    assert not alive(link.pid)


async def test_a_long_goodbye_is_read_to_its_end_for_a_cancelled_user_too(inbox):
    with anyio.CancelScope() as scope:
        async with peer("long_goodbye", limits=PATIENT) as link:
            await inbox(link).count(1)
            scope.cancel()
            await anyio.sleep(math.inf)
    assert (link.ended_by, link.dead) == ("stdin", "exited with status 0")


async def test_a_link_opened_by_a_cancelled_user_leaves_no_process():
    with anyio.fail_after(30):
        with anyio.CancelScope() as scope:
            scope.cancel()
            async with peer("ignore_sigterm") as link:
                await anyio.sleep(math.inf)
    assert not alive(link.pid)


async def test_an_error_of_the_receiver_ends_the_link(inbox):
    def fail(incoming):
        raise LookupError(incoming.value)

    with pytest.raises(LookupError, match="up"):  # noqa: PT012
        async with peer("ignore_end_of_input") as link:
            link.receive = fail
            await anyio.sleep(math.inf)
    assert not alive(link.pid)


async def test_a_child_that_somebody_else_reaped_has_still_exited(inbox):
    async with peer("write_and_leave", "", "3") as link:
        os.waitid(os.P_PID, link.pid, os.WEXITED)  # noqa: ASYNC222 - it exits at once
        box = inbox(link)
        await box.end()
        assert link.dead


async def cannot_start(command, **more):
    with pytest.raises(LinkError) as caught:
        async with stdio.open_link(command, limits=QUICK, **more):
            pytest.fail("it started")
    error = caught.value
    assert str(error) == f"{error.where}: {error.message}; {error.advice}"
    return error.where, error.message


async def test_what_cannot_start_says_why(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("hello")
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF\0\0")
    broken.chmod(0o755)
    assert await cannot_start([]) == ("stdio target", "the command is empty")
    assert await cannot_start(["no\x1bsuch"]) == ("no\\x1bsuch", "there is no such program")
    assert await cannot_start([str(tmp_path)]) == (str(tmp_path), "it must not be executed")
    assert await cannot_start([str(plain)]) == (str(plain), "it must not be executed")
    assert await cannot_start([str(broken)]) == (str(broken), "it is no program that this system can execute")
    assert await cannot_start(["true", "x" * 10_000_000]) == ("true", "its arguments and environment are too long")
    assert await cannot_start(["true", "a\0b"]) == ("true", "embedded null byte")
    assert await cannot_start(["true"], cwd=str(plain)) == (str(plain), "this is no folder to start in")


async def test_an_unusual_refusal_of_the_system_is_told_in_its_own_words(monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(start.subprocess, "Popen", refuse)
    assert await cannot_start(["true"]) == ("true", "Too many open files")


async def test_a_daemon_that_left_the_tree_of_processes_is_ended_too(inbox):
    async with peer("daemon") as link:
        box = inbox(link)
        await box.count(1)
        daemon = box.values[0]["daemon"]
        assert alive(daemon)
    assert link.left_behind == 1
    await gone(daemon)
