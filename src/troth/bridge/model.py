"""Values of the relay: frames, what is wrong with one, limits, and the members that routing interprets. Sans-IO."""

from __future__ import annotations

import enum
from collections.abc import Mapping  # noqa: TC003 - the readers of `Peeked` are made from its types
from typing import TypedDict

import msgspec
from msgspec import Raw

Id = int | str
"""An id or a progress token. Compare by type and value: `1` and `"1"` are different, as they are to Python."""

NOT_JSON = -32700
NOT_A_MESSAGE = -32600
BAD_PARAMS = -32602

BESIDE = 64 * 1024
"""Bytes of an envelope beside the members of JSON-RPC. Nothing defined stands there; what does is kept, not hoarded."""

MEMBERS = 1024
"""Members of `params`, `result` or `_meta`. Real ones have under 20; a short one in memory is 20 times its bytes."""


class FrameLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a frame may measure. More is refused with -32600."""

    bytes: int = 16 * 1024 * 1024
    """Whole frame or batch, in bytes. Files travel inside results as base64; a few times the usual 4 MB must pass."""
    depth: int = 128
    """Levels of arrays and objects. Far above real messages; a common limit of readers (serde_json has the same)."""
    digits: int = 4300
    """Digits of a number in a row. More make `int()` of Python fail, and reading costs the square of the length."""
    name: int = 1024
    """Bytes of the text of an id or method. Both are kept while an exchange runs, and are shown."""
    batch: int = 64
    """Messages of a batch. Each opens an exchange of its own."""


LIMITS = FrameLimits()


class Kind(enum.StrEnum):
    """What a frame is."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    RESPONSE = "response"
    ERROR = "error"


BODY = {Kind.REQUEST: "params", Kind.NOTIFICATION: "params", Kind.RESPONSE: "result", Kind.ERROR: "error"}
"""The member of the envelope that holds what a frame of this kind carries."""


class Bad(msgspec.Struct, frozen=True):
    """Why there is no frame, or why a member cannot be used."""

    code: int
    """Code of JSON-RPC to answer a request with: -32700, -32600 or -32602."""
    reason: str
    """What is wrong and where: short, printable, without a word of the stranger's."""
    id: Id | None = None
    """Id of the message, where it is known without doubt."""
    kind: Kind | None = None
    """What the message would have been, where that is known. A request is answered; a response ends its exchange."""
    line: bytes = b""
    """The message as one line, where all that is wrong is how deep something in it nests, or how long a number is.

    What nests deeper than readers of JSON go is emptied in it below the limit.
    """


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """One message. `read` makes it."""

    kind: Kind
    id: Id | None = None
    """None for notifications, and for an error about a message whose id its sender could not read."""
    method: str = ""
    """Method of a request or notification, else empty."""
    body: Raw | None = None
    """Bytes of `params`, `result` or `error`, one line; None if there are no `params`."""
    parts: Mapping[str, Raw] | None = None
    """Members of the body; None for a result or error that is not opened."""
    meta: Mapping[str, Raw] = {}
    """Members of `_meta` in the body; empty if there is none."""
    beside: Mapping[str, Raw] = {}
    """Members of the envelope that JSON-RPC does not define."""


class Batch(msgspec.Struct, frozen=True):
    """The messages of an array, each a frame or what is wrong with it, in their order."""

    items: tuple[Frame | Bad, ...]


class Peeked(TypedDict, total=False):
    """Members of a body that routing interprets, by their names on the wire. Absent ones are not there."""

    name: str
    uri: str
    cursor: str
    taskId: str
    requestState: str
    level: str
    progressToken: Id
    requestId: Id
    protocolVersion: str
    resultType: str
    nextCursor: str
    code: int
    message: str
    _meta: Mapping[str, Raw]
    argument: Raw
    arguments: Raw
    capabilities: Raw
    clientInfo: Raw
    data: Raw
    inputRequests: Raw
    inputResponses: Raw
    notifications: Raw
    ref: Raw
    serverInfo: Raw
    task: Raw


PeekedMeta = TypedDict(
    "PeekedMeta",
    {
        "progressToken": Id,
        "io.modelcontextprotocol/protocolVersion": str,
        "io.modelcontextprotocol/clientCapabilities": Raw,
        "io.modelcontextprotocol/clientInfo": Raw,
        "io.modelcontextprotocol/logLevel": str,
        "io.modelcontextprotocol/serverInfo": Raw,
        "io.modelcontextprotocol/subscriptionId": Id,
        "io.modelcontextprotocol/related-task": Raw,
    },
    total=False,
)
"""Members of `_meta` that routing interprets."""
