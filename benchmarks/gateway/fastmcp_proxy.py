"""FastMCP's proxy, as it comes and at its best.

    python -m benchmarks.gateway.fastmcp_proxy CONFIG --http PORT [--best] [--mode MODE]

CONFIG is an ``mcpServers`` file. As it comes: `create_proxy` on the file, `run`. At its best: one client that is
connected once and reused by all hosts (which FastMCP warns of: contexts mix), uvloop, JSON answers.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import uvicorn
import uvloop
from fastmcp import Client
from fastmcp.server import create_proxy


async def best(config: dict[str, object], port: int, mode: str | None) -> None:
    options = {"mode": mode} if mode else {}
    async with Client(config, **options) as client:
        app = create_proxy(client).http_app(json_response=True)
        settings = uvicorn.Config(app, port=port, log_level="warning", access_log=False, timeout_keep_alive=120)
        await uvicorn.Server(settings).serve()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("config", type=Path)
    parser.add_argument("--http", type=int, required=True)
    parser.add_argument("--best", action="store_true")
    parser.add_argument("--mode")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    config = json.loads(options.config.read_text())
    if options.best:
        uvloop.run(best(config, options.http, options.mode))
    else:
        create_proxy(config, mode=options.mode).run("http", port=options.http, show_banner=False, log_level="warning")


if __name__ == "__main__":
    main()
