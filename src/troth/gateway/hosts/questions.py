"""Questions for people over HTTP: listed and settled by the operator's own command (`troth questions`).

``GET /questions`` lists what waits; ``?all`` also what was settled lately, ``?watch`` says that somebody watches.
``POST /questions`` settles one: ``id``, ``action`` (``accept``, ``decline``, ``cancel``), and ``content`` to accept.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import parse_qs

import msgspec

from troth.gateway.hosts.asgi import CLOSE, JSON, respond

if TYPE_CHECKING:
    from troth.gateway.broker import Broker
    from troth.gateway.hosts.asgi import Receive, Scope, Send

PATH: Final = "/questions"
LARGEST: Final = 1024 * 1024
"""Bytes of the largest answer."""
PATIENCE: Final = 10.0
"""Seconds in which the body must come."""


async def serve_questions(broker: Broker, scope: Scope, receive: Receive, send: Send) -> None:
    """Answers one request of the operator, whose credential was looked at."""
    from troth.tasks.model import StoreError

    try:
        status, value = await (_listed(broker, scope) if scope["method"] == "GET" else _settled(broker, receive))
    except StoreError as error:
        status, value = 503, {"error": str(error)}
    # What is left of a body that was not read is not waited for.
    headers = (JSON, CLOSE) if status == 400 else (JSON,)
    await respond(send, status, msgspec.json.encode(value), headers)


async def _listed(broker: Broker, scope: Scope) -> tuple[int, object]:
    from troth.gateway.broker import as_told

    asked = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    if "watch" in asked:
        broker.watch()
    return 200, {"questions": [as_told(one) for one in await broker.pending(settled="all" in asked)]}


async def _settled(broker: Broker, receive: Receive) -> tuple[int, object]:
    from troth.gateway.broker import Pending, act, as_told

    said = await _body(receive)
    if isinstance(said, str):
        return 400, {"error": said}
    name = said.get("id")
    done = await act(broker, name, said) if isinstance(name, str) else "id: a text belongs here"
    return (200, {"question": as_told(done)}) if isinstance(done, Pending) else (409, {"error": done})


async def _body(receive: Receive) -> dict[str, Any] | str:
    data = bytearray()
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return "the request was given up"
                data += message.get("body", b"")
                if len(data) > LARGEST:
                    return f"the answer is larger than {LARGEST} bytes"
                if not message.get("more_body", False):
                    break
        value = msgspec.json.decode(data)
    except TimeoutError:
        return "the body did not come in time"
    except msgspec.DecodeError:
        return "the body is no JSON"
    return cast("dict[str, Any]", value) if isinstance(value, dict) else "an object belongs here"
