"""What every answering client is asked to do: call tools of a server that asks, and say what came back.

A script takes ``--mode legacy|modern``, a URL and the calls as a JSON object (tool -> arguments), and prints one JSON
object: tool -> text of its result. Whatever it is asked it answers with what stands here. In place of a URL, some take
a configuration that they have the gateway serve on its pipes.
"""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

NAME = "Ada"
SAMPLED = "Paris"
ROOT = os.environ.get("TROTH_ROOT", "file:///ada/answers")
UNTIL = os.environ.get("TROTH_UNTIL", "")
"""The last call is made again until its result has this."""
SECONDS = 30
"""So long."""


def words() -> tuple[str, str, dict[str, dict[str, Any]]]:
    """The mode, the URL and the calls of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", default="legacy")
    parser.add_argument("url")
    parser.add_argument("calls", type=json.loads)
    chosen = parser.parse_args()
    return chosen.mode, chosen.url, chosen.calls


def content(schema: dict[str, Any]) -> dict[str, Any]:
    """The fields that a person fills in: the name, where it is asked for."""
    return {"name": NAME} if "name" in schema.get("properties", {}) else {}


def text(result: Any) -> str:
    """All text of a result."""
    return "\n".join(block.text for block in result.content)
