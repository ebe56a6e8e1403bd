"""Spoils what an honest server says, reproducibly: wrong types, odd texts, strange members, messages unasked for."""

from __future__ import annotations

import copy
from random import Random
from typing import TYPE_CHECKING, Any

from troth.testing import Script, Send
from troth.testing.stdio import CONTEXT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from memory import Server

DEEP: list[Any] = []
for _ in range(100):
    DEEP = [DEEP]
ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        2**63,
        -(2**63),
        10**4000,
        1.5,
        1e308,
        [],
        {},
        [[]],
        [{}],
        {"": {}},
        [None],
        ["x"],
        DEEP,
    ),
    *("", "x", "a\0b", "\x1b[2J\x1b]0;owned\x07", "\u202egnp", "<script>alert(1)</script>", "\u2028", "x" * 5000),
    *("tools/list", "input_required", "task", "completed", "form", "url", "public", "required", "optional", "ui://x"),
    *("{", "{a", "{+a*,b:3}{", "1900-01-01", -32601, -32602, -32021, {"name": ["x"]}, [{"name": 1}], [1, "a", None]),
)
"""Values of every type that are in no place what belongs there."""
MEMBERS = (
    *("ref", "mode", "taskId", "task", "_meta", "inputRequests", "requestState", "resultType", "nextCursor", "uri"),
    *("annotations", "execution", "code", "data", "message", "error", "result", "id", "method", "params", "level"),
    *("capabilities", "requiredCapabilities", "includeContext", "tools", "toolChoice", "notifications", "cacheScope"),
    *("required", "arguments", "status", "supported", "requested", "extensions", "experimental", "tasks", "serverInfo"),
)
NOTIFICATIONS = (
    *("notifications/message", "notifications/tools/list_changed", "notifications/resources/updated"),
    *("notifications/subscriptions/acknowledged", "notifications/progress", "notifications/cancelled", "x"),
)
REQUESTS = ("roots/list", "sampling/createMessage", "elicitation/create", "ping", "tasks/list", "x")
TAG = "io.modelcontextprotocol/subscriptionId"


def spoilt(seed: int) -> Callable[[], Server]:
    """Makes servers, one per connection, that differ by the seed in how much they spoil."""
    mood = Random(seed)
    rate, noise, silence = mood.choice((0.05, 0.2, 0.5, 1)), mood.choice((0, 0.05, 0.3)), mood.choice((0, 0, 0.02))
    variant = mood.choice(("full", "full", "asker", "ui", "empty"))
    death = mood.choice((0, 0, 0.01))
    made = iter(range(1_000))

    def make() -> Server:
        random, script = Random(f"{seed}.{next(made)}"), Script(variant=variant)

        def server(message: Any) -> Iterator[Any]:
            if random.random() < death:
                raise EOFError
            opens = message.get("method") in ("initialize", "server/discover")
            for out in (*script.feed(message, CONTEXT), *script.release()):
                if random.random() < noise:
                    yield _unasked(random)
                # Most openings stay whole, or nothing behind them would be reached.
                spoils = random.random() < (rate / 5 if opens else rate)
                if isinstance(out, Send) and random.random() >= silence:
                    yield _spoil(random, copy.deepcopy(out.message)) if spoils else out.message

        return server

    return make


def _odd(random: Random) -> Any:
    return copy.deepcopy(random.choice(ODD))


def _spoil(random: Random, message: Any) -> Any:
    holders = [(holder, key) for holder, key in _places(message) if key != "jsonrpc"]
    holder, key = random.choice(holders)
    match random.randrange(6):
        case 0:
            del holder[key]
        case 1:
            holder[key] = [holder[key]]
        case 2 if isinstance(holder[key], dict):
            holder[key][random.choice(MEMBERS)] = _odd(random)
        case _:
            holder[key] = _odd(random)
    return message


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key, member in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield value, key
        yield from _places(member)


def _unasked(random: Random) -> Any:
    params = {random.choice(MEMBERS): _odd(random) for _ in range(3)} | {"_meta": {TAG: _odd(random)}}
    params = params if random.random() < 0.7 else _odd(random)
    match random.randrange(4):
        case 0:
            return {"jsonrpc": "2.0", "method": random.choice(NOTIFICATIONS), "params": params}
        case 1 | 2:
            return {"jsonrpc": "2.0", "id": _odd(random), "method": random.choice(REQUESTS), "params": params}
        case _:
            return {"id": _odd(random), random.choice(("result", "error")): _odd(random)}
