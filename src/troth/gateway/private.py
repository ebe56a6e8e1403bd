"""Small files that only their owner may read: replaced whole, never half-written."""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING, Any, cast

from troth.config import mapping

if TYPE_CHECKING:
    from pathlib import Path

LARGEST = 4 * 1024 * 1024
"""Bytes of the largest such file that is read: ours stay far below."""


def write_private(path: Path, value: object) -> str:
    """Writes a value as JSON (mode 0600, in a folder of mode 0700), replacing what was there in one step.

    Returns:
        Why it could not be written; empty if it was.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        return f"{path}: cannot be written: {error.strerror or error}"
    return replace_text(path, json.dumps(value, indent=2))


def replace_text(path: Path, text: str, mode: int = 0o600) -> str:
    """Replaces a file by a text in one step; a link stays one.

    Args:
        path: The file.
        text: What is to stand in it.
        mode: Who may read and write it.

    Returns:
        Why it could not be written; empty if it was.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}~")
    try:
        target = path.resolve()
        temporary = target.with_name(f".{target.name}.{os.getpid()}~")
        temporary.unlink(missing_ok=True)
        # Made anew with its mode, so that nobody else can open it even for a moment.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            if mode != 0o600:
                temporary.chmod(mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except (OSError, RuntimeError, UnicodeEncodeError) as error:
        # RuntimeError: a loop of links.
        with contextlib.suppress(OSError):
            temporary.unlink()
        return f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}"
    return ""


def read_private(path: Path) -> dict[str, Any] | str:
    """The object in such a file, empty where there is no file; or why it cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        # The latter where the folder itself cannot be, as below a home that is a device.
        return {}
    except OSError as error:
        return f"{path}: cannot be read: {error.strerror or error}"
    try:
        value = cast("object", json.loads(data)) if len(data) <= LARGEST else None
    except (ValueError, RecursionError):
        value = None
    found = mapping(value)
    return f"{path}: is damaged" if found is None else found
