"""Where helpers are found: those that run audits are shared with the captures; clients and servers are scripts."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "captures"), str(HERE / "clients"), str(HERE / "servers")]
