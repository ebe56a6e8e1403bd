"""How a conversation comes about where the way is not straight."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from upstream_peers import LEGACY, MODERN, PATIENCE, http, script, stdio, upstream
from upstream_web import Asked, legacy, modern, website

from troth.gateway.settings import EraChoice, Transport
from troth.gateway.upstream import dial

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.anyio, pytest.mark.behaviour("GEN-C3")]

SERVER = """
import json, sys
asked = []
for line in sys.stdin:
    message = json.loads(line)
    method, request = message.get("method"), message.get("id")
    asked.append(method)
    def say(**what):
        print(json.dumps({"jsonrpc": "2.0", "id": request, **what}), flush=True)
    def fail(code, **more):
        say(error={"code": code, "message": "no", **more})
    def shake():
        say(result={"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x"}})
"""

DIES_AFTER_A_PROBE = """
    if method == "server/discover":
        fail(-32601)
    elif method == "initialize" and len(asked) > 1:
        sys.exit(1)
    elif method == "initialize":
        shake()
"""
NAMES_NO_REVISION = """
    if method == "server/discover":
        say(result={"capabilities": {"tools": {}}})
    elif method == "initialize":
        fail(-32601)
"""
SPEAKS_OTHERS = """
    if method == "server/discover":
        fail(-32022, data={"supported": ["2099-01-01", 7, "2098-01-01"]})
    elif method == "initialize":
        fail(-32601)
"""


async def test_a_process_that_dies_of_a_handshake_after_a_probe_gets_one_without(tmp_path: Path) -> None:
    async with upstream(stdio(*script(tmp_path, SERVER + DIES_AFTER_A_PROBE))) as (one, ears):
        assert (await one.ready(PATIENCE)).revision == LEGACY
        assert ears.count("down") == 0


async def test_a_process_that_names_no_revision_and_shakes_no_hands_is_modern(tmp_path: Path) -> None:
    async with upstream(stdio(*script(tmp_path, SERVER + NAMES_NO_REVISION))) as (one, _ears):
        talk = await one.ready(PATIENCE)
        assert (talk.revision, talk.capabilities.has("tools")) == (MODERN, True)


async def test_a_server_of_unknown_revisions_is_named(tmp_path: Path) -> None:
    async with upstream(stdio(*script(tmp_path, SERVER + SPEAKS_OTHERS))) as (_one, ears):
        assert "it offers 2099-01-01, 2098-01-01" in await ears.until("down")


async def test_silence_over_http_is_an_old_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dial, "PROBE_SILENT", 0.2)

    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method == "server/discover":
            return await asyncio.sleep(PATIENCE, web.Response())
        return await legacy(asked) or asked.answer(result={})

    async with website(handle) as site, upstream(http(site.url)) as (one, _ears):
        assert (await one.ready(PATIENCE)).revision == LEGACY


MALFORMED: dict[str, tuple[Any, str]] = {
    "silence": (None, "initialize timed out after 0.3 s"),
    "no version": ({"result": {"capabilities": {}}}, "initialize offers revision ''"),
    "a version that is no text": ({"result": {"protocolVersion": 1}}, "initialize got a malformed answer"),
    "two versions": ({"result": {"protocolVersion": "a", "PROTOCOLVERSION": "b"}}, "initialize got a malformed answer"),
}


@pytest.mark.parametrize("name", MALFORMED)
async def test_a_handshake_that_goes_wrong_says_how(name: str) -> None:
    members, words = MALFORMED[name]

    async def handle(asked: Asked) -> web.StreamResponse:
        if members is None:
            return await asyncio.sleep(PATIENCE, web.Response())
        return asked.answer(**members)

    settings = replace(http(""), era=EraChoice.LEGACY, start_timeout=0.3 if members is None else 30.0)
    async with website(handle) as site, upstream(replace(settings, url=site.url)) as (_one, ears):
        assert words in await ears.until("down")


async def test_where_no_transport_is_known_the_first_refusal_is_told() -> None:
    async def handle(_asked: Asked) -> web.StreamResponse:
        return web.Response(status=405, text="not here")

    async with website(handle) as site, upstream(http(site.url)) as (_one, ears):
        assert "405" in await ears.until("down")


async def test_initialized_that_is_refused_is_no_handshake() -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        if asked.method == "notifications/initialized":
            return web.Response(status=503)
        return await legacy(asked) or asked.answer(result={})

    async with website(handle) as site, upstream(http(site.url)) as (_one, ears):
        why = await ears.until("down")
        assert ("notifications/initialized" in why, "503" in why) == (True, True)


async def test_the_oldest_transport_can_be_chosen() -> None:
    async def handle(_asked: Asked) -> web.StreamResponse:
        return web.Response(status=404)

    settings = replace(http(""), transport=Transport.SSE)
    async with website(handle) as site, upstream(replace(settings, url=site.url)) as (_one, ears):
        assert "404" in await ears.until("down")
        assert {one.verb for one in site.asked} == {"GET"}


@pytest.mark.parametrize("found", ["", "legacy", "legacy http", "legacy ftp 1", "legacy http x", "legacy http 1"])
async def test_a_memory_that_is_odd_or_old_is_no_memory(found: str) -> None:
    async def handle(asked: Asked) -> web.StreamResponse:
        return await modern(asked) or asked.answer(result={})

    memory: dict[str, str] = {}
    async with website(handle) as site:
        async with upstream(http(site.url), memory=memory) as (one, _ears):
            await one.ready(PATIENCE)
        memory[next(iter(memory))] = found
        async with upstream(http(site.url), memory=memory) as (one, _ears):
            assert (await one.ready(PATIENCE)).revision == MODERN
        assert [asked.method for asked in site.asked] == ["server/discover"] * 2
