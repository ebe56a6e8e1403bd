"""Every test here runs on asyncio; those that say so, for an upstream and a host of each era."""

from __future__ import annotations

import pytest
from middle_gateway import PATIENCE
from middle_site import EACH

from troth.gateway import listening, member


@pytest.fixture(autouse=True)
def _calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no reason to go on before an upstream has taken a level or a subscription."""
    monkeypatch.setattr(member, "LEVELLING", PATIENCE)
    monkeypatch.setattr(listening, "ACKNOWLEDGED", PATIENCE)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=EACH, ids=lambda revision: f"upstream-{revision}")
def upstream(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=EACH, ids=lambda revision: f"host-{revision}")
def revision(request: pytest.FixtureRequest) -> str:
    return request.param
