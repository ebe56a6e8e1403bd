"""Progress, cancellation, log lines, headers and completion of relayed calls, in all four pairs of eras."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from middle_gateway import CALM, MODERN, PATIENCE, Legacy, Modern, Served, serving
from middle_site import META, OLD, Site, host, site, until

from troth.gateway.report import report
from troth.testing.model import LEVELS, SILENT, Call, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from troth.testing.script import Script

pytestmark = pytest.mark.anyio

PROGRESS = "notifications/progress"
LOG = "notifications/message"


class Held:
    """Calls of one tool that the test answers itself."""

    def __init__(self, one: Site, name: str = "slow") -> None:
        self.one = one
        self.calls: list[Call] = []

        def hold(_script: Script, call: Call) -> Any:
            if call.params.get("name") != name:
                return None
            self.calls.append(call)
            return SILENT

        one.answers["tools/call"] = hold

    async def call(self, number: int = 0) -> Call:
        await until(lambda: len(self.calls) > number)
        return self.calls[number]

    def say(self, act: Callable[[Script], Any]) -> None:
        self.one.do(act)

    def end(self, call: Call, text: str = "done") -> None:
        self.say(lambda script: script.respond(call, {"content": [{"type": "text", "text": text}]}))


def spawn(work: Any) -> asyncio.Task[Any]:
    return asyncio.get_running_loop().create_task(work)


def meta_of(call: Call) -> dict[str, Any]:
    return call.params.get("_meta", {})


# Progress


@pytest.mark.parametrize("token", [7, "7", "a-token"])
async def test_progress_comes_under_the_token_of_the_caller_and_only_where_it_rises(
    upstream: str, revision: str, token: int | str
) -> None:
    async with site(upstream) as one:
        held = Held(one)
        async with serving(one.settings("one")) as served, host(served, revision) as peer:
            await served.ready()
            extra = {"progressToken": token}
            asked = spawn(
                peer.call("slow", **extra) if isinstance(peer, Modern) else peer.call("slow", None, _meta=extra)
            )
            call = await held.call()
            ours = meta_of(call)["progressToken"]
            assert ours != token

            def steps(script: Script) -> None:
                for value in (1, 1, 0.5, 2):
                    script.notify(PROGRESS, {"progressToken": ours, "progress": value, "total": 2}, call.stream)
                # A token of nobody, and that of the host itself, which the upstream never got.
                for stray in (token, "nobody"):
                    script.notify(PROGRESS, {"progressToken": stray, "progress": 9}, call.stream)

            held.say(steps)
            held.end(call)
            told = await asked
            assert [(m["method"], m["params"]["progress"]) for m in told.before] == [(PROGRESS, 1), (PROGRESS, 2)]
            tokens = [message["params"]["progressToken"] for message in told.before]
            assert tokens == [token, token]
            assert all(type(one) is type(token) for one in tokens)
            asked = spawn(peer.call("slow"))
            call = await held.call(1)
            assert "progressToken" not in meta_of(call)
            held.end(call)
            assert (await asked).before == []


# Cancellation


@pytest.mark.behaviour("GEN-S10")
async def test_a_cancelled_call_is_cancelled_at_the_upstream_under_the_id_that_it_has_there(
    upstream: str, revision: str
) -> None:
    async with site(upstream) as one:
        held = Held(one)
        async with serving(one.settings("one")) as served, host(served, revision) as peer:
            await served.ready()
            asked = spawn(peer.call("slow"))
            call = await held.call()
            if isinstance(peer, Legacy):
                await peer.notify("notifications/cancelled", {"requestId": 1, "reason": "enough"})
                assert (await asked).answer == {}
            else:
                asked.cancel()
            if upstream == OLD:
                told = await one.hears("notifications/cancelled")
                assert told["params"]["requestId"] == call.id
            # Over HTTP the stream of the call is closed as well, which is all that a modern server hears.
            await until(lambda: call.stream not in one.shell.streams)
            assert (await peer.call("read_note")).result["content"]
            if upstream == MODERN:
                assert not one.count("notifications/cancelled")


@pytest.mark.behaviour("GEN-S10")
async def test_a_legacy_host_that_loses_its_connection_cancels_nothing(upstream: str) -> None:
    async with site(upstream) as one:
        held = Held(one)
        async with serving(one.settings("one")) as served, served.legacy() as peer:
            await served.ready()
            asked = spawn(peer.call("slow"))
            call = await held.call()
            asked.cancel()
            await peer.ask("ping")
            assert call.stream in one.shell.streams
            assert not one.count("notifications/cancelled")
            held.end(call)
            session = next(iter(served.front.sessions))
            await until(lambda: not session.running)


async def test_the_end_of_a_session_cancels_what_it_asked_for(upstream: str) -> None:
    async with site(upstream) as one:
        held = Held(one)
        async with serving(one.settings("one")) as served, served.legacy() as peer:
            await served.ready()
            asked = spawn(peer.call("slow"))
            call = await held.call()
            await peer.delete()
            await until(lambda: call.stream not in one.shell.streams)
            await asked


async def test_an_id_that_is_still_running_is_refused_and_may_be_used_again_afterwards() -> None:
    async with site(OLD) as one:
        held = Held(one)
        async with serving(one.settings("one")) as served, served.legacy() as peer:
            await served.ready()
            message = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "slow"}}
            asked = spawn(peer.post(message))
            call = await held.call()
            again = await peer.post(message)
            assert again.error["code"] == -32600
            other = spawn(peer.post({**message, "id": "5"}))
            second = await held.call(1)
            held.end(second, "second")
            held.end(call, "first")
            assert (await asked).result["content"][0]["text"] == "first"
            assert (await other).result["content"][0]["text"] == "second"
            assert len(held.calls) == 2
            one.answers.clear()
            assert (await peer.post(message)).result


# Log lines


def levels(messages: list[dict[str, Any]]) -> list[str]:
    return [message["params"]["level"] for message in messages if message["method"] == LOG]


@pytest.mark.behaviour("CAP-12-S3", "CAP-12-C2")
@pytest.mark.parametrize("level", ["debug", "error"])
async def test_a_modern_request_gets_log_lines_from_the_level_that_it_names_and_none_without(
    upstream: str, level: str
) -> None:
    async with site(upstream) as one, serving(one.settings("one")) as served, served.modern() as peer:
        await served.ready()
        inbox = await peer.listen(toolsListChanged=True)
        told = await peer.call("log", **{f"{META}logLevel": level})
        assert levels(told.before) == list(LEVELS[LEVELS.index(level) :])
        assert levels((await peer.call("log")).before) == []
        assert "logging/setLevel" not in inbox.methods()
        if upstream == MODERN:
            assert not one.count("logging/setLevel")
            named = [call["params"]["_meta"].get(f"{META}logLevel") for call in one.of("tools/call")]
            assert named == [level, None]
        wrong = await peer.call("log", **{f"{META}logLevel": "loud"})
        assert wrong.error["code"] == -32602
        assert LOG not in inbox.methods()


@pytest.mark.behaviour("CAP-12-S1", "CAP-12-S4", "CAP-12-C1", "GEN-B10")
async def test_each_session_has_its_own_level_and_the_upstream_the_most_verbose_one(upstream: str) -> None:
    async with (
        site(upstream) as one,
        serving(one.settings("one")) as served,
        served.legacy() as first,
        served.legacy() as second,
        served.legacy() as third,
    ):
        await served.ready()
        assert "logging" in first.opening["capabilities"]
        for peer, level in ((first, "error"), (second, "notice")):
            assert (await peer.ask("logging/setLevel", {"level": level})).result == {}
        assert (await first.ask("logging/setLevel", {"level": "loud"})).error["code"] == -32602
        if upstream == OLD:
            assert [message["params"]["level"] for message in one.of("logging/setLevel")] == ["error", "notice"]
            assert [session.level for session in one.script.sessions.values()] == ["notice"]
            assert levels((await third.call("log")).before) == list(LEVELS[2:])
        else:
            assert not one.count("logging/setLevel")
        assert levels((await first.call("log")).before) == list(LEVELS[4:])
        assert levels((await second.call("log")).before) == list(LEVELS[2:])
        # The one that wanted most leaves: the upstream need not be as talkative any more.
        await second.delete()
        if upstream == OLD:
            assert (await one.hears("logging/setLevel", 3))["params"]["level"] == "error"
            async with served.modern() as loud:
                told = await loud.call("log", **{f"{META}logLevel": "info"})
                assert levels(told.before) == list(LEVELS[1:])
                assert (await one.hears("logging/setLevel", 5))["params"]["level"] == "error"
        assert levels((await first.call("log")).before) == list(LEVELS[4:])


@pytest.mark.behaviour("CAP-12-S5", "GEN-B10")
async def test_no_host_gets_a_log_line_of_another_ones_call(upstream: str) -> None:
    async with site(upstream) as one:
        held = Held(one)
        async with serving(one.settings("one")) as served, served.legacy() as first, served.legacy() as second:
            await served.ready()
            heard = [await peer.listen() for peer in (first, second)]
            quiet = spawn(second.call("slow"))
            waiting = await held.call()
            loud = await first.call("log")
            assert levels(loud.before) == list(LEVELS[1:]) if upstream == OLD else list(LEVELS)
            held.end(waiting)
            assert (await quiet).before == []
            assert [inbox.all for inbox in heard] == [[], []]


async def test_a_session_that_changes_its_level_changes_it_for_calls_that_run() -> None:
    async with site(OLD) as one:
        held = Held(one)
        async with serving(one.settings("one")) as served, served.legacy() as peer:
            await served.ready()
            asked = spawn(peer.call("slow"))
            call = await held.call()
            await peer.ask("logging/setLevel", {"level": "error"})
            for level in ("info", "error"):
                held.say(lambda script, level=level: script.notify(LOG, {"level": level, "data": level}, call.stream))
            held.end(call)
            assert levels((await asked).before) == ["error"]


@pytest.mark.behaviour("CAP-12-S1", "CAP-12-S2")
@pytest.mark.parametrize("logs", [True, False])
async def test_logging_is_declared_where_an_upstream_logs_and_refused_elsewhere(upstream: str, logs: bool) -> None:
    variant = "full" if logs else "files"
    async with (
        site(upstream, variant=variant) as one,
        serving(one.settings("one")) as served,
        served.modern() as modern,
        served.legacy() as legacy,
    ):
        declared = (await modern.ask("server/discover")).result["capabilities"]
        assert ("logging" in declared) is ("logging" in legacy.opening["capabilities"]) is logs
        told = await legacy.ask("logging/setLevel", {"level": "info"})
        assert told.answer.get("result") == {} if logs else told.error["code"] == -32601
        assert (await modern.ask("logging/setLevel", {"level": "info"})).error["code"] == -32601


async def test_what_a_server_of_one_host_alone_logs_outside_of_calls_reaches_that_host() -> None:
    from troth.gateway.settings import Share

    async with (
        site(OLD) as one,
        serving(one.settings("one", share=Share.NEVER)) as served,
        served.legacy() as first,
        served.legacy() as second,
    ):
        await served.ready()
        heard = [await peer.listen() for peer in (first, second)]
        await first.ask("logging/setLevel", {"level": "warning"})
        await one.open()
        session = next(session for session in one.script.sessions.values() if session.level == "warning")
        for level in ("info", "error"):
            one.do(lambda script, level=level: script.notify(LOG, {"level": level, "data": 1}, session.push))
        told = await heard[0].method(LOG)
        assert told["params"]["level"] == "error"
        one.add("tools")
        await heard[1].method("notifications/tools/list_changed")
        assert LOG not in heard[1].methods()


async def test_what_a_shared_server_logs_outside_of_calls_reaches_nobody_and_is_counted() -> None:
    async with site(OLD) as one, serving(one.settings("one")) as served, served.legacy() as peer:
        await served.ready()
        inbox = await peer.listen()
        await one.open()
        (session,) = one.script.sessions.values()
        one.do(lambda script: script.notify(LOG, {"level": "error", "data": 1}, session.push))
        one.add("tools")
        await inbox.method("notifications/tools/list_changed")
        assert inbox.methods() == ["notifications/tools/list_changed"]
        assert "1 messages belonged to no host and reached nobody" in status(served).upstreams[0].notes


def status(served: Served) -> Any:
    return report(served.gateway, served.front, url="", started=0.0, version="0", faults=())


# Refusals of upstreams


async def test_a_need_that_was_learnt_from_a_refusal_is_shown_and_not_enforced(revision: str) -> None:
    async with (
        site(MODERN) as one,
        serving(one.settings("one", prefix="one")) as served,
        host(served, revision) as peer,
    ):
        await served.ready()
        for _ in range(2):
            told = await peer.call("one_ask_form")
            assert told.error["code"] == (-32021 if revision == MODERN else -32600)
        (note,) = [note for note in status(served).upstreams[0].notes if "ask_form" in note]
        assert "elicitation.form" in note or "elicitation" in note
        assert one.count("tools/call") == 2
        assert "one_ask_form" in str((await peer.ask("tools/list")).result)


REGION = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}


class Regions:
    """A tool whose argument goes into a header, and a server that wants it there."""

    def __init__(self, one: Site) -> None:
        self.one = one
        self.seen: list[str | None] = []
        self.refuses = 0
        one.script.catalogue.tools.insert(
            0, {"name": "where", "description": "Where.", "inputSchema": {"type": "object"}}
        )
        one.answers["tools/call"] = self._called

    def _called(self, _script: Script, _call: Call) -> Any:
        if self.refuses:
            self.refuses -= 1
            self.one.script.catalogue.tools[0]["inputSchema"] = REGION
            return Refusal(-32020, "Mcp-Param-Region must be 'eu', as in the body")
        return {"content": []}


@pytest.mark.behaviour("GEN-C2")
async def test_a_call_whose_headers_are_refused_lists_anew_and_is_sent_once_more(revision: str) -> None:
    async with site(MODERN) as one:
        regions = Regions(one)
        async with serving(one.settings("one")) as served, host(served, revision) as peer:
            await served.ready()
            regions.refuses = 1
            lists = one.count("tools/list")
            assert (await peer.call("where", {"region": "eu"})).result["content"] == []
            assert one.count("tools/list") > lists
            assert one.count("tools/call") == 2
            regions.refuses = 5
            peer.base["mcp-param-region"] = "eu"
            told = await peer.call("where", {"region": "eu"})
            assert told.error["code"] == -32603
            assert one.count("tools/call") == 4


async def test_a_legacy_upstream_that_uses_the_code_for_something_else_is_not_called_twice(revision: str) -> None:
    async with site(OLD) as one:
        regions = Regions(one)
        regions.refuses = 1
        async with serving(one.settings("one")) as served, host(served, revision) as peer:
            await served.ready()
            assert "error" in (await peer.call("where")).answer
            assert one.count("tools/call") == 1


async def test_a_call_that_is_cancelled_while_its_list_is_fetched_is_not_sent_again() -> None:
    async with site(MODERN) as one:
        regions = Regions(one)
        async with serving(one.settings("one")) as served, served.legacy() as peer:
            await served.ready()
            regions.refuses = 1
            lists: list[Call] = []

            def hold(_script: Script, call: Call) -> Any:
                # Lists may also be fetched because a stream is open.
                if not one.count("tools/call"):
                    return None
                lists.append(call)
                return SILENT

            one.answers["tools/list"] = hold
            asked = spawn(peer.call("where", {"region": "eu"}))
            await until(lambda: lists)
            await peer.notify("notifications/cancelled", {"requestId": 1})
            one.answers.pop("tools/list")
            one.do(lambda script: script.respond(lists[0], {"tools": [], "ttlMs": 0, "cacheScope": "private"}))
            await asked
            assert one.count("tools/call") == 1


# Completion


def completing(one: Site, count: int) -> None:
    values = [f"v{number}" for number in range(count)]
    one.answers["completion/complete"] = lambda *_: {"completion": {"values": values, "total": count}}


async def complete(peer: Legacy | Modern, **ref: str) -> Any:
    argument = {"name": "name", "value": "A"}
    context = {"context": {"arguments": {"other": "x"}}}
    return await peer.ask("completion/complete", {"ref": ref, "argument": argument, **context})


@pytest.mark.behaviour("CAP-13-S3")
async def test_completion_goes_to_the_owner_and_brings_at_most_a_hundred_values(upstream: str, revision: str) -> None:
    async with site(upstream) as one, site(upstream) as two:
        upstreams = (one.settings("one", prefix="one"), two.settings("two", prefix="two"))
        async with serving(*upstreams) as served, host(served, revision) as peer:
            await served.ready()
            told = await complete(peer, type="ref/prompt", name="two_greet")
            assert told.result["completion"]["values"] == ["Ada", "Alan"]
            (asked,) = two.of("completion/complete")
            assert asked["params"]["ref"] == {"type": "ref/prompt", "name": "greet"}
            assert asked["params"]["context"] == {"arguments": {"other": "x"}}
            assert not one.count("completion/complete")
            template = (await peer.ask("resources/templates/list")).result["resourceTemplates"][0]["uriTemplate"]
            told = await complete(peer, type="ref/resource", uri=template)
            assert one.of("completion/complete")[0]["params"]["ref"]["uri"] == "note://notes/{id}"
            for count, more in ((100, None), (101, True), (1000, True)):
                completing(one, count)
                found = (await complete(peer, type="ref/prompt", name="one_greet")).result["completion"]
                assert found["values"] == [f"v{number}" for number in range(min(count, 100))]
                assert (found.get("hasMore"), found["total"]) == (more, count)
            for ref in ({"type": "ref/prompt", "name": "nobody"}, {"type": "ref/resource", "uri": "nobody+x"}):
                assert (await complete(peer, **ref)).error["code"] == -32602
            for ref in ({"type": "ref/tool", "name": "one_greet"}, {"type": "ref/prompt"}, {}):
                assert (await complete(peer, **ref)).error["code"] == -32602
            await one.stop()
            assert (await complete(peer, type="ref/prompt", name="one_greet")).error["code"] == -32603
            await one.start()


@pytest.mark.behaviour("CAP-13-S3")
async def test_what_a_revision_has_no_word_for_is_not_sent_with_a_completion(revision: str) -> None:
    async with site("2024-11-05") as one, serving(one.settings("one")) as served, host(served, revision) as peer:
        await served.ready()
        assert (await complete(peer, type="ref/prompt", name="greet")).result["completion"]["values"]
        assert "context" not in one.of("completion/complete")[-1]["params"]


@pytest.mark.behaviour("CAP-13-S1", "CAP-13-C1")
async def test_completion_is_declared_and_asked_for_only_where_an_upstream_completes(
    upstream: str, revision: str
) -> None:
    async with (
        site(upstream, variant="files") as one,
        serving(one.settings("one", prefix="one")) as served,
        host(served, revision) as peer,
    ):
        await served.ready()
        assert (await complete(peer, type="ref/resource", uri="one+note://notes/{id}")).error["code"] == -32601
        assert not one.count("completion/complete")
    async with (
        site(upstream) as one,
        site(upstream, variant="files") as two,
        serving(one.settings("one", prefix="one"), two.settings("two", prefix="two")) as served,
        host(served, revision) as peer,
    ):
        await served.ready()
        told = await complete(peer, type="ref/resource", uri="two+note://notes/{id}")
        assert told.result["completion"] == {"values": [], "hasMore": False}
        assert not two.count("completion/complete")


@pytest.mark.behaviour("CAP-13-S2", "CAP-13-C2")
async def test_an_old_server_is_tried_and_its_refusal_remembered() -> None:
    async with site("2024-11-05") as one, serving(one.settings("one")) as served:
        await served.ready()
        async with served.legacy("2024-11-05") as old, served.legacy() as new:
            assert "completions" not in old.opening["capabilities"]
            assert "completions" in new.opening["capabilities"]
            for peer in (old, new):
                assert (await complete(peer, type="ref/prompt", name="greet")).result["completion"]["values"]
    async with site("2024-11-05") as one:
        one.answers["completion/complete"] = lambda *_: Refusal(-32601, "Method not found")
        async with serving(one.settings("one")) as served, served.legacy("2024-11-05") as peer:
            await served.ready()
            tried = one.count("completion/complete")
            assert tried == 1
            told = await complete(peer, type="ref/prompt", name="greet")
            assert told.result["completion"] == {"values": [], "hasMore": False}
            one.add("prompts")
            await one.hears("prompts/list", one.count("prompts/list") + 1)
            await served.ready()
            assert one.count("completion/complete") == tried


async def test_a_call_that_a_forgotten_session_refused_is_sent_on_the_new_one(revision: str) -> None:
    async with site(OLD) as one, serving(one.settings("one")) as served, host(served, revision) as peer:
        await served.ready()
        (fleet,) = served.gateway.every_fleet()
        talk, post = fleet.members[0].conversation, one.shell._post

        arrived: list[bytes] = []

        def held() -> int:
            return sum(waiting.request.frame.method == "tools/call" for waiting in talk._held.values())

        async def late(request: Any) -> Any:
            # All come before one is refused, and all are refused before the new session is open: what is still on its
            # way then is lost.
            body = await request.read()
            arrived.extend([body] * (b'"tools/call"' in body))
            opens = b'"initialize"' in body
            await until(lambda: held() == 5 if opens else len(arrived) >= 5)
            return await post(request)

        one.shell._post = late
        one.script.sessions.clear()
        calls = [spawn(peer.call("read_note")) for _ in range(5)]
        for call in calls:
            assert (await call).result["content"]
        assert (one.count("initialize"), len(arrived)) == (2, 10)


# The end of the gateway


@pytest.mark.parametrize(("numbers", "cancelled"), [((11,), ()), ((11, 12), ()), ((11, 12, 13), (12,))])
async def test_a_batch_that_a_stop_cuts_off_is_told_so_of_each_call_that_was_not_taken_back(
    numbers: tuple[int, ...], cancelled: tuple[int, ...]
) -> None:
    calls = [{"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "slow"}} for number in numbers]
    pings = [{"jsonrpc": "2.0", "id": 14, "method": "ping"}] if len(numbers) > 1 else []
    # The host outlives the gateway.
    async with site(OLD) as one, aiohttp.ClientSession() as http:
        held = Held(one)
        async with (
            serving(one.settings("one"), limits=replace(CALM, drain=0.05)) as served,
            served.legacy("2025-03-26") as peer,
        ):

            async def post() -> tuple[int, Any]:
                async with http.post(f"{served.url}/mcp", json=calls + pings, headers=peer.base) as response:
                    return response.status, await response.json()

            asked = spawn(post())
            await held.call(len(numbers) - 1)
            for number in cancelled:
                await peer.notify("notifications/cancelled", {"requestId": number})
                await one.hears("notifications/cancelled")
        async with asyncio.timeout(PATIENCE):
            status, answers = await asked
    assert status == 503
    told = {answer["id"]: answer for answer in answers}
    assert len(told) == len(answers)
    assert [told.pop(ping["id"])["result"] for ping in pings] == [{}] * len(pings)
    assert sorted(told) == [number for number in numbers if number not in cancelled]
    assert all("the gateway stops" in answer["error"]["message"] for answer in told.values())
