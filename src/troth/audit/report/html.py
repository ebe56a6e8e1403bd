"""The report as one HTML file: works offline, without scripts, in light and dark."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from troth.audit.model import Outcome
from troth.audit.report.common import condense, merge, outcome_words, plural, revisions_of, server_line, span, to_json
from troth.audit.report.grid import MARKS, Grid

if TYPE_CHECKING:
    from troth.audit.model import Frame
    from troth.audit.report.common import View


def render(view: View) -> str:
    """The report as an HTML page. Everything that varies goes through Jinja2's escaping."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["names"] = _names
    template = environment.from_string((files("troth.audit.report") / "page.html.jinja").read_text("utf-8"))
    return template.render(
        view=view,
        report=view.report,
        grid=Grid(view),
        asked=revisions_of(view.report),
        faults=merge(view.faults),
        marks=MARKS,
        checked=Outcome.CHECKED,
        condense=condense,
        frame=_frame,
        outcome_words=outcome_words,
        plural=plural,
        server_line=server_line,
        span=span,
        to_json=to_json,
    )


def _names(text: str) -> Markup:
    """A sentence whose names stand between backticks, set as code."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return escape(text)
    marked = (Markup("<code>{}</code>").format(piece) if at % 2 else escape(piece) for at, piece in enumerate(pieces))
    return Markup("").join(marked)


def _frame(frame: Frame) -> str:
    status = f" {frame.status}" if frame.status is not None else ""
    message = frame.message if isinstance(frame.message, str) else to_json(frame.message)
    return f"{frame.at:>6} ms  {frame.direction.value}{status}  {frame.channel}  {message}"
