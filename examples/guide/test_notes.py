"""What the server promises, as tests."""

import pytest

from gated_notes import server


@pytest.mark.anyio
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", "2026-07-28"])
async def test_only_hosts_with_a_model_see_summarize(troth_host, revision):
    async with troth_host(server, capabilities={"sampling": {}}, revision=revision) as host:
        assert "summarize" in await host.tools()
        assert (await host.call("summarize"))["content"][0]["text"] == "an answer of the model"
    async with troth_host(server, capabilities={}, revision=revision) as host:
        assert "summarize" not in await host.tools()


def test_the_server_is_honest(assert_honest):
    assert_honest(server, change_tools=["archive"])
