"""Audits of broken servers: each promise is broken once, and the probe that guards it must say so."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"
