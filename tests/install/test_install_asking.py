"""Handlers that ask by requests work in every era; where a question is a result, their work waits for the answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys

import anyio
import pytest
from asking_servers import ASKING, Noted, made, sampled
from fastmcp import Context, FastMCP
from install_hosts import HERE, SECONDS, client, served
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

import troth
from troth.plugins import mcp_parked
from troth.plugins.honest import read
from troth.plugins.mcp_host import HostError
from troth.register import Era, register

OLD, NEW = (register().newest(era) for era in (Era.LEGACY, Era.MODERN))
ALL = {"sampling": {}, "roots": {}, "elicitation": {"form": {}, "url": {}}}
ANSWER = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "yes"}}
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


@pytest.fixture
def noted():
    return Noted()


@pytest.fixture(params=sorted(ASKING))
def server(request, noted):
    return made(request.param, noted)


def text(result):
    return result["content"][0]["text"]


def again(name, round_, answers=None):
    """The params of the call that comes again, with an answer to each question."""
    answers = dict.fromkeys(round_["inputRequests"], ANSWER) if answers is None else answers
    return {"name": name, "arguments": {}, "inputResponses": answers, "requestState": round_["requestState"]}


async def begun(host, name):
    result = await host.request("tools/call", {"name": name, "arguments": {}})
    assert result["resultType"] == "input_required"
    return result


async def refused(host, params):
    with pytest.raises(HostError) as caught:
        await host.request("tools/call", params)
    return caught.value.code, caught.value.message


@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_a_handler_that_asks_gets_its_answer_in_both_eras_and_runs_once(server, noted, troth_host, revision):
    async with troth_host(server, capabilities=ALL, revision=revision) as host:
        assert text(await host.call("once")) == "an answer of the model"
        assert (
            text(await host.call("twice")) == "an answer of the model 1 an answer of the model an answer of the model"
        )
        assert text(await host.call("form")).startswith("accept")
        assert noted.runs == 2


async def test_what_is_asked_at_once_is_one_round_and_what_is_missing_is_asked_again(server, troth_host):
    async with troth_host(server, capabilities=ALL, revision=NEW) as host:
        first = await begun(host, "twice")
        assert [one["method"] for one in first["inputRequests"].values()] == ["sampling/createMessage"]
        second = await host.request("tools/call", again("twice", first))
        assert [one["method"] for one in second["inputRequests"].values()] == ["roots/list"]
        roots = {key: {"roots": []} for key in second["inputRequests"]}
        third = await host.request("tools/call", again("twice", second, roots))
        assert len(third["inputRequests"]) == 2
        one, other = third["inputRequests"]
        fourth = await host.request("tools/call", again("twice", third, {one: ANSWER, "sampling-99": ANSWER, other: 7}))
        assert list(fourth["inputRequests"]) == [other]
        assert text(await host.request("tools/call", again("twice", fourth))) == "yes 0 yes yes"


async def test_a_question_says_what_the_revision_knows_and_no_more(server, troth_host):
    async with troth_host(server, capabilities=ALL, revision=NEW) as host:
        asked = await begun(host, "page")
        (question,) = asked["inputRequests"].values()
        assert question["params"] == {"mode": "url", "message": "Sign in", "url": "https://example.com"}


async def test_a_prompt_that_asks_is_answered_too(server, troth_host):
    async with troth_host(server, capabilities=ALL, revision=NEW) as host:
        asked = await host.request("prompts/get", {"name": "wording"})
        given = dict.fromkeys(asked["inputRequests"], ANSWER)
        params = {"name": "wording", "inputResponses": given, "requestState": asked["requestState"]}
        result = await host.request("prompts/get", params)
        assert result["messages"][0]["content"]["text"] == "yes"


async def test_a_call_comes_again_once_and_with_the_same_params(server, troth_host):
    async with troth_host(server, capabilities=ALL, revision=NEW) as host:
        asked = await begun(host, "once")
        params = again("once", asked)
        other = {**params, "arguments": {"text": "other"}}
        assert await refused(host, other) == (-32602, mcp_parked.ANOTHER)
        assert (await refused(host, {**params, "inputResponses": [1]}))[0] == -32602
        assert (await refused(host, {**params, "name": "twice"}))[0] == -32602
        assert text(await host.request("tools/call", params)) == "yes"
        assert await refused(host, params) == (-32603, mcp_parked.LOST)
        assert await refused(host, {**params, "requestState": "troth.mine"}) == (-32603, mcp_parked.LOST)


async def test_a_tool_s_question_is_not_answered_by_a_prompt_of_its_name(troth_host):
    plain = FastMCP("namesakes")

    @troth.requires(troth.SAMPLING)
    async def same(ctx: Context) -> str:
        return await sampled(ctx, "one")

    plain.tool(same)
    plain.prompt(same)
    async with troth_host(troth.install(plain), capabilities=ALL, revision=NEW) as host:
        asked = await begun(host, "same")
        with pytest.raises(HostError) as caught:
            await host.request("prompts/get", again("same", asked))
        assert (caught.value.code, caught.value.message) == (-32602, mcp_parked.ANOTHER)
        assert text(await host.request("tools/call", again("same", asked))) == "yes"


async def test_a_call_comes_again_to_its_handler_whatever_its_tool_has_become(noted, troth_host):
    plain = FastMCP("reloads")

    async def reloads(ctx: Context) -> str:
        noted.runs += 1
        return await sampled(ctx, "one")

    plain.tool(troth.requires(troth.SAMPLING)(reloads))
    async with troth_host(troth.install(plain), capabilities=ALL, revision=NEW) as host:
        asked = await begun(host, "reloads")
        plain.local_provider.remove_tool("reloads")
        plain.tool(lambda: "another", name="reloads")
        assert text(await host.request("tools/call", again("reloads", asked))) == "yes"
        assert noted.runs == 1
        assert await refused(host, again("reloads", asked)) == (-32603, mcp_parked.LOST)


async def test_what_a_handler_sends_after_an_answer_goes_to_the_request_that_waits(troth_host):
    plain = FastMCP("tells")

    @plain.tool
    @troth.requires(troth.SAMPLING)
    async def tells(ctx: Context) -> str:
        for moment in ("before", "after"):
            await ctx.info(moment)
            await ctx.report_progress(1, message=moment)
            if moment == "before":
                await sampled(ctx, "one")
        return f"{troth.current().can(troth.ROOTS)} {ctx.session.client_capabilities.roots is not None}"

    def meta(token, level):
        return {"_meta": {"progressToken": token} | ({"io.modelcontextprotocol/logLevel": "info"} if level else {})}

    server = troth.install(plain)
    for first, heard in ((True, ["before"]), (False, ["after"])):
        async with troth_host(server, capabilities=ALL, revision=NEW) as host:
            asked = await host.request("tools/call", {"name": "tells", "arguments": {}, **meta("one", first)})
            host.capabilities = {"sampling": {}} if first else ALL
            result = await host.request("tools/call", {**again("tells", asked), **meta("two", not first)})
            assert text(result) == ("False False" if first else "True True")
            said = [one["params"] for one in host.heard]
            assert [one["data"]["msg"] for one in said if "level" in one] == heard
            progress = [(one["progressToken"], one["message"]) for one in said if "progress" in one]
            assert progress == [("one", "before"), ("two", "after")]


async def test_what_no_host_may_be_asked_is_no_question(troth_host, caplog):
    plain = FastMCP("pings")

    @plain.tool
    @troth.requires(troth.SAMPLING)
    async def pings(ctx: Context) -> str:
        await ctx.session.send_ping()
        return "pong"

    async with troth_host(troth.install(plain), capabilities=ALL, revision=NEW) as host:
        with caplog.at_level(logging.WARNING, "troth"):
            result = await host.call("pings")
        assert (result["isError"], "Cannot send 'ping'" in text(result)) == (True, True)
        assert not [one for one in caplog.records if "mark what asks" in one.getMessage()]


async def test_hosts_of_one_server_outlive_each_other(server, troth_host):
    up, leave, gone = anyio.Event(), anyio.Event(), anyio.Event()

    async def first():
        async with troth_host(server, capabilities=ALL, revision=NEW):
            up.set()
            await leave.wait()
        gone.set()

    async with anyio.create_task_group() as group:
        group.start_soon(first)
        await up.wait()
        async with (
            troth_host(server, capabilities=ALL, revision=NEW) as host,
            troth_host(server, capabilities=ALL, revision=OLD) as old,
        ):
            asked = await begun(host, "once")
            leave.set()
            await gone.wait()
            assert text(await host.request("tools/call", again("once", asked))) == "yes"
            troth.notify_tools_changed(server)
            if old.declared["tools"].get("listChanged"):
                await old.until("notifications/tools/list_changed")


class OutOfOrder(BaseException):
    """What no handler should raise, and some do."""


@pytest.mark.parametrize("raised", [asyncio.CancelledError, OutOfOrder])
async def test_a_handler_that_is_cut_off_from_within_ends_its_own_call_only(raised, troth_host):
    plain = FastMCP("cut")

    @plain.tool
    @troth.requires(troth.SAMPLING)
    async def cut(ctx: Context) -> str:
        await sampled(ctx, "one")
        raise raised

    async with troth_host(troth.install(plain), capabilities=ALL, revision=NEW) as host:
        asked = await begun(host, "cut")
        assert await refused(host, again("cut", asked)) == (-32603, mcp_parked.LOST)
        assert await host.tools() == ["cut"]


async def test_a_task_that_a_handler_leaves_behind_waits_for_no_answer(troth_host):
    plain = FastMCP("leaves")
    found = []
    ended = anyio.Event()

    async def later(ctx):
        for _ in range(2):
            try:
                await sampled(ctx, "one")
            except MCPError as error:
                found.append(error.message)
        ended.set()

    @plain.tool
    @troth.requires(troth.SAMPLING)
    async def leaves(ctx: Context) -> str:
        behind.start_soon(later, ctx)
        return "left"

    server = troth.install(plain)
    async with anyio.create_task_group() as behind, troth_host(server, capabilities=ALL, revision=NEW) as host:
        assert text(await host.call("leaves")) == "left"
        with anyio.fail_after(SECONDS):
            await ended.wait()
        assert found == [mcp_parked.ENDED] * 2


@pytest.mark.parametrize("name", ["fastmcp", "sdk"])
async def test_an_error_after_an_answer_reads_the_same_in_both_eras(name, noted, troth_host):
    server = made(name, noted)
    for revision in (OLD, NEW):
        async with troth_host(server, capabilities=ALL, revision=revision) as host:
            result = await host.call("fails")
            assert result["isError"] is True


async def test_a_question_is_judged_by_what_the_request_that_waits_declares(server, troth_host):
    async with troth_host(server, capabilities=ALL, revision=NEW) as host:
        asked = await begun(host, "twice")
        host.capabilities = {"sampling": {}}
        params = again("twice", asked)
        assert (await refused(host, params))[0] == -32021


async def test_a_host_that_never_comes_again_is_not_waited_for_for_ever(server, noted, troth_host, monkeypatch):
    monkeypatch.setattr(mcp_parked, "PATIENCE", 0.05)
    async with troth_host(server, capabilities=ALL, revision=NEW) as host:
        asked = await begun(host, "stays")
        with anyio.fail_after(SECONDS):
            await noted.cancelled.wait()
        assert await refused(host, again("stays", asked)) == (-32603, mcp_parked.LOST)


async def test_calls_that_wait_are_bounded_and_so_are_their_rounds(server, troth_host, monkeypatch):
    async with troth_host(server, capabilities=ALL, revision=NEW) as host:
        monkeypatch.setattr(mcp_parked, "MOST", 1)
        asked = await begun(host, "endless")
        code, message = await refused(host, {"name": "once", "arguments": {}})
        assert (code, "1 calls wait for their hosts" in message) == (-32603, True)
        monkeypatch.setattr(mcp_parked, "ROUNDS", 2)
        asked = await host.request("tools/call", again("endless", asked))
        code, message = await refused(host, again("endless", asked))
        assert (code, "it asked 2 times" in message) == (-32603, True)


async def test_one_principal_leaves_room_for_others(server, troth_host, monkeypatch):
    principals = iter([("ann",), ("ann",), ("bob",)])
    monkeypatch.setattr(mcp_parked, "principal_of", lambda _: next(principals))
    monkeypatch.setattr(mcp_parked, "MINE", 1)
    async with troth_host(server, capabilities=ALL, revision=NEW) as host:
        await begun(host, "endless")
        code, message = await refused(host, {"name": "once", "arguments": {}})
        assert (code, "1 calls of one principal wait" in message) == (-32603, True)
        await begun(host, "endless")


async def test_what_frameworks_have_for_forms_works_in_both_eras(troth_host):
    plain = FastMCP("forms")

    @plain.tool
    @troth.requires(troth.ELICITATION_FORM)
    async def order(ctx: Context) -> str:
        return str((await ctx.elicit("Size?", str)).data)

    server = troth.install(plain)
    answers = {"elicitation/create": {"action": "accept", "content": {"value": "big"}}}
    for revision in (OLD, NEW):
        async with troth_host(server, capabilities=ALL, revision=revision, answers=answers) as host:
            assert text(await host.call("order")) == "big"


async def test_arguments_that_nest_too_deep_are_refused():
    deep = inner = {}
    for _ in range(5000):
        inner["a"] = inner = {}
    with pytest.raises(MCPError, match="nest too deep"):
        mcp_parked.digest({"arguments": deep})


def test_a_declaration_that_json_cannot_carry_is_read_all_the_same():
    assert read({"sampling": {"\ud800": 1}}, NEW).has("sampling")


async def test_a_call_that_its_host_withdraws_ends(server, noted, mode_modern_client):
    async with mode_modern_client(server) as host, anyio.create_task_group() as group:
        group.start_soon(host.call_tool, "sleeps")
        with anyio.fail_after(SECONDS):
            await noted.begun.wait()
            group.cancel_scope.cancel()
        with anyio.fail_after(SECONDS, shield=True):
            await noted.cancelled.wait()


async def test_the_author_hears_of_a_handler_that_asks_unmarked(server, troth_host, caplog):
    async with troth_host(server, capabilities=ALL, revision=NEW) as host:
        with caplog.at_level(logging.WARNING, "troth"), contextlib.suppress(HostError):
            await host.call("unmarked")
        (said,) = [one.getMessage() for one in caplog.records if "mark what asks" in one.getMessage()]
        assert "asking_servers.py:" in said


@pytest.fixture
def mode_modern_client():
    return lambda server: client(server, "auto", "sampling", "roots", "form")


@pytest.mark.interop
@pytest.mark.parametrize("name", sorted(ASKING))
async def test_a_client_of_the_sdk_answers_over_pipes(name, mode):
    parameters = StdioServerParameters(
        command=sys.executable, args=["-W", "ignore", str(HERE / "asking_servers.py"), name, "stdio"]
    )
    with anyio.fail_after(3 * SECONDS):
        async with client(stdio_client(parameters), mode, "sampling", "roots", "form") as host:
            assert (await host.call_tool("twice", {})).content[0].text == "sampled 1 sampled sampled"
            assert (await host.call_tool("form", {})).content[0].text == "accept big"
            assert (await host.get_prompt("wording")).messages[0].content.text == "sampled"


@pytest.mark.interop
@pytest.mark.parametrize("name", sorted(ASKING))
async def test_a_client_of_the_sdk_answers_over_http(name, mode):
    with anyio.fail_after(3 * SECONDS), served(name, "http", "asking_servers.py") as url:
        async with client(url, mode, "sampling", "roots", "form") as host:
            assert (await host.call_tool("twice", {})).content[0].text == "sampled 1 sampled sampled"
            assert (await host.call_tool("form", {})).content[0].text == "accept big"
