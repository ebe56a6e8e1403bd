"""Writes the JSON Schemas: of the JSON report from the structs that make it, of the configuration from its keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from troth.audit.model import AuditReport
from troth.gateway.config import schema as configuration

SOURCE = Path(__file__).parent.parent / "src/troth"
PATH = SOURCE / "audit/report/schema.json"
CONFIGURATION = SOURCE / "gateway/config"


def written(value: dict[str, Any]) -> str:
    """A schema as text, as it stands in the package."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def schema() -> str:
    """The schema of the report."""
    value = msgspec.json.schema(AuditReport)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Report of troth audit --format json"}
    return written({**head, **value})


def configurations() -> dict[Path, str]:
    """The schemas of both forms of the configuration, by file."""
    return {
        CONFIGURATION / name: written(configuration.schema(toml=toml)) for name, toml in configuration.FORMS.items()
    }


if __name__ == "__main__":
    PATH.write_text(schema(), "utf-8")
    for path, text in configurations().items():
        path.write_text(text, "utf-8")
