"""Pauses between attempts: doubling, bounded, and never in step with anybody else's."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from troth.gateway.limits import Limits

STEADY: Final = 30.0
"""Seconds without an attempt after which the next failure counts as the first."""
JITTER: Final = 0.25
"""By which part a pause may be longer: upstreams that fell together are not started together."""


class Pause:
    """Tells how long to wait before the next attempt.

    Args:
        limits: Named limits (``back_off``, ``back_off_most``).
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._next = limits.back_off
        self._last = 0.0

    def next(self) -> float:
        """Seconds to wait now."""
        now = time.monotonic()
        if now - self._last > self._next + STEADY:
            self._next = self._limits.back_off
        pause, self._next = self._next, min(self._next * 2, self._limits.back_off_most)
        # Cleverness of an attacker gains nothing here.
        pause *= 1 + random.random() * JITTER  # noqa: S311
        self._last = now + pause
        return pause
