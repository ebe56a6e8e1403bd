"""Subscriptions and changes, made at upstreams of both eras."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from upstream_peers import (
    EACH,
    LEGACY,
    MODERN,
    PATIENCE,
    QUICK,
    Ears,
    Heard,
    heard_lines,
    methods,
    puppet,
    say,
    stdio,
    until,
    upstream,
)

from troth.bridge import Cause
from troth.gateway.limits import Limits
from troth.gateway.model import UnavailableError
from troth.gateway.settings import EraChoice
from troth.gateway.upstream import costs
from troth.register import register

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from troth.gateway.upstream import Supervisor

pytestmark = pytest.mark.anyio

DONE = '{"jsonrpc":"2.0","id":$id,"result":{"resultType":"complete","content":[]}}'
ALL = {"tools": {"listChanged": True}, "prompts": {}, "resources": {"subscribe": True, "listChanged": True}}
SUBSCRIBED = {"resources": {"subscribe": True}}
FLAGS = {"resourcesListChanged": True, "toolsListChanged": True}
UPDATED = "notifications/resources/updated"
TOOLS = "notifications/tools/list_changed"


@asynccontextmanager
async def watched(
    tmp_path: Path, revision: str, declared: Any, listen: str = "honour", limits: Limits = QUICK
) -> AsyncIterator[tuple[Supervisor, Ears, Any, Path]]:
    log = tmp_path / "log"
    era = str(register().era(revision))
    command = puppet(log, "modern" if era == "modern" else revision, json.dumps(declared), listen)
    async with upstream(stdio(*command, era=EraChoice(era)), limits) as (one, ears):
        yield one, ears, await one.ready(PATIENCE), log


async def dictate(talk: Any, *lines: str) -> Any:
    sink = Heard()
    talk.start(say(*lines), sink)
    return await sink.end()


def note(method: str, tag: Any = None, **params: Any) -> str:
    meta = {} if tag is None else {"_meta": {"io.modelcontextprotocol/subscriptionId": tag}}
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": {**meta, **params}})


def listens(log: Path) -> list[Any]:
    return [line for line in heard_lines(log) if line.get("method") == "subscriptions/listen"]


def filters(log: Path) -> list[Any]:
    return [line["params"]["notifications"] for line in listens(log)]


@pytest.mark.behaviour("CAP-15-C2")
async def test_one_listen_asks_for_exactly_what_is_declared(tmp_path: Path) -> None:
    async with watched(tmp_path, MODERN, ALL) as (_one, ears, talk, log):
        await until(lambda: len(listens(log)) == 1)
        assert filters(log) == [FLAGS]
        tag = listens(log)[0]["id"]
        await dictate(talk, note(TOOLS, tag), DONE)
        assert (ears.count("heard", TOOLS), len(listens(log))) == (1, 1)


@pytest.mark.behaviour("CAP-15-C2")
async def test_nothing_is_listened_to_where_nothing_is_declared(tmp_path: Path) -> None:
    async with watched(tmp_path, MODERN, {"tools": {"listChanged": False}}) as (_one, _ears, talk, log):
        await dictate(talk, DONE)
        assert listens(log) == []


@pytest.mark.behaviour("CAP-15-C2")
async def test_rule_15_a_filter_changes_make_before_break(tmp_path: Path) -> None:
    async with watched(tmp_path, MODERN, ALL) as (one, ears, talk, log):
        await until(lambda: len(listens(log)) == 1)
        await one.subscribe("a://1")
        await one.subscribe("a://1")
        await one.unsubscribe("a://1")
        await dictate(talk, DONE)
        assert filters(log) == [FLAGS, {**FLAGS, "resourceSubscriptions": ["a://1"]}]
        old, new = (line["id"] for line in listens(log))
        steps = [line for line in heard_lines(log) if line["method"] != "tools/call"]
        closed = [line for line in steps if line["method"] == "notifications/cancelled"]
        assert [line["params"]["requestId"] for line in closed] == [old]
        assert steps.index(closed[0]) > steps.index(listens(log)[1])
        strays = costs(one).strays
        await dictate(talk, note(TOOLS, old), note(UPDATED, new, uri="a://1"), DONE)
        assert (ears.count("heard", TOOLS), ears.count("heard", UPDATED)) == (0, 1)
        assert costs(one).strays == strays + 1
        await one.unsubscribe("a://1")
        await until(lambda: len(listens(log)) == 3)
        assert filters(log)[-1] == FLAGS


@pytest.mark.behaviour("CAP-15-C2")
@pytest.mark.parametrize("ending", ["result", "cancelled", "error"])
async def test_either_ending_is_accepted_and_the_stream_opened_again(tmp_path: Path, ending: str) -> None:
    async with watched(tmp_path, MODERN, {**ALL, "prompts": {}}) as (one, ears, talk, log):
        await one.subscribe("a://1")
        before = len(listens(log))
        tag = listens(log)[-1]["id"]
        lines = {
            "result": json.dumps({"jsonrpc": "2.0", "id": tag, "result": {"resultType": "complete"}}),
            "cancelled": note("notifications/cancelled", requestId=tag),
            "error": json.dumps({"jsonrpc": "2.0", "id": tag, "error": {"code": -32603, "message": "over"}}),
        }
        await dictate(talk, lines[ending], DONE)
        await until(lambda: len(listens(log)) == before + 1)
        assert (await ears.until("heard", UPDATED))["uri"] == "a://1", "what was missed is made up"
        await ears.until("heard", TOOLS)


async def test_a_stream_that_ends_at_once_is_opened_again_with_back_off(tmp_path: Path) -> None:
    async with watched(tmp_path, MODERN, ALL, "end") as (_one, _ears, talk, log):
        await until(lambda: len(listens(log)) == 3)
        assert "content" in await dictate(talk, DONE)


async def test_a_refused_listen_is_not_repeated_and_a_subscription_says_so(tmp_path: Path) -> None:
    async with watched(tmp_path, MODERN, ALL, "refuse") as (one, _ears, talk, log):
        await until(lambda: len(listens(log)) == 1)
        with pytest.raises(UnavailableError, match=r"-32601: no"):
            await one.subscribe("a://1")
        await dictate(talk, DONE)
        assert filters(log)[:2] == [FLAGS, {**FLAGS, "resourceSubscriptions": ["a://1"]}]


@pytest.mark.parametrize("listen", ["resourceSubscriptions", "ignore"])
@pytest.mark.behaviour("CAP-15-C2")
async def test_a_subscription_that_is_not_acknowledged_is_refused(tmp_path: Path, listen: str) -> None:
    limits = Limits(back_off=0.05, back_off_most=0.5, stop=0.5, method=2.0)
    async with watched(tmp_path, MODERN, ALL, listen, limits) as (one, _ears, _talk, log):
        with pytest.raises(UnavailableError, match="does not acknowledge"):
            await one.subscribe("a://1")
        await until(lambda: filters(log)[-1] == FLAGS)


@pytest.mark.behaviour("CAP-17-C1")
@pytest.mark.parametrize("revision", EACH)
async def test_what_does_not_promise_subscriptions_is_never_asked_for_one(tmp_path: Path, revision: str) -> None:
    declared = {"tools": {}, "resources": {"listChanged": True}}
    async with watched(tmp_path, revision, declared) as (one, _ears, talk, log):
        with pytest.raises(UnavailableError, match="offers no subscriptions") as refused:
            await one.subscribe("a://1")
        assert refused.value.lost.cause is Cause.REFUSED
        await one.unsubscribe("a://1")
        await dictate(talk, DONE)
        assert "resources/subscribe" not in methods(log)
        assert "resources/unsubscribe" not in methods(log)
        assert all("resourceSubscriptions" not in wanted for wanted in filters(log))


@pytest.mark.behaviour("CAP-17-C1")
async def test_a_modern_flag_is_never_read_as_the_old_method(tmp_path: Path) -> None:
    async with watched(tmp_path, MODERN, SUBSCRIBED) as (one, _ears, talk, log):
        await one.subscribe("a://1")
        await one.unsubscribe("a://1")
        await dictate(talk, DONE)
        assert filters(log) == [{"resourceSubscriptions": ["a://1"]}]
        assert not {"resources/subscribe", "resources/unsubscribe"} & set(methods(log))
        await until(lambda: "notifications/cancelled" in methods(log))


@pytest.mark.behaviour("CAP-17-S2")
async def test_old_subscriptions_are_counted_per_uri_and_the_last_one_out_ends_them(tmp_path: Path) -> None:
    async with watched(tmp_path, LEGACY, SUBSCRIBED) as (one, _ears, talk, log):
        await asyncio.wait([asyncio.get_running_loop().create_task(one.subscribe("a://1")) for _ in range(3)])
        await one.subscribe("a://2")
        for _ in range(2):
            await one.unsubscribe("a://1")
        await dictate(talk, DONE)
        assert [m for m in methods(log) if "subscribe" in m] == ["resources/subscribe"] * 2
        for _ in range(3):
            await one.unsubscribe("a://1")
        await until(lambda: "resources/unsubscribe" in methods(log))
        await one.subscribe("a://1")
        made = [(m["method"], m["params"]["uri"]) for m in heard_lines(log) if "subscribe" in m.get("method", "")]
        assert made[2:] == [("resources/unsubscribe", "a://1"), ("resources/subscribe", "a://1")]


@pytest.mark.parametrize("revision", EACH)
async def test_rule_15_what_is_wished_for_while_an_upstream_is_away_is_made_when_it_is_back(
    tmp_path: Path, revision: str
) -> None:
    slow = Limits(back_off=1.0, back_off_most=1.0, stop=0.5)
    async with watched(tmp_path, revision, SUBSCRIBED, limits=slow) as (one, ears, talk, log):
        await one.subscribe("a://kept")
        await dictate(talk, "EXIT")
        await ears.until("down")
        before = len(heard_lines(log))
        await one.subscribe("a://new")
        await ears.until("up", times=2)
        await ears.until("heard", UPDATED, times=2)
        told = sorted(event[2]["uri"] for event in ears.events if event[:2] == ("heard", UPDATED))
        assert told == ["a://kept", "a://new"]
        again = heard_lines(log)[before:]
        if revision == LEGACY:
            uris = [line["params"]["uri"] for line in again if line["method"] == "resources/subscribe"]
        else:
            uris = [line for line in again if line["method"] == "subscriptions/listen"][-1]["params"]["notifications"][
                "resourceSubscriptions"
            ]
        assert sorted(uris) == ["a://kept", "a://new"]
