"""``python -m troth.testing server``: a scripted server as a process."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from contextlib import suppress

from troth.register import register
from troth.testing.content import VARIANTS
from troth.testing.faults import FAULTS, twists
from troth.testing.script import Script

LINGER = 120
"""Seconds that a process which should be gone lives on."""


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m troth.testing", description="Servers for tests.")
    commands = parser.add_subparsers(dest="command", required=True)
    server = commands.add_parser("server", help="serve until the input ends, or a signal comes")
    server.add_argument("--transport", choices=("stdio", "http"), default="stdio")
    server.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 picks a free one (http)")
    server.add_argument("--revision", action="append", choices=register().revisions, default=[], metavar="REVISION")
    server.add_argument("--variant", choices=tuple(VARIANTS), default="full")
    server.add_argument("--break", dest="breaks", action="append", default=[], metavar="FAULT", help="see: faults")
    server.add_argument("--instance", default="", help="ends the server's name")
    commands.add_parser("faults", help="list the faults")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    parser = _arguments()
    options = parser.parse_args(argv)
    if options.command == "faults":
        with suppress(BrokenPipeError):
            for fault in FAULTS.values():
                name = f"{fault.name}={fault.value}" if fault.value is not None else fault.name
                print(f"{name}\t{fault.row or '-'}\t{fault.verdict or fault.finding}\t{fault.description}")  # noqa: T201
            sys.stdout.flush()
        return 0
    try:
        bent = twists(options.breaks)
    except ValueError as error:
        parser.error(str(error))
    script = Script(
        variant=options.variant,
        revisions=options.revision,
        twists=bent,
        transport=options.transport,
        instance=options.instance,
    )
    return _http(script, options.port) if options.transport == "http" else _stdio(script)


def _http(script: Script, port: int) -> int:
    from troth.testing import http

    return http.serve(script, port)


def _stdio(script: Script) -> int:
    from troth.testing import stdio

    if script.skips("start"):
        sys.stderr.write("ModuleNotFoundError: No module named 'a_module_that_is_not_there'\n")
        return 1
    if script.skips("child"):
        subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({LINGER})"])  # noqa: S603
    if script.skips("end"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        status = stdio.serve(script)
    except KeyboardInterrupt:
        return 130
    if script.skips("end"):
        time.sleep(LINGER)
    return status


if __name__ == "__main__":
    sys.exit(main())
