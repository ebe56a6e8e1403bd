"""POSTs as real clients and a hostile one send them: white space, contradictions, answers that nobody asked for."""

from __future__ import annotations

import asyncio
import json

import pytest
from scripted_front import BOTH, META, MODERN, VERSION, request, serving

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("header", "code"), [(MODERN, -32020), ("v999", -32022)])
async def test_a_revision_that_differs_from_its_header_is_a_mismatch_before_it_is_unsupported(
    header: str, code: int
) -> None:
    async with serving() as served:
        asked = request("server/discover", 1, {**META, VERSION: "v999"})
        async with served.post(asked, mcp_protocol_version=header) as response:
            assert response.status == 400
            assert (await response.json())["error"]["code"] == code


@pytest.mark.parametrize("member", [{"result": {}}, {"error": {"code": -32603, "message": "x"}}])
async def test_an_answer_that_is_posted_as_a_modern_message_is_refused(member: dict[str, object]) -> None:
    message = {"jsonrpc": "2.0", "id": 1, **member}
    async with serving() as served, served.post(message, mcp_protocol_version=MODERN) as response:
        assert response.status == 400
        assert (await response.json())["error"]["code"] == -32600


async def test_white_space_around_a_header_is_none_of_its_value() -> None:
    async with serving() as served:
        body = json.dumps(request("server/discover", 1, META)).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{served.server.port}\r\nContent-Type: application/json\r\n"
            f"Accept: {BOTH}\r\nMCP-Protocol-Version:  \t{MODERN} \t\r\nMcp-Method:   server/discover  \r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
        writer.write(head.encode() + body)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
        await writer.wait_closed()
