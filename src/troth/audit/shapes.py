"""The members that an answer must have to deliver anything: judged by type, never by the mere absence of an error.

Only what delivers counts here; unknown members are welcome. Source: schema of each revision, `required` of the result.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from troth.register import Era


class _Tool(msgspec.Struct):
    name: str
    inputSchema: dict[str, Any]  # noqa: N815


class _Tools(msgspec.Struct):
    tools: list[_Tool]


class _Prompt(msgspec.Struct):
    name: str


class _Prompts(msgspec.Struct):
    prompts: list[_Prompt]


class _Resource(msgspec.Struct):
    uri: str
    name: str


class _Resources(msgspec.Struct):
    resources: list[_Resource]


class _Template(msgspec.Struct):
    uriTemplate: str  # noqa: N815
    name: str


class _Templates(msgspec.Struct):
    resourceTemplates: list[_Template]  # noqa: N815


class _Content(msgspec.Struct):
    uri: str


class _Read(msgspec.Struct):
    contents: list[_Content]


class _Messages(msgspec.Struct):
    messages: list[dict[str, Any]]


class _Block(msgspec.Struct):
    type: str


class _Call(msgspec.Struct):
    content: list[_Block]


class _Values(msgspec.Struct):
    values: Annotated[list[str], Meta(max_length=100)]


class _Completion(msgspec.Struct):
    completion: _Values


class _TaskStatus(msgspec.Struct):
    taskId: str  # noqa: N815
    status: str


class _Tasks(msgspec.Struct):
    tasks: list[_TaskStatus]


class _Created(msgspec.Struct):
    task: _TaskStatus


SHAPES: dict[str, type[msgspec.Struct] | type[dict[str, Any]]] = {
    "tools/list": _Tools,
    "tools/call": _Call,
    "prompts/list": _Prompts,
    "prompts/get": _Messages,
    "resources/list": _Resources,
    "resources/templates/list": _Templates,
    "resources/read": _Read,
    "completion/complete": _Completion,
    "tasks/list": _Tasks,
    "tasks/create": _Created,
    "tasks/get": _TaskStatus,
    "logging/setLevel": dict[str, Any],
    "resources/subscribe": dict[str, Any],
    "resources/unsubscribe": dict[str, Any],
}
"""Result types by method; `tasks/create` is the task handed out in place of a result."""

CACHEABLE = frozenset(
    {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    }
)
"""Methods whose modern results must say how long and for whom they may be cached."""


def problem(method: str, result: object) -> str:
    """What keeps ``result`` from delivering what ``method`` promises; empty if nothing does."""
    shape = SHAPES.get(method)
    if shape is None:
        return ""
    try:
        msgspec.convert(result, shape)
    except (msgspec.ValidationError, RecursionError) as error:
        return str(error) or type(error).__name__
    return ""


MODERN_MEMBERS = ("resultType", "ttlMs", "cacheScope")
"""Members of results that legacy revisions do not define."""


def foreign_members(era: Era, result: object) -> tuple[str, ...]:
    """Members of a legacy result that only modern revisions define."""
    if era is Era.MODERN or not isinstance(result, dict):
        return ()
    return tuple(member for member in MODERN_MEMBERS if member in result)


def missing_members(method: str, era: Era, result: object) -> tuple[str, ...]:
    """Members that the modern schema requires beside the payload and that ``result`` lacks."""
    if era is not Era.MODERN or not isinstance(result, dict):
        return ()
    wanted = MODERN_MEMBERS if method in CACHEABLE else ("resultType",)
    return tuple(member for member in wanted if member not in result)
