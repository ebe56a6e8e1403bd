"""The report as SARIF 2.1.0, for code scanning: a rule per row and finding code, a result per fault.

GitHub refuses a file in which one result lacks a physical location, so each is pinned to the line that configures the
target, to ``--anchor``, or to ``DEFAULT_FILE``.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from troth.audit.model import Severity
from troth.audit.report.common import excerpt, title
from troth.audit.verdicts import FINDINGS, VERDICTS
from troth.register import register

if TYPE_CHECKING:
    from troth.audit.report.common import Item, View
    from troth.audit.targets import Place

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

DEFAULT_FILE = "mcp.json"
"""Where a result is pinned if nothing says where its target is configured."""

LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note", Severity.NONE: "none"}


def render(view: View) -> str:
    """The report as SARIF 2.1.0, with what the baseline suppresses marked as such."""
    faults = [item for item in view.items if item.severity is not Severity.NONE]
    ids = sorted({item.id for item in faults})
    run = {
        "tool": {
            "driver": {
                "name": "troth",
                "version": view.report.troth,
                "rules": [_rule(identifier) for identifier in ids],
            }
        },
        "columnKind": "unicodeCodePoints",
        "automationDetails": {"id": "troth/audit/"},
        "invocations": [
            {
                "commandLine": " ".join(view.report.command_line),
                "startTimeUtc": view.report.started_at,
                "executionSuccessful": True,
            }
        ],
        "results": [_result(view, item, ids.index(item.id)) for item in faults],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _rule(identifier: str) -> dict[str, Any]:
    row = register().by_id.get(identifier)
    name = row.path if row is not None else identifier
    finding = FINDINGS.get(identifier)
    text = title(identifier)
    more = (row.breaks if row is not None else "") or text
    known = f"troth explain {identifier}" if row is not None else ""
    words = re.findall(r"[A-Za-z0-9]+", name)
    return {
        "id": identifier,
        "name": "".join(word[:1].upper() + word[1:] for word in words) or identifier,
        "shortDescription": {"text": text},
        "fullDescription": {"text": more},
        "help": {"text": f"{more} {known}".strip()},
        "defaultConfiguration": {"level": LEVELS[finding.severity if finding is not None else Severity.ERROR]},
    }


def _result(view: View, item: Item, rule: int) -> dict[str, Any]:
    where = f"{item.target}, revision {item.revision}" if item.revision else item.target
    verdict = f"{item.verdict.value}: " if item.verdict is not None else ""
    path = f"{item.path}: " if item.path else ""
    meaning = VERDICTS[item.verdict].text if item.verdict is not None else title(item.id)
    result: dict[str, Any] = {
        "ruleId": item.id,
        "ruleIndex": rule,
        "level": LEVELS[item.severity],
        "message": {"text": _words(f"{path}{verdict}{item.message} ({where})", item)},
        "locations": [_location(view.anchor or view.places.get(item.target), item)],
        "partialFingerprints": {"troth/v1": _fingerprint(item)},
        "properties": {
            "target": item.target,
            "revision": item.revision or None,
            "verdict": item.verdict.value if item.verdict is not None else None,
            "meaning": meaning,
            "source": item.source or None,
            "again": view.again(item),
            "evidence": [f"{label} {text}".strip() for label, text in excerpt(item.evidence, whole=view.verbose)],
        },
    }
    if item.suppressed:
        result["suppressions"] = [{"kind": "external", "justification": "in the baseline"}]
    return result


def _words(text: str, item: Item) -> str:
    return " ".join(part for part in (text, item.hint, f"[{item.source}]" if item.source else "") if part)


def _location(place: Place | None, item: Item) -> dict[str, Any]:
    uri = _uri(place.file if place is not None else DEFAULT_FILE)
    line = max(place.line, 1) if place is not None else 1
    artifact: dict[str, Any] = {"uri": uri}
    if not uri.startswith("file:"):
        artifact["uriBaseId"] = "%SRCROOT%"
    physical = {"artifactLocation": artifact, "region": {"startLine": line}}
    logical = {"name": item.path or item.id, "fullyQualifiedName": f"{item.target}/{item.revision or '*'}/{item.id}"}
    return {"physicalLocation": physical, "logicalLocations": [logical]}


def _uri(file: str) -> str:
    """The file relative to the working directory if it lies in it, as a URI."""
    path = Path(file)
    if path.is_absolute():
        if not path.is_relative_to(Path.cwd()):
            return path.as_uri()
        path = path.relative_to(Path.cwd())
    return quote(path.as_posix())


def _fingerprint(item: Item) -> str:
    """The same from run to run for the same fault: made of what a baseline keeps."""
    entry = item.entry
    parts = (entry.target, entry.revision, entry.id, entry.verdict, *entry.rows)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
