"""What passes in all four pairs of eras, over real HTTP and stdio."""

from __future__ import annotations

import pytest
from middle_gateway import LEGACY, MODERN, Legacy, Modern, Served, server, serving

pytestmark = pytest.mark.anyio

ERAS = [("--revision", "2025-11-25"), ("--revision", MODERN), ("--revision", "2024-11-05")]


@pytest.fixture(params=ERAS, ids=lambda options: f"upstream-{options[1]}")
def upstream(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return request.param


@pytest.fixture(params=[*LEGACY, MODERN], ids=lambda revision: f"host-{revision}")
def revision(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def host(served: Served, revision: str) -> Legacy | Modern:
    return served.modern() if revision == MODERN else served.legacy(revision)


async def test_lists_calls_prompts_resources_and_completion_pass(upstream: tuple[str, ...], revision: str) -> None:
    async with serving(server("one", *upstream), server("two", *upstream)) as served, host(served, revision) as peer:
        tools = [tool["name"] for tool in (await peer.ask("tools/list")).result["tools"]]
        assert tools[0] == "one_read_note"
        assert len(tools) == 2 * len({tool.partition("_")[2] for tool in tools})
        called = await peer.call("two_read_note", {"name": "one"})
        assert called.result["content"][0]["type"] == "text"
        prompt = await peer.ask("prompts/get", {"name": "one_greet", "arguments": {"name": "Ada"}})
        assert "Ada" in str(prompt.result["messages"])
        uri = (await peer.ask("resources/list")).result["resources"][-1]["uri"]
        assert uri.startswith("two+")
        read = await peer.ask("resources/read", {"uri": uri})
        assert read.result["contents"][0]["uri"] == uri
        templates = (await peer.ask("resources/templates/list")).result["resourceTemplates"]
        assert templates[0]["uriTemplate"].startswith("one+")
        completed = await peer.ask(
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "one_greet"}, "argument": {"name": "name", "value": ""}},
        )
        assert completed.result["completion"]["values"]
