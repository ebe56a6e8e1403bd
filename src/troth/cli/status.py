"""`troth status`: the servers and hosts of a running gateway."""

from __future__ import annotations

import http.client
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from troth.gateway.run import Run

NOT_RUNNING = 1
"""Exit status where no gateway runs, or the one that does gives no status."""
LONGEST = 16 * 1024 * 1024
"""Bytes of the largest status that is read."""
PATIENCE = 10.0
"""Seconds that a gateway gets to answer."""


@click.command(
    short_help="Show the servers and hosts of a running gateway.",
    epilog="Exit status: 0 shown, 1 no gateway runs or it does not answer, 2 wrong usage.",
)
@click.argument("config", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.option("--hosts", "promises", is_flag=True, help="Also show everything that is promised to each host, and why.")
def command(config: str | None, *, as_json: bool, promises: bool) -> None:
    """Show a running gateway.

    Per server: its state, era, revision, what it promises and what it costs. Per host: its revision, what it declares,
    what is promised to it, and (with --hosts) why.

    CONFIG picks the gateway that serves that file, where several run.
    """
    from troth.cli.output import deliver, screen
    from troth.gateway.status import from_json, to_json

    data = _ask(_running(config))
    status = from_json(data)
    if isinstance(status, str):
        _fail(f"The gateway answers with something that is {status}. Is it of another version?")
    if as_json:
        deliver(to_json(status).decode() + "\n", None, machine=True)
        return
    from troth.cli.status_page import page

    colour, width = screen()
    deliver(page(status, colour=colour, width=width, promises=promises), None, machine=False)


def _fail(message: str) -> NoReturn:
    click.echo(f"Error: {message}", err=True)
    sys.exit(NOT_RUNNING)


def _running(config: str | None) -> Run:
    from troth.cli.configured import states
    from troth.gateway.run import running

    runs = [run for run in running(states()) if run.url]
    if config is not None:
        runs = [run for run in runs if run.config == str(Path(config).resolve())]
    if not runs:
        _fail(f"No gateway runs{f' on {config}' if config else ''} that has an address. Start one: troth serve")
    if len(runs) > 1:
        listed = "\n".join(f"  {run.config or '(no file)'}  {run.url}" for run in runs)
        click.echo(f"{len(runs)} gateways run; this is the latest. Name its file to see another:\n{listed}", err=True)
    return runs[0]


def _ask(run: Run) -> bytes:
    """What the gateway answers; ends the command where it does not."""
    from troth.gateway.status import PATH

    request = urllib.request.Request(run.url + PATH, headers={"Authorization": f"Bearer {run.operator}"})  # noqa: S310 - of our own file
    # The operator's token goes to the gateway and to no proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=PATIENCE) as response:
            data: bytes = response.read(LONGEST + 1)
    except urllib.error.HTTPError as error:
        error.close()
        _fail(f"{run.url} answers {error.code}: another program may have taken the address of process {run.pid}.")
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        _fail(f"{run.url} (process {run.pid}) does not answer: {reason}.")
    if len(data) > LONGEST:
        _fail(f"The status is larger than {LONGEST} bytes.")
    return data
