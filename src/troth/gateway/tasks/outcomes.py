"""What a call was answered with, as it is kept of its task; and what is kept, as hosts of a revision get it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw

from troth.bridge import Bad, ErrorValue, read, relay, result_line
from troth.bridge.errors import INTERNAL
from troth.gateway.tasks.kept import read_kept
from troth.tasks import Outcome, Task

if TYPE_CHECKING:
    from troth.gateway.model import Answer

_NULL: Final = Raw(b"null")

_read_line = msgspec.json.Decoder(dict[str, Raw]).decode
_read_flag = msgspec.json.Decoder(bool).decode


class _Error(msgspec.Struct):
    code: int = INTERNAL
    message: str = ""
    data: Raw = _NULL


_read_error = msgspec.json.Decoder(_Error).decode


def outcome_of(answer: Answer) -> Outcome:
    """What a call was answered with, as the outcome of its task."""
    if not answer.line:
        return Outcome(error=ErrorValue(INTERNAL, "The call was withdrawn"))
    parts = _read_line(answer.line)
    if "error" in parts:
        error = _read_error(parts["error"])
        # A copy, since the line that it stands in is gone then.
        data = None if error.data == _NULL else Raw(bytes(error.data))
        return Outcome(error=ErrorValue(error.code, error.message, data))
    try:
        failed = _read_flag(_read_line(parts["result"]).get("isError", b"false"))
    except msgspec.DecodeError:
        failed = False
    return Outcome(result=Raw(bytes(parts["result"])), is_error=failed)


def spelled(task: Task, result: Raw, revision: str) -> Raw | ErrorValue:
    """A kept result for hosts of a revision."""
    try:
        source = read_kept(task.keep).revision
    except msgspec.MsgspecError:
        return result
    frame = read(result_line(0, _read_line(result)))
    line = (
        frame if isinstance(frame, Bad) else relay.answer(frame, 0, method=task.method, source=source, target=revision)
    )
    if isinstance(line, Bad):
        return ErrorValue(INTERNAL, line.reason)
    return Raw(bytes(_read_line(line)["result"]))
