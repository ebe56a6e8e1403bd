"""The core of a gateway without I/O: frames in, values out; values in, frames out. Pure.

Import the names from here. This room imports the standard library and msgspec only, and does no I/O, reads no clock
and writes no log.
"""

from troth.bridge.frames import read, read_batch
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
from troth.bridge.outgoing import Cause, Lost, Outgoing, ask
from troth.bridge.scan import one_line
from troth.bridge.write import rewrite, written

__all__ = [
    "BAD_PARAMS",
    "LIMITS",
    "NOT_A_MESSAGE",
    "NOT_JSON",
    "Bad",
    "Batch",
    "Cause",
    "Frame",
    "FrameLimits",
    "Id",
    "IdMint",
    "Kind",
    "Lost",
    "Outgoing",
    "Peeked",
    "PeekedMeta",
    "ask",
    "members",
    "one_line",
    "opened",
    "peek",
    "peek_meta",
    "read",
    "read_batch",
    "rewrite",
    "written",
]
