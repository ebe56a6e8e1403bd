"""The examples do what they say, and the pages that are made from them are fresh."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

from troth.plugins.mcp_host import HostError
from troth.register import Era, register

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "scripts")]
FAULTS = ("**broken**", "**leaked**", "**ungated**", "**undeclared**", "**partial**", "**empty**", "**malformed**")
ALL = {"sampling": {}, "roots": {}, "elicitation": {"form": {}, "url": {}}}
NEW = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


@pytest.fixture
def sample():
    return import_module("sample_server").server


@pytest.mark.anyio
@pytest.mark.parametrize("revision", [register().newest(era) for era in Era])
async def test_every_tool_of_the_sample_server_works_for_a_host_that_declares_all(sample, troth_host, revision):
    modern = register().era(revision) is Era.MODERN
    declared = {**ALL, **(NEW if modern else {"tasks": {}})}
    answers = {"elicitation/create": {"action": "accept", "content": {"size": "big"}}}
    async with troth_host(sample, capabilities=declared, revision=revision, answers=answers) as host:
        seen = set(await host.tools())
        assert seen >= {"echo", "summarize", "order", "sign_in", "folders", "backlog"}
        assert (await host.call("summarize", text="a"))["content"][0]["text"] == "an answer of the model"
        assert (await host.call("order"))["content"][0]["text"] == "ordered: big"
        assert (await host.call("sign_in"))["content"][0]["text"] == "accept"
        assert (await host.call("folders"))["content"][0]["text"].startswith("file://")
        assert (await host.call("backlog"))["content"][0]["text"] == "nothing"
        assert await host.templates() == ["sample://folders/{name}"]
        assert await host.prompts() == ["greet", "interview"]


@pytest.mark.anyio
@pytest.mark.parametrize("revision", register().revisions)
async def test_the_sample_server_hides_what_a_host_cannot_use(sample, troth_host, revision):
    async with troth_host(sample, revision=revision) as host:
        assert set(await host.tools()) - {"grown"} == {"echo", "count", "grow"}
        with pytest.raises(HostError, match="it lends none"):
            await host.call("summarize", text="a")
        assert await host.resources() == ["sample://about"]


@pytest.mark.anyio
async def test_the_tool_of_the_sample_server_that_takes_long_runs_as_a_task(sample, troth_host):
    async with troth_host(sample) as host:
        params = {"name": "count", "arguments": {"to": 2}, "task": {}}
        task = (await host.request("tools/call", params))["task"]["taskId"]
        assert (await host.request("tasks/result", {"taskId": task}))["content"][0]["text"] == "counted"
        said = [one["params"].get("statusMessage") for one in host.heard if one["method"].endswith("tasks/status")]
        assert "1 of 2" in said


def test_the_sample_server_is_honest(sample, assert_honest):
    assert_honest(sample, change_tools=["grow"])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["plain_sdk", "plain_lowlevel", "plain_fastmcp"])
def test_one_line_ends_every_fault_of_a_plain_server_and_the_page_says_so(name):
    tables = import_module("before_after")
    title = next(title for title, plain in tables.PLAIN.items() if plain == name)
    before, after = (tables.report(name, installed=installed) for installed in (False, True))
    text = tables.section(title, name, before, after)
    rows = [line.split(" | ") for line in text.splitlines()[5:]]
    assert any(fault in row[1] for row in rows for fault in FAULTS)
    assert [row for row in rows if any(fault in row[2] for fault in FAULTS)] == []
    assert rows[-1][2].startswith("none")
    assert text in tables.PAGE.read_text("utf-8")
