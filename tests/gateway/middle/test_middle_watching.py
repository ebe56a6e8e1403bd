"""Subscriptions to resources: made once at the owner, released by the last, made again, and told to whom asked."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from middle_gateway import LEGACY, MODERN, PATIENCE, Inbox, Legacy, Modern, serving
from middle_site import OLD, TAG, host, site, until

from troth.gateway.limits import Limits
from troth.gateway.settings import GatewaySettings
from troth.gateway.state import State
from troth.testing.model import SILENT, Refusal, Twist

if TYPE_CHECKING:
    from troth.testing.script import Script

pytestmark = pytest.mark.anyio

UPDATED = "notifications/resources/updated"
ONE, TWO = "note://notes/one", "note://notes/two"
SHOWN = f"one+{ONE}"


async def watch(peer: Legacy | Modern, *uris: str) -> Inbox:
    """Subscribes in the way of the host's era; returns where it hears of updates."""
    if isinstance(peer, Modern):
        return await peer.listen(resourceSubscriptions=list(uris))
    inbox = peer.inbox if peer.streams else await peer.listen()
    for uri in uris:
        assert (await peer.ask("resources/subscribe", {"uri": uri})).result == {}
    return inbox


def unsubscribes(script: Script, shown: Any, _revision: str) -> None:
    shown["resources"].pop("subscribe", None)


@pytest.mark.behaviour("CAP-17-S2", "CAP-16-B1")
async def test_an_update_reaches_who_asked_and_nobody_else_under_the_uri_of_the_host(
    upstream: str, revision: str
) -> None:
    async with (
        site(upstream) as one,
        serving(one.settings("one", prefix="one")) as served,
        host(served, revision) as peer,
        host(served, revision) as other,
    ):
        await served.ready()
        inbox = await watch(peer, SHOWN)
        elsewhere = await watch(other, f"one+{TWO}")
        one.touch(ONE)
        told = await inbox.method(UPDATED)
        assert told["params"]["uri"] == SHOWN
        assert (TAG in told["params"].get("_meta", {})) is (revision == MODERN)
        one.touch(TWO)
        assert (await elsewhere.method(UPDATED))["params"]["uri"] == f"one+{TWO}"
        assert inbox.methods().count(UPDATED) == elsewhere.methods().count(UPDATED) == 1


async def test_subscriptions_of_one_credential_are_bounded_over_all_its_hosts() -> None:
    limits = Limits(coalesce=0.01, back_off=0.05, stop=1.0, principal_subscriptions=1)
    async with (
        site(OLD) as one,
        serving(one.settings("one", prefix="one"), limits=limits) as served,
        served.legacy() as first,
        served.legacy() as second,
    ):
        await served.ready()
        await watch(first, SHOWN)
        refused = await second.ask("resources/subscribe", {"uri": f"one+{TWO}"})
        assert "(limit: principal_subscriptions)" in refused.error["message"]


@pytest.mark.behaviour("CAP-17-S2")
async def test_several_hosts_cost_one_subscription_and_the_last_one_releases_it(upstream: str) -> None:
    async with (
        site(upstream) as one,
        serving(one.settings("one", prefix="one")) as served,
        served.legacy() as first,
        served.legacy() as second,
        served.modern() as third,
        served.modern() as fourth,
    ):
        await served.ready()
        heard = [await watch(peer, SHOWN) for peer in (first, second, third, fourth)]
        assert one.watched() == [ONE]
        one.touch(ONE)
        for inbox in heard:
            await inbox.method(UPDATED)
        assert one.count("resources/subscribe") <= 1
        # A session ends by DELETE, a listen by its connection, and only the last of them ends the subscription.
        assert await first.delete() in (200, 204)
        await third.close()
        one.touch(ONE)
        await heard[1].method(UPDATED, len(heard[1].all))
        assert one.watched() == [ONE]
        await second.ask("resources/unsubscribe", {"uri": SHOWN})
        one.touch(ONE)
        await heard[3].method(UPDATED, len(heard[3].all))
        assert one.watched() == [ONE]
        assert heard[1].methods().count(UPDATED) == 2
        await fourth.close()
        await until(lambda: not one.watched())


@pytest.mark.behaviour("CAP-17-S2")
async def test_subscriptions_are_made_again_after_a_restart_with_an_update_for_what_was_missed(
    upstream: str, revision: str
) -> None:
    async with (
        site(upstream) as one,
        serving(one.settings("one", prefix="one")) as served,
        host(served, revision) as peer,
    ):
        await served.ready()
        inbox = await watch(peer, SHOWN)
        await one.stop()
        await one.start()
        assert not one.watched()
        await peer.call("one_read_note")
        assert (await inbox.method(UPDATED))["params"]["uri"] == SHOWN
        # The first update may tell of the stream that is open again, before there is a subscription.
        await until(lambda: one.watched() == [ONE])
        mark = len(inbox.all)
        one.touch(ONE)
        await inbox.method(UPDATED, mark)


@pytest.mark.behaviour("CAP-17-S2")
async def test_subscriptions_survive_a_reload_that_reaches_the_upstream_in_another_way(
    upstream: str, revision: str
) -> None:
    async with (
        site(upstream) as one,
        serving(one.settings("one", prefix="one")) as served,
        host(served, revision) as peer,
    ):
        await served.ready()
        inbox = await watch(peer, SHOWN)
        for upstreams in ((one.settings("one", prefix="one", call_timeout=9.0),), ()):
            made = GatewaySettings(upstreams=upstreams, startup_wait=PATIENCE)
            mark = len(inbox.all)
            served.gateway.reload(made)
            if upstreams:
                assert (await inbox.method(UPDATED, mark))["params"]["uri"] == SHOWN
                mark = len(inbox.all)
                one.touch(ONE)
                await inbox.method(UPDATED, mark)
        await until(lambda: not one.watched())
        mark = len(inbox.all)
        served.gateway.reload(GatewaySettings(upstreams=(one.settings("one", prefix="one"),), startup_wait=PATIENCE))
        await inbox.method(UPDATED, mark)
        await until(lambda: one.watched() == [ONE])


async def test_an_update_of_a_part_reaches_who_watches_the_whole_once(upstream: str, revision: str) -> None:
    async with (
        site(upstream) as one,
        serving(one.settings("one", prefix="one")) as served,
        host(served, revision) as peer,
    ):
        await served.ready()
        one.script.catalogue.texts["note://notes"] = ""
        inbox = await watch(peer, "one+note://notes", f"one+{ONE}")

        def part(script: Script) -> None:
            # Servers may tell of parts of what was subscribed to.
            for session in script.sessions.values():
                if "note://notes" in session.subscriptions:
                    script.notify(UPDATED, {"uri": "note://notes/deep/down"}, session.push)
            for listen in script.listens:
                if "note://notes" in listen.filter.get("resourceSubscriptions", ()):
                    params = {"_meta": {TAG: listen.id}, "uri": "note://notes/deep/down"}
                    script.notify(UPDATED, params, listen.stream)

        if upstream == OLD:
            await one.open()
        one.do(part)
        told = await inbox.method(UPDATED)
        assert told["params"]["uri"] == "one+note://notes/deep/down"
        one.touch(ONE)
        await inbox.until(lambda message: message.get("params", {}).get("uri") == f"one+{ONE}")
        assert inbox.methods().count(UPDATED) == 2


@pytest.mark.behaviour("CAP-17-S3", "CAP-17-S5")
@pytest.mark.parametrize("case", ["undeclared", "refused", "nowhere"])
async def test_what_nobody_can_watch_is_refused_in_the_same_way_everywhere(upstream: str, case: str) -> None:
    twists = (Twist(declare=unsubscribes),) if case == "undeclared" else ()
    # Another upstream promises updates, so that the method is declared at all.
    async with site(upstream, *twists) as one, site(upstream) as two:
        if case == "refused":
            one.answers["resources/subscribe"] = lambda *_: Refusal(-32002, "Resource not found", {"uri": ONE})
            one.script.catalogue.texts.clear()
        uri = "nobody+note://x" if case == "nowhere" else SHOWN
        async with serving(one.settings("one", prefix="one"), two.settings("two", prefix="two")) as served:
            await served.ready()
            for old in LEGACY:
                async with served.legacy(old) as peer:
                    error = (await peer.ask("resources/subscribe", {"uri": uri})).error
                    known = {"nowhere": -32002, "undeclared": -32602, "refused": -32002 if upstream == OLD else -32602}
                    assert error["code"] == known[case], error
                    assert ("upstream one offers no subscriptions" in error["message"]) is (case == "undeclared")
                    assert (await peer.ask("resources/subscribe", {"uri": f"two+{ONE}"})).result == {}
            async with served.modern() as peer:
                inbox = await peer.listen(resourceSubscriptions=[uri, f"two+{ONE}"], toolsListChanged=True)
                assert inbox.all[0]["params"]["notifications"] == {
                    "toolsListChanged": True,
                    "resourceSubscriptions": [f"two+{ONE}"],
                }
                told = await peer.ask("resources/subscribe", {"uri": SHOWN})
                assert (told.status, told.error["code"]) == (404, -32601)
            assert one.count("resources/subscribe") == (len(LEGACY) + 1 if case == "refused" and upstream == OLD else 0)
            if case == "undeclared":
                assert not any("resourceSubscriptions" in str(message) for message in one.heard)


@pytest.mark.behaviour("CAP-17-S2", "CAP-17-S5")
@pytest.mark.parametrize("promised", [True, False])
async def test_a_resource_of_an_upstream_that_is_down_is_watched_if_it_promised_updates_when_last_seen(
    upstream: str, revision: str, promised: bool
) -> None:
    state = State(path=None)
    paths = {"resources": frozenset({"subscribe"} if promised else ()), "tools": frozenset({"listChanged"})}
    state.remember("one", era="legacy", revision=OLD, declared=paths)
    async with site(upstream) as one, site(upstream) as two:
        await one.stop()
        upstreams = (one.settings("one", prefix="one"), two.settings("two", prefix="two"))
        async with serving(*upstreams, state=state) as served, host(served, revision) as peer:
            await served.ready("two")
            if isinstance(peer, Modern):
                inbox = await peer.listen(resourceSubscriptions=[SHOWN])
                assert inbox.all[0]["params"]["notifications"] == {"resourceSubscriptions": [SHOWN] * promised}
            else:
                inbox = await peer.listen()
                told = await peer.ask("resources/subscribe", {"uri": SHOWN})
                assert ("result" in told.answer) is promised
            if promised:
                await one.start()
                await served.ready("one")
                await until(one.watched)
                one.touch(ONE)
                assert (await inbox.method(UPDATED))["params"]["uri"] == SHOWN


@pytest.mark.behaviour("CAP-17-S4")
async def test_a_subscription_does_not_take_the_place_of_the_lists_that_a_host_hears_of(
    upstream: str, revision: str
) -> None:
    async with (
        site(upstream) as one,
        serving(one.settings("one", prefix="one")) as served,
        host(served, revision) as peer,
    ):
        await served.ready()
        if isinstance(peer, Modern):
            inbox = await peer.listen(toolsListChanged=True, resourceSubscriptions=[SHOWN])
        else:
            inbox = await watch(peer, SHOWN)
        one.add("tools")
        one.touch(ONE)
        await inbox.method(UPDATED)
        await inbox.method("notifications/tools/list_changed")


@pytest.mark.behaviour("CAP-17-S1")
@pytest.mark.parametrize("offered", [True, False])
async def test_subscribe_is_declared_only_where_an_upstream_delivers(
    upstream: str, revision: str, offered: bool
) -> None:
    twists = () if offered else (Twist(declare=unsubscribes),)
    async with site(upstream, *twists) as one, serving(one.settings("one")) as served, host(served, revision) as peer:
        await served.ready()
        if isinstance(peer, Legacy):
            declared = peer.opening["capabilities"]
            told = await peer.ask("resources/subscribe", {"uri": ONE})
            assert ("result" in told.answer) is offered
            if not offered:
                assert told.error["code"] == -32601
                assert told.error["data"] == {"capability": "resources.subscribe"}
        else:
            declared = (await peer.ask("server/discover")).result["capabilities"]
        assert declared["resources"].get("subscribe", False) is offered


@pytest.mark.parametrize("same", [True, False])
async def test_two_that_subscribe_at_once_to_what_is_refused_are_both_refused(same: bool) -> None:
    async with (
        site(OLD) as one,
        serving(one.settings("one", prefix="one")) as served,
        served.legacy() as first,
        served.legacy() as second,
    ):
        await served.ready()
        answers: list[Any] = []

        def hold(_script: Script, call: Any) -> Any:
            answers.append(call)
            return SILENT

        one.answers["resources/subscribe"] = hold
        asks = [
            asyncio.get_running_loop().create_task(peer.ask("resources/subscribe", {"uri": SHOWN}))
            for peer in (first, first if same else second)
        ]
        for number in range(2):
            await until(lambda number=number: len(answers) > number)
            assert not any(told.done() for told in asks[number:])
            one.do(lambda script, number=number: script.respond(answers[number], Refusal(-32603, "no")))
        for told in asks:
            assert (await told).error["code"] == -32603
        one.answers.clear()
        assert (await first.ask("resources/subscribe", {"uri": SHOWN})).result == {}
        await first.ask("resources/unsubscribe", {"uri": SHOWN})
        await until(lambda: not one.watched())


async def test_a_host_that_leaves_while_it_subscribes_leaves_nothing_behind() -> None:
    async with (
        site(OLD) as one,
        serving(one.settings("one", prefix="one")) as served,
        served.legacy() as peer,
        served.legacy() as other,
    ):
        await served.ready()
        answers: list[Any] = []

        def hold(_script: Script, call: Any) -> Any:
            answers.append(call)
            return SILENT

        one.answers["resources/subscribe"] = hold
        asked = asyncio.get_running_loop().create_task(peer.ask("resources/subscribe", {"uri": SHOWN}))
        await until(lambda: answers)
        one.answers.clear()
        await peer.delete()
        fleet = next(served.gateway.every_fleet())
        await until(lambda: len(fleet.audiences) == 1)
        one.script.sessions[answers[0].session.id].subscriptions.add(ONE)
        one.do(lambda script: script.respond(answers[0], {}))
        await until(lambda: not one.watched())
        await asked
        assert (await other.ask("resources/subscribe", {"uri": SHOWN})).result == {}
        assert one.watched() == [ONE]


async def test_too_many_subscriptions_are_refused_by_the_name_of_the_limit() -> None:
    from troth.gateway.limits import Limits

    limits = Limits(coalesce=0.01, subscriptions=1)
    async with (
        site(OLD) as one,
        serving(one.settings("one", prefix="one"), limits=limits) as served,
        served.legacy() as peer,
        served.modern() as other,
    ):
        await served.ready()
        for _ in range(2):
            assert (await peer.ask("resources/subscribe", {"uri": SHOWN})).result == {}
        error = (await peer.ask("resources/subscribe", {"uri": f"one+{TWO}"})).error
        assert "limit: subscriptions" in error["message"]
        filters = {"notifications": {"resourceSubscriptions": [SHOWN, f"one+{TWO}"]}}
        error = (await other.ask("subscriptions/listen", filters)).error
        assert (error["code"], "limit: subscriptions" in error["message"]) == (-32602, True)


@pytest.mark.parametrize(
    "filters", [None, [], {"toolsListChanged": 1}, {"resourceSubscriptions": "x"}, {"resourceSubscriptions": [1]}]
)
async def test_a_filter_that_is_none_is_refused(filters: Any) -> None:
    async with site(MODERN) as one, serving(one.settings("one")) as served, served.modern() as peer:
        await served.ready()
        told = await peer.ask("subscriptions/listen", {"notifications": filters} if filters is not None else None)
        assert told.error["code"] == -32602


async def test_rule_19_what_a_host_wished_for_goes_along_to_a_connection_of_its_own() -> None:
    async with site(MODERN) as one, serving(one.settings("one")) as served:
        await served.ready()
        async with served.legacy(declares={"roots": {}}) as peer, served.legacy() as other:
            inbox = await peer.listen()
            assert (await peer.ask("resources/subscribe", {"uri": ONE})).result == {}
            assert (await other.ask("resources/subscribe", {"uri": TWO})).result == {}
            await peer.ask("logging/setLevel", {"level": "debug"})
            await other.ask("logging/setLevel", {"level": "error"})
            assert len({id(fleet.members[0].line) for fleet in served.gateway.every_fleet()}) == 1
            # It comes back as one that is told once what it may ask: its hosts cannot share a session any more.
            await one.stop()
            one.revision = OLD
            await one.start()

            def found() -> dict[str, Any]:
                told = {str(session.capabilities): session for session in one.script.sessions.values()}
                return {declared: (session.level, sorted(session.subscriptions)) for declared, session in told.items()}

            wanted = {"{}": ("error", [TWO]), "{'roots': {}}": ("debug", [ONE])}
            await until(lambda: found() == wanted)
            before = len(inbox.all)
            one.touch(ONE)
            await inbox.method(UPDATED, before)


@pytest.mark.parametrize(("before", "after"), [(MODERN, OLD), (OLD, MODERN)])
async def test_rule_18_a_server_that_comes_back_in_another_era_is_spoken_to_in_that(before: str, after: str) -> None:
    async with site(before) as one, serving(one.settings("one")) as served, served.legacy() as peer:
        await served.ready()
        await one.stop()
        one.revision = after
        await one.start()
        told = await peer.call("log")
        while "error" in told.answer:
            await served.ready()
            told = await peer.call("log")
        assert told.result["content"]
        (fleet,) = served.gateway.every_fleet()
        conversation = fleet.members[0].conversation
        assert conversation is not None
        assert conversation.revision == after
