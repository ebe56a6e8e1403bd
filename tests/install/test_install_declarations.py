"""What a server with Troth declares, refuses, announces and sends: every framework, both eras."""

from __future__ import annotations

import threading

import anyio
import anyio.lowlevel
import mcp_types as types
import pytest
from install_hosts import client, low_level
from installed_servers import on_low_level, on_sdk
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError, UrlElicitationRequiredError

import troth
from troth import ELICITATION_FORM, build

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
SECONDS = 30


async def refused(awaitable):
    with pytest.raises(MCPError) as caught:
        await awaitable
    return caught.value


async def until(condition):
    """Waits, for a bounded time, until something holds."""
    with anyio.fail_after(SECONDS):
        while not condition():
            await anyio.lowlevel.checkpoint()


def sent(model):
    return model.model_dump(by_alias=True, exclude_none=True, mode="json")


async def test_all_that_is_served_is_declared_and_nothing_else(make, mode):
    async with client(make(), mode) as host:
        declared = sent(host.server_capabilities)
    announced = {"listChanged": True}
    families = {
        "completions": {},
        "logging": {},
        "prompts": announced,
        "resources": {"subscribe": True, **announced},
        "tools": announced,
    }
    if make is on_low_level:
        families |= {"prompts": {}, "resources": {"subscribe": True}}
    assert declared == families


async def test_an_empty_server_declares_nothing(mode):
    async with client(troth.install(MCPServer("empty")), mode) as host:
        assert sent(host.server_capabilities) == {}


@pytest.mark.parametrize("method", ["list_tools", "list_prompts", "list_resources", "list_resource_templates"])
async def test_what_is_not_declared_is_refused_by_name(mode, method):
    async with client(troth.install(MCPServer("empty")), mode) as host:
        error = await refused(getattr(host, method)())
        wire, _, family = {
            "list_tools": "tools/list tools",
            "list_prompts": "prompts/list prompts",
            "list_resources": "resources/list resources",
            "list_resource_templates": "resources/templates/list resources",
        }[method].partition(" ")
        assert (error.code, error.data) == (-32601, {"capability": family})
        assert error.message == f"Method not found: {wire} ({family} not supported)"


async def test_what_nobody_knows_is_refused_in_other_words(make, mode):
    class Odd(types.Request):
        method: str = "odd/thing"
        params: types.RequestParams | None = None

    async with client(make(), mode) as host:
        error = await refused(host.session.send_request(Odd(method="odd/thing"), types.EmptyResult))
        assert (error.code, error.message) == (-32601, "Unknown method: odd/thing")


async def test_a_method_of_an_extension_is_still_served():
    async def answer(ctx, params):
        return {"fine": True}

    server = Server("own")
    server.add_request_handler("com.example/own", types.RequestParams, answer)
    troth.install(server)

    class Own(types.Request):
        method: str = "com.example/own"
        params: types.RequestParams | None = None

    class Fine(types.Result):
        fine: bool

    async with client(server, "legacy") as host:
        assert (await host.session.send_request(Own(method="com.example/own"), Fine)).fine is True


async def test_the_author_s_own_set_takes_away(mode):
    async with client(on_sdk(capabilities={"tools": {}}), mode) as host:
        assert sent(host.server_capabilities) == {"tools": {}}
        assert (await refused(host.list_prompts())).code == -32601


async def test_a_new_tool_is_announced_on_a_legacy_session(make):
    heard = []
    async with client(make(), "legacy", heard=heard) as host:
        await host.call_tool("grow")
        await until(lambda: any(one.method == "notifications/tools/list_changed" for one in heard))
        assert "fresh" in {tool.name for tool in (await host.list_tools()).tools}


async def test_a_new_tool_is_announced_to_listeners(make):
    async with client(make(), "auto") as host, host.listen(tools_list_changed=True) as listened:
        assert listened.honored.tools_list_changed is True
        await host.call_tool("grow")
        with anyio.fail_after(SECONDS):
            event = await anext(aiter(listened))
        assert type(event).__name__ == "ToolsListChanged"


async def test_a_change_from_another_thread_is_announced():
    server, heard = on_sdk(), []
    async with client(server, "legacy", heard=heard):
        thread = threading.Thread(target=server.add_tool, args=(lambda: "a",), kwargs={"name": "late"})
        thread.start()
        await until(lambda: any(one.method == "notifications/tools/list_changed" for one in heard))
        thread.join(SECONDS)


async def test_a_change_by_hand_reaches_every_host_of_the_server_and_no_other():
    one, other, heard, elsewhere = on_sdk(), on_sdk(), [], []
    async with (
        client(one, "legacy", heard=heard),
        client(other, "legacy", heard=elsewhere) as there,
    ):
        troth.notify_prompts_changed(one)
        troth.notify_resources_changed(one)
        await until(lambda: len(heard) == 2)
        await there.list_tools()
        assert {message.method for message in heard} == {
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed",
        }
        assert elsewhere == []
        troth.notify_tools_changed()
        await until(lambda: len(heard) == 3 and len(elsewhere) == 1)


def test_a_change_of_a_server_without_troth_is_an_error():
    with pytest.raises(ValueError, match="not installed"):
        troth.notify_tools_changed(MCPServer("plain"))


async def test_updates_reach_subscribers_only(make):
    heard = []
    async with client(make(), "legacy", "roots", heard=heard) as host:
        await host.call_tool("touch")
        await host.subscribe_resource("x://open")
        await host.call_tool("touch", {"uri": "x://closed"})
        await host.call_tool("touch")
        await until(lambda: len(heard) == 1)
        await host.unsubscribe_resource("x://open")
        await host.call_tool("touch")
        await host.subscribe_resource("x://closed")
        await host.call_tool("touch", {"uri": "x://closed"})
        await until(lambda: len(heard) == 2)
        assert [str(one.params.uri) for one in heard] == ["x://open", "x://closed"]


async def test_updates_reach_listeners_of_the_resource_only(make):
    async with client(make(), "auto") as host, host.listen(resource_subscriptions=["x://open"]) as listened:
        await host.call_tool("touch", {"uri": "x://other"})
        await host.call_tool("touch")
        with anyio.fail_after(SECONDS):
            event = await anext(aiter(listened))
        assert event.uri == "x://open"


async def test_a_listener_is_promised_no_more_than_is_declared():
    async with (
        client(on_sdk(capabilities={"tools": {}, "resources": {}}), "auto") as host,
        host.listen(tools_list_changed=True, resource_subscriptions=["x://open"]) as listened,
    ):
        assert sent(listened.honored) in ({}, {"resourceSubscriptions": []})


async def test_log_messages_are_declared_and_filtered_by_the_level_that_was_set(make):
    said = []

    async def log(params):
        said.append(params.level)

    async with client(make(), "legacy", logging_callback=log) as host:
        await host.call_tool("log", {"level": "debug"})
        await until(lambda: said == ["debug"])
        await host.set_logging_level("error")
        await host.call_tool("log", {"level": "info"})
        await host.call_tool("log", {"level": "critical"})
        await until(lambda: said[1:] == ["critical"])


async def test_log_messages_are_not_sent_where_logging_is_not_declared():
    said = []

    async def log(params):
        said.append(params.level)

    async with client(on_sdk(capabilities={"tools": {}}), "legacy", logging_callback=log) as host:
        assert (await host.call_tool("log")).content[0].text == "logged"
        assert (await refused(host.set_logging_level("error"))).data == {"capability": "logging"}
        assert said == []


async def test_a_list_change_that_was_not_promised_is_not_sent():
    heard = []
    server = MCPServer("quiet")

    @server.tool()
    async def say(ctx: Context) -> str:
        await ctx.session.send_tool_list_changed()
        return "said"

    troth.install(server, capabilities={"tools": {}})
    async with client(server, "legacy", heard=heard) as host:
        await host.call_tool("say")
        await host.call_tool("say")
        assert heard == []


async def test_a_list_change_that_the_author_sends_reaches_listeners_too():
    server = MCPServer("loud")

    @server.tool()
    async def say(ctx: Context) -> str:
        await ctx.session.send_tool_list_changed()
        return "said"

    troth.install(server)
    async with client(server, "auto") as host, host.listen(tools_list_changed=True) as listened:
        await host.call_tool("say")
        with anyio.fail_after(SECONDS):
            assert type(await anext(aiter(listened))).__name__ == "ToolsListChanged"


async def test_what_the_author_of_a_low_level_server_says_of_changes_is_believed():
    server = on_low_level(install=False)
    usual = server.create_initialization_options

    def options(*given, **more):
        return usual(NotificationOptions(prompts_changed=True), {"com.example/x": {}})

    server.create_initialization_options = options
    troth.install(server)
    async with client(server, "legacy") as host:
        declared = sent(host.server_capabilities)
        assert declared["prompts"] == {"listChanged": True}
        assert declared["tools"] == {}
        assert declared["experimental"] == {"com.example/x": {}}


async def test_a_session_that_declares_itself_anew_is_told_of_lists_that_look_different():
    server, heard = on_sdk(), []

    class Again(types.Request):
        method: str = "initialize"
        params: types.InitializeRequestParams

    async with client(server, "legacy", heard=heard) as host:
        params = types.InitializeRequestParams(
            protocol_version="2025-11-25",
            capabilities=types.ClientCapabilities(sampling=types.SamplingCapability()),
            client_info=types.Implementation(name="same", version="1"),
        )
        await host.session.send_request(Again(method="initialize", params=params), types.InitializeResult)
        await until(lambda: len(heard) == 2)
        assert {one.method for one in heard} == {
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
        }
        assert "summarize" in {tool.name for tool in (await host.list_tools()).tools}


async def test_questions_in_a_result_are_judged_like_questions_on_the_wire():
    server = MCPServer("rounds")

    @server.tool()
    async def ask() -> types.InputRequiredResult:
        form = types.ElicitRequestFormParams(message="?", requested_schema={"type": "object", "properties": {}})
        return types.InputRequiredResult(input_requests={"a": types.ElicitRequest(params=form)})

    troth.install(server)
    async with client(server, "auto") as host:
        error = await refused(host.call_tool("ask"))
        assert error.code == -32021
        assert error.data == {"requiredCapabilities": {"elicitation": {"form": {}}}}


@pytest.mark.parametrize("declared", [(), ("form",)])
async def test_a_page_is_not_asked_for_where_none_can_be_shown(declared):
    server = MCPServer("pages")

    @server.tool()
    async def page() -> str:
        params = types.ElicitRequestURLParams(message="?", url="https://example.com", elicitation_id="1")
        raise UrlElicitationRequiredError([params])

    troth.install(server)
    async with client(server, "legacy") as host:
        error = await refused(host.call_tool("page"))
        assert (error.code, error.data) == (-32600, {"requiredCapabilities": {"elicitation": {"url": {}}}})


async def test_a_code_of_the_other_era_is_mended():
    server = MCPServer("codes")

    @server.tool()
    async def strict() -> str:
        raise MCPError(-32021, "needs", {"requiredCapabilities": {}})

    troth.install(server)
    async with client(server, "legacy") as host:
        assert (await refused(host.call_tool("strict"))).code == -32600
    async with client(server, "auto") as host:
        assert (await refused(host.call_tool("strict"))).code == -32021


async def test_a_resource_that_is_not_there_has_the_code_of_the_revision(make):
    if make is on_low_level:
        pytest.skip("reads whatever it is asked for")
    async with client(make(), "legacy") as host:
        assert (await refused(host.read_resource("x://nowhere"))).code == -32002
    async with client(make(), "auto") as host:
        assert (await refused(host.read_resource("x://nowhere"))).code == -32602


def test_it_is_installed_once():
    server = on_sdk()
    with pytest.raises(ValueError, match="already"):
        troth.install(server)


@pytest.mark.parametrize("wrong", [object(), {}, None, "server"])
def test_what_is_no_server_is_refused(wrong):
    with pytest.raises(TypeError, match=r"troth\.install takes"):
        troth.install(wrong)


async def test_as_middleware_of_fastmcp_it_is_the_same(mode):
    from fastmcp import FastMCP

    made = [FastMCP("m", middleware=[troth.Troth(requirements={"bound": ELICITATION_FORM})])]
    later = FastMCP("m")
    later.add_middleware(troth.Troth(requirements={"bound": ELICITATION_FORM}))
    for server in (*made, later):

        @server.tool
        def bound() -> str:
            return "b"

        @server.tool
        def free() -> str:
            return "f"

        async with client(server, mode) as host:
            assert [tool.name for tool in (await host.list_tools()).tools] == ["free"]
            assert sent(host.server_capabilities) == {"logging": {}, "tools": {"listChanged": True}}
    assert build(later).capabilities["tools"] == {}


async def test_a_provider_that_fetches_from_elsewhere_promises_no_changes(mode):
    from fastmcp import FastMCP
    from fastmcp.server import create_proxy

    far = FastMCP("far")

    @far.tool(meta={"io.troth/requires": {"capabilities": ["roots"]}})
    def bound() -> str:
        return "b"

    @far.tool
    def free() -> str:
        return "f"

    server = FastMCP("near")
    server.mount(create_proxy(far), namespace="far")
    troth.install(server)
    async with client(server, mode) as host:
        assert sent(host.server_capabilities)["tools"] == {}
        assert [tool.name for tool in (await host.list_tools()).tools] == ["far_free"]
        assert "roots" in (await refused(host.call_tool("far_bound"))).message


async def test_mounting_announces_and_is_gated():
    from fastmcp import FastMCP

    server, inner, heard = FastMCP("outer"), FastMCP("inner"), []

    @server.tool
    def free() -> str:
        return "f"

    @inner.tool
    @troth.requires(troth.ROOTS)
    def bound() -> str:
        return "b"

    troth.install(server)
    async with client(server, "legacy", heard=heard) as host:
        assert [tool.name for tool in (await host.list_tools()).tools] == ["free"]
        server.mount(inner, namespace="in")
        await until(lambda: any(one.method == "notifications/tools/list_changed" for one in heard))
        assert (await refused(host.call_tool("in_bound"))).message.endswith("'in_bound': roots")

        @inner.tool
        def more() -> str:
            return "m"

        assert [tool.name for tool in (await host.list_tools()).tools] == ["free", "in_more"]
    assert low_level(server).middleware
