"""Faults of logging, completions and ``experimental``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.register import Era
from troth.testing.content import MOST_VALUES
from troth.testing.faults.hooks import (
    ALL,
    LEGACY,
    MODERN,
    drop,
    edit_result,
    fault,
    hide,
    instead,
    lax,
    put,
    refuse,
    since,
)
from troth.testing.model import LEVELS, Twist

if TYPE_CHECKING:
    from troth.testing.model import Call, Fault, JsonObject
    from troth.testing.script import Script

_COMPLETIONS = since("completions")
_EARLY = tuple(revision for revision in ALL if revision not in _COMPLETIONS)
_ASK_COMPLETION = "completion/complete"


def _bad_level(_script: Script, call: Call) -> JsonObject | None:
    wrong = call.method == "logging/setLevel" and call.params.get("level") not in LEVELS
    return {} if wrong and call.era is Era.LEGACY else None


_LOGGING: tuple[Fault, ...] = (
    fault(
        "logging-refused",
        "CAP-12",
        LEGACY,
        "Declares logging, refuses logging/setLevel with -32601 and never logs.",
        Twist(instead=refuse("logging/setLevel"), after=drop("notifications/message")),
        verdict="broken",
    ),
    fault(
        "logging-setlevel-refused",
        "CAP-12",
        LEGACY,
        "Declares logging and sends messages, and refuses logging/setLevel with -32601.",
        Twist(instead=refuse("logging/setLevel")),
        verdict="partial",
        provoke="read_note",
    ),
    fault(
        "logging-undeclared-messages",
        "CAP-12",
        ALL,
        "Does not declare logging and sends log messages.",
        Twist(declare=hide("logging"), instead=refuse("logging/setLevel")),
        verdict="undeclared",
        provoke="read_note",
    ),
    fault(
        "logging-undeclared-but-served",
        "CAP-12",
        LEGACY,
        "Does not declare logging and answers logging/setLevel.",
        Twist(declare=hide("logging")),
        verdict="undeclared",
    ),
    fault(
        "logging-setlevel-wrong-code",
        "CAP-12",
        LEGACY,
        "Does not declare logging, never logs, and refuses logging/setLevel with -32603.",
        Twist(
            declare=hide("logging"),
            instead=refuse("logging/setLevel", code=-32603),
            after=drop("notifications/message"),
        ),
        verdict="wrong-code",
    ),
    fault(
        "logging-bad-level-accepted",
        "CAP-12",
        LEGACY,
        "Accepts a log level that does not exist.",
        Twist(instead=_bad_level),
        finding="logging.bad-level-accepted",
    ),
    fault(
        "logging-modern-without-loglevel",
        "CAP-12",
        MODERN,
        "Sends log messages for a request that named no log level.",
        lax("log-without-level"),
        verdict="ungated",
        provoke="read_note",
    ),
    fault(
        "logging-ignores-level",
        "CAP-12",
        ALL,
        "Sends log messages below the level that was asked for.",
        lax("log-level"),
        verdict="partial",
        provoke="read_note",
    ),
    fault(
        "logging-modern-setlevel-served",
        "CAP-12",
        MODERN,
        "Answers logging/setLevel in a revision that removed it.",
        Twist(instead=instead("logging/setLevel", answer={})),
        finding="method.removed-served",
    ),
    fault(
        "logging-not-an-object",
        "CAP-12",
        ALL,
        "Declares logging: true.",
        Twist(declare=put("logging", value=True)),
        verdict="malformed",
    ),
)


def _flood_values(_call: Call, result: JsonObject) -> None:
    result["completion"] = {"values": [f"value {n}" for n in range(MOST_VALUES + 1)]}


_COMPLETION: tuple[Fault, ...] = (
    fault(
        "completions-refused",
        "CAP-13",
        _COMPLETIONS,
        "Declares completions and refuses completion/complete with -32601.",
        Twist(instead=refuse(_ASK_COMPLETION)),
        verdict="broken",
    ),
    fault(
        "completions-empty-object",
        "CAP-13",
        _COMPLETIONS,
        "Answers completion/complete with an empty object.",
        Twist(instead=instead(_ASK_COMPLETION, answer={})),
        verdict="broken",
    ),
    fault(
        "completions-over-100",
        "CAP-13",
        _COMPLETIONS,
        "Answers completion/complete with more than 100 values.",
        Twist(after=edit_result(_flood_values, _ASK_COMPLETION)),
        verdict="broken",
    ),
    fault(
        "completions-undeclared-but-served",
        "CAP-13",
        _COMPLETIONS,
        "Does not declare completions and answers completion/complete.",
        Twist(declare=hide("completions")),
        verdict="undeclared",
    ),
    fault(
        "completions-wrong-code",
        "CAP-13",
        _COMPLETIONS,
        "Does not declare completions and refuses completion/complete with -32603.",
        Twist(declare=hide("completions"), instead=refuse(_ASK_COMPLETION, code=-32603)),
        verdict="wrong-code",
    ),
    fault(
        "completions-not-an-object",
        "CAP-13",
        _COMPLETIONS,
        "Declares completions: true.",
        Twist(declare=put("completions", value=True)),
        verdict="malformed",
    ),
    fault(
        "completions-declared-2024",
        "CAP-13",
        _EARLY,
        "Declares completions in a revision that has no such capability.",
        Twist(declare=put("completions", value={})),
        verdict="leaked",
    ),
)


_EXPERIMENTAL: tuple[Fault, ...] = (
    fault(
        "experimental-not-object",
        "CAP-01-server",
        ALL,
        "Declares true under a key of experimental.",
        Twist(declare=put("experimental", "stateless", value=True)),
        verdict="malformed",
    ),
    fault(
        "experimental-not-a-map",
        "CAP-01-server",
        ALL,
        "Declares experimental: true.",
        Twist(declare=put("experimental", value=True)),
        verdict="malformed",
    ),
    fault(
        "experimental-differs",
        "CAP-01-server",
        MODERN,
        "Declares experimental to legacy clients and not to modern ones.",
        Twist(declare=hide("experimental")),
        finding="declaration.eras-differ",
    ),
)

FAULTS: tuple[Fault, ...] = (*_LOGGING, *_COMPLETION, *_EXPERIMENTAL)
