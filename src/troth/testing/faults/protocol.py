"""Faults of the protocol itself: eras, versions, codes, ids, order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.register import Era, Side, register
from troth.testing.faults.hooks import ALL, LEGACY, MODERN, Fault, edit_result, fault, instead, lax, refuse, rewrite
from troth.testing.model import SILENT, Exit, Junk, Refusal, Send, Twist

if TYPE_CHECKING:
    from collections.abc import Callable

    from troth.testing.model import Answer, Call, JsonObject, Out
    from troth.testing.script import Script

_OLDEST = LEGACY[0]


def _unknown(call: Call) -> bool:
    return register().method(call.method, call.revision) is None


def _on_unknown(answer: Answer) -> Callable[[Script, Call], Answer | None]:
    return lambda _script, call: answer if _unknown(call) else None


def _answers_notifications(_script: Script, call: Call | None, outs: list[Out]) -> list[Out]:
    if call is None or call.id is not None or register().method(call.method, call.revision):
        return outs
    error: JsonObject = {"code": -32601, "message": "Method not found"}
    return [*outs, Send({"jsonrpc": "2.0", "id": 0, "error": error}, call.stream)]


def _oldest(_script: Script, call: Call) -> Answer | None:
    if call.method == "initialize":
        call.params["protocolVersion"] = _OLDEST
    return None


def _echo(call: Call, result: JsonObject) -> None:
    if call.session:
        result["protocolVersion"] = call.params["protocolVersion"]


def _refuse_version(_script: Script, call: Call) -> Answer | None:
    wanted = call.params.get("protocolVersion")
    if call.method != "initialize" or wanted in LEGACY:
        return None
    return Refusal(-32022, "Unsupported protocol version", {"supported": list(LEGACY), "requested": wanted})


def _refuse_strange_clients(_script: Script, call: Call) -> Answer | None:
    declared = call.params.get("capabilities", {}) if call.method == "initialize" else call.capabilities
    known = {row.key[0] for row in register().rows if row.side is Side.CLIENT}
    strange = sorted(set(declared) - known)
    return Refusal(-32602, f"Unknown client capabilities: {', '.join(strange)}") if strange else None


def _no_version_data(_script: Script, _call: Call | None, message: JsonObject) -> JsonObject:
    if message.get("error", {}).get("code") == -32022:
        message["error"].pop("data", None)
    return message


def _without(*members: str) -> Twist:
    def edit(_call: Call, result: JsonObject) -> None:
        for member in members:
            result.pop(member, None)

    return Twist(after=edit_result(edit))


def _modern_members(call: Call, result: JsonObject) -> None:
    if call.era is Era.LEGACY:
        result["resultType"] = "complete"


def _malformed_discovery(_call: Call, result: JsonObject) -> None:
    for member in ("supportedVersions", "resultType", "ttlMs", "cacheScope"):
        result.pop(member, None)


def _id(change: Callable[[object], object]) -> Twist:
    def rule(_script: Script, call: Call | None, message: JsonObject) -> JsonObject:
        if call and "method" not in message and "id" in message:
            message["id"] = change(message["id"])
        return message

    return Twist(after=rewrite(rule))


def _twice(_script: Script, _call: Call | None, outs: list[Out]) -> list[Out]:
    doubled: list[Out] = []
    for out in outs:
        answer = isinstance(out, Send) and "method" not in out.message
        doubled += [out, out] if answer else [out]
    return doubled


def _later(script: Script, _call: Call | None, outs: list[Out]) -> list[Out]:
    held = [out for out in outs if isinstance(out, Send) and "method" not in out.message]
    script.held += held
    return [out for out in outs if out not in held]


def _hang(method: str) -> Twist:
    return Twist(instead=instead(method, answer=SILENT))


def _die(method: str) -> Twist:
    return Twist(after=lambda _script, call, outs: [Exit(3)] if call and call.method == method else outs)


def _cut(method: str) -> Twist:
    """Dies in the middle of the answer."""

    def hook(_script: Script, call: Call | None, outs: list[Out]) -> list[Out]:
        return [Junk('{"jsonrpc": "2.0", "id"', call.stream), Exit(3)] if call and call.method == method else outs

    return Twist(after=hook)


def _flood(count: str) -> Twist:
    note: JsonObject = {"jsonrpc": "2.0", "method": "notifications/progress"}

    def hook(_script: Script, call: Call | None, outs: list[Out]) -> list[Out]:
        if call is None or call.method != "tools/list":
            return outs
        return [
            *(Send({**note, "params": {"progressToken": n, "progress": n}}, call.stream) for n in range(int(count))),
            *outs,
        ]

    return Twist(after=hook)


FAULTS: tuple[Fault, ...] = (
    Fault(
        name="unknown-method-wrong-code",
        row="",
        revisions=ALL,
        description="Refuses unknown methods with another code than -32601.",
        make=lambda code: Twist(instead=_on_unknown(Refusal(int(code), "Invalid request parameters"))),
        finding="protocol.unknown-method",
        value="-32602",
    ),
    fault(
        "refuses-unknown-client-capabilities",
        "",
        ALL,
        "Refuses a client that declares a capability which no revision defines.",
        Twist(instead=_refuse_strange_clients),
        finding="declaration.client-refused",
    ),
    fault(
        "unknown-method-unanswered",
        "",
        ALL,
        "Never answers an unknown method.",
        Twist(instead=_on_unknown(SILENT)),
        finding="protocol.unknown-method",
    ),
    fault(
        "unknown-method-accepted",
        "",
        ALL,
        "Answers unknown methods with an empty result.",
        Twist(instead=_on_unknown({})),
        finding="protocol.unknown-method",
    ),
    fault(
        "unknown-notification-answered",
        "",
        ALL,
        "Answers an unknown notification.",
        Twist(after=_answers_notifications),
        finding="protocol.notification-answered",
    ),
    fault(
        "discover-malformed",
        "",
        MODERN,
        "Answers server/discover without supportedVersions, resultType, ttlMs and cacheScope.",
        Twist(after=edit_result(_malformed_discovery, "server/discover")),
        finding="era.discover-malformed",
    ),
    fault(
        "discover-silent",
        "",
        MODERN,
        "Never answers server/discover.",
        Twist(instead=instead("server/discover", answer=SILENT)),
        finding="era.discover-silent",
    ),
    Fault(
        name="discover-wrong-error",
        row="",
        revisions=MODERN,
        description="Refuses server/discover with a code that says nothing of eras.",
        make=lambda code: Twist(instead=refuse("server/discover", code=int(code))),
        finding="not-served",
        value="-32602",
    ),
    fault(
        "always-old-version",
        "",
        LEGACY[1:],
        "Answers every initialize with the oldest revision.",
        Twist(instead=_oldest),
        finding="negotiation.other-version",
    ),
    fault(
        "accepts-1900",
        "",
        (LEGACY[-1], *MODERN),
        "Agrees to protocol versions that do not exist.",
        Twist(lax=frozenset({"version"}), after=edit_result(_echo, "initialize")),
        finding="negotiation.unknown-version",
    ),
    fault(
        "initialize-refuses-version",
        "",
        LEGACY[-1:],
        "Refuses initialize with an unknown version with -32022, where it must offer one of its own.",
        Twist(instead=_refuse_version),
        finding="negotiation.unknown-version",
    ),
    fault(
        "unsupported-version-without-data",
        "",
        MODERN,
        "Refuses an unknown version with -32022 and does not say which ones it has.",
        Twist(after=rewrite(_no_version_data)),
        finding="negotiation.unknown-version",
    ),
    fault(
        "missing-meta-accepted",
        "",
        MODERN,
        "Answers a request whose _meta lacks the client capabilities or the version.",
        lax("meta"),
        finding="modern.meta-not-required",
    ),
    fault(
        "result-type-missing",
        "",
        MODERN,
        "Leaves resultType out of every result.",
        _without("resultType"),
        finding="result.members",
    ),
    fault(
        "cache-members-missing",
        "",
        MODERN,
        "Leaves ttlMs and cacheScope out of every result.",
        _without("ttlMs", "cacheScope"),
        finding="result.members",
    ),
    fault(
        "result-members-of-other-revisions",
        "",
        LEGACY,
        "Puts resultType into results of revisions that do not have it.",
        Twist(after=edit_result(_modern_members)),
        finding="result.leaked-member",
    ),
    fault("id-null", "", ALL, "Answers every request with a null id.", _id(lambda _: None), finding="protocol.null-id"),
    fault(
        "wrong-id",
        "",
        ALL,
        "Answers every request with an id that nobody sent.",
        _id(lambda _: "nobody-sent-this"),
        finding="protocol.stray",
    ),
    fault("id-as-string", "", ALL, "Answers numbers as strings in the id.", _id(str), finding="protocol.stray"),
    fault("duplicate-answer", "", ALL, "Answers every request twice.", Twist(after=_twice), finding="protocol.stray"),
    fault(
        "out-of-order",
        "",
        ALL,
        "Answers requests that wait together in the reverse order, which is allowed.",
        Twist(after=_later),
        transport="stdio",
        verdict="kept",
    ),
    Fault(
        name="hang",
        row="",
        revisions=ALL,
        description="Never answers the named method.",
        make=_hang,
        finding="protocol.hangs",
        value="tools/list",
    ),
    Fault(
        name="dies-on",
        row="",
        revisions=ALL,
        description="Ends without a word when the named method is asked.",
        make=_die,
        finding="process.died",
        value="tools/list",
    ),
    Fault(
        name="dies-inside",
        row="",
        revisions=ALL,
        description="Ends in the middle of the answer to the named method.",
        make=_cut,
        finding="process.died",
        transport="stdio",
        value="tools/list",
    ),
    Fault(
        name="flood",
        row="",
        revisions=ALL,
        description="Sends this many notifications that nobody asked for ahead of the answer to tools/list.",
        make=_flood,
        finding="protocol.flood",
        value="30000",
    ),
)
