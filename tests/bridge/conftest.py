"""Makes the helpers of the tests of results importable by their bare name."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "results"))
