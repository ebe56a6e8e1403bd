"""Opens the link that an upstream's settings ask for. HTTP is imported at its first use: it is heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.gateway.settings import Transport

if TYPE_CHECKING:
    from troth.gateway.crew import Crew
    from troth.gateway.limits import Limits
    from troth.gateway.settings import UpstreamSettings
    from troth.gateway.upstream.link import Link, Receiver


async def open_link(settings: UpstreamSettings, receiver: Receiver, crew: Crew, limits: Limits) -> Link:
    """Opens a link to an upstream.

    Args:
        settings: The upstream.
        receiver: Who hears what arrives; not before this returns.
        crew: Owner of the link's tasks. Close the link before it.
        limits: Sizes and times.

    Raises:
        LinkError: No process can be started, the address is none, or (HTTP+SSE) no stream came about.
    """
    if settings.transport is Transport.STDIO:
        from troth.gateway.upstream.stdio import open_stdio

        return await open_stdio(settings, receiver, limits)
    raise NotImplementedError
