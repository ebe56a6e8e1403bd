"""Questions that people answer in the place of a host."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from middle_gateway import MODERN, PATIENCE, Modern, Told, server, serving
from middle_site import site

from troth.gateway.broker import Broker, Pending, State
from troth.gateway.settings import Share

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from troth.bridge.errors import ErrorValue
    from troth.gateway.gateway import Gateway
    from troth.gateway.settings import UpstreamSettings

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
async def brokered(
    revision: str, folder: Path, settings: UpstreamSettings | None = None, tokens: tuple[str, ...] = ()
) -> AsyncGenerator[tuple[Modern, Broker]]:
    """A host that declares nothing, in front of a server whose questions people answer."""
    ask = ("host", "broker")
    settings = settings or server("one", "--variant", "asker", "--revision", revision, ask=ask)

    def made(gateway: Gateway) -> Broker:
        return Broker(folder / "questions.db", gateway.limits, run="r", clock=time.time, crew=gateway.crew)

    async with serving(settings, eager=False, tokens=tokens) as served:
        broker = served.gateway.broker = made(served.gateway)
        await broker.start()
        try:
            async with served.modern(token="".join(tokens[:1])) as peer, asyncio.timeout(PATIENCE):
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


@pytest.mark.parametrize("tokens", [("anna",), ("anna", "bert")])
@pytest.mark.parametrize("share", [Share.AUTO, Share.ALWAYS])
async def test_rule_4_people_are_sent_nowhere_by_a_server_that_takes_everybody_for_one(
    tokens: tuple[str, ...], share: Share, tmp_path: Path
) -> None:
    async with site(MODERN, variant="asker") as one:
        settings = one.settings("one", ask=("host", "broker"), share=share)
        async with brokered(MODERN, tmp_path, settings, tokens) as (peer, broker):
            broker.watch()
            call = asyncio.get_running_loop().create_task(peer.call("ask_url"))
            if len(tokens) == 1 and share is Share.AUTO:
                await broker.decline((await asked(broker, call)).id)
                assert "result" in (await call).answer
            else:
                assert (await call).error["data"]["requiredCapabilities"] == {"elicitation": {"url": {}}}


async def test_nobody_waits_for_people_who_ceased_to_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with brokered(MODERN, tmp_path) as (peer, broker):
        # It watches when the call begins, and no more when the question comes.
        looks = iter([True])
        monkeypatch.setattr(Broker, "watched", property(lambda _: next(looks, False)))
        assert (await peer.call("ask_url")).result["content"]
        assert await broker.pending() == ()


async def test_a_legacy_server_that_was_not_told_so_may_not_send_people_somewhere(tmp_path: Path) -> None:
    options = ("--variant", "asker", "--revision", "2025-11-25", "--break", "asks-undeclared-url")
    bold = server("one", *options, ask=("host", "broker"))
    async with brokered("2025-11-25", tmp_path, bold) as (peer, broker):
        broker.watch()
        call = asyncio.get_running_loop().create_task(peer.call("ask_url"))
        with pytest.raises(AssertionError, match="'id': 1"):
            await asked(broker, call)


@pytest.mark.parametrize(("tool", "said"), [("ask_form", "cancel"), ("ask_sampling", "it cannot be kept for people")])
async def test_a_question_that_cannot_be_kept_is_answered_at_once(tool: str, said: str, tmp_path: Path) -> None:
    settings = server("one", "--variant", "asker", "--revision", "2025-11-25", ask=("host", "broker"), ask_timeout=3600)
    (tmp_path / "state").write_text("a file where a folder belongs")
    async with serving(settings, eager=False) as served:
        gateway = served.gateway
        path = tmp_path / "state" / "questions.db"
        gateway.broker = Broker(path, gateway.limits, run="r", clock=time.time, crew=gateway.crew)
        async with served.modern() as peer, asyncio.timeout(PATIENCE):
            assert said in str((await peer.call(tool)).answer)


class Slow(Broker):
    """Hands out what it kept when it is told to."""

    def __init__(self, path: Path, gateway: Gateway) -> None:
        super().__init__(path, gateway.limits, run="r", clock=time.time, crew=gateway.crew)
        self.kept: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.go = asyncio.Event()

    async def ask(self, *given: Any, **more: Any) -> Pending | ErrorValue:
        found = await super().ask(*given, **more)
        assert isinstance(found, Pending)
        self.kept.set_result(found.id)
        await self.go.wait()
        return found


async def test_people_are_not_asked_for_a_call_that_was_cancelled_meanwhile(tmp_path: Path) -> None:
    settings = server("one", "--variant", "asker", "--revision", "2025-11-25", ask=("host", "broker"), ask_timeout=3600)
    async with serving(settings, eager=False) as served:
        broker = served.gateway.broker = Slow(tmp_path / "questions.db", served.gateway)
        try:
            async with served.legacy() as peer, asyncio.timeout(PATIENCE):
                call = asyncio.get_running_loop().create_task(peer.call("ask_form"))
                name = await broker.kept
                await peer.notify("notifications/cancelled", {"requestId": 1})
                await call
                broker.go.set()
                assert (found := await broker.wait(name)) is not None
                assert found.state is State.CANCELLED
        finally:
            await broker.close()
