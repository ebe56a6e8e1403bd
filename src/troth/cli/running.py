"""Finding the gateway that runs, and asking it as its operator."""

from __future__ import annotations

import http.client
import json
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

import click

if TYPE_CHECKING:
    from troth.gateway.run import Run

NOT_RUNNING = 1
"""Exit status where no gateway runs, or the one that does gives no answer."""
LONGEST = 16 * 1024 * 1024
"""Bytes of the longest answer that is read."""
PATIENCE = 10.0
"""Seconds that a gateway gets to answer."""


def fail(message: str) -> NoReturn:
    """Ends the command with a message on standard error."""
    click.echo(f"Error: {message}", err=True)
    sys.exit(NOT_RUNNING)


def running(config: str | None, port: int | None = None) -> Run:
    """The gateway that runs, or the one that serves a file; ends the command where there is none.

    Args:
        config: The configuration file; None for the latest gateway.
        port: The port that it listens on; None for any.
    """
    from troth.cli.configured import states
    from troth.gateway.run import running as found

    runs = [run for run in found(states()) if run.url]
    if config is not None:
        runs = [run for run in runs if run.config == str(Path(config).resolve())]
    if port is not None:
        runs = [run for run in runs if urlsplit(run.url).port == port]
    if not runs:
        at = f" on port {port}" if port is not None else ""
        fail(f"No gateway runs{f' on {config}' if config else ''}{at} that has an address. Start one: troth serve")
    if len(runs) > 1:
        listed = "\n".join(f"  {run.config or '(no file)'}  {run.url}" for run in runs)
        another = "Name its file" if len({run.config for run in runs}) == len(runs) else "Give its --port"
        told = f"{len(runs)} gateways run; this is the latest, {runs[0].url}. {another} to see another:"
        click.echo(f"{told}\n{listed}", err=True)
    return runs[0]


def ask(run: Run, path: str, body: object = None, *, taken: tuple[int, ...] = ()) -> tuple[int, bytes]:
    """What the gateway answers; ends the command where it does not.

    Args:
        run: The gateway.
        path: Path and query.
        body: What is posted, as a JSON value; None asks with GET.
        taken: Statuses beside 200 whose answer is wanted too.

    Returns:
        The status, and the body.
    """
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {run.operator}", "Content-Type": "application/json"}
    request = urllib.request.Request(run.url + path, data, headers)  # noqa: S310 - of our own file
    # The operator's token goes to the gateway and to no proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=PATIENCE) as response:
            answer: bytes = response.read(LONGEST + 1)
            status: int = response.status
    except urllib.error.HTTPError as error:
        with error:
            if error.code in taken:
                return error.code, error.read(LONGEST)
        fail(f"{run.url} answers {error.code}: another program may have taken the address of process {run.pid}.")
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        fail(f"{run.url} (process {run.pid}) does not answer: {reason}.")
    if len(answer) > LONGEST:
        fail(f"The answer is longer than {LONGEST} bytes.")
    return status, answer
