"""Twenty seconds of the soak: nothing that was promised is lost, and nothing stays."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


def test_a_short_soak_breaks_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    from soak import soak

    assert soak(seconds=20, hosts=40, seed=7, folder=tmp_path) == []
