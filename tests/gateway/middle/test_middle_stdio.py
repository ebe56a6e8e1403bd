"""The whole gateway on its own pipes (`troth serve --stdio`), in front of a server of either era."""

from __future__ import annotations

import asyncio
import json
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from middle_gateway import META, MODERN, PATIENCE, Inbox
from middle_site import OLD, TAG, Site, on_pipes, site

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

pytestmark = pytest.mark.anyio

TOOLS = "notifications/tools/list_changed"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
UPDATED = "notifications/resources/updated"
LIST = {"jsonrpc": "2.0", "method": "tools/list"}


class Piped:
    """A host at the other end of the gateway's pipes, of both eras at once."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.inbox = Inbox()

    async def pump(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            self.inbox.put(json.loads(line))
        self.inbox.put({"ended": True})

    def send(self, *messages: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def request(self, number: Any, method: str, params: dict[str, Any] | None = None, *, modern: bool = True) -> Any:
        meta = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}} if modern else {}
        full = {**(params or {}), **({"_meta": meta} if modern else {})}
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": full}

    def initialize(self) -> Any:
        params = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "pipes", "version": "1"}}
        return self.request(0, "initialize", params, modern=False)

    async def answer(self, number: Any) -> dict[str, Any]:
        return await self.inbox.until(lambda message: message.get("id") == number and "method" not in message)

    def place(self, holds: Any) -> int:
        return next(place for place, message in enumerate(self.inbox.all) if holds(message))


@asynccontextmanager
async def piped(one: Site, folder: Path) -> AsyncGenerator[Piped]:
    process = await on_pipes(one, folder)
    host = Piped(process)
    pump = asyncio.get_running_loop().create_task(host.pump())
    try:
        yield host
    finally:
        assert process.stdin is not None
        process.stdin.close()
        async with asyncio.timeout(PATIENCE):
            await process.wait()
            await pump


@pytest.mark.behaviour("CAP-15-S2", "CAP-17-S2", "CAP-20-S2", "GEN-S11")
async def test_a_legacy_host_on_pipes_may_send_all_at_once_and_hears_of_changes_once_it_is_initialized(
    upstream: str, tmp_path: Path
) -> None:
    async with site(upstream) as one, piped(one, tmp_path) as host:
        # A host that pipelines does not wait for the answer to initialize.
        host.send(host.initialize(), {**LIST, "id": 1}, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        opening = (await host.answer(0))["result"]
        assert opening["capabilities"]["tools"] == {"listChanged": True}
        assert opening["capabilities"]["resources"] == {"listChanged": True, "subscribe": True}
        assert len((await host.answer(1))["result"]["tools"]) == 15
        assert host.place(lambda message: message.get("id") == 0) == 0
        one.add("tools")
        assert await host.inbox.method(TOOLS) == {"jsonrpc": "2.0", "method": TOOLS}
        host.send(host.request(2, "resources/subscribe", {"uri": "note://notes/one"}, modern=False))
        assert (await host.answer(2))["result"] == {}
        one.touch("note://notes/one")
        assert (await host.inbox.method(UPDATED))["params"] == {"uri": "note://notes/one"}


@pytest.mark.behaviour("CAP-15-S2")
async def test_a_host_on_pipes_hears_nothing_before_it_is_initialized(tmp_path: Path) -> None:
    async with site(OLD) as one, piped(one, tmp_path) as host:
        host.send(host.initialize())
        await host.answer(0)
        host.send(host.request(9, "tools/list"))
        await host.answer(9)
        host.send(host.request("listen", "subscriptions/listen", {"notifications": {"toolsListChanged": True}}))
        await host.inbox.method(ACKNOWLEDGED)
        one.add("tools")
        # The listen of the same host says when the change is out; the session is not told yet.
        await host.inbox.method(TOOLS)
        untagged = [message for message in host.inbox.all if message.get("method") == TOOLS and "params" not in message]
        assert untagged == []
        host.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        one.add("tools")
        await host.inbox.until(lambda message: message.get("method") == TOOLS and "params" not in message)


@pytest.mark.behaviour("CAP-15-S5", "CAP-15-S4")
async def test_listens_on_pipes_are_acknowledged_tagged_cancelled_and_ended(upstream: str, tmp_path: Path) -> None:
    async with site(upstream) as one, piped(one, tmp_path) as host:
        filters = {"toolsListChanged": True, "resourceSubscriptions": ["note://notes/one"]}
        host.send(
            host.request("first", "subscriptions/listen", {"notifications": filters}),
            host.request(2, "subscriptions/listen", {"notifications": {"promptsListChanged": True}}),
        )

        def of(tag: Any, method: str) -> Any:
            return lambda message: (
                message.get("method") == method and message["params"].get("_meta", {}).get(TAG) == tag
            )

        first = await host.inbox.until(of("first", ACKNOWLEDGED))
        second = await host.inbox.until(of(2, ACKNOWLEDGED))
        assert first["params"]["notifications"] == filters
        assert second["params"]["notifications"] == {"promptsListChanged": True}
        one.add("tools", "prompts")
        one.touch("note://notes/one")
        await host.inbox.until(of("first", TOOLS))
        await host.inbox.until(of("first", UPDATED))
        await host.inbox.until(of(2, "notifications/prompts/list_changed"))
        assert not any(map(of(2, TOOLS), host.inbox.all))
        # The host ends one by a message, and it has no answer; its subscription goes with it.
        host.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "first"}})
        host.send(host.request(3, "subscriptions/listen", {"notifications": {"toolsListChanged": True}}))
        await host.inbox.until(of(3, ACKNOWLEDGED))
        mark = len(host.inbox.all)
        one.add("tools")
        await host.inbox.until(of(3, TOOLS), mark)
        assert not any(map(of("first", TOOLS), host.inbox.all[mark:]))
        # The gateway ends the others: a cancellation for who reads pipes, and the result.
        host.process.send_signal(signal.SIGTERM)
        for tag in (2, 3):
            ended = await host.answer(tag)
            assert ended["result"] == {"resultType": "complete", "_meta": {TAG: tag}}
            cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": tag}}
            assert host.inbox.all.index(cancelled) < host.inbox.all.index(ended)
        assert not any(message.get("id") == "first" for message in host.inbox.all)


@pytest.mark.behaviour("GEN-S11", "CAP-15-S1")
async def test_both_transports_declare_by_the_same_rule_with_the_same_reasons(tmp_path: Path) -> None:
    from middle_gateway import serving

    async with site(OLD) as one, piped(one, tmp_path) as host:
        host.send(host.initialize(), host.request(1, "server/discover"))
        legacy, modern = (await host.answer(0))["result"], (await host.answer(1))["result"]
        async with serving(one.settings("one")) as served, served.legacy() as peer, served.modern() as other:
            assert legacy["capabilities"] == peer.opening["capabilities"]
            told = (await other.ask("server/discover")).result
            assert modern["capabilities"] == told["capabilities"]
            (session,) = served.front.sessions
            assert session.built.why["tools.listChanged"]
            assert "declared by: one" in session.built.why["tools"]
