"""The pytest plug-in: in-memory hosts of any revision and declaration, and audits in process.

Installed with the package, under the entry point ``pytest11``. What it needs is imported when a test uses it::

    @pytest.mark.anyio
    async def test_a_host_without_a_model_does_not_see_summarize(troth_host):
        async with troth_host(server, capabilities={}, revision="2025-06-18") as host:
            assert "summarize" not in await host.tools()

    def test_the_server_keeps_its_promises(assert_honest):
        assert_honest(server)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from contextlib import AbstractAsyncContextManager
    from typing import Protocol

    from troth.plugins.mcp_host import Answer, Host

    class TrothHost(Protocol):
        """What the fixture ``troth_host`` is."""

        def __call__(
            self,
            server: object,
            *,
            capabilities: Mapping[str, Any] | None = None,
            revision: str | None = None,
            answers: Mapping[str, Answer] | None = None,
        ) -> AbstractAsyncContextManager[Host]:
            """Connects a host to a server."""
            ...


@pytest.fixture
def troth_host() -> TrothHost:
    """Connects an in-memory host to a server: ``troth_host(server, capabilities={...}, revision="...")``.

    See ``troth.plugins.mcp_host.connect``.
    """
    from troth.plugins.mcp_host import connect

    return connect


@pytest.fixture(name="assert_honest")
def _assert_honest() -> Callable[..., None]:
    """Audits a server in process: ``assert_honest(server)``; see ``assert_honest`` of this module."""
    return assert_honest


def assert_honest(
    server: object,
    *,
    revisions: Collection[str] = (),
    change_tools: Collection[str] = (),
    allow: Collection[str] = (),
) -> None:
    """Audits a server in process, over HTTP on the loopback interface, and fails with what was found.

    Args:
        server: ``MCPServer`` or the low-level ``Server`` of ``mcp`` 2, or ``FastMCP`` 4, with or without Troth.
        revisions: Protocol revisions to audit; all without it.
        change_tools: Tools that change a list or a resource, and may be called for that.
        allow: Verdicts and codes of findings that are no failure, e.g. ``resources.not-found-code``.

    Raises:
        AssertionError: A promise is broken, or something of at least the severity *warning* was found.
        TypeError: ``server`` is none of these.
    """
    __tracebackhide__ = True
    from troth.audited import findings

    found = findings(server, revisions=revisions, change_tools=change_tools, allow=allow)
    if found:
        raise AssertionError("the server is not honest:\n" + "\n".join(f"  {one}" for one in found))
