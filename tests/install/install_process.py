"""Serves one of the servers: ``python install_process.py sdk|task_sdk|... stdio|http|stateless [PORT]``."""

from __future__ import annotations

import sys

import anyio
import uvicorn
from installed_servers import MAKERS
from mcp.server.stdio import stdio_server
from task_servers import TASK_MAKERS

from troth.plugins.mcp_host import low_level_of


async def main(name: str, transport: str, port: str = "0") -> None:
    server = {**MAKERS, **TASK_MAKERS}[name]()
    if transport == "stdio":
        low_level = low_level_of(server)
        async with stdio_server() as (read, write):
            await low_level.run(read, write, low_level.create_initialization_options())
        return
    make = getattr(server, "http_app", None) or server.streamable_http_app
    app = make(stateless_http=transport == "stateless")
    await uvicorn.Server(uvicorn.Config(app, port=int(port), log_level="error")).serve()


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
