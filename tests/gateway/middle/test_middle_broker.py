"""Questions that people answer in the place of a host."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from middle_gateway import MODERN, PATIENCE, Modern, Told, server, serving

from troth.gateway.broker import Broker, Pending

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
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


@asynccontextmanager
async def brokered(revision: str, folder: Path) -> AsyncGenerator[tuple[Modern, Broker]]:
    """A host that declares nothing, in front of a server whose questions people answer."""
    settings = server("one", "--variant", "asker", "--revision", revision, ask=("host", "broker"))

    def made(gateway: Gateway) -> Broker:
        return Broker(folder / "questions.db", gateway.limits, run="r", clock=time.time, crew=gateway.crew)

    async with serving(settings, eager=False) as served:
        broker = served.gateway.broker = made(served.gateway)
        await broker.start()
        try:
            async with served.modern() as peer, asyncio.timeout(PATIENCE):
                yield peer, broker
        finally:
            await broker.close()


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_a_host_that_cannot_be_asked_gets_what_people_answer(revision: str, tmp_path: Path) -> None:
    async with brokered(revision, tmp_path) as (peer, broker):
        call = asyncio.get_running_loop().create_task(peer.call("ask_form"))
        pending = await asked(broker, call)
        assert pending.upstream == "one"
        await broker.answer(pending.id, {"name": "Ada"})
        assert "Ada" in str((await call).result)


async def test_people_are_sent_to_an_address_while_one_of_them_watches(tmp_path: Path) -> None:
    async with brokered(MODERN, tmp_path) as (peer, broker):
        assert (await peer.call("ask_url")).error["data"]["requiredCapabilities"] == {"elicitation": {"url": {}}}
        broker.watch()
        call = asyncio.get_running_loop().create_task(peer.call("ask_url"))
        pending = await asked(broker, call)
        assert b"https://" in bytes(pending.params)
        await broker.answer(pending.id, None)
        assert (await call).result["content"]


async def test_nobody_waits_for_people_who_ceased_to_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with brokered(MODERN, tmp_path) as (peer, broker):
        # It watches when the call begins, and no more when the question comes.
        looks = iter([True])
        monkeypatch.setattr(Broker, "watched", property(lambda _: next(looks, False)))
        assert (await peer.call("ask_url")).result["content"]
        assert await broker.pending() == ()


async def test_a_legacy_server_is_never_told_that_it_may_send_people_somewhere(tmp_path: Path) -> None:
    async with brokered("2025-11-25", tmp_path) as (peer, broker):
        broker.watch()
        told = await peer.call("ask_url")
        assert told.result["isError"]
        assert await broker.pending() == ()
