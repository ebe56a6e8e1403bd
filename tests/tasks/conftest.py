"""Tests of tasks run on asyncio, with the helpers of the tests of results at hand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "results"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
