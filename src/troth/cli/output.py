"""Where a command's result goes: a file, written whole or not at all, or standard output."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO, TextIO


class NotWritten(Exception):  # noqa: N818
    """A result could not be written; the text says which and why."""


def screen() -> tuple[bool, int]:
    """Whether standard output takes colours, and its width in columns."""
    import shutil

    terminal = sys.stdout.isatty()
    forced = bool(os.environ.get("FORCE_COLOR"))
    plain = bool(os.environ.get("NO_COLOR")) or (os.environ.get("TERM") == "dumb" and not forced)
    return (terminal or forced) and not plain, shutil.get_terminal_size((100, 24)).columns


def deliver(text: str, path: str | None, *, machine: bool) -> None:
    """Writes the report to its file or to standard output.

    Raises:
        NotWritten: It did not fit, or may not be written there.
    """
    if path is not None:
        write(path, text)
        return
    out = sys.stdout.buffer
    encoding = "utf-8" if machine else (sys.stdout.encoding or "utf-8")
    try:
        out.write(text.encode(encoding, "replace"))
        out.flush()
    except BrokenPipeError:
        # The reader has seen enough; the exit status still tells the verdict.
        silence(out)
    except OSError as error:
        silence(out)
        raise NotWritten(f"standard output: {error.strerror or error}") from None


def silence(out: BinaryIO | TextIO) -> None:
    """Sends what is left in the buffer nowhere, so that closing it at exit raises nothing."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, out.fileno())
    os.close(nowhere)


def write(path: str, text: str) -> None:
    """Writes a file whole or not at all. Devices and pipes are written in place."""
    target = Path(path)
    place = target if target.exists() and not target.is_file() else target.with_name(f".{target.name}.{os.getpid()}~")
    try:
        if place.is_dir():
            raise NotWritten(f"{path}: is a folder")
        try:
            with place.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
                file.write(text)
                file.flush()
                if place is not target:
                    os.fsync(file.fileno())
            if place is not target:
                place.replace(target.resolve())
        except BaseException:
            if place is not target:
                place.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise NotWritten(f"{path}: {error.strerror or error}") from None
