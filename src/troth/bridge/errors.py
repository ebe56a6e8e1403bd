"""Errors on their way to a host: which code says the same in its revision, with which HTTP status. Tables, sans-IO.

Three rules. A code that the host's revision defines passes, and so does a code that no revision defines. A code that
only other revisions define becomes the one that says most of the same. An error that is about us and the upstream,
not about the host's request, becomes an internal error with words.

Source: 2026-07-28/basic, error codes; 2025-11-25/server/resources, error handling; JSON-RPC 2.0, 5.1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from troth.bridge.levels import opened
from troth.bridge.model import BAD_PARAMS, NOT_A_MESSAGE, NOT_JSON, Bad, Frame
from troth.register import Era, register

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

METHOD_NOT_FOUND = -32601
INTERNAL = -32603
RESOURCE_NOT_FOUND = -32002
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
URL_REQUIRED = -32042

DRAFT_CAPABILITY = -32003
DRAFT_VERSION = -32004
"""Codes that drafts of 2026-07-28 gave to what is now -32021 and -32022. Implementations use them for other things
too, so only the data tells. The third, -32001, has no data, and is a time-out with the TypeScript SDK: it passes."""

_FOUND_BY_URI = frozenset({"resources/read", "resources/subscribe", "resources/unsubscribe"})
"""Methods whose target is a resource."""

_LEAST, _MOST = -(2**31), 2**31 - 1
"""Codes that every reader can hold."""

_SHOWN = 200
"""Characters of a stranger's word in words of ours."""


@dataclass(frozen=True, slots=True)
class ErrorValue:
    """An error as a value.

    Attributes:
        code: Code of JSON-RPC.
        message: One sentence.
        data: What else the code carries, as JSON values or `Raw`; None for nothing.
    """

    code: int
    message: str
    data: object = None


@dataclass(frozen=True, slots=True)
class _Case:
    """What a translation looks at."""

    error: ErrorValue
    members: Mapping[str, Raw]
    """Members of ``data``; empty if it is no object."""
    about_resource: bool
    uri: str | None
    source: str
    target: str


def translated(frame: Frame, method: str, source: str, target: str, uri: str | None = None) -> ErrorValue:
    """An upstream's error as a host of another revision understands it.

    Args:
        frame: The error, opened or not.
        method: Method of the request that it answers.
        source: Revision in force with the upstream.
        target: Revision in force with the host.
        uri: The URI of the request as the host says it; takes the place of the upstream's in ``data``.

    Returns:
        The error to write; -32603 for one that is malformed.
    """
    error = _read(frame)
    if isinstance(error, str):
        return ErrorValue(INTERNAL, f"The upstream answered {_clean(method)} with a malformed error: {error}")
    case = _Case(error, _members(error.data), method in _FOUND_BY_URI, uri, source, target)
    handler = _CODES.get(error.code)
    return handler(case) if handler else error


def code(frame: Frame) -> int | None:
    """The code of an error as it came; None if it is malformed."""
    error = _read(frame)
    return None if isinstance(error, str) else error.code


def data_of(frame: Frame) -> Mapping[str, Raw]:
    """The members of ``data`` of an error as it came; none where it has no object there or is malformed."""
    error = _read(frame)
    return {} if isinstance(error, str) else _members(error.data)


def http_status(code: int, era: Era | None, *, about_meta: bool = False) -> int:
    """The HTTP status of a response that is this error.

    Args:
        code: Code of the error.
        era: Era of the message that it answers; None if there was no message.
        about_meta: Whether a -32602 is about ``_meta`` that is missing or malformed.
    """
    if era is Era.LEGACY:
        return 200
    if era is None:
        return 400
    return 400 if about_meta and code == BAD_PARAMS else HTTP_STATUS.get(code, 200)


HTTP_STATUS: Mapping[int, int] = {
    NOT_JSON: 400,
    NOT_A_MESSAGE: 400,
    METHOD_NOT_FOUND: 404,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
}
"""Status of a modern error that ends a request; 200 for codes that are not here. Legacy errors are 200: a status of
404 there would say that the session is gone."""


def not_supported(method: str, capability: str) -> ErrorValue:
    """The refusal of a method whose capability is not declared to this host.

    Args:
        method: What was asked.
        capability: The capability that gates it, as its path: ``tools``, ``resources.subscribe``.
    """
    message = f"Method not found: {_clean(method)} ({capability} not supported)"
    return ErrorValue(METHOD_NOT_FOUND, message, {"capability": capability})


def unknown_method(method: str) -> ErrorValue:
    """The refusal of a method that nobody knows."""
    return ErrorValue(METHOD_NOT_FOUND, f"Unknown method: {_clean(method)}")


def unknown_name(sort: str, name: str) -> ErrorValue:
    """The error for a name that no upstream has.

    Args:
        sort: ``tool`` or ``prompt``.
        name: What the host asked for.
    """
    return ErrorValue(BAD_PARAMS, f"Unknown {sort}: {_clean(name)}")


def resource_not_found(uri: str, target: str) -> ErrorValue:
    """The error for a resource that nobody has, in the code of the host's revision.

    Args:
        uri: What the host asked for.
        target: Revision in force with the host.
    """
    code = RESOURCE_NOT_FOUND if _defines(target, RESOURCE_NOT_FOUND) else BAD_PARAMS
    return ErrorValue(code, "Resource not found", {"uri": uri})


def _read(frame: Frame) -> ErrorValue | str:
    """The error as a value, or what is wrong with it."""
    frame_or_bad = opened(frame)
    if isinstance(frame_or_bad, Bad):
        return frame_or_bad.reason
    parts = frame_or_bad.parts or {}
    try:
        code = msgspec.json.decode(parts.get("code", b""), type=int)
        message = msgspec.json.decode(parts.get("message", b""), type=str)
    except msgspec.DecodeError:
        return "code: an integer, and message: a text belong here"
    if not _LEAST <= code <= _MOST:
        return "code: an integer of 32 bits belongs here"
    data = parts.get("data")
    return ErrorValue(code, message, None if data is None or data == Raw(b"null") else data)


def _members(data: object) -> Mapping[str, Raw]:
    if not isinstance(data, Raw):
        return {}
    try:
        return msgspec.json.decode(data, type=dict[str, Raw])
    except msgspec.DecodeError:
        return {}


def _clean(word: str) -> str:
    """A stranger's word for words of ours: short, and without what a terminal would obey."""
    shown = word if len(word) <= _SHOWN else f"{word[:_SHOWN]}..."
    return "".join(letter if letter.isprintable() else "?" for letter in shown)


@cache
def _defines(revision: str, code: int) -> bool:
    return any(error.code == code for error in register().errors_at(revision))


def _not_found(case: _Case) -> ErrorValue:
    """A resource that does not exist: an upstream of any revision may say it in the way of any."""
    if not case.about_resource:
        return case.error
    code = RESOURCE_NOT_FOUND if _defines(case.target, RESOURCE_NOT_FOUND) else BAD_PARAMS
    data: dict[str, object] = dict(case.members)
    if case.uri is not None:
        data["uri"] = case.uri
    return ErrorValue(code, case.error.message, data or case.error.data)


def _bad_params(case: _Case) -> ErrorValue:
    """-32602 about a resource. Where it is the only code for that, there is hardly another reason."""
    only = not _defines(case.source, RESOURCE_NOT_FOUND) and case.error.data is None
    return _not_found(case) if only or "uri" in case.members else case.error


def _missing_capability(case: _Case) -> ErrorValue:
    code = MISSING_CAPABILITY if _defines(case.target, MISSING_CAPABILITY) else NOT_A_MESSAGE
    return replace(case.error, code=code)


def _url_required(case: _Case) -> ErrorValue:
    return case.error if _defines(case.target, URL_REQUIRED) else replace(case.error, code=INTERNAL)


def _between_us(words: str) -> Callable[[_Case], ErrorValue]:
    return lambda _case: ErrorValue(INTERNAL, words)


_headers_differ = _between_us("The gateway and the upstream disagree about the headers of this request")
_version_refused = _between_us("The upstream no longer speaks the protocol revision that it offered to the gateway")


def _draft_capability(case: _Case) -> ErrorValue:
    return _missing_capability(case) if "requiredCapabilities" in case.members else case.error


def _draft_version(case: _Case) -> ErrorValue:
    return _version_refused(case) if {"supported", "requested"} <= case.members.keys() else case.error


_CODES: Mapping[int, Callable[[_Case], ErrorValue]] = {
    BAD_PARAMS: _bad_params,
    RESOURCE_NOT_FOUND: _not_found,
    DRAFT_CAPABILITY: _draft_capability,
    DRAFT_VERSION: _draft_version,
    HEADER_MISMATCH: _headers_differ,
    MISSING_CAPABILITY: _missing_capability,
    UNSUPPORTED_VERSION: _version_refused,
    URL_REQUIRED: _url_required,
}
"""The codes that not every revision takes the same way. All others pass."""
