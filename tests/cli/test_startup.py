"""The command starts without the heavy libraries."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {
    "aiohttp",
    "anyio",
    "asyncio",
    "fastmcp",
    "jinja2",
    "mcp",
    "mcp_types",
    "msgspec",
    "pydantic",
    "rich",
    "starlette",
}
SCRIPT = """
import json, sys
from troth.cli import main
main(sys.argv[1:], standalone_mode=False)
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def modules(*arguments: str) -> set[str]:
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    assert result.stdout
    return set(json.loads(result.stderr))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["explain", "--help"],
        *([name, "--help"] for name in ("serve", "check-config", "add", "remove", "connect", "status")),
        ["explain", "--list"],
        ["explain", "CAP-17"],
        ["explain", "--format", "json", "resources/subscribe"],
    ],
)
def test_nothing_heavy_is_imported_by(arguments: list[str]) -> None:
    assert modules(*arguments) & HEAVY == set()


def test_help_reads_no_register_and_imports_no_command() -> None:
    loaded = modules("--help")
    assert {name for name in loaded if name.startswith("troth")} == {"troth", "troth.cli"}
