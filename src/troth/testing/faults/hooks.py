"""The few bricks that faults are built of: each makes one hook of a `Twist`."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, cast

from troth.register import Era, register
from troth.testing.model import Call, Fault, Out, Refusal, Send, Twist

if TYPE_CHECKING:
    from collections.abc import Callable

    from troth.testing.model import Answer, Json, JsonObject
    from troth.testing.script import Script

    Declare = Callable[[Script, JsonObject, str], None]
    Instead = Callable[[Script, Call], Answer | None]
    After = Callable[[Script, Call | None, list[Out]], list[Out]]
    Rewrite = Callable[[Script, Call | None, JsonObject], JsonObject | None]

LEGACY = register().eras[Era.LEGACY]
MODERN = register().eras[Era.MODERN]
ALL = register().revisions


def since(path: str) -> tuple[str, ...]:
    """The revisions that define a capability path on either side."""
    rows = register().path(path)
    return tuple(revision for revision in ALL if any(row.at(revision) for row in rows))


def fixed(twist: Twist) -> Callable[[str], Twist]:
    """A maker for a fault that takes no value."""
    return lambda _value: twist


def fault(name: str, row: str, revisions: tuple[str, ...], description: str, twist: Twist, **more: Json) -> Fault:
    """A fault without a value."""
    return Fault(name=name, row=row, revisions=revisions, description=description, make=fixed(twist), **more)


def put(*path: str, value: Json) -> Declare:
    """Declares a value at a path; parents are made as needed."""

    def declare(_script: Script, shown: JsonObject, _revision: str) -> None:
        for name in path[:-1]:
            shown = shown.setdefault(name, {})
        shown[path[-1]] = deepcopy(value)

    return declare


def hide(*path: str) -> Declare:
    """Leaves a member out of the declaration."""

    def declare(_script: Script, shown: JsonObject, _revision: str) -> None:
        for name in path[:-1]:
            shown = shown.get(name, {})
        shown.pop(path[-1], None)

    return declare


def instead(*names: str, answer: Answer) -> Instead:
    """Gives one answer to some methods."""

    def hook(_script: Script, call: Call) -> Answer | None:
        return answer if call.method in names else None

    return hook


def refuse(*names: str, code: int = -32601) -> Instead:
    """Refuses some methods."""
    return instead(*names, answer=Refusal(code, "Refused"))


def rewrite(change: Rewrite) -> After:
    """Changes each message that goes out, or drops it (None)."""

    def hook(script: Script, call: Call | None, outs: list[Out]) -> list[Out]:
        made: list[Out] = []
        for out in outs:
            value: Json = out.message if isinstance(out, Send) else None
            if not isinstance(out, Send) or not isinstance(value, dict):
                made.append(out)
                continue
            message = change(script, call, deepcopy(cast("JsonObject", value)))
            if message is not None:
                made.append(Send(message, out.stream))
        return made

    return hook


def edit_result(change: Callable[[Call, JsonObject], None], *names: str) -> After:
    """Edits the results of some methods (all if none is named) in place."""

    def rule(_script: Script, call: Call | None, message: JsonObject) -> JsonObject:
        if call is None or message.get("id") != call.id or (names and call.method not in names):
            return message
        if isinstance(message.get("result"), dict):
            change(call, message["result"])
        return message

    return rewrite(rule)


def drop(*names: str) -> After:
    """Sends no notification of these names."""
    return rewrite(lambda _script, _call, message: None if message.get("method") in names else message)


def before(when: Callable[[Script, Call], bool], make: Callable[[Script, Call], list[JsonObject]]) -> After:
    """Sends messages ahead of the answer to some requests, on their stream."""

    def hook(script: Script, call: Call | None, outs: list[Out]) -> list[Out]:
        if call is None or call.id is None or not when(script, call):
            return outs
        extra: list[Out] = [Send({"jsonrpc": "2.0", **message}, call.stream) for message in make(script, call)]
        return [*extra, *outs]

    return hook


def chain(*hooks: After) -> After:
    """Several rewrites in a row."""

    def hook(script: Script, call: Call | None, outs: list[Out]) -> list[Out]:
        for each in hooks:
            outs = each(script, call, outs)
        return outs

    return hook


def lax(*checks: str) -> Twist:
    """Skips checks of the honest server."""
    return Twist(lax=frozenset(checks))
