"""A link to a process: one JSON value per line on its standard input and output.

Rules of this file:

- The process leads its own session and process group. Leaving the link ends the whole group, and whoever descends from
  it outside the group.
- The leader is reaped only after its group was killed, so the group's number cannot belong to somebody else by then.
- Pipes are non-blocking descriptors; each has one task that waits for it. No thread, no buffer without a bound.
- What the process does wrong is delivered (`Incoming.problem`) or told (`dead`), never raised.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager, suppress
from typing import IO, TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

import anyio
import anyio.lowlevel

from troth.audit.wire.decode import message, values
from troth.audit.wire.scope import task_group
from troth.audit.wire.types import Incoming, Limits
from troth.wire.exits import exit_code, exit_words
from troth.wire.family import MARK, family, kill, living
from troth.wire.lines import Lines
from troth.wire.start import start
from troth.wire.words import excerpt, printable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

GRACE: Final = 1.0
"""Seconds between two signs of one end: the exit and the end of the output, or a broken pipe and the exit."""

KILLED: Final = 5.0
"""Seconds that a process gets to vanish after SIGKILL; only one that hangs inside the kernel needs more."""

POLL: Final = 0.02
"""Seconds between two looks at a process where the system has no descriptor for it (other systems than Linux)."""

CHUNK: Final = 64 * 1024
"""Bytes per read: what a pipe holds."""


@asynccontextmanager
async def open_link(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None, limits: Limits
) -> AsyncGenerator[StdioLink]:
    """Starts a process and gives the link to it; on leaving, ends the process and everything in its group.

    Leaving closes standard input, waits ``limits.stop`` seconds for the exit, sends SIGTERM to the group, waits as long
    again, and sends SIGKILL. This holds under cancellation too, and takes at most twice ``limits.stop`` and `KILLED`.

    Args:
        command: Program and arguments; no shell is involved.
        env: Variables on top of `start.INHERITED`.
        cwd: Folder to start it in; None for the auditor's own.
        limits: Times and sizes.

    Raises:
        LinkError: The process cannot be started.
    """
    process = start(command, {**(env or {}), MARK: (mark := uuid4().hex)}, cwd)
    link = StdioLink(process, limits, mark)
    try:
        async with task_group() as tasks:
            # Not cancelled with the user of the link: the pipes are drained and the exit is seen until the very end.
            scopes = [anyio.CancelScope(shield=True) for _ in link.works]
            for work, scope in zip(link.works, scopes, strict=True):
                tasks.start_soon(_inside, scope, work)
            try:
                yield link
            finally:
                with anyio.CancelScope(shield=True):
                    await link.stop()
                for scope in scopes:
                    scope.cancel()
    finally:
        link.release()


async def _inside(scope: anyio.CancelScope, work: Callable[[], Awaitable[None]]) -> None:
    with scope:
        await work()


def _ignore(_: Incoming) -> None:
    """Takes what arrives while nobody listens."""


class StdioLink:
    """The link to one process. See `troth.audit.wire.types.Link`; made by `open_link`."""

    transport = "stdio"

    def __init__(self, process: subprocess.Popen[bytes], limits: Limits, mark: str) -> None:
        self.receive: Callable[[Incoming], None] = _ignore
        self.limits = limits
        self.ended_by = ""
        """What ended the process: ``itself``, ``stdin`` (closing it), ``SIGTERM`` or ``SIGKILL``; empty before."""
        self.left_behind = 0
        """Processes that the target had started and that outlived it until they were killed."""
        self.works = (self._read_stdout, self._read_stderr, self._watch)
        """What must run beside the user of the link."""
        self._process = process
        self._mark = mark
        self._pipes = tuple(cast("IO[bytes]", pipe) for pipe in (process.stdin, process.stdout, process.stderr))
        self._stdin, self._stdout, self._stderr = (pipe.fileno() for pipe in self._pipes)
        self._lines = Lines(limits.line)
        self._frames = 0
        self._bytes = 0
        self._values = 0
        self._tail = bytearray()
        self._outbox = bytearray()
        self._writing = anyio.Lock()
        self._dead = ""
        self._died = anyio.Event()
        self._exited = anyio.Event()
        self._silent = anyio.Event()
        self._stopping = False

    async def send(self, message: Any, headers: Mapping[str, str] | None = None) -> None:  # noqa: ARG002 - for HTTP
        """Writes one JSON value and a line end. A dead link swallows it: look at `dead`.

        A process that does not read makes this wait for up to ``limits.method`` seconds (``limits.start`` before its
        first line), after which it counts as dead.
        If the caller is cancelled in the middle of a line, the rest of the line goes out before the next one.
        """
        text = json.dumps(message, ensure_ascii=True, separators=(",", ":"))
        await anyio.lowlevel.checkpoint()
        if self._dead or self._stopping:
            return
        self._outbox += text.encode() + b"\n"
        with anyio.move_on_after(self.limits.method if self._frames else self.limits.start) as patience:
            async with self._writing:
                await self._flush()
        if patience.cancelled_caught:
            self._die("does not read its standard input")

    async def open_stream(self, headers: Mapping[str, str] | None = None) -> int:  # noqa: ARG002 - for HTTP
        """There is nothing to open: the server may always write."""
        await anyio.lowlevel.checkpoint()
        return 200

    def cancel(self, request: object) -> None:
        """Does nothing: requests have no stream of their own here."""

    @property
    def pid(self) -> int:
        """Number of the process and of its group."""
        return self._process.pid

    @property
    def stderr(self) -> str:
        """The last ``limits.stderr`` bytes of standard error, with controls (but line ends) escaped."""
        lines = self._tail.decode("utf-8", "replace").splitlines()
        return "\n".join(printable(line) for line in lines)

    @property
    def partial(self) -> str:
        """The beginning of a line whose end has not come yet, escaped; explains a silence."""
        return excerpt(self._lines.rest)

    @property
    def dead(self) -> str:
        """Why nothing more can come; empty while alive."""
        return self._dead

    async def stop(self) -> None:
        """Ends the process, gently first; what it still writes is read and dropped. Bounded; called once."""
        self._stopping = True
        relatives = family(self.pid, self._mark)
        ended = "itself" if self._exit_words() else "stdin"
        anyio.notify_closing(self._stdin)
        self._pipes[0].close()
        for name, number in (("SIGTERM", signal.SIGTERM), ("SIGKILL", signal.SIGKILL)):
            if await self._gone(self.limits.stop):
                break
            relatives |= family(self.pid, self._mark)
            self._signal(number)
            ended = name
        self.ended_by = self.ended_by or ended
        await self._gone(KILLED)
        with anyio.move_on_after(GRACE):
            while living(relatives):  # noqa: ASYNC110 - nothing tells of the end of a stranger's process
                await anyio.sleep(POLL)
        self.left_behind = kill(relatives)
        self._signal(signal.SIGKILL)
        self._dead = self._dead or self._exit_words() or "closed"
        self._died.set()

    def release(self) -> None:
        """Reaps the process and closes its pipes."""
        for pipe in self._pipes:
            pipe.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(POLL)

    async def _gone(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await _exit_of(self._process)
        return bool(self._exit_words())

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _die(self, reason: str) -> None:
        if self._dead or self._stopping:
            return
        self._dead = reason
        self._died.set()
        self.receive(Incoming(channel="stdio", problem=reason, end=True))

    async def _flush(self) -> None:
        while self._outbox and not self._dead and not self._stopping:
            try:
                written = os.write(self._stdin, self._outbox[:CHUNK])
            except BlockingIOError:
                with suppress(anyio.ClosedResourceError):
                    await anyio.wait_writable(self._stdin)
            except OSError:
                with anyio.move_on_after(2 * GRACE):
                    await self._died.wait()
                self._die("closed its standard input")
            else:
                del self._outbox[:written]

    async def _read_stdout(self) -> None:
        while chunk := await _read(self._stdout):
            self._bytes += len(chunk)
            if self._dead or self._stopping:
                continue
            for line in self._lines.feed(chunk):
                self._frames += 1
                self._deliver(line.data, whole=line.whole)
                self._check_flood()
            self._check_flood()
        if self._lines.rest:
            self._deliver(self._lines.rest, whole=True, ended=False)
        self._silent.set()
        with anyio.move_on_after(GRACE):
            await self._exited.wait()
        self._die(self._exit_words() or "closed its standard output")

    def _deliver(self, data: bytes, *, whole: bool, ended: bool = True) -> None:
        if self._dead or self._stopping:
            return
        value, problem = None, f"a line of more than {self.limits.line} bytes, skipped; it begins: {excerpt(data)}"
        if whole:
            self._values += values(data)
            value, problem = message(data)
        if not ended:
            problem = f"the output ends without a line end: {excerpt(data)}"
        self.receive(Incoming(channel="stdio", value=value, problem=problem))

    def _check_flood(self) -> None:
        if self._dead:
            return
        reason = ""
        if self._frames > self.limits.frames:
            reason = f"flood: more than {self.limits.frames} lines on its standard output; killed"
        elif self._bytes > self.limits.total:
            reason = f"flood: more than {self.limits.total} bytes on its standard output and error; killed"
        elif self._values > self.limits.values:
            reason = f"flood: more than {self.limits.values} JSON values on its standard output; killed"
        if reason:
            self._signal(signal.SIGKILL)
            self.ended_by = "SIGKILL"
            self._die(reason)

    async def _read_stderr(self) -> None:
        while chunk := await _read(self._stderr):
            self._bytes += len(chunk)
            self._check_flood()
            self._tail += chunk
            del self._tail[: -self.limits.stderr]

    async def _watch(self) -> None:
        await _exit_of(self._process)
        self._exited.set()
        with anyio.move_on_after(GRACE):
            await self._silent.wait()
        self._die(self._exit_words())

    def _exit_words(self) -> str:
        """How the process ended; empty while it runs. Leaves it unreaped where the system can."""
        return exit_words(self._process)


async def _read(fd: int) -> bytes:
    """The next bytes of a pipe; empty at its end."""
    while True:
        await anyio.wait_readable(fd)
        try:
            return os.read(fd, CHUNK)
        except BlockingIOError:
            continue
        except OSError:
            return b""


async def _exit_of(process: subprocess.Popen[bytes]) -> None:
    """Waits for the exit of a process without reaping it, where the system can."""
    if sys.platform == "linux":
        with suppress(OSError):
            fd = os.pidfd_open(process.pid)
            try:
                await anyio.wait_readable(fd)
            finally:
                os.close(fd)
            return
    while exit_code(process) is None:  # noqa: ASYNC110 - nothing here can set an event
        await anyio.sleep(POLL)
