"""A host sees and uses what it declared the capabilities for, through the gateway, in both eras."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from middle_gateway import MODERN, Legacy, Modern, server, serving
from middle_site import OLD, Site, host, site, until

from troth.gateway.broker import Broker
from troth.gateway.report import report
from troth.gateway.settings import Transport, UpstreamSettings
from troth.gating import ELICITATION_FORM, META_KEY, OTHER_KEY, ROOTS, SAMPLING, Need, Requirement, any_of

if TYPE_CHECKING:
    from middle_gateway import Served, Told

pytestmark = pytest.mark.anyio

CODES = {OLD: -32600, MODERN: -32021}
STATUSES = {OLD: 200, MODERN: 400}
URI = "test://gated"
SAMPLE = Path(__file__).parents[3] / "examples" / "sample_server.py"


def needing(requirement: Requirement, message: str = "") -> dict[str, Any]:
    return {"_meta": {META_KEY: Need(requirement, message).json()}}


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def gated(one: Site) -> None:
    """Gives the server lists in which some things need something."""
    modern = {"resultType": "complete", "ttlMs": 60_000, "cacheScope": "public"} if one.revision == MODERN else {}
    lists: dict[str, list[dict[str, Any]]] = {
        "tools": [
            tool("touch"),
            tool("log", **needing(SAMPLING)),
            tool("slow", _meta={OTHER_KEY: {"flags": "Roots", "message": "Needs your folders"}}),
            tool("add_tool", _meta={META_KEY: "sampling"}),
        ],
        "prompts": [{"name": "greeting"}, {"name": "gated", **needing(any_of(SAMPLING, ELICITATION_FORM))}],
        "resources": [{"uri": URI, "name": "gated", **needing(ROOTS)}, {"uri": "note://notes/one", "name": "open"}],
        "resources/templates": [{"uriTemplate": "test://{deep}/gated", "name": "deep", **needing(SAMPLING)}],
    }
    for name, items in lists.items():
        member = "resourceTemplates" if name == "resources/templates" else name
        one.results[f"{name}/list"] = {member: items, **modern}


async def seen(peer: Legacy | Modern, method: str, key: str = "name") -> list[str]:
    result = (await peer.ask(f"{method}/list")).result
    return [item[key] for item in next(value for value in result.values() if isinstance(value, list))]


def refused(told: Told, revision: str, message: str, required: dict[str, Any]) -> None:
    assert told.error == {"code": CODES[revision], "message": message, "data": {"requiredCapabilities": required}}
    assert told.status == STATUSES[revision]


@pytest.mark.behaviour("CAP-19-S3")
async def test_what_a_host_cannot_use_is_hidden_and_refused(upstream: str, revision: str) -> None:
    async with site(upstream) as one:
        gated(one)
        async with serving(one.settings("one")) as served, host(served, revision) as peer:
            assert await seen(peer, "tools") == ["touch"]
            assert await seen(peer, "prompts") == ["greeting"]
            assert await seen(peer, "resources", "uri") == ["note://notes/one"]
            assert await seen(peer, "resources/templates", "uriTemplate") == []
            assert (await peer.call("touch", {"uri": "note://notes/one"})).result
            said = "Client missing capabilities to"
            refused(await peer.call("log"), revision, f"{said} call 'log': sampling", {"sampling": {}})
            refused(await peer.call("slow"), revision, "Needs your folders", {"roots": {}})
            refused(
                await peer.call("add_tool"), revision, f"{said} call 'add_tool': requirement that cannot be read", {}
            )
            got = await peer.ask("prompts/get", {"name": "gated"})
            refused(got, revision, f"{said} get prompt 'gated': sampling or elicitation.form", {"sampling": {}})
            refused(
                await peer.ask("resources/read", {"uri": URI}), revision, f"{said} read '{URI}': roots", {"roots": {}}
            )
            assert one.count("tools/call") == 1
            assert not one.count("prompts/get") + one.count("resources/read")


async def test_what_a_host_can_use_it_sees_and_uses(upstream: str, revision: str) -> None:
    async with site(upstream) as one:
        gated(one)
        everything = {"sampling": {}, "roots": {}, "elicitation": {}}
        async with serving(one.settings("one")) as served, host(served, revision, declares=everything) as peer:
            assert await seen(peer, "tools") == ["touch", "log", "slow"]
            assert await seen(peer, "prompts") == ["greeting", "gated"]
            assert await seen(peer, "resources", "uri") == [URI, "note://notes/one"]
            assert await seen(peer, "resources/templates", "uriTemplate") == ["test://{deep}/gated"]
            assert (await peer.call("log")).result
            assert one.count("tools/call") == 1


def hiding() -> UpstreamSettings:
    """The sample server, which hides by itself from a host what that cannot use."""
    return UpstreamSettings(name="sample", prefix="", transport=Transport.STDIO, command=(sys.executable, str(SAMPLE)))


async def test_what_an_upstream_hides_by_itself_is_refused_in_its_words(revision: str) -> None:
    everything = {"sampling": {}, "roots": {}, "elicitation": {}}
    async with serving(hiding(), server("other", prefix="other")) as served, host(served, revision) as poor:
        async with host(served, revision, declares=everything) as rich:
            assert {"order", "folders"} <= set(await seen(rich, "tools"))
        assert not {"order", "folders"} & set(await seen(poor, "tools"))
        said = "Client missing capabilities to"
        form = {"elicitation": {"form": {}}}
        refused(await poor.call("folders"), revision, f"{said} call 'folders': roots", {"roots": {}})
        refused(await poor.call("order"), revision, f"{said} call 'order': elicitation.form", form)
        needs = {"sampling": {}, **form}
        got = await poor.ask("prompts/get", {"name": "interview"})
        refused(got, revision, f"{said} get prompt 'interview': sampling, elicitation.form", needs)
        reference = {"ref": {"type": "ref/prompt", "name": "interview"}, "argument": {"name": "a", "value": ""}}
        completed = await poor.ask("completion/complete", reference)
        refused(completed, revision, f"{said} get prompt 'interview': sampling, elicitation.form", needs)
        assert (await poor.call("nothing")).error["message"] == "Unknown tool: nothing"


async def test_hidden_names_of_one_principal_are_nothing_to_another(revision: str) -> None:
    async with serving(hiding(), tokens=("a", "b")) as served, host(served, revision, token="b") as poor:
        async with host(served, revision, token="a", declares={"roots": {}}) as rich:
            assert "folders" in await seen(rich, "tools")
        assert (await poor.call("folders")).error["message"] == "Unknown tool: folders"


async def test_an_empty_elicitation_is_form_and_url_is_not(revision: str) -> None:
    async with site(OLD) as one:
        gated(one)
        async with serving(one.settings("one")) as served:
            async with host(served, revision, declares={"elicitation": {}}) as peer:
                assert await seen(peer, "prompts") == ["greeting", "gated"]
            async with host(served, revision, declares={"elicitation": {"url": {}}}) as peer:
                assert await seen(peer, "prompts") == ["greeting"]


async def test_what_belongs_to_a_hidden_template_or_prompt_is_refused_too(upstream: str, revision: str) -> None:
    async with site(upstream) as one:
        gated(one)
        async with serving(one.settings("one")) as served, host(served, revision) as peer:
            said = "Client missing capabilities to"
            read = await peer.ask("resources/read", {"uri": "test://a/gated"})
            refused(read, revision, f"{said} read 'test://a/gated': sampling", {"sampling": {}})
            argument = {"argument": {"name": "deep", "value": ""}}
            reference = {"ref": {"type": "ref/resource", "uri": "test://{deep}/gated"}}
            completed = await peer.ask("completion/complete", {**reference, **argument})
            refused(completed, revision, f"{said} read 'test://{{deep}}/gated': sampling", {"sampling": {}})
            reference = {"ref": {"type": "ref/prompt", "name": "gated"}}
            completed = await peer.ask("completion/complete", {**reference, **argument})
            refused(completed, revision, f"{said} get prompt 'gated': sampling or elicitation.form", {"sampling": {}})
            assert not one.count("completion/complete")


async def test_updates_of_a_hidden_resource_are_refused(upstream: str) -> None:
    async with site(upstream) as one:
        gated(one)
        async with serving(one.settings("one")) as served:
            async with served.legacy() as peer:
                told = await peer.ask("resources/subscribe", {"uri": URI})
                refused(told, OLD, f"Client missing capabilities to read '{URI}': roots", {"roots": {}})
            async with served.modern() as peer:
                inbox = await peer.listen(resourceSubscriptions=[URI, "note://notes/one"])
                acknowledged = inbox.all[0]["params"]["notifications"]
                assert acknowledged == {"resourceSubscriptions": ["note://notes/one"]}
            assert URI not in one.watched()


async def test_hosts_that_take_turns_each_keep_their_own_view(upstream: str) -> None:
    wanted = {"": ["touch"], "sampling": ["touch", "log"], "roots": ["touch", "slow"]}
    async with site(upstream) as one:
        gated(one)
        async with serving(one.settings("one")) as served:
            peers = {
                (name, revision): host(served, revision, declares={name: {}} if name else {})
                for name in wanted
                for revision in (OLD, MODERN)
            }
            for peer in peers.values():
                await peer.__aenter__()
            for _ in range(3):
                for (name, revision), peer in peers.items():
                    assert await seen(peer, "tools") == wanted[name], (name, revision)
            for peer in peers.values():
                await peer.close()


async def test_a_modern_host_is_judged_by_each_request_alone() -> None:
    async with site(MODERN) as one:
        gated(one)
        async with serving(one.settings("one")) as served, served.modern() as peer:
            assert await seen(peer, "tools") == ["touch"]
            peer.declares = {"sampling": {}}
            assert await seen(peer, "tools") == ["touch", "log"]
            assert (await peer.call("log")).result
            peer.declares = {}
            assert (await peer.call("log")).error["code"] == -32021


async def test_a_list_that_depends_on_the_host_is_private_also_where_all_of_it_is_seen() -> None:
    async with site(MODERN) as one:
        gated(one)
        one.results["prompts/list"]["prompts"] = [{"name": "greeting"}]
        async with serving(one.settings("one")) as served:
            for declares in ({}, {"sampling": {}, "roots": {}}):
                async with served.modern(declares=declares) as peer:
                    result = (await peer.ask("tools/list")).result
                    assert (result["cacheScope"], result["ttlMs"]) == ("private", 5000)
                    result = (await peer.ask("prompts/list")).result
                    assert (result["cacheScope"], result["ttlMs"]) == ("public", 60_000)


async def test_pages_keep_their_cursors(revision: str) -> None:
    async with site(OLD) as one:
        gated(one)
        one.results["tools/list"]["tools"] = [tool(f"t{n}", **(needing(SAMPLING) if n % 2 else {})) for n in range(9)]
        async with serving(one.settings("one"), page_size=2) as served, host(served, revision) as peer:
            found: list[str] = []
            cursor: dict[str, str] = {}
            while True:
                result = (await peer.ask("tools/list", cursor)).result
                found += [item["name"] for item in result["tools"]]
                if "nextCursor" not in result:
                    break
                cursor = {"cursor": result["nextCursor"]}
            assert found == ["t0", "t2", "t4", "t6", "t8"]


async def test_the_operator_may_require_more(upstream: str, revision: str) -> None:
    requires = {"touch": Need(ROOTS), "add_prompt": Need(SAMPLING | ROOTS)}
    async with site(upstream) as one:
        settings = one.settings("one", requires=requires, allow=("touch", "add_prompt"), rename={"touch": "poke"})
        async with serving(settings) as served:
            async with host(served, revision) as peer:
                assert await seen(peer, "tools") == []
                said = "Client missing capabilities to call"
                refused(await peer.call("poke"), revision, f"{said} 'poke': roots", {"roots": {}})
                told = await peer.call("add_prompt")
                refused(told, revision, f"{said} 'add_prompt': roots, sampling", {"roots": {}, "sampling": {}})
            async with host(served, revision, declares={"roots": {}}) as peer:
                assert await seen(peer, "tools") == ["poke"]


async def test_what_the_operator_answers_a_host_need_not_have(upstream: str, revision: str, tmp_path: Path) -> None:
    async with site(upstream) as one:
        gated(one)
        settings = one.settings("one", ask=("host", "broker"))
        async with serving(settings, eager=False) as served:
            gateway = served.gateway
            path = tmp_path / "questions.db"
            gateway.broker = Broker(path, gateway.limits, run="r", clock=time.time, crew=gateway.crew)
            async with host(served, revision) as peer:
                assert await seen(peer, "tools") == ["touch", "log"]
                assert await seen(peer, "prompts") == ["greeting", "gated"]
                assert await seen(peer, "resources", "uri") == ["note://notes/one"]
                assert (await peer.call("log")).result
                more = one.settings("one", ask=("host", "broker"), roots=("file:///a",))
                gateway.reload(replace(gateway.settings, upstreams=(more,)))
            async with host(served, revision) as peer:
                assert await seen(peer, "tools") == ["touch", "log", "slow"]
                assert await seen(peer, "resources", "uri") == [URI, "note://notes/one"]


@pytest.mark.parametrize("lets", [False, True])
async def test_a_host_that_sends_no_capabilities_is_gated_unless_the_operator_lets_it_pass(lets: bool) -> None:
    async with site(OLD) as one:
        gated(one)
        async with serving(one.settings("one"), allow_when_not_declared=lets) as served:
            async with Silent(served, OLD) as peer:
                assert await seen(peer, "tools") == (["touch", "log", "slow", "add_tool"] if lets else ["touch"])
                assert ("error" in (await peer.call("log")).answer) is not lets
            async with served.legacy() as peer:
                assert await seen(peer, "tools") == ["touch"]
            async with served.modern() as peer:
                bare = peer.message("tools/list", None, {})
                del bare["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
                told = await peer.post(bare, peer.headers("tools/list", None))
                assert (told.error["code"], told.status) == (-32602, 400)


class Silent(Legacy):
    """A host whose ``initialize`` has no capabilities."""

    async def post(self, message: dict[str, Any], headers: dict[str, str] | None = None) -> Told:
        if message["method"] == "initialize":
            del message["params"]["capabilities"]
        return await super().post(message, headers)


async def test_a_change_is_told_to_those_who_see_it(upstream: str) -> None:
    async with site(upstream) as one:
        gated(one)
        async with serving(one.settings("one")) as served, served.legacy() as poor, served.modern() as unable:
            rich = served.legacy(declares={"sampling": {}})
            able = served.modern(declares={"sampling": {}})
            async with rich, able:
                for peer in (poor, rich, unable, able):
                    await seen(peer, "tools")
                told = {
                    "poor": await poor.listen(),
                    "rich": await rich.listen(),
                    "unable": await unable.listen(toolsListChanged=True),
                    "able": await able.listen(toolsListChanged=True),
                }
                one.results["tools/list"]["tools"].append(tool("more", **needing(SAMPLING)))
                one.add("tools")
                for name in ("rich", "able"):
                    await told[name].method("notifications/tools/list_changed")
                assert await seen(rich, "tools") == await seen(able, "tools") == ["touch", "log", "more"]
                one.results["tools/list"]["tools"].append(tool("all"))
                one.add("tools")
                for name in ("poor", "unable"):
                    await told[name].method("notifications/tools/list_changed")
                    assert told[name].methods().count("notifications/tools/list_changed") == 1
                assert await seen(poor, "tools") == await seen(unable, "tools") == ["touch", "all"]


async def test_a_requirement_that_comes_later_hides_from_then_on(revision: str) -> None:
    async with site(OLD) as one:
        gated(one)
        async with serving(one.settings("one")) as served, host(served, revision) as peer:
            assert await seen(peer, "tools") == ["touch"]
            one.results["tools/list"]["tools"][0] |= needing(SAMPLING)
            one.add("tools")
            await until(lambda: _now(served) == set())
            assert await seen(peer, "tools") == []
            assert (await peer.call("touch")).error["code"] == CODES[revision]


async def test_the_status_tells_what_is_hidden_from_whom(revision: str) -> None:
    async with site(OLD) as one:
        gated(one)
        one.results["tools/list"]["tools"] += [tool(f"t{number}", **needing(SAMPLING)) for number in range(9)]
        async with serving(one.settings("one")) as served, host(served, revision, declares={"roots": {}}) as peer:
            await seen(peer, "tools")
            told = report(served.gateway, served.front, url="", started=0.0, version="0", faults=())
            assert told.hosts[0].notes == (
                "tool hidden from it: log, t0, t1, t2, t3 and 5 more (needs sampling)",
                "tool hidden from it: add_tool (needs requirement that cannot be read)",
                "prompt hidden from it: gated (needs sampling or elicitation.form)",
                "resource template hidden from it: test://{deep}/gated (needs sampling)",
            )
            assert "one: tool 'add_tool': no host sees it, since what it requires cannot be read" in told.notes


def _now(served: Served) -> set[str]:
    fleet = next(iter(served.gateway.every_fleet()))
    return {entry.shown for entry in fleet.catalogue.entries("tools") if entry.need is None}
