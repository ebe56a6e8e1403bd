"""Writes the JSON Schema of the JSON report from the structs that make it."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from troth.audit.model import AuditReport

PATH = Path(__file__).parent.parent / "src/troth/audit/report/schema.json"


def schema() -> str:
    """The schema as text, as it stands in the package."""
    value = msgspec.json.schema(AuditReport)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Report of troth audit --format json"}
    return json.dumps({**head, **value}, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(schema(), "utf-8")
