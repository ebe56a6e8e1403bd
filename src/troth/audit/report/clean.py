"""Makes a report safe to show: what a peer sent is cleaned, cut to size, and rid of secrets, once, for every format.

Peers choose names, messages and whole frames. A terminal would obey escape codes in them, a reader would be misled by
text that runs the other way, and an encoder would fail on lone surrogates, huge integers or deep nesting.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from troth.audit.masking import HEADERS, MASK, mask_text
from troth.audit.model import (
    AuditReport,
    Direction,
    Finding,
    Frame,
    HostView,
    RevisionReport,
    RowResult,
    TargetReport,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_TEXT = 4_000
"""Characters of one string inside a frame or declaration; the rest is cut from its middle and counted in bytes."""

SHORT_TEXT = 40
"""The same once `MOST_TEXT` is reached."""

LONGEST_LINE = 2_000
"""Characters of a message, name or hint."""

MOST_VALUES = 20_000
"""Values, at any depth, of one frame or declaration; those nearest to the top are kept."""

MOST_TEXT = 400_000
"""Characters of all strings of one frame or declaration; what comes after is cut short."""

MOST_MEMBERS = 200
"""Members of one object or list inside a frame."""

DEEPEST = 40
"""Levels of nesting of a value; JSON encoders and readers of reports recurse."""

MOST_FRAMES = 40
"""Frames of evidence for one verdict: the first and last halves are kept."""

MOST_NAMES = 500
"""Tools, prompts or resources listed in a host's view."""

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1
    "\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\ufeff"  # direction, invisible, line separators
    "\ud800-\udfff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"  # lone surrogates, annotations, tags
)
_SPACE = re.compile(r"\s+")
NOTE: Final = 24
"""Characters of the note that stands for what was cut."""


def clean(text: str, longest: int = LONGEST_LINE) -> str:
    """Text without control, direction and invisible characters (shown as escapes), cut to ``longest`` characters."""
    return _UNSAFE.sub(_escape, cut(text, longest))


def line(text: str, longest: int = LONGEST_LINE) -> str:
    """The same on one line: every run of white space is one blank."""
    return clean(_SPACE.sub(" ", cut(text, longest)).strip(), longest + 40)


def cut(text: str, longest: int) -> str:
    """At most about ``longest`` characters: the middle gives way to the number of bytes that it had.

    What is longer by less than that note takes stays whole.
    """
    if len(text) <= longest + NOTE:
        return text
    half = longest // 2
    removed = len(text[half:-half].encode("utf-8", "surrogatepass"))
    return f"{text[:half]} [... {removed} bytes cut ...] {text[-half:]}"


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def clean_value(value: object, secrets: Iterable[str] = ()) -> Any:
    """A JSON value made safe at any depth: cleaned, cut, masked, and within what every JSON reader can hold.

    Not recursive, so that the nesting of a peer's value cannot exhaust the stack; breadth first, so that what is cut
    for its size is what stands deepest.
    """
    known = tuple(secrets)
    holder: list[Any] = [None]
    values, text = MOST_VALUES, MOST_TEXT
    work: deque[tuple[Any, Any, object, int]] = deque([(holder, 0, value, 0)])
    while work:
        place, key, item, depth = work.popleft()
        if isinstance(item, dict | list | tuple):
            values -= min(len(cast("list[object]", item)), MOST_MEMBERS)
        if isinstance(item, dict | list | tuple) and depth >= DEEPEST:
            place[key] = f"[cut: nested deeper than {DEEPEST} levels]"
        elif isinstance(item, dict | list | tuple) and item and values < 0:
            place[key] = f"[cut: {len(cast('list[object]', item))} members]"
        elif isinstance(item, dict):
            place[key] = fresh = _members(cast("dict[object, object]", item), known)
            work.extend((fresh, name, member, depth + 1) for name, member in fresh.items())
        elif isinstance(item, list | tuple):
            place[key] = copy = _items(cast("list[object]", item))
            work.extend((copy, index, member, depth + 1) for index, member in enumerate(copy))
        else:
            place[key] = shown = _scalar(item, known, LONGEST_TEXT if text > 0 else SHORT_TEXT)
            text -= len(shown) if isinstance(shown, str) else 0
    return holder[0]


def _members(value: dict[object, object], secrets: tuple[str, ...]) -> dict[str, object]:
    fresh: dict[str, object] = {}
    for name, member in value.items():
        if len(fresh) >= MOST_MEMBERS:
            fresh["..."] = f"[cut: {len(value) - MOST_MEMBERS} more members]"
            break
        text = clean(mask_text(str(name), secrets), LONGEST_LINE)
        while text in fresh:
            text += "_"
        fresh[text] = MASK if text.lower() in HEADERS else member
    return fresh


def _items(value: list[object]) -> list[object]:
    kept = list(value[:MOST_MEMBERS])
    if len(value) > MOST_MEMBERS:
        kept.append(f"[cut: {len(value) - MOST_MEMBERS} more items]")
    return kept


def _scalar(item: object, secrets: tuple[str, ...], longest: int) -> object:
    if item is None or isinstance(item, bool):
        return item
    if isinstance(item, int):
        # 64 bits is what other JSON readers, and our encoder, can hold.
        if item.bit_length() > 63:
            return f"[integer of {item.bit_length()} bits]"
        return MASK if str(item) in secrets else item
    if isinstance(item, float):
        if item != item or item in (float("inf"), float("-inf")):  # noqa: PLR0124
            return f"[{item}]"
        return MASK if str(item) in secrets else item
    return clean(mask_text(str(item), secrets), longest)


class _Cleaner:
    """Applies the above to every text and value of a report."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self.secrets = tuple(secrets)
        self._frames: dict[int, Frame] = {}
        """By identity: one frame is evidence in many places. The report that is cleaned keeps them all alive."""

    def text(self, text: str) -> str:
        return line(mask_text(text, self.secrets))

    def texts(self, texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.text(text) for text in texts)

    def value(self, value: object) -> Any:
        return clean_value(value, self.secrets)

    def frames(self, frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
        if len(frames) > MOST_FRAMES:
            half = MOST_FRAMES // 2
            left_out = len(frames) - 2 * half
            gap = Frame(
                at=frames[half].at,
                direction=Direction.NOTE,
                channel=frames[half].channel,
                connection=frames[half].connection,
                message=f"[cut: {left_out} more frames]",
            )
            frames = (*frames[:half], gap, *frames[-half:])
        return tuple(self.frame(frame) for frame in frames)

    def frame(self, frame: Frame) -> Frame:
        if frame.direction is Direction.NOTE:
            # Small; and that of a gap is no part of the report, so its identity may come again.
            return self._fresh(frame)
        if id(frame) not in self._frames:
            self._frames[id(frame)] = self._fresh(frame)
        return self._frames[id(frame)]

    def _fresh(self, frame: Frame) -> Frame:
        return msgspec.structs.replace(frame, message=self.value(frame.message), channel=self.text(frame.channel))

    def row(self, row: RowResult) -> RowResult:
        return msgspec.structs.replace(
            row,
            id=self.text(row.id),
            path=self.text(row.path),
            message=self.text(row.message),
            hint=self.text(row.hint),
            evidence=self.frames(row.evidence),
        )

    def finding(self, finding: Finding) -> Finding:
        return msgspec.structs.replace(
            finding,
            code=self.text(finding.code),
            message=self.text(finding.message),
            hint=self.text(finding.hint),
            evidence=self.frames(finding.evidence),
        )

    def view(self, view: HostView) -> HostView:
        return msgspec.structs.replace(
            view,
            effective={self.text(path): self.text(use) for path, use in view.effective.items()},
            tools=self.names(view.tools),
            prompts=self.names(view.prompts),
            resources=self.names(view.resources),
            notes=self.texts(view.notes),
        )

    def names(self, names: tuple[str, ...]) -> tuple[str, ...]:
        rest = len(names) - MOST_NAMES
        return (*self.texts(names[:MOST_NAMES]), *((f"[cut: {rest} more]",) if rest > 0 else ()))

    def revision(self, report: RevisionReport) -> RevisionReport:
        return msgspec.structs.replace(
            report,
            negotiated=None if report.negotiated is None else self.text(report.negotiated),
            declared=self.value(report.declared),
            rows=tuple(self.row(row) for row in report.rows),
            findings=tuple(self.finding(finding) for finding in report.findings),
            reason=self.text(report.reason),
            host_view=None if report.host_view is None else self.view(report.host_view),
        )

    def target(self, report: TargetReport) -> TargetReport:
        return msgspec.structs.replace(
            report,
            name=clean_name(report.name, self.secrets),
            address=self.text(report.address),
            server_info=self.value(report.server_info),
            revisions={revision: self.revision(part) for revision, part in report.revisions.items()},
            findings=tuple(self.finding(finding) for finding in report.findings),
            reason=self.text(report.reason),
        )


def clean_name(name: str, secrets: Iterable[str] = ()) -> str:
    """The name of a target as it stands in a clean report."""
    return line(mask_text(name, secrets))


def clean_report(report: AuditReport, secrets: Iterable[str] = ()) -> AuditReport:
    """The report with everything that peers or users put into it made safe to show.

    Args:
        report: As the audit made it.
        secrets: Values that must not appear (``Target.secrets``); secret headers and URL parts are masked anyway.
    """
    cleaner = _Cleaner(secrets)
    return msgspec.structs.replace(
        report,
        command_line=cleaner.texts(report.command_line),
        targets=tuple(cleaner.target(target) for target in report.targets),
        stale=cleaner.texts(report.stale),
    )
