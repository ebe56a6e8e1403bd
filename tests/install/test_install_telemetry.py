"""What gating tells logs and traces; what the announcer and the watched collections promise."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import anyio
import anyio.lowlevel
import pytest
from install_hosts import client
from installed_servers import on_sdk
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError

import troth
from troth.plugins import telemetry
from troth.plugins.announcing import Announcer, Audience, Change
from troth.plugins.asking import needed
from troth.plugins.watching import WatchedDict, WatchedList, watch

pytestmark = pytest.mark.anyio


class Span:
    def __init__(self):
        self.attributes = {}

    def is_recording(self):
        return True

    def set_attributes(self, attributes):
        self.attributes |= attributes


async def test_traces_have_what_was_shown_hidden_and_refused(mode, monkeypatch):
    span = Span()
    monkeypatch.setattr(telemetry, "_api", lambda: SimpleNamespace(get_current_span=lambda: span))
    async with client(on_sdk(), mode) as host:
        await host.list_tools()
        assert span.attributes["troth.list.hidden"] == ["summarize", "survey"]
        assert span.attributes["troth.list.shown"] > 1
        with pytest.raises(MCPError):
            await host.call_tool("summarize")
        assert span.attributes["troth.refused"] == "tools/call"
        assert span.attributes["troth.missing"] == ["sampling"]


def test_without_opentelemetry_nothing_is_traced(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    telemetry._api.cache_clear()
    try:
        assert telemetry._api() is None
        telemetry._span({"a": 1})
    finally:
        telemetry._api.cache_clear()


async def test_logs_are_structured(mode, caplog):
    with caplog.at_level("DEBUG", "troth.gating"):
        async with client(on_sdk(), mode) as host:
            await host.list_tools()
            with pytest.raises(MCPError):
                await host.call_tool("summarize")
    listed, refused = (record for record in caplog.records if record.name == "troth.gating")
    assert listed.troth_hidden == {"summarize": "needs sampling", "survey": "needs elicitation.form, sampling"} or (
        set(listed.troth_hidden) == {"summarize", "survey"}
    )
    assert (refused.troth_primitive, refused.troth_missing) == ("summarize", ("sampling",))
    assert refused.troth_method == "tools/call"


async def test_a_host_that_fails_to_be_told_does_not_stop_the_others():
    told = []

    async def fails(change):
        raise OSError("gone")

    async def hears(change):
        told.append(change)

    async def publish(change):
        raise OSError("bus down")

    announcer = Announcer(publish)
    assert announcer.join(None, Audience(hears)) is None
    async with announcer.lifespan("run") as heard:
        for send in (fails, hears):
            audience = Audience(send)
            leave = announcer.join("run", audience)
            audience.ready.set()
        heard(Change("tools"))
        heard(Change("tools"))
        heard(None)
        announcer.tell(Change("tools"))
        with anyio.fail_after(30):
            while not told:
                await anyio.lowlevel.checkpoint()
        leave()
        heard(Change("prompts"))
        await anyio.lowlevel.checkpoint()
        assert told == [Change("tools")]
    assert announcer.running is False


async def test_a_host_that_does_not_read_has_a_bounded_backlog():
    async def never(change):
        await anyio.sleep_forever()

    audience = Audience(never)
    for number in range(2000):
        audience.mark(Change("resources", f"x://{number}"))
    assert len(audience.due) == 1000


@pytest.mark.parametrize("kind", [dict, list])
def test_watched_collections_tell_of_every_change(kind):
    class Holder:
        pass

    holder, told = Holder(), []
    holder.kept = {"a": 1} if kind is dict else ["a"]
    holder.other = 1
    assert watch(holder, "kept", lambda: told.append(1))
    assert watch(holder, "kept", lambda: told.append(2))
    assert not watch(holder, "other", lambda: None)
    assert not watch(holder, "missing", lambda: None)
    assert isinstance(holder.kept, WatchedDict | WatchedList)
    if kind is dict:
        holder.kept["b"] = 2
        holder.kept.pop("b")
        holder.kept |= {"c": 3}
        assert holder.kept == {"a": 1, "c": 3}
    else:
        holder.kept.append("b")
        holder.kept.remove("b")
        holder.kept += ["c"]
        assert holder.kept == ["a", "c"]
    assert told == [1, 2] * 3


@pytest.mark.parametrize(
    ("method", "params", "need"),
    [
        ("ping", None, ""),
        ("com.example/odd", {}, ""),
        ("roots/list", None, "roots"),
        ("sampling/createMessage", {}, "sampling"),
        ("sampling/createMessage", {"tools": [{}]}, "sampling, sampling.tools"),
        ("sampling/createMessage", {"toolChoice": {}}, "sampling, sampling.tools"),
        ("sampling/createMessage", {"includeContext": "none"}, "sampling"),
        ("sampling/createMessage", {"includeContext": "allServers"}, "sampling, sampling.context"),
        ("sampling/createMessage", {"task": {}}, "sampling, tasks.requests.sampling.createMessage"),
        ("elicitation/create", {}, "elicitation.form"),
        ("elicitation/create", {"mode": "url"}, "elicitation.url"),
        ("elicitation/create", {"mode": "odd", "task": {}}, "elicitation.form, tasks.requests.elicitation.create"),
    ],
)
def test_each_question_needs_what_it_uses(method, params, need):
    assert str(needed(method, params)) == need


@pytest.mark.parametrize("allowed", [False, True])
async def test_hosts_that_declare_nothing_pass_only_if_they_are_let(allowed):
    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext
    from mcp.server.session import ServerSession

    from troth.plugins.install import _installed

    server = MCPServer("open")
    server.add_tool(troth.requires(troth.SAMPLING)(lambda: "a"), name="bound")
    troth.install(server, allow_when_not_declared=allowed)
    middleware = _installed[server]
    connection = Connection.from_envelope("2025-06-18", None, None)
    session = ServerSession(None, connection)

    async def tools(ctx):
        return {"tools": [{"name": "bound"}]}

    async def ask(method):
        ctx = ServerRequestContext(
            session=session, lifespan_context={}, protocol_version="2025-06-18", method=method, request_id=1
        )
        return await middleware(ctx, tools)

    assert [tool["name"] for tool in (await ask("tools/list"))["tools"]] == (["bound"] if allowed else [])
