"""What is kept beside a task: what its host can be asked, and how a later run of the gateway goes on with it."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import msgspec

from troth.gateway.asked import alone
from troth.gateway.settings import Transport
from troth.tasks import Requester, Task

if TYPE_CHECKING:
    from troth.gateway.asked import Asked
    from troth.gateway.model import Host
    from troth.gateway.settings import UpstreamSettings
    from troth.gateway.tasks.room import Place


class Kept(msgspec.Struct, frozen=True):
    """What is kept beside a task.

    Attributes:
        revision: Revision in which its result is spelled.
        upstream: Name of the upstream that works on it.
        asks: What the host that made it can be asked.
        tool: The name that the host called.
        task: The upstream's id of its task, by which a later run goes on with it; empty where none can.
        place: Where that upstream is (`place_of`).
        config: The configuration of the gateway that made it: others may share its folder, and leave it alone.
        awaited: Principal whose call waits for it where no host has a task; empty for tasks of hosts.
    """

    revision: str
    upstream: str
    asks: tuple[str, ...] = ()
    tool: str = ""
    task: str = ""
    place: str = ""
    config: str = ""
    awaited: str = ""

    def text(self) -> str:
        """As it is kept."""
        return msgspec.json.encode(self).decode()


read_kept = msgspec.json.Decoder(Kept).decode

NOBODY: Final = Requester("")
"""Whose the tasks are that no host has: principals have names."""


def requester(host: Host) -> Requester:
    """Whose the tasks of a host are. Those without a credential cannot be told apart: ids alone grant access."""
    return Requester(host.principal.name, shared=not alone(host.principal))


def askable(task: Task, host: Host) -> bool:
    """Whether a host can be asked all that a task may ask."""
    try:
        return host.asks.issuperset(read_kept(task.keep).asks)
    except msgspec.MsgspecError:
        return False


def outlasts(settings: UpstreamSettings) -> bool:
    """Whether tasks of the extension outlast the connection to an upstream: no process of ours works on them."""
    return settings.transport is Transport.HTTP


def place_of(settings: UpstreamSettings) -> str:
    """Where an upstream is, as a digest, since an address may hold a secret; empty where no task survives us."""
    if not outlasts(settings):
        return ""
    return blake2b(settings.url.encode(), digest_size=16).hexdigest()


def kept_of(asked: Asked, place: Place, revision: str, task: str = "", awaited: str = "") -> Kept:
    """What is kept beside the task of a call; see `Kept`."""
    settings = place.owner.settings
    asks = tuple(sorted(asked.host.asks))
    config = asked.gateway.settings.path or ""
    return Kept(revision, settings.name, asks, place.tool, task, place_of(settings), config, awaited)
