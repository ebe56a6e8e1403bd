"""The tool that the user names to provoke a change, and what is said where it cannot."""

from __future__ import annotations

import sys
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import memory
import pytest

from troth.audit.engine import audit
from troth.audit.model import Verdict
from troth.audit.options import Options
from troth.audit.targets import StdioTarget
from troth.audit.wire.types import Limits
from troth.testing import Script, Send
from troth.testing.stdio import CONTEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

REVISION = "2025-11-25"
MODERN = "2026-07-28"


def honest() -> memory.Server:
    script = Script()
    return lambda message: (out.message for out in script.feed(message, CONTEXT) if isinstance(out, Send))


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


LATE = """
import json, sys, threading
from troth.testing import Script, Send
from troth.testing.stdio import CONTEXT

script = Script()
for line in sys.stdin:
    for out in script.feed(json.loads(line), CONTEXT):
        if isinstance(out, Send):
            say = lambda text=json.dumps(out.message): print(text, flush=True)
            late = out.message.get("method") == "notifications/tools/list_changed"
            threading.Timer(0.7, say).start() if late else say()
"""


def test_an_announcement_that_was_promised_is_waited_for_longer_than_silence_lasts() -> None:
    target = StdioTarget(name="late", command=(sys.executable, "-c", LATE))
    limits = Limits(start=60, method=30, settle=0.1, stop=1)
    options = Options(revisions=(REVISION,), limits=limits, change_tool="add_tool")
    (report,) = anyio.run(partial(audit, (target,), options, lambda _: None))
    (row,) = [row for row in report.revisions[REVISION].rows if row.id == "CAP-20"]
    assert row.verdict is Verdict.KEPT, row


@pytest.mark.parametrize(("during", "verdict"), [("subscriptions/listen", "not-observable"), ("tools/call", "broken")])
def test_what_changed_before_anybody_listened_is_no_broken_promise(during: str, verdict: str) -> None:
    def growing() -> memory.Server:
        script, left = Script(), [1]

        def server(message: Any) -> Iterator[Any]:
            if message.get("method") == during and left:
                left.pop()
                script.catalogue.add("tools")
            return (out.message for out in script.feed(message, CONTEXT) if isinstance(out, Send))

        return server

    rows = memory.audit(growing, [MODERN]).revisions[MODERN].rows
    assert next(row.verdict for row in rows if row.id == "CAP-20") == verdict
