from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
from fastmcp import Client as FastClient
from fastmcp import FastMCP
from fastmcp.server import create_proxy
from fastmcp.server.extensions import ServerExtension
from mcp.server.apps import Apps
from mcp.server.mcpserver import MCPServer
from plugin_servers import _call, _empty, _read, _resources, _tools, fast, low, low_full, sdk

from troth import Facts, build
from troth.capabilities.facts import listen_kinds
from troth.plugins import fastmcp as fastmcp_plugin
from troth.plugins import mcp_sdk

ALL_KINDS = frozenset(listen_kinds().values())
UI = "io.modelcontextprotocol/ui"
NOTHING = Facts(push=True)


def test_an_mcp_server_has_what_is_registered_on_it():
    assert mcp_sdk.facts(sdk()) == Facts(
        tools=True, prompts=True, resources=True, completions=True, log_messages=True, push=True, listen=ALL_KINDS
    )


def test_an_empty_mcp_server_serves_no_family():
    assert mcp_sdk.facts(MCPServer("empty")) == replace(NOTHING, listen=ALL_KINDS)
    assert build(MCPServer("empty"), era="modern").capabilities == {}


def test_a_template_makes_resources_and_subscriptions_can_be_off():
    server = MCPServer("templates", subscriptions=False)

    @server.resource("note://{name}")
    def note(name: str) -> str:
        return name

    assert mcp_sdk.facts(server) == replace(NOTHING, resources=True, log_messages=True)
    assert build(server, era="modern").capabilities == {"resources": {}, "logging": {}}


def test_a_list_that_is_fetched_from_elsewhere_counts_as_served():
    class Far(MCPServer):
        async def list_tools(self):
            import asyncio

            await asyncio.sleep(0)
            return []

    assert mcp_sdk.facts(Far("far")).tools


def test_extensions_of_an_mcp_server_are_those_that_it_was_given():
    apps = Apps()
    apps.add_html_resource("ui://a/b.html", "<p>")
    built = build(MCPServer("apps", extensions=[apps]), era="modern")
    assert built.capabilities["extensions"] == {UI: apps.settings()}
    assert not build(MCPServer("apps", extensions=[apps]), era="legacy").has("extensions")


@pytest.mark.parametrize(
    ("handlers", "facts"),
    [
        ({}, NOTHING),
        ({"on_list_tools": _tools}, NOTHING),
        ({"on_call_tool": _call}, NOTHING),
        ({"on_list_tools": _tools, "on_call_tool": _call}, replace(NOTHING, tools=True, log_messages=True)),
        (
            {"on_list_resources": _resources, "on_read_resource": _read},
            replace(NOTHING, resources=True, log_messages=True),
        ),
        ({"on_subscribe_resource": _empty}, NOTHING),
        ({"on_completion": _empty}, replace(NOTHING, completions=True)),
        ({"on_set_logging_level": _empty}, replace(NOTHING, log_level=True)),
        ({"on_list_prompts": _empty, "on_get_prompt": _empty}, replace(NOTHING, prompts=True, log_messages=True)),
    ],
)
def test_a_low_level_server_has_what_its_handlers_serve(handlers, facts):
    assert mcp_sdk.facts(low(**handlers)) == facts


def test_a_low_level_server_with_everything():
    assert build(low_full()).capabilities == {
        "logging": {},
        "resources": {"subscribe": True},
        "tools": {},
    }
    assert build(low_full(), push=False).capabilities["resources"] == {}
    assert build(low_full(), era="modern").capabilities == {
        "logging": {},
        "resources": {"subscribe": True, "listChanged": True},
        "tools": {"listChanged": True},
    }


def test_changes_that_the_author_announces_are_added_to_the_facts():
    facts = replace(mcp_sdk.facts(sdk()), announces={"tools"})
    assert build(facts).capabilities["tools"] == {"listChanged": True}
    assert build(sdk()).capabilities["tools"] == {}


def test_a_fastmcp_server_has_what_is_registered_on_it():
    assert fastmcp_plugin.facts(fast()) == Facts(
        tools=True, prompts=True, resources=True, completions=True, log_messages=True, log_level=True, push=True
    )


def test_an_empty_fastmcp_server_serves_no_family_and_no_user_interface():
    server = FastMCP("empty", experimental_capabilities={"ours": {"a": 1}})
    assert fastmcp_plugin.facts(server) == replace(NOTHING, log_level=True, experimental={"ours": {"a": 1}})
    assert build(server, era="modern").capabilities == {"experimental": {"ours": {"a": 1}}}


def test_what_is_mounted_counts_also_under_a_name():
    for namespace in (None, "sub"):
        outer = FastMCP("outer")
        outer.mount(fast(), namespace)
        facts = fastmcp_plugin.facts(outer)
        assert (facts.tools, facts.prompts, facts.resources, facts.completions) == (True, True, True, False)
        assert fastmcp_plugin.facts(FastMCP("mounts nothing")).tools is False


def test_what_a_proxy_supplies_cannot_be_seen_and_counts():
    facts = fastmcp_plugin.facts(create_proxy(FastClient("http://127.0.0.1:9/mcp")))
    assert (facts.tools, facts.prompts, facts.resources) == (True, True, True)


def test_a_user_interface_is_declared_where_there_is_one():
    by_resource, by_tool = FastMCP("resource"), FastMCP("tool")

    @by_resource.resource("ui://a/b.html")
    def page() -> str:
        return "<p>"

    @by_tool.tool(meta={"ui": {"resourceUri": "ui://elsewhere"}})
    def show() -> int:
        return 1

    for server in (by_resource, by_tool):
        assert fastmcp_plugin.facts(server).extensions == {UI: {}}


def test_an_extension_of_a_fastmcp_server_is_declared_with_its_settings():
    class Own(ServerExtension):
        identifier = "com.example/own"

        def settings(self):
            return {"a": 1}

    server = FastMCP("extended")
    server.add_extension(Own())
    assert build(server, era="modern").capabilities == {"extensions": {"com.example/own": {"a": 1}}}
    assert build(server, era="legacy").capabilities == {}


@pytest.mark.parametrize("plugin", [mcp_sdk, fastmcp_plugin])
def test_what_is_no_server_of_the_framework_is_refused(plugin):
    with pytest.raises(TypeError, match=r"builtins\.int is "):
        plugin.facts(1)


def test_building_for_the_sdk_does_not_import_fastmcp():
    code = (
        "import sys, troth; from mcp.server.mcpserver import MCPServer; troth.build(MCPServer('a')); "
        "print('fastmcp' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.returncode) == ("False", 0), done.stderr
