"""Opens the link that an upstream's settings ask for. HTTP is imported at its first use: it is heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.gateway.settings import Transport

if TYPE_CHECKING:
    from troth.gateway.crew import Crew
    from troth.gateway.limits import Limits
    from troth.gateway.settings import UpstreamSettings
    from troth.gateway.upstream.client import HttpClient
    from troth.gateway.upstream.link import Link, Receiver


def open_client(settings: UpstreamSettings, limits: Limits) -> HttpClient | None:
    """The pool of connections that all links to one upstream share; None for a process. Close it after them."""
    if settings.transport is Transport.STDIO:
        return None
    from troth.gateway.upstream import client

    return client.open_client(settings.url, limits)


async def open_link(
    settings: UpstreamSettings,
    receiver: Receiver,
    crew: Crew,
    limits: Limits,
    *,
    client: HttpClient | None = None,
    transport: Transport | None = None,
) -> Link:
    """Opens a link to an upstream. Over Streamable HTTP nothing is sent yet.

    Args:
        settings: The upstream.
        receiver: Who hears what arrives; not before this returns.
        crew: Owner of the link's tasks. Close the link before it.
        limits: Sizes and times.
        client: What `open_client` gave for this upstream.
        transport: Another one than that of the settings: `Transport.SSE` where a server knows only that.

    Raises:
        LinkError: No process can be started, the address is none, or (HTTP+SSE) no stream came about.
        ValueError: There is no client where one is needed.
    """
    transport = transport or settings.transport
    if transport is Transport.STDIO:
        from troth.gateway.upstream.stdio import open_stdio

        return await open_stdio(settings, receiver, limits)
    if client is None:
        raise ValueError("a link over HTTP needs a client")
    if transport is Transport.SSE:
        from troth.gateway.upstream.sse import open_sse

        return await open_sse(settings, receiver, crew, limits, client)
    from troth.gateway.upstream.http import HttpLink

    return HttpLink(settings, receiver, crew, limits, client)
