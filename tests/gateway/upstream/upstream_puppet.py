"""A server whose answers to `tools/call` are dictated by the call; run as a process.

    python upstream_puppet.py LOG ERA [CAPABILITIES [LISTEN]]

Each line that it reads goes to LOG. `arguments.say` of a call is a list of lines to write, where `$id` is the id of the
request and `$token` its progress token; `EXIT` ends the process. Without `say` the call
is never answered. LISTEN is what becomes of `subscriptions/listen`: `honour` it, `refuse` it, `ignore` it, `end` it at
once, or honour it but for the named member of its filter.
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


def listened(message: Any, how: str) -> list[Any]:
    """What is written because of a listen."""
    request, wanted = message["id"], message["params"]["notifications"]
    tag = {"io.modelcontextprotocol/subscriptionId": request}
    honoured = {name: value for name, value in wanted.items() if name != how}
    opened = {"method": "notifications/subscriptions/acknowledged", "params": {"_meta": tag, "notifications": honoured}}
    if how == "refuse":
        return [{"id": request, "error": {"code": -32601, "message": "no"}}]
    if how == "end":
        return [opened, {"id": request, "result": {"resultType": "complete", "_meta": tag}}]
    return [] if how == "ignore" else [opened]


def main(log: str, era: str, declared: str = "", listen: str = "honour") -> None:
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
                    else:
                        print(text, flush=True)
            elif method in ("ping", "resources/subscribe", "resources/unsubscribe", "logging/setLevel", "tools/list"):
                result = {"tools": []} if method == "tools/list" else {}
                print(json.dumps({"jsonrpc": "2.0", "id": request, "result": result}), flush=True)
            elif method == "subscriptions/listen":
                for more in listened(message, listen):
                    print(json.dumps({"jsonrpc": "2.0", **more}), flush=True)
            else:
                error = {"code": -32601, "message": f"Method not found: {method}"}
                print(json.dumps({"jsonrpc": "2.0", "id": request, "error": error}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
