"""Upstreams that others wrote, or that are written with SDKs of others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from upstream_peers import LEGACY, MODERN, PATIENCE, Ears, Heard, body, call, http, stdio, until, upstream

from troth.bridge import Outgoing, ask

sys.path.append(str(Path(__file__).parents[2] / "interop"))
from fleet import FLEET

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from troth.gateway.settings import UpstreamSettings

pytestmark = [pytest.mark.anyio, pytest.mark.interop]

REVISIONS = {
    "mcp-server-time": None,
    "min23-full": MODERN,
    "min130-full": LEGACY,
    "ts1-full": LEGACY,
    "ts2-full": None,
    "fm4-full": None,
    "everything": LEGACY,
}
"""Servers with the revision that they must be spoken to in; None where it depends on the release."""
OVER_HTTP = ("min23-full", "min130-full", "ts1-full", "ts2-full", "fm4-full", "everything")
MUTE = ("ts2-full",)
"""Over HTTP it makes a server for each request, whose changes reach no stream of another one."""


def known(name: str) -> Any:
    server = FLEET[name]
    if not server.needs.exists():
        pytest.skip(f"{name} is not installed")
    return server


async def used(settings: UpstreamSettings, name: str, *, mute: bool = False) -> None:
    async with upstream(settings) as (one, ears):
        talk = await one.ready(PATIENCE)
        assert REVISIONS[name] in (None, talk.revision)
        tools = body(await talk.ask(Outgoing(frame=ask("tools/list", {}))))["tools"]
        assert tools
        if not mute and "touch" in {tool["name"] for tool in tools}:
            await changes(one, ears, talk)


async def changes(one: Any, ears: Ears, talk: Any) -> None:
    """The tool `touch` changes lists and a resource, and whoever promised to say so says so."""
    if talk.capabilities.has("resources.subscribe"):
        listed = body(await talk.ask(Outgoing(frame=ask("resources/list", {}))))["resources"]
        for resource in listed:
            await one.subscribe(resource["uri"])
    before = ears.count("heard")
    sink = Heard()
    talk.start(call("touch"), sink)
    assert "content" in await sink.end()
    if talk.capabilities.has("tools.listChanged"):
        await until(lambda: ears.count("heard") > before)


@pytest.mark.parametrize("name", REVISIONS)
async def test_a_server_of_others_is_used_over_stdio(name: str) -> None:
    server = known(name)
    await used(stdio(*server.command, env=dict(server.env)), name)


@pytest.mark.parametrize("name", OVER_HTTP)
async def test_a_server_of_others_is_used_over_http(name: str) -> None:
    listening: AbstractContextManager[Any] = known(name).listening()
    with listening as target:
        await used(http(target.url), name, mute=name in MUTE)


async def test_a_session_that_others_forget_is_opened_anew() -> None:
    server = known("everything")
    with server.listening() as target:
        async with upstream(http(target.url)) as (one, ears):
            talk = await one.ready(PATIENCE)
            talk.link._receiver._common["Mcp-Session-Id"] = "00000000-0000-0000-0000-000000000000"
            sink = Heard()
            talk.start(Outgoing(frame=ask("tools/list", {})), sink)
            assert (await sink.end())["tools"]
            await ears.until("up", times=2)
