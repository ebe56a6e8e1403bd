"""The whole report as JSON: the structs of ``audit.model``, whose schema is ``schema.json`` beside this file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from troth.audit.report.common import View


def render(view: View) -> str:
    """The report as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(view.report), indent=2).decode() + "\n"
