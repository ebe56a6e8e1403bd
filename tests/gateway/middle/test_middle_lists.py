"""What hosts see of the lists of several upstreams: whole, in order, under names that route; and of bad ones."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from middle_gateway import LEGACY, MODERN, Legacy, Modern, server, serving
from middle_site import OLD, host, site

from troth.gateway.limits import Limits
from troth.gateway.report import report
from troth.gateway.settings import GatewaySettings, Transport, UpstreamSettings
from troth.gateway.state import State
from troth.testing.model import Refusal

if TYPE_CHECKING:
    from pathlib import Path

    from troth.testing.model import Call
    from troth.testing.script import Script

pytestmark = pytest.mark.anyio


async def names(peer: Legacy | Modern, family: str = "tools", key: str = "name") -> list[str]:
    """Everything of a list, page by page."""
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        result = (await peer.ask(f"{family}/list", cursor)).result
        found += [item[key] for item in result[family]]
        if "nextCursor" not in result:
            return found
        cursor = {"cursor": result["nextCursor"]}


def status(served: Any) -> Any:
    return report(served.gateway, served.front, url="", started=0.0, version="0", faults=())


def process(name: str, code: str, **more: Any) -> UpstreamSettings:
    """A server that is this program."""
    return UpstreamSettings(
        name=name, transport=Transport.STDIO, command=(sys.executable, "-c", code), prefix=name, **more
    )


async def test_all_pages_of_all_upstreams_come_on_one_page_in_the_order_of_the_configuration(
    upstream: str, revision: str
) -> None:
    async with site(upstream) as one, site(upstream) as two:
        for which in (one, two):
            which.add(*["tools"] * 30, announce=False)
        upstreams = (two.settings("two", prefix="two"), one.settings("one", prefix="one"))
        async with serving(*upstreams) as served, host(served, revision) as peer:
            result = (await peer.ask("tools/list")).result
            assert "nextCursor" not in result
            shown = [tool["name"] for tool in result["tools"]]
            own = [tool["name"] for tool in one.script.catalogue.tools]
            assert len(own) > 40
            assert shown == [f"two_{name}" for name in own] + [f"one_{name}" for name in own]
            assert await names(peer) == shown
            called = await peer.call("one_added_30")
            assert called.result["content"][0]["text"] == "This is added_30."
            assert not two.count("tools/call")


@pytest.mark.parametrize("size", [1, 7, 200])
async def test_pages_out_are_for_who_wants_them_and_hold_everything_once(revision: str, size: int) -> None:
    async with site(OLD) as one, site(MODERN) as two:
        upstreams = (one.settings("one", prefix="one"), two.settings("two", prefix="two"))
        async with serving(*upstreams, page_size=size) as served, host(served, revision) as peer:
            first = (await peer.ask("tools/list")).result
            assert len(first["tools"]) == min(size, 30)
            found = await names(peer)
            assert len(found) == len(set(found)) == 30
            wrong = await peer.ask("prompts/list", {"cursor": first.get("nextCursor", "no cursor")})
            assert wrong.error["code"] == -32602
            async with served.legacy(info={"name": "lootbox", "version": "9"}) as reads_one_page:
                assert len((await reads_one_page.ask("tools/list")).result["tools"]) == 30


@pytest.mark.behaviour("CAP-19-S2")
async def test_filters_renames_and_descriptions_shape_what_hosts_see(upstream: str, revision: str) -> None:
    async with site(upstream) as one:
        shaped = one.settings(
            "one",
            prefix="one",
            allow=("add_*", "touch", "log", "slow"),
            deny=("*_tool", "add_res*"),
            rename={"touch": "poke"},
            describe={"log": "Says something."},
        )
        async with serving(shaped) as served, host(served, revision) as peer:
            tools = (await peer.ask("tools/list")).result["tools"]
            assert [tool["name"] for tool in tools] == ["one_add_prompt", "one_poke", "one_log", "one_slow"]
            assert tools[2]["description"] == "Says something."
            assert (await peer.call("one_poke")).result["content"][0]["text"].startswith("Touched")
            assert one.of("tools/call")[-1]["params"]["name"] == "touch"
            for hidden in ("one_touch", "one_add_tool", "touch", "poke", "one_"):
                error = (await peer.call(hidden)).error
                assert (error["code"], error["message"]) == (-32602, f"Unknown tool: {hidden}")
            assert one.count("tools/call") == 1


@pytest.mark.behaviour("CAP-19-S2")
async def test_a_name_that_two_upstreams_have_is_of_the_first_and_the_other_is_named(
    upstream: str, revision: str
) -> None:
    async with site(upstream) as one, site(upstream, variant="files") as two:
        upstreams = (one.settings("one", prefix=""), two.settings("two", prefix=""))
        async with serving(*upstreams) as served, host(served, revision) as peer:
            await served.ready()
            shown = await names(peer)
            assert shown.count("read_note") == 1
            await peer.call("read_note")
            assert (one.count("tools/call"), two.count("tools/call")) == (1, 0)
            assert any("two: tool 'read_note' is left out" in note for note in status(served).notes)
            # The first one goes down, and its names stay its own.
            await one.stop()
            told = await peer.call("read_note")
            assert told.error["code"] == -32603
            assert two.count("tools/call") == 0
            await one.start()


async def test_names_over_64_characters_are_shortened_the_same_way_always_and_route(upstream: str) -> None:
    long = "a_name_that_is_so_long_that_no_prefix_fits_before_it_any_more_"
    async with site(upstream) as one:
        for end in ("first", "second"):
            tool = {"name": long + end, "description": "x", "inputSchema": {"type": "object"}}
            one.script.catalogue.tools.append(tool)
        async with serving(one.settings("one", prefix="some-prefix")) as served:
            found: list[list[str]] = []
            for revision in (*LEGACY, MODERN):
                async with host(served, revision) as peer:
                    shown = await names(peer)
                    assert all(len(name) <= 64 for name in shown)
                    assert len(set(shown)) == len(shown) == 17
                    found.append(shown)
                    told = await peer.call(shown[-1])
                    assert told.result["content"][0]["text"] == f"This is {long}second."
            assert all(shown == found[0] for shown in found)


async def test_names_stay_over_restarts_of_the_gateway_whoever_else_comes(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    async with site(OLD) as one, site(OLD) as two:
        async with serving(one.settings("one"), state=State.load(path)) as served, served.legacy() as peer:
            bare = await names(peer)
            assert "read_note" in bare
        upstreams = (two.settings("two"), one.settings("one"))
        async with serving(*upstreams, state=State.load(path)) as served, served.legacy() as peer:
            shown = await names(peer)
            assert [name for name in shown if not name.startswith("two_")] == bare
        # Even a gateway that was killed before anybody came has kept what it would have said.
        path.unlink()
        async with serving(one.settings("one"), state=State.load(path), eager=False):
            assert State.load(path).prefixes(GatewaySettings(upstreams=upstreams)) == {"two": "two", "one": ""}


async def test_instructions_of_all_stand_under_their_names(revision: str) -> None:
    async def told(served: Any) -> str:
        async with host(served, revision) as peer:
            await served.ready()
            if isinstance(peer, Legacy):
                return peer.opening["instructions"]
            return (await peer.ask("server/discover")).result["instructions"]

    async with site(OLD) as one, site(MODERN) as two:
        async with serving(one.settings("one")) as served:
            assert await told(served) == "A server for tests."
        async with serving(one.settings("first"), two.settings("second")) as served:
            assert await told(served) == "# first\n\nA server for tests.\n\n# second\n\nA server for tests."


async def test_instructions_are_handed_on_up_to_their_limit() -> None:
    limits = Limits(instructions=8)
    async with site(OLD) as one, serving(one.settings("one"), limits=limits) as served:
        await served.ready()
        async with served.legacy() as peer:
            assert peer.opening["instructions"] == "A server"


BAD = {
    "missing": None,
    "exits": "raise SystemExit(3)",
    "junk": "while True: print('no json at all'); __import__('sys').stdin.readline()",
    "silent": "import time; time.sleep(600)",
    "flood": (
        "import sys\n"
        'line = \'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\\n\' * 50\n'
        "try:\n"
        "    while True: sys.stdout.write(line)\n"
        "except BrokenPipeError: pass\n"
    ),
}


@pytest.mark.parametrize("how", BAD)
async def test_an_upstream_that_is_no_use_costs_its_own_names_only(how: str, revision: str) -> None:
    code = BAD[how]
    bad = (
        process("bad", code, start_timeout=3.0)
        if code
        else UpstreamSettings(name="bad", transport=Transport.STDIO, command=("/no/such/program",), prefix="bad")
    )
    async with site(OLD) as one, serving(bad, one.settings("one", prefix="one"), limits=Limits(stop=0.1)) as served:
        next(served.gateway.every_fleet()).startup_wait = 0.5
        async with host(served, revision) as peer:
            await served.ready("one")
            assert len(await names(peer)) == 15
            assert (await peer.call("one_read_note")).result["content"]
            called = await peer.call("bad_tool")
            read = await peer.ask("resources/read", {"uri": "bad+note://x"})
            for told in (called, read):
                assert told.error["code"] == -32603
                assert told.error["message"].startswith("upstream bad is not reachable: ")
            assert (await peer.call("good_tool")).error["code"] == -32602
            (shown,) = [one for one in status(served).upstreams if one.name == "bad"]
            assert shown.state in ("starting", "down")
            assert shown.why


async def test_a_slow_starter_is_told_of_when_it_is_there(revision: str) -> None:
    slow = server("slow", "--revision", OLD, prefix="slow")
    code = (
        "import os, sys, time\n"
        "while not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"
        "os.execv(sys.argv[2], sys.argv[2:])\n"
    )
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        gate = Path(folder) / "gate"
        late = replace(slow, command=(sys.executable, "-c", code, str(gate), *slow.command))
        async with site(OLD) as one, serving(late, one.settings("one", prefix="one")) as served:
            for fleet in served.gateway.every_fleet():
                fleet.startup_wait = 0.3
            await served.ready("one")
            async with host(served, revision) as peer:
                assert len(await names(peer)) == 15
                inbox = await (peer.listen() if isinstance(peer, Legacy) else peer.listen(toolsListChanged=True))
                gate.touch()
                await inbox.method("notifications/tools/list_changed")
                assert len(await names(peer)) == 30


SECOND = """
import os, sys, time
gate, log = sys.argv[1:3]
first = not os.path.exists(log)
open(log, "a").close()
while not (first or os.path.exists(gate)):
    time.sleep(0.01)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Starts a server: the first one at once, later ones when there is a file."""


async def test_hosts_that_can_be_asked_more_see_at_once_what_is_known_of_a_server(
    tmp_path: Path, revision: str
) -> None:
    gate = tmp_path / "gate"
    one = server("one", "--revision", OLD)
    slow = replace(one, command=(sys.executable, "-c", SECOND, str(gate), str(tmp_path / "log"), *one.command))
    async with serving(slow, startup_wait=0.2) as served:
        await served.ready("one")
        # It is a second process, since the first one was told of nothing to ask.
        async with host(served, revision, declares={"roots": {}}) as peer:
            assert len(await names(peer)) == 15
            call = asyncio.get_running_loop().create_task(peer.call("read_note"))
            assert len(await names(peer, "prompts")) == 3
            assert not call.done()
            gate.touch()
            assert (await call).result["content"]


@pytest.mark.parametrize("what", ["no list", "an error", "no objects", "endless"])
async def test_a_malformed_list_costs_its_own_names_only_and_is_said(upstream: str, revision: str, what: str) -> None:
    results: dict[str, Any] = {
        "no list": {"tools": {"a": 1}},
        "no objects": {"tools": [1, None, {"name": "good", "inputSchema": {"type": "object"}}, {"name": 1}]},
        "endless": {"tools": [], "nextCursor": "again"},
    }
    async with site(upstream) as one, site(upstream) as two:
        if what in results:
            one.results["tools/list"] = {"resultType": "complete", **results[what]}
        else:
            one.answers["tools/list"] = lambda *_: Refusal(-32603, "no")
        upstreams = (one.settings("one", prefix="one"), two.settings("two", prefix="two"))
        async with serving(*upstreams) as served, host(served, revision) as peer:
            await served.ready()
            shown = await names(peer)
            assert [name for name in shown if name.startswith("one_")] == ["one_good"] * (what == "no objects")
            assert len([name for name in shown if name.startswith("two_")]) == 15
            assert len(await names(peer, "prompts")) == 6
            told = status(served)
            assert [note for note in told.upstreams[0].notes if note.startswith("tools/list: ")]


async def test_a_malformed_result_of_a_tool_costs_that_call_only_and_says_whose_it_is(
    upstream: str, revision: str
) -> None:
    async with site(upstream) as one, site(upstream) as two:
        one.results["tools/call"] = {"resultType": "complete", "content": "x"}
        upstreams = (one.settings("one", prefix="one"), two.settings("two", prefix="two"))
        async with serving(*upstreams) as served, host(served, revision) as peer:
            await served.ready()
            error = (await peer.call("one_read_note")).error
            assert error["code"] == -32603
            assert "one" in error["message"]
            assert "malformed: content: an array belongs here" in error["message"]
            assert (await peer.call("two_read_note")).result["content"]
            one.results["tools/call"] = {"resultType": "complete"}
            assert (await peer.call("one_read_note")).result["content"] == []


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("family", "member", "key", "word"),
    [
        ("tools/list", "tools", "name", "tool"),
        ("prompts/list", "prompts", "name", "prompt"),
        ("resources/list", "resources", "uri", "resource"),
        ("resources/templates/list", "resourceTemplates", "uriTemplate", "resource template"),
    ],
)
async def test_an_item_that_nests_too_deep_costs_itself_only(
    upstream: str, family: str, member: str, key: str, word: str
) -> None:
    def page(_: Script, call: Call) -> dict[str, Any]:
        first = "cursor" not in call.params
        more: dict[str, Any] = {"nextCursor": "more", "_meta": {"a/b": 1}} if first else {}
        named = [{"name": "n", key: f"a:{name}", "inputSchema": {"type": "object"}} for name in ("x", "y", "z")]
        named[1]["_meta"] = {"a/b": deep(300)}
        return {member: named[:2] if first else named[2:], "ttlMs": 0, "cacheScope": "private", **more}

    async with site(upstream) as one:
        one.answers[family] = page
        # What is not read at once would be waited for until the test times out.
        limits = Limits(coalesce=0.01, method=3600.0)
        async with serving(one.settings("one", prefix=""), limits=limits) as served, served.legacy() as peer:
            await served.ready()
            result = (await peer.ask(family)).result
            assert [item[key] for item in result[member]] == ["a:x", "a:z"]
            assert f"one: {word} 'a:y' is left out: nested deeper than 125 levels" in status(served).notes


@pytest.mark.parametrize("depth", [190, 5_000])
async def test_on_a_pipe_what_nests_too_deep_costs_itself_only_and_no_waiting(depth: int) -> None:
    code = (
        f"depth = {depth}"
        + """
import json, sys
opening = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("first", "deep", "last")]
tools[1]["_meta"] = {"a/b": "deep"}
for line in sys.stdin:
    message = json.loads(line)
    first = "cursor" not in message.get("params", {})
    answer = {"error": {"code": -32601, "message": "no"}}
    if message["method"] == "initialize":
        answer = {"result": opening}
    elif message["method"] == "tools/list":
        answer = {"result": {"tools": [None, *tools[:2]], "nextCursor": "x"} if first else {"tools": tools[2:]}}
    elif message["method"] == "tools/call":
        answer = {"result": {"content": [], "_meta": {"a/b": "deep"}}}
    if "id" in message:
        text = json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer})
        print(text.replace('"a/b": "deep"', '"a/b":' + "[" * depth + "]" * depth), flush=True)
"""
    )
    # What is not read at once would be waited for until the test times out.
    limits = Limits(coalesce=0.01, method=3600.0)
    async with serving(process("one", code), limits=limits) as served, served.legacy() as peer:
        await served.ready()
        assert await names(peer) == ["one_first", "one_last"]
        told = status(served)
        assert "one: tool 'deep' is left out: nested deeper than 125 levels" in told.notes
        assert told.upstreams[0].notes == ("tools/list: 1 items that are no objects",)
        error = (await peer.ask("tools/call", {"name": "one_first"})).error
        assert "nested deeper than 128 levels" in error["message"]


async def test_a_list_that_is_too_long_is_cut_and_said() -> None:
    limits = Limits(coalesce=0.01, listed=20)
    async with site(OLD) as one:
        one.add(*["tools"] * 30, announce=False)
        async with serving(one.settings("one"), limits=limits) as served, served.legacy() as peer:
            await served.ready()
            assert len(await names(peer)) == 20
            assert "tools/list: more than 20 items; the rest is left out" in status(served).upstreams[0].notes


async def test_a_list_of_many_large_pages_is_cut_and_said() -> None:
    def page(_: Script, call: Call) -> dict[str, Any]:
        number = int(call.params.get("cursor", "0")) + 1
        tool = {"name": f"t{number}", "description": "x" * 10_000, "inputSchema": {"type": "object"}}
        return {"tools": [tool], "nextCursor": str(number)}

    limits = Limits(coalesce=0.01, listed_bytes=55_000)
    async with site(OLD) as one:
        one.answers["tools/list"] = page
        async with serving(one.settings("one"), limits=limits) as served, served.legacy() as peer:
            await served.ready()
            assert await names(peer) == ["t1", "t2", "t3", "t4", "t5"]
            assert "tools/list: more than 55000 bytes; the rest is left out" in status(served).upstreams[0].notes


@pytest.mark.behaviour("GEN-S12")
async def test_lists_say_how_long_and_by_whom_they_may_be_kept() -> None:
    async with site(MODERN) as one, site(MODERN) as two, site(OLD) as three:
        two.answers["tools/list"] = lambda *_: {"tools": [], "ttlMs": 3000, "cacheScope": "public"}

        async def hints(*upstreams: UpstreamSettings) -> tuple[int, str]:
            async with serving(*upstreams) as served, served.modern() as peer:
                await served.ready()
                result = (await peer.ask("tools/list")).result
                assert result["resultType"] == "complete"
                return result["ttlMs"], result["cacheScope"]

        first, second, third = one.settings("one"), two.settings("two"), three.settings("three")
        assert await hints(first) == (5000, "public")
        assert await hints(first, second) == (3000, "public")
        assert await hints(replace(first, deny=("touch",))) == (5000, "private")
        assert await hints(first, third) == (0, "private")
        two.answers["tools/list"] = lambda *_: {"tools": [], "ttlMs": 9000, "cacheScope": "private"}
        assert await hints(first, second) == (5000, "private")


async def test_what_no_revision_knows_survives_on_the_way() -> None:
    async with site(MODERN) as one:
        one.script.catalogue.tools[0] |= {"x-vendor": {"deep": [1, 2.50]}, "_meta": {"a/b": 1}, "icons": []}
        content = [{"type": "hologram", "x": 1}, {"type": "text", "text": "a", "y": None}]
        one.answers["tools/call"] = lambda *_: {"content": content, "_meta": {"m": 1}, "isError": True, "z": 5}
        async with serving(one.settings("one")) as served:
            for revision in (*LEGACY, MODERN):
                async with host(served, revision) as peer:
                    await served.ready()
                    tool = (await peer.ask("tools/list")).result["tools"][0]
                    assert tool["x-vendor"] == {"deep": [1, 2.5]}
                    result = (await peer.call("read_note")).result
                    assert result["isError"] is True
                    assert result["z"] == 5
                    assert content[0] in result["content"]


async def test_resources_are_read_and_named_by_the_uri_that_the_host_knows(upstream: str, revision: str) -> None:
    async with (
        site(upstream) as one,
        serving(one.settings("one", prefix="one")) as served,
        host(served, revision) as peer,
    ):
        await served.ready()
        told = await peer.ask("resources/read", {"uri": "one+note://notes/none"})
        assert told.error["code"] == (-32602 if revision == MODERN else -32002)
        assert told.error["data"] == {"uri": "one+note://notes/none"}
        unknown = await peer.ask("resources/read", {"uri": "nobody+note://x"})
        assert unknown.error["code"] == (-32602 if revision == MODERN else -32002)
        assert unknown.error["data"] == {"uri": "nobody+note://x"}
        assert (await peer.ask("prompts/get", {"name": "nobody"})).error["code"] == -32602


async def test_a_server_without_resources_and_prompts_is_asked_for_none(upstream: str, revision: str) -> None:
    async with (
        site(upstream) as one,
        site(upstream, variant="tools-only") as two,
        serving(one.settings("one", prefix="one"), two.settings("two", prefix="two")) as served,
        host(served, revision) as peer,
    ):
        await served.ready()
        uri = "two+file:///x"
        methods = ("resources/read",) if revision == MODERN else ("resources/read", "resources/subscribe")
        for method in methods:
            told = await peer.ask(method, {"uri": uri})
            assert told.error["code"] == (-32602 if revision == MODERN else -32002)
            assert told.error["data"] == {"uri": uri}
            assert two.count(method) == 0
        assert (await peer.ask("prompts/get", {"name": "two__x"})).error["code"] == -32602
        assert two.count("prompts/get") == 0
        reference = {"type": "ref/resource", "uri": uri}
        told = await peer.ask("completion/complete", {"ref": reference, "argument": {"name": "a", "value": ""}})
        assert told.error["code"] == -32602
