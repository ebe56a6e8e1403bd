"""A server whose answers to `tools/call` are dictated by the call; run as a process.

    python upstream_puppet.py LOG ERA [OPTION...]

Each line that it reads goes to LOG. `arguments.say` of a call is a list of lines to write, where `$id` is the id of the
request and `$token` its progress token; `EXIT` ends the process. Without `say` the call is never answered.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

DECLARED = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": False},
    "resources": {"subscribe": True, "listChanged": True},
    "logging": {},
}


def opening(method: str, era: str, capabilities: Any) -> Any:
    if method == "initialize" and era != "modern":
        revision = era if era[0] == "2" else "2025-11-25"
        info = {"name": "puppet", "version": "1"}
        return {"protocolVersion": revision, "capabilities": capabilities, "serverInfo": info}
    if method == "server/discover" and era == "modern":
        return {
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": capabilities,
            "ttlMs": 0,
            "cacheScope": "private",
        }
    return None


def dictated(message: Any) -> list[str]:
    params = message["params"]
    token = json.dumps(params.get("_meta", {}).get("progressToken"))
    lines = params.get("arguments", {}).get("say", [])
    return [line.replace("$id", json.dumps(message["id"])).replace("$token", token) for line in lines]


def main(log: str, era: str, declared: str = "") -> None:
    capabilities = json.loads(declared) if declared else DECLARED
    with Path(log).open("a") as heard:
        for line in sys.stdin:
            heard.write(line)
            heard.flush()
            message = json.loads(line)
            method, request = message.get("method"), message.get("id")
            if request is None or method is None:
                continue
            result = opening(method, era, capabilities)
            if result is not None:
                print(json.dumps({"jsonrpc": "2.0", "id": request, "result": result}), flush=True)
            elif method == "tools/call":
                for text in dictated(message):
                    if text == "EXIT":
                        os._exit(3)
                    print(text, flush=True)
            elif method in ("ping", "resources/subscribe", "resources/unsubscribe", "logging/setLevel", "tools/list"):
                result = {"tools": []} if method == "tools/list" else {}
                print(json.dumps({"jsonrpc": "2.0", "id": request, "result": result}), flush=True)
            elif method != "subscriptions/listen":
                error = {"code": -32601, "message": f"Method not found: {method}"}
                print(json.dumps({"jsonrpc": "2.0", "id": request, "error": error}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
