"""Upstreams that are processes."""

from __future__ import annotations

import pytest
from upstream_peers import EACH, LEGACY, MODERN, PATIENCE, Heard, body, call, scripted, stdio, upstream

from troth.bridge import Outgoing, ask
from troth.gateway.model import Status

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("revision", EACH)
async def test_a_process_is_spoken_to_in_its_own_era(revision: str) -> None:
    async with upstream(stdio(*scripted(revisions=(revision,)))) as (one, ears):
        talk = await one.ready(PATIENCE)
        assert (talk.revision, one.status, one.why) == (revision, Status.READY, "")
        assert talk.capabilities.has("tools.listChanged")
        assert talk.info["name"] == "troth-testing"
        assert talk.instructions == "A server for tests."
        sink = Heard()
        talk.start(call("read_note"), sink)
        assert (await sink.end())["content"][0]["text"] == "This is one."
        listed = await talk.ask(Outgoing(frame=ask("tools/list", {})))
        assert body(listed)["tools"]
        assert await ears.until("up") == revision


@pytest.mark.behaviour("GEN-C3")
async def test_a_process_of_both_eras_is_spoken_to_in_the_modern_one() -> None:
    async with upstream(stdio(*scripted(revisions=(LEGACY, MODERN)))) as (one, _ears):
        assert (await one.ready(PATIENCE)).revision == MODERN
