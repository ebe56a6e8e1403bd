"""The tool that the user names to provoke a change, and what is said where it cannot."""

from __future__ import annotations

import sys

import anyio

from troth.audit.engine import audit
from troth.audit.options import Options
from troth.audit.targets import StdioTarget
from troth.audit.wire.types import Limits

SERVER = (sys.executable, "-m", "troth.testing", "server")
REVISION = "2025-11-25"


def said(**how: object) -> list[tuple[str, str]]:
    """Message and hint of what the named tool could not do, in an audit of the honest server."""
    options = Options(revisions=(REVISION,), limits=Limits(method=3, settle=0.05), **how)  # pyright: ignore[reportArgumentType]
    target = StdioTarget(name="honest", command=SERVER)
    (report,) = anyio.run(audit, [target], options, lambda _: None)
    found = report.revisions[REVISION].findings
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
