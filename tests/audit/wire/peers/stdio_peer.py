"""A process that behaves as its first argument says. No library, so that it starts fast."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

OUT = sys.stdout.buffer
ARGS = sys.argv[2:]


def say(value):
    OUT.write(json.dumps(value).encode() + b"\n")
    OUT.flush()


def sleep():
    while True:
        time.sleep(60)


def echo():
    for line in sys.stdin.buffer:
        OUT.write(line)
        OUT.flush()


def write():
    """Writes the bytes given in hexadecimal, then waits for the end of its input."""
    OUT.write(bytes.fromhex(ARGS[0]))
    OUT.flush()
    sys.stdin.buffer.read()


def write_and_leave():
    OUT.write(bytes.fromhex(ARGS[0]))
    OUT.flush()
    os._exit(int(ARGS[1]))


def long_line():
    for _ in range(50):
        OUT.write(b"x" * 1_000_000)
    OUT.write(b"\n")
    say({"after": "the long line"})
    sys.stdin.buffer.read()


def flood_of_lines():
    while True:
        OUT.write(b"{}\n" * 1000)


def flood_of_values():
    while True:
        OUT.write(b"[" + b"[]," * 1000 + b"0]\n")


def daemon():
    """Leaves a process behind that is nobody's child and leads a session of its own."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(writing, str(os.getpid()).encode())
            for number in range(10):
                with contextlib.suppress(OSError):
                    os.close(number)
            sleep()
        os._exit(0)
    os.wait()
    say({"daemon": int(os.read(reading, 20))})
    sys.stdin.buffer.read()


def flood_of_bytes():
    while True:
        OUT.write(b"x" * 65536)


def flood_of_errors():
    while True:
        sys.stderr.write("x" * 65536)


def segfault():
    os.kill(os.getpid(), signal.SIGSEGV)


def own_signal():
    os.kill(os.getpid(), signal.SIGRTMIN + 1)


def ignore_end_of_input():
    say("up")
    sleep()


def ignore_sigterm():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    say("up")
    sleep()


def stubborn_grandchild():
    """Starts one that ignores every polite signal, in the same group or (argument) in a session of its own."""
    code = (
        "import signal, time\n"
        "for s in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT): signal.signal(s, signal.SIG_IGN)\n"
        "print('up', flush=True)\n"
        "time.sleep(600)"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=ARGS == ["own"],
    )
    child.stdout.readline()
    say({"pid": child.pid})
    sys.stdin.buffer.read()
    os._exit(0)


def leave_with_output_held():
    """Exits while a grandchild holds its standard output open."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdin=subprocess.DEVNULL)
    say({"pid": child.pid})
    os._exit(5)


def never_read():
    sleep()


def read_when_told():
    """Reads nothing before SIGUSR1, then says the length of each line."""
    signal.signal(signal.SIGUSR1, lambda *_: None)
    say("up")
    signal.pause()
    for line in sys.stdin.buffer:
        say({"length": len(json.loads(line)["text"])})


def close_stdout():
    os.close(1)
    sleep()


def close_stdin():
    os.close(0)
    say("closed")
    sleep()


def much_stderr():
    for number in range(20_000):
        sys.stderr.write(f"line {number} of a chatty server, with \x1b[31mcolour\x1b[0m\n")
    sys.stderr.flush()
    say("said")
    sys.stdin.buffer.read()


def environment():
    say(dict(os.environ))
    sys.stdin.buffer.read()


def long_goodbye():
    """Answers the end of its input with more than a pipe holds, on both outputs."""
    say("up")
    sys.stdin.buffer.read()
    OUT.write(b"x" * 1_000_000)
    OUT.flush()
    sys.stderr.write("x" * 1_000_000)


def last_words():
    """Answers the end of its input with one more line."""
    say("up")
    sys.stdin.buffer.read()
    say("last")


globals()[sys.argv[1]]()
