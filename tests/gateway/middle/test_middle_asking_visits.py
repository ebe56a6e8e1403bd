"""A host hears that a visit to an address is complete while its call runs."""

from __future__ import annotations

import asyncio

import pytest
from middle_gateway import PATIENCE, messages, serving
from middle_site import OLD, site

pytestmark = pytest.mark.anyio

URL = {"elicitation": {"url": {}}}


async def test_the_host_of_a_call_hears_that_its_visit_is_complete() -> None:
    async with (
        site(OLD, variant="asker") as one,
        serving(one.settings("one")) as served,
        served.legacy(declares=URL) as peer,
        asyncio.timeout(PATIENCE),
    ):
        message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "ask_url"}}
        async with peer.served.http.post(f"{served.url}/mcp", json=message, headers=peer.base) as response:
            async for item in messages(response):
                if item.get("method") == "elicitation/create":
                    visit = {"elicitationId": item["params"]["elicitationId"]}
                    pending = [p for one_ in one.script.sessions.values() for p in one_.pending.values()]
                    for params in ({"elicitationId": "of nobody"}, visit):
                        told = ("notifications/elicitation/complete", params, pending[0].call.stream)
                        one.do(lambda script, told=told: script.notify(*told))
                    break
            async for item in messages(response):
                assert item["method"] == "notifications/elicitation/complete"
                assert item["params"] == visit
                break
