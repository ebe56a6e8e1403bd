"""The tool that the user names to provoke a change, and what is said where it cannot."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import memory

from troth.audit.model import Verdict
from troth.audit.probes.list_changed import PATIENCE
from troth.audit.wire.session import Session
from troth.audit.wire.types import Incoming
from troth.testing import Script, Send
from troth.testing.stdio import CONTEXT

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

REVISION = "2025-11-25"
MODERN = "2026-07-28"


def honest() -> memory.Server:
    script = Script()
    return lambda message: (out.message for out in script.feed(message, CONTEXT) if isinstance(out, Send))


def test_the_announcement_of_a_change_that_was_seen_is_waited_for_longer_than_silence_where_it_is_promised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    announced = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}

    def slow() -> memory.Server:
        server = honest()
        return lambda message: (out for out in server(message) if out != announced)

    wait = Session.wait_for

    async def later(self: Session, condition: Callable[[], bool], timeout: float) -> bool:
        if timeout == PATIENCE * memory.LIMITS.settle:
            self.link.receive(Incoming(channel="stdio", value=announced))  # type: ignore[attr-defined]
        return await wait(self, condition, timeout)

    def row() -> str:
        report = memory.audit(slow, [REVISION], change_tool="add_tool").revisions[REVISION]
        return next(row.verdict for row in report.rows if row.id == "CAP-20")

    assert row() == Verdict.BROKEN
    monkeypatch.setattr(Session, "wait_for", later)
    assert row() == Verdict.KEPT


def said(**how: Any) -> list[tuple[str, str]]:
    """Message and hint of what the named tool could not do, in an audit of the honest server."""
    found = memory.audit(honest, [REVISION], **how).revisions[REVISION].findings
    return [(finding.message, finding.hint) for finding in found if finding.code == "change-tool.failed"]


def test_a_tool_that_is_not_listed_is_named_with_one_like_it() -> None:
    message = "No tool 'tuch' is listed, so --change-tool called nothing."
    assert said(change_tool="tuch") == [(message, "Did you mean 'touch'?")]


def test_a_tool_that_is_refused_is_said() -> None:
    ((message, hint),) = said(change_tool="touch", change_arguments={"uri": "note://none"})
    assert message.startswith("`touch`, named with --change-tool, gets ")
    assert hint == "Give it the arguments that it needs: --change-tool 'touch={...}'."


def test_a_tool_that_works_is_not_talked_about() -> None:
    assert said(change_tool="touch") == []


def test_no_call_of_an_audit_leaves_a_question_behind() -> None:
    seen: Counter[str] = Counter()

    def watched() -> memory.Server:
        server = honest()

        def see(message: Any) -> Any:
            seen["answered"] += "requestState" in message.get("params", {})
            for out in server(message):
                seen["asked"] += out.get("result", {}).get("resultType") == "input_required"
                yield out

        return see

    memory.audit(watched, [MODERN], change_tool="ask_form")
    # It is called again at each level of logs, and with each set of capabilities.
    assert seen["asked"] > 3
    assert seen["answered"] == seen["asked"]


def test_a_call_that_hangs_is_named() -> None:
    def mute() -> memory.Server:
        server = honest()
        return lambda message: () if message.get("method") == "prompts/get" else server(message)

    findings = memory.audit(mute, [REVISION]).revisions[REVISION].findings
    notes = [
        str(frame.message) for finding in findings if finding.code == "protocol.hangs" for frame in finding.evidence
    ]
    assert any(note.startswith("prompts/get: no answer within ") and note.endswith(")") for note in notes), notes
