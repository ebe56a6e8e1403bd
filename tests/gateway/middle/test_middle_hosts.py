"""What hosts are promised and why, what is refused to them, and that none reaches what is another's."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest
from middle_gateway import LEGACY, META, MODERN, PATIENCE, Legacy, Modern, server, serving
from middle_site import OLD, host, site, until

from troth.bridge import ask
from troth.gateway.hosts import ANONYMOUS
from troth.gateway.limits import Limits
from troth.gateway.report import report
from troth.gateway.settings import GatewaySettings, Policy, Share, TokenSettings
from troth.gateway.state import State
from troth.register import register
from troth.testing.model import SILENT, Twist

if TYPE_CHECKING:
    from middle_site import Site

    from troth.testing.script import Script

pytestmark = pytest.mark.anyio

OPENCODE = {"name": "opencode", "version": "1.18.31"}
LINK = {"type": "resource_link", "uri": "note://notes/one", "name": "one"}


async def declared(peer: Legacy | Modern) -> dict[str, Any]:
    if isinstance(peer, Legacy):
        return peer.opening["capabilities"]
    return (await peer.ask("server/discover")).result["capabilities"]


def status(served: Any) -> Any:
    return report(served.gateway, served.front, url="", started=0.0, version="0", faults=())


# What is promised


@pytest.mark.behaviour("GEN-S6")
async def test_the_first_question_of_all_is_answered_with_what_the_upstreams_really_have(upstream: str) -> None:
    async with site(upstream) as one, serving(one.settings("one"), eager=False) as served, served.modern() as peer:
        told = await peer.ask("server/discover")
        result = told.result
        assert result["supportedVersions"] == [*reversed(register().revisions)]
        assert result["supportedVersions"][0] == MODERN
        assert result["capabilities"] == {
            "completions": {},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
            "logging": {},
            "prompts": {"listChanged": True},
            "resources": {"listChanged": True, "subscribe": True},
            "tools": {"listChanged": True},
        }
        assert result["instructions"] == "A server for tests."
        assert result["_meta"][f"{META}serverInfo"]["name"] == "troth"
        assert (result["resultType"], type(result["ttlMs"])) == ("complete", int)
        assert result["cacheScope"] in ("private", "public")
    async with site(upstream) as one, serving(one.settings("one"), eager=False) as served, served.modern() as peer:
        params = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": ""}}
        assert (await peer.ask("completion/complete", params)).result["completion"]["values"]
    async with site(upstream) as one, serving(one.settings("one"), eager=False) as served, served.modern() as peer:
        filters = {"toolsListChanged": True, "resourceSubscriptions": ["note://notes/one"]}
        inbox = await peer.listen(**filters)
        assert inbox.all[0]["params"]["notifications"] == filters


@pytest.mark.behaviour("CAP-14-S1")
@pytest.mark.parametrize("variant", ["full", "files", "tools-only", "empty"])
async def test_families_are_declared_where_an_upstream_has_them_and_refused_elsewhere(
    upstream: str, revision: str, variant: str
) -> None:
    methods = {"tools": "tools/list", "prompts": "prompts/list", "resources": "resources/list"}
    async with (
        site(upstream, variant=variant) as one,
        serving(one.settings("one")) as served,
        host(served, revision) as peer,
    ):
        has = {family for family in methods if family in one.script.variant.offers}
        assert {family for family in methods if family in await declared(peer)} == has
        for family, method in methods.items():
            told = await peer.ask(method)
            if family in has:
                assert isinstance(told.result[family], list)
                continue
            assert told.error["code"] == -32601
            assert told.error["message"] == f"Method not found: {method} ({family} not supported)"
            assert told.error["data"] == {"capability": family}
            assert told.status == (404 if revision == MODERN else 200)


@pytest.mark.behaviour("CAP-14-S1")
@pytest.mark.parametrize("family", ["tools", "prompts", "resources"])
async def test_a_policy_decides_over_what_upstreams_have(revision: str, family: str) -> None:
    async with (
        site(OLD) as one,
        serving(one.settings("one"), policies={family: Policy.NEVER}) as served,
        host(served, revision) as peer,
    ):
        assert family not in await declared(peer)
        assert (await peer.ask(f"{family}/list")).error["code"] == -32601
    everything = dict.fromkeys(("tools", "prompts", "resources"), Policy.ALWAYS)
    async with (
        site(OLD, variant="tools-only") as one,
        serving(one.settings("one"), policies=everything) as served,
        host(served, revision) as peer,
    ):
        assert {"tools", "prompts", "resources"} <= set(await declared(peer))
        assert (await peer.ask("prompts/list")).result["prompts"] == []


@pytest.mark.behaviour("CAP-16-S1", "CAP-14-S1")
@pytest.mark.parametrize("how", ["by its own name", "by its token", "by its token, modern"])
async def test_a_host_that_pays_for_resources_gets_none_and_its_links_as_text(upstream: str, how: str) -> None:
    tokens = () if how == "by its own name" else (TokenSettings(name="oc", token="oc", profile="opencode-v1"),)
    async with site(upstream) as one:
        one.answers["tools/call"] = lambda *_: {"content": [LINK]}
        async with serving(one.settings("one", prefix="one"), tokens=tokens) as served:
            for asked in (True, False):
                if not asked:
                    served.gateway.reload(
                        GatewaySettings(
                            upstreams=(one.settings("one", prefix="one"),),
                            profiles={"opencode-v1": {"resources": Policy.AUTO}},
                        )
                    )
                given: dict[str, Any] = {"info": OPENCODE} if how == "by its own name" else {"token": "oc"}
                peer = served.modern(**given) if how.endswith("modern") else served.legacy(**given)
                async with peer:
                    assert ("resources" not in await declared(peer)) is asked
                    (block,) = (await peer.call("one_read_note")).result["content"]
                    assert block["type"] == ("text" if asked else "resource_link")
                    assert "one+note://notes/one" in str(block)
                    assert ((await peer.ask("resources/list")).answer.get("error", {}).get("code") == -32601) is asked
            # Its name alone changes nothing for a modern host, whose requests share one credential.
            if not tokens:
                async with served.modern(name="opencode") as other:
                    assert "resources" in await declared(other)


async def test_initialize_waits_for_upstreams_never_seen_and_for_no_others() -> None:
    silent = (sys.executable, "-c", "import time; time.sleep(600)")
    known = replace(server("known"), command=silent)
    state = State(path=None)
    state.remember("known", era="legacy", revision=OLD, declared={"prompts": frozenset({"listChanged"})})
    stranger = server("stranger", "--variant", "tools-only")
    async with serving(known, stranger, state=state, limits=Limits(stop=0.1), startup_wait=600.0) as served:
        peer = served.legacy()
        async with asyncio.timeout(PATIENCE):
            await peer.__aenter__()
        (fleet,) = served.gateway.every_fleet()
        assert [member.name for member in fleet.waiting()] == ["known"]
        assert peer.opening["capabilities"] == {"prompts": {"listChanged": True}, "tools": {"listChanged": True}}
        (shown,) = status(served).hosts
        why = {promise.path: promise.why for promise in shown.promised}
        assert "declared when last seen by: known" in why["prompts"]
        assert "declared by: stranger" in why["tools"]
        fleet.startup_wait = 0.0
        await peer.close()


async def test_what_was_never_seen_is_declared_with_changes_and_an_empty_list() -> None:
    async with site(OLD) as one:
        await one.stop()
        async with serving(one.settings("one", prefix="one")) as served, served.legacy() as peer:
            assert set(peer.opening["capabilities"]) == {"tools", "prompts", "resources"}
            assert (await peer.ask("tools/list")).result["tools"] == []
            inbox = await peer.listen()
            await one.start()
            await inbox.method("notifications/tools/list_changed")
            assert len((await peer.ask("tools/list")).result["tools"]) == 15
            # A family that it was not promised stays away from it, and the operator is told.
            notes = [note for shown in status(served).hosts for note in shown.notes]
            assert "logging appeared after this session began: reconnect to see it" in notes


@pytest.mark.behaviour("CAP-25-S1", "CAP-01-S1")
async def test_extensions_and_experimental_keys_pass_by_the_operators_list_only(upstream: str) -> None:
    key, other, tasks = "troth/testing", "other/extension", {"io.modelcontextprotocol/tasks": {}}

    def more(_script: Script, shown: Any, revision: str) -> None:
        shown["experimental"]["other/key"] = {"a": 1}
        if revision == MODERN:
            shown["extensions"][other] = {}

    async with site(upstream, Twist(declare=more)) as one:
        async with serving(one.settings("one")) as served:
            for revision in (*LEGACY, MODERN):
                async with host(served, revision) as peer:
                    found = await declared(peer)
                    assert "experimental" not in found
                    assert found.get("extensions") == (tasks if revision == MODERN else None)
            notes = status(served).upstreams[0].notes
            assert f"not relayed: experimental other/key, {key} (see relay_experimental)" in notes
            if upstream == MODERN:
                assert f"not relayed: extensions {other} (see relay_extensions)" in notes
                # The gateway has tasks of its own.
        lists = {"relay_experimental": ("other/key", "never/declared"), "relay_extensions": (other, "no/such")}
        async with serving(one.settings("one", **lists)) as served:
            for revision in (*LEGACY, MODERN):
                async with host(served, revision) as peer:
                    found = await declared(peer)
                    assert found["experimental"] == {"other/key": {"a": 1}}
                    passed = {other: {}, **tasks} if upstream == MODERN else tasks
                    assert found.get("extensions") == (passed if revision == MODERN else None)


def of_hosts(capabilities: dict[str, Any]) -> dict[str, Any]:
    """The open maps of a declaration without the gateway's own tasks."""
    maps = {name: {**item} for name, item in capabilities.items() if name in ("experimental", "extensions")}
    maps.get("extensions", {}).pop("io.modelcontextprotocol/tasks", None)
    return {name: item for name, item in maps.items() if item}


@pytest.mark.behaviour("CAP-01-B2", "CAP-11-C2")
async def test_keys_of_a_host_reach_an_upstream_by_the_operators_list_only_and_are_no_other_hosts(
    upstream: str, revision: str
) -> None:
    key = "com.example/x"

    def told(one: Site) -> list[Any]:
        """The experimental keys and extensions that calls came with: of the request, or of some session."""
        if upstream == MODERN:
            found = [one.hears_in(message) for message in one.of("tools/call")]
        else:
            found = [message["params"]["capabilities"] for message in one.of("initialize")]
        return [of_hosts(one) for one in found]

    def says(number: int) -> dict[str, Any]:
        both = {"experimental": {"a/b": {"n": number}, "c/d": {}}, "extensions": {key: {"n": number}}}
        return {"declares": both}

    async with site(upstream) as one:
        async with serving(one.settings("one")) as served, host(served, revision, **says(1)) as peer:
            await peer.ask("tools/call", {"name": "log"})
            assert [seen for seen in told(one) if seen] == []
            notes = [note for shown in status(served).hosts for note in shown.notes]
            assert "not relayed: experimental a/b, c/d (see relay_experimental)" in notes
        one.heard.clear()
        lists = {"relay_experimental": ("a/b",), "relay_extensions": (key,)}
        async with (
            serving(one.settings("one", **lists)) as served,
            host(served, revision, **says(1)) as peer,
            host(served, revision, **says(2)) as other,
            host(served, revision) as plain,
        ):
            for each in (plain, peer, other):
                assert (await each.ask("tools/call", {"name": "log"})).result["content"]
            wanted = [{"experimental": {"a/b": {"n": number}}} for number in (1, 2)]
            if upstream == revision == MODERN:
                wanted = [{**maps, "extensions": {key: {"n": number}}} for number, maps in enumerate(wanted, 1)]
            assert sorted((seen for seen in told(one) if seen), key=str) == wanted
            assert {} in told(one)
            notes = [note for shown in status(served).hosts for note in shown.notes]
            assert "not relayed: experimental c/d (see relay_experimental)" in notes


async def test_keys_of_hosts_get_upstreams_of_their_own_up_to_a_limit_and_none_where_all_share_them() -> None:
    limits = Limits(classes=2, stop=0.1)
    async with site(MODERN) as one:
        async with serving(one.settings("one", relay_experimental=("a",)), limits=limits) as served:
            for number in (1, 2, 3, 1):
                declares = {"experimental": {"a": {"n": number}}}
                async with served.modern(declares=declares) as peer:
                    await peer.ask("tools/call", {"name": "log"})
            told = [of_hosts(one.hears_in(message)) for message in one.of("tools/call")]
            assert told == [{"experimental": {"a": {"n": number}}} if number else {} for number in (1, 2, 0, 1)]
            # With other settings the same host is judged anew.
            served.gateway.reload(GatewaySettings(upstreams=(one.settings("one"),)))
            async with served.modern(declares={"experimental": {"a": {"n": 1}}}) as peer:
                await peer.ask("tools/call", {"name": "log"})
            assert of_hosts(one.hears_in(one.of("tools/call")[-1])) == {}
        one.heard.clear()
        shared = one.settings("one", relay_experimental=("a",), share=Share.ALWAYS)
        async with (
            serving(shared, limits=limits) as served,
            served.modern(declares={"experimental": {"a": {"n": 1}}}) as peer,
        ):
            await peer.ask("tools/call", {"name": "log"})
            assert of_hosts(one.hears_in(one.of("tools/call")[0])) == {}


async def test_the_status_counts_calls_of_hosts_and_says_when_a_server_is_tried_again(upstream: str) -> None:
    async with site(upstream) as one, serving(one.settings("one"), limits=Limits(back_off=30.0, stop=0.1)) as served:
        await served.ready()
        async with served.modern() as peer:
            before = status(served).upstreams[0]
            assert (before.calls, before.failed, before.retry) == (0, 0, None)
            await peer.ask("tools/list")
            await peer.ask("tools/call", {"name": "log"})
        seen = status(served).upstreams
        assert sum(shown.calls for shown in seen) == 1
        await one.stop()
        async with served.modern() as peer:
            await peer.ask("tools/call", {"name": "log"})
        found = await until(lambda: next((shown for shown in status(served).upstreams if shown.retry), None))
        assert found.state == "down"
        assert 0 < found.retry <= 45
        assert sum(shown.failed for shown in status(served).upstreams) == 1
        await one.start()


# What is refused


@pytest.mark.behaviour("GEN-S3")
async def test_a_version_that_is_not_served_is_refused_to_modern_hosts_and_countered_to_legacy_ones() -> None:
    async with site(OLD) as one, serving(one.settings("one")) as served, served.modern() as peer:
        message = peer.message("tools/list", {}, {f"{META}protocolVersion": "2031-01-01"})
        told = await peer.post(message, {"mcp-protocol-version": "2031-01-01", "mcp-method": "tools/list"})
        assert told.status == 400
        assert told.error["code"] == -32022
        assert told.error["data"] == {"supported": [MODERN], "requested": "2031-01-01"}
        for offered in ("2031-01-01", "2020-01-01", MODERN):
            async with served.legacy(offered) as old:
                assert old.opening["protocolVersion"] == LEGACY[-1]
        for offered in LEGACY:
            async with served.legacy(offered) as old:
                assert old.opening["protocolVersion"] == offered


@pytest.mark.behaviour("GEN-S4", "GEN-S5")
async def test_methods_that_modern_removed_are_refused_there_and_served_to_legacy_hosts() -> None:
    removed = ("ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "initialize")
    async with (
        site(OLD) as one,
        serving(one.settings("one")) as served,
        served.modern() as modern,
        served.legacy() as legacy,
    ):
        await served.ready()
        for method in (*removed, "tasks/list", "tasks/result", "no/such"):
            told = await modern.ask(method, {"level": "info", "uri": "note://notes/one"})
            assert (told.status, told.error["code"]) == (404, -32601), method
        for method in ("server/discover", "subscriptions/listen", "no/such"):
            told = await legacy.ask(method, {"notifications": {}})
            assert (told.status, told.error["code"]) == (200, -32601), method
        assert (await legacy.ask("no/such")).error["message"] == "Unknown method: no/such"
        assert (await legacy.ask("ping")).result == {}
        assert (await legacy.ask("logging/setLevel", {"level": "info"})).result == {}
        for method in ("resources/subscribe", "resources/unsubscribe"):
            assert (await legacy.ask(method, {"uri": "note://notes/one"})).result == {}
        for method in ("resources/subscribe", "resources/unsubscribe", "logging/setLevel"):
            assert (await legacy.ask(method)).error["code"] == -32602


@pytest.mark.behaviour("CAP-19-S1")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "nobody"}),
        ("tools/call", {"name": 1}),
        ("tools/call", {}),
        ("prompts/get", {"name": "nobody"}),
        ("prompts/get", {}),
        ("resources/read", {}),
        ("completion/complete", {}),
        ("completion/complete", {"ref": 1}),
        ("tools/list", {"cursor": 1}),
        ("tools/list", {"cursor": "none of ours"}),
    ],
)
async def test_parameters_that_make_no_sense_are_refused(method: str, params: Any, revision: str) -> None:
    async with site(OLD) as one, serving(one.settings("one")) as served, host(served, revision) as peer:
        await served.ready()
        before = one.count(method)
        headers = {"mcp-name": str(params.get("name", ""))}
        message = peer.message(method, params, {}) if isinstance(peer, Modern) else None
        if isinstance(peer, Modern) and message is not None:
            base = {"mcp-protocol-version": MODERN, "mcp-method": method}
            told = await peer.post(message, base | (headers if isinstance(params.get("name"), str) else {}))
            assert told.error["code"] in (-32602, -32020)
        else:
            told = await peer.ask(method, params)
            assert told.error["code"] == -32602
        assert one.count(method) == before or method.endswith("/list")


@pytest.mark.parametrize("broken", [{"protocolVersion": 1}, {"capabilities": []}, {"protocolVersion": None}])
async def test_an_initialize_that_makes_no_sense_is_refused(broken: dict[str, Any]) -> None:
    async with site(OLD) as one, serving(one.settings("one")) as served:
        peer = served.legacy()
        params = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": peer.info, **broken}
        params = {name: value for name, value in params.items() if value is not None}
        told = await peer.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        assert told.error["code"] == -32602
        assert not served.front.sessions


@pytest.mark.behaviour("GEN-B4")
async def test_nothing_is_inferred_from_an_earlier_request(upstream: str) -> None:
    async with site(upstream) as one, serving(one.settings("one")) as served, served.modern() as peer:
        await served.ready()
        level = {f"{META}logLevel": "debug"}
        loud = await peer.call("log", **level)
        quiet = await peer.call("log")
        assert (len(loud.before), len(quiet.before)) == (8, 0)
        peer.declares = {"elicitation": {}}
        assert (await peer.call("read_note")).result
        message = peer.message("tools/list", {}, {})
        del message["params"]["_meta"][f"{META}clientCapabilities"]
        told = await peer.post(message, peer.headers("tools/list", {}))
        assert (told.status, told.error["code"]) == (400, -32602)
        wrong = peer.message("tools/list", {}, {f"{META}clientCapabilities": []})
        assert (await peer.post(wrong, peer.headers("tools/list", {}))).error["code"] == -32602


# Whose is what


def pids(served: Any) -> set[int]:
    return {
        member.upstream.conversation.link.pid
        for fleet in served.gateway.every_fleet()
        for member in fleet.members
        if member.upstream.conversation is not None
    }


@pytest.mark.behaviour("GEN-B10")
async def test_two_principals_share_no_process_and_hear_nothing_of_each_other(upstream: str) -> None:
    settings = server("one", "--revision", upstream, prefix="one")
    async with (
        serving(settings, tokens=("ada", "alan")) as served,
        served.legacy(token="ada") as ada,
        served.modern(token="ada") as also_ada,
        served.legacy(token="alan") as alan,
        served.modern(token="alan") as also_alan,
    ):
        uri = "one+note://notes/one"
        hears = {"toolsListChanged": True, "resourceSubscriptions": [uri]}
        heard = {"ada": await ada.listen(), "alan": await alan.listen()}
        tagged = {"ada": await also_ada.listen(**hears), "alan": await also_alan.listen(**hears)}
        for peer in (ada, alan):
            await peer.ask("resources/subscribe", {"uri": uri})
            await peer.ask("logging/setLevel", {"level": "debug"})
        await served.ready()
        assert len(pids(served)) == 2
        marks = {name: (len(heard[name].all), len(tagged[name].all)) for name in heard}
        await ada.call("one_add_tool")
        await ada.call("one_touch")
        for inbox, mark in zip((heard["ada"], tagged["ada"]), marks["ada"], strict=True):
            await inbox.method("notifications/tools/list_changed", mark)
            await inbox.method("notifications/resources/updated", mark)
        assert "one_added_1" in str((await also_ada.ask("tools/list")).result)
        assert "one_added_1" not in str((await alan.ask("tools/list")).result)
        await alan.call("one_touch")
        for inbox in (heard["alan"], tagged["alan"]):
            await inbox.method("notifications/resources/updated")
            methods = inbox.methods()
            assert methods.count("notifications/resources/updated") == 1
            # That of its own start may come late.
            assert methods.count("notifications/tools/list_changed") <= 1
        unknown = await also_alan.call("one_added_1")
        assert unknown.error["code"] == -32602
        # A session is of the principal that opened it.
        stolen = served.legacy(token="alan")
        stolen.base["mcp-session-id"] = ada.base["mcp-session-id"]
        assert (await stolen.ask("ping")).status == 404


@pytest.mark.behaviour("GEN-B10")
async def test_hosts_of_one_principal_share_a_session_and_everybody_does_where_the_operator_says_so(
    upstream: str,
) -> None:
    for share, processes in ((Share.AUTO, 2), (Share.ALWAYS, 1)):
        settings = server("one", "--revision", upstream, prefix="one", share=share)
        async with (
            serving(settings, tokens=("ada", "alan")) as served,
            served.legacy(token="ada") as first,
            served.legacy(token="ada"),
            served.modern(token="alan") as alan,
        ):
            await served.ready()
            inbox = await alan.listen(toolsListChanged=True)
            await served.ready()
            mark = len(inbox.all)
            assert len(pids(served)) == processes
            await first.call("one_add_tool")
            if share is Share.ALWAYS:
                await inbox.method("notifications/tools/list_changed", mark)
            assert ("one_added_1" in str((await alan.ask("tools/list")).result)) is (share is Share.ALWAYS)
            # What a call tells is of its caller all the same.
            told = await first.call("one_log")
            assert len(inbox.all) == mark + (share is Share.ALWAYS)
            known = {"notifications/message", "notifications/tools/list_changed"}
            assert {message["method"] for message in told.before} <= known


async def test_a_level_that_one_principal_wants_holds_for_a_server_that_all_share() -> None:
    async with (
        site(OLD) as one,
        serving(one.settings("one", share=Share.ALWAYS), tokens=("ada", "alan")) as served,
        served.legacy(token="ada") as ada,
        served.legacy(token="alan") as alan,
    ):
        await served.ready()
        await ada.ask("logging/setLevel", {"level": "debug"})
        await alan.ask("logging/setLevel", {"level": "error"})
        assert len((await ada.call("log")).before) == 8
        assert len((await alan.call("log")).before) == 4
        (session,) = one.script.sessions.values()
        assert session.level == "debug"


async def test_a_session_may_have_a_server_for_itself_up_to_a_limit_and_gives_it_back() -> None:
    async with site(OLD) as one:
        settings = one.settings("one", share=Share.NEVER, max_sessions=2)
        async with serving(settings, eager=False) as served, served.legacy() as first, served.legacy() as second:
            await served.ready()
            assert len(one.script.sessions) == 2
            await first.ask("logging/setLevel", {"level": "error"})
            assert sorted(session.level for session in one.script.sessions.values()) == ["error", "info"]
            params = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": first.info}
            third = served.legacy()
            told = await third.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
            assert told.error["code"] == -32603
            assert told.error["message"] == "upstream one: 2 sessions are open (limit: max_sessions)"
            await second.delete()
            await until(lambda: len(one.script.sessions) == 1)
            async with served.legacy() as third:
                assert (await third.call("read_note")).result["content"]
            assert first.opening


async def test_a_host_that_leaves_while_its_session_opens_leaves_nothing_behind() -> None:
    async with site(OLD) as one:
        one.answers["initialize"] = lambda *_: SILENT
        settings = one.settings("one", share=Share.NEVER, max_sessions=1)
        async with serving(settings, eager=False, limits=Limits(stop=0.2)) as served:
            frame = ask("initialize", {"protocolVersion": OLD, "capabilities": {}})
            opening = served.front.initialize(frame, ANONYMOUS, cast("Any", None), push=True, transport="stdio")
            asked = asyncio.get_running_loop().create_task(opening)
            await one.hears("initialize")
            assert served.gateway.own
            asked.cancel()
            await until(lambda: not served.gateway.own and not served.gateway._members)


async def test_the_upstreams_of_a_token_that_is_gone_end() -> None:
    async with (
        site(OLD) as one,
        serving(one.settings("one"), tokens=("ada", "alan")) as served,
        served.legacy(token="ada") as ada,
        served.legacy(token="alan"),
    ):
        await served.ready()
        assert len(one.script.sessions) == 2
        served.gateway.retain({"ada"})
        await until(lambda: len(one.script.sessions) == 1)
        assert (await ada.call("read_note")).result["content"]
        assert [principal.name for principal, _ in served.gateway.fleets] == ["ada"]


@pytest.mark.behaviour("CAP-06-C2", "CAP-09-C2")
async def test_an_upstream_may_ask_what_the_host_of_the_call_declared_and_nothing_else(upstream: str) -> None:
    each: list[dict[str, Any]] = [
        {"sampling": {}},
        {"sampling": {"tools": {}}},
        {"elicitation": {"form": {}}},
        {"elicitation": {"url": {}}},
        {"elicitation": {"form": {}, "url": {}}},
        {},
    ]
    async with site(upstream) as one, serving(one.settings("one"), eager=False) as served:
        for declares in each:
            one.heard.clear()
            async with served.modern(declares=declares) as peer:
                assert (await peer.call("log")).result["content"]
            if upstream == MODERN:
                told = [one.hears_in(message) for message in one.of("tools/call")]
            else:
                # A declaration is for the whole session, so that each has one of its own.
                told = [message["params"]["capabilities"] for message in one.of("initialize")]
            wanted = {
                name: {key: value for key, value in item.items() if upstream >= BEGINS[name, key]}
                for name, item in declares.items()
                if upstream >= BEGINS[name, ""]
            }
            assert [{key: item for key, item in found.items() if key != "extensions"} for found in told] == [wanted]


BEGINS = {
    ("sampling", ""): "2024-11-05",
    ("sampling", "tools"): "2025-11-25",
    ("elicitation", ""): "2025-06-18",
    ("elicitation", "form"): "2025-11-25",
    ("elicitation", "url"): "2025-11-25",
}
"""Since when a capability and its parts exist."""
