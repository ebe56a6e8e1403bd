"""`troth gate`: which host sees which tool, prompt and resource of a server, and why not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from troth.cli.output import NotWritten, deliver, screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from troth.audit.targets import Target
    from troth.gating import Listed
    from troth.register import HostProfile

SHOWN, USAGE, UNCHECKED = 0, 2, 3
"""Exit status: the table was shown; wrong usage; a server that could not be asked, or a table not written."""

PATIENCE = 60.0
"""Seconds that a server may take to start and to answer."""

_COMMAND = "troth.gate.command"


class _Gate(click.Command):
    """Everything after the first bare ``--`` is the command of a server."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            split = args.index("--")
            ctx.meta[_COMMAND] = tuple(args[split + 1 :]) or ("",)
            args = args[:split]
        return super().parse_args(ctx, args)


class _NoListsError(Exception):
    """A server did not show its lists; the text says why."""


@click.command(
    cls=_Gate,
    short_help="Show which host sees which tool, prompt and resource of a server, and why not.",
    options_metavar="[OPTIONS]",
    epilog="Exit status: 0 shown, 2 wrong usage, 3 the server could not be asked.",
)
@click.argument("target", required=False, metavar="[TARGET] [-- COMMAND ARGS...]")
@click.option("--as", "profiles", multiple=True, metavar="PROFILE", help="Only this host; repeatable.  [default: all]")
@click.option("--header", multiple=True, metavar="'K: V'", help="Send this header to a URL; repeatable.")
@click.option("--env", multiple=True, metavar="K=V", help="Set this variable for a started server; repeatable.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="How to write it.",
)
@click.pass_context
def command(
    ctx: click.Context,
    *,
    target: str | None,
    profiles: tuple[str, ...],
    header: tuple[str, ...],
    env: tuple[str, ...],
    style: str,
) -> None:
    """Show which host sees which tool, prompt and resource of a server, and why not.

    TARGET is a Python server object (server.py:mcp), whose @requires marks are read without starting it, or the URL of
    a running server. A server that is to be started stands after --. Running servers are asked for their lists as a
    host that declares everything, and are known by what their _meta says.
    """
    from troth.audit.options import UsageError
    from troth.audit.targets import parse_targets
    from troth.cli.gate_page import WRITERS
    from troth.gating import matrix

    hosts = _chosen(profiles)
    words: list[str] = [] if target is None else [target]
    try:
        server, *more = parse_targets(words, ctx.meta.get(_COMMAND, ()), headers=header, env=env)
    except UsageError as error:
        raise click.UsageError(str(error), ctx) from None
    if more:
        raise click.UsageError("Give one server: a TARGET, or a command after --.", ctx)
    try:
        listed = _listed(target, server)
        text = WRITERS[style](server.name, matrix(listed, hosts), screen()[1])
        deliver(text, None, machine=style != "text")
    except (_NoListsError, NotWritten) as error:
        click.echo(f"Error: {error}", err=True)
        ctx.exit(UNCHECKED)


def _chosen(profiles: Sequence[str]) -> list[HostProfile]:
    from troth.capabilities.paths import nearest
    from troth.register import register

    hosts = register().hosts
    for profile in profiles:
        if profile not in hosts:
            raise click.UsageError(f"--as {profile}: no host profile is called so{nearest(profile, hosts)}.")
    return [host for host in hosts.values() if not profiles or host.id in profiles]


def _listed(word: str | None, target: Target) -> Sequence[Listed]:
    """The primitives: of a Python object by its plug-in, of anything else by asking the server."""
    import anyio

    from troth.audit.targets import is_python_object

    if word is not None and is_python_object(word):
        found = _of_object(word)
        if found is not None:
            return found
    return anyio.run(_of_server, target)


def _of_object(word: str) -> Sequence[Listed] | None:
    """What a server object holds; None if that can only be seen by asking it, as of a framework without a plug-in."""
    import anyio

    from troth.audit.runner import NoServerError, find_object, stdout_diverted
    from troth.capabilities.build import plugin_of
    from troth.gating import needs_of

    try:
        with stdout_diverted():
            server = find_object(word)
            try:
                listed: Any = plugin_of(server).listed
            except TypeError:
                return None
            return anyio.run(listed, server, needs_of(server))
    except NoServerError as error:
        raise click.UsageError(f"{error}.") from None


async def _of_server(target: Target) -> list[Listed]:
    """The lists of a server at the newest revision of each era, put together."""
    from troth.gating import Listed, both
    from troth.register import Era, register

    found: dict[Any, Any] = {}
    reasons: list[str] = []
    for era in Era:
        # After the handshake a server is awake, and one that does not know the other era may say nothing.
        listed = await _at(target, register().newest(era), PATIENCE if era is Era.LEGACY else None)
        if isinstance(listed, str):
            reasons.append(listed)
            continue
        for named, need in listed:
            found[named] = both(found.get(named), need)
    if len(reasons) == len(Era):
        raise _NoListsError(f"{target.name} did not show its lists: {'; '.join(dict.fromkeys(reasons))}")
    return [Listed(named, need) for named, need in found.items()]


async def _at(target: Target, revision: str, patience: float | None) -> list[Listed] | str:
    """The lists at one revision, or why there are none."""
    import time

    from troth.audit.context import told
    from troth.audit.probes.lists import KEYS, read
    from troth.audit.wire.connect import answer_all, connect, open_session
    from troth.audit.wire.dialect import declarable
    from troth.audit.wire.types import Limits
    from troth.gating import Listed, primitive, stated
    from troth.gating.needs import KINDS
    from troth.wire.errors import LinkError

    listed: list[Listed] = []
    limits = Limits()
    try:
        async with connect(
            target,
            revision=revision,
            capabilities=declarable(revision),
            answer=answer_all,
            limits=limits,
            started=time.monotonic(),
            number=1,
        ) as session:
            await open_session(session, patience or limits.method)
            if session.opening is None or session.negotiated is None:
                reason = told(session.opening) if session.opening is not None else "no answer"
                return f"{revision}: {reason}"
            for method, kind in zip(KEYS, KINDS, strict=True):
                items = (await read(session, method)).items
                listed.extend(Listed(primitive(item, kind), stated(item)) for item in items)
    except LinkError as error:
        return str(error)
    return listed
