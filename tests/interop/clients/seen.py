"""What every client of others is asked to do with an everything server, and how it tells.

A client's script takes ``--mode legacy|modern`` and a URL, or ``--`` and a command, and prints one JSON object with
the members of `Seen`. Directly and through the gateway it must be the same one.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass, field
from typing import Any

WATCHED = "test://watched-resource"
SECONDS = 60.0
"""How long a client waits for a notification."""


@dataclass
class Seen:
    """What a client saw; members that it cannot see stay as they are."""

    revision: str = ""
    tools: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)
    templates: list[str] = field(default_factory=list)
    structured: Any = None
    contents: list[str] = field(default_factory=list)
    error: bool = False
    prompt: str = ""
    read: str = ""
    template: str = ""
    missing: int = 0
    completion: list[str] = field(default_factory=list)
    progress: list[float] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    later: bool = False
    updated: list[str] = field(default_factory=list)

    def show(self) -> None:
        print(json.dumps(asdict(self)))


EXPECTED = Seen(
    structured={"sum": 5},
    contents=["text", "image", "resource"],
    error=True,
    prompt="Prompt with arguments: arg1='one', arg2='two'",
    read="This is the content of the static text resource.",
    template='{"id": "7", "templateTest": true, "data": "Data for ID: 7"}',
    completion=["paris", "park", "party"],
    progress=[0, 50, 100],
    logs=["Tool execution started", "Tool processing data", "Tool execution completed"],
    changed=["tools"],
    later=True,
    updated=[WATCHED],
)


def words() -> tuple[str, str | None, list[str]]:
    """Mode, URL and command from the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=("legacy", "modern"), default="legacy")
    parser.add_argument("target", nargs="+", help="a URL, or a command after --")
    chosen = parser.parse_args()
    if len(chosen.target) == 1 and chosen.target[0].startswith("http"):
        return chosen.mode, chosen.target[0], []
    return chosen.mode, None, chosen.target
