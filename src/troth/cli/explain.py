"""`troth explain`: what a capability, method, error code, gap, revision or host is."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from functools import partial

import click

from troth.register.explain import explain, overview
from troth.register.find import find, suggest
from troth.register.layout import Fact, Line, Page, Section, Style, as_lines, as_markdown, as_text
from troth.register.load import Register, register
from troth.register.record import listing, record

WIDTH = 88
"""Columns where the output is no terminal."""
NARROWEST, WIDEST = 60, 100
"""Bounds of the columns on a terminal: below, nothing can be set; above, lines are hard to read."""
CODE = re.compile(r"-\d+(\.\.-\d+)?")
"""An error code, which looks like an option."""
LOOKS = {
    Style.TITLE: partial(click.style, bold=True),
    Style.HEADING: partial(click.style, fg="cyan", bold=True),
    Style.LABEL: partial(click.style, fg="green"),
    Style.QUIET: partial(click.style, dim=True),
    Style.PLAIN: str,
}


def _query(ctx: click.Context, _param: click.Parameter, query: str | None) -> str | None:
    if query is not None and query.startswith("-") and not CODE.fullmatch(query):
        raise click.NoSuchOption(query, ctx=ctx)
    return query


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("query", required=False, callback=_query)
@click.option("--list", "everything", is_flag=True, help="List everything that can be explained.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="How to write it.",
)
def command(query: str | None, everything: bool, style: str) -> None:
    """Tell what QUERY means in each protocol revision.

    QUERY is an id (CAP-17), a path (roots.listChanged), a method (resources/subscribe), an error code (-32021), a gap
    (G-06), a revision (2025-11-25), a host profile (opencode-v1), or what an audit says (broken, tools.slow).
    """
    if everything == (query is not None):
        raise click.UsageError("Give either one QUERY or --list.")
    known = register()
    if query is None:
        _print(style, (overview(known),), listing(known))
        return
    found = find(known, query)
    if found is not None:
        _print(style, explain(known, found), record(known, found))
    elif (told := _said(query)) is not None:
        _print(style, *told)
    else:
        raise click.UsageError(_miss(known, query))


def _said(query: str) -> tuple[tuple[Page, ...], dict[str, object]] | None:
    """What a verdict or the code of a finding means, as pages and as data; None if an audit says no such word."""
    from troth.audit.context import laid_down  # only what the register does not know pays for these
    from troth.audit.model import Severity, Verdict
    from troth.audit.verdicts import FINDINGS, VERDICTS

    word = query.strip().lower()
    name = Verdict.NOT_OBSERVABLE.value if word == "not seen" else word
    topic = "finding" if name in FINDINGS else "verdict"
    meaning = FINDINGS.get(name) or next((told for verdict, told in VERDICTS.items() if verdict.value == name), None)
    if meaning is None:
        return None
    severity = "no fault" if meaning.severity is Severity.NONE else meaning.severity.value
    source = laid_down(meaning.source)
    facts = (Fact("severity", f"{severity}."), *((Fact("laid down in", source),) if source else ()))
    entry = {"code": name, "severity": meaning.severity.value, "meaning": meaning.text, "source": source}
    page = Page(f"`{name}`", meaning.text, (Section(f"A {topic} of the audit", (facts,)),))
    return (page,), {"topic": topic, "entries": [entry]}


def _miss(known: Register, query: str) -> str:
    shown = repr(query if len(query) <= 60 else f"{query[:60]}...")
    near = _similar(query) or suggest(known, query)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    return f"The register knows nothing called {shown}. {hint}`troth explain --list` shows every name."


def _similar(query: str) -> list[str]:
    """Words of an audit that are hardly different."""
    from difflib import get_close_matches

    from troth.audit.verdicts import FINDINGS, VERDICTS

    return get_close_matches(query.strip().lower(), [*FINDINGS, *(verdict.value for verdict in VERDICTS)], 3, 0.8)


def _print(style: str, pages: tuple[Page, ...], data: object) -> None:
    if style == "json":
        click.echo(json.dumps(data, indent=2, ensure_ascii=False))
    elif style == "markdown":
        click.echo("\n".join(as_markdown(page) for page in pages), nl=False)
    else:
        click.echo("\n".join(_text(page) for page in pages), nl=False)


def _text(page: Page) -> str:
    terminal = sys.stdout.isatty()
    columns = shutil.get_terminal_size().columns
    lines = as_lines(page, max(NARROWEST, min(WIDEST, columns)) if terminal else WIDTH)
    return as_text(_styled(line) for line in lines) if terminal and not os.environ.get("NO_COLOR") else as_text(lines)


def _styled(line: Line) -> Line:
    return tuple((LOOKS[style](text), style) for text, style in line)
