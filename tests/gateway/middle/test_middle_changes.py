"""Changes of lists reach hosts of both eras, from upstreams of both, and only when what a host sees is another."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from typing import Any

import pytest
from middle_gateway import LEGACY, MODERN, PATIENCE, Inbox, Legacy, Modern, Served, server, serving
from middle_site import OLD, TAG, host, site, until

from troth.gateway.limits import Limits
from troth.gateway.settings import GatewaySettings, UpstreamSettings
from troth.register import Era
from troth.testing.model import Twist

pytestmark = pytest.mark.anyio

ALL = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
CHANGED = "notifications/{}/list_changed"
FAMILIES = ("tools", "prompts", "resources")


async def ears(peer: Legacy | Modern, **filters: Any) -> Inbox:
    """The channel on which a host hears of changes."""
    return await (peer.listen() if isinstance(peer, Legacy) else peer.listen(**(filters or ALL)))


def reload(served: Served, *upstreams: UpstreamSettings, **settings: Any) -> None:
    made = GatewaySettings(upstreams=upstreams, startup_wait=PATIENCE, **settings)
    served.gateway.reload(made)


async def names(peer: Legacy | Modern, family: str = "tools") -> list[str]:
    return [item["name"] for item in (await peer.ask(f"{family}/list")).result[family]]


@pytest.mark.behaviour("CAP-15-C1", "CAP-18-S1", "CAP-20-S2")
async def test_a_change_of_each_list_reaches_the_host_after_it_can_be_listed(upstream: str, revision: str) -> None:
    async with (
        site(upstream) as one,
        serving(one.settings("one", prefix="one")) as served,
        host(served, revision) as peer,
    ):
        await served.ready()
        inbox = await ears(peer)
        for family in FAMILIES:
            before = await names(peer, family)
            mark = len(inbox.all)
            one.add(family)
            told = await inbox.method(CHANGED.format(family), mark)
            assert (TAG in told.get("params", {}).get("_meta", {})) is (revision == MODERN)
            now = await names(peer, family)
            assert now[: len(before)] == before
            assert len(now) == len(before) + 1
        assert sorted(set(inbox.methods())) == sorted(
            [*map(CHANGED.format, FAMILIES), *(["notifications/subscriptions/acknowledged"] * (revision == MODERN))]
        )


@pytest.mark.behaviour("CAP-15-C1")
async def test_many_changes_at_once_are_told_once(upstream: str, revision: str) -> None:
    limits = Limits(coalesce=1.0, back_off=0.05, stop=1.0)
    async with (
        site(upstream) as one,
        site(upstream) as two,
        serving(one.settings("one"), two.settings("two"), limits=limits) as served,
        host(served, revision) as peer,
    ):
        await served.ready()
        inbox = await ears(peer)
        for which in (one, two) * 5:
            which.add("tools")
        await inbox.method(CHANGED.format("tools"))
        heard = len(inbox.all)
        if len([name for name in await names(peer) if "added" in name]) < 10:
            # One of the two was just being asked for its lists, and is asked again after a pause.
            await inbox.method(CHANGED.format("tools"), heard)
            assert len([name for name in await names(peer) if "added" in name]) == 10
        one.add("prompts")
        await inbox.method(CHANGED.format("prompts"))
        assert inbox.methods().count(CHANGED.format("tools")) <= 2


@pytest.mark.behaviour("CAP-15-C1")
async def test_what_a_host_cannot_see_changes_nothing_for_it(upstream: str, revision: str) -> None:
    async with (
        site(upstream) as one,
        serving(one.settings("one", deny=("added_1", "touch"))) as served,
        host(served, revision) as peer,
    ):
        await served.ready()
        inbox = await ears(peer)
        one.add("tools")
        await one.hears("tools/list", one.count("tools/list") + 1)
        await served.ready()

        def describe(script: Any) -> None:
            next(tool for tool in script.catalogue.tools if tool["name"] == "touch")["description"] = "Other."
            script.announce("tools")

        one.do(describe)
        one.add("resources")
        await inbox.method(CHANGED.format("resources"))
        assert CHANGED.format("tools") not in inbox.methods()
        one.add("tools")
        await inbox.method(CHANGED.format("tools"))
        assert "added_3" in await names(peer)


@pytest.mark.behaviour("CAP-15-S2")
async def test_a_legacy_host_hears_nothing_before_it_is_initialized_and_then_what_it_missed() -> None:
    async with site(OLD) as one, serving(one.settings("one", prefix="one")) as served:
        peer = served.legacy()
        params = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": peer.info}
        told = await peer.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        peer.base |= {"mcp-session-id": told.headers["mcp-session-id"], "mcp-protocol-version": OLD}
        await served.ready()
        assert "one_added_1" not in await names(peer)
        await peer.ask("resources/subscribe", {"uri": "one+note://notes/one"})
        inbox = await peer.listen()
        async with served.legacy() as other:
            heard = await other.listen()
            one.add("tools")
            one.touch("note://notes/one")
            await heard.method(CHANGED.format("tools"))
            await peer.ask("ping")
            assert inbox.all == []
            await peer.notify("notifications/initialized")
            await inbox.method(CHANGED.format("tools"))
            await inbox.method("notifications/resources/updated")
            # What it never listed cannot be old to it.
            assert sorted(inbox.methods()) == ["notifications/resources/updated", "notifications/tools/list_changed"]
            one.add("prompts")
            await inbox.method(CHANGED.format("prompts"))
        await peer.close()


@pytest.mark.behaviour("CAP-15-S4", "CAP-15-S5", "GEN-B4")
async def test_each_listen_is_acknowledged_first_and_gets_what_it_asked_for_under_its_own_tag(upstream: str) -> None:
    async with site(upstream) as one, serving(one.settings("one")) as served, served.modern() as peer:
        await served.ready()
        all_, tools, nothing = (
            await peer.listen(**ALL),
            await peer.listen(toolsListChanged=True, promptsListChanged=False),
            await peer.listen(),
        )
        for inbox, wanted in ((all_, ALL), (tools, {"toolsListChanged": True}), (nothing, {})):
            assert inbox.all[0]["method"] == "notifications/subscriptions/acknowledged"
            assert inbox.all[0]["params"]["notifications"] == wanted
        tags = [inbox.all[0]["params"]["_meta"][TAG] for inbox in (all_, tools, nothing)]
        assert len(set(tags)) == 3
        one.add(*FAMILIES)
        await all_.method(CHANGED.format("resources"))
        await tools.method(CHANGED.format("tools"))
        one.add("tools")
        await tools.method(CHANGED.format("tools"), len(tools.all))
        assert sorted(set(all_.methods()[1:])) == sorted(map(CHANGED.format, FAMILIES))
        assert set(tools.methods()[1:]) == {CHANGED.format("tools")}
        assert len(nothing.all) == 1
        for inbox, tag in zip((all_, tools), tags, strict=False):
            assert {message["params"]["_meta"][TAG] for message in inbox.all} == {tag}


@pytest.mark.behaviour("CAP-15-S5")
async def test_a_listen_that_comes_after_a_change_is_told_of_it_right_after_its_acknowledgement(upstream: str) -> None:
    limits = Limits(coalesce=0.01, back_off=0.05, stop=1.0)
    async with site(upstream) as one, serving(one.settings("one"), limits=limits) as served, served.modern() as peer:
        await served.ready()
        await names(peer)
        quiet = await peer.listen(**ALL)
        fleet = next(served.gateway.every_fleet())
        before = fleet.catalogue
        one.add("tools")
        await until(lambda: fleet.catalogue is not before)
        inbox = await peer.listen(**ALL)
        await inbox.method(CHANGED.format("tools"))
        # Prompts were never listed, so nobody can hold old ones.
        one.add("prompts")
        await inbox.method(CHANGED.format("prompts"))
        assert inbox.methods()[:2] == ["notifications/subscriptions/acknowledged", CHANGED.format("tools")]
        await quiet.method(CHANGED.format("tools"))
        assert quiet.methods()[1] == CHANGED.format("tools")
        await names(peer)
        only = await peer.listen(promptsListChanged=True)
        one.add("tools", "prompts")
        await only.method(CHANGED.format("prompts"))
        assert CHANGED.format("tools") not in only.methods()


async def test_how_long_ago_lists_were_served_does_not_matter_but_how_long_ago_they_moved(
    upstream: str,
) -> None:
    limits = Limits(coalesce=0.01, back_off=0.05, stop=1.0, lately=0.0)
    async with site(upstream) as one, serving(one.settings("one"), limits=limits) as served, served.modern() as peer:
        await served.ready()
        await names(peer)
        fleet = next(served.gateway.every_fleet())
        fleet._limits = replace(limits, lately=60.0)
        before = fleet.catalogue
        one.add("tools")
        await until(lambda: fleet.catalogue is not before)
        (await peer.listen(**ALL)).all[0]
        inbox = await peer.listen(**ALL)
        await inbox.method(CHANGED.format("tools"))
        fleet._limits = replace(limits, lately=0.0)
        late = await peer.listen(**ALL)
        one.add("prompts")
        await late.method(CHANGED.format("prompts"))
        assert CHANGED.format("tools") not in late.methods()


@pytest.mark.behaviour("CAP-15-S5")
async def test_the_gateway_ends_a_listen_with_a_result_that_names_it(upstream: str) -> None:
    async with site(upstream) as one, serving(one.settings("one")) as served, served.modern() as peer:
        await served.ready()
        inbox = await peer.listen(**ALL)
        tag = inbox.all[0]["params"]["_meta"][TAG]
        served.front.stop()
        end = await inbox.until(lambda message: "result" in message)
        assert end["id"] == tag
        assert end["result"] == {"resultType": "complete", "_meta": {TAG: tag}}
        await inbox.until(lambda message: message.get("ended", False))


@pytest.mark.behaviour("CAP-20-S1", "CAP-15-C1")
async def test_a_reload_that_adds_filters_or_removes_an_upstream_is_told_without_disturbing_the_others(
    upstream: str, revision: str
) -> None:
    async with site(upstream) as one, site(upstream) as two:
        first, second = one.settings("one", prefix="one"), two.settings("two", prefix="two")
        async with serving(first) as served, host(served, revision) as peer:
            await served.ready()
            start = await names(peer)
            inbox = await ears(peer)
            for configured, wanted in (
                ((first, second), [*start, *(name.replace("one_", "two_", 1) for name in start)]),
                ((first, replace(second, allow=("touch",))), [*start, "two_touch"]),
                ((first, replace(second, allow=("touch",), rename={"touch": "poke"})), [*start, "two_poke"]),
                ((first,), start),
            ):
                mark = len(inbox.all)
                reload(served, *configured)
                await inbox.method(CHANGED.format("tools"), mark)
                assert await names(peer) == wanted
            assert one.count("initialize") + one.count("server/discover") <= 2
            assert two.count("tools/list") <= 4
            mark = len(inbox.all)
            reload(served, replace(first, describe={"touch": "Another text."}))
            await inbox.method(CHANGED.format("tools"), mark)
            assert "Another text." in str((await peer.ask("tools/list")).result)
            assert await names(peer) == start


@pytest.mark.behaviour("CAP-15-C3")
async def test_an_upstream_that_is_killed_and_comes_back_with_other_lists_is_a_change(
    upstream: str, revision: str
) -> None:
    async with serving(server("one", "--revision", upstream, prefix="one")) as served, host(served, revision) as peer:
        await served.ready()
        start = await names(peer)
        inbox = await ears(peer)
        await peer.call("one_add_tool")
        await inbox.method(CHANGED.format("tools"))
        assert len(await names(peer)) == len(start) + 1
        mark = len(inbox.all)
        pid = next(served.gateway.every_fleet()).members[0].upstream.conversation.link.pid
        os.kill(pid, signal.SIGKILL)
        await inbox.method(CHANGED.format("tools"), mark)
        # The new process never had the tool that the old one added.
        assert await names(peer) == start
        assert (await peer.call("one_read_note")).result["content"]


@pytest.mark.behaviour("CAP-15-C3")
async def test_an_http_upstream_that_restarts_and_forgot_its_session_is_used_on_and_its_change_told(
    upstream: str, revision: str
) -> None:
    async with (
        site(upstream) as one,
        serving(one.settings("one", prefix="one")) as served,
        host(served, revision) as peer,
    ):
        await served.ready()
        start = await names(peer)
        inbox = await ears(peer)
        one.add("tools")
        await inbox.method(CHANGED.format("tools"))
        mark = len(inbox.all)
        await one.stop()
        await one.start()
        await peer.call("one_read_note")
        await inbox.method(CHANGED.format("tools"), mark)
        assert await names(peer) == start
        assert (await peer.call("one_read_note")).result["content"]


@pytest.mark.behaviour("CAP-15-C3")
@pytest.mark.parametrize("how", ["poll", "ttl"])
async def test_an_upstream_that_announces_nothing_is_looked_at_again(upstream: str, revision: str, how: str) -> None:
    if how == "ttl" and upstream != MODERN:
        pytest.skip("legacy lists have no ttlMs")

    def silent(_script: Any, shown: Any, _revision: str) -> None:
        for family in FAMILIES:
            shown[family].pop("listChanged", None)

    limits = Limits(coalesce=0.01, back_off=0.05, stop=1.0, poll_least=0.05, poll_most=0.05)
    poll = {"poll": 0.05} if how == "poll" else {}
    async with (
        site(upstream, Twist(declare=silent)) as one,
        serving(one.settings("one", **poll), limits=limits) as served,
        host(served, revision) as peer,
    ):
        await served.ready()
        await names(peer)
        inbox = await ears(peer)
        (name,) = one.add("tools", announce=False)
        await inbox.method(CHANGED.format("tools"))
        assert name in await names(peer)


async def test_no_upstream_is_asked_for_a_list_that_it_did_not_declare(upstream: str) -> None:
    async with (
        site(upstream, variant="tools-only") as one,
        serving(one.settings("one")) as served,
        served.legacy() as peer,
    ):
        await served.ready()
        assert await names(peer) == ["read_note"]
        assert not {"prompts/list", "resources/list", "resources/templates/list"} & {
            message.get("method") for message in one.heard
        }


async def test_an_upstream_whose_answers_announce_a_change_is_not_asked_without_end() -> None:
    """Some servers announce that their tools changed whenever these are listed."""

    def echo(script: Any, call: Any) -> None:
        if "cursor" not in call.params:
            script.announce("tools")

    async with site(OLD) as one, serving(one.settings("one")) as served, served.legacy() as peer:
        await served.ready()
        inbox = await peer.listen()
        member = next(served.gateway.every_fleet()).members[0]
        mark = one.count("tools/list")
        one.answers["tools/list"] = echo
        one.add("tools")
        await inbox.method(CHANGED.format("tools"))
        await until(lambda: member._pace > 0.3)
        # The pauses double, so that the number of fetches grows with the logarithm of the time.
        assert one.count("tools/list") - mark < 40
        one.add("prompts")
        await inbox.method(CHANGED.format("prompts"))
        assert inbox.methods().count(CHANGED.format("tools")) == 1


async def test_names_of_an_upstream_that_is_up_again_do_not_vanish_because_it_failed_twice_before(
    revision: str,
) -> None:
    limits = Limits(coalesce=0.01, back_off=0.05, back_off_most=0.1, stop=1.0, grace=PATIENCE)
    async with site(OLD) as one, serving(one.settings("one"), limits=limits) as served, host(served, revision) as peer:
        await served.ready()
        start = await names(peer)
        member = next(served.gateway.every_fleet()).members[0]
        await one.stop()
        await peer.call("read_note")
        await until(lambda: member._grace is not None)
        first = member._grace
        member.down(member.upstream)
        assert member._grace is first
        await one.start()
        await served.ready()
        assert member._grace is None
        assert first.cancelled()
        assert await names(peer) == start


async def test_names_of_an_upstream_that_stays_away_leave_the_lists_and_calls_of_them_say_why(revision: str) -> None:
    limits = Limits(coalesce=0.01, back_off=0.05, back_off_most=0.1, stop=1.0, grace=0.05)
    async with site(OLD) as one, site(OLD) as two:
        upstreams = (one.settings("one", prefix="one"), two.settings("two", prefix="two"))
        async with serving(*upstreams, limits=limits) as served, host(served, revision) as peer:
            await served.ready()
            both = await names(peer)
            inbox = await ears(peer)
            await two.stop()
            await peer.call("two_read_note")
            await inbox.method(CHANGED.format("tools"))
            assert await names(peer) == [name for name in both if name.startswith("one_")]
            told = await peer.call("two_read_note")
            assert told.error["code"] == -32603
            assert told.error["message"].startswith("upstream two is not reachable: ")
            mark = len(inbox.all)
            await two.start()
            await inbox.method(CHANGED.format("tools"), mark)
            assert await names(peer) == both


async def test_lists_are_fetched_from_the_conversation_that_is_open_though_one_broke_off_in_between() -> None:
    async with site(OLD) as one, serving(one.settings("one")) as served, served.legacy() as peer:
        await served.ready()
        member = next(served.gateway.every_fleet()).members[0]
        gate = asyncio.Event()
        seen: list[str] = []

        class Slow:
            """A conversation whose first list hangs until it is gone."""

            era, revision, capabilities = Era.LEGACY, OLD, member.conversation.capabilities

            async def ask(self, request: Any) -> Any:
                from troth.bridge import Cause, Lost
                from troth.gateway.model import UnavailableError

                seen.append(request.frame.method)
                await gate.wait()
                raise UnavailableError(Lost(Cause.BROKEN, "gone"))

        real = member.upstream.conversation
        member.upstream.conversation = Slow()
        member.refetch("tools")
        await until(lambda: seen)
        one.add("tools", announce=False)
        member.upstream.conversation = real
        member.up(member.upstream)
        gate.set()
        await until(lambda: not member._fetching)
        assert "added_1" in await names(peer)


@pytest.mark.parametrize("old", LEGACY)
async def test_every_legacy_revision_hears_of_changes(old: str) -> None:
    async with site(MODERN) as one, serving(one.settings("one")) as served, served.legacy(old) as peer:
        await served.ready()
        inbox = await peer.listen()
        one.add("tools")
        assert await inbox.method(CHANGED.format("tools")) == {
            "jsonrpc": "2.0",
            "method": CHANGED.format("tools"),
        }
