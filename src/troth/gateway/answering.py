"""A command of the operator's that answers questions: the question as JSON on its input, the answer on its output."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

import anyio
import anyio.to_thread
import msgspec

from troth.wire.family import MARK, family, kill

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from anyio.abc import Process

LARGEST: Final = 1024 * 1024
"""Bytes of the longest answer."""
STEP: Final = 0.02
"""Seconds between two looks whether it has ended."""
REST: Final = 0.25
"""Seconds in which what it wrote before its end is read, where somebody else holds its output open."""
GONE: Final = 5.0
"""Seconds in which the system takes a killed process away."""
_NOBODY: Final = -1


async def ask_command(command: Sequence[str], question: Mapping[str, Any], seconds: float) -> dict[str, Any] | str:
    """What the command answers.

    It gets the question as one JSON object, and says ``{"action": "accept", "content": ...}``, ``decline`` or
    ``cancel``; or nothing, and leaves the question to people.

    Args:
        command: Program and arguments. It runs in the environment of the gateway, as all that the operator starts.
        question: The question; may hold `Raw`.
        seconds: Time that it gets, after which it is killed with what it started.

    Returns:
        Its answer as a JSON object; or why there is none.
    """
    mark = uuid4().hex
    try:
        process = await anyio.open_process(
            command, stderr=subprocess.DEVNULL, start_new_session=True, env={**os.environ, MARK: mark}
        )
    except (OSError, ValueError) as error:
        return f"it cannot be started: {getattr(error, 'strerror', None) or error}"
    output = bytearray()
    try:
        with anyio.move_on_after(seconds) as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(_feed, process, msgspec.json.encode(question))
                read = anyio.Event()
                group.start_soon(_read, process, output, read)
                # Its output may stay open after its end: what it started has it too.
                while process.returncode is None and len(output) <= LARGEST:  # noqa: ASYNC110 - nobody sets an event
                    await anyio.sleep(STEP)
                with anyio.move_on_after(REST):
                    await read.wait()
                group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await _kill(process, mark)
            with anyio.move_on_after(GONE):
                await process.aclose()
    if scope.cancelled_caught:
        return "it did not end in time"
    if len(output) > LARGEST:
        return f"its answer is longer than {LARGEST} bytes"
    if process.returncode:
        return f"it ended with status {process.returncode}"
    return _answer(bytes(output))


async def _feed(process: Process, data: bytes) -> None:
    assert process.stdin is not None  # noqa: S101 - a pipe
    # It may not care to read the question.
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        await process.stdin.send(data)
        await process.stdin.aclose()


async def _read(process: Process, output: bytearray, read: anyio.Event) -> None:
    assert process.stdout is not None  # noqa: S101 - a pipe
    async for data in process.stdout:
        output += data
        if len(output) > LARGEST:
            break
    read.set()


async def _kill(process: Process, mark: str) -> None:
    """Kills what it started, too, which may go on when it has ended.

    What left its session is found by its mark, on Linux. A process that gave up both cannot be found.
    """
    if sys.platform == "win32":
        with suppress(OSError):
            process.kill()
        return
    # Once it was waited for, its number may be that of another: then the mark alone says who is meant.
    relatives = await anyio.to_thread.run_sync(family, process.pid if process.returncode is None else _NOBODY, mark)
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    kill(relatives)


def _answer(output: bytes) -> dict[str, Any] | str:
    if not output.strip():
        return "it said nothing"
    try:
        value = msgspec.json.decode(output)
    except msgspec.DecodeError:
        return "what it said is no JSON"
    return cast("dict[str, Any]", value) if isinstance(value, dict) else "what it said is no JSON object"
