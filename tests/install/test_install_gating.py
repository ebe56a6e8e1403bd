"""What hosts see and may use of a server with Troth: every framework, both eras."""

from __future__ import annotations

import mcp_types as types
import pytest
from fastmcp import Context as FastMCPContext
from fastmcp import FastMCP
from fastmcp.server.middleware import Middleware as FastMCPMiddleware
from install_hosts import client
from installed_servers import on_fastmcp, on_sdk
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError

import troth
from troth import ELICITATION_FORM, ROOTS, SAMPLING, any_of, requires
from troth.gating import META_KEY
from troth.plugins.mcp_host import low_level_of
from troth.plugins.mcp_session import NotMet

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
CODES = {"legacy": -32600, "auto": -32021}


async def names(connected):
    return {tool.name for tool in (await connected.list_tools()).tools}


async def refused(awaitable):
    with pytest.raises(MCPError) as caught:
        await awaitable
    return caught.value


async def test_a_host_without_capabilities_sees_what_needs_none(make, mode):
    async with client(make(), mode) as host:
        seen = await names(host)
        assert "add" in seen
        assert seen.isdisjoint({"summarize", "survey", "in_deep"})
        assert [str(one.uri) for one in (await host.list_resources()).resources] == ["x://open"]
        assert (await host.list_resource_templates()).resource_templates == []
        assert [one.name for one in (await host.list_prompts()).prompts] == ["greet"]


async def test_a_host_with_all_capabilities_sees_all(make, mode):
    async with client(make(), mode, "sampling", "form", "roots") as host:
        assert {"add", "summarize", "survey"} <= await names(host)
        assert len((await host.list_resources()).resources) == 2
        assert len((await host.list_resource_templates()).resource_templates) == 1
        assert len((await host.list_prompts()).prompts) == 2


async def test_combined_capabilities_are_all_needed(make, mode):
    async with client(make(), mode, "sampling") as host:
        seen = await names(host)
        assert "summarize" in seen
        assert "survey" not in seen


async def test_what_is_mounted_is_gated_under_its_new_name(mode):
    async with client(on_fastmcp(), mode) as host:
        assert "in_deep" not in await names(host)
        assert (await refused(host.call_tool("in_deep"))).code == CODES[mode]
    async with client(on_fastmcp(), mode, "sampling") as host:
        assert "in_deep" in await names(host)
        assert (await host.call_tool("in_deep")).content[0].text == "deep"


async def test_a_hidden_tool_is_refused_with_what_is_missing(make, mode):
    async with client(make(), mode) as host:
        error = await refused(host.call_tool("summarize"))
        assert error.code == CODES[mode]
        assert error.message == "Client missing capabilities to call 'summarize': sampling"
        assert error.data == {"requiredCapabilities": {"sampling": {}}}


async def test_only_what_is_missing_is_asked_for_and_the_author_s_words_are_used(make, mode):
    async with client(make(), mode, "sampling") as host:
        error = await refused(host.call_tool("survey"))
        assert error.message == "both, please"
        assert error.data == {"requiredCapabilities": {"elicitation": {"form": {}}}}


async def test_a_hidden_prompt_is_refused_also_for_completion(make, mode):
    async with client(make(), mode) as host:
        error = await refused(host.get_prompt("hidden"))
        assert error.message == "Client missing capabilities to get prompt 'hidden': sampling"
        ref = types.PromptReference(type="ref/prompt", name="hidden")
        assert (await refused(host.complete(ref, {"name": "who", "value": ""}))).message == error.message
        greeting = types.PromptReference(type="ref/prompt", name="greet")
        assert (await host.complete(greeting, {"name": "who", "value": ""})).completion.values == ["me"]


async def test_hidden_resources_and_templates_are_refused_also_for_completion(make, mode):
    async with client(make(), mode) as host:
        closed = await refused(host.read_resource("x://closed"))
        assert closed.message == "Client missing capabilities to read 'x://closed': roots"
        assert (await refused(host.read_resource("x://of/a"))).message == (
            "Client missing capabilities to read 'x://of/a': roots"
        )
        ref = types.ResourceTemplateReference(type="ref/resource", uri="x://of/{name}")
        assert (await refused(host.complete(ref, {"name": "name", "value": ""}))).code == CODES[mode]
        assert (await host.read_resource("x://open")).contents
    async with client(make(), mode, "roots") as host:
        assert (await host.read_resource("x://of/a")).contents


async def test_a_hidden_resource_cannot_be_subscribed_to(make):
    async with client(make(), "legacy") as host:
        assert (await refused(host.subscribe_resource("x://closed"))).code == -32600
        assert (await refused(host.subscribe_resource("x://nowhere"))).code == -32002
        await host.subscribe_resource("x://open")
    async with (
        client(make(), "auto") as host,
        host.listen(resource_subscriptions=["x://open", "x://closed", "x://nowhere"]) as listened,
    ):
        assert listened.honored.resource_subscriptions == ["x://open"]


async def test_hosts_of_one_server_do_not_see_each_other_s_tools(make, mode):
    server = make()
    async with client(server, mode) as poor, client(server, mode, "sampling") as rich:
        for _ in range(2):
            assert "summarize" not in await names(poor)
            assert "summarize" in await names(rich)
            assert (await refused(poor.call_tool("summarize"))).code == CODES[mode]
            assert (await rich.call_tool("summarize")).is_error is False


async def test_a_host_that_comes_back_with_less_sees_less(make, mode):
    server = make()
    seen = []
    for declared in ((), ("sampling",), ()):
        async with client(server, mode, *declared) as host:
            seen.append("summarize" in await names(host))
    assert seen == [False, True, False]


async def test_needs_stand_in_meta_for_gateways_and_can_be_left_out(make):
    async with client(make(), "auto", "sampling") as host:
        found = {tool.name: tool.meta or {} for tool in (await host.list_tools()).tools}
        assert found["summarize"][META_KEY] == {"capabilities": ["sampling"]}
        assert META_KEY not in found["add"]
    async with client(make(meta=False), "auto", "sampling") as host:
        assert all(META_KEY not in (tool.meta or {}) for tool in (await host.list_tools()).tools)
        assert "summarize" in await names(host)


async def test_lists_that_depend_on_the_asker_are_private(make):
    async with client(make(), "auto") as host:
        assert (await host.list_tools()).cache_scope == "private"


async def test_lists_that_do_not_depend_on_the_asker_keep_their_scope():
    from mcp.server.caching import CacheHint

    server = MCPServer("open", cache_hints={"tools/list": CacheHint(ttl_ms=1000, scope="public")})
    server.add_tool(lambda: "a", name="free")
    troth.install(server)
    async with client(server, "auto") as host:
        assert (await host.list_tools()).cache_scope == "public"
    server.add_tool(requires(SAMPLING)(lambda: "a"), name="bound")
    async with client(server, "auto") as host:
        assert (await host.list_tools()).cache_scope == "private"


async def test_every_page_keeps_its_cursor_even_if_all_of_it_is_hidden(mode):
    hidden = {META_KEY: {"capabilities": ["sampling"]}}
    pages = {None: ("a", hidden, "1"), "1": ("b", None, "2"), "2": ("c", hidden, None)}

    async def list_tools(ctx, params):
        name, meta, cursor = pages[params.cursor if params else None]
        tool = types.Tool(name=name, input_schema={"type": "object"}, _meta=meta)
        return types.ListToolsResult(tools=[tool], next_cursor=cursor)

    async def call_tool(ctx, params):
        return types.CallToolResult(content=[])

    server = troth.install(Server("pages", on_list_tools=list_tools, on_call_tool=call_tool))
    async with client(server, mode) as host:
        seen, cursor = [], None
        for _ in pages:
            page = await host.list_tools(cursor=cursor)
            seen.append(([tool.name for tool in page.tools], page.next_cursor))
            cursor = page.next_cursor
        assert seen == [([], "1"), (["b"], "2"), ([], None)]
        assert (await refused(host.call_tool("c"))).code == CODES[mode]


async def test_a_call_is_judged_although_nobody_listed(make, mode):
    async with client(make(), mode) as host:
        assert (await refused(host.call_tool("summarize"))).code == CODES[mode]


async def test_needs_come_from_mappings_callbacks_files_and_the_environment(make, mode, tmp_path, monkeypatch):
    file = tmp_path / "troth.toml"
    file.write_text('[gating.tools]\nlog = "roots"\n', "utf-8")
    monkeypatch.setenv("TROTH_GATING_TOOLS", '{"touch": "roots"}')
    server = make(
        requirements={"add": ROOTS},
        need=lambda primitive: ROOTS if primitive.name == "grow" else None,
        config=file,
    )
    async with client(server, mode) as host:
        assert (await names(host)).isdisjoint({"add", "grow", "log", "touch"})
        for name in ("add", "grow", "log", "touch"):
            assert (await refused(host.call_tool(name))).code == CODES[mode]
    async with client(server, mode, "roots") as host:
        assert {"add", "grow", "log", "touch"} <= await names(host)


async def test_the_file_of_the_configuration_may_stand_in_the_environment(tmp_path, monkeypatch):
    file = tmp_path / "troth.toml"
    file.write_text("[gating]\nallow_when_not_declared = true\n[gating.tools]\nadd = 'roots'\n", "utf-8")
    monkeypatch.setenv("TROTH_CONFIG", str(file))
    async with client(on_sdk(), "auto") as host:
        assert "add" not in await names(host)


@pytest.mark.parametrize(
    ("text", "words"),
    [("[", "is not TOML"), ("gating = 1", "a table belongs here"), (None, "there is no file /.*troth.toml; create it")],
)
def test_a_configuration_that_is_wrong_says_where(tmp_path, text, words):
    file = tmp_path / "troth.toml"
    if text is not None:
        file.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=words):
        troth.install(MCPServer("x"), config=file)


def test_a_missing_file_that_the_environment_names_is_called_so(tmp_path, monkeypatch):
    monkeypatch.setenv("TROTH_CONFIG", str(tmp_path / "gone.toml"))
    with pytest.raises(ValueError, match=r"variable TROTH_CONFIG: there is no file .*gone\.toml"):
        troth.install(MCPServer("x"))
    monkeypatch.setenv("TROTH_CONFIG", str(tmp_path))
    with pytest.raises(ValueError, match="cannot be read: Is a directory"):
        troth.install(MCPServer("x"))


async def test_a_mark_that_cannot_be_read_fails_closed(mode):
    async def list_tools(ctx, params):
        tool = types.Tool(name="a", input_schema={"type": "object"}, _meta={META_KEY: "sampling"})
        return types.ListToolsResult(tools=[tool])

    async def call_tool(ctx, params):
        return types.CallToolResult(content=[])

    server = troth.install(Server("odd", on_list_tools=list_tools, on_call_tool=call_tool))
    async with client(server, mode, "sampling", "form", "roots") as host:
        assert await names(host) == set()
        assert (await refused(host.call_tool("a"))).code == CODES[mode]


async def test_names_that_nothing_has_are_said_once(make, mode, caplog):
    needs = {"sumarize": SAMPLING, "summarize": SAMPLING, "x://open": SAMPLING, "greet": SAMPLING, "zzz": SAMPLING}
    server = make(requirements=needs, tasks={"add", "lgo"})
    assert not caplog.records
    async with client(server, mode, "sampling") as host:
        await names(host)
        await names(host)
        await host.list_prompts()
    said = [one.getMessage() for one in caplog.records if one.name == "troth.plugins.naming"]
    assert said == [
        "a requirement names 'sumarize', and there is no tool, prompt, resource or resource template of that name; "
        "did you mean 'summarize'?",
        "a requirement names 'zzz', and there is no tool, prompt, resource or resource template of that name; "
        "it has no effect until there is one",
        "tasks= names 'lgo', and there is no tool of that name; did you mean 'log'?",
    ]


async def test_a_name_of_the_configuration_counts_for_its_kind_alone(monkeypatch, caplog):
    monkeypatch.setenv("TROTH_GATING_PROMPTS", '{"add": "sampling"}')
    async with client(on_sdk(), "auto") as host:
        await names(host)
    (said,) = [one.getMessage() for one in caplog.records if one.name == "troth.plugins.naming"]
    assert said.startswith("a requirement names 'add', and there is no prompt of that name")


async def test_any_one_of_alternatives_is_enough(mode):
    server = MCPServer("any")

    @server.tool()
    @requires(any_of(ROOTS, ELICITATION_FORM))
    async def either() -> str:
        return "ok"

    troth.install(server)
    async with client(server, mode, "form") as host:
        assert (await host.call_tool("either")).content[0].text == "ok"
    async with client(server, mode) as host:
        assert (await refused(host.call_tool("either"))).message.endswith("roots or elicitation.form")


async def test_a_tool_that_is_replaced_is_judged_by_its_new_need(mode):
    server = MCPServer("change")
    server.add_tool(requires(SAMPLING)(lambda: "a"), name="one")
    troth.install(server)
    async with client(server, mode) as host:
        assert await names(host) == set()
        server.remove_tool("one")
        server.add_tool(lambda: "a", name="one")
        async with client(server, mode) as again:
            assert await names(again) == {"one"}


async def test_the_current_host_is_known_in_handlers(make, mode):
    async with client(make(), mode, "sampling") as host:
        seen = (await host.call_tool("seen")).structured_content
        assert seen == {
            "can": True,
            "revision": "2025-11-25" if mode == "legacy" else "2026-07-28",
            "era": "legacy" if mode == "legacy" else "modern",
        }
    with pytest.raises(LookupError):
        troth.current()


async def test_a_question_that_the_host_did_not_declare_never_leaves(make, mode):
    async with client(make(), mode) as host:
        error = await refused(host.call_tool("sneak"))
        assert error.code == CODES[mode]
        assert error.message == "Client missing capabilities to answer 'sampling/createMessage': sampling"
        assert error.data == {"requiredCapabilities": {"sampling": {}}}


async def test_a_question_that_the_host_declared_is_asked(make):
    async with client(make(), "legacy", "sampling") as host:
        assert (await host.call_tool("sneak")).content[0].text == "sampled"


async def test_the_refusal_of_a_question_names_the_line_of_the_author_and_only_to_the_author(mode, caplog):
    server = MCPServer("line")
    caught = []

    @server.tool()
    async def careful(ctx: Context) -> str:
        try:
            await ctx.session.list_roots()
        except troth.CapabilityNotMet as error:
            caught.append(error)
        return "went on"

    troth.install(server)
    with caplog.at_level("INFO", "troth.gating"):
        async with client(server, mode) as host:
            assert (await host.call_tool("careful")).content[0].text == "went on"
    (error,) = caught
    assert isinstance(error, NotMet)
    assert error.missing == ("roots",)
    assert error.where.startswith(__file__)
    assert error.__notes__ == [f"asked at {error.where}"]
    assert __file__ not in str(error)
    assert any(getattr(record, "troth_place", "") == error.where for record in caplog.records)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"requirements": {"a": "sampling"}}, "requirements: a: a string where a requirement belongs"),
        ({"requirements": ["a"]}, "requirements: an array where a mapping of names belongs"),
        ({"need": SAMPLING}, "need: a Requirement where a function belongs"),
        ({"announces": "tools"}, "announces: a collection of families"),
        ({"announces": ["tolls"]}, "announces: there is no family 'tolls'"),
        ({"capabilities": [1]}, "capabilities: an array where a mapping belongs"),
        ({"capabilities": {"tolls": True}}, "no capability is called 'tolls'"),
        ({"tasks": [3]}, "tasks: a collection of names"),
        ({"meta": "no"}, "meta: a string where True or False belongs"),
        ({"allow_when_not_declared": "no"}, "allow_when_not_declared: a string where True or False belongs"),
    ],
)
def test_a_wrong_argument_is_refused_by_install_and_leaves_the_server_as_it_was(wrong, words):
    server = MCPServer("x")
    before = vars(server._lowlevel_server)["lifespan"], list(server._lowlevel_server.middleware)
    with pytest.raises((TypeError, ValueError), match=words):
        troth.install(server, **wrong)
    assert (vars(server._lowlevel_server)["lifespan"], list(server._lowlevel_server.middleware)) == before
    assert troth.install(server) is server


@pytest.mark.parametrize("make_one", [MCPServer, FastMCP])
def test_the_low_level_server_inside_one_with_troth_has_it_already(make_one):
    server = troth.install(make_one("x"))
    with pytest.raises(ValueError, match="already"):
        troth.install(low_level_of(server))


@pytest.mark.parametrize("make_one", [MCPServer, FastMCP])
async def test_what_is_registered_while_a_list_is_made_breaks_no_list(make_one, mode):
    server = make_one("x")

    def need(primitive):
        # As another thread might, in the middle of going through what is registered.
        if primitive.name in {"a", "b"}:
            server.tool(name=f"late_{primitive.name}")(lambda: "")
        return SAMPLING

    for name in ("a", "b"):
        server.tool(name=name)(lambda: "")
    troth.install(server, need=need)
    async with client(server, mode, "sampling") as host:
        assert {"a", "b"} <= await names(host)
        assert {"a", "b", "late_a", "late_b"} <= await names(host)


async def test_fastmcp_is_not_asked_for_each_entry_of_a_list(mode, monkeypatch):
    server = troth.install(FastMCP("x"), requirements={f"tool_{number}": SAMPLING for number in range(0, 20, 2)})
    for number in range(20):
        server.tool(name=f"tool_{number}")(lambda: "")
    asked = []
    get_tool = server.get_tool

    async def counted(name, *args, **kwargs):
        asked.append(name)
        return await get_tool(name, *args, **kwargs)

    monkeypatch.setattr(server, "get_tool", counted)
    async with client(server, mode, "roots") as host:
        assert await names(host) == {f"tool_{number}" for number in range(1, 20, 2)}
    assert asked == []


@pytest.mark.parametrize("above", [True, False])
async def test_what_takes_the_context_of_its_framework_is_gated_too(mode, above):
    def marked(decorator, body):
        return requires(SAMPLING)(decorator(body)) if above else decorator(requires(SAMPLING)(body))

    def prompt(context: Context) -> str:
        return "x"

    async def page(context: Context) -> str:
        return "x"

    def part(name: str, context: Context) -> str:
        return "x"

    plain = FastMCP("contexts")
    for body in (prompt, page, part):
        body.__annotations__["context"] = FastMCPContext
    marked(plain.prompt, prompt)
    marked(plain.resource("x://page"), page)
    marked(plain.resource("x://part/{name}"), part)
    async with client(troth.install(plain), mode) as host:
        assert (await host.list_prompts()).prompts == []
        assert (await host.list_resources()).resources == []
        assert (await host.list_resource_templates()).resource_templates == []
        for request in (host.get_prompt("prompt"), host.read_resource("x://page"), host.read_resource("x://part/a")):
            assert (await refused(request)).code == CODES[mode]
    async with client(plain, mode, "sampling") as host:
        assert [one.name for one in (await host.list_prompts()).prompts] == ["prompt"]


async def test_what_goes_while_it_is_listed_is_not_shown_to_whom_it_was_hidden_from(mode):
    class Removes(FastMCPMiddleware):
        async def on_list_tools(self, context, call_next):
            listed = await call_next(context)
            plain.local_provider.remove_tool("goes")
            return listed

    plain = FastMCP("goes", middleware=[Removes()])
    plain.tool(requires(SAMPLING)(lambda: "x"), name="goes")
    plain.tool(requires(SAMPLING)(lambda: "x"), name="stays")
    plain.tool(lambda: "x", name="open")
    async with client(troth.install(plain), mode) as host:
        assert await names(host) == {"open"}
