"""A server on pipes that does what its calls say, and keeps what it was told; run as a process.

    python middle_process.py ERA LOG

Each line that it reads goes to LOG. The tool `do` takes `say`: messages to write at once, in which `$id` and `$token`
are those of the call, and it answers only if one of them is an answer. Of the tool `answer`, `say` answers other calls.
The tool `fall` says its last words on standard error instead.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

DECLARED = {"tools": {"listChanged": True}, "logging": {}}
TOOLS = [{"name": name, "description": name, "inputSchema": {"type": "object"}} for name in ("do", "answer", "fall")]


def result(message: Any, era: str) -> Any:
    kept = {"ttlMs": 0, "cacheScope": "private"} if era == "modern" else {}
    complete = {"resultType": "complete"} if era == "modern" else {}
    info = {"name": "process", "version": "1"}
    known = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": DECLARED, "serverInfo": info},
        "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": DECLARED, **kept, **complete},
        "tools/list": {"tools": TOOLS, **kept, **complete},
        "logging/setLevel": {},
        "ping": {},
    }
    if message["method"] == ("initialize" if era == "modern" else "server/discover"):
        return None
    return known.get(message["method"])


def main(era: str, log: str) -> None:
    with Path(log).open("a", encoding="utf-8") as heard:
        for line in sys.stdin:
            heard.write(line)
            heard.flush()
            message = json.loads(line)
            request = message.get("id")
            if "method" not in message or request is None:
                continue
            if message["method"] == "tools/call":
                if message["params"]["name"] == "fall":
                    sys.exit("\n".join(message["params"]["arguments"]["say"]))
                token = json.dumps(message["params"].get("_meta", {}).get("progressToken"))
                for text in message["params"]["arguments"].get("say", []):
                    print(text.replace("$id", json.dumps(request)).replace("$token", token), flush=True)
            elif message["method"] != "subscriptions/listen":
                found = result(message, era)
                error = {"code": -32601, "message": "Method not found"}
                print(
                    json.dumps(
                        {"jsonrpc": "2.0", "id": request, **({"error": error} if found is None else {"result": found})}
                    ),
                    flush=True,
                )


if __name__ == "__main__":
    main(*sys.argv[1:])
