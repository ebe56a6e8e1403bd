"""The command line. One file per command, imported only when that command runs."""

from __future__ import annotations

from importlib import import_module

import click

COMMANDS = {
    "audit": "Compare what MCP servers declare with what they deliver.",
    "explain": "Tell what a capability, method or error code means in each protocol revision.",
}
"""Commands and their one-line help, so that `troth --help` imports none of them. Each lives in `troth.cli.<name>`."""


class _Lazy(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"troth.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        from troth._version import version

        click.echo(f"troth {version}")
        ctx.exit()


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
def main() -> None:
    """Troth: what MCP hosts and servers promise each other, and whether they keep it."""
