"""Calls whose hosts can be asked, and what passes in them, for scripts and models."""

from __future__ import annotations

import json
from typing import Any

from troth.bridge import Frame, Id, read, rewrite, written
from troth.bridge.asks import ROWS, Asks
from troth.bridge.exchange import Exchange
from troth.bridge.exchange_model import (
    AnswerUpstream,
    AskHost,
    Called,
    Command,
    Finish,
    HostAnswered,
    HostCalled,
    HostRetried,
    Park,
    Refuse,
    Round,
    SendHost,
    SendUpstream,
    UpstreamAnswered,
    UpstreamAsked,
)
from troth.bridge.questions import Question, read_request
from troth.register import Era, register

LEGACY = register().newest(Era.LEGACY)
MODERN = register().newest(Era.MODERN)
FORMS_ONLY = register().revisions[2]
BY_ERA = {Era.LEGACY: LEGACY, Era.MODERN: MODERN}

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "default": 7}}}
FORM = ("elicitation/create", {"message": "Who?", "requestedSchema": SCHEMA})
URL = ("elicitation/create", {"mode": "url", "message": "Go", "url": "https://a.example", "elicitationId": "e1"})
SAMPLING = ("sampling/createMessage", {"messages": [], "maxTokens": 5})
TOOLS = ("sampling/createMessage", {"messages": [], "maxTokens": 5, "tools": []})
ROOTS = ("roots/list", {})
ACCEPTED = {"action": "accept", "content": {"name": "Ann"}}
FILLED = {"action": "accept", "content": {"name": "Ann", "age": 7}}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}
FOLDERS = {"roots": [{"uri": "file:///a"}]}
ANSWERS = {FORM[0]: ACCEPTED, SAMPLING[0]: SAMPLED, ROOTS[0]: FOLDERS}


def frame(**members: Any) -> Frame:
    made = read(json.dumps({"jsonrpc": "2.0", **members}).encode())
    assert isinstance(made, Frame), made
    return made


def called(host: Era | str, upstream: Era | str, **changes: Any) -> Called:
    """A call of a host to an upstream, each given by its era or revision; by default the host can be asked all."""
    params = {"name": "files_t", "arguments": {"a": 1}, **changes.pop("asked", {})}
    method = changes.pop("method", "tools/call")
    return Called(
        frame=frame(id=changes.pop("id", 7), method=method, params=params),
        host_revision=BY_ERA[host] if isinstance(host, Era) else host,
        upstream="files",
        upstream_revision=BY_ERA[upstream] if isinstance(upstream, Era) else upstream,
        **{"asks": ROWS, "mark": "call", "params": {"name": "t"}, **changes},
    )


def opened(host: Era | str, upstream: Era | str, **changes: Any) -> Exchange:
    """An exchange whose request was sent."""
    exchange = Exchange(called(host, upstream, **changes))
    (command,) = exchange.handle(HostCalled())
    assert isinstance(command, SendUpstream)
    return exchange


def asks(question: tuple[str, Any], identity: Id = 1) -> UpstreamAsked:
    """A legacy upstream asks."""
    method, params = question
    return UpstreamAsked(frame(id=identity, method=method, params=params))


def question_of(question: tuple[str, Any], identity: Id = 1) -> Question:
    """What a legacy upstream asked outside of calls."""
    made = read_request(asks(question, identity).frame, LEGACY, "outside")
    assert isinstance(made, Question), made
    return made


def requires(entries: dict[str, tuple[str, Any]], state: Any = "S") -> UpstreamAnswered:
    """A modern upstream asks."""
    result: dict[str, Any] = {"resultType": "input_required"}
    if entries:
        result["inputRequests"] = {
            key: {"method": method, "params": params} for key, (method, params) in entries.items()
        }
    if state is not None:
        result["requestState"] = state
    return UpstreamAnswered(frame(id=1, result=result))


def result(**members: Any) -> UpstreamAnswered:
    return UpstreamAnswered(frame(id=1, result={"content": [], **members}))


def replied(key: str, value: Any) -> HostAnswered:
    """A legacy host answers with a result."""
    return HostAnswered(key, frame(id=5, result=value))


def failed(key: str, code: int = -1, message: str = "no") -> HostAnswered:
    """A legacy host answers with an error."""
    return HostAnswered(key, frame(id=5, error={"code": code, "message": message}))


def retry(number: int, responses: Any = None, identity: Id = 8, token: Id | None = None, **changes: Any) -> HostRetried:
    """A modern host comes again."""
    params: dict[str, Any] = {"name": "files_t", "arguments": {"a": 1}, "requestState": "sealed"}
    if responses is not None:
        params["inputResponses"] = responses
    if token is not None:
        params["_meta"] = {"progressToken": token}
    given: Asks = changes.pop("asks", ROWS)
    return HostRetried(frame(id=identity, method="tools/call", params=params), number, given, **changes)


def heard(command: Command) -> Any:
    """What an upstream hears to its request."""
    assert isinstance(command, AnswerUpstream), command
    message = json.loads(command.line)
    assert message["id"] == command.id
    return message.get("result", message.get("error"))


def sent(command: Command) -> Any:
    """The params that go to an upstream."""
    assert isinstance(command, SendUpstream), command
    out = command.outgoing
    line = rewrite(out.frame, id=0, params=out.params, drop=out.drop, meta=out.meta, drop_meta=out.drop_meta)
    return json.loads(line)["params"]


def finished(command: Command) -> Any:
    """The result or error that ends a call."""
    assert isinstance(command, Finish), command
    assert command.line is not None
    message = json.loads(command.line)
    assert command.code == message.get("error", {}).get("code")
    return message.get("result", message.get("error"))


def asked_of(command: Command) -> list[tuple[str, str, Any]]:
    """Key, method and params of what a legacy host is asked."""
    assert isinstance(command, AskHost), command
    return [
        (one.key, one.method, one.params and json.loads(json.dumps(plain(one.params)))) for one in command.questions
    ]


def round_of(command: Command) -> Round:
    """The round of a call that is parked, or that ends with questions."""
    assert isinstance(command, (Park, Finish)), command
    assert command.round is not None
    return command.round


def entries_of(command: Command) -> Any:
    return plain(round_of(command).entries)


def told(command: Command) -> Any:
    assert isinstance(command, SendHost), command
    return json.loads(command.line)


def refused(commands: tuple[Command, ...]) -> str:
    """What a retry hears that did not win."""
    (command,) = commands
    assert isinstance(command, Refuse), command
    error = json.loads(command.line)["error"]
    assert error["code"] == command.code == -32602
    return error["message"]


def plain(value: Any) -> Any:
    """A value with `Raw` in it as JSON values."""
    return json.loads(written(value))
