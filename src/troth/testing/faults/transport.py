"""Faults of the transports and of the process, and hostile text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.testing.faults.hooks import ALL, LEGACY, MODERN, Fault, edit_result, fault
from troth.testing.model import Junk, Out, Twist

if TYPE_CHECKING:
    from troth.testing.model import Call, JsonObject
    from troth.testing.script import Script

HOSTILE = "\x1b]0;owned\x07\x1b[31m<script>alert(1)</script>\u202e\x00| [x](javascript:1) \ud83d"
"""Terminal codes, markup, a change of direction, a NUL and half a surrogate pair."""
HUGE = 10**400
"""An integer that no machine word holds."""
DEPTH = 5_000
"""Nesting that breaks a careless parser."""


def _shell(*checks: str) -> Twist:
    return Twist(shell=frozenset(checks))


def _junk(text: str) -> Twist:
    def hook(_script: Script, call: Call | None, outs: list[Out]) -> list[Out]:
        return [Junk(text, call.stream), *outs] if call and call.id is not None else outs

    return Twist(after=hook)


def _long_line(size: str) -> Twist:
    def hook(_script: Script, call: Call | None, outs: list[Out]) -> list[Out]:
        return [Junk('"' + "x" * int(size) + '"', call.stream), *outs] if call and call.method == "tools/list" else outs

    return Twist(after=hook)


def _deep(_script: Script, call: Call | None, outs: list[Out]) -> list[Out]:
    return [Junk("[" * DEPTH + "]" * DEPTH, call.stream), *outs] if call and call.method == "tools/list" else outs


def _hostile(_call: Call, result: JsonObject) -> None:
    for tool in result["tools"]:
        tool["description"] = HOSTILE
    result["tools"].append({"name": HOSTILE, "inputSchema": {"type": "object", "maximum": HUGE}})


def _hostile_declaration(_script: Script, shown: JsonObject, _revision: str) -> None:
    shown[HOSTILE] = {"deep": HUGE}


def _differs(script: Script, shown: JsonObject, _revision: str) -> None:
    if script.transport == "http":
        shown.pop("prompts", None)


def _moody(script: Script, shown: JsonObject, _revision: str) -> None:
    if script.received % 2:
        shown.pop("prompts", None)


FAULTS: tuple[Fault, ...] = (
    fault(
        "junk-on-stdout",
        "",
        ALL,
        "Writes a line that is no JSON to standard output ahead of every answer.",
        _junk("INFO: not a message"),
        finding="protocol.junk",
        transport="stdio",
    ),
    fault(
        "bytes-on-stdout",
        "",
        ALL,
        "Writes bytes that are no UTF-8 to standard output ahead of every answer.",
        _junk("\udcff\udcfe"),
        finding="protocol.junk",
        transport="stdio",
    ),
    fault(
        "not-json-rpc",
        "",
        ALL,
        "Sends JSON values that are no messages ahead of every answer.",
        _junk("[1, {}]"),
        finding="protocol.junk",
        transport="stdio",
    ),
    fault(
        "deep-json",
        "",
        ALL,
        "Sends a value nested thousands deep ahead of the answer to tools/list.",
        Twist(after=_deep),
        finding="protocol.junk",
        transport="stdio",
    ),
    Fault(
        name="long-line",
        row="",
        revisions=ALL,
        description="Sends a line of this many bytes ahead of the answer to tools/list.",
        make=_long_line,
        finding="protocol.junk",
        transport="stdio",
        value=str(17 * 1024 * 1024),
    ),
    fault(
        "hostile-text",
        "",
        ALL,
        "Puts terminal codes, markup and huge numbers into names and descriptions.",
        Twist(declare=_hostile_declaration, after=edit_result(_hostile, "tools/list")),
        finding="declaration.unknown",
    ),
    fault(
        "does-not-start",
        "",
        ALL,
        "Ends at once with a reason on standard error.",
        _shell("start"),
        finding="did-not-start",
        transport="stdio",
    ),
    fault(
        "ignores-the-end",
        "",
        ALL,
        "Lives on after its input ended and ignores SIGTERM (two minutes at most).",
        _shell("end"),
        finding="process.lives-on",
        transport="stdio",
    ),
    fault(
        "leaves-a-child",
        "",
        ALL,
        "Starts a child that holds its output and outlives it (two minutes at most).",
        _shell("child"),
        finding="process.lives-on",
        transport="stdio",
    ),
    fault(
        "stdio-http-differ",
        "",
        ALL,
        "Does not declare prompts over HTTP.",
        Twist(declare=_differs),
        finding="declaration.transports-differ",
    ),
    fault(
        "declaration-changes",
        "",
        ALL,
        "Declares prompts at every other request only.",
        Twist(declare=_moody),
        finding="declaration.unstable",
    ),
    fault(
        "get-405-with-listchanged-no-session",
        "CAP-20",
        LEGACY,
        "Declares listChanged, answers GET with 405 and has no sessions: nothing can be pushed.",
        _shell("get", "session-id"),
        also=("CAP-15", "CAP-17", "CAP-18"),
        verdict="broken",
        transport="http",
    ),
    fault(
        "session-ignored",
        "",
        LEGACY,
        "Answers requests that name a session which does not exist.",
        _shell("session"),
        finding="http.session-ignored",
        transport="http",
    ),
    fault(
        "delete-ignored",
        "",
        LEGACY,
        "Accepts DELETE and keeps the session.",
        _shell("delete"),
        finding="http.session-not-ended",
        transport="http",
    ),
    fault(
        "session-on-modern",
        "",
        MODERN,
        "Hands out a session id to modern requests.",
        _shell("stateless"),
        finding="modern.session-id",
        transport="http",
    ),
    fault(
        "status-200-for-32021",
        "",
        MODERN,
        "Answers modern errors with HTTP status 200.",
        _shell("status"),
        finding="http.status",
        transport="http",
        provoke="ask_roots",
    ),
    fault(
        "missing-header-check",
        "",
        MODERN,
        "Takes requests whose headers are missing or disagree with the body.",
        _shell("headers"),
        finding="modern.header-unchecked",
        transport="http",
    ),
    fault(
        "unauthorized",
        "",
        ALL,
        "Answers everything with 401.",
        _shell("unauthorized"),
        finding="unreachable",
        transport="http",
    ),
    fault(
        "failing",
        "",
        ALL,
        "Answers everything with 503 and a page of HTML.",
        _shell("failing"),
        finding="unreachable",
        transport="http",
    ),
)
