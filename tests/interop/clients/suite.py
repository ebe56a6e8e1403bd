"""What the conformance suite starts as the client of its mock servers: the gateway, and a raw client that drives it.

The suite appends the address of its mock and says by variables which scenario and revision it plays.
``DRIVER_VERSION`` makes the client speak another revision than the mock, so that the gateway has an era on either side.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from conformance import gateway
from raw import Raw, Refused

SAMPLES: dict[str, Any] = {"string": "word", "integer": 5, "number": 5, "boolean": True, "array": [], "object": {}}


def arguments(tool: dict[str, Any], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Something for each argument that a tool requires."""
    schema = tool.get("inputSchema", {})
    if tool["name"] == "json_schema_echo":
        return {"schema": next(one["inputSchema"] for one in tools if one["name"] != tool["name"])}
    properties = schema.get("properties", {})
    kinds = {name: properties.get(name, {}).get("type", "string") for name in schema.get("required", [])}
    return {name: SAMPLES.get(kind, "word") for name, kind in kinds.items()}


def drive(url: str, scenario: str, context: dict[str, Any], revision: str) -> None:
    client = Raw(url, revision)
    client.open()
    declared = attempt(client.tools) or []
    listed = declared if isinstance(declared, list) else []
    if scenario == "http-standard-headers":
        attempt(client.request, "resources/list")
        attempt(client.request, "prompts/list")
        for resource in (attempt(client.request, "resources/list") or {}).get("resources", []):
            attempt(client.request, "resources/read", {"uri": resource["uri"]})
        for prompt in (attempt(client.request, "prompts/list") or {}).get("prompts", []):
            attempt(client.request, "prompts/get", {"name": prompt["name"]})
    calls = context.get("toolCalls") or [
        {"name": tool["name"], "arguments": arguments(tool, listed)} for tool in listed
    ]
    for call in calls:
        attempt(client.call, call["name"], call["arguments"])
    client.close()


def attempt(ask: Any, *words: Any) -> Any:
    """A result, or None: what the mock thinks of what it got is what counts."""
    try:
        return ask(*words)
    except Refused as refused:
        print(f"{words}: {refused}", file=sys.stderr)
        return None


def main() -> None:
    mock = sys.argv[-1]
    revision = os.environ.get("DRIVER_VERSION") or os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    with tempfile.TemporaryDirectory() as folder, gateway({"url": mock}, Path(folder)) as front:
        try:
            drive(front, os.environ["MCP_CONFORMANCE_SCENARIO"], context, revision)
        finally:
            sys.stderr.write((Path(folder) / "gateway.log").read_text("utf-8", "replace"))


if __name__ == "__main__":
    main()
