"""Faults of what a server pushes: list changes, resource updates, ``subscriptions/listen``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.testing.faults.hooks import (
    ALL,
    LEGACY,
    MODERN,
    before,
    chain,
    drop,
    fault,
    hide,
    instead,
    put,
    refuse,
    rewrite,
)
from troth.testing.model import SUBSCRIPTION, Fault, Out, Send, Twist

if TYPE_CHECKING:
    from troth.testing.model import Call, JsonObject
    from troth.testing.script import Script

_ROWS = {"tools": "CAP-20", "prompts": "CAP-15", "resources": "CAP-18"}
_UPDATED = "notifications/resources/updated"
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_PUSHED = (*(f"notifications/{family}/list_changed" for family in _ROWS), _UPDATED)


def _on_call(_script: Script, call: Call) -> bool:
    return call.method == "tools/call"


def _touched(script: Script, call: Call) -> bool:
    return _on_call(script, call) and call.params.get("name") == "touch"


def _list_changed(family: str) -> tuple[Fault, ...]:
    row, method = _ROWS[family], f"notifications/{family}/list_changed"
    one = family.removesuffix("s")

    def grow(script: Script, _call: Call) -> list[JsonObject]:
        script.catalogue.add(family)
        return []

    def added(script: Script, call: Call) -> bool:
        return _on_call(script, call) and call.params.get("name") in (f"add_{one}", "grow")

    return (
        fault(
            f"{family}-list-changed-never-sent",
            row,
            ALL,
            f"Declares {family}.listChanged; its list grows with every call and nobody is told.",
            Twist(after=chain(before(_on_call, grow), drop(method))),
            verdict="broken",
            provoke="read_note",
        ),
        fault(
            f"{family}-list-changed-undeclared",
            row,
            ALL,
            f"Declares {family}.listChanged: false and sends the notification all the same.",
            Twist(declare=put(family, "listChanged", value=False)),
            verdict="undeclared",
            provoke=f"add_{one}",
        ),
        fault(
            f"{family}-list-changed-not-boolean",
            row,
            ALL,
            f"Declares {family}.listChanged as a string.",
            Twist(declare=put(family, "listChanged", value="yes")),
            verdict="malformed",
        ),
        fault(
            f"{family}-list-changed-unsolicited",
            row,
            MODERN,
            f"Announces a change of the {family} to a client that listens to nothing.",
            Twist(after=before(added, lambda _script, _call: [{"method": method}])),
            verdict="ungated",
            provoke=f"add_{one}",
        ),
    )


def _early(_script: Script, call: Call | None, outs: list[Out]) -> list[Out]:
    if call is None or call.method != "initialize":
        return outs
    return [Send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}, call.stream), *outs]


def _other_uri(_script: Script, _call: Call | None, message: JsonObject) -> JsonObject:
    if message.get("method") == _UPDATED:
        message["params"]["uri"] = "note://notes/other"
    return message


def _untagged(_script: Script, _call: Call | None, message: JsonObject) -> JsonObject:
    if message.get("method") in _PUSHED:
        message.get("params", {}).pop("_meta", None)
    return message


def _without(kind: str) -> Twist:
    def rule(script: Script, _call: Call | None, message: JsonObject) -> JsonObject:
        if message.get("method") == _ACKNOWLEDGED:
            message["params"]["notifications"].pop(kind, None)
            for listen in script.listens:
                listen.filter.pop(kind, None)
        return message

    return Twist(after=rewrite(rule))


def _late_ack(_script: Script, call: Call | None, outs: list[Out]) -> list[Out]:
    if call is None or call.method != "subscriptions/listen":
        return outs
    note: JsonObject = {"method": "notifications/tools/list_changed", "params": {"_meta": {SUBSCRIPTION: call.id}}}
    return [Send({"jsonrpc": "2.0", **note}, call.stream), *outs]


def _unasked(script: Script, call: Call | None, outs: list[Out]) -> list[Out]:
    if call and call.method == "subscriptions/listen":
        for listen in script.listens:
            listen.filter["promptsListChanged"] = True
    return outs


def _rpc(_script: Script, call: Call) -> JsonObject | None:
    return {} if call.method in ("resources/subscribe", "resources/unsubscribe") and call.session is None else None


_LISTENED = ("CAP-15", "CAP-17", "CAP-18")

FAULTS: tuple[Fault, ...] = (
    *(made for family in _ROWS for made in _list_changed(family)),
    fault(
        "list-changed-before-initialized",
        "CAP-20",
        LEGACY,
        "Sends notifications/tools/list_changed ahead of the answer to initialize.",
        Twist(after=_early),
        finding="protocol.early",
    ),
    fault(
        "subscribe-refused",
        "CAP-17",
        LEGACY,
        "Declares resources.subscribe and refuses resources/subscribe with -32601.",
        Twist(instead=refuse("resources/subscribe", "resources/unsubscribe")),
        verdict="broken",
    ),
    fault(
        "unsubscribe-refused",
        "CAP-17",
        LEGACY,
        "Declares resources.subscribe and refuses resources/unsubscribe with -32601.",
        Twist(instead=refuse("resources/unsubscribe")),
        verdict="partial",
    ),
    fault(
        "subscribe-undeclared-but-accepted",
        "CAP-17",
        ALL,
        "Declares resources.subscribe: false and takes subscriptions all the same.",
        Twist(declare=put("resources", "subscribe", value=False)),
        verdict="undeclared",
    ),
    fault(
        "subscribe-not-boolean",
        "CAP-17",
        ALL,
        "Declares resources.subscribe as an object.",
        Twist(declare=put("resources", "subscribe", value={})),
        verdict="malformed",
    ),
    fault(
        "subscribe-wrong-code",
        "CAP-17",
        LEGACY,
        "Does not declare resources.subscribe and refuses resources/subscribe with -32603.",
        Twist(
            declare=hide("resources", "subscribe"),
            instead=refuse("resources/subscribe", "resources/unsubscribe", code=-32603),
        ),
        verdict="wrong-code",
    ),
    fault(
        "updated-never-sent",
        "CAP-17",
        ALL,
        "Takes subscriptions and never sends an update.",
        Twist(after=drop(_UPDATED)),
        verdict="broken",
        provoke="touch",
    ),
    fault(
        "updated-without-subscribe",
        "CAP-17",
        ALL,
        "Sends an update of a resource that nobody watches.",
        Twist(
            after=before(
                _touched, lambda _script, _call: [{"method": _UPDATED, "params": {"uri": "note://notes/three"}}]
            )
        ),
        verdict="ungated",
        provoke="touch",
    ),
    fault(
        "updated-other-uri",
        "CAP-17",
        ALL,
        "Sends updates under another URI than the one watched.",
        Twist(after=rewrite(_other_uri)),
        verdict="broken",
        provoke="touch",
    ),
    fault(
        "modern-subscribe-rpc-still-served",
        "CAP-17",
        MODERN,
        "Answers resources/subscribe in a revision that removed it.",
        Twist(instead=_rpc),
        finding="method.removed-served",
    ),
    fault(
        "listen-refused",
        "CAP-20",
        MODERN,
        "Declares listChanged and subscribe and refuses subscriptions/listen with -32601.",
        Twist(instead=refuse("subscriptions/listen")),
        also=_LISTENED,
        verdict="broken",
    ),
    Fault(
        name="listen-ack-missing-kind",
        row="CAP-20",
        revisions=MODERN,
        description="Acknowledges a listen without the named kind, which it declares.",
        make=_without,
        verdict="broken",
        value="toolsListChanged",
    ),
    fault(
        "listen-untagged",
        "CAP-20",
        MODERN,
        "Sends notifications on a listen stream without the subscription id.",
        Twist(after=rewrite(_untagged)),
        also=_LISTENED,
        finding="listen.untagged",
        provoke="grow",
    ),
    fault(
        "listen-no-ack-first",
        "CAP-20",
        MODERN,
        "Sends a notification on a listen stream ahead of the acknowledgement.",
        Twist(after=_late_ack),
        also=_LISTENED,
        finding="listen.no-acknowledgement",
    ),
    fault(
        "listen-never-acknowledged",
        "CAP-20",
        MODERN,
        "Opens a listen stream and never acknowledges it.",
        Twist(after=drop(_ACKNOWLEDGED)),
        also=_LISTENED,
        verdict="broken",
    ),
    fault(
        "listen-unasked-kind",
        "CAP-15",
        MODERN,
        "Sends a kind of notification on a listen stream that did not ask for it.",
        Twist(after=_unasked),
        verdict="ungated",
        provoke="add_prompt",
    ),
    fault(
        "listen-answered-at-once",
        "CAP-20",
        MODERN,
        "Answers subscriptions/listen at once and so ends the stream.",
        Twist(instead=instead("subscriptions/listen", answer={"_meta": {}})),
        also=_LISTENED,
        verdict="broken",
    ),
)
