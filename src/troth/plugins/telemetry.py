"""What gating did, for logs and traces: structured records of ``troth.gating``, attributes of the current span.

OpenTelemetry is used where its API is installed, and never asked for. Names of primitives and capabilities are said,
arguments and results never are.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.gating import Decision
    from troth.plugins.honest import Current

logger = logging.getLogger("troth.gating")

MOST_NAMES = 50
"""Names of hidden primitives that one record says."""


def note_list(asker: Current, method: str, shown: int, hidden: Mapping[str, str]) -> None:
    """Notes what of a list was shown, and what was hidden and why."""
    names = list(hidden)[:MOST_NAMES]
    _span({"troth.revision": asker.revision, "troth.list.shown": shown, "troth.list.hidden": names})
    if logger.isEnabledFor(logging.DEBUG):
        extra = {
            "troth_method": method,
            "troth_revision": asker.revision,
            "troth_shown": shown,
            "troth_hidden": {name: hidden[name] for name in names},
        }
        logger.debug("%s: %d shown, %d hidden", method, shown, len(hidden), extra=extra)


def note_refusal(asker: Current, method: str, decision: Decision, place: str = "") -> None:
    """Notes that something was refused for want of capabilities.

    Args:
        asker: The host.
        method: What was asked of us, or what we would have asked the host.
        decision: Why.
        place: ``file:line`` of the author's code, where it is code that asked.
    """
    _span({"troth.revision": asker.revision, "troth.refused": method, "troth.missing": list(decision.missing)})
    extra = {
        "troth_method": method,
        "troth_revision": asker.revision,
        "troth_primitive": decision.primitive.name,
        "troth_missing": decision.missing,
        "troth_place": place,
    }
    logger.info("refused %s: %s%s", method, decision.why, f" ({place})" if place else "", extra=extra)


@cache
def _api() -> Any:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace


def _span(attributes: Mapping[str, Any]) -> None:
    api = _api()
    if api is not None and (span := api.get_current_span()).is_recording():
        span.set_attributes(attributes)
