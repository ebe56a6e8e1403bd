"""Audits server objects in process, over HTTP on the loopback interface. For tests; see ``troth.pytest_plugin``."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
import uvicorn

from troth.audit.engine import audit
from troth.audit.model import Outcome, Severity
from troth.audit.options import Options
from troth.audit.targets import HttpTarget
from troth.audit.verdicts import SEVERITY_RANK
from troth.register import register

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator

    from troth.audit.model import TargetReport
    from troth.audit.options import Event

SECONDS: Final = 10.0
"""Longest wait for the server to listen, and to end."""


def findings(
    server: object, *, revisions: Collection[str] = (), change_tools: Collection[str] = (), allow: Collection[str] = ()
) -> list[str]:
    """What an audit finds of at least the severity *warning*, a line each; nothing for an honest server.

    Args and errors are those of ``troth.pytest_plugin.assert_honest``.
    """
    known = tuple(revision for revision in register().revisions if not revisions or revision in revisions)
    found: dict[str, None] = {}
    with _served(_app(server)) as url:
        for tool in change_tools or (None,):
            options = Options(revisions=known, change_tool=tool)
            for report in _audited(HttpTarget(name="server", url=url), options):
                found |= dict.fromkeys(_lines(report, allow))
    return list(found)


def _app(server: object) -> Any:
    """The ASGI application of a server of any framework."""
    make = getattr(server, "http_app", None) or getattr(server, "streamable_http_app", None)
    if make is None:
        kind = type(server)
        raise TypeError(f"an audit in process takes an MCPServer, a Server or a FastMCP, not {kind.__qualname__}")
    return make()


@contextmanager
def _served(app: Any) -> Generator[str]:
    """Serves an application in a thread with an event loop of its own."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port: int = listener.getsockname()[1]
        config = uvicorn.Config(app, log_level="error", lifespan="on", timeout_graceful_shutdown=1)
        running = uvicorn.Server(config)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            running.should_exit = True
            thread.join(SECONDS)


def _audited(target: HttpTarget, options: Options) -> tuple[TargetReport, ...]:
    """Runs an audit in a thread, so that it works inside and outside of an event loop."""
    reports: list[tuple[TargetReport, ...]] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            reports.append(anyio.run(audit, [target], options, _quiet))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return reports[0]


def _quiet(_event: Event) -> None:
    """Nobody waits at a screen."""


def _lines(report: TargetReport, allow: Collection[str]) -> Iterator[str]:
    if report.outcome is not Outcome.CHECKED:
        yield f"{report.outcome}: {report.reason}"
    for revision, one in report.revisions.items():
        for row in one.rows:
            if _counts(row.severity) and row.verdict not in allow:
                yield f"{revision}: {row.path}: {row.verdict}: {row.message}"
        for finding in one.findings:
            if _counts(finding.severity) and finding.code not in allow:
                yield f"{revision}: {finding.code}: {finding.message}"
    for finding in report.findings:
        if _counts(finding.severity) and finding.code not in allow:
            yield f"{finding.code}: {finding.message}"


def _counts(severity: Severity) -> bool:
    return SEVERITY_RANK[severity] >= SEVERITY_RANK[Severity.WARNING]
