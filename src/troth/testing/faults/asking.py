"""Faults of asking: the server asks its client for what the client did not declare, or refuses wrongly to ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from troth.register import Era
from troth.testing.content import ASKING
from troth.testing.faults.hooks import ALL, MODERN, Fault, edit_result, fault, lax, put, rewrite, since
from troth.testing.model import Send, Twist

if TYPE_CHECKING:
    from troth.testing.model import Call, JsonObject, Out
    from troth.testing.script import Script

_ASKERS = frozenset(tool["name"] for tool in ASKING)
_MODES = since("elicitation.form")
_PLAIN_ELICITATION = tuple(revision for revision in since("elicitation") if revision not in _MODES)
_NO_ELICITATION = tuple(revision for revision in ALL if revision not in since("elicitation"))


def _undeclared(  # noqa: PLR0917
    name: str, kind: str, row: str, revisions: tuple[str, ...], what: str, verdict: str = "ungated"
) -> Fault:
    return fault(
        f"asks-{name}",
        row,
        revisions,
        f"Asks for {what}.",
        lax(f"ask-{kind}"),
        verdict=verdict,
        provoke=f"ask_{kind}",
    )


def _refused(call: Call | None, message: JsonObject) -> bool:
    return call is not None and message.get("error", {}).get("code") == -32021


def _no_data(_script: Script, call: Call | None, message: JsonObject) -> JsonObject:
    if _refused(call, message):
        message["error"].pop("data", None)
    return message


def _all_data(_script: Script, call: Call | None, message: JsonObject) -> JsonObject:
    if _refused(call, message):
        message["error"]["data"] = {"requiredCapabilities": ["roots"]}
    return message


def _other_code(_script: Script, call: Call | None, message: JsonObject) -> JsonObject:
    if _refused(call, message):
        message["error"]["code"] = -32603
    return message


def _as_request(_script: Script, call: Call | None, outs: list[Out]) -> list[Out]:
    made: list[Out] = []
    for out in outs:
        if not isinstance(out, Send) or call is None or call.era is Era.LEGACY:
            return outs
        result = cast("JsonObject", out.message.get("result", {}))
        asks = cast("dict[str, JsonObject]", result.get("inputRequests", {}))
        for key, asked in asks.items():
            made.append(Send({"jsonrpc": "2.0", "id": f"ask-{key}", **asked}, out.stream))
        if "inputRequests" not in result:
            made.append(out)
    return made


def _as_task(_script: Script, call: Call | None, message: JsonObject) -> JsonObject:
    undeclared = call is not None and "tasks" not in call.capabilities and call.era is Era.LEGACY
    if undeclared and message.get("method") == "sampling/createMessage":
        message["params"]["task"] = {"ttl": 60_000}
    return message


def _plain_list(call: Call, result: JsonObject) -> None:
    if call.era is Era.MODERN and "elicitation" not in call.capabilities:
        result["tools"] = [tool for tool in result["tools"] if tool["name"] not in _ASKERS]


def _asks_in_list(_script: Script, call: Call) -> JsonObject | None:
    if call.era is Era.LEGACY or call.method != "prompts/list" or "roots" not in call.capabilities:
        return None
    return {"resultType": "input_required", "inputRequests": {"question": {"method": "roots/list"}}}


def _asks_in(method: str) -> Twist:
    """Answers a method that may ask with a question, whatever the client declared."""

    def hook(_script: Script, call: Call) -> JsonObject | None:
        if call.method != method or "inputResponses" in call.params:
            return None
        return {"resultType": "input_required", "inputRequests": {"question": {"method": "roots/list"}}}

    return Twist(instead=hook)


def _client_member(member: str) -> Twist:
    return Twist(declare=put(member, value={}))


FAULTS: tuple[Fault, ...] = (
    _undeclared("undeclared-roots", "roots", "CAP-02", since("roots"), "roots of a client that declared none"),
    _undeclared(
        "undeclared-sampling", "sampling", "CAP-04", since("sampling"), "a message of a client without sampling"
    ),
    _undeclared(
        "undeclared-sampling-tools",
        "sampling_tools",
        "CAP-06",
        since("sampling.tools"),
        "a message with tools of a client without sampling.tools",
    ),
    _undeclared("undeclared-form", "form", "CAP-08", _MODES, "a form of a client without elicitation.form"),
    _undeclared("undeclared-url", "url", "CAP-09", _MODES, "a visit to a page of a client without elicitation.url"),
    _undeclared(
        "undeclared-elicitation", "form", "CAP-07", _PLAIN_ELICITATION, "a form of a client without elicitation"
    ),
    _undeclared(
        "elicitation-too-early", "form", "CAP-07", _NO_ELICITATION, "a form in a revision without elicitation", "leaked"
    ),
    fault(
        "asks-undeclared-context",
        "CAP-05",
        since("sampling.context"),
        "Asks for a message with context of a client without sampling.context.",
        lax("context"),
        verdict="ungated",
        provoke="ask_sampling_context",
    ),
    fault(
        "asks-undeclared-task",
        "CAP-10-sampling",
        since("tasks.requests.sampling.createMessage"),
        "Asks for a message as a task of a client that declared no tasks.",
        Twist(after=rewrite(_as_task)),
        verdict="ungated",
        provoke="ask_sampling",
    ),
    fault(
        "modern-missing-required-capabilities-data",
        "CAP-02",
        MODERN,
        "Refuses with -32021 and does not say which capabilities are missing.",
        Twist(after=rewrite(_no_data)),
        finding="modern.required-capabilities",
        provoke="ask_roots",
    ),
    fault(
        "modern-malformed-required-capabilities",
        "CAP-02",
        MODERN,
        "Refuses with -32021 and names the missing capabilities in a list, not in an object.",
        Twist(after=rewrite(_all_data)),
        finding="modern.required-capabilities",
        provoke="ask_roots",
    ),
    fault(
        "modern-gate-wrong-code",
        "CAP-02",
        MODERN,
        "Refuses a call that needs an undeclared capability with -32603, not with -32021.",
        Twist(after=rewrite(_other_code)),
        verdict="wrong-code",
        provoke="ask_roots",
    ),
    fault(
        "modern-server-request",
        "CAP-02",
        MODERN,
        "Asks by a request of its own, not by an input request.",
        Twist(after=_as_request),
        finding="protocol.request-in-modern",
        provoke="ask_roots",
    ),
    fault(
        "modern-asks-in-a-list",
        "CAP-02",
        MODERN,
        "Answers prompts/list with an input request.",
        Twist(instead=_asks_in_list),
        finding="input-required.wrong-method",
    ),
    fault(
        "modern-prompt-asks-undeclared-roots",
        "CAP-02",
        MODERN,
        "Asks for roots before it gives a prompt, of a client that declared none.",
        _asks_in("prompts/get"),
        verdict="ungated",
    ),
    fault(
        "modern-resource-asks-undeclared-roots",
        "CAP-02",
        MODERN,
        "Asks for roots before it gives a resource, of a client that declared none.",
        _asks_in("resources/read"),
        verdict="ungated",
    ),
    fault(
        "infers-capabilities-between-requests",
        "CAP-02",
        MODERN,
        "Takes the client capabilities of earlier requests for those of this one.",
        lax("no-inference"),
        finding="modern.infers",
        provoke="ask_roots",
    ),
    fault(
        "list-varies-public",
        "CAP-19",
        MODERN,
        "Lists fewer tools to a client that cannot be asked and calls the list public.",
        Twist(after=edit_result(_plain_list, "tools/list")),
        finding="cache.public-varies",
    ),
    Fault(
        name="sampling-in-server-capabilities",
        row="CAP-04",
        revisions=ALL,
        description="Declares a capability of clients (sampling, or the one named) among its own.",
        make=_client_member,
        verdict="leaked",
        value="sampling",
    ),
)
