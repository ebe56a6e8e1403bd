"""Runs a server object of a Python file over stdio: ``python -m troth.audit.runner server.py:mcp``.

Serves ``MCPServer`` and ``Server`` of the ``mcp`` package, and ``FastMCP``; also a function that makes one. What the
file prints goes to standard error, because standard output carries the protocol.
"""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

USAGE = 2
"""Exit status where the target does not name a server object; the reason is on standard error."""


class NoServerError(Exception):
    """The target does not name a server object; the message says what is wrong."""


@contextmanager
def stdout_diverted() -> Generator[None]:
    """Sends all that is written to standard output, also by child processes, to standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def load(target: str) -> object:
    """The object that ``file.py:name`` names.

    Raises:
        NoServerError: There is no such file or object, or the file imports what is not installed, is not Python, ends
            the process, or raises something.
    """
    file, _, name = target.rpartition(":")
    path = Path(file)
    if not file or not path.is_file():
        raise NoServerError(f"no such file: {file or target!r}; write file.py:object")
    spec = spec_from_file_location(f"troth_target_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise NoServerError(f"{file}: not a Python file")
    module = module_from_spec(spec)
    # The file's neighbours can be imported, and the module finds itself; neither hides a package that is installed.
    sys.path.append(str(path.resolve().parent))
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        where = f"{error} for {sys.executable}, which runs Troth and this target"
        raise NoServerError(f"{file}: {where}; install it there, or start the file: -- python {file}") from error
    except SyntaxError as error:
        raise NoServerError(f"{file}: not Python: {error}") from error
    except SystemExit as error:
        guard = 'what starts the server belongs under if __name__ == "__main__"'
        raise NoServerError(f"{file}: it ends when it is read (exit status {error.code}); {guard}") from error
    except Exception as error:
        raise NoServerError(f"{file}: {_told(error)}") from error
    value: object = module
    for part in name.split("."):
        if not hasattr(value, part):
            public = ", ".join(key for key in vars(module) if not key.startswith("_"))
            raise NoServerError(f"{file}: has no object {name!r}; it defines: {public or 'nothing'}")
        value = getattr(value, part)
    return value


def serving(server: object) -> Callable[[], Awaitable[None]] | None:
    """What serves this object over stdio; None if it is no server that is known here."""
    if isinstance(server, type):
        return None
    run: Any = getattr(server, "run_stdio_async", None)
    if inspect.iscoroutinefunction(run):
        quiet = {"show_banner": False} if "show_banner" in inspect.signature(run).parameters else {}
        return lambda: run(**quiet)
    if hasattr(server, "create_initialization_options") and hasattr(server, "run"):
        return lambda: _serve_lowlevel(server)
    return None


async def _serve_lowlevel(server: Any) -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def find(target: str) -> Callable[[], Awaitable[None]]:
    """What serves the object that ``file.py:name`` names.

    Raises:
        NoServerError: It names no server.
    """
    return _found(target)[1]


def find_object(target: str) -> object:
    """The server object that ``file.py:name`` names, or that the function of that name makes.

    Raises:
        NoServerError: It names no server.
    """
    return _found(target)[0]


def _told(error: Exception) -> str:
    """What a file of the user's raised, and where."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"it raises {type(error).__name__}: {error} ({last.filename}, line {last.lineno})"


def _found(target: str) -> tuple[object, Callable[[], Awaitable[None]]]:
    value = load(target)
    serve = serving(value)
    if serve is None and callable(value) and not isinstance(value, type):
        try:
            value = cast("Callable[[], object]", value)()
        except Exception as error:
            raise NoServerError(f"{target}: {_told(error)}") from error
        serve = serving(value)
    if serve is None:
        kind = type(value).__name__
        raise NoServerError(f"{target}: is a {kind}, not an MCPServer, Server or FastMCP object")
    return value, serve


def main(arguments: list[str]) -> int:
    """Serves until standard input ends.

    Args:
        arguments: The target, ``file.py:object``, and nothing else.
    """
    import anyio

    try:
        if len(arguments) != 1:
            raise NoServerError("give one target: file.py:object")
        with stdout_diverted():
            serve = find(arguments[0])
    except NoServerError as error:
        print(f"troth: {error}", file=sys.stderr)  # noqa: T201
        return USAGE
    anyio.run(serve)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
