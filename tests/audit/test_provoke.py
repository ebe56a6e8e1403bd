"""The tool that the user names to provoke a change, and what is said where it cannot."""

from __future__ import annotations

from typing import Any

import memory

from troth.testing import Script, Send
from troth.testing.stdio import CONTEXT

REVISION = "2025-11-25"


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
