"""How a request is written for one upstream: members, ``_meta`` and headers of the revision in force.

Tables keyed by revision; a missing key means that the revision has no such thing. No I/O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Raw

from troth._version import version
from troth.bridge import rewrite, written
from troth.bridge.asks import NOTHING, client_capabilities
from troth.bridge.headers import encoded
from troth.register import Era, register

if TYPE_CHECKING:
    from troth.bridge import Id, Outgoing

CLIENT_INFO: Final = {"name": "troth", "version": version}
"""How the gateway introduces itself to upstreams. What a host says of itself stays with the gateway."""

PREFIX: Final = "io.modelcontextprotocol/"
VERSION, INFO, CAPABILITIES, LEVEL, SUBSCRIPTION, SERVER_INFO = (
    PREFIX + name
    for name in ("protocolVersion", "clientInfo", "clientCapabilities", "logLevel", "subscriptionId", "serverInfo")
)
TOKEN: Final = "progressToken"  # noqa: S105 - a name on the wire
HOP: Final = (VERSION, INFO, CAPABILITIES, LEVEL, TOKEN)
"""Members of ``_meta`` that hold for one hop: what the host wrote there is never passed on."""

VERSION_HEADER: Final = frozenset({"2025-06-18", "2025-11-25"})
"""Legacy revisions whose requests carry ``MCP-Protocol-Version``. Source: 2025-06-18/basic/transports."""


class Envelope:
    """One revision, as requests of the gateway are written in it.

    Args:
        revision: The revision to write.
        agreed: Whether the upstream agreed to it. Before that (``initialize``) no header names it.
    """

    def __init__(self, revision: str, *, agreed: bool = True) -> None:
        self.revision = revision
        self.era = register().era(revision)
        self._headers: dict[str, str] = {}
        self._meta: dict[str, object] = {}
        self._modern = self.era is Era.MODERN
        if self._modern or (agreed and revision in VERSION_HEADER):
            self._headers["MCP-Protocol-Version"] = revision
        if self._modern:
            facts = {VERSION: revision, INFO: CLIENT_INFO, CAPABILITIES: client_capabilities(NOTHING, revision)}
            self._meta = {name: Raw(written(value)) for name, value in facts.items()}

    def line(self, request: Outgoing, number: Id) -> bytes:
        """The request as one line under an id of ours."""
        frame = request.frame
        if self._modern:
            meta = {**request.meta, **self._meta} if request.meta else dict(self._meta)
            if request.level is not None:
                meta[LEVEL] = request.level
            if request.declares is not None:
                meta[CAPABILITIES] = request.declares
        else:
            meta = dict(request.meta)
        if request.progress:
            meta[TOKEN] = number
        drop = request.drop_meta
        if frame.meta:
            drop = {*drop, *(name for name in HOP if name in frame.meta and name not in meta)}
        return rewrite(frame, id=number, params=request.params, drop=request.drop, meta=meta, drop_meta=drop)

    def headers(self, request: Outgoing) -> dict[str, str]:
        """The headers that go with the request over HTTP, without the session's."""
        if not self._modern:
            return self._headers
        headers = {**self._headers, "Mcp-Method": encoded(request.frame.method)}
        if request.name:
            headers["Mcp-Name"] = encoded(request.name)
        if request.headers:
            headers.update(request.headers)
        return headers

    @property
    def common(self) -> dict[str, str]:
        """The headers that go with everything that is no request (notifications, answers, the GET stream)."""
        return self._headers
