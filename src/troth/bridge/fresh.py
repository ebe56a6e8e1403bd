"""Messages of our own, each as one line without its end. Sans-IO.

Values may hold `Raw` out of a frame: it is copied as it stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.bridge.write import written

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.bridge.model import Id

_OPEN = b'{"jsonrpc":"2.0"'


def result_line(id: Id, result: Mapping[str, object]) -> bytes:  # noqa: A002 - the name of the member
    """The response to a request.

    Args:
        id: Id of the request.
        result: Members of the result.
    """
    return b"".join((_OPEN, b',"id":', written(id), b',"result":', written(result), b"}"))


def error_line(id: Id | None, code: int, message: str, data: object = None) -> bytes:  # noqa: A002
    """The error that answers a request.

    Args:
        id: Id of the request; None writes null, for a message whose id could not be read.
        code: Code of JSON-RPC.
        message: One sentence.
        data: What else the code carries; None for nothing.
    """
    error: dict[str, object] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return b"".join((_OPEN, b',"id":', written(id), b',"error":', written(error), b"}"))


def notification_line(method: str, params: Mapping[str, object] | None = None) -> bytes:
    """A notification.

    Args:
        method: Its method.
        params: Its members; None for none at all.
    """
    return b"".join((_OPEN, *_asking(method, params), b"}"))


def request_line(id: Id, method: str, params: Mapping[str, object] | None = None) -> bytes:  # noqa: A002
    """A request.

    Args:
        id: Its id.
        method: Its method.
        params: Its members; None for none at all.
    """
    return b"".join((_OPEN, b',"id":', written(id), *_asking(method, params), b"}"))


def _asking(method: str, params: Mapping[str, object] | None) -> tuple[bytes, ...]:
    start = (b',"method":', written(method))
    return start if params is None else (*start, b',"params":', written(params))
