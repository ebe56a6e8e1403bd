"""The core of a gateway without I/O: frames in, values out; values in, frames out. Pure.

Import the names from here; of `relay`, `errors` and `headers` import the module, whose functions are called by its
name (``relay.answer``). This room imports the standard library and msgspec only, and does no I/O, reads no clock
and writes no log.
"""

from troth.bridge.errors import ErrorValue
from troth.bridge.frames import read, read_batch
from troth.bridge.fresh import error_line, notification_line, request_line, result_line
from troth.bridge.ids import IdMint
from troth.bridge.levels import members, opened, peek, peek_meta
from troth.bridge.model import (
    BAD_PARAMS,
    LIMITS,
    NOT_A_MESSAGE,
    NOT_JSON,
    Bad,
    Batch,
    Frame,
    FrameLimits,
    Id,
    Kind,
    Peeked,
    PeekedMeta,
)
from troth.bridge.names import host_uri, name_problem, prefix_for, shown_name, upstream_uri
from troth.bridge.outgoing import Cause, Lost, Outgoing, ask
from troth.bridge.scan import one_line
from troth.bridge.sparing import Spared, spared
from troth.bridge.write import rewrite, written

__all__ = [
    "BAD_PARAMS",
    "LIMITS",
    "NOT_A_MESSAGE",
    "NOT_JSON",
    "Bad",
    "Batch",
    "Cause",
    "ErrorValue",
    "Frame",
    "FrameLimits",
    "Id",
    "IdMint",
    "Kind",
    "Lost",
    "Outgoing",
    "Peeked",
    "PeekedMeta",
    "Spared",
    "ask",
    "error_line",
    "host_uri",
    "members",
    "name_problem",
    "notification_line",
    "one_line",
    "opened",
    "peek",
    "peek_meta",
    "prefix_for",
    "read",
    "read_batch",
    "request_line",
    "result_line",
    "rewrite",
    "shown_name",
    "spared",
    "upstream_uri",
    "written",
]
