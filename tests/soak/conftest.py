"""The soak is a script; its modules are found beside it, and the servers with the interop tests."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "interop")]
