"""What goes to an upstream, and how it fails: values that the exchange and the shell share. Sans-IO."""

from __future__ import annotations

from collections.abc import Collection, Mapping  # noqa: TC003 - msgspec reads the types of members
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec
from msgspec import Raw

from troth.bridge.model import Frame, Kind
from troth.bridge.write import written


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """A request on its way to an upstream: a frame, and what to write differently.

    Id, progress token and ``_meta`` of the era are added by the conversation that sends it.

    Attributes:
        frame: The host's request, or one of ours (`troth.bridge.ask`).
        params: Members of ``params`` to put in or replace.
        drop: Members of ``params`` to leave out.
        meta: Members of ``_meta`` to put in or replace.
        drop_meta: Members of ``_meta`` to leave out.
        progress: Ask for progress.
        level: Log level to ask for (modern upstreams); None for none.
        name: Value of the ``Mcp-Name`` header (modern HTTP); empty for none.
        headers: Further headers, ``Mcp-Param-...`` (modern HTTP).
        timeout: Seconds without a sign of life (answer, progress) after which the request is given up; None for none.
        asks: Whether questions of the upstream about this request can be answered.
        declares: Client capabilities of this request (modern upstreams); None for none.
        again: True if the request may be sent again after it was perhaps processed (lists, reads of ours).
    """

    frame: Frame
    params: Mapping[str, object] = {}
    drop: Collection[str] = ()
    meta: Mapping[str, object] = {}
    drop_meta: Collection[str] = ()
    progress: bool = False
    level: str | None = None
    name: str = ""
    headers: Mapping[str, str] = {}
    timeout: float | None = None
    asks: bool = False
    declares: Mapping[str, object] | None = None
    again: bool = False


class Cause(StrEnum):
    """Why a request has no answer."""

    DOWN = "down"
    """The upstream is not there; the request was not sent."""
    BROKEN = "broken"
    """The connection ended, or the session was lost, with the request in flight: it may have had effects."""
    TIMEOUT = "timeout"
    """No sign of life in time."""
    MALFORMED = "malformed"
    """Something came that is no answer."""
    TASK = "task"
    """The upstream's task, which it became, cannot be reached any more: it may have had effects."""
    REFUSED = "refused"
    """HTTP refused it (401, 403, 429, 5xx ...)."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Why a request has no answer, in words fit to print (without secrets).

    Attributes:
        cause: Why.
        words: The same in words.
        line: The answer that came, where all that is wrong is how deep something in it nests, or how long a number is
            (`troth.bridge.spared`); else empty.
    """

    cause: Cause
    words: str
    line: bytes = field(default=b"", kw_only=True, repr=False)


def ask(method: str, params: Mapping[str, object] | None = None) -> Frame:
    """A request of ours. Its id is given when it is written (`rewrite`).

    Args:
        method: The method.
        params: Its members, as JSON values or `Raw`; a ``_meta`` among them is an object.
    """
    parts = {name: Raw(written(value)) for name, value in (params or {}).items()}
    meta = msgspec.json.decode(parts["_meta"], type=dict[str, Raw]) if "_meta" in parts else {}
    body = Raw(written(parts)) if params is not None else None
    return Frame(kind=Kind.REQUEST, method=method, body=body, parts=parts, meta=meta)
