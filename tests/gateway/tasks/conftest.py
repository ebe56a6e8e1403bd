"""Every test here runs on asyncio, with the hosts and servers of the tests of the middle."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "middle"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
