"""Whatever a server does, an audit ends, says what it saw, and is no fault of Troth."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import fuzz
import memory
import pytest

from troth.audit.context import ALIKE, RESTARTS
from troth.audit.model import AuditReport, Outcome, TargetReport, Verdict
from troth.audit.probes.lists import PAGES
from troth.audit.report import FORMATS, render
from troth.audit.wire.types import Incoming, Limits
from troth.register import register
from troth.testing import Script, Send
from troth.testing.stdio import CONTEXT
from troth.wire.errors import LinkError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from memory import Server

LEGACY, MODERN = "2025-11-25", "2026-07-28"


@pytest.fixture(autouse=True)
def _raising(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault inside a probe fails the test instead of being reported."""
    monkeypatch.setenv("TROTH_DEBUG", "1")


def honest(change: Callable[[Any, Any], Any] = lambda _, answer: answer) -> Callable[[], Server]:
    """Makes honest servers; ``change`` turns the message that came and one that goes out into what goes out."""

    def make() -> Server:
        script = Script()

        def server(message: Any) -> Iterator[Any]:
            for out in script.feed(message, CONTEXT):
                if isinstance(out, Send):
                    yield change(message, out.message)

        return server

    return make


def on(method: str, result: Any) -> Callable[[], Server]:
    """Makes servers that are honest but for the result of one method."""
    return honest(lambda asked, answer: {**answer, "result": result} if asked.get("method") == method else answer)


def codes(report: TargetReport) -> list[str]:
    return [finding.code for revision in report.revisions.values() for finding in revision.findings]


@pytest.mark.parametrize("seed", range(24))
def test_no_spoilt_answer_is_a_fault_of_the_audit(seed: int) -> None:
    revisions = None if seed % 6 == 0 else [register().revisions[seed % len(register().revisions)]]
    host = [None, *register().hosts][seed % 4]
    report = memory.audit(fuzz.spoilt(seed), revisions, active=seed % 2 == 0, change_tool="add_tool", profile=host)
    whole = AuditReport(troth="0", started_at="", command_line=(), targets=(report,))
    for form in FORMATS:
        shown = render(whole, form)
        assert not {"\x1b", "\x07", "\0", "\u202e"} & set(shown)


@pytest.mark.parametrize("odd", [["form"], {"form": 1}, None, 1, True, 10**400])
def test_a_question_may_be_of_any_shape(odd: Any) -> None:
    def make() -> Server:
        inner = honest()()

        def server(message: Any) -> Iterator[Any]:
            yield from inner(message)
            if message.get("method") == "tools/call":
                params = {"mode": odd, "includeContext": odd, "task": odd, "tools": odd, "_meta": odd}
                yield {"jsonrpc": "2.0", "id": odd, "method": "elicitation/create", "params": params}
                yield {"jsonrpc": "2.0", "id": odd, "method": "sampling/createMessage", "params": params}

        return server

    for revision in (LEGACY, MODERN):
        assert memory.audit(make, [revision], active=True).outcome is Outcome.CHECKED


def test_task_ids_of_any_type_are_compared() -> None:
    tasks = [{"taskId": {}}, {"taskId": []}, 1, None]
    assert "tasks.not-isolated" not in codes(memory.audit(on("tasks/list", {"tasks": tasks}), [LEGACY], active=True))


def test_a_list_without_end_is_left_after_some_pages() -> None:
    asked: list[Any] = []

    def grow(message: Any, answer: Any) -> Any:
        if message.get("method") != "tools/list":
            return answer
        asked.append(message)
        tool = {"name": f"tool{len(asked)}", "inputSchema": {}}
        return {**answer, "result": {"tools": [tool], "nextCursor": str(len(asked))}}

    memory.audit(honest(grow), [LEGACY], limits=Limits(start=5, method=5, settle=0.004))
    assert len(asked) <= 4 * PAGES


def test_findings_of_one_kind_are_listed_a_few_times_and_counted() -> None:
    def make() -> Server:
        inner, count = honest()(), iter(range(10_000))

        def server(message: Any) -> Iterator[Any]:
            yield from inner(message)
            yield Incoming(channel="stdio", problem=f"junk {next(count)}")

        return server

    report = memory.audit(make, [LEGACY])
    junk = [finding for finding in report.revisions[LEGACY].findings if finding.code == "protocol.junk"]
    assert [finding.message for finding in junk[:2]] == ["Junk 0.", "Junk 1."]
    assert len(junk) == ALIKE + 1
    assert junk[-1].message.endswith(" more of this kind.")


def test_a_target_that_dies_and_hangs_is_tried_again_a_few_times_only() -> None:
    made: list[int] = []

    def make() -> Server:
        made.append(1)
        inner, first = honest()(), len(made) <= 2

        def server(message: Any) -> Iterator[Any]:
            if message.get("method") != "initialize":
                raise EOFError
            if first:
                yield from inner(message)

        return server

    report = memory.audit(make, ["2025-06-18"])
    assert codes(report).count("process.died") == 1
    assert len(made) <= 2 + RESTARTS + 3


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.parametrize("starts", [2, 3, 4])
def test_a_target_that_cannot_be_started_again_is_judged_by_what_was_seen(revision: str, starts: int) -> None:
    left = [1] * starts

    def make() -> Server:
        if not left:
            raise LinkError("there is no such program", where="x", advice="")
        left.pop()
        return honest()()

    assert memory.audit(make, [revision]).outcome is Outcome.CHECKED


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_silent_target_costs_a_bounded_time(after: int) -> None:
    def make() -> Server:
        inner, count = honest()(), iter(range(10_000))
        return lambda message: inner(message) if next(count) < after else ()

    begun = time.monotonic()
    memory.audit(make, limits=Limits(start=0.2, method=0.05, settle=0.01))
    assert time.monotonic() - begun < 120


@pytest.mark.parametrize("revision", ["2024-11-05", LEGACY, MODERN])
@pytest.mark.parametrize(
    "answer",
    [
        *({"result": result} for result in ({}, [], None, "x", True, {"resultType": "input_required"})),
        *({"error": {"code": code, "message": "no"}} for code in (-1, -32600, -32602, -32603)),
    ],
)
def test_nothing_is_kept_where_every_question_gets_the_same_answer(revision: str, answer: Any) -> None:
    def same(asked: Any, said: Any) -> Any:
        opens = asked.get("method") in ("initialize", "server/discover")
        return said if opens or "method" in said else {"jsonrpc": "2.0", "id": said.get("id"), **answer}

    rows = memory.audit(honest(same), [revision], active=True).revisions[revision].rows
    # That the map of extensions is well-formed is all that is promised of it.
    assert [row.path for row in rows if row.verdict is Verdict.KEPT and row.path != "extensions"] == []


@pytest.mark.parametrize(
    "command",
    [
        ("/troth/no/such/program",),
        (sys.executable, "-c", "raise SystemExit(3)"),
        (sys.executable, "-c", "while 1: pass"),
    ],
)
def test_a_touch_command_that_fails_is_told(command: tuple[str, ...]) -> None:
    assert "touch.failed" in codes(memory.audit(honest(), [LEGACY], touch=command))


def test_a_peer_cannot_accuse_itself_of_hanging_in_words() -> None:
    def make() -> Server:
        inner = honest()()

        def server(message: Any) -> Iterator[Any]:
            yield from inner(message)
            yield Incoming(channel="stdio", problem="no JSON (x): ping: no answer within 5 s")

        return server

    found = codes(memory.audit(make, [LEGACY]))
    assert "protocol.junk" in found
    assert "protocol.hangs" not in found
