"""Makes the helpers of the tests of results importable, and property tests fit for a busy machine."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.append(str(Path(__file__).parents[1] / "results"))

# How long an example takes is the machine's affair; pytest bounds the whole test.
settings.register_profile("bridge", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bridge")
