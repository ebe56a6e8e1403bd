"""Questions that people answer in the place of a host."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest
from middle_gateway import MODERN, PATIENCE, Told, server, serving

from troth.gateway.broker import Broker, Pending

if TYPE_CHECKING:
    from pathlib import Path

    from troth.gateway.gateway import Gateway

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def asked(broker: Broker, call: asyncio.Task[Told]) -> Pending:
    """The first question that is kept."""
    while not call.done():
        for pending in await broker.pending():
            return pending
    raise AssertionError(call.result())


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_a_host_that_cannot_be_asked_gets_what_people_answer(revision: str, tmp_path: Path) -> None:
    settings = server("one", "--variant", "asker", "--revision", revision, ask=("host", "broker"))

    def made(gateway: Gateway) -> Broker:
        return Broker(tmp_path / "questions.db", gateway.limits, run="r", clock=time.time, crew=gateway.crew)

    async with serving(settings, eager=False) as served:
        broker = served.gateway.broker = made(served.gateway)
        await broker.start()
        try:
            async with served.modern() as peer, asyncio.timeout(PATIENCE):
                call = asyncio.get_running_loop().create_task(peer.call("ask_form"))
                pending = await asked(broker, call)
                assert pending.upstream == "one"
                await broker.answer(pending.id, {"name": "Ada"})
                assert "Ada" in str((await call).result)
        finally:
            await broker.close()
