"""One JSON object a line, for streams and log stores: a header, each row and finding, a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from troth.audit.report.common import to_json

if TYPE_CHECKING:
    from troth.audit.model import TargetReport
    from troth.audit.report.common import Item, View


def render(view: View) -> str:
    """The report as JSON lines; ``type`` tells them apart: header, target, revision, row, finding, summary."""
    report = view.report
    lines: list[dict[str, Any]] = [
        {
            "type": "header",
            "troth": report.troth,
            "startedAt": report.started_at,
            "commandLine": list(report.command_line),
            "targets": [target.name for target in report.targets],
        }
    ]
    for target in report.targets:
        lines.extend(_target(target))
        lines.extend(_item(item) for item in view.items_of(target))
    lines.append(
        {
            "type": "summary",
            "verdicts": {str(verdict): count for verdict, count in view.verdicts.items()},
            "severities": {str(severity): count for severity, count in view.severities.items()},
            "suppressed": report.suppressed,
            "stale": list(report.stale),
        }
    )
    return "".join(f"{to_json(line)}\n" for line in lines)


def _target(target: TargetReport) -> list[dict[str, Any]]:
    facts: dict[str, Any] = msgspec.to_builtins(target)
    revisions: dict[str, dict[str, Any]] = facts.pop("revisions")
    facts.pop("findings", None)
    lines: list[dict[str, Any]] = [{"type": "target", **facts}]
    for revision, part in revisions.items():
        del part["rows"], part["findings"]
        lines.append({"type": "revision", "target": target.name, "revision": revision, **part})
    return lines


def _item(item: Item) -> dict[str, Any]:
    where: dict[str, Any] = {"target": item.target, "revision": item.revision or None}
    if item.verdict is not None:
        what: dict[str, Any] = {"type": "row", **where, "id": item.id, "path": item.path, "side": item.side}
        what["verdict"] = str(item.verdict)
    else:
        what = {"type": "finding", **where, "code": item.id, "rows": list(item.rows)}
    what |= {"severity": str(item.severity), "message": item.message}
    what |= {key: text for key, text in (("hint", item.hint), ("source", item.source)) if text}
    if item.suppressed:
        what["suppressed"] = True
    what["evidence"] = msgspec.to_builtins(item.evidence)
    return what
