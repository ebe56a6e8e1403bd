"""JSON as editors take it: comments and trailing commas are tolerated, and every member has its place in the text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from troth.config.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Mapping

LARGEST = 16 * 1024 * 1024
"""Bytes of the largest file that is taken for a configuration."""

_TEXT = r'"(?:\\.|[^"\\\n])*"?'
_COMMENT = re.compile(_TEXT + r"|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_COMMA = re.compile(_TEXT + r"|,(?=\s*[}\]])", re.DOTALL)
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)

MemberPath = tuple[str, ...]
"""Names of members from the outermost in; items of a list by their number."""


@dataclass(frozen=True, slots=True)
class Span:
    """Where a member stands in the text, as offsets.

    Attributes:
        key: First character of its name (of the value, for the whole text and for items of a list).
        start: First character of its value.
        end: The character after its value.
    """

    key: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Document:
    """A text that was read.

    Attributes:
        text: As it stands in the file.
        value: What it says. Of members of one name the last one counts.
        spans: Place of every member, by its path.
        twice: Paths that are written more than once: offset of the first and of each repetition.
    """

    text: str = field(repr=False)
    value: object = field(repr=False)
    spans: Mapping[MemberPath, Span] = field(repr=False)
    twice: tuple[tuple[MemberPath, int, int], ...]

    def line(self, path: MemberPath) -> int | None:
        """The line on which a member begins, from 1; None if there is none of that path."""
        span = self.spans.get(path)
        return None if span is None else self.line_at(span.key)

    def line_at(self, offset: int) -> int:
        """The line of a character, from 1."""
        return self.text.count("\n", 0, offset) + 1


def read_text(path: str) -> str | Fault:
    """The text of a file; or why there is none."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            return Fault(path, "", f"is larger than {LARGEST} bytes; no configuration is")
        return data.decode("utf-8-sig")
    except OSError as error:
        return Fault(path, "", f"cannot be read: {error.strerror or error}")
    except UnicodeDecodeError:
        return Fault(path, "", "is not UTF-8 text")
    except ValueError:  # a NUL in the name
        return Fault(path, "", "cannot be read: no file has such a name")


def read_json(path: str, text: str) -> Document | Fault:
    """Reads JSON with comments and trailing commas.

    Args:
        path: What faults call the file.
        text: What stands in it.
    """
    plain = strip(text)
    try:
        value = cast("object", json.loads(plain))
    except json.JSONDecodeError as error:
        return Fault(path, "", f"not JSON: {error.msg}", "", error.lineno, error.colno)
    except (RecursionError, ValueError) as error:
        return Fault(path, "", f"not usable JSON: {error}")
    spans, twice = _places(plain)
    return Document(text, value, spans, twice)


def strip(text: str) -> str:
    """Comments and trailing commas become blanks, so that every other character stays where it is."""
    return _COMMA.sub(_blanked, strip_comments(text))


def strip_comments(text: str) -> str:
    """Comments become blanks, so that every other character stays where it is."""
    return _COMMENT.sub(_blanked, text)


def _blanked(match: re.Match[str]) -> str:
    return match[0] if match[0][0] == '"' else _blank(match[0])


def _blank(text: str) -> str:
    return "\n".join(" " * len(line) for line in text.split("\n"))


@dataclass(slots=True)
class _Open:
    """An object or list that is not closed yet."""

    path: MemberPath
    key: int
    start: int
    is_list: bool
    name: str | None = None
    name_at: int = 0
    count: int = 0
    seen: dict[str, int] = field(default_factory=dict[str, int])

    def child(self, at: int) -> tuple[MemberPath, int]:
        """Path and first character of the value that begins at ``at``."""
        if self.is_list:
            self.count += 1
            return (*self.path, str(self.count - 1)), at
        return (*self.path, self.name or ""), self.name_at


def _places(text: str) -> tuple[dict[MemberPath, Span], tuple[tuple[MemberPath, int, int], ...]]:
    """Places of all members of a text that is known to be JSON."""
    spans: dict[MemberPath, Span] = {}
    twice: list[tuple[MemberPath, int, int]] = []
    stack: list[_Open] = []
    for match in _TOKEN.finditer(text):
        part, at = match[0], match.start()
        top = stack[-1] if stack else None
        if part in "}]":
            done = stack.pop()
            spans[done.path] = Span(done.key, done.start, match.end())
        elif part == ",":
            if top is not None:
                top.name = None
        elif part == ":":
            continue
        elif top is not None and not top.is_list and top.name is None:
            top.name, top.name_at = cast("str", json.loads(part)), at
            if top.seen.setdefault(top.name, at) != at:
                twice.append(((*top.path, top.name), top.seen[top.name], at))
        else:
            path, key = top.child(at) if top is not None else ((), at)
            if part in "{[":
                stack.append(_Open(path, key, at, is_list=part == "["))
            else:
                spans[path] = Span(key, at, match.end())
    return spans, tuple(twice)
