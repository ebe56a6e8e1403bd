"""A link to a process: one frame per line on its standard input and output.

Rules of this file:

- The process leads its own session and process group and gets only the environment that it is given, beside harmless
  names. `StdioLink.close` ends the group and whoever descends from it; it is reaped only after that, so the group's
  number cannot belong to somebody else by then.
- Pipes are transports of the event loop: no thread, and no task per line. All lines of one read are handed on in one
  pass. The reader never waits for anybody.
- If the gateway itself is killed, the process reads the end of its standard input, since nobody else holds the other
  end. If it ignores that, a guard kills its group; only what left the group outlives the gateway.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections import deque
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Final, cast
from uuid import uuid4

import anyio
import anyio.to_thread

from troth.bridge import one_line
from troth.gateway.upstream.link import NO_HEADERS, Problem
from troth.gateway.upstream.veil import Veil
from troth.wire.exits import exit_code, exit_words
from troth.wire.family import MARK, family, kill, living
from troth.wire.guard import Guard
from troth.wire.lines import Line, Lines
from troth.wire.start import start

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from troth.bridge import Id
    from troth.gateway.limits import Limits
    from troth.gateway.settings import UpstreamSettings
    from troth.gateway.upstream.link import Receiver
    from troth.wire.family import Member

_log = logging.getLogger(__name__)

GRACE: Final = 1.0
"""Seconds between two signs of one end: the exit and the end of the output, or a broken pipe and the exit."""

KILLED: Final = 5.0
"""Seconds that a process gets to vanish after SIGKILL; only one that hangs inside the kernel needs more."""

POLL: Final = 0.02
"""Seconds between two looks at a process where the system has no descriptor for it (other systems than Linux)."""

PENDING: Final = 64 * 1024 * 1024
"""Most bytes that wait for a process to read them; a server that falls so far behind does not come back."""

JUNK: Final = 10_000
"""Most lines in a row that are no frames, before it counts as a flood. Banners and logs come between frames."""

JUNK_BYTES: Final = 64 * 1024 * 1024
"""Most bytes, beside one longest line, in a row without a frame."""

FLOOD: Final = "floods its standard output with what is no message"

STDERR_LINE: Final = 4096
"""Longest line of standard error that is kept, in bytes."""

STDERR_LINES: Final = 20
"""Lines of standard error that are kept, the last ones."""

_OPENINGS: Final = frozenset(b"{[")

_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"\s*'
_ID = rb'"id"\s*:\s*("[^"\\]*"|\d{1,18})\s*'
_BEGINS: Final = re.compile(rb"\s*{\s*(?:(?:%b|%b),\s*){0,2}\"(?:result|error)\"\s*:" % (_VERSION, _ID))
_ENDS: Final = re.compile(rb"[}\]]\s*(?:,\s*%b)?,\s*%b(?:,\s*%b)?}\s*\Z" % (_VERSION, _ID, _VERSION))
"""How responses begin and end, as libraries write them. The brace that ends a line ends the message."""


async def open_stdio(settings: UpstreamSettings, receiver: Receiver, limits: Limits) -> StdioLink:
    """Starts the process of an upstream.

    Args:
        settings: Whose command, environment and folder.
        receiver: Who hears what arrives; not before this returns.
        limits: Sizes and times.

    Raises:
        LinkError: The process cannot be started.
    """
    mark = uuid4().hex
    process = start(settings.command, {**settings.env, MARK: mark}, settings.cwd)
    link = StdioLink(process, mark, settings, receiver, limits)
    try:
        await link.open()
    except BaseException:
        await link.close()
        raise
    return link


class _Pipe(asyncio.Protocol):
    """Gives the events of one pipe to the link."""

    def __init__(self, data: Callable[[bytes], None], lost: Callable[[], None], paused: Callable[[bool], None]) -> None:
        self._data = data
        self._lost = lost
        self._paused = paused

    def data_received(self, data: bytes) -> None:
        self._data(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the exit says more
        self._lost()

    def pause_writing(self) -> None:
        self._paused(True)

    def resume_writing(self) -> None:
        self._paused(False)


class StdioLink:
    """The link to one process. See `troth.gateway.upstream.link.Link`; made by `open_stdio`."""

    transport = "stdio"

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        mark: str,
        settings: UpstreamSettings,
        receiver: Receiver,
        limits: Limits,
    ) -> None:
        self.resume = False
        self.why = ""
        self.left_behind = 0
        """Processes that the server had started and that outlived it until they were killed."""
        self._name = settings.name
        self._process = process
        self._guard = Guard(process.pid, limits.stop)
        self.mark = mark
        self._receiver = receiver
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._veil = Veil(settings.env.values())
        self._lines = Lines(limits.line, self._dropped)
        self._errors = Lines(STDERR_LINE)
        self._last_words: deque[bytes] = deque(maxlen=STDERR_LINES)
        self._stdin: asyncio.WriteTransport | None = None
        self._readers: list[asyncio.ReadTransport] = []
        pipes = (process.stderr, process.stdout, process.stdin)
        self._loose = [cast("IO[bytes]", pipe) for pipe in pipes]
        """Pipes that no transport owns yet."""
        self._open_pipes = 2
        self._exited = asyncio.Event()
        self._descriptor = -1
        self._ending: asyncio.TimerHandle | None = None
        self._stuck: asyncio.TimerHandle | None = None
        self._sent = 0
        self._read = -1
        self._junk = 0
        self._junk_row = 0
        self._silence = 0
        self._last_junk = b""
        self._closing = False
        self._closed: asyncio.Future[None] | None = None

    async def open(self) -> None:
        """Connects the pipes to the event loop."""
        self._watch_exit()
        writing = _Pipe(self._nothing, self._stdin_lost, self._paused)
        self._stdin, _ = await self._loop.connect_write_pipe(lambda: writing, self._loose[-1])
        self._loose.pop()
        for data, ended in ((self._stdout, self._stdout_ended), (self._stderr, self._pipe_ended)):
            reading = _Pipe(data, ended, self._paused)
            transport, _ = await self._loop.connect_read_pipe(lambda reading=reading: reading, self._loose[-1])
            self._loose.pop()
            self._readers.append(transport)

    @property
    def pid(self) -> int:
        """Number of the process and of its group."""
        return self._process.pid

    @property
    def notes(self) -> tuple[str, ...]:
        """What was dropped from standard output, and the last lines of standard error."""
        words: list[str] = []
        if self._junk:
            words.append(
                f"{self._junk} lines dropped that are no messages; the last: {self._veil.quote(self._last_junk)}"
            )
        words += [self._veil.quote(line) for line in self._last_words]
        if rest := self._errors.rest:
            words.append(self._veil.quote(rest))
        return tuple(words)

    def send(self, key: Id | None, line: bytes, headers: Mapping[str, str] = NO_HEADERS) -> None:  # noqa: ARG002 - for HTTP
        """Writes one frame and a line end. What does not fit into the pipe waits, up to `PENDING` bytes."""
        if self.why or self._closing or self._stdin is None:
            return
        if b"\n" in line or b"\r" in line:
            line = one_line(line)
        self._sent += len(line) + 1
        self._stdin.write(line + b"\n")
        if self._stuck is not None and self._stdin.get_write_buffer_size() > PENDING:
            self._loop.call_soon(self._kill, f"does not read its standard input: more than {PENDING} bytes wait")

    async def deliver(self, line: bytes, headers: Mapping[str, str] = NO_HEADERS) -> Problem | None:
        """Writes one frame; the pipe keeps the order."""
        self.send(None, line, headers)
        return None

    def abort(self, key: Id) -> None:
        """Does nothing: requests have no stream of their own here."""

    def listen(self, headers: Mapping[str, str] = NO_HEADERS) -> None:
        """Does nothing: the server may always write."""

    async def close(self, headers: Mapping[str, str] | None = None) -> None:  # noqa: ARG002 - for HTTP
        """Ends the process and everything it started, gently first. Must be called, also after it died by itself.

        Closes standard input, waits ``limits.stop`` seconds for the exit, sends SIGTERM to the group, waits as long
        again, and sends SIGKILL; this holds under cancellation too.
        """
        if self._closed is None:
            self._closed = self._loop.create_future()
            patience = POLL
            try:
                with anyio.CancelScope(shield=True):
                    await self._stop()
            except asyncio.CancelledError:
                # A crew cancels its tasks without regard to shields; then there is no time to be gentle.
                kill(family(self.pid, self.mark))
                self._signal(signal.SIGKILL)
                patience = KILLED
                raise
            finally:
                self._release(patience)
                self._closed.set_result(None)
        else:
            await asyncio.shield(self._closed)

    async def _stop(self) -> None:
        self._closing = True
        relatives = await self._family()
        if self._stdin is not None:
            self._stdin.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            if await self._gone(self._limits.stop):
                break
            relatives |= await self._family()
            self._signal(number)
        await self._gone(KILLED)
        with anyio.move_on_after(GRACE):
            while living(relatives):  # noqa: ASYNC110 - nothing tells of the end of a stranger's process
                await anyio.sleep(POLL)
        self.left_behind = kill(relatives)
        self._signal(signal.SIGKILL)

    async def _family(self) -> frozenset[Member]:
        """Who descends from the process. Reads of every process of the system, so it must not hold the others up."""
        return await anyio.to_thread.run_sync(family, self.pid, self.mark)

    def _release(self, patience: float = POLL) -> None:
        """Reaps the process, for which it waits so many seconds at most, and lets its pipes go."""
        self._unwatch()
        for timer in (self._ending, self._stuck):
            if timer is not None:
                timer.cancel()
        stdin = self._stdin
        # One that closes already and has nothing left to write ends by itself; asyncio's would end twice.
        if stdin is not None and (not stdin.is_closing() or stdin.get_write_buffer_size()):
            stdin.abort()
        for transport in self._readers:
            transport.close()
        for pipe in self._loose:
            with suppress(OSError):
                # A loop that was interrupted while it took the pipe has closed it, which the pipe does not know.
                pipe.close()
        self._guard.release()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)

    async def _gone(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self._exited.wait()
        return self._exited.is_set()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    # Standard output

    def _stdout(self, chunk: bytes) -> None:
        self._silence += len(chunk)
        for line in self._lines.feed(chunk):
            self._line(line)
        if self._silence > JUNK_BYTES + self._limits.line:
            self._kill(FLOOD)

    def _stdout_ended(self) -> None:
        if rest := self._lines.rest:
            self._line(Line(rest))
        self._pipe_ended()

    def _line(self, line: Line) -> None:
        if self.why or self._closing:
            return
        data = line.data
        if line.whole and data and (data[0] in _OPENINGS or data.lstrip()[:1] in (b"{", b"[")):
            self._junk_row = self._silence = 0
            try:
                self._receiver.receive(data, None)
            except Exception:  # a fault of ours in one frame must not end the pipe for all
                _log.exception("upstream %s: a frame could not be handled", self._name)
        elif data.strip():
            self._drop(line)

    def _drop(self, line: Line) -> None:
        self._junk += 1
        self._junk_row += 1
        self._last_junk = line.data[:STDERR_LINE]
        if _log.isEnabledFor(logging.DEBUG):
            what = "no message" if line.whole else f"a line of more than {self._limits.line} bytes"
            _log.debug("upstream %s: dropped %s: %s", self._name, what, self._veil.quote(self._last_junk))
        if self._junk_row > JUNK:
            self._kill(FLOOD)

    def _dropped(self, tail: bytes) -> None:
        """A line that was too long is over: if it answered a request, that ends here."""
        found = _answered(self._last_junk, tail)
        if found is not None and not self.why and not self._closing:
            self._junk_row = self._silence = 0
            words = f"the answer has more than {self._limits.line} bytes"
            self._receiver.ended(found, Problem(words=words))

    # Standard error

    def _stderr(self, chunk: bytes) -> None:
        for line in self._errors.feed(chunk):
            if line.data.strip():
                self._last_words.append(line.data)
                if _log.isEnabledFor(logging.DEBUG):
                    _log.debug("upstream %s says: %s", self._name, self._veil.quote(line.data))

    # Standard input

    def _nothing(self, chunk: bytes) -> None:
        """Standard input brings nothing."""

    def _paused(self, paused: bool) -> None:
        """The pipe is full, or no longer: from now on it is watched whether the process reads at all."""
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None
        if paused:
            self._read = -1
            self._look()

    def _look(self) -> None:
        if self._stdin is None or self._stdin.is_closing():
            return
        read = self._sent - self._stdin.get_write_buffer_size()
        if read == self._read:
            self._kill(f"does not read its standard input for {self._limits.unread:g} seconds")
            return
        self._read = read
        self._stuck = self._loop.call_later(self._limits.unread, self._look)

    # The end

    def _watch_exit(self) -> None:
        if sys.platform == "linux":
            with suppress(OSError):
                self._descriptor = os.pidfd_open(self._process.pid)
                self._loop.add_reader(self._descriptor, self._exit_seen)
                return
        self._poll_exit()

    def _exit_seen(self) -> None:
        self._unwatch()
        self._exited.set()
        self._sign()

    def _unwatch(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _poll_exit(self) -> None:
        if exit_code(self._process) is not None:
            self._exited.set()
            self._sign()
        elif self._closed is None or not self._closed.done():
            self._loop.call_later(POLL, self._poll_exit)

    def _pipe_ended(self) -> None:
        self._open_pipes -= 1
        self._sign()

    def _stdin_lost(self) -> None:
        self._stdin = None
        if not self._closing:
            self._sign()

    def _sign(self) -> None:
        """One of the signs of the end came: the others get a moment, for what they bring belongs to the story."""
        if self._exited.is_set() and not self._open_pipes:
            self._die()
        elif self._ending is None and not self._closing:
            self._ending = self._loop.call_later(GRACE, self._die)

    def _kill(self, why: str) -> None:
        self._signal(signal.SIGKILL)
        self._die(why)

    def _die(self, why: str = "") -> None:
        if self.why or self._closing:
            return
        self.why = why or exit_words(self._process) or "closed its standard output or input"
        self._receiver.dead(self.why)


def _answered(head: bytes, tail: bytes) -> Id | None:
    """The request that a line answers of which only the ends are known; None if that is not clear."""
    begins = _BEGINS.match(head)
    found = begins and (begins[1] or ((ends := _ENDS.search(tail)) and ends[1]))
    return cast("Id", json.loads(found)) if found else None
