"""`troth status`: the servers and hosts of a running gateway."""

from __future__ import annotations

import click


@click.command(
    short_help="Show the servers and hosts of a running gateway.",
    epilog="Exit status: 0 shown, 1 no gateway runs or it does not answer, 2 wrong usage.",
)
@click.argument("config", required=False)
@click.option("--port", type=click.IntRange(1, 65535), help="The gateway that listens on this port.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.option("--hosts", "promises", is_flag=True, help="Also show everything that is promised to each host, and why.")
def command(config: str | None, *, port: int | None, as_json: bool, promises: bool) -> None:
    """Show a running gateway.

    Per server: its state, era, revision, what it promises and what it costs. Per host: its revision, what it declares,
    what is promised to it, and (with --hosts) why.

    CONFIG picks the gateway that serves that file, where several run; --port one of those that serve the same.
    """
    from troth.cli.output import deliver, screen
    from troth.cli.running import ask, fail, running
    from troth.gateway.status import PATH, from_json, to_json

    _, data = ask(running(config, port), PATH)
    status = from_json(data)
    if isinstance(status, str):
        fail(f"The gateway answers with something that is {status}. Is it of another version?")
    if as_json:
        deliver(to_json(status).decode() + "\n", None, machine=True)
        return
    from troth.cli.status_page import page

    colour, width = screen()
    deliver(page(status, colour=colour, width=width, promises=promises), None, machine=False)
