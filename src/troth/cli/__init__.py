"""The command line. One file per command, imported only when that command runs."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import Any

import click

COMMANDS = {
    "audit": "Compare what MCP servers declare with what they deliver.",
    "gate": "Show which host sees which tool, prompt and resource of a server, and why not.",
    "explain": "Tell what a capability, method or error code means in each protocol revision.",
    "serve": "Serve every host from one endpoint in front of many servers.",
    "check-config": "Tell whether a configuration of the gateway can be used, and how to mend it.",
    "add": "Add a server to the configuration of the gateway.",
    "remove": "Remove a server from the configuration of the gateway.",
    "connect": "Print what points a known host at the gateway.",
    "status": "Show the servers and hosts of a running gateway.",
    "questions": "Answer what servers behind a running gateway ask people.",
}
"""Commands and their one-line help, so that `troth --help` imports none of them. Each lives in `troth.cli.<name>`, a
hyphen of its name being an underscore there."""


NOT_WRITTEN = 3
"""Exit status where standard output takes nothing."""


class _Lazy(click.Group):
    """A group whose commands are imported when they are used."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the command line. A standard stream that is closed, full or narrow of character is no fault of Troth."""
        _mend_streams()
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            from troth.cli.output import silence

            silence(sys.stdout)
            click.echo(f"Error: {error.strerror or error}", err=True)
            sys.exit(NOT_WRITTEN)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"troth.cli.{cmd_name.replace('-', '_')}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _mend_streams() -> None:
    """Gives closed streams a place to write to; what a stream's encoding lacks is spelled as an escape."""
    # The null device lives as long as the process, as the standard streams do.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115, PTH123
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115, PTH123
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None and sys.stdout.errors == "strict":
        reconfigure(errors="backslashreplace")


def _version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        from troth._version import version

        click.echo(f"troth {version}")
        ctx.exit()


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
def main() -> None:
    """Troth: what MCP hosts and servers promise each other, and whether they keep it."""


def run() -> None:
    """The console script: `main`, and a quick way out."""
    try:
        main(prog_name="troth")
    finally:
        # What lives at the end is not searched for cycles once more, which costs `explain` a tenth of its time.
        gc.freeze()
