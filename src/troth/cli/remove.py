"""`troth remove`: one server less in the configuration of the gateway."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(
    short_help="Remove a server from the configuration of the gateway.",
    epilog="Exit status: 0 removed, 2 wrong usage, or there is no such server.",
)
@click.argument("name")
@click.option("--config", metavar="FILE", help="The file to change.")
def command(name: str, config: str | None) -> None:
    """Remove the server NAME. Comments and all else in the file stay.

    The file is the one that serve would use. A gateway that runs on it lets the server go at once.
    """
    from troth.cli.configured import chosen, refuse_faults, write_config
    from troth.config import Fault, read_text
    from troth.gateway.config.edit import remove_server

    path = chosen(config)
    text = read_text(path)
    if isinstance(text, Fault):
        refuse_faults(text)
    new = remove_server(path, text, name)
    if isinstance(new, Fault):
        refuse_faults(new)
    write_config(Path(path), new)
    click.echo(f"{path}: removed {name}.")
