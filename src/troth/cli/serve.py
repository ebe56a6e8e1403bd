"""`troth serve`: one endpoint for every host in front of all configured servers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from troth.gateway.settings import GatewaySettings, ServeOptions, TokenSettings

LEVELS = ("debug", "info", "warning", "error")
"""Severities of log lines."""
LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1|\[::1\]")
"""Addresses that only this machine reaches."""
MADE = "made-at-start"
"""Name of a token that nobody configured."""
GIVEN = "given"
"""Name of the token of `--token` or `TROTH_TOKEN`."""
_NOT_WITH_STDIO = ("host", "port", "token", "no_auth")


@click.command(
    short_help="Serve every host from one endpoint in front of many servers.",
    epilog="Exit status: 0 stopped by a signal, 1 it cannot listen there, 2 wrong usage or configuration.",
)
@click.argument("config", required=False)
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to bind.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8300, show_default=True, help="Port; 0 takes a free one."
)
@click.option("--stdio", is_flag=True, help="Serve one host on standard input and output.")
@click.option("--token", envvar="TROTH_TOKEN", metavar="TOKEN", help="Bearer token of hosts (also: TROTH_TOKEN).")
@click.option("--no-auth", is_flag=True, help="Take hosts without a token; on loopback addresses only.")
@click.option(
    "--log-level", type=click.Choice(LEVELS), default="warning", show_default=True, help="Least severity of log lines."
)
@click.pass_context
def command(ctx: click.Context, config: str | None, **given: Any) -> None:
    """Serve every host, of any protocol revision, from one endpoint in front of many servers.

    CONFIG is troth.toml or a host's list of servers (mcp.json); without it, troth.toml and then mcp.json are looked for
    in this folder and in your configuration folder. A change of the file takes effect while the gateway runs.
    """
    from troth.cli.configured import chosen, settings

    _check_usage(ctx, given)
    path = chosen(config)
    found = settings(path)
    options = _options(found, given)
    for note in found.notes:
        click.echo(f"{path}: {note}", err=True)
    from troth.gateway.serve import run

    ctx.exit(run(found, options))


def _check_usage(ctx: click.Context, given: dict[str, Any]) -> None:
    """Refuses options that contradict each other.

    Raises:
        click.UsageError: They do.
    """
    said = click.core.ParameterSource.COMMANDLINE
    if given["stdio"]:
        idle = [name for name in _NOT_WITH_STDIO if ctx.get_parameter_source(name) is said]
        if idle:
            raise click.UsageError(f"--{idle[0].replace('_', '-')} has no meaning with --stdio: leave it out.")
        return
    if not given["no_auth"]:
        return
    if ctx.get_parameter_source("token") is said:
        raise click.UsageError("--token and --no-auth contradict each other: leave one out.")
    if not LOOPBACK.fullmatch(given["host"]):
        raise click.UsageError(
            f"--no-auth is for loopback addresses, and others reach {given['host']}: bind 127.0.0.1, or leave it out."
        )


def _options(settings: GatewaySettings, given: dict[str, Any]) -> ServeOptions:
    from troth.gateway.config import new_token
    from troth.gateway.settings import ServeOptions, TokenSettings

    tokens: tuple[TokenSettings, ...] = ()
    wanted = not given["stdio"] and not given["no_auth"]
    if wanted and given["token"]:
        tokens = (TokenSettings(name=GIVEN, token=_checked(given["token"])),)
    elif wanted and not settings.tokens:
        tokens = (TokenSettings(name=MADE, token=new_token()),)
        click.echo(f"token {tokens[0].token}", err=True)
        click.echo("It changes at every start; troth connect HOST makes one that stays.", err=True)
    return ServeOptions(
        host=given["host"].removeprefix("[").removesuffix("]"),
        port=given["port"],
        stdio=given["stdio"],
        no_auth=given["no_auth"],
        tokens=tokens,
        operator=new_token(),
        log_level=given["log_level"],
    )


def _checked(token: str) -> str:
    from troth.gateway.config.keys import LONGEST_TOKEN, SHORTEST_TOKEN, TOKEN

    if not (SHORTEST_TOKEN <= len(token) <= LONGEST_TOKEN and re.fullmatch(TOKEN, token)):
        raise click.UsageError(
            f"The token of --token or TROTH_TOKEN must have {SHORTEST_TOKEN} to {LONGEST_TOKEN} characters: letters, "
            "digits and any of . _ ~ + / = -"
        )
    return token
