"""Reports of an audit in every format. One file per format, imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from troth.audit.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from troth.audit.baseline import Entry
    from troth.audit.model import AuditReport
    from troth.audit.targets import Place

__all__ = ["FORMATS", "render"]

FORMATS = {
    "text": "terminal",
    "json": "json",
    "jsonl": "jsonl",
    "markdown": "markdown",
    "html": "html",
    "sarif": "sarif",
    "junit": "junit",
}
"""Name of each format: the module of this package that writes it."""


def render(
    report: AuditReport,
    format: str,  # noqa: A002
    *,
    width: int = 100,
    colour: bool = False,
    verbose: bool = False,
    quiet: bool = False,
    anchor: Place | None = None,
    places: Mapping[str, Place] | None = None,
    secrets: Iterable[str] = (),
    suppressed: frozenset[Entry] = frozenset(),
    fail_on: Severity | None = Severity.ERROR,
) -> str:
    """A report as text, cleaned of whatever peers could smuggle into it and of secrets.

    Args:
        report: As the audit made it.
        format: One of ``FORMATS``.
        width: Columns of the terminal (``text`` only).
        colour: Whether escape codes for colours may be used (``text`` only).
        verbose: Whether evidence is shown whole.
        quiet: Whether only findings and the summary are shown (``text`` only).
        anchor: File and line on which SARIF pins every finding; None for each target's own place.
        places: Places of the targets by name.
        secrets: Values that must not appear (``Target.secrets`` of every target).
        suppressed: Entries of a baseline that matched (``Applied.suppressed``).
        fail_on: Least severity that JUnit counts as a failure beside errors; None for errors only.

    Raises:
        KeyError: No such format.
    """
    from dataclasses import replace

    from troth.audit.report.clean import clean_name, clean_report
    from troth.audit.report.common import View

    secrets = tuple(secrets)
    view = View(
        report=clean_report(report, secrets),
        width=width,
        colour=colour,
        verbose=verbose,
        quiet=quiet,
        anchor=anchor,
        places={clean_name(name, secrets): place for name, place in (places or {}).items()},
        suppressed=frozenset(replace(entry, target=clean_name(entry.target, secrets)) for entry in suppressed),
        fail_on=fail_on,
    )
    text: str = import_module(f"troth.audit.report.{FORMATS[format]}").render(view)
    return text
