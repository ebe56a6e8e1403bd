"""The pytest plug-in, used as its users do."""

from __future__ import annotations

from typing import Annotated

import pytest
from installed_servers import on_sdk
from mcp.server.mcpserver import Context, MCPServer, Resolve, Sample
from mcp_types import CreateMessageResult, SamplingMessage, TextContent

import troth
from troth.plugins.mcp_host import HostError
from troth.register import Era, register

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
REVISIONS = register().revisions
SINCE_MODES = ("2025-11-25", "2026-07-28")


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_host_of_any_revision_sees_what_it_declared(make, revision, troth_host):
    server = make()
    async with troth_host(server, revision=revision) as host:
        assert host.revision == revision
        seen = await host.tools()
        assert "add" in seen
        assert "summarize" not in seen
        with pytest.raises(HostError) as caught:
            await host.call("summarize")
        assert caught.value.code == (-32021 if register().era(revision) is Era.MODERN else -32600)
        assert caught.value.data == {"requiredCapabilities": {"sampling": {}}}
    async with troth_host(server, capabilities={"sampling": {}}, revision=revision) as host:
        assert "summarize" in await host.tools()
        assert await host.prompts() == ["greet", "hidden"]
        assert await host.resources() == ["x://open"]
        assert await host.templates() == []


@pytest.mark.parametrize(
    ("revision", "declared", "met"),
    [
        ("2025-03-26", {"elicitation": {}}, False),
        ("2025-06-18", {"elicitation": {}}, True),
        ("2025-11-25", {"elicitation": {}}, True),
        ("2025-11-25", {"elicitation": {"form": {}}}, True),
        ("2025-11-25", {"elicitation": {"url": {}}}, False),
        ("2026-07-28", {"elicitation": {}}, True),
        ("2026-07-28", {"elicitation": {"url": {}}}, False),
    ],
)
async def test_elicitation_without_modes_is_form(make, revision, declared, met, troth_host):
    async with troth_host(make(), capabilities={"sampling": {}, **declared}, revision=revision) as host:
        assert ("survey" in await host.tools()) is met


async def test_capabilities_of_another_revision_do_not_count(troth_host):
    declared = {"extensions": {"com.example/x": {}}}
    for revision, met in (("2025-11-25", False), ("2026-07-28", True)):
        server = on_sdk(requirements={"add": troth.extension("com.example/x")})
        async with troth_host(server, capabilities=declared, revision=revision) as host:
            assert ("add" in await host.tools()) is met


async def test_each_modern_request_is_judged_by_itself(make, troth_host):
    server = make()
    async with troth_host(server, capabilities={"sampling": {}}, revision="2026-07-28") as host:
        assert "summarize" in await host.tools()
        host.capabilities = {}
        assert "summarize" not in await host.tools()
        host.capabilities = {"sampling": {}}
        assert (await host.call("summarize")).get("isError") in (None, False)


async def test_a_question_is_spelled_for_the_revision(troth_host):
    server, forms = MCPServer("forms"), []

    @server.tool()
    async def ask(ctx: Context) -> str:
        schema = {"type": "object", "properties": {"a": {"type": "string"}}}
        return (await ctx.session.elicit_form("?", schema, related_request_id=ctx.request_id)).action

    def answer(params):
        forms.append(params)
        return {"action": "decline"}

    troth.install(server)
    for revision in ("2025-06-18", "2025-11-25"):
        async with troth_host(
            server,
            capabilities={"elicitation": {}},
            revision=revision,
            answers={"elicitation/create": answer},
        ) as host:
            assert (await host.call("ask"))["content"][0]["text"] == "decline"
    assert ["mode" in form for form in forms] == [False, True]


async def test_a_result_is_spelled_for_the_revision(troth_host):
    async with troth_host(on_sdk(), revision="2024-11-05") as host:
        page = await host.request("tools/list")
        assert all(set(tool) <= {"name", "description", "inputSchema"} for tool in page["tools"])
        assert set(await host.call("seen")) <= {"content", "isError"}


async def test_notifications_can_be_waited_for(make, troth_host):
    async with troth_host(make()) as host:
        await host.call("grow")
        assert (await host.until("notifications/tools/list_changed"))["method"]
        assert host.declared["tools"] == {"listChanged": True}


def ask() -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(type="text", text="?"))], max_tokens=9)


async def test_questions_are_answered_in_both_eras(troth_host):

    server = MCPServer("rounds")

    @server.tool()
    async def write(answer: Annotated[CreateMessageResult, Resolve(ask)]) -> str:
        return answer.content.text

    troth.install(server)
    for revision in SINCE_MODES:
        async with troth_host(server, capabilities={"sampling": {}}, revision=revision) as host:
            assert (await host.call("write"))["content"][0]["text"] == "an answer of the model"


async def test_a_host_of_no_revision_or_for_no_server_is_refused(troth_host):
    with pytest.raises(ValueError, match="no revision"):
        async with troth_host(on_sdk(), revision="1999-01-01"):
            pass
    with pytest.raises(TypeError, match="in-memory host takes"):
        async with troth_host(object()):
            pass


@pytest.mark.parametrize("change", ["grow", "touch"])
def test_servers_with_troth_are_honest(make, change, assert_honest):
    assert_honest(make(), change_tools=[change])


def test_servers_without_it_are_not(make, assert_honest):
    with pytest.raises(AssertionError, match="not honest"):
        assert_honest(make(install=False), revisions=["2025-11-25"], change_tools=["log", "grow"])


def test_findings_can_be_allowed(assert_honest):
    server = on_sdk(install=False)
    assert_honest(server, revisions=["2025-11-25"], change_tools=["log"], allow=["undeclared", "empty"])


def test_what_is_no_server_cannot_be_audited(assert_honest):
    with pytest.raises(TypeError, match="audit in process takes"):
        assert_honest(object())
