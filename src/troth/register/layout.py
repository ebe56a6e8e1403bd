"""Pages of headings, sentences and labelled facts, set as plain text or as Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from textwrap import wrap
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

INDENT = "  "
WIDEST_LABEL = 24
"""Columns that a label may take before its text starts on a line of its own."""
SPECIAL = re.compile(r"([\\`*_<>|\[\]])")
"""Characters that Markdown would read as marks."""


class Style(StrEnum):
    """What a stretch of text is, so that whoever prints it can choose a colour."""

    PLAIN = "plain"
    TITLE = "title"
    HEADING = "heading"
    LABEL = "label"
    QUIET = "quiet"


Span: TypeAlias = tuple[str, Style]
Line: TypeAlias = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """A labelled text.

    Attributes:
        label: A word or two.
        text: The text; names in it are marked with backticks.
        source: Where it stands, shown quietly; may be empty.
    """

    label: str
    text: str
    source: str = ""


Block: TypeAlias = "str | tuple[Fact, ...]"
"""A paragraph, or facts that are set with one column of labels."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it."""

    heading: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """What is told about one thing."""

    title: str
    intro: str
    sections: tuple[Section, ...] = ()


def as_lines(page: Page, width: int) -> Iterator[Line]:
    """The page as lines of at most ``width`` columns, where no single word is longer."""
    yield ((bare(page.title), Style.TITLE),)
    yield from _paragraph(page.intro, width, "")
    for section in page.sections:
        yield ()
        yield ((bare(section.heading), Style.HEADING),)
        for block in section.blocks:
            yield from _paragraph(block, width, INDENT) if isinstance(block, str) else _facts(block, width)


def as_text(lines: Iterable[Line]) -> str:
    """Lines without their styles."""
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)


def as_markdown(page: Page, level: int = 1) -> str:
    """The page as Markdown whose title is a heading of ``level``."""
    marks = "#" * level
    parts = [f"{marks} {marked(page.title)}", marked(page.intro)]
    for section in page.sections:
        parts.append(f"{marks}# {marked(section.heading)}")
        parts += [marked(block) if isinstance(block, str) else _bullets(block) for block in section.blocks]
    return "\n\n".join(part for part in parts if part) + "\n"


def bare(text: str) -> str:
    """Text without the backticks that mark names."""
    return text.replace("`", "")


def marked(text: str) -> str:
    """Text for Markdown: what stands in backticks is kept, special characters elsewhere are escaped."""
    parts = text.split("`")
    return "".join(f"`{part}`" if index % 2 else SPECIAL.sub(r"\\\1", part) for index, part in enumerate(parts))


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table; cells are Markdown already."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _paragraph(text: str, width: int, indent: str) -> Iterator[Line]:
    for line in _wrapped(text, width - len(indent)):
        yield ((indent + line, Style.PLAIN),)


def _facts(facts: tuple[Fact, ...], width: int) -> Iterator[Line]:
    column = min(WIDEST_LABEL, max((len(fact.label) for fact in facts), default=0)) + 2
    for fact in facts:
        label, pad = bare(fact.label), INDENT + " " * column
        lines = _wrapped(fact.text, width - len(pad))
        if len(label) > column - 2:
            yield ((INDENT + label, Style.LABEL),)
        else:
            yield ((INDENT + label.ljust(column), Style.LABEL), ("".join(lines[:1]), Style.PLAIN))
            del lines[:1]
        yield from (((pad + line, Style.PLAIN),) for line in lines)
        yield from (((pad + line, Style.QUIET),) for line in _wrapped(fact.source, width - len(pad)))


def _bullets(facts: tuple[Fact, ...]) -> str:
    return "\n".join(
        f"- **{marked(fact.label)}**: {marked(fact.text)}" + (f" ({marked(fact.source)})" if fact.source else "")
        for fact in facts
    )


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(bare(text), width, break_long_words=False, break_on_hyphens=False)
