"""Starts the process of a server over stdio: in which environment, and in which words if it cannot."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from troth.wire.errors import LinkError
from troth.wire.words import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

INHERITED: Final = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
)
"""The variables of our own environment that a server gets, as from the clients of the SDKs; no secrets are
among them. A value that begins with ``()`` (an exported shell function) is left out."""


def environment(env: Mapping[str, str] | None) -> dict[str, str]:
    """The environment that a server gets: `INHERITED`, and the given variables on top."""
    own = {name: os.environ[name] for name in INHERITED if name in os.environ}
    safe = {name: value for name, value in own.items() if not value.startswith("()")}
    return safe | dict(env or {})


_START_ERRORS: Final = {
    errno.ENOENT: ("there is no such program", "check the spelling and that PATH leads to it"),
    errno.EACCES: ("it must not be executed", "check its permissions, or name the interpreter before it"),
    errno.EPERM: ("it must not be executed", "check its permissions, or name the interpreter before it"),
    errno.ENOEXEC: ("it is no program that this system can execute", "name the interpreter before it"),
    errno.E2BIG: ("its arguments and environment are too long", "shorten them"),
}


def start(command: Sequence[str], env: Mapping[str, str] | None, cwd: str | None) -> subprocess.Popen[bytes]:
    """Starts a process with three non-blocking pipes, as the leader of a session and process group of its own.

    Raises:
        LinkError: It cannot be started.
    """
    if sys.platform == "win32":
        raise LinkError(
            "servers over stdio need a POSIX system",
            where=" ".join(command),
            advice="serve it over HTTP and give the URL",
        )
    if not command:
        raise LinkError(
            "the command is empty", where="stdio target", advice="write the program and its arguments after --"
        )
    where = printable(command[0])
    if cwd is not None and not Path(cwd).is_dir():
        raise LinkError(
            "this is no folder to start in", where=printable(cwd), advice="check the path of the working folder"
        )
    try:
        process = subprocess.Popen(  # noqa: S603 - the user names the command
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=environment(env),
            cwd=cwd,
            start_new_session=True,
        )
    except ValueError as error:
        raise LinkError(
            str(error), where=where, advice="take the odd characters out of command and environment"
        ) from error
    except OSError as error:
        fallback = (error.strerror or str(error), "try the same command in a shell")
        problem, advice = _START_ERRORS.get(error.errno or 0, fallback)
        raise LinkError(problem, where=where, advice=advice) from error
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            os.set_blocking(pipe.fileno(), False)
    return process
