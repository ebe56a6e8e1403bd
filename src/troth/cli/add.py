"""`troth add`: one server more in the configuration of the gateway."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

_COMMAND = "troth.add.command"


class _Add(click.Command):
    """Everything after the first bare ``--`` is the command of the server, whatever it looks like."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            split = args.index("--")
            ctx.meta[_COMMAND] = tuple(args[split + 1 :]) or ("",)
            args = args[:split]
        return super().parse_args(ctx, args)


@click.command(
    cls=_Add,
    short_help="Add a server to the configuration of the gateway.",
    options_metavar="[OPTIONS]",
    epilog="Exit status: 0 added, 2 wrong usage, or the file cannot take it; it is unchanged then.",
)
@click.argument("name")
@click.argument("url", required=False, metavar="[URL | -- COMMAND ARGS...]")
@click.option("--env", multiple=True, metavar="K=V", help="Variable for its process, as in 'KEY=${KEY}'; repeatable.")
@click.option(
    "--header", multiple=True, metavar="'K: V'", help="Header for its address, as in 'X-Key: ${KEY}'; repeatable."
)
@click.option("--config", metavar="FILE", help="The file to change; made if there is none.")
@click.pass_context
def command(
    ctx: click.Context, *, name: str, url: str | None, env: Sequence[str], header: Sequence[str], config: str | None
) -> None:
    """Add the server NAME: at URL, or started by the COMMAND after --.

    The file is the one that serve would use; without any, mcp.json is made in this folder. Comments stay. A gateway
    that runs on the file takes the server in at once. Write secrets as ${VARIABLE}: they are looked up when they are
    needed, and the file has none.
    """
    from troth.cli.configured import found

    _write(Path(config or found() or "mcp.json"), name, _entry(url, ctx.meta.get(_COMMAND, ()), env, header))


def _entry(url: str | None, program: Sequence[str], env: Sequence[str], header: Sequence[str]) -> dict[str, Any]:
    if (url is None) == (not program):
        raise click.UsageError("Give either a URL, or a command after --, as in: troth add files -- npx -y my-server")
    if url is not None:
        if env:
            raise click.UsageError("--env is for servers that are started. For an address use --header.")
        headers = _pairs(header, "--header", ":")
        return {"url": url, **({"headers": headers} if headers else {})}
    if header:
        raise click.UsageError("--header is for servers at an address. For a command use --env.")
    variables = _pairs(env, "--env", "=")
    rest = list(program[1:])
    return {"command": program[0], **({"args": rest} if rest else {}), **({"env": variables} if variables else {})}


def _pairs(given: Sequence[str], option: str, mark: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for number, text in enumerate(given, 1):
        name, found, value = text.partition(mark)
        # The value may be a secret, so a wrong one is not repeated.
        if not found or not name.strip():
            shape = "'Name: value'" if mark == ":" else "NAME=value"
            raise click.UsageError(f"{option} number {number} is not of the form {shape}.")
        pairs[name.strip()] = value.strip() if mark == ":" else value
    return pairs


def _write(path: Path, name: str, entry: dict[str, Any]) -> None:
    """Writes the file with the server in it, unless it has faults then that it had not before."""
    from troth.cli.configured import refuse_faults, write_config
    from troth.config import Fault, read_text
    from troth.gateway.config import Faults
    from troth.gateway.config.edit import add_server
    from troth.gateway.config.read import load_text

    text = read_text(str(path)) if path.exists() else None
    if isinstance(text, Fault):
        refuse_faults(text)
    new = add_server(str(path), text, name, entry)
    if isinstance(new, Fault):
        refuse_faults(new)
    after = load_text(str(path), new, os.environ)
    before = None if text is None else load_text(str(path), text, os.environ)
    if isinstance(after, Faults):
        known = {fault.words for fault in before.faults} if isinstance(before, Faults) else set[str]()
        fresh = tuple(fault for fault in after.faults if fault.words not in known)
        if fresh:
            refuse_faults(Faults(fresh))
    write_config(path, new)
    click.echo(f"{path}: added {name}.")
