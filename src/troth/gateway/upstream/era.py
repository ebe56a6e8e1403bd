"""Which era an upstream speaks: what its answer to ``server/discover`` says. Decides; `dial` asks.

Only that request decides: several legacy servers answer others with a modern ``_meta`` and without a handshake.
Source: 2026-07-28/basic/versioning, backwards compatibility; rule 18 of the gateway.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, cast

from troth.bridge import Bad, Cause, Frame, Kind, Lost, errors, opened, peek, read
from troth.gateway.upstream.envelope import SERVER_INFO
from troth.gateway.upstream.waiting import UNSURE, Facts, Refused
from troth.gateway.upstream.words import told
from troth.register import Era, register
from troth.wire.words import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from msgspec import Raw

    from troth.gateway.upstream.link import Problem

UNSUPPORTED: Final = -32022
MODERN_CODES: Final = frozenset({-32020, -32021, UNSUPPORTED})
"""Errors that only a server of the modern era sends."""
STRANGE: Final[Mapping[tuple[Era, bool], frozenset[int]]] = {
    (Era.LEGACY, True): frozenset({400}),
    (Era.LEGACY, False): frozenset({404}),
    (Era.MODERN, True): frozenset({400, 404}),
    (Era.MODERN, False): frozenset({404}),
}
"""(era, whether to a request) -> HTTP statuses after which it is asked whether the server is what it was: its session
may be gone, or a server of another era stands there now. It may also just have no such stream."""
SHOWN: Final = 5
"""Foreign revisions that are shown in a reason."""


class Said(Enum):
    """What an answer to ``server/discover`` says of the era."""

    MODERN = auto()
    """It is modern, and this revision is common."""
    AGAIN = auto()
    """It is modern and wants to be asked at another revision, which is common too."""
    REFUSED = auto()
    """It is modern and refuses all the same."""
    LEGACY = auto()
    UNCLEAR = auto()
    """It answers and names no revision that is known: a handshake decides; modern is what is left if that fails."""
    NOTHING = auto()
    """No evidence: something before the server answered, or the server is out of order."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows from an answer.

    Attributes:
        said: What it says.
        words: What came, fit to print.
        revision: The revision to speak (MODERN), or to ask at (AGAIN); empty where there is none.
        facts: What the server said of itself (MODERN, UNCLEAR).
        after: Seconds that the server asks to wait (NOTHING); 0 if it does not say.
    """

    said: Said
    words: str
    revision: str = ""
    facts: Facts = field(default_factory=Facts)
    after: float = 0.0


def judge(outcome: Frame | Lost, asked: str) -> Verdict:
    """Judges the answer to ``server/discover``, or its absence.

    Args:
        outcome: What came.
        asked: The modern revision that was asked at.
    """
    if isinstance(outcome, Lost):
        return _judge_lost(outcome)
    frame = opened(outcome)
    if isinstance(frame, Bad):
        return Verdict(Said.LEGACY, f"server/discover got a malformed answer: {frame.reason}")
    if frame.kind is Kind.RESPONSE:
        return _judge_result(frame)
    return _judge_error(frame, asked)


def _judge_error(frame: Frame, asked: str) -> Verdict:
    words = f"server/discover got {told(frame)}"
    found = peek(frame, "code", "data")
    code = None if isinstance(found, Bad) else found.get("code")
    if isinstance(found, Bad) or code not in MODERN_CODES:
        return Verdict(Said.LEGACY, words)
    if code != UNSUPPORTED:
        return Verdict(Said.REFUSED, words)
    offered = texts(_members(decoded(found.get("data"))).get("supported"))
    if newest := common(Era.MODERN, offered):
        return Verdict(Said.REFUSED if newest == asked else Said.AGAIN, words, newest)
    said = Said.LEGACY if common(Era.LEGACY, offered) else Said.UNCLEAR
    return Verdict(said, f"{words}; it offers {_listed(offered)}")


def _judge_lost(lost: Lost) -> Verdict:
    if isinstance(lost, Refused):
        unsure = lost.status in UNSURE or lost.status >= 500
        return Verdict(Said.NOTHING if unsure else Said.LEGACY, lost.words, after=lost.after)
    return Verdict(Said.NOTHING if lost.cause is Cause.DOWN else Said.LEGACY, lost.words)


def _judge_result(frame: Frame) -> Verdict:
    facts = facts_of(frame, decoded(frame.meta.get(SERVER_INFO)))
    offered = texts(decoded((frame.parts or {}).get("supportedVersions")))
    if newest := common(Era.MODERN, offered):
        return Verdict(Said.MODERN, "", newest, facts)
    return Verdict(
        Said.UNCLEAR, f"server/discover names no modern revision that is known: {_listed(offered)}", "", facts
    )


def facts_of(frame: Frame, info: object) -> Facts:
    """What a server says of itself in the opened result of ``initialize`` or ``server/discover``."""
    parts = frame.parts or {}
    instructions = decoded(parts.get("instructions"))
    return Facts(
        capabilities=decoded(parts.get("capabilities")),
        instructions=instructions if isinstance(instructions, str) else "",
        info=_members(info),
    )


def common(era: Era, offered: Iterable[str]) -> str:
    """The newest revision of an era that is among the offered ones; empty if none is."""
    known = set(offered)
    return next((revision for revision in reversed(register().eras[era]) if revision in known), "")


def decoded(raw: Raw | None) -> Any:
    """The value of a member out of a frame, with integers of any size; None for no member."""
    return None if raw is None else json.loads(bytes(raw))


def texts(value: object) -> list[str]:
    """The texts in a list of a stranger's; empty if it is none."""
    return [item for item in cast("list[object]", value) if isinstance(item, str)] if isinstance(value, list) else []


def _members(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _listed(offered: list[str]) -> str:
    more = [] if len(offered) <= SHOWN else ["..."]
    return ", ".join([*(excerpt(name, 40) for name in offered[:SHOWN]), *more]) or "none"


def strange(problem: Problem, era: Era, *, to_request: bool) -> bool:
    """Whether an HTTP error gives reason to ask what stands there now.

    None does that only a modern server gives, as for a capability that a host lacks.
    """
    if problem.status not in STRANGE[era, to_request]:
        return False
    frame = read(problem.frame) if era is Era.MODERN and problem.frame else None
    return not isinstance(frame, Frame) or frame.kind is not Kind.ERROR or errors.code(frame) not in MODERN_CODES
