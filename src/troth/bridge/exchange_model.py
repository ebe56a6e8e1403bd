"""What goes into an exchange and comes out of it: values. Sans-IO."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.bridge.model import Frame, Id
    from troth.bridge.outgoing import Lost, Outgoing


class Called(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a host on its way to an upstream.

    Attributes:
        frame: The host's request. Ids `1` and `"1"` are different, and so are progress tokens.
        host_revision: Revision of the host.
        upstream: Name of the upstream, for messages.
        upstream_revision: Revision of the upstream.
        prefix: Text before the names and URIs of the upstream; empty for none.
        params: Members of ``params`` to put in the place of the host's: the upstream's own name or URI.
        name: Value of the ``Mcp-Name`` header (modern HTTP); empty for none.
        headers: Further headers, ``Mcp-Param-...`` (modern HTTP).
        level: Least severity of log messages that the host wants. None: all (legacy, before any ``setLevel``), or none
            (modern, where a request must ask for them).
        timeout: Seconds without a sign of life after which the request is given up; None for none.
        inline_links: Whether resource links in the result become text: this host gets no ``resources``.
    """

    frame: Frame
    host_revision: str
    upstream: str
    upstream_revision: str
    prefix: str = ""
    params: Mapping[str, object] = {}
    name: str = ""
    headers: Mapping[str, str] = {}
    level: str | None = None
    timeout: float | None = None
    inline_links: bool = False


class Told(StrEnum):
    """What a message to the host beside its answer is; a full queue loses these first."""

    PROGRESS = "progress"
    LOG = "log"


# Events


class HostCalled(msgspec.Struct, frozen=True):
    """The host's request is to be sent. Once, and first."""


class HostCancelled(msgspec.Struct, frozen=True):
    """The host withdrew the request (``notifications/cancelled``), or its session ended."""

    reason: str = ""


class HostGone(msgspec.Struct, frozen=True):
    """The connection that carries the answer ended."""


class UpstreamAnswered(msgspec.Struct, frozen=True):
    """The response or error came, unopened; its id is ours."""

    frame: Frame


class UpstreamAsked(msgspec.Struct, frozen=True):
    """A request of a legacy upstream that belongs to this exchange."""

    frame: Frame


class UpstreamNotified(msgspec.Struct, frozen=True):
    """A notification that belongs to this exchange; a progress token in it is ours."""

    frame: Frame


class UpstreamLost(msgspec.Struct, frozen=True):
    """No answer will come."""

    lost: Lost


Event = HostCalled | HostCancelled | HostGone | UpstreamAnswered | UpstreamAsked | UpstreamNotified | UpstreamLost


# Commands


class SendUpstream(msgspec.Struct, frozen=True):
    """Send the request."""

    outgoing: Outgoing


class CancelUpstream(msgspec.Struct, frozen=True):
    """Give the request up, in the way of the upstream's era. Nothing more is heard of it."""

    reason: str


class AnswerUpstream(msgspec.Struct, frozen=True):
    """Answer a request of the upstream.

    Attributes:
        id: The upstream's id of it.
        line: The response or error on one line.
    """

    id: Id
    line: bytes


class SendHost(msgspec.Struct, frozen=True):
    """Send a message on the stream of the host's request."""

    line: bytes
    sort: Told


class Finish(msgspec.Struct, frozen=True):
    """The exchange ended.

    Attributes:
        line: The response or error for the host on one line; None if it gets none.
        code: Code of the error; None for a result, and without a line.
    """

    line: bytes | None
    code: int | None = None


Command = SendUpstream | CancelUpstream | AnswerUpstream | SendHost | Finish
