"""`troth connect`: what points a known host at the gateway."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from troth.gateway.connect import KnownHost, Way

NAME = "troth"
"""What hosts call the gateway."""
ADDRESS = "http://127.0.0.1:8300"
"""Where a gateway is that does not run yet."""


@click.command(
    short_help="Print what points a known host at the gateway.",
    epilog="Exit status: 0 printed, 2 wrong usage, or the token could not be kept.",
)
@click.argument("host", required=False)
@click.option("--stdio", is_flag=True, help="Have the host start the gateway instead of reaching it by its address.")
@click.option("--url", metavar="URL", help="Address of the gateway's endpoint.  [default: of the one that runs]")
@click.option("--config", metavar="FILE", help="The configuration that the gateway serves.")
@click.option("--list", "everything", is_flag=True, help="List the hosts that are known.")
def command(host: str | None, *, stdio: bool, url: str | None, config: str | None, everything: bool) -> None:
    """Print what to put into the configuration of HOST so that it uses the gateway.

    Over HTTP the host gets a token of its own, which is made once, kept in your configuration folder and taken by every
    gateway of yours. What is printed on standard output has that token in it.
    """
    from troth.gateway.connect import HOSTS

    if everything == (host is not None):
        raise click.UsageError("Give either one HOST or --list.")
    if host is None:
        for item in HOSTS:
            click.echo(f"{item.id:<16}{item.title}{'' if item.http else ' (starts the gateway; over stdio only)'}")
        return
    if stdio and url is not None:
        raise click.UsageError("--url has no meaning with --stdio: leave one out.")
    known = _find(host)
    if url is not None and not known.http:
        raise click.UsageError(f"{known.title} takes no address with a token in its configuration: leave --url out.")
    way = _started(config) if stdio or not known.http else _reached(known, url, config)
    click.echo(known.where, err=True)
    click.echo(known.write(way))


def _find(host: str) -> KnownHost:
    from troth.gateway.config.read import near
    from troth.gateway.connect import HOSTS

    by_id = {item.id: item for item in HOSTS}
    if host not in by_id:
        raise click.UsageError(f"No host {host!r} is known; {near(host, by_id)}")
    return by_id[host]


def _started(config: str | None) -> Way:
    from troth.cli.configured import chosen
    from troth.gateway.connect import Way

    # Hosts start programs in a folder and with a path of their own.
    script = shutil.which(sys.argv[0]) if Path(sys.argv[0]).stem == "troth" else None
    program = [str(Path(script).absolute())] if script else [sys.executable, "-m", "troth"]
    return Way(name=NAME, command=(*program, "serve", str(Path(chosen(config)).absolute()), "--stdio"))


def _reached(host: KnownHost, url: str | None, config: str | None) -> Way:
    from troth.cli.configured import refuse_faults, tokens_file
    from troth.config import Fault
    from troth.gateway.config import keep_token
    from troth.gateway.config.read import url_problem
    from troth.gateway.connect import Way

    address = _running(config) if url is None else url
    problem = url_problem(address)
    if problem:
        raise click.UsageError(f"--url {problem}.")
    token = keep_token(tokens_file(), host.id, host.profile)
    if isinstance(token, Fault):
        refuse_faults(token)
    return Way(name=NAME, url=address, token=token.token)


def _running(config: str | None) -> str:
    """The endpoint of the gateway that runs (on that configuration), else where one would be by default."""
    from troth.cli.configured import states
    from troth.gateway.run import running

    wanted = None if config is None else str(Path(config).resolve())
    found = next((run.url for run in running(states()) if run.url and wanted in (None, run.config)), ADDRESS)
    return f"{found}/mcp"
